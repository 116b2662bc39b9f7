"""Effects combined: published and hand-computed values, and errors that effects share."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.statistics.random_effects import random_effects

BCG = np.array(
    [
        (4, 119, 11, 128),
        (6, 300, 29, 274),
        (3, 228, 11, 209),
        (62, 13536, 248, 12619),
        (33, 5036, 47, 5761),
        (180, 1361, 372, 1079),
        (8, 2537, 10, 619),
        (505, 87886, 499, 87892),
        (29, 7470, 45, 7232),
        (17, 1699, 65, 1600),
        (186, 50448, 141, 27197),
        (5, 2493, 3, 2338),
        (27, 16886, 29, 17825),
    ],
    dtype=float,
)
"""Trials of the BCG vaccine (Colditz et al. 1994): cases and others, vaccinated and not."""


def test_published_values_of_the_vaccine_trials():
    a, b, c, d = BCG.T
    effects = np.log(a / (a + b)) - np.log(c / (c + d))
    variances = 1 / a - 1 / (a + b) + 1 / c - 1 / (c + d)
    combined = random_effects(effects, variances)
    assert combined.mean.value == pytest.approx(-0.7141, abs=5e-5)
    assert combined.tau2 == pytest.approx(0.3088, abs=5e-5)
    assert combined.q == pytest.approx(152.233, abs=5e-4)
    assert combined.i2 == pytest.approx(0.9212, abs=5e-5)
    assert combined.mean.freedom == pytest.approx(12)


def test_three_effects_by_hand():
    # weights 10, 5, 10: mean (2 + 3 + 8) / 25 = .52; Q = 10 * .1024 + 5 * .0064 + 10 * .0784 = 1.84
    combined = random_effects([0.2, 0.6, 0.8], [0.1, 0.2, 0.1])
    assert combined.q == pytest.approx(1.84)
    assert combined.tau2 == 0  # Q is below its two degrees of freedom
    assert combined.mean.value == pytest.approx(0.52)
    # the variance is never below that of the errors alone, 1 / 25; Hartung and Knapp's is lower
    assert combined.mean.variance == pytest.approx(1 / 25)
    # with a tenth of the errors: Q = 18.4, C = 250 - 22500 / 250 = 160, tau² = 16.4 / 160
    combined = random_effects([0.2, 0.6, 0.8], [0.01, 0.02, 0.01])
    assert combined.tau2 == pytest.approx(0.1025)
    weights = 1 / (np.array([0.01, 0.02, 0.01]) + 0.1025)
    mean = weights @ [0.2, 0.6, 0.8] / weights.sum()
    squares = weights @ (np.array([0.2, 0.6, 0.8]) - mean) ** 2
    assert combined.mean.value == pytest.approx(mean)
    assert combined.mean.variance == pytest.approx(squares / (2 * weights.sum()))


def test_what_errors_share_does_not_vanish_with_their_number():
    rng = np.random.default_rng(0)
    effects = 0.5 + 0.2 * rng.standard_normal(400)
    own, shared = 0.01, 0.09
    covariance = np.full((400, 400), shared) + own * np.eye(400)
    combined = random_effects(effects, covariance, freedom=14)
    spread = effects.var(ddof=1)
    assert combined.tau2 == pytest.approx(spread - own)
    assert combined.mean.variance == pytest.approx(spread / 400 + shared)
    assert combined.mean.freedom == pytest.approx(14, rel=0.01)
    independent = random_effects(effects, np.full(400, own + shared))
    assert independent.mean.variance < 0.001


def test_effects_without_errors_have_the_interval_of_a_mean():
    combined = random_effects([1.0, 2.0, 3.0], [0.0, 0.0, 0.0])
    assert combined.mean.interval(0.95) == pytest.approx((-0.484, 4.484), abs=1e-3)


def test_the_fewest_effects_limit_the_freedom():
    shared = np.full((3, 3), 0.09) + 0.01 * np.eye(3)
    assert random_effects([0.4, 0.5, 0.6], shared, freedom=40).mean.freedom <= 2
    equal = random_effects([0.5, 0.5], [0.0, 0.0])
    assert equal.mean.interval(0.95) == (-np.inf, np.inf)
