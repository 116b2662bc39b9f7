r"""A logistic mixed model: the log odds ratio of two groups within an item, items being random.

$\mathrm{logit}\,P(y = 1) = \beta_0 + \beta_1 x + u_i + v_i x$ for a prompt of item i, with $x = \pm
1/2$ for the first and the other group, $u_i \sim N(0, \sigma_u^2)$ and, where every group is asked
several times about several items, $v_i \sim N(0, \sigma_v^2)$. The likelihood is integrated by
adaptive Gauss-Hermite quadrature, item by item. $\beta_1$ is conditional: it is the log odds ratio
for one item, and larger than that of the shares of all items, which it is not comparable with. The
standard error is the sandwich's over sampling units, so that it holds where items of a unit are
alike.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.statistics.crossed import Mean
from evenhand.statistics.intervals import Floats

NODES = {1: 15, 2: 9}
"""Quadrature nodes of each random effect, by their number."""
FEWEST = 5
"""With fewer items that have several answers of both groups there is no random slope."""
STEP = 1e-4
ZERO = 0.02
"""A standard deviation of a random effect below is 0."""


@dataclass(frozen=True, slots=True)
class LogisticFit:
    """The conditional log odds ratio, with its variance, and the spreads of the random effects.

    Parameters
    ----------
    effect : Mean
        Its variance is NaN where the answers do not tell it.
    intercept : float
    items, slopes : float
        The standard deviations of the items' intercepts and slopes; the latter is NaN without
        random slopes.
    log_likelihood : float

    """

    effect: Mean
    intercept: float
    items: float
    slopes: float
    log_likelihood: float


def fit_logistic(
    successes: ArrayLike,
    trials: ArrayLike,
    first: ArrayLike,
    items: NDArray[np.intp],
    units: NDArray[np.intp] | None = None,
) -> LogisticFit:
    """Fit the model to counts of prompts.

    Parameters
    ----------
    successes, trials : array (prompts)
    first : array of bool (prompts)
        Which prompts are of the first group.
    items, units : array of int (prompts)
        The item and the sampling unit of each; by default items are units.

    Examples
    --------
    >>> yes = np.array([3, 1, 4, 2, 2, 1, 4, 1, 3, 3, 4, 2])
    >>> fit = fit_logistic(yes, np.full(12, 4), np.arange(12) % 2 == 0, np.arange(12) // 2)
    >>> 0.9 < fit.effect.value < 2.5
    True
    """
    from scipy.optimize import minimize

    y, n = np.asarray(successes, dtype=float), np.asarray(trials, dtype=float)
    side = (~np.asarray(first, dtype=bool)).astype(np.intp)
    levels, codes = np.unique(items, return_inverse=True)
    counts = np.zeros((2, len(levels), 2))
    np.add.at(counts[0], (codes, side), y)
    np.add.at(counts[1], (codes, side), n)
    own = codes if units is None else np.unique(units, return_inverse=True)[1]
    unit = np.zeros(len(levels), dtype=np.intp)
    unit[codes] = own
    clusters = int(unit.max()) + 1
    slopes = int((counts[1] > 1).all(axis=1).sum()) >= FEWEST
    share = (y.sum() + 0.5) / (n.sum() + 1)
    start = np.array([math.log(share / (1 - share)), 0.0, 0.0, *([-0.7] if slopes else [])])
    bounds = [(-15.0, 15.0), (-15.0, 15.0), *[(-6.0, 3.0)] * (len(start) - 2)]

    def negative(parameters: Floats) -> float:
        return -float(_by_item(parameters, counts).sum())

    fit = minimize(negative, start, method="L-BFGS-B", bounds=bounds)
    best = np.asarray(fit.x)
    spreads = np.exp(best[2:])
    free = [0, 1, *(2 + i for i, spread in enumerate(spreads) if spread > ZERO)]
    variance = _sandwich(best, free, counts, unit, clusters) if clusters > 1 else math.nan
    if abs(best[1]) > 14 or abs(best[0]) > 14:  # one group has all of the answers of a kind
        variance = math.nan
    return LogisticFit(
        Mean(float(best[1]), variance, float(max(clusters - 1, 1))),
        float(best[0]),
        float(spreads[0]),
        float(spreads[1]) if slopes else math.nan,
        -float(fit.fun),
    )


def _by_item(parameters: Floats, counts: Floats) -> Floats:
    """The log-likelihood of each item, the random effects integrated out."""
    successes, trials = counts
    design = np.array([[1.0, 0.5], [1.0, -0.5]])[:, : len(parameters) - 2]
    spreads = np.exp(parameters[2:])
    scaled = design * spreads  # the random effects have variance 1
    fixed = parameters[0] + parameters[1] * np.array([0.5, -0.5])
    size = scaled.shape[1]
    mode = np.zeros((len(successes), size))
    identity = np.eye(size)
    for _ in range(30):
        p = _logistic(fixed + mode @ scaled.T)
        gradient = (successes - trials * p) @ scaled - mode
        weights = trials * p * (1 - p)
        hessian = np.einsum("ic,ca,cb->iab", weights, scaled, scaled) + identity
        step = np.linalg.solve(hessian, gradient[:, :, None])[:, :, 0]
        mode = mode + np.clip(step, -2, 2)
        if np.abs(step).max() < 1e-9:
            break
    root = np.linalg.cholesky(np.linalg.inv(hessian))
    nodes, weights_1d = np.polynomial.hermite_e.hermegauss(NODES[size])
    grid = np.stack(np.meshgrid(*[nodes] * size, indexing="ij"), axis=-1).reshape(-1, size)
    log_weights = np.log(np.prod(np.meshgrid(*[weights_1d] * size, indexing="ij"), axis=0)).ravel()
    points = mode[:, None, :] + np.einsum("iab,kb->ika", root, grid)
    eta = fixed + points @ scaled.T
    log_p = (successes[:, None] * eta - trials[:, None] * np.logaddexp(0, eta)).sum(axis=2)
    terms = (
        log_p
        - (points**2).sum(axis=2) / 2
        + (grid**2).sum(axis=1) / 2
        + log_weights
        - size / 2 * math.log(2 * math.pi)
    )
    largest = terms.max(axis=1)
    scale = np.log(np.abs(np.linalg.det(root)))
    return np.asarray(largest + np.log(np.exp(terms - largest[:, None]).sum(axis=1)) + scale)


def _logistic(eta: Floats) -> Floats:
    return np.asarray(1 / (1 + np.exp(-np.clip(eta, -500, 500))))


def _sandwich(
    best: Floats, free: list[int], counts: Floats, unit: NDArray[np.intp], clusters: int
) -> float:
    """The variance of the effect by the sandwich over units; NaN where it is not identified."""

    def scores(parameters: Floats) -> Floats:
        columns = []
        for i in free:
            step = np.zeros(len(best))
            step[i] = STEP
            both = [_by_item(parameters + sign * step, counts) for sign in (1, -1)]
            columns.append((both[0] - both[1]) / (2 * STEP))
        return np.stack(columns, axis=1)

    by_item = scores(best)
    meat = np.zeros((clusters, len(free)))
    np.add.at(meat, unit, by_item)
    bread = np.zeros((len(free), len(free)))
    for place, i in enumerate(free):
        step = np.zeros(len(best))
        step[i] = STEP
        difference = scores(best + step).sum(axis=0) - scores(best - step).sum(axis=0)
        bread[place] = -difference / (2 * STEP)
    bread = (bread + bread.T) / 2
    if np.linalg.matrix_rank(bread) < len(free):
        return math.nan
    inverse = np.linalg.inv(bread)
    variance = inverse @ (meat.T @ meat) @ inverse * clusters / (clusters - 1)
    return float(variance[1, 1]) if variance[1, 1] > 0 else math.nan
