r"""The table of in-context learning beside the nine networks, from published few-shot grids.

    evenhand lab grid run docs/grids/wikibios-in-context.yaml --out GRID
    evenhand lab grid report GRID
    python benchmarks/in_context_tables.py docs/results/in-context docs/results/wikibios-minilm \
        --publish GRID

`--publish` writes the report's CSV files into the first folder, compressed and without texts. With
the folder of the nine networks their range in the same settings stands below each row; they have
the same class splits, and 600 test episodes of each.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from evenhand.judging import excludes
from grid_tables import Row, markdown, publish, read, shown

SETTING = ("ways", "shots", "mitigation")
NETWORK = "in-context"
MEASURES = ("association", "epsilon", "skew", "stereotype")


def outcome(row: Row) -> str:
    """What the intervals say of the accuracy and of the four measures of bias."""
    chance = _excluded(row, "accuracy", float(row["chance"]))
    found = [name for name in MEASURES if _excluded(row, name, 0)]
    return (
        f"{'not chance' if chance else 'not told from chance'}; "
        f"{', '.join(found) if found else 'no measure'} without 0 in the interval"
    )


def _excluded(row: Row, name: str, value: float) -> bool:
    return excludes(float(row[f"{name}_low"]), float(row[f"{name}_high"]), value)


def table(prompted: Sequence[Row], networks: Sequence[Row]) -> str:
    """One row for each setting, and one for the networks in it."""
    rows = []
    for row in prompted:
        setting = [row[name] for name in SETTING]
        values = [shown(row, name) for name in ("accuracy", "association", "epsilon")]
        rows.append([NETWORK, *setting, *values, outcome(row)])
        others = [each for each in networks if [each[name] for name in SETTING] == setting]
        if others:
            ranges = []
            for name in ("accuracy", "association", "epsilon"):
                each = sorted(float(other[name]) for other in others)
                ranges.append(f"{each[0]:.3f} to {each[-1]:.3f}".replace("-", "−"))
            rows.append([f"{len(others)} networks", *setting, *ranges, ""])
        rows.append(["counting words", *setting, shown(row, "baseline"), "", "", ""])
    head = ["learner", "C", "K", "mitigation", "accuracy", "association", "ε", "outcome"]
    return markdown(head, rows)


def main() -> None:
    """Publish and print."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("networks", type=Path, nargs="?")
    parser.add_argument("--publish", type=Path, metavar="GRID")
    given = parser.parse_args()
    if given.publish is not None:
        publish([given.publish], given.folder)
    networks = [] if given.networks is None else read(given.networks, "results")
    print(table(read(given.folder, "results"), networks))


if __name__ == "__main__":
    main()
