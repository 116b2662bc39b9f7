r"""Parity, and training on one version of every text: the tables of docs/experiments/fewshot.md.

    python benchmarks/fewshot_versions.py docs/results/fewshot-versions
    python benchmarks/fewshot_versions.py docs/results/fewshot-versions --compute FOLDER

The first prints the tables from the published files. The second first trains and tests each run in
a folder below FOLDER (finished ones are read), and writes the files: one row per run, and one per
measure and pair of runs.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import evenhand as eh
from evenhand.fewshot import RunSettings, TrainingSettings, read
from grid_tables import markdown, shown
from published import read_rows, save_rows

DATA = "simulated:leak=1,per_class=100"
RUNS = {
    "none": ("none", "train"),
    "pro, training": ("pro", "train"),
    "anti, training": ("anti", "train"),
    "pro, training and supports": ("pro", "all"),
    "anti, training and supports": ("anti", "all"),
    "parity": ("parity", "all"),
}
PAIRS = (
    ("none", "pro, training"),
    ("none", "anti, training"),
    ("pro, training", "anti, training"),
    ("pro, training and supports", "anti, training and supports"),
    ("none", "parity"),
)
MEASURES = ("accuracy", "association", "epsilon", "pro", "anti")
SIZES = {"ways": 5, "shots": 4, "queries": 4, "episodes": "600/100/300", "splits": 3}


def compute(folder: Path, data: str = DATA, **sizes: Any) -> tuple[list[Any], list[Any]]:
    """Every run with its measures, and the paired changes, as tables with a heading."""
    dataset = read(data)
    results = {}
    for name, (mitigation, mitigate) in RUNS.items():
        settings = RunSettings(
            training=TrainingSettings(validate_every=60),
            mitigation=mitigation,
            mitigate=mitigate,
            neutral=False,
            **{**SIZES, **sizes},
        )
        place = folder / f"{mitigation}-{mitigate}"
        results[name] = eh.fewshot.run(dataset, settings, place, cache=folder / "cache").results
    rows: list[list[Any]] = [["run", *_columns((*MEASURES, "shares")), "shares_labels"]]
    for name, own in results.items():
        shares = own.bias.part("shares", by="parity")
        values = [own.accuracy, *(own.bias.part(measure) for measure in MEASURES[1:]), shares]
        rows.append([name, *_cells(values), shares.details["labels"]])
    changes: list[list[Any]] = [["from", "to", *_columns(MEASURES)]]
    for first, second in PAIRS:
        old, new = results[first], results[second]
        change = eh.compare(old.bias, new.bias)
        own = [eh.compare(old.accuracy, new.accuracy), *map(change.part, MEASURES[1:])]
        changes.append([first, second, *_cells(each.change for each in own)])
    return rows, changes


def _columns(names: Iterable[str]) -> list[str]:
    return [f"{name}{end}" for name in names for end in ("", "_low", "_high")]


def _cells(values: Iterable[Any]) -> list[float]:
    return [end for value in values for end in (value.value, value.low, value.high)]


def tables(runs: Sequence[Mapping[str, str]], changes: Sequence[Mapping[str, str]]) -> str:
    """The runs, and what differs between them."""
    own = [
        [row["run"], *(shown(dict(row), name) for name in (*MEASURES, "shares"))] for row in runs
    ]
    pairs = [
        [f"{row['from']} → {row['to']}", *(shown(dict(row), name) for name in MEASURES)]
        for row in changes
    ]
    head = ["accuracy", "association", "ε", "on pro-", "on anti-stereotypical"]
    return "\n\n".join(
        [
            markdown(["learned from", *head, "shares, men less women"], own),
            markdown(["change", *head], pairs),
        ]
    )


def main() -> None:
    """Compute if asked to, and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--compute", type=Path, metavar="FOLDER")
    given = parser.parse_args()
    files = [given.folder / f"{name}.csv.gz" for name in ("runs", "changes")]
    if given.compute is not None:
        given.folder.mkdir(parents=True, exist_ok=True)
        for file, rows in zip(files, compute(given.compute), strict=True):
            save_rows(file, rows)
    print(tables(*map(read_rows, files)))


if __name__ == "__main__":
    main()
