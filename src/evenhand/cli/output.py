"""How results look in a terminal: tables on stdout, or one JSON document."""

from __future__ import annotations

import math
import shutil
import sys
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import zip_longest
from pathlib import Path
from textwrap import wrap
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from evenhand.files import document, plain, public, to_json
from evenhand.results import Comparison, Estimate, Measurement, Measurements
from evenhand.wording import visible

if TYPE_CHECKING:
    from evenhand.charts import ChartSet

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
    if p is None or math.isnan(p):
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


GAP = "   "
WIDE = 160
"""The width of tables that do not go to a terminal."""


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout, never cut: longer texts are wrapped, numbers and the first column not.

    A column is aligned to the right where all its cells are numbers, intervals or empty.
    """
    lines = [[visible(cell) for cell in line] for line in (headers, *rows)]
    columns = list(zip(*lines, strict=True))
    numeric = [len(column) > 1 and all(map(_is_numeric, column[1:])) for column in columns]
    widths = [max(map(_width, column)) for column in columns]
    limit = shutil.get_terminal_size().columns if sys.stdout.isatty() else WIDE
    minimum = {
        i: max(_width(word) for cell in columns[i] for word in ["", *cell.split()])
        for i in range(1, len(columns))
        if not numeric[i]
    }
    while sum(widths) + len(GAP) * len(widths) > limit and minimum:
        widest = max(minimum, key=widths.__getitem__)
        if widths[widest] == minimum[widest]:
            break
        widths[widest] -= 1

    text = [click.style(visible(title), italic=True), ""]
    for line in lines:
        cells = [
            [cell] if _width(cell) <= width else wrap(cell, width, break_on_hyphens=False)
            for cell, width in zip(line, widths, strict=True)
        ]
        for parts in zip_longest(*cells, fillvalue=""):
            spaces = [" " * (width - _width(x)) for x, width in zip(parts, widths, strict=True)]
            padded = (
                space + part if right else part + space
                for part, space, right in zip(parts, spaces, numeric, strict=True)
            )
            shown = f" {GAP.join(padded)}".rstrip()
            text.append(click.style(shown, bold=True) if line is lines[0] else shown)
        if line is lines[0]:
            text.append(" " + "─" * (sum(widths) + len(GAP) * (len(widths) - 1)))
    click.echo("\n".join([*text, ""]))


def _width(text: str) -> int:
    """The columns that a text takes up in a terminal."""
    if text.isascii():
        return len(text)
    return sum(
        0 if unicodedata.combining(c) else 1 + (unicodedata.east_asian_width(c) in "WF")
        for c in text
    )


def _is_numeric(cell: str) -> bool:
    return not cell.strip() or (not any(map(str.isalpha, cell.replace("e", ""))))


Parts: TypeAlias = bool | Collection[str]
"""Which parts follow a result: all, none, or those by some kinds."""


def print_measurements(
    title: str,
    measurements: Iterable[Measurement],
    *,
    parts: Parts = False,
    label: Callable[[Measurement], str] | None = None,
    columns: Mapping[str, Callable[[Measurement], str]] | None = None,
    text: Callable[[float], str] = number,
    hide: Collection[str] = (),
    note: str = "",
) -> None:
    """Print measurements with interval, p, the ideal value and the direction that is worse.

    Columns that would be empty are left out, and so is the table without measurements. Parts
    follow, indented. With `label`, it stands in place of metric and query; `columns` are added;
    those in `hide` (also "legend") are not shown; `text` formats values; `note` ends the legend.
    """
    rows = [row for m in measurements for row in _with_parts(m, parts)]
    if not rows:
        return
    several = len({m.subject for _, m in rows}) > 1

    def line(indent: str, m: Measurement) -> list[str]:
        query = f"{m.by}: {m.query}" if m.by else m.query
        return [
            *([m.subject] if several else []),
            *([m.metric, indent + query] if label is None else [indent + label(m)]),
            *(text(m.value), f"[{text(m.low)}, {text(m.high)}]"),
            p_text(m.details.get("p_holm", m.p_value)),
            m.null,
            number(m.details.get("null_median")),
            "–" if m.ideal is None else f"{number(m.ideal, 1)} {ARROWS[m.worse]}",
            f"{m.n:,}",
            *(cell(m) for cell in (columns or {}).values()),
            shortened(m.left_out),
        ]

    headers = [
        *(["subject"] if several else []),
        *(["metric", "query"] if label is None else [""]),
        *("value", "interval", "p", "against", "random", "ideal", "n"),
        *(columns or {}),
        "left out",
    ]
    lines = [line(*row) for row in rows]
    hide = {*hide, *(["against"] if len({m.null for _, m in rows if m.null}) < 2 else [])}
    used = _used(headers, lines, ("p", "random", "ideal", "left out"))
    used = [i for i in used if headers[i] not in hide]
    table(title, [headers[i] for i in used], ([line[i] for i in used] for line in lines))
    if "legend" in hide:
        return
    names = {headers[i] for i in used}
    legend = [f"interval: {rows[0][1].prob * 100:g}%."]
    if "p" in names and any("p_holm" in m.details for _, m in rows):
        legend.append("p: corrected over the table (Holm).")
    if "against" in names:
        legend.append(
            "against: what p tests: a value as far from the ideal by chance, or one as far as that "
            "of random words, which need not be the ideal."
        )
    if "random" in names:
        legend.append("random: the median on random words of similar frequency.")
    if "ideal" in names:
        legend.append(
            "ideal: the value without bias; ↑ ↓ ↕: more bias is above, below, on either side."
        )
    click.echo(" ".join([*legend, note]).rstrip())


def _with_parts(m: Any, parts: Parts, depth: int = 0) -> Iterator[tuple[str, Any]]:
    """A result and its parts, each with its indent."""
    yield "  " * depth, m
    for part in m.parts if parts else ():
        by = part.by if isinstance(part, Measurement) else part.before.by
        if parts is True or (parts and by in parts):
            yield from _with_parts(part, parts, depth + 1)


def _used(
    headers: Sequence[str], lines: Sequence[Sequence[str]], optional: Collection[str]
) -> list[int]:
    """The columns to show: optional ones only where some cell has something."""
    return [
        i
        for i, header in enumerate(headers)
        if header not in optional or any(line[i] not in ("", "–") for line in lines)
    ]


def print_comparisons(
    title: str,
    comparisons: Iterable[Comparison],
    *,
    parts: Parts = False,
    label: Callable[[Comparison], str] | None = None,
    columns: Mapping[str, Callable[[Comparison], str]] | None = None,
    times: tuple[str, str] = ("before", "after"),
    note: str = "",
) -> None:
    """Print before and after, the change (or ratio) with its interval, and its effect in words.

    As `print_measurements`; `times` are the headings of the two results compared.
    """
    rows = [row for c in comparisons for row in _with_parts(c, parts)]
    if not rows:
        return
    pairs = {(c.before.subject, c.after.subject) for _, c in rows}
    ratios = {c.kind for _, c in rows} == {"ratio"}

    def line(indent: str, c: Comparison) -> list[str]:
        by = f"{c.before.by}: " if c.before.by else ""
        times = "× " if c.kind == "ratio" and not ratios else ""
        ideal = c.before.ideal
        return [
            *([f"{c.before.subject} → {c.after.subject}"] if len(pairs) > 1 else []),
            *([c.metric, f"{indent}{by}{c.query}"] if label is None else [indent + label(c)]),
            *(number(c.before.value), number(c.after.value)),
            times + number(c.change.value),
            interval(c.change.low, c.change.high),
            p_text(c.details.get("p_holm", c.p_value)),
            f"{number(ideal)} {ARROWS[c.before.worse]}" if ideal is not None else "–",
            *(cell(c) for cell in (columns or {}).values()),
            c.effect,
        ]

    lines = [line(*row) for row in rows]
    headers = [
        *(["subjects"] if len(pairs) > 1 else []),
        *(["metric", "query"] if label is None else [""]),
        *(*times, "ratio" if ratios else "change", "interval", "p", "ideal"),
        *(columns or {}),
        "effect",
    ]
    used = _used(headers, lines, ("p",))
    table(title, [headers[i] for i in used], ([line[i] for i in used] for line in lines))
    if note:
        click.echo(note)


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


def print_notes(notes: Iterable[str]) -> None:
    """Print every note once."""
    for note in dict.fromkeys(notes):
        click.echo(f"note: {note}")


def estimate(value: Estimate, digits: int = 3) -> str:
    """A value with its interval."""
    return f"{number(value.value, digits)} {interval(value.low, value.high, digits)}"


def save_figures(charts: ChartSet, folder: Path, formats: tuple[str, ...]) -> None:
    """Write the charts into the folder; those that could not be drawn are named."""
    from evenhand.charts import save_charts

    save_charts(charts.charts, folder, formats)
    for name, reason in charts.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)
