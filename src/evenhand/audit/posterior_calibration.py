"""Can the intervals be trusted here? Tables as the one measured, but with the truth known.

They have the same protected words and stereotypes, the spreads that the model found, and a
difference that is known: none, or one of a given size.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from evenhand.posterior.fits import Fit

__all__ = ["calibrate"]


def calibrate(
    fit: Fit, *, effect: float, sets: int, prob: float, seed: int, told: Callable[[int], None]
) -> list[dict[str, Any]]:
    """How often the interval of δ holds the truth and how often it excludes 0, in `sets` tables.

    Once where the truth is 0, where excluding it is a false alarm, and once where it is `effect`,
    where it counts if the interval lies on the effect's side. `told` hears how many are done.
    """
    import scipy.optimize  # noqa: F401  (before its threads are limited)
    from threadpoolctl import threadpool_limits  # type: ignore[import-untyped]

    from evenhand.intervals import wilson
    from evenhand.posterior.crossed import CrossedPrior
    from evenhand.posterior.planning import Layout, sample_delta, simulate_data

    layout, scales = Layout.of_table(fit.table), _scales(fit)
    seeds = iter(np.random.SeedSequence(seed).spawn(2 * sets))
    rows = []
    done = 0
    with threadpool_limits(1, "blas"):
        for truth in (0.0, effect):
            held = found = 0
            for _ in range(sets):
                rng = np.random.default_rng(next(seeds))
                data = simulate_data(layout, len(layout.associated), truth, scales, rng)
                posterior = sample_delta(data, CrossedPrior(), scales, rng)
                held += posterior.mass_denser_than(truth) <= prob
                right = truth == 0 or posterior.moments()[0] * truth > 0
                found += right and posterior.mass_denser_than(0.0) > prob
                done += 1
                told(done)
            rows.append(
                {
                    "truth": truth, "tables": sets, "held": _share(wilson(held, sets)),
                    "found": _share(wilson(found, sets)),
                }
            )  # fmt: skip
    return rows


def _share(found: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip(("value", "low", "high"), found, strict=True))


def _scales(fit: Fit) -> NDArray[np.float64]:
    """The medians of the spreads of the model without control words.

    There a word's level on stereotypes is its own and its shift on them together.
    """
    from evenhand.posterior.planning import SCALES

    names = fit.entries["scale"]
    drawn = dict(zip(names, np.moveaxis(fit.draws["scale"], -1, 0), strict=True))
    if "slope_stereotype" in drawn:
        drawn["word"] = np.hypot(drawn["word"], drawn["slope_stereotype"])
    return np.array([float(np.median(drawn[name])) for name in SCALES])
