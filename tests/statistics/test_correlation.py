"""Agreement of two scores: reliability, and intervals within groups."""

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.statistics.correlation import agreement, average_ranks, split_half


def test_reliability_of_known_tables():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=4000)
    table = truth[:, None] + rng.normal(size=(4000, 8))
    assert split_half(table) == pytest.approx(8 / 9, abs=0.01)  # k·v/(k·v + e), Spearman-Brown
    assert split_half(np.hstack([table, table, table])) > 0.9
    assert abs(split_half(rng.normal(size=(4000, 8)))) < 0.15
    assert math.isnan(split_half(truth[:, None]))


def test_the_interval_within_groups_of_unequal_spread():
    """One group varies far more than the others: Fisher's interval counts all phrases for it."""
    groups = np.repeat(np.arange(4), 12)
    rng = np.random.default_rng(8)
    scale = np.where(groups == 0, 8.0, 1.0)
    held = np.zeros(2)
    for _ in range(150):
        x, y = scale * rng.normal(size=48), scale * rng.normal(size=48)
        found = agreement(
            x[:, None], y[:, None], groups, within=True, resamples=400, permutations=19
        )
        for i, (low, high) in enumerate((found.pearson.fisher, found.pearson.interval[1:])):
            held[i] += low <= 0 <= high
    assert held[0] / 150 < 0.8
    assert held[1] / 150 > 0.85


@pytest.mark.parametrize("axis", [0, 1, -1, -2])
def test_ranks_are_those_of_scipy(axis):
    x = np.random.default_rng(0).integers(0, 6, (7, 9)).astype(float)
    assert np.array_equal(average_ranks(x, axis=axis), stats.rankdata(x, axis=axis))
    x[2, 3] = np.nan
    expected = stats.rankdata(x, axis=axis)
    assert np.array_equal(average_ranks(x, axis=axis), expected, equal_nan=True)
    assert average_ranks(np.empty((0, 3)), axis=1).shape == (0, 3)
