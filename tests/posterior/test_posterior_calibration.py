"""Coverage of 89 % intervals on simulated tables with a known truth.

The numbers of words and stereotypes are those of the religion table of Dobrzeniecka (2021). The
intervals of models without attribute effects do not cover contrasts with the controls.
"""

from dataclasses import replace
from itertools import product

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from evenhand.posterior.crossed import CrossedData, CrossedPrior, fit_crossed
from evenhand.posterior.fits import measure_contrasts
from evenhand.posterior.planning import sample_delta
from evenhand.posterior.tables import simulate
from evenhand.posterior.thesis import fit_thesis

SETS = 60
"""Tables with each contrast δ. Coverage below 0.79 or above 0.98 fails over both."""
LEVELS = (0.90, 0.90, 0.95)


@pytest.mark.slow
def test_coverage():
    held: dict[tuple[str, str], list[bool]] = {}
    excluded = dict.fromkeys((0.0, -0.1), 0)
    with threadpool_limits(1, "blas"):
        for seed, delta in product(range(SETS), excluded):
            table = simulate(delta=delta, human=10, neutral=15, levels=LEVELS, seed=seed)
            truth = {
                "associated-different": delta,
                "associated-human": delta,
                "associated-none": delta - 0.05,
                "human-none": -0.05,
            }
            fits = [
                fit_crossed(table, draws=800, seed=seed, warm_up=(40, 60, 80), attempts=1),
                fit_thesis("coefficients", table, draws=1000, seed=seed),
            ]
            for result in fits:
                contrasts = measure_contrasts(result, prob=0.89)
                for name, contrast in contrasts.items():
                    inside = contrast.low <= truth[name] <= contrast.high
                    held.setdefault((result.model, name), []).append(inside)
                if result.model == "crossed":
                    excluded[delta] += contrasts["associated-different"].high < 0
    coverage = {key: float(np.mean(hits)) for key, hits in held.items()}
    tolerance = 0.04 + 2 * np.sqrt(0.89 * 0.11 / (2 * SETS))
    for name in truth:
        assert coverage["crossed", name] == pytest.approx(0.89, abs=tolerance), coverage
    for name in ("associated-human", "associated-none", "human-none"):
        assert coverage["coefficients", name] < 0.7, coverage
    assert excluded[0.0] / SETS < 0.13
    assert excluded[-0.1] / SETS > 0.85


WORLDS = {
    "no interaction": {},
    "interaction": {"eta": 0.056},
    "heavy tails": {"freedom": 3},
    "heavy tails, interaction": {"freedom": 3, "eta": 0.056},
    "unequal by word, interaction": {"unequal": (0.4, 1.0), "eta": 0.056},
    "unequal by connection, interaction": {"unequal": (0.0, 1.8), "eta": 0.056},
}
TABLES = 240
TOLERANCE = 0.04 + 2 * np.sqrt(0.89 * 0.11 / TABLES)
"""Four points, and two standard errors of the simulation."""


@pytest.mark.slow
@pytest.mark.parametrize("world", WORLDS)
def test_coverage_in_worlds_that_the_model_does_not_assume(world):
    """δ by stereotypes, scales of GloVe; benchmarks/posterior_worlds.py has more of them."""
    settings = dict(WORLDS[world])
    eta = settings.pop("eta", 0.0)
    scales = {"error": 0.075, "stereotype": 0.155, "delta": 0.02, "word": 0.067}
    prior, guess = CrossedPrior(), np.array([0.09, 0.16, 0.03, 0.08, 0.03])
    covered = {"crossed": 0, "no interaction": 0}
    with threadpool_limits(1, "blas"):
        for seed in range(TABLES):
            table = simulate(
                human=0,
                neutral=0,
                scales={**scales, "interaction_stereotype": eta},
                seed=1000 + seed,
                **settings,
            )
            data, rng = CrossedData.of(table), np.random.default_rng(seed)
            posterior = sample_delta(data, prior, guess, rng)
            covered["crossed"] += posterior.mass_denser_than(0.0) <= 0.89
            without = replace(data, word_class=None)
            posterior = sample_delta(without, prior.without_interaction(), guess[:-1], rng)
            covered["no interaction"] += posterior.mass_denser_than(0.0) <= 0.89
    share = {name: count / TABLES for name, count in covered.items()}
    assert share["crossed"] == pytest.approx(0.89, abs=TOLERANCE), share
    if eta:
        assert share["no interaction"] < 0.86, share
        assert share["no interaction"] < share["crossed"]
