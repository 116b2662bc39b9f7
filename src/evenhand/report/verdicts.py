"""Verdicts in plain words, and the rules of those on word vectors.

Only tests that set the classes against each other decide: they shuffle the stereotype words
between the classes, so what all such words have in common cannot count. The other measures
compare the listed words with random ones and describe how large a tie is; a list of human traits
can stand out there for being about people at all.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

from evenhand.intervals import holm
from evenhand.report.methods import label, name_of
from evenhand.report.wording import number
from evenhand.results import Measurement

__all__ = ["DECIDING", "RULES", "SUBJECTS", "Level", "Number", "Subject", "Verdict", "judge"]

Subject = Literal["data", "vectors", "model", "classifier"]
SUBJECTS: Mapping[Subject, str] = {
    "data": "The data", "vectors": "Word vectors", "model": "Masked language model",
    "classifier": "Few-shot classifiers",
}  # fmt: skip
"""What is judged, in the order of reading."""

Level = Literal["strong evidence", "some evidence", "none found", "not measured"]

DECIDING = ("association", "weat", "projections")
"""Measures whose test shuffles words between the classes."""

CONFIRMING = ("weat", "projections", "direct_bias", "same")
"""Measures of which one must agree before the evidence is called strong."""

TOWARDS_STEREOTYPE = {"association": -1, "weat": 1, "projections": 1}
"""The sign of a value that agrees with the stereotype."""

STRONG, SOME = 0.01, 0.05

CANNOT_MEAN = (
    "It does not mean that the vectors are free of bias: other words, other stereotypes, other "
    "languages and what is built on the vectors are not tested here, and with few words a real "
    "difference can stay unseen. The interval says how large it might still be."
)

RULES = (
    f"Strong evidence: the association contrast has p < {STRONG}, its interval lies wholly on the "
    "side of the stereotype, and a second measure (WEAT, projections, direct bias or SAME) has "
    f"p < {STRONG} in the same direction.",
    "Some evidence: not strong, but one of the deciding tests (association, WEAT between each two "
    f"classes, projections) has p < {SOME} after Holm's correction over all of them.",
    "None found: neither. " + CANNOT_MEAN,
    "The other measures do not decide: they compare the listed words with random words of like "
    "frequency, and words about people can differ from random words without any stereotype.",
    "The measures share words and vectors. A second one guards against a fluke of one formula, "
    "not against a badly chosen word list.",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number behind a verdict, with its interval."""

    label: str
    value: float
    low: float
    high: float
    p_value: float | None = None
    ideal: float | None = None

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The level, the sentence that says it, and the numbers behind it.

    `name` is what was judged, such as glove. `tests` has each deciding test with its p-value
    (`p_value`) and the corrected one (`p_holm`) and its `label`; `confirmed_by` names the measures
    that agree; `cannot_mean` says what no finding does not mean.
    """

    subject: Subject
    name: str
    topic: str
    level: Level
    sentence: str
    numbers: tuple[Number, ...] = ()
    tests: tuple[Mapping[str, Any], ...] = ()
    confirmed_by: tuple[str, ...] = ()
    cannot_mean: str = ""

    def as_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject,
            "name": self.name,
            "topic": self.topic,
            "verdict": self.level,
            "sentence": self.sentence,
            "numbers": [number.as_dict() for number in self.numbers],
            "tests": [dict(test) for test in self.tests],
            "confirmed_by": list(self.confirmed_by),
            "cannot_mean": self.cannot_mean,
        }


def judge(
    topic: str, measurements: Sequence[Measurement], *, name: str = "", more: Sequence[Number] = ()
) -> Verdict:
    """The verdict on the vectors `name` on one topic from their measurements, by `RULES`.

    `more` are numbers of other origin that stand beside them.
    """
    association = next((m for m in measurements if m.metric == "association"), None)
    deciding = [m for m in measurements if m.metric in DECIDING and m.p_value is not None]
    if association is None or association.p_value is None:
        return Verdict(
            subject="vectors", name=name, topic=topic, level="not measured", numbers=tuple(more),
            sentence="The association contrast could not be measured, so there is no verdict.",
        )  # fmt: skip
    corrected = holm([m.p_value for m in deciding if m.p_value is not None])
    tests: tuple[dict[str, Any], ...] = tuple(
        {
            "label": name_of(m.metric, m.query, topic), "metric": m.metric, "query": m.query,
            "value": m.value, "p_value": m.p_value, "p_holm": p,
            "towards_stereotype": _towards_stereotype(m),
        }
        for m, p in zip(deciding, corrected, strict=True)
    )  # fmt: skip
    confirmed_by = tuple(
        dict.fromkeys(
            label(m.metric) for m in measurements if m.metric in CONFIRMING and _confirms(m)
        )
    )
    holding = [test for test in tests if test["p_holm"] < SOME]
    level: Level = "none found"
    if association.p_value < STRONG and association.high < 0 and confirmed_by:
        level = "strong evidence"
    elif holding:
        level = "some evidence"
    contrast = Number(
        label=label("association"), value=association.value, low=association.low,
        high=association.high, p_value=association.p_value, ideal=association.ideal,
    )  # fmt: skip
    return Verdict(
        subject="vectors", name=name, topic=topic, level=level, numbers=(contrast, *more),
        tests=tests, confirmed_by=confirmed_by, sentence=_sentence(level, association, holding),
        cannot_mean=CANNOT_MEAN,
    )  # fmt: skip


def _towards_stereotype(m: Measurement) -> bool:
    return m.value * TOWARDS_STEREOTYPE.get(m.metric, 1) > 0


def _confirms(m: Measurement) -> bool:
    return m.p_value is not None and m.p_value < STRONG and _towards_stereotype(m)


def _sentence(level: Level, association: Measurement, holding: Sequence[Mapping[str, Any]]) -> str:
    if level == "strong evidence":
        return (
            "Stereotype words lie nearer the class they are told of, by "
            f"{number(abs(association.value))} of cosine distance on average, and other measures "
            "agree."
        )
    if level == "some evidence":
        if all(test["towards_stereotype"] for test in holding):
            return (
                "Some tests find stereotype words nearer the class they are told of, but not all "
                "conditions of strong evidence are met."
            )
        return (
            "A difference between the classes was found, but in part against the direction of the "
            "stereotype: look at the single words before concluding anything."
        )
    return (
        "These word lists show no difference that chance would not also give. That is not proof "
        f"of no bias: a contrast between {number(association.low)} and "
        f"{number(association.high)} fits the data as well."
    )
