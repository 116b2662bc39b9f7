"""Radial pictures: what is near a protected word."""

from __future__ import annotations

from typing import Any

import numpy as np

from evenhand.charts import (
    BLUE,
    GREEN,
    GREY,
    INK,
    ORANGE,
    PURPLE,
    Chart,
    data,
    heading,
    layer,
    look,
)
from evenhand.posterior.tables import CONNECTIONS, Table
from evenhand.vectors.distances import CONNECTIONS as IN_WORDS

SHAPES = ("circle", "square", "triangle-up", "diamond")
LOOKS = dict(zip(CONNECTIONS, zip((ORANGE, BLUE, PURPLE, GREEN), SHAPES, strict=True), strict=True))
RINGS = (0.5, 1.0, 1.5)
CONTROLS = 5
SIMILARITY, SIZES, ACROSS = [-0.5, 1.0], [15, 300], 430
"""The similarities and areas of the smallest and largest mark of a radial picture; its width."""


def telling_words(table: Table) -> tuple[str, ...]:
    """The protected words whose own stereotypes are nearest and farthest, beside those of others.

    By the plain difference of the two mean distances; the first word where none has both kinds.
    """
    gaps: dict[str, float] = {}
    for i, word in enumerate(table.words):
        own, other = (table.distance[(table.word == i) & (table.connection == k)] for k in (0, 1))
        if own.size and other.size:
            gaps[word] = float(np.mean(own) - np.mean(other))
    if not gaps:
        return table.words[:1]
    return tuple(dict.fromkeys((min(gaps, key=gaps.__getitem__), max(gaps, key=gaps.__getitem__))))


def radial(table: Table, word: str, *, seed: int = 0) -> Chart:
    """The nearer to the centre, the nearer to the word; the angle means nothing.

    All stereotypes and, drawn at random, `CONTROLS` words of each other kind.
    """
    import altair as alt

    chosen = _chosen(table.select_words([word]), seed)
    reach = max(*RINGS, *(row["distance"] for row in chosen)) + 0.12
    turn = 2 * np.pi / (len(chosen) + 2)  # a gap of three turns at the top, for the rings' labels
    for k, row in enumerate(chosen):
        angle = np.pi / 2 - (k + 1.5) * turn
        right = np.cos(angle) >= 0
        row["x"], row["y"] = (row["distance"] * f(angle) for f in (np.cos, np.sin))
        row["angle"] = float(-np.degrees(angle) + (0 if right else 180))
        row["side"] = "right" if right else "left"
        size = np.interp(row["similarity"], SIMILARITY, SIZES)
        out = row["distance"] + (5 + np.sqrt(size / np.pi)) * 2 * reach / ACROSS
        row["text_x"], row["text_y"] = (out * f(angle) for f in (np.cos, np.sin))
    scale = alt.Scale(domain=[-reach, reach], nice=False)
    levels_shown = {
        IN_WORDS[level]: LOOKS[level]
        for level in CONNECTIONS
        if any(row["kind"] == IN_WORDS[level] for row in chosen)
    }
    colour, shape = look("kind", levels_shown)
    colour.legend.columns = shape.legend.columns = 2
    circles = [
        {"x": r * np.cos(a), "y": r * np.sin(a), "ring": r, "step": k}
        for r in RINGS
        for k, a in enumerate(np.linspace(0, 2 * np.pi, 73))
    ]
    ring = (
        layer(data(circles))
        .mark_line(color="#c9c9c9", strokeWidth=1)
        .encode(
            x=alt.X("x:Q", scale=scale, axis=None),
            y=alt.Y("y:Q", scale=scale, axis=None),
            detail=alt.Detail("ring:N"),
            order=alt.Order("step:Q"),
        )
    )
    marks = layer(data([{"x": 0, "y": r, "text": f"{r:g}"} for r in RINGS])).encode(
        x=alt.X("x:Q"), y=alt.Y("y:Q"), text=alt.Text("text:N")
    )
    centre = layer(data([{"x": 0, "y": 0, "text": word}])).encode(x=alt.X("x:Q"), y=alt.Y("y:Q"))
    base = layer().encode(
        x=alt.X("x:Q"),
        y=alt.Y("y:Q"),
        color=colour,
        tooltip=[
            alt.Tooltip("word:N"),
            alt.Tooltip("kind:N", title="attribute"),
            alt.Tooltip("distance:Q", format=".3f"),
            alt.Tooltip("similarity:Q", format=".3f"),
        ],
    )
    sizes = alt.Scale(domain=SIMILARITY, range=SIZES, clamp=True)
    dots = base.mark_point(filled=True, opacity=0.9).encode(
        shape=shape, size=alt.Size("similarity:Q", legend=None, scale=sizes)
    )
    names = [
        base.transform_filter(f"datum.side == '{side}'")
        .mark_text(align="left" if side == "right" else "right", fontSize=11)
        .encode(
            x=alt.X("text_x:Q"),
            y=alt.Y("text_y:Q"),
            text=alt.Text("word:N"),
            color=alt.value(INK),
            angle=alt.Angle("angle:Q", scale=None),
        )
        for side in ("right", "left")
    ]
    return alt.layer(
        ring,
        marks.mark_text(fontSize=11, color=GREY, dy=-6, align="right"),
        centre.mark_point(filled=True, size=70, color=GREY, opacity=1),
        *names,
        dots,
        centre.mark_text(fontSize=12, fontWeight=600, color=INK, dy=14).encode(
            text=alt.Text("text:N")
        ),
        data=data(chosen),
        width=ACROSS,
        height=ACROSS,
        title=heading(
            f"What is near “{word}”",
            "distance from the centre: cosine distance; larger marks: more similar",
        ),
        description="of all protected words the own stereotypes of this one are nearest or "
        "farthest, relative to those of other classes; the nearer a mark is to the centre, the "
        "nearer the word is in the vectors. The direction means nothing, and of the control words "
        "only a few are shown, drawn at random.",
    )


def _chosen(table: Table, seed: int) -> list[dict[str, Any]]:
    """All stereotypes and some of the controls of one word, each kind the nearest first."""
    rng = np.random.default_rng(seed)
    chosen: list[dict[str, Any]] = []
    for k, level in enumerate(CONNECTIONS):
        rows = np.flatnonzero(table.connection == k)
        if level in ("human", "none") and rows.size > CONTROLS:
            rows = rng.choice(rows, CONTROLS, replace=False)
        chosen += [
            {
                "word": table.attributes[table.attribute[i]],
                "kind": IN_WORDS[level],
                "distance": float(table.distance[i]),
                "similarity": 1 - float(table.distance[i]),
            }
            for i in rows[np.argsort(table.distance[rows], kind="stable")]
        ]
    return chosen
