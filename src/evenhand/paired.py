"""Before against after: the change of a measurement with an interval, paired item by item."""

from __future__ import annotations

import math

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import jackknife
from evenhand.results import Comparison, Estimate, Measurement

__all__ = ["compare"]


def compare(before: Measurement, after: Measurement) -> Comparison:
    """The change from `before` to `after` of the same measurement on other vectors or models.

    Both carry, for each word, the value with that word left out. Their differences are the
    jackknife replicates of the change, so what both share (easy words, hard words) cancels.
    Measurements without such items get no interval: it is unbounded, and says so.
    """
    if (before.metric, before.query) != (after.metric, after.query):
        raise InputError(
            f"compare: expected the same measurement twice, got {before.metric} '{before.query}' "
            f"and {after.metric} '{after.query}'"
        )
    first, second = _replicates(before), _replicates(after)
    shared = [key for key in first if key in second]
    differences = np.array([second[key] - first[key] for key in shared])
    value = after.value - before.value
    low, high = jackknife(value, differences, before.prob)
    return Comparison(
        before=before,
        after=after,
        change=Estimate(value=value, low=low, high=high, prob=before.prob),
        interval="paired jackknife over the words of both" if shared else "none: no paired items",
        paired=len(shared),
    )


def _replicates(measurement: Measurement) -> dict[tuple[str, str], float]:
    return {
        (item["word"], item.get("group", "")): item["without"]
        for item in measurement.items
        if math.isfinite(item.get("without", math.nan))
    }
