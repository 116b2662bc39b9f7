r"""Numbers of answers by prompt: cells of item, wording and group, and contrasts of the groups.

The samples of a prompt are averaged first, so that a prompt counts once however often it was asked.
Items are sampled (topics, where there are several), and so are wordings in which several items are
asked. A contrast is paired by item and wording where groups share them; otherwise it is between
items, within topics where these have items of both groups. Its variance is that of
`statistics.crossed.clustered`: over items and over wordings, never over samples. The degrees of
freedom are at most those of the coarser of the two.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.answers.table import Answers
from evenhand.errors import InputError
from evenhand.statistics.clusters import cluster_mean, newcombe
from evenhand.statistics.crossed import Mean, clustered
from evenhand.statistics.intervals import Floats, wilson_limits

Ints: TypeAlias = NDArray[np.intp]
OTHERS = "the others"


@dataclass(frozen=True, slots=True, eq=False)
class Cells:
    """Means over the samples of each prompt, one row per item, wording, group and prompt.

    Parameters
    ----------
    means, noise : array
        Of the samples of a cell: their mean and the variance of that mean; the latter is NaN where
        there is one sample.
    sizes : array
        Samples of each cell.
    units, items, wordings, groups : array of int
        The sampling unit, item, wording and group of each cell, by number.
    unit_names, wording_names, group_names : tuple of str
    unit : str
        What is sampled, "item" or "topic".
    share : bool
        Whether the numbers are 0 or 1.

    """

    means: Floats
    noise: Floats
    sizes: Ints
    units: Ints
    items: Ints
    wordings: Ints
    groups: Ints
    unit_names: tuple[str, ...]
    wording_names: tuple[str, ...]
    group_names: tuple[str, ...]
    unit: str
    share: bool

    def take(self, chosen: NDArray[np.bool_] | Ints) -> Self:
        """Some of the cells."""
        arrays = ("means", "noise", "sizes", "units", "items", "wordings", "groups")
        return replace(self, **{name: getattr(self, name)[chosen] for name in arrays})

    @property
    def factors(self) -> dict[str, Ints]:
        """The random factors: units, and wordings if most of them are those of several units."""
        factors = {self.unit: self.units}
        pairs = np.unique(np.stack([self.wordings, self.units]), axis=1)
        units_of = np.unique(pairs[0], return_counts=True)[1]
        if len(units_of) > 1 and 2 * np.count_nonzero(units_of > 1) > len(units_of):
            factors["wording"] = self.wordings
        return factors

    def factor(self, name: str) -> Ints:
        """The level of a random factor, "wording" or the sampling unit, of each cell."""
        return self.wordings if name == "wording" else self.units

    def names_of(self, factor: str) -> tuple[str, ...]:
        """The names of the levels of a random factor."""
        return self.wording_names if factor == "wording" else self.unit_names

    def mean(self) -> Mean:
        """The mean of the cells over the random factors.

        Shares are within 0 and 1. Where a few levels of a factor have nearly all of their spread,
        as where hardly any prompt is answered with yes, the degrees of freedom are those of
        `statistics.clusters.cluster_mean`.
        """
        mean = clustered(self.means, self.factors)
        if not self.share or math.isnan(mean.variance):
            return mean
        unlike = [
            cluster_mean(self.means, codes, int(codes.max()) + 1).freedom
            for codes in self.factors.values()
        ]
        return replace(mean, limits=(0.0, 1.0), freedom=min(mean.freedom, *unlike))


def make_cells(
    answers: Answers,
    values: Floats,
    labels: tuple[str | None, ...] | None = None,
    *,
    share: bool = False,
) -> Cells:
    """The cells of numbers of answers.

    Parameters
    ----------
    answers : Answers
    values : array (answers)
        NaN where an answer has none; it is left out.
    labels : tuple of (str or None), optional
        The group of each answer; those without one are left out. By default all are of one.
    share : bool
        Whether the numbers are 0 or 1.

    Examples
    --------
    >>> answers = Answers(("a", "b", "c"), items=("1", "1", "2"))
    >>> make_cells(answers, np.array([1.0, 3.0, 4.0])).means.tolist()
    [2.0, 4.0]
    """
    known = np.isfinite(values)
    if labels is not None:
        known &= np.array([label is not None for label in labels])
    rows = np.flatnonzero(known)
    if not len(rows):
        raise InputError("answers: expected some that can be measured, got none")

    def coded(given: tuple[str | None, ...]) -> tuple[tuple[str, ...], Ints]:
        if not given:
            return ("",), np.zeros(len(rows), dtype=np.intp)
        levels, codes = np.unique([str(given[i]) for i in rows], return_inverse=True)
        return tuple(levels.tolist()), codes

    topics, topic = coded(answers.topics)
    item_names, item = coded(answers.items)
    wording_names, wording = coded(answers.wordings)
    group_names, group = coded(labels or ())
    prompt = coded(answers.prompts)[1]
    unit, unit_names, unit_of = "item", item_names, item
    if len(topics) > 1:
        unit, unit_names, unit_of = "topic", topics, topic
        item = np.unique(topic * len(item_names) + item, return_inverse=True)[1]
    table, cell = np.unique(
        np.stack([unit_of, item, wording, group, prompt]), axis=1, return_inverse=True
    )
    cell = cell.ravel()
    y = np.asarray(values, dtype=float)[rows]
    sizes = np.bincount(cell)
    means = np.bincount(cell, y) / sizes
    squares = np.bincount(cell, (y - means[cell]) ** 2)
    several = np.maximum(sizes - 1, 1)
    return Cells(
        means=means,
        noise=np.where(sizes > 1, squares / several / sizes, np.nan),
        sizes=sizes,
        units=table[0],
        items=table[1],
        wordings=table[2],
        groups=table[3],
        unit_names=unit_names,
        wording_names=wording_names,
        group_names=group_names,
        unit=unit,
        share=share,
    )


@dataclass(frozen=True, slots=True, eq=False)
class GroupContrast:
    """The mean of one group less that of another, or of all others.

    Parameters
    ----------
    names : tuple of str
        Both groups.
    mean : Mean
        The difference, with its variance over the random factors.
    sides : tuple of Cells
        The cells of each group, those of the pairs where they are paired.
    paired : bool
        Whether they are paired by item and wording.
    without : Mapping of str to (names, array)
        By random factor the difference without each of its levels.
    left_out : tuple of str
        What has one of the groups only, where they are paired.

    """

    names: tuple[str, str]
    mean: Mean
    sides: tuple[Cells, Cells]
    paired: bool
    without: Mapping[str, tuple[tuple[str, ...], Floats]]
    left_out: tuple[str, ...]

    @property
    def answers(self) -> int:
        """The answers behind the difference."""
        return sum(int(side.sizes.sum()) for side in self.sides)

    @property
    def sampling(self) -> float:
        """The part of the variance that more samples of the same prompts would remove.

        NaN where no prompt has several samples.
        """
        noise = 0.0
        for side in self.sides:
            known = side.noise[np.isfinite(side.noise)]
            if not len(known):
                return math.nan
            noise += float(known.mean()) / len(side.noise)
        return min(1.0, noise / self.mean.variance) if self.mean.variance > 0 else math.nan

    def interval(self, prob: float) -> tuple[float, float, float]:
        """Value and interval: Student's, of shares Newcombe's of the answers that they are worth.

        All that is possible where a group has a single unit.
        """
        m = self.mean
        if not self.sides[0].share or math.isnan(m.variance):
            return (m.value, *m.interval(prob))
        shares = [worth(side, side.mean()) for side in self.sides]
        variances = [share * (1 - share) / own for share, own in shares]
        alike = 0.0
        if min(variances) > 0:
            alike = (sum(variances) - m.variance) / (2 * math.sqrt(variances[0] * variances[1]))
        elif self.paired and not m.variance:
            alike = 1.0
        alike = min(max(alike, -1.0), 1 - 1 / (m.freedom + 1))
        return newcombe(shares[0], shares[1], alike, prob, m.freedom)


def worth(cells: Cells, mean: Mean) -> tuple[float, float]:
    """The share whose cells have this mean, and how many independent answers it is worth.

    Never more than there are; the number of units where all answers are equal, since then nothing
    says how alike those of a unit are.
    """
    spread = mean.value * (1 - mean.value)
    if spread <= 0 or not mean.variance >= 0:
        return mean.value, max(1.0, mean.freedom + 1) if mean.freedom >= 0 else 1.0
    return mean.value, spread / max(mean.variance, spread / float(cells.sizes.sum()))


def share_interval(cells: Cells, prob: float) -> tuple[float, float, float]:
    """A share and Wilson's interval of the answers that it is worth."""
    mean = cells.mean()
    if math.isnan(mean.variance):
        return mean.value, 0.0, 1.0
    share, own = worth(cells, mean)
    return (share, *wilson_limits(share, own, prob, mean.freedom))


def make_contrast(
    cells: Cells, first: str, second: str = OTHERS, *, fixed: bool = False
) -> GroupContrast:
    """One group of the cells less another one, or all others.

    Of several others those of the same item and wording are averaged. With `fixed` the wordings
    are the only ones of interest.
    """
    own = cells.groups == cells.group_names.index(first)
    rest = ~own if second == OTHERS else cells.groups == cells.group_names.index(second)
    sides = [_by_key(cells.take(chosen)) for chosen in (own, rest)]
    keys = [np.stack([side.units, side.items, side.wordings]).T.tolist() for side in sides]
    places = [{tuple(key): i for i, key in enumerate(each)} for each in keys]
    shared = [key for key in places[0] if key in places[1]]
    paired = 2 * len(shared) >= min(map(len, places))
    if paired:
        one, two = (
            side.take(np.array([place[key] for key in shared], dtype=np.intp))
            for side, place in zip(sides, places, strict=True)
        )
        table, groups = replace(one, means=one.means - two.means), None
    else:
        one, two = sides
        table, groups = (
            _joined(one, two),
            np.arange(len(one.means) + len(two.means)) < len(one.means),
        )
    factors = table.factors
    mean = clustered(table.means, factors, groups=groups, fixed=fixed and len(factors) == 2)
    single = not paired and 1 in (len(np.unique(one.units)), len(np.unique(two.units)))
    if single and not set(one.units.tolist()) & set(two.units.tolist()):
        mean = replace(mean, variance=math.nan)
    kept = {key[1] for key in shared} if paired else {key[1] for each in places for key in each}
    dropped = len({key[1] for each in places for key in each} - kept)
    lacking = f"in one of the groups only: {dropped:,} item{'s' * (dropped > 1)}"
    return GroupContrast(
        names=(first, second),
        mean=replace(mean, limits=(-1.0, 1.0) if cells.share else mean.limits),
        sides=(one, two),
        paired=paired,
        without={
            name: (cells.names_of(name), _without(table.means, codes, groups))
            for name, codes in factors.items()
            if not (fixed and name == "wording")
        },
        left_out=(lacking,) if dropped else (),
    )


def _by_key(cells: Cells) -> Cells:
    """One row per item and wording: the mean over its groups."""
    keys, number = np.unique(
        np.stack([cells.units, cells.items, cells.wordings]), axis=1, return_inverse=True
    )
    number = number.ravel()
    groups = np.bincount(number)
    return replace(
        cells,
        means=np.bincount(number, cells.means) / groups,
        noise=np.bincount(number, cells.noise) / groups**2,
        sizes=np.bincount(number, cells.sizes).astype(np.intp),
        units=keys[0],
        items=keys[1],
        wordings=keys[2],
        groups=np.zeros(keys.shape[1], dtype=np.intp),
    )


def _joined(one: Cells, two: Cells) -> Cells:
    return replace(
        one,
        means=np.concatenate([one.means, two.means]),
        noise=np.concatenate([one.noise, two.noise]),
        sizes=np.concatenate([one.sizes, two.sizes]),
        units=np.concatenate([one.units, two.units]),
        items=np.concatenate([one.items, two.items]),
        wordings=np.concatenate([one.wordings, two.wordings]),
        groups=np.concatenate([one.groups, two.groups]),
    )


def _without(values: Floats, codes: Ints, groups: NDArray[np.bool_] | None) -> Floats:
    """The difference without each level of a factor; NaN where a group has no other one."""
    levels = int(codes.max()) + 1
    rest = np.zeros(levels)
    sides = (
        [(np.ones(len(values), bool), 1.0)] if groups is None else [(groups, 1.0), (~groups, -1.0)]
    )
    for side, sign in sides:
        own = np.bincount(codes[side], minlength=levels)
        sums = np.bincount(codes[side], values[side], levels)
        with np.errstate(invalid="ignore", divide="ignore"):
            rest += sign * (sums.sum() - sums) / (own.sum() - own)
    rest[np.bincount(codes, minlength=levels) == 0] = np.nan
    return rest
