"""Profiles of the scores of answers by unit and group, for distances between distributions."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.answers.cells import OTHERS, Ints
from evenhand.answers.table import Answers
from evenhand.statistics.intervals import Floats
from evenhand.statistics.permuted import (
    Distance,
    PermutedDistance,
    jensen_shannon,
    permuted_distance,
    score_grid,
    wasserstein,
)

SPLITS = 5
"""Random halves of the samples of each prompt."""


def score_distance(
    answers: Answers,
    values: Floats,
    column: str,
    names: tuple[str, str],
    *,
    categorical: bool = False,
    permutations: int,
    seed: int,
    prob: float,
) -> tuple[PermutedDistance, float | None]:
    """The distance of two groups' scores, and that of two halves of the same prompts' samples.

    The latter is None where no prompt has two samples. With wordings crossed with items, groups
    are permuted within items and within wordings: the larger p and the wider interval hold.

    Parameters
    ----------
    answers : Answers
    values : array (answers)
    column : str
        The column of the groups.
    names : tuple of str
        Both groups, or one and all others.
    categorical : bool
        Whether the Jensen-Shannon distance of the shares of the values is computed, not the
        Wasserstein-1 distance.
    permutations, seed, prob

    """
    labels = answers.columns[column]
    wanted = {label for label in labels if label is not None}
    if names[1] != OTHERS:
        wanted = set(names)
    rows = np.array(
        [i for i, each in enumerate(labels) if each in wanted and np.isfinite(values[i])]
    )
    y = values[rows]
    grid = np.unique(y) if categorical else score_grid(y)
    order = [names[0], *sorted(wanted - {names[0]})]
    group = np.array([order.index(str(labels[i])) for i in rows])
    topics = (
        answers.topics
        if len({answers.topics[i] for i in rows} if answers.topics else ()) > 1
        else answers.items
    )
    wordings = answers.wordings or ("",) * len(answers)
    prompts = list(zip(answers.items, wordings, strict=True))
    factors = [
        np.unique([str(each[i]) for i in rows], return_inverse=True)[1]
        for each in (topics, wordings, prompts)
    ]
    keys, cell = np.unique(np.stack([*factors, group]), axis=1, return_inverse=True)
    cell = cell.ravel()
    distance: Distance = jensen_shannon if categorical else wasserstein(grid)
    table = _shares(y, cell, keys.shape[1], grid, categorical)
    found: list[PermutedDistance] = []
    for units in keys[:2]:  # items (or topics), and wordings where they are crossed
        sums = np.zeros((units.max() + 1, len(order), len(grid)))
        present = np.zeros(sums.shape[:2])
        np.add.at(sums, (units, keys[3]), table)
        np.add.at(present, (units, keys[3]), 1.0)
        if found and min(np.count_nonzero(present[:, 0]), np.count_nonzero(present[:, 1:])) < 2:
            continue
        found.append(
            permuted_distance(
                sums / np.maximum(present, 1)[:, :, None],
                present,
                distance,
                permutations=permutations,
                seed=seed,
                prob=prob,
            )
        )
    widest = replace(
        max(found, key=lambda each: each.p_value),
        value=found[0].value,
        null=found[0].null,
        low=min(each.low for each in found),
        high=max(each.high for each in found),
    )
    several = np.bincount(cell) > 1
    again = np.flatnonzero(several[cell])
    if not len(again):
        return widest, None
    rng, twice = np.random.default_rng(seed), []
    for _ in range(SPLITS):
        mixed = again[rng.permutation(len(again))]
        ordered = mixed[np.argsort(cell[mixed], kind="stable")]
        starts = np.flatnonzero(np.append(True, np.diff(cell[ordered]) != 0))
        place = np.arange(len(ordered)) - np.repeat(
            starts, np.diff(np.append(starts, len(ordered)))
        )
        halves = [
            _shares(y[half], cell[half], keys.shape[1], grid, categorical)[several].mean(axis=0)
            for half in (ordered[place % 2 == 0], ordered[place % 2 == 1])
        ]
        twice.append(float(distance(halves[0], halves[1])))
    return widest, float(np.mean(twice))


def _shares(y: Floats, cell: Ints, cells: int, grid: Floats, categorical: bool) -> Floats:
    """The shares of each value, or the cumulative shares at the grid, by cell."""
    place = np.searchsorted(grid, y)
    place = np.minimum(place, len(grid) - 1)
    flat = np.bincount(cell * len(grid) + place, minlength=cells * len(grid))
    table = flat.reshape(cells, len(grid)).astype(float)
    sizes = np.maximum(table.sum(axis=1, keepdims=True), 1)
    return np.asarray((table if categorical else table.cumsum(axis=1)) / sizes)
