"""Means over few-shot settings that share their test classes, with replicates."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence

import numpy as np

from evenhand.errors import InputError
from evenhand.statistics.jackknife import Floats, JoinedReplicates, Replicates


def mean(settings: Sequence[Replicates]) -> Replicates:
    """Average over settings with the same test classes, splits and seeds, with replicates.

    Notes
    -----
    The settings of a grid share their test classes, most of their texts and often their episodes.
    An interval that takes them for independent is too narrow. So the replicates are averaged first,
    class by class, split by split and seed by seed, and the interval is computed from the averages
    as that of a single setting is. An effect that differs from class to class, in the same way in
    all settings, retains its variance; independent parts average out.

    Settings with the same number of ways have the same classes in the same episodes, whatever
    their shots, so that replicates by episode are averaged one by one too. (Were they independent,
    the products of their deviations would be 0 in the mean: the variance is the same.) Settings
    with other numbers of test episodes are other draws, and their variances are added.

    In simulated worlds (4 tasks, 8 test classes, 80 test episodes per split, effects that differ
    by class in the same way in all tasks) 95 % intervals contain the mean gain in accuracy for new
    classes in 97 % of 400 draws with one class split and in 95 % with three; intervals that take
    the tasks for independent in 90 % and 80 %. Mean changes of bias, one split, 200 draws: ε 98 %,
    skew 99 %.

    Examples
    --------
    >>> one = Replicates(*(np.array(x) for x in (0.5, [0.4, 0.6], [0.3, 0.7], np.zeros((0, 2)))))
    >>> two = Replicates(*(np.array(x) for x in (0.7, [0.7, 0.7], [0.6, 0.8], np.zeros((0, 2)))))
    >>> average = mean([one, two])
    >>> round(float(average.value), 3), average.classes.round(3).tolist()
    (0.6, [0.45, 0.75])
    """
    if not settings:
        raise InputError("mean: expected one setting or more, got none")
    for setting in settings[1:]:
        _check_same_classes(settings[0], setting)
    value = _mean_arrays([setting.value for setting in settings])
    average = Replicates(
        value,
        _mean_episodes(settings, value),
        _mean_arrays([setting.classes for setting in settings]),
        _mean_cross([setting.cross for setting in settings]),
        all(setting.opponents for setting in settings),
    )
    several = [setting for setting in settings if isinstance(setting, JoinedReplicates)]
    if not several:
        return average
    return JoinedReplicates(
        **vars(average),
        parts=tuple(mean(split) for split in zip(*(s.parts for s in several), strict=True)),
        runs=_mean_arrays([setting.runs for setting in several]),
        tested=several[0].tested,
    )


def _check_same_classes(first: Replicates, other: Replicates) -> None:
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


def _mean_arrays(arrays: Sequence[Floats]) -> Floats:
    average: Floats = np.mean(np.stack(arrays), axis=0)
    return average


def _mean_episodes(settings: Sequence[Replicates], value: Floats) -> Floats:
    """Return replicates by episode whose variance is that of the mean."""
    by_length: dict[int, list[Floats]] = defaultdict(list)
    for setting in settings:
        by_length[len(setting.episodes)].append(setting.episodes)
    total = sum(by_length)
    if not total:
        return settings[0].episodes
    parts = []
    for length, episodes in by_length.items():
        if length:
            gap = np.sum([e - e.mean(axis=0) for e in episodes], axis=0) / len(settings)
            scale = (length - 1) / length * total / (total - 1) if total > 1 else 1.0
            parts.append(gap * math.sqrt(scale))
    replicates: Floats = value + np.concatenate(parts)
    return replicates


def _mean_cross(groups: Sequence[Floats]) -> Floats:
    """Average replicates by group of episodes and class, for the smallest number of groups.

    Neighbouring groups are averaged: those of different groups stay independent, which is all
    that the interval requires.
    """
    smallest = min(len(group) for group in groups)
    if smallest < 2:
        return groups[0][:0]
    return _mean_arrays(
        [
            np.stack([part.mean(axis=0) for part in np.array_split(group, smallest)])
            for group in groups
        ]
    )
