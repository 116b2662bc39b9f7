r"""Means and shares of scores that come in clusters, and their differences, of few clusters too.

The clusters are what is sampled. The variance of a mean is the jackknife's over its clusters. How
well it is known depends on the number of clusters that count, $K = 1 / \sum w_c^2$ with the shares
$w_c$ of the scores, and on how unlike they are: where a few clusters have nearly all of the spread,
these are what it rests on. The degrees of freedom are Satterthwaite's with the excess kurtosis of
the clusters, $1 / (1 / (K - 1) + \gamma / (2 J))$ for $J$ clusters: never more than $J - 1$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.statistics.crossed import Mean
from evenhand.statistics.intervals import FEWEST, Floats, wilson_limits

NOTHING = 1e-24
"""Variances below are rounding errors."""


@dataclass(frozen=True, slots=True, eq=False)
class ClusterMean:
    """A mean over clusters.

    Parameters
    ----------
    value : float
    n : int
        Scores.
    clusters : float
        The effective number of clusters.
    freedom : float
        Degrees of freedom of the variance; 0 with a single cluster, or one that has nearly all
        scores.
    present : array of bool
        Which clusters have a score.
    deviations : array
        What each cluster adds to the mean by the jackknife, 0 for those without a score; the sum
        of their squares is the variance.

    """

    value: float
    n: int
    clusters: float
    freedom: float
    present: NDArray[np.bool_]
    deviations: Floats

    @property
    def variance(self) -> float:
        """Of the mean; NaN with a single cluster."""
        return float(self.deviations @ self.deviations) if self.freedom else math.nan

    @property
    def worth(self) -> float:
        """How many independent answers those of a share are worth.

        Never more than there are (a design effect of 1 or more); the effective number of clusters
        where all answers are equal, since then nothing says how alike those of a cluster are.
        """
        spread = self.value * (1 - self.value)
        if spread <= 0 or not self.freedom:
            return self.clusters
        return spread / max(self.variance, spread / self.n)

    def share(self, prob: float) -> tuple[float, float, float]:
        """The mean as a share, with Wilson's interval of the answers that it is worth."""
        return (self.value, *wilson_limits(self.value, self.worth, prob, self.freedom))


def cluster_mean(values: ArrayLike, codes: NDArray[np.intp], clusters: int) -> ClusterMean:
    """The mean of scores, each with the number of its cluster, of which there are `clusters`.

    >>> mean = cluster_mean([1.0, 3.0, 2.0, 6.0], np.array([0, 0, 1, 1]), 2)
    >>> mean.value, mean.variance, mean.freedom
    (3.0, 1.0, 1.0)
    """
    y = np.asarray(values, dtype=float)
    sizes, sums = np.bincount(codes, minlength=clusters), np.bincount(codes, y, clusters)
    value, present = float(y.mean()), sizes > 0
    effective = len(y) ** 2 / float(sizes @ sizes)
    number, deviations = int(present.sum()), np.zeros(clusters)
    if effective - 1 < FEWEST:
        return ClusterMean(value, len(y), effective, 0.0, present, deviations)
    without = (sums.sum() - sums[present]) / (len(y) - sizes[present])
    deviations[present] = math.sqrt((number - 1) / number) * (without.mean() - without)
    squares = (sums - value * sizes) ** 2
    excess = 0.0
    if squares.sum() > NOTHING:
        excess = max(0.0, number * float(squares @ squares) / float(squares.sum()) ** 2 - 3)
    freedom = 1 / (1 / (effective - 1) + excess / (2 * number))
    return ClusterMean(value, len(y), effective, freedom, present, deviations)


def difference(one: ClusterMean, two: ClusterMean) -> Mean:
    """The first mean less the second, of the same clusters or of others.

    Where clusters are in both, the difference within them is what enters. Degrees of freedom by
    Welch's rule where none is, otherwise the smaller ones.
    """
    value = one.value - two.value
    freedom = _joint_freedom(one, two, one.variance, two.variance)
    if not freedom:
        return Mean(value, math.nan, 0.0)
    own = one.deviations - two.deviations
    return Mean(value, float(own @ own), freedom)


def share_difference(one: ClusterMean, two: ClusterMean) -> ShareDifference:
    """The difference of two shares; see `ShareDifference`."""
    rates = [(side.value * side.worth + 1) / (side.worth + 2) for side in (one, two)]
    plain = [side.value * (1 - side.value) / side.worth for side in (one, two)]
    freedom = _joint_freedom(one, two, *plain)
    alike = 0.0
    if min(plain) > 0:
        alike = float(one.deviations @ two.deviations) / math.sqrt(plain[0] * plain[1])
    alike = min(max(alike, -1.0), 1 - 1 / min(one.clusters, two.clusters))
    smoothed = [
        rate * (1 - rate) / side.worth for rate, side in zip(rates, (one, two), strict=True)
    ]
    variance = sum(smoothed) - 2 * alike * math.sqrt(smoothed[0] * smoothed[1])
    return ShareDifference(one, two, alike, variance, freedom)


@dataclass(frozen=True, slots=True, eq=False)
class ShareDifference:
    """The difference of two shares of answers in clusters.

    Parameters
    ----------
    one, two : ClusterMean
    correlation : float
        Of both, by the clusters that are in both. It stays below 1 by one cluster's part, since
        clusters that agree throughout do not prove that all do.
    variance : float
        Never 0; where a group has a single cluster, as if its answers were one.
    freedom : float
        0 where a group has a single cluster.

    """

    one: ClusterMean
    two: ClusterMean
    correlation: float
    variance: float
    freedom: float

    def interval(self, prob: float) -> tuple[float, float, float]:
        """Value and interval: Newcombe's (1998) of the answers that both shares are worth.

        With Student's quantiles, and as his method for paired shares where clusters are in both.
        It is -1 to 1 where a group has a single cluster.
        """
        shares = [(side.value, side.worth) for side in (self.one, self.two)]
        return newcombe(shares[0], shares[1], self.correlation, prob, self.freedom)


def newcombe(
    one: tuple[float, float],
    two: tuple[float, float],
    correlation: float,
    prob: float,
    freedom: float,
) -> tuple[float, float, float]:
    """The difference of two shares, each given with the number of answers that it is worth.

    Newcombe's (1998) interval for paired shares with Student's quantiles.

    >>> [round(x, 3) for x in newcombe((0.5, 20), (0.25, 20), 0.0, 0.95, 19)]
    [0.25, -0.066, 0.506]
    """
    value = one[0] - two[0]
    if not freedom:
        return value, -1.0, 1.0
    (a, b), (c, d) = (wilson_limits(share, worth, prob, freedom) for share, worth in (one, two))

    def distance(first: float, second: float) -> float:
        return math.sqrt(max(first**2 - 2 * correlation * first * second + second**2, 0.0))

    low, high = distance(one[0] - a, d - two[0]), distance(b - one[0], two[0] - c)
    return value, max(-1.0, value - low), min(1.0, value + high)


def _joint_freedom(one: ClusterMean, two: ClusterMean, first: float, second: float) -> float:
    """Degrees of freedom of a difference whose sides have these variances."""
    if not one.freedom or not two.freedom:
        return 0.0
    smaller = min(one.freedom, two.freedom)
    both = bool((one.present & two.present).any())
    if both or not first + second > 0:
        return smaller
    return (first + second) ** 2 / (first**2 / one.freedom + second**2 / two.freedom)


def constant_limits(
    value: float, n: float, prob: float, bounds: tuple[float, float]
) -> tuple[float, float]:
    r"""The interval of a mean whose n scores or clusters are all equal.

    At most a share $1 - (\alpha/2)^{1/n}$ of the population differs; the interval is what that
    allows within `bounds`, the range of the scores.

    >>> [round(end, 3) for end in constant_limits(0.0, 36, 0.95, (-1.0, 1.0))]
    [-0.097, 0.097]
    """
    share = 1 - ((1 - prob) / 2) ** (1 / n)
    return value - share * (value - bounds[0]), value + share * (bounds[1] - value)
