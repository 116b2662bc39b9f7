"""Verdicts: how strong the evidence of bias on a subject is, in words.

The judge decides (`evenhand.judging`): which tests found something, and the level of all of them
together. What an instrument contributes is in its own file: its role, the sign of a value that
agrees with the stereotype, which of its results are tests and what they mean (`Evidence`). A
verdict is made once, by the audit, and saved; pages, cards and comparisons read it.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any, Literal, Self

from evenhand.arguments import check_fields
from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.instruments import Declaration, Tested, all_declarations, find, tests_of
from evenhand.instruments import judge_results as judge_tests
from evenhand.judging import RULES, SOME, STRONG, Judgement, Level, find_level
from evenhand.report.blocks import Prose
from evenhand.report.methods import label_of
from evenhand.results import Comparison, Measurement
from evenhand.statistics.power import items_needed
from evenhand.statistics.sizes import SIZES

if TYPE_CHECKING:
    from evenhand.report.findings import Findings, StageResult

Subject = Literal[
    "corpus", "vectors", "masked", "causal", "encoder", "answers", "fewshot", "predictions"
]
SUBJECTS: Mapping[str, str] = {
    "corpus": "The data",
    "vectors": "Word vectors",
    "masked": "Masked language model",
    "causal": "Causal language model",
    "encoder": "Sentence encoder",
    "answers": "What the model writes",
    "fewshot": "Few-shot classifiers",
    "predictions": "Your classifier",
}
"""The subjects of verdicts, in the order of reading."""
BY_TOPIC = ("causal", "encoder")
"""Models that are judged on each topic that a test is about."""
SENTENCES = {
    "corpus": "leanings",
    "vectors": "found",
    "masked": "found",
    "causal": "associations",
    "encoder": "associations",
    "answers": "associations",
    "predictions": "associations",
    "fewshot": "found_in_classes",
}
"""The name of the text that says what was found."""
ENDS = 2
"""The number of classes of data shown on either side of the ideal."""

prose = Prose("verdicts")


class _Saved:
    """Numbers as they are saved: by name, an unknown value or end as null."""

    __slots__: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        ends = {"value": math.nan, "low": -math.inf, "high": math.inf}
        known = {name: end if row[name] is None else row[name] for name, end in ends.items()}
        saved = cls(**{**row, **known})
        check_fields(saved)
        if (draws := row.get("draws")) is not None and draws < 0:
            raise InputError(f"draws: expected a number of 0 or more, got {draws!r}")
        return saved


@dataclass(frozen=True, slots=True, kw_only=True)
class VerdictTest(_Saved):
    """A test behind a verdict: its numbers, what the judge says of it, and what it means.

    `low` and `high` are the interval that decides, `p` the p-value corrected for `family` tests.
    Where a wider population decides, `low_tested`, `high_tested` and `p_tested` are about what was
    tested, and `in_tested` says whether it would be found there. `size` and its ends are on the
    scale of `evenhand.statistics.sizes`, above 0 towards the stereotype; beyond `ruled_out` (a
    distance from the ideal, or a ratio) a bias is ruled out. `n` counts what `unit` names, and
    with about `needed` of them the interval would be narrow enough to find that there is none.
    """

    label: str
    metric: str
    query: str
    value: float
    low: float
    high: float
    prob: float = 0.95
    ideal: float = 0.0
    p_value: float | None = None
    p: float | None = None
    draws: float | None = None
    family: int = 1
    outcome: str = "undecided"
    strong: bool = False
    towards: bool = True
    required: bool = False
    confirms: bool = False
    low_tested: float | None = None
    high_tested: float | None = None
    p_tested: float | None = None
    in_tested: bool = False
    size: float | None = None
    size_low: float | None = None
    size_high: float | None = None
    ruled_out: float | None = None
    ratio: bool = False
    points: bool = False
    n: int = 0
    unit: str = "items"
    needed: int | None = None
    classes: int | None = None
    claim: str = ""
    quantity: str = ""
    sentence: str = ""

    @property
    def found(self) -> bool:
        """Whether it found bias."""
        return self.outcome == "found"


OF_TEST = ("metric", "query", "value", "prob", "towards", "required", "confirms", "ratio", "n")
OF_JUDGEMENT = (
    *("low", "high", "p", "draws", "family", "outcome", "strong", "p_tested", "in_tested"),
    *("size", "size_low", "size_high", "ruled_out"),
)
OF_EVIDENCE = ("points", "claim", "quantity", "sentence")


def verdict_test(tested: Tested, judgement: Judgement, topic: str = "") -> VerdictTest:
    """A test as a verdict shows it."""
    test, evidence = tested.test, tested.evidence
    known = {
        name: getattr(given, name)
        for given, names in ((test, OF_TEST), (judgement, OF_JUDGEMENT), (evidence, OF_EVIDENCE))
        for name in names
    }
    low, high = (test.low, test.high) if test.general is not None else (None, None)
    about = evidence.measurement.details
    if about.get("units"):  # several answers to one prompt count once
        known["n"] = int(about["units"])
    return VerdictTest(
        **known,
        label=evidence.label or label_of(evidence.measurement, topic),
        ideal=test.ideal or 0.0,
        p_value=test.deciding_p,
        low_tested=low,
        high_tested=high,
        unit=about.get("unit") or (tested.about.unit if tested.about is not None else "items"),
        needed=_needed(judgement, known["n"]),
        classes=about.get("classes"),
    )


def _needed(judgement: Judgement, n: int) -> int | None:
    """About how many items would narrow the interval to what counts as none found."""
    low, high = judgement.size_low, judgement.size_high
    if low is None or high is None or not math.isfinite(high - low) or not n:
        return None
    return items_needed(n, (high - low) / 2, SIZES["small"])


@dataclass(frozen=True, slots=True, kw_only=True)
class Number(_Saved):
    """A number behind a verdict, with its interval."""

    label: str
    value: float
    low: float
    high: float
    p_value: float | None = None
    draws: float | None = None
    ideal: float | None = None

    @classmethod
    def of(cls, result: Measurement | VerdictTest, label: str) -> Number:
        """The number of a result, with its corrected p-value."""
        names = ("value", "low", "high", "draws", "ideal")
        values = {name: getattr(result, name) for name in names}
        return cls(label=label, p_value=result.p, **values)


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class Verdict(Result):
    """The level of evidence, its sentence, and the numbers it is based on.

    `name` is what was judged, such as glove. `tests` has each deciding test with what the judge
    says of it; `confirmed_by` names the measures that agree; `cannot_mean` says what "none found"
    does not mean. `claim` is the sentence in a few words, after the name; `size` the test whose
    size stands for the finding (`find_size`).
    """

    subject: Subject
    name: str
    topic: str
    level: Level
    sentence: str
    numbers: tuple[Number, ...] = ()
    tests: tuple[VerdictTest, ...] = ()
    confirmed_by: tuple[str, ...] = ()
    cannot_mean: str = ""
    claim: str = ""
    size: VerdictTest | None = None

    @property
    def found(self) -> bool:
        """Whether there is evidence of bias."""
        return self.level in ("strong evidence", "some evidence")

    def to_dict(self) -> dict[str, Any]:
        row = asdict(self)
        level = row.pop("level")
        listed = {name: list(row[name]) for name in ("numbers", "tests")}
        return {**row, **listed, "verdict": level}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Verdict:
        fields = {name: value for name, value in row.items() if name != "verdict"}
        fields["numbers"] = tuple(map(Number.from_dict, row["numbers"]))
        fields["tests"] = tuple(map(VerdictTest.from_dict, row["tests"]))
        fields["confirmed_by"] = tuple(row["confirmed_by"])
        size = row["size"]
        fields["size"] = None if size is None else VerdictTest.from_dict(size)
        verdict = cls(level=row["verdict"], **fields)
        check_fields(verdict)
        return verdict

    def _headline(self) -> str:
        return f"{self.name} {self.topic}: {self.level}: {self.sentence}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        about = {name: getattr(self, name) for name in ("subject", "name", "topic", "level")}
        numbers = [number.to_dict() for number in self.numbers] or [dict[str, Any]()]
        return [{**about, **number} for number in numbers]

    def _notes(self) -> Sequence[str]:
        return [self.cannot_mean] if self.cannot_mean else []


# ------------------------------------------------------------------------------------ the engine


def find_size(subject: str, tests: Sequence[VerdictTest]) -> VerdictTest | None:
    """The test whose size represents a finding.

    Of the tests that found something and have a size, it is that of the instrument that leads;
    without one, that with the smallest corrected p-value. Of the classes of data it is the median
    one by size (of two, the smaller).
    """
    sized = [test for test in tests if test.found and test.size is not None]
    if not sized:
        return None
    if subject == "corpus":
        return sorted(sized, key=lambda test: abs(test.size or 0.0))[(len(sized) - 1) // 2]
    leading = {about.name for about in _declared(subject) if about.role == "leads"}
    return min(sized, key=lambda t: (t.metric not in leading, _or_one(t.p), _or_one(t.p_value)))


def leads(subject: str) -> str:
    """The measure of a subject that leads its verdicts."""
    return next(about.name for about in all_declarations([subject]) if about.role == "leads")


def _declared(subject: str) -> list[Declaration]:
    """The instruments whose tests decide a verdict on the subject in an audit."""
    return [
        about for about in all_declarations([subject]) if about.decides and about.audits(subject)
    ]


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
    """The verdict on one subject.

    Parameters
    ----------
    subject : one of `SUBJECTS`
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
    measured, declared = list(results), _declared(subject)
    judged = [
        (tested, judgement)
        for tested, judgement in judge_tests(measured, others)
        if tested.test.role and tested.test.p_value is not None
    ]
    required_names = [about.name for about in declared if about.required]
    level = find_level(RULES[subject], [judgement for _, judgement in judged], required_names)
    if level == "not measured":
        few = [about for about in declared if about.minimum and measured]
        sentence = prose.not_measured(reason=reason, few=few)
        return _not_measured(subject, name, topic, sentence, more)
    tests = [verdict_test(*each, topic) for each in judged if each[0].test.decides]
    tests = [test for test in tests if test.outcome not in ("not judged", "not measured")]
    supporting = [verdict_test(*each, topic) for each in judged if not each[0].test.decides]
    holding = [test for test in tests if test.found]
    shown, confirmed = _shown(subject, tests), _confirmed(subject, [*tests, *supporting])
    size = find_size(subject, tests)
    tested_metrics = {test.metric for test in tests}
    lacking = [about.label for about in declared if about.name not in tested_metrics]
    sentence = getattr(prose, SENTENCES[subject])(
        level=level,
        tests=tests,
        required=[test for test in tests if test.required],
        holding=holding,
        shown=shown,
        confirmed=confirmed,
        missing=[] if RULES[subject].needs_lead else lacking,
    )
    found = level in ("strong evidence", "some evidence")
    return Verdict(
        subject=subject,
        name=name,
        topic=topic,
        level=level,
        sentence=f"{sentence} {after}" if after and found else sentence,
        numbers=(*_numbers(subject, shown), *more),
        tests=tuple(shown if subject == "corpus" else tests),
        confirmed_by=confirmed,
        cannot_mean=getattr(prose, f"cannot_mean_{subject}")(),
        claim=prose.claim(subject=subject, size=size, holding=holding, tests=tests)
        if found
        else "",
        size=size,
    )


def _confirmed(subject: str, tests: Sequence[VerdictTest]) -> tuple[str, ...]:
    """The measures that agree: those that can confirm, or all of few-shot runs."""
    agreeing = [test for test in tests if test.found and test.towards]
    if subject == "fewshot":
        return tuple(dict.fromkeys(test.label for test in agreeing if test.strong))
    if not RULES[subject].each_required:
        return ()
    strong = RULES[subject].agreeing > 0
    chosen = [test for test in agreeing if test.confirms and (test.strong or not strong)]
    return tuple(dict.fromkeys(test.label for test in chosen))


def _shown(subject: str, tests: Sequence[VerdictTest]) -> list[VerdictTest]:
    """The tests whose numbers are shown, that behind the verdict first."""
    if subject == "corpus":
        found = [test for test in tests if test.found]
        ordered = sorted(found or tests, key=lambda test: -test.value)
        above = [test for test in ordered if test.value > test.ideal]
        below = [test for test in ordered if test.value < test.ideal]
        return [*above[:ENDS], *below[-ENDS:]]
    if subject in ("answers", "fewshot", "predictions", *BY_TOPIC):
        keys = lambda test: (not test.found, _or_one(test.p), _or_one(test.p_tested))  # noqa: E731
        return sorted(tests, key=keys)
    return list(tests)


def _numbers(subject: str, shown: Sequence[VerdictTest]) -> list[Number]:
    """The numbers behind the verdict."""
    if RULES[subject].needs_lead:
        shown = [test for test in shown if test.required]
    aside = ", new classes" if subject == "fewshot" else ""
    return [Number.of(test, f"{test.label}{aside}") for test in shown]


def _or_one(p: float | None) -> float:
    return 1.0 if p is None or math.isnan(p) else float(p)


# ------------------------------------------------------------------------ the verdicts of an audit


def verdicts(findings: Findings) -> tuple[Verdict, ...]:
    """The verdicts on all subjects, as far as they were audited."""
    return tuple(verdict for subject in SUBJECTS for verdict in judge_subject(findings, subject))  # type: ignore[arg-type]


def judge_subject(findings: Findings, subject: Subject) -> list[Verdict]:
    """The verdicts on one subject of an audit, on vectors and some models one per topic."""
    name = str(findings.subjects.get(subject, {}).get("name", ""))
    after = ""
    if subject == "fewshot":
        name = f"few-shot on {findings.model.get('name', 'the model')}"
        after = best_mitigation(fewshot_changes(findings))
    judged = []
    groups = _by_topic(findings, subject)
    for topic, (stages, measured) in groups.items():
        more = posterior_numbers(findings, topic) if subject == "vectors" else ()
        others = [m for other, (_, ms) in groups.items() if other != topic for m in ms]
        if stages:
            judged.append(
                judge(
                    subject,
                    measured,
                    name=name,
                    topic=topic,
                    others=others,
                    more=more,
                    reason=_reason(stages),
                    after=after,
                )
            )
        elif any(stage.subject == subject and stage.topic == topic for stage in findings.stages):
            sentence = prose.left_out(part=subject, numbers=bool(more))
            judged.append(_not_measured(subject, name, topic, sentence, more))
    return judged


def _by_topic(
    findings: Findings, subject: Subject
) -> dict[str, tuple[list[StageResult], list[Measurement]]]:
    """The stages that measure a subject, and their results, by the topic that these are about."""
    stages = [stage for stage in findings.stages if stage.subject == subject and stage.measures]
    if subject == "vectors":
        own = {
            topic.name: [s for s in stages if s.topic == topic.name] for topic in findings.topics
        }
        return {topic: (each, _results(each)) for topic, each in own.items()}
    if not stages:
        return {}
    if subject not in BY_TOPIC:
        groups = findings.subjects.get(subject, {}).get("groups", ())
        return {", ".join(groups) or "gender": (stages, _results(stages))}
    by_topic: dict[str, list[Measurement]] = {}
    for m in _results(stages):
        if any(each.test.decides for each in tests_of(m)):
            by_topic.setdefault(m.details.get("topic") or "gender", []).append(m)
    ordered = sorted(by_topic, key=lambda topic: (topic != "gender", topic)) or ["gender"]
    return {topic: (stages, by_topic.get(topic, [])) for topic in ordered}


def _results(stages: Iterable[StageResult]) -> list[Measurement]:
    return [m for stage in stages for m in stage.measurements]


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


Changes = Mapping[str, Mapping[str, tuple[Comparison, Comparison]]]
"""What mitigations changed, by network and mitigation: the accuracy, and the bias."""


def fewshot_changes(findings: Findings) -> Changes:
    """What each mitigation of few-shot classifiers changed."""
    return {
        stage.details["network"]: {
            c.details["mitigation"]: (accuracy, c)
            for accuracy in stage.comparisons
            for c in stage.comparisons
            if (accuracy.details["role"], c.details["role"]) == ("performance", "bias")
            and accuracy.details["mitigation"] == c.details["mitigation"]
        }
        for stage in findings.of("fewshot")
        if stage.measurements
    }


def find_mitigation(networks: Changes) -> dict[str, Any] | None:
    """The mitigation with the least bias left, what it did, and its cost in accuracy.

    It is the one with the smallest mean size of the bias, by the first of its measures, over the
    networks; the numbers are those of the network that had the largest before.
    """
    tried = {
        name: [(own[name][1].parts[0], network) for network, own in networks.items()]
        for name in next(iter(networks.values()), {})
        if all(name in own for own in networks.values())
    }
    sizes = {
        name: sum(abs(change.after.value) for change, _ in changes)
        for name, changes in tried.items()
    }
    sizes = {name: size for name, size in sizes.items() if not math.isnan(size)}
    if not sizes:
        return None
    best = min(sorted(sizes), key=lambda name: sizes[name])
    change, network = max(tried[best], key=lambda pair: abs(pair[0].before.value))
    cost = networks[network][best][0].change
    return {"best": best, "tried": len(sizes), "network": network, "change": change, "cost": cost}


def best_mitigation(networks: Changes) -> str:
    """What the mitigation with the least bias left did, in a sentence."""
    found = find_mitigation(networks)
    return prose.best_mitigation(**found) if found else ""


RHAT, ESS = 1.01, 400
"""Draws with a larger R-hat, or with fewer effective draws, are not reliable."""


def doubts(stage: StageResult, *names: str) -> list[str]:
    """Which draws of a posterior are not reliable, and why; a missing number is a doubt."""
    diagnostics = stage.details["diagnostics"]
    return [
        prose.doubt(name=name, found=diagnostics[name], rhat=RHAT, ess=ESS)
        for name in names
        if name in diagnostics
        and not (
            (diagnostics[name]["rhat_max"] or 9) <= RHAT
            and (diagnostics[name]["ess_min"] or 0) >= ESS
        )
    ]


def posterior_numbers(findings: Findings, topic: str) -> tuple[Number, ...]:
    """The contrast to show with a verdict; none where its draws are not reliable."""
    stage = next((s for s in findings.of("posterior", topic) if s.measurements), None)
    if stage is None or doubts(stage, "the difference"):
        return ()
    m = next(
        m
        for m in stage.measurements
        if m.query == "associated-different" and m.details.get("model") == "crossed"
    )
    label = prose.number_label(delta=m)
    return (Number(label=label, value=m.value, low=m.low, high=m.high, ideal=0.0),)


def rules(findings: Findings) -> list[tuple[str, list[str]]]:
    """The rules of the verdicts that an audit has, as sentences, by what was judged."""
    judged = {verdict.subject for verdict in findings.verdicts}
    return [(title, explain(subject)) for subject, title in SUBJECTS.items() if subject in judged]


def explain(subject: str) -> list[str]:
    """The rules of one subject as sentences."""
    declared = [about for about in all_declarations([subject]) if about.audits(subject)]
    return prose.lines(
        f"rules_{subject}",
        strong=STRONG,
        some=SOME,
        required=[about.label for about in declared if about.required],
        deciding=[about.label for about in declared if about.decides],
        confirming=[about.label for about in declared if about.confirms],
        counted=[about for about in declared if about.minimum],
    )
