r"""Distances between the distributions of two groups, less what is left of them without a bias.

A distance is never negative, so that two groups that do not differ have a positive one by chance.
Here the labels of the groups are permuted: within units that have several groups, otherwise
between units. All samples and wordings of a unit move together, since they are alike. The mean
distance under permutation is taken off, and p comes from the same permutations: all of them where
there are few, else so many random ones that it is clear on which side of a level p lies.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import combinations, product
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.statistics.intervals import Floats, jackknife
from evenhand.statistics.sequential import Seed, draw_until_clear

Flags: TypeAlias = NDArray[np.bool_]
Chosen: TypeAlias = NDArray[np.intp]
"""By permutation and unit: the group that plays the first, or whether the unit is of it."""
Distance: TypeAlias = Callable[[Floats, Floats], Floats]
"""From the profiles of two groups (…, K), cumulative shares or shares, to their distances (…)."""
EXACT = 4096
"""So many permutations are all counted."""
GRID = 200
"""The most scores at which cumulative shares are compared."""
ROUNDING = 1e-12
PIECE = 1 << 23
"""Numbers that are held in memory at once."""


@dataclass(frozen=True, slots=True)
class PermutedDistance:
    """A distance, its mean under permutation, and what the permutations say.

    Parameters
    ----------
    value, null : float
        The distance, and its mean under permutation.
    low, high : float
        The jackknife interval of their difference over the units.
    p_value : float
    draws : int or None
        Random permutations; None where all were counted.
    permutations : int

    """

    value: float
    null: float
    low: float
    high: float
    p_value: float
    draws: int | None
    permutations: int

    @property
    def excess(self) -> float:
        """The distance less its mean under permutation."""
        return self.value - self.null


def wasserstein(grid: Floats) -> Distance:
    """The Wasserstein-1 distance of cumulative shares at the scores of a grid.

    >>> float(wasserstein(np.array([0.0, 1.0, 3.0]))(np.array([1.0, 1, 1]), np.array([0.0, 0, 1])))
    3.0
    """
    widths = np.append(np.diff(grid), 0.0)
    return lambda one, two: np.asarray(np.abs(one - two) @ widths)


def jensen_shannon(one: Floats, two: Floats) -> Floats:
    """The Jensen-Shannon distance of shares, in bits: 0 for equal shares, 1 for disjoint ones.

    >>> float(jensen_shannon(np.array([1.0, 0.0]), np.array([0.0, 1.0])))
    1.0
    """
    middle = (one + two) / 2

    def divergence(share: Floats) -> Floats:
        with np.errstate(divide="ignore", invalid="ignore"):
            terms = np.where(share > 0, share * np.log2(share / middle), 0.0)
        return np.asarray(terms.sum(axis=-1))

    return np.sqrt(np.maximum((divergence(one) + divergence(two)) / 2, 0.0))


def score_grid(values: Floats) -> Floats:
    """The scores at which cumulative shares are compared: all, or many quantiles of them."""
    grid = np.unique(values)
    if len(grid) > GRID:
        grid = np.unique(np.quantile(grid, np.linspace(0, 1, GRID)))
    return grid


def permuted_distance(
    profiles: Floats,
    present: Floats,
    distance: Distance,
    *,
    permutations: int = 999,
    seed: int = 0,
    prob: float = 0.95,
) -> PermutedDistance:
    r"""The distance of the first group from all others, and its value under permutation.

    Parameters
    ----------
    profiles : array (units, groups, K)
        The profile of each group in each unit.
    present : array (units, groups)
        The number of prompts of each group in each unit, 0 where there is none.
    distance : callable
    permutations : int
        Random ones in the first batch.
    seed, prob

    Examples
    --------
    >>> shares = np.array([[[1.0, 0.0], [0.0, 1.0]]] * 6)
    >>> found = permuted_distance(shares, np.ones((6, 2)), jensen_shannon)
    >>> found.value, found.p_value
    (1.0, 0.03125)
    """
    made = permute_groups(profiles, present)
    value = float(distance(*made.groups(made.observed))[0])

    def distances(chosen: Chosen) -> Floats:
        step = max(1, PIECE // (chosen.shape[1] * profiles.shape[1] + profiles.shape[2]))
        parts = [chosen[i : i + step] for i in range(0, len(chosen), step)]
        return np.concatenate([distance(*made.groups(part)) for part in parts])

    least = value - ROUNDING
    every = made.every()
    if every is not None:
        drawn = distances(every)
        null, p, draws, total = (
            float(drawn.mean()),
            float((drawn >= least).mean()),
            None,
            len(every),
        )
    else:
        sums = [0.0, 0]

        def count(size: int, batch: Seed) -> int:
            own = distances(made.draw(size, np.random.default_rng(batch)))
            sums[0] += float(own.sum())
            sums[1] += size
            return int((own >= least).sum())

        counted = draw_until_clear(count, permutations, seed)
        null, p, draws, total = sums[0] / sums[1], counted.p_value, counted.draws, counted.draws
    without = np.array([float(distance(*pair)) for pair in made.left_out()]) - null
    low, high = distance_limits(value, null, without + null, prob)
    return PermutedDistance(value, null, low, high, p, draws, total)


def distance_limits(value: float, null: float, without: Floats, prob: float) -> tuple[float, float]:
    """The jackknife interval of a distance less its mean under permutation.

    From the distances without each unit; unbounded above where these are all equal.
    """
    if len(without) < 2 or np.ptp(without) <= ROUNDING:
        return -null, math.inf
    return jackknife(value - null, without - null, prob)


def permute_groups(profiles: Floats, present: Floats) -> Within | Between:
    """The permutations of the labels of groups; parameters as of `permuted_distance`."""
    first = np.asarray(present[:, 0] > 0)
    others = np.asarray((present[:, 1:] > 0).any(axis=1))
    paired = 2 * np.count_nonzero(first & others) >= min(first.sum(), others.sum())
    return (Within if paired else Between)(profiles, present, first, others)


class Within:
    """Labels permuted within units: in each, one of its groups plays the first."""

    def __init__(self, profiles: Floats, present: Floats, first: Flags, others: Flags) -> None:
        self.kept = np.flatnonzero(first & others)
        there = present[self.kept] > 0
        self.weights = present[self.kept, 0] / present[self.kept, 0].sum()
        own = np.where(there[:, :, None], profiles[self.kept], 0.0)
        rest = (own.sum(axis=1, keepdims=True) - own) / (there.sum(axis=1) - 1)[:, None, None]
        self.own, self.rest = own, rest
        self.available = [np.flatnonzero(row) for row in there]
        self.observed = np.zeros((1, len(self.kept)), dtype=np.intp)

    def groups(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """The profiles of both groups where these groups play the first (draws, units)."""
        units, groups, size = self.own.shape
        marks = np.zeros((len(chosen), units, groups))
        marks[np.arange(len(chosen))[:, None], np.arange(units), chosen] = self.weights
        flat = marks.reshape(len(chosen), -1)
        return flat @ self.own.reshape(-1, size), flat @ self.rest.reshape(-1, size)

    def every(self) -> Chosen | None:
        """All permutations, if they are few."""
        if math.prod(map(len, self.available)) > EXACT:
            return None
        return np.array(list(product(*self.available)))

    def draw(self, size: int, rng: np.random.Generator) -> Chosen:
        """Random permutations."""
        columns = [rng.choice(own, size) for own in self.available]
        return np.stack(columns, axis=1)

    def left_out(self) -> list[tuple[Floats, Floats]]:
        """The profiles of both groups without each unit that is used."""
        if len(self.kept) < 2:
            return []
        sides = [side[:, 0] * self.weights[:, None] for side in (self.own, self.rest)]
        left = 1 - self.weights
        one, two = ((side.sum(axis=0) - side) / left[:, None] for side in sides)
        return list(zip(one, two, strict=True))


class Between:
    """Labels permuted between units, each of which is of the first group or of the others."""

    def __init__(self, profiles: Floats, present: Floats, first: Flags, others: Flags) -> None:
        self.kept = np.flatnonzero(first != others)
        self.observed = first[self.kept][None].astype(np.intp)
        weights = present[self.kept]
        whole = weights.sum(axis=1)
        own = profiles[self.kept] * weights[:, :, None]
        self.own = own.sum(axis=1) / whole[:, None]
        self.weights = whole

    def groups(self, chosen: Chosen) -> tuple[Floats, Floats]:
        """The profiles of both groups where these units are of the first (draws, units)."""
        marks = (chosen * self.weights, (1 - chosen) * self.weights)
        one, two = (side @ self.own / side.sum(axis=1, keepdims=True) for side in marks)
        return one, two

    def every(self) -> Chosen | None:
        """All permutations, if they are few."""
        units, first = len(self.kept), int(self.observed.sum())
        if math.comb(units, first) > EXACT:
            return None
        chosen = np.zeros((math.comb(units, first), units), dtype=np.intp)
        for row, own in enumerate(combinations(range(units), first)):
            chosen[row, list(own)] = 1
        return chosen

    def draw(self, size: int, rng: np.random.Generator) -> Chosen:
        """Random permutations."""
        return np.asarray(rng.permuted(np.tile(self.observed, (size, 1)), axis=1))

    def left_out(self) -> list[tuple[Floats, Floats]]:
        """The profiles of both groups without each unit, where both have another one."""
        pairs = []
        for place in range(len(self.kept)):
            keep, marks = np.arange(len(self.kept)) != place, self.observed[0]
            sides = [side[keep] * self.weights[keep] for side in (marks, 1 - marks)]
            if min(side.sum() for side in sides) > 0:
                one, two = (side @ self.own[keep] / side.sum() for side in sides)
                pairs.append((one, two))
        return pairs
