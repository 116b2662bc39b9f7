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
from typing import TYPE_CHECKING, Any, TypeAlias

import click

from evenhand.cli.tables import NARROW, lay_out, wrap
from evenhand.errors import InputError
from evenhand.files import document, plain, public, save_csv, save_json, to_json
from evenhand.results import Comparison, Estimate, Measurement, Measurements
from evenhand.summary import summarize
from evenhand.wording import encodable, supported, visible

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


def p_text(p: float | None, draws: float | None = None) -> str:
    """A p-value: three decimals, in powers of ten where small; fewer where few draws support it."""
    if p is None or math.isnan(p):
        return "–"
    p, decimals, bound = supported(p, draws)
    return "< " * bound + (f"{p:.{min(3, decimals)}f}" if p >= 0.001 else f"{p:.0e}")


# ---- what is printed is recorded, so that it can be saved


@dataclass
class Record:
    """What a command printed: the rows of its tables and the results behind them."""

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
        """Write the items of all results, one row each, as CSV."""
        import pandas as pd

        from evenhand.files import replace_file

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
        with replace_file(path) as file:
            pd.concat(frames).to_csv(file, index=False)


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


def print_json(with_items: bool = False, /, **content: Any) -> None:
    """Print one JSON document on stdout; results go without their items, which `--items` writes.

    Where it has measurements or comparisons, `sentence` says what was found, if it is not given.
    """
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


def _escaped(text: str) -> str:
    """The JSON with only ASCII characters, which every encoding has."""
    return re.sub(
        r"[^\x00-\x7f]",
        lambda match: "".join(
            f"\\u{unit:04x}" for unit in memoryview(match[0].encode("utf-16-le")).cast("H")
        ),
        text,
    )


def _summary(value: Any, items: bool) -> Any:
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


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout that fits the terminal; no number is cut (see `evenhand.cli.tables`)."""
    listed = [list(row) for row in rows]
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
    """The text without control characters and without what stdout cannot encode."""
    return encodable(visible(text), sys.stdout.encoding)


def print_finding(
    measurements: Iterable[Measurement] = (),
    comparisons: Iterable[Comparison] = (),
    skipped: Iterable[Mapping[str, str]] = (),
) -> None:
    """End a command with one sentence on what was found.

    While results are recorded it is printed by whoever saves them, after what was written.
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
    every = [row for m in measurements for row in _with_parts(m, parts)]
    if not every:
        return
    rows = [(indent, m) for indent, m, shown in every if shown]
    several = len({m.subject for _, m in rows}) > 1

    def line(indent: str, m: Measurement) -> list[str]:
        query = f"{m.by}: {m.query}" if m.by else m.query
        return [
            *([m.subject] if several else []),
            *([m.metric, indent + query] if label is None else [indent + label(m)]),
            *(text(m.value), f"[{text(m.low)}, {text(m.high)}]"),
            p_text(m.p, m.draws),
            m.null,
            number(_random(m)),
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
    nulls = {m.null for _, m in rows if m.null}
    narrow = (terminal_width() or WIDE) < NARROW
    hide = {*hide, *(["against"] if len(nulls) < 2 or narrow else [])}
    used = _used(headers, lines, ("p", "random", "ideal", "left out"))
    used = [i for i in used if headers[i] not in hide]
    _record(
        title,
        [
            {
                **({} if label is None else {"name": label(m)}),
                **_row(m),
                **{name: cell(m) for name, cell in (columns or {}).items()},
            }
            for _, m, _ in every
        ],
    )
    _print_table(title, [headers[i] for i in used], ([line[i] for i in used] for line in lines))
    _print_hidden(every)
    if "legend" in hide:
        return
    shown = {headers[i] for i in used}
    legend = [f"interval: {rows[0][1].prob * 100:g}%."]
    families = sorted({m.family for _, m in rows if m.p is not None})
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
    row: dict[str, Any] = {
        name: getattr(m, name) for name in ("subject", "metric", "by", "query", "value")
    }
    row |= {name: getattr(m, name) for name in ("low", "high", "prob", "p_value")}
    row |= {"p_corrected": m.p_corrected, "family": m.family, "random": _random(m)}
    return row | {"ideal": m.ideal, "n": m.n, "left_out": "; ".join(m.left_out)}


def _change_row(c: Comparison) -> dict[str, Any]:
    """A comparison as a row of a saved table, with its numbers in full."""
    return {
        "subjects": f"{c.before.subject} → {c.after.subject}",
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


def _with_parts(
    m: Any, parts: Parts, depth: int = 0, shown: bool = True
) -> Iterator[tuple[str, Any, bool]]:
    """A result and its parts, each with its indent and whether it is printed.

    Of many parts of one kind the highest and lowest are, without parts of their own.
    """
    yield "  " * depth, m, shown
    chosen = [part for part in m.parts if parts is True or (parts and _kind(part) in parts)]
    number = Counter(map(_kind, chosen))
    printed = set()
    for kind in (kind for kind, count in number.items() if count > MANY):
        ranked = sorted((part for part in chosen if _kind(part) == kind), key=_size)
        printed |= {id(part) for part in ranked[:EXTREMES] + ranked[-EXTREMES:]}
    for part in chosen:
        many = number[_kind(part)] > MANY
        head, *below = _with_parts(part, parts, depth + 1, shown)
        yield *head[:2], shown and (not many or id(part) in printed)
        yield from ((indent, own, seen and not many) for indent, own, seen in below)


def _kind(part: Any) -> str:
    by: str = part.by if isinstance(part, Measurement) else part.before.by
    return by


def _size(part: Any) -> float:
    value = part.value if isinstance(part, Measurement) else part.change.value
    return 0.0 if math.isnan(value) else float(value)


def _print_hidden(rows: Sequence[tuple[str, Any, bool]]) -> None:
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
    every = [row for c in comparisons for row in _with_parts(c, parts)]
    if not every:
        return
    rows = [(indent, c) for indent, c, shown in every if shown]
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
            p_text(c.p),
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
    _record(
        title,
        [
            {
                **({} if label is None else {"name": label(c)}),
                **_change_row(c),
                **{name: cell(c) for name, cell in (columns or {}).items()},
            }
            for _, c, _ in every
        ],
    )
    _print_table(title, [headers[i] for i in used], ([line[i] for i in used] for line in lines))
    _print_hidden(every)
    if note:
        say(note)


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

    save_charts(charts.charts, folder, formats)
    for name, reason in charts.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)
