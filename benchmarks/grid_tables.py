"""The tables of docs/results.md (and experiments/fewshot-grids.md) from published few-shot grids.

    python benchmarks/grid_tables.py docs/results/wikibios-minilm
    python benchmarks/grid_tables.py docs/results/NAME --publish GRID [GRID …]

The first prints the tables as Markdown. The second first writes the CSV files of `evenhand lab grid
report GRID` into the folder: one row per cell (results), per network (networks), per mitigation
(mitigations) and per paired change of a cell (effects), compressed, with 6 digits. Of several
grids the rows follow each other: the same cells with other seeds, of which one table is printed.

Intervals and p-values of single settings are not independent, since settings share their classes.
So each count of intervals that exclude 0 has the number that is left after Holm's correction over
the settings that are counted.
"""

from __future__ import annotations

import argparse
import csv
import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

from evenhand.judging import excludes
from evenhand.statistics.tests import holm
from published import drop_zero, read_rows, save_rows

FILES = ("results", "networks", "mitigations", "effects")
ALPHA = 0.05

Row = dict[str, str]


def publish(grids: Sequence[Path], folder: Path) -> None:
    """Write the CSV files of reports, rounded and compressed; equal results give equal bytes."""
    folder.mkdir(parents=True, exist_ok=True)
    for name in FILES:
        rows: list[list[str]] = []
        for path in (grid / "report" / f"{name}.csv" for grid in grids):
            if path.exists():
                with path.open(encoding="utf-8", newline="") as file:
                    rows += list(csv.reader(file))[1 if rows else 0 :]
        if rows:
            save_rows(folder / f"{name}.csv.gz", rows)


def read(folder: Path, name: str) -> list[Row]:
    """The rows of a published file."""
    return read_rows(folder / f"{name}.csv.gz")


def shown(row: Row, name: str) -> str:
    """A value with its interval."""
    value, low, high = (_number(row[key]) for key in (name, f"{name}_low", f"{name}_high"))
    return f"{value} [{low}, {high}]"


def _number(cell: str) -> str:
    text = f"{float(cell):.3f}".replace("-", "−")
    if float(text.replace("−", "-")) == 0:
        return ".000"
    return drop_zero(text)


def _p(cell: str) -> str:
    value = float(cell)
    return f"{value:.0e}".replace("e-0", "e−") if value < 0.001 else f"{value:.3f}".lstrip("0")


def markdown(head: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    """A table; all columns but the first are aligned to the right."""
    names = list(head)
    lines = [names, ["---", *["---:"] * (len(names) - 1)], *map(list, rows)]
    return "\n".join(f"| {' | '.join(line)} |" for line in lines)


def network_table(folder: Path) -> str:
    """Means over the tasks without a mitigation, the most accurate network first."""
    rows = [row for row in read(folder, "networks") if row["mitigation"] == "none"]
    ps = holm([float(row["association_p_value"]) for row in rows])
    own = {row["network"]: p for row, p in zip(rows, ps, strict=True)}
    rows.sort(key=lambda row: -float(row["accuracy"]))
    head = ["network", "accuracy", "difference from the mean", "p", "association", "p"]
    return markdown(
        [*head, "difference from the mean", "p"],
        (
            [
                row["network"],
                shown(row, "accuracy"),
                shown(row, "accuracy_difference"),
                _p(row["accuracy_difference_p_holm"]),
                shown(row, "association"),
                _p(str(own[row["network"]])),
                shown(row, "association_difference"),
                _p(row["association_difference_p_holm"]),
            ]
            for row in rows
        ),
    )


def mitigation_table(folder: Path) -> str:
    """Means over all settings, after each mitigation, and the paired changes."""
    results = read(folder, "results")
    rows = []
    for row in read(folder, "mitigations"):
        if row["network"] == "all":
            cells = [cell for cell in results if cell["mitigation"] == row["mitigation"]]
            rows.append(
                [
                    row["mitigation"],
                    _number(row["association_after"]),
                    shown(row, "association"),
                    _p(row["association_p_holm"]),
                    shown(row, "epsilon"),
                    shown(row, "accuracy"),
                    _p(row["accuracy_p_holm"]),
                    counted(cells, "association"),
                ]
            )
    before = [cell for cell in results if cell["mitigation"] == "none"]
    association = sum(float(cell["association"]) for cell in before) / len(before)
    count = counted(before, "association")
    rows.insert(0, ["none", _number(str(association)), "", "", "", "", "", count])
    head = ["mitigation", "association", "change", "p", "change of ε", "change of accuracy", "p"]
    return markdown([*head, COUNTED], rows)


def measure_table(folder: Path) -> str:
    """The measures of bias without a mitigation, over all settings."""
    cells = [cell for cell in read(folder, "results") if cell["mitigation"] == "none"]
    rows = []
    for name in ("association", "epsilon", "skew", "stereotype", "mu_skew", "mu_stereo"):
        values = [float(cell[name]) for cell in cells]
        above = sum(value > 0 for value in values)
        rows.append(
            [
                name,
                _number(str(sum(values) / len(values))),
                f"{_number(str(min(values)))} to {_number(str(max(values)))}",
                f"{above} of {len(values)}",
                counted(cells, name),
            ]
        )
    return markdown(["measure", "mean", "range", "above 0", COUNTED], rows)


def task_table(folder: Path) -> str:
    """Means over the networks without a mitigation, by ways and shots."""
    cells = [cell for cell in read(folder, "results") if cell["mitigation"] == "none"]
    rows = []
    for axis in ("ways", "shots"):
        for value in sorted({int(cell[axis]) for cell in cells}):
            chosen = [cell for cell in cells if int(cell[axis]) == value]
            means = [
                _number(str(sum(float(cell[name]) for cell in chosen) / len(chosen)))
                for name in ("accuracy", "baseline", "association")
            ]
            rows.append([f"{value} {axis}", *means])
    return markdown(["", "accuracy", "counting words", "association"], rows)


def seed_table(folder: Path) -> str:
    """How much two seeds differ in the same cell, beside the standard error for new classes."""
    results = read(folder, "results")
    rows = []
    for network in sorted({row["network"] for row in results}):
        for name in ("accuracy", "association", "epsilon"):
            cells: dict[tuple[str, str], list[float]] = {}
            errors = []
            for row in results:
                if row["network"] == network:
                    cells.setdefault((row["ways"], row["shots"]), []).append(float(row[name]))
                    width = float(row[f"{name}_high"]) - float(row[f"{name}_low"])
                    errors.append((width / 2 / 1.96) ** 2)
            between = sum((a - b) ** 2 / 2 for a, b in cells.values()) / len(cells)
            error = sum(errors) / len(errors)
            numbers = [f"{math.sqrt(x):.4f}".lstrip("0") for x in (between, error)]
            rows.append([network, name, *numbers, f"{between / error:.1%}"])
    head = ["network", "", "standard deviation between seeds", "standard error for new classes"]
    return markdown([*head, "share of the variance"], rows)


def baseline_table(folder: Path) -> str:
    """Accuracy less that of counting words, without a mitigation, by network and shots."""
    cells = [cell for cell in read(folder, "results") if cell["mitigation"] == "none"]
    shots = sorted({int(cell["shots"]) for cell in cells})
    rows = {}
    for network in {cell["network"] for cell in cells}:
        gaps = []
        for count in shots:
            chosen = [c for c in cells if c["network"] == network and int(c["shots"]) == count]
            gap = [float(c["accuracy"]) - float(c["baseline"]) for c in chosen]
            gaps.append(sum(gap) / len(gap))
        rows[network] = gaps
    order = sorted(rows, key=lambda network: -sum(rows[network]))
    return markdown(
        ["network", *(f"{count} shots" for count in shots)],
        ([network, *(_number(str(gap)) for gap in rows[network])] for network in order),
    )


def width_table(folder: Path) -> str:
    """How much wider intervals of accuracy for new classes are than those over episodes."""
    rows = []
    for name, about in (("results", "a setting"), ("networks", "a network's mean over settings")):
        if not (folder / f"{name}.csv.gz").exists():
            continue
        ratios = [
            (float(row["accuracy_high"]) - float(row["accuracy_low"]))
            / (float(row["accuracy_naive_high"]) - float(row["accuracy_naive_low"]))
            for row in read(folder, name)
            if row["mitigation"] == "none"
        ]
        numbers = [f"{ratio:.1f}" for ratio in (median(ratios), min(ratios), max(ratios))]
        rows.append([about, *numbers])
    return markdown(["accuracy of", "times as wide, median", "least", "most"], rows)


def clear(cells: list[Row], name: str) -> int:
    """How many intervals exclude 0."""
    return sum(excludes(float(c[f"{name}_low"]), float(c[f"{name}_high"]), 0) for c in cells)


COUNTED = "settings whose interval excludes 0 (after Holm)"


def counted(cells: list[Row], name: str) -> str:
    """How many intervals exclude 0, and how many are left after Holm over these settings.

    Equations 20 and 21 are sizes, above 0 without bias too, and have no test.
    """
    if f"{name}_p_value" not in cells[0]:
        return "–"
    known = [float(c[f"{name}_p_value"]) for c in cells]
    ps = holm([p for p in known if not math.isnan(p)])
    return f"{clear(cells, name)} ({sum(p < ALPHA for p in ps)}) of {len(cells)}"


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--publish", type=Path, nargs="+", metavar="GRID")
    given = parser.parse_args()
    if given.publish is not None:
        publish(given.publish, given.folder)
    tables = [width_table, measure_table, task_table, baseline_table, mitigation_table]
    if (given.folder / "networks.csv.gz").exists():  # a grid of one network has none
        tables.insert(3, network_table)
    if len({row["seeds"] for row in read(given.folder, "results")}) > 1:
        tables = [seed_table]
    for table in tables:
        print(f"{table(given.folder)}\n")


if __name__ == "__main__":
    main()
