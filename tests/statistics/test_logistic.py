"""The logistic mixed model, its likelihood integrated by brute force."""

import math

import numpy as np
import pytest
from scipy.integrate import dblquad, quad

from evenhand.statistics.logistic import _by_item, fit_logistic

COUNTS = np.array([[[3, 1], [0, 2], [4, 4]], [[5, 4], [5, 4], [4, 5]]], dtype=float)


def likelihood(item, u, v):
    total = 1.0
    for side, x in enumerate((0.5, -0.5)):
        p = 1 / (1 + math.exp(-(0.3 + 0.8 * x + u + v * x)))
        yes, n = COUNTS[:, item, side]
        total *= p**yes * (1 - p) ** (n - yes)
    return total


def density(x, sd):
    return math.exp(-x * x / (2 * sd * sd)) / (math.sqrt(2 * math.pi) * sd)


@pytest.mark.parametrize("item", range(3))
def test_quadrature_is_the_integral(item):
    parameters = np.array([0.3, 0.8, math.log(1.2)])
    exact, _ = quad(lambda u: likelihood(item, u, 0.0) * density(u, 1.2), -12, 12)
    assert _by_item(parameters, COUNTS)[item] == pytest.approx(math.log(exact), abs=1e-5)
    both, _ = dblquad(
        lambda v, u: likelihood(item, u, v) * density(u, 1.2) * density(v, 0.7), -9, 9, -6, 6
    )
    parameters = np.append(parameters, math.log(0.7))
    assert _by_item(parameters, COUNTS)[item] == pytest.approx(math.log(both), abs=1e-4)


def world(rng, items=30, effect=1.0, samples=6):
    u, v = rng.normal(0, 1.5, items), rng.normal(0, 0.8, items)
    codes, first = np.repeat(np.arange(items), 2), np.tile([True, False], items)
    x = np.where(first, 0.5, -0.5)
    p = 1 / (1 + np.exp(-(-0.5 + effect * x + u[codes] + v[codes] * x)))
    return rng.binomial(samples, p), np.full(2 * items, samples), first, codes


def test_the_maximum_is_one():
    rng = np.random.default_rng(0)
    yes, n, first, codes = world(rng)
    fit = fit_logistic(yes, n, first, codes)
    counts = np.stack([yes.reshape(-1, 2), n.reshape(-1, 2)]).astype(float)
    best = np.array([fit.intercept, fit.effect.value, math.log(fit.items), math.log(fit.slopes)])
    for place in range(4):
        for step in (-0.05, 0.05):
            moved = best.copy()
            moved[place] += step
            assert _by_item(moved, counts).sum() < fit.log_likelihood + 1e-4
    assert fit.effect.freedom == 29


def test_a_group_with_one_answer_only_tells_no_ratio():
    fit = fit_logistic([4, 0, 4, 0, 4, 0], [4] * 6, [True, False] * 3, np.repeat([0, 1, 2], 2))
    low, high = fit.effect.interval(0.95)
    assert (low, high) == (-math.inf, math.inf) or high - low > 5


@pytest.mark.slow
def test_intervals_cover():
    rng = np.random.default_rng(1)
    covered = 0
    for _ in range(60):
        low, high = fit_logistic(*world(rng, items=20)).effect.interval(0.95)
        covered += low <= 1.0 <= high
    assert covered >= 52
