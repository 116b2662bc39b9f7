"""The page of a comparison, made of the same blocks as the report."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from evenhand.report.blocks import Block, Cell, Figure, Section, Table, Text, cell, p_cell, span
from evenhand.report.charts_comparison import dumbbells
from evenhand.report.comparison import AuditComparison, Line, Side, compare_audits
from evenhand.report.comparison_differences import Difference
from evenhand.report.comparison_setup import setup_section
from evenhand.report.comparison_words import label_of, worse
from evenhand.report.pages import render_page
from evenhand.report.tables import slug
from evenhand.report.verdicts import SUBJECTS, Subject, Verdict
from evenhand.report.wording import interval, number, percent
from evenhand.results import Measurement, replace_file

__all__ = ["comparison_sections", "write_comparison"]

LEVELS_ARE_NOT_DIFFERENCES = (
    "Two verdicts that differ do not show that the audits differ: one can lie just on this side of "
    "the line and the other just beyond it. The differences below have intervals of their own."
)

MITIGATING = ("finetune", "fewshot")
"""Kinds of stages that mitigate and tell of it in their content."""
MITIGATIONS = (
    "What debiasing, fine-tuning and the other mitigations changed within each audit is not "
    "compared here: each report tells it with intervals of its own. Of classifiers, the values "
    "that they have with each mitigation are among the measures."
)


def comparison_sections(found: AuditComparison) -> list[Section]:
    """The page's sections, in the order of reading."""
    return [setup_section(found), _verdicts(found), _measures(found), _alone(found)]


def _verdicts(found: AuditComparison) -> Section:
    rows = [
        [_about(*key), *("not audited" if v is None else v.level for v in judged)]
        for key, judged in found.verdicts.items()
    ]
    sentences = [
        (_about(*key), side.name, verdict.sentence, _numbers(verdict))
        for key, judged in found.verdicts.items()
        for side, verdict in zip(found.sides, judged, strict=True)
        if verdict is not None
    ]
    blocks: list[Block] = [
        Text(LEVELS_ARE_NOT_DIFFERENCES),
        Table.of("Evidence of bias", ("What", *(side.name for side in found.sides)), rows),
        Table.of("The verdicts in words", ("What", "Audit", "Verdict", "Numbers"), sentences,
                 folded=True),
    ]  # fmt: skip
    empty = [v for side in found.sides for v in side.verdicts if v.level == "none found"]
    limits = dict.fromkeys(v.cannot_mean for v in empty if v.cannot_mean)
    blocks += [Text(f"What “none found” cannot mean: {text}") for text in limits]
    return Section("verdicts", "Verdicts side by side", blocks if rows else [])


def _about(subject: Subject, topic: str, which: str) -> str:
    return f"{SUBJECTS[subject]}{', ' + which if which else ''}: {topic}"


def _numbers(verdict: Verdict) -> str:
    return "; ".join(
        f"{one.label} {number(one.value)} {interval(one.low, one.high)}" for one in verdict.numbers
    )


def _measures(found: AuditComparison) -> Section:
    """A part for each subject and topic, with a figure and a table."""
    groups: dict[tuple[Subject, str], list[Line]] = {}
    for line in found.lines:
        if line.shared:
            groups.setdefault((line.subject, line.topic), []).append(line)
    alike = {key for key, lines in groups.items() if all(map(_alike, lines))}
    parts = [_group(found, *key, lines) for key, lines in groups.items() if key not in alike]
    told = [d for line in found.lines for d in line.differences if d is not None]
    counted = [d for d in told if d.kind in ("paired", "unpaired")]
    prob = found.sides[0].findings.settings["prob"]
    words = (
        "A difference is the audit's value less that of A, for odds ratios how many times as "
        "large. Paired differences are made word by word: what both audits share cancels. Unpaired "
        "ones take the two as independent. An audit reads worse where the difference is clear and "
        "goes the way in which the measure has more bias, or less accuracy. "
        f"{len(counted)} differences are shown, of which "
        f"{sum(d.clear for d in counted)} have an interval that leaves out no difference; by "
        f"chance alone about {percent(1 - prob)} of them would, were there none."
    )
    blocks = [Text(words)] if parts else []
    if any(map(_mitigated, found.sides)):
        blocks.append(Text(MITIGATIONS))
    if alike:
        names = ", ".join(dict.fromkeys(SUBJECTS[subject].lower() for subject, _ in alike))
        blocks.append(Text(f"The same input gave the same values, which are not shown: {names}."))
    return Section("measures", "Measures side by side", blocks, parts)


def _mitigated(side: Side) -> bool:
    """The audit tells of a change that a mitigation made."""
    return any(
        stage.mitigations or (stage.kind in MITIGATING and stage.content)
        for stage in side.findings.stages
    )


def _alike(line: Line) -> bool:
    """Every audit saw the same and read the same."""
    return all(one is None or one.kind == "same" for one in line.differences)


def _group(found: AuditComparison, subject: Subject, topic: str, lines: Sequence[Line]) -> Section:
    titles = {t.name: t.title for side in found.sides for t in side.findings.topics}
    title = SUBJECTS[subject] + (f": {titles.get(topic, topic)}" if topic else "")
    if subject == "vectors" and not topic:
        title = "Word vectors: published tests"
    name = slug(f"compared {subject} {topic}")
    names = [side.name for side in found.sides]
    blocks: list[Block] = [
        Figure.of(
            name,
            dumbbells(lines, names),
            "How to read it: each row is a measure, each mark an audit's value with its interval, "
            "the grey bar the gap between the values, the dashed line the measure's ideal. "
            "Intervals that overlap do not show that two audits are alike: the table has the "
            "interval of the difference.",
            f"{len(lines)} measures of {', '.join(names)}: "
            + "; ".join(_spoken(line, found.sides) for line in lines),
        ),
        _values(found, title, lines),
    ]
    apart = _differences(found, title, lines)
    blocks += [apart] if apart.rows else []
    reasons: dict[tuple[str, str], list[str]] = {}
    for line in lines:
        for one, side in zip(line.differences, found.sides, strict=True):
            if one is not None and one.kind == "none":
                reasons.setdefault((one.how, side.letter), []).append(_name(line))
    first = found.sides[0].letter
    blocks += [
        Text(f"{letter} less {first} is not given for {', '.join(left)}: {why}.", "warning")
        for (why, letter), left in reasons.items()
    ]
    return Section(name, title, blocks)


def _spoken(line: Line, sides: Sequence[Side]) -> str:
    values = ", ".join(
        f"{side.letter} {number(m.value)} {interval(m.low, m.high)}"
        for m, side in zip(line.sides, sides, strict=True)
        if m is not None
    )
    return f"{_name(line)}: {values}"


def _values(found: AuditComparison, title: str, lines: Sequence[Line]) -> Table:
    headers = ["Measure", "Ideal"]
    for side in found.sides:
        level = percent(side.findings.settings["prob"])
        headers += [side.letter, f"{side.letter}: {level} interval", f"{side.letter}: p"]
    return Table.of(
        f"{title}: the audits' values",
        headers,
        (
            [_name(line), _ideal(line), *(one for m in line.sides for one in _shown(m))]
            for line in lines
        ),
    )


def _name(line: Line) -> str:
    return label_of(line.metric, line.query, line.topic)


def _ideal(line: Line) -> Cell:
    ideal = next((m.ideal for m in line.sides if m is not None), None)
    return Cell("–") if ideal is None else Cell(f"{ideal:g}".replace("-", "−"), ideal)


def _shown(m: Measurement | None) -> list[Cell]:
    if m is None:
        return [Cell("–")] * 3
    return [cell(m.value), span(m.low, m.high), p_cell(m.p_value)]


def _differences(found: AuditComparison, title: str, lines: Sequence[Line]) -> Table:
    """A row for each difference that can be told."""
    first = found.sides[0]
    level = percent(first.findings.settings["prob"])
    return Table.of(
        f"{title}: differences from {first.letter}",
        ("Measure", "Which", "Difference", f"{level} interval", "Made", "Reads worse"),
        (
            _difference(line, place, first, side, one)
            for line in lines
            for place, (one, side) in enumerate(zip(line.differences, found.sides, strict=True))
            if one is not None and one.kind != "none"
        ),
    )


def _difference(
    line: Line, place: int, first: Side, side: Side, one: Difference
) -> list[Cell | str]:
    digits = 2 if one.ratio else 3
    sign, times = ("÷", "× ") if one.ratio else ("−", "")
    made = f"paired, {one.items} items" if one.kind == "paired" else one.kind
    return [
        _name(line), f"{side.letter} {sign} {first.letter}",
        Cell(times + number(one.value, digits), one.value), span(one.low, one.high, digits),
        "same input" if one.kind == "same" else made,
        worse(line, place, (first.letter, side.letter)),
    ]  # fmt: skip


def _alone(found: AuditComparison) -> Section:
    """What only one of the audits measured."""
    rows = [
        (_name(line), SUBJECTS[line.subject], side.name,
         cell(m.value), span(m.low, m.high))
        for line in found.lines
        if not line.shared
        for m, side in zip(line.sides, found.sides, strict=True)
        if m is not None
    ]  # fmt: skip
    table = Table.of(
        "Measured in one audit only", ("Measure", "Subject", "Audit", "Value", "Interval"), rows,
        folded=True,
    )  # fmt: skip
    return Section("alone", "Measured in one audit only", [table] if rows else [])


def write_comparison(
    folders: Sequence[str | os.PathLike[str]], path: str | os.PathLike[str] = "comparison.html"
) -> Path:
    """Compare the audits of some folders and write the page; its path."""
    found = compare_audits(folders)
    built = [one for one in comparison_sections(found) if one.blocks or one.parts]
    text = render_page("comparison.html", sides=found.sides, sections=built)
    with replace_file(path) as file:
        file.write(text.encode())
    return Path(path)
