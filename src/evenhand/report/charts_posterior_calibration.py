"""The chart of a calibration: what intervals do on tables whose truth is known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.report.charts import BLUE, INK, Chart, rows
from evenhand.report.charts_posterior_parts import WIDE, titled
from evenhand.report.wording import number, percent

__all__ = ["calibration", "calibration_rows"]


def calibration_rows(found: Sequence[Mapping[str, Any]], prob: float) -> list[dict[str, Any]]:
    """A row a share: what it is a share of, its interval, and what intervals of `prob` promise.

    >>> share = {"value": 0.9, "low": 0.8, "high": 1.0}
    >>> made = [{"truth": 0.0, "tables": 80, "held": share, "found": share}]
    >>> [(row["label"], row["promised"]) for row in calibration_rows(made, 0.75)]
    [('truth 0: interval holds it', 0.75), ('truth 0: false alarm', 0.25)]
    """
    values = []
    for row in found:
        truth = f"truth {number(row['truth'], 2) if row['truth'] else 0}"
        excludes = ("found", None) if row["truth"] else ("false alarm", 1 - prob)
        for key, what, promised in (("held", "interval holds it", prob), ("found", *excludes)):
            values.append({"label": f"{truth}: {what}", "promised": promised, **row[key]})
    return values


def calibration(found: Sequence[Mapping[str, Any]], prob: float) -> Chart:
    """A row a share of simulated tables; the upright stroke is what the interval promises."""
    import altair as alt

    values = [
        {**row, "interval": f"{percent(row['low'])} to {percent(row['high'])}"}
        for row in calibration_rows(found, prob)
    ]
    base = alt.Chart(rows(values)).encode(
        y=alt.Y("label:N", sort=None, title=None,
                axis=alt.Axis(ticks=False, domain=False, grid=True, labelLimit=240)),
        tooltip=[
            alt.Tooltip("label:N", title=" "), alt.Tooltip("value:Q", title="share", format=".0%"),
            alt.Tooltip("interval:N"),
        ],
    )  # fmt: skip
    x = alt.X("low:Q", title="share of simulated tables", scale=alt.Scale(domain=[0, 1]),
              axis=alt.Axis(format=".0%", tickCount=5))  # fmt: skip
    promised = base.transform_filter("isValid(datum.promised)")
    return alt.layer(
        base.mark_rule(strokeWidth=2.5, color=BLUE).encode(x=x, x2="high:Q"),
        base.mark_point(filled=True, size=60, opacity=1, color=BLUE).encode(x="value:Q"),
        promised.mark_tick(color=INK, thickness=2, size=16).encode(x="promised:Q"),
    ).properties(
        width=WIDE, height={"step": 24},
        title=titled(
            "Do the intervals keep their word on tables like this one?",
            f"dot and line: share of {found[0]['tables']} simulated tables, 95 % interval;",
            f"upright stroke: what a {percent(prob)} interval promises",
        ),
    )  # fmt: skip
