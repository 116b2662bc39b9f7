"""Assessing fits: predictive checks, sensitivity to the prior, criteria and diagnostics.

The statistics of the predictive checks are the spread of all distances, the mean of every
connection class, and the intra-class correlation by attribute of the residuals from words and
classes. Models without attribute effects fail the last one: their rows are independent, real rows
are not.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.contrasts import (
    Named,
    class_contrasts,
    connection_contrasts,
    word_contrasts,
    word_levels,
)
from evenhand.posterior.crossed import CrossedData, CrossedPrior, build_crossed_fit
from evenhand.posterior.fits import (
    Criteria,
    Diagnostics,
    Difference,
    Fit,
    Summary,
    compare_models,
    compute_criteria,
    in_chains,
)
from evenhand.posterior.models import Fitted, Priors, fit
from evenhand.posterior.tables import CONNECTIONS, Table, read_table
from evenhand.posterior.thesis import THESIS, build_design, build_thesis_fit
from evenhand.statistics.mcmc import hdi

if TYPE_CHECKING:
    from evenhand.posterior.tables import Source

__all__ = [
    "Assessment",
    "Check",
    "Sensitivity",
    "assess",
    "check_posterior",
    "check_prior",
    "check_sensitivity",
]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Check:
    """A statistic of the data and of tables simulated from the model.

    `p` is twice the smaller share of simulated tables at or above, or below, the data: near 0
    where the model cannot produce such data. `passed`: the data lie in the interval.
    """

    statistic: str
    observed: float
    mean: float
    low: float
    high: float
    p: float

    @property
    def passed(self) -> bool:
        return self.low <= self.observed <= self.high

    def as_dict(self) -> dict[str, Any]:
        return {**{name: getattr(self, name) for name in self.__slots__}, "passed": self.passed}


def check_posterior(
    fit: Fit, *, replicates: int = 400, prob: float = 0.99, seed: int = 0
) -> list[Check]:
    """Compare the table with tables simulated from the posterior."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(fit.size, size=min(replicates, fit.size), replace=False)
    return _checks(fit.table, fit.predictor.replicate(chosen, rng), prob)


def check_prior(
    model: str,
    table: Table,
    priors: Priors | None = None,
    *,
    replicates: int = 400,
    prob: float = 0.99,
    seed: int = 0,
) -> list[Check]:
    """Compare the table with tables simulated from the prior.

    The last statistic is the share of simulated distances outside [0, 2], which no cosine distance
    can take.
    """
    rng = np.random.default_rng(seed)
    prior_fit = _draw_prior(model, table, priors or Priors(), replicates, rng)
    tables = prior_fit.predictor.replicate(np.arange(replicates), rng)
    outside = np.mean((tables < 0) | (tables > 2), axis=1)
    return [*_checks(table, tables, prob), _check("share outside 0 to 2", 0.0, outside, prob)]


def compute_statistics(table: Table, y: Floats) -> dict[str, Floats]:
    """Compute the statistics of tables (tables × rows) with the cells of `table`."""
    values = {"sd": y.std(axis=1, ddof=1)}
    for level in table.levels:
        rows = table.connection == CONNECTIONS.index(level)
        values[f"mean {level}"] = y[:, rows].mean(axis=1)
    values["intra-class correlation by attribute"] = intra_class_correlation(table, y)
    return values


def intra_class_correlation(table: Table, y: Floats) -> Floats:
    """Compute the one-way intra-class correlation by attribute of the word × class residuals."""
    cells, cell = np.unique(table.word * 4 + table.connection, return_inverse=True)
    residual = y - (_sums(y, cell, cells.size) / np.bincount(cell))[:, cell]
    count = np.bincount(table.attribute)
    n, groups = y.shape[1], count.size
    total = _sums(residual, table.attribute, groups)
    grand = residual.mean(axis=1)
    between = np.sum(total**2 / count, axis=1) - n * grand**2
    within = np.sum(residual**2, axis=1) - np.sum(total**2 / count, axis=1)
    mean_between, mean_within = between / (groups - 1), within / max(n - groups, 1)
    size = (n - np.sum(count**2) / n) / (groups - 1)
    return np.asarray((mean_between - mean_within) / (mean_between + (size - 1) * mean_within))


def _sums(y: Floats, index: NDArray[np.int64], size: int) -> Floats:
    """Sum the columns of equal index."""
    member = np.zeros((index.size, size))
    member[np.arange(index.size), index] = 1.0
    return np.asarray(y @ member)


def _checks(table: Table, replicated: Floats, prob: float) -> list[Check]:
    observed = compute_statistics(table, table.distance[None])
    simulated = compute_statistics(table, replicated)
    return [_check(name, float(observed[name][0]), simulated[name], prob) for name in observed]


def _check(name: str, observed: float, simulated: Floats, prob: float) -> Check:
    low, high = hdi(simulated, prob)
    above = float(np.mean(simulated >= observed))
    return Check(name, observed, float(simulated.mean()), low, high, 2 * min(above, 1 - above))


def _draw_prior(
    model: str, table: Table, priors: Priors, size: int, rng: np.random.Generator
) -> Fit:
    """Build a fit whose draws come from the prior."""
    size = -(-size // 4) * 4
    if model in THESIS:
        design, prior = build_design(model, table), priors.thesis
        draws: dict[str, Floats] = {}
        for name, entries in zip(design.names, design.entries, strict=True):
            mean, sd = (0.0, prior.coefficient_sd) if name == "co" else (prior.mean, prior.mean_sd)
            draws[name] = in_chains(mean + sd * rng.standard_normal((size, len(entries))))
        draws["sigma"] = in_chains(prior.error_scale * np.abs(rng.standard_cauchy(size)))
        return build_thesis_fit(model, table, design, draws)
    if model != "crossed":
        raise InputError(f"prior check: expected {', '.join(THESIS)} or crossed, got {model}")
    data, hyper = CrossedData.of(table), priors.crossed
    scales = np.abs(hyper.effect_scale * rng.standard_normal((size, len(data.scales))))
    scales[:, 0] = hyper.error_scale * np.abs(rng.standard_cauchy(size))
    groups = len(data.present)
    gamma = hyper.level_mean + hyper.level_sd * rng.standard_normal((size, groups))
    delta = hyper.delta_sd * rng.standard_normal((size, 1))
    order = (groups + 2, groups + 1, *range(groups + 3, len(data.scales)))
    effects = [scales[:, [k]] * rng.standard_normal((size, data.words)) for k in order]
    group_index = np.searchsorted(data.present, data.group)
    theta = gamma[:, group_index] + scales[:, 1 + group_index] * rng.standard_normal(
        (size, group_index.size)
    )
    beta = np.concatenate([gamma, delta, *effects], axis=1)
    return build_crossed_fit(table, data, in_chains(scales), beta, theta)


@dataclass(frozen=True, slots=True)
class Sensitivity:
    """Contrasts of the crossed model under one prior."""

    name: str
    prior: CrossedPrior
    contrasts: Mapping[str, Summary]

    def as_dict(self) -> dict[str, Any]:
        return {"prior": self.name, "contrasts": self.contrasts}


def vary_prior(prior: CrossedPrior) -> dict[str, CrossedPrior]:
    """Return the prior and its alternatives by name."""
    return {
        "as given": prior,
        "δ half as wide": replace(prior, delta_sd=prior.delta_sd / 2),
        "δ ten times narrower": replace(prior, delta_sd=prior.delta_sd / 10),
        "levels twice as wide": replace(prior, level_sd=prior.level_sd * 2),
        "effects' scales half as wide": replace(prior, effect_scale=prior.effect_scale / 2),
        "effects' scales four times as wide": replace(prior, effect_scale=prior.effect_scale * 4),
    }


def check_sensitivity(
    source: Source,
    prior: CrossedPrior | None = None,
    *,
    prob: float = 0.89,
    draws: int = 2000,
    seed: int = 0,
) -> list[Sensitivity]:
    """Refit crossed under narrower and wider priors."""
    table = read_table(source)
    rows = []
    for name, variant in vary_prior(prior or CrossedPrior()).items():
        result = fit(table, priors=Priors(crossed=variant), draws=draws, seed=seed)
        rows.append(Sensitivity(name, variant, connection_contrasts(result, prob)))
    return rows


NAIVE = (
    "the models of Dobrzeniecka (2021) and of the 2024 paper treat the rows of an attribute as "
    "independent: their intervals for contrasts with human and none words are far too short; draw "
    "conclusions from crossed"
)
CROSSED_TITLE = "Contrasts by crossed, for conclusions"
NAIVE_TITLE = "Contrasts by coefficients, without attribute effects"


@dataclass(frozen=True, slots=True)
class Assessment:
    """The fits of a table with their criteria, diagnostics and, on request, checks."""

    fitted: Fitted
    prob: float
    scores: Mapping[str, Criteria]
    diagnostics: Mapping[str, Diagnostics]
    checks: Mapping[str, list[Check]] = field(default_factory=dict)
    sensitivity: tuple[Sensitivity, ...] = ()

    @property
    def differences(self) -> list[Difference]:
        """Differences of the models from the best one, best first."""
        return compare_models(self.scores)

    @property
    def notes(self) -> tuple[str, ...]:
        """Warnings: what is not identified, has not mixed or cannot be trusted."""
        notes = [note for fit in self.fitted.fits.values() for note in fit.notes]
        if "coefficients" in self.fitted.fits:
            notes.append(NAIVE)
        for name, d in self.diagnostics.items():
            if d.rhat_max > 1.01 or d.ess_min < min(400, self.fitted.fits[name].size / 4):
                notes.append(
                    f"{name}: R-hat {d.rhat_max:.3f} and effective sample size {d.ess_min:.0f} "
                    f"({d.worst}): increase the number of draws"
                )
        notes += [
            f"{name}: Pareto k > 0.7 for {score.high_k} rows, for which LOO cannot be trusted"
            for name, score in self.scores.items()
            if score.high_k
        ]
        return tuple(notes)

    def with_sensitivity(self, prior: CrossedPrior, *, draws: int, seed: int) -> Assessment:
        """Add the contrasts under other priors."""
        rows = check_sensitivity(self.fitted.table, prior, prob=self.prob, draws=draws, seed=seed)
        return replace(self, sensitivity=tuple(rows))

    def contrast_tables(self) -> dict[str, list[Named]]:
        """Contrasts of crossed, by protected word and by class, and the naive ones."""
        tables: dict[str, list[Named]] = {}
        fits = self.fitted.fits
        if "crossed" in fits:
            crossed = fits["crossed"]
            tables[CROSSED_TITLE] = _named(connection_contrasts(crossed, self.prob))
            tables["associated-different by class"] = class_contrasts(crossed, self.prob)
            tables["associated-different by word"] = word_contrasts(crossed, self.prob)
        if "coefficients" in fits:
            naive = _named(connection_contrasts(fits["coefficients"], self.prob))
            tables[NAIVE_TITLE] = naive
        return {title: rows for title, rows in tables.items() if rows}

    def all_contrasts(self) -> list[Named]:
        """Rows of all contrast tables, with the model in their names."""
        crossed = [
            row
            for title, rows in self.contrast_tables().items()
            if title != NAIVE_TITLE
            for row in rows
        ]
        naive = [
            replace(row, of=f"{name}: {row.of}")
            for name, fit in self.fitted.fits.items()
            if name != "crossed"
            for row in _named(connection_contrasts(fit, self.prob))
        ]
        return [*(replace(row, of=f"crossed: {row.of}") for row in crossed), *naive]

    def all_levels(self) -> list[Named]:
        """Mean distance of every word to every connection, by model."""
        return [
            replace(row, of=f"{name}: {row.of}")
            for name, fit in self.fitted.fits.items()
            if name != "baseline"
            for row in word_levels(fit, self.prob)
        ]

    def as_dict(self) -> dict[str, Any]:
        fits = self.fitted.fits
        crossed, naive = fits.get("crossed"), fits.get("coefficients")
        content: dict[str, Any] = {
            "rows": self.fitted.table.rows,
            "dropped": dict(self.fitted.table.dropped),
            "prob": self.prob,
            "models": {name: self._model(name) for name in fits},
            "contrasts": connection_contrasts(crossed, self.prob) if crossed else {},
            "naive_contrasts": connection_contrasts(naive, self.prob) if naive else {},
            "words": word_contrasts(crossed, self.prob) if crossed else [],
            "classes": class_contrasts(crossed, self.prob) if crossed else [],
            "differences": self.differences,
            "skipped": dict(self.fitted.skipped),
            "notes": self.notes,
        }
        if self.checks:
            content["checks"] = self.checks
        if self.sensitivity:
            content["sensitivity"] = self.sensitivity
        return content

    def _model(self, name: str) -> dict[str, Any]:
        fit, diagnostics = self.fitted.fits[name], self.diagnostics[name]
        return {
            **self.scores[name].as_dict(),
            "rhat_max": diagnostics.rhat_max,
            "ess_min": diagnostics.ess_min,
            "sampler": fit.sampler,
            "coefficients": {
                level: {"mean": s.mean, "sd": s.sd, "low": s.low, "high": s.high}
                for level, s in fit.coefficients(self.prob).items()
            },
        }


def assess(
    fitted: Fitted, *, prob: float = 0.89, checks: bool = False, seed: int = 0
) -> Assessment:
    """Score, diagnose and, on request, check the fits of one table."""
    fits = fitted.fits
    return Assessment(
        fitted=fitted,
        prob=prob,
        scores={name: compute_criteria(fit) for name, fit in fits.items()},
        diagnostics={name: fit.diagnostics() for name, fit in fits.items()},
        checks={name: check_posterior(f, seed=seed) for name, f in fits.items()} if checks else {},
    )


def _named(summaries: Mapping[str, Any]) -> list[Named]:
    return [Named("", "", name, summary) for name, summary in summaries.items()]
