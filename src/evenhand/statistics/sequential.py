"""Monte Carlo tests that draw until it is clear on which side of a level the p-value lies.

A p-value that is counted from a fixed number of random draws has an error of its own: with 1,000
draws a p-value of .05 is counted as .036 to .064, so that another seed gives another decision. Here
the first batch has the number of draws that was asked for, and more follow only while the p-value
may be on either side of a level. The number of looks is fixed, and each may be wrong with its share
of `RESAMPLING_RISK`, so that the risk of all of them together, of any level, is not above it
(Gandy 2009, with a spending sequence of few steps).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

RESAMPLING_RISK = 0.001
"""The largest probability that a p-value of random draws is taken to be on the wrong side of a
level."""
LEVELS = (0.05, 0.01, 0.005)
"""Draws continue while a p-value may be on either side of one of these. The first two are the
levels of single tests, the third is .05 in a family of ten."""
LOOKS = (1, 2, 4, 8, 16, 32)
"""Multiples of the first number of draws after which the need for more is checked."""
MAX_DRAWS = 1_000_000
"""There are no further draws beyond this number."""

Seed = tuple[int, int]
"""Of a batch: the seed of the test and the number of the batch. NumPy takes (seed, 0) as seed."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The number of extreme draws of each test."""

    extreme: NDArray[np.int64]
    draws: int

    @property
    def p_values(self) -> NDArray[np.float64]:
        """(b + 1) / (m + 1) of each test: what was observed is counted as a draw."""
        return np.asarray((self.extreme + 1) / (self.draws + 1))

    @property
    def p_value(self) -> float:
        """The p-value of the only test."""
        return float(self.p_values.item())

    @property
    def details(self) -> dict[str, int]:
        """The details of a result on the draws of its p-value."""
        return {"draws": self.draws}


def draw_until_clear(
    count: Callable[[int, Seed], ArrayLike],
    draws: int,
    seed: int,
    *,
    factor: float = 1.0,
    deciding: Callable[[NDArray[np.int64]], ArrayLike] | None = None,
) -> Counted:
    """Count extreme draws until every p-value is clearly on one side of each level.

    Parameters
    ----------
    count : callable
        Takes a number of draws and the seed for them; returns how many were extreme, for one test
        or several that share the draws.
    draws : int
        Number of draws in the first batch. All batches together have at most 32 times as many,
        and at most a million where the first has fewer.
    seed : int
    factor : float
        The p-value is this multiple of the share of extreme draws: 2 for the smaller of two tails,
        the number of tests for the smallest of several p-values.
    deciding : callable, optional
        Takes the counts and returns those that decide; by default all.

    Examples
    --------
    >>> def toss(size, seed, p):
    ...     return np.random.default_rng(seed).binomial(size, p)
    >>> draw_until_clear(lambda size, seed: toss(size, seed, 0.4), 1000, seed=1).draws
    1000
    >>> draw_until_clear(lambda size, seed: toss(size, seed, 0.04), 1000, seed=1).draws
    8000

    """
    extreme: NDArray[np.int64] = np.zeros((), dtype=np.int64)
    total = 0
    for batch, times in enumerate(LOOKS):
        size = max(draws, min(times * draws, MAX_DRAWS)) - total
        if not size:
            break
        extreme = extreme + np.asarray(count(size, (seed, batch)), dtype=np.int64)
        total += size
        decided = extreme if deciding is None else np.asarray(deciding(extreme))
        if all(is_clear(int(b), total, factor) for b in decided.ravel()):
            break
    return Counted(extreme, total)


def is_clear(extreme: int, draws: int, factor: float = 1.0) -> bool:
    """Whether `factor` times a share of extreme draws is clearly below or above each level."""
    return all(
        is_clearly_below(extreme, draws, level / factor)
        or is_clearly_below(draws - extreme, draws, 1 - level / factor)
        for level in LEVELS
    )


def is_clearly_below(extreme: int, draws: int, level: float) -> bool:
    r"""Whether a share is below a level, Monte Carlo error included.

    So few extreme draws have a probability of at most `RESAMPLING_RISK` / 2 / looks where the share
    is at the level: the level is outside the interval of Clopper & Pearson (1934). The
    probability is bounded by a geometric series, which is some percent above it:
    :math:`P(X \le b) \le P(X = b) / (1 - r)` with :math:`r = P(X = b - 1) / P(X = b)`.

    >>> is_clearly_below(30, 1000, 0.05), is_clearly_below(300, 10_000, 0.05)
    (False, True)
    """
    if not 0 < level < 1:
        return level >= 1
    ratio = extreme * (1 - level) / ((draws - extreme + 1) * level)
    if ratio >= 1:
        return False
    log_mass = (
        math.lgamma(draws + 1)
        - math.lgamma(extreme + 1)
        - math.lgamma(draws - extreme + 1)
        + extreme * math.log(level)
        + (draws - extreme) * math.log1p(-level)
    )
    return log_mass - math.log1p(-ratio) <= math.log(RESAMPLING_RISK / 2 / len(LOOKS))
