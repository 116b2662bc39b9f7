"""The other two depths of an audit's page: one printed page, and the methods for authors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from evenhand.citations import bibtex, keys_of
from evenhand.instruments import Declaration, find
from evenhand.report.answer import deciding_forest, prose
from evenhand.report.blocks import Figure, render_page
from evenhand.report.methods import method
from evenhand.report.verdicts import SUBJECTS, rules
from evenhand.statistics.sizes import SIZES

if TYPE_CHECKING:
    from evenhand.report.findings import Findings
    from evenhand.results import Measurement

ROWS = 8
"""The checks that one printed page has at most."""


def render_brief(findings: Findings) -> str:
    """The answer on one printed page, as HTML."""
    answer = findings.answer
    figure = deciding_forest(findings, leading=True)
    return render_page(
        "brief.html",
        [],
        findings=findings,
        answer=answer,
        rows=answer.findings[:ROWS],
        more=len(answer.findings) - len(answer.findings[:ROWS]),
        forest=figure if isinstance(figure, Figure) else None,
        prose=prose,
        sizes=SIZES,
    )


def render_methods(findings: Findings) -> str:
    """Everything that a methods section needs, as HTML: rules, formulas, word lists, BibTeX."""
    measured = measured_methods(findings)
    keys = [key for row in measured for key in row["keys"]]
    return render_page(
        "methods.html",
        [],
        findings=findings,
        measured=measured,
        rules=rules(findings),
        subjects=SUBJECTS,
        sizes=SIZES,
        bibtex=bibtex(["evenhand", *dict.fromkeys(keys)]),
    )


def measured_methods(findings: Findings) -> list[dict[str, Any]]:
    """The measures of an audit in the order of its stages, with what they were measured on."""
    return [
        {"metric": metric, "method": known, **_basis(metric, known, measured)}
        for metric, measured in findings.by_metric().items()
        if (known := method(metric)) is not None
    ]


def _basis(metric: str, known: Declaration, measured: Sequence[Measurement]) -> Mapping[str, Any]:
    """What the intervals and p-values of a measure rest on, its part in verdicts, its sources."""
    instrument = find(metric)
    return {
        "intervals": list(_once(m.interval for m in measured)),
        "tests": list(_once(m.test for m in measured)),
        "role": instrument.declaration.role if instrument is not None else "",
        "ideal": measured[0].ideal,
        "keys": keys_of(known.source),
    }


def _once(texts: Iterator[str]) -> Iterator[str]:
    """The texts that are not empty, each once, at most three."""
    yield from list(dict.fromkeys(text for text in texts if text))[:3]
