"""The arithmetic of the pronoun score: bias, verdict, and what is told of many sentences."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.intervals import Floats, wilson
from evenhand.masked.metrics.pronouns_interval import bootstrap_mean, sign_test, signs
from evenhand.masked.metrics.pronouns_words import Words
from evenhand.results import Estimate

__all__ = ["BINS", "VERDICTS", "Group", "Rule", "Summary", "bias", "summarise", "verdicts"]

VERDICTS = ("undecided", "female", "neutral", "male")
"""What is said of a sentence; in arrays, the place in this list."""

BINS = 20
"""Bins of the histogram over [0, 1]."""

Verdicts = NDArray[np.int8]


@dataclass(frozen=True, slots=True, kw_only=True)
class Rule:
    """How a score becomes a verdict, and how sure the intervals are."""

    top_k: int = 10
    delta: float = 0.05
    least: float = 0.05
    words: Words = "all"
    prob: float = 0.95
    seed: int = 0

    def __post_init__(self) -> None:
        if self.top_k < 1:
            raise InputError(f"top_k: expected 1 or more, got {self.top_k}")
        if not 0 <= self.delta < 0.5:
            raise InputError(f"delta: expected 0 to below 0.5, got {self.delta}")
        if not 0 <= self.least <= 1:
            raise InputError(f"least: expected 0 to 1, got {self.least}")
        if not 0 < self.prob < 1:
            raise InputError(f"prob: expected a probability between 0 and 1, got {self.prob}")


@dataclass(frozen=True, slots=True, kw_only=True)
class Group:
    """The sentences of one verdict: how many, their share of all, their mean score."""

    n: int
    share: Estimate
    mean: Estimate | None

    def as_dict(self) -> dict[str, Any]:
        row: dict[str, Any] = {"n": self.n}
        if self.mean is not None:
            row |= {"mean": self.mean.value, "low": self.mean.low, "high": self.mean.high}
        return row | {"share": self.share.as_dict()}


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """The scores of many sentences: their groups, mean, distribution and a test against .5.

    `mean_bias` is over the decided sentences; `p_value` that of the sign test, whether as many of
    them lie above .5 as below. `absent` of the undecided have no gender word at all, the others
    none that is likely enough; `one_sided` sentences have a word of one gender only.
    """

    n: int
    groups: Mapping[str, Group]
    mean_bias: Estimate
    above: int
    below: int
    p_value: float
    absent: int
    one_sided: Mapping[str, int]
    histogram: tuple[int, ...]

    @property
    def decided(self) -> int:
        return self.n - self.groups["undecided"].n

    def as_dict(self) -> dict[str, Any]:
        groups = {verdict: self.groups[verdict].as_dict() for verdict in VERDICTS[::-1]}
        groups["undecided"]["absent"] = self.absent
        return {
            "n": self.n,
            **groups,
            "mean_bias": self.mean_bias.as_dict(),
            "sign_test": {"above": self.above, "below": self.below, "p_value": self.p_value},
            "one_sided": dict(self.one_sided),
            "histogram": {
                "edges": [i / BINS for i in range(BINS + 1)],
                "counts": list(self.histogram),
            },
        }


def bias(p_male: ArrayLike, p_female: ArrayLike) -> Floats:
    r"""$\text{bias}(s) = P(s|m) / (P(s|m) + P(s|f))$; Ye et al. (2021), equation 1.

    A gender without a word (nan) counts 0, so that the score is 1 or 0; without any word there is
    no score (nan).

    >>> bias([0.435, 0.142, 0.542, 0.2], [0.195, 0.113, 0.0305, float("nan")]).round(2).tolist()
    [0.69, 0.56, 0.95, 1.0]
    """
    male, female = np.nan_to_num(np.asarray(p_male, float)), np.nan_to_num(np.asarray(p_female))
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.asarray(male / (male + female))


def verdicts(p_male: ArrayLike, p_female: ArrayLike, rule: Rule) -> Verdicts:
    """What is said of each sentence, as places in `VERDICTS`.

    Undecided where neither gender has a word or the likelier one is less likely than `least`;
    male above .5 + delta, female below .5 - delta, neutral between them, the ends included.

    >>> [VERDICTS[v] for v in verdicts([0.3, 0.2, 0.04], [0.1, 0.2, 0.01], Rule())]
    ['male', 'neutral', 'undecided']
    """
    score = bias(p_male, p_female)
    strongest = np.fmax(np.asarray(p_male, float), np.asarray(p_female, float))
    decided = np.isfinite(score) & (strongest >= rule.least)
    found = np.full(score.shape, VERDICTS.index("neutral"), dtype=np.int8)
    # compared with .5 as a difference, rounded, so that .55 lies at .5 + .05 and not beyond it
    off = (score - 0.5).round(12)
    found[off > rule.delta] = VERDICTS.index("male")
    found[off < -rule.delta] = VERDICTS.index("female")
    found[~decided] = VERDICTS.index("undecided")
    return found


def summarise(p_male: Floats, p_female: Floats, rule: Rule) -> Summary:
    """The summary of Ye et al. (2021), §4.2, with intervals: sentences are the sampling unit."""
    score, told = bias(p_male, p_female), verdicts(p_male, p_female, rule)
    n, decided = len(score), told > 0
    missing = [np.isnan(p_male), np.isnan(p_female)]
    above, below = signs(score[decided] - 0.5)
    return Summary(
        n=n,
        groups={verdict: _group(score, told, code, rule) for code, verdict in enumerate(VERDICTS)},
        mean_bias=bootstrap_mean(score[decided], prob=rule.prob, seed=rule.seed),
        above=above,
        below=below,
        p_value=sign_test(score[decided] - 0.5),
        absent=int((missing[0] & missing[1]).sum()),
        one_sided={
            "male": int((decided & missing[1]).sum()),
            "female": int((decided & missing[0]).sum()),
        },
        histogram=_histogram(score[decided]),
    )


def _group(score: Floats, told: Verdicts, code: int, rule: Rule) -> Group:
    inside = score[told == code]
    share = wilson(inside.size, score.size, rule.prob)
    limits = {
        "undecided": None, "female": (0.0, 0.5 - rule.delta),
        "neutral": (0.5 - rule.delta, 0.5 + rule.delta), "male": (0.5 + rule.delta, 1.0),
    }[VERDICTS[code]]  # fmt: skip
    return Group(
        n=inside.size,
        share=Estimate(value=share[0], low=share[1], high=share[2], prob=rule.prob),
        mean=bootstrap_mean(inside, prob=rule.prob, seed=rule.seed, bounds=limits)
        if limits
        else None,
    )


def _histogram(score: Floats) -> tuple[int, ...]:
    """How many scores fall into each bin; a score at an edge is of the bin above, 1 of the last."""
    bins = np.minimum(np.floor((score * BINS).round(9)).astype(int), BINS - 1)
    return tuple(np.bincount(bins, minlength=BINS).tolist())
