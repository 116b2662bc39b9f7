"""How results look in a terminal: tables on stdout, progress on stderr, or one JSON document."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from evenhand.files import document, plain, public, to_json
from evenhand.results import Comparison, Measurement, Measurements
from evenhand.wording import visible

if TYPE_CHECKING:
    from rich.progress import Task

    from evenhand.charts import ChartSet

T = TypeVar("T")

StepProgress: TypeAlias = Callable[[str, int, int, str], None]
"""Called with the name of the step, the number of units done and of all units, and a text."""

ARROWS = {"higher": "↑", "lower": "↓", "away": "↕"}


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading: so many decimals, an en dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never -0.000


def interval(low: float, high: float, digits: int = 3) -> str:
    """An interval for reading."""
    return f"[{number(low, digits)}, {number(high, digits)}]"


def p_text(p: float | None) -> str:
    """A p-value: two digits, in powers of ten where small."""
    if p is None:
        return "–"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


LOCATIONS = ("folder", "out", "output", "report")
"""Keys that say where something was written: as the user gave it."""


def print_json(**content: Any) -> None:
    """Print one JSON document on stdout; results go without their items, which `-o` writes."""
    named = {name: _summary(value) for name, value in content.items()}
    where = {name: value for name, value in named.items() if name in LOCATIONS}
    click.echo(to_json(document(**public(named) | plain(where))))


def _summary(value: Any) -> Any:
    if isinstance(value, Measurement | Comparison | Measurements):
        return value.to_dict(items=False)
    if isinstance(value, Mapping):
        return {key: _summary(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_summary(item) for item in value]
    return value


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout, never cut: as wide as it needs to be where it is not a terminal.

    A column is aligned to the right where all its cells are numbers, intervals or empty.
    """
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    cells = [[visible(cell) for cell in row] for row in rows]
    shown = Table(
        title=Text(visible(title)), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False
    )
    for i, header in enumerate(headers):
        numeric = bool(cells) and all(_is_numeric(row[i]) for row in cells)
        shown.add_column(
            visible(header), justify="right" if numeric else "left", no_wrap=numeric or i == 0
        )
    for row in cells:
        shown.add_row(*(Text(cell) for cell in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False).print(shown, soft_wrap=False)


def _is_numeric(cell: str) -> bool:
    return not cell.strip() or (not any(map(str.isalpha, cell.replace("e", ""))))


def print_measurements(
    title: str, measurements: Iterable[Measurement], *, parts: bool = False
) -> None:
    """Measurements with interval, p, the ideal value and the direction that is worse.

    Columns that would be empty are left out. With `parts`, the parts follow, indented.
    """
    rows = [row for m in measurements for row in _with_parts(m, parts)]
    measured = [m for _, m in rows]
    nulls = any(m.details.get("null_median") is not None for m in measured)
    left_out = any(m.left_out for m in measured)
    subjects = len({m.subject for m in measured}) > 1
    headers = [
        *(["subject"] if subjects else []),
        *("metric", "query", "value", "interval", "p"),
        *(["null"] if nulls else []),
        *("ideal", "n"),
        *(["left out"] if left_out else []),
    ]

    def cells(indent: str, m: Measurement) -> list[str]:
        query = f"{indent}{m.by}: {m.query}" if m.by else f"{indent}{m.query}"
        return [
            *([m.subject] if subjects else []),
            *(m.metric, query, number(m.value), interval(m.low, m.high), p_text(m.p_value)),
            *([number(m.details.get("null_median"))] if nulls else []),
            *(f"{number(m.ideal, 1)} {ARROWS[m.worse]}" if m.ideal is not None else "–", str(m.n)),
            *([shortened(m.left_out)] if left_out else []),
        ]

    table(title, headers, (cells(*row) for row in rows))
    level = f"{measured[0].prob:.0%}" if measured else "95%"
    null = "null: the median on random words of similar frequency. " if nulls else ""
    click.echo(
        f"interval: {level}. {null}ideal: the value without bias; ↑ ↓ ↕: more bias is above, "
        "below, on either side."
    )


def _with_parts(m: Measurement, parts: bool, depth: int = 0) -> Iterator[tuple[str, Measurement]]:
    yield "  " * depth, m
    for part in m.parts if parts else ():
        yield from _with_parts(part, parts, depth + 1)


def print_comparisons(
    title: str, comparisons: Iterable[Comparison], *, parts: bool = False
) -> None:
    """Before and after, and the change (or ratio) with its interval.

    Columns that would be empty are left out. With `parts`, the parts follow, indented.
    """
    rows = [
        (indent, c)
        for comparison in comparisons
        for indent, c in [("", comparison), *(("  ", p) for p in comparison.parts if parts)]
    ]
    compared = [c for _, c in rows]
    tested = any(c.p_value is not None for c in compared)
    subjects = len({(c.before.subject, c.after.subject) for c in compared}) > 1
    ratios = {c.kind for c in compared} == {"ratio"}

    def cells(indent: str, c: Comparison) -> list[str]:
        by = f"{c.before.by}: " if c.before.by else ""
        ideal = f"{number(c.before.ideal)} {ARROWS[c.before.worse]}"
        return [
            *([f"{c.before.subject} → {c.after.subject}"] if subjects else []),
            *(c.metric, f"{indent}{by}{c.query}", number(c.before.value), number(c.after.value)),
            *(number(c.change.value), interval(c.change.low, c.change.high)),
            *([p_text(c.p_value)] if tested else []),
            ideal if c.before.ideal is not None else "–",
        ]

    table(
        title,
        [
            *(["subjects"] if subjects else []),
            *("metric", "query", "before", "after", "ratio" if ratios else "change", "interval"),
            *(["p"] if tested else []),
            "ideal",
        ],
        (cells(*row) for row in rows),
    )


def print_skipped(skipped: Iterable[Mapping[str, str]]) -> None:
    """Name what could not be measured, and why."""
    for skip in skipped:
        click.echo(f"not measured: {skip['metric']} {skip['query']}: {skip['reason']}")


def shortened(words: Sequence[str], most: int = 3) -> str:
    """A few of the words and how many more."""
    if not words:
        return ""
    more = f" +{len(words) - most}" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def bar(items: Sequence[T], label: str, *, quiet: bool = False) -> Iterator[T]:
    """The items, with a progress bar on stderr where that is a terminal."""
    from rich.console import Console
    from rich.progress import track

    if quiet or not sys.stderr.isatty():
        yield from items
        return
    yield from track(items, description=label, console=Console(stderr=True), transient=True)


@contextmanager
def step_bars(units: Mapping[str, str] | None = None) -> Iterator[StepProgress | None]:
    """A progress bar for the current step, with rate and time left; None without a terminal.

    `units` names what the rate of a step counts, by a part of the step's name. A text that has a
    rate of its own ("/s") is shown alone.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Column

    columns = (
        TextColumn("{task.description}"),
        BarColumn(12),
        MofNCompleteColumn(),
        TextColumn(
            "{task.fields[text]}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bars:
        tasks: dict[str, Any] = {}

        def show(step: str, done: int, total: int, text: str) -> None:
            if step not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, visible=False)
                tasks[step] = bars.add_task(step, total=total, text="")
            unit = next((unit for part, unit in (units or {}).items() if part in step), "")
            shown = text if "/s" in text else _with_rate(bars.tasks[tasks[step]], unit, text)
            bars.update(tasks[step], completed=done, total=total, text=shown)

        yield show


def _with_rate(task: Task, unit: str, text: str) -> str:
    """Rate and time left, where they are known, before the text."""
    parts = [text] if text else []
    if task.time_remaining is not None:
        left = int(task.time_remaining)
        parts.insert(0, f"{left // 60}:{left % 60:02} left")
    if task.speed:
        parts.insert(0, f"{task.speed:,.0f} {unit}/s".replace(" /s", "/s"))
    return ", ".join(parts)


def save_figures(charts: ChartSet, folder: Path, formats: tuple[str, ...]) -> None:
    """Write the charts into the folder `figures`; those that could not be drawn are named."""
    from evenhand.charts import save_charts

    save_charts(charts.charts, folder / "figures", formats)
    for name, reason in charts.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)
