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
from evenhand.instruments import LANGUAGE, Instrument, find
from evenhand.judging import Level, excludes
from evenhand.report.blocks import Figure, Prose, Text, figure
from evenhand.report.methods import label_of, method
from evenhand.report.verdicts import (
    SUBJECTS,
    Verdict,
    VerdictTest,
    fewshot_changes,
    find_mitigation,
    leads,
)
from evenhand.results import Comparison, Measurement
from evenhand.statistics.sizes import SIZES, name_size

if TYPE_CHECKING:
    from evenhand.report.findings import Findings, StageResult

ORDER = (
    *("predictions", "answers", "masked", "causal", "fewshot", "encoder", "vectors", "corpus"),
)
"""What is said first: what a system does before how it represents words, and data last."""
LEVELS: tuple[Level, ...] = (
    "strong evidence",
    "some evidence",
    "undecided",
    "none found",
    "not measured",
)
FOUND = LEVELS[:2]
SIMULATED = ("corpus", "fewshot")
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
    """Advice on a finding or an open question, with its command."""

    about: str
    text: str
    command: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditAnswer:
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


def build_answer(findings: Findings) -> AuditAnswer:
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
    return AuditAnswer(
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
    return str(findings.subjects.get("corpus", {}).get("source", "")).startswith("simulated")


def _notices(findings: Findings, simulated: bool) -> Iterator[str]:
    """Notes that stand before the first number."""
    if simulated:
        yield prose.notice_simulated(
            subjects={verdict.subject for verdict in findings.verdicts},
            name=findings.subjects["corpus"]["name"],
        )
    if findings.topics or any(kind in findings.subjects for kind in LANGUAGE):
        yield prose.notice_content()
    if findings.settings.get("quick"):
        yield prose.notice_quick()
    if any(stage.details.get("examples") for stage in findings.of("collect")):
        yield prose.notice_answers()
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
    return figure(
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
        prose.words_deciding(rows=rows),
        prose.caption_deciding(),
    )


def _leading(verdict: Verdict) -> list[VerdictTest]:
    """The test whose size represents a verdict, or the first that decides."""
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
    parts: dict[str, tuple[int, str]] = {}
    for test in verdict.tests:
        n, _ = parts.get(test.metric, (0, ""))
        parts[test.metric] = max(n, test.n), test.unit
        if verdict.subject == "corpus":
            parts[test.metric] = findings.subjects.get("corpus", {}).get("texts") or 0, "texts"
    return "; ".join(
        prose.how(label=label_of(metric), n=n, unit=unit) for metric, (n, unit) in parts.items()
    )


def _example(findings: Findings, ranked: Sequence[Verdict]) -> Example | None:
    """The item with the largest effect of the first finding that has readable items.

    Of a finding, only tests of the measure that its size is of and that hold count.
    """
    for verdict in ranked:
        metric = verdict.size.metric if verdict.size else ""
        exhibit = (find(metric) or Instrument).exhibit
        queries = {test.query for test in verdict.tests if test.metric == metric and test.found}
        chosen = [
            shown
            for m in _measured(findings, verdict)
            if m.metric == metric and m.query in queries and (shown := exhibit(m)) is not None
        ]
        if chosen:
            shown = max(chosen, key=lambda item: item.effect)
            about = {"name": verdict.name, "topic": verdict.topic, "measure": label_of(metric)}
            return Example(text=shown.text, readings=shown.readings, **about)
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


def _remedy(
    subject: str,
    about: str,
    name: str,
    change: Comparison,
    text: str,
    /,
    *,
    cost: str = "",
    left: str = "",
    **named: object,
) -> Remedy:
    """A mitigation by its name, about a topic, with the sentence `text` of the template."""
    helped = change.direction == "better"
    return Remedy(
        subject=subject,
        topic=about,
        method=name,
        helped=helped,
        sentence=getattr(prose, text)(change=change, helped=helped, **named),
        cost=cost,
        left=left,
    )


def _debiased(
    findings: Findings, topic: str, tried: Sequence[tuple[StageResult, Comparison]]
) -> Remedy:
    """Of several methods, the one whose leading measure ends nearest to its ideal."""
    stage, change = min(
        tried, key=lambda pair: abs(pair[1].after.value - (pair[1].before.ideal or 0.0))
    )
    method = str(stage.details["method"])
    costs = [prose.debiasing_cost(measured=m) for m in stage.measurements if m.metric in COSTS]
    hidden = [prose.hidden(change=c) for c in stage.comparisons if c.metric == RECOVERY]
    return _remedy(
        "vectors",
        topic,
        method,
        change,
        "debiased",
        name=findings.subjects["vectors"]["name"],
        topic=topic,
        method=method,
        tried=len(tried),
        label=label_of(change.metric),
        cost="".join(costs[:1]),
        left="".join(hidden[:1]),
    )


def _finetuned(findings: Findings) -> Iterator[Remedy]:
    method = "fine-tuning on text with half of the genders swapped"
    name = findings.model.get("name", "the model")
    for stage in findings.of("finetune"):
        changes = {c.metric: c for c in reversed(stage.comparisons)}
        cost = changes.get("perplexity")
        paid = "" if cost is None else prose.finetuning_cost(change=cost)
        if (change := changes.get(leads("masked"))) is not None:
            yield _remedy("masked", "gender", method, change, "finetuned", name=name, cost=paid)


def _few_shot(findings: Findings) -> Iterator[Remedy]:
    """Of several mitigations, the one that leaves the smallest mean bias over the networks."""
    found = find_mitigation(fewshot_changes(findings))
    if found is not None:
        yield _remedy(
            "fewshot",
            "gender",
            found["best"],
            found["change"],
            "few_shot",
            method=found["best"],
            network=found["network"],
            tried=found["tried"],
            cost=prose.few_shot_cost(change=found["cost"]),
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
