"""What a grid costs besides its cells: overhead per cell, and two workers against one, by engine.

    python benchmarks/grid.py [--engines local,slurm,ray] [--cells 200] [--busy 1.0] [--rounds 3]

All times are those at which results were written. The start is the time before the first cell is
begun; the overhead is the time from the first result of 200 empty cells to the last, divided by
the number of cells between. The gain of a second worker is on cells that occupy a core for a
second of CPU time, one worker and two in turn, for a few rounds: the median, the minimum and the
maximum. "Stretch" is the wall time of such a cell as a multiple of its CPU time: above 1 the cores
were not free, and the gains reflect that too. Slurm's jobs run by submitit's local executor.
"""

from __future__ import annotations

import argparse
import os
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path
from statistics import mean, median

HERE = str(Path(__file__).resolve().parent)
sys.path.insert(0, HERE)
os.environ["PYTHONPATH"] = os.pathsep.join([HERE, os.environ.get("PYTHONPATH", "")])

from evenhand.grid import Store, make_grid, run  # noqa: E402

OPTIONS: dict[str, dict[str, str]] = {"slurm": {"cluster": "local"}}
LABELS = {"slurm": "submitit, local", "local": "local", "ray": "ray, local"}
COLUMNS = (
    "engine",
    "load",
    "start s",
    "overhead per cell ms",
    "1 worker s",
    "2 workers s",
    "stretch",
    "gain",
    "gain without the start",
)


@dataclass(frozen=True)
class Run:
    """Seconds: of all, before the first cell, from then on, between results, and of a cell."""

    wall: float
    start: float
    work: float
    between: float
    cell: float


def measured(engine: str, cells: int, busy: float, workers: int) -> Run:
    """Run a grid, and read off its files how long what took."""
    content = {
        "task": "grid_task:TASK",
        "fixed": {"busy": busy},
        "axes": {"number": list(range(cells))},
    }
    grid = make_grid(content)
    with tempfile.TemporaryDirectory() as folder:
        began = time.time()
        run(grid, folder, on=engine, workers=workers, options=OPTIONS.get(engine, {}))
        wall = time.time() - began
        store = Store(folder)
        took = store.times()
        ends = {cell.key: store.file(cell.key).stat().st_mtime for cell in grid.cells}
    first = min(ends[key] - spent for key, spent in took.items())
    last = max(ends.values())
    between = (last - min(ends.values())) / max(1, cells - 1)
    return Run(wall, first - began, last - first, between, mean(took.values()))


def spread(values: list[float]) -> str:
    """The median, the least and the greatest."""
    return f"{median(values):.2f} ({min(values):.2f} to {max(values):.2f})"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--engines", default="local,slurm,ray")
    parser.add_argument("--cells", type=int, default=200)
    parser.add_argument("--busy", type=float, default=1.0)
    parser.add_argument("--busy-cells", type=int, default=8)
    parser.add_argument("--rounds", type=int, default=3)
    chosen = parser.parse_args()
    print(
        f"{os.cpu_count()} cores; {chosen.cells} empty cells; {chosen.rounds} rounds of "
        f"{chosen.busy_cells} cells of {chosen.busy} s of CPU"
    )
    print("| " + " | ".join(COLUMNS) + " |")
    print("| --- |" + " ---: |" * (len(COLUMNS) - 1))
    for engine in chosen.engines.split(","):
        load = os.getloadavg()[0]
        empty = measured(engine, chosen.cells, 0.0, 1)
        ones, twos = [], []
        for _ in range(chosen.rounds):
            ones.append(measured(engine, chosen.busy_cells, chosen.busy, 1))
            twos.append(measured(engine, chosen.busy_cells, chosen.busy, 2))
        pairs = list(zip(ones, twos, strict=True))
        cells = [
            LABELS[engine],
            f"{load:.2f}",
            f"{empty.start:.2f}",
            f"{1000 * empty.between:.1f}",
            f"{median(one.wall for one in ones):.2f}",
            f"{median(two.wall for two in twos):.2f}",
            spread([each.cell / chosen.busy for each in ones + twos]),
            spread([one.wall / two.wall for one, two in pairs]),
            spread([one.work / two.work for one, two in pairs]),
        ]
        print("| " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
