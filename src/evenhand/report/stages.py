"""What a report shows of each stage of an audit: texts, figures and tables of its results.

All of it comes from results and declarations. A chart that is special to a measure is drawn by its
instrument (`Instrument.charts`); what is said of a stage without an instrument is in
`templates/stages.jinja`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

from evenhand.charts import BLUE, GREEN, INK, ORANGE, Chart, finite, forests, row_of
from evenhand.errors import InputError
from evenhand.instruments import (
    LANGUAGE,
    Declaration,
    Instrument,
    all_declarations,
    find,
    instruments,
    is_ratio,
    judge_result,
)
from evenhand.models.finetuning.charts import loss_curve
from evenhand.posterior.charts import check_forest
from evenhand.posterior.radial import radial, telling_words
from evenhand.posterior.tables import read_table
from evenhand.report.blocks import (
    Block,
    Figure,
    P,
    PageTable,
    Prose,
    Section,
    TableCell,
    Text,
    cell,
    count,
    figure,
    listed,
    result_table,
    share,
    span,
    value_columns,
)
from evenhand.report.findings import Findings, StageResult
from evenhand.report.methods import label_of, method, scale_of
from evenhand.report.verdicts import SUBJECTS, doubts
from evenhand.results import Measurement
from evenhand.wording import interval, number, p_value, percent, probability, slug, upper_first

prose = Prose("stages")

DRAWN = 40
"""Rows of a figure; of more, those with the largest and the smallest values."""
ITEMS, FEW_ITEMS = 200, 40
"""Items of one measurement in a table, and where there are tables of several."""
FIGURES = 10
"""Figures of parts in a section."""
COLUMNS = 9
"""Columns of a table of items."""
EFFECTS = ("score", "full_bias", "association", "difference")
"""Columns of items that have the effect of an item, the first of them that there is."""
HIDDEN = ("without", "cluster", "axis", "weight")
"""Columns of items that intervals are computed from, which a table leaves out."""
LOOKS = ((BLUE, "circle"), (ORANGE, "triangle-up"), (GREEN, "square"), (INK, "diamond"))

Rows = Sequence[tuple[str, str, Any]]
"""Results, each with the run or method that it is about, if any, and its label."""


def subject_section(findings: Findings, subject: str) -> Section:
    """A part for each kind of stage on a subject, and in it one for each topic."""
    kinds: dict[str, dict[str, list[StageResult]]] = {}
    for stage in sorted(findings.stages, key=lambda stage: stage.kind == "collect"):
        if stage.subject == subject:
            kinds.setdefault(stage.kind, {}).setdefault(stage.topic or "", []).append(stage)
    titles = {topic.name: topic.title for topic in findings.topics}
    parts = []
    for kind, by_topic in kinds.items():
        name = slug(f"{subject} {kind}")
        details = next((s.details for group in by_topic.values() for s in group if s.details), {})
        title = prose.title(kind) or label_of(kind)
        intro = prose.intro(kind, details, findings.settings["prob"])
        blocks: list[Block] = [Text(intro)] if intro else []
        if list(by_topic) == [""]:
            parts.append(Section(name, title, [*blocks, *stage_blocks(name, by_topic[""])]))
            continue
        topics = (
            Section(
                own := slug(f"{name} {topic}"),
                titles.get(topic, topic),
                [*stage_blocks(own, group, topic)],
            )
            for topic, group in by_topic.items()
        )
        parts.append(Section.of(name, title, topics, blocks))
    return Section.of(subject, SUBJECTS[subject], parts)


def stage_blocks(name: str, stages: Sequence[StageResult], topic: str = "") -> Iterator[Block]:
    """The results, changes, distances and notes of stages that are shown together."""
    kind = stages[0].kind
    results = [
        (_run(stage, m.details), label_of(m, topic), m)
        for stage in stages
        for m in stage.measurements
    ]
    changes = [
        (_run(stage, c.details), label_of(c.before, topic), c)
        for stage in stages
        for c in stage.comparisons
    ]
    if kind == "posterior":
        yield from (block for stage in stages if stage.details for block in _answer(stage))
    yield from result_blocks(name, results, find(kind))
    yield from change_blocks(name, changes)
    for stage in stages:
        if stage.distances is not None:
            yield figure(f"{name}-distances", stage.distances.plot)
        if stage.details:
            yield from MORE.get(kind, _nothing)(name, stage)
        notes = stage.details.get("notes") or stage.details.get("debias", {}).get("notes", ())
        yield from (Text(f"Note: {note.rstrip('.')}.") for note in notes)
    yield from (not_measured(skip) for stage in stages for skip in stage.skipped)


def not_measured(skip: Mapping[str, str]) -> Text:
    """What could not be measured, and why; a reason that begins with the measure repeats it."""
    what = ", ".join(filter(None, (label_of(skip["metric"]), skip.get("query"))))
    reason = skip["reason"].removeprefix(f"{skip['metric']}: ")
    return Text(f"Not measured: {what}: {reason}.", "warning")


def _run(stage: StageResult, details: Mapping[str, Any]) -> str:
    """The run or the method that a result is about, where its stage has several."""
    of_model = details.get("model", "") if stage.kind == "posterior" else ""
    return str(details.get("run") or stage.details.get("method") or of_model)


# -------------------------------------------------------------------------------------- results


def result_blocks(
    name: str, results: Rows, instrument: type[Instrument] | None = None
) -> Iterator[Block]:
    """A question, a forest, the instrument's charts, and tables of values, parts and items."""
    if not results:
        return
    metrics = dict.fromkeys(m.metric for *_, m in results)
    known = method(next(iter(metrics)))
    if known is not None and len(metrics) == 1:
        yield Text(" ".join(filter(None, (known.question, known.reading))))
    yield figure(
        f"{name}-forest",
        partial(result_forests, results),
        f"The results: {listed((_joined(run, label), m) for run, label, m in results)}",
    )
    firsts = list({(m.metric, m.query): (label, m) for _, label, m in reversed(results)}.values())
    for label, m in reversed(firsts):
        yield from _charts(name, label, m, find(m.metric) or instrument or Instrument)
    parts = [
        (
            label,
            by,
            [("", part.query, part) for part in m.select(by) if finite(part.value) is not None],
        )
        for label, m in reversed(firsts)
        for by in dict.fromkeys(part.by for part in m.parts)
    ]
    for label, by, own in [part for part in parts if len(part[2]) > 1][:FIGURES]:
        drawn = sorted(own, key=lambda row: -row[2].value)
        drawn = own if len(own) <= DRAWN else [*drawn[: DRAWN // 2], *drawn[-DRAWN // 2 :]]
        title = f"{label.replace(': ', ', ')}, by {by}"
        words = f"{title}: {listed((query, part) for _, query, part in drawn)}"
        yield figure(slug(f"{name} {label} {by}"), partial(result_forests, drawn), words)
    yield _table("The results", results)
    inner = [
        (_joined(run, label), where, part) for run, label, m in results for where, part in _parts(m)
    ]
    if inner:
        yield _table("The results, part by part", inner, ("Measure", "Part"), folded=True)
    by_columns: dict[tuple[str, ...], list[tuple[str, Measurement]]] = {}
    for label, m in reversed(firsts):
        if len(m.items):
            by_columns.setdefault(tuple(sorted(m.items.columns)), []).append((label, m))
    yield from map(_items, by_columns.values())
    caveats = known.caveats if known is not None else ()
    notes = dict.fromkeys(note for *_, m in results for note in m.notes if note not in caveats)
    yield from (Text(f"{upper_first(note.rstrip('.'))}.", "warning") for note in notes)
    if caveats and len(metrics) == 1:
        yield Text(" ".join(caveats))


def _charts(name: str, label: str, m: Measurement, cls: type[Instrument]) -> Iterator[Block]:
    try:
        charts = cls.charts(m)
    except InputError as error:
        yield Text(f"No figure of {label}: {error}.", "warning")
        return
    for chart_name, chart in charts.items():
        yield figure(slug(f"{name} {label} {chart_name}"), lambda chart=chart: chart)  # type: ignore[misc]


def _joined(run: str, label: str) -> str:
    return f"{run}: {label}" if run else label


def _parts(m: Measurement, within: str = "") -> Iterator[tuple[str, Measurement]]:
    """The parts of a measurement at any depth, each with its place."""
    for part in m.parts:
        place = ", ".join(filter(None, (within, f"{part.by}: {part.query}")))
        yield place, part
        yield from _parts(part, place)


def result_forests(results: Rows) -> Chart:
    """A panel for each scale, a row for each result; of several runs, a panel for each measure.

    A pale band is what random words or labels give, a thick line a narrower interval.
    """
    kinds = dict.fromkeys(_kind(m) for *_, m in results)
    looks = dict(zip(kinds, LOOKS, strict=False)) if 1 < len(kinds) <= len(LOOKS) else None
    panels: dict[str, list[dict[str, Any]]] = {}
    options: dict[str, dict[str, Any]] = {}
    for run, label, m in results:
        given = m.details.get
        title = label if run else given("scale") or scale_of(m.metric) or label_of(m.metric)
        row = row_of(
            m,
            run or label.removeprefix(f"{title}, "),
            ideal=m.ideal,
            band_low=given("null_low", -given("null_high") if given("null_high") else None),
            band_high=given("null_high"),
            inner_low=given("inner_low", given("naive_low")),
            inner_high=given("inner_high", given("naive_high")),
            p=None if m.p is None else p_value(m.p, m.draws),
            n=m.n,
            series=_kind(m),
        )
        panels.setdefault(title, []).append(row)
        if is_ratio(m.metric):
            options[title] = {"log": True}
    return forests(
        panels,
        looks=looks,
        columns=1 if len(panels) < 3 or not results[0][0] else 2,
        options=options,
        tips={"p": "p", "n": "items"},
        width=420 if len(panels) < 3 or not results[0][0] else 230,
        ticks=4,
    )


def _kind(m: Measurement) -> str:
    """The group that a part belongs to, by which it is coloured."""
    return str(m.details.get("group") or m.details.get("leaning") or "") if m.by else ""


def _table(
    caption: str,
    rows: Sequence[Sequence[Any]],
    names: Sequence[str] = ("Measure",),
    *,
    folded: bool = False,
) -> PageTable:
    """Value, interval, p, what random words give, ideal, items and what was left out."""
    listed_rows = rows
    if len(names) == 1:
        listed_rows = [(_joined(run, label), m) for run, label, m in rows]
    measured = [row[-1] for row in rows]
    columns: dict[str, Callable[[Any], TableCell | str]] = {}
    if any(m.details.get("title") for m in measured):
        columns["About"] = lambda m: str(m.details.get("title", ""))
    columns |= {**value_columns(measured[0].prob)}
    if any(m.p is not None for m in measured):
        columns |= P
    if any("p_below_zero" in m.details for m in measured):
        columns["Probability of being below 0"] = _below_zero
    if any(m.details.get("null_median") is not None for m in measured):
        columns["Random words give"] = _null
    if any(m.ideal is not None for m in measured):
        columns["Ideal"] = lambda m: cell(m.ideal, 2)
    kinds = [find(m.metric) for m in measured]
    units = {"items" if cls is None else cls.declaration.unit for cls in kinds}
    columns[upper_first(units.pop()) if len(units) == 1 else "Items"] = lambda m: count(m.n)
    if any(m.left_out for m in measured):
        columns["Left out"] = lambda m: ", ".join(m.left_out) or "none"
    return result_table(caption, names, listed_rows, columns, folded=folded, words=folded)


def _below_zero(m: Measurement) -> TableCell:
    p = m.details.get("p_below_zero")
    return TableCell("–") if p is None else TableCell(probability(p), p)


def _null(m: Measurement) -> TableCell:
    given = m.details
    if given.get("null_median") is None:
        return TableCell("–")
    band = interval(given["null_low"], given["null_high"])
    return TableCell(f"{number(given['null_median'])} {band}", given["null_median"])


def _items(measured: Sequence[tuple[str, Measurement]]) -> PageTable:
    """The items of measurements that have the same columns, those with the largest effect first."""
    names = [name for name in measured[0][1].items.columns if name not in HIDDEN][:COLUMNS]
    effect = next((each for each in EFFECTS if each in names), "")
    most = max(FEW_ITEMS, ITEMS // len(measured))
    several = len(measured) > 1
    rows = []
    for label, m in measured:
        items = list(m.items)
        if effect:
            items.sort(key=lambda item: -abs((finite(item[effect]) or 0.0) - (m.ideal or 0.0)))
        rows += [
            [*(_item_cell(item[name]) for name in names), *([TableCell(label)] if several else [])]
            for item in items[:most]
        ]
    title = f"{len(measured)} measures" if several else measured[0][0]
    more = (
        f", the {most} of largest effect" if any(len(m.items) > most for _, m in measured) else ""
    )
    headers = [upper_first(name.replace("_", " ")) for name in names]
    return PageTable.of(
        f"{title}, item by item{more}",
        [*headers, *(["Measure"] if several else [])],
        rows,
        words=True,
        folded=True,
    )


def _item_cell(value: object) -> TableCell:
    if isinstance(value, bool) or value is None:
        return TableCell("–" if value is None else "yes" if value else "no")
    if isinstance(value, int):
        return count(value)
    return cell(value) if isinstance(value, float) else TableCell(str(value))


# -------------------------------------------------------------------------------------- changes


def change_blocks(name: str, changes: Rows) -> Iterator[Block]:
    """Before and after: a figure and a table, with the effect of each change in words."""
    if not changes:
        return
    words = "; ".join(
        f"{_joined(run, label)} {number(c.before.value)} to {number(c.after.value)}"
        for run, label, c in changes
    )
    yield figure(
        f"{name}-changes",
        partial(change_forests, changes),
        f"Before and after: {words}",
        prose.how_changes(),
    )
    rows = [
        (_joined(run, ", ".join(filter(None, (label, part)))), c)
        for run, label, whole in changes
        for part, c in [("", whole), *((part.query, part) for part in whole.parts)]
    ]
    level = f"{percent(rows[0][1].change.prob)} interval of the change"
    yield result_table(
        "Every measure before and after",
        ("Measure",),
        rows,
        {
            "Before": lambda c: cell(c.before.value),
            "After": lambda c: cell(c.after.value),
            "Change": lambda c: cell(c.change.value),
            level: lambda c: span(c.change.low, c.change.high),
            "Effect": lambda c: c.effect,
            "p": lambda c: TableCell(p_value(c.p), c.p),
            "Ideal": lambda c: cell(c.before.ideal, 2),
            "Items": lambda c: count(c.paired),
        },
        folded=len(rows) > DRAWN,
    )


def change_forests(changes: Rows) -> Chart:
    """A row for each method, or for each measure: hollow before, filled after."""
    panels: dict[str, list[dict[str, Any]]] = {}
    for run, label, c in changes:
        title = label if run else scale_of(c.metric) or label_of(c.metric)
        row = row_of(
            c.after,
            run or label.removeprefix(f"{title}, "),
            before=c.before.value,
            ideal=c.before.ideal,
            change=f"{number(c.change.value)} {interval(c.change.low, c.change.high)}",
            effect=c.effect,
        )
        if finite(c.after.value) is not None:
            panels.setdefault(title, []).append(row)
    several = len(panels) > 2 and bool(changes[0][0])
    return forests(
        panels,
        columns=2 if several else 1,
        width=230 if several else 420,
        ticks=4,
        tips={
            "value": "after",
            "interval": "interval after",
            "change": "change",
            "effect": "effect",
        },
    )


# ---------------------------------------------------------------- stages that are no instrument


def _nothing(name: str, stage: StageResult) -> Iterable[Block]:  # noqa: ARG001
    return ()


def _finetune(name: str, stage: StageResult) -> Iterator[Block]:
    details = stage.details
    yield figure(
        f"{name}-loss",
        lambda: loss_curve(details["curve"], details["training"]["best"]["step"]),
    )


def _answer(stage: StageResult) -> Iterator[Block]:
    """What the contrast of a posterior says, whether its draws are reliable and the model fits."""
    unreliable = doubts(stage, *stage.details["diagnostics"])
    yield from (
        prose.text("answer", m, judge_result(m))
        for m in stage.measurements
        if m.query == "associated-different" and m.details.get("model") == "crossed"
    )
    yield from (Text(prose.unreliable(doubt), "warning") for doubt in unreliable)
    missed = [
        check["statistic"]
        for check in stage.details["checks"]["crossed"]
        if check["observed"] is not None and not check["passed"]
    ]
    if missed:
        yield Text(prose.missed(missed), "warning")


def _posterior(name: str, stage: StageResult) -> Iterator[Block]:
    """What is near two telling words; the checks of the model and of its draws."""
    details = stage.details
    if details["equalised"]:
        yield prose.text("equalised", details["equalised"])
    if stage.distances is not None:
        table = read_table(stage.distances)
        yield from (
            figure(f"{name}-radial-{index}", partial(radial, table, word))
            for index, word in enumerate(telling_words(table))
        )
    check = figure(f"{name}-check", partial(check_forest, details["checks"]))
    if isinstance(check, Figure):  # none where no attribute recurs
        yield check
    yield PageTable.of(
        prose.table_checks(),
        ("Model", "What", "In the data", "Low", "High", "Inside"),
        (
            (
                model,
                check["statistic"],
                *(cell(check[end]) for end in ("observed", "low", "high")),
                "yes" if check["passed"] else "no",
            )
            for model, checks in details["checks"].items()
            for check in checks
        ),
        folded=True,
    )
    yield PageTable.of(
        prose.table_diagnostics(),
        ("Model of", "R-hat, largest", "Effective draws, fewest", "Of"),
        (
            (of, cell(draws["rhat_max"]), cell(draws["ess_min"], 0), draws["worst"])
            for of, draws in details["diagnostics"].items()
        ),
        folded=True,
    )
    yield prose.text("basis", details)


def _filter(name: str, stage: StageResult) -> Iterator[Block]:  # noqa: ARG001
    from evenhand.text.structural import RULES

    details = stage.details
    steps, examples = details["steps"], details["examples"]
    rules = details.get("rules", RULES)  # older audits did not save them
    yield PageTable.of(
        "Sentences left after each step",
        ("Step", "Sentences", "Share", "Removed because"),
        (
            (
                prose.step(step),
                count(steps[step]),
                share(steps[step] / max(1, steps["read"])),
                "; ".join(
                    f"{details['reasons'][reason]:,}: {rule['text']}"
                    for reason, rule in rules.items()
                    if rule["step"] == step and details["reasons"][reason]
                ),
            )
            for step in ("read", "one_pronoun", "no_other_indicator", "linked", "accepted")
        ),
        folded=bool(examples),
    )
    if examples:
        yield PageTable.of(
            f"Sentences found, {len(examples)} of {steps['accepted']:,}",
            ("Sentence", "Pronoun", "Refers to", "Class"),
            ((e["sentence"], e["pronoun"], e["antecedent"], e["class"]) for e in examples),
            words=True,
        )


def _collect(name: str, stage: StageResult) -> Iterator[Block]:  # noqa: ARG001
    """What was asked, what came of it and what is stored, with answers to one item."""
    details = stage.details
    outcomes = details["outcomes"]
    yield prose.text("asked" if "prompts" in details else "given", details)
    occurring = dict.fromkeys(
        each for counts in outcomes.values() for each, n in counts.items() if n
    )
    yield PageTable.of(
        f"Answers by outcome, “{details.get('prompts') or details['name']}”",
        ("Group", *occurring),
        (
            (group or "all", *(count(counts[each]) for each in occurring))
            for group, counts in outcomes.items()
        ),
    )
    shown = details.get("examples")
    if not shown:
        return
    yield PageTable.of(
        prose.table_first(shown[0]["item"]),
        ("Text", *(each["group"] or "Answer" for each in shown)),
        [(title, *(each[title.lower()] or "–" for each in shown)) for title in WRITTEN],
        words=True,
    )


WRITTEN = ("Prompt", "Text", "Outcome")

MORE: Mapping[str, Callable[[str, StageResult], Iterable[Block]]] = {
    "finetune": _finetune,
    "posterior": _posterior,
    "filter": _filter,
    "collect": _collect,
}
"""The details of a stage that are shown, by its kind."""


# ------------------------------------------------------------------------- what can be measured


def coverage_section(findings: Findings) -> Section:
    """Which measure fits which kind of model, and what was not measured here and why."""
    kind = next((kind for kind in LANGUAGE if kind in findings.subjects), None)
    stages = [stage for stage in findings.stages if stage.subject == kind]
    if kind is None or not stages:
        return Section("coverage", "What can be measured")
    headers = ("Measure", *(name.removesuffix(" language model") for name in LANGUAGE.values()))
    table = PageTable.of(
        "Measures by the kind of model",
        (*(header.capitalize() for header in headers), "In this audit"),
        (
            (
                about.label,
                *("yes" if about.measures(other) else "–" for other in LANGUAGE),
                _outcome(about, kind, stages),
            )
            for about in all_declarations(LANGUAGE)
        ),
    )
    text = prose.text("coverage", LANGUAGE[kind], findings.model["name"])
    lacks = findings.model.get("chat_template") == "no"
    more = [prose.text("no_template", findings.model["name"])] if lacks else []
    return Section("coverage", "What can be measured", [text, *more, table])


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
    if instruments(kind)[about.name].requires_material:
        return f"needs a file: evenhand measure {about.name} MODEL --data FILE"
    return f"not part of an audit: evenhand measure {about.name} MODEL"
