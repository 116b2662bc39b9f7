"""What a report shows of posteriors: contrasts, words, distances, checks, calibration.

In every forest a dot is the posterior mean, the thick line the 50 % and the thin line the wide
highest-density interval.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.charts import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Chart,
    ChartSet,
    curves,
    data,
    densities,
    density_rows,
    forest,
    forests,
    heading,
    layer,
    look,
    panel_heading,
    panels,
    row_of,
)
from evenhand.errors import InputError
from evenhand.judging import SOME, excludes, is_below
from evenhand.posterior.checks import check_posterior
from evenhand.posterior.contrasts import measure_contrasts, measure_levels
from evenhand.posterior.tables import CONNECTIONS, read_table
from evenhand.posterior.tables import Table as Distances
from evenhand.posterior.thesis import THESIS
from evenhand.report.blocks import (
    Block,
    Cell,
    Columns,
    Prose,
    Section,
    Table,
    Text,
    cell,
    not_measured,
    result_table,
    share,
    span,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.vectors import COLOURS, CURVES, lead
from evenhand.report.vectors import CONNECTIONS as IN_WORDS
from evenhand.report.verdicts import Number
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.wording import number, percent, probability, slug

if TYPE_CHECKING:
    from evenhand.posterior.checks import Assessment
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.fits import Fit
    from evenhand.posterior.models import Priors

prose = Prose("posterior")

Row = Mapping[str, Any]
Floats = NDArray[np.float64]
Density = Callable[[Floats], Floats]

SHAPES = ("circle", "square", "triangle-up", "diamond")
LOOKS = {level: (COLOURS[level], shape) for level, shape in zip(CONNECTIONS, SHAPES, strict=True)}
CROSSED, PUBLISHED = "our model", "published model"
MODELS = {CROSSED: (BLUE, "circle"), PUBLISHED: (GREY, "square")}
WORDS = {"protected word": (BLUE, "circle"), "mean of its class": (INK, "diamond")}
TIMES = {"before": (ORANGE, "circle"), "after": (BLUE, "square")}
KINDS = (
    "associated, different: stereotypes of the word's own class, of another class;",
    "human: words about people; none: neutral words",
)
"""The connection classes, as two lines below a title."""
INTRA_CLASS = "intra-class correlation by attribute"
WIDTH = 300
RHAT, ESS = 1.01, 400
"""Draws with a larger R-hat, or with fewer effective draws, are not reliable."""
DELTA = "associated-different"


# ------------------------------------------------------------------------------ sets of figures


def fit_charts(
    report: Assessment, priors: Priors, *, words: Iterable[str] = (), seed: int = 0
) -> ChartSet:
    """The figures of `posterior fit`; radial pictures are of these words, or of two telling ones.

    Without the crossed model, levels and word means are those of separate, paper or coefficients.
    """
    fits, table, prob = report.fitted.fits, report.fitted.table, report.prob
    name, figures = Path(table.source).stem, ChartSet()
    crossed, naive = fits.get("crossed"), fits.get("coefficients")
    order = ("crossed", "separate", "paper", "coefficients")
    chosen = next((fits[model] for model in order if model in fits), None)
    if crossed:
        measured = {
            label: measure_contrasts(fit, prob)
            for label, fit in ((CROSSED, crossed), (PUBLISHED, naive))
            if fit
        }
        figures.add("contrasts", partial(contrast_forest, measured, name))
        if DELTA in measured[CROSSED]:
            figures.add("word-deltas", partial(delta_forest, measured[CROSSED][DELTA], name))
    if chosen:
        title = f"{name}, {chosen.model}"
        figures.add("levels", partial(level_forests, {title: chosen}, prob))
        figures.add("word-means", partial(word_means, {title: chosen}, prob))
    if naive and naive is not chosen:
        figures.add("coefficients", partial(level_forests, {name: naive}, prob))
    figures.add("densities", partial(distance_densities, table))
    for word in words or telling_words(table):
        file = "radial-" + re.sub(r"\W+", "-", word)
        while file in figures.charts:
            file += "-"
        figures.add(file, partial(radial, table, word, seed=seed))
    published = naive or fits.get("separate") or fits.get("baseline")
    for fit in (crossed, published):
        if fit:
            figures.add(f"priors-{fit.model}", partial(prior_curves, fit, priors))
    checks = report.checks or {
        model: check_posterior(fit, seed=seed) for model, fit in fits.items()
    }
    rows = {model: [check.to_dict() for check in part] for model, part in checks.items()}
    figures.add("check", partial(check_forest, rows))
    return figures


def change_charts(change: Change, prob: float = 0.95) -> ChartSet:
    """The figures of `posterior compare`; baseline has no connection classes to draw."""
    times = {"before": change.before, "after": change.after}
    figures = ChartSet()
    if change.before.levels:
        figures.add("changes", lambda: change_forest(list(change.contrasts(prob).values())))
        figures.add("levels", partial(level_forests, times, prob))
        figures.add("word-means", partial(word_means, times, prob))
    return figures


def topic_charts(topics: Mapping[str, Mapping[str, Mapping[str, Fit]]], prob: float) -> ChartSet:
    """The figures of several tables together, one per model: topic, then time, then model.

    Without fits after, the figure is that of `level_forests`.
    """
    figures = ChartSet()
    times = [fits for by_time in topics.values() for fits in by_time.values()]
    for model in dict.fromkeys(model for fits in times for model in fits):
        chosen = {
            topic: {when: fits[model] for when, fits in by_time.items() if model in fits}
            for topic, by_time in topics.items()
        }
        figures.add(f"levels-{model}", partial(topic_forests, chosen, prob))
    return figures


# --------------------------------------------------------------------------------------- forests


def _row(result: Measurement | Comparison, label: str, **more: str) -> dict[str, Any]:
    """A row of a forest: mean, interval and 50 % interval of a quantity, or of its change."""
    names = ("inner_low", "inner_high")
    ends = {name: result.details[name] for name in names}
    p = probability(result.details["p_below_zero"])
    return row_of(_estimate(result), label, **ends, p=p, **more)


def _estimate(result: Measurement | Comparison) -> Estimate:
    return result.estimate if isinstance(result, Measurement) else result.change


def minus(contrast: str) -> str:
    """A contrast's name for readers.

    >>> minus("associated-different")
    'associated − different'
    """
    return contrast.replace("-", " − ")


def _options(prob: float, *lines: str) -> dict[str, Any]:
    """What all forests of posteriors have in common."""
    level = f"thick line: 50 %, thin line: {percent(prob)} highest-density interval"
    return {
        "subtitle": [*lines, level],
        "tips": {"value": "mean", "interval": f"{percent(prob)} interval", "p": "P(< 0)"},
    }


def contrast_forest(measured: Mapping[str, Mapping[str, Measurement]], name: str) -> Chart:
    """Contrasts of our model and, in grey, of the published one.

    A line left of 0 and clear of it says that the first kind of word is nearer.
    """
    rows = [
        _row(m, minus(m.query), series=model)
        for model, contrasts in measured.items()
        for m in contrasts.values()
    ]
    return _contrasts_forest(
        rows,
        title=f"Which words are nearer? Contrasts, {name}",
        x="difference of mean cosine distances",
        looks={model: MODELS[model] for model in measured if measured[model]},
        **_options(
            next(iter(measured[CROSSED].values())).prob,
            "below 0: the first kind of attribute is nearer to the protected words;",
            *KINDS,
        ),
    )


def change_forest(comparisons: Sequence[Comparison]) -> Chart:
    """Each contrast before, after, and its paired change."""
    rows = [
        _row(result, minus(c.query), series=when)
        for c in comparisons
        for when, result in _times(c).items()
    ]
    return _contrasts_forest(
        rows,
        title="Contrasts before and after debiasing",
        x="difference of mean cosine distances, and its change",
        looks={**TIMES, "change": (INK, "diamond")},
        **_options(
            comparisons[0].change.prob,
            "change = after − before, paired by protected word and attribute;",
            "hard debiasing makes associated − different 0 by construction, which is no success",
        ),
    )


_contrasts_forest = partial(
    forest,
    beside=True,
    references=[{"value": 0}],
    text="p",
    text_title="P(< 0)",
    width=WIDTH,
    step=30,
)


def _times(c: Comparison) -> dict[str, Measurement | Comparison]:
    return {"before": c.before, "after": c.after, "change": c}


def level_forests(fits: Mapping[str, Fit], prob: float = 0.95) -> Chart:
    """Each connection class's mean by topic: compare the classes within one panel.

    Those of the published model are offsets of which only the differences are identified.
    """
    return _level_forests(
        {
            topic: [_row(m, level, series=level) for level, m in measure_levels(fit, prob).items()]
            for topic, fit in fits.items()
        },
        {fit.model for fit in fits.values()},
        prob,
        looks=LOOKS,
        step=18,
    )


def topic_forests(topics: Mapping[str, Mapping[str, Fit]], prob: float = 0.95) -> Chart:
    """Each connection class's mean by topic, before and, where there is one, after debiasing."""
    fits = {topic: times for topic, times in topics.items() if times}
    if all(list(times) == ["before"] for times in fits.values()):
        return level_forests({topic: times["before"] for topic, times in fits.items()}, prob)
    rows: dict[str, list[dict[str, Any]]] = {}
    for topic, times in fits.items():
        measured = {when: measure_levels(fit, prob) for when, fit in times.items()}
        levels = dict.fromkeys(level for by_level in measured.values() for level in by_level)
        rows[topic] = [
            _row(by_level[level], level, series=when)
            for level in levels
            for when, by_level in measured.items()
            if level in by_level
        ]
    models = {fit.model for times in fits.values() for fit in times.values()}
    return _level_forests(rows, models, prob, looks=TIMES, beside=True, step=26)


def _level_forests(
    rows: Mapping[str, Sequence[Row]], models: set[str], prob: float, **options: Any
) -> Chart:
    if len(models) != 1 or models == {"baseline"}:
        names = ", ".join(sorted(models)) or "none"
        raise InputError(f"levels: expected fits of one model with levels, got {names}")
    offsets = models == {"coefficients"}
    warning = ("their common shift is the prior's: only differences between them mean anything;",)
    return forests(
        rows,
        title="Coefficients of the published model by kind of attribute"
        if offsets
        else "Mean distance to each kind of attribute",
        x="offset from the protected word's mean" if offsets else "mean cosine distance",
        scale=lambda _: "",
        references=[{"value": 0}] if offsets else [],
        width=WIDTH,
        **options,
        **_options(prob, *(warning if offsets else ()), *KINDS),
    )


def delta_forest(delta: Measurement, name: str) -> Chart:
    """The difference for each protected word by class, and the mean of the class's words.

    Left of 0, a word's own stereotypes are nearer to it than to words of other classes.
    """
    by_class: dict[str, list[Measurement]] = {}
    for m in delta.select("word"):
        by_class.setdefault(m.details.get("class", ""), []).append(m)
    if not by_class:
        raise InputError(f"{name}: no protected word has associated attributes")
    means = {m.query: m for m in delta.select("class")}
    order = sorted(by_class, key=lambda group: float(np.mean([m.value for m in by_class[group]])))
    word, mean = WORDS
    return forests(
        {
            group or "class not given": [
                *([_row(means[group], "all of them", series=mean)] if group in means else []),
                *(
                    _row(m, m.query, series=word)
                    for m in sorted(by_class[group], key=lambda m: m.value)
                ),
            ]
            for group in order
        },
        title=f"How much nearer each word's own stereotypes are, {name}",
        x="associated − different, in cosine distance",
        looks=WORDS if means else {word: WORDS[word]},
        scale=lambda _: "",
        references=[{"value": 0}],
        width=WIDTH,
        step=18,
        **_options(delta.prob, "below 0: nearer than to the words of other classes"),
    )


def word_means(fits: Mapping[str, Fit], prob: float = 0.95) -> Chart:
    """A panel for each kind of attribute, a row for each protected word: further left is nearer.

    With two fits, before and after, the row has both.
    """
    paired = len(fits) > 1
    if paired and tuple(fits) != tuple(TIMES):
        raise InputError(f"word means: expected one fit or before and after, got {', '.join(fits)}")
    listed = sorted(
        (
            (part.details.get("class", ""), part.query, level, when if paired else level, part)
            for when, fit in fits.items()
            for level, m in measure_levels(fit, prob).items()
            for part in m.parts
        ),
        key=lambda row: row[:2],
    )
    parts = {
        kind: [
            _row(part, word, series=series)
            for _, word, level, series, part in listed
            if level == kind
        ]
        for kind in CONNECTIONS
        if any(level == kind for _, _, level, _, _ in listed)
    }
    classes = ", ".join(dict.fromkeys(group for group, *_ in listed if group))
    first = next(iter(fits.values()))
    about = ", before and after debiasing" if paired else f", {Path(first.table.source).stem}"
    return forests(
        parts,
        columns=4,
        title=f"Mean distance of each word to each kind of attribute{about}",
        looks=TIMES if paired else LOOKS,
        beside=paired,
        scale=lambda _: "",
        ticks=3,
        width=96,
        step=22 if paired else 14,
        **_options(
            prob,
            f"cosine distance; rows by class: {classes}" if classes else "cosine distance",
            *KINDS,
        ),
    )


def check_forest(by_model: Mapping[str, Sequence[Row]], prob: float = 0.99) -> Chart:
    """A row for each model: where its line misses the dashed one, it does not fit the data."""
    rows = [
        {
            **{name: check[name] for name in ("low", "high", "observed")},
            "label": model,
            "value": check["mean"],
            "series": "yes" if check["passed"] else "no",
        }
        for model, checks in by_model.items()
        for check in checks
        if check["statistic"] == INTRA_CLASS
        and all(
            check[name] is not None and np.isfinite(check[name])
            for name in ("observed", "low", "high")
        )
    ]
    if not rows:
        raise InputError("predictive check: no attribute recurs, so none correlates with itself")
    observed = float(rows[0]["observed"])
    return forest(
        rows,
        title="Are the distances of one word correlated?",
        subtitle=[f"tables generated by each model ({percent(prob)} of them) beside the data"],
        x="correlation of an attribute's distances to different words",
        looks={"yes": (BLUE, "circle"), "no": (ORANGE, "triangle-up")},
        legend="generates tables like the data:",
        references=[
            {"value": observed, "text": f"data: {number(observed)}", "colour": INK},
            {"value": 0},
        ],
        tips={"observed": "observed", "value": "generated by the model", "series": "data inside"},
        width=WIDTH,
    )


def calibration_rows(shares: Sequence[Measurement]) -> list[dict[str, Any]]:
    """One row per share of simulated tables, and what the interval promises (`tick`)."""
    texts = {
        "coverage": "interval contains it",
        "false_positives": "false alarm",
        "power": "detected",
    }
    rows = []
    for m in shares:
        truth = m.details["truth"]
        label = f"truth {number(truth, 2) if truth else 0}: {texts[m.metric]}"
        rows.append(row_of(m, label, tick=m.ideal))
    return rows


def calibration_forest(shares: Sequence[Measurement]) -> Chart:
    """One row per share of simulated tables; the tick is what the interval promises."""
    prob = shares[0].details["interval_prob"]
    return forest(
        calibration_rows(shares),
        title="Do the intervals hold on tables like this one?",
        subtitle=[
            f"dot and line: share of {shares[0].n} simulated tables, 95 % interval;",
            f"tick: what a {percent(prob)} interval promises",
        ],
        x="share of simulated tables",
        tips={"value": "share", "tick": "promised"},
        digits=2,
        domain=[0, 1],
        ticks=5,
        tick_format=".0%",
        width=WIDTH,
        step=24,
    )


# ------------------------------------------------------------------------------------- the data


def distance_densities(table: Distances) -> Chart:
    """Distances of each kind: above without the words about people, below with them."""
    groups = {
        level: table.distance[table.connection == k]
        for k, level in enumerate(CONNECTIONS)
        if np.unique(table.distance[table.connection == k]).size > 2
    }
    if not groups:
        raise InputError(f"{table.source}: no kind of attribute has three different distances")
    looks = {level: CURVES[level] for level in groups}
    named = {IN_WORDS[level]: values for level, values in groups.items()}
    top = 1.05 * max(row["density"] for row in density_rows(named))
    parts = {"without words about people": [level for level in groups if level != "human"]}
    if "human" in groups:
        parts["with words about people"] = list(groups)
    charts = [
        densities(
            {IN_WORDS[level]: groups[level] for level in chosen},
            {IN_WORDS[level]: looks[level] for level in looks},
            x_title="cosine distance",
            title=panel_heading(title),
            area=True,
            width=400,
            height=140,
            y_scale={"domain": [0, top]},
        )
        for title, chosen in parts.items()
        if chosen
    ]
    return panels(
        charts, title=f"Distances from protected words to attributes, {Path(table.source).stem}"
    )


RINGS = (0.5, 1.0, 1.5)
SIMILARITY, SIZES, ACROSS = [-0.5, 1.0], [15, 300], 430
"""The similarities and areas of the smallest and largest mark of a radial picture; its width."""


def telling_words(table: Distances) -> tuple[str, ...]:
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


def radial(table: Distances, word: str, *, controls: int = 5, seed: int = 0) -> Chart:
    """The nearer to the centre, the nearer to the word; the angle means nothing.

    All stereotypes and, drawn at random, a few controls of each kind.
    """
    import altair as alt

    chosen = _chosen(table.select_words([word]), controls, seed)
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
    )


def _chosen(table: Distances, controls: int, seed: int) -> list[dict[str, Any]]:
    """All stereotypes and some of the controls of one word, each kind the nearest first."""
    rng = np.random.default_rng(seed)
    chosen: list[dict[str, Any]] = []
    for k, level in enumerate(CONNECTIONS):
        rows = np.flatnonzero(table.connection == k)
        if level in ("human", "none") and rows.size > controls:
            rows = rng.choice(rows, controls, replace=False)
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


def prior_curves(fit: Fit, chosen: Priors) -> Chart:
    """A posterior much narrower than its prior was learnt from the data; a similar one was not.

    Each curve is drawn to the same height.
    """
    looks = {"prior": (GREY, (5, 3)), "posterior": (BLUE, (1, 0))}
    charts: list[Chart] = []
    for name, draws, prior, (low, high) in _quantities(fit, chosen):
        start, end = float(draws.min()), float(draws.max())
        grid = np.union1d(
            np.linspace(min(start, low), max(end, high), 101), np.linspace(start, end, 61)
        )
        rows = [
            {"x": float(x), "y": round(float(y), 4), "series": series}
            for series, curve in (("prior", prior(grid)), ("posterior", _kernel(draws, low)(grid)))
            for x, y in zip(grid, curve / curve.max(), strict=True)
        ]
        charts.append(
            curves(
                rows,
                looks,
                x="x",
                y="y",
                title=panel_heading(name),
                area=True,
                tips={"x": "value"},
                x_axis={"tickCount": 5},
                y_axis={"labels": False, "ticks": False, "grid": False, "domain": False},
                width=200,
                height=90,
                key=not charts,
            )
        )
    if not charts:
        raise InputError(f"priors: expected crossed or a thesis model, got {fit.model}")
    return panels(
        charts,
        columns=2,
        title=f"What the data added to the prior: {fit.model}, {Path(fit.table.source).stem}",
        subtitle=["all curves drawn to the same height"],
    )


def _quantities(
    fit: Fit, chosen: Priors
) -> Iterator[tuple[str, Floats, Density, tuple[float, float]]]:
    """Name, draws and prior density of what is drawn, and where the prior has most of its mass."""
    from scipy.stats import halfcauchy, halfnorm, norm

    def normal(mean: float, sd: float) -> tuple[Density, tuple[float, float]]:
        return norm(mean, sd).pdf, (mean - 2.6 * sd, mean + 2.6 * sd)

    def error(scale: float) -> tuple[Density, tuple[float, float]]:
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
        limits = (0.0, 2.6 * p.spread_scale)

        def of_spread(x: Floats) -> Floats:
            scales = (p.spread_scale, p.negligible_scale)
            return np.asarray(np.mean([halfnorm(0, scale).pdf(x) for scale in scales], axis=0))

        yield "τ: spread of δ over words", spread, of_spread, limits
        if "interaction_stereotype" in fit.entries["scale"]:
            k = fit.entries["scale"].index("interaction_stereotype")
            yield "τ: spread of class × attribute", draws["scale"][..., k], of_spread, limits
    elif fit.model in THESIS:
        q = chosen.thesis
        means = {"m": "m: mean of a protected word, all of them"}
        means |= {"c": "c: mean of a word and kind of attribute, all of them"}
        for name, title in means.items():
            if name in fit.draws:
                yield title, fit.draws[name], *normal(q.mean, q.mean_sd)
        for k, level in enumerate(fit.entries.get("co", ())):
            yield f"co: {level}", fit.draws["co"][..., k], *normal(0, q.coefficient_sd)
        yield sigma, fit.draws["sigma"], *error(q.error_scale)


def _kernel(values: Floats, lowest: float = -np.inf) -> Density:
    """A kernel estimate of the density from at most 4,000 draws; mirrored at a bound of 0."""
    from scipy.stats import gaussian_kde

    flat = values.ravel()
    estimate = gaussian_kde(flat[:: -(-flat.size // 4000)])
    if lowest == 0:
        return lambda x: np.asarray(estimate(x) + estimate(-x))
    return lambda x: np.asarray(estimate(x))


# ------------------------------------------------------------------------------------- sections


def posterior_section(findings: Findings) -> Section:
    """A part for each topic that was modelled."""
    modelled = [stage.topic for stage in findings.of("posterior")]
    left = [topic.title for topic in findings.topics if topic.name not in modelled]
    blocks: list[Block] = [
        prose.text("question"),
        prose.text("range", prob=findings.settings["prob"]),
    ]
    if left:
        blocks.append(Text(f"Not modelled in a quick audit: {', '.join(left)}."))
    parts = (_topic(findings, topic.name, topic.title) for topic in findings.topics)
    return Section.of("posterior", "How certain is it?", parts, blocks)


def _stage(findings: Findings, topic: str) -> StageResult | None:
    """The stage of a topic that was modelled."""
    return next((s for s in findings.of("posterior", topic) if s.measurements), None)


def _contrasts(stage: StageResult, model: str = "crossed") -> dict[str, Measurement]:
    """The contrasts of a model by name."""
    return {
        m.query: m
        for m in stage.measurements
        if m.metric == "posterior_contrast" and m.details["model"] == model
    }


def posterior_numbers(findings: Findings, topic: str) -> tuple[Number, ...]:
    """The contrast to show with a verdict; none where its draws are not reliable."""
    stage = _stage(findings, topic)
    if stage is None or _doubts(stage, "the difference"):
        return ()
    delta = _contrasts(stage)[DELTA]
    label = prose.number_label(delta=delta)
    return (Number(label=label, value=delta.value, low=delta.low, high=delta.high, ideal=0.0),)


def _doubts(stage: StageResult, *names: str) -> list[str]:
    """Which draws are not reliable, and why; a missing number is a doubt."""
    diagnostics = stage.details["diagnostics"]
    return [
        prose.doubt(name=name, found=diagnostics[name], rhat=RHAT, ess=ESS)
        for name in names
        if name in diagnostics
        and not (
            (diagnostics[name]["rhat_max"] or 9) <= RHAT
            and (diagnostics[name]["ess_min"] or 0) >= ESS
        )
    ]


def _topic(findings: Findings, topic: str, title: str) -> Section:
    name = slug(topic)
    blocks: list[Block] = []
    stage = _stage(findings, topic)
    if stage is not None:
        delta = _contrasts(stage)[DELTA]
        drawn = any(s.distances is not None for s in findings.of("measures", topic))
        blocks += [
            _answer(delta, lead(findings.measured("measures", topic))),
            *_warnings(stage),
            *_contrast_blocks(stage, name, title),
            *_word_blocks(delta, name, title),
            *_distance_blocks(stage, name, title, drawn=drawn, seed=findings.run["seed"]),
            *_trust_blocks(stage, name),
            *_change_blocks(stage, name, title),
            prose.text("basis", content=stage.details),
        ]
    blocks += not_measured(findings.skipped("posterior", topic), lambda skip: skip["metric"])
    return Section(f"posterior-{name}", f"{title}, modelled", blocks)


def _answer(delta: Measurement, tested: Measurement | None) -> Text:
    """What the contrast says, and whether the test that decides disagrees."""
    clear = excludes(delta.low, delta.high, 0.0)
    unclear = (
        tested is not None and tested.p_value is not None and not is_below(tested.p_value, SOME)
    )
    return prose.text("answer", delta=delta, lead=tested if clear and unclear else None)


def _warnings(stage: StageResult) -> list[Block]:
    warnings = [prose.unreliable(doubt) for doubt in _doubts(stage, "the difference")]
    warnings += [
        prose.unreliable_change(doubt) for doubt in _doubts(stage, "after debiasing", "the change")
    ]
    missed = [
        check["statistic"]
        for check in stage.details["checks"]["crossed"]
        if check["observed"] is not None and not check["passed"]
    ]
    if missed:
        warnings.append(prose.missed(missed))
    return [Text(warning, "warning") for warning in warnings]


def _columns(prob: float) -> Columns:
    def shown(show: Callable[[Estimate], Cell]) -> Callable[[Any], Cell]:
        return lambda result: show(_estimate(result))

    def below_zero(result: Measurement | Comparison) -> Cell:
        p = result.details["p_below_zero"]
        return Cell(probability(p), p)

    return {
        "Mean": shown(lambda m: cell(m.value)),
        f"{percent(prob)} interval": shown(lambda m: span(m.low, m.high)),
        "Probability of being below 0": below_zero,
    }


def _contrast_blocks(stage: StageResult, name: str, title: str) -> list[Block]:
    """The contrasts of our model, beside those of the published one."""
    measured = {CROSSED: _contrasts(stage), PUBLISHED: _contrasts(stage, "coefficients")}
    prob = measured[CROSSED][DELTA].prob
    return [
        prose.figure(
            f"posterior-contrasts-{name}",
            lambda: contrast_forest(measured, title),
            "contrasts",
            contrasts=[(minus(name), m) for name, m in measured[CROSSED].items()],
            title=title,
            prob=prob,
        ),
        result_table(
            prose.table_contrasts(),
            ("Difference", "Model"),
            (
                (minus(m.query), model, m)
                for model, contrasts in measured.items()
                for m in contrasts.values()
            ),
            _columns(prob),
        ),
    ]


def _word_blocks(delta: Measurement, name: str, title: str) -> list[Block]:
    """The difference for each class and for each protected word."""
    words, classes = delta.select("word"), delta.select("class")
    if not words:
        return []
    return [
        prose.figure(
            f"posterior-words-{name}",
            lambda: delta_forest(delta, title),
            "words",
            classes=[(m.query, m) for m in classes],
            title=title,
            prob=delta.prob,
        ),
        result_table(
            "The difference for each class and each protected word",
            ("Word", "Class"),
            (
                *(("all of them", m.query, m) for m in classes),
                *((m.query, m.details.get("class") or "not given", m) for m in words),
            ),
            _columns(delta.prob),
            words=True,
            folded=True,
        ),
    ]


def _distance_blocks(
    stage: StageResult, name: str, title: str, *, drawn: bool, seed: int
) -> list[Block]:
    """Radial pictures of two telling words; the densities where no other section has them."""
    if stage.distances is None:
        return []
    table = read_table(stage.distances)
    blocks: list[Block] = []
    if not drawn:
        figure = prose.figure(
            f"posterior-densities-{name}",
            lambda: distance_densities(table),
            "densities",
            title=title,
        )
        blocks += [] if isinstance(figure, Text) else [figure]
    for index, word in enumerate(telling_words(table), 1):
        own = table.select_words([word])
        near = sorted(
            (float(distance), own.attributes[attribute])
            for distance, kind, attribute in zip(
                own.distance, own.connection, own.attribute, strict=True
            )
            if kind == 0
        )
        blocks.append(
            prose.figure(
                f"posterior-radial-{index}-{name}",
                partial(radial, table, word, seed=seed),
                "radial",
                word=word,
                nearest=index == 1,
                near=near,
            )
        )
    return blocks


def _trust_blocks(stage: StageResult, name: str) -> list[Block]:
    """Does the model generate such data, do its intervals hold, did it converge?"""
    labels = {"crossed": CROSSED, "coefficients": PUBLISHED}
    by_model = {labels[model]: checks for model, checks in stage.details["checks"].items()}
    figure = prose.figure(
        f"posterior-check-{name}",
        lambda: check_forest(by_model),
        "check",
        checks=[
            (model, check)
            for model, checks in by_model.items()
            for check in checks
            if check["statistic"] == INTRA_CLASS
        ],
    )
    blocks: list[Block] = [] if isinstance(figure, Text) else [figure]  # no attribute recurs
    shares = [m for m in stage.measurements if "interval_prob" in m.details]
    if shares:
        rows = calibration_rows(shares)
        blocks += [
            prose.figure(
                f"posterior-calibration-{name}",
                lambda: calibration_forest(shares),
                "calibration",
                rows=rows,
            ),
            Table.of(
                f"The interval on {shares[0].n} simulated tables each",
                ("On tables with", "Share", "95 % interval", "Promised"),
                (
                    (
                        row["label"],
                        share(row["value"]),
                        Cell(f"{percent(row['low'])} to {percent(row['high'])}", row["low"]),
                        share(row["tick"]),
                    )
                    for row in rows
                ),
                folded=True,
            ),
        ]
    blocks.append(
        Table.of(
            prose.table_diagnostics(),
            ("Model of", "R-hat, largest", "Effective draws, fewest", "Of"),
            (
                (of, cell(draws["rhat_max"]), cell(draws["ess_min"], 0), draws["worst"])
                for of, draws in stage.details["diagnostics"].items()
            ),
            folded=True,
        )
    )
    return blocks


def _change_blocks(stage: StageResult, name: str, title: str) -> list[Block]:
    """The contrasts before and after hard debiasing, where they could be computed."""
    if not stage.comparisons:
        return []
    first = stage.comparisons[0]
    prob = first.change.prob
    return [
        prose.text("changed", equalised=stage.details["equalised"]),
        prose.figure(
            f"posterior-change-{name}",
            lambda: change_forest(stage.comparisons),
            "change",
            title=title,
            times={when: _estimate(result) for when, result in _times(first).items()},
            prob=prob,
        ),
        result_table(
            "Differences before and after hard debiasing",
            ("Difference", "When"),
            (
                (minus(c.query), when, result)
                for c in stage.comparisons
                for when, result in _times(c).items()
            ),
            _columns(prob),
            folded=True,
        ),
    ]
