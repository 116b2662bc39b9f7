"""The kinds of chart that results are drawn with: rows in, an Altair chart out.

A row is a mapping with the fields that its kind of chart names. Colours can be told apart by most
colour-blind readers; numbers that are not finite are not drawn.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

__all__ = ["BLUE", "GREEN", "GREY", "INK", "ORANGE", "PALE", "PURPLE", "Chart", "data", "forest"]

Chart: TypeAlias = Any
"""An Altair chart; its many kinds have no common type that fits."""

BLUE, ORANGE, GREEN, PURPLE = "#0072B2", "#D55E00", "#009E73", "#AA4499"
INK, GREY, PALE = "#222222", "#6b6b6b", "#d5dae0"


def data(rows: Sequence[Mapping[str, Any]]) -> Any:
    """Rows as the data of a chart; numbers that are not finite become missing."""
    import altair as alt

    return alt.Data(  # type: ignore[no-untyped-call]
        values=[
            {
                name: None if isinstance(value, float) and not math.isfinite(value) else value
                for name, value in row.items()
            }
            for row in rows
        ]
    )


def forest(
    rows: Sequence[Mapping[str, Any]],
    *,
    title: str = "",
    x: str = "value",
    width: int = 420,
    colour: str = BLUE,
    log: bool = False,
) -> Chart:
    """One row per label: a dot at `value`, a line from `low` to `high`, a dashed line at `ideal`.

    Parameters
    ----------
    rows : sequence of Mapping
        With `label`, `value`, `low`, `high` and, optionally, `ideal`.
    title, x : str
        The titles of the chart and of the value axis.
    width : int
        The width of the plot in pixels.
    colour : str
        The colour of dots and lines.
    log : bool
        Whether the value axis is logarithmic.

    """
    import altair as alt

    values = [{**row, "row": f"{i:04d}", "label": str(row["label"])} for i, row in enumerate(rows)]
    finite = [
        float(row[name])
        for row in values
        for name in ("value", "low", "high", "ideal")
        if isinstance(row.get(name), int | float) and math.isfinite(row[name])
    ]
    low, high = min(finite, default=0.0), max(finite, default=1.0)
    for row in values:  # an unbounded end is drawn to the edge
        for name, edge in (("low", low), ("high", high)):
            end = row.get(name)
            row[name] = edge if end is None or not math.isfinite(end) else end
    scale = alt.Scale(type="log") if log else alt.Scale(zero=False, nice=False, padding=10)
    labels = {row["row"]: row["label"] for row in values}
    y = alt.Y(
        "row:N",
        sort=list(labels),
        title=None,
        axis=alt.Axis(
            labelLimit=320,
            ticks=False,
            domain=False,
            grid=False,
            labelExpr=f"({labels!r})[datum.value]",
        ),
    )
    tooltip = [
        alt.Tooltip("label:N"),
        alt.Tooltip("value:Q", format=".3f"),
        alt.Tooltip("low:Q", format=".3f"),
        alt.Tooltip("high:Q", format=".3f"),
    ]
    base = alt.Chart(data(values), title=title)
    layers = [
        base.mark_rule(strokeWidth=2, color=colour).encode(
            y=y, x=alt.X("low:Q", title=x, scale=scale), x2="high:Q", tooltip=tooltip
        ),
        base.mark_point(filled=True, size=64, opacity=1, color=colour).encode(
            y=y, x=alt.X("value:Q", title=x, scale=scale), tooltip=tooltip
        ),
    ]
    ideals = {row["ideal"] for row in values if row.get("ideal") is not None}
    if ideals:
        marks = alt.Chart(data([{"ideal": ideal} for ideal in sorted(ideals)]))
        layers.insert(0, marks.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="ideal:Q"))
    return alt.layer(*layers).properties(width=width, height={"step": 22})
