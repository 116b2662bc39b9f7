r"""Accuracy and F1 by class and by gender.

*By class*: the interval is for new texts of the class and new opponents. Its variance is that of
the jackknife over the class's query texts (each with all its episodes) plus that of the jackknife
over the opponents, free of noise; texts given as support are not resampled. Of several splits and
seeds it is for their mean, with a text left out of all of them at once, and does not tell how a
class would do after other training; `queries` are counted once for all seeds.

*By gender*: pooled over classes, men and women differ in which classes they are of. So accuracy
and F1 by gender are means over the classes that have queries of both, all counting alike, and the
gap between women and men is within classes.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.fewshot.statistics import Answers, Score, score
from evenhand.fewshot.statistics_replicates import Floats, Replicates, quantile

__all__ = ["ClassRow", "by_class", "by_gender"]

MALE, FEMALE = 0, 1


@dataclass(frozen=True, slots=True, kw_only=True)
class ClassRow:
    """One class: the share of its queries that are right, and its F1, with intervals."""

    name: str
    texts: int
    queries: int
    accuracy: float
    accuracy_low: float
    accuracy_high: float
    f1: float
    f1_low: float
    f1_high: float
    precision: float
    taken_for: str
    """The class it is most often taken for, where it is wrong at all."""

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def by_class(answers: Answers, *, prob: float = 0.95) -> tuple[ClassRow, ...]:
    """A row a class, in the order of the names."""
    counts = answers.tally()
    made = answers.replicates(_values, counts)
    n = len(answers.tested)
    seeds = answers.repeats
    sums = np.stack(
        [np.bincount(answers.local.ravel(), counts[..., i].ravel(), n) for i in range(3)], axis=1
    ) / seeds  # fmt: skip
    label = np.take_along_axis(answers.local, answers.truth, axis=1).ravel()
    right = (answers.predicted == answers.truth).ravel()
    rows, place = np.unique(answers.rows.ravel() + label * (answers.rows.max() + 1),
                            return_inverse=True)  # fmt: skip
    text_class = rows // (answers.rows.max() + 1)
    asked, hits = np.bincount(place) / seeds, np.bincount(place, right) / seeds
    said = np.take_along_axis(answers.local, answers.predicted, axis=1).ravel()
    confused = np.bincount(label * n + said, minlength=n * n).reshape(n, n)
    np.fill_diagonal(confused, 0)
    found = []
    for k in range(n):
        here = text_class == k
        total, gone = sums[k], np.stack([asked[here], hits[here], hits[here]], axis=1)
        without = _values(total - gone)
        ends = []
        for which in range(2):
            both = made.at(which).at(k)
            spread = _opponents(both, k) + _texts(without[:, which])
            half = quantile(prob, max(1, int(here.sum()) - 1)) * math.sqrt(spread)
            value = float(both.value)
            ends.append((value, max(0.0, value - half), min(1.0, value + half)))
        found.append(
            ClassRow(
                name=answers.names[answers.tested[k]], texts=int(here.sum()),
                queries=int(total[0]), accuracy=ends[0][0], accuracy_low=ends[0][1],
                accuracy_high=ends[0][2], f1=ends[1][0], f1_low=ends[1][1], f1_high=ends[1][2],
                precision=float(total[1] / total[2]) if total[2] else math.nan,
                taken_for=answers.names[answers.tested[confused[k].argmax()]]
                if confused[k].any() else "",
            )
        )  # fmt: skip
    return tuple(found)


def by_gender(answers: Answers, *, prob: float = 0.95) -> Mapping[str, Score]:
    """`male` and `female` accuracy, their `gap` (women's less men's), and the same for F1.

    Empty where no class has queries of both genders.
    """
    sides = [answers.tally(answers.genders == gender) for gender in (MALE, FEMALE)]
    made = answers.replicates(_sides, np.concatenate(sides, axis=2))
    if not np.isfinite(made.value).all():
        return {}
    names = ("male", "female", "gap", "male_f1", "female_f1", "gap_f1")
    return {
        name: score(name, made.at(place), bounded="gap" not in name, test="gap" in name, prob=prob)
        for place, name in enumerate(names)
    }


def _values(sums: Floats) -> Floats:
    """Recall and F1, (…, 2), from (…, 3)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = sums[..., 1] / sums[..., 0]
        return np.stack([recall, 2 * sums[..., 1] / (sums[..., 0] + sums[..., 2])], axis=-1)


def _sides(sums: Floats) -> Floats:
    men, women = _values(sums[..., :3]), _values(sums[..., 3:])
    both: NDArray[np.bool_] = (sums[..., 0] > 0) & (sums[..., 3] > 0)
    count = both.sum(-1)
    with np.errstate(invalid="ignore", divide="ignore"):
        parts = [
            np.where(both, side[..., which], 0).sum(-1) / count
            for which in range(2)
            for side in (men, women)
        ]
    return np.stack(
        [parts[0], parts[1], parts[1] - parts[0], parts[2], parts[3], parts[3] - parts[2]], axis=-1
    )


def _opponents(made: Replicates, own: int) -> float:
    """The variance that the draw of the other classes gives."""
    if not made.opponents:
        return 0.0
    strata = np.zeros(len(made.classes), dtype=np.int64)
    strata[own] = -1
    variance, _ = made.class_variance(strata, cautious=False)
    return variance


def _texts(without: Floats) -> float:
    kept = without[np.isfinite(without)]
    return (len(kept) - 1) * float(kept.var()) if len(kept) > 1 else math.inf
