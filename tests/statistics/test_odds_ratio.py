"""The odds ratio of a two-by-two table: by hand, scipy's exact interval, coverage."""

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import fisher_exact
from scipy.stats.contingency import odds_ratio as scipy_odds_ratio

from evenhand.statistics.odds import conditional_interval, fisher_test, odds_ratio

cells = st.integers(0, 60)


def test_value_and_normal_interval_by_hand():
    """(6·9)/(3·2) = 9; log 9 ± 1.959964·√(1/6 + 1/3 + 1/2 + 1/9) = 2.1972 ± 2.0660."""
    value, low, high = odds_ratio(6, 3, 2, 9)
    assert value == 9
    assert low == pytest.approx(math.exp(2.197225 - 2.065980), rel=1e-5)
    assert high == pytest.approx(math.exp(2.197225 + 2.065980), rel=1e-5)


def test_fisher_and_exact_interval_by_hand():
    """Three of three against none of three: p = 2/C(6,3); P(X = 3 | ψ) = ψ³/(1+9ψ+9ψ²+ψ³)."""
    assert fisher_test(3, 0, 0, 3) == pytest.approx(0.1)
    low, high = conditional_interval(3, 0, 0, 3)
    assert low**3 / (1 + 9 * low + 9 * low**2 + low**3) == pytest.approx(0.025, rel=1e-9)
    assert high == math.inf


def test_one_half_is_added_where_a_cell_is_zero():
    value, low, _ = odds_ratio(5, 95, 0, 100)
    assert value == pytest.approx((5.5 * 100.5) / (95.5 * 0.5))
    half = 1.959963985 * math.sqrt(1 / 5.5 + 1 / 95.5 + 1 / 0.5 + 1 / 100.5)
    assert low == pytest.approx(value * math.exp(-half))
    exact_low, exact_high = conditional_interval(5, 95, 0, 100)
    assert exact_low == pytest.approx(
        scipy_odds_ratio([[5, 95], [0, 100]]).confidence_interval().low, rel=1e-6
    )
    assert exact_high == math.inf


def test_an_empty_margin_says_nothing():
    value, *ends = odds_ratio(5, 0, 7, 0)
    assert math.isnan(value)
    assert ends == [0, math.inf]
    assert conditional_interval(5, 0, 7, 0) == (0, math.inf)
    assert fisher_test(5, 0, 7, 0) == 1


@settings(max_examples=60, deadline=None)
@given(cells, cells, cells, cells, st.sampled_from([0.5, 0.9, 0.95, 0.999]))
def test_exact_interval_is_scipys(a, b, c, d, prob):
    if 0 in (a + b, c + d, a + c, b + d):
        return
    ours = conditional_interval(a, b, c, d, prob)
    theirs = scipy_odds_ratio([[a, b], [c, d]]).confidence_interval(prob)
    assert ours == pytest.approx((theirs.low, theirs.high), rel=1e-6)


@settings(max_examples=100, deadline=None)
@given(cells, cells, cells, cells)
def test_swapping_genders_inverts_everything(a, b, c, d):
    if 0 in (a + b, c + d, a + c, b + d):
        return
    first, second = odds_ratio(a, b, c, d), odds_ratio(c, d, a, b)
    assert first[0] == pytest.approx(1 / second[0])
    assert first[1] == pytest.approx(1 / second[2])
    low, high = conditional_interval(a, b, c, d)
    _, other_high = conditional_interval(c, d, a, b)
    assert low <= high
    if other_high < math.inf:
        assert low == pytest.approx(1 / other_high, rel=1e-8)
    else:
        assert low == 0
    p = fisher_test(a, b, c, d)
    assert p == pytest.approx(fisher_test(c, d, a, b))
    assert p == pytest.approx(max(fisher_exact([[a, b], [c, d]]).pvalue, 1e-307))


def test_exact_interval_of_huge_tables():
    """Two rare events in two thousand million rows: binomial(2, ½), so P = 1 - (1-p)² = .025."""
    low, high = conditional_interval(1, 10**9, 1, 10**9)
    p = 1 - math.sqrt(0.975)
    assert low == pytest.approx(p / (1 - p), rel=1e-6)
    assert high == pytest.approx(1 / low, rel=1e-9)
    large = (3_000_000, 10**9, 2_500_000, 9 * 10**8)
    assert conditional_interval(*large) == pytest.approx(odds_ratio(*large)[1:], rel=1e-5)
    assert fisher_test(*large) > 0


def test_intervals_cover_the_true_ratio():
    rng = np.random.default_rng(4)
    truth = 3.0
    odds_f = 0.15
    p_m, p_f = truth * odds_f / (1 + truth * odds_f), odds_f / (1 + odds_f)
    normal = exact = 0
    for m, f in zip(rng.binomial(80, p_m, 1500), rng.binomial(60, p_f, 1500), strict=True):
        table = (int(m), 80 - int(m), int(f), 60 - int(f))
        _, low, high = odds_ratio(*table)
        normal += low <= truth <= high
        low, high = conditional_interval(*table)
        exact += low <= truth <= high
    assert 0.935 <= normal / 1500 <= 0.985
    assert 0.945 <= exact / 1500 <= 0.995
