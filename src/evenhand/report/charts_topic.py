"""Charts of one topic: the forest of its measures, the distances, the occupations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from evenhand.report.charts import BLUE, GREEN, GREY, INK, ORANGE, PALE, PURPLE, Chart, rows
from evenhand.report.methods import METHODS, SCALES, row_label
from evenhand.report.wording import interval
from evenhand.results import Measurement
from evenhand.vectors.distances import DistanceTable

__all__ = ["COLOURS", "CONNECTIONS", "DASHES", "density", "forest", "occupations"]

CONNECTIONS = {
    "associated": "stereotype of the word's own class",
    "different": "stereotype of another class",
    "human": "word about people",
    "none": "neutral word",
}
COLOURS = dict(zip(CONNECTIONS, (ORANGE, BLUE, PURPLE, GREEN), strict=True))
DASHES = dict(zip(CONNECTIONS, ([1, 0], [7, 3], [2, 2], [8, 2, 2, 2]), strict=True))


def forest(measurements: Sequence[Measurement], topic: str) -> Chart:
    """A row a measure: value, interval and what random words read; a panel for each scale."""
    import altair as alt

    panels = []
    for scale, title in SCALES.items():
        of_scale = [
            m for m in measurements if m.metric in METHODS and METHODS[m.metric].scale == scale
        ]
        if of_scale:
            panels.append(_forest_panel(of_scale, topic, title))
    return alt.vconcat(*panels, spacing=18)


def _forest_panel(measurements: Sequence[Measurement], topic: str, title: str) -> Chart:
    import altair as alt

    labels = [row_label(m, topic) for m in measurements]
    data = rows(
        [
            {
                "label": row_label(m, topic), "value": m.value, "low": m.low, "high": m.high,
                "interval": interval(m.low, m.high), "ideal": m.ideal,
                "null_low": m.details.get("null_low"), "null_high": m.details.get("null_high"),
                "null": interval(m.details["null_low"], m.details["null_high"])
                if "null_low" in m.details else None,
            }
            for m in measurements
        ]
    )  # fmt: skip
    y = alt.Y(
        "label:N", sort=labels, title=None,
        axis=alt.Axis(labelLimit=310, minExtent=320, ticks=False, domain=False, grid=False),
    )  # fmt: skip
    base = alt.Chart(data, title=title)
    told = [
        alt.Tooltip("label:N"), alt.Tooltip("value:Q", format=".3f"), alt.Tooltip("interval:N"),
        alt.Tooltip("null:N", title="random words"),
    ]  # fmt: skip
    scale = alt.Scale(zero=False, nice=False, padding=10)
    null = base.mark_bar(color=PALE, height=13).encode(
        y=y, x=alt.X("null_low:Q", title=None, scale=scale), x2="null_high:Q", tooltip=told
    )
    ideal = base.mark_rule(color=GREY, strokeDash=[4, 3]).encode(x="ideal:Q")
    line = base.mark_rule(color=BLUE, strokeWidth=2.5).encode(
        y=y, x="low:Q", x2="high:Q", tooltip=told
    )
    dot = base.mark_point(color=BLUE, filled=True, size=70, opacity=1).encode(
        y=y, x="value:Q", tooltip=told
    )
    return alt.layer(null, ideal, line, dot).properties(width=440, height={"step": 24})


def density(table: DistanceTable) -> Chart:
    """The distribution of cosine distances for each kind of connection."""
    import altair as alt
    from scipy.stats import gaussian_kde

    connection = table.connection()
    grid = np.linspace(max(0.0, table.distance.min() - 0.1), table.distance.max() + 0.1, 161)
    values: list[dict[str, Any]] = []
    for kind, words in CONNECTIONS.items():
        distances = table.distance[connection == kind]
        if np.unique(distances).size > 2:
            curve = gaussian_kde(distances)(grid)
            values += [
                {"distance": round(float(x), 4), "density": round(float(y), 4), "kind": words}
                for x, y in zip(grid, curve, strict=True)
            ]
    kinds = [words for words in CONNECTIONS.values() if any(v["kind"] == words for v in values)]
    colour = alt.Scale(domain=list(CONNECTIONS.values()), range=list(COLOURS.values()))
    dash = alt.Scale(domain=list(CONNECTIONS.values()), range=list(DASHES.values()))
    legend = alt.Legend(title=None, columns=2, symbolType="stroke", symbolSize=300, values=kinds)
    return (
        alt.Chart(rows(values))
        .mark_line(strokeWidth=2.2)
        .encode(
            x=alt.X(
                "distance:Q",
                title="cosine distance",
                scale=alt.Scale(nice=False),
                axis=alt.Axis(tickCount=10, format=".1f"),
            ),
            y=alt.Y("density:Q", title="density"),
            color=alt.Color("kind:N", scale=colour, legend=legend, sort=kinds),
            strokeDash=alt.StrokeDash("kind:N", scale=dash, legend=legend, sort=kinds),
        )
        .properties(width=560, height=260)
    )


def occupations(m: Measurement) -> Chart:
    """Each occupation between the two words at the ends, nearest the first end on top."""
    import altair as alt

    first, second = [key for key in m.items[0] if key not in ("word", "group", "score", "without")]
    data = rows(
        [
            {"word": item["word"], "score": item["score"], "group": f"held to be {item['group']}"}
            for item in m.items
        ]
    )
    groups = list(dict.fromkeys(f"held to be {item['group']}" for item in m.items))
    base = alt.Chart(data).encode(
        y=alt.Y(
            "word:N", title=None, sort=alt.EncodingSortField("score", order="descending"),
            axis=alt.Axis(ticks=False, domain=False, grid=True, labelFontSize=11),
        ),
    )  # fmt: skip
    legend = alt.Legend(title=None)
    dots = base.mark_point(filled=True, size=70, opacity=1).encode(
        x=alt.X(
            "score:Q",
            title=f"← nearer {second}  ·  cosine with {first} − {second}  ·  nearer {first} →",
        ),
        color=alt.Color(
            "group:N", legend=legend, scale=alt.Scale(domain=groups, range=[ORANGE, BLUE])
        ),
        shape=alt.Shape(
            "group:N", legend=legend, scale=alt.Scale(domain=groups, range=["circle", "square"])
        ),
    )
    zero = alt.Chart(rows([{"x": 0}])).mark_rule(color=INK, strokeDash=[4, 3]).encode(x="x:Q")
    return alt.layer(zero, dots).properties(width=560, height={"step": 15})
