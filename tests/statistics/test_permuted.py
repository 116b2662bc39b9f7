"""Distances less their value under permutation, against SciPy and enumeration by hand."""

from itertools import product

import numpy as np
import pytest
from scipy.spatial.distance import jensenshannon
from scipy.stats import wasserstein_distance

from evenhand.statistics.permuted import (
    EXACT,
    jensen_shannon,
    permute_groups,
    permuted_distance,
    score_grid,
    wasserstein,
)


def cumulative(values, grid):
    return (values[:, None] <= grid).mean(axis=0)


def test_distances_are_those_of_scipy():
    rng = np.random.default_rng(0)
    one, two = rng.normal(size=40), rng.exponential(size=25)
    grid = score_grid(np.concatenate([one, two]))
    found = wasserstein(grid)(cumulative(one, grid), cumulative(two, grid))
    assert float(found) == pytest.approx(wasserstein_distance(one, two))
    shares = rng.dirichlet(np.ones(5), 2)
    assert float(jensen_shannon(*shares)) == pytest.approx(jensenshannon(*shares, base=2))


def test_few_units_are_enumerated():
    rng = np.random.default_rng(1)
    values = rng.normal(size=(7, 2, 4)) + np.array([0.0, 0.6])[:, None]
    grid = score_grid(values.ravel())
    profiles = (values[..., None] <= grid).mean(axis=2)
    found = permuted_distance(profiles, np.ones((7, 2)), wasserstein(grid))
    every = []
    for signs in product((0, 1), repeat=7):
        one = np.concatenate([values[i, s] for i, s in enumerate(signs)])
        two = np.concatenate([values[i, 1 - s] for i, s in enumerate(signs)])
        every.append(wasserstein_distance(one, two))
    assert found.value == pytest.approx(every[0])
    assert found.null == pytest.approx(np.mean(every))
    assert found.p_value == pytest.approx(np.mean(np.array(every) >= every[0] - 1e-12))
    assert found.draws is None
    assert found.permutations == 128 <= EXACT


def test_units_of_one_group_are_permuted_between():
    values = np.array([0.0, 0.1, 0.2, 1.0, 1.1, 1.2])
    grid = score_grid(values)
    profiles, present = np.zeros((6, 2, 6)), np.zeros((6, 2))
    for unit, value in enumerate(values):
        profiles[unit, unit // 3] = value <= grid
        present[unit, unit // 3] = 1
    found = permuted_distance(profiles, present, wasserstein(grid))
    assert found.value == pytest.approx(1.0)
    assert found.p_value == pytest.approx(2 / 20)


def test_p_near_a_level_does_not_depend_on_the_seed():
    rng = np.random.default_rng(5)
    values = rng.normal(size=(30, 2, 3)) + np.array([0.0, 0.3])[:, None]
    grid = score_grid(values.ravel())
    profiles = (values[..., None] <= grid).mean(axis=2)
    ps = [
        permuted_distance(
            profiles, np.ones((30, 2)), wasserstein(grid), permutations=500, seed=seed
        )
        for seed in range(3)
    ]
    assert max(p.p_value for p in ps) - min(p.p_value for p in ps) < 0.02
    assert all(p.draws >= 500 for p in ps)


def test_of_more_groups_each_plays_the_first():
    rng = np.random.default_rng(2)
    profiles = rng.random((4, 3, 2))
    made = permute_groups(profiles, np.ones((4, 3)))
    one, two = made.groups(made.observed)
    assert one[0] == pytest.approx(profiles[:, 0].mean(axis=0))
    assert two[0] == pytest.approx(profiles[:, 1:].mean(axis=(0, 1)))
    assert len(made.every()) == 3**4


def test_equal_answers_have_no_width_of_zero():
    profiles = np.ones((5, 2, 1))
    found = permuted_distance(profiles, np.ones((5, 2)), wasserstein(np.array([1.0])))
    assert (found.value, found.p_value) == (0.0, 1.0)
    assert found.high == np.inf
