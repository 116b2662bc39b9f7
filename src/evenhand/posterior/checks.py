"""Would the model have made such data? Predictive checks from the prior and from the posterior.

The statistics: the spread of all distances, the mean of each connection class, and the intra-class
correlation by attribute of what words and classes leave over. The last one is what the models
without attribute effects miss: their rows are independent, the real ones are not.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.crossed import CrossedData
from evenhand.posterior.crossed_fit import crossed_result
from evenhand.posterior.diagnostics import hdi
from evenhand.posterior.fits import Fit, in_chains
from evenhand.posterior.models import Priors
from evenhand.posterior.tables import CONNECTIONS, Table
from evenhand.posterior.thesis import THESIS, design, thesis_result

__all__ = ["Check", "intra_class", "posterior_check", "prior_check", "statistics"]

Floats = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class Check:
    """A statistic of the data beside what the model makes of it.

    `p` is the share of the model's tables at or above the data, twice the smaller side: near 0
    where the model cannot make such data. `passed` says whether the data are in the interval.
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


def posterior_check(
    fit: Fit, *, replicates: int = 400, prob: float = 0.99, seed: int = 0
) -> list[Check]:
    """New tables from the fitted model beside the table that it was fitted to."""
    rng = np.random.default_rng(seed)
    chosen = rng.choice(fit.size, size=min(replicates, fit.size), replace=False)
    return _checks(fit.table, fit.predictor.replicate(chosen, rng), prob)


def prior_check(
    model: str,
    table: Table,
    priors: Priors | None = None,
    *,
    replicates: int = 400,
    prob: float = 0.99,
    seed: int = 0,
) -> list[Check]:
    """Tables from the prior alone: wide is well, the data outside them is not.

    The last row is the share of distances outside 0 to 2, which no cosine distance can take.
    """
    rng = np.random.default_rng(seed)
    drawn = _prior_fit(model, table, priors or Priors(), replicates, rng)
    tables = drawn.predictor.replicate(np.arange(replicates), rng)
    outside = np.mean((tables < 0) | (tables > 2), axis=1)
    return [*_checks(table, tables, prob), _check("share outside 0 to 2", 0.0, outside, prob)]


def statistics(table: Table, y: Floats) -> dict[str, Floats]:
    """The statistics of tables (tables × rows) with the cells of `table`."""
    values = {"sd": y.std(axis=1, ddof=1)}
    for level in table.levels:
        rows = table.connection == CONNECTIONS.index(level)
        values[f"mean {level}"] = y[:, rows].mean(axis=1)
    values["intra-class correlation by attribute"] = intra_class(table, y)
    return values


def intra_class(table: Table, y: Floats) -> Floats:
    """One-way intra-class correlation by attribute, of residuals from each word × class mean."""
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
    """Sums over the columns of equal index."""
    member = np.zeros((index.size, size))
    member[np.arange(index.size), index] = 1.0
    return np.asarray(y @ member)


def _checks(table: Table, replicated: Floats, prob: float) -> list[Check]:
    observed = statistics(table, table.distance[None])
    made = statistics(table, replicated)
    return [_check(name, float(observed[name][0]), made[name], prob) for name in observed]


def _check(name: str, observed: float, made: Floats, prob: float) -> Check:
    low, high = hdi(made, prob)
    above = float(np.mean(made >= observed))
    return Check(name, observed, float(made.mean()), low, high, 2 * min(above, 1 - above))


def _prior_fit(
    model: str, table: Table, priors: Priors, size: int, rng: np.random.Generator
) -> Fit:
    """A fit whose draws come from the prior."""
    size = -(-size // 4) * 4
    if model in THESIS:
        layout, prior = design(model, table), priors.thesis
        draws: dict[str, Floats] = {}
        for name, entries in zip(layout.names, layout.entries, strict=True):
            mean, sd = (0.0, prior.coefficient_sd) if name == "co" else (prior.mean, prior.mean_sd)
            draws[name] = in_chains(mean + sd * rng.standard_normal((size, len(entries))))
        draws["sigma"] = in_chains(prior.error_scale * np.abs(rng.standard_cauchy(size)))
        return thesis_result(model, table, layout, draws)
    if model != "crossed":
        raise InputError(f"prior check: expected {', '.join(THESIS)} or crossed, got {model}")
    data, chosen = CrossedData.of(table), priors.crossed
    scales = np.abs(chosen.effect_scale * rng.standard_normal((size, len(data.scales))))
    scales[:, 0] = chosen.error_scale * np.abs(rng.standard_cauchy(size))
    groups = len(data.present)
    gamma = chosen.level_mean + chosen.level_sd * rng.standard_normal((size, groups))
    delta = chosen.delta_sd * rng.standard_normal((size, 1))
    order = (groups + 2, groups + 1, *range(groups + 3, len(data.scales)))
    effects = [scales[:, [k]] * rng.standard_normal((size, data.words)) for k in order]
    place = np.searchsorted(data.present, data.group)
    theta = gamma[:, place] + scales[:, 1 + place] * rng.standard_normal((size, place.size))
    beta = np.concatenate([gamma, delta, *effects], axis=1)
    return crossed_result(table, data, in_chains(scales), beta, theta)
