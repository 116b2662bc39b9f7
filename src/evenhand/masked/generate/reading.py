"""Seeds, found sentences and random edits as one model reads them, and how far they differ."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.masked.generate.asking import Slot
from evenhand.masked.generate.search import Side
from evenhand.results import Estimate
from evenhand.statistics.intervals import Floats, bootstrap_mean, wilson
from evenhand.statistics.tests import sign_test

__all__ = ["INTERVAL", "TEST", "Arm", "Difference", "Group", "Reading", "read"]

INTERVAL = "studentised bootstrap over seeds; shares: Wilson"
TEST = "exact sign test over seeds"


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """Sentences of one kind, one a seed: the seeds themselves, the found ones or the controls.

    `distance` is the mean |bias - .5|, `push` the mean of how far the bias lies on the wanted side
    of .5. `distance_top` is the distance by the top k alone, over the sentences that have a gender
    word there; `without_top` have none. `moved` and `beyond` are the shares whose bias moved to
    the wanted side, and that lie beyond the threshold there.
    """

    distance: Estimate
    push: Estimate
    distance_top: Estimate
    without_top: int
    moved: Estimate
    beyond: Estimate


@dataclass(frozen=True, slots=True, kw_only=True)
class Difference:
    """Found sentences minus another kind, paired seed by seed, with exact sign tests."""

    distance: Estimate
    distance_p: float
    push: Estimate
    push_p: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The seeds pushed in one direction: male, female, or each its own."""

    toward: str
    n: int
    seed: Arm
    search: Arm
    control: Arm | None
    against_seed: Difference
    against_control: Difference | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """All sentences as one model reads them: the one searched with, first, or a judge."""

    model: str
    groups: tuple[Group, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """What counts as moved (a change of `gain`) and as beyond (so far from .5), and intervals."""

    gain: float
    beyond: float
    prob: float
    seed: int


def read(
    sides: Sequence[Side],
    seeds: Sequence[Slot],
    search: Sequence[Slot],
    control: Sequence[Slot] | None,
    rule: Rule,
    *,
    own: bool,
) -> tuple[Group, ...]:
    """The groups, from what a model says of each seed, found sentence and control."""
    groups = []
    for toward in ("own",) if own else ("male", "female"):
        chosen = [i for i, side in enumerate(sides) if toward in ("own", side)]
        if not chosen:
            continue
        sign = np.array([1.0 if sides[i] == "male" else -1.0 for i in chosen])

        def kind(
            slots: Sequence[Slot], sign: Floats = sign, chosen: list[int] = chosen
        ) -> tuple[Floats, Floats]:
            picked = [slots[i] for i in chosen]
            push = sign * (np.array([slot.bias for slot in picked]) - 0.5)
            return push, np.abs(np.array([slot.bias_top for slot in picked]) - 0.5)

        before, found = kind(seeds), kind(search)
        random = kind(control) if control is not None else None
        groups.append(
            Group(
                toward=toward,
                n=len(chosen),
                seed=_arm(*before, before[0], rule),
                search=_arm(*found, before[0], rule),
                control=_arm(*random, before[0], rule) if random else None,
                against_seed=_difference(found[0], before[0], rule),
                against_control=_difference(found[0], random[0], rule) if random else None,
            )
        )
    return tuple(groups)


def _arm(push: Floats, top: Floats, before: Floats, rule: Rule) -> Arm:
    there = top[np.isfinite(top)]
    return Arm(
        distance=_mean(np.abs(push), (0.0, 0.5), rule),
        push=_mean(push, (-0.5, 0.5), rule),
        distance_top=_mean(there, (0.0, 0.5), rule),
        without_top=len(top) - len(there),
        moved=_share(push - before >= rule.gain - 1e-9, rule),
        beyond=_share(push >= rule.beyond, rule),
    )


def _difference(found: Floats, other: Floats, rule: Rule) -> Difference:
    distance, push = np.abs(found) - np.abs(other), found - other
    return Difference(
        distance=_mean(distance, (-0.5, 0.5), rule),
        distance_p=sign_test(distance),
        push=_mean(push, (-1.0, 1.0), rule),
        push_p=sign_test(push),
    )


def _mean(values: Floats, bounds: tuple[float, float], rule: Rule) -> Estimate:
    mean = bootstrap_mean(values, prob=rule.prob, seed=rule.seed, bounds=bounds)
    return Estimate.of(mean, rule.prob)


def _share(true: NDArray[np.bool_], rule: Rule) -> Estimate:
    share, low, high = wilson(int(true.sum()), true.size, rule.prob)
    return Estimate(value=share, low=low, high=high, prob=rule.prob)
