"""The answer of an audit: what was found, how large and how sure, what helped, what to do.

It is chosen from the verdicts and stages by rules that were written down before
(docs/concepts/sizes.md, docs/guides/audit.md); nothing is computed here. The page, the brief, the
terminal and Python (`Audit.answer`) show the same answer.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

from evenhand.charts import BLUE, GREY, forest
from evenhand.instruments import LANGUAGE, all_declarations, find
from evenhand.judging import Level, excludes
from evenhand.report.blocks import Figure, Prose, Text
from evenhand.report.methods import label_of, method
from evenhand.report.verdicts import SUBJECTS, Verdict, VerdictTest
from evenhand.results import Comparison, Measurement
from evenhand.statistics.sizes import SIZES, name_size

if TYPE_CHECKING:
    from evenhand.report.findings import Findings, StageResult

ORDER = ("predictions", "model", "causal", "classifier", "encoder", "vectors", "data")
"""What is said first: what a system does before how it represents words, and data last."""
LEVELS: tuple[Level, ...] = (
    "strong evidence",
    "some evidence",
    "undecided",
    "none found",
    "not measured",
)
FOUND = LEVELS[:2]
SIMULATED = ("data", "classifier")
"""What simulated data make simulated: the data, and the classifiers trained on them."""
RECOVERY = "recovery_linear"
"""The test of what a mitigation of vectors has left."""
COSTS = ("neighbour_overlap",)
"""What the cost of debiasing is said by: the share of a word's neighbours that stay."""

prose = Prose("answer")


@dataclass(frozen=True, slots=True, kw_only=True)
class Finding:
    """One row of the answer: a subject and topic, what was found, how large, how sure, and how.

    `size` is small, medium or large on the scale of `evenhand.statistics.sizes`, `d` its number
    with an interval, `at_least` the size of the end that is nearer to 0; they are empty
    where nothing was found, and `ruled_out` then says what the intervals rule out. `simulated` says
    that it is about simulated data.
    """

    subject: str
    title: str
    name: str
    topic: str
    level: Level
    sentence: str
    size: str = ""
    at_least: str = ""
    d: float | None = None
    low: float | None = None
    high: float | None = None
    certainty: str = ""
    how: str = ""
    ruled_out: str = ""
    simulated: bool = False

    @property
    def found(self) -> bool:
        """Whether there is evidence of bias."""
        return self.level in FOUND


@dataclass(frozen=True, slots=True, kw_only=True)
class Example:
    """The most telling item of the finding that is said first."""

    text: str
    readings: tuple[tuple[str, str, float | None], ...]
    name: str
    topic: str
    measure: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Remedy:
    """A mitigation that was tried: the best of its kind, what it changed and what it cost."""

    subject: str
    topic: str
    method: str
    helped: bool
    sentence: str
    cost: str
    left: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Action:
    """What can be done about a finding or an open question, and the command that does it."""

    about: str
    text: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """What an audit found, in the order of reading.

    `str(answer)` is the first screen as plain text; `to_dict` is part of results.json.
    """

    headline: str
    lead: str
    notices: tuple[str, ...]
    findings: tuple[Finding, ...]
    example: Example | None
    remedies: tuple[Remedy, ...]
    actions: tuple[Action, ...]

    @property
    def not_found(self) -> tuple[Finding, ...]:
        """The checks that found nothing, each with what its intervals rule out."""
        return tuple(row for row in self.findings if row.level in ("undecided", "none found"))

    def to_dict(self) -> dict[str, Any]:
        """The answer as plain JSON values."""
        return asdict(self)

    def lines(self) -> list[str]:
        """The first screen as plain text: one line per paragraph, without layout."""
        return prose.lines("text", answer=self)

    def __str__(self) -> str:
        return "\n".join(self.lines())


def build_answer(findings: Findings) -> Answer:
    """The answer of an audit."""
    simulated = is_simulated(findings)
    ranked = sorted(
        findings.verdicts,
        key=lambda v: (
            LEVELS.index(v.level),
            simulated and v.subject in SIMULATED,
            ORDER.index(v.subject),
            -abs((v.size and v.size.size) or 0.0),
        ),
    )
    rows = tuple(_finding(findings, verdict, simulated) for verdict in ranked)
    remedies = tuple(_remedies(findings))
    checked = [row for row in rows if row.level != "not measured"]
    return Answer(
        headline=prose.headline(
            checked=[row for row in checked if not row.simulated],
            planted=[row for row in checked if row.simulated],
            missing=len(rows) - len(checked),
        ),
        lead=rows[0].sentence if rows and rows[0].found else "",
        notices=tuple(_notices(findings, simulated)),
        findings=rows,
        example=_example(findings, [verdict for verdict in ranked if verdict.level in FOUND]),
        remedies=remedies,
        actions=tuple(_actions(findings, ranked, remedies)),
    )


def is_simulated(findings: Findings) -> bool:
    """Whether the texts of the audit are simulated."""
    return str(findings.subjects.get("data", {}).get("source", "")).startswith("simulated")


def _notices(findings: Findings, simulated: bool) -> Iterator[str]:
    """What readers need to know before the first number."""
    if simulated:
        yield prose.notice_simulated(
            subjects={verdict.subject for verdict in findings.verdicts},
            name=findings.subjects["data"]["name"],
        )
    if findings.topics or any(kind in findings.subjects for kind in LANGUAGE):
        yield prose.notice_content()
    if findings.settings.get("quick"):
        yield prose.notice_quick()
    for stage in findings.failed:
        yield prose.notice_failed(stage=stage)


# --------------------------------------------------------------------------------------- findings


def _finding(findings: Findings, verdict: Verdict, simulated: bool) -> Finding:
    size, found = verdict.size, verdict.found
    return Finding(
        subject=verdict.subject,
        title=SUBJECTS[verdict.subject],
        name=verdict.name,
        topic=verdict.topic,
        level=verdict.level,
        sentence=prose.finding(verdict=verdict, found=found),
        size=name_size(size.size or 0.0) if size else "",
        at_least=_at_least(size) if size else "",
        d=size.size if size else None,
        low=size.size_low if size else None,
        high=size.size_high if size else None,
        certainty=prose.certainty(verdict=verdict, smallest=_smallest_p(verdict)),
        how=_how(findings, verdict),
        ruled_out=prose.ruled_out(tests=_leading_tests(verdict), name_size=name_size)
        if verdict.level in ("undecided", "none found")
        else "",
        simulated=simulated and verdict.subject in SIMULATED,
    )


def _at_least(size: VerdictTest) -> str:
    """The size of the end of an interval that is nearer to 0."""
    low, high = size.size_low, size.size_high
    if low is None or high is None or not excludes(low, high, 0.0):
        return name_size(0.0)
    return name_size(min(abs(low), abs(high)))


def _leading_tests(verdict: Verdict) -> list[VerdictTest]:
    """The tests that speak for a verdict without a finding: those that are required, or all."""
    return [test for test in verdict.tests if test.required] or list(verdict.tests)


def deciding_forest(findings: Findings, *, leading: bool = False) -> Figure | Text | None:
    """All deciding numbers on the scale of sizes; with `leading`, one of each verdict.

    Those of data are the classes shown.
    """
    simulated = is_simulated(findings)
    rows = [
        _forest_row(verdict, test, simulated and verdict.subject in SIMULATED)
        for verdict in findings.verdicts
        for test in (_leading(verdict) if leading else verdict.tests)
        if test.size is not None and math.isfinite(test.size)
    ]
    if not rows:
        return None
    starts = [{"value": d, "text": name[0].upper()} for name, d in SIZES.items() if d]
    return prose.figure(
        "deciding",
        lambda: forest(
            rows,
            x="d, towards the stereotype to the right",
            looks={
                "found": (BLUE, "circle"),
                "undecided": (GREY, "circle"),
                "none found": (GREY, "diamond"),
            },
            references=starts,
            text="name",
            text_title="size",
            digits=2,
        ),
        rows=rows,
    )


def _leading(verdict: Verdict) -> list[VerdictTest]:
    """The test whose size stands for a verdict, or the first that decides."""
    return [verdict.size] if verdict.size else list(verdict.tests[:1])


def _forest_row(verdict: Verdict, test: VerdictTest, simulated: bool) -> dict[str, Any]:
    name = f"{verdict.name}, {verdict.topic}" if verdict.subject == "vectors" else verdict.name
    outcome = "none found" if test.outcome == "opposite" else test.outcome
    return {
        "label": f"{name}: {test.label}" + " (simulated)" * simulated,
        "value": test.size,
        "low": test.size_low,
        "high": test.size_high,
        "ideal": 0.0,
        "series": outcome,
        "name": name_size(test.size or 0.0) if test.found else outcome,
    }


def _smallest_p(verdict: Verdict) -> VerdictTest | None:
    """The test with the smallest p-value."""
    known = [test for test in verdict.tests if test.p is not None]
    return min(known, key=lambda test: test.p or 0.0, default=None)


def _how(findings: Findings, verdict: Verdict) -> str:
    """The measures behind a verdict, each with what it was measured on."""
    parts: dict[str, list[VerdictTest]] = {}
    for test in verdict.tests:
        parts.setdefault(test.metric, []).append(test)
    if verdict.subject == "data":
        texts = findings.subjects.get("data", {}).get("texts")
        return "; ".join(prose.how(label=label_of(name), n=texts, unit="texts") for name in parts)
    return "; ".join(
        prose.how(
            label=label_of(metric),
            n=max((test.n for test in tests), default=0),
            unit=tests[0].unit,
        )
        for metric, tests in parts.items()
    )


def _example(findings: Findings, ranked: Sequence[Verdict]) -> Example | None:
    """The item with the largest effect of the first finding that has readable items.

    Of a finding, only tests of the measure that its size is of and that hold count.
    """
    for verdict in ranked:
        metric = verdict.size.metric if verdict.size else ""
        exhibit = getattr(find(metric), "exhibit", None) if metric else None
        if exhibit is None:
            continue
        queries = {test.query for test in verdict.tests if test.metric == metric and test.found}
        chosen = [
            shown
            for m in _measured(findings, verdict)
            if m.metric == metric and m.query in queries and (shown := exhibit(m)) is not None
        ]
        if chosen:
            shown = max(chosen, key=lambda item: item.effect)
            return Example(
                text=shown.text,
                readings=shown.readings,
                name=verdict.name,
                topic=verdict.topic,
                measure=label_of(metric),
            )
    return None


def _measured(findings: Findings, verdict: Verdict) -> Iterator[Measurement]:
    """The measurements that a verdict is about."""
    for stage in findings.stages:
        if stage.subject == verdict.subject and stage.measures:
            if verdict.subject == "vectors" and stage.topic != verdict.topic:
                continue
            yield from stage.measurements


# --------------------------------------------------------------------------------------- remedies


def _remedies(findings: Findings) -> Iterator[Remedy]:
    """The best mitigation of each kind and topic."""
    by_topic: dict[str, list[tuple[StageResult, Comparison]]] = {}
    for stage in findings.of("mitigation"):
        change = next((c for c in stage.comparisons if c.metric == leads("vectors")), None)
        if change is not None:
            by_topic.setdefault(str(stage.topic), []).append((stage, change))
    for topic, tried in by_topic.items():
        yield _debiased(findings, topic, tried)
    yield from _finetuned(findings)
    yield from _few_shot(findings)


def _debiased(
    findings: Findings, topic: str, tried: Sequence[tuple[StageResult, Comparison]]
) -> Remedy:
    """Of several methods, the one whose leading measure ends nearest to its ideal."""
    stage, change = min(
        tried, key=lambda pair: abs(pair[1].after.value - (pair[1].before.ideal or 0.0))
    )
    costs = [m for m in stage.measurements if m.metric in COSTS]
    hidden = next((c for c in stage.comparisons if c.metric == RECOVERY), None)
    return Remedy(
        subject="vectors",
        topic=topic,
        method=str(stage.details["method"]),
        helped=_helped(change),
        sentence=prose.debiased(
            name=findings.subjects["vectors"]["name"],
            topic=topic,
            method=stage.details["method"],
            tried=len(tried),
            label=label_of(change.metric),
            change=change,
            helped=_helped(change),
        ),
        cost=prose.debiasing_cost(measured=costs[0]) if costs else "",
        left=prose.hidden(change=hidden) if hidden is not None else "",
    )


def leads(subject: str) -> str:
    """The measure of a subject that leads its verdicts."""
    return next(about.name for about in all_declarations([subject]) if about.role == "leads")


def _helped(change: Comparison) -> bool:
    return change.effect.startswith(("better", "nearer"))


def _finetuned(findings: Findings) -> Iterator[Remedy]:
    for stage in findings.of("finetune"):
        changes = {c.metric: c for c in reversed(stage.comparisons)}
        change, cost = changes.get(leads("model")), changes.get("perplexity")
        if change is not None:
            yield Remedy(
                subject="model",
                topic="gender",
                method="fine-tuning on text with half of the genders swapped",
                helped=_helped(change),
                sentence=prose.finetuned(
                    name=findings.model.get("name", "the model"),
                    change=change,
                    helped=_helped(change),
                ),
                cost=prose.finetuning_cost(change=cost) if cost is not None else "",
            )


def _few_shot(findings: Findings) -> Iterator[Remedy]:
    """Of several mitigations, the one that leaves the smallest mean bias over the networks."""
    from evenhand.report.fewshot import read_networks

    networks = read_networks(findings)
    names = networks[0].changes if networks else ()
    tried = {
        name: [network.changes[name] for network in networks]
        for name in names
        if all(name in network.changes for network in networks)
    }
    left = {
        name: sum(abs(bias.parts[0].after.value) for _, bias in changes)
        for name, changes in tried.items()
    }
    left = {name: value for name, value in left.items() if not math.isnan(value)}
    if not left:
        return
    best = min(sorted(left), key=lambda name: left[name])
    network = max(networks, key=lambda n: abs(n.changes[best][1].parts[0].before.value))
    accuracy, bias = network.changes[best]
    change = bias.parts[0]
    yield Remedy(
        subject="classifier",
        topic="gender",
        method=best,
        helped=_helped(change),
        sentence=prose.few_shot(
            method=best,
            network=network.name,
            tried=len(left),
            change=change,
            helped=_helped(change),
        ),
        cost=prose.few_shot_cost(change=accuracy.change),
    )


# ---------------------------------------------------------------------------------------- actions


def _actions(
    findings: Findings, ranked: Sequence[Verdict], remedies: Sequence[Remedy]
) -> Iterator[Action]:
    """What can be done: about what was found, then about what stays open."""
    for verdict in ranked:
        about = f"{verdict.name}, {verdict.topic}" if verdict.name else verdict.topic
        remedy = next(
            (
                r
                for r in remedies
                if r.subject == verdict.subject
                and (r.subject != "vectors" or r.topic == verdict.topic)
            ),
            None,
        )
        named = {
            "verdict": verdict,
            "remedy": remedy,
            "source": findings.subjects.get(verdict.subject, {}).get("source") or verdict.name,
        }
        if verdict.level in FOUND:
            yield Action(about=about, text=prose.act(**named), command=prose.act_command(**named))
        if verdict.level in ("some evidence", "undecided"):
            tests = _leading_tests(verdict)
            open_ = [test for test in tests if test.outcome == "undecided" and test.needed]
            if open_:
                yield Action(
                    about=about,
                    text=prose.settle(test=min(open_, key=lambda test: test.needed or 0)),
                    command=prose.settle_command(verdict=verdict),
                )
        if verdict.level == "not measured":
            yield Action(about=about, text=verdict.sentence)


def sources(findings: Findings) -> list[str]:
    """Who published the measures of an audit, without repetition."""
    metrics: Iterable[str] = dict.fromkeys(
        m.metric for stage in findings.stages for m in stage.measurements
    )
    known = (method(metric) for metric in metrics)
    return list(dict.fromkeys(m.source for m in known if m is not None and m.source))
