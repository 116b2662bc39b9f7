"""`evenhand grid report`: what came of a grid, as tables and heat maps."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.bars import step_bars
from evenhand.cli.grid import tables
from evenhand.cli.options import json_option, prob_option
from evenhand.cli.output import table
from evenhand.results import document, replace_file, save_csv, save_json, to_json

if TYPE_CHECKING:
    from evenhand.grid.summary import Summary

__all__ = ["report"]

FORMATS = ("svg", "html")
COLUMNS = 5
"""So many networks fit beside each other in a terminal."""


@click.command(short_help="Tables and heat maps of a grid, with intervals.")
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@click.option(
    "--figures", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="Where the figures go; by default DIR/report/figures.",
)  # fmt: skip
@prob_option
@json_option
def report(folder: Path, figures: Path | None, prob: float, as_json: bool) -> None:
    """What came of the grid in DIR so far, as tables and heat maps; also in DIR/report.

    Of a few-shot grid: accuracy and bias of every network and task with intervals for new
    classes, joined over seeds; the best network of each task and whether the second is clearly
    worse; how networks compare over all tasks; what each mitigation changes against `none`,
    paired on the same queries, in each setting and in the mean. Means over settings have
    intervals that know that settings share classes and texts. p-values are Holm's. Of other
    grids: the figures of each cell, and all shards as one. Cells without a result are counted
    and named.

    \b
    Examples:
      evenhand grid report out
      evenhand grid report out --json
      evenhand grid report out --figures figures
    """
    from evenhand.grid.summary import summarize

    with step_bars() as progress:
        found = summarize(folder, prob=prob, progress=progress)
    place = folder / "report"
    place.mkdir(exist_ok=True)
    told = document(command="grid report", folder=str(folder), **found.as_dict())
    for name, rows in found.tables.items():
        save_csv(place / f"{name}.csv", rows)
    with replace_file(place / "report.md") as file:
        file.write(_markdown(found).encode())
    save_json(place / "report.json", told)
    drawn = figures or place / "figures"
    charts = _draw(told, drawn) if found.found.task_name == "fewshot" else 0
    if as_json:
        click.echo(to_json(told))
        return
    _print(found)
    names = ", ".join(["report.json", "report.md", *(f"{name}.csv" for name in found.tables)])
    click.echo(f"written to {place}: {names}" + (f"; {charts} figures in {drawn}" * bool(charts)))


def _draw(told: Mapping[str, Any], folder: Path) -> int:
    from evenhand.report.charts_grid import grid_charts
    from evenhand.report.charts_saving import save_charts

    made = grid_charts(told)
    save_charts(made.charts, folder, FORMATS)
    for name, reason in made.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)
    return len(made.charts)


def _print(found: Summary) -> None:
    """The tables that fit a terminal; all of them are in the files."""
    accounts = found.found.accounts()
    click.echo(f"{accounts['done']} of {accounts['cells']} cells have a result")
    for each in _short_tables(found):
        table(each.title, each.headers, each.rows)
    if found.found.task_name == "fewshot":
        several = any(row["runs"] > 1 for row in found.content["results"])
        trained = " and trainings" if several else "; of one training each"
        click.echo(
            f"intervals: {found.content['prob'] * 100:g}%, for new classes{trained}. "
            "bias: 0 is none, above 0 is for stereotypes (skew: for men).\n"
            "p (Holm): corrected for the number of comparisons. All other tables are in the files."
        )
    for line in _missing(found):
        click.echo(line)
    for note in found.notes:
        click.echo(f"note: {note}")


def _missing(found: Summary) -> Iterator[str]:
    """Every cell without a result, by reason."""
    reasons: dict[str, list[str]] = {}
    for cell, why in found.found.missing:
        reasons.setdefault(why, []).append(cell.name)
    for why, cells in reasons.items():
        yield f"{len(cells)} cells without a result ({why}): " + "; ".join(cells)


def _short_tables(found: Summary) -> Iterator[tables.Table]:
    told = found.content
    if found.found.task_name != "fewshot":
        axes = list(dict.fromkeys(name for cell, _ in found.found.results for name in cell.axes))
        for name, figures in found.tables.items():
            yield tables.plain(name, figures, axes)
        return
    for setting, rows in _settings(told["results"]):
        first = next(iter(dict.fromkeys(row["mitigation"] for row in rows)))
        for figure in ("accuracy", "association"):
            words = tables.FIGURES[figure]
            made = tables.by_task(
                [row for row in rows if row["mitigation"] == first], figure,
                f"{words}, mitigation {first}{setting}",
            )  # fmt: skip
            for start in range(2, len(made.headers), COLUMNS):
                part = slice(start, start + COLUMNS)
                yield tables.Table(
                    made.title, (*made.headers[:2], *made.headers[part]),
                    [(*row[:2], *row[part]) for row in made.rows],
                )  # fmt: skip
    if told["best"]:
        yield tables.best(told["best"])
    for figure in ("accuracy", "association"):
        if any(figure in row for row in told["networks"]):
            yield tables.networks(told["networks"], figure)
    if told["mitigations"]:
        yield tables.mitigations(told["mitigations"], whole=True)


def _markdown(found: Summary) -> str:
    """All tables, those of tasks by networks for every figure and mitigation."""
    from evenhand.report.markdown import bullets, escaped, paragraphs
    from evenhand.report.markdown import table as ruled

    accounts = found.found.accounts()
    every = list(_all_tables(found))
    parts = ["# What came of the grid",
             f"{accounts['done']} of {accounts['cells']} cells have a result."]  # fmt: skip
    for each in every:
        if each.rows:
            parts += [f"## {escaped(each.title)}", ruled(each.headers, each.rows)]
    left = [*_missing(found), *found.notes]
    parts += ["## Not told", bullets(map(escaped, left))] if left else []
    return paragraphs(parts)


def _all_tables(found: Summary) -> Iterator[tables.Table]:
    told = found.content
    if found.found.task_name != "fewshot":
        yield from _short_tables(found)
        return
    for setting, rows in _settings(told["results"]):
        for mitigation in dict.fromkeys(row["mitigation"] for row in rows):
            part = [row for row in rows if row["mitigation"] == mitigation]
            for figure, words in tables.FIGURES.items():
                yield tables.by_task(part, figure, f"{words}, mitigation {mitigation}{setting}")
    if told["best"]:
        yield tables.best(told["best"])
    for figure in tables.FIGURES:
        yield tables.networks(told["networks"], figure)
    for setting, rows in _settings(told["effects"]):
        for mitigation in dict.fromkeys(row["mitigation"] for row in rows):
            part = [row for row in rows if row["mitigation"] == mitigation]
            for figure, words in tables.FIGURES.items():
                yield tables.by_task(
                    part,
                    figure,
                    f"change of {words} by {mitigation}{setting}",
                    alpha=1 - told["prob"],
                )
    yield tables.mitigations(told["mitigations"], whole=True)
    yield tables.mitigations(told["mitigations"], whole=False)


def _settings(
    rows: Sequence[Mapping[str, Any]],
) -> Iterator[tuple[str, list[Mapping[str, Any]]]]:
    """Rows by the grid's other axes, with words for a title."""
    found: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        words = ", ".join(f"{name} {value}" for name, value in row["others"].items())
        found.setdefault(f" ({words})" if words else "", []).append(row)
    yield from found.items()
