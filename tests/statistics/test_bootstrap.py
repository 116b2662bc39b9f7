"""The studentised bootstrap of a mean, and the sign test."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.statistics import intervals
from evenhand.statistics.intervals import bootstrap_mean
from evenhand.statistics.tests import sign_test


def two_peaks(rng, shape):
    return np.where(rng.random(shape) < 0.7, rng.beta(8, 1, shape), rng.beta(1, 8, shape))


def with_ones(rng, shape):
    return np.where(rng.random(shape) < 0.3, 1.0, rng.beta(6, 4, shape))


POPULATIONS = [
    (lambda rng, shape: rng.beta(11, 9, shape), 0.55),
    (lambda rng, shape: rng.beta(20, 0.5, shape), 20 / 20.5),
    (two_peaks, 0.7 * 8 / 9 + 0.3 / 9),
    (with_ones, 0.3 + 0.7 * 0.6),
]


@pytest.mark.slow
@pytest.mark.parametrize("n", [15, 30, 120])
@pytest.mark.parametrize(("draw", "mean"), POPULATIONS, ids=["usual", "skewed", "peaks", "ones"])
def test_the_bootstrap_interval_covers(n, draw, mean):
    """A 95 % interval covers 92 % of 600 samples at least (three standard errors below)."""
    samples = draw(np.random.default_rng(n), (600, n))
    computed = [bootstrap_mean(x, seed=i, resamples=1000) for i, x in enumerate(samples)]
    assert np.mean([low <= mean <= high for _, low, high in computed]) > 0.92


@pytest.mark.parametrize("draw", [draw for draw, _ in POPULATIONS])
def test_many_values_resampled_in_groups_read_the_same(draw):
    """Above 2,048 values the groups' interval is the normal one, to the noise of the draws."""
    x = draw(np.random.default_rng(1), 20_000)
    value, low, high = bootstrap_mean(x)
    half = 1.96 * x.std(ddof=1) / np.sqrt(x.size)
    assert value == pytest.approx(x.mean())
    assert (high - low) / (2 * half) == pytest.approx(1, abs=0.05)
    assert (high + low) / 2 == pytest.approx(x.mean(), abs=0.1 * half)


def test_groups_keep_rare_values_that_are_far_from_the_others(monkeypatch):
    """Groups of neighbours averaged an outlier with others, and the interval was 9 % too short."""
    rng = np.random.default_rng(1)
    x = np.where(rng.random(5000) < 0.003, 1.0, rng.beta(2, 60, 5000))
    _, low, high = bootstrap_mean(x)
    monkeypatch.setattr(intervals, "_GROUPED", 10**9)
    value, exact_low, exact_high = bootstrap_mean(x)
    width = exact_high - exact_low
    assert (high - low) / width == pytest.approx(1, abs=0.06)
    assert (value - low) / width == pytest.approx((value - exact_low) / width, abs=0.04)


def test_the_bootstrap_interval_of_few_or_equal_values():
    value, *ends = bootstrap_mean([])
    assert np.isnan(value)
    assert ends == [0, 1]
    _, low, high = bootstrap_mean([0.7])
    assert low < 0.1
    assert high > 0.95
    value, low, high = bootstrap_mean([1.0] * 100)  # at most 1 - .025^(1/100) of all are not 1
    assert (value, high) == (1, 1)
    assert low == pytest.approx(0.025 ** (1 / 100))
    _, low, high = bootstrap_mean([0.4, 0.6])
    assert 0 < low < 0.2
    assert 0.8 < high < 1


def test_the_bootstrap_interval_depends_on_the_seed_alone():
    x = np.random.default_rng(0).random(50)
    assert bootstrap_mean(x, seed=3) == bootstrap_mean(x[::-1], seed=3)
    assert bootstrap_mean(x, seed=3) != bootstrap_mean(x, seed=4)
    narrow, wide = bootstrap_mean(x, prob=0.5), bootstrap_mean(x, prob=0.99)
    assert wide[1] < narrow[1] < narrow[2] < wide[2]


@pytest.mark.parametrize(
    ("above", "below"), [(8, 2), (5, 5), (0, 7), (0, 0), (600, 500), (520, 480), (400, 600)]
)
def test_sign_test_is_the_exact_binomial_test(above, below):
    from scipy.stats import binomtest

    n = above + below
    expected = binomtest(above, n, 0.5).pvalue if n else 1.0
    x = np.repeat([0.2, -0.1, 1e-8], [above, below, 3])
    assert sign_test(x) == pytest.approx(expected)


def clopper_pearson(successes, n):
    from scipy.stats import binomtest

    interval = binomtest(successes, n).proportion_ci(0.95, method="exact")
    return interval.low, interval.high


@pytest.mark.parametrize(("n", "others"), [(8, 1), (20, 1), (30, 1), (100, 3), (400, 2)])
def test_few_values_that_differ_do_not_make_it_wide(n, others):
    """Not wider than the exact interval of a share: no values within the bounds vary more."""
    shares = np.ones(n)
    shares[:others] = 0
    low, high = clopper_pearson(n - others, n)
    noise = 0.04 * (high - low)
    assert bootstrap_mean(shares)[1:] == pytest.approx((low, high), abs=noise)
    signed = bootstrap_mean(2 * shares - 1, bounds=(-1.0, 1.0))[1:]
    assert signed == pytest.approx((2 * low - 1, 2 * high - 1), abs=2 * noise)
    _, narrower, _ = bootstrap_mean(1 - (1 - shares) / 2)
    assert narrower > low
    assert bootstrap_mean(shares, bounds=(-np.inf, np.inf))[1] < low


def test_the_width_does_not_jump_at_any_number_of_values():
    """A share of .8 had a width of .42 with 29 values and of .27 with 30."""
    sizes = np.arange(5, 61, 5)
    widths = []
    for n in sizes:
        for size in (n - 1, n):
            ones = round(0.8 * size)
            _, low, high = bootstrap_mean([1.0] * ones + [0.0] * (size - ones))
            _, exact_low, exact_high = (0.8, *clopper_pearson(ones, size))
            widths.append((high - low) / (exact_high - exact_low))
    assert min(widths) > 0.85
    assert max(widths) < 1.05


def steps(rng, shape):
    return rng.choice([0.0, 0.5, 1.0], p=[0.1, 0.2, 0.7], size=shape)


def share(p):
    return lambda rng, shape: (rng.random(shape) < p).astype(float), p


@pytest.mark.slow
@pytest.mark.parametrize("n", [5, 8, 15, 29])
@pytest.mark.parametrize(
    ("draw", "mean"),
    [share(0.5), share(0.8), share(0.98), (steps, 0.8), POPULATIONS[0]],
    ids=[".5", ".8", ".98", "steps", "usual"],
)
def test_the_interval_of_few_values_covers(n, draw, mean):
    """As `test_the_bootstrap_interval_covers`, for shares and scores of few units."""
    samples = draw(np.random.default_rng(n), (600, n))
    computed = [bootstrap_mean(x, seed=i, resamples=1000) for i, x in enumerate(samples)]
    assert np.mean([low <= mean <= high for _, low, high in computed]) > 0.92


@pytest.mark.slow
def test_signed_scores_that_are_mostly_0_are_covered():
    """The bootstrap-t alone covers 89 % of 25 such values, and Student's interval 97 %."""
    rng = np.random.default_rng(0)
    signs = rng.choice([-1.0, 1.0], (600, 25))
    samples = np.where(rng.random((600, 25)) < 0.2, signs * rng.random((600, 25)), 0.0)
    computed = [
        bootstrap_mean(x, seed=i, resamples=1000, bounds=(-1.0, 1.0)) for i, x in enumerate(samples)
    ]
    assert np.mean([low <= 0 <= high for _, low, high in computed]) > 0.93
