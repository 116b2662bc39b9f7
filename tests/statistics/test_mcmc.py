"""Diagnostics, intervals, PSIS and the sampler: known cases, and against arviz."""

import numpy as np
import pytest
from scipy.special import digamma, logsumexp
from scipy.stats import genpareto

from evenhand.statistics.mcmc import (
    diagnose,
    fit_pareto,
    hdi,
    hdi_error,
    sample,
    start_around_mode,
)
from posterior_rows import psis


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
        expected = [
            float(arviz.rhat(column)),
            *(float(arviz.ess(column, method=method)) for method in ("bulk", "tail")),
        ]
        assert [values[k] for values in diagnose(x)] == pytest.approx(expected, rel=1e-6)
        assert hdi(column, 0.89) == pytest.approx(arviz.hdi(column.ravel(), 0.89), abs=1e-12)


def test_the_effective_size_of_an_autoregression_is_known():
    """(1 - φ) / (1 + φ) of the draws."""
    x = chains(0.5, 8, 4000)[..., :1]
    assert diagnose(x)[1][0] == pytest.approx(32_000 / 3, rel=0.1)


def test_chains_that_disagree_are_detected():
    x = chains(0.0, 4, 500)
    assert diagnose(x)[0].max() < 1.01
    x[0] += 1.0
    assert diagnose(x)[0][0] > 1.1
    wide = chains(0.0, 4, 500)
    wide[0] *= 5
    assert diagnose(wide)[0][0] > 1.1  # same centre: only the folded ranks differ


def test_constants_have_nothing_to_converge():
    x = np.full((4, 100, 1), 2.0)
    assert [values[0] for values in diagnose(x)] == [1.0, 400.0, 400.0]


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
    drawn = sample(log_density, start, draws=1000, rng=rng, thin=2)
    error = drawn.std(axis=(0, 1)) / np.sqrt(diagnose(drawn)[1])
    assert np.all(np.abs(drawn.mean(axis=(0, 1)) - [1, -2]) < 4 * error)
    assert np.cov(drawn.reshape(-1, 2).T) == pytest.approx(factor @ factor.T, abs=0.06)


def test_chains_leave_the_tails_of_single_coordinates():
    """Logarithms of Γ(.5) have a long left tail; proposals of whole points alone had 38 to 200."""
    shape, dimensions = 0.5, 11

    def log_density(x):
        return np.sum(shape * x - np.exp(x), axis=1)

    rng = np.random.default_rng(0)
    start = start_around_mode(log_density, np.zeros(dimensions), 16, rng)
    drawn = sample(log_density, start, draws=250, rng=rng, thin=8)
    _, bulk, tail = diagnose(drawn)
    assert min(bulk.min(), tail.min()) > 400
    error = drawn.std(axis=(0, 1)) / np.sqrt(bulk)
    assert np.all(np.abs(drawn.mean(axis=(0, 1)) - digamma(shape)) < 4 * error)


@pytest.mark.parametrize("shape", [(4, 500), (40, 50), (1, 2000)])
def test_the_error_of_an_interval_is_the_spread_over_repetitions(shape):
    """Of independent draws and of draws that depend on the one before; at most twice too large."""
    rng = np.random.default_rng(5)
    for memory in (0.0, 0.6):
        repeated = []
        for _ in range(60):
            x = rng.normal(size=shape)
            for i in range(1, shape[1]):
                x[:, i] = memory * x[:, i - 1] + np.sqrt(1 - memory**2) * x[:, i]
            repeated.append((*hdi(x), hdi_error(x)))
        low, high, error = np.array(repeated).T
        assert 0.9 < np.median(error) / max(low.std(), high.std()) < 2
