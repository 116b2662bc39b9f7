"""Diagnostics, intervals, PSIS and the sampler: known cases, and against arviz."""

import numpy as np
import pytest
from scipy.special import logsumexp
from scipy.stats import genpareto

from evenhand.statistics.mcmc import (
    ess_bulk,
    ess_mean,
    ess_tail,
    fit_pareto,
    hdi,
    mcse_mean,
    psis,
    r_hat,
    sample,
    start_around_mode,
)


def chains(correlation, count, length, seed=0):
    """Autoregressive chains of variance 1, two quantities: the second its absolute value."""
    rng = np.random.default_rng(seed)
    x = np.empty((count, length))
    x[:, 0] = rng.standard_normal(count)
    for t in range(1, length):
        noise = np.sqrt(1 - correlation**2) * rng.standard_normal(count)
        x[:, t] = correlation * x[:, t - 1] + noise
    return np.stack([x, np.abs(x)], axis=2)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("correlation", [-0.5, 0.0, 0.4, 0.9, 0.99])
@pytest.mark.parametrize(("count", "length"), [(4, 500), (16, 125), (4, 101), (2, 400)])
def test_agrees_with_arviz(arviz, correlation, count, length):
    x = chains(correlation, count, length)
    for k in range(2):
        column = x[..., k]
        expected = {
            r_hat: arviz.rhat(column),
            ess_bulk: arviz.ess(column, method="bulk"),
            ess_tail: arviz.ess(column, method="tail"),
            ess_mean: arviz.ess(column, method="mean"),
            mcse_mean: arviz.mcse(column),
        }
        for measure, value in expected.items():
            assert measure(x)[k] == pytest.approx(float(value), rel=1e-6), measure.__name__
        assert hdi(column, 0.89) == pytest.approx(arviz.hdi(column.ravel(), 0.89), abs=1e-12)


def test_the_effective_size_of_an_autoregression_is_known():
    """(1 - φ) / (1 + φ) of the draws."""
    x = chains(0.5, 8, 4000)[..., :1]
    assert ess_mean(x)[0] == pytest.approx(32_000 / 3, rel=0.1)
    assert mcse_mean(x)[0] == pytest.approx(np.sqrt(3 / 32_000), rel=0.1)


def test_chains_that_disagree_are_detected():
    x = chains(0.0, 4, 500)
    assert r_hat(x).max() < 1.01
    x[0] += 1.0
    assert r_hat(x)[0] > 1.1
    wide = chains(0.0, 4, 500)
    wide[0] *= 5
    assert r_hat(wide)[0] > 1.1  # same centre: only the folded ranks differ


def test_constants_have_nothing_to_converge():
    x = np.full((4, 100, 1), 2.0)
    assert (r_hat(x)[0], ess_bulk(x)[0]) == (1.0, 400.0)


def test_the_shortest_interval():
    x = np.random.default_rng(0).exponential(size=200_000)
    low, high = hdi(x, 0.89)
    assert low == pytest.approx(0, abs=0.01)
    assert high == pytest.approx(-np.log(0.11), abs=0.03)
    assert hdi(np.array([3.0, 1.0, 2.0]), 0.999) == (1.0, 3.0)


def test_the_pareto_fit_recovers_its_shape():
    rng = np.random.default_rng(0)
    x = np.sort(genpareto.rvs(0.5, scale=2.0, size=(3, 5000), random_state=rng), axis=1)
    k, scale = fit_pareto(x)
    assert k == pytest.approx([0.5] * 3, abs=0.06)
    assert scale == pytest.approx([2.0] * 3, rel=0.1)


def test_smoothed_weights_are_weights():
    weights, _ = psis(np.random.default_rng(0).standard_normal((40, 1000)))
    assert logsumexp(weights, axis=1) == pytest.approx(np.zeros(40), abs=1e-10)
    flat, k = psis(np.zeros((2, 100)))
    assert np.exp(flat) == pytest.approx(np.full((2, 100), 0.01))
    assert np.all(k < 0)


def test_chains_sample_a_known_density():
    factor = np.array([[1.0, 0.0], [0.8, 0.6]])

    def log_density(x):
        z = np.linalg.solve(factor, (x - [1.0, -2.0]).T)
        return -0.5 * np.sum(z**2, axis=0)

    rng = np.random.default_rng(0)
    start = start_around_mode(log_density, np.zeros(2), 16, rng)
    drawn = sample(log_density, start, draws=1000, rng=rng, thin=2).draws
    error = mcse_mean(drawn)
    assert np.all(np.abs(drawn.mean(axis=(0, 1)) - [1, -2]) < 4 * error)
    assert np.cov(drawn.reshape(-1, 2).T) == pytest.approx(factor @ factor.T, abs=0.06)
