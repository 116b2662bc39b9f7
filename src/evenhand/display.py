"""How results are shown: a short line at a prompt, a small table in a notebook, a chart.

A result says what it is in one line (`_headline`) and in rows (`_rows`); everything else follows.
"""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypeVar

from evenhand.errors import InputError

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.charts import Chart

Row = Mapping[str, Any]
LONGEST = 160
"""Characters of a short line."""
MOST_ROWS = 30
"""Rows of a table in a notebook."""


class Shown:
    """An object with a short `repr`, an HTML table and `to_frame`."""

    __slots__ = ()

    def _headline(self) -> str:
        """A description in one line."""
        return str(self)

    def _rows(self) -> Sequence[Row]:
        """The rows of its table."""
        raise NotImplementedError

    def _notes(self) -> Sequence[str]:
        """The notes below its table."""
        return getattr(self, "notes", ())

    def __repr__(self) -> str:
        line = " ".join(self._headline().split())
        line = line if len(line) <= LONGEST else line[: LONGEST - 2].rstrip() + " …"
        return f"<{type(self).__name__} {line}>"

    def _repr_html_(self) -> str:
        several = f"{type(self).__name__} " if isinstance(self, Sequence) else ""  # "… of 3"
        return html_of(several + self._headline(), self._rows(), self._notes())

    def to_frame(self) -> pd.DataFrame:
        """The rows as a DataFrame of pandas."""
        import pandas as pd

        return pd.DataFrame(list(self._rows()))


class Result(Shown):
    """A result of numbers, which can be plotted too."""

    __slots__ = ()

    def plot(self, *, title: str | None = None, width: int = 380) -> Chart:
        """A forest plot of the rows that have a value (an Altair chart)."""
        from evenhand.charts import forest

        rows = [row for row in map(_forest_row, self._rows()) if row is not None]
        if not rows:
            raise InputError(f"{type(self).__name__}: expected numbers to plot, got none")
        return forest(rows, title=self._headline() if title is None else title, width=width)


R = TypeVar("R", bound=Result)


class ResultList(list[R], Result):
    """Several results of one kind: a list that can be tabulated and plotted."""

    def _headline(self) -> str:
        kind = type(self[0]).__name__ if self else "result"
        more = " …" if len(self) > 1 else ""
        return f"of {len(self)} × {kind}" + (f": {self[0]._headline()}{more}" if self else "")

    def _rows(self) -> Sequence[Row]:
        return [row for result in self for row in result._rows()]

    __repr__ = Result.__repr__


def _forest_row(row: Row) -> dict[str, Any] | None:
    """A row of a forest: what has a value, between `low` and `high` where these are known."""
    value = next(
        (row[name] for name in ("change", "value", "score") if row.get(name) is not None), None
    )
    if not isinstance(value, int | float) or not math.isfinite(value):
        return None
    low, high = (value if row.get(end) is None else row[end] for end in ("low", "high"))
    named = [str(x) for x in row.values() if isinstance(x, str) and x]
    return {
        "label": " ".join(dict.fromkeys(named[:3])) or "value",
        "value": value,
        "low": low,
        "high": high,
        "ideal": 0.0 if "change" in row else row.get("ideal"),
    }


def html_of(headline: str, rows: Sequence[Row], notes: Iterable[str] = ()) -> str:
    """A line, a table and notes in colours of the page they are shown on, light or dark."""
    shown = [_joined(row) for row in rows[:MOST_ROWS]]
    names = list(dict.fromkeys(name for row in shown for name in row))
    names = [name for name in names if any(_text(row.get(name)) != "–" for row in shown)]
    numeric = {
        name for name in names if all(not isinstance(row.get(name), str) for row in shown)
    } | {VALUE, CHANGE}

    def cell(tag: str, name: str, text: str) -> str:
        side = "right" if name in numeric else "left"
        return f'<{tag} style="text-align:{side};padding:.15em .7em">{html.escape(text)}</{tag}>'

    head = "".join(cell("th", name, name.replace("_", " ")) for name in names)
    body = "".join(
        f"<tr>{''.join(cell('td', name, _text(row.get(name))) for name in names)}</tr>"
        for row in shown
    )
    below = list(notes)
    if len(rows) > len(shown):
        below.insert(0, f"{len(rows) - len(shown):,} more rows: to_frame() has all")
    lines = "".join(
        f'<div style="opacity:.75;font-size:.9em">{html.escape(note)}</div>' for note in below
    )
    table = f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>" if rows else ""
    top = f'<div style="margin:.2em 0">{html.escape(headline)}</div>'
    style = "color:inherit;background:transparent;font-variant-numeric:tabular-nums"
    return f'<div style="{style}">{top}{table}{lines}</div>'


VALUE, CHANGE = "value [interval]", "change [interval]"


def _joined(row: Row) -> dict[str, Any]:
    """The row with its interval in the cell of the value, and one p: the corrected one."""
    if "p_corrected" in row:
        p = row["p_value"] if row["p_corrected"] is None else row["p_corrected"]
        row = {
            "p" if key == "p_value" else key: p if key == "p_value" else value
            for key, value in row.items()
            if key not in ("p_corrected", "family")
        }
    name = "change" if "change" in row else "value"
    if not {name, "low", "high"} <= row.keys():
        return dict(row)
    numbers = [row[key] for key in (name, "low", "high")]
    cells: dict[str, Any] = {}
    for key, value in row.items():
        if key == name:
            text = _text(numbers[0])
            known = any(x is not None and math.isfinite(x) for x in numbers[1:])
            interval = f" [{_text(numbers[1])}, {_text(numbers[2])}]" if known else ""
            cells[CHANGE if name == "change" else VALUE] = text + interval
        elif key not in ("low", "high"):
            cells[key] = value
    return cells


def _text(value: object) -> str:
    if value is None or value == "" or (isinstance(value, float) and math.isnan(value)):
        return "–"
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, float):
        return {math.inf: "∞", -math.inf: "-∞"}.get(value, f"{value:.4g}")
    return f"{value:,}" if isinstance(value, int) else str(value)
