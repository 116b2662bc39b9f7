"""The verdict on the data: do its classes lean to one gender?"""

from __future__ import annotations

from collections.abc import Sequence
from math import log
from typing import Any

from evenhand.report.findings import Findings
from evenhand.report.verdicts import SOME, STRONG, Level, Number, Verdict
from evenhand.report.wording import interval, number, percent
from evenhand.results import Measurement

__all__ = ["RULES", "judge_text"]

TOPIC = "gender"
CANNOT_MEAN = (
    "It does not mean that the data are fair: how people of each gender are written about, who is "
    "missing from the data and how the classes were given is not tested here, and with few texts "
    "of a class a real difference can stay unseen. Only men and women are told apart."
)

RULES = (
    f"Strong evidence: at least one class has an odds ratio with p < {STRONG} (Fisher's exact "
    "test) after Holm's correction over all classes.",
    f"Some evidence: not strong, but one such p is below {SOME}.",
    f"None found: neither. {CANNOT_MEAN}",
    "A leaning is a property of the data, not a fault of a model: it can mirror the world. It "
    "becomes one where a model learns it and uses it.",
)


def judge_text(findings: Findings) -> list[Verdict]:
    """The verdict on the data, where they were audited, by `RULES`."""
    stages = findings.of("odds")
    if not stages:
        return []
    name = str(findings.subjects.get("data", {}).get("name", ""))
    rows = findings.measured("odds")
    if not rows:
        reasons = [
            s.failed or skip.get("reason", "") for s in stages for skip in s.skipped or ({},)
        ]
        return [
            Verdict(
                subject="data", name=name, topic=TOPIC, level="not measured",
                sentence=f"The classes could not be compared: {reasons[0]}.",
            )
        ]  # fmt: skip
    leaning = sorted(
        (m for m in rows if m.details["p_holm"] < SOME), key=lambda m: m.details["p_holm"]
    )
    level: Level = "none found"
    if leaning:
        strong = leaning[0].details["p_holm"] < STRONG
        level = "strong evidence" if strong else "some evidence"
    shown = _ends(leaning or rows)
    return [
        Verdict(
            subject="data", name=name, topic=TOPIC, level=level,
            sentence=_sentence(rows, leaning),
            numbers=tuple(_number(m) for m in shown),
            tests=tuple(_test(m) for m in shown),
            cannot_mean=CANNOT_MEAN,
        )
    ]  # fmt: skip


def _ends(rows: Sequence[Measurement], each: int = 2) -> list[Measurement]:
    """Those that lean most to either side, the most male first."""
    ordered = sorted(rows, key=lambda m: -m.value)
    male = [m for m in ordered if m.value > 1][:each]
    return [*male, *[m for m in ordered if m.value < 1][-each:]]


def _number(m: Measurement) -> Number:
    return Number(
        label=f"Odds ratio of '{m.query}' (p corrected)", value=m.value, low=m.low, high=m.high,
        p_value=m.details["p_holm"], ideal=1.0,
    )  # fmt: skip


def _test(m: Measurement) -> dict[str, Any]:
    return {
        "label": f"Odds ratio, {m.query}", "metric": m.metric, "query": m.query, "value": m.value,
        "p_value": m.p_value, "p_holm": m.details["p_holm"],
    }  # fmt: skip


def _sentence(rows: Sequence[Measurement], leaning: Sequence[Measurement]) -> str:
    if not leaning:
        return (
            f"None of the {len(rows)} classes is clearly more common among men than among women "
            "or the other way round. That is not proof of even classes: the intervals say how far "
            "each might still lean."
        )
    parts = []
    for words, side in (
        ("men", [m for m in leaning if m.value > 1]),
        ("women", [m for m in leaning if m.value < 1]),
    ):
        if side:
            most = max(side, key=lambda m: abs(log(m.value)))
            factor = most.value if words == "men" else 1 / most.value
            ends = (most.low, most.high) if words == "men" else (1 / most.high, 1 / most.low)
            parts.append(
                f"{len(side)} to {words} (most: '{most.query}', whose odds are {number(factor, 1)} "
                f"{interval(*ends, 1)} times as high among {words})"
            )
    share = percent(len(leaning) / len(rows))
    return (
        f"In these data {len(leaning)} of {len(rows)} classes ({share}) lean to one gender: "
        f"{' and '.join(parts)}. A model that learns from them can take the gender for a sign of "
        "the class."
    )
