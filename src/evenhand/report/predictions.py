"""What a report shows of a classifier's predictions: gaps of groups, class by class."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from evenhand.charts import BLUE, ORANGE, Chart, forest
from evenhand.report.blocks import (
    Block,
    P,
    Prose,
    Section,
    Text,
    not_measured,
    result_table,
    value_columns,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import label_of, method
from evenhand.report.verdicts import SUBJECTS
from evenhand.results import Measurement
from evenhand.wording import slug

prose = Prose("predictions")

SUBJECT = "predictions"
SERIES = {"class": "as measured", "pooled": "pooled over classes"}
LOOKS = {SERIES["class"]: (BLUE, "circle"), SERIES["pooled"]: (ORANGE, "diamond")}


def predictions_section(findings: Findings) -> Section:
    """All measures in one table, then each by class."""
    stages = [stage for stage in findings.stages if stage.subject == SUBJECT]
    measured = [m for stage in stages for m in stage.measurements]
    if not stages:
        return Section(SUBJECT, SUBJECTS[SUBJECT])
    rows = [(label_of(m.metric), m.query, m) for m in measured]
    rows += [
        (label_of(m.metric), f"{m.query}, {words}{part.query}", part)
        for m in measured
        for by, words in (("estimate", ""), ("correlation", "correlation with the "))
        for part in m.select(by)
    ]
    prob = measured[0].prob if measured else None
    columns = {**value_columns(prob), **P}
    blocks: list[Block] = [prose.text("overview")]
    if measured:
        table = result_table("All measures", ("Measure", "Of"), rows, columns)
        blocks.append(table)
        notes = dict.fromkeys(note for m in measured for note in m.notes)
        blocks += [Text(f"{note[:1].upper()}{note[1:]}.") for note in notes]
    for stage in stages:
        blocks += not_measured(stage.skipped, lambda skip: label_of(skip["metric"]))
    parts = [
        Section(f"{SUBJECT}-{stage.kind}", label_of(stage.kind), list(_by_class(stage)))
        for stage in stages
        if any(_own(m, "class") for m in stage.measurements)
    ]
    return Section(SUBJECT, SUBJECTS[SUBJECT], blocks, parts)


def _own(m: Measurement, by: str) -> list[Measurement]:
    return [part for part in m.select(by) if part.metric == m.metric]


def _by_class(stage: StageResult) -> Iterable[Block]:
    known = method(stage.kind)
    if known is not None:
        yield Text(known.question)
    for m in stage.measurements:
        if not _own(m, "class"):
            continue
        name = f"{SUBJECT}-{slug(f'{stage.kind} {m.query}')}"
        yield prose.figure(name, lambda m=m: class_forest(m), "classes", m=m, method=known)  # type: ignore[misc]
        rows = [(part.query, part) for part in _own(m, "class")]
        yield result_table(
            f"{label_of(m.metric)}, {m.query}, by class",
            ("Class",),
            rows,
            {**value_columns(m.prob), **P},
            words=True,
            folded=True,
        )


def class_forest(m: Measurement) -> Chart:
    """The classes of a measurement, as measured and, where there are such, pooled."""
    pooled = {part.query: part.value for part in _own(m, "pooled")}
    order = sorted(_own(m, "class"), key=lambda part: -pooled.get(part.query, part.value))
    rank = {part.query: place for place, part in enumerate(order)}
    rows: list[dict[str, Any]] = [
        {
            "label": part.query,
            "value": part.value,
            "low": part.low,
            "high": part.high,
            "ideal": part.ideal,
            **({"series": SERIES[by]} if pooled else {}),
        }
        for by in SERIES
        for part in _own(m, by)
    ]
    rows.sort(key=lambda row: rank[row["label"]])
    return forest(rows, x=label_of(m.metric), looks=LOOKS if pooled else None, beside=bool(pooled))
