"""Moved to `evenhand.statistics`; removed when every room imports from there."""

from evenhand.statistics.intervals import (
    Floats,
    crossed_mean,
    effect_size,
    fisher_z,
    jackknife,
    t_mean,
    two_way_jackknife,
    welch,
    wilson,
)
from evenhand.statistics.tests import holm

__all__ = [
    "Floats",
    "crossed_mean",
    "effect_size",
    "fisher_z",
    "holm",
    "jackknife",
    "t_mean",
    "two_way_jackknife",
    "welch",
    "wilson",
]
