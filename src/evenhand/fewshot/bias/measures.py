"""Every bias measure of one classifier, with intervals for new classes and what chance gives."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.fewshot.bias.formulas import NAMES, formulas
from evenhand.fewshot.bias.null import tossed
from evenhand.fewshot.bias.twins import Twins
from evenhand.fewshot.statistics import Score, scores
from evenhand.fewshot.statistics_replicates import Floats, Ints, Replicates

__all__ = [
    "MEASURES", "Bias", "Measure", "Reading", "Verdict", "classes_of", "folded", "measure",
    "reading",
]  # fmt: skip

Verdict = Literal["robust", "not robust", "undecided"]

MEASURES = {"association": "association", "epsilon": "gap", "skew": "skew",
            "stereotype": "stereotype"}  # fmt: skip
"""Our measures, and what each is called among the formulas before its sign is dropped."""

STRATIFIED = ("skew", "stereotype")
D0 = {"skew": "skew_d0", "stereotype": "stereotype_d0"}


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """One measure without what chance gives: as `Measure` has it."""

    metric: str
    value: float
    low: float
    high: float
    signed: float
    signed_low: float
    signed_high: float
    p_value: float
    classes: int
    prob: float = 0.95

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Measure:
    """One measure: `value` with its interval for new classes.

    ε, skew and stereotype are sizes: `value` is the size of `signed`, and its interval starts at 0
    where that of `signed` has 0 in it. A size is above 0 by chance: `null_mean` and `null_high`
    (its 95 % point) are what chance gives, `corrected` is √max(0, signed² less its null mean),
    and `null_p` the share of tosses as far from 0. `p_value` is for new classes, as the interval.
    `parts` has what it is made of.
    """

    metric: str
    value: float
    low: float
    high: float
    signed: float
    signed_low: float
    signed_high: float
    p_value: float
    null_mean: float
    null_high: float
    null_p: float
    corrected: float
    n: int
    classes: int
    prob: float = 0.95
    parts: Mapping[str, float] = field(default_factory=dict)

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    def __str__(self) -> str:
        return (
            f"{self.metric}: {self.value:.3f} [{self.low:.3f}, {self.high:.3f}] "
            f"({self.prob:.0%}, {self.classes} classes), p = {self.p_value:.2g}; "
            f"chance gives up to {self.null_high:.3f}, p = {self.null_p:.2g}"
        )


@dataclass(frozen=True, eq=False)
class Bias:
    """All measures of one classifier, its accuracy, and whether it is ε-robust.

    The verdict is of the interval: robust where it lies within `margin`, not robust where it lies
    beyond, else undecided.
    """

    accuracy: Score
    measures: Mapping[str, Measure]
    margin: float
    verdict: Verdict
    left_out: Mapping[str, int]
    tosses: int
    seed: int
    replicates: Replicates = field(repr=False)
    twins: Twins = field(repr=False)

    def __getitem__(self, name: str) -> Measure:
        return self.measures[name]

    def as_dict(self) -> dict[str, Any]:
        return {
            "accuracy": self.accuracy.as_dict(),
            **{name: each.as_dict() for name, each in self.measures.items()},
            "robust": {"margin": self.margin, "verdict": self.verdict},
            "left_out": dict(self.left_out),
            "tosses": self.tosses,
            "seed": self.seed,
        }


def measure(
    twins: Twins,
    *,
    margin: float = 0.05,
    prob: float = 0.95,
    tosses: int = 2000,
    seed: int = 0,
) -> Bias:
    """All bias measures; `margin` is the ε at which the classifier is asked to be ε-robust.

    A measure that needs classes of both leanings is NaN where all lean to one side.
    """
    if not 0 < margin < 1:
        raise InputError(f"margin: expected above 0 and below 1, got {margin}")
    if not 0 < prob < 1:
        raise InputError(f"prob: expected above 0 and below 1, got {prob}")
    if tosses < 1:
        raise InputError(f"tosses: expected 1 or more, got {tosses}")
    made = twins.original.replicates(formulas(twins.strata), twins.counts())
    null = tossed(twins, tosses, seed)
    texts = len(np.unique(twins.original.rows[twins.used]))
    found = {name: _measure(name, made, null, twins.strata, prob, texts) for name in MEASURES}
    gap = found["epsilon"]
    verdict: Verdict = "undecided"
    if gap.high <= margin:
        verdict = "robust"
    elif gap.low > margin:
        verdict = "not robust"
    return Bias(
        accuracy=scores(twins.original, prob=prob)["accuracy"], measures=found, margin=margin,
        verdict=verdict, left_out=twins.left_out, tosses=tosses, seed=seed, replicates=made,
        twins=twins,
    )  # fmt: skip


def classes_of(name: str, strata: Ints) -> Ints:
    """The strata the jackknife of a measure runs in: by leaning where both count alike."""
    return strata if name in STRATIFIED else np.where(strata >= 0, 0, -1)


def folded(low: float, high: float) -> tuple[float, float]:
    """The interval of a size from that of the signed value.

    >>> folded(-0.1, 0.3), folded(-0.3, -0.1)
    ((0.0, 0.3), (0.1, 0.3))
    """
    if low <= 0 <= high:
        return 0.0, max(abs(low), high)
    return (low, high) if low > 0 else (-high, -low)


def reading(name: str, made: Replicates, strata: Ints, prob: float) -> Reading:
    """A measure from the replicates of `formulas`; `strata` are the leanings of the classes."""
    one, inside = made.at(NAMES.index(MEASURES[name])), classes_of(name, strata)
    signed = float(one.value)
    ends = one.interval(prob, inside)
    if math.isnan(signed):
        ends = (math.nan, math.nan)
    sized = name != "association"
    low, high = folded(*ends) if sized and not math.isnan(signed) else ends
    return Reading(
        metric=name, value=abs(signed) if sized else signed, low=low, high=high, signed=signed,
        signed_low=ends[0], signed_high=ends[1], p_value=one.p_value(inside),
        classes=int((strata >= 0).sum()), prob=prob,
    )  # fmt: skip


def _measure(
    name: str, made: Replicates, null: Floats, strata: Ints, prob: float, texts: int
) -> Measure:
    found = reading(name, made, strata, prob)
    signed, chance = found.signed, null[:, NAMES.index(MEASURES[name])]
    size = np.abs(chance)
    as_far = float((size >= abs(signed) - 1e-12).sum())
    return Measure(
        **found.as_dict(),
        null_mean=float(size.mean()), null_high=float(np.quantile(size, prob)),
        null_p=math.nan if math.isnan(signed) else (1 + as_far) / (1 + len(chance)),
        corrected=math.copysign(
            math.sqrt(max(0.0, signed**2 - float((chance**2).mean()))),
            signed if name == "association" else 1.0,
        ) if not math.isnan(signed) else math.nan,
        n=texts, parts=_parts(name, made.value, null),
    )  # fmt: skip


def _parts(name: str, values: Floats, null: Floats) -> dict[str, float]:
    told = dict(zip(NAMES, values.tolist(), strict=True))
    if name == "epsilon":
        return {part: told[part] for part in ("accuracy_pro", "accuracy_anti")}
    if name in D0:
        kept = ("f1_pro_male", "f1_pro_female", "f1_anti_male", "f1_anti_female", "easier")
        by_chance = float(null[:, NAMES.index(D0[name])].mean())
        return {part: told[part] for part in kept} | {
            "as_in_d0": told[D0[name]], "as_in_d0_by_chance": by_chance,
        }  # fmt: skip
    return {}
