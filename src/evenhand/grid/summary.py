"""What came of a grid: every cell accounted for, and the results as tables."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.grid.cells import Cell
from evenhand.grid.store import DamagedError, Store
from evenhand.grid.tasks import Progress, Task, task_of

__all__ = ["Found", "Summary", "find", "summarize"]

Row = dict[str, Any]
SHARD = "shard"


@dataclass(frozen=True, eq=False, kw_only=True)
class Found:
    """The results of a grid's cells, and those that have none, each with why."""

    task_name: str
    task: Task
    cells: int
    results: tuple[tuple[Cell, Mapping[str, Any]], ...] = field(repr=False)
    missing: tuple[tuple[Cell, str], ...]

    def accounts(self) -> dict[str, Any]:
        """How many cells there are, and the name of each that is not there."""
        return {
            "cells": self.cells,
            "done": len(self.results),
            "missing": [{"cell": cell.name, "why": why} for cell, why in self.missing],
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary:
    """A grid in tables: `content` is the whole as a document, `tables` rows of flat figures.

    `notes` say what could not be told, and why.
    """

    found: Found
    tables: Mapping[str, Sequence[Row]]
    content: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def as_dict(self) -> dict[str, Any]:
        return {
            "task": self.found.task_name, **self.found.accounts(), **self.content,
            "notes": list(self.notes),
        }  # fmt: skip


def find(folder: str | os.PathLike[str]) -> Found:
    """The results in a grid's folder; a damaged file counts as missing."""
    store = Store(Path(folder))
    told = store.grid()
    results, missing = [], []
    for each in told["cells"]:
        cell = Cell(**each)
        try:
            result = store.result(cell.key)
        except DamagedError:
            missing.append((cell, "its file is damaged: `grid run` computes it anew"))
            continue
        if result is not None:
            results.append((cell, result))
        elif (why := store.failure(cell.key)) is not None:
            missing.append((cell, f"failed: {why}"))
        else:
            missing.append((cell, "not computed yet"))
    return Found(
        task_name=told["task"], task=task_of(told["task"]), cells=len(told["cells"]),
        results=tuple(results), missing=tuple(missing),
    )  # fmt: skip


def summarize(
    folder: str | os.PathLike[str], *, prob: float = 0.95, progress: Progress | None = None
) -> Summary:
    """What came of a grid; `prob` is the probability of the intervals of few-shot grids.

    The figures of other tasks are those that their cells saved.
    """
    found = find(folder)
    if not found.results:
        raise InputError(f"{folder}: expected some cells with a result, none of {found.cells} has")
    if found.task_name == "fewshot":
        from evenhand.grid.summary_fewshot import fewshot_summary

        return fewshot_summary(found, prob, progress)
    return _plain(found)


def _plain(found: Found) -> Summary:
    """A row a cell; and all as one, where the task can tell."""
    rows = [{**cell.axes, **flat(found.task.row(result))} for cell, result in found.results]
    cells = [
        {"axes": dict(cell.axes), "figures": found.task.row(result)}
        for cell, result in found.results
    ]
    content: dict[str, Any] = {"results": cells}
    tables: dict[str, list[Row]] = {"results": rows}
    notes: list[str] = []
    pool = getattr(found.task, "pooled", None)
    if pool is not None and any(SHARD in cell.axes for cell, _ in found.results):
        pooled, tables["pooled"] = _pooled(found, pool, notes)
        content["pooled"] = pooled
    return Summary(found=found, tables=tables, content=content, notes=tuple(notes))


def _pooled(found: Found, pool: Any, notes: list[str]) -> tuple[list[Row], list[Row]]:
    """The shards of each setting as one: those cells that differ in their shard alone."""
    groups: dict[str, list[tuple[Cell, Mapping[str, Any]]]] = {}
    for cell, result in found.results:
        groups.setdefault(_setting(cell).name, []).append((cell, result))
    lacking = {_setting(cell).name for cell, _ in found.missing}
    told, rows = [], []
    for name, every in groups.items():
        axes = _setting(every[0][0]).axes
        try:
            one = pool([result for _, result in every])
        except InputError as error:
            notes.append(f"{name}: not pooled: {error}")
            continue
        whole = name not in lacking
        told.append({"axes": axes, "cells": len(every), "complete": whole, "pooled": one})
        rows.append({**axes, "cells": len(every), "complete": whole, **_short(found.task, one)})
    return told, rows


def _setting(cell: Cell) -> Cell:
    """The cell as if it were of all shards."""
    rest = {name: value for name, value in cell.axes.items() if name != SHARD}
    return replace(cell, axes=rest)


def _short(task: Task, pooled: Mapping[str, Any]) -> Row:
    """The pooled result in a few figures, where its shape is that of a cell's."""
    try:
        return flat(task.row(pooled))
    except (KeyError, TypeError):
        return {
            name: value
            for name, value in pooled.items()
            if isinstance(value, int | float | str) and not isinstance(value, bool)
        }


def flat(figures: Mapping[str, Any]) -> Row:
    """Figures with an interval as three columns.

    >>> flat({"n": 3, "share": {"value": 0.5, "low": 0.1, "high": 0.9}})
    {'n': 3, 'share': 0.5, 'share_low': 0.1, 'share_high': 0.9}
    """
    row: Row = {}
    for name, value in figures.items():
        if isinstance(value, Mapping) and "value" in value:
            row[name] = value["value"]
            row |= {f"{name}_{end}": value[end] for end in ("low", "high") if end in value}
        else:
            row[name] = value
    return row
