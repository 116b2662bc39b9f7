"""The area under the ROC curve, with a variance that allows for clusters."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from evenhand.statistics.correlation import average_ranks
from evenhand.statistics.intervals import Floats


def auc(positive: ArrayLike, negative: ArrayLike) -> tuple[float, Floats, Floats]:
    r"""The probability that a positive scores above a negative, ties counting one half.

    Parameters
    ----------
    positive, negative : array
        The scores, one or more of each.

    Returns
    -------
    value : float
    of_positive, of_negative : array
        The influence of every score on the value. The sum of their squares is the variance of
        DeLong et al. (1988), up to the factors n / (n - 1); where scores come in clusters, the
        influence of a cluster is the sum of theirs (Obuchowski 1997).

    Examples
    --------
    >>> value, one, two = auc([0.9, 0.8, 0.4], [0.1, 0.4, 0.3])
    >>> round(value, 3), round(float(one @ one + two @ two), 4)
    (0.944, 0.0041)
    """
    x, y = np.asarray(positive, dtype=float), np.asarray(negative, dtype=float)
    n, m = len(x), len(y)
    ranks = average_ranks(np.concatenate([x, y]))
    above = (ranks[:n] - average_ranks(x)) / m  # the share of negatives below each positive
    below = 1 - (ranks[n:] - average_ranks(y)) / n
    value = float(above.mean())
    return value, (above - value) / n, (below - value) / m
