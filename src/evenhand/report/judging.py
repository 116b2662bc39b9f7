"""All verdicts of an audit, and the rules they were made by."""

from __future__ import annotations

from collections.abc import Sequence

from evenhand.report.findings import Findings
from evenhand.report.sections_posterior import posterior_numbers
from evenhand.report.verdicts import RULES, SUBJECTS, Number, Verdict, judge
from evenhand.report.verdicts_fewshot import RULES as FEWSHOT
from evenhand.report.verdicts_fewshot import judge_fewshot
from evenhand.report.verdicts_masked import RULES as MASKED
from evenhand.report.verdicts_masked import judge_masked
from evenhand.report.verdicts_text import RULES as TEXT
from evenhand.report.verdicts_text import judge_text

__all__ = ["rules", "verdicts"]


def verdicts(findings: Findings) -> list[Verdict]:
    """The verdicts on the data, the vectors, the model and the classifiers, as far as audited."""
    found = judge_text(findings)
    parts = findings.settings["parts"]
    if findings.vectors is not None and "vectors" not in parts and "posterior" in parts:
        found += [
            _undecided(
                findings.vectors["name"], topic.name, posterior_numbers(findings, topic.name)
            )
            for topic in findings.topics
            if findings.of("posterior", topic.name)
        ]
    elif findings.vectors is not None and "vectors" in parts:
        found += [
            judge(
                topic.name, findings.measured("measures", topic.name),
                name=findings.vectors["name"], more=posterior_numbers(findings, topic.name),
            )
            for topic in findings.topics
        ]  # fmt: skip
    return [*found, *judge_masked(findings), *judge_fewshot(findings)]


def _undecided(name: str, topic: str, numbers: Sequence[Number]) -> Verdict:
    """Where only the Bayesian model was asked for: it describes, the tests that decide are not
    there.
    """
    beside = " What the Bayesian model reads stands here beside it." if numbers else ""
    return Verdict(
        subject="vectors", name=name, topic=topic, level="not measured", numbers=tuple(numbers),
        sentence="The measures that decide were left out of this audit (vectors is skipped), so "
        f"there is no verdict.{beside}",
    )  # fmt: skip


def rules(findings: Findings) -> list[tuple[str, Sequence[str]]]:
    """The rules of the verdicts that are there, by what was judged."""
    every = {"data": TEXT, "vectors": RULES, "model": MASKED, "classifier": FEWSHOT}
    judged = {verdict.subject for verdict in verdicts(findings)}
    return [(title, every[subject]) for subject, title in SUBJECTS.items() if subject in judged]
