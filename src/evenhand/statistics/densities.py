"""Kernel estimates of densities."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
from numpy.typing import ArrayLike

from evenhand.errors import InputError
from evenhand.statistics.intervals import Floats

POINTS = 161
"""Points of the grid."""


def densities(groups: Mapping[str, ArrayLike]) -> tuple[Floats, dict[str, Floats]]:
    """The density of each group of numbers of 0 or more on one grid (Gaussian kernel).

    Returns
    -------
    (array, dict)
        The grid, a little wider than the numbers, and the densities on it. A group with fewer than
        three different numbers has none.

    Examples
    --------
    >>> grid, found = densities({"a": [1, 2, 3, 4], "b": [1, 1]})
    >>> list(found), float(found["a"].sum() * (grid[1] - grid[0])) > 0.7
    (['a'], True)

    """
    from scipy.stats import gaussian_kde

    values = {name: np.asarray(given, dtype=float).ravel() for name, given in groups.items()}
    every = np.concatenate(list(values.values()))
    known = {name: given for name, given in values.items() if np.unique(given).size > 2}
    if not known:
        raise InputError("densities: expected a group with three different numbers, got none")
    grid = np.linspace(max(0.0, every.min() - 0.1), every.max() + 0.1, POINTS)
    return grid, {name: np.asarray(gaussian_kde(given)(grid)) for name, given in known.items()}
