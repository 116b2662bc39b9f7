"""One self-contained page from what an audit found: nothing is loaded from elsewhere.

The sections of each subject are in the modules of their names; here they are put in order, with
the appendix: methods from the declarations, word lists, what was left out, versions and seed.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

from evenhand.files import replace_file
from evenhand.instruments import find
from evenhand.lexicon import Topic
from evenhand.report import language, masked, text, vectors
from evenhand.report.annex import annex_section
from evenhand.report.answer import deciding_forest
from evenhand.report.answer import prose as answer_prose
from evenhand.report.blocks import (
    Block,
    Judged,
    Prose,
    Section,
    Table,
    Text,
    cell,
    render_page,
)
from evenhand.report.brief import render_brief, render_methods
from evenhand.report.fewshot import fewshot_section
from evenhand.report.findings import Findings, read_findings
from evenhand.report.interactive import PAGE_BYTES, Embed, read_embedded, save_embedded
from evenhand.report.methods import label_of, method, methods, used
from evenhand.report.posterior import posterior_section
from evenhand.report.predictions import predictions_section
from evenhand.report.verdicts import BY_TOPIC, SUBJECTS, rules
from evenhand.results import Measurement

prose = Prose("page")


def sections(findings: Findings) -> list[Section]:
    """The page's sections, one per subject in the order of reading; empty ones are left out."""
    built = [
        text.text_section(findings),
        Section.of(
            "vectors",
            SUBJECTS["vectors"],
            [
                vectors.topic_sections(findings),
                posterior_section(findings),
                vectors.published_tests(findings),
                vectors.mitigations(findings),
                vectors.vector_geometry(findings),
            ],
        ),
        masked.masked_section(findings),
        *(language.model_section(findings, kind) for kind in BY_TOPIC),
        fewshot_section(findings),
        predictions_section(findings),
        further_measures(findings),
        appendix(findings),
        annex_section(findings),
    ]
    return [section for section in built if section.blocks or section.parts]


TABS = {"model": "masked", "classifier": "fewshot"}
"""The names of sections on subjects that have another name."""


SCRIPT = 50_000
"""More than the bytes of the tab that asks an embedded model, without the model."""


def with_verdicts(findings: Findings, built: Iterable[Section]) -> list[Section]:
    """The sections, those on a subject with its verdicts first; a verdict alone is a section."""
    titles = {
        **{verdict.topic: verdict.topic.capitalize() for verdict in findings.verdicts},
        **{topic.name: topic.title for topic in findings.topics},
    }
    others = {section.name: section for section in built}
    shown = []
    for subject, title in SUBJECTS.items():
        name = TABS.get(subject, subject)
        section = others.pop(name, Section(name, title))
        judged = [verdict for verdict in findings.verdicts if verdict.subject == subject]
        if judged:
            section = replace(section, blocks=[Judged(judged, titles), *section.blocks])
        if section.blocks or section.parts:
            shown.append(section)
    return [*shown, *others.values()]


def render(
    findings: Findings, built: list[Section], embedded: Mapping[str, Any] | None = None
) -> str:
    """The page as HTML, with the model that it embeds."""
    facts = {name: value for name, value in (embedded or {}).items() if name != "weights"}
    return render_page(
        "page.html",
        with_verdicts(findings, built),
        findings=findings,
        answer=findings.answer,
        answer_prose=answer_prose,
        forest=deciding_forest(findings),
        verdicts=findings.verdicts,
        subjects=SUBJECTS,
        rules=rules(findings),
        embedded=embedded,
        embedded_facts=facts,
    )


def write_report(folder: str | os.PathLike[str], embed: Embed | None = None) -> list[Path]:
    """Write the page and its figures from what an audit saved in `folder`.

    The figures are part of the page; their files are for use elsewhere. Beside the page are
    `brief.html`, the answer on one printed page, and `methods.html`, formulas and references.

    Parameters
    ----------
    folder : str or path
    embed : callable, optional
        Gives the facts of a model to embed, for the bytes that the page has left. They are saved in
        the folder; without it, the page embeds what was saved there before.

    Returns
    -------
    list of Path
        The page, then the figures.

    """
    findings = read_findings(folder)
    built = sections(findings)
    target = Path(folder)
    (target / "figures").mkdir(exist_ok=True)
    if embed is not None:
        save_embedded(folder, embed(PAGE_BYTES - len(render(findings, built).encode()) - SCRIPT))
    contents = {target / "report.html": render(findings, built, read_embedded(folder))}
    contents |= {
        target / "figures" / f"{figure.name}.svg": figure.svg
        for section in built
        for figure in section.figures()
    }
    depths = {"brief.html": render_brief, "methods.html": render_methods}
    others = {target / name: draw(findings) for name, draw in depths.items()}
    for path, content in (*contents.items(), *others.items()):
        with replace_file(path) as file:
            file.write(content.encode())
    return list(contents)


def further_measures(findings: Findings) -> Section:
    """Instruments without a section of their own, with their parts."""
    own = {*text.SECTIONS, *vectors.SECTIONS, *masked.SECTIONS}
    blocks: list[Block] = []
    for stage in findings.stages:
        shown = stage.kind in own or stage.subject in BY_TOPIC
        if not shown and find(stage.kind) is not None:
            blocks += [Text(f"{label_of(stage.kind)}."), *language.measure_blocks(stage)]
    return Section("further", "Further measures", blocks)


# ------------------------------------------------------------------------------------- appendix


def appendix(findings: Findings) -> Section:
    """Everything a reader needs to repeat the audit."""
    parts = (
        _methods(findings),
        _other_methods(findings),
        _word_lists(findings),
        _left_out(findings),
        language.coverage_section(findings),
        _run(findings),
    )
    return Section("appendix", "Methods", parts=[part for part in parts if part.blocks])


def _measured_vectors(findings: Findings) -> Iterable[Measurement]:
    for stage in findings.stages:
        if stage.subject == "vectors" and stage.kind != "posterior":
            yield from (c.after for c in stage.comparisons if c.metric in vectors.HIDING)
            yield from stage.measurements


def _methods(findings: Findings) -> Section:
    if findings.vectors is None:
        return Section("methods", "Measures of word vectors")
    measured = used(_measured_vectors(findings), "vectors")
    rows = []
    for metric in dict.fromkeys([*measured, *_declared(findings, "vectors")]):
        known, found = method(metric), measured.get(metric, [])
        rows.append(
            (
                known.title if known else label_of(metric),
                known.question if known else "",
                known.text if known else "",
                _without_bias(found[0]) if found else "not measured here",
                prose.basis(found=found, tests=_tests(found)) if found else "–",
            )
        )
    headers = ("Measure", "Question", "Formula", "Without bias it reads", "Based on")
    table = Table.of("The measures", headers, rows)
    return Section(
        "methods", "Measures of word vectors", [prose.text("methods"), table] if rows else []
    )


def _declared(findings: Findings, part: str) -> list[str]:
    """The instruments of a part that was audited."""
    if part not in findings.settings["parts"]:
        return []
    return [name for name in methods(part) if find(name) is not None]


def _tests(found: Iterable[Measurement]) -> list[str]:
    """What the p-values rest on, without the number of permutations where all were made."""
    return list(
        dict.fromkeys(re.sub(r"all [\d,]+(?= partitions)", "all", m.test) for m in found if m.test)
    )


def _without_bias(m: Measurement) -> str:
    directions = {"higher": "above it", "lower": "below it", "away": "away from it, either side"}
    ideal = "nothing fixed" if m.ideal is None else f"{m.ideal:g}".replace("-", "−")
    if m.metric in vectors.HIDING and m.metric != "neighbour_bias":
        ideal = "what chance gives"
    return f"{ideal}; more bias lies {directions[m.worse]}"


def _other_methods(findings: Findings) -> Section:
    """The measures of the other parts, as far as they were audited."""
    measured = {m.metric for stage in findings.stages for m in stage.measurements}
    rows = [
        (
            known.title,
            known.question,
            known.text,
            "no" if find(name) is not None and name not in measured else "yes",
        )
        for part in ("text", "posterior", "masked", "causal", "encoder", "fewshot", "predictions")
        if part in findings.settings["parts"]
        for name, known in methods(part).items()
    ]
    headers = ("Measure", "Question", "Formula", "Measured here")
    table = Table.of("The other measures", headers, rows)
    return Section("more-methods", "Other measures", [table] if rows else [])


def _word_lists(findings: Findings) -> Section:
    tables = [
        Table.of(f"{topic.title}. {topic.provenance}", ("List", "Words", "Source"), _lists(topic))
        for topic in findings.topics
    ]
    return Section("words", "Word lists", tables)


def _lists(topic: Topic) -> Iterable[tuple[str, str, str]]:
    source = topic.sources.get
    for name in topic.classes:
        protected, attributes = topic.protected[name], topic.attributes(name)
        yield f"{name}, protected", ", ".join(protected), source("protected", "")
        yield f"{name}, stereotypes", ", ".join(attributes), source("stereotypes", "")
        if topic.occupations.get(name):
            words = ", ".join(topic.occupations[name])
            yield f"{name}, occupations", words, source("occupations", "")
    sets = "; ".join("–".join(words) for words in topic.definitional)
    yield "defining sets", sets, source("definitional", "")
    yield "human controls", ", ".join(topic.human), source("human", "")
    yield "neutral controls", ", ".join(topic.neutral), source("neutral", "")


def _left_out(findings: Findings) -> Section:
    missing: dict[str, dict[str, None]] = {}
    for stage in findings.stages:
        for m in stage.measurements:
            for word in m.left_out:
                missing.setdefault(word, {})[f"{label_of(m.metric)} ({m.query})"] = None
    if findings.vectors is None:
        return Section("left-out", "Words left out")
    if not missing:
        return Section("left-out", "Words left out", [Text("None: every word has a vector.")])
    rows = ((word, ", ".join(measures)) for word, measures in sorted(missing.items()))
    table = Table.of("Words without a vector", ("Word", "Missing in"), rows, words=True)
    return Section("left-out", "Words left out", [table])


def _run(findings: Findings) -> Section:
    run = findings.run
    facts = [
        (f"{subject.capitalize()}: {name.replace('_', ' ')}", fact)
        for subject, known in findings.subjects.items()
        for name, value in known.items()
        if (fact := _fact(value))
    ]
    facts += [
        ("Command", " ".join(run["command"]) or "called from Python"),
        ("Time", run["time"]),
        ("Seed", str(run["seed"])),
        *((f"Version of {name}", version) for name, version in run["versions"].items()),
    ]
    blocks = [Table.of("The run", ("What", "Value"), facts)]
    times = [(title, cell(seconds, 0)) for title, seconds in run.get("seconds", {}).items()]
    if times:
        blocks.append(Table.of("Time of the stages", ("Stage", "Seconds"), times, folded=True))
    return Section("run", "Versions and seed", blocks)


def _fact(value: Any) -> str:
    """A fact about an input as text; nothing where there is none."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value or "")
