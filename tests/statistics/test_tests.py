from itertools import combinations
from math import comb

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.errors import InputError
from evenhand.statistics import tests
from evenhand.statistics.tests import two_sample


def brute_force(x, y):
    """Every partition, one at a time, with a tolerance for sums added in another order."""
    pool = np.concatenate([x, y])
    observed = np.mean(x) - np.mean(y)
    slack = 1e-12 * np.abs(pool).max()
    both = greater = 0
    for chosen in combinations(range(pool.size), len(x)):
        mask = np.zeros(pool.size, dtype=bool)
        mask[list(chosen)] = True
        difference = pool[mask].mean() - pool[~mask].mean()
        both += abs(difference) >= abs(observed) - slack
        greater += difference >= observed - slack
    total = comb(pool.size, len(x))
    return both / total, greater / total


@pytest.mark.parametrize(("n", "m"), [(1, 1), (2, 2), (3, 5), (6, 6), (7, 4), (8, 8)])
def test_exact_equals_brute_force(n, m):
    rng = np.random.default_rng(10 * n + m)
    for _ in range(5):
        x, y = rng.normal(0.4, 1, n), rng.normal(0, 1, m)
        test = two_sample(x, y)
        both, greater = brute_force(x, y)
        assert test.exact
        assert test.partitions == comb(n + m, n)
        assert test.p_value == pytest.approx(both, abs=1e-12)
        assert test.p_greater == pytest.approx(greater, abs=1e-12)


@settings(deadline=None, max_examples=60)
@given(
    st.lists(st.integers(-3, 3), min_size=2, max_size=5),
    st.lists(st.integers(-3, 3), min_size=2, max_size=5),
)
def test_exact_with_ties_equals_brute_force(x, y):
    test = two_sample(x, y)
    both, greater = brute_force(np.array(x, float), np.array(y, float))
    assert test.p_value == pytest.approx(both, abs=1e-12)
    assert test.p_greater == pytest.approx(greater, abs=1e-12)


@settings(deadline=None, max_examples=40)
@given(
    st.lists(st.floats(-5, 5), min_size=2, max_size=10),
    st.lists(st.floats(-5, 5), min_size=2, max_size=10),
)
def test_swapping_the_groups_keeps_the_two_sided_p(x, y):
    one, other = two_sample(x, y), two_sample(y, x)
    assert one.p_value == pytest.approx(other.p_value, abs=1e-12)
    assert one.p_greater == pytest.approx(other.p_less, abs=1e-12)
    assert 0 < one.p_value <= 1


def test_negative_difference_is_as_significant_as_positive():
    """A peer's two-sided p is 1 for every negative score."""
    x, y = np.arange(8.0), np.arange(8.0) + 10
    assert two_sample(x, y).p_value == two_sample(y, x).p_value == 2 / comb(16, 8)


def test_monte_carlo_agrees_with_exact_and_is_seeded():
    rng = np.random.default_rng(5)
    x, y = rng.normal(0.5, 1, 10), rng.normal(0, 1, 10)
    exact = two_sample(x, y).p_value
    draws = two_sample(x, y, exact=False, permutations=200_000, seed=3)
    assert not draws.exact
    spread = np.sqrt(exact * (1 - exact) / 200_000)
    assert abs(draws.p_value - exact) < 5 * spread
    assert draws == two_sample(x, y, exact=False, permutations=200_000, seed=3)
    assert draws != two_sample(x, y, exact=False, permutations=200_000, seed=4)


def test_partitions_are_those_of_the_smallest_keys():
    n, first, draws = 30, 11, 3000
    chunks = list(tests._draw(n, first, draws, 5))
    rng = np.random.default_rng(5)
    keys = rng.random((draws, n), dtype=np.float32)
    expected = np.zeros((draws, n), dtype=bool)
    order = np.argpartition(keys, first - 1, axis=1)[:, :first]
    np.put_along_axis(expected, order, True, axis=1)
    assert np.array_equal(np.concatenate(chunks), expected)
    assert np.array_equal(np.concatenate(tests._draw_cached(n, first, draws, 5)), expected)


def test_monte_carlo_never_gives_zero():
    x, y = np.arange(30.0) + 100, np.arange(30.0)
    test = two_sample(x, y, permutations=999)
    assert not test.exact
    assert test.p_value == 1 / (test.partitions + 1)


def test_identical_scores_have_p_one():
    assert two_sample([1.0, 1.0], [1.0, 1.0]).p_value == 1
    assert two_sample(np.zeros(30), np.zeros(30), permutations=100).p_value == 1


@pytest.mark.parametrize("scale", [1e-12, 1.0, 1e12])
def test_scale_does_not_matter(scale):
    x, y = np.array([1.0, 2.5, 3.1]), np.array([0.2, 0.9, 1.7])
    assert two_sample(x * scale, y * scale).p_value == two_sample(x, y).p_value


def test_bad_input_is_named():
    with pytest.raises(InputError, match="alternative: expected two-sided"):
        two_sample([1.0], [2.0], alternative="sideways")
    with pytest.raises(InputError, match="words on both sides"):
        two_sample([], [2.0])
    with pytest.raises(InputError, match="finite"):
        two_sample([np.nan], [2.0])
