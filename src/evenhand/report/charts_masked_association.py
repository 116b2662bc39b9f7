"""Figures of the association test: a forest of professions, and what each template would say."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, GREEN, GREY, INK, ORANGE, Chart, rows
from evenhand.report.charts_saving import ChartSet
from evenhand.report.wording import interval, number, percent
from evenhand.results import Estimate, Measurement

__all__ = ["association_charts", "professions", "templates"]

LOOKS = {
    "male": (BLUE, "circle"), "balanced": (GREEN, "square"), "female": (ORANGE, "triangle-up"),
    "none given": (INK, "diamond"),
}  # fmt: skip
"""The colour and, as a second cue, the shape of each group of professions."""

DIFFERENCE = "association with men less association with women (log ratio)"


def association_charts(results: Sequence[Measurement]) -> ChartSet:
    """The figures of one run, by name; that of the model is added where there are several."""
    made = ChartSet()
    for result in results:
        plain = re.sub(r"[^\w.-]+", "-", result.subject)
        name = f"-{plain}" if len(results) > 1 else ""
        made.add(f"professions{name}", partial(professions, result))
        made.add(f"templates{name}", partial(templates, result))
    return made


def professions(result: Measurement) -> Chart:
    """Every profession's difference: right of 0 it calls for a man, left of 0 for a woman."""
    import altair as alt

    values = [
        _row(
            line.part("pooled").estimate, label=line.query,
            group=line.details["group"] or "none given", raw=line.value,
        )
        for line in result.select("profession")
    ]  # fmt: skip
    shown = [group for group in LOOKS if any(row["group"] == group for row in values)]
    legend = alt.Legend(title="mostly held by", symbolOpacity=1) if len(shown) > 1 else None
    colour, shape = (
        alt.Scale(domain=shown, range=[LOOKS[group][i] for group in shown]) for i in (0, 1)
    )
    base = _base(values).encode(color=alt.Color("group:N", scale=colour, legend=legend))
    layers = [
        _zero(),
        base.mark_rule(strokeWidth=1.3).encode(x=_x("low"), x2="high:Q"),
        base.mark_tick(thickness=1.5, size=9, color=GREY).encode(x="raw:Q", color=alt.value(GREY)),
        base.mark_point(filled=True, size=55, opacity=1).encode(
            x="value:Q", shape=alt.Shape("group:N", scale=shape, legend=legend)
        ),
    ]
    return alt.layer(*layers, width=380, height={"step": 14}).properties(
        title=_title(
            f"Which professions call for a man? {result.subject}",
            f"dot and line: partially pooled difference and its {percent(result.prob)} "
            "interval;",
            "grey tick: the plain mean over templates and pairs of persons",
        )
    )


def templates(result: Measurement) -> Chart:
    """Every template's own answer, and the overall one without it."""
    import altair as alt

    values = [
        _row(line.estimate, label=line.query, without=line.details["without"])
        for line in result.select("template")
    ]
    base = _base(values, width=460)
    overall = result
    whole = alt.Chart(rows([overall.estimate.to_dict()]))
    layers = [
        whole.mark_rect(color=BLUE, opacity=0.12).encode(x=_x("low"), x2="high:Q"),
        whole.mark_rule(color=BLUE).encode(x="value:Q"),
        _zero(),
        base.mark_rule(strokeWidth=1.3, color=INK).encode(x="low:Q", x2="high:Q"),
        base.mark_point(filled=True, size=60, color=INK, opacity=1).encode(x="value:Q"),
        base.mark_point(size=45, color=ORANGE, shape="diamond", strokeWidth=1.8, opacity=1).encode(
            x="without:Q"
        ),
    ]
    return alt.layer(*layers, width=330, height={"step": 24}).properties(
        title=_title(
            f"Does the wording decide? {result.subject}",
            f"dot and line: one template alone and its {percent(overall.prob)} interval; orange "
            "diamond: all but this one;",
            f"blue: all templates, {number(overall.value)} {interval(overall.low, overall.high)}",
        )
    )


def _row(told: Estimate, **more: Any) -> Mapping[str, Any]:
    if not math.isfinite(told.low) or not math.isfinite(told.high):
        raise InputError(f"'{more['label']}' has no interval: one sentence pair tells no spread")
    return {**more, **told.to_dict(), "interval": interval(told.low, told.high)}


def _base(values: Sequence[Mapping[str, Any]], width: int = 170) -> Any:
    import altair as alt

    order = [row["label"] for row in values]
    axis = alt.Axis(ticks=False, domain=False, grid=True, labelLimit=width)
    return alt.Chart(rows(values)).encode(
        y=alt.Y("label:N", sort=order, title=None, axis=axis),
        tooltip=[
            alt.Tooltip("label:N", title=" "), alt.Tooltip("value:Q", format=".3f"),
            alt.Tooltip("interval:N"),
        ],
    )  # fmt: skip


def _x(field: str) -> Any:
    import altair as alt

    axis = alt.Axis(tickCount=7)
    return alt.X(f"{field}:Q", title=DIFFERENCE, scale=alt.Scale(zero=True, nice=True), axis=axis)


def _zero() -> Any:
    import altair as alt

    return alt.Chart(rows([{"x": 0}])).mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="x:Q")


def _title(text: str, *below: str) -> Any:
    import altair as alt

    return alt.TitleParams(text, subtitle=list(below), subtitleColor=INK, subtitleFontSize=11)
