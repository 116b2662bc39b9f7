"""Grids for reading: what a launch did, how far it is, and what came of it, in rows of words."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from evenhand.cli.output import number, p_text, shortened, table

if TYPE_CHECKING:
    from evenhand.grid.status import Status

__all__ = ["clock", "print_launch", "print_plan", "print_status"]

SHOWN, BESIDE = 20, 7
"""So many cells at work are listed, and so many figures of a cell stand in one row."""


def clock(seconds: float | None) -> str:
    """Hours, minutes and seconds.

    >>> clock(3725.4), clock(0.2), clock(None)
    ('1:02:05', '0:00:00', 'unknown')
    """
    if seconds is None:
        return "unknown"
    whole = round(seconds)
    return f"{whole // 3600}:{whole // 60 % 60:02}:{whole % 60:02}"


def print_plan(task: str, axes: Mapping[str, Sequence[Any]], cells: int, there: int) -> None:
    """What a launch would do."""
    from evenhand.grid.cells import told

    rows = [(name, str(len(values)), shortened([told(v) for v in values], 8))
            for name, values in axes.items()]  # fmt: skip
    table(f"A grid of {task}", ("axis", "n", "values"), rows)
    click.echo(f"{cells} cells: {there} there already, {cells - there} to compute")


def print_launch(folder: Path, found: Status, computed: int, before: int, seconds: float) -> None:
    """What a launch did, and what to do next."""
    failed = sum(len(each.cells) for each in found.failed)
    left = found.waiting + len(found.running)
    table(
        f"{folder}: {found.task}",
        ("cells", "computed", "there before", "failed", "left", "time"),
        [(str(found.cells), str(computed), str(before), str(failed), str(left), clock(seconds))],
    )
    _failures(found)
    if found.done:
        click.echo(f"next: evenhand grid report {folder}")


def print_status(folder: Path, found: Status) -> None:
    """How far a grid is."""
    failed = sum(len(each.cells) for each in found.failed)
    table(
        f"{folder}: {found.task}",
        ("cells", "done", "running", "failed", "waiting", "time left"),
        [(str(found.cells), str(found.done), str(len(found.running)), str(failed),
          str(found.waiting), clock(found.time_left))],
    )  # fmt: skip
    if found.running:
        rows = [
            (each.cell, each.host, str(each.pid or "unknown"), clock(each.seconds),
             "" if each.silent is None else f"no sign of life for {clock(each.silent)}")
            for each in found.running[:SHOWN]
        ]  # fmt: skip
        more = f", {SHOWN} of {len(found.running)}" if len(found.running) > SHOWN else ""
        table(f"Running{more}", ("cell", "host", "process", "for at least", ""), rows)
    elif found.waiting:
        work = f": {clock(found.work_left)} for one worker" if found.work_left is not None else ""
        click.echo(f"nobody is at work{work}; `evenhand grid run` with the same file goes on")
    _failures(found)


def _failures(found: Status) -> None:
    """Every cell that failed, by reason."""
    for each in found.failed:
        click.echo(f"failed ({len(each.cells)}): {each.reason}")
        for cell in each.cells:
            click.echo(f"  {cell}")


class Table(NamedTuple):
    """A table of words."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


FIGURES = {
    "accuracy": "accuracy", "association": "association", "epsilon": "ε", "skew": "skew",
    "stereotype": "stereotype",
}  # fmt: skip
"""The figures of a few-shot grid as they are written."""


def by_task(
    rows: Iterable[Mapping[str, Any]], figure: str, title: str, *, alpha: float | None = None
) -> Table:
    """Tasks as rows, networks as columns, as D0 lays its tables out.

    With `alpha` the rows are changes: a star says that Holm's p is below it.
    """
    every = [row for row in rows if figure in row]
    names = list(dict.fromkeys(row["network"] for row in every))
    tasks = list(dict.fromkeys((row["ways"], row["shots"]) for row in every))
    found = {(row["ways"], row["shots"], row["network"]): row[figure] for row in every}
    lines = []
    for ways, shots in sorted(tasks):
        cells = [found.get((ways, shots, name)) for name in names]
        lines.append((str(ways), str(shots), *(_cell(one, alpha) for one in cells)))
    return Table(title, ("C", "K", *names), lines)


def best(rows: Iterable[Mapping[str, Any]]) -> Table:
    """The best network of each task."""
    lines = [
        (
            *_others(row), row["mitigation"], str(row["ways"]), str(row["shots"]), row["best"],
            _value(row["accuracy"]), row["second"], _value(row["ahead"]), _p(row["p_holm"]),
            "yes" if row["clear"] else "no",
        )
        for row in rows
    ]  # fmt: skip
    headers = (*_headers(rows), "mitigation", "C", "K", "best", "accuracy", "second", "ahead by",
               "p (Holm)", "clearly")  # fmt: skip
    return Table("The best network of each task", headers, lines)


def networks(rows: Sequence[Mapping[str, Any]], figure: str) -> Table:
    """Networks over all tasks as one, in one figure."""
    lines = [
        (
            *_others(row), row["mitigation"], row["network"], str(row["tasks"]),
            _value(row[figure]), _value(row[figure]["apart"]), _p(row[figure]["apart"]["p_holm"]),
        )
        for row in rows
        if figure in row
    ]  # fmt: skip
    headers = (*_headers(rows), "mitigation", "network", "tasks", FIGURES[figure],
               "less the mean of all", "p (Holm)")  # fmt: skip
    return Table(f"Networks, the mean over their tasks: {FIGURES[figure]}", headers, lines)


def mitigations(rows: Sequence[Mapping[str, Any]], *, whole: bool) -> Table:
    """What each mitigation changes over all settings as one, or over the tasks of each network."""
    chosen = [row for row in rows if (row["network"] == "all") == whole]
    lines = []
    for row in chosen:
        for figure, words in FIGURES.items():
            if figure not in row:
                continue
            one = row[figure]
            lines.append((
                *_others(row), row["mitigation"], row["network"], str(row["settings"]), words,
                number(one["before"]), number(one["after"]), number(one["change"]),
                _interval(one), _p(one["p_holm"]), one.get("direction", ""),
            ))  # fmt: skip
    title = "What mitigations change, the mean over " + (
        "all settings" if whole else "the tasks of each network"
    )
    headers = (*_headers(rows), "mitigation", "network", "settings", "figure", "before", "after",
               "change", "interval", "p (Holm)", "")  # fmt: skip
    return Table(title, headers, lines)


def plain(title: str, rows: Sequence[Mapping[str, Any]], axes: Sequence[str]) -> Table:
    """Rows of figures, those with an interval have it beside them; many figures stand below
    each other.
    """
    names = list(dict.fromkeys(name for row in rows for name in row))
    first = [name for name in names if name in axes]
    figures = [name for name in names if name not in axes and not name.endswith(("_low", "_high"))]
    if len(figures) <= BESIDE:
        shown = [*first, *figures]
        return Table(title, shown, [[_plain(row, name) for name in shown] for row in rows])
    lines = [
        [*(_plain(row, name) for name in first), figure, _plain(row, figure)]
        for row in rows
        for figure in figures
        if figure in row
    ]
    return Table(title, [*first, "figure", "value"], lines)


def _plain(row: Mapping[str, Any], name: str) -> str:
    value = row.get(name)
    if isinstance(value, bool):
        return "yes" if value else "no"
    if value is not None and f"{name}_low" in row:
        ends = (row[f"{name}_low"], row[f"{name}_high"])
        return f"{number(value)} [{number(ends[0])}, {number(ends[1])}]"
    if isinstance(value, float):
        return number(value)
    return "–" if value is None else str(value)


def _cell(one: Mapping[str, Any] | None, alpha: float | None) -> str:
    if one is None:
        return "–"
    if alpha is None:
        return _value(one)
    star = "*" if one["p_holm"] < alpha else ""
    return f"{number(one['change'])} {_interval(one)}{star}"


def _value(one: Mapping[str, Any]) -> str:
    return f"{number(one['value'])} {_interval(one)}"


def _interval(one: Mapping[str, Any]) -> str:
    """The ends; where they are endless the classes are too few to tell anything."""
    if one["low"] == -math.inf and one["high"] == math.inf:
        return "(too few classes for an interval)"
    return f"[{number(one['low'])}, {number(one['high'])}]"


def _p(p: float | None) -> str:
    return "–" if p is None or p != p else p_text(p)


def _others(row: Mapping[str, Any]) -> tuple[str, ...]:
    return tuple(str(value) for value in row["others"].values())


def _headers(rows: Iterable[Mapping[str, Any]]) -> tuple[str, ...]:
    return tuple(next(iter(rows), {"others": {}})["others"])
