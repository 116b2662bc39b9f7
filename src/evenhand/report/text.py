"""What a report shows of the data: which classes lean, which sentences assume a gender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from evenhand.charts import BLUE, GREY, INK, ORANGE, Chart, forest, row_of
from evenhand.instruments import judge_result
from evenhand.judging import SOME
from evenhand.report.blocks import (
    Block,
    P,
    Prose,
    Section,
    Table,
    Text,
    count,
    not_measured,
    result_table,
    share,
    value_columns,
)
from evenhand.report.findings import Findings
from evenhand.results import Measurement
from evenhand.text.structural import REASONS, STEP_OF
from evenhand.wording import p_value, percent

prose = Prose("text")

ROWS = 200
"""Rows of a table at most; all rows are in the CSV file."""
DRAWN = 40
"""Classes that are drawn; of more, those that lean most to either side."""
LOOKS = {
    "leans to men": (BLUE, "circle"),
    "leans to women": (ORANGE, "triangle-up"),
    "not clear": (GREY, "square"),
}


def text_section(findings: Findings) -> Section:
    """What the data say about men and women, before any model has seen them."""
    return Section.of("data", "The data", [part(findings) for part in SECTIONS.values()])


def odds_chart(measured: Sequence[Measurement]) -> Chart:
    """Odds ratios on a logarithmic axis, the most male class at the top."""
    drawn = _drawn(measured)
    rows = [
        row_of(
            m,
            m.query,
            p=p_value(m.p),
            men=m.details["male"],
            women=m.details["female"],
            series="not clear"
            if not judge_result(m).found
            else f"leans to {'men' if m.value > 1 else 'women'}",
        )
        for m in drawn
    ]
    low = min(0.5, *(m.low / 1.1 for m in drawn))
    high = max(2.0, *(m.high * 1.1 for m in drawn))
    return forest(
        rows,
        title="Which classes lean to men, which to women?",
        subtitle=[f"dot and line: odds ratio and its {percent(measured[0].prob)} interval"],
        x="odds among men over odds among women (logarithmic)",
        looks=LOOKS,
        references=[{"value": 1, "colour": INK}],
        tips={"p": "p, corrected", "men": "men", "women": "women"},
        digits=2,
        step=15,
        domain=[low, high],
        log=True,
        ticks=_ticks(low, high),
        tick_format="~g",
    )


def _drawn(measured: Sequence[Measurement]) -> list[Measurement]:
    ordered = sorted(measured, key=lambda m: -m.value)
    if len(ordered) <= DRAWN:
        return ordered
    return [*ordered[: DRAWN // 2], *ordered[-DRAWN // 2 :]]


def _ticks(low: float, high: float) -> list[float]:
    """1, 2 and 5 times powers of ten, or only these powers where there would be many.

    >>> _ticks(0.2, 5.0)
    [0.2, 0.5, 1, 2, 5]
    """
    powers = [f"1e{k}" for k in range(-30, 31)]
    fine = [float(step + power[1:]) for power in powers for step in "125"]
    ticks = [tick for tick in fine if low <= tick <= high]
    if len(ticks) > 10:
        ticks = [float(power) for power in powers if low <= float(power) <= high]
    return [int(tick) if tick >= 1 else tick for tick in ticks]


def class_leanings(findings: Findings) -> tuple[Mapping[str, Any], list[Measurement]]:
    """How many texts of men and women there are, and the odds ratio of each class."""
    return findings.details("odds") or {}, findings.measured("odds")


def _odds(findings: Findings) -> Section:
    blocks = not_measured(findings.skipped("odds"))
    content, rows = class_leanings(findings)
    if content and rows:
        leaning = [m for m in rows if judge_result(m).found]
        blocks += [
            prose.text("odds", content=content),
            prose.figure(
                "data-odds",
                lambda: odds_chart(rows),
                rows=rows,
                leaning=leaning,
                drawn=[(m.query, m) for m in _drawn(rows)],
                some=SOME,
            ),
            _odds_table(rows),
            *map(Text, prose.lines("odds_notes", content=content, rows=rows)),
        ]
    return Section("data-odds", prose.title_odds(), blocks)


def _odds_table(rows: Sequence[Measurement]) -> Table:
    shown = sorted(rows, key=lambda m: (m.p, m.query))[:ROWS]
    return result_table(
        prose.table_odds(rows=len(rows), shown=len(shown)),
        ("Class",),
        ((m.query + ("*" if m.details["corrected"] else ""), m) for m in shown),
        {
            **value_columns(rows[0].prob, "Odds ratio"),
            **P,
            "Men": lambda m: count(m.details["male"]),
            "Women": lambda m: count(m.details["female"]),
        },
        words=True,
    )


def _filter(findings: Findings) -> Section:
    content = findings.details("filter")
    if content is None:
        return Section(
            "data-filter", prose.title_filter(), not_measured(findings.skipped("filter"))
        )
    steps, accepted = content["steps"], content["steps"]["accepted"]
    read = max(steps["read"], 1)
    blocks: list[Block] = [
        prose.text("filter", content=content, read=read),
        Table.of(
            "Sentences left after each step of the filter",
            ("Step", "Sentences left", "Share", "Why others were removed"),
            (
                (
                    getattr(prose, f"step_{step}")(),
                    count(steps[step]),
                    share(steps[step] / read),
                    _reasons(content["reasons"], step),
                )
                for step in ("read", "one_pronoun", "no_other_indicator", "linked", "accepted")
            ),
            folded=accepted > 0,
        ),
    ]
    if accepted:
        examples = content["examples"]
        blocks.append(
            Table.of(
                prose.table_examples(shown=len(examples), found=accepted),
                ("Sentence", "Pronoun", "Refers to", "Class"),
                ((e["sentence"], e["pronoun"], e["antecedent"], e["class"]) for e in examples),
                words=True,
            )
        )
    return Section("data-filter", prose.title_filter(), blocks)


def _reasons(reasons: Mapping[str, int], step: str) -> str:
    """Why sentences were removed at a step."""
    return "; ".join(
        f"{reasons[name]:,}: {REASONS[name]}"
        for name, at in STEP_OF.items()
        if at == step and reasons[name]
    )


SECTIONS = {"odds": _odds, "filter": _filter}
"""The sections by the kind of their stage."""
