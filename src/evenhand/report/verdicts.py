"""Verdicts: how strong the evidence of bias is, by rules that are data and one engine.

What an instrument contributes is in its own file: its role (it leads, is required, decides or
confirms), the sign of a value that agrees with the stereotype, which of its results are tests and
what they mean (`Evidence`). `RULES` has for each subject the conditions of strong and of some
evidence; `judge` applies them. A verdict is computed once, by the audit, and saved; pages, cards
and comparisons read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

from evenhand.display import Result
from evenhand.instruments import Declaration, Evidence, all_declarations, find
from evenhand.report.blocks import Prose
from evenhand.report.methods import label_of
from evenhand.results import Measurement
from evenhand.statistics.power import POWER, items_needed, quantile, smallest_effect
from evenhand.statistics.sizes import SIZES, name_size, to_size
from evenhand.statistics.tests import holm

if TYPE_CHECKING:
    from evenhand.report.fewshot import Network
    from evenhand.report.findings import Findings, StageResult

Subject = Literal["data", "vectors", "model", "causal", "encoder", "classifier", "predictions"]
SUBJECTS: Mapping[str, str] = {
    "data": "The data",
    "vectors": "Word vectors",
    "model": "Masked language model",
    "causal": "Causal language model",
    "encoder": "Sentence encoder",
    "classifier": "Few-shot classifiers",
    "predictions": "Your classifier",
}
"""What is judged, in the order of reading."""

Level = Literal["strong evidence", "some evidence", "none found", "not measured"]
Test = dict[str, Any]
"""A test: label, metric, query, value, low, high, ideal, p-values and their Holm corrections, the
smallest effect that it could have found, and whether the value goes towards the stereotype; `size`
with its ends and `smallest_size` are on the scale of `evenhand.statistics.sizes`, above 0 towards
the stereotype; `n` counts what `unit` names, and `n_for` is how many would show a bias of a size.
What it means is left out of saved verdicts."""

STRONG, SOME = 0.01, 0.05
INTERNAL = ("prob", "required", "ratio", "evidence", "kind")
"""What is not saved of a test."""

prose = Prose("verdicts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """At least `count` tests with each of these p-values below its threshold.

    Parameters
    ----------
    p : Mapping of str to float
        The p-values by name, each with its threshold.
    of : {"deciding", "required", "confirming"}
        The tests that count. Of the required instruments each must have one.
    towards : bool
        Whether the value must go towards the stereotype, where there is one.
    excludes_ideal : bool
        Whether the interval must exclude the ideal value.
    count : int

    """

    p: Mapping[str, float]
    of: Literal["deciding", "required", "confirming"] = "deciding"
    towards: bool = False
    excludes_ideal: bool = False
    count: int = 1

    def meets(self, test: Test) -> bool:
        """Whether one test counts."""
        return (
            all(_or_one(test.get(name)) < below for name, below in self.p.items())
            and (not self.towards or test["towards_stereotype"])
            and (not self.excludes_ideal or not test["low"] <= test["ideal"] <= test["high"])
        )

    def holds(self, tests: Tests) -> bool:
        """Whether enough tests count."""
        if self.of == "required":
            met = {test["metric"] for test in tests.deciding if self.meets(test)}
            return all(about.name in met for about in tests.required)
        chosen = tests.confirming if self.of == "confirming" else tests.deciding
        return sum(map(self.meets, chosen)) >= self.count


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The conditions of the evidence on one subject; all of `strong` must hold.

    Parameters
    ----------
    strong, some : tuple of Condition
    confirmed : Condition, optional
        What a test that agrees must meet.
    corrected : tuple of str
        The p-values that Holm's method corrects over all deciding tests.
    needs_lead : bool
        Whether there is no verdict without the instrument that leads; where there is, the verdict
        names the instruments without a test.
    widened : bool
        Whether the intervals are widened for the number of tests (Bonferroni, normal).
    smallest_first : bool
        Whether the tests are shown in the order of their p-values.
    ends : int
        How many numbers are shown on either side of the ideal; 0: those of all tests.
    sentence : str
        The name of the text that says the level.

    """

    strong: tuple[Condition, ...]
    some: tuple[Condition, ...] = (Condition(p={"p_holm": SOME}),)
    confirmed: Condition | None = None
    corrected: tuple[str, ...] = ("p_value",)
    needs_lead: bool = False
    widened: bool = False
    smallest_first: bool = False
    ends: int = 0
    sentence: str = "found"


AGREES = Condition(of="confirming", p={"p_holm": STRONG}, towards=True)
REQUIRED = Condition(of="required", p={"p_holm": STRONG}, towards=True, excludes_ideal=True)
SEVERAL = Condition(p={"p_holm": STRONG}, towards=True, count=2)
BY_TOPIC = ("causal", "encoder")
"""Models that are judged on each topic that a test is about."""
ASSOCIATIONS = Rules(
    strong=(Condition(p={"p_holm": STRONG}, towards=True, excludes_ideal=True, count=2),),
    smallest_first=True,
    sentence="associations",
)

RULES: Mapping[str, Rules] = {
    "data": Rules(strong=(Condition(p={"p_holm": STRONG}),), ends=2, sentence="leanings"),
    "vectors": Rules(strong=(REQUIRED, AGREES), confirmed=AGREES, needs_lead=True),
    "model": Rules(
        strong=(REQUIRED,),
        confirmed=Condition(of="confirming", p={"p_holm": SOME}, towards=True),
    ),
    **dict.fromkeys(BY_TOPIC, ASSOCIATIONS),
    "predictions": Rules(
        strong=(Condition(p={"p_holm": STRONG}, excludes_ideal=True),),
        smallest_first=True,
        sentence="associations",
    ),
    "classifier": Rules(
        strong=(
            SEVERAL,
            Condition(p={"p_holm": STRONG, "p_new_classes_holm": SOME}, towards=True),
        ),
        confirmed=SEVERAL,
        corrected=("p_value", "p_new_classes"),
        widened=True,
        sentence="found_in_classes",
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Number:
    """A number behind a verdict, with its interval."""

    label: str
    value: float
    low: float
    high: float
    p_value: float | None = None
    ideal: float | None = None

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Number:
        ends = {"value": math.nan, "low": -math.inf, "high": math.inf}
        known = {name: end if row[name] is None else row[name] for name, end in ends.items()}
        return cls(**{**row, **known})


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict(Result):
    """The level of evidence, the sentence that says it, and the numbers behind it.

    `name` is what was judged, such as glove. `tests` has each deciding test with its p-value and
    the corrected one; `confirmed_by` names the measures that agree; `cannot_mean` says what "none
    found" does not mean. `claim` is the sentence in a few words, after the name; `size` the test
    whose size stands for the finding (`find_size`), and `detectable` those tests whose smallest
    detectable effects say what "none found" leaves open.
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
    claim: str = ""
    size: Mapping[str, Any] | None = None
    detectable: tuple[Mapping[str, Any], ...] = ()

    def to_dict(self) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in self.__slots__ if name != "level"}
        row["numbers"] = [number.to_dict() for number in self.numbers]
        return {**row, "verdict": self.level}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Verdict:
        fields = {name: value for name, value in row.items() if name != "verdict"}
        fields["numbers"] = tuple(map(Number.from_dict, row["numbers"]))
        for name in ("tests", "confirmed_by", "detectable"):
            fields[name] = tuple(row.get(name, ()))
        return cls(level=row["verdict"], **fields)

    def _headline(self) -> str:
        return f"{self.name} {self.topic}: {self.level}: {self.sentence}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        about = {
            "subject": self.subject,
            "name": self.name,
            "topic": self.topic,
            "level": self.level,
        }
        numbers = [number.to_dict() for number in self.numbers] or [dict[str, Any]()]
        return [{**about, **number} for number in numbers]

    def _notes(self) -> Sequence[str]:
        return [self.cannot_mean] if self.cannot_mean else []


# ------------------------------------------------------------------------------------ the engine


@dataclass(frozen=True, slots=True, kw_only=True)
class Tests:
    """The tests on one subject, and the instruments whose tests decide.

    `family` is the number of tests that p-values are corrected for: those of all topics.
    """

    deciding: tuple[Test, ...]
    confirming: tuple[Test, ...]
    instruments: tuple[Declaration, ...]
    family: int

    @property
    def required(self) -> tuple[Declaration, ...]:
        """The instruments that strong evidence needs."""
        return tuple(about for about in self.instruments if about.required)

    @property
    def missing(self) -> list[str]:
        """The labels of the instruments without a test."""
        tested = {test["metric"] for test in self.deciding}
        return [about.label for about in self.instruments if about.name not in tested]

    @property
    def holding(self) -> list[Test]:
        """The deciding tests that are some evidence."""
        return [test for test in self.deciding if test["p_holm"] < SOME]


def collect_tests(
    subject: str,
    results: Iterable[Measurement],
    topic: str = "",
    others: Iterable[Measurement] = (),
) -> Tests:
    """The tests of the results, corrected by the rules of the subject.

    `others` are the results on other topics: their deciding tests are of the same family, and
    p-values are corrected for all of it. The tests that confirm without deciding are a family of
    their own. An unknown p-value counts as 1. A test that both decides and confirms is one test.
    """
    rules = RULES[subject]
    declared = [
        about
        for about in all_declarations([_measured_as(subject)])
        if about.decides and about.audits(_measured_as(subject))
    ]
    own = list(_tests(results, topic))
    deciding = [test for about, test in own if about.decides]
    confirming = [test for about, test in own if about.confirms]
    family = [*deciding, *(test for about, test in _tests(others) if about.decides)]
    supporting = [test for about, test in own if not about.decides]
    for tests, names in ((family, rules.corrected), (supporting, ("p_value",))):
        for name in names:
            key = "p_holm" if name == "p_value" else f"{name}_holm"
            corrected = holm([_or_one(test[name]) for test in tests])
            for test, p in zip(tests, corrected, strict=True):
                test[key] = p
    for test in deciding:
        test["smallest_effect"] = _smallest(test, "low", "high", len(family))
        if "low_new_classes" in test:
            ends = ("low_new_classes", "high_new_classes")
            test["smallest_effect_new_classes"] = _smallest(test, *ends, len(family))
        if rules.widened:
            wider = _wider(test["prob"], len(family))
            for end in ("low", "high"):
                test[end] = test["value"] + (test[end] - test["value"]) * wider
        _put_on_scale(test, fixed=not rules.ends)
    return Tests(
        deciding=tuple(deciding),
        confirming=tuple(confirming),
        instruments=tuple(declared),
        family=len(family),
    )


def _tests(results: Iterable[Measurement], topic: str = "") -> Iterable[tuple[Declaration, Test]]:
    """The tests of the results that have a part in a verdict, each with its instrument."""
    for m in results:
        instrument = find(m.metric)
        if instrument is None or instrument.declaration.role in ("shown", ""):
            continue
        about: Declaration = instrument.declaration
        own = hasattr(instrument, "evidence")
        for evidence in instrument.evidence(m) if own else [Evidence(measurement=m)]:
            tested = evidence.measurement
            if tested.p_value is not None and tested.n >= about.minimum:
                yield about, as_test(evidence, about, topic)


def _smallest(test: Test, low: str, high: str, tests: int) -> float | None:
    """The smallest effect that the test finds with a power of 80 % after the correction.

    The standard error is that of the interval. The correction is that of the smallest p-value
    (Bonferroni), which every p-value of a family without any effect has to meet. For odds ratios
    the effect is the ratio itself, otherwise the difference from the ideal.
    """
    ends = test[low], test[high]
    if test["ratio"]:
        ends = tuple(math.log(end) if end > 0 else -math.inf for end in ends)  # type: ignore[assignment]
    error = (ends[1] - ends[0]) / 2 / quantile((1 + test["prob"]) / 2)
    if not math.isfinite(error):
        return None
    effect = smallest_effect(error, alpha=SOME / tests)
    return math.exp(effect) if test["ratio"] else effect


def _put_on_scale(test: Test, *, fixed: bool) -> None:
    """Add the size of a test and of the smallest that it finds; above 0 is towards the stereotype.

    Where the sign means nothing, or with `fixed` false, the size of the value is above 0.
    """
    evidence: Evidence = test["evidence"]
    about: Declaration = find(test["metric"]).declaration  # type: ignore[union-attr]
    kind = evidence.size or about.size
    sizes = [to_size(test[end], kind, spread=evidence.spread) for end in ("value", "low", "high")]
    sign = _sign(about) if fixed else 0
    if sizes[0] is not None and sign * 2 + (sizes[0] > 0) - (sizes[0] < 0) < 0:
        sizes = [None if size is None else -size for size in (sizes[0], sizes[2], sizes[1])]
    test |= dict(zip(("size", "size_low", "size_high"), sizes, strict=True))
    smallest = test["smallest_effect"]
    if smallest is not None:
        value = smallest if test["ratio"] else (test["ideal"] or 0.0) + smallest
        smallest = to_size(
            min(value, 1.0) if kind == "share" else value, kind, spread=evidence.spread
        )
    test["smallest_size"] = smallest
    items = evidence.measurement.n
    known = smallest is not None and math.isfinite(smallest)
    test |= {
        "claim": evidence.claim,
        "quantity": evidence.quantity,
        "n": items,
        "unit": about.unit,
        "n_for": {
            name: items_needed(items, smallest, size)
            for name, size in SIZES.items()
            if size and known
        },
    }


def _sign(about: Declaration) -> int:
    """The sign of a value that goes towards the stereotype; 0 where either is bias."""
    return about.stereotype or {"higher": 1, "lower": -1, "away": 0}[about.worse]


def find_size(rules: Rules, tests: Tests) -> Test | None:
    """The test whose size stands for a finding.

    Of the tests that are some evidence and have a size, it is that of the instrument that leads;
    without one, that with the smallest corrected p-value. Where every class is a test, it is the
    median class by size (of two, the smaller).
    """
    sized = [test for test in tests.holding if test.get("size") is not None]
    if not sized:
        return None
    if rules.ends:
        return sorted(sized, key=lambda test: abs(test["size"]))[(len(sized) - 1) // 2]
    leading = {about.name for about in tests.instruments if about.role == "leads"}
    return min(
        sized, key=lambda t: (t["metric"] not in leading, t["p_holm"], _or_one(t["p_value"]))
    )


def _detectable(rules: Rules, tests: Tests, shown: Sequence[Test]) -> list[Test]:
    """The tests that say what "none found" leaves open.

    Those of the instruments that lead or are required, else those shown; where every class is a
    test, the two that could have shown the least and the most.
    """
    known = [test for test in tests.deciding if test["smallest_effect"] is not None]
    if rules.ends:
        ordered = sorted(known, key=lambda test: test["smallest_effect"])
        return ordered if len(ordered) < 2 else [ordered[0], ordered[-1]]
    required = [test for test in known if test["required"]]
    return required or [test for test in shown if test["smallest_effect"] is not None]


def _saved(test: Test) -> Test:
    """What is saved of a test."""
    return {key: value for key, value in test.items() if key not in INTERNAL}


def _measured_as(subject: str) -> str:
    """The subject of instruments that measure what is judged."""
    return "corpus" if subject == "data" else subject


def as_test(evidence: Evidence, about: Declaration, topic: str = "") -> Test:
    """A test as the rules read it."""
    m, general = evidence.measurement, evidence.general
    ideal = m.ideal or 0.0
    sign = _sign(about)
    test = {
        "label": evidence.label or label_of(m, topic),
        "metric": m.metric,
        "query": m.query,
        "value": m.value,
        "low": m.low,
        "high": m.high,
        "prob": m.prob,
        "ideal": ideal,
        "p_value": m.p_value,
        "towards_stereotype": not sign or (m.value - ideal) * sign > 0,
        "required": about.required,
        "ratio": about.compared == "ratio",
        "evidence": evidence,
    }
    if general is not None:
        test |= {
            "low_new_classes": general.low,
            "high_new_classes": general.high,
            "p_new_classes": general.p_value,
        }
    return test


def find_level(rules: Rules, tests: Tests) -> Level:
    """The level of the evidence."""
    if all(condition.holds(tests) for condition in rules.strong):
        return "strong evidence"
    return "some evidence" if all(each.holds(tests) for each in rules.some) else "none found"


def judge(
    subject: Subject,
    results: Iterable[Measurement],
    *,
    name: str = "",
    topic: str = "gender",
    others: Iterable[Measurement] = (),
    more: Sequence[Number] = (),
    reason: str = "",
    after: str = "",
) -> Verdict:
    """The verdict on one subject: the one engine behind all of them.

    Parameters
    ----------
    subject : {"data", "vectors", "model", "causal", "encoder", "classifier", "predictions"}
    results : iterable of Measurement
        Everything measured of it; what has no part in a verdict is left out.
    name, topic : str
        What is judged, and on which topic.
    others : iterable of Measurement
        What was measured of it on other topics: p-values are corrected for the tests of all.
    more : sequence of Number
        Further numbers to show beside it.
    reason : str
        Why tests are missing, where that is known.
    after : str
        What follows the sentence where evidence is found.

    """
    rules, measured = RULES[subject], list(results)
    tests = collect_tests(subject, measured, topic, others)
    required = [test for test in tests.deciding if test["required"]]
    if not tests.deciding or (rules.needs_lead and not required):
        few = [about for about in tests.instruments if about.minimum and measured]
        sentence = prose.not_measured(reason=reason, few=few)
        return _not_measured(subject, name, topic, sentence, more)
    level = find_level(rules, tests)
    shown, confirmed = _shown(rules, level, tests), _confirmed(rules, tests)
    size = find_size(rules, tests)
    sentence = getattr(prose, rules.sentence)(
        level=level,
        tests=tests.deciding,
        family=tests.family,
        required=required,
        holding=tests.holding,
        shown=shown,
        confirmed=confirmed,
        missing=[] if rules.needs_lead else tests.missing,
    )
    return Verdict(
        subject=subject,
        name=name,
        topic=topic,
        level=level,
        sentence=f"{sentence} {after}" if after and level != "none found" else sentence,
        numbers=(*_numbers(rules, level, tests, shown), *more),
        tests=tuple(map(_saved, shown if rules.ends else tests.deciding)),
        confirmed_by=confirmed,
        cannot_mean=getattr(prose, f"cannot_mean_{subject}")(),
        claim=""
        if level == "none found"
        else prose.claim(subject=subject, size=size, holding=tests.holding, tests=tests.deciding),
        size=None if size is None else {"name": name_size(size["size"]), **_saved(size)},
        detectable=tuple(map(_saved, _detectable(rules, tests, shown)))
        if level == "none found"
        else (),
    )


def _confirmed(rules: Rules, tests: Tests) -> tuple[str, ...]:
    if rules.confirmed is None:
        return ()
    chosen = tests.confirming if rules.confirmed.of == "confirming" else tests.deciding
    agreeing = [test for test in chosen if rules.confirmed.meets(test)]
    return tuple(
        dict.fromkeys(test["evidence"].label or label_of(test["metric"]) for test in agreeing)
    )


def _shown(rules: Rules, level: Level, tests: Tests) -> list[Test]:
    """The tests whose numbers are shown, that behind the verdict first."""
    if rules.ends:
        ordered = sorted(tests.holding or tests.deciding, key=lambda test: -test["value"])
        above = [test for test in ordered if test["value"] > test["ideal"]]
        below = [test for test in ordered if test["value"] < test["ideal"]]
        return [*above[: rules.ends], *below[-rules.ends :]]
    if "p_new_classes" in rules.corrected:
        return [_carrier(rules, level, tests.deciding)]
    if rules.smallest_first:
        return sorted(tests.deciding, key=lambda test: _or_one(test["p_value"]))
    return list(tests.deciding)


def _carrier(rules: Rules, level: Level, tests: Sequence[Test]) -> Test:
    """The test with the strongest evidence for the question that the level depends on."""
    keys = ["p_holm", "p_value", "p_new_classes"]
    if level == "strong evidence":
        keys = [*keys[2:], *keys[:2]]
        tests = [test for test in tests if rules.strong[-1].meets(test)]
    return min(tests, key=lambda test: [_or_one(test[key]) for key in keys])


def _numbers(rules: Rules, level: Level, tests: Tests, shown: Sequence[Test]) -> list[Number]:
    """The numbers behind the verdict."""
    if "p_new_classes" in rules.corrected:
        return _new_classes(level, shown[0], tests.deciding)
    if rules.ends:
        return [_number(test, f"{test['label']} (p corrected)", test["p_holm"]) for test in shown]
    return [
        _number(test, test["label"], test["p_value"])
        for test in shown
        if test["required"] or not rules.needs_lead
    ]


def _new_classes(level: Level, first: Test, tests: Sequence[Test]) -> list[Number]:
    """The number behind the verdict, then all measures with what holds for new classes."""
    ends = ("low_new_classes", "high_new_classes")
    every = [
        _number(test, f"{test['label']}, new classes", test["p_new_classes"], ends)
        for test in tests
        if level != "strong evidence" or test is not first
    ]
    corrected = f"corrected for {len(tests)} tests"
    if level == "strong evidence":
        label = f"{first['label']}, new classes (p {corrected})"
        return [_number(first, label, first["p_new_classes_holm"], ends), *every]
    aside = f" ({corrected})" if len(tests) > 1 else ""
    return [_number(first, f"{first['label']}, classes tested{aside}", first["p_holm"]), *every]


def _number(
    test: Test, label: str, p: float | None, ends: tuple[str, str] = ("low", "high")
) -> Number:
    return Number(
        label=label,
        value=test["value"],
        low=test[ends[0]],
        high=test[ends[1]],
        p_value=p,
        ideal=test["evidence"].measurement.ideal,
    )


def _wider(prob: float, tests: int) -> float:
    """How much wider intervals are that hold for all tests at once (Bonferroni, normal).

    >>> round(_wider(0.95, 6), 3), _wider(0.95, 1)
    (1.346, 1.0)
    """
    ends = [NormalDist().inv_cdf(1 - (1 - prob) / 2 / number) for number in (tests, 1)]
    return ends[0] / ends[1]


def _or_one(p: float | None) -> float:
    return 1.0 if p is None or math.isnan(p) else float(p)


# ------------------------------------------------------------------------ the verdicts of an audit


def verdicts(findings: Findings) -> tuple[Verdict, ...]:
    """The verdicts on all subjects, as far as they were audited."""
    return tuple(verdict for subject in SUBJECTS for verdict in judge_subject(findings, subject))  # type: ignore[arg-type]


def judge_subject(findings: Findings, subject: Subject) -> list[Verdict]:
    """The verdicts on one subject of an audit, on vectors and some models one per topic."""
    from evenhand.report.fewshot import read_networks
    from evenhand.report.posterior import posterior_numbers

    name = str(findings.subjects.get(subject, {}).get("name", ""))
    if subject == "classifier":
        name = f"few-shot on {findings.model.get('name', 'the model')}"
    if subject in BY_TOPIC:
        return _judge_by_topic(findings, subject, name)
    judged = []
    for topic in [t.name for t in findings.topics] if subject == "vectors" else [None]:
        stages = [s for s in findings.stages if s.subject == subject and s.topic == topic]
        measuring = [stage for stage in stages if stage.measures]
        more = posterior_numbers(findings, topic) if topic else ()
        title = topic or "gender"
        if subject == "predictions":
            title = ", ".join(findings.subjects.get(subject, {}).get("groups", ())) or title
        if measuring:
            judged.append(
                judge(
                    subject,
                    [m for stage in measuring for m in stage.measurements],
                    name=name,
                    topic=title,
                    others=[
                        m
                        for s in findings.stages
                        if s.subject == subject and s.measures and s.topic not in (None, topic)
                        for m in s.measurements
                    ],
                    more=more,
                    reason=_reason(measuring),
                    after=best_mitigation(read_networks(findings))
                    if subject == "classifier"
                    else "",
                )
            )
        elif stages and topic:
            sentence = prose.left_out(part=subject, numbers=bool(more))
            judged.append(_not_measured(subject, name, title, sentence, more))
    return judged


def _judge_by_topic(findings: Findings, subject: Subject, name: str) -> list[Verdict]:
    """The verdicts on a model, one for each topic that its tests are about."""
    stages = [stage for stage in findings.stages if stage.subject == subject and stage.measures]
    if not stages:
        return []
    by_topic: dict[str, list[Measurement]] = {}
    for m in (m for stage in stages for m in stage.measurements):
        if list(_tests([m])):
            by_topic.setdefault(m.details.get("topic") or "gender", []).append(m)
    return [
        judge(
            subject,
            measured,
            name=name,
            topic=topic,
            others=[m for other, ms in by_topic.items() if other != topic for m in ms],
            reason=_reason(stages),
        )
        for topic, measured in sorted((by_topic or {"gender": []}).items(), key=_topic_order)
    ]


def _topic_order(item: tuple[str, Any]) -> tuple[bool, str]:
    return item[0] != "gender", item[0]


def _not_measured(
    subject: Subject, name: str, topic: str, sentence: str, numbers: Sequence[Number] = ()
) -> Verdict:
    return Verdict(
        subject=subject,
        name=name,
        topic=topic,
        level="not measured",
        sentence=sentence,
        numbers=tuple(numbers),
    )


def _reason(stages: Sequence[StageResult]) -> str:
    """Why nothing was measured: a failure, or what an instrument that decides lacked."""
    failed = [stage.failed for stage in stages if stage.failed]
    skips = [skip for stage in stages for skip in stage.skipped]
    deciding = [
        skip["reason"]
        for skip in skips
        if (instrument := find(skip["metric"])) is not None and instrument.declaration.decides
    ]
    return next(iter([*failed, *deciding, *(skip["reason"] for skip in skips)]), "")


def best_mitigation(networks: Sequence[Network]) -> str:
    """What the mitigation with the least bias left did, and its cost in accuracy.

    It is the one with the smallest mean size of the bias, by the first of its measures, over the
    networks; the numbers are those of the network that had the largest before.
    """
    tried = {
        name: [(network.changes[name][1].parts[0], network) for network in networks]
        for name in (networks[0].changes if networks else ())
        if all(name in network.changes for network in networks)
    }
    sizes = {
        name: sum(abs(change.after.value) for change, _ in changes)
        for name, changes in tried.items()
    }
    sizes = {name: size for name, size in sizes.items() if not math.isnan(size)}
    if not sizes:
        return ""
    best = min(sorted(sizes), key=lambda name: sizes[name])
    change, network = max(tried[best], key=lambda pair: abs(pair[0].before.value))
    return prose.best_mitigation(
        best=best,
        tried=len(sizes),
        network=network.name,
        change=change,
        cost=network.changes[best][0].change,
    )


def rules(findings: Findings) -> list[tuple[str, list[str]]]:
    """The rules of the verdicts that an audit has, as sentences, by what was judged."""
    judged = {verdict.subject for verdict in findings.verdicts}
    return [(title, explain(subject)) for subject, title in SUBJECTS.items() if subject in judged]


def explain(subject: str) -> list[str]:
    """The rules of one subject as sentences."""
    measured_as = _measured_as(subject)
    declared = [about for about in all_declarations([measured_as]) if about.audits(measured_as)]
    return prose.lines(
        f"rules_{subject}",
        strong=STRONG,
        some=SOME,
        required=[about.label for about in declared if about.required],
        deciding=[about.label for about in declared if about.decides],
        confirming=[about.label for about in declared if about.confirms],
        counted=[about for about in declared if about.minimum],
        power=POWER,
    )
