"""Charts of the published tests, and of the dimension experiment."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.report.charts import BLUE, GREY, INK, ORANGE, PALE, Chart, rows, wrapped
from evenhand.report.wording import interval, number
from evenhand.results import Item, Measurement

__all__ = ["dimension", "weat_forest", "wefat_scatter"]


def weat_forest(measurements: Sequence[Measurement], titles: Mapping[str, str]) -> Chart:
    """A row a test: effect size with interval, over the range of leaving one word out."""
    import altair as alt

    ranges = {m.query: m for m in measurements if m.metric == "leave_one_out(weat)"}
    values = [
        {
            "label": wrapped(f"{m.query.removeprefix('weat-')}. {titles[m.query]}", 52),
            "value": m.value, "low": m.low, "high": m.high, "ideal": 0,
            "out_low": ranges[m.query].low if m.query in ranges else None,
            "out_high": ranges[m.query].high if m.query in ranges else None,
            "interval": interval(m.low, m.high, 2),
            "out": interval(ranges[m.query].low, ranges[m.query].high, 2)
            if m.query in ranges else None,
        }
        for m in measurements
        if m.metric == "weat"
    ]  # fmt: skip
    y = alt.Y(
        "label:N", sort=None, title=None,
        axis=alt.Axis(
            labelLimit=330, ticks=False, domain=False, grid=False,
            labelExpr="split(datum.label, '\\n')",
            labelOffset={
                "condition": {"test": "indexof(datum.value, '\\n') >= 0", "value": -6},
                "value": 0,
            },
        ),
    )  # fmt: skip
    base = alt.Chart(rows(values))
    told = [
        alt.Tooltip("label:N"), alt.Tooltip("value:Q", title="d", format=".2f"),
        alt.Tooltip("interval:N"), alt.Tooltip("out:N", title="one word left out"),
    ]  # fmt: skip
    title = "effect size d (standard deviations); 0: no difference"
    out = base.mark_bar(color=PALE, height=16).encode(
        y=y, x=alt.X("out_low:Q", title=title), x2="out_high:Q", tooltip=told
    )
    zero = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="ideal:Q")
    line = base.mark_rule(color=BLUE, strokeWidth=2.5).encode(
        y=y, x="low:Q", x2="high:Q", tooltip=told
    )
    dot = base.mark_point(color=BLUE, filled=True, size=70, opacity=1).encode(
        y=y, x="value:Q", tooltip=told
    )
    return alt.layer(out, zero, line, dot).properties(width=420, height={"step": 38})


def wefat_scatter(measurements: Sequence[Measurement], titles: Mapping[str, str]) -> Chart:
    """A panel a word list: the fact about each word across, its tie to women's words up."""
    import altair as alt

    panels = [_scatter(m, titles.get(m.query, m.query)) for m in measurements]
    return alt.concat(*panels, columns=2, spacing=26)


def _scatter(m: Measurement, title: str) -> Chart:
    import altair as alt

    named = _labelled(m.items)
    values = [
        {
            "word": item["word"], "fact": item["fact"], "score": item["score"],
            "left": item["word"] if item["word"] in named and item["fact"] <= 60 else "",
            "right": item["word"] if item["word"] in named and item["fact"] > 60 else "",
        }
        for item in m.items
    ]  # fmt: skip
    base = alt.Chart(
        rows(values),
        title=alt.TitleParams(
            wrapped(title, 44).split("\n"),
            subtitle=f"r = {number(m.value, 2)}, interval {interval(m.low, m.high, 2)}",
        ),
    ).encode(
        x=alt.X("fact:Q", title="percent women", scale=alt.Scale(domain=[0, 100])),
        y=alt.Y("score:Q", title="nearer men's words  ←  →  women's"),
    )
    fit = base.transform_regression("fact", "score").mark_line(color=ORANGE, strokeWidth=1.8)
    dots = base.mark_point(color=BLUE, filled=True, size=36, opacity=0.75).encode(
        tooltip=[
            alt.Tooltip("word:N"), alt.Tooltip("fact:Q", title="percent women", format=".1f"),
            alt.Tooltip("score:Q", format=".2f"),
        ]
    )  # fmt: skip
    left = base.mark_text(align="left", dx=6, fontSize=11, color=INK).encode(text="left:N")
    right = base.mark_text(align="right", dx=-6, fontSize=11, color=INK).encode(text="right:N")
    return alt.layer(fit, dots, left, right).properties(width=320, height=250)


def _labelled(items: Sequence[Item]) -> set[str]:
    """The words of the strongest scores whose labels lie on no other label and no other dot."""
    half = 0.05 * max(abs(item["score"]) for item in items)
    taken: list[tuple[float, float, float]] = []
    named: set[str] = set()
    for item in sorted(items, key=lambda item: -abs(item["score"])):
        length = 3 + 2.0 * len(item["word"])
        start = item["fact"] + 1 if item["fact"] <= 60 else item["fact"] - 1 - length
        free = not any(
            start < other["fact"] < start + length and abs(other["score"] - item["score"]) < half
            for other in items
            if other is not item
        ) and not any(
            start < end and begin < start + length and abs(y - item["score"]) < 2 * half
            for begin, end, y in taken
        )
        if free and len(named) < 14:
            taken.append((start, start + length, item["score"]))
            named.add(item["word"])
    return named


def dimension(m: Measurement, dim: int) -> Chart:
    """The spread of random cosines against dimension on log scales; `dim` is the vectors' own."""
    import altair as alt

    kinds = {
        "sd_normal": "normal coordinates",
        "sd_uniform": "coordinates uniform on [0, 1]",
        "theory_normal": "theory for normal: 1/√d",
    }
    values: list[dict[str, Any]] = [
        {"dimension": item["dimension"], "sd": item[key], "kind": kind}
        for item in m.items
        for key, kind in kinds.items()
        if item[key] and math.isfinite(item[key])
    ]
    order = list(kinds.values())
    base = alt.Chart(rows(values)).encode(
        x=alt.X("dimension:Q", title="dimension", scale=alt.Scale(type="log"),
                axis=alt.Axis(values=[2, 5, 10, 25, 50, 100, 200, 500, 1000])),
        y=alt.Y("sd:Q", title="standard deviation of the cosine",
                scale=alt.Scale(type="log", nice=False),
                axis=alt.Axis(values=[0.01, 0.02, 0.05, 0.1, 0.2, 0.5], format="~g")),
        color=alt.Color("kind:N", title=None, sort=order,
                        scale=alt.Scale(domain=order, range=[BLUE, ORANGE, GREY])),
    )  # fmt: skip
    theory = base.transform_filter(f"datum.kind == '{kinds['theory_normal']}'")
    measured = base.transform_filter(f"datum.kind != '{kinds['theory_normal']}'")
    here = alt.Chart(rows([{"dimension": dim, "words": f"these vectors: {dim}"}])).encode(
        x="dimension:Q"
    )
    return alt.layer(
        here.mark_rule(color=INK, strokeDash=[2, 3]),
        here.mark_text(align="left", dx=5, y=10, color=INK, fontSize=12).encode(text="words:N"),
        theory.mark_line(strokeDash=[5, 4]),
        measured.mark_point(filled=True, size=60, opacity=1),
    ).properties(width=540, height=280)
