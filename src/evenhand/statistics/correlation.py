"""How two scores of the same items agree: correlations with intervals, tests and reliability.

Each score is a table (items, repetitions); its mean over the repetitions is correlated. Items may
belong to groups that were chosen to differ: within groups, each group is centred on its own mean.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.statistics.intervals import Floats, fisher_z, jackknife
from evenhand.statistics.sequential import Seed, draw_until_clear

RELIABLE = 0.5
"""Below this reliability of either score no correlation is corrected for it."""
MAX_SPLITS = 200
ROUNDING = 1e-13

Labels = NDArray[np.int64]
Ends = tuple[float, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class Coefficient:
    """A correlation with Fisher's interval, a bootstrap interval over items and a permutation p.

    All are NaN, with ends of -1 and 1, where one of the scores is the same for every item.
    """

    value: float
    fisher: Ends
    bootstrap: Ends
    p_value: float

    @property
    def interval(self) -> tuple[float, float, float]:
        """The correlation with the interval to quote: each end the one further out.

        Fisher's counts every item alike, and is far too short where one group varies much more
        than the others; the bootstrap's is too short where items are few.
        """
        low, high = (
            choose(a, b)
            for choose, a, b in zip((min, max), self.fisher, self.bootstrap, strict=True)
        )
        return self.value, low, high


@dataclass(frozen=True, slots=True, kw_only=True)
class Agreement:
    """How two scores of the same items agree.

    `draws` is the number of permutations behind the p-values, `reliability` that of the two
    scores; `corrected` is Pearson's r for both measured without error, None where that cannot be
    estimated.
    """

    n: int
    groups: int
    draws: int
    pearson: Coefficient
    spearman: Coefficient
    reliability: tuple[float, float]
    corrected: float | None


def agreement(
    first: Floats,
    second: Floats,
    groups: Labels,
    *,
    within: bool = False,
    prob: float = 0.95,
    resamples: int = 2000,
    permutations: int = 9999,
    seed: int = 0,
) -> Agreement:
    """The agreement of two tables (n, repetitions) of scores of the same n items.

    Parameters
    ----------
    first, second : array
    groups : array of int
        The group of each item. Resamples keep the size of every group.
    within : bool
        Whether every group is centred on its own mean, and permuted within itself.
    prob, resamples, permutations, seed
        Of the intervals and the test.

    """
    x, y = first.mean(axis=1), second.mean(axis=1)
    own = groups if within else np.zeros_like(groups)
    reliability = (
        split_half(_centred(first.T, own).T, seed),
        split_half(_centred(second.T, own).T, seed),
    )
    free = len(x) - (len(set(own.tolist())) - 1)
    rng = np.random.default_rng(seed)
    resampled = _resampled(groups, resamples, rng)
    residuals = _centred(x[None], own)[0], _centred(y[None], own)[0]
    scales = {"pearson": residuals, "spearman": tuple(map(average_ranks, residuals))}
    observed = {
        kind: float(_rowwise(one[None], two[None])[0]) for kind, (one, two) in scales.items()
    }

    def count(size: int, _: Seed) -> Floats:
        extreme = np.zeros(2)
        for start in range(0, size, permutations):
            permuted = _permuted(own, min(permutations, size - start), rng)
            for k, (kind, (one, two)) in enumerate(scales.items()):
                null = np.abs(_rowwise(np.broadcast_to(one, permuted.shape), two[permuted]))
                extreme[k] += (null >= abs(observed[kind]) - 1e-12).sum()
        return extreme

    counted = draw_until_clear(count, permutations, seed)
    coefficients = {}
    for (kind, r), p_value in zip(observed.items(), counted.p_values.tolist(), strict=True):
        bootstrap = [_centred(v[resampled], own) for v in (x, y)]
        if kind == "spearman":
            bootstrap = [average_ranks(v) for v in bootstrap]
        replicates = _rowwise(*bootstrap)
        known = replicates[~np.isnan(replicates)]
        ends = np.quantile(known, [(1 - prob) / 2, (1 + prob) / 2]) if known.size else (-1.0, 1.0)
        coefficients[kind] = Coefficient(
            value=r,
            fisher=fisher_z(r, free, prob, spearman=kind == "spearman"),
            bootstrap=(float(ends[0]), float(ends[1])),
            p_value=math.nan if math.isnan(r) else p_value,
        )
    return Agreement(
        n=len(x),
        groups=len(set(groups.tolist())),
        draws=counted.draws,
        reliability=reliability,
        corrected=_corrected(coefficients["pearson"].value, reliability),
        **coefficients,
    )


def pearson(x: Floats, y: Floats) -> tuple[float, Floats]:
    """Pearson's r, and r with each point left out; nan where one side does not vary."""
    x, y = x - x.mean(), y - y.mean()
    grow = x.size / (x.size - 1)
    with np.errstate(divide="ignore", invalid="ignore"):
        value = (x @ y) / np.sqrt((x @ x) * (y @ y))
        left = [float(a @ b) - a * b * grow for a, b in ((x, y), (x, x), (y, y))]
        without = left[0] / np.sqrt(left[1] * left[2])
    return float(value), np.asarray(without)


def kendall(
    x: ArrayLike,
    y: ArrayLike,
    clusters: Sequence[object] | None = None,
    *,
    prob: float = 0.95,
) -> tuple[float, float, float]:
    r"""Kendall's τ-b of two scores of the same items, with its interval.

    Parameters
    ----------
    x, y : array (items)
    clusters : sequence, optional
        What items have in common, such as the family of a model: its items are sampled together.
    prob : float
        Probability of the interval.

    Returns
    -------
    value, low, high : float
        NaN, with ends of -1 and 1, where one of the scores is the same for every item.

    Notes
    -----
    The jackknife over clusters on the scale of $\operatorname{artanh} τ$, or the interval of
    Fieller, Hartley & Pearson (1957), whose variance is $.437 / (n - 4)$, where that is longer: the
    jackknife can be far too short where items are few.

    Examples
    --------
    >>> [round(v, 2) for v in kendall([1, 2, 3, 4, 5, 6, 7, 8], [1, 3, 2, 4, 6, 5, 8, 7])]
    [0.79, 0.39, 0.94]
    """
    pairs = [np.sign(np.subtract.outer(v, v)) for v in (np.asarray(x, float), np.asarray(y, float))]
    products = np.stack([pairs[0] * pairs[1], pairs[0] ** 2, pairs[1] ** 2])
    n = len(pairs[0])
    labels = list(range(n) if clusters is None else clusters)
    value = _tau(products)
    if math.isnan(value):
        return value, -1.0, 1.0
    limit = 1 - 2 / (n * (n - 1))  # the next value below 1, whose artanh is finite
    without = []
    for cluster in dict.fromkeys(labels):
        others = [i for i, label in enumerate(labels) if label != cluster]
        tau = _tau(products[np.ix_(range(3), others, others)])
        if not math.isnan(tau):
            without.append(np.clip(tau, -limit, limit))
    centre = math.atanh(min(limit, max(-limit, value)))
    low, high = jackknife(math.tanh(centre), without, prob, scale=(np.arctanh, np.tanh))
    normal = (
        NormalDist().inv_cdf((1 + prob) / 2) * math.sqrt(0.437 / (n - 4)) if n > 4 else math.inf
    )
    low, high = min(low, math.tanh(centre - normal)), max(high, math.tanh(centre + normal))
    return value, max(-1.0, min(low, value)), min(1.0, max(high, value))


def _tau(products: Floats) -> float:
    """τ-b from the signs of differences: their products, and the squares of each."""
    both, one, two = products.sum(axis=(1, 2))
    return float(both / math.sqrt(one * two)) if one and two else math.nan


def split_half(table: Floats, seed: int = 0) -> float:
    r"""The reliability of the mean over the columns of a table, from halves of the columns.

    The correlation $r$ of the means of two halves of the columns, averaged over all ways of
    halving (or 200 random ones), and $2r / (1 + r)$ for the full length (Spearman; Brown 1910).

    >>> round(split_half(np.array([[1.0, 1.0], [2.0, 2.1], [3.0, 3.0], [4.0, 3.9]])), 2)
    1.0
    """
    columns = table.shape[1]
    if columns < 2:
        return math.nan
    deviations = table - table.mean(axis=0)
    products = deviations.T @ deviations
    correlations = []
    for half in _halves(columns, seed):
        one = np.zeros(columns)
        one[list(half)] = 1
        two = 1 - one
        spread = (one @ products @ one) * (two @ products @ two)
        correlations.append(one @ products @ two / math.sqrt(spread) if spread > 0 else math.nan)
    r = float(np.mean(correlations))
    return 2 * r / (1 + r) if r > -1 else math.nan


def _halves(columns: int, seed: int) -> list[tuple[int, ...]]:
    size = columns // 2
    if math.comb(columns, size) <= 2 * MAX_SPLITS:
        every = list(combinations(range(columns), size))
        return [half for half in every if columns % 2 or 0 in half]
    rng = np.random.default_rng(seed)
    return [tuple(rng.permutation(columns)[:size].tolist()) for _ in range(MAX_SPLITS)]


def _corrected(r: float, reliability: Sequence[float]) -> float | None:
    """Spearman's (1904) correction for attenuation, where it is sound."""
    if not min(reliability) >= RELIABLE:
        return None
    value = r / math.sqrt(reliability[0] * reliability[1])
    return value if abs(value) <= 1 else None


def _centred(rows: Floats, groups: Labels) -> Floats:
    """Each row minus the mean of every group; what remains of rounding is 0."""
    result = np.array(rows, dtype=float)
    rounding = ROUNDING * np.abs(result).max(axis=1, keepdims=True)
    for group in np.unique(groups):
        members = groups == group
        result[:, members] -= result[:, members].mean(axis=1, keepdims=True)
    result[np.abs(result) <= rounding] = 0
    return result


def _resampled(groups: Labels, resamples: int, rng: np.random.Generator) -> Labels:
    """Resamples of items (resamples, n): as many of each group as there are, at its positions."""
    result = np.empty((resamples, len(groups)), dtype=np.int64)
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        result[:, members] = members[rng.integers(len(members), size=(resamples, len(members)))]
    return result


def _permuted(groups: Labels, permutations: int, rng: np.random.Generator) -> Labels:
    """Orders of the items (permutations, n), each group shuffled within itself."""
    result = np.tile(np.arange(len(groups)), (permutations, 1))
    for group in np.unique(groups):
        members = np.flatnonzero(groups == group)
        result[:, members] = rng.permuted(np.tile(members, (permutations, 1)), axis=1)
    return result


def average_ranks(x: Floats, axis: int = -1) -> Floats:
    """The ranks along an axis, from 1; equal values share their mean rank, nan makes all nan.

    >>> average_ranks(np.array([0.3, 0.1, 0.3, 0.2]))
    array([3.5, 1. , 3.5, 2. ])
    """
    rows = np.moveaxis(np.asarray(x), axis, -1)
    order = np.argsort(rows, axis=-1)
    ordered = np.take_along_axis(rows, order, axis=-1)
    new = np.ones(rows.shape, dtype=bool)
    new[..., 1:] = ordered[..., 1:] != ordered[..., :-1]
    ranks = np.empty(rows.shape)
    if new.all():
        ranks[:] = np.argsort(order, axis=-1) + 1
    else:
        starts = np.flatnonzero(new)
        counts = np.diff(starts, append=rows.size)
        shared = np.repeat(starts % max(rows.shape[-1], 1) + (counts + 1) / 2, counts)
        np.put_along_axis(ranks, order, shared.reshape(rows.shape), axis=-1)
    ranks[np.isnan(rows).any(axis=-1)] = np.nan
    return np.moveaxis(ranks, -1, axis)


def _rowwise(one: Floats, two: Floats) -> Floats:
    """Pearson's r of each row of one table with the same row of the other."""
    a = one - one.mean(axis=1, keepdims=True)
    b = two - two.mean(axis=1, keepdims=True)
    with np.errstate(divide="ignore", invalid="ignore"):
        return np.asarray((a * b).sum(axis=1) / np.sqrt((a**2).sum(axis=1) * (b**2).sum(axis=1)))
