"""The section on mitigations: before against after, where bias hides, what it cost."""

from __future__ import annotations

import re
from collections.abc import Sequence

from evenhand.lexicon import Topic
from evenhand.report import charts_mitigation
from evenhand.report.blocks import Block, Figure, Section, Table, Text, cell, span
from evenhand.report.findings import Findings
from evenhand.report.methods import label, row_label
from evenhand.report.saved import Account
from evenhand.report.tables import slug
from evenhand.report.wording import interval, number

__all__ = ["mitigations"]

EXPLAINED = (
    "Hard debiasing takes the directions that tell the classes apart out of all other words and "
    "sets the defining words at equal distance. Soft debiasing finds a linear map that trades bias "
    "removed for similarities kept: summed as published, or with both terms averaged, so that the "
    "trade does not depend on the size of the vocabulary. INLP takes out, round by round, whatever "
    "a linear classifier can use. Each is followed by the same measures, by tests for what it left "
    "hidden, and by its cost."
)


def mitigations(findings: Findings) -> Section:
    """A part for each topic that was debiased."""
    parts = [_topic(findings, topic) for topic in findings.topics]
    shown = [part for part in parts if part.blocks]
    blocks = [Text(EXPLAINED)] if shown else []
    return Section("mitigation", "Word vectors: what debiasing changes", blocks, shown)


def _topic(findings: Findings, topic: Topic) -> Section:
    stages = findings.of("mitigation", topic.name)
    accounts = [account for stage in stages for account in stage.mitigations]
    blocks: list[Block] = _figures(accounts, topic) if accounts else []
    blocks += [
        Text(f"Not done: {skip['metric']}: {skip['reason']}", "warning")
        for stage in stages
        for skip in stage.skipped
    ]
    return Section(f"mitigation-{slug(topic.name)}", f"{topic.title}, debiased", blocks)


def _figures(accounts: Sequence[Account], topic: Topic) -> list[Block]:
    name = slug(topic.name)
    notes = dict.fromkeys(
        f"Note on {account.method}: {_readable(note)}."
        for account in accounts
        for note in account.debias["notes"]
    )
    return [
        Figure.of(
            f"mitigation-{name}",
            charts_mitigation.measures(accounts, topic.name),
            "How to read it: the hollow circle is the value before, the dot the value after with "
            "its interval, the dashed line the measure's ideal.",
            f"Measures of {topic.title} before and after {_methods(accounts)}.",
        ),
        *(Text(note) for note in notes),
        _changes(accounts, topic),
        Figure.of(
            f"hiding-{name}",
            charts_mitigation.hiding(accounts),
            "How to read it: can the class that a word leaned to still be told after debiasing? "
            "The dashed line is what chance would read. A dot far from it means that the bias is "
            "still there for whoever looks another way. Before debiasing the values are high by "
            "construction, since the words were picked for their lean.",
            "Hiding tests after debiasing: "
            + "; ".join(
                f"{account.method} {label(c.after.metric)} {number(c.after.value, 2)}"
                for account in accounts
                for c in account.hiding
            ),
        ),
        Figure.of(
            f"utility-{name}",
            charts_mitigation.utility(accounts),
            "How to read it: 1 means that the words' neighbours and similarities are as before; "
            "what is missing to 1 is the price.",
            "Utility kept: "
            + "; ".join(
                f"{account.method} {label(m.metric)} {number(m.value, 2)} "
                f"{interval(m.low, m.high, 2)}"
                for account in accounts
                for m in account.utility
            ),
        ),
    ]


def _readable(note: str) -> str:
    """The note without its hint for programmers, such as (f with x=y)."""
    return re.sub(r"\s*\([^()]*[_=][^()]*\)", "", note)


def _methods(accounts: Sequence[Account]) -> str:
    return ", ".join(account.method for account in accounts)


def _changes(accounts: Sequence[Account], topic: Topic) -> Table:
    return Table.of(
        f"Every measure and hiding test of {topic.title} before and after",
        ("Method", "Measure", "Before", "After", "Change", "Interval of the change", "Ideal"),
        (
            (
                account.method, row_label(c.before, topic.name), cell(c.before.value),
                cell(c.after.value), cell(c.change.value), span(c.change.low, c.change.high),
                cell(c.before.ideal, 2),
            )
            for account in accounts
            for c in (*account.measures, *account.hiding)
        ),
        folded=True,
    )  # fmt: skip
