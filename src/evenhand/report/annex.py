"""The annex for auditors: what was done, beside what regulators ask. Facts, no legal claims."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from evenhand.report.blocks import Block, PageTable, Prose, Section
from evenhand.report.methods import label_of
from evenhand.report.verdicts import SUBJECTS

if TYPE_CHECKING:
    from evenhand.report.answer import AuditAnswer
    from evenhand.report.findings import Findings

prose = Prose("annex")


def annex_section(findings: Findings) -> Section:
    """What was examined, by which measure, on which data, and what was not examined."""
    answer = findings.answer
    examined = PageTable.of(
        prose.table_examined(),
        ("What", "Topic", "Measures", "Result", "Could have been seen"),
        (
            (
                f"{row.title}: {row.name}",
                row.topic,
                row.how or "–",
                row.certainty,
                row.ruled_out or "–",
            )
            for row in answer.findings
        ),
    )
    asked = PageTable.of(
        prose.table_asked(), ("Asked", "Done here", "Not done here"), _asked(findings, answer)
    )
    missing = PageTable.of(prose.table_missing(), ("What", "Why"), _missing(findings))
    blocks: list[Block] = [
        prose.text("annex"),
        asked,
        examined,
        *([missing] if missing.rows else []),
    ]
    return Section("annex", "Annex for auditors", blocks if answer.findings else [])


def _asked(findings: Findings, answer: AuditAnswer) -> Iterator[tuple[str, str, str]]:
    """One row per point: what is asked, what was done, what was not."""
    named = {
        "subjects": [
            f"{SUBJECTS.get(kind, kind)} {facts['name']}"
            for kind, facts in findings.subjects.items()
        ],
        "data": findings.subjects.get("corpus"),
        "topics": list(dict.fromkeys(row.topic for row in answer.findings)),
        "rows": answer.findings,
        "found": [row for row in answer.findings if row.found],
        "remedies": answer.remedies,
        "simulated": any(row.simulated for row in answer.findings),
        "run": findings.run,
    }
    for point in ("examination", "mitigation", "measure", "documented"):
        yield (
            getattr(prose, f"asked_{point}")(),
            getattr(prose, f"done_{point}")(**named),
            getattr(prose, f"not_done_{point}")(**named),
        )


def _missing(findings: Findings) -> Iterator[tuple[str, str]]:
    """What could not be measured, with the reason; what failed; what is beyond the measures."""
    for stage in findings.failed:
        yield stage.title, stage.failed
    for stage in findings.stages:
        for skip in stage.skipped:
            name = label_of(skip["metric"])
            yield (f"{name}, {skip['query']}" if skip["query"] else name), skip["reason"]
