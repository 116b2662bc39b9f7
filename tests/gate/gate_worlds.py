"""Measurements of a mean over items, with the values without each item, of known worlds."""

from __future__ import annotations

import numpy as np

from evenhand.results import Measurement
from evenhand.statistics.intervals import t_mean


def mean_of(
    scores, *, metric="demo", query="q", worse="higher", ideal=0.0, prob=0.95, items=True, **more
):
    """The mean of item scores, as an instrument returns it."""
    scores = np.asarray(scores, dtype=float)
    n = len(scores)
    value, low, high = t_mean(scores, prob)
    rows = {
        "word": [f"w{i}" for i in range(n)],
        "score": scores,
        "without": (scores.sum() - scores) / (n - 1),
    }
    return Measurement(
        metric=metric,
        query=query,
        value=value,
        low=low,
        high=high,
        n=n,
        ideal=ideal,
        worse=worse,
        interval="t",
        prob=prob,
        items=rows if items else {},
        **more,
    )


def estimate(value, low, high, **more):
    """A measurement with these numbers."""
    usual = {"metric": "demo", "query": "q", "n": 50, "ideal": 0.0, "worse": "higher"}
    return Measurement(value=value, low=low, high=high, interval="t", **{**usual, **more})
