"""`evenhand grid run`: compute all cells of a grid that are not there yet."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.bars import Told, step_bars
from evenhand.cli.grid.tables import clock, print_launch, print_plan
from evenhand.cli.options import json_option
from evenhand.errors import InputError, PartialFailure

if TYPE_CHECKING:
    from evenhand.grid import Grid

__all__ = ["parsed", "run"]

CELLS, LOCAL = "cells", "local"


def parsed(engine: str, given: tuple[str, ...]) -> dict[str, str]:
    """NAME=VALUE pairs for an engine, which knows what they are.

    >>> parsed("slurm", ("partition=gpu", "memory-gb=16"))
    {'partition': 'gpu', 'memory_gb': '16'}
    """
    found: dict[str, str] = {}
    for each in given:
        name, sign, value = (part.strip() for part in each.partition("="))
        name = name.replace("-", "_")
        if not name or not sign:
            raise InputError(f"--option: expected NAME=VALUE, got '{each}'")
        if engine == LOCAL:
            raise InputError(f"--option: local processes have none, got '{each}'")
        if name in found:
            raise InputError(f"--option: expected '{name}' once, got it twice")
        found[name] = value
    return found


@click.command(short_help="Compute the cells of a grid that are not there yet.")
@click.argument(
    "file", metavar="G.yaml", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@click.option(
    "-o", "--out", "--output", "folder", metavar="DIR", required=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder of the grid: results, caches, logs. Grids may share it.",
)  # fmt: skip
@click.option(
    "--on", type=click.Choice([LOCAL, "slurm", "ray"]), default=LOCAL, show_default=True,
    help="Where the workers are: processes of this machine, jobs of Slurm, actors of Ray.",
)  # fmt: skip
@click.option("--workers", type=click.IntRange(1), help="Cells at once; by default one a core.")
@click.option(
    "--device", "devices", default="auto", show_default=True, metavar="DEVICE,…",
    help="auto, cpu, cuda …; of several, such as cuda:0,cuda:1, the workers take turns.",
)  # fmt: skip
@click.option(
    "--threads", type=click.IntRange(1), default=1, show_default=True,
    help="Threads of each worker.",
)  # fmt: skip
@click.option(
    "--option", "options", multiple=True, metavar="NAME=VALUE",
    help="An option of the engine's own, such as partition=gpu or address=auto; may be repeated.",
)  # fmt: skip
@click.option("--dry-run", is_flag=True, help="Say what there is to do, and do nothing.")
@json_option
def run(
    file: Path,
    folder: Path,
    on: str,
    workers: int | None,
    devices: str,
    threads: int,
    options: tuple[str, ...],
    dry_run: bool,
    as_json: bool,
) -> None:
    """Compute all cells of the grid in G.yaml that have no result in DIR yet.

    Each cell is one file, found again by all that determines it: the settings and the content of
    the files they name. Stop it, kill it, or let it fail: the same command goes on. Several of
    them, on one machine or on many that see the same folder, share the work. Cells that fail do
    not keep the others from being computed; they are named at the end (exit 1), and the next run
    tries them again.

    \b
    A grid:
      task: fewshot                     # or masked, text, vectors
      fixed: {data: simulated, encoder: mini, episodes: 200/50/50}
      axes:
        network: [proto-euclidean, matching-cosine]
        shots: [2, 6]
        mitigation: [none, calibrate]
        seed: [1, 2]
      skip:                             # combinations that are left out
        - {network: matching-cosine, shots: 6}

    \b
    Examples:
      evenhand grid run grid.yaml --out out --dry-run
      evenhand grid run grid.yaml --out out --workers 4
      evenhand grid run grid.yaml --out out --device cuda:0,cuda:1 --workers 2
      evenhand grid run grid.yaml --out out --on slurm --workers 20 --option partition=gpu
      evenhand grid run grid.yaml --out out --on ray --option address=auto
    """
    from evenhand.grid import read_grid

    chosen = parsed(on, options)
    names = tuple(name for each in devices.split(",") if (name := each.strip()))
    if not names:
        raise InputError(f"--device: expected a device or several, got '{devices}'")
    with step_bars() as told:
        grid = read_grid(file, progress=_steps(told, "reading"))
        if not dry_run:
            launch = _Launch(grid, folder, as_json)
            launch.run(told, on=on, workers=workers, devices=names, threads=threads, options=chosen)
    if dry_run:
        _plan(grid, folder, as_json)
        return
    launch.end()


@dataclass
class _Launch:
    """A launch, and what is said at its end."""

    grid: Grid
    folder: Path
    as_json: bool
    began: float = field(default_factory=time.monotonic)
    before: int = 0
    failure: PartialFailure | None = None

    def run(self, told: Told | None, **chosen: Any) -> None:
        from evenhand.grid import run

        pace = _Pace(told)
        try:
            run(self.grid, self.folder, progress=pace, say=_say, **chosen)
        except PartialFailure as error:
            self.failure = error
        self.before = pace.first or 0

    def end(self) -> None:
        from evenhand.cli.output import print_json
        from evenhand.grid import Store
        from evenhand.grid.status import status_of

        found = status_of(Store(self.folder), self.grid.task_name, self.grid.cells)
        seconds = time.monotonic() - self.began
        computed = max(0, found.done - self.before)
        if self.as_json:
            print_json(
                command="grid run", folder=str(self.folder), task=found.task, cells=found.cells,
                computed=computed, before=self.before, left=found.waiting + len(found.running),
                failed=[each.as_dict() for each in found.failed], seconds=seconds,
            )  # fmt: skip
        else:
            print_launch(self.folder, found, computed, self.before, seconds)
        if self.failure is not None:
            raise self.failure


class _Pace:
    """Cells done, with the rate of this launch and the time left; `first` is what was there."""

    def __init__(self, told: Told | None) -> None:
        self.told, self.began = told, time.monotonic()
        self.first: int | None = None

    def __call__(self, done: int, total: int, words: str) -> None:
        now = time.monotonic()
        if self.first is None:
            self.first, self.began = done, now
        if self.told is None:
            return
        if done > self.first:
            rate = (done - self.first) / (now - self.began)
            left = clock((total - done) / rate)
            words = ", ".join(filter(None, [f"{rate:.2g} cells/s", f"{left} left", words]))
        self.told(CELLS, done, total, words)


def _steps(told: Told | None, what: str) -> Callable[[int, int], None] | None:
    return None if told is None else lambda done, total: told(what, done, total, "")


def _say(words: str) -> None:
    click.echo(words, err=True)


def _plan(grid: Grid, folder: Path, as_json: bool) -> None:
    from evenhand.cli.output import print_json
    from evenhand.grid import Store

    store = Store(folder)
    there = sum(store.has(cell.key) for cell in grid.cells)
    axes: dict[str, list[Any]] = {}
    for cell in grid.cells:
        for name, value in cell.axes.items():
            values = axes.setdefault(name, [])
            if value not in values:
                values.append(value)
    if as_json:
        print_json(
            command="grid run", dry_run=True, folder=str(folder), task=grid.task_name, axes=axes,
            cells=len(grid.cells), there=there, to_do=len(grid.cells) - there,
        )  # fmt: skip
        return
    print_plan(grid.task_name, axes, len(grid.cells), there)
