"""Every sentence of the pronoun score as a dot, by kind of situation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.report.charts import BLUE, GREY, INK, ORANGE, Chart, rows
from evenhand.report.wording import interval, number, percent

__all__ = ["sentences"]


def sentences(
    items: Sequence[Mapping[str, Any]], groups: Sequence[Mapping[str, Any]], prob: float
) -> Chart:
    """The full-vocabulary score of each sentence, a row a group, and the groups' means.

    Undecided sentences are hollow: the model finds no gender word likely there.
    """
    import altair as alt

    titles = {group["group"]: group["title"] for group in groups}
    values = [
        {
            "group": titles[item["group"]], "score": item["full_bias"],
            "sentence": item["masked"], "shift": _shift(place),
            "kind": "undecided" if item["full_verdict"] == "undecided" else "decided",
            "told": f"{item['male_word']} {percent(item['p_male'])}, "
            f"{item['female_word']} {percent(item['p_female'])}",
        }
        for place, item in enumerate(items)
    ]  # fmt: skip
    means = [
        {
            "group": group["title"], "value": group["value"], "low": group["low"],
            "high": group["high"],
            "told": f"{number(group['value'], 2)} {interval(group['low'], group['high'], 2)}",
        }
        for group in groups
        if group["value"] is not None
    ]  # fmt: skip
    y = alt.Y(
        "group:N", sort=list(titles.values()), title=None,
        axis=alt.Axis(ticks=False, domain=False, grid=False, labelLimit=200),
    )  # fmt: skip
    x = alt.X("score:Q", title="0: female … 1: male", scale=alt.Scale(domain=[0, 1]),
              axis=alt.Axis(values=[0, 0.25, 0.5, 0.75, 1], format=".2~f", grid=False))  # fmt: skip
    dots = alt.Chart(rows(values)).encode(
        x=x, y=y, yOffset=alt.YOffset("shift:Q", scale=alt.Scale(domain=[0, 1])),
        tooltip=[
            alt.Tooltip("sentence:N"), alt.Tooltip("score:Q", format=".2f"),
            alt.Tooltip("told:N", title="likeliest words"),
        ],
    )  # fmt: skip
    mean = alt.Chart(rows(means)).encode(
        y=y,
        tooltip=[alt.Tooltip("group:N"), alt.Tooltip("told:N", title="mean")],
    )
    middle = alt.Chart(rows([{"x": 0.5}])).mark_rule(color=GREY, strokeDash=[4, 3])
    title = alt.TitleParams(
        "Every sentence by itself",
        subtitle=[
            "blue dot: a sentence; hollow: no gender word is likely there;",
            f"orange: the mean of the decided ones and its {percent(prob)} interval",
        ],
        subtitleColor=INK, subtitleFontSize=11,
    )  # fmt: skip
    return alt.layer(
        middle.encode(x="x:Q"),
        dots.transform_filter("datum.kind == 'decided'").mark_circle(
            color=BLUE, size=34, opacity=0.65
        ),
        dots.transform_filter("datum.kind == 'undecided'").mark_point(
            color=GREY, size=30, opacity=0.9, strokeWidth=1.2
        ),
        mean.mark_rule(color=ORANGE, strokeWidth=2.5).encode(x="low:Q", x2="high:Q"),
        mean.mark_point(
            color=ORANGE, filled=True, size=80, opacity=1, shape="diamond",
            stroke="#ffffff", strokeWidth=0.8,
        ).encode(x="value:Q"),
        width=420, height={"step": 46}, title=title,
    )  # fmt: skip


def _shift(place: int) -> float:
    """Dots side by side, spread evenly without a pattern (the golden section)."""
    return 0.1 + 0.8 * (place * 0.6180339887 % 1)
