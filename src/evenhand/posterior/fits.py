"""The result of fitting a model: its draws, diagnostics and how well it predicts."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray
from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

from evenhand.display import Result
from evenhand.errors import MissingExtraError
from evenhand.posterior.tables import Table
from evenhand.results import Measurements
from evenhand.statistics.mcmc import MIN_TAIL, diagnose, smooth_tail, tail_size
from evenhand.threads import choose

if TYPE_CHECKING:
    import pandas as pd

__all__ = [
    "Criteria",
    "Diagnostics",
    "Difference",
    "Fit",
    "Predictor",
    "Term",
    "compare_models",
    "compute_criteria",
    "in_chains",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


QUANTITIES = 64
"""Number of quantities that one thread diagnoses at a time."""
CHAINS = 4
"""Independent draws are arranged as this many chains, so that the same diagnostics apply."""


@dataclass(frozen=True, slots=True)
class Term:
    """Values (entries × draws) and the entry of every row of the table; -1: no entry, zero."""

    values: Floats
    index: Ints

    def at(self, rows: slice | Ints) -> Floats:
        """Values of these rows (rows × draws), or once (1 × draws) if all have the same."""
        index = self.entries(rows)
        values = self.values[index]
        values[index < 0] = 0.0
        return values

    def entries(self, rows: slice | Ints) -> Ints:
        """The entry of each of these rows, or one if all have the same."""
        index = self.index[rows]
        return index[:1] if (index == index[0]).all() else index


@dataclass(frozen=True)
class Predictor:
    """Mean of a row as a sum of terms, scale of its error, and degrees of freedom or None."""

    terms: tuple[Term, ...]
    scale: Term
    freedom: Floats | None = None

    def residual(self, y: Floats, rows: slice | Ints) -> Floats:
        """Distance of these rows less its mean in every draw (rows × draws)."""
        entries = [term.entries(rows) for term in self.terms]
        shared = np.zeros(self.terms[0].values.shape[1])
        for term, index in zip(self.terms, entries, strict=True):
            if len(index) == 1 and index[0] >= 0:
                shared += term.values[index[0]]
        result = y[rows, None] - shared
        for term, index in zip(self.terms, entries, strict=True):
            if len(index) > 1:
                for row, entry in zip(result, index.tolist(), strict=True):
                    if entry >= 0:
                        row -= term.values[entry]
        return np.asarray(result)

    @cached_property
    def _density(self) -> tuple[Term, Term]:
        """Factor of a residual, and constant of the log likelihood."""
        scale, nu = self.scale.values, self.freedom
        if nu is None:
            factor, constant = np.sqrt(0.5) / scale, np.asarray(-0.5 * np.log(2 * np.pi))
        else:
            from scipy.special import gammaln

            factor = 1 / (np.sqrt(nu) * scale)
            constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu)
        index = self.scale.index
        return Term(factor, index), Term(constant - np.log(scale), index)

    def log_likelihood(self, y: Floats, rows: slice | Ints) -> Floats:
        """Log likelihood of these rows in every draw (rows × draws)."""
        factor, constant = self._density
        z = self.residual(y, rows)
        z *= factor.at(rows)
        np.square(z, out=z)
        if self.freedom is not None:
            np.log1p(z, out=z)
            z *= (self.freedom + 1) / 2
        return np.subtract(constant.at(rows), z, out=z)

    def replicate(self, draws: Ints, rng: np.random.Generator) -> Floats:
        """Simulate one table per draw (draws × rows)."""
        terms = tuple(Term(term.values[:, draws], term.index) for term in self.terms)
        scale = self.scale.values[:, draws][self.scale.index]
        noise = (
            rng.standard_normal(scale.shape)
            if self.freedom is None
            else rng.standard_t(np.broadcast_to(self.freedom[draws], scale.shape))
        )
        rows = slice(None)
        mean = -Predictor(terms, self.scale).residual(np.zeros(self.scale.index.size), rows)
        return np.asarray((mean + scale * noise).T)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Largest R-hat and smallest effective sample size, and the quantity that has the latter."""

    rhat_max: float
    ess_min: float
    worst: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Fit(Result):
    """A fitted model.

    Attributes
    ----------
    model : str
    table : Table
    draws : mapping of str to array of shape (chains, draws) or (chains, draws, entries)
        Draws of every quantity.
    entries : mapping of str to tuple of str
        Names along the third axis.
    levels : mapping of str to array of shape (chains, draws)
        Means of the connection classes, on the model's own scale.
    predictor : Predictor
    sampler : str
    seed : int or None
    notes : tuple of str
    """

    model: str
    table: Table
    draws: Mapping[str, Floats] = field(repr=False)
    entries: Mapping[str, tuple[str, ...]] = field(repr=False)
    levels: Mapping[str, Floats] = field(repr=False)
    predictor: Predictor = field(repr=False)
    sampler: str = "exact"
    seed: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of draws in all chains."""
        first = next(iter(self.draws.values()))
        return int(first.shape[0] * first.shape[1])

    def log_likelihood(self, start: int, stop: int) -> Floats:
        """Compute the log likelihood of the rows from `start` to `stop` (rows × draws)."""
        return self.predictor.log_likelihood(self.table.distance, slice(start, stop))

    def diagnostics(self) -> Diagnostics:
        """Compute the largest R-hat and the smallest bulk or tail effective sample size."""
        names = [
            label
            for name, draws in self._quantities()
            for label, _ in _columns(name, draws, self.entries)
        ]
        ratio, bulk, tail = self._mixing
        sizes = np.minimum(bulk, tail)
        return Diagnostics(float(ratio.max()), float(sizes.min()), names[int(sizes.argmin())])

    def relative_efficiency(self) -> float:
        """Compute the mean number of effective draws per draw, which PSIS needs."""
        levels = len(self.levels)
        bulk = self._mixing[1]
        return min(float(bulk[: bulk.size - levels].mean()) / self.size, 1.0)

    @cached_property
    def _mixing(self) -> tuple[Floats, Floats, Floats]:
        """R-hat, bulk and tail effective sample size of every quantity, in blocks of them."""
        blocks = []
        for _, draws in self._quantities():
            flat = draws.reshape(*draws.shape[:2], -1)
            blocks += [flat[..., k : k + QUANTITIES] for k in range(0, flat.shape[2], QUANTITIES)]
        with ThreadPoolExecutor(choose().threads) as pool:
            parts = list(pool.map(diagnose, blocks))
        ratio, bulk, tail = (np.concatenate(column) for column in zip(*parts, strict=True))
        return ratio, bulk, tail

    def _quantities(self) -> Iterator[tuple[str, Floats]]:
        yield from self.draws.items()
        for level, draws in self.levels.items():
            yield f"level[{level}]", draws

    def to_frame(self) -> pd.DataFrame:
        """Return the draws, one row per draw and one column per quantity."""
        import pandas as pd

        chains, length = next(iter(self.draws.values())).shape[:2]
        columns: dict[str, NDArray[np.generic]] = {
            "chain": np.repeat(np.arange(chains), length),
            "draw": np.tile(np.arange(length), chains),
        }
        for name, draws in self._quantities():
            columns |= dict(_columns(name, draws, self.entries))
        return pd.DataFrame(columns)

    def to_arviz(self, *, log_likelihood: bool = False) -> Any:
        """Return the draws as `arviz.InferenceData`, for its plots and diagnostics.

        Parameters
        ----------
        log_likelihood : bool
            Whether to add the log likelihood of every row in every draw, as `arviz.loo` needs it;
            it takes chains × draws × rows numbers.

        Returns
        -------
        arviz.InferenceData
            Groups `posterior` (with the means of the connection classes as `level`) and
            `observed_data`. Needs the extra `arviz`.

        """
        try:
            import arviz
        except ImportError:
            raise MissingExtraError("arviz", "to_arviz", "evenhand[arviz]") from None
        chains, length = next(iter(self.draws.values())).shape[:2]
        posterior = {name: np.asarray(draws) for name, draws in self.draws.items()}
        names = {name: f"{name}_entry" for name, draws in posterior.items() if draws.ndim == 3}
        coordinates: dict[str, Any] = {names[name]: list(self.entries[name]) for name in names}
        dims = {name: [axis] for name, axis in names.items()}
        if self.levels:
            posterior["level"] = np.stack(list(self.levels.values()), axis=-1)
            dims["level"], coordinates["connection"] = ["connection"], list(self.levels)
        observed = np.asarray(self.table.distance, dtype=float)
        coordinates["row"], dims["distance"] = np.arange(observed.size), ["row"]
        more: dict[str, Any] = {}
        if log_likelihood:
            rows = self.log_likelihood(0, observed.size)
            more["log_likelihood"] = {"distance": rows.T.reshape(chains, length, observed.size)}
        return arviz.from_dict(
            posterior=posterior,
            observed_data={"distance": observed},
            coords=coordinates,
            dims=dims,
            **more,
        )

    def _headline(self) -> str:
        return f"{self.model}: {self.size:,} draws ({self.sampler}) on {self.table._headline()}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        from evenhand.posterior.contrasts import measure_contrasts, measure_levels

        measured = {**measure_contrasts(self), **measure_levels(self)}
        return [row for m in measured.values() for row in Measurements([m])._rows()]


def in_chains(draws: Floats, chains: int = CHAINS) -> Floats:
    """Arrange independent draws (draws × …) as chains × draws × …"""
    return draws.reshape(chains, len(draws) // chains, *draws.shape[1:])


def _columns(
    name: str, draws: Floats, entries: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Floats]]:
    if draws.ndim == 2:
        yield name, draws.ravel()
        return
    for k, entry in enumerate(entries[name]):
        yield f"{name}[{entry}]", draws[..., k].ravel()


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

    def to_dict(self) -> dict[str, Any]:
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

    def _rows(self) -> Sequence[Mapping[str, Any]]:
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

    They are not above the minima of so many groups of numbers, which leaves few to sort.
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
class Difference:
    """Difference of a model from the best one, with the standard error of the difference."""

    model: str
    waic_difference: float
    waic_difference_se: float
    loo_difference: float
    loo_difference_se: float
    weight: float


def compare_models(scores: Mapping[str, Criteria]) -> list[Difference]:
    """Compare models with the one of lowest WAIC, best first, with Akaike weights."""
    ordered = sorted(scores.values(), key=lambda score: score.waic)
    best = ordered[0]
    relative = [math.exp(-0.5 * (score.waic - best.waic)) for score in ordered]
    return [
        Difference(
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
