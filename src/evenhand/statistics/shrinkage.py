"""Partial pooling: many estimates, each shrunk towards their mean as far as it is noise."""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import ArrayLike

from evenhand.statistics.crossed import Mean
from evenhand.statistics.intervals import Floats

FEWEST = 4
"""Fewer estimates are not shrunk: their spread is not known."""


def shrink(values: ArrayLike, variances: ArrayLike) -> tuple[float, list[Mean]]:
    r"""Shrink estimates of unequal precision towards their mean.

    Parameters
    ----------
    values, variances : array
        The estimates, and the variances of their errors.

    Returns
    -------
    spread : float
        The standard deviation of the true values, NaN for fewer than four estimates.
    means : list of Mean
        The shrunken estimates; for fewer than four the estimates as they are.

    Notes
    -----
    Empirical Bayes: $\hat\theta_i = \mu + (1 - B_i)(y_i - \mu)$ with $B_i = \frac{k - 3}{k - 1}
    \cdot \frac{v_i}{v_i + \tau^2}$, $\mu$ the weighted mean and $\tau^2$ so that
    $\sum (y_i - \mu)^2 / (v_i + \tau^2) = k - 1$ (Paule & Mandel 1982). The variances are those of
    Morris (1983), which allow for $\tau^2$ being estimated.

    Examples
    --------
    >>> spread, means = shrink([0.1, -0.1, 0.0, 0.6], [0.01, 0.01, 0.01, 0.25])
    >>> round(spread, 2), [round(mean.value, 2) for mean in means]
    (0.05, [0.08, -0.07, 0.0, 0.41])
    """
    y, v = np.asarray(values, dtype=float), np.asarray(variances, dtype=float)
    k = len(y)
    if k < FEWEST or not (v > 0).all():
        return math.nan, [Mean(float(a), float(b), math.inf) for a, b in zip(y, v, strict=True)]
    tau2 = _between(y, v)
    weights = 1 / (v + tau2)
    centre = float(weights @ y / weights.sum())
    pull = (k - 3) / (k - 1) * v * weights
    gaps = y - centre
    mean_variance = float((weights * v).sum() / weights.sum())
    spread = v * (1 - (k - weights / weights.mean()) / k * pull) + (
        2 / (k - 3) * pull**2 * (mean_variance + tau2) * weights * gaps**2
    )
    shrunken = centre + (1 - pull) * gaps
    return math.sqrt(tau2), [
        Mean(float(a), float(b), math.inf) for a, b in zip(shrunken, spread, strict=True)
    ]


def _between(y: Floats, v: Floats) -> float:
    """The variance between the true values."""

    def excess(tau2: float) -> float:
        weights = 1 / (v + tau2)
        gaps = y - weights @ y / weights.sum()
        return float(weights @ gaps**2) - (len(y) - 1)

    if excess(0.0) <= 0:
        return 0.0
    low, high = 0.0, float(y.var()) + float(v.max())
    while excess(high) > 0:
        high *= 2
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if excess(middle) > 0 else (low, middle)
    return (low + high) / 2


def root_mean_square(
    values: ArrayLike, resampled: ArrayLike, prob: float = 0.95, *, stretch: float = 1.0
) -> tuple[float, float, float]:
    r"""The root mean square of true values, from estimates of them, with its interval.

    The mean square of noisy estimates is too large by the mean variance of their errors, which is
    taken off; at most down to 0.

    Parameters
    ----------
    values : array (estimates)
    resampled : array (resamples, estimates)
        The same from resampled data. Their squares have the noise twice; the spread of their mean
        squares is that of the estimate.
    prob : float
    stretch : float
        By how much the distances of the limits are stretched, where the spread is itself uncertain.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> noise = rng.normal(0, 0.1, size=(2000, 30))
    >>> value, low, high = root_mean_square(noise[0], noise[0] + noise[1:])
    >>> round(float(np.sqrt((noise[0] ** 2).mean())), 2), low, value < 0.05
    (0.08, 0.0, True)
    """
    y, drawn = np.asarray(values, dtype=float), np.asarray(resampled, dtype=float)
    drawn = drawn[~np.isnan(drawn).all(axis=1)]  # of few texts some resamples have no class
    square = float((y**2 - np.nanvar(drawn, axis=0)).mean())
    squares = np.nanmean(drawn**2, axis=1)
    ends = np.nanquantile(squares - np.nanmean(squares), [(1 - prob) / 2, (1 + prob) / 2])
    low, high = (math.sqrt(max(0.0, square + stretch * float(end))) for end in ends)
    return math.sqrt(max(0.0, square)), low, high
