"""The folder of a fine-tuning: its result, its model, and the checkpoints while it goes on."""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from pathlib import Path

from evenhand import folders
from evenhand.errors import FileError, PartialFailure
from evenhand.masked.finetune.result import FinetuneResult
from evenhand.masked.model import Model, quiet
from evenhand.results import document, save_json

__all__ = ["RunFolder"]


class RunFolder(folders.RunFolder):
    """The folder of `masked finetune`."""

    command = "masked finetune"
    products = ("results.json", "model", "control", "checkpoint/*.safetensors")
    cleared = ("results.json", "curve.csv", "items.csv", "checkpoint", "model", "control",
               "figures")  # fmt: skip

    def __init__(self, path: Path) -> None:
        super().__init__(path)
        self.checkpoints = path / "checkpoint"

    def finished(self, prob: float) -> FinetuneResult | None:
        """The result, where the run is done; its intervals must be those asked for."""
        file = self.path / "results.json"
        if not file.is_file():
            return None
        try:
            result = FinetuneResult.from_dict(json.loads(file.read_bytes()), self.path)
            there = float(result.settings["prob"])
        except (ValueError, KeyError, TypeError) as error:
            raise FileError(file, f"not the result of a run: {error!r}; --restart") from error
        if there != prob:
            raise FileError(
                self.path,
                f"this run is done, with intervals of prob {there:g}, not {prob:g}: ask for "
                "those, give another folder, or --restart to train anew",
            )
        return result

    def finish(self, result: FinetuneResult) -> None:
        """Write the result; the checkpoints are no longer needed."""
        save_json(self.path / "results.json", document(**result.as_dict()))
        shutil.rmtree(self.checkpoints, ignore_errors=True)

    def save_model(self, model: Model, *parts: str) -> None:
        """Write model and tokenizer in the transformers layout, whole or not at all."""
        from safetensors import SafetensorError

        target = self.path.joinpath(*parts)
        target.parent.mkdir(exist_ok=True)
        partial = Path(tempfile.mkdtemp(prefix=folders.PARTIAL, dir=self.path))
        try:
            with quiet():
                model.network.save_pretrained(partial)
            model.tokenizer.save_pretrained(partial)
            partial.chmod(0o755)
            shutil.rmtree(target, ignore_errors=True)
            os.replace(partial, target)
        except SafetensorError as error:
            raise PartialFailure(f"{target}: {error}; {folders.GOES_ON}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)
