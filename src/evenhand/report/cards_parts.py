"""The parts that cards and summaries are made of, each as Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from evenhand.report.findings import Findings
from evenhand.report.judging import rules
from evenhand.report.kinds import KINDS
from evenhand.report.markdown import bullets, escaped, table
from evenhand.report.methods import METHODS, Method, label, row_label
from evenhand.report.methods_fewshot import METHODS as FEWSHOT
from evenhand.report.methods_masked import METHODS as MASKED
from evenhand.report.methods_posterior import METHODS as POSTERIOR
from evenhand.report.methods_text import METHODS as TEXT
from evenhand.report.verdicts import DECIDING, SUBJECTS, Number, Subject, Verdict
from evenhand.report.wording import number, p_value, percent

__all__ = [
    "beyond",
    "decided_by",
    "levels",
    "methods",
    "missing",
    "mitigated",
    "none_found",
    "numbers_of",
    "run_facts",
    "said",
    "span",
    "values_table",
]  # fmt: skip

BEYOND: Mapping[Subject | None, str] = {
    None: "They are about English words and texts, and about the groups that the word lists and "
    "the data know: gender is male or female there.",
    "data": "A class that leans to one gender is a fact about these texts. It does not say why, "
    "nor whether the world is so.",
    "vectors": "Word vectors are measured here, not the programs that use them: a number neither "
    "proves harm there nor rules it out.",
    "model": "The model is measured here, not the programs that use it: a number neither proves "
    "harm there nor rules it out.",
    "classifier": "The classifiers were trained for this audit on few texts a class. One trained "
    "in another way can be better or worse.",
}

SIMULATED = "The data are simulated: what was found in them checks the instruments, not the world."


def span(low: float | None, high: float | None, digits: int = 3) -> str:
    """An interval in words: brackets could be taken for a link.

    >>> span(-0.095, 0.021)
    '−0.095 to 0.021'
    """
    return f"{number(low, digits)} to {number(high, digits)}"


def numbers_of(findings: Findings, verdict: Verdict) -> list[Number]:
    """The numbers behind a verdict, for vectors with those of all the deciding tests."""
    found = list(verdict.numbers)
    if verdict.subject == "vectors":
        found += [
            Number(
                label=row_label(m, verdict.topic), value=m.value, low=m.low, high=m.high,
                p_value=m.p_value, ideal=m.ideal,
            )
            for m in findings.measured("measures", verdict.topic)
            if m.metric in DECIDING
        ]  # fmt: skip
    first: dict[str, Number] = {}
    for one in found:
        first.setdefault(one.label, one)
    return list(first.values())


def _about(verdict: Verdict) -> str:
    return f"{verdict.name}, {verdict.topic}" if verdict.name else verdict.topic


def said(verdict: Verdict) -> str:
    """The verdict in a sentence."""
    return f"**{escaped(_about(verdict))}: {verdict.level}.** {escaped(verdict.sentence)}"


def levels(judged: Sequence[Verdict]) -> str:
    """The verdicts as a table, each with its first number."""
    rows = []
    for verdict in judged:
        first = verdict.numbers[0] if verdict.numbers else None
        shown = ("–", "–", "–")
        if first is not None:
            shown = (f"{first.label} {number(first.value)}", span(first.low, first.high),
                     p_value(first.p_value))  # fmt: skip
        rows.append((SUBJECTS[verdict.subject], _about(verdict), verdict.level, *shown))
    return table(("Subject", "What", "Evidence of bias", "First number", "Interval", "p"), rows)


def values_table(heading: str, findings: Findings, judged: Sequence[Verdict]) -> list[str]:
    """Every number behind the verdicts, with its interval."""
    rows = table(
        ("What", "Number", "Value", f"{percent(findings.settings['prob'])} interval", "p",
         "Without bias"),
        (
            (_about(verdict), one.label, number(one.value), span(one.low, one.high),
             p_value(one.p_value), _ideal(one.ideal))
            for verdict in judged
            for one in numbers_of(findings, verdict)
        ),
    )  # fmt: skip
    return [heading, rows] if rows else []


def _ideal(ideal: float | None) -> str:
    return "–" if ideal is None else f"{ideal:g}".replace("-", "−")


def decided_by(judged: Sequence[Verdict]) -> list[str]:
    """The tests that decided, corrected for their number."""
    rows = table(
        ("What", "Deciding test", "p", "p, corrected for the number of tests"),
        (
            (_about(verdict), str(test["label"]), p_value(test["p_value"]), p_value(test["p_holm"]))
            for verdict in judged
            for test in verdict.tests
        ),
    )
    return ["The tests that decided:", rows] if rows else []


def none_found(judged: Sequence[Verdict], mark: str = "### ") -> list[str]:
    """What a verdict of no evidence does not mean."""
    texts = dict.fromkeys(verdict.cannot_mean for verdict in judged if verdict.cannot_mean)
    if not texts:
        return []
    return [f"{mark}What “none found” cannot mean", bullets(map(escaped, texts))]


def beyond(findings: Findings, subjects: Iterable[Subject]) -> str:
    """What no number here can say."""
    asked = [None, *dict.fromkeys(subjects)]
    lines = [BEYOND[subject] for subject in BEYOND if subject in asked]
    if str(findings.subjects.get("data", {}).get("source", "")).startswith("simulated"):
        lines.append(SIMULATED)
    return bullets(lines)


def missing(findings: Findings, subjects: Sequence[Subject], mark: str = "### ") -> list[str]:
    """What failed, could not be measured or had to be left out, by name."""
    kinds = [kind for subject in subjects for kind in KINDS[subject]]
    stages = [stage for stage in findings.stages if stage.kind in kinds]
    lines = [f"{stage.title} failed: {stage.failed}" for stage in stages if stage.failed]
    unmeasured: dict[str, list[Mapping[str, str]]] = {}
    for skip in (skip for stage in stages for skip in stage.skipped):
        unmeasured.setdefault(label(skip["metric"]), []).append(skip)
    lines += [_not_measured(name, skips) for name, skips in unmeasured.items()]
    words = {word for stage in stages for m in stage.measurements for word in m.left_out}
    if words:
        lines.append(f"Words without a vector: {', '.join(sorted(words))}")
    return [f"{mark}What was left out", bullets(map(escaped, lines))] if lines else []


def _not_measured(name: str, skips: Sequence[Mapping[str, str]]) -> str:
    """What of a measure is missing, and the reason of the first."""
    queries = ", ".join(dict.fromkeys(skip["query"] for skip in skips if skip["query"]))
    first = skips[0]
    reason = first["reason"].removeprefix(f"{first['metric']} '{first['query']}': ")
    told = f"{name}: {queries}" if queries else name
    more = " (the first of them)" if len(skips) > 1 else ""
    return f"Not measured: {told}. The reason{more}: {reason}"


def methods(findings: Findings, subjects: Sequence[Subject]) -> list[str]:
    """How it was measured: the measures, and the rules of the verdicts."""
    parts = findings.settings["parts"]
    vectors = {name: METHODS[name] for name in DECIDING}
    every: dict[Subject, dict[str, Method]] = {
        "data": TEXT if "text" in parts else {},
        "vectors": {**vectors, **(POSTERIOR if "posterior" in parts else {})},
        "model": MASKED if "masked" in parts else {},
        "classifier": FEWSHOT if "fewshot" in parts else {},
    }
    rows = table(
        ("Measure", "Question", "Formula", "Source"),
        (
            (method.label, method.question, method.formula, method.source)
            for subject in subjects
            for method in every[subject].values()
        ),
    )
    titles = [SUBJECTS[subject] for subject in subjects]
    made = [f"{title}: {rule}" for title, given in rules(findings) if title in titles
            for rule in given]  # fmt: skip
    return ["### How it was measured", rows, bullets(map(escaped, made))]


FACTS = {
    "words": "words", "dim": "dimensions", "content_sha256": "SHA-256 of the content",
    "weights": "weights", "fingerprint": "fingerprint", "texts": "texts", "classes": "classes",
    "digest": "digest",
}  # fmt: skip
"""What is told of each subject; where it was read from is the auditor's own business."""


def run_facts(findings: Findings, kinds: Iterable[str]) -> str:
    """What was audited, the seed and the versions."""
    rows: list[tuple[str, str]] = []
    for kind in kinds:
        subject: Mapping[str, Any] = findings.subjects[kind]
        rows.append((kind.capitalize(), str(subject["name"])))
        for key, words in FACTS.items():
            value = subject.get(key)
            if value:
                shown = f"{value:,}" if isinstance(value, int) else str(value)
                rows.append((f"{kind.capitalize()}: {words}", shown))
    rows.append(("Seed", str(findings.run["seed"])))
    rows += [(f"Version of {name}", str(one)) for name, one in findings.run["versions"].items()]
    return table(("What", "Value"), rows)


def mitigated(findings: Findings) -> list[str]:
    """What debiasing did to the association contrast."""
    rows = table(
        ("Topic", "Method", "Before", "After", "Change", "Interval of the change"),
        (
            (str(stage.topic), account.method, number(c.before.value), number(c.after.value),
             number(c.change.value), span(c.change.low, c.change.high))
            for stage in findings.of("mitigation")
            for account in stage.mitigations
            for c in account.measures
            if c.before.metric == "association"
        ),
    )  # fmt: skip
    told = "The association contrast before and after; what is hidden by it and what it costs is "
    return ["## What debiasing changed", f"{told}on the page.", rows] if rows else []
