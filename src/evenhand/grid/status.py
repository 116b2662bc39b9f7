"""How far a grid is, seen from its folder alone, while others work in it; nothing is changed."""

from __future__ import annotations

import os
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from statistics import fmean
from typing import Any

from evenhand.grid.cells import Cell
from evenhand.grid.claims import BEAT, PATIENCE, Claims
from evenhand.grid.store import Store

__all__ = ["Failed", "Running", "Status", "status", "status_of"]

AGAIN = 0.02
"""Seconds until a claim is read again that was just being written."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Running:
    """A cell at work: `seconds` are counted by its worker's signs of life, whatever the clocks.

    `silent` is how long ago the last one was, where that is longer than others are patient: its
    worker is dead, or the clock of its host is off.
    """

    cell: str
    key: str
    host: str
    pid: int | None
    seconds: float
    silent: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Failed:
    """Cells that failed for one reason."""

    reason: str
    cells: tuple[str, ...]

    def as_dict(self) -> dict[str, Any]:
        return {"reason": self.reason, "count": len(self.cells), "cells": list(self.cells)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Status:
    """The cells of a grid, each counted once.

    `work_left` is what is left to do in seconds of one worker, by the mean of the cells of each
    group; `time_left` the same for the `workers` that are seen at work. Both are None where
    nothing tells.
    """

    task: str
    cells: int
    done: int
    running: tuple[Running, ...]
    failed: tuple[Failed, ...]
    waiting: int
    workers: int
    work_left: float | None
    time_left: float | None

    def as_dict(self) -> dict[str, Any]:
        told = {name: getattr(self, name) for name in self.__slots__}
        return {
            **told,
            "running": [each.as_dict() for each in self.running],
            "failed": [each.as_dict() for each in self.failed],
        }


def status(folder: str | os.PathLike[str]) -> Status:
    """How far the grid is that was launched last in a folder."""
    store = Store(Path(folder))
    told = store.grid()
    return status_of(store, told["task"], [Cell(**cell) for cell in told["cells"]])


def status_of(store: Store, task: str, cells: Sequence[Cell]) -> Status:
    """How far these cells are."""
    claims = Claims(store.claims)
    done, waiting = 0, []
    running: list[tuple[Cell, Running]] = []
    failed: dict[str, list[str]] = defaultdict(list)
    owners = set()
    for cell in cells:
        if store.has(cell.key):
            done += 1
        elif (why := store.failure(cell.key)) is not None:
            failed[why].append(cell.name)
        elif (held := _held(claims, cell.key)) is not None:
            running.append((cell, _running(cell, held, claims)))
            owner = held.get("owner", {})
            owners.add((owner.get("place"), owner.get("pid")))
        elif store.has(cell.key):  # since we looked
            done += 1
        else:
            waiting.append(cell)
    workers = len(owners)
    work, left = _left(store.times(), cells, waiting, running, workers)
    return Status(
        task=task, cells=len(cells), done=done,
        running=tuple(each for _, each in running),
        failed=tuple(
            Failed(reason=why, cells=tuple(names))
            for why, names in sorted(failed.items(), key=lambda one: -len(one[1]))
        ),
        waiting=len(waiting), workers=workers, work_left=work, time_left=left,
    )  # fmt: skip


def _held(claims: Claims, key: str) -> dict[str, Any] | None:
    """Who has a cell; a claim that is being written is read again."""
    for _ in range(3):
        held = claims.held(key)
        if held != {}:
            return held
        time.sleep(AGAIN)
    return {}


def _running(cell: Cell, held: Mapping[str, Any], claims: Claims) -> Running:
    owner = held.get("owner", {})
    try:
        path = claims.folder / f"{cell.key}.{len(claims.owners(cell.key))}"
        silent = time.time() - path.stat().st_mtime
    except OSError:  # given back since we looked
        silent = 0.0
    return Running(
        cell=cell.name, key=cell.key, host=str(owner.get("host", "unknown")), pid=owner.get("pid"),
        seconds=BEAT * int(held.get("beats", 0)), silent=silent if silent > PATIENCE else None,
    )  # fmt: skip


def _left(
    times: Mapping[str, float],
    cells: Sequence[Cell],
    waiting: Sequence[Cell],
    running: Sequence[tuple[Cell, Running]],
    workers: int,
) -> tuple[float | None, float | None]:
    """Seconds of work that are left, and how long they take these workers."""
    by_group: dict[str, list[float]] = defaultdict(list)
    for cell in cells:
        if cell.key in times:
            by_group[cell.group].append(times[cell.key])
    every = [seconds for group in by_group.values() for seconds in group]
    if not waiting and not running:
        return 0.0, 0.0
    if not every:
        return None, None
    usual = fmean(every)
    means = {group: fmean(found) for group, found in by_group.items()}
    begun = [max(0.0, means.get(cell.group, usual) - each.seconds) for cell, each in running]
    work = sum(means.get(cell.group, usual) for cell in waiting) + sum(begun)
    return work, max([work / workers, *begun]) if workers else None
