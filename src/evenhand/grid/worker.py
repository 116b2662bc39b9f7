"""A worker: takes cells that nobody has and computes them; the same everywhere.

Engines only start workers, as processes, jobs of a cluster or actors. All they share is the grid's
folder: which cells are missing is seen there, and claims in it say who works on which.
"""

from __future__ import annotations

import os
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from evenhand.errors import EvenhandError, FileError, InputError
from evenhand.folders import NO_ROOM
from evenhand.grid.cells import Cell, key_of
from evenhand.grid.claims import PATIENCE, Claim, Claims
from evenhand.grid.engine_options import threads_of
from evenhand.grid.store import Store
from evenhand.grid.tasks import Place, Task, task_of

__all__ = ["ATTEMPTS", "FULL", "Worker", "work"]

ATTEMPTS = 3
"""Workers of one launch that may die with a cell before it counts as failed."""
FULL = 3
"""What a worker's process ends with that found the disk full."""
WAITING = 0.25
"""Seconds between looks at cells that others have."""


@dataclass(frozen=True, kw_only=True)
class Worker:
    """How a worker works: `number` of `workers` says where in the grid it begins."""

    folder: str
    grid: str
    launch: str = ""
    number: int = 0
    workers: int = 1
    device: str = "auto"
    threads: int = 1
    patience: float = PATIENCE
    wait: bool = True

    def as_arguments(self) -> list[str]:
        """What `python -m evenhand.grid` is given to do the same."""
        return [
            self.folder, "--grid", self.grid, "--launch", self.launch,
            "--number", str(self.number), "--workers", str(self.workers),
            "--device", self.device, "--threads", str(self.threads),
            "--patience", str(self.patience),
        ]  # fmt: skip


def work(worker: Worker) -> int:
    """Compute cells until each has a result or has failed; gives how many this worker settled.

    Without `wait` it also ends when others have all that is left.
    """
    store = Store(Path(worker.folder).resolve())
    told = store.grid(worker.grid)
    _begin(worker, told)
    at = _Work(
        worker, store, task_of(told["task"]), told["task"],
        Claims(store.claims, launch=worker.launch, patience=worker.patience),
    )  # fmt: skip
    order = _order(store.cells(worker.grid), worker)
    settled = 0
    while True:
        order = [cell for cell in order if not store.settled(cell.key)]
        if not order:
            return settled
        found = sum(at.one(cell) for cell in order)
        settled += found
        if not found:
            if not worker.wait:
                return settled
            time.sleep(WAITING)


@dataclass(frozen=True)
class _Work:
    worker: Worker
    store: Store
    task: Task
    task_name: str
    claims: Claims

    def one(self, cell: Cell) -> bool:
        """Compute a cell if it is missing and nobody has it; says whether it did."""
        if self.store.settled(cell.key):
            return False
        claim = self.claims.take(cell.key)
        if claim is None:
            return False
        try:
            if self.store.settled(cell.key):  # since we looked
                return False
            if (died := self.died(cell, claim)) >= ATTEMPTS:
                self.store.fail(
                    cell, f"{died} workers died while they computed it (of too little memory?)"
                )
                return True
            self.compute(cell)
            return True
        finally:
            claim.release()

    def died(self, cell: Cell, claim: Claim) -> int:
        """How many workers of this launch have died with the cell."""
        if claim.generation == 1:
            return 0
        before = self.claims.owners(cell.key)[: claim.generation - 1]
        return sum(owner.get("launch") == self.worker.launch for owner in before)

    def compute(self, cell: Cell) -> None:
        """Save the cell's result, or why there is none."""
        began = time.monotonic()
        place = Place(
            work=self.store.work(cell.key), cache=self.store.cache, device=self.worker.device,
            threads=self.worker.threads, alone=self.alone,
        )  # fmt: skip
        place.work.mkdir(parents=True, exist_ok=True)
        try:
            settings = self.task.settings(**cell.settings)
            identity = self.task.identity(settings)
            if key_of(self.task_name, self.task.version, identity) != cell.key:
                raise InputError("expected the files as they were at the launch, got others")
            result = self.task.compute(settings, place)
            seconds = time.monotonic() - began
            who = f"{self.worker.launch}-{self.worker.number}"
            self.store.note(who, key=cell.key, seconds=seconds)  # before the launcher can be done
            self.store.save(self.task_name, self.task.version, identity, result)
        except Exception as error:
            if (full := _no_room(error)) is not None:
                raise full from error
            reason = str(error) if isinstance(error, EvenhandError) else _reason(error)
            self.store.fail(cell, reason, traceback.format_exc())

    @contextmanager
    def alone(self, name: str) -> Iterator[None]:
        with self.claims.alone(f"shared-{name}"):
            yield


def _begin(worker: Worker, told: dict[str, Any]) -> None:
    """Settle in: the folder the grid's file names start from, and the threads."""
    try:
        os.chdir(told["folder"])
    except FileNotFoundError:
        raise FileError(
            told["folder"], "expected the folder the grid was launched from, it is not there"
        ) from None
    os.environ.update(threads_of(worker.threads))
    os.environ.setdefault("TOKENIZERS_PARALLELISM", "false")
    if (torch := sys.modules.get("torch")) is not None:  # else it goes by the environment
        torch.set_num_threads(worker.threads)


def _order(cells: Sequence[Cell], worker: Worker) -> list[Cell]:
    """Groups one after another, beginning at this worker's share of the grid."""
    ordered = sorted(cells, key=lambda cell: cell.group)
    start = len(ordered) * worker.number // worker.workers
    return ordered[start:] + ordered[:start]


def _no_room(error: BaseException | None) -> OSError | None:
    """The full disk behind an error: every other cell would fail like it."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in NO_ROOM:
            return error
        error = error.__cause__ or error.__context__
    return None


def _reason(error: Exception) -> str:
    first = str(error).strip().partition("\n")[0]
    return f"{type(error).__name__}: {first}" if first else type(error).__name__
