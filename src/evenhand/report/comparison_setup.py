"""What two audits were set up with: what differs, what is the same, and what follows from it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.report.blocks import Block, Section, Table, Text
from evenhand.report.comparison import IDENTITY, AuditComparison, Side
from evenhand.report.wording import percent

__all__ = ["setup_section"]

SUBJECT_FACTS = {
    "name": "name", "words": "words", "dim": "dimensions", "weights": "weights",
    "layers": "layers", "texts": "texts", "classes": "classes",
    "content_sha256": "SHA-256 of the content", "fingerprint": "fingerprint", "digest": "digest",
}  # fmt: skip


HASHES = tuple(IDENTITY.values())
"""Facts of which the beginning is enough to see whether two are the same."""


def setup_section(found: AuditComparison) -> Section:
    """A table of what differs, warnings on what that means, and what is the same, folded."""
    facts = [dict(_facts(side)) for side in found.sides]
    names = list(dict.fromkeys(name for told in facts for name in told))
    rows = [(name, *(told.get(name, "–") for told in facts)) for name in names]
    headers = ("What", *(side.letter for side in found.sides))
    differing = [row for row in rows if len(set(row[1:])) > 1]
    same = [row for row in rows if len(set(row[1:])) == 1]
    blocks: list[Block] = [Table.of("What differs between the audits", headers, differing)]
    blocks += [Text(words, "warning") for words in _warnings(found)]
    blocks.append(Table.of("What is the same in all of them", headers, same, folded=True))
    return Section("setup", "What was set up differently", blocks)


def _facts(side: Side) -> Iterable[tuple[str, str]]:
    findings = side.findings
    yield "Folder", side.folder
    for kind, subject in findings.subjects.items():
        for key, words in SUBJECT_FACTS.items():
            if subject.get(key) is not None:
                shown = _text(subject[key])
                yield f"{kind.capitalize()}: {words}", shown[:12] if key in HASHES else shown
    yield "Topics", ", ".join(topic.name for topic in findings.topics) or "–"
    yield "Parts", ", ".join(findings.settings["parts"])
    yield "Quick", "yes" if findings.settings["quick"] else "no"
    yield "Level of intervals", percent(findings.settings["prob"])
    yield "Seed", _text(findings.run["seed"])
    yield "Time", str(findings.run["time"])
    for package, version in findings.run["versions"].items():
        yield f"Version of {package}", str(version)
    if findings.failed:
        yield "Stages that failed", ", ".join(stage.title for stage in findings.failed)


def _text(value: Any) -> str:
    return f"{value:,}" if isinstance(value, int) else str(value)


def _warnings(found: AuditComparison) -> Iterable[str]:
    """What a reader must know before reading a difference."""
    audits = [side.findings for side in found.sides]
    subjects = [one.subjects for one in audits]
    if len({one.settings["prob"] for one in audits}) > 1:
        yield (
            "The audits' intervals are not of the same level. Differences are at that of A: "
            f"{percent(audits[0].settings['prob'])}."
        )
    if len({one.run["versions"]["evenhand"] for one in audits}) > 1:
        yield "The audits were made by other versions of Evenhand, which may measure otherwise."
    if len({bool(one.settings["quick"]) for one in audits}) > 1:
        yield "Some of the audits were quick ones: classifiers had less training there."
    if _differ(subjects, "vectors"):
        yield (
            "Cosines of different vectors need not be on one scale even in as many dimensions: "
            "look at what random words read in each report. WEAT's effect size is in standard "
            "deviations of each."
        )
    if _differ(subjects, "model") and _differ(subjects, "data"):
        yield (
            "Both the model and the data differ: what depends on both cannot be laid to one of "
            "them."
        )


def _differ(subjects: Iterable[Mapping[str, Mapping[str, Any]]], kind: str) -> bool:
    """The audits that have a subject of this kind do not all have the same."""
    return len({one[kind].get(IDENTITY[kind]) for one in subjects if kind in one}) > 1
