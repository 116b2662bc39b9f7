"""What a mitigation changed: the measures before and after on the same test queries."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.fewshot.bias.formulas import NAMES
from evenhand.fewshot.bias.measures import MEASURES, Bias, classes_of, reading
from evenhand.fewshot.statistics import Score, compare
from evenhand.fewshot.statistics_replicates import Ints, Replicates

__all__ = ["Change", "MeasureChange", "change", "changed"]

Direction = Literal["less bias", "more bias", "no clear change"]


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureChange:
    """The change of one measure, after less before, with its sign, for new classes.

    There is less bias where the measure was clearly off 0 before and the change is clearly back
    towards it, more where it is clearly off 0 after and the change clearly away; else the change
    is not clear. Clearly means that the interval does not have 0 in it.
    """

    metric: str
    before: float
    after: float
    change: float
    low: float
    high: float
    p_value: float
    direction: Direction
    prob: float = 0.95

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """Before and after a mitigation; `accuracy` is what it gained, or cost where below 0."""

    accuracy: Score
    measures: Mapping[str, MeasureChange]

    def __getitem__(self, name: str) -> MeasureChange:
        return self.measures[name]

    def as_dict(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy.as_dict(),
            **{name: each.as_dict() for name, each in self.measures.items()},
        }


def change(before: Bias, after: Bias) -> Change:
    """The change of every measure from before to after, paired on the same queries."""
    if not before.twins.original.same_episodes(after.twins.original):
        raise InputError("change: expected the same test queries before and after, got other ones")
    if not np.array_equal(before.twins.leaning, after.twins.leaning):
        raise InputError("change: expected the same leanings of classes before and after")
    prob = before.accuracy.prob
    cost = compare(before.twins.original, after.twins.original, prob=prob)["accuracy"]
    moved = changed(before.replicates, after.replicates, before.twins.strata, prob)
    return Change(accuracy=cost, measures=moved)


def changed(
    before: Replicates, after: Replicates, strata: Ints, prob: float
) -> dict[str, MeasureChange]:
    """The same from the replicates of `formulas`; `strata` are the leanings of the classes."""
    gap = after - before
    found = {}
    for name in MEASURES:
        one, inside = gap.at(NAMES.index(MEASURES[name])), classes_of(name, strata)
        low, high = one.interval(prob, inside)
        was, now = (reading(name, made, strata, prob) for made in (before, after))
        found[name] = MeasureChange(
            metric=name, before=was.signed, after=now.signed, change=float(one.value), low=low,
            high=high, p_value=one.p_value(inside),
            direction=_direction(
                (was.signed_low, was.signed_high), (low, high), (now.signed_low, now.signed_high)
            ),
            prob=prob,
        )  # fmt: skip
    return found


def _direction(
    before: tuple[float, float], moved: tuple[float, float], after: tuple[float, float]
) -> Direction:
    was, way, now = _side(before), _side(moved), _side(after)
    if was and way == -was and now != -was:
        return "less bias"
    if now and way == now and was != -now:
        return "more bias"
    return "no clear change"


def _side(ends: tuple[float, float]) -> int:
    """1 or -1 where the whole interval is above or below 0, else 0."""
    low, high = ends
    if math.isnan(low) or low <= 0 <= high:
        return 0
    return 1 if low > 0 else -1
