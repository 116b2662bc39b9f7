"""The loss curve of a fine-tuning, training and evaluation, and what it changed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, GREY, INK, ORANGE, Chart, rows
from evenhand.report.charts_saving import ChartSet
from evenhand.report.wording import interval, number

if TYPE_CHECKING:
    from evenhand.masked.finetuning import FinetuneResult
    from evenhand.results import Comparison

__all__ = ["bias_changes", "finetune_charts", "loss_curve", "measure_label"]

LINES = {"training": (ORANGE, "circle"), "evaluation": (BLUE, "square")}
TIMES = {"before": (ORANGE, "circle"), "after": (BLUE, "square")}


def finetune_charts(result: FinetuneResult) -> ChartSet:
    """The charts of a fine-tuning, by name."""
    made = ChartSet()
    kept = result.training["best"]["step"]
    made.add("loss", lambda: loss_curve(result.curve, kept=kept))
    if result.control_curve:
        made.add("loss_control", lambda: loss_curve(result.control_curve))
    made.add("bias", lambda: bias_changes(result.changes))
    return made


def loss_curve(curve: Sequence[Mapping[str, Any]], *, kept: int | None = None) -> Chart:
    """Training and evaluation loss over the steps; a rule marks the weights that were kept.

    The training loss is the mean of the steps since the point before, on text drawn anew; the
    evaluation loss is on the same hidden tokens every time. They fall together unless the model
    begins to learn its text by heart.
    """
    import altair as alt

    values = [
        {"step": point["step"], "epoch": round(point["epoch"], 2), "loss": point[name],
         "series": name}
        for point in curve
        for name in LINES
        if point[name] is not None
    ]  # fmt: skip
    colour = alt.Color(
        "series:N", title=None,
        scale=alt.Scale(domain=list(LINES), range=[colour for colour, _ in LINES.values()]),
    )  # fmt: skip
    shape = alt.Shape(
        "series:N", title=None,
        scale=alt.Scale(domain=list(LINES), range=[shape for _, shape in LINES.values()]),
    )  # fmt: skip
    x = alt.X("step:Q", title="step", axis=alt.Axis(tickMinStep=1, format=",d"))
    y = alt.Y("loss:Q", title="loss at hidden tokens (nats)", scale=alt.Scale(zero=False))
    base = alt.Chart(rows(values)).encode(x=x, y=y, color=colour)
    layers = [
        base.mark_line(strokeWidth=2),
        base.mark_point(filled=True, size=36, opacity=1).encode(
            shape=shape, tooltip=["series:N", "step:Q", "epoch:Q", "loss:Q"]
        ),
    ]
    if kept is not None:
        mark = alt.Chart(rows([{"step": kept, "text": "kept"}]))
        layers += [
            mark.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="step:Q"),
            mark.mark_text(color=GREY, align="right", dx=-4, baseline="top", fontSize=11).encode(
                x="step:Q", y=alt.value(2), text="text:N"
            ),
        ]
    return alt.layer(*layers).properties(
        width=460, height=240, title="Loss while fine-tuning, in training and on evaluation text"
    )


def bias_changes(changes: Sequence[Comparison]) -> Chart:
    """The pronoun bias before and after with intervals, beside what no bias would read.

    A row a measure; before stands above after, and the change with its interval at the right.
    """
    import altair as alt

    values = [
        {"label": measure_label(change.query), "time": time, "value": one.value, "low": one.low,
         "high": one.high, "ideal": change.before.ideal, "change": _words(change)}
        for change in changes
        if "bias" in change.query and change.paired
        for time, one in (("before", change.before), ("after", change.after))
    ]  # fmt: skip
    if not values:
        raise InputError("bias: no sentence was scored both before and after")
    labels = list(dict.fromkeys(row["label"] for row in values))
    y = alt.Y(
        "label:N", title=None, scale=alt.Scale(domain=labels),
        axis=alt.Axis(ticks=False, domain=False, grid=False, labelLimit=240),
    )  # fmt: skip
    looks = {
        name: kind("time:N", title=None, scale=alt.Scale(domain=list(TIMES), range=range_))
        for name, kind, range_ in (
            ("color", alt.Color, [colour for colour, _ in TIMES.values()]),
            ("shape", alt.Shape, [shape for _, shape in TIMES.values()]),
        )
    }
    title = "score: 1 male words alone, 0 female words alone"
    x = alt.X("value:Q", title=title, scale=alt.Scale(domain=[0, 1]))
    base = alt.Chart(rows(values))
    layers = [base.mark_tick(color=GREY, thickness=2, size=34).encode(y=y, x="ideal:Q")]
    for time, shift in (("before", -7), ("after", 7)):
        one = alt.Chart(rows([row for row in values if row["time"] == time]))
        layers += [
            one.mark_rule(strokeWidth=2.5, yOffset=shift).encode(
                y=y, x="low:Q", x2="high:Q", color=looks["color"]
            ),
            one.mark_point(filled=True, size=70, opacity=1, yOffset=shift).encode(
                y=y, x=x, tooltip=["label:N", "time:N", "value:Q", "low:Q", "high:Q"], **looks
            ),
        ]
    layers.append(
        alt.Chart(rows([row for row in values if row["time"] == "after"]))
        .mark_text(align="left", color=INK, fontSize=11)
        .encode(y=y, x=alt.value(432), text="change:N")
    )
    heading = alt.TitleParams(
        "Pronoun score on held-out sentences",
        subtitle=["grey: no bias; at the right: the change, paired, with its interval"],
        subtitleColor=INK, subtitleFontSize=11,
    )  # fmt: skip
    return alt.layer(*layers).properties(width=420, height={"step": 48}, title=heading)


def measure_label(measure: str) -> str:
    """The measure in words.

    >>> measure_label("mean |bias - .5|, top 10"), measure_label("mean bias")
    ('mean distance from 0.5, 10 likeliest words', 'mean score')
    """
    measure = measure.replace("|bias - .5|", "distance from 0.5").replace("bias", "score")
    return re.sub(r"top (\d+)", r"\1 likeliest words", measure)


def _words(change: Comparison) -> str:
    made = change.change
    return f"{number(made.value)} {interval(made.low, made.high)}"
