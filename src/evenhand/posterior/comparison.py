r"""Which model predicts better: WAIC and PSIS-LOO with standard errors and differences.

On the deviance scale as in the thesis (package `rethinking`): $-2(\mathrm{lppd} - p)$, lower is
better. WAIC after Watanabe (2010), its $p$ the posterior variance of each row's log likelihood;
LOO after Vehtari, Gelman & Gabry (2017). Rows are taken some at a time, so that the rows × draws
of log likelihoods are never all held.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.fits import Fit
from evenhand.posterior.psis import smooth

__all__ = ["Criteria", "Difference", "compare_models", "criteria", "row_criteria"]

Floats = NDArray[np.float64]
CHUNK = 1 << 20
"""Log likelihoods held at once."""
HIGH_K = 0.7


@dataclass(frozen=True, slots=True)
class Criteria:
    """How well a model predicts, row by row: lppd, WAIC's penalty, LOO and Pareto's k̂."""

    model: str
    lppd_i: Floats = field(repr=False)
    p_waic_i: Floats = field(repr=False)
    elpd_loo_i: Floats = field(repr=False)
    pareto_k: Floats = field(repr=False)

    @property
    def waic_i(self) -> Floats:
        return np.asarray(-2 * (self.lppd_i - self.p_waic_i))

    @property
    def loo_i(self) -> Floats:
        return np.asarray(-2 * self.elpd_loo_i)

    @property
    def waic(self) -> float:
        return float(self.waic_i.sum())

    @property
    def waic_se(self) -> float:
        return _standard_error(self.waic_i)

    @property
    def p_waic(self) -> float:
        return float(self.p_waic_i.sum())

    @property
    def loo(self) -> float:
        return float(self.loo_i.sum())

    @property
    def loo_se(self) -> float:
        return _standard_error(self.loo_i)

    @property
    def p_loo(self) -> float:
        return float(self.lppd_i.sum() - self.elpd_loo_i.sum())

    @property
    def high_k(self) -> int:
        """Rows whose k̂ is above 0.7: there LOO cannot be trusted."""
        return int((self.pareto_k > HIGH_K).sum())

    def as_dict(self) -> dict[str, Any]:
        return {
            "waic": self.waic, "waic_se": self.waic_se, "p_waic": self.p_waic,
            "loo": self.loo, "loo_se": self.loo_se, "p_loo": self.p_loo,
            "pareto_k_high": self.high_k,
        }  # fmt: skip


def criteria(fit: Fit) -> Criteria:
    """WAIC and PSIS-LOO of a fit."""
    efficiency = fit.relative_efficiency()
    step = max(1, CHUNK // fit.size)
    parts = [
        row_criteria(fit.log_likelihood(start, min(start + step, fit.table.rows)), efficiency)
        for start in range(0, fit.table.rows, step)
    ]
    return Criteria(fit.model, *(np.concatenate(column) for column in zip(*parts, strict=True)))


def row_criteria(
    log_likelihood: Floats, efficiency: float = 1.0
) -> tuple[Floats, Floats, Floats, Floats]:
    """Lppd, WAIC's penalty, LOO and k̂ of rows, from their log likelihoods (rows × draws)."""
    from scipy.special import logsumexp

    draws = log_likelihood.shape[1]
    lppd = logsumexp(log_likelihood, axis=1) - math.log(draws)
    weights, k = smooth(-log_likelihood, efficiency)
    loo = logsumexp(log_likelihood + weights, axis=1)
    return lppd, log_likelihood.var(axis=1), loo, k


@dataclass(frozen=True, slots=True)
class Difference:
    """A model beside the best one: how much worse, with the standard error of the difference."""

    model: str
    waic_difference: float
    waic_difference_se: float
    loo_difference: float
    loo_difference_se: float
    weight: float

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def compare_models(scores: Mapping[str, Criteria]) -> list[Difference]:
    """All models against the one of lowest WAIC, the best first, with Akaike's weights."""
    ordered = sorted(scores.values(), key=lambda score: score.waic)
    best = ordered[0]
    raw = [math.exp(-0.5 * (score.waic - best.waic)) for score in ordered]
    return [
        Difference(
            score.model,
            score.waic - best.waic,
            _standard_error(score.waic_i - best.waic_i),
            score.loo - best.loo,
            _standard_error(score.loo_i - best.loo_i),
            weight / sum(raw),
        )
        for score, weight in zip(ordered, raw, strict=True)
    ]


def _standard_error(rows: Floats) -> float:
    """Of a sum over rows."""
    return float(np.sqrt(rows.size * rows.var()))
