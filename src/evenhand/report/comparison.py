"""Two audits or more side by side: what was set up differently, what was found, what differs."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from evenhand.errors import InputError
from evenhand.lexicon import Topic
from evenhand.report.comparison_differences import Difference, difference, none
from evenhand.report.findings import Findings, read_findings
from evenhand.report.judging import verdicts
from evenhand.report.kinds import SUBJECT_OF, bare
from evenhand.report.methods import METHODS
from evenhand.report.verdicts import SUBJECTS, Subject, Verdict
from evenhand.results import Measurement

__all__ = ["AuditComparison", "Line", "Side", "compare_audits"]

NOT_ESTIMATES = ("leave_one_out(weat)", "split_half(weat)")
"""Measurements whose ends are a range over word lists, not an interval."""

IDENTITY = {"vectors": "content_sha256", "model": "fingerprint", "data": "digest"}
"""The fact by which two audits know that they saw the same thing."""

RESTS_ON: dict[Subject, tuple[str, ...]] = {
    "data": ("data",), "vectors": ("vectors",), "model": ("model", "data"),
    "classifier": ("model", "data"),
}  # fmt: skip
"""What the numbers on each subject depend on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Side:
    """One of the audits: a letter to name it by, its folder's name, and all it found."""

    letter: str
    folder: str
    findings: Findings = field(repr=False)
    verdicts: tuple[Verdict, ...] = field(repr=False)

    @property
    def name(self) -> str:
        """The letter and what was audited."""
        return f"{self.letter}: {self.findings.name}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Line:
    """One measure in all audits, None where an audit lacks it, and each one's difference from A."""

    subject: Subject
    topic: str
    metric: str
    query: str
    sides: tuple[Measurement | None, ...] = field(repr=False)
    differences: tuple[Difference | None, ...]

    @property
    def shared(self) -> bool:
        """At least two audits have it."""
        return sum(side is not None for side in self.sides) > 1

    def as_dict(self) -> dict[str, Any]:
        return {
            "subject": self.subject, "topic": self.topic, "metric": self.metric,
            "query": self.query,
            "sides": [None if m is None else m.as_dict() for m in self.sides],
            "differences": [None if d is None else d.as_dict() for d in self.differences],
        }  # fmt: skip


@dataclass(frozen=True, slots=True, kw_only=True)
class AuditComparison:
    """The audits, their verdicts by what they are about, and every measure of any of them."""

    sides: tuple[Side, ...]
    verdicts: dict[tuple[Subject, str, str], tuple[Verdict | None, ...]] = field(repr=False)
    lines: tuple[Line, ...] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "audits": [
                {"letter": side.letter, "folder": side.folder,
                 "subjects": side.findings.subjects, "settings": side.findings.settings}
                for side in self.sides
            ],
            "verdicts": [
                {"subject": subject, "topic": topic, "which": which,
                 "verdicts": [None if v is None else v.as_dict() for v in judged]}
                for (subject, topic, which), judged in self.verdicts.items()
            ],
            "measures": [line.as_dict() for line in self.lines if line.shared],
        }  # fmt: skip


def compare_audits(folders: Sequence[str | os.PathLike[str]]) -> AuditComparison:
    """The audits of two folders or more; the first, A, is what the others are compared with."""
    places = [Path(folder) for folder in folders]
    if len(places) < 2:
        raise InputError(f"comparison: expected two audits or more, got {len(places)}")
    if len(places) > 26:
        raise InputError(f"comparison: expected at most 26 audits, got {len(places)}")
    real = [place.resolve() for place in places]
    twice = next((places[i] for i, place in enumerate(real) if place in real[:i]), None)
    if twice is not None:
        raise InputError(f"comparison: expected different audits, got {twice} twice")
    for place in places:
        if not place.is_dir():
            what = "a file" if place.exists() else "nothing there"
            raise InputError(f"{place}: expected the folder of an audit, got {what}")
    found = [read_findings(place) for place in places]
    sides = tuple(
        Side(letter=chr(ord("A") + i), folder=real[i].name, findings=one,
             verdicts=tuple(verdicts(one)))
        for i, one in enumerate(found)
    )  # fmt: skip
    made = AuditComparison(sides=sides, verdicts=_verdicts(sides), lines=tuple(_lines(sides)))
    judged = any(sum(one is not None for one in row) > 1 for row in made.verdicts.values())
    if not judged and not any(line.shared for line in made.lines):
        told = "; ".join(f"{side.letter} ({side.folder}): {_told(side)}" for side in sides)
        raise InputError(
            "comparison: expected audits with a measure or a verdict in common, got " + told
        )
    return made


def _told(side: Side) -> str:
    topics = ", ".join(topic.name for topic in side.findings.topics)
    return ", ".join(side.findings.subjects) + (f" on {topics}" if topics else "")


def _verdicts(
    sides: Sequence[Side],
) -> dict[tuple[Subject, str, str], tuple[Verdict | None, ...]]:
    """The verdicts by subject and topic, and by name where an audit has several of these."""
    keyed = []
    for side in sides:
        about = [(verdict.subject, verdict.topic) for verdict in side.verdicts]
        keyed.append({(v.subject, v.topic, v.name): v for v in side.verdicts})
        if len(set(about)) == len(about):
            keyed[-1] = {(v.subject, v.topic, ""): v for v in side.verdicts}
    keys = dict.fromkeys(key for verdicts_of in keyed for key in verdicts_of)
    order = list(SUBJECTS)
    return {
        key: tuple(verdicts_of.get(key) for verdicts_of in keyed)
        for key in sorted(keys, key=lambda key: order.index(key[0]))
    }


Key = tuple[Subject, str, str, str]


def _lines(sides: Sequence[Side]) -> list[Line]:
    tables = [_measured(side) for side in sides]
    keys = dict.fromkeys(key for table in tables for key in table)
    order = list(SUBJECTS)
    lines = []
    for key in sorted(keys, key=lambda key: order.index(key[0])):
        subject, topic, metric, query = key
        found = tuple(table.get(key) for table in tables)
        differences = tuple(
            None if i == 0 else _difference(sides[0], sides[i], key, found[0], found[i])
            for i in range(len(sides))
        )
        lines.append(
            Line(subject=subject, topic=topic, metric=metric, query=query, sides=found,
                 differences=differences)
        )  # fmt: skip
    return lines


def _measured(side: Side) -> dict[Key, Measurement]:
    """Every measurement of an audit, and the numbers of its verdicts that are none of these."""
    found: dict[Key, Measurement] = {}
    for stage in side.findings.stages:
        for m in stage.measurements:
            if stage.kind in SUBJECT_OF and m.metric not in NOT_ESTIMATES:
                key = (SUBJECT_OF[stage.kind], stage.topic or "", m.metric, m.query)
                found.setdefault(key, m)
    known = {(m.value, m.low, m.high) for m in found.values()}
    prob = side.findings.settings["prob"]
    for verdict in side.verdicts:
        for one in verdict.numbers:
            if (one.value, one.low, one.high) not in known:
                found.setdefault(
                    (verdict.subject, verdict.topic, "", bare(one.label)),
                    Measurement(
                        metric="", query=bare(one.label), value=one.value, low=one.low,
                        high=one.high, n=0, ideal=one.ideal, worse="away", interval="", prob=prob,
                        p_value=one.p_value,
                    ),
                )  # fmt: skip
    return found


def _difference(
    one: Side, two: Side, key: Key, first: Measurement | None, second: Measurement | None
) -> Difference | None:
    if first is None or second is None:
        return None
    subject, topic, metric, _ = key
    why = _not_comparable(one.findings, two.findings, topic, metric) if subject == "vectors" else ""
    if why:
        return none(why)
    return difference(first, second, same_input=_same(one.findings, two.findings, subject))


def _same(one: Findings, two: Findings, subject: Subject) -> bool:
    """Both audits saw the same."""
    return all(
        one.subjects.get(kind, {}).get(IDENTITY[kind])
        == two.subjects.get(kind, {}).get(IDENTITY[kind])
        for kind in RESTS_ON[subject]
    )


def _not_comparable(one: Findings, two: Findings, topic: str, metric: str) -> str:
    """Why two values on vectors are not on one footing; empty where they are."""
    lists = [
        {given.name: _words(given) for given in findings.topics}.get(topic)
        for findings in (one, two)
    ]
    if topic and lists[0] != lists[1]:
        return f"the word lists of the topic {topic} are not the same"
    if _same(one, two, "vectors"):
        return ""
    scale = METHODS[metric].scale if metric in METHODS else ""
    if scale == "product":
        return "it depends on how long the vectors are, which is each file's own"
    dims = [findings.subjects["vectors"]["dim"] for findings in (one, two)]
    if dims[0] != dims[1] and (scale == "cosine" or metric == "mac"):
        return (
            f"cosines in {dims[0]} and in {dims[1]} dimensions are not on one scale: "
            "compare effect sizes"
        )
    return ""


def _words(topic: Topic) -> dict[str, Any]:
    told = ("name", "title", "provenance", "sources")
    return {name: getattr(topic, name) for name in topic.__slots__ if name not in told}
