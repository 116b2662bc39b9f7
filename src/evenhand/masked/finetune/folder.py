"""The folder of a run: whose it is, what is in it, and that only one process works there."""

from __future__ import annotations

import csv
import errno
import fcntl
import io
import json
import math
import os
import shutil
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from evenhand.errors import FileError, PartialFailure
from evenhand.masked.finetune.result import FinetuneResult
from evenhand.masked.model import Model, quiet
from evenhand.results import document, replace_file, save_json

__all__ = ["RunFolder", "working_folder"]

PARTIAL = ".model."
NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
GOES_ON = "what was saved before is whole, and the same command goes on from there"


class RunFolder:
    """`run.json` says which run it is; `results.json`, that it is done."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.checkpoints = path / "checkpoint"

    def holds(self, identity: Mapping[str, Any]) -> bool:
        """Whether the folder has this run; one that another run has learned in is refused."""
        file = self.path / "run.json"
        if not file.is_file():
            return False
        try:
            there = json.loads(file.read_bytes())["identity"]
        except (ValueError, KeyError, TypeError) as error:
            if not self._begun():
                return False
            problem = f"not the record of a run: {error!r}; --restart begins anew"
            raise FileError(file, problem) from error
        differing = list(_differing(there, json.loads(json.dumps(identity))))
        if differing and self._begun():
            raise FileError(
                self.path,
                f"has another run ({'; '.join(differing)}): give another folder, or --restart "
                "to begin anew here",
            )
        return not differing

    def claim(self, identity: Mapping[str, Any], run: Mapping[str, Any]) -> None:
        """Make the folder this run's; what an earlier one left is cleared away."""
        file = self.path / "run.json"
        if file.is_file():
            self._clear()
        elif self._begun():
            raise FileError(
                self.path, "has a model or results of no run of this command: give another folder"
            )
        save_json(file, document(command="masked finetune", identity=identity, **run))

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
        partial = Path(tempfile.mkdtemp(prefix=PARTIAL, dir=self.path))
        try:
            with quiet():
                model.network.save_pretrained(partial)
            model.tokenizer.save_pretrained(partial)
            partial.chmod(0o755)
            shutil.rmtree(target, ignore_errors=True)
            os.replace(partial, target)
        except SafetensorError as error:
            raise PartialFailure(f"{target}: {error}; {GOES_ON}") from error
        finally:
            shutil.rmtree(partial, ignore_errors=True)

    def save_table(self, rows: Sequence[Mapping[str, Any]], *parts: str) -> None:
        """Write rows as CSV, whole or not at all."""
        text = io.StringIO()
        writer = csv.DictWriter(text, list(rows[0]), lineterminator="\n")
        writer.writeheader()
        for row in rows:
            writer.writerow({name: _cell(value) for name, value in row.items()})
        target = self.path.joinpath(*parts)
        target.parent.mkdir(exist_ok=True)
        with replace_file(target) as file:
            file.write(text.getvalue().encode())

    def _clear(self) -> None:
        """Take away what an earlier run left; nothing else in the folder is touched.

        `run.json` stays until it is replaced: a kill in between leaves the folder a run's.
        """
        for name in ("results.json", "curve.csv", "items.csv"):
            (self.path / name).unlink(missing_ok=True)
        for folder in ("checkpoint", "model", "control", "figures"):
            shutil.rmtree(self.path / folder, ignore_errors=True)

    def _begun(self) -> bool:
        """Whether something was learned here, that must not be lost."""
        made = ("results.json", "model", "control")
        return any((self.path / name).exists() for name in made) or any(
            self.checkpoints.glob("*.safetensors")
        )


@contextmanager
def working_folder(path: Path) -> Iterator[RunFolder]:
    """The folder, made if need be, for this process alone; a full disk is told of as such."""
    path.mkdir(parents=True, exist_ok=True)
    handle = os.open(path, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            raise FileError(path, "another run is working in this folder") from None
        for left in path.glob(f"{PARTIAL}*"):
            shutil.rmtree(left, ignore_errors=True)
        yield RunFolder(path)
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise PartialFailure(f"{path}: {error.strerror}; {GOES_ON}") from error
    finally:
        os.close(handle)


def _cell(value: Any) -> Any:
    """What is no number is an empty cell."""
    return "" if isinstance(value, float) and math.isnan(value) else value


def _differing(there: Any, now: Any, name: str = "") -> Iterator[str]:
    """What of two identities is not the same, in words."""
    if isinstance(there, dict) and isinstance(now, dict):
        for part in sorted(there.keys() | now.keys()):
            yield from _differing(there.get(part), now.get(part), part)
    elif there != now:
        long = any(isinstance(value, str) and len(value) > 20 for value in (there, now))
        yield f"another {name}" if long else f"{name}: {there} there, {now} now"
