"""What a data card tells of the texts: classes, genders, odds ratios, what was left out."""

from __future__ import annotations

from evenhand.report.cards_parts import span
from evenhand.report.findings import Findings
from evenhand.report.markdown import escaped, table
from evenhand.report.wording import number, p_value, percent

__all__ = ["data_tables"]

GENDERS = {"men": "Texts of men", "women": "Texts of women", "unknown": "Gender not known"}


def data_tables(findings: Findings) -> list[str]:
    """The data in numbers, class by class where genders are known."""
    data = findings.subjects["data"]
    counted = findings.content("odds") or {}
    facts = [("Texts", f"{data['texts']:,}"), ("Classes", f"{data['classes']:,}")]
    facts += [(words, f"{counted[key]:,}") for key, words in GENDERS.items() if key in counted]
    facts += [(f"Left out: {why}", f"{count:,}") for why, count in data["left_out"].items()]
    without = counted.get("without_gender")
    return [
        "### The data in numbers",
        table(("What", "Value"), facts),
        f"Classes without a text of known gender: {escaped(', '.join(without))}."
        if without
        else "",
        *_odds(findings),
        *_filter(findings),
    ]


def _odds(findings: Findings) -> list[str]:
    measured = findings.measured("odds")
    rows = table(
        ("Class", "Men", "Women", "Odds ratio", f"{percent(findings.settings['prob'])} interval",
         "p", "p, corrected"),
        (
            (m.query, f"{m.details['male']:,}", f"{m.details['female']:,}", number(m.value, 2),
             span(m.low, m.high, 2), p_value(m.p_value), p_value(m.details["p_holm"]))
            for m in measured
        ),
    )  # fmt: skip
    if not rows:
        return []
    told = (
        "How many times as large the odds of a man are in a class as in all others: 1 is even, "
        "above 1 the class leans to men, below 1 to women. "
        f"The interval is {measured[0].interval}; p by {measured[0].test}, corrected for the "
        "number of classes by Holm's method."
    )
    halved = [m.query for m in measured if m.details.get("corrected")]
    note = f"One half was added to every count of {', '.join(halved)}, where one was 0."
    return ["### Odds ratios of the classes", told, rows, escaped(note) if halved else ""]


def _filter(findings: Findings) -> list[str]:
    """How many sentences say a gender by their pronoun alone."""
    found = findings.content("filter")
    if not found:
        return []
    steps = found["steps"]
    sample = "" if found["texts"] == found["of"] else f", a sample of {found['of']:,}"
    return [
        f"Of {steps['read']:,} sentences in {found['texts']:,} texts{sample}, "
        f"{steps['accepted']:,} "
        "have one pronoun of he or she that is the only sign of the person's gender."
    ]
