"""The folder of a few-shot run.

- `run.json`: the settings, the data, the encoder; the command's `results.json`, `by_class.csv`,
  `associations.csv` and `figures/`, when all is done;
- `splits.json`; for each split `split-0/` with `episodes.npz` (the test episodes as rows of the
  data set) and `floor.npz`; for each seed `split-0/seed-0/` with the trained network, `curve.csv`
  and `answers.npz`.
"""

from __future__ import annotations

import csv
import json
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand import folders
from evenhand.errors import FileError, InputError
from evenhand.fewshot.runs.kept import Kept
from evenhand.fewshot.runs.settings import RunSettings
from evenhand.fewshot.statistics_replicates import Ints

__all__ = [
    "ANSWERS", "ASSOCIATIONS", "BY_CLASS", "EPISODES", "FLOOR", "RunFolder", "SavedRun", "read_run",
]  # fmt: skip

ANSWERS, FLOOR, EPISODES = "answers.npz", "floor.npz", "episodes.npz"
BY_CLASS, ASSOCIATIONS = TABLES = ("by_class.csv", "associations.csv")


class RunFolder(folders.RunFolder):
    """The folder of `fewshot run`."""

    command = "fewshot run"
    products = (
        "results.json",
        f"split-[0-9]*/seed-*/{ANSWERS}",
        "split-[0-9]*/seed-*/*.safetensors",
    )
    cleared = ("results.json", "splits.json", "split-[0-9]*", "figures", *TABLES)
    temporary = (
        *folders.RunFolder.temporary,
        *(f".{name}.*" for name in ("run.json", "results.json", "splits.json", *TABLES)),
        "split-[0-9]*/.*", "split-[0-9]*/seed-*/.*", "figures/.*",
    )  # fmt: skip

    def split(self, number: int) -> Path:
        return self.path / f"split-{number}"

    def seed(self, number: int, seed: int) -> Path:
        return self.split(number) / f"seed-{seed}"


@dataclass(frozen=True, eq=False)
class SavedRun:
    """All that a finished run has left: the answers by split and seed, the floor's by split."""

    folder: Path
    settings: RunSettings
    about: Mapping[str, Any]
    kept: tuple[tuple[Kept, ...], ...]
    floor: tuple[Kept, ...]
    curves: Mapping[str, list[dict[str, float | None]]]

    @property
    def name(self) -> str:
        return self.settings.name

    @property
    def data(self) -> str:
        """The digest of its data."""
        return str(self.about["data"]["digest"])

    @property
    def leaning(self) -> Ints:
        """Which gender each class leans to: 0 male, 1 female, -1 neither."""
        return self.kept[0][0].leaning


def read_run(folder: str | os.PathLike[str]) -> SavedRun:
    """Read a finished run; what is missing of one that is not is named."""
    path = Path(folder)
    place = RunFolder(path)
    about = _about(path)
    try:
        settings = RunSettings.from_dict(about["settings"])
        first, _ = settings.training.seed, about["data"]["digest"]
    except (KeyError, TypeError, AttributeError, InputError) as error:
        raise FileError(path / "run.json", f"not the record of a few-shot run: {error}") from None
    kept, floor, curves = [], [], {}
    for split in range(settings.splits):
        floor.append(_kept(place.split(split) / FLOOR))
        row = []
        for seed in range(first, first + settings.seeds):
            here = place.seed(split, seed)
            row.append(_kept(here / ANSWERS))
            curves[f"split {split}, seed {seed}"] = _curve(here / "curve.csv")
        kept.append(tuple(row))
    return SavedRun(path, settings, about, tuple(kept), tuple(floor), curves)


def _about(path: Path) -> dict[str, Any]:
    file = path / "run.json"
    if not file.is_file():
        raise FileError(path, "expected the folder of a few-shot run, it has no run.json")
    try:
        about = json.loads(file.read_bytes())
    except ValueError as error:
        raise FileError(file, f"not valid JSON: {error}") from None
    if not isinstance(about, dict) or about.get("command") != RunFolder.command:
        raise FileError(file, f"expected the record of '{RunFolder.command}', got another one")
    return about


def _kept(path: Path) -> Kept:
    if not path.is_file():
        raise FileError(path, "missing, this run is not finished: repeat its command to go on")
    try:
        return Kept.load(path)
    except FileError as error:
        raise FileError(
            path, f"{error.problem}; delete it and repeat the command of the run"
        ) from None


def _curve(path: Path) -> list[dict[str, float | None]]:
    try:
        with path.open(encoding="utf-8", newline="") as file:
            rows = [
                {name: float(cell) if cell else None for name, cell in row.items()}
                for row in csv.DictReader(file)
            ]
    except FileNotFoundError:
        raise FileError(
            path, "missing, the run has lost its curve: --restart makes it anew"
        ) from None
    except (ValueError, TypeError, csv.Error) as error:
        raise FileError(path, f"expected a curve: {error}; --restart makes it anew") from None
    if not rows:
        raise FileError(path, "expected a curve, got no rows: --restart makes it anew")
    return rows
