"""Intervals on arrays: the statistics behind every `low` and `high`.

Every function takes plain numbers and returns plain numbers. The caller decides, and documents,
which items are the sampling unit.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import lru_cache
from statistics import NormalDist

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.statistics.power import quantile

__all__ = [
    "Floats",
    "bootstrap_mean",
    "crossed_mean",
    "effect_size",
    "fisher_z",
    "independent_difference",
    "jackknife",
    "paired_shares",
    "t_mean",
    "two_way_jackknife",
    "welch",
    "wilson",
    "wilson_limits",
]

Floats = NDArray[np.float64]

_FAR = 200.0
"""A value of Student's t above which only the uncertainty of the spread counts."""
_FEW = 2
"""The most degrees of freedom with which a stratum limits those of its factor."""
FEWEST = 0.5
"""The fewest degrees of freedom that inform a variance."""
ROUNDING = 1e-24
"""A variance below this share of the squares is rounding: the values are equal."""


def most_freedom(*factors: Sequence[float]) -> float:
    """The most degrees of freedom that a variance over several random factors can have.

    Satterthwaite's rule weighs the factors by their estimated variances. Where the estimate of a
    factor with few levels is near 0 by chance, the rule gives the many degrees of freedom of the
    others, and the interval is far too short; a correction for many tests selects these cases. So
    there are never more than the coarsest factor has. Each factor is given as the degrees of
    freedom of its strata, which add up; a stratum with fewer than three limits its factor.

    >>> most_freedom([99], [3]), most_freedom([6, 8]), most_freedom([1, 40])
    (3, 14, 1)
    """
    return min(sum(own) if min(own) > _FEW else min(own) for own in factors)


def t_mean(x: ArrayLike, prob: float = 0.95) -> tuple[float, float, float]:
    """The mean and its Student-t interval; with fewer than two values the interval is unbounded.

    >>> [round(v, 3) for v in t_mean([1.0, 2.0, 3.0])]
    [2.0, -0.484, 4.484]
    """
    x = np.asarray(x, dtype=float)
    n = x.size
    mean = float(x.mean()) if n else math.nan
    if n < 2:
        return mean, -math.inf, math.inf
    spread = float(x.std(ddof=1))
    if spread**2 <= ROUNDING * mean**2:
        return mean, -math.inf, math.inf
    half = _t_quantile(prob, n - 1) * spread / math.sqrt(n)
    return mean, mean - half, mean + half


def welch(x: ArrayLike, y: ArrayLike, prob: float = 0.95) -> tuple[float, float, float]:
    """The difference of two means with Welch's interval (unequal variances).

    A side with fewer than four values limits the degrees of freedom to its own (`most_freedom`).

    >>> [round(v, 3) for v in welch([1.0, 2.0, 3.0, 4.0], [0.0, 1.0, 2.0, 3.0])]
    [1.0, -1.234, 3.234]
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    difference = float(x.mean() - y.mean())
    if min(x.size, y.size) < 2:
        return difference, -math.inf, math.inf
    a, b = float(x.var(ddof=1)) / x.size, float(y.var(ddof=1)) / y.size
    if a + b == 0:
        return difference, -math.inf, math.inf
    freedom = (a + b) ** 2 / (a**2 / (x.size - 1) + b**2 / (y.size - 1))
    freedom = min(freedom, most_freedom([x.size - 1, y.size - 1]))
    half = _t_quantile(prob, freedom) * math.sqrt(a + b)
    return difference, difference - half, difference + half


def jackknife(
    value: float,
    without: ArrayLike,
    prob: float = 0.95,
    *,
    strata: ArrayLike | None = None,
    scale: tuple[Callable[[Floats], Floats], Callable[[Floats], Floats]] | None = None,
) -> tuple[float, float]:
    """Tukey's jackknife interval from the values with one item left out each.

    `strata` labels the items of groups whose sizes are given, not drawn: only the spread inside
    each counts. `scale` is a pair (to, back) of functions: the interval is made on the
    transformed scale, which keeps a bounded or skewed statistic inside its range.

    >>> x = np.array([1.0, 2.0, 3.0])
    >>> [round(v, 3) for v in jackknife(x.mean(), [(6 - v) / 2 for v in x])]
    [-0.484, 4.484]
    """
    replicates = np.asarray(without, dtype=float)
    labels = np.zeros(replicates.size, dtype=int) if strata is None else np.asarray(strata)
    to, back = scale or (np.asarray, np.asarray)
    with np.errstate(divide="ignore", invalid="ignore"):
        centre, moved = to(np.asarray(value, dtype=float)), to(replicates)
        groups = [moved[labels == label] for label in np.unique(labels)]
        freedom = replicates.size - len(groups)
        if freedom < 1:
            return -math.inf, math.inf
        variance = sum((group.size - 1) * float(group.var()) for group in groups)
        half = _t_quantile(prob, freedom) * math.sqrt(variance)
        low, high = float(back(centre - half)), float(back(centre + half))
    if math.isnan(low) or math.isnan(high):
        return -math.inf, math.inf
    return low, high


def two_way_jackknife(
    value: float, one: ArrayLike, two: ArrayLike, cells: float = 0.0, prob: float = 0.95
) -> tuple[float, float]:
    """The interval of a statistic on a table whose rows and columns are both samples.

    The jackknife variances over rows (`one`) and columns (`two`) add up; `cells`, the variance
    that the cells' own noise gives the statistic, is in both and so is taken off once. Degrees
    of freedom by Satterthwaite's rule, at most those of the coarser factor (`most_freedom`).
    Unbounded where no replicate differs.
    """
    ways = [x[np.isfinite(x)] for x in (np.asarray(one, float), np.asarray(two, float))]
    if min(x.size for x in ways) < 2:
        return -math.inf, math.inf
    variances = [(x.size - 1) * float(x.var()) for x in ways]
    total = max(sum(variances) - cells, *variances)
    if total <= ROUNDING * value**2:
        return -math.inf, math.inf
    freedom = total**2 / sum(s**2 / (x.size - 1) for s, x in zip(variances, ways, strict=True))
    freedom = min(max(1.0, freedom), most_freedom(*([x.size - 1] for x in ways)))
    half = _t_quantile(prob, freedom) * math.sqrt(total)
    return value - half, value + half


def wilson(successes: float, n: float, prob: float = 0.95) -> tuple[float, float, float]:
    """A share and its Wilson score interval (Wilson, 1927).

    >>> [round(v, 3) for v in wilson(8, 10)]
    [0.8, 0.49, 0.943]
    """
    if n == 0:
        return math.nan, 0.0, 1.0
    share = successes / n
    centre, half = _wilson(share, n, quantile((1 + prob) / 2))
    return share, centre - half if successes else 0.0, centre + half if successes < n else 1.0


def wilson_limits(share: float, n: float, prob: float, freedom: float) -> tuple[float, float]:
    """Wilson's limits with Student's quantile; 0 to 1 with too few degrees of freedom."""
    if freedom < FEWEST:
        return 0.0, 1.0
    centre, half = _wilson(share, n, quantile((1 + prob) / 2, freedom))
    return min(share, max(0.0, centre - half)), max(share, min(1.0, centre + half))


def _wilson(share: float, n: float, z: float) -> tuple[float, float]:
    """The centre and half the width of Wilson's interval with this quantile."""
    centre = (share + z * z / (2 * n)) / (1 + z * z / n)
    return centre, z / (1 + z * z / n) * math.sqrt(share * (1 - share) / n + z * z / (4 * n * n))


def fisher_z(
    r: float, n: int, prob: float = 0.95, *, spearman: bool = False
) -> tuple[float, float]:
    """Fisher's interval for a correlation; for Spearman's with Bonett & Wright's (2000) variance.

    Ranks that agree throughout do not prove a correlation of 1: Spearman's r counts as no more
    than that of ranks with one neighbouring pair exchanged, and the quantile is Student's, which
    keeps the coverage near nominal for short lists and strong correlations.

    >>> [round(v, 3) for v in fisher_z(0.5, 28)]
    [0.156, 0.736]
    """
    if n < 4 or math.isnan(r):
        return -1.0, 1.0
    if not spearman:
        if abs(r) >= 1:
            return r, r
        half = NormalDist().inv_cdf((1 + prob) / 2) / math.sqrt(n - 3)
        return math.tanh(math.atanh(r) - half), math.tanh(math.atanh(r) + half)
    most = 1 - 12 / (n * (n * n - 1))
    shrunk = min(max(r, -most), most)
    half = _t_quantile(prob, n - 2) * math.sqrt((1 + shrunk * shrunk / 2) / (n - 3))
    low, high = math.tanh(math.atanh(shrunk) - half), math.tanh(math.atanh(shrunk) + half)
    return (low if r > -most else -1.0), (high if r < most else 1.0)


def effect_size(x: ArrayLike, y: ArrayLike, prob: float = 0.95) -> tuple[float, float, float]:
    r"""The difference of means over the standard deviation of the union, with its interval.

    $d = (\bar x - \bar y) / s_{x \cup y}$, with $n - 1$ under the square root as in Caliskan,
    Bryson & Narayanan (2017). d is an increasing function of Student's t, so the noncentral-t
    interval for $\delta = (\mu_x - \mu_y)/\sigma$ carries over exactly: with the shares
    $w, 1-w$ of the two groups, the union's spread is $\sigma\sqrt{1 + w(1-w)\delta^2}$. That
    holds for normal scores; cosines are skewed where an effect is very large, so an end is moved
    out to the jackknife's where that lies further. (In few words d cannot reach the 2 that it can
    reach in a population; the interval then takes in d itself.)
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    nx, ny = x.size, y.size
    n, difference = nx + ny, float(x.mean() - y.mean())
    spread = float(np.concatenate([x, y]).std(ddof=1)) if n > 1 else 0.0
    value = difference / spread if spread > 0 else math.nan
    within = float(((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum())
    if n < 3 or spread == 0:
        return value, -math.inf, math.inf
    if within <= 1e-24 * n * spread**2:
        return value, value, value
    root, share = math.sqrt(nx * ny / n), nx / n * (ny / n)
    delta = difference / math.sqrt(within / (n - 2))
    limits = [limit / root for limit in _noncentral_t(delta * root, n - 2, prob)]
    if min(nx, ny) > 2:
        wider = _jackknifed_delta(x, y, delta, prob)
        limits = [min(limits[0], wider[0]), max(limits[1], wider[1])]
    low, high = (limit / math.sqrt(1 + share * limit * limit) for limit in limits)
    return value, min(low, value), max(high, value)


def _jackknifed_delta(x: Floats, y: Floats, delta: float, prob: float) -> tuple[float, float]:
    r"""The jackknife interval of δ on the scale asinh(cδ), which evens out its variance.

    Leaving out $x_i$ moves the mean and takes $n/(n-1) (x_i - \bar x)^2$ from the squares.
    """
    sizes = np.array([x.size, y.size])
    n = int(sizes.sum())
    squares = float(((x - x.mean()) ** 2).sum() + ((y - y.mean()) ** 2).sum())
    replicates = []
    for side, size, sign in ((x, x.size, -1.0), (y, y.size, 1.0)):
        gap = side - side.mean()
        rest = np.maximum(squares - size / (size - 1) * gap**2, 1e-12 * squares)
        difference = x.mean() - y.mean() + sign * gap / (size - 1)
        replicates.append(difference / np.sqrt(rest / (n - 3)))
    curve = math.sqrt(x.size * y.size / 2) / n
    unbiased = delta * (1 - 3 / (4 * (n - 2) - 1))
    return jackknife(
        unbiased,
        np.concatenate(replicates),
        prob,
        strata=np.repeat([0, 1], sizes),
        scale=(lambda d: np.arcsinh(curve * d), lambda z: np.sinh(z) / curve),
    )


def crossed_mean(
    table: ArrayLike,
    strata: ArrayLike | None = None,
    prob: float = 0.95,
) -> tuple[float, float, float]:
    r"""The mean of a table whose rows AND columns are both samples, with its interval.

    Every row (say a protected word) meets every column (an attribute), so the cells are not
    independent. `strata` labels the columns of fixed groups that count equally (attribute sets).
    The variance is rows' + columns' - cells' contribution (two-way random effects), its degrees
    of freedom come from Satterthwaite's rule and are at most those of the coarser factor
    (`most_freedom`). Unbounded where neither rows nor columns differ.
    """
    y = np.asarray(table, dtype=float)
    rows, columns = y.shape
    labels = np.zeros(columns, dtype=int) if strata is None else np.asarray(strata)
    _, groups, sizes = np.unique(labels, return_inverse=True, return_counts=True)
    w = 1 / (sizes.size * sizes[groups])
    mean = float((y @ w).mean())
    if rows < 2 or columns <= sizes.size:
        return mean, -math.inf, math.inf
    row_means, column_means = y @ w, y.mean(axis=0)
    group_means = np.bincount(groups, column_means) / sizes
    by_rows = float(row_means.var(ddof=1)) / rows
    spread = float(((column_means - group_means[groups]) ** 2).sum()) / (columns - sizes.size)
    by_columns = spread * float(w @ w)
    residual = y - row_means[:, None] - column_means[None, :] + mean
    freedom = (rows - 1) * (columns - 1)
    by_cells = float((residual**2).sum()) / freedom * float(w @ w) / rows
    variance = max(by_rows + by_columns - by_cells, by_rows, by_columns)
    if variance <= ROUNDING * float((y**2).mean()):
        return mean, -math.inf, math.inf
    parts = by_rows**2 / (rows - 1) + by_columns**2 / (columns - sizes.size) + by_cells**2 / freedom
    most = most_freedom([rows - 1], [columns - sizes.size])
    half = _t_quantile(prob, min(max(1.0, variance**2 / parts), most)) * math.sqrt(variance)
    return mean, mean - half, mean + half


@lru_cache(maxsize=1024)
def _t_quantile(prob: float, freedom: float) -> float:
    """Half the width, in standard errors, of Student's central interval; by Newton's method.

    It starts from the normal quantile, which is smaller, and rises: the tail is convex.
    """
    if math.isnan(freedom):
        return math.nan
    freedom = min(freedom, 1e9)
    tail = (1 - prob) / 2
    logarithm = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2)
    scale = math.exp(logarithm) / math.sqrt(freedom * math.pi)
    t, step = -NormalDist().inv_cdf(tail), 1.0
    while step > 1e-13 * (1 + t):
        density = scale * math.exp(-(freedom + 1) / 2 * math.log1p(t * t / freedom))
        step = (_t_tail(t, freedom) - tail) / density
        t += step
    return t


def _t_tail(t: float, freedom: float, centre: float = 0.0) -> float:
    r"""P(T > t) of Student's t, noncentral where `centre` δ is not 0.

    $\mathrm{E}\,\Phi(\delta - t\sqrt{V/\nu})$ with $V \sim \chi^2_\nu$, over $\log(V/\nu)$ by the
    trapezoidal rule, which gives all digits of such an integral. SciPy's functions give the same,
    but the import of `scipy.special` takes longer than hundreds of intervals.
    """
    half = freedom / 2
    reach = 37 / half
    step = 0.4 / math.sqrt(2 + half + centre * centre / 8)
    u = np.arange(-reach - math.sqrt(2 * reach), min(math.sqrt(2 * reach), 5.0), step)
    weights = np.exp(half * (u - np.expm1(u)))  # e^-37 at both ends
    z = (t * np.exp(u / 2) - centre) / math.sqrt(2)
    tails = np.array([math.erfc(x) for x in z.tolist()]) / 2
    return float(weights @ tails / weights.sum())


def _noncentral_t(t: float, freedom: int, prob: float) -> tuple[float, float]:
    """The noncentralities at which t is the upper and the lower (1-prob)/2 point.

    Far out only the spread's own uncertainty counts: there they are t·√(χ²/freedom).
    """
    tail = (1 - prob) / 2
    if abs(t) > _FAR:
        from scipy.special import chdtri

        ends = [t * math.sqrt(float(chdtri(freedom, p)) / freedom) for p in (tail, 1 - tail)]
        return min(ends), max(ends)

    def limit(level: float) -> float:
        def excess(centre: float) -> float:
            return level - _t_tail(t, freedom, centre)

        reach = 5 * math.sqrt(1 + t * t / (2 * freedom))
        while excess(t - reach) < 0 or excess(t + reach) > 0:
            reach *= 1.5
        return _root(excess, t - reach, t + reach)

    return limit(tail), limit(1 - tail)


def _root(f: Callable[[float], float], low: float, high: float, tolerance: float = 1e-11) -> float:
    """The root of f, which has unlike signs at both ends (Chandrupatla 1997)."""
    a, b, t = low, high, 0.5
    f_a, f_b = f(a), f(b)
    while True:
        x = a + t * (b - a)
        f_x = f(x)
        if (f_x < 0) == (f_a < 0):
            c, f_c = a, f_a
        else:
            c, f_c, b, f_b = b, f_b, a, f_a
        a, f_a = x, f_x
        best, f_best = (a, f_a) if abs(f_a) < abs(f_b) else (b, f_b)
        share = tolerance / abs(b - a) if b != a else 1.0
        if share > 0.5 or f_best == 0:
            return best
        xi, phi = (a - b) / (c - b), (f_a - f_b) / (f_c - f_b)
        t = 0.5
        if phi**2 < xi and (1 - phi) ** 2 < 1 - xi:  # inverse quadratic interpolation is safe
            t = f_a / (f_b - f_a) * f_c / (f_b - f_c)
            t += (c - a) / (b - a) * f_a / (f_c - f_a) * f_b / (f_c - f_b)
        t = min(max(t, share), 1 - share)


def paired_shares(
    both: int, first: int, second: int, neither: int, *, prob: float = 0.95
) -> tuple[float, float, float]:
    r"""The second share minus the first, of the same items, with its interval.

    Newcombe (1998), method 10: the Wilson intervals of the two shares, combined with the
    correlation $\phi$ that the pairing gives them.

    >>> [round(x, 4) for x in paired_shares(36, 2, 12, 0)]
    [0.2, 0.0569, 0.3404]
    """
    n = both + first + second + neither
    if not n:
        return math.nan, -1.0, 1.0
    one, low_one, high_one = wilson(both + first, n, prob)
    two, low_two, high_two = wilson(both + second, n, prob)
    product = float(both * neither - first * second)
    if product > 0:
        product = max(product - n / 2, 0.0)
    margins = (both + first) * (second + neither) * (both + second) * (first + neither)
    phi = product / math.sqrt(margins) if margins else 0.0

    def distance(a: float, b: float) -> float:
        return math.sqrt(max(a * a - 2 * phi * a * b + b * b, 0.0))

    value = two - one
    low = value - distance(two - low_two, high_one - one)
    return value, low, value + distance(high_two - two, one - low_one)


RESAMPLES = 4000
_GROUPED = 2048  # from this many values on, similar ones are resampled together
_WEIGHTED = 256  # with more different values, similar ones have one weight
_GROUPS = 64
_VALUES_AT_ONCE = 1 << 22
_PRIOR_OBSERVATIONS = 0.5


def bootstrap_mean(
    x: ArrayLike,
    *,
    prob: float = 0.95,
    seed: int = 0,
    bounds: tuple[float, float] = (0.0, 1.0),
    resamples: int = RESAMPLES,
) -> tuple[float, float, float]:
    r"""The mean of values within `bounds` and its interval; the values are the sampling unit.

    Each end is the outer one of two intervals, and no further out than that of a third.

    1. Student's, which holds for values that are symmetric about their mean.
    2. The bootstrap-t (Efron 1979) for skewed ones. With $t^* = (\bar x^* - \bar x)/s^*$ over
       resamples it is $[\bar x - q_{1-\alpha/2}(t^*) s,\ \bar x - q_{\alpha/2}(t^*) s]$. $s^{*2}$
       includes half an observation's worth of $s^2$, so that a resample without the only outlier
       does not have zero spread.
    3. Gaffke's (2005) for every distribution within the bounds. With weights
       $w \sim \mathrm{Dirichlet}(1, \dots, 1)$ the upper end is the $1 - \alpha/2$ quantile of
       $w_0 \cdot \text{maximum} + \sum_i w_i x_i$, the lower one likewise with the minimum. Of
       values at the bounds it is Clopper & Pearson's interval of a share. Of equal values it says
       that at most a share $1 - (\alpha/2)^{1/n}$ of the population differs. Without it, resamples
       that lack the few values that differ would make the interval many times as wide as the bounds
       allow (3 zeros among 100 ones: [.54, 1.00]).

    In simulation on shares, skewed, bimodal, uniform and usual scores it covers 93 to 99 % from 8
    values on. Fewer values of skewed and bimodal scores do not show how far these vary: with 3 to 7
    it covers 73 to 98 % of them, and 94 to 100 % of others.

    From 2,048 values on, values of one of 64 parts of their range are resampled as one value, and
    the spread of the resampled means is corrected for it.

    >>> value, low, high = bootstrap_mean([0.4, 0.6, 0.7, 0.5, 0.8, 0.6])
    >>> round(value, 2), low < 0.55, high > 0.65
    (0.6, True, True)
    """
    values = np.sort(np.asarray(x, dtype=float))
    n, tail = values.size, (1 - prob) / 2
    minimum, maximum = bounds
    if n == 0:
        return math.nan, minimum, maximum
    mean = float(values.mean())
    if values[0] == values[-1]:
        share = 1 - tail ** (1 / n)
        value = float(values[0])
        return value, value - share * (value - minimum), value + share * (maximum - value)
    rng = np.random.default_rng(seed)
    t = np.sort(_studentised(values, rng, resamples))
    spread = float(values.std(ddof=1)) / math.sqrt(n)
    lower = t[math.floor(tail * (resamples - 1))]
    upper = t[math.ceil((1 - tail) * (resamples - 1))]
    low, high = mean - float(upper) * spread, mean - float(lower) * spread
    _, student_low, student_high = t_mean(values, prob)
    least, most = _bounded(values, bounds, prob, rng, resamples)
    return mean, max(min(low, student_low), least), min(max(high, student_high), most)


def _bounded(
    values: Floats,
    bounds: tuple[float, float],
    prob: float,
    rng: np.random.Generator,
    resamples: int,
) -> tuple[float, float]:
    """Gaffke's interval of the mean of values, in increasing order, within bounds."""
    parts, sizes = np.unique(values, return_counts=True)
    if parts.size > _WEIGHTED:
        starts = _parts(values)
        sizes = np.diff([*starts, values.size])
        parts = np.add.reduceat(values, starts) / sizes
    step = max(1, _VALUES_AT_ONCE // parts.size)
    means, shares = np.empty(resamples), np.empty(resamples)
    for start in range(0, resamples, step):
        count = min(step, resamples - start)
        weights = rng.standard_gamma(sizes, (count, parts.size))
        extra = rng.standard_exponential(count)
        total = weights.sum(axis=1) + extra
        means[start : start + count] = weights @ parts / total
        shares[start : start + count] = extra / total
    tail = (1 - prob) / 2
    low, high = (
        float(np.quantile(means + shares * bound, q)) if math.isfinite(bound) else bound
        for bound, q in zip(bounds, (tail, 1 - tail), strict=True)
    )
    return low, high


def _parts(values: Floats) -> NDArray[np.int64]:
    """Where parts of equal width begin in values in increasing order.

    Of equal width, so that a rare value far from the others is not averaged with them.
    """
    edges = np.linspace(values[0], values[-1], _GROUPS + 1)[1:-1]
    return np.unique(np.searchsorted(values, [values[0], *edges]))


def _studentised(values: Floats, rng: np.random.Generator, resamples: int) -> Floats:
    """t* of each resample."""
    n, mean = values.size, values.mean()
    centred = values - mean
    if n >= _GROUPED:
        starts = _parts(values)
        sizes = np.diff([*starts, n])
        of_group = np.add.reduceat(centred, starts) / sizes
        squares_of_group = np.add.reduceat(centred**2, starts) / sizes
        drawn = rng.multinomial(n, sizes / n, size=resamples) / n
        means, squares = drawn @ of_group, drawn @ squares_of_group
        means *= math.sqrt((sizes @ squares_of_group) / (sizes @ of_group**2))
    else:
        means, squares = np.empty(resamples), np.empty(resamples)
        step = max(1, _VALUES_AT_ONCE // n)
        for start in range(0, resamples, step):
            drawn = centred[rng.integers(0, n, (min(step, resamples - start), n))]
            means[start : start + step] = drawn.mean(axis=1)
            squares[start : start + step] = (drawn**2).mean(axis=1)
    variance = np.maximum(squares - means**2, 0)
    smoothed = (n * variance + _PRIOR_OBSERVATIONS * (centred**2).mean()) / (
        n + _PRIOR_OBSERVATIONS
    )
    return np.asarray(means / np.sqrt(smoothed / (n - 1)))


def share_difference(
    first: float, n: float, second: float, m: float, prob: float = 0.95
) -> tuple[float, float, float]:
    r"""The difference of two independent shares, first/n - second/m, with Newcombe's interval.

    Wilson's limits of both shares, combined: $d - \sqrt{(p_1 - l_1)^2 + (u_2 - p_2)^2}$ and
    $d + \sqrt{(u_1 - p_1)^2 + (p_2 - l_2)^2}$ (Newcombe 1998, method 10).

    >>> [round(v, 4) for v in share_difference(56, 70, 48, 80)]
    [0.2, 0.0524, 0.3339]
    """
    one, low_one, high_one = wilson(first, n, prob)
    two, low_two, high_two = wilson(second, m, prob)
    difference = one - two
    low = difference - math.hypot(one - low_one, high_two - two)
    high = difference + math.hypot(high_one - one, two - low_two)
    return difference, low, high


def independent_difference(
    first: tuple[float, float, float],
    second: tuple[float, float, float],
    prob: float = 0.95,
    second_prob: float | None = None,
    *,
    ratio: bool = False,
) -> tuple[float, float, float]:
    r"""The difference of two independent estimates, its interval recovered from their two.

    $d - \sqrt{(v_2 - l_2)^2 + (u_1 - v_1)^2}$ to $d + \sqrt{(u_2 - v_2)^2 + (v_1 - l_1)^2}$ for
    estimates v with intervals from l to u (Newcombe 1998; Zou & Donner 2008). With symmetric
    intervals it is the usual normal one, with others it preserves their skew. An interval of
    another level (`second_prob`) is first brought to `prob` by normal quantiles. A `ratio` is
    computed on the logarithm.

    >>> [round(x, 3) for x in independent_difference((1.0, 0.0, 2.0), (5.0, 4.0, 6.0))]
    [4.0, 2.586, 5.414]
    """
    (v1, down1, up1), (v2, down2, up2) = (_arms(each, ratio=ratio) for each in (first, second))
    if second_prob is not None and second_prob != prob:
        from scipy.special import ndtri

        stretch = float(ndtri((1 + prob) / 2) / ndtri((1 + second_prob) / 2))
        down2, up2 = down2 * stretch, up2 * stretch
    gap = v2 - v1
    low, high = gap - math.hypot(down2, up1), gap + math.hypot(up2, down1)
    return (math.exp(gap), math.exp(low), math.exp(high)) if ratio else (gap, low, high)


def _arms(estimate: tuple[float, float, float], *, ratio: bool) -> tuple[float, float, float]:
    """The value and how far the interval goes below and above it; evenly if it is not inside."""
    value, low, high = estimate
    if ratio:
        value, low, high = (math.log(x) if x > 0 else math.nan for x in estimate)
    if not low <= value <= high:
        half = (high - low) / 2
        return value, half, half
    return value, value - low, high - value
