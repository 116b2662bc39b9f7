"""The appendix: what each measure is, the words used, what was left out, versions and seed."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from evenhand.lexicon import Topic
from evenhand.report.blocks import Section, Table, Text, cell
from evenhand.report.findings import Findings
from evenhand.report.methods import METHODS, label, used
from evenhand.report.methods_fewshot import METHODS as FEWSHOT
from evenhand.report.methods_masked import METHODS as MASKED
from evenhand.report.methods_posterior import METHODS as POSTERIOR
from evenhand.report.methods_text import METHODS as TEXT
from evenhand.results import Measurement

__all__ = ["appendix"]

_NUMBER_OF_ALL = re.compile(r"all [\d,]+(?= partitions)")


def appendix(findings: Findings) -> Section:
    """Everything a reader needs to redo the audit."""
    return Section(
        "appendix",
        "Appendix",
        parts=[
            part
            for part in (
                _methods(findings),
                _other_methods(findings),
                _word_lists(findings),
                _left_out(findings),
                _run(findings),
            )
            if part.blocks
        ],
    )


def _every(findings: Findings) -> Iterable[Measurement]:
    for stage in findings.stages:
        yield from stage.measurements
        for account in stage.mitigations:
            yield from (c.after for c in account.hiding)
            yield from account.utility


def _methods(findings: Findings) -> Section:
    directions = {"higher": "above it", "lower": "below it", "away": "away from it, either side"}
    if findings.vectors is None:
        return Section("methods", "Methods")
    rows = []
    for metric, found in used(_every(findings)).items():
        m, method = found[0], METHODS.get(metric)
        tests = dict.fromkeys(_NUMBER_OF_ALL.sub("all", one.test) for one in found if one.test)
        rows.append(
            (
                f"{label(metric)} ({method.source})" if method else label(metric),
                method.question if method else "",
                method.formula if method else "",
                f"{_without_bias(m)}; more bias lies {directions[m.worse]}",
                f"Interval: {m.interval}. p: {'; '.join(tests) or 'no test'}.",
            )
        )
    return Section(
        "methods",
        "Methods",
        [
            Text(
                "cos is the cosine of the angle between two vectors, cosine distance is 1 − cos. "
                "Intervals speak of the words: how the value might have come out with other words "
                "of the same kind. They say nothing about another training of the vectors."
            ),
            Table.of(
                "The measures",
                ("Measure", "Question", "Formula", "Without bias it reads", "Rests on"),
                rows,
            ),
        ],
    )  # fmt: skip


def _other_methods(findings: Findings) -> Section:
    """The measures of the parts other than word vectors, as far as they were made."""
    parts = findings.settings["parts"]
    every = {"text": TEXT, "posterior": POSTERIOR, "masked": MASKED, "fewshot": FEWSHOT}
    rows = [
        (f"{method.label} ({method.source})" if method.source else method.label, method.question,
         method.formula)
        for part, methods in every.items()
        if part in parts
        for method in methods.values()
    ]  # fmt: skip
    table = Table.of("The other measures", ("Measure", "Question", "Formula"), rows)
    return Section("more-methods", "Methods beyond word vectors", [table] if rows else [])


def _without_bias(m: Measurement) -> str:
    if m.metric in ("cluster_purity", "recovery_linear", "recovery_rbf"):
        return "what chance gives"
    return "nothing fixed" if m.ideal is None else f"{m.ideal:g}".replace("-", "−")


def _word_lists(findings: Findings) -> Section:
    return Section(
        "words",
        "Word lists",
        [
            Table.of(
                f"{topic.title}. {topic.provenance}",
                ("List", "Words", "Source"),
                _lists(topic),
            )
            for topic in findings.topics
        ],
    )


def _lists(topic: Topic) -> Iterable[tuple[str, str, str]]:
    for name in topic.classes:
        yield f"{name}, protected", ", ".join(topic.protected[name]), _source(topic, "protected")
        yield (
            f"{name}, stereotypes",
            ", ".join(topic.attributes(name)),
            _source(topic, "stereotypes"),
        )
        if topic.occupations.get(name):
            words = ", ".join(topic.occupations[name])
            yield f"{name}, occupations", words, _source(topic, "occupations")
    sets = "; ".join("–".join(words) for words in topic.definitional)
    yield "defining sets", sets, _source(topic, "definitional")
    yield "human controls", ", ".join(topic.human), _source(topic, "human")
    yield "neutral controls", ", ".join(topic.neutral), _source(topic, "neutral")


def _source(topic: Topic, name: str) -> str:
    return topic.sources.get(name, "")


def _left_out(findings: Findings) -> Section:
    found: dict[str, dict[str, None]] = {}
    for stage in findings.stages:
        for m in stage.measurements:
            for word in m.left_out:
                found.setdefault(word, {})[f"{label(m.metric)} ({m.query})"] = None
    if findings.vectors is None:
        return Section("left-out", "Words left out")
    if not found:
        return Section("left-out", "Words left out", [Text("None: every word has a vector.")])
    return Section(
        "left-out",
        "Words left out",
        [
            Table.of(
                "Words without a vector",
                ("Word", "Missing in"),
                ((word, ", ".join(places)) for word, places in sorted(found.items())),
                words=True,
            )
        ],
    )


def _run(findings: Findings) -> Section:
    run = findings.run
    facts: list[tuple[str, str]] = []
    for subject, told in findings.subjects.items():
        for name, value in told.items():
            words = _told(value)
            if words:
                facts.append((f"{subject.capitalize()}: {name.replace('_', ' ')}", words))
    facts += [
        ("Command", " ".join(run["command"]) or "called from Python"),
        ("Time", run["time"]),
        ("Seed", str(run["seed"])),
        *((f"Version of {name}", version) for name, version in run["versions"].items()),
    ]
    times = [(title, cell(took, 0)) for title, took in run.get("seconds", {}).items()]
    blocks = [Table.of("The run", ("What", "Value"), facts)]
    if times:
        blocks.append(
            Table.of("Time that the stages took", ("Stage", "Seconds"), times, folded=True)
        )
    return Section("run", "Versions and seed", blocks)


def _told(value: Any) -> str:
    """A fact about an input in words; nothing where there is nothing to tell."""
    if isinstance(value, Mapping):
        return ", ".join(f"{name}: {one}" for name, one in value.items())
    if isinstance(value, list | tuple):
        return "; ".join(map(str, value))
    return f"{value:,}" if isinstance(value, int) else str(value or "")
