"""What the figures of few-shot runs share: rows, intervals that may have no end, forests."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from statistics import median
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, GREY, INK, ORANGE, Chart, rows, wrapped
from evenhand.report.wording import interval, number

__all__ = [
    "LOOKS", "across", "classes_axis", "domain_of", "dots", "finite", "looks", "once", "placed",
    "row", "rule", "runs_axis", "runs_height", "told", "whiskers",
]  # fmt: skip

LOOKS = {
    "male": (BLUE, "circle"), "female": (ORANGE, "triangle-up"), "neither": (INK, "diamond"),
}  # fmt: skip
"""The colour and, as a second cue, the shape of each gender and leaning."""

CUT = "dashed line: the interval goes on beyond the plot, or has no end"
LINE = 34
"""The longest line of a run's name, in letters."""


def finite(value: Any) -> float | None:
    """The number, or None where it is none: NaN, infinite, or null as JSON has both.

    >>> finite(0.5), finite(float("nan")), finite(None)
    (0.5, None, None)
    """
    return float(value) if value is not None and math.isfinite(value) else None


def row(label: str, value: Any, low: Any, high: Any, **more: Any) -> dict[str, Any]:
    """A row of a forest, and its interval in words; without a value it has no interval."""
    middle = finite(value)
    first, last = (finite(end) if middle is not None else None for end in (low, high))
    words = interval(first, last)
    return {
        **more, "label": label, "value": middle, "low": first, "high": last,
        "interval": words, "shown": "" if middle is None else f"{number(middle)} {words}",
    }  # fmt: skip


def once(names: Iterable[str], kind: str) -> None:
    """Two rows of one name would lie on each other."""
    seen: set[str] = set()
    for name in names:
        if name in seen:
            raise InputError(f"{kind}: expected each once, got '{name}' twice")
        seen.add(name)


def domain_of(values: Sequence[Mapping[str, Any]], *also: float | None) -> list[float]:
    """What holds all values and these points, and all intervals but those far wider than the rest.

    >>> tight = [row(str(x), x, x - 0.1, x + 0.1) for x in (0.0, 0.1, 0.2)]
    >>> [round(end, 2) for end in domain_of([*tight, row("wide", 0.1, -9, 9)])]
    [-0.44, 0.64]
    """
    points = [r["value"] for r in values if r["value"] is not None]
    if not points:
        raise InputError("values: expected at least one number, got none")
    points += [point for point in map(finite, also) if point is not None]
    low, high = min(points), max(points)
    closed = [r for r in values if r["low"] is not None and r["high"] is not None]
    widths = [r["high"] - r["low"] for r in closed]
    room = max((high - low) / 2, 2 * median(widths) if widths else 0.0)
    ends = [end for r in values for end in (r["low"], r["high"]) if end is not None]
    low = max(low - room, min([low, *ends]))
    high = min(high + room, max([high, *ends]))
    margin = 0.04 * (high - low) or 0.05
    return [low - margin, high + margin]


def placed(values: Sequence[Mapping[str, Any]], domain: Sequence[float]) -> list[dict[str, Any]]:
    """The rows with where their line begins and ends in the plot, and whether it is cut there."""
    made = []
    for r in values:
        low, high = (r["low"], r["high"]) if r["value"] is not None else (None, None)
        ends = [
            domain[0] if low is None else max(low, domain[0]),
            domain[1] if high is None else min(high, domain[1]),
        ]
        cut = r["value"] is not None and ends != [low, high]
        shown = ends if r["value"] is not None else [None, None]
        made.append({**r, "begin": shown[0], "end": shown[1], "cut": cut})
    return made


def told(values: Sequence[Mapping[str, Any]]) -> list[str]:
    """The line below the title that a cut interval calls for."""
    return [CUT] if any(r["cut"] for r in values) else []


def across(title: str, domain: Sequence[float], ticks: int) -> Any:
    """The axis of a forest, where its intervals begin."""
    import altair as alt

    scale = alt.Scale(domain=list(domain), nice=False, zero=False)
    return alt.X("begin:Q", title=title, scale=scale, axis=alt.Axis(tickCount=ticks))


def whiskers(base: Chart, x: Any, width: float, **encoding: Any) -> Chart:
    """The intervals of a forest; `x` begins them and has the axis."""
    import altair as alt

    dash = alt.StrokeDash(
        "cut:N", legend=None, scale=alt.Scale(domain=[False, True], range=[[1, 0], [3, 3]])
    )
    return base.mark_rule(strokeWidth=width).encode(x=x, x2="end:Q", strokeDash=dash, **encoding)


def dots(base: Chart, size: int = 60, **encoding: Any) -> list[Chart]:
    """The values of a forest, and words where there is none."""
    import altair as alt

    none = base.transform_filter("!isValid(datum.value)")
    return [
        base.mark_point(filled=True, size=size, opacity=1).encode(x="value:Q", **encoding),
        none.mark_text(align="right", dx=-4, fontSize=11, text="no value").encode(
            x=alt.value("width"), color=alt.value(GREY)
        ),
    ]


def rule(x: float) -> Chart:
    """A dashed line down the whole plot."""
    import altair as alt

    return alt.Chart(rows([{"x": x}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="x:Q")


def looks(field: str, groups: Mapping[str, tuple[str, str]], title: str | None = None) -> Any:
    """Colour and shape by a field; no legend where there is one group alone."""
    import altair as alt

    legend = alt.Legend(title=title, symbolOpacity=1) if len(groups) > 1 else None
    colours, shapes = (
        alt.Scale(domain=list(groups), range=[look[i] for look in groups.values()]) for i in (0, 1)
    )
    return (
        alt.Color(f"{field}:N", scale=colours, legend=legend),
        alt.Shape(f"{field}:N", scale=shapes, legend=legend),
    )


def classes_axis(order: Sequence[str]) -> Any:
    """A row a class in this order."""
    import altair as alt

    axis = alt.Axis(ticks=False, domain=False, grid=True, labelLimit=260)
    return alt.Y("label:N", title=None, sort=None, scale=alt.Scale(domain=list(order)), axis=axis)


def runs_axis(names: Sequence[str], *, labels: bool = True) -> Any:
    """A row a run; long names take several lines. Without `labels` they are another panel's."""
    import altair as alt

    axis = alt.Axis(
        ticks=False, domain=False, grid=True, labels=labels, labelLimit=400,
        labelExpr="split(datum.label, '\\n')",
        labelOffset={
            "condition": [
                {"test": f"length(split(datum.value, '\\n')) == {n}", "value": -6.5 * (n - 1)}
                for n in range(2, 6)
            ],
            "value": 0,
        },
    )  # fmt: skip
    domain = [wrapped(name, LINE) for name in names]
    return alt.Y("label:N", title=None, sort=None, scale=alt.Scale(domain=domain), axis=axis)


def runs_height(names: Sequence[str]) -> dict[str, int]:
    """Rows as high as the longest name needs."""
    most = max(wrapped(name, LINE).count("\n") + 1 for name in names)
    return {"step": max(24, 14 * most + 6)}
