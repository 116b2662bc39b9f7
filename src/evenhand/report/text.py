"""What a report shows of the data: which classes lean, which sentences assume a gender."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from evenhand.charts import BLUE, GREY, INK, ORANGE, Chart, forest
from evenhand.report.blocks import (
    Block,
    Prose,
    Section,
    Table,
    Text,
    cell,
    count,
    p_cell,
    share,
    span,
)
from evenhand.report.findings import Findings
from evenhand.report.verdicts import SOME
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
    parts = [section(findings) for section in SECTIONS.values()]
    return Section("data", "The data", parts=[part for part in parts if part.blocks])


def odds_chart(measured: Sequence[Measurement]) -> Chart:
    """Odds ratios on a logarithmic axis, the most male class at the top."""
    drawn = _drawn(measured)
    rows = [
        {
            "label": m.query,
            "value": m.value,
            "low": m.low,
            "high": m.high,
            "p": p_value(m.details["p_holm"]),
            "men": m.details["male"],
            "women": m.details["female"],
            "series": "not clear"
            if m.details["p_holm"] >= SOME
            else f"leans to {'men' if m.value > 1 else 'women'}",
        }
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


def not_measured(findings: Findings, kind: str, text: str = "Not measured") -> list[Block]:
    """What the stages of a kind could not measure, as warnings."""
    return [Text(f"{text}: {skip['reason']}.", "warning") for skip in findings.skipped(kind)]


def _odds(findings: Findings) -> Section:
    blocks = not_measured(findings, "odds")
    content, rows = findings.details("odds"), findings.measured("odds")
    if content is not None and rows:
        leaning = [m for m in rows if m.details["p_holm"] < SOME]
        blocks += [
            prose.text("odds", content=content),
            prose.figure(
                "data-odds",
                lambda: odds_chart(rows),
                rows=rows,
                leaning=leaning,
                drawn=_drawn(rows),
                some=SOME,
            ),
            _odds_table(rows),
            *map(Text, prose.lines("odds_notes", content=content, rows=rows)),
        ]
    return Section("data-odds", prose.title_odds(), blocks)


def _odds_table(rows: Sequence[Measurement]) -> Table:
    shown = sorted(rows, key=lambda m: (m.details["p_holm"], m.query))[:ROWS]
    level = f"{percent(rows[0].prob)} interval"
    return Table.of(
        prose.table_odds(rows=len(rows), shown=len(shown)),
        ("Class", "Odds ratio", level, "p", "p, corrected", "Men", "Women"),
        (
            (
                m.query + ("*" if m.details["corrected"] else ""),
                cell(m.value),
                span(m.low, m.high),
                p_cell(m.p_value),
                p_cell(m.details["p_holm"]),
                cell(float(m.details["male"]), 0),
                cell(float(m.details["female"]), 0),
            )
            for m in shown
        ),
        words=True,
    )


def _filter(findings: Findings) -> Section:
    content = findings.details("filter")
    if content is None:
        return Section("data-filter", prose.title_filter(), not_measured(findings, "filter"))
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
