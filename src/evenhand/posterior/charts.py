"""The charts of posteriors: forests, densities, radial pictures, priors.

In every forest a dot is the posterior mean, the thick line the 50 % and the thin line the wide
highest-density interval.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from evenhand.charts import (
    BLUE,
    GREY,
    INK,
    ORANGE,
    Chart,
    ChartSet,
    curves,
    forest,
    forests,
    panel_heading,
    panels,
    row_of,
)
from evenhand.errors import InputError
from evenhand.posterior.checks import INTRA_CLASS
from evenhand.posterior.fits import measure_contrasts, measure_levels
from evenhand.posterior.radial import LOOKS, radial, telling_words
from evenhand.posterior.tables import CONNECTIONS, Table
from evenhand.posterior.thesis import THESIS
from evenhand.results import Comparison, Measurement
from evenhand.statistics.intervals import Floats
from evenhand.vectors.distances import distance_curves
from evenhand.wording import number, percent, probability, slug

if TYPE_CHECKING:
    from evenhand.posterior.checks import Assessment
    from evenhand.posterior.contrasts import Change
    from evenhand.posterior.fits import Fit
    from evenhand.posterior.models import Priors

Panels = Mapping[str, Sequence[Mapping[str, Any]]]
Density = Callable[[Floats], Floats]

TIMES = {"before": (ORANGE, "circle"), "after": (BLUE, "square"), "change": (INK, "diamond")}
MODELS = {"our model": (BLUE, "circle"), "published model": (GREY, "square")}
KINDS = (
    "associated, different: stereotypes of the word's own class, of another class;",
    "human: words about people; none: neutral words",
)
"""The connection classes, as two lines below a title."""


def fit_charts(
    report: Assessment, priors: Priors, *, words: Iterable[str] = (), seed: int = 0
) -> ChartSet:
    """The charts of `posterior fit`; radial pictures are of these words, or of two telling ones.

    Without the crossed model, levels and word means are those of separate, paper or coefficients.
    """
    fits, table, prob = report.fitted.fits, report.fitted.table, report.prob
    name, charts = Path(table.source).stem, ChartSet()
    crossed, naive = fits.get("crossed"), fits.get("coefficients")
    order = ("crossed", "separate", "paper", "coefficients")
    chosen = next((fits[model] for model in order if model in fits), None)
    if crossed:
        measured = {
            label: measure_contrasts(fit, prob)
            for label, fit in zip(MODELS, (crossed, naive), strict=True)
            if fit
        }
        charts.add("contrasts", partial(contrast_forest, measured, name))
        delta = measured["our model"].get("associated-different")
        if delta is not None:
            charts.add("word-deltas", partial(delta_forest, delta, name))
    if chosen:
        title = f"{name}, {chosen.model}"
        charts.add("levels", partial(level_forests, {title: {"": chosen}}, prob))
        charts.add("word-means", partial(word_means, {"": chosen}, prob))
    if naive and naive is not chosen:
        charts.add("coefficients", partial(level_forests, {name: {"": naive}}, prob))
    charts.add("densities", partial(distance_densities, table))
    for word in words or telling_words(table):
        charts.add(f"radial-{slug(word)}", partial(radial, table, word, seed=seed))
    for fit in (crossed, naive or fits.get("separate") or fits.get("baseline")):
        if fit:
            charts.add(f"priors-{fit.model}", partial(prior_curves, fit, priors))
    return charts


def change_charts(change: Change, prob: float = 0.95) -> ChartSet:
    """The charts of `posterior compare`; baseline has no connection classes to draw."""
    times = {"before": change.before, "after": change.after}
    charts = ChartSet()
    if change.before.levels:
        charts.add("changes", lambda: change_forest([*change.contrasts(prob).values()]))
        charts.add("levels", partial(level_forests, {"levels": times}, prob))
        charts.add("word-means", partial(word_means, times, prob))
    return charts


def topic_charts(topics: Mapping[str, Mapping[str, Mapping[str, Fit]]], prob: float) -> ChartSet:
    """The charts of several tables together, one per model: topic, then time, then model."""
    charts = ChartSet()
    times = [fits for by_time in topics.values() for fits in by_time.values()]
    for model in dict.fromkeys(model for fits in times for model in fits):
        chosen = {
            topic: {when: fits[model] for when, fits in by_time.items() if model in fits}
            for topic, by_time in topics.items()
        }
        charts.add(f"levels-{model}", partial(level_forests, chosen, prob))
    return charts


# --------------------------------------------------------------------------------------- forests


def _row(result: Measurement | Comparison, label: str, series: str = "") -> dict[str, Any]:
    """Mean, interval and 50 % interval of a quantity, or of its change."""
    about = result.details
    estimate = result.estimate if isinstance(result, Measurement) else result.change
    return row_of(
        estimate,
        label.replace("-", " − "),
        inner_low=about["inner_low"],
        inner_high=about["inner_high"],
        p=probability(about["p_below_zero"]),
        series=series,
    )


def _forests(rows: Panels, prob: float, *lines: str, **options: Any) -> Chart:
    level = f"thick line: 50 %, thin line: {percent(prob)} highest-density interval"
    return forests(
        rows,
        subtitle=[*lines, level],
        tips={"value": "mean", "interval": f"{percent(prob)} interval", "p": "P(< 0)"},
        **{"scale": lambda _: "", "width": 300, "beside": True, "step": 26, **options},
    )


def contrast_forest(measured: Mapping[str, Mapping[str, Measurement]], name: str) -> Chart:
    """Contrasts of our model and, in grey, of the published one; left of 0 the first is nearer."""
    return _forests(
        {name: [_row(m, m.query, model) for model in measured for m in measured[model].values()]},
        next(iter(measured["our model"].values())).prob,
        "below 0: the first kind of attribute is nearer to the protected words;",
        *KINDS,
        title="Which words are nearer?",
        x="difference of mean cosine distances",
        looks={model: MODELS[model] for model in measured},
        references=[{"value": 0}],
    )


def change_forest(comparisons: Sequence[Comparison]) -> Chart:
    """Each contrast before, after, and its paired change."""
    return _forests(
        {
            "before and after debiasing": [
                _row(result, c.query, when)  # type: ignore[arg-type]
                for c in comparisons
                for when, result in {"before": c.before, "after": c.after, "change": c}.items()
            ]
        },
        comparisons[0].change.prob,
        "change = after − before, paired by protected word and attribute;",
        "hard debiasing makes associated − different 0 by construction, which is no success",
        title="Contrasts",
        x="difference of mean cosine distances, and its change",
        looks=TIMES,
        references=[{"value": 0}],
    )


def level_forests(topics: Mapping[str, Mapping[str, Fit]], prob: float = 0.95) -> Chart:
    """Each connection class's mean by topic, before and, where there is one, after debiasing.

    Those of the published model are offsets of which only the differences are identified.
    """
    fits = [fit for times in topics.values() for fit in times.values()]
    models = {fit.model for fit in fits}
    if len(models) != 1 or models == {"baseline"}:
        names = ", ".join(sorted(models)) or "none"
        raise InputError(f"levels: expected fits of one model with levels, got {names}")
    paired = any(len(times) > 1 for times in topics.values())
    offsets = models == {"coefficients"}
    warning = ("their common shift is the prior's: only differences between them mean anything;",)
    return _forests(
        {
            topic: [
                _row(m, level, when if paired else level)
                for when, fit in times.items()
                for level, m in measure_levels(fit, prob).items()
            ]
            for topic, times in topics.items()
            if times
        },
        prob,
        *(warning if offsets else ()),
        *KINDS,
        title="Coefficients of the published model by kind of attribute"
        if offsets
        else "Mean distance to each kind of attribute",
        x="offset from the protected word's mean" if offsets else "mean cosine distance",
        looks=TIMES if paired else LOOKS,
        beside=paired,
        references=[{"value": 0}] if offsets else [],
    )


def delta_forest(delta: Measurement, name: str) -> Chart:
    """The difference for each word by class: left of 0, its own stereotypes are nearer."""
    by_class: dict[str, list[Measurement]] = {}
    for m in sorted(delta.select("word"), key=lambda m: m.value):
        by_class.setdefault(m.details.get("class") or "class not given", []).append(m)
    if not by_class:
        raise InputError(f"{name}: no protected word has associated attributes")
    means = {m.query: [_row(m, "all of them")] for m in delta.select("class")}
    return _forests(
        {
            group: [*means.get(group, []), *(_row(m, m.query) for m in words)]
            for group, words in by_class.items()
        },
        delta.prob,
        "below 0: nearer than to the words of other classes",
        title=f"How much nearer each word's own stereotypes are, {name}",
        x="associated − different, in cosine distance",
        references=[{"value": 0}],
        step=18,
    )


def word_means(fits: Mapping[str, Fit], prob: float = 0.95) -> Chart:
    """A panel for each kind of attribute, a row for each protected word: further left is nearer."""
    paired = len(fits) > 1
    rows: dict[str, list[dict[str, Any]]] = {}
    for when, fit in fits.items():
        for level, m in measure_levels(fit, prob).items():
            listed = sorted(m.parts, key=lambda part: (part.details.get("class", ""), part.query))
            rows.setdefault(level, []).extend(
                _row(part, part.query, when if paired else level) for part in listed
            )
    return _forests(
        rows,
        prob,
        "cosine distance; rows by class",
        *KINDS,
        columns=4,
        title="Mean distance of each word to each kind of attribute",
        looks=TIMES if paired else LOOKS,
        beside=paired,
        ticks=3,
        width=96,
        step=22 if paired else 14,
    )


def check_forest(checks: Mapping[str, Sequence[Mapping[str, Any]]]) -> Chart:
    """A row for each model: where its line misses the dashed one, it does not fit the data."""
    rows = [
        {
            **{end: check[end] for end in ("low", "high", "observed")},
            "label": model,
            "value": check["mean"],
            "series": "yes" if check["passed"] else "no",
        }
        for model, of_model in checks.items()
        for check in of_model
        if check["statistic"] == INTRA_CLASS and check["observed"] is not None
    ]
    if not rows:
        raise InputError("predictive check: no attribute recurs, so none correlates with itself")
    observed = float(rows[0]["observed"])
    return forest(
        rows,
        title="How much the distances of one word are correlated",
        subtitle=["tables generated by each model (99 % of them) beside the data"],
        x="correlation of an attribute's distances to different words",
        looks={"yes": (BLUE, "circle"), "no": (ORANGE, "triangle-up")},
        legend="generates tables like the data:",
        references=[
            {"value": observed, "text": f"data: {number(observed)}", "colour": INK},
            {"value": 0},
        ],
        tips={"observed": "observed", "value": "generated by the model"},
    ).properties(
        description="a word that is far from one protected word is often far from all of them. The "
        "dashed line says how much so in the data, each row how much so in tables that a model "
        "generates: a model whose line misses it cannot have generated the data, and its intervals "
        "are not reliable."
    )


# ------------------------------------------------------------------------------------- the data


def distance_densities(table: Table) -> Chart:
    """The distribution of the distances of each kind."""
    groups = {
        level: table.distance[table.connection == k]
        for k, level in enumerate(CONNECTIONS)
        if (table.connection == k).any()
    }
    return distance_curves(groups, Path(table.source).stem)


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
