"""The figure of the data: which classes lean to men and which to women."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.report.charts import BLUE, GREY, INK, ORANGE, Chart, rows
from evenhand.report.wording import interval, number, p_value, percent
from evenhand.results import Measurement

__all__ = ["MOST", "odds"]

MOST = 40
"""Classes that are drawn; of more, those that lean most to either side."""
LOOKS = {
    "leans to men": (BLUE, "circle"), "leans to women": (ORANGE, "triangle-up"),
    "not clear": (GREY, "square"),
}  # fmt: skip


def odds(measured: Sequence[Measurement], sure: float) -> Chart:
    """Odds ratios on a logarithmic axis, the most male class at the top.

    A class leans where its corrected p-value is below `sure`.
    """
    import altair as alt

    ordered = sorted(measured, key=lambda m: -m.value)
    if len(ordered) > MOST:
        ordered = [*ordered[: MOST // 2], *ordered[-MOST // 2 :]]
    values = [
        {
            "class": m.query, "value": m.value, "low": m.low, "high": m.high,
            "told": f"{number(m.value, 2)} {interval(m.low, m.high, 2)}",
            "p": p_value(m.details["p_holm"]),
            "men": m.details["male"], "women": m.details["female"],
            "kind": "not clear" if m.details["p_holm"] >= sure
            else "leans to men" if m.value > 1 else "leans to women",
        }
        for m in ordered
    ]  # fmt: skip
    shown = [kind for kind in LOOKS if any(row["kind"] == kind for row in values)]
    colour, shape = (
        alt.Scale(domain=shown, range=[LOOKS[kind][i] for kind in shown]) for i in (0, 1)
    )
    low = min(0.5, *(row["low"] / 1.1 for row in values))
    high = max(2.0, *(row["high"] * 1.1 for row in values))
    x = alt.X(
        "low:Q", title="odds among men over odds among women (logarithmic)",
        scale=alt.Scale(type="log", domain=[low, high], nice=False),
        axis=alt.Axis(values=_ticks(low, high), format="~g"),
    )  # fmt: skip
    base = alt.Chart(rows(values)).encode(
        y=alt.Y("class:N", sort=[row["class"] for row in values], title=None,
                axis=alt.Axis(ticks=False, domain=False, grid=True, labelLimit=200)),
        color=alt.Color("kind:N", title=None, scale=colour),
        tooltip=[
            alt.Tooltip("class:N"), alt.Tooltip("told:N", title="odds ratio"),
            alt.Tooltip("p:N", title="p, corrected"), alt.Tooltip("men:Q"), alt.Tooltip("women:Q"),
        ],
    )  # fmt: skip
    even = alt.Chart(rows([{"x": 1}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q")
    lines = base.mark_rule(strokeWidth=1.6).encode(x=x, x2="high:Q")
    dots = base.mark_point(filled=True, size=60, opacity=1).encode(
        x="value:Q", shape=alt.Shape("kind:N", title=None, scale=shape)
    )
    title = alt.TitleParams(
        "Which classes lean to men, which to women?",
        subtitle=[f"dot and line: odds ratio and its {percent(measured[0].prob)} interval"],
        subtitleColor=INK, subtitleFontSize=11,
    )  # fmt: skip
    return alt.layer(even, lines, dots, width=380, height={"step": 15}, title=title)


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, or these powers alone where that would be many.

    >>> _ticks(0.2, 5.0)
    [0.2, 0.5, 1, 2, 5]
    """
    powers = [f"1e{k}" for k in range(-30, 31)]
    fine = [float(step + power[1:]) for power in powers for step in "125"]
    ticks = [tick for tick in fine if low <= tick <= high]
    if len(ticks) > 10:
        ticks = [float(power) for power in powers if low <= float(power) <= high]
    return [int(tick) if tick >= 1 else tick for tick in ticks]
