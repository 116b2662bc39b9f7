"""Labelled texts made fit for a few-shot test of bounded length, and what was left out for it."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np

from evenhand.errors import InputError
from evenhand.fewshot.data import FEMALE, MALE, UNKNOWN, Dataset

__all__ = ["QUERIES", "SHOTS", "Fitted", "fitted", "part_sizes"]

WAYS, SHOTS, QUERIES = 5, 4, 5
EACH_GENDER = SHOTS // 2 + QUERIES
"""With so many texts of each gender a class can be calibrated with the same test queries."""
CLASSES = 60
"""More classes than this make the test longer, but hardly surer."""
FEWEST, MOST = 20, 100
"""Texts drawn of a class: no fewer where it has them, no more."""
NAMED = 12


@dataclass(frozen=True, eq=False)
class Fitted:
    """The texts to test with and the classes of a task, and in words what was left out."""

    data: Dataset
    ways: int
    notes: tuple[str, ...]


def fitted(data: Dataset, texts: int, seed: int) -> Fitted:
    """About `texts` texts of classes that are large enough; an error says why there are none.

    Classes of fewer than 4 + 5 texts are left out, and of very many all but the largest. Of the
    rest as many texts are drawn of each, in the shares of its genders (see `_counts`).
    """
    notes = []
    if not (data.genders != UNKNOWN).any():
        raise InputError(
            "the data do not say of any text whether it tells of a woman or of a man, which the "
            "test needs"
        )
    kept = [name for name, size in zip(data.classes, data.sizes, strict=True)
            if size >= SHOTS + QUERIES]
    small = [name for name in data.classes if name not in set(kept)]
    if small:
        notes.append(f"Left out, with fewer than {SHOTS + QUERIES} texts: {_listed(small)}.")
    many = min(CLASSES, max(12, texts // FEWEST))
    if len(kept) > many:
        notes.append(
            f"Of {len(kept)} classes the {many} largest are used, half of them with more women as "
            "far as there are so many."
        )
        kept = _largest(data, kept, many)
    chosen = data.subset(kept)
    _check_leanings(chosen)
    most = min(MOST, max(FEWEST, texts // len(kept)))
    drawn = _drawn(chosen, most, seed)
    if len(drawn) < len(chosen):
        notes.append(
            f"Of each class {most} texts at most were drawn, {len(drawn):,} of {len(chosen):,} in "
            f"all, men and women in the shares they have in it{_at_least(most)}."
        )
    return Fitted(drawn, min(WAYS, *part_sizes(len(kept))), tuple(notes))


def part_sizes(classes: int) -> tuple[int, int, int]:
    """How many classes to train, to validate and to test on: a half, a quarter and a quarter.

    >>> part_sizes(28), part_sizes(6)
    ((14, 7, 7), (2, 2, 2))
    """
    part = math.ceil(classes / 4)
    return classes - 2 * part, part, part


def _check_leanings(data: Dataset) -> None:
    men, women = (data.leaning.count(side) for side in ("male", "female"))
    if min(men, women) < 3:
        raise InputError(
            "the test needs at least three classes that have more men and three that have more "
            f"women, to train, to validate and to test on, of {SHOTS + QUERIES} texts or more "
            f"each; the data have {men} and {women}"
        )


def _largest(data: Dataset, classes: list[str], many: int) -> list[str]:
    """The largest classes of either leaning by turns, then those of none."""
    order = []
    for sides in (("male",), ("female",), ("even", "unknown")):
        places = [p for p in data.indices(classes) if data.leaning[p] in sides]
        places.sort(key=lambda place: -int(data.sizes[place]))
        later = len(classes) * (sides[0] == "even")
        order += [(turn + later, data.classes[place]) for turn, place in enumerate(places)]
    return [name for _, name in sorted(order, key=lambda one: one[0])[:many]]


def _drawn(data: Dataset, most: int, seed: int) -> Dataset:
    """`most` texts of each class at random, or all it has."""
    rng = np.random.default_rng([seed, 0xFE3])
    rows: list[int] = []
    for place, size in enumerate(data.sizes.tolist()):
        here = rng.permutation(np.flatnonzero(data.labels == place))
        if size > most:
            genders = data.genders[here]
            counts = _counts([int((genders == code).sum()) for code in (MALE, FEMALE)], size, most)
            first = [here[genders == code][:n] for code, n in zip((MALE, FEMALE), counts,
                                                                  strict=True)]
            others = here[genders == UNKNOWN][: most - sum(counts)]
            here = np.concatenate([*first, others])
        rows += here.tolist()
    rows.sort()
    left = dict(data.left_out)
    if len(rows) < len(data):
        left["not drawn for the few-shot test"] = len(data) - len(rows)
    return Dataset(
        tuple(data.texts[row] for row in rows), data.labels[rows], data.genders[rows],
        data.classes, data.name, left, rows=data.rows[rows],
    )


def _counts(sizes: list[int], size: int, most: int) -> list[int]:
    """How many men and women to draw of a class: their shares, and the leaning stays as it is.

    Of the rarer gender no fewer than calibration needs are drawn, unless these were more than a
    sixth of all.

    >>> _counts([190, 10], 200, 60), _counts([100, 60], 200, 60), _counts([190, 10], 200, 25)
    ([53, 7], [30, 18], [24, 1])
    """
    fewer, more = sorted(range(2), key=lambda side: sizes[side])
    counts = [round(most * each / size) for each in sizes]
    if _tops_up(most):
        counts[fewer] = max(counts[fewer], min(sizes[fewer], EACH_GENDER))
    if sizes[fewer] == sizes[more]:
        return [min(counts[fewer], most // 2)] * 2
    known = sum(sizes) == size
    counts[fewer] = min(counts[fewer], (most - 1) // 2)
    counts[more] = most - counts[fewer] if known else max(counts[more], counts[fewer] + 1)
    return counts


def _tops_up(most: int) -> bool:
    return most / 6 >= EACH_GENDER


def _at_least(most: int) -> str:
    words = f", but no fewer than {EACH_GENDER} of either where it has them"
    return words if _tops_up(most) else ""


def _listed(names: Iterable[str]) -> str:
    every = list(names)
    more = f" and {len(every) - NAMED} more" if len(every) > NAMED else ""
    return ", ".join(every[:NAMED]) + more
