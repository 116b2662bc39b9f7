"""The section on the data: which classes lean, which sentences assume a gender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.report import charts_text
from evenhand.report.blocks import Block, Cell, Figure, Section, Table, Text, cell, p_cell, span
from evenhand.report.findings import Findings
from evenhand.report.verdicts import SOME
from evenhand.report.wording import number, percent
from evenhand.results import Measurement
from evenhand.text.structural import REASONS, STEP_OF

__all__ = ["text_section"]

MOST = 200
"""Rows of a table at most; the rest is in the CSV file."""

STEPS = {
    "read": "sentences read",
    "one_pronoun": "exactly one gendered pronoun",
    "no_other_indicator": "no other word that states a sex",
    "linked": "the pronoun stands for an expression of the sentence",
    "accepted": "that expression states no gender: found",
}


def text_section(findings: Findings) -> Section:
    """What the data say of men and women, before any model has seen them."""
    parts = [_odds(findings), _filter(findings)]
    return Section("data", "The data", parts=[part for part in parts if part.blocks])


def _skipped(findings: Findings, kind: str) -> list[Block]:
    return [
        Text(f"Not measured: {skip['reason']}.", "warning")
        for stage in findings.of(kind)
        for skip in stage.skipped
    ]


def _odds(findings: Findings) -> Section:
    title = "Do the classes lean to one gender?"
    blocks: list[Block] = _skipped(findings, "odds")
    content, rows = findings.content("odds"), findings.measured("odds")
    if content is None or not rows:
        return Section("data-odds", title, blocks)
    leaning = [m for m in rows if m.details["p_holm"] < SOME]
    blocks += [
        Text(
            f"The data “{content['name']}” have {content['men']:,} texts of men and "
            f"{content['women']:,} of women in {content['classes']} classes"
            + (f"; of {content['unknown']:,} the gender is not known" if content["unknown"] else "")
            + ". The odds ratio of a class says how many times higher its odds are among men than "
            "among women: 1 means that it is as common among both. A leaning is a property of "
            "these data and may mirror the world; a model that learns from them can take it over."
        ),
        Figure.of(
            "data-odds",
            charts_text.odds(rows, SOME),
            "How to read it: right of the dashed line a class is more common among men, left of it "
            "among women; the line through a dot is its interval. Grey classes are not clearly off "
            f"1 (p of at least {SOME} after Holm's correction).",
            f"Odds ratios of {len(rows)} classes, {len(leaning)} of them clearly off 1: "
            + "; ".join(f"{m.query} {number(m.value, 2)}" for m in _drawn(rows)),
        ),
        _odds_table(rows),
        *(Text(note) for note in _odds_notes(content, rows)),
    ]
    return Section("data-odds", title, blocks)


def _drawn(rows: Sequence[Measurement]) -> list[Measurement]:
    ordered = sorted(rows, key=lambda m: -m.value)
    if len(ordered) <= charts_text.MOST:
        return ordered
    return [*ordered[: charts_text.MOST // 2], *ordered[-charts_text.MOST // 2 :]]


def _odds_table(rows: Sequence[Measurement]) -> Table:
    shown = sorted(rows, key=lambda m: (m.details["p_holm"], m.query))[:MOST]
    more = f" (the {MOST} clearest of {len(rows):,})" if len(rows) > MOST else ""
    return Table.of(
        f"The classes{more}",
        ("Class", "Odds ratio", f"{percent(rows[0].prob)} interval", "p", "p, corrected", "Men",
         "Women"),
        (
            (
                m.query + ("*" if m.details["corrected"] else ""), cell(m.value),
                span(m.low, m.high), p_cell(m.p_value), p_cell(m.details["p_holm"]),
                cell(float(m.details["male"]), 0), cell(float(m.details["female"]), 0),
            )
            for m in shown
        ),
        words=True,
    )  # fmt: skip


def _odds_notes(content: Mapping[str, Any], rows: Sequence[Measurement]) -> list[str]:
    notes = [
        "Each text counts as one person: where one person has several, the intervals are too "
        "narrow. The corrected p allows for the number of classes (Holm)."
    ]
    if any(m.details["corrected"] for m in rows):
        notes.append("* One of the counts is 0; one half was added to all four of them.")
    if content["without_gender"]:
        names = content["without_gender"]
        more = f" and {len(names) - 10:,} more" if len(names) > 10 else ""
        notes.append(f"No gender is known in: {', '.join(names[:10])}{more}.")
    if content["left_out"]:
        reasons = "; ".join(f"{reason}: {n:,}" for reason, n in content["left_out"].items())
        notes.append(f"Rows left out when the data were read: {reasons}.")
    return notes


def _filter(findings: Findings) -> Section:
    title = "Sentences that assume a gender"
    content = findings.content("filter")
    if content is None:
        return Section("data-filter", title, _skipped(findings, "filter"))
    steps, found = content["steps"], content["steps"]["accepted"]
    sampled = (
        f" (a sample of {content['texts']:,} of {content['of']:,} texts)"
        if content["texts"] < content["of"]
        else ""
    )
    blocks: list[Block] = [
        Text(
            "In “The drummer taps her foot” the pronoun gives the drummer a gender that nothing "
            "else in the sentence does: that is an assumption of whoever wrote it. The structural "
            f"filter looks for such sentences. Of {steps['read']:,} sentences{sampled} it found "
            f"{found:,} ({percent(found / max(steps['read'], 1))})."
        ),
        Table.of(
            "What each step of the filter leaves",
            ("Step", "Sentences left", "Share", "Why others went"),
            (
                (
                    words, Cell(f"{steps[step]:,}", float(steps[step])),
                    Cell(percent(steps[step] / max(steps["read"], 1)),
                         steps[step] / max(steps["read"], 1)),
                    _reasons(content["reasons"], step),
                )
                for step, words in STEPS.items()
            ),
            folded=found > 0,
        ),
    ]  # fmt: skip
    if found:
        examples = content["examples"]
        more = f" (the first {len(examples)} of {found:,})" if len(examples) < found else ""
        blocks.append(
            Table.of(
                f"Sentences found{more}",
                ("Sentence", "Pronoun", "Stands for", "Class"),
                (
                    (one["sentence"], one["pronoun"], one["antecedent"], one["class"])
                    for one in examples
                ),
                words=True,
            )
        )
    return Section("data-filter", title, blocks)


def _reasons(reasons: Mapping[str, int], step: str) -> str:
    """Why sentences that had come so far went no further."""
    gone = [
        f"{reasons[name]:,}: {REASONS[name]}"
        for name, at in STEP_OF.items()
        if at == step and reasons[name]
    ]
    return "; ".join(gone)
