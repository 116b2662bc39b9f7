"""The curves of few-shot trainings: accuracy and loss, in training and in validation."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.errors import InputError
from evenhand.report.charts import BLUE, GREY, INK, ORANGE, Chart, rows, wrapped
from evenhand.report.charts_fewshot_parts import finite
from evenhand.report.charts_posterior_parts import titled

__all__ = ["kept", "learning_curves"]

LINES = {"training": (ORANGE, "circle"), "validation": (BLUE, "square")}
MEASURES = {"accuracy": ("accuracy", 130), "loss": ("loss", 90)}
"""The title and height of each panel."""

Points = Sequence[Mapping[str, Any]]


def learning_curves(curves: Mapping[str, Points]) -> Chart:
    """A panel a training: accuracy above, loss below, over the episodes it has learned from.

    Training figures are means since the point before, on classes it learns from; validation is on
    classes it has not seen, the same episodes every time. All panels have the same scales. The
    black diamond is the point whose weights were kept. A line breaks where a value is no number.
    """
    import altair as alt

    values = {name: _values(name, points) for name, points in curves.items()}
    every = [row for part in values.values() for row in part]
    if not any(row["value"] is not None for row in every):
        raise InputError("curves: expected points with numbers, got none")
    columns = 2 if len(values) == 4 else min(3, len(values))
    domains = {measure: _domain(every, measure) for measure in MEASURES}
    start, last = (end(row["episodes"] for row in every) for end in (min, max))
    panels = []
    for place, (name, part) in enumerate(values.items()):
        at_left, lowest = place % columns == 0, place >= len(values) - columns
        stack = [
            _panel(
                [row for row in part if row["measure"] == measure], measure, domains[measure],
                [0, max(1, last)], width=(440, 260, 180)[columns - 1], left=at_left,
                below=lowest and measure == "loss",
            )
            for measure in MEASURES
        ]  # fmt: skip
        lines = wrapped(name, 80 // columns).split("\n")
        heading = alt.TitleParams(lines, fontSize=12, frame="group", offset=4)
        stack[0] = stack[0].properties(title=heading)
        panels.append(alt.vconcat(*stack, spacing=16, bounds="flush"))
    broken = any(row["value"] is None and row["episodes"] > start for row in every)
    return alt.concat(*panels, columns=columns, spacing=16, align="each").properties(
        title=titled(
            "Learning curves",
            "training: mean since the point before, on training classes; "
            "validation: on classes not trained on;",
            "diamond: the point that was kept, the first of largest validation accuracy",
            *(["a line breaks where a value is no number"] if broken else []),
        )
    )


def kept(points: Points) -> int | None:
    """The place of the point whose weights training keeps.

    >>> kept([{"validation_accuracy": x} for x in (0.5, float("nan"), 0.7, 0.7)])
    2
    """
    found = [(finite(point["validation_accuracy"]), -i) for i, point in enumerate(points)]
    told = [pair for pair in found if pair[0] is not None]
    return -max(told)[1] if told else None


def _values(name: str, points: Points) -> list[dict[str, Any]]:
    best = kept(points)
    return [
        {
            "run": name, "episodes": point["episodes"], "series": series, "measure": measure,
            "value": finite(point[f"{series}_{measure}"]),
            "kept": place == best and series == "validation",
        }
        for place, point in enumerate(points)
        for measure in MEASURES
        for series in LINES
    ]  # fmt: skip


def _domain(values: Sequence[Mapping[str, Any]], measure: str) -> list[float]:
    found = [r["value"] for r in values if r["measure"] == measure and r["value"] is not None]
    low, high = min(found, default=0.0), max(found, default=1.0)
    margin = 0.05 * (high - low) or 0.05
    return [low - margin, high + margin]


def _panel(
    values: Sequence[Mapping[str, Any]], measure: str, domain: list[float], span: list[int],
    *, width: int, left: bool, below: bool,
) -> Chart:  # fmt: skip
    import altair as alt

    title, height = MEASURES[measure]
    colour, shape = (
        alt.Scale(domain=list(LINES), range=[look[i] for look in LINES.values()]) for i in (0, 1)
    )
    base = alt.Chart(rows(values)).encode(
        x=alt.X("episodes:Q", title="episodes" if below else None, scale=alt.Scale(domain=span),
                axis=alt.Axis(format=",d", tickCount=max(2, width // 80), labels=below)),
        y=alt.Y("value:Q", title=title if left else None,
                scale=alt.Scale(domain=domain, nice=False),
                axis=alt.Axis(tickCount=5, labels=left, minExtent=36 if left else 0)),
        color=alt.Color("series:N", title=None, scale=colour),
        tooltip=[
            "run:N", "series:N", alt.Tooltip("episodes:Q", format=",d"),
            alt.Tooltip("value:Q", title=measure, format=".4f"),
        ],
    )  # fmt: skip
    chosen = base.transform_filter("datum.kept")
    return alt.layer(
        base.mark_line(strokeWidth=1.8),
        base.mark_point(filled=True, size=22, opacity=1).encode(
            shape=alt.Shape("series:N", title=None, scale=shape)
        ),
        chosen.mark_rule(color=GREY, strokeDash=[4, 3]).encode(
            y=alt.value(0), y2=alt.value(height), color=alt.value(GREY)
        ),
        chosen.mark_point(shape="diamond", filled=True, size=110, opacity=1).encode(
            color=alt.value(INK)
        ),
        width=width, height=height,
    )  # fmt: skip
