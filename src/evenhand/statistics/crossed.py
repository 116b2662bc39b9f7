"""Means of scores that are not independent, since they share templates, professions or documents.

Where every template is combined with every profession and every pair of persons, the variance of a
mean comes from the mean squares of the crossed random-effects table; scores in clusters of any
sizes, or in two kinds of clusters, from the jackknife over clusters.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.statistics.intervals import ROUNDING, Floats, most_freedom, wilson_limits


@dataclass(frozen=True, slots=True)
class Mean:
    r"""A mean, its variance, and the degrees of freedom that variance has.

    Parameters
    ----------
    value, variance, freedom : float
        The variance is NaN where nothing gives one.
    over : tuple of str
        The factors whose spread is in the variance.
    limits : tuple of float
        The range of the values, which cuts the interval.

    Notes
    -----
    Clusters that all have the same value x have a variance of 0, which is no certainty. At most a
    share $q = 1 - (\alpha/2)^{1/n}$ of the clusters can then differ, n the number of the coarsest,
    so the interval is $[x - q (x - l),\ x + q (u - x)]$ with the limits l and u: unbounded where
    there are none.

    Student's interval of a mean x of scores between 0 and 1 is too short on the side of the nearer
    bound. Wilson's (1927), of as many independent scores as have that variance, $x (1 - x) / V$,
    and with Student's quantile, is not.
    """

    value: float
    variance: float
    freedom: float
    over: tuple[str, ...] = ()
    limits: tuple[float, float] = (-math.inf, math.inf)

    def interval(self, prob: float) -> tuple[float, float]:
        """Student's interval; of scores between 0 and 1 Wilson's; unbounded without a variance."""
        from scipy.special import stdtrit

        low, high = self.limits
        if math.isnan(self.variance):
            return low, high
        if self.variance == 0:
            share = 1 - ((1 - prob) / 2) ** (1 / (self.freedom + 1))
            return self.value - share * (self.value - low), self.value + share * (high - self.value)
        if self.limits == (0.0, 1.0) and 0 < self.value < 1:
            worth = self.value * (1 - self.value) / self.variance
            return wilson_limits(self.value, worth, prob, self.freedom)
        half = float(stdtrit(self.freedom, (1 + prob) / 2)) * math.sqrt(self.variance)
        return max(self.value - half, low), min(self.value + half, high)

    @property
    def p_value(self) -> float | None:
        """Two-sided p-value of no difference."""
        return self.test(0.0)

    def test(self, null: float) -> float | None:
        """Two-sided p-value of this mean; None where nothing gives a variance."""
        from scipy.special import stdtr

        if math.isnan(self.variance):
            return None
        gap = self.value - null
        if self.variance > 0:
            return 2 * float(stdtr(self.freedom, -abs(gap) / math.sqrt(self.variance)))
        if gap == 0:
            return 1.0
        limit = self.limits[gap < 0]
        if math.isinf(limit):
            return None
        share = max(0.0, (null - limit) / (self.value - limit))
        return min(1.0, float(2 * share ** (self.freedom + 1)))


def crossed(
    table: ArrayLike, weights: ArrayLike | None = None, strata: Sequence[object] | None = None
) -> Mean:
    r"""A weighted mean over the professions of a table (templates, professions, pairs).

    `weights` has one number per profession (default 1/n; +1/n and -1/m compare two groups).
    `strata` labels groups of professions that are fixed, not sampled: only the spread inside each
    counts. With $MS$ the variance that each kind of deviation, taken alone, gives the mean,
    $V = MS_t + MS_p + MS_k - MS_{tp} - MS_{tk} - MS_{pk} + MS_{tpk}$, unbiased for the balanced
    random-effects table (Cornfield & Tukey, 1956); freedom by Satterthwaite (1946), at most that of
    the factor with the fewest levels (`most_freedom`). A factor with
    one level is fixed, not sampled. A stratum of one profession has no spread of its own and gets
    the pooled spread of the others; where every stratum has one profession there is no variance.

    >>> mean = crossed([[[1.0], [2.0], [3.0]], [[1.5], [2.5], [3.5]]])
    >>> [round(v, 2) for v in (mean.value, mean.variance)]
    [2.25, 0.4]
    """
    y = np.asarray(table, dtype=float)
    templates, professions, pairs = y.shape
    a = np.full(professions, 1 / professions) if weights is None else np.asarray(weights, float)
    labels = np.zeros(professions, int) if strata is None else np.asarray(strata)
    inner = np.einsum("tpk,p->tk", y, a)
    value = float(inner.mean())
    parts = [  # the factors' own terms, then those of two and three factors
        (1, *_part(inner.mean(axis=1), templates)),
        (1, *_part(inner.mean(axis=0), pairs)),
        (-1, *_part(inner, templates * pairs)),
    ]
    groups = [labels == label for label in np.unique(labels)]
    if len(groups) > 1 and len(groups) == professions:
        return Mean(value, math.nan, math.nan)
    single = sum(float(a[group] @ a[group]) for group in groups if group.sum() == 1)
    inside = professions - len(groups)
    for group in groups:
        share = single * float(group.sum() - 1) / inside if inside else 0.0
        weight = float(a[group] @ a[group]) + share
        stratum, size = y[:, group, :], 1 / weight if weight else math.inf
        parts += [
            (1, *_part(stratum.mean(axis=(0, 2)), size)),
            (-1, *_part(stratum.mean(axis=2), size * templates)),
            (-1, *_part(stratum.mean(axis=0), size * pairs)),
            (1, *_part(stratum, size * templates * pairs)),
        ]
    sampled = [(sign, variance, free) for sign, variance, free in parts if free]
    if not sampled:
        return Mean(value, math.nan, math.nan)
    smallest = max(parts[0][1], parts[1][1], sum(part[1] for part in parts[3::4]))
    variance = max(sum(sign * part for sign, part, _ in sampled), smallest)
    levels = {"templates": templates - 1, "professions": inside, "pairs": pairs - 1}
    over = {name: free for name, free in levels.items() if free > 0}
    return _mean(value, variance, [part[1:] for part in sampled], list(over.values()), y, over)


def clustered(
    values: ArrayLike,
    factors: Mapping[str, Sequence[object] | NDArray[Any]],
    *,
    groups: ArrayLike | None = None,
    fixed: bool = False,
) -> Mean:
    r"""The mean of scores that come in clusters, or in two kinds of clusters that are crossed.

    Parameters
    ----------
    values : array (scores)
    factors : Mapping of str to sequence
        For each score its cluster: one factor, or two that are crossed (item and template).
    groups : array of bool, optional
        Of which scores the mean is taken; that of the others is subtracted.
    fixed : bool
        Whether the levels of the second factor are the only ones of interest.

    Returns
    -------
    Mean
        Its variance is NaN where a factor that counts has a single level.

    Notes
    -----
    The variance is the jackknife's over the clusters of each factor; two of them add up, less the
    share of single scores, which is in both: $V = V_a + V_b - s^2 \sum w^2$, $s^2$ the mean square
    of the residuals of additive effects. A table that is complete has the variance of the two-way
    random-effects table. A factor has one degree of freedom less than its effective number of
    clusters, $1 / \sum w_c^2$ with the shares $w_c$ of the scores; two are joined by the rule of
    Satterthwaite (1946), and never have more than the coarser one (`most_freedom`).

    Examples
    --------
    >>> mean = clustered([1.0, 3.0, 2.0, 6.0], {"document": ["a", "a", "b", "b"]})
    >>> mean.value, mean.variance, mean.freedom
    (3.0, 1.0, 1.0)
    """
    y = np.asarray(values, dtype=float)
    first = np.ones(len(y), bool) if groups is None else np.asarray(groups, dtype=bool)
    sides = [first] if groups is None else [first, ~first]
    codes = [np.unique(np.asarray(labels), return_inverse=True)[1] for labels in factors.values()]
    value = float(y[first].mean() - (y[~first].mean() if len(sides) == 2 else 0.0))
    shared = 0.0
    if len(codes) == 2:
        effects, residual = _additive(y, *codes)
        freedom = len(y) - sum(int(code.max()) + 1 for code in codes) + 1
        if freedom > 0 and not fixed:
            shared = float(residual @ residual) / freedom * sum(1 / side.sum() for side in sides)
        if fixed:
            y, codes = y - effects[codes[1]], codes[:1]
    by_factor = [_left_out(y, code, sides) for code in codes]
    parts = [part for own in by_factor for part in own]
    variances = [variance for variance, _ in parts]
    if any(map(math.isnan, variances)):
        return Mean(value, math.nan, math.nan)
    variance = max(sum(variances) - shared, *variances)
    most = [most_freedom([free for _, free in own]) for own in by_factor]
    return _mean(value, variance, parts, most, y, tuple(factors)[: len(codes)])


def _mean(
    value: float,
    variance: float,
    parts: Sequence[tuple[float, float]],
    most: Sequence[float],
    y: Floats,
    over: Iterable[str],
) -> Mean:
    """A mean whose freedom is that of its parts (Satterthwaite), and of none of the factors more.

    A variance that is only rounding is 0.
    """
    if variance <= ROUNDING * float((y**2).mean()):
        return Mean(value, 0.0, min(most), tuple(over))
    squares = sum(own**2 / free for own, free in parts)
    return Mean(value, variance, min(max(1.0, variance**2 / squares), *most), tuple(over))


def _left_out(
    y: Floats, code: NDArray[np.intp], sides: Sequence[NDArray[np.bool_]]
) -> list[tuple[float, float]]:
    """The jackknife variance over one factor, and its degrees of freedom.

    Where every cluster is on one side only, each side has a variance of its own.
    """
    clusters = int(code.max()) + 1
    sizes = np.stack([np.bincount(code[side], minlength=clusters) for side in sides])
    sums = np.stack([np.bincount(code[side], y[side], clusters) for side in sides])
    with np.errstate(divide="ignore", invalid="ignore"):
        without = (sums.sum(axis=1, keepdims=True) - sums) / (
            sizes.sum(axis=1, keepdims=True) - sizes
        )
    shares = sizes / sizes.sum(axis=1, keepdims=True)
    if len(sides) == 2 and (np.count_nonzero(sizes, axis=0) == 2).any():
        without, shares = without[:1] - without[1:], shares.mean(axis=0, keepdims=True)
    parts = []
    for replicates, weight in zip(without, shares, strict=True):
        own = replicates[weight > 0]
        spread = (own.size - 1) * float(own.var()) if own.size > 1 else math.nan
        parts.append((spread, max(1.0, 1 / float(weight @ weight) - 1)))
    return parts


def _additive(
    y: Floats, rows: NDArray[np.intp], columns: NDArray[np.intp]
) -> tuple[Floats, Floats]:
    """The effects of the columns, and the residuals, of additive effects of rows and columns."""
    counts = [np.bincount(code) for code in (rows, columns)]
    by_row, by_column = np.zeros(len(counts[0])), np.zeros(len(counts[1]))
    for _ in range(200):
        by_row = np.bincount(rows, y - by_column[columns]) / counts[0]
        before, by_column = by_column, np.bincount(columns, y - by_row[rows]) / counts[1]
        if np.abs(by_column - before).max() <= 1e-12 * max(1.0, float(np.abs(y).max())):
            break
    return by_column - by_column.mean(), y - by_row[rows] - by_column[columns]


def pooled(table: ArrayLike) -> tuple[Floats, list[Mean]]:
    r"""The means of the professions, shrunk towards the common mean as far as they are noise.

    Empirical Bayes for the balanced table: $\hat\theta_p = \bar y + b (\bar y_p - \bar y)$, with
    $b = \hat\sigma_p^2 / (\hat\sigma_p^2 + s^2)$, where $s^2$ is the variance that templates and
    pairs give one profession's deviation. The variance is Morris's (1983), which allows for
    $b$ being estimated, plus that of $\bar y$ over templates and pairs.
    """
    y = np.asarray(table, dtype=float)
    professions = y.shape[1]
    means = y.mean(axis=(0, 2))
    noise = noise_of_one(y)
    common = crossed(y.mean(axis=1, keepdims=True))
    if professions < 4 or math.isnan(common.variance):
        return means, [crossed(y[:, [p], :]) for p in range(professions)]
    spread = float(means.var(ddof=1))
    pull = (professions - 3) / (professions - 1) * min(1.0, noise / spread) if spread else 1.0
    gaps = means - means.mean()
    values = means.mean() + (1 - pull) * gaps
    variances = (
        noise * (1 - pull * (professions - 1) / professions)
        + 2 / (professions - 3) * pull**2 * gaps**2
        + common.variance
    )
    return values, [
        Mean(float(value), float(variance), common.freedom)
        for value, variance in zip(values, variances, strict=True)
    ]


def noise_of_one(table: ArrayLike) -> float:
    """The variance that templates and pairs give the deviation of one profession's mean."""
    y = np.asarray(table, dtype=float)
    templates, _, pairs = y.shape
    by_template, by_pair = _part(y.mean(axis=2), templates)[0], _part(y.mean(axis=0), pairs)[0]
    return max(by_template + by_pair - _part(y, templates * pairs)[0], by_template, by_pair)


def _part(values: Floats, size: float) -> tuple[float, int]:
    """The mean square of what no factor alone explains, over `size`, and its freedom.

    In one dimension that is the variance; in two and three each factor's means are taken out.
    """
    rest = values
    for axis in range(values.ndim):
        rest = rest - rest.mean(axis=axis, keepdims=True)
    freedom = math.prod(n - 1 for n in values.shape)
    return (float((rest**2).sum()) / freedom / size, freedom) if freedom else (0.0, 0)
