"""What a report shows of language models of every kind: what can be measured, and what was."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from evenhand.instruments import LANGUAGE, Declaration, all_declarations, instruments
from evenhand.report import masked
from evenhand.report.blocks import (
    Block,
    Prose,
    Section,
    Table,
    Text,
    cell,
    not_measured,
    p_cell,
    span,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import label_of, method
from evenhand.results import Measurement, Measurements
from evenhand.wording import percent

prose = Prose("language")

YES, NO = "yes", "–"
MOST_ROWS = 40
"""Parts of a measurement that a figure shows; of more only the table has them."""


def model_section(findings: Findings, kind: str) -> Section:
    """The measures of a causal model or a sentence encoder, each with a figure and a table.

    One that masked models have too is shown in the same way.
    """
    parts = [
        masked.SECTIONS[stage.kind](findings)
        if stage.kind in masked.SECTIONS
        else Section(f"{kind}-{stage.kind}", label_of(stage.kind), list(measure_blocks(stage)))
        for stage in findings.stages
        if stage.subject == kind
    ]
    return Section.of(kind, f"The {LANGUAGE[kind]}", parts)


def measure_blocks(stage: StageResult) -> Iterable[Block]:
    """The measurements of a stage: one with its parts, or several beside each other."""
    measured = stage.measurements
    if measured:
        known = method(measured[0].metric)
        if known is not None:
            yield Text(known.question)
        several = len(measured) > 1
        rows = [(label_of(m), m) for m in measured]
        if not several:
            rows += [(f"{part.by}: {part.query}", part) for part in measured[0].parts]
        shown = [m for _, m in rows] if len(rows) <= MOST_ROWS else list(measured)
        yield prose.figure(
            f"measure-{stage.subject}-{measured[0].metric}",
            lambda: Measurements(shown).plot(),
            "measures",
            shown=shown,
            method=known,
        )
        label = label_of(measured[0].metric)
        yield _table(label, rows)
        inner = [(f"{m.query}, {part.query}", part) for m in measured for part in m.parts]
        if several and inner:
            yield _table(f"{label}, part by part", inner, folded=True)
        caveats = known.caveats if known is not None else ()
        notes = dict.fromkeys(note for m in measured for note in m.notes if note not in caveats)
        yield from (Text(f"{note}.", "warning") for note in notes)
        if caveats:
            yield Text(" ".join(caveats))
    yield from not_measured(stage.skipped, lambda skip: label_of(skip["metric"]))


def _table(caption: str, rows: Sequence[tuple[str, Measurement]], *, folded: bool = False) -> Table:
    titled = any(m.details.get("title") for _, m in rows)
    headers = ("Part", *(("About",) if titled else ()), "Value")
    return Table.of(
        caption,
        (*headers, f"{percent(rows[0][1].prob)} interval", "p", "Ideal", "Items"),
        (
            (
                name,
                *((str(m.details.get("title", "")),) if titled else ()),
                cell(m.value),
                span(m.low, m.high),
                p_cell(m.p, m.draws),
                cell(m.ideal, 2),
                cell(float(m.n), 0),
            )
            for name, m in rows
        ),
        folded=folded,
    )


def coverage_section(findings: Findings) -> Section:
    """Which measure fits which kind of model, and what was not measured here and why."""
    kind = next((kind for kind in LANGUAGE if kind in findings.subjects), None)
    stages = [stage for stage in findings.stages if stage.subject == kind]
    if kind is None or not stages:
        return Section("coverage", "What can be measured")
    rows = [
        (
            about.label,
            *(YES if about.measures(other) else NO for other in LANGUAGE),
            _outcome(about, kind, stages),
        )
        for about in all_declarations(LANGUAGE)
    ]
    headers = ("Measure", *(name.removesuffix(" language model") for name in LANGUAGE.values()))
    table = Table.of(
        "Measures by the kind of model",
        (*(header.capitalize() for header in headers), "In this audit"),
        rows,
    )
    return Section(
        "coverage",
        "What can be measured",
        [prose.text("coverage", kind=LANGUAGE[kind], name=findings.model["name"]), table],
    )


def _outcome(about: Declaration, kind: str, stages: Sequence[StageResult]) -> str:
    """Whether an instrument measured the model here, and if not, why."""
    if not about.measures(kind):
        return "does not fit this kind"
    own = [stage for stage in stages if stage.kind == about.name]
    if any(stage.measurements for stage in own):
        return "measured"
    failed = [stage.failed for stage in own if stage.failed]
    reasons = [*failed, *(skip["reason"] for stage in own for skip in stage.skipped)]
    if reasons:
        return f"not measured: {reasons[0]}"
    if getattr(instruments(kind)[about.name], "requires_material", False):
        return f"needs a file: evenhand model measure MODEL --metric {about.name} --data FILE"
    return f"not part of an audit: evenhand model measure MODEL --metric {about.name}"
