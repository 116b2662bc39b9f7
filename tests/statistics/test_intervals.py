import math

import numpy as np
import pytest
from scipy import stats
from scipy.optimize import brentq

from evenhand.statistics import intervals, tests


def coverage(make, truth, repeats, seed):
    """The share of intervals over fresh samples that hold the truth."""
    rng = np.random.default_rng(seed)
    hits = [low <= truth <= high for low, high in (make(rng) for _ in range(repeats))]
    return np.mean(hits)


def test_t_mean_agrees_with_scipy():
    x = np.random.default_rng(0).normal(size=12)
    expected = stats.ttest_1samp(x, 0).confidence_interval(0.9)
    mean, low, high = intervals.t_mean(x, 0.9)
    assert (mean, low, high) == pytest.approx((x.mean(), *expected), rel=1e-9)
    assert intervals.t_mean([3.0]) == (3.0, -math.inf, math.inf)


@pytest.mark.parametrize("freedom", [1, 1.7, 3, 12.5, 48, 1000, 1e6, math.inf])
@pytest.mark.parametrize("prob", [0.01, 0.5, 0.95, 0.999])
def test_quantiles_of_student_agree_with_scipy(freedom, prob):
    expected = stats.t.ppf((1 + prob) / 2, freedom)
    assert intervals._t_quantile(prob, freedom) == pytest.approx(expected, rel=1e-8)


def test_a_quantile_without_degrees_of_freedom_is_nan():
    assert math.isnan(intervals._t_quantile(0.95, math.nan))


def test_welch_agrees_with_scipy():
    rng = np.random.default_rng(1)
    x, y = rng.normal(1, 2, 9), rng.normal(0, 1, 14)
    expected = stats.ttest_ind(x, y, equal_var=False).confidence_interval(0.95)
    assert intervals.welch(x, y)[1:] == pytest.approx(tuple(expected), rel=1e-9)


def test_wilson_agrees_with_scipy():
    for k, n in [(0, 7), (3, 9), (40, 41)]:
        expected = stats.binomtest(k, n).proportion_ci(0.95, method="wilson")
        assert intervals.wilson(k, n)[1:] == pytest.approx(tuple(expected), rel=1e-9)


def test_fisher_z_agrees_with_scipy():
    rng = np.random.default_rng(2)
    x = rng.normal(size=20)
    y = x + rng.normal(size=20)
    result = stats.pearsonr(x, y)
    expected = result.confidence_interval(0.95)
    assert intervals.fisher_z(result.statistic, 20) == pytest.approx(tuple(expected), rel=1e-9)


@pytest.mark.parametrize(("rho", "n"), [(0.5, 8), (0.9, 5), (0.9, 8), (0.95, 6), (0.95, 25)])
def test_spearman_interval_covers_short_lists_and_strong_correlations(rho, n):
    truth = 6 / math.pi * math.asin(rho / 2)

    def make(rng):
        x = rng.normal(size=n)
        y = rho * x + math.sqrt(1 - rho**2) * rng.normal(size=n)
        return intervals.fisher_z(stats.spearmanr(x, y).statistic, n, spearman=True)

    assert coverage(make, truth, 800, seed=5) >= 0.93


def test_equal_ranks_do_not_prove_a_correlation_of_one():
    low, high = intervals.fisher_z(1.0, 6, spearman=True)
    assert low < 0.8
    assert high == 1


def test_effect_size_lies_in_its_interval_however_far_apart():
    for gap in (1.0, 10.0, 1e3, 1e6):
        value, low, high = intervals.effect_size(
            [0, 0.1, 0.2, 0.05], np.array([1, 1.1, 1.2, 1]) * gap
        )
        assert low <= value <= high


def test_effect_size_by_hand():
    """x = 1, 2, 3 and y = 3, 4, 5: difference -2, sd of the union √2, so d = -√2."""
    value, low, high = intervals.effect_size([1.0, 2.0, 3.0], [3.0, 4.0, 5.0])
    assert value == pytest.approx(-math.sqrt(2))
    assert low < value < high
    mirrored = intervals.effect_size([3.0, 4.0, 5.0], [1.0, 2.0, 3.0])
    assert mirrored == pytest.approx((-value, -high, -low))


@pytest.mark.parametrize(("t", "freedom"), [(0.0, 4), (2.0, 14), (-7.5, 10), (25.0, 30), (-40, 6)])
def test_noncentral_limits_are_the_quantiles(t, freedom):
    low, high = intervals._noncentral_t(t, freedom, 0.95)
    assert stats.nct.cdf(t, freedom, low) == pytest.approx(0.975, abs=1e-6)
    assert stats.nct.cdf(t, freedom, high) == pytest.approx(0.025, abs=1e-6)


@pytest.mark.slow
@pytest.mark.parametrize(("nx", "ny", "delta"), [(8, 8, 0.0), (8, 8, 1.5), (6, 12, -0.8)])
def test_effect_size_coverage(nx, ny, delta):
    share = nx * ny / (nx + ny) ** 2
    truth = delta / math.sqrt(1 + share * delta**2)

    def make(rng):
        return intervals.effect_size(rng.normal(delta, 1, nx), rng.normal(0, 1, ny))[1:]

    assert 0.935 <= coverage(make, truth, 1000, seed=3) <= 0.985


@pytest.mark.parametrize(
    ("rows", "columns", "spreads"), [(10, 12, (1, 1, 1)), (8, 25, (0, 1, 2)), (15, 11, (1, 0, 0.5))]
)
def test_crossed_mean_coverage(rows, columns, spreads):
    """Rows and columns are both drawn anew; a plain t over all cells would be far too narrow."""

    def make(rng):
        table = (
            3
            + rng.normal(0, 1, (rows, 1)) * spreads[0]
            + rng.normal(0, 1, (1, columns)) * spreads[1]
            + rng.normal(0, 1, (rows, columns)) * spreads[2]
        )
        return intervals.crossed_mean(table)[1:]

    assert coverage(make, 3, 1000, seed=4) == pytest.approx(0.955, abs=0.03)


def test_crossed_mean_weighs_strata_equally():
    table = np.array([[1.0, 1.0, 1.0, 5.0], [1.0, 1.0, 1.0, 5.0]])
    assert intervals.crossed_mean(table, [0, 0, 0, 1])[0] == 3.0
    assert intervals.crossed_mean(table)[0] == 2.0


def test_jackknife_of_a_mean_is_the_t_interval():
    x = np.random.default_rng(6).normal(size=15)
    without = (x.sum() - x) / 14
    assert intervals.jackknife(x.mean(), without) == pytest.approx(intervals.t_mean(x)[1:])


def test_jackknife_within_strata_counts_only_their_own_spread():
    """Two groups of given size, far apart: the mean's interval is that of the stratified mean."""
    rng = np.random.default_rng(7)
    x = np.concatenate([rng.normal(0, 1, 10), rng.normal(50, 1, 10)])
    low, high = intervals.jackknife(x.mean(), (x.sum() - x) / 19, strata=[0] * 10 + [1] * 10)
    spread = math.sqrt((x[:10].var(ddof=1) + x[10:].var(ddof=1)) / 10) / 2
    assert high - low == pytest.approx(2 * stats.t.ppf(0.975, 18) * spread, rel=0.1)


@pytest.mark.slow
def test_effect_size_coverage_for_skewed_scores():
    """Cosines near their end: exact theory for normal scores alone would cover 90 %."""
    rng = np.random.default_rng(9)

    def cosines(n):
        words = rng.normal(size=(n, 30)) / math.sqrt(30) + 0.5 * np.eye(30)[0]
        return words[:, 0] / np.linalg.norm(words, axis=1)

    big = cosines(200_000)
    truth = 2 * big.mean() / np.concatenate([big, -big]).std()
    hits = [
        low <= truth <= high
        for _, low, high in (intervals.effect_size(cosines(12), -cosines(12)) for _ in range(600))
    ]
    assert 0.925 <= np.mean(hits) <= 0.985


def test_jackknife_on_the_log_scale_stays_positive():
    low, high = intervals.jackknife(0.1, [0.02, 0.1, 0.3], scale=(np.log, np.exp))
    assert 0 < low < 0.1 < high


def test_degenerate_samples_give_unbounded_or_point_intervals():
    assert intervals.jackknife(1.0, [1.0]) == (-math.inf, math.inf)
    assert intervals.fisher_z(0.5, 3) == (-1.0, 1.0)
    assert intervals.wilson(0, 0)[1:] == (0.0, 1.0)
    assert intervals.effect_size([1.0, 1.0], [0.0, 0.0])[0] == pytest.approx(math.sqrt(3))
    assert intervals.two_way_jackknife(1.0, [1.0], [1.0, 2.0]) == (-math.inf, math.inf)
    assert intervals.welch([1.0], [2.0, 3.0])[1:] == (-math.inf, math.inf)
    # equal values say nothing about others
    assert intervals.welch([1.0, 1.0], [2.0, 2.0])[1:] == (-math.inf, math.inf)
    assert intervals.two_way_jackknife(1.0, [1.0] * 9, [1.0, 1.0]) == (-math.inf, math.inf)
    assert intervals.crossed_mean(np.full((9, 2), 0.1))[1:] == (-math.inf, math.inf)
    assert intervals.t_mean([0.1, 0.1, 0.1])[1:] == (-math.inf, math.inf)


def test_the_coarsest_factor_limits_the_freedom():
    rng = np.random.default_rng(10)
    for _ in range(50):
        table = rng.normal(size=(40, 2)) + rng.normal(size=(40, 1))
        value, _, high = intervals.crossed_mean(table)
        error = table.mean(axis=1).std(ddof=1) / math.sqrt(40)
        assert high - value >= 12.7 * error  # Student's quantile with one degree of freedom
        without = [np.delete(table, k, axis=axis).mean() for axis in (0, 1) for k in range(2)]
        rows = [np.delete(table, k, axis=0).mean() for k in range(40)]
        _, high = intervals.two_way_jackknife(table.mean(), rows, without[2:])
        assert high - table.mean() >= 12.7 * error
    # two values against many: as uncertain as the two
    x, y = rng.normal(size=2), rng.normal(size=100)
    value, _, high = intervals.welch(x, y)
    assert high - value == pytest.approx(
        stats.t.ppf(0.975, 1) * math.sqrt(x.var(ddof=1) / 2 + y.var(ddof=1) / 100)
    )


def test_holm_by_hand():
    # sorted .01 .02 .03 .04: times 4, 3, 2, 1 = .04 .06 .06 .04, then never falling
    assert tests.holm([0.04, 0.01, 0.03, 0.02]) == pytest.approx([0.06, 0.04, 0.06, 0.06])
    assert tests.holm([0.9, 0.8]) == [1.0, 1.0]
    assert tests.holm([]) == []


def test_a_root_is_found_to_the_tolerance():
    for f, low, high in (
        (lambda x: x**3 - 2, 0.0, 5.0),
        (lambda x: math.exp(-x) - 1e-6, 0.0, 100.0),
        (lambda x: float(x > 1.25) - 0.5, -3.0, 4.0),
        (lambda x: 1 - x, 0.0, 1.0),
    ):
        assert intervals._root(f, low, high) == pytest.approx(brentq(f, low, high), abs=1e-9)
