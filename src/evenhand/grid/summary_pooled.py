r"""One value from many settings of a grid, with an honest interval.

Settings of a grid share their test classes, most of their texts and often their episodes: they are
not independent, and an interval that takes them for it is too narrow. So the replicates are
averaged first, class by class, split by split and seed by seed, and the interval is made of the
averages as that of a single setting is. An effect that differs from class to class but in the same
way in all settings keeps its whole variance; what is independent averages out by itself.

Episodes go along: settings of as many ways have the same classes in the same episodes, whatever
their shots, so that replicates by episode are averaged one by one too. (Were they independent, the
products of their deviations would be 0 in the mean: the variance is the same.) Settings with other
numbers of test episodes are of other draws, and their variances are added.

In simulated worlds (4 tasks, 8 test classes, 80 test episodes a split, effects that differ by
class alike in all tasks) 95 % intervals hold the mean gain in accuracy for new classes in 97 % of
400 draws with one class split and in 95 % with three; intervals that take the tasks for
independent in 90 % and 80 %. Mean changes of bias, one split, 200 draws: ε 98 %, skew 99 %.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from evenhand.errors import InputError
from evenhand.fewshot.statistics_joined import JoinedReplicates
from evenhand.fewshot.statistics_replicates import Floats, Replicates

__all__ = ["mean"]


def mean(settings: Sequence[Replicates]) -> Replicates:
    """The mean over settings with the same test classes, splits and seeds, with its replicates.

    >>> one = Replicates(*(np.array(x) for x in (0.5, [0.4, 0.6], [0.3, 0.7], np.zeros((0, 2)))))
    >>> two = Replicates(*(np.array(x) for x in (0.7, [0.7, 0.7], [0.6, 0.8], np.zeros((0, 2)))))
    >>> made = mean([one, two])
    >>> round(float(made.value), 3), made.classes.round(3).tolist()
    (0.6, [0.45, 0.75])
    """
    if not settings:
        raise InputError("mean: expected one setting or more, got none")
    first = settings[0]
    for each in settings[1:]:
        _check(first, each)
    value = _mean([each.value for each in settings])
    whole = Replicates(
        value, _episodes(settings, value), _mean([each.classes for each in settings]),
        _cross([each.cross for each in settings]), all(each.opponents for each in settings),
    )  # fmt: skip
    joined = [each for each in settings if isinstance(each, JoinedReplicates)]
    if not joined:
        return whole
    return JoinedReplicates(
        whole.value, whole.episodes, whole.classes, whole.cross, whole.opponents,
        parts=tuple(mean(split) for split in zip(*(each.parts for each in joined), strict=True)),
        runs=_mean([each.runs for each in joined]), tested=joined[0].tested,
    )  # fmt: skip


def _check(first: Replicates, other: Replicates) -> None:
    if first.classes.shape != other.classes.shape or type(first) is not type(other):
        raise InputError(
            f"mean: expected settings with the same test classes, got {len(first.classes)} and "
            f"{len(other.classes)}"
        )
    if isinstance(first, JoinedReplicates) and isinstance(other, JoinedReplicates):
        if first.runs.shape != other.runs.shape:
            raise InputError("mean: expected as many splits and seeds in every setting")
        if not np.array_equal(first.tested, other.tested):
            raise InputError("mean: expected the same test classes in every setting's splits")


def _mean(arrays: Sequence[Floats]) -> Floats:
    found: Floats = np.mean(np.stack(arrays), axis=0)
    return found


def _episodes(settings: Sequence[Replicates], value: Floats) -> Floats:
    """Replicates by episode whose variance is that of the mean."""
    by_length: dict[int, list[Floats]] = defaultdict(list)
    for each in settings:
        by_length[len(each.episodes)].append(each.episodes)
    total = sum(by_length)
    if not total:
        return settings[0].episodes
    parts = []
    for length, found in by_length.items():
        if length:
            gap = np.sum([each - each.mean(axis=0) for each in found], axis=0) / len(settings)
            scale = (length - 1) / length * total / (total - 1) if total > 1 else 1.0
            parts.append(gap * math.sqrt(scale))
    made: Floats = value + np.concatenate(parts)
    return made


def _cross(groups: Sequence[Floats]) -> Floats:
    """Replicates by group of episodes and class; the smallest number of groups is that of all.

    Neighbouring groups are averaged: those of different groups stay independent, which is all
    that is asked of them.
    """
    least = min(len(each) for each in groups)
    if least < 2:
        return groups[0][:0]
    return _mean([
        np.stack([part.mean(axis=0) for part in np.array_split(each, least)]) for each in groups
    ])  # fmt: skip
