"""The chart of a comparison: each measure once a row, a mark with its interval for each audit."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from evenhand.report.charts import BLUE, GREEN, GREY, ORANGE, PURPLE, Chart, rows, wrapped
from evenhand.report.comparison import Line
from evenhand.report.comparison_differences import RATIOS, Difference
from evenhand.report.comparison_words import apart, label_of
from evenhand.report.methods import METHODS, SCALES
from evenhand.report.wording import interval, number

__all__ = ["dumbbells"]

COLOURS = (ORANGE, BLUE, GREEN, PURPLE)
SHAPES = ("circle", "square", "diamond", "triangle-up", "triangle-down", "cross")
STEP = 11
"""How far apart, in points, the marks of one row lie."""


def dumbbells(lines: Sequence[Line], names: Sequence[str]) -> Chart:
    """A panel for each scale, a row a measure: the audits' marks with intervals, and a bar between.

    Lines that only one audit has are not drawn.
    """
    import altair as alt

    panels: dict[tuple[str, bool], list[Line]] = {}
    for line in lines:
        if line.shared:
            panels.setdefault((_scale(line), line.metric in RATIOS), []).append(line)
    longest = max(len(row) for line in lines for row in _row(line).split("\n"))
    drawn = [
        _panel(of_scale, names, title, log=log, legend=i == 0, extent=min(320, 30 + 6 * longest))
        for i, ((title, log), of_scale) in enumerate(panels.items())
    ]
    return alt.vconcat(*drawn, spacing=18).resolve_scale(color="shared", shape="shared")


def _scale(line: Line) -> str:
    """The words over the panel that a line belongs to: measures of one scale share it."""
    method = METHODS.get(line.metric)
    return SCALES[method.scale] if method and method.scale else label_of(line.metric)


def _panel(
    lines: Sequence[Line],
    names: Sequence[str],
    title: str,
    *,
    log: bool,
    legend: bool,
    extent: int,
) -> Chart:
    import altair as alt

    values = [row for line in lines for row in _marks(line, names)]
    links = [_link(line) for line in lines]
    y = alt.Y(
        "row:N", sort=[link["row"] for link in links], title=None,
        axis=alt.Axis(
            labelLimit=310, minExtent=extent, ticks=False, domain=False, grid=False,
            labelExpr="split(datum.label, '\\n')",
        ),
    )  # fmt: skip
    scale = (
        alt.Scale(type="log", nice=False, padding=10)
        if log
        else alt.Scale(zero=False, nice=False, padding=10)
    )
    x = alt.X("low:Q", title=None, scale=scale)
    key = alt.Legend(title=None, columns=1) if legend else None
    looks = {
        "color": alt.Color("audit:N", legend=key, scale=_range(names, COLOURS)),
        "shape": alt.Shape("audit:N", legend=key, scale=_range(names, SHAPES)),
    }
    base = alt.Chart(rows(links), title=title)
    layers = [
        base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="ideal:Q"),
        base.mark_rule(color="#c4c4c4", strokeWidth=4).encode(y=y, x=x, x2="high:Q"),
    ]
    for i, name in enumerate(names):
        shift = STEP * (i - (len(names) - 1) / 2)
        one = alt.Chart(rows([row for row in values if row["audit"] == name]))
        told = {"y": y, "tooltip": _tooltip()}
        layers += [
            one.mark_rule(strokeWidth=2.2, yOffset=shift).encode(
                x=x, x2="high:Q", color=looks["color"], **told
            ),
            one.mark_point(filled=True, size=64, opacity=1, yOffset=shift).encode(
                x=alt.X("value:Q", title=None, scale=scale), **looks, **told
            ),
        ]
    return alt.layer(*layers).properties(
        width=420, height={"step": max(26, STEP * (len(names) + 1))}
    )


def _range(names: Sequence[str], looks: Sequence[str]) -> Any:
    import altair as alt

    return alt.Scale(domain=list(names), range=[looks[i % len(looks)] for i in range(len(names))])


def _tooltip() -> list[Any]:
    import altair as alt

    return [
        alt.Tooltip("label:N"), alt.Tooltip("audit:N", title="audit"),
        alt.Tooltip("told:N", title="value"), alt.Tooltip("apart:N", title="difference"),
    ]  # fmt: skip


def _marks(line: Line, names: Sequence[str]) -> list[dict[str, Any]]:
    """A row for each audit that has the measure; an end that is not a number is not drawn."""
    return [
        {
            "row": _row(line), "label": label_of(line.metric, line.query, line.topic),
            "audit": name, "value": _drawn(m.value), "low": _drawn(m.low), "high": _drawn(m.high),
            "told": f"{number(m.value)} {interval(m.low, m.high)}",
            "apart": _apart(found, names[0]),
        }
        for m, name, found in zip(line.sides, names, line.differences, strict=True)
        if m is not None
    ]  # fmt: skip


def _apart(found: Difference | None, first: str) -> str:
    if found is None or found.kind == "none":
        return ""
    return f"{apart(found)} from {first.split(':')[0]}, {found.kind}"


def _link(line: Line) -> dict[str, Any]:
    values = [m.value for m in line.sides if m is not None and math.isfinite(m.value)]
    ideal = next((m.ideal for m in line.sides if m is not None), None)
    return {
        "row": _row(line), "ideal": ideal, "low": min(values, default=None),
        "high": max(values, default=None),
    }  # fmt: skip


def _row(line: Line) -> str:
    """The words beside a row; what stands over the panel is not said again."""
    label = label_of(line.metric, line.query, line.topic)
    return wrapped(label.removeprefix(f"{_scale(line)}, "), 48)


def _drawn(value: float) -> float | None:
    return value if math.isfinite(value) else None
