"""One heat map: a box a network and task, with its value in it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import Chart, rows
from evenhand.report.charts_posterior_parts import panel_title

__all__ = ["AWAY", "BACK", "RISING", "boxes"]

RISING = ("#eef4f9", "#8fc1e0", "#0b5c94")
"""From low to high."""
AWAY = ("#1f6fa8", "#f5f4f1", "#c2560a")
"""Below 0 and above it, which is worse."""
BACK = AWAY[::-1]
"""Below 0, which is worse, and above it."""
EMPTY, DARK, LIGHT = "#e9e9e7", "#1a1a1a", "#fdfdfd"
"""Boxes without a value, and what is written on pale and on strong colours."""
WIDE, HIGH = 60, 27
LEAST = 0.1
"""The least difference in accuracy that takes all colours."""


def boxes(
    values: Sequence[Mapping[str, Any]],
    title: str,
    tips: Mapping[str, str],
    colours: Sequence[str],
    *,
    alike: Sequence[Mapping[str, Any]] = (),
    last: bool = True,
) -> Chart:
    """Networks down, tasks across, by ways and then by shots; a task without a result is empty.

    `tips` are the fields that pointing at a box tells, with what they are called. Colours are on
    one scale with values of the same unit, `alike`. Only the `last` of several maps on each other
    names its tasks.
    """
    import altair as alt

    known = [one["value"] for one in (*values, *alike) if one["value"] is not None]
    if not known:
        raise InputError("values: expected at least one number, got none")
    names = list(dict.fromkeys(one["network"] for one in values))
    tasks = sorted({(one["ways"], one["shots"]) for one in values})
    domain = _domain(known, around_0=colours is not RISING)
    drawn = [{**one, "task": _task(one), "ink": _ink(one["value"], domain)} for one in values]
    there = {(one["network"], one["ways"], one["shots"]) for one in values}
    drawn += [
        {**dict.fromkeys(tips, "–"), "value": None, "network": name, "shown": "–", "mark": "",
         "interval": "no result", "task": _task({"ways": ways, "shots": shots}), "ink": DARK}
        for name in names for ways, shots in tasks if (name, ways, shots) not in there
    ]  # fmt: skip
    order = [_task({"ways": ways, "shots": shots}) for ways, shots in tasks]
    base = alt.Chart(rows(drawn)).encode(
        x=alt.X(
            "task:N", title=None, sort=None, scale=alt.Scale(domain=order),
            axis=alt.Axis(labels=last, ticks=False, domain=False, labelAngle=0, labelPadding=6,
                          labelExpr="split(datum.label, ', ')"),
        ),
        y=alt.Y(
            "network:N", title=None, sort=None, scale=alt.Scale(domain=names),
            axis=alt.Axis(ticks=False, domain=False, labelLimit=260, labelPadding=6),
        ),
        tooltip=[
            alt.Tooltip("network:N"), alt.Tooltip("task:N"),
            *(alt.Tooltip(f"{name}:Q", title=words, format=".3f") if name == "value"
              else alt.Tooltip(f"{name}:N", title=words) for name, words in tips.items()),
        ],
    )  # fmt: skip
    ink = alt.Color("ink:N", scale=None)
    fill = alt.Fill(
        "value:Q", legend=None,
        scale=alt.Scale(domain=domain, range=list(colours), interpolate="lab", clamp=True),
    )  # fmt: skip
    found = "isValid(datum.value)"
    return alt.layer(
        base.transform_filter(f"!{found}").mark_rect(color=EMPTY),
        base.transform_filter(found).mark_rect().encode(fill=fill),
        base.mark_text(fontSize=11).encode(text="shown:N", color=ink),
        base.transform_filter("datum.mark != ''")
        .mark_text(fontSize=11, dx=WIDE / 2 - 7, dy=-HIGH / 2 + 7)
        .encode(text="mark:N", color=ink),
        width={"step": WIDE}, height={"step": HIGH},
        title=panel_title(title) if title else alt.Undefined,
    )  # fmt: skip


def _task(one: Mapping[str, Any]) -> str:
    return f"{one['ways']} ways, {one['shots']} shots"


def _domain(values: Sequence[float], *, around_0: bool) -> list[float]:
    """Where the three colours stand; 0 is in the middle where it means something."""
    if around_0:
        most = max(abs(value) for value in values) or 1.0
        return [-most, 0.0, most]
    low, high = min(values), max(values)
    margin = max(0.0, LEAST - (high - low)) / 2  # little differences shall look like it
    return [low - margin, (low + high) / 2, high + margin]


def _ink(value: float | None, domain: Sequence[float]) -> str:
    """Light on the strong ends of the colours, dark elsewhere."""
    if value is None:
        return DARK
    low, middle, high = domain
    strong = (value - low) / (high - low) > 0.75 if middle else abs(value) > 0.75 * high
    return LIGHT if strong else DARK
