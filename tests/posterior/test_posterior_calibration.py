"""Coverage of 89 % intervals on simulated tables with a known truth.

The numbers of words and stereotypes are those of the religion table of Dobrzeniecka (2021). The
intervals of models without attribute effects do not cover contrasts with the controls.
"""

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from evenhand.posterior.contrasts import measure_contrasts
from evenhand.posterior.crossed import fit_crossed
from evenhand.posterior.tables import simulate
from evenhand.posterior.thesis import fit_thesis

SETS = 200
LEVELS = (0.90, 0.90, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("delta", [0.0, -0.1])
def test_coverage(delta):
    truth = {
        "associated-different": delta,
        "associated-human": delta,
        "associated-none": delta - 0.05,
        "human-none": -0.05,
    }
    held: dict[tuple[str, str], list[bool]] = {}
    excluded = 0
    with threadpool_limits(1, "blas"):
        for seed in range(SETS):
            table = simulate(delta=delta, human=10, neutral=15, levels=LEVELS, seed=seed)
            fits = [
                fit_crossed(table, draws=800, seed=seed, warm_up=(40, 60, 80), attempts=1),
                fit_thesis("coefficients", table, draws=1000, seed=seed),
            ]
            for result in fits:
                for name, contrast in measure_contrasts(result).items():
                    inside = contrast.low <= truth[name] <= contrast.high
                    held.setdefault((result.model, name), []).append(inside)
            excluded += measure_contrasts(fits[0])["associated-different"].high < 0
    coverage = {key: float(np.mean(hits)) for key, hits in held.items()}
    for name in truth:
        assert coverage["crossed", name] == pytest.approx(0.89, abs=0.04), coverage
    for name in ("associated-human", "associated-none", "human-none"):
        assert coverage["coefficients", name] < 0.7, coverage
    assert excluded / SETS < 0.11 if delta == 0 else excluded / SETS > 0.85
