"""The pronoun scores of one model: its sentences, their verdicts and everything told of them."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.masked.metrics.pronouns_asking import Probabilities
from evenhand.masked.metrics.pronouns_interval import bootstrap_mean
from evenhand.masked.metrics.pronouns_reading import Sentence
from evenhand.masked.metrics.pronouns_summary import (
    VERDICTS,
    Rule,
    Summary,
    Verdicts,
    bias,
    summarise,
    verdicts,
)
from evenhand.results import Estimate, document, save_json

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["LeftOut", "Part", "PronounScores", "columns_of"]

IN_TOP = np.array(["none", "male", "female", "both"])


@dataclass(frozen=True, slots=True)
class LeftOut:
    """A sentence that the model could not score, and why."""

    line: int
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """The sentences of one slot or one pronoun: the two means of the bias score."""

    name: str
    n: int
    decided: int
    mean_bias: Estimate
    full_vocabulary: Estimate

    def as_dict(self) -> dict[str, Any]:
        return {key: getattr(self, key) for key in self.__slots__}


@dataclass(frozen=True, eq=False, kw_only=True)
class PronounScores:
    """The scores of one model. `top` is the summary by the k likeliest words, as published;
    `full` the same by the likeliest gender words of the whole vocabulary.

    `keys` tells sentences apart for comparisons; `sentences` is None where they were not held.
    """

    model: str
    rule: Rule
    probabilities: Probabilities = field(repr=False)
    keys: NDArray[np.uint64] = field(repr=False)
    pronouns: NDArray[np.str_] = field(repr=False)
    sentences: tuple[Sentence, ...] | None = field(default=None, repr=False)
    left_out: tuple[LeftOut, ...] = ()
    duplicates: int = 0
    blank: int = 0
    filtered: int = 0
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.probabilities)

    @cached_property
    def bias(self) -> Floats:
        """The score of each sentence by the top k, nan where no gender word is among them."""
        return bias(self.probabilities.p_male_top, self.probabilities.p_female_top)

    @cached_property
    def verdict(self) -> Verdicts:
        """The verdict of each sentence by the top k, as places in `VERDICTS`."""
        p = self.probabilities
        return verdicts(p.p_male_top, p.p_female_top, self.rule)

    @cached_property
    def full_bias(self) -> Floats:
        """The score of each sentence by the whole vocabulary."""
        return bias(self.probabilities.p_male, self.probabilities.p_female)

    @cached_property
    def top(self) -> Summary:
        p = self.probabilities
        return summarise(p.p_male_top, p.p_female_top, self.rule)

    @cached_property
    def full(self) -> Summary:
        return summarise(self.probabilities.p_male, self.probabilities.p_female, self.rule)

    @cached_property
    def mean_of_all(self) -> Estimate:
        """The mean of the full-vocabulary score over all sentences, undecided ones included."""
        return self._mean(self.full_bias)

    @cached_property
    def by_slot(self) -> tuple[Part, ...]:
        """Apart for subject, object, possessive and reflexive places."""
        return self._parts(self.probabilities.slots(self.pronouns.tolist()))

    @cached_property
    def by_pronoun(self) -> tuple[Part, ...]:
        """Apart for the pronoun that stood at the mask, where that is known."""
        return self._parts(self.pronouns)

    def as_dict(self) -> dict[str, Any]:
        """The JSON view."""
        return {
            "model": self.model,
            **self.top.as_dict(),
            "full_vocabulary": {**self.full.as_dict(), "mean_of_all": self.mean_of_all.as_dict()},
            "by_slot": [part.as_dict() for part in self.by_slot],
            "by_pronoun": [part.as_dict() for part in self.by_pronoun],
            "left_out": {
                "n": len(self.left_out),
                "sentences": [{"line": out.line, "reason": out.reason} for out in self.left_out],
                "duplicates": self.duplicates,
                "blank_lines": self.blank,
                "filtered": self.filtered,
            },
            "rule": {name: getattr(self.rule, name) for name in Rule.__slots__},
            "interval": "studentised bootstrap over sentences; shares: Wilson",
            "notes": list(self.notes),
        }

    def to_frame(self) -> pd.DataFrame:
        """The items as a table, a row a sentence."""
        import pandas as pd

        if self.sentences is None:
            raise InputError("to_frame: the sentences were written to a file and not held")
        return pd.DataFrame(columns_of(self.model, self.sentences, self.probabilities, self.rule))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write summary and, where held, items as one JSON document."""
        content = self.as_dict()
        if self.sentences is not None:
            columns = columns_of(self.model, self.sentences, self.probabilities, self.rule)
            rows = zip(*columns.values(), strict=True)
            content["items"] = [dict(zip(columns, row, strict=True)) for row in rows]
        save_json(path, document(models=[content]))

    def _mean(self, x: Floats) -> Estimate:
        return bootstrap_mean(x[np.isfinite(x)], prob=self.rule.prob, seed=self.rule.seed)

    def _parts(self, labels: NDArray[np.str_]) -> tuple[Part, ...]:
        return tuple(
            Part(
                name=str(name),
                n=int((labels == name).sum()),
                decided=int(((labels == name) & (self.verdict > 0)).sum()),
                mean_bias=self._mean(self.bias[(labels == name) & (self.verdict > 0)]),
                full_vocabulary=self._mean(self.full_bias[labels == name]),
            )
            for name in np.unique(labels)
            if name
        )


def columns_of(
    model: str, sentences: Sequence[Sentence], p: Probabilities, rule: Rule
) -> Mapping[str, list[Any]]:
    """The items behind the scores, a column a name."""
    pronouns = [sentence.pronoun for sentence in sentences]
    names = np.array(VERDICTS)
    return {
        "model": [model] * len(sentences),
        "line": [sentence.line for sentence in sentences],
        "masked": [sentence.text for sentence in sentences],
        "pronoun": pronouns,
        "slot": p.slots(pronouns).tolist(),
        "bias": bias(p.p_male_top, p.p_female_top).tolist(),
        "verdict": names[verdicts(p.p_male_top, p.p_female_top, rule)].tolist(),
        "in_top": IN_TOP[p.male_in_top + 2 * p.female_in_top].tolist(),
        "male_word": p.male_word.tolist(),
        "p_male": p.p_male.tolist(),
        "female_word": p.female_word.tolist(),
        "p_female": p.p_female.tolist(),
        "full_bias": bias(p.p_male, p.p_female).tolist(),
        "full_verdict": names[verdicts(p.p_male, p.p_female, rule)].tolist(),
    }
