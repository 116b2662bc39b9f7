"""`evenhand lab grid`: run a grid of experiments, show its progress, and report its results."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import click

from evenhand.cli import options as opt
from evenhand.cli.commands import Group
from evenhand.cli.output import (
    Column,
    cell_text,
    cells_of,
    p_text,
    print_json,
    print_rows,
    save_figures,
    say,
    shortened,
    table,
)
from evenhand.cli.progress import StepProgress, is_set, step_bars
from evenhand.errors import InputError, PartialFailure
from evenhand.judging import holds
from evenhand.wording import interval, number

if TYPE_CHECKING:
    from evenhand.grid import Grid, Status
    from evenhand.grid.summary import Summary


@click.group(cls=Group)
def grid() -> None:
    """What changes with the network, the data, the mitigation? Run all combinations.

    A grid is a YAML file: a task, its fixed settings, and axes along which the others vary. `run`
    computes one cell for each combination and writes one result file per cell. A cell that has a
    result is not computed again, so that the same command resumes after an interruption, a kill
    or a failure, and another value on an axis costs only its own cells. `status` shows how far
    the grid is, `report` makes tables and figures of the results.

    \b
    Examples:
      evenhand lab grid run grid.yaml -o out --workers 4
      evenhand lab grid status out
      evenhand lab grid report out
    """


# ---- grid run


@grid.command("run", short_help="Compute the cells of a grid that have no result yet.")
@click.argument(
    "file", metavar="G.yaml", type=click.Path(exists=True, dir_okay=False, path_type=Path)
)
@opt.folder_option("Folder of the grid: results, caches, logs. Grids may share it.", required=True)
@click.option(
    "--on",
    type=click.Choice(["local", "slurm", "ray"]),
    default="local",
    help="Where the workers are: processes of this machine, jobs of Slurm, actors of Ray.",
)
@opt.workers_option
@opt.device_option(
    "devices",
    metavar="DEVICE,…",
    help="auto, cpu, cuda …; several, such as cuda:0,cuda:1, are assigned in turn.",
)
@click.option("--threads", type=click.IntRange(1), default=1, help="Threads of each worker.")
@click.option(
    "--option",
    "options",
    multiple=True,
    metavar="NAME=VALUE",
    help="An option of the engine, such as partition=gpu or address=auto; may be repeated.",
)
@click.option(
    "--max-cells",
    type=click.IntRange(1),
    default=100_000,
    help="Refuse grids of more combinations.",
)
@opt.restart_option
@click.option("--dry-run", is_flag=True, help="Show what would be computed, and compute nothing.")
@opt.json_option
def run_command(
    file: Path,
    folder: Path,
    devices: str,
    max_cells: int,
    restart: bool,
    dry_run: bool,
    on: str,
    options: tuple[str, ...],
    **workers: Any,
) -> None:
    """Compute all cells of the grid in G.yaml that have no result in DIR yet.

    Each cell is one file, named by a hash of all that determines it: the settings and the content
    of the files they name. Interrupt it, kill it, or let it fail: the same command resumes. One
    launcher at a time works in a folder; a second one is refused. Cells that fail do not keep the
    others from being computed; they are listed at the end (exit 1), and the next run tries them
    again. --restart removes the results of this grid's cells first, and says how many; results of
    other grids in DIR and the caches stay.

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
      evenhand lab grid run grid.yaml --out out --dry-run
      evenhand lab grid run grid.yaml --out out --workers 4
      evenhand lab grid run grid.yaml --out out --device cuda:0,cuda:1 --workers 2
      evenhand lab grid run grid.yaml --out out --on slurm --workers 20 --option partition=gpu
      evenhand lab grid run grid.yaml --out out --on ray --option address=auto
    """
    from evenhand.grid import read_grid
    from evenhand.grid import run as run_grid

    engine_options = parse_options(on, options)
    names = opt.split_names([devices])
    if not names:
        raise InputError(f"--device: expected a device or several, got '{devices}'")
    began, failure = time.monotonic(), None
    with step_bars() as progress:
        grid = read_grid(file, max_cells=max_cells, progress=_step(progress, "reading"))
        if dry_run:
            _print_plan(grid, folder, restart)
            return
        pace = _Pace(progress)
        try:
            run_grid(
                grid,
                folder,
                progress=pace,
                notify=lambda text: say(text, err=True),
                on=on,
                devices=names,
                options=engine_options,
                restart=restart,
                **workers,
            )
        except PartialFailure as error:
            failure = error
    _print_launch(grid, folder, pace.present or 0, time.monotonic() - began)
    if failure is not None:
        raise failure


def parse_options(engine: str, given: Sequence[str]) -> dict[str, str]:
    """Parse the NAME=VALUE pairs of an engine.

    >>> parse_options("slurm", ("partition=gpu", "memory-gb=16"))
    {'partition': 'gpu', 'memory_gb': '16'}
    """
    options = {name.replace("-", "_"): value for name, value in opt.parse_pairs(given).items()}
    if options and engine == "local":
        raise InputError(f"--option: local processes have none, got '{', '.join(given)}'")
    return options


def _print_launch(grid: Grid, folder: Path, present: int, seconds: float) -> None:
    """Print what a launch computed, and what failed."""
    from evenhand.grid.store import Store, status_of_cells

    status = status_of_cells(Store(folder), grid.task_name, grid.cells)
    counts = {
        "cells": status.cells,
        "computed": max(0, status.done - present),
        "present": present,
        "waiting": status.waiting + len(status.running),
    }
    if is_set("json"):
        failed = [failed.to_dict() for failed in status.failed]
        about = {"folder": str(folder), "task": status.task}
        print_json(command="grid run", **about, **counts, failed=failed, seconds=seconds)
        return
    row = {**counts, "failed": _count_failed(status), "time": format_seconds(seconds)}
    shown = ("cells", "computed", "present", "failed", "waiting", "time")
    names = ("already present" if name == "present" else name for name in shown)
    table(f"{folder}: {status.task}", list(names), [[str(row[name]) for name in shown]])
    _print_failures(status)
    if status.done:
        say(f"next: evenhand lab grid report {folder}")


class _Pace:
    """Shows settled cells with the rate of this launch and the time left."""

    def __init__(self, progress: StepProgress | None) -> None:
        self.progress, self.began = progress, time.monotonic()
        self.present: int | None = None

    def __call__(self, done: int, total: int, text: str) -> None:
        now = time.monotonic()
        if self.present is None:
            self.present, self.began = done, now
        if self.progress is None:
            return
        if done > self.present:
            rate = (done - self.present) / (now - self.began)
            left = format_seconds((total - done) / rate)
            text = ", ".join(filter(None, [f"{rate:.2g} cells/s", f"{left} left", text]))
        self.progress("cells", done, total, text)


def _step(progress: StepProgress | None, name: str) -> Callable[[int, int], None] | None:
    return None if progress is None else lambda done, total: progress(name, done, total, "")


def _print_plan(grid: Grid, folder: Path, restart: bool) -> None:
    from evenhand.grid import Store
    from evenhand.grid.spec import format_value

    store = Store(folder)
    present = sum(store.has(cell.key) for cell in grid.cells)
    missing = len(grid.cells) - (0 if restart else present)
    axes: dict[str, list[Any]] = {}
    for cell in grid.cells:
        for name, value in cell.axes.items():
            values = axes.setdefault(name, [])
            if value not in values:
                values.append(value)
    if print_json(
        command="grid run",
        dry_run=True,
        folder=str(folder),
        task=grid.task_name,
        axes=axes,
        cells=len(grid.cells),
        present=present,
        missing=missing,
    ):
        return
    rows = [
        (name, str(len(values)), shortened([format_value(value) for value in values], 8))
        for name, values in axes.items()
    ]
    table(f"A grid of {grid.task_name}", ("axis", "n", "values"), rows)
    removed = " and to be removed" if restart and present else ""
    say(f"{len(grid.cells)} cells: {present} already present{removed}, {missing} to compute")


# ---- grid status

SHOWN_CELLS = 20


@grid.command("status", short_help="Cells done, running, failed and waiting; time left.")
@opt.folder_argument
@opt.json_option
def status_command(folder: Path) -> None:
    """Show how far the grid in DIR is: cells done, running, failed and waiting, and the time left.

    It can be run at any time, from any machine that sees the folder, and changes nothing. The
    time left is computed from the mean time of the cells of each group and the workers at work.

    \b
    Examples:
      evenhand lab grid status out
      watch evenhand lab grid status out
      evenhand lab grid status out --json
    """
    from evenhand.grid import status

    state = status(folder)
    if print_json(command="grid status", folder=str(folder), **state.to_dict()):
        return
    counts = (state.cells, state.done, len(state.running), _count_failed(state), state.waiting)
    table(
        f"{folder}: {state.task}",
        ("cells", "done", "running", "failed", "waiting", "time left"),
        [(*map(str, counts), format_seconds(state.time_left))],
    )
    if state.running:
        more = len(state.running) > SHOWN_CELLS
        print_rows(
            f"Running, {SHOWN_CELLS} of {len(state.running)}" if more else "Running",
            state.running[:SHOWN_CELLS],
            {
                "cell": "cell",
                "host": "host",
                "process": lambda running: str(running.pid or "unknown"),
                "for": lambda running: format_seconds(running.seconds),
            },
        )
    elif state.waiting:
        work = ""
        if state.work_left is not None:
            work = f": {format_seconds(state.work_left)} for one worker"
        say(f"no worker is running{work}; `evenhand lab grid run` with the same file resumes")
    _print_failures(state)


def format_seconds(seconds: float | None) -> str:
    """Format a duration as hours, minutes and seconds.

    >>> format_seconds(3725.4), format_seconds(0.2), format_seconds(None)
    ('1:02:05', '0:00:00', 'unknown')
    """
    if seconds is None:
        return "unknown"
    rounded = round(seconds)
    return f"{rounded // 3600}:{rounded // 60 % 60:02}:{rounded % 60:02}"


def _count_failed(status: Status) -> int:
    return sum(len(failed.cells) for failed in status.failed)


def _print_failures(status: Status) -> None:
    """Print every cell that failed, by reason."""
    for failed in status.failed:
        say(f"failed ({len(failed.cells)}): {failed.reason}")
        for cell in failed.cells:
            say(f"  {cell}")


# ---- grid report

FIGURE_COLUMNS = 7
"""Figures of a cell side by side; more are written below each other."""


@cache
def _headings() -> dict[str, str]:
    """The figures of a few-shot grid and their headings; the first two are the main ones."""
    from evenhand.fewshot.metrics.bias import LABELS
    from evenhand.fewshot.tables import FIGURES

    return {name: LABELS.get(name, name).partition(":")[0] for name in FIGURES}


Row = Mapping[str, Any]


@grid.command("report", short_help="Tables and heat maps of a grid, with intervals.")
@opt.folder_argument
@opt.figures_option(help="Folder of the figures; by default DIR/report/figures.")
@opt.prob_option()
@opt.json_option
def report_command(folder: Path, figures: Path | None, prob: float) -> None:
    """Report the results of the grid in DIR as tables and heat maps; a page is in DIR/report.

    Of a few-shot grid: accuracy and bias of every network and task with intervals for new
    classes, joined over seeds; the best network of each task and whether the second is clearly
    worse; how networks compare over all tasks; what each mitigation changes against `none`,
    paired on the same queries, in each setting and in the mean. The intervals of means over
    settings account for the classes and texts that settings share. p-values are Holm's. Of other
    grids: the figures of each cell, and of all shards together. Cells without a result are
    counted and listed.

    \b
    Examples:
      evenhand lab grid report out
      evenhand lab grid report out --json
      evenhand lab grid report out --figures figures
    """
    from evenhand.files import document, public, replace_file, save_csv, save_json, to_json
    from evenhand.grid.summary import summarize
    from evenhand.report.cards import render_markdown
    from evenhand.report.grid import grid_charts, write_grid

    with step_bars() as progress:
        summary = summarize(folder, prob=prob, progress=progress)
    target = folder / "report"
    target.mkdir(exist_ok=True)
    content = public(document(command="grid report", folder=str(folder), **summary.to_dict()))
    for name, rows in summary.tables.items():
        save_csv(target / f"{name}.csv", rows)
    counts = summary.collected.counts()
    done = f"{counts['done']} of {counts['cells']} cells have a result."
    lines = [*_missing_lines(summary), *summary.notes]
    with replace_file(target / "report.md") as file:
        text = render_markdown("grid.md.jinja", done=done, tables=_tables(summary), lines=lines)
        file.write(text.encode())
    save_json(target / "report.json", content)
    figure_folder = figures or target / "figures"
    charts = grid_charts(content) if _is_fewshot(summary) else None
    if charts:
        save_figures(charts, figure_folder, ("svg", "html"))
    write_grid(target / "report.html", [done, *lines], _tables(summary), charts)
    if is_set("json"):
        click.echo(to_json(content))
        return
    _print_summary(summary)
    names = ", ".join(
        ["report.html", "report.json", "report.md", *(f"{name}.csv" for name in summary.tables)]
    )
    drawn = f"; {len(charts.charts)} figures in {figure_folder}" if charts else ""
    say(f"written to {target}: {names}{drawn}")


def _is_fewshot(summary: Summary) -> bool:
    return summary.collected.task_name == "fewshot"


def _print_summary(summary: Summary) -> None:
    """Print the tables that fit a terminal; all of them are in the files."""
    counts = summary.collected.counts()
    say(f"{counts['done']} of {counts['cells']} cells have a result")
    for entry in _tables(summary, short=True):
        if entry.rows:
            table(entry.title, entry.headers, entry.rows)
    if _is_fewshot(summary):
        several = any(row["runs"] > 1 for row in summary.content["results"])
        trained = " and trainings" if several else "; one training each"
        say(
            f"intervals: {summary.content['prob'] * 100:g}%, for new classes{trained}. "
            "bias: 0 is none, above 0 favours stereotypes (skew: men).\n"
            "p (Holm): corrected for the number of comparisons. All other tables are in the files."
        )
    for line in _missing_lines(summary):
        say(line)
    for note in summary.notes:
        say(f"note: {note}")


def _missing_lines(summary: Summary) -> Iterator[str]:
    """Yield one line per reason with every cell that has no result."""
    reasons: dict[str, list[str]] = {}
    for cell, reason in summary.collected.missing:
        reasons.setdefault(reason, []).append(cell.name)
    for reason, cells in reasons.items():
        yield f"{len(cells)} cells without a result ({reason}): " + "; ".join(cells)


class GridTable(NamedTuple):
    """A table of text."""

    title: str
    headers: Sequence[str]
    rows: Sequence[Sequence[str]]


def _tables(summary: Summary, *, short: bool = False) -> Iterator[GridTable]:
    """Yield all tables; with `short` those of the main figures and of the first mitigation."""
    content = summary.content
    if not _is_fewshot(summary):
        results = summary.collected.results
        axes = list(dict.fromkeys(name for cell, _ in results for name in cell.axes))
        for name, rows in summary.tables.items():
            yield figures_table(name, rows, axes)
        return
    figures = list(_headings())[: 2 if short else None]
    yield from _tables_by_mitigation(
        content["results"], "{figure}, mitigation {mitigation}", figures, first=short
    )
    if content["best"]:
        yield _best_table(content["best"])
    for figure in figures:
        yield _networks_table(content["networks"], figure)
    if not short:
        yield from _tables_by_mitigation(
            content["effects"],
            "change of {figure} by {mitigation}",
            figures,
            alpha=1 - content["prob"],
        )
    yield _mitigations_table(content["mitigations"], overall=True)
    if not short:
        yield _mitigations_table(content["mitigations"], overall=False)


def _tables_by_mitigation(
    rows: Sequence[Row],
    title: str,
    figures: Sequence[str],
    *,
    first: bool = False,
    alpha: float | None = None,
) -> Iterator[GridTable]:
    """Yield one table for each setting, mitigation (or only the first) and figure."""
    from evenhand.report.grid import by_setting

    for setting, members in by_setting(rows).items():
        mitigations = list(dict.fromkeys(row["mitigation"] for row in members))
        for mitigation in mitigations[: 1 if first else None]:
            chosen = [row for row in members if row["mitigation"] == mitigation]
            for figure in figures:
                text = title.format(figure=_headings()[figure], mitigation=mitigation)
                text += f" ({setting})" if setting else ""
                yield _tasks_table(chosen, figure, text, alpha)


def _tasks_table(
    rows: Iterable[Row], figure: str, title: str, alpha: float | None = None
) -> GridTable:
    """Tabulate tasks as rows and networks as columns, as El Zein (2021) does.

    With `alpha` the rows are changes: a star marks those whose Holm-corrected p is below it.
    """
    known = [row for row in rows if figure in row]
    networks = list(dict.fromkeys(row["network"] for row in known))
    tasks = sorted({(row["ways"], row["shots"]) for row in known})
    cells = {(row["ways"], row["shots"], row["network"]): row[figure] for row in known}
    lines = [
        (
            str(ways),
            str(shots),
            *(_format_cell(cells.get((ways, shots, name)), alpha) for name in networks),
        )
        for ways, shots in tasks
    ]
    return GridTable(title, ("C", "K", *networks), lines)


def _figure(name: str) -> Column[Row]:
    """A figure of a row with its interval."""
    return lambda row: _format_value(row[name])


def _best_table(rows: Sequence[Row]) -> GridTable:
    main = next(iter(_headings()))
    columns: dict[str, Column[Row]] = {
        "mitigation": "mitigation",
        "C": lambda row: str(row["ways"]),
        "K": lambda row: str(row["shots"]),
        "best": "best",
        main: _figure(main),
        "second": "second",
        "ahead by": _figure("ahead"),
        "p (Holm)": lambda row: p_text(row["p_holm"]),
        "clearly": "clear",
    }
    return _describe("The best network of each task", rows, columns)


def _networks_table(rows: Sequence[Row], figure: str) -> GridTable:
    columns: dict[str, Column[Row]] = {
        "mitigation": "mitigation",
        "network": "network",
        "tasks": lambda row: str(row["tasks"]),
        _headings()[figure]: _figure(figure),
        "difference from the mean": lambda row: _format_value(row[figure]["difference"]),
        "p (Holm)": lambda row: p_text(row[figure]["difference"]["p_holm"]),
    }
    title = f"Networks, mean over their tasks: {_headings()[figure]}"
    return _describe(title, [row for row in rows if figure in row], columns, _other_axes(rows))


def _mitigations_table(rows: Sequence[Row], *, overall: bool) -> GridTable:
    """Tabulate the mean effect of mitigations over all settings, or over those of a network."""
    changes = [
        {**row, **row[figure], "figure": heading}
        for row in rows
        if (row["network"] == "all") == overall
        for figure, heading in _headings().items()
        if figure in row
    ]
    columns: dict[str, Column[Row]] = {
        **{name: name for name in ("mitigation", "network")},
        "settings": lambda row: str(row["settings"]),
        **{name: name for name in ("figure", "before", "after", "change")},
        "interval": _format_interval,
        "p (Holm)": lambda row: p_text(row["p_holm"]),
        "effect": lambda row: row.get("effect", ""),
    }
    over = "all settings" if overall else "the tasks of each network"
    title = f"What mitigations change, mean over {over}"
    return _describe(title, changes, columns, _other_axes(rows))


def _describe(
    title: str,
    rows: Sequence[Row],
    columns: Mapping[str, Column[Row]],
    axes: Sequence[str] | None = None,
) -> GridTable:
    """A table of the other axes of the rows and of these columns."""
    axes = _other_axes(rows) if axes is None else axes
    lines = [[*map(str, row["others"].values()), *cells_of(row, columns)] for row in rows]
    return GridTable(title, (*axes, *columns), lines)


def figures_table(title: str, rows: Sequence[Row], axes: Sequence[str]) -> GridTable:
    """Tabulate figures with their intervals; many figures are rows, few are columns."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    first = [name for name in names if name in axes]
    ends = ("_low", "_high", "_p")
    figures = [name for name in names if name not in axes and not name.endswith(ends)]
    if len(figures) <= FIGURE_COLUMNS:
        shown = [*first, *figures]
        return GridTable(
            title, shown, [[_format_plain(row, name) for name in shown] for row in rows]
        )
    lines = [
        [*(_format_plain(row, name) for name in first), figure, _format_plain(row, figure)]
        for row in rows
        for figure in figures
        if figure in row
    ]
    return GridTable(title, [*first, "figure", "value"], lines)


def _format_plain(row: Row, name: str) -> str:
    value = row.get(name)
    if value is None or f"{name}_low" not in row:
        if isinstance(value, float):
            return number(value)
        return str(value) if type(value) is int else cell_text(value)
    shown = f"{number(value)} {interval(row[f'{name}_low'], row[f'{name}_high'])}"
    p = row.get(f"{name}_p")
    return shown if p is None else f"{shown}, p {p_text(p)}"


def _format_cell(figure: Row | None, alpha: float | None) -> str:
    if figure is None:
        return "–"
    if alpha is None:
        return _format_value(figure)
    star = "*" if holds(figure["p_holm"], figure["low"], figure["high"], 0.0, 1 - alpha) else ""
    return f"{number(figure['change'])} {_format_interval(figure)}{star}"


def _format_value(figure: Row) -> str:
    return f"{number(figure['value'])} {_format_interval(figure)}"


def _format_interval(figure: Row) -> str:
    """Format the interval; it is unbounded where there are too few classes."""
    if figure["low"] == -math.inf and figure["high"] == math.inf:
        return "(too few classes for an interval)"
    return interval(figure["low"], figure["high"])


def _other_axes(rows: Sequence[Row]) -> tuple[str, ...]:
    return tuple(rows[0]["others"]) if rows else ()
