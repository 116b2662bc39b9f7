"""What a grid shows: every cell accounted for, and its results as tables.

A task may make its own tables. Grids of other tasks have one row per cell, and one per setting for
all its shards.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from evenhand.errors import InputError
from evenhand.grid.spec import Cell
from evenhand.grid.store import DamagedError, Store
from evenhand.grid.task import Progress, Row, Task, load_task


@dataclass(frozen=True, eq=False, kw_only=True)
class Collected:
    """The results of a grid's cells, and the cells without one, each with the reason."""

    task_name: str
    task: Task[Any]
    cells: int
    results: tuple[tuple[Cell, Mapping[str, Any]], ...] = field(repr=False)
    missing: tuple[tuple[Cell, str], ...]

    def counts(self) -> dict[str, Any]:
        """Return the number of cells, of results, and the name of each missing cell."""
        return {
            "cells": self.cells,
            "done": len(self.results),
            "missing": [{"cell": cell.name, "reason": reason} for cell, reason in self.missing],
        }


@dataclass(frozen=True, eq=False, kw_only=True)
class Summary:
    """A grid in tables.

    `content` is the summary as a document, `tables` are rows of plain columns, and `notes` say
    what could not be computed, and why.
    """

    collected: Collected
    tables: Mapping[str, Sequence[Row]]
    content: Mapping[str, Any]
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.collected.task_name,
            **self.collected.counts(),
            **self.content,
            "notes": list(self.notes),
        }


def collect(folder: str | os.PathLike[str]) -> Collected:
    """Read the results of a grid's folder; damaged and outdated ones count as missing."""
    store = Store(folder)
    grid = store.grid()
    task = load_task(grid["task"])
    outdated = grid.get("version", task.version) != task.version
    results, missing = [], []
    for content in grid["cells"]:
        cell = Cell(**content)
        try:
            result = store.result(cell.key)
        except DamagedError:
            missing.append((cell, "its file is damaged: `lab grid run` computes it again"))
            continue
        if result is not None and outdated:
            missing.append((cell, "of an earlier version: `lab grid run` computes it again"))
        elif result is not None:
            results.append((cell, result))
        elif (reason := store.failure(cell.key)) is not None:
            missing.append((cell, f"failed: {reason}"))
        else:
            missing.append((cell, "not computed yet"))
    return Collected(
        task_name=grid["task"],
        task=task,
        cells=len(grid["cells"]),
        results=tuple(results),
        missing=tuple(missing),
    )


def summarize(
    folder: str | os.PathLike[str], *, prob: float = 0.95, progress: Progress | None = None
) -> Summary:
    """Summarize the results of a grid.

    Parameters
    ----------
    folder
        The folder of the grid.
    prob
        Probability of the intervals of few-shot grids. The intervals of other grids are those
        that their cells saved.
    progress
        Called before each table.

    Returns
    -------
    Summary

    Examples
    --------
    >>> summarize("out").tables["results"]  # doctest: +SKIP
    """
    collected = collect(folder)
    if not collected.results:
        reasons = ", ".join(dict.fromkeys(reason for _, reason in collected.missing))
        raise InputError(
            f"{folder}: expected some cells with a result, none of {collected.cells} has"
            + f" ({reasons})" * bool(reasons)
        )
    task = collected.task
    if type(task).summarize is Task.summarize:
        return _summarize_cells(collected)
    tables, content, notes = task.summarize(collected.results, collected.missing, prob, progress)
    return Summary(collected=collected, tables=tables, content=content, notes=notes)


# ---- grids of any task


def _summarize_cells(collected: Collected) -> Summary:
    """Make one row per cell and, where the task can pool shards, one per setting."""
    figures = [(cell, collected.task.row(result)) for cell, result in collected.results]
    content: dict[str, Any] = {
        "results": [{"axes": dict(cell.axes), "figures": row} for cell, row in figures]
    }
    tables = {"results": [{**cell.axes, **_flatten_figures(row)} for cell, row in figures]}
    notes: list[str] = []
    pools = type(collected.task).pool is not Task.pool
    if pools and any("shard" in cell.axes for cell, _ in collected.results):
        content["pooled"], tables["pooled"] = _pool_shards(collected, notes)
    return Summary(collected=collected, tables=tables, content=content, notes=tuple(notes))


def _pool_shards(collected: Collected, notes: list[str]) -> tuple[list[Row], list[Row]]:
    """Pool the cells that differ only in their shard."""
    settings: dict[str, list[tuple[Cell, Mapping[str, Any]]]] = {}
    for cell, result in collected.results:
        settings.setdefault(_without_shard(cell).name, []).append((cell, result))
    incomplete = {_without_shard(cell).name for cell, _ in collected.missing}
    documents, rows = [], []
    for name, cells in settings.items():
        axes = _without_shard(cells[0][0]).axes
        try:
            pooled = collected.task.pool([result for _, result in cells])
        except InputError as error:
            notes.append(f"{name}: not pooled: {error}")
            continue
        counts = {"cells": len(cells), "complete": name not in incomplete}
        documents.append({"axes": axes, **counts, "pooled": pooled})
        rows.append({**axes, **counts, **_pooled_figures(collected.task, pooled)})
    return documents, rows


def _without_shard(cell: Cell) -> Cell:
    return replace(cell, axes={n: v for n, v in cell.axes.items() if n != "shard"})


def _pooled_figures(task: Task[Any], pooled: Mapping[str, Any]) -> Row:
    """Return the main figures of a pooled result, whose shape need not be that of a cell's."""
    try:
        return _flatten_figures(task.row(pooled))
    except (KeyError, TypeError):
        return Task.row(task, pooled)


def _flatten_figures(figures: Mapping[str, Any]) -> Row:
    """Write figures that have an interval as columns.

    >>> _flatten_figures({"n": 3, "share": {"value": 0.5, "low": 0.1, "high": 0.9}})
    {'n': 3, 'share': 0.5, 'share_low': 0.1, 'share_high': 0.9}
    """
    row: Row = {}
    for name, value in figures.items():
        if isinstance(value, Mapping) and "value" in value:
            row[name] = value["value"]
            row |= {f"{name}_{end}": value[end] for end in ("low", "high") if end in value}
            if "p_value" in value:
                row[f"{name}_p"] = value["p_value"]
        else:
            row[name] = value
    return row
