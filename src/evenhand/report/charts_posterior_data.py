"""Charts of a distance table itself, and of what the prior said beside the posterior."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.tables import CONNECTIONS, Table
from evenhand.report.charts import BLUE, GREY, INK, Chart, rows
from evenhand.report.charts_posterior_parts import LOOKS, name_of, panel_title, titled
from evenhand.report.charts_topic import CONNECTIONS as IN_WORDS
from evenhand.report.charts_topic import DASHES

if TYPE_CHECKING:
    from evenhand.posterior.fits import Fit
    from evenhand.posterior.models import Priors

__all__ = ["densities", "priors", "radial"]

Floats = NDArray[np.float64]
Density = Callable[[Floats], Floats]
Range = tuple[float, float]

RINGS = (0.5, 1.0, 1.5)
SIMILARITY, SIZES, ACROSS = [-0.5, 1.0], [15, 300], 430
"""The similarities and areas of the least and the largest mark of a radial picture; its width."""
MOST = 4000
"""So many draws at most stand behind a curve."""


def densities(table: Table) -> Chart:
    """Where the distances of each kind lie: the more two curves overlap, the less sets them apart.

    Above without the words about people, below with them.
    """
    import altair as alt

    grid = np.linspace(max(0.0, table.distance.min() - 0.1), table.distance.max() + 0.1, 141)
    values: list[dict[str, Any]] = []
    for k, level in enumerate(CONNECTIONS):
        distances = table.distance[table.connection == k]
        if np.unique(distances).size > 2:
            curve = _kernel(distances)(grid)
            values += [
                {"distance": round(float(x), 4), "density": round(float(y), 4), "kind": level}
                for x, y in zip(grid, curve, strict=True)
            ]
    if not values:
        raise InputError(f"{table.source}: no kind of attribute has three different distances")
    drawn = [level for level in CONNECTIONS if any(v["kind"] == level for v in values)]
    top = 1.05 * max(row["density"] for row in values)
    shown = alt.Legend(
        title=None, columns=2, symbolType="stroke", symbolSize=300, symbolOpacity=1,
        labelExpr=f"{dict(IN_WORDS)!r}[datum.value]",
    )  # fmt: skip

    def panel(title: str, levels: list[str], last: bool) -> Chart:
        base = alt.Chart().encode(
            x=alt.X("distance:Q", title="cosine distance" if last else None,
                    scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=8, format=".1f")),
            y=alt.Y("density:Q", title="density", stack=None,
                    scale=alt.Scale(domain=[0, top], nice=False), axis=alt.Axis(tickCount=4)),
            color=alt.Color("kind:N", legend=shown, scale=alt.Scale(
                domain=drawn, range=[LOOKS[level][0] for level in drawn])),
            tooltip=[
                alt.Tooltip("kind:N", title="attribute"),
                alt.Tooltip("distance:Q", format=".2f"), alt.Tooltip("density:Q", format=".2f"),
            ],
        )  # fmt: skip
        dash = alt.StrokeDash("kind:N", legend=shown, scale=alt.Scale(
            domain=drawn, range=[DASHES[level] for level in drawn]))  # fmt: skip
        return alt.layer(
            base.mark_area(opacity=0.08),
            base.mark_line(strokeWidth=2).encode(strokeDash=dash),
            data=rows([row for row in values if row["kind"] in levels]),
            title=panel_title(title), width=400, height=140,
        )  # fmt: skip

    without = [level for level in drawn if level != "human"]
    people = "human" in drawn
    panels = [panel("without words about people", without, not people)] if without else []
    if people:
        panels.append(panel("with words about people", drawn, True))
    return alt.vconcat(*panels, spacing=8).properties(
        title=titled(f"Distances from protected words to attributes, {name_of(table)}")
    )


def radial(table: Table, word: str, *, controls: int = 5, seed: int = 0) -> Chart:
    """The nearer the centre, the nearer to the word; the angle means nothing.

    All stereotypes and, drawn at random, a few controls of each kind.
    """
    import altair as alt

    chosen = _chosen(table.select_words([word]), controls, seed)
    reach = max(*RINGS, *(row["distance"] for row in chosen)) + 0.12
    turn = 2 * np.pi / (len(chosen) + 2)  # at the top a gap of three turns, for the rings' labels
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
    drawn = [level for level in CONNECTIONS if any(row["kind"] == level for row in chosen)]
    shown = alt.Legend(
        title=None, columns=2, labelExpr=f"{dict(IN_WORDS)!r}[datum.value]", symbolSize=80,
        symbolOpacity=1,
    )  # fmt: skip
    circles = [
        {"x": r * np.cos(a), "y": r * np.sin(a), "ring": r, "step": k}
        for r in RINGS
        for k, a in enumerate(np.linspace(0, 2 * np.pi, 73))
    ]
    ring = alt.Chart(rows(circles)).mark_line(color="#c9c9c9", strokeWidth=1).encode(
        x=alt.X("x:Q", scale=scale, axis=None), y=alt.Y("y:Q", scale=scale, axis=None),
        detail="ring:N", order="step:Q",
    )  # fmt: skip
    marks = alt.Chart(rows([{"x": 0, "y": r, "text": f"{r:g}"} for r in RINGS])).encode(
        x="x:Q", y="y:Q", text="text:N"
    )
    centre = alt.Chart(rows([{"x": 0, "y": 0, "text": word}])).encode(x="x:Q", y="y:Q")
    base = alt.Chart().encode(
        x="x:Q", y="y:Q",
        color=alt.Color("kind:N", legend=shown, sort=drawn, scale=alt.Scale(
            domain=drawn, range=[LOOKS[level][0] for level in drawn])),
        tooltip=[
            alt.Tooltip("word:N"), alt.Tooltip("kind:N", title="attribute"),
            alt.Tooltip("distance:Q", format=".3f"), alt.Tooltip("similarity:Q", format=".3f"),
        ],
    )  # fmt: skip
    dots = base.mark_point(filled=True, opacity=0.9).encode(
        shape=alt.Shape("kind:N", legend=shown, sort=drawn, scale=alt.Scale(
            domain=drawn, range=[LOOKS[level][1] for level in drawn])),
        size=alt.Size("similarity:Q", legend=None, scale=alt.Scale(
            domain=SIMILARITY, range=SIZES, clamp=True)),
    )  # fmt: skip
    names = [
        base.transform_filter(f"datum.side == '{side}'")
        .mark_text(align="left" if side == "right" else "right", fontSize=11)
        .encode(
            x="text_x:Q",
            y="text_y:Q",
            text="word:N",
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
        centre.mark_text(fontSize=12, fontWeight=600, color=INK, dy=14).encode(text="text:N"),
        data=rows(chosen), width=ACROSS, height=ACROSS,
        title=titled(
            f"What stands near “{word}”",
            "distance from the centre: cosine distance; larger marks: more similar",
        ),
    )  # fmt: skip


def _chosen(table: Table, controls: int, seed: int) -> list[dict[str, Any]]:
    """All stereotypes and some of the controls of one word, each kind the nearest first."""
    rng = np.random.default_rng(seed)
    chosen: list[dict[str, Any]] = []
    for k, level in enumerate(CONNECTIONS):
        places = np.flatnonzero(table.connection == k)
        if level in ("human", "none") and places.size > controls:
            places = rng.choice(places, controls, replace=False)
        chosen += [
            {
                "word": table.attributes[table.attribute[i]], "kind": level,
                "distance": float(table.distance[i]), "similarity": 1 - float(table.distance[i]),
            }
            for i in places[np.argsort(table.distance[places], kind="stable")]
        ]  # fmt: skip
    return chosen


def priors(fit: Fit, chosen: Priors) -> Chart:
    """A posterior much narrower than its prior was learnt from the data; one like it was not.

    Each curve is drawn to the same height.
    """
    import altair as alt

    panels: list[Chart] = []
    for name, draws, prior, (low, high) in _quantities(fit, chosen):
        least, most = float(draws.min()), float(draws.max())
        grid = np.union1d(
            np.linspace(min(least, low), max(most, high), 101), np.linspace(least, most, 61)
        )
        values = [
            {"x": float(x), "y": round(float(y), 4), "of": of}
            for of, curve in (("prior", prior(grid)), ("posterior", _kernel(draws, low)(grid)))
            for x, y in zip(grid, curve / curve.max(), strict=True)
        ]
        panels.append(_prior_panel(name, values, first=not panels))
    if not panels:
        raise InputError(f"priors: expected crossed or coefficients, got {fit.model}")
    return alt.concat(*panels, columns=2, spacing=14).properties(
        title=titled(
            f"What the data added to the prior: {fit.model}, {name_of(fit.table)}",
            "all curves drawn to the same height",
        )
    )


def _prior_panel(name: str, values: list[dict[str, Any]], first: bool) -> Chart:
    import altair as alt

    shown = (
        alt.Legend(title=None, symbolType="stroke", symbolSize=300, symbolOpacity=1)
        if first
        else None
    )
    order = ["prior", "posterior"]
    base = alt.Chart().encode(
        x=alt.X("x:Q", title=None, scale=alt.Scale(nice=False), axis=alt.Axis(tickCount=5)),
        y=alt.Y("y:Q", axis=None, stack=None),
        color=alt.Color("of:N", legend=shown, sort=order,
                        scale=alt.Scale(domain=order, range=[GREY, BLUE])),
        tooltip=[alt.Tooltip("of:N", title=" "), alt.Tooltip("x:Q", format=".3f")],
    )  # fmt: skip
    dash = alt.StrokeDash("of:N", legend=shown, sort=order,
                          scale=alt.Scale(domain=order, range=[[5, 3], [1, 0]]))  # fmt: skip
    return alt.layer(
        base.mark_area(opacity=0.12), base.mark_line(strokeWidth=2).encode(strokeDash=dash),
        data=rows(values), title=panel_title(name), width=200, height=90,
    )  # fmt: skip


def _quantities(fit: Fit, chosen: Priors) -> Iterator[tuple[str, Floats, Density, Range]]:
    """Name, draws and prior density of what is drawn, and where the prior has most of its mass."""
    from scipy.stats import halfcauchy, halfnorm, norm

    def normal(mean: float, sd: float) -> tuple[Density, Range]:
        return norm(mean, sd).pdf, (mean - 2.6 * sd, mean + 2.6 * sd)

    def error(scale: float) -> tuple[Density, Range]:
        return halfcauchy(0, scale).pdf, (0.0, 2.4 * scale)

    sigma = "σ: spread of the errors"
    if fit.model == "crossed":
        p, draws = chosen.crossed, fit.draws
        yield "δ: associated − different", draws["delta"], *normal(0, p.delta_sd)
        for k, group in enumerate(fit.entries["gamma"]):
            prior = normal(p.level_mean, p.level_sd)
            yield f"γ: mean distance, {group} words", draws["gamma"][..., k], *prior
        yield sigma, draws["scale"][..., 0], *error(p.error_scale)
        spread = draws["scale"][..., fit.entries["scale"].index("delta")]
        yield (
            "τ: spread of δ over words", spread, halfnorm(0, p.effect_scale).pdf,
            (0.0, 2.6 * p.effect_scale),
        )  # fmt: skip
    elif fit.model == "coefficients":
        q = chosen.thesis
        for k, level in enumerate(fit.entries["co"]):
            yield f"co: {level}", fit.draws["co"][..., k], *normal(0, q.coefficient_sd)
        yield sigma, fit.draws["sigma"], *error(q.error_scale)


def _kernel(values: Floats, lowest: float = -np.inf) -> Density:
    """A kernel estimate of the density; mass is mirrored at a bound of 0, not lost beyond it."""
    from scipy.stats import gaussian_kde

    flat = values.ravel()
    estimate = gaussian_kde(flat[:: -(-flat.size // MOST)])
    if lowest == 0:
        return lambda x: np.asarray(estimate(x) + estimate(-x))
    return lambda x: np.asarray(estimate(x))
