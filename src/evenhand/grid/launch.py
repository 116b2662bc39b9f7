"""Launching a grid: see what is missing, start workers, wait, and say what failed, all at once."""

from __future__ import annotations

import os
import uuid
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import InputError, PartialFailure
from evenhand.grid.cells import Cell
from evenhand.grid.claims import PATIENCE
from evenhand.grid.spec import Grid
from evenhand.grid.store import DamagedError, Store
from evenhand.grid.worker import Worker
from evenhand.registry import Registry

__all__ = ["ENGINES", "Launched", "run"]

ENGINES = Registry(
    "engine",
    {
        "local": "evenhand.grid.engine_local:run_local",
        "ray": "evenhand.grid.engine_ray:run_ray",
        "slurm": "evenhand.grid.engine_slurm:run_slurm",
    },
)
SHOWN = 5

Told = Callable[[int, int, str], None]
"""Told as the grid goes on: cells done, of how many, and more in words."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Launched:
    """What a launch did: how many cells there are, were there before, and what was damaged."""

    cells: int
    before: int
    damaged: tuple[str, ...]


def run(
    grid: Grid,
    out: str | os.PathLike[str],
    *,
    on: str = "local",
    workers: int | None = None,
    devices: Sequence[str] = ("auto",),
    threads: int = 1,
    patience: float = PATIENCE,
    options: dict[str, Any] | None = None,
    progress: Told | None = None,
    say: Callable[[str], None] | None = None,
) -> Launched:
    """Compute all cells of a grid that have no result in the folder yet.

    `on` is the engine: local processes, slurm or ray; `options` are the engine's own. A cell that
    fails is tried again by the next launch; when all others are done, the failures are raised
    together as a PartialFailure. Launches on the same folder at the same time share the work.
    """
    count = workers or len(os.sched_getaffinity(0))
    if count < 1 or threads < 1 or not devices:
        raise InputError(f"workers and threads: expected 1 or more, got {count} and {threads}")
    engine = ENGINES[on]
    store = Store(Path(out).resolve())
    with _told_of_room(store):
        name = store.save_grid(grid.as_dict())
        store.sweep()
        found = _look(store, grid, say or _nothing)
        store.forgive([cell.key for cell in grid.cells])
    launched = Launched(cells=len(grid.cells), before=found.there, damaged=found.damaged)
    left = _Left(store, grid.cells, progress)
    if left():
        worker = Worker(
            folder=str(store.path), grid=name, launch=uuid.uuid4().hex[:12],
            workers=min(count, left.count), threads=threads, patience=patience,
        )  # fmt: skip
        engine(worker, devices, left, store.log, **(options or {}))
    _raise_failures(store, grid.cells)
    return launched


@dataclass(frozen=True)
class _Found:
    there: int
    damaged: tuple[str, ...]


def _look(store: Store, grid: Grid, say: Callable[[str], None]) -> _Found:
    """What is there already; results that are damaged, or speak of what is gone, are removed."""
    there, damaged = 0, []
    whole = getattr(grid.task, "whole", None)
    for cell, settings in zip(grid.cells, grid.settings, strict=True):
        try:
            result = store.result(cell.key)
        except DamagedError as error:
            say(f"{error}: computed anew")
            damaged.append(cell.key)
            store.remove(cell.key)
            continue
        if result is None:
            continue
        if whole is not None and not whole(settings, result):
            say(f"{cell.name}: what it had written is gone or changed: computed anew")
            damaged.append(cell.key)
            store.remove(cell.key)
            continue
        there += 1
    return _Found(there, tuple(damaged))


class _Left:
    """How many cells have neither result nor failure."""

    def __init__(self, store: Store, cells: Sequence[Cell], progress: Told | None) -> None:
        self.store, self.open, self.total, self.progress = store, list(cells), len(cells), progress
        self.count = len(cells)

    def __call__(self) -> int:
        self.open = [cell for cell in self.open if not self.store.settled(cell.key)]
        self.count = len(self.open)
        if self.progress is not None:
            self.progress(self.total - self.count, self.total, "")
        return self.count


def _raise_failures(store: Store, cells: Sequence[Cell]) -> None:
    failed = [(cell, why) for cell in cells if (why := store.failure(cell.key)) is not None]
    if not failed:
        return
    reasons = Counter(why for _, why in failed)
    lines = []
    for reason, count in reasons.most_common(SHOWN):
        first = next(cell.name for cell, why in failed if why == reason)
        more = f" and {count - 1} more" if count > 1 else ""
        lines.append(f"{first}{more}: {reason}")
    if len(reasons) > SHOWN:
        lines.append(f"{len(reasons) - SHOWN} more reasons in {store.path / 'failed'}")
    raise PartialFailure(
        f"{len(failed)} of {len(cells)} cells failed, the others are saved: " + "; ".join(lines)
    )


@contextmanager
def _told_of_room(store: Store) -> Iterator[None]:
    from evenhand.folders import NO_ROOM

    try:
        yield
    except OSError as error:
        if error.errno not in NO_ROOM:
            raise
        raise PartialFailure(f"{store.path}: {error.strerror}; nothing was begun") from error


def _nothing(words: str) -> None:
    del words
