"""Planning: the effect that a test finds with a given power, and the items that this takes.

These functions plan a study by the standard error that earlier data gave. They say nothing about
the data at hand: what those rule out is in their interval (`evenhand.judging`).
"""

from __future__ import annotations

import math
from statistics import NormalDist

POWER = 0.8
"""The power that is planned for."""


def smallest_effect(
    standard_error: float, *, alpha: float = 0.05, power: float = POWER, df: float | None = None
) -> float:
    r"""The smallest true effect that a two-sided test finds with this power.

    Parameters
    ----------
    standard_error : float
        Of the estimate, on the scale of the effect.
    alpha : float
        The level of the test, after correction for the number of tests.
    power : float
    df : float, optional
        Degrees of freedom of the standard error; without it the normal distribution is used.

    Returns
    -------
    float

    Notes
    -----
    :math:`\delta = (q_{1-\alpha/2} + q_{power}) \cdot se`, q the quantiles of the normal or of
    Student's distribution (for the latter an approximation that is within 2 % from 5 degrees of
    freedom on).

    Examples
    --------
    >>> round(smallest_effect(0.1), 3)
    0.28

    """
    return (quantile(1 - alpha / 2, df) + quantile(power, df)) * standard_error


def items_needed(items: int, smallest: float, wanted: float) -> int:
    """The items that a test needs to find the effect `wanted`, from what it finds with `items`.

    Parameters
    ----------
    items : int
        The items of the test as it was run.
    smallest : float
        The smallest effect that it finds.
    wanted : float
        The effect to be found, on the same scale.

    Returns
    -------
    int
        At least `items`. The standard error is taken to fall with the square root of the number
        of items, as it does where everything that was sampled grows by the same factor.

    Examples
    --------
    >>> items_needed(40, 0.4, 0.2)
    160

    """
    return max(items, math.ceil(items * (smallest / wanted) ** 2))


def quantile(p: float, df: float | None = None) -> float:
    """The quantile of the normal distribution, or of Student's with `df`."""
    if df is None:
        return NormalDist().inv_cdf(p)
    from scipy.special import stdtrit

    return float(stdtrit(df, p))
