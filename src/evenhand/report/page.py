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
from evenhand.report.annex import annex_section
from evenhand.report.answer import deciding_forest
from evenhand.report.answer import prose as answer_prose
from evenhand.report.blocks import (
    Judged,
    PageTable,
    Prose,
    Section,
    Text,
    cell,
    render_page,
)
from evenhand.report.brief import render_brief, render_methods
from evenhand.report.findings import Findings, read_findings
from evenhand.report.interactive import PAGE_BYTES, Embed, read_embedded, save_embedded
from evenhand.report.methods import label_of, methods, text_of, title_of
from evenhand.report.stages import coverage_section, subject_section
from evenhand.report.verdicts import SUBJECTS, rules
from evenhand.results import Measurement
from evenhand.vectors.declarations import HIDING
from evenhand.wording import shortest

prose = Prose("page")


def sections(findings: Findings) -> list[Section]:
    """The page's sections, one per subject in the order of reading; empty ones are left out."""
    built = [
        *(subject_section(findings, subject) for subject in SUBJECTS),
        appendix(findings),
        annex_section(findings),
    ]
    return [section for section in built if section.blocks or section.parts]


ORDER = (
    *("vectors", "corpus", "posterior", "masked", "causal", "encoder", "answers", "fewshot"),
    "predictions",
)
"""The parts of an audit in the order in which their measures are explained."""
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
        section = others.pop(subject, Section(subject, title))
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
        with replace_file(path, entry=True) as file:
            file.write(content.encode())
    return list(contents)


# ------------------------------------------------------------------------------------- appendix


def appendix(findings: Findings) -> Section:
    """Everything a reader needs to repeat the audit."""
    parts = (
        _methods(findings),
        _word_lists(findings),
        _left_out(findings),
        coverage_section(findings),
        _run(findings),
    )
    return Section("appendix", "Methods", parts=[part for part in parts if part.blocks])


def _methods(findings: Findings) -> Section:
    """Every measure of the parts that were audited: what it asks, and what it rests on here."""
    measured = findings.by_metric()
    rows = []
    for part in (part for part in ORDER if part in findings.settings["parts"]):
        for metric, known in methods(part).items():
            found, declared = measured.get(metric, []), find(metric) is not None
            if not found and not declared and part == "vectors":
                continue  # a test of a mitigation that was not tried
            missing = "not measured here" if declared else "–"
            rows.append(
                (
                    title_of(known),
                    known.question,
                    text_of(known),
                    _without_bias(found[0]) if found else missing,
                    prose.basis(found=found, tests=_tests(found)) if found else "–",
                )
            )
    headers = ("Measure", "Question", "Formula", "Without bias it reads", "Based on")
    blocks = [] if findings.vectors is None else [prose.text("methods")]
    return Section("methods", "Measures", [*blocks, PageTable.of("The measures", headers, rows)])


def _tests(found: Iterable[Measurement]) -> list[str]:
    """What the p-values rest on, without the number of permutations where all were made."""
    return list(
        dict.fromkeys(re.sub(r"all [\d,]+(?= partitions)", "all", m.test) for m in found if m.test)
    )


def _without_bias(m: Measurement) -> str:
    directions = {"higher": "above it", "lower": "below it", "away": "away from it, either side"}
    ideal = "nothing fixed" if m.ideal is None else shortest(m.ideal)
    if m.metric in HIDING and m.metric != "neighbour_bias":
        ideal = "what chance gives"
    return f"{ideal}; more bias lies {directions[m.worse]}"


def _word_lists(findings: Findings) -> Section:
    tables = [
        PageTable.of(
            f"{topic.title}. {topic.provenance}", ("List", "Words", "Source"), _lists(topic)
        )
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
    table = PageTable.of("Words without a vector", ("Word", "Missing in"), rows, words=True)
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
    blocks = [PageTable.of("The run", ("What", "Value"), facts)]
    times = [(title, cell(seconds, 0)) for title, seconds in run.get("seconds", {}).items()]
    if times:
        blocks.append(PageTable.of("Time of the stages", ("Stage", "Seconds"), times, folded=True))
    return Section("run", "Versions and seed", blocks)


def _fact(value: object) -> str:
    """A fact about an input as text; nothing where there is none."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {item}" for name, item in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value or "")
