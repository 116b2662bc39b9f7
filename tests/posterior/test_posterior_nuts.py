"""Exact draws against an independent sampler of the same models."""

import importlib.util

import numpy as np
import pytest

from evenhand.errors import MissingExtraError
from evenhand.posterior.crossed import CROSSED
from evenhand.posterior.fits import contrast_draws
from evenhand.posterior.models import fit
from evenhand.posterior.tables import SCALES, read_table, simulate
from evenhand.statistics.mcmc import diagnose

missing = importlib.util.find_spec("numpyro") is None
needs_numpyro = pytest.mark.skipif(missing, reason="needs numpyro, of the extra nuts")


def gaps(first, second):
    """Difference of the means of two sets of draws, in Monte Carlo errors."""
    errors = []
    for draws in (first, second):
        size = diagnose(draws.reshape(*draws.shape[:2], -1))[1].reshape(draws.shape[2:])
        errors.append(draws.std(axis=(0, 1), ddof=1) / np.sqrt(size))
    error = np.hypot(*errors)
    return np.abs(first.mean(axis=(0, 1)) - second.mean(axis=(0, 1))) / error


@pytest.mark.slow
@needs_numpyro
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", ["baseline", "coefficients", "separate"])
def test_the_models_of_dobrzeniecka(shared, model):
    table = read_table(shared / "data" / "cosine" / "religionReddit.csv")
    exact, nuts = fit(table, model), fit(table, model, sampler="nuts", seed=1)
    assert nuts.sampler == "nuts"
    assert nuts.diagnostics().rhat_max < 1.02
    for name in exact.draws:
        assert gaps(exact.draws[name], nuts.draws[name]).max() < 3
        ratio = nuts.draws[name].std(axis=(0, 1)) / exact.draws[name].std(axis=(0, 1))
        assert np.abs(ratio - 1).max() < 0.1


@pytest.mark.slow
@needs_numpyro
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("model", CROSSED)
def test_crossed(model):
    scales = {**SCALES, "interaction_stereotype": 0.08, "interaction_human": 0.04}
    table = simulate(delta=-0.1, seed=1, neutral=20, human=10, scales=scales)
    # the errors of NUTS are estimated from four chains that mix slowly in the scales: with seed 1
    # its word effects are 4.8 of them from 40,000 exact draws
    exact, nuts = fit(table, model), fit(table, model, sampler="nuts", seed=0)
    assert nuts.model == exact.model == model
    for name, draws in contrast_draws(exact).items():
        assert gaps(draws, contrast_draws(nuts)[name]) < 3
    names = ["gamma", "scale", "word", "delta_word", "slope_stereotype"]
    for name in [*names, "eta"] if model == "crossed" else names:
        assert gaps(exact.draws[name], nuts.draws[name]).max() < 5
    ratio = nuts.draws["delta"].std() / exact.draws["delta"].std()
    assert ratio == pytest.approx(1.0, abs=0.1)


@pytest.mark.skipif(not missing, reason="numpyro is installed")
def test_the_missing_extra_is_an_error():
    with pytest.raises(MissingExtraError, match=r"needs the package numpyro: pip install 'evenh"):
        fit(simulate(), "baseline", sampler="nuts")
