"""Agreement of two scores: reliability, and intervals within groups."""

import math

import numpy as np
import pytest
from scipy import stats

from evenhand.statistics.correlation import agreement, average_ranks, kendall, split_half


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


@pytest.mark.parametrize("seed", range(5))
def test_kendall_equals_that_of_scipy_with_and_without_ties(seed):
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(2, 15))
    for one, two in ((x, y), (np.round(x), np.round(x + y))):
        expected = stats.kendalltau(one, two).statistic
        assert kendall(one, two)[0] == pytest.approx(expected)


def test_kendall_of_equal_orders_and_of_scores_that_do_not_vary():
    value, low, high = kendall([1, 2, 3, 4, 5, 6, 7], [2, 3, 5, 7, 11, 13, 17])
    assert value == high == pytest.approx(1)
    assert 0.3 < low < 0.9
    assert np.isnan(kendall([1, 1, 1], [1, 2, 3])[0])
    assert kendall([1, 1, 1], [1, 2, 3])[1:] == (-1, 1)
    assert kendall([1, 2, 3], [1, 2, 3])[1:] == (-1, 1)  # three items show nothing


@pytest.mark.slow
@pytest.mark.parametrize(("families", "size"), [(12, 1), (29, 1), (6, 4), (12, 2)])
@pytest.mark.parametrize("rho", [0.0, 0.7])
def test_kendall_intervals_cover_the_truth_for_models_and_for_families(families, size, rho):
    rng = np.random.default_rng(7)
    truth, covered, naive = 2 / np.pi * np.arcsin(rho), 0, 0
    shape = np.linalg.cholesky(np.array([[1, rho], [rho, 1]]))
    own = np.repeat(np.arange(families), size)
    for _ in range(400):
        common, rest = (shape @ rng.normal(size=(2, n)) for n in (families, families * size))
        x, y = common[:, own] + 0.3 * rest
        _, low, high = kendall(x, y, own.tolist())
        covered += low <= truth <= high
        _, low, high = kendall(x, y)
        naive += low <= truth <= high
    assert 0.93 < covered / 400 <= 1
    if size > 2:
        assert naive < covered - 30
