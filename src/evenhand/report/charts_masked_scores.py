"""Figures of the pronoun score: its distribution for each model, and paired differences."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, GREY, INK, ORANGE, PALE, Chart, rows
from evenhand.report.charts_saving import ChartSet
from evenhand.report.wording import interval, number, p_value, percent
from evenhand.results import Comparison, Estimate, Measurement

__all__ = ["differences", "distributions", "score_charts"]

WIDTH, HEIGHT = 420, 130
TOP, FULL = "top k", "full vocabulary"


def score_charts(scores: Sequence[Measurement], comparisons: Sequence[Comparison]) -> ChartSet:
    """The figures of one run, by name."""
    made = ChartSet()
    made.add("scores", lambda: distributions(scores))
    if len(scores) > 1:
        made.add("differences", lambda: differences(comparisons))
    return made


def distributions(scores: Sequence[Measurement]) -> Chart:
    """The distribution of the scores of each model, as Figure 3 of Ye et al. (2021)."""
    import altair as alt

    if not any(_top(told).n for told in scores):
        raise InputError("no sentence is decided: there is no distribution to draw")
    settings = scores[0].details["settings"]
    title = alt.TitleParams(
        "Pronoun score: P(male) / (P(male) + P(female))",
        subtitle=[
            f"bars: sentences decided by the {settings['top_k']} likeliest words; outline: by the "
            "full vocabulary;",
            f"grey band: neutral, .5 ± {settings['delta']:g}; dot and line: mean and its "
            f"{percent(scores[0].prob)} interval",
        ],
        subtitleColor=INK, subtitleFontSize=11,
    )  # fmt: skip
    last = len(scores) - 1
    panels = [_panel(told, axis=i == last) for i, told in enumerate(scores)]
    return alt.vconcat(*panels, spacing=14, title=title)


def differences(comparisons: Sequence[Comparison]) -> Chart:
    """The paired difference of every two models, with its interval."""
    import altair as alt

    values = []
    for pair in comparisons:
        label = f"{pair.after.subject} − {pair.before.subject}"
        [top] = pair.parts
        for series, told, n in (
            (FULL, pair.change, pair.paired),
            (TOP, top.change, top.paired),
        ):
            if n:
                p = p_value(pair.details["p_holm"]) if series == FULL else "–"
                values.append(_row(told, label=label, series=series, n=n, p=p))
    prob = percent(comparisons[0].change.prob)
    scale = alt.Scale(domain=[FULL, TOP], range=[BLUE, ORANGE])
    shape = alt.Scale(domain=[FULL, TOP], range=["circle", "square"])
    legend = alt.Legend(title=None)
    base = alt.Chart(rows(values)).encode(
        y=alt.Y("label:N", title=None, sort=None,
                axis=alt.Axis(ticks=False, domain=False, grid=True, labelLimit=260)),
        yOffset=alt.YOffset("series:N", sort=[FULL, TOP]),
        color=alt.Color("series:N", scale=scale, legend=legend),
        tooltip=[
            alt.Tooltip("label:N", title="models"), alt.Tooltip("series:N", title="score"),
            alt.Tooltip("value:Q", format=".3f"),
            alt.Tooltip("interval:N", title=f"{prob} interval"),
            alt.Tooltip("n:Q", title="sentences"), alt.Tooltip("p:N", title="p, corrected"),
        ],
    )  # fmt: skip
    low = min(0, *(row["low"] for row in values))
    high = max(0, *(row["high"] for row in values))
    margin = 0.05 * max(high - low, 0.02)
    domain = [low - margin, high + margin]
    x = alt.X("low:Q", title="difference of the score; right: the first named is more male",
              scale=alt.Scale(domain=domain, nice=False), axis=alt.Axis(tickCount=6))  # fmt: skip
    zero = alt.Chart(rows([{"x": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="x:Q")
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x="value:Q", shape=alt.Shape("series:N", scale=shape, legend=legend)
    )
    numbers = base.mark_text(align="left", fontSize=11).encode(
        x=alt.value(WIDTH + 8), text="shown:N", color=alt.value(INK)
    )
    title = alt.TitleParams(
        "Models on the same sentences", subtitle=[f"mean difference with its {prob} interval"],
        subtitleColor=INK, subtitleFontSize=11,
    )  # fmt: skip
    lines = base.mark_rule(strokeWidth=1.6).encode(x=x, x2="high:Q")
    height: Any = {"step": 16, "for": "offset"}
    return alt.layer(zero, lines, dots, numbers, width=WIDTH, height=height, title=title)


def _top(m: Measurement) -> Measurement:
    """The same measurement by the k likeliest words."""
    return m.select("vocabulary")[0]


def _panel(told: Measurement, *, axis: bool) -> Chart:
    """One model: bars by the top k, an outline by the whole vocabulary, band, mean."""
    import altair as alt

    top = _top(told)
    delta = told.details["settings"]["delta"]
    counted = [m.details["histogram"]["counts"] for m in (top, told)]
    bins, most = len(counted[0]), max(*counted[0], *counted[1], 1)
    bars = [
        {"low": i / bins, "high": (i + 1) / bins, "n": n, "full": m,
         "bin": f"{i / bins:.2f} to {(i + 1) / bins:.2f}"}
        for i, (n, m) in enumerate(zip(*counted, strict=True))
    ]  # fmt: skip
    steps = [{"x": b["low"], "y": b["full"]} for b in bars] + [{"x": 1.0, "y": bars[-1]["full"]}]
    labels = alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f", grid=False, labels=axis)
    x = alt.X("low:Q", scale=alt.Scale(domain=[0, 1]), axis=labels,
              title="0: female … 1: male" if axis else None)  # fmt: skip
    y = alt.Y("n:Q", title="sentences", scale=alt.Scale(domain=[0, 1.22 * most], nice=False),
              axis=alt.Axis(tickCount=4, format="~s" if most > 9999 else "d"))  # fmt: skip
    band = alt.Chart(rows([{"low": 0.5 - delta, "high": 0.5 + delta}]))
    middle = alt.Chart(rows([{"x": 0.5}])).mark_rule(color=GREY, strokeDash=[4, 3])
    drawn = alt.Chart(rows(bars)).encode(
        tooltip=[
            alt.Tooltip("bin:N", title="score"), alt.Tooltip("n:Q", title=TOP),
            alt.Tooltip("full:Q", title=FULL),
        ],
    )  # fmt: skip
    outline = alt.Chart(rows(steps)).mark_line(
        interpolate="step-after", color=INK, strokeWidth=1.2, strokeDash=[2, 2]
    )
    mean = _row(top.estimate, n=top.n)
    dot = alt.Chart(rows([mean])).encode(
        y=alt.value(8), color=alt.value(INK),
        tooltip=[
            alt.Tooltip("value:Q", title="mean", format=".3f"),
            alt.Tooltip("interval:N"), alt.Tooltip("n:Q", title="decided sentences"),
        ],
    )  # fmt: skip
    layers = [
        band.mark_rect(color=PALE, opacity=0.6).encode(x=x, x2="high:Q"),
        drawn.mark_rect(color=BLUE, opacity=0.85, stroke="#ffffff", strokeWidth=0.7).encode(
            x=x, x2="high:Q", y=y, y2=alt.datum(0)
        ),
        outline.encode(x="x:Q", y="y:Q"),
        middle.encode(x="x:Q"),
    ]
    if top.n:
        layers += [
            dot.mark_rule(strokeWidth=2).encode(x="low:Q", x2="high:Q"),
            dot.mark_point(filled=True, size=60, opacity=1).encode(x="value:Q"),
        ]
    counts = ", ".join(
        f"{top.part(verdict, 'verdict').details['count']:,} {verdict}"
        for verdict in ("male", "female", "neutral", "undecided")
    )
    heading = alt.TitleParams(
        told.subject, subtitle=[f"{counts}; mean {mean['shown']}"], fontSize=12, offset=4,
        subtitleColor=INK, subtitleFontSize=11, frame="group",
    )  # fmt: skip
    return alt.layer(*layers, width=WIDTH, height=HEIGHT, title=heading)


def _row(told: Estimate, **more: Any) -> dict[str, Any]:
    ends = interval(told.low, told.high)
    return {
        **more, "value": told.value, "low": told.low, "high": told.high, "interval": ends,
        "shown": f"{number(told.value)} {ends}",
    }  # fmt: skip
