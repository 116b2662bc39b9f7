"""What the forests of posteriors share: rows with two intervals, looks, axes, titles."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from evenhand.posterior.tables import CONNECTIONS, Table
from evenhand.report.charts import GREY, INK, Chart, rows
from evenhand.report.charts_topic import COLOURS
from evenhand.report.wording import interval, p_value, percent
from evenhand.results import Comparison, Measurement

__all__ = [
    "KINDS", "LOOKS", "WIDE", "forest", "forest_row", "interval_row", "label_axis", "lines",
    "name_of", "panel_title", "probability", "span", "titled",
]  # fmt: skip

SHAPES = ("circle", "square", "triangle-up", "diamond")
LOOKS = {level: (COLOURS[level], shape) for level, shape in zip(CONNECTIONS, SHAPES, strict=True)}
"""The colour and, as a second cue, the shape of each connection class."""

KINDS = (
    "associated, different: stereotypes of the word's own class, of another class;",
    "human: words about people; none: neutral words",
)
"""The connection classes in words, as two lines below a title."""

WIDE = 300
"""The usual width of a plot: with its labels it fills a column."""


def name_of(table: Table) -> str:
    """The table's name for a title."""
    return Path(table.source).stem


def interval_row(result: Measurement | Comparison, **labels: str) -> dict[str, Any]:
    """A row of a forest from a posterior quantity, or from its change."""
    estimate = result.estimate if isinstance(result, Measurement) else result.change
    values = {"mean": estimate.value, "low": estimate.low, "high": estimate.high, **result.details}
    return forest_row(values, **labels)


def forest_row(values: Mapping[str, Any], **labels: str) -> dict[str, Any]:
    """A row of a forest: mean, interval and 50 % interval, and the interval as text."""
    names = ("mean", "low", "high", "inner_low", "inner_high")
    return {
        **labels,
        **{name: values[name] for name in names},
        "interval": interval(values["low"], values["high"]),
        "p": probability(values["p_below_zero"]),
    }


def probability(p: float) -> str:
    r"""Three decimals, and never 0 or 1, which draws cannot tell.

    >>> probability(0.98912), probability(1.0), probability(0.0)
    ('0.989', '>\xa00.999', '<\xa00.001')
    """
    return ">\u00a00.999" if p > 0.9995 else p_value(p)


def lines(prob: float) -> str:
    """What the lines of a forest are."""
    return f"thick line: 50 %, thin line: {percent(prob)} highest-density interval"


def panel_title(text: str) -> Any:
    """The title of one panel of several, above its plot."""
    import altair as alt

    return alt.TitleParams(text, fontSize=12, frame="group", offset=4)


def titled(text: str, *below: str) -> Any:
    """The title of a whole chart, with lines in smaller type below it."""
    import altair as alt

    return alt.TitleParams(text, subtitle=list(below), subtitleColor=INK, subtitleFontSize=11)


def span(
    values: Sequence[Mapping[str, Any]], *, zero: bool = False, also: float | None = None
) -> list[float]:
    """What holds all intervals, with a margin."""
    low, high = min(row["low"] for row in values), max(row["high"] for row in values)
    for point in [0.0] * zero + [also] * (also is not None):
        low, high = min(low, point), max(high, point)
    margin = 0.04 * (high - low)
    return [low - margin, high + margin]


def label_axis(order: Sequence[str], axis: bool = True) -> Any:
    """The rows of a forest in this order; without `axis`, the labels are another panel's."""
    import altair as alt

    return alt.Y(
        "label:N", sort=list(order), scale=alt.Scale(domain=list(order), paddingInner=0.25),
        title=None,
        axis=alt.Axis(ticks=False, domain=False, grid=True, minExtent=60, labelLimit=160)
        if axis else alt.Axis(ticks=False, domain=False, grid=True, labels=False),
    )  # fmt: skip


def forest(
    values: Sequence[Mapping[str, Any]],
    looks: Mapping[str, tuple[str, str]],
    prob: float,
    *,
    x_title: str | None,
    domain: list[float] | None = None,
    order: Sequence[str] | None = None,
    offset: bool = True,
    zero: float | None = 0,
    legend: bool = True,
    axis: bool = True,
    p_below_zero: bool = False,
    width: int = WIDE,
    step: int = 15,
) -> Chart:
    """Dots with two intervals, a row a label; several series of a label lie side by side."""
    import altair as alt

    order = list(order or dict.fromkeys(row["label"] for row in values))
    names = list(looks)
    offset = offset and len(names) > 1
    scale = alt.Scale(domain=domain or span(values, zero=zero is not None), nice=False)
    shown = alt.Legend(title=None, columns=len(names)) if legend and len(names) > 1 else None
    colours, shapes = zip(*(looks[name] for name in names), strict=True)
    colour = alt.Color("series:N", legend=shown, scale=alt.Scale(domain=names, range=colours))
    shape = alt.Shape("series:N", legend=shown, scale=alt.Scale(domain=names, range=shapes))
    base = alt.Chart().encode(
        y=label_axis(order, axis), color=colour,
        tooltip=[
            alt.Tooltip("label:N", title=" "), alt.Tooltip("series:N", title="of"),
            alt.Tooltip("mean:Q", format=".3f"),
            alt.Tooltip("interval:N", title=f"{percent(prob)} interval"),
            alt.Tooltip("p:N", title="P(< 0)"),
        ],
    )  # fmt: skip
    if offset:
        base = base.encode(yOffset=alt.YOffset("series:N", sort=names))
    x = alt.X("low:Q", title=x_title, scale=scale, axis=alt.Axis(tickCount=max(3, width // 55)))
    layers = [
        base.mark_rule(strokeWidth=1.3).encode(x=x, x2="high:Q"),
        base.mark_rule(strokeWidth=3.2 if width == WIDE else 2.6).encode(
            x="inner_low:Q", x2="inner_high:Q"
        ),
        base.mark_point(filled=True, size=70 if width == WIDE else 36, opacity=1).encode(
            x="mean:Q", shape=shape
        ),
    ]
    if zero is not None:
        line = alt.Chart(rows([{"x": zero}])).mark_rule(color=GREY, strokeDash=[4, 3])
        layers.insert(0, line.encode(x="x:Q"))
    if p_below_zero:
        layers.append(base.mark_text(align="left", fontSize=11).encode(
            x=alt.value(width + 8), text="p:N"))  # fmt: skip
        head = alt.Chart(rows([{}])).mark_text(align="left", fontSize=11, color=INK, text="P(< 0)")
        layers.append(head.encode(x=alt.value(width + 8), y=alt.value(-7)))
    height = {"step": step, "for": "offset"} if offset else {"step": step + 3}
    return alt.layer(*layers, data=rows(values), width=width, height=height)
