"""Verdicts: how strong the evidence of bias is, by rules that are data and one engine.

Which instruments decide, which only confirm, and the sign of a value that agrees with the
stereotype are in the instruments' declarations. `RULES` has for each subject the conditions of
strong and of some evidence; `judge` applies them. A verdict is computed once, by the audit, and
saved; pages, cards and comparisons read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from statistics import NormalDist
from typing import TYPE_CHECKING, Any, Literal

from evenhand.instruments import find
from evenhand.report.blocks import Prose
from evenhand.report.methods import label_of
from evenhand.results import Comparison, Measurement
from evenhand.statistics.tests import holm

if TYPE_CHECKING:
    from evenhand.report.fewshot import Network
    from evenhand.report.findings import Findings

Subject = Literal["data", "vectors", "model", "classifier"]
SUBJECTS: Mapping[str, str] = {
    "data": "The data",
    "vectors": "Word vectors",
    "model": "Masked language model",
    "classifier": "Few-shot classifiers",
}
"""What is judged, in the order of reading."""

Level = Literal["strong evidence", "some evidence", "none found", "not measured"]
Test = dict[str, Any]
"""A deciding test: label, metric, query, value, low, high, p-values and their Holm corrections,
and whether the value goes towards the stereotype."""

STRONG, SOME = 0.01, 0.05

prose = Prose("verdicts")


@dataclass(frozen=True, slots=True, kw_only=True)
class Condition:
    """At least `count` tests with each of these p-values below its threshold.

    Parameters
    ----------
    p : Mapping of str to float
        The p-values by name, each with its threshold.
    metric : str
        Only tests of this instrument; without it, of all.
    confirming : bool
        Whether the tests are those of instruments that confirm, not of those that decide.
    towards : bool
        Whether the value must go towards the stereotype.
    excludes_ideal : bool
        Whether the interval must exclude the ideal value.
    count : int

    """

    p: Mapping[str, float]
    metric: str = ""
    confirming: bool = False
    towards: bool = False
    excludes_ideal: bool = False
    count: int = 1

    def meets(self, test: Test) -> bool:
        """Whether one test counts."""
        return (
            self.metric in ("", test["metric"])
            and all(test[name] < below for name, below in self.p.items())
            and (not self.towards or test["towards_stereotype"])
            and (not self.excludes_ideal or not test["low"] <= test["ideal"] <= test["high"])
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Rules:
    """The conditions of the evidence on one subject; all of `strong` must hold.

    Parameters
    ----------
    strong, some : tuple of Condition
    corrected : tuple of str
        The p-values that Holm's method corrects over all deciding tests.
    lead : str
        The instrument without which there is no verdict.
    minimum : Mapping of str to int
        Items without which the result of an instrument does not count.

    """

    strong: tuple[Condition, ...]
    some: tuple[Condition, ...] = (Condition(p={"p_holm": SOME}),)
    corrected: tuple[str, ...] = ("p_value",)
    lead: str = ""
    minimum: Mapping[str, int] = field(default_factory=dict)


RULES: Mapping[str, Rules] = {
    "data": Rules(strong=(Condition(p={"p_holm": STRONG}),)),
    "vectors": Rules(
        lead="association",
        strong=(
            Condition(
                metric="association", p={"p_value": STRONG}, towards=True, excludes_ideal=True
            ),
            Condition(confirming=True, p={"p_value": STRONG}, towards=True),
        ),
    ),
    "model": Rules(
        minimum={"pronouns": 20},
        strong=(
            Condition(metric="pronouns", p={"p_value": STRONG}, excludes_ideal=True),
            Condition(metric="professions", p={"p_value": STRONG}, towards=True),
        ),
    ),
    "classifier": Rules(
        corrected=("p_value", "p_new_classes"),
        strong=(
            Condition(p={"p_holm": STRONG}, towards=True, count=2),
            Condition(p={"p_holm": STRONG, "p_new_classes_holm": SOME}, towards=True),
        ),
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Verdict:
    """The level of evidence, the sentence that says it, and the numbers behind it.

    `name` is what was judged, such as glove. `tests` has each deciding test with its p-value and
    the corrected one; `confirmed_by` names the measures that agree; `cannot_mean` says what "none
    found" does not mean.
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

    def to_dict(self) -> dict[str, Any]:
        row = {name: getattr(self, name) for name in self.__slots__ if name != "level"}
        row["numbers"] = [number.to_dict() for number in self.numbers]
        return {**row, "verdict": self.level}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Verdict:
        fields = {name: value for name, value in row.items() if name != "verdict"}
        fields["numbers"] = tuple(map(Number.from_dict, row["numbers"]))
        fields["tests"], fields["confirmed_by"] = tuple(row["tests"]), tuple(row["confirmed_by"])
        return cls(level=row["verdict"], **fields)


# ------------------------------------------------------------------------------------ the engine


def correct(tests: Sequence[Test], names: Iterable[str] = ("p_value",)) -> None:
    """Add the p-values corrected by Holm's method over all tests; an unknown p counts as 1."""
    for name in names:
        corrected = holm([_or_one(test[name]) for test in tests])
        key = "p_holm" if name == "p_value" else f"{name}_holm"
        for test, p in zip(tests, corrected, strict=True):
            test[key] = p


def judge(rules: Rules, tests: Sequence[Test], confirming: Sequence[Test] = ()) -> Level:
    """The level of the evidence: the one engine behind all verdicts."""

    def hold(conditions: Sequence[Condition]) -> bool:
        return all(
            sum(map(each.meets, confirming if each.confirming else tests)) >= each.count
            for each in conditions
        )

    if hold(rules.strong):
        return "strong evidence"
    return "some evidence" if hold(rules.some) else "none found"


def as_test(m: Measurement, label: str, **more: Any) -> Test:
    """A measurement as a test; the sign of the stereotype is in the instrument's declaration."""
    ideal = m.ideal or 0.0
    return {
        "label": label,
        "metric": m.metric,
        "query": m.query,
        "value": m.value,
        "low": m.low,
        "high": m.high,
        "ideal": ideal,
        "p_value": m.p_value,
        "towards_stereotype": (m.value - ideal) * _stereotype(m.metric) > 0,
        **more,
    }


def _stereotype(metric: str) -> int:
    """The sign of a value that agrees with the stereotype; without one, that of more bias."""
    instrument = find(metric)
    if instrument is None:
        return 1
    about = instrument.declaration
    return int(about.stereotype) or (-1 if about.worse == "lower" else 1)


def _roles(measurements: Iterable[Measurement], role: str) -> list[Measurement]:
    """The measurements with a p-value whose instrument has this role."""
    return [
        m
        for m in measurements
        if m.p_value is not None
        and (instrument := find(m.metric)) is not None
        and getattr(instrument.declaration, role)
    ]


def _number(m: Measurement, label: str, p: float | None = None) -> Number:
    return Number(
        label=label,
        value=m.value,
        low=m.low,
        high=m.high,
        p_value=m.p_value if p is None else p,
        ideal=m.ideal,
    )


# --------------------------------------------------------------------------- what was found, judged


def verdicts(findings: Findings) -> tuple[Verdict, ...]:
    """The verdicts on the data, the vectors, the model and the classifiers, as far as audited."""
    from evenhand.report.posterior import posterior_numbers

    judged = judge_data(findings)
    parts = findings.settings["parts"]
    if findings.vectors is not None:
        name = str(findings.vectors["name"])
        for topic in findings.topics:
            more = posterior_numbers(findings, topic.name)
            if "vectors" in parts:
                measured = findings.measured("measures", topic.name)
                judged.append(judge_vectors(topic.name, measured, name=name, more=more))
            elif findings.of("posterior", topic.name):
                sentence = prose.vectors_skipped(numbers=bool(more))
                judged.append(_not_measured("vectors", name, topic.name, sentence, more))
    return (*judged, *judge_model(findings), *judge_classifiers(findings))


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


def _reason(findings: Findings, *kinds: str, default: str = "") -> str:
    """Why nothing was measured."""
    reasons = [
        stage.failed or skip.get("reason", "")
        for kind in kinds
        for stage in findings.of(kind)
        for skip in stage.skipped or ({},)
    ]
    return next((reason for reason in reasons if reason), default)


def judge_vectors(
    topic: str, measurements: Sequence[Measurement], *, name: str = "", more: Sequence[Number] = ()
) -> Verdict:
    """The verdict on word vectors on one topic; `more` are further numbers to show beside it."""
    rules = RULES["vectors"]
    lead = next((m for m in measurements if m.metric == rules.lead), None)
    if lead is None or lead.p_value is None:
        return _not_measured("vectors", name, topic, prose.vectors_not_measured(), more)
    tests = [as_test(m, label_of(m, topic)) for m in _roles(measurements, "decides")]
    correct(tests)
    confirming = [as_test(m, label_of(m.metric)) for m in _roles(measurements, "confirms")]
    level = judge(rules, tests, confirming)
    holding = [test for test in tests if test["p_holm"] < SOME]
    agreeing = [
        test["label"]
        for test in confirming
        if test["p_value"] < STRONG and test["towards_stereotype"]
    ]
    return Verdict(
        subject="vectors",
        name=name,
        topic=topic,
        level=level,
        sentence=prose.vectors(level=level, lead=lead, holding=holding),
        numbers=(_number(lead, label_of(lead.metric)), *more),
        tests=tuple(tests),
        confirmed_by=tuple(dict.fromkeys(agreeing)),
        cannot_mean=prose.cannot_mean_vectors(),
    )


def judge_data(findings: Findings) -> list[Verdict]:
    """The verdict on the data: do its classes lean to one gender?"""
    if not findings.of("odds"):
        return []
    name = str(findings.subjects.get("data", {}).get("name", ""))
    rows = odds_of(findings)
    if not rows:
        sentence = prose.data_not_measured(_reason(findings, "odds"))
        return [_not_measured("data", name, "gender", sentence)]
    tests = {m.query: as_test(m, f"Odds ratio, {m.query}") for m in rows}
    correct(list(tests.values()))
    leaning = sorted(
        (m for m in rows if tests[m.query]["p_holm"] < SOME), key=lambda m: tests[m.query]["p_holm"]
    )
    shown = _ends(leaning or rows)
    sides = {
        "men": [m for m in leaning if m.value > 1],
        "women": [m for m in leaning if m.value < 1],
    }
    most = {
        side: max(found, key=lambda m: abs(math.log(m.value)))
        for side, found in sides.items()
        if found
    }
    return [
        Verdict(
            subject="data",
            name=name,
            topic="gender",
            level=judge(RULES["data"], list(tests.values())),
            sentence=prose.data(rows=rows, leaning=leaning, sides=sides, most=most),
            numbers=tuple(
                _number(m, f"Odds ratio of '{m.query}' (p corrected)", tests[m.query]["p_holm"])
                for m in shown
            ),
            tests=tuple(tests[m.query] for m in shown),
            cannot_mean=prose.cannot_mean_data(),
        )
    ]


def odds_of(findings: Findings) -> list[Measurement]:
    """The odds ratios of the classes."""
    return [part for m in findings.measured("odds") for part in (m.select("class") or (m,))]


def _ends(rows: Sequence[Measurement], each: int = 2) -> list[Measurement]:
    """Those that lean most to either side, the most male first."""
    ordered = sorted(rows, key=lambda m: -m.value)
    return [
        *[m for m in ordered if m.value > 1][:each],
        *[m for m in ordered if m.value < 1][-each:],
    ]


def judge_model(findings: Findings) -> list[Verdict]:
    """The verdict on a masked language model, from its pronouns, professions and phrases."""
    kinds = ("pronouns", "professions", "phrases")
    if not any(findings.of(kind) for kind in kinds):
        return []
    name = str(findings.subjects.get("model", {}).get("name", ""))
    deciding = deciding_of_model(findings)
    if not deciding:
        few = prose.model_few(RULES["model"].minimum["pronouns"])
        sentence = prose.model_not_measured(_reason(findings, *kinds, default=few))
        return [_not_measured("model", name, "gender", sentence)]
    tests = [as_test(m, prose.model_label(m=m)) for m in deciding]
    correct(tests)
    level = judge(RULES["model"], tests)
    holding = [test for test in tests if test["p_holm"] < SOME]
    by_metric = {m.metric: m for m in reversed(deciding)}
    return [
        Verdict(
            subject="model",
            name=name,
            topic="gender",
            level=level,
            sentence=prose.model(
                level=level,
                pronouns=by_metric.get("pronouns"),
                professions=by_metric.get("professions"),
                holding=holding,
                missing=[kind for kind in kinds if kind not in by_metric],
            ),
            numbers=tuple(
                _number(m, test["label"]) for m, test in zip(deciding, tests, strict=True)
            ),
            tests=tuple(tests),
            confirmed_by=tuple(
                test["label"]
                for test in holding
                if test["metric"] == "phrases" and test["towards_stereotype"]
            ),
            cannot_mean=prose.cannot_mean_model(),
        )
    ]


def deciding_of_model(findings: Findings) -> list[Measurement]:
    """The score on the built-in sentences, the contrast of professions, and the centred phrases.

    Sentences of the data do not decide, nor do raw embeddings and neutral phrases.
    """
    minimum = RULES["model"].minimum
    pronouns = [m for m in findings.measured("pronouns") if m.query == "built-in sentences"]
    professions = [
        part
        for m in findings.measured("professions")
        for part in (m, *m.parts)
        if part.query == "male-leaning - female-leaning professions"
    ]
    phrases = [
        m
        for m in findings.measured("phrases")
        if m.metric == "phrases" and not m.details["neutral"]
    ]
    return [
        m
        for m in (*pronouns[:1], *professions[:1], *phrases)
        if m.p_value is not None and m.n >= minimum.get(m.metric, 1)
    ]


# ------------------------------------------------------------------------------------- classifiers

LEAD = "association"
FEWSHOT = {LEAD: "Association", "epsilon": "Accuracy gap"}
"""The measures of few-shot bias that decide."""


def judge_classifiers(findings: Findings) -> list[Verdict]:
    """The verdict on few-shot classifiers, from all networks without mitigation together.

    The p that decides is that of chance in the classes tested; the p for new classes is that of
    the interval.
    """
    from evenhand.report.fewshot import read_networks

    if not findings.of("fewshot"):
        return []
    name = f"few-shot on {findings.subjects.get('model', {}).get('name', 'the model')}"
    networks = read_networks(findings)
    tests = _fewshot_tests(networks)
    if not tests:
        sentence = prose.classifier_not_measured(_reason(findings, "fewshot"))
        return [_not_measured("classifier", name, "gender", sentence)]
    rules = RULES["classifier"]
    level = judge(rules, tests)
    strong = [test for test in tests if rules.strong[0].meets(test)]
    lasting = [test for test in tests if rules.strong[1].meets(test)]
    shown = _carrier(level, lasting if level == "strong evidence" else tests)
    tested = max(network.bias.part(LEAD).details["classes"] for network in networks)
    sentence = prose.classifier(
        level=level,
        classes=tested,
        shown=shown,
        labels=FEWSHOT,
        some=[test for test in tests if test["p_holm"] < SOME],
        strong=strong,
    )
    if level != "none found" and (more := best_mitigation(networks)):
        sentence = f"{sentence} {more}"
    return [
        Verdict(
            subject="classifier",
            name=name,
            topic="gender",
            level=level,
            sentence=sentence,
            numbers=tuple(_fewshot_numbers(level, shown, tests)),
            tests=tuple(tests),
            confirmed_by=tuple(test["label"] for test in strong),
            cannot_mean=prose.cannot_mean_classifier(),
        )
    ]


def _fewshot_tests(networks: Sequence[Network]) -> list[Test]:
    """Each deciding measure of each network, with intervals for other texts and for new classes.

    The interval for other texts of the classes tested is the value and to either side what chance
    gives, widened for the number of tests (Bonferroni, normal).
    """
    measured = [
        (network.name, m)
        for network in networks
        for m in map(network.bias.part, FEWSHOT)
        if _known(m.value) and _known(m.details["null_p"])
    ]
    tests: list[Test] = []
    for name, m in measured:
        margin = m.details["null_high"] * _wider(m.prob, len(measured))
        tests.append(
            {
                "label": f"{FEWSHOT[m.query]}, {name}",
                "metric": m.query,
                "query": name,
                "value": m.value,
                "low": m.value - margin,
                "high": m.value + margin,
                "ideal": 0.0,
                "p_value": m.details["null_p"],
                "towards_stereotype": m.value > 0,
                "low_new_classes": m.low,
                "high_new_classes": m.high,
                "p_new_classes": m.p_value,
            }
        )
    correct(tests, RULES["classifier"].corrected)
    return tests


def _wider(prob: float, tests: int) -> float:
    """How much wider intervals are that hold for all tests at once (Bonferroni, normal).

    >>> round(_wider(0.95, 6), 3), _wider(0.95, 1)
    (1.346, 1.0)
    """
    ends = [NormalDist().inv_cdf(1 - (1 - prob) / 2 / number) for number in (tests, 1)]
    return ends[0] / ends[1]


def _carrier(level: Level, tests: Sequence[Test]) -> Test:
    """The test with the strongest evidence for the question that the level depends on."""
    keys = ["p_holm", "p_value", "p_new_classes"]
    if level == "strong evidence":
        keys = [*keys[2:], *keys[:2]]
    return min(tests, key=lambda test: [_or_one(test[key]) for key in keys])


def _fewshot_numbers(level: Level, shown: Test, tests: Sequence[Test]) -> list[Number]:
    """The number behind the verdict, then all measures with what holds for new classes."""
    if level == "strong evidence":
        text = f"new classes (p corrected for {len(tests)} tests)"
        first = _fewshot_number(shown, text, new=True, p=shown["p_new_classes_holm"])
        return [first, *(_new(test) for test in tests if test is not shown)]
    aside = f" (corrected for {len(tests)} tests)" if len(tests) > 1 else ""
    first = _fewshot_number(shown, f"classes tested{aside}", new=False, p=shown["p_holm"])
    return [first, *map(_new, tests)]


def _new(test: Test) -> Number:
    return _fewshot_number(test, "new classes", new=True, p=test["p_new_classes"])


def _fewshot_number(test: Test, text: str, *, new: bool, p: float | None) -> Number:
    end = "_new_classes" if new else ""
    return Number(
        label=f"{test['label']}, {text}",
        value=test["value"],
        low=test[f"low{end}"],
        high=test[f"high{end}"],
        p_value=p,
        ideal=0,
    )


def best_mitigation(networks: Sequence[Network]) -> str:
    """What the mitigation with the least association left did, and its cost in accuracy.

    It is the one with the smallest mean size of the association over the networks; the numbers
    are those of the network that had the largest before.
    """
    shared = [set(network.changes) for network in networks]
    names = set.intersection(*shared) if shared else set()

    def change(network: Network, name: str) -> Comparison:
        return network.changes[name][1].part(LEAD)

    sizes = {
        name: sum(abs(change(network, name).after.value) for network in networks) for name in names
    }
    left = {name: size for name, size in sizes.items() if _known(size)}
    if not left:
        return ""
    best = min(sorted(left), key=lambda name: left[name])
    network = max(networks, key=lambda network: abs(change(network, best).before.value))
    return prose.best_mitigation(
        best=best,
        tried=len(left),
        network=network.name,
        change=change(network, best),
        cost=network.changes[best][0].change,
    )


def _known(value: Any) -> bool:
    return value is not None and value == value


def _or_one(p: Any) -> float:
    return float(p) if _known(p) else 1.0


def rules(findings: Findings) -> list[tuple[str, list[str]]]:
    """The rules of the verdicts that an audit has, as sentences, by what was judged."""
    judged = {verdict.subject for verdict in findings.verdicts}
    given = {"strong": STRONG, "some": SOME, "minimum": RULES["model"].minimum["pronouns"]}
    return [
        (title, prose.lines(f"rules_{subject}", **given))
        for subject, title in SUBJECTS.items()
        if subject in judged
    ]
