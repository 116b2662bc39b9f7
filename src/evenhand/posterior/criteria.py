"""How well fits predict: WAIC and LOO, and the comparison of models by them."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field

import numpy as np
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenhand.display import Result
from evenhand.posterior.fits import Fit
from evenhand.statistics.intervals import Floats
from evenhand.statistics.mcmc import MIN_TAIL, smooth_tail, tail_size
from evenhand.threads import choose

CHUNK = 256
"""Number of rows whose tails one thread smooths at a time."""
BLOCK = 1 << 16
"""Number of log likelihoods that it has in memory at a time; they fit in the cache of a core."""
HIGH_K = 0.7
UNDERFLOW = 1e-300


@dataclass(frozen=True, slots=True, repr=False)
class Criteria(Result):
    """Predictive accuracy by row: lppd, penalty of WAIC, elpd of LOO and Pareto k̂."""

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
        """Number of rows whose k̂ is above 0.7, for which LOO cannot be trusted."""
        return int((self.pareto_k > HIGH_K).sum())

    def to_dict(self) -> dict[str, object]:
        return {
            "waic": self.waic,
            "waic_se": self.waic_se,
            "p_waic": self.p_waic,
            "loo": self.loo,
            "loo_se": self.loo_se,
            "p_loo": self.p_loo,
            "pareto_k_high": self.high_k,
        }

    def _headline(self) -> str:
        waic = f"WAIC {self.waic:.1f} ± {self.waic_se:.1f}"
        return f"{self.model}: {waic}, LOO {self.loo:.1f} ± {self.loo_se:.1f}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [
            {"model": self.model, "criterion": name, "value": value}
            | {"low": value - error, "high": value + error, "parameters": size}
            for name, value, error, size in (
                ("WAIC ± SE", self.waic, self.waic_se, self.p_waic),
                ("LOO ± SE", self.loo, self.loo_se, self.p_loo),
            )
        ]


def compute_criteria(fit: Fit) -> Criteria:
    r"""Compute WAIC and PSIS-LOO of a fit.

    Notes
    -----
    On the deviance scale, $-2(\mathrm{lppd} - p)$: lower is better. WAIC follows Watanabe (2010),
    with the posterior variance of the log likelihood of every row as penalty $p$; LOO follows
    Vehtari, Gelman & Gabry (2017). The likelihood of a row is conditional on all effects of its
    word, attribute and class × attribute, so both assess another distance of the same words. Rows
    are processed in chunks, so that the log likelihoods (rows × draws) are never all in memory.
    """
    efficiency = fit.relative_efficiency()
    step = max(1, BLOCK // fit.size)
    table = fit.table
    order = np.lexsort((table.connection, table.word))  # rows that have terms in common

    def compute(start: int) -> tuple[Floats, Floats, Floats, Floats]:
        rows = order[start : start + CHUNK]
        parts = (rows[k : k + step] for k in range(0, rows.size, step))
        blocks = (fit.predictor.log_likelihood(table.distance, part) for part in parts)
        return row_criteria(blocks, efficiency)

    starts = range(0, table.rows, CHUNK)
    threads = min(choose().threads, len(starts))
    with threadpool_limits(1, "blas"), ThreadPoolExecutor(threads) as pool:
        chunks = list(pool.map(compute, starts))
    columns = np.empty((4, table.rows))
    columns[:, order] = np.concatenate(chunks, axis=1)
    return Criteria(fit.model, *columns)


def row_criteria(
    blocks: Iterable[Floats], efficiency: float = 1.0
) -> tuple[Floats, Floats, Floats, Floats]:
    r"""Compute lppd, penalty of WAIC, elpd of LOO and k̂ from log likelihoods (rows × draws).

    The log likelihoods come in blocks of rows, the tails of which are smoothed together. The
    importance ratio of a draw is $1/p$, with $p$ its likelihood. Only the largest ratios are
    smoothed: all others have $p \cdot 1/p = 1$, so LOO needs no more than their number and sum.
    """
    from scipy.special import logsumexp

    parts = []
    for log_likelihood in blocks:
        draws = log_likelihood.shape[1]
        tail = tail_size(draws, efficiency)
        lowest = _lowest(log_likelihood, tail + 1)[:, ::-1]
        low = lowest[:, -1:]
        ones = np.ones(draws)  # a product is the fastest sum
        work = low - log_likelihood
        variance = np.maximum(np.vecdot(work, work) / draws - (work @ ones / draws) ** 2, 0.0)
        ratios = np.exp(work, out=work) @ ones
        if work.min() > UNDERFLOW:
            likelihood = np.log(np.reciprocal(work, out=work) @ ones) + low[:, 0]
        else:
            likelihood = logsumexp(log_likelihood, axis=1)
        lppd = likelihood - math.log(draws)
        parts.append((lppd, variance, lowest, ratios))
    lppd, variance, lowest, ratios = (np.concatenate(column) for column in zip(*parts, strict=True))
    low = lowest[:, -1:]
    largest = low - lowest  # logarithms of the ratios, increasing
    if tail < MIN_TAIL:
        top, k = largest[:, 1:], np.full(len(low), np.inf)
    else:
        top, k = smooth_tail(largest)
    total = ratios - np.exp(largest[:, 1:]).sum(axis=1) + np.exp(top).sum(axis=1)
    weighted = draws - tail + np.exp(top - largest[:, 1:]).sum(axis=1)
    loo = low[:, 0] + np.log(weighted) - np.log(total)
    return lppd, variance, loo, k


def _lowest(x: Floats, count: int) -> Floats:
    """The lowest numbers of every row, increasing.

    They are at most the minima of that many groups of numbers, which leaves few to sort.
    """
    rows, draws = x.shape
    group = next((n for n in (8, 4) if draws % n == 0 and 2 * n * count <= draws), 1)
    minima = x.reshape(rows, group, -1).min(axis=1)
    minima.partition(count - 1, axis=1)
    chosen = np.flatnonzero(x <= minima[:, count - 1 : count])
    sizes = np.diff(np.searchsorted(chosen, draws * np.arange(rows + 1)))
    result = np.full((rows, sizes.max()), np.inf)
    result[np.arange(result.shape[1]) < sizes[:, None]] = x.ravel()[chosen]
    return np.sort(result, axis=1)[:, :count]


@dataclass(frozen=True, slots=True)
class ModelDifference:
    """Difference of a model from the best one, with the standard error of the difference."""

    model: str
    waic_difference: float
    waic_difference_se: float
    loo_difference: float
    loo_difference_se: float
    weight: float


def compare_models(scores: Mapping[str, Criteria]) -> list[ModelDifference]:
    """Compare models with the one of lowest WAIC, best first, with Akaike weights."""
    ordered = sorted(scores.values(), key=lambda score: score.waic)
    best = ordered[0]
    relative = [math.exp(-0.5 * (score.waic - best.waic)) for score in ordered]
    return [
        ModelDifference(
            score.model,
            score.waic - best.waic,
            _standard_error(score.waic_i - best.waic_i),
            score.loo - best.loo,
            _standard_error(score.loo_i - best.loo_i),
            weight / sum(relative),
        )
        for score, weight in zip(ordered, relative, strict=True)
    ]


def _standard_error(rows: Floats) -> float:
    """Standard error of a sum over rows."""
    return float(np.sqrt(rows.size * rows.var()))
