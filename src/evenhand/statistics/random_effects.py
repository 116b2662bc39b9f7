r"""Random-effects combination of effects, such as those of several templates or studies.

An effect $d_t$ is a draw from a population of effects with mean $\mu$ and variance $\tau^2$, seen
with an error of variance $v_t$. The estimator of $\tau^2$ is that of DerSimonian & Laird (1986),
and the variance of $\mu$ that of Hartung & Knapp (2001). Effects of the same items have errors in
common; with the covariance matrix of the errors both hold for these as well: what the errors share
does not show in the spread of the effects, so it is added to the variance of $\mu$.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from evenhand.statistics.crossed import Mean
from evenhand.statistics.intervals import Floats, most_freedom


@dataclass(frozen=True, slots=True)
class RandomEffects:
    """Effects combined.

    Parameters
    ----------
    mean : Mean
        The mean of the population with its variance and degrees of freedom.
    tau2 : float
        The variance of the population.
    q : float
        Cochran's Q, the weighted sum of squares about the weighted mean.
    i2 : float
        The share of the variance of a single effect that is not error (its part that is not shared
        with the other effects).
    weights : array
        The weight of each effect in the mean; they sum to one.

    """

    mean: Mean
    tau2: float
    q: float
    i2: float
    weights: Floats


def random_effects(
    effects: ArrayLike, errors: ArrayLike, freedom: float = math.inf
) -> RandomEffects:
    r"""Combine effects whose errors have these variances or this covariance matrix.

    Parameters
    ----------
    effects : array (n)
        Two or more.
    errors : array (n) or (n, n)
        The variances of the errors, or their covariance matrix.
    freedom : float
        The degrees of freedom of the covariances that the errors share.

    Notes
    -----
    With $w_t = 1/v_t$, $W = \operatorname{diag}(w)$, $A = W - w w^\top / \sum w$ and $\Sigma$ the
    covariance matrix of the errors,

    .. math:: Q = d^\top A d, \qquad
              \hat\tau^2 = \max\left(0,
              \frac{Q - \operatorname{tr}(A \Sigma)}{\operatorname{tr} A}\right),

    which for independent errors is that of DerSimonian & Laird, since then
    $\operatorname{tr}(A \Sigma) = n - 1$. With $w_t = 1/(v_t + \hat\tau^2)$ and the same $A$ from
    these, the variance of the weighted mean is $d^\top A d / ((n - 1) \sum w)$ (Hartung & Knapp
    2001) plus $a^\top \Sigma a - \operatorname{tr}(A \Sigma) / ((n - 1) \sum w)$, $a = w / \sum w$,
    which is what errors share; it is 0 for independent ones. Degrees of freedom by Satterthwaite's
    rule, at most those of the effects and of what errors share (`most_freedom`).

    Examples
    --------
    >>> combined = random_effects([0.1, 0.5, 0.9], [0.04, 0.04, 0.04])
    >>> round(combined.mean.value, 3), round(combined.tau2, 3), round(combined.q, 3)
    (0.5, 0.12, 8.0)
    """
    d = np.asarray(effects, dtype=float)
    covariance = np.asarray(errors, dtype=float)
    covariance = np.diag(covariance) if covariance.ndim == 1 else covariance
    n, variances = len(d), np.diag(covariance)
    spread_out = bool(np.ptp(d)) or bool(covariance.any())
    if not (variances > 0).all():  # without any error the spread alone counts
        covariance = covariance + np.eye(n) * 1e-12
        variances = np.diag(covariance)
    spread = _spread(1 / variances)
    q = float(d @ spread @ d)
    own = float(np.trace(spread @ covariance))
    tau2 = max(0.0, (q - own) / float(np.trace(spread)))
    weights = 1 / (variances + tau2)
    spread, total = _spread(weights), float(weights.sum())
    shares = weights / total
    seen = float(d @ spread @ d) / ((n - 1) * total)
    by_errors = float(shares @ covariance @ shares)
    shared = max(0.0, by_errors - float(np.trace(spread @ covariance)) / ((n - 1) * total))
    variance = max(seen + shared, by_errors)
    parts = seen**2 / (n - 1) + shared**2 / freedom
    most = most_freedom([n - 1], [freedom])
    reached = variance**2 / parts if parts else most
    typical = own / float(np.trace(_spread(1 / variances)))
    return RandomEffects(
        mean=Mean(float(shares @ d), variance if spread_out else 0.0, min(max(1.0, reached), most)),
        tau2=tau2,
        q=q,
        i2=tau2 / (tau2 + typical) if tau2 else 0.0,
        weights=shares,
    )


def _spread(weights: Floats) -> Floats:
    """The matrix of the weighted sum of squares about the weighted mean."""
    return np.asarray(np.diag(weights) - np.outer(weights, weights) / weights.sum())
