"""The association log(p_original / p_swapped) by class and gender (D0 §4.1.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.fewshot.bias.twins import Twins
from evenhand.fewshot.statistics_replicates import Floats
from evenhand.intervals import t_mean

__all__ = ["AssociationRow", "associations"]

GENDERS = ("male", "female")


@dataclass(frozen=True, slots=True, kw_only=True)
class AssociationRow:
    """The mean of log(p_original / p_swapped) over texts of one gender in one class.

    Above 0 the text as it is helps its class more than its twin does. `signed` is the same with
    the sign that has pro-stereotypical above 0. The unit of the interval is the text, each with
    the mean of all episodes it is asked in; it is unbounded with one text.
    """

    name: str
    leaning: str
    gender: str
    texts: int
    association: float
    low: float
    high: float
    signed: float
    prob: float = 0.95

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def associations(twins: Twins, *, prob: float = 0.95) -> tuple[AssociationRow, ...]:
    """A row for each class and gender there are texts of, in the order of the classes."""
    answers, used = twins.original, twins.used
    rows, first, text = np.unique(answers.rows[used], return_index=True, return_inverse=True)
    gap = np.where(twins.pro, twins.association, -twins.association)[used]
    means: Floats = np.bincount(text, gap, len(rows)) / np.bincount(text, minlength=len(rows))
    label = np.take_along_axis(answers.classes, answers.truth, axis=1)[used][first]
    gender = answers.genders[used][first]
    found = []
    for place in np.unique(label):
        leaning = int(twins.leaning[place])
        for code, word in enumerate(GENDERS):
            here = means[(label == place) & (gender == code)]
            if not here.size:
                continue
            value, low, high = t_mean(here, prob)
            found.append(
                AssociationRow(
                    name=answers.names[place], leaning=GENDERS[leaning], gender=word,
                    texts=here.size, association=value, low=low, high=high,
                    signed=value if code == leaning else -value, prob=prob,
                )
            )  # fmt: skip
    return tuple(found)
