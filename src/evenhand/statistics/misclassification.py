r"""Shares that a judge who errs has counted, corrected by a few answers whose truth is known.

A judge finds a share $p = \pi a + (1 - \pi)(1 - b)$ where the true share is $\pi$, $a$ its
sensitivity and $b$ its specificity, so that $\pi = (p + b - 1) / (a + b - 1)$ (Rogan & Gladen
1978). Both are those of the group: a judge that errs more often about one group than about another
makes a gap where there is none, which a common correction leaves there.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.statistics.intervals import Floats
from evenhand.statistics.power import quantile

DRAWS = 20_000
BATCHES = 20
LEAST = 0.05
"""A judge whose a + b - 1 is below tells nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class JudgedShare:
    """The share that a judge counted in one group, and how well it judges there.

    Parameters
    ----------
    share : float
    worth : float
        How many independent answers the share is worth.
    positives, found : float
        Labelled answers that are positive, and those of them that the judge found: numbers that
        they are worth.
    negatives, cleared : float
        Labelled answers that are negative, and those of them that the judge cleared.

    """

    share: float
    worth: float
    positives: float
    found: float
    negatives: float
    cleared: float

    @property
    def sensitivity(self) -> float:
        """The share of positive answers that the judge finds; NaN without any."""
        return self.found / self.positives if self.positives else math.nan

    @property
    def specificity(self) -> float:
        """The share of negative answers that the judge clears; NaN without any."""
        return self.cleared / self.negatives if self.negatives else math.nan

    @property
    def corrected(self) -> float:
        """Rogan and Gladen's estimate within 0 and 1; NaN where the judge tells nothing."""
        tells = self.sensitivity + self.specificity - 1
        if not tells > 0:
            return math.nan
        return min(1.0, max(0.0, (self.share + self.specificity - 1) / tells))


@dataclass(frozen=True, slots=True, kw_only=True)
class Corrected:
    """A corrected share, or a difference of two.

    Parameters
    ----------
    value, low, high : float
        The interval is all that is possible where the judge does not clearly tell positive from
        negative answers.
    error : float
        The Monte Carlo error of the ends.
    labels : int or None
        How many labels would decide that the value is not 0, with the same shares and the judge as
        good as it seems; None where no number of them would, since the shares themselves are not
        known well enough.

    """

    value: float
    low: float
    high: float
    error: float
    labels: int | None


def correct_shares(
    judged: Sequence[JudgedShare],
    *,
    correlation: float = 0.0,
    freedom: float = math.inf,
    prob: float = 0.95,
    seed: int = 0,
) -> Corrected:
    """The corrected share of one group, or the difference of two.

    Parameters
    ----------
    judged : sequence of JudgedShare
        One or two.
    correlation : float
        Of the errors of both shares, such as where they are of the same items.
    freedom : float
        Degrees of freedom of the shares' variances.
    prob, seed

    Notes
    -----
    The interval has the quantiles of the estimate with all of its parts drawn: shares,
    sensitivities and specificities, each from the beta distribution of Jeffreys' interval, the
    shares stretched by Student's quantile and correlated by a normal copula.

    Examples
    --------
    >>> group = JudgedShare(share=0.5, worth=400, positives=50, found=40, negatives=50, cleared=45)
    >>> found = correct_shares([group])
    >>> round(found.value, 3), 0.4 < found.low < found.value < found.high < 0.75
    (0.571, True)
    """
    rng = np.random.default_rng(seed)
    normal = rng.standard_normal((2, DRAWS))
    normal[1] = correlation * normal[0] + math.sqrt(1 - correlation**2) * normal[1]
    level = (1 + prob) / 2
    normal *= quantile(level, freedom) / quantile(level) if freedom < 1e6 else 1.0
    signs = (1.0, -1.0)[: len(judged)]
    drawn, fixed = np.zeros(DRAWS), np.zeros(DRAWS)
    unclear = np.zeros(DRAWS, dtype=bool)
    for side, z, sign in zip(judged, normal, signs, strict=False):
        shares = _beta(side.share * side.worth, side.worth, z)
        a = rng.beta(side.found + 0.5, side.positives - side.found + 0.5, DRAWS)
        b = rng.beta(side.cleared + 0.5, side.negatives - side.cleared + 0.5, DRAWS)
        tells = a + b - 1
        unclear |= tells < LEAST
        drawn += sign * np.clip((shares + b - 1) / np.maximum(tells, LEAST), 0, 1)
        usual = max(side.sensitivity + side.specificity - 1, LEAST)
        fixed += sign * np.clip((shares + side.specificity - 1) / usual, 0, 1)
    value = float(sum(sign * side.corrected for sign, side in zip(signs, judged, strict=True)))
    low, high = (-1.0 if len(judged) == 2 else 0.0), 1.0
    if math.isnan(value) or unclear.mean() > (1 - prob) / 2:
        return Corrected(value=value, low=low, high=high, error=0.0, labels=None)
    known = drawn[~unclear]
    ends = np.quantile(known, [1 - level, level])
    size = len(known) // BATCHES * BATCHES
    batches = np.quantile(known[:size].reshape(BATCHES, -1), [1 - level, level], axis=1)
    error = float(batches.std(axis=1, ddof=1).max()) / math.sqrt(BATCHES)
    return Corrected(
        value=value,
        low=min(value, float(ends[0])),
        high=max(value, float(ends[1])),
        error=error,
        labels=_labels(judged, value, float(known.var()), float(fixed.var()), level),
    )


def _beta(successes: float, n: float, z: Floats) -> Floats:
    """Draws of a share, given as normal deviates."""
    from scipy.special import betaincinv, ndtr

    uniform = np.clip(ndtr(z), 1e-12, 1 - 1e-12)
    return np.asarray(betaincinv(successes + 0.5, n - successes + 0.5, uniform))


def _labels(
    judged: Sequence[JudgedShare], value: float, total: float, shares: float, level: float
) -> int | None:
    """How many labels would decide: the judge's part of the variance shrinks with them."""
    room = (value / quantile(level)) ** 2 - shares
    if room <= 0:
        return None
    now = sum(side.positives + side.negatives for side in judged)
    return max(1, math.ceil(now * max(0.0, total - shares) / room))
