"""How results look in a terminal: tables on stdout, progress on stderr, or one JSON document."""

from __future__ import annotations

import math
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, TypeVar

import click

from evenhand.files import document, to_json
from evenhand.results import Comparison, Measurement, Measurements

__all__ = [
    "bar",
    "comparisons_table",
    "measurements_table",
    "number",
    "print_json",
    "print_skipped",
    "table",
]

T = TypeVar("T")

ARROWS = {"higher": "↑", "lower": "↓", "away": "↕"}


def number(value: float | None, digits: int = 3) -> str:
    """A number for reading: as many decimals as asked, an en dash where there is none."""
    if value is None or math.isnan(value):
        return "–"
    if math.isinf(value):
        return "∞" if value > 0 else "-∞"
    return f"{round(value, digits) + 0.0:.{digits}f}"  # never -0.000


def p_text(p: float | None) -> str:
    """A p-value: two digits, in powers of ten where small."""
    if p is None:
        return "–"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.0e}"


def print_json(**content: Any) -> None:
    """Print one JSON document on stdout; results go without their items, which `-o` writes."""
    click.echo(to_json(document(**{name: _summary(value) for name, value in content.items()})))


def _summary(value: Any) -> Any:
    if isinstance(value, Measurement | Comparison | Measurements):
        return value.to_dict(items=False)
    if isinstance(value, Mapping):
        return {key: _summary(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_summary(item) for item in value]
    return value


def table(title: str, headers: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """A table on stdout, never cut: as wide as it needs to be where it is not a terminal."""
    from rich import box
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    shown = Table(title=Text(title), title_justify="left", box=box.SIMPLE_HEAD, pad_edge=False)
    for i, header in enumerate(headers):
        numeric = header in _NUMERIC
        shown.add_column(header, justify="right" if numeric else "left", no_wrap=numeric or i == 0)
    for row in rows:
        shown.add_row(*(Text(cell) for cell in row))
    width = None if sys.stdout.isatty() else 160
    Console(width=width, highlight=False).print(shown, soft_wrap=False)


_NUMERIC = {
    "value", "interval", "p", "n", "ideal", "null", "before", "after", "change", "words", "of",
    "mean", "share", "distance", "median", "score", "odds ratio", "male", "female", "yes", "no",
    "empty", "absent",
}  # fmt: skip


def measurements_table(title: str, measurements: Iterable[Measurement]) -> None:
    """Measurements with interval, p, what no bias reads and which way is worse."""
    measured = list(measurements)
    level = f"{measured[0].prob:.0%}" if measured else "95%"
    table(
        title,
        ("metric", "query", "value", "interval", "p", "null", "ideal", "n", "left out"),
        (
            (
                m.metric,
                m.query,
                number(m.value),
                f"[{number(m.low)}, {number(m.high)}]",
                p_text(m.p_value),
                number(m.details.get("null_median")),
                f"{number(m.ideal, 1)} {ARROWS[m.worse]}" if m.ideal is not None else "–",
                str(m.n),
                shortened(m.left_out),
            )
            for m in measured
        ),
    )
    click.echo(
        f"interval: {level}. null: median on random words of like frequency, what chance reads. "
        "ideal: the perfect value; ↑ ↓ ↕ more bias lies above, below, on either side."
    )


def comparisons_table(title: str, comparisons: Iterable[Comparison]) -> None:
    """Before and after, and the change with its interval."""
    table(
        title,
        ("metric", "query", "before", "after", "change", "interval", "ideal"),
        (
            (
                c.before.metric,
                c.before.query,
                number(c.before.value),
                number(c.after.value),
                number(c.change.value),
                f"[{number(c.change.low)}, {number(c.change.high)}]",
                f"{number(c.before.ideal)} {ARROWS[c.before.worse]}",
            )
            for c in comparisons
        ),
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
