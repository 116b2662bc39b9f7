"""Before against after: the change of a measurement with an interval, paired item by item."""

from __future__ import annotations

import math

from evenhand.errors import InputError
from evenhand.intervals import jackknife, two_way_jackknife
from evenhand.results import Comparison, Estimate, Measurement

__all__ = ["compare"]


def compare(before: Measurement, after: Measurement) -> Comparison:
    """The change from `before` to `after` of the same measurement on other vectors or models.

    Both carry, for each word, the value with that word left out. Their differences are the
    jackknife replicates of the change, so what both share (easy words, hard words) cancels.
    Where the items are of two kinds (`axis`: attributes and protected words, say), both count.
    What the measurement's own interval holds fixed is held fixed here too. Measurements without
    such items get no interval: it is unbounded, and says so.
    """
    if (before.metric, before.query) != (after.metric, after.query):
        raise InputError(
            f"compare: expected the same measurement twice, got {before.metric} '{before.query}' "
            f"and {after.metric} '{after.query}'"
        )
    first, second = _replicates(before), _replicates(after)
    shared = [key for key in first if key in second]
    axes: dict[str, list[float]] = {}
    for key in shared:
        axes.setdefault(key[0], []).append(second[key] - first[key])
    value = after.value - before.value
    if len(axes) == 2:
        one, two = axes.values()
        low, high = two_way_jackknife(value, one, two, prob=before.prob)
    else:
        low, high = jackknife(value, [x for axis in axes.values() for x in axis], before.prob)
    return Comparison(
        before=before,
        after=after,
        change=Estimate(value=value, low=low, high=high, prob=before.prob),
        interval=(
            f"paired jackknife; each value: {before.interval}"
            if shared
            else "none: no paired items"
        ),
        paired=len(shared),
    )


def _replicates(measurement: Measurement) -> dict[tuple[str, str, str], float]:
    return {
        (item.get("axis", ""), item["word"], item.get("group", "")): item["without"]
        for item in measurement.items
        if math.isfinite(item.get("without", math.nan))
    }
