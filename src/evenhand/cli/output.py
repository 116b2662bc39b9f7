"""How results look in a terminal: tables on stdout, or one JSON document."""

from __future__ import annotations

import math
import os
import re
import shutil
import sys
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

from evenhand.cli.progress import is_set
from evenhand.cli.tables import NARROW, lay_out, wrap
from evenhand.errors import InputError
from evenhand.files import document, plain, public, save_csv, save_json, to_json
from evenhand.results import Comparison, Estimate, Measurement, Measurements
from evenhand.summary import summarize
from evenhand.wording import encodable, interval, number, p_value, visible

if TYPE_CHECKING:
    from evenhand.charts import ChartSet

ARROWS = {"higher": "↑", "lower": "↓", "away": "↕"}


def p_text(p: float | None, draws: float | None = None) -> str:
    """A p-value as reports show it; an en dash where there is none."""
    return p_value(p, draws).replace("\u00a0", " ")


# ---- what is printed is recorded, so that it can be saved


@dataclass
class Record:
    """The record of a command: the rows of its tables and their results."""

    tables: list[tuple[str, list[dict[str, Any]]]] = field(default_factory=list)
    measurements: list[Measurement] = field(default_factory=list)
    comparisons: list[Comparison] = field(default_factory=list)
    skipped: list[Mapping[str, str]] = field(default_factory=list)
    finding: str = ""
    page: Callable[[str], object] | None = None

    def add(self, title: str, rows: Iterable[Mapping[str, Any]]) -> None:
        """A table and its rows."""
        self.tables.append((title, [dict(row) for row in rows]))

    def save(self, path: str) -> None:
        """Write the tables as CSV or, by its ending, the results with their items, or the page."""
        if self.page is not None and path.lower().endswith(".html"):
            self.page(path)
            return
        if path.lower().endswith(".json"):
            content: dict[str, Any] = {"measurements": [m.to_dict() for m in self.measurements]}
            if self.comparisons:
                content["comparisons"] = [c.to_dict() for c in self.comparisons]
            if self.skipped or len(self.measurements) > 1:
                content["skipped"] = [dict(skip) for skip in self.skipped]
            save_json(path, document(**content))
            return
        several = len(self.tables) > 1
        rows = [
            {**({"table": title} if several else {}), **row}
            for title, table in self.tables
            for row in table
        ]
        empty = {name for row in rows for name in row}
        empty -= {name for row in rows for name, cell in row.items() if cell not in ("", "–", None)}
        save_csv(path, [{k: v for k, v in row.items() if k not in empty} for row in rows])

    def save_items(self, path: str) -> None:
        """Write the items of all results, one row each, by the ending of the file."""
        import pandas as pd

        from evenhand.files import replace_file, spreadsheet_cell

        frames = []
        for m in self.measurements:
            if len(m.items):
                frame = m.items.to_frame()
                about = {"subject": m.subject, "metric": m.metric, "query": m.query}
                for i, (name, value) in enumerate(about.items()):
                    if name not in frame.columns:
                        frame.insert(i, name, value)
                frames.append(frame)
        if not frames:
            raise InputError("--items: what was measured has no items")
        rows = pd.concat(frames)
        with replace_file(path) as file:
            if path.lower().endswith(".parquet"):
                rows.to_parquet(file, index=False)
            elif path.lower().endswith(".jsonl"):
                rows.to_json(file, orient="records", lines=True, force_ascii=False)
            else:
                rows.map(spreadsheet_cell).to_csv(file, index=False)


_RECORD: ContextVar[Record | None] = ContextVar("record", default=None)


def offer_page(write: Callable[[str], object]) -> None:
    """Give what writes the page of the results to a file, where -o FILE.html requests it."""
    if (record := _RECORD.get()) is not None:
        record.page = write


@contextmanager
def recording() -> Iterator[Record]:
    """While it lasts, tables and results are recorded as they are printed."""
    record = Record()
    token = _RECORD.set(record)
    try:
        yield record
    finally:
        _RECORD.reset(token)


def _record(title: str, rows: Iterable[Mapping[str, Any]]) -> None:
    if (record := _RECORD.get()) is not None:
        record.add(title, rows)


LOCATIONS = ("folder", "out", "output", "report")
"""Keys that say where something was written: as the user gave it."""


def print_json(with_items: bool = False, /, **content: Any) -> bool:
    """With --json, print one JSON document on stdout; whether it was printed.

    Results go without their items, which `--items` writes. Where there are measurements or
    comparisons, `sentence` says what was found, if it is not given.
    """
    if not is_set("json"):
        return False
    measured, compared = ([*content.get(key, ())] for key in ("measurements", "comparisons"))
    measured = [m for m in measured if isinstance(m, Measurement)]
    compared = [c for c in compared if isinstance(c, Comparison)]
    named = {name: _summary(value, with_items) for name, value in content.items()}
    where = {name: value for name, value in named.items() if name in LOCATIONS}
    if (measured or compared) and "sentence" not in named:
        named["sentence"] = summarize(measured, compared)
    if (record := _RECORD.get()) is not None:
        record.measurements += measured
        record.comparisons += compared
        record.skipped += content.get("skipped", ())
        if not record.tables:
            record.add("measurements", [_row(m) for m in measured])
            record.add("comparisons", [_change_row(c) for c in compared])
            record.tables = [table for table in record.tables if table[1]]
    text = to_json(document(**public(named) | plain(where)))
    click.echo(_escaped(text) if encodable(text, sys.stdout.encoding) != text else text)
    return True


def _escaped(text: str) -> str:
    """The JSON with only ASCII characters, which every encoding has."""
    return re.sub(
        r"[^\x00-\x7f]",
        lambda match: "".join(
            f"\\u{unit:04x}" for unit in memoryview(match[0].encode("utf-16-le")).cast("H")
        ),
        text,
    )


def _summary(value: object, items: bool) -> object:
    if isinstance(value, Measurement | Comparison):
        return {**value.to_dict(items=items), "sentence": summarize(value)}
    if isinstance(value, Measurements):
        return value.to_dict(items=items)
    if isinstance(value, Mapping):
        return {key: _summary(item, items) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_summary(item, items) for item in value]
    return value


# ---- tables and paragraphs

WIDE = 160
"""The width of tables that do not go to a terminal."""


T = TypeVar("T")
R = TypeVar("R", Measurement, Comparison)
Column: TypeAlias = str | Callable[[T], object]
"""The cells of a column: an attribute, key or detail of its rows by name, or a function of them."""


def cell_of(row: T, column: Column[T]) -> str:
    """The cell of a row as text."""
    if callable(column):
        value = column(row)
    elif isinstance(row, Mapping):
        value = row[column]
    elif isinstance(row, Measurement | Comparison) and column in row.details:
        value = row.details[column]
    else:
        value = getattr(row, column)
    return cell_text(value)


def cell_text(value: object) -> str:
    """A value as tables show it.

    >>> [cell_text(value) for value in (None, True, 1200, -0.25, (0.1, 0.4), "a")]
    ['–', 'yes', '1,200', '-0.250', '[0.100, 0.400]', 'a']
    """
    match value:
        case None:
            return "–"
        case bool():
            return "yes" if value else "no"
        case int():
            return f"{value:,}"
        case float():
            text = number(value)
        case Estimate():
            text = estimate(value)
        case (float() as low, float() as high):
            text = interval(low, high)
        case _:
            text = str(value)
    return text.replace("−", "-")  # what is saved as CSV is read by programs


def print_rows(title: str, rows: Iterable[T], columns: Mapping[str, Column[T]]) -> None:
    """A table of objects, with its columns by their headings."""
    table(title, list(columns), (cells_of(row, columns) for row in rows))


def table(title: str, headers: Sequence[str], rows: Iterable[Iterable[object]]) -> None:
    """A table on stdout that fits the terminal; no number is cut (see `evenhand.cli.tables`)."""
    listed = [[cell_text(cell) for cell in row] for row in rows]
    _record(title, [dict(zip(_distinct(headers), row, strict=True)) for row in listed])
    _print_table(title, headers, listed)


def _distinct(headers: Sequence[str]) -> list[str]:
    """The headings as names of columns."""
    names: list[str] = []
    for header in headers:
        name = header or "name"
        names.append(f"{name} {names.count(name) + 1}" if name in names else name)
    return names


def _print_table(title: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    limit = terminal_width() or WIDE
    lines = lay_out(
        [printable(header) for header in headers],
        [[printable(cell) for cell in row] for row in rows],
        limit,
    )
    shown = [click.style(line, italic=True) for line in wrap(printable(title), limit)]
    shown += ["", *(click.style(x.text, bold=True) if x.heading else x.text for x in lines), ""]
    click.echo(encodable("\n".join(shown), sys.stdout.encoding))


def terminal_width() -> int | None:
    """The width of the terminal, or that of the variable COLUMNS; None where there is neither."""
    if os.environ.get("COLUMNS", "").isdecimal() or sys.stdout.isatty():
        return max(40, shutil.get_terminal_size().columns)
    return None


def say(text: str, *, err: bool = False) -> None:
    """Print a text, wrapped to the terminal where there is one."""
    limit = terminal_width()
    for line in printable(text).split("\n"):
        click.echo(line if limit is None else "\n".join(wrap(line, limit, cut=False)), err=err)


def printable(text: str) -> str:
    """The text as a terminal shows it: ASCII minus signs, no control characters."""
    return encodable(visible(text).replace("−", "-"), sys.stdout.encoding)


def print_finding(
    measurements: Iterable[Measurement] = (),
    comparisons: Iterable[Comparison] = (),
    skipped: Iterable[Mapping[str, str]] = (),
) -> None:
    """End a command with one sentence on what was found.

    While results are recorded, it is printed after the files that were written.
    """
    measured, compared = list(measurements), list(comparisons)
    text = summarize(measured, compared)
    if (record := _RECORD.get()) is not None:
        record.measurements += measured
        record.comparisons += compared
        record.skipped += skipped
        record.finding = text
    elif text:
        say(text)


Parts: TypeAlias = bool | Collection[str]
"""The parts that follow a result: all, none, or those by some kinds."""


def _print_results(
    title: str,
    results: Iterable[R],
    cells: Mapping[str, Column[R]],
    saved: Callable[[R], dict[str, Any]],
    *,
    subject: str,
    parts: Parts,
    label: Column[R] | None,
    columns: Mapping[str, Column[R]],
    optional: Collection[str],
    hide: Collection[str] = (),
) -> tuple[list[R], set[str]]:
    """Print results, each with its name and these cells; those printed, and the headings shown."""
    every: list[tuple[str, R, bool]] = [
        each for result in results for each in _with_parts(result, parts)
    ]
    if not every:
        return [], set()
    rows: list[tuple[str, R]] = [(indent, result) for indent, result, shown in every if shown]
    several: bool = len({_subject(result) for _, result in rows}) > 1

    headers = [
        *([subject] if several else []),
        *(["metric", "query"] if label is None else [""]),
        *cells,
    ]
    lines: list[list[str]] = [
        [_subject(result)] * several + _names(result, indent, label) + cells_of(result, cells)
        for indent, result in rows
    ]
    used = [
        i
        for i, header in enumerate(headers)
        if header not in hide
        and (header not in optional or any(line[i] not in ("", "–") for line in lines))
    ]
    _record(
        title,
        [
            {
                **({} if label is None else {"name": cell_of(result, label)}),
                **saved(result),
                **{name: cell_of(result, cell) for name, cell in columns.items()},
            }
            for _, result, _ in every
        ],
    )
    _print_table(title, [headers[i] for i in used], ([line[i] for i in used] for line in lines))
    _print_hidden(every)
    return [result for _, result in rows], {headers[i] for i in used}


def _names(result: R, indent: str, label: Column[R] | None) -> list[str]:
    """The name of a result in its row: a label, or metric and query."""
    if label is not None:
        return [indent + cell_of(result, label)]
    by = f"{_kind(result)}: " if _kind(result) else ""
    return [result.metric, f"{indent}{by}{result.query}"]


def cells_of(row: T, columns: Mapping[str, Column[T]]) -> list[str]:
    """The cells of a row in these columns."""
    return [cell_of(row, column) for column in columns.values()]


def _subject(result: Measurement | Comparison) -> str:
    """The subject measured, or the two compared."""
    if isinstance(result, Measurement):
        return result.subject
    return f"{result.before.subject} → {result.after.subject}"


def print_measurements(
    title: str,
    measurements: Iterable[Measurement],
    *,
    parts: Parts = False,
    label: Column[Measurement] | None = None,
    columns: Mapping[str, Column[Measurement]] | None = None,
    text: Callable[[float], str] = number,
    hide: Collection[str] = (),
    note: str = "",
) -> None:
    """Print measurements with interval, p, the ideal value and the direction that is worse.

    Columns that would be empty are left out, and so is the table without measurements. Parts
    follow, indented. With `label`, it stands in place of metric and query; `columns` are added;
    those in `hide` (also "legend") are not shown; `text` formats values; `note` ends the legend.
    """
    listed = list(measurements)
    nulls = {m.null for each in listed for _, m, shown in _with_parts(each, parts) if shown} - {""}
    narrow = (terminal_width() or WIDE) < NARROW
    rows, shown = _print_results(
        title,
        listed,
        {
            "value": lambda m: text(m.value),
            "interval": lambda m: f"[{text(m.low)}, {text(m.high)}]",
            "p": lambda m: p_text(m.p, m.draws),
            "against": "null",
            "random": _random,
            "ideal": lambda m: m.ideal if m.ideal is None else _ideal(m, 1),
            "n": "n",
            **(columns or {}),
            "left out": lambda m: shortened(m.left_out),
        },
        _row,
        subject="subject",
        parts=parts,
        label=label,
        columns=columns or {},
        optional=("p", "random", "ideal", "left out"),
        hide=[*hide, *(["against"] if len(nulls) < 2 or narrow else [])],
    )
    if not rows or "legend" in hide:
        return
    legend = [f"interval: {rows[0].prob * 100:g}%."]
    families = sorted({m.family for m in rows if m.p is not None})
    if "p" in shown and families[-1] > 1:
        legend.append(f"p: corrected for {_families(families)} (Holm).")
    if "against" in shown:
        legend.append(
            "against: what p tests: a value as far from the ideal by chance, or one as far as that "
            "of random words, which need not be the ideal."
        )
    elif len(nulls) > 1:
        legend.append("p: where random has a number, against random words; else the ideal.")
    if "random" in shown:
        legend.append("random: the median on random words of similar frequency.")
    if "ideal" in shown:
        legend.append(
            "ideal: the value without bias; ↑ ↓ ↕: more bias is above, below, on either side."
        )
    say(" ".join([*legend, note]).rstrip().replace(" \n", "\n"))


def _ideal(m: Measurement, digits: int = 3) -> str:
    """The ideal value and the direction that is worse."""
    return f"{number(m.ideal, digits)} {ARROWS[m.worse]}"


def _families(sizes: Sequence[int]) -> str:
    """The numbers of tests that p-values were corrected for.

    >>> _families([4]), _families([1, 4, 146])
    ('4 tests', 'families of 1, 4 and 146 tests')
    """
    if len(sizes) == 1:
        return f"{sizes[0]} tests"
    return f"families of {', '.join(map(str, sizes[:-1]))} and {sizes[-1]} tests"


def _random(m: Measurement) -> float | None:
    """The median on random words, where they were drawn."""
    return m.details.get("null_median") if "null_draws" in m.details else None


def _row(m: Measurement) -> dict[str, Any]:
    """A measurement as a row of a saved table, with its numbers in full."""
    names = (
        *("subject", "metric", "by", "query", "value", "low", "high", "prob"),
        *("p_value", "p_corrected", "family"),
    )
    row: dict[str, Any] = {name: getattr(m, name) for name in names}
    row |= {"random": _random(m), "ideal": m.ideal, "n": m.n}
    return row | {"left_out": "; ".join(m.left_out)}


def _change_row(c: Comparison) -> dict[str, Any]:
    """A comparison as a row of a saved table, with its numbers in full."""
    return {
        "subjects": _subject(c),
        "metric": c.metric,
        "by": c.before.by,
        "query": c.query,
        "before": c.before.value,
        "after": c.after.value,
        c.kind: c.change.value,
        "low": c.change.low,
        "high": c.change.high,
        "prob": c.change.prob,
        "p_value": c.p_value,
        "p_corrected": c.p_corrected,
        "family": c.family,
        "ideal": c.before.ideal,
        "paired": c.paired,
        "effect": c.effect,
    }


MANY = 20
"""Parts of one kind above which only the extremes are printed."""
EXTREMES = 5


def _with_parts(m: R, parts: Parts, depth: int = 0) -> Iterator[tuple[str, R, bool]]:
    """A result and its parts, each with its indent and whether it is printed.

    Of many parts of one kind the highest and lowest are; parts of parts are saved only.
    """
    if not depth:
        yield "", m, True
    chosen = [part for part in m.parts if parts is True or (parts and _kind(part) in parts)]
    number = Counter(map(_kind, chosen))
    printed = set()
    for kind in (kind for kind, count in number.items() if count > MANY):
        ranked = sorted((part for part in chosen if _kind(part) == kind), key=_size)
        printed |= {id(part) for part in ranked[:EXTREMES] + ranked[-EXTREMES:]}
    for part in chosen:
        yield "  ", part, not depth and (number[_kind(part)] <= MANY or id(part) in printed)
        yield from _with_parts(part, parts, depth + 1)


def _kind(part: Measurement | Comparison) -> str:
    return part.by if isinstance(part, Measurement) else part.before.by


def _size(part: Measurement | Comparison) -> float:
    value = part.value if isinstance(part, Measurement) else part.change.value
    return 0.0 if math.isnan(value) else value


def _print_hidden(rows: Sequence[tuple[str, R, bool]]) -> None:
    """Say of which kinds of parts only some were printed."""
    shown = Counter(_kind(m) for _, m, seen in rows if seen)
    hidden = Counter(_kind(m) for _, m, seen in rows if not seen)
    kinds = [
        f"{EXTREMES} highest and {EXTREMES} lowest by {kind} of {shown[kind] + number}"
        for kind, number in hidden.items()
        if shown[kind] >= 2 * EXTREMES
    ]
    if kinds:
        say(f"Shown: {'; '.join(kinds)}. All are saved by -o FILE.csv.")


def print_comparisons(
    title: str,
    comparisons: Iterable[Comparison],
    *,
    parts: Parts = False,
    label: Column[Comparison] | None = None,
    columns: Mapping[str, Column[Comparison]] | None = None,
    times: tuple[str, str] = ("before", "after"),
) -> None:
    """Print before and after, the change (or ratio) with its interval, and its effect in words.

    As `print_measurements`; `times` are the headings of the two results compared.
    """
    listed = list(comparisons)
    kinds = {c.kind for each in listed for _, c, shown in _with_parts(each, parts) if shown}
    ratios = kinds == {"ratio"}
    before, after = times
    _print_results(
        title,
        listed,
        {
            before: lambda c: c.before.value,
            after: lambda c: c.after.value,
            "ratio" if ratios else "change": lambda c: (
                "× " * (c.kind == "ratio" and not ratios) + number(c.change.value)
            ),
            "interval": lambda c: interval(c.change.low, c.change.high),
            "p": lambda c: p_text(c.p),
            "ideal": lambda c: None if c.before.ideal is None else _ideal(c.before),
            **(columns or {}),
            "effect": "effect",
        },
        _change_row,
        subject="subjects",
        parts=parts,
        label=label,
        columns=columns or {},
        optional=("p",),
    )


TEXTS = ("sentence", "masked", "sent_more", "text", "profession", "word", "template")
SCORES = ("score", "full_bias", "difference", "association", "stereotype", "log_prob")
"""Columns of items that say what an item is, and its score; the first that there is."""


def print_items(m: Measurement) -> None:
    """Print the items of the highest and of the lowest score."""
    name, score = (next((x for x in c if x in m.items.columns), "") for c in (TEXTS, SCORES))
    if not name or not score:
        return
    found = [item for item in m.items if isinstance(item[score], int | float)]
    ranked = sorted((x for x in found if math.isfinite(x[score])), key=lambda item: -item[score])
    few = len(ranked) <= 2 * EXTREMES
    shown = ranked if few else ranked[:EXTREMES] + ranked[-EXTREMES:]
    title = f"{m.subject}: items" + (
        "" if few else f", {EXTREMES} of either end of {len(ranked):,}"
    )
    rows = [(number(item[score]), str(item.get("group") or ""), str(item[name])) for item in shown]
    headers = (score.replace("_", " "), "group", name.replace("_", " "))
    used = [i for i in range(3) if any(row[i] for row in rows)]
    if rows:
        lines = [[row[i] for i in used] for row in rows]
        _print_table(title, [headers[i] for i in used], lines)


def print_skipped(skipped: Iterable[Mapping[str, str]]) -> None:
    """Name what could not be measured, and why."""
    for skip in skipped:
        say(f"not measured: {skip['metric']} {skip['query']}: {skip['reason']}")


def shortened(words: Sequence[str], most: int = 3) -> str:
    """A few of the words and how many more."""
    if not words:
        return ""
    more = f" +{len(words) - most}" if len(words) > most else ""
    return ", ".join(words[:most]) + more


def print_notes(notes: Iterable[str]) -> None:
    """Print every note once."""
    for note in dict.fromkeys(notes):
        say(f"note: {note}")


def estimate(value: Estimate, digits: int = 3) -> str:
    """A value with its interval."""
    return f"{number(value.value, digits)} {interval(value.low, value.high, digits)}"


def save_figures(charts: ChartSet, folder: Path, formats: tuple[str, ...]) -> None:
    """Write the charts into the folder; those that could not be drawn are named."""
    from evenhand.charts import save_charts

    skipped = dict(charts.skipped)
    save_charts(charts.charts, folder, formats, skipped)
    for name, reason in skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)
