"""The findings as Markdown: blocks for a model card and a data card, and a summary on one page."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

from evenhand.errors import InputError
from evenhand.report.cards_data import data_tables
from evenhand.report.cards_index import dataset_metadata, model_metadata
from evenhand.report.cards_parts import (
    beyond,
    decided_by,
    levels,
    methods,
    missing,
    mitigated,
    none_found,
    numbers_of,
    run_facts,
    said,
    values_table,
)
from evenhand.report.findings import Findings, read_findings
from evenhand.report.judging import verdicts
from evenhand.report.markdown import bullets, escaped, paragraphs
from evenhand.report.verdicts import Subject
from evenhand.report.wording import percent
from evenhand.results import replace_file

__all__ = ["data_card", "model_card", "summary_markdown", "write_cards"]

HEADING = "## Bias, risks and limitations"
JUDGED: dict[str, tuple[Subject, ...]] = {
    "model": ("model", "classifier"),
    "vectors": ("vectors",),
    "data": ("data", "classifier"),
}
"""The verdicts that a card of each kind is about: classifiers are made of a model and data."""


def model_card(findings: Findings, about: Literal["model", "vectors"] | None = None) -> str:
    """The findings on a model as a block for its card: metadata first, then what they say.

    A card is about one model: the masked language model where one was audited, else the vectors,
    unless `about` says which.
    """
    there = [name for name in ("model", "vectors") if name in findings.subjects]
    if (about or "model") not in there and (about or not there):
        asked = about or "model or vectors"
        raise InputError(
            f"model card: expected an audit of {asked}, got one of "
            f"{', '.join(findings.subjects) or 'nothing'}"
        )
    kind = about or there[0]
    name = str(findings.subjects[kind]["name"])
    judged = [
        (verdict, numbers_of(findings, verdict))
        for verdict in verdicts(findings)
        if verdict.subject in JUDGED[kind]
    ]
    return paragraphs(
        [model_metadata(name, findings, judged), HEADING, *_body(findings, kind, name)]
    )


def data_card(findings: Findings) -> str:
    """The findings on the data as a block for their card."""
    data = findings.subjects.get("data")
    if data is None:
        raise InputError(
            f"data card: expected an audit of data, got one of {', '.join(findings.subjects)}"
        )
    name = str(data["name"])
    front = dataset_metadata(name, int(data["texts"]))
    return paragraphs([front, HEADING, *_body(findings, "data", name, data_tables(findings))])


def _body(findings: Findings, kind: str, name: str, tables: Sequence[str] = ()) -> list[str]:
    subjects = JUDGED[kind]
    judged = [verdict for verdict in verdicts(findings) if verdict.subject in subjects]
    version = findings.run["versions"]["evenhand"]
    return [
        f"{escaped(name)} was audited for social bias with Evenhand {version} on "
        f"{findings.run['time'][:10]}. Intervals are at {percent(findings.settings['prob'])}.",
        "### Verdicts",
        bullets(said(verdict) for verdict in judged) or "Nothing was judged.",
        *values_table("### Numbers", findings, judged),
        *decided_by(judged),
        *tables,
        *none_found(judged),
        "### What these numbers cannot say",
        beyond(findings, (verdict.subject for verdict in judged)),
        *missing(findings, subjects),
        *methods(findings, subjects),
        "### Versions and seed",
        run_facts(findings, (kind,)),
    ]


def summary_markdown(findings: Findings) -> str:
    """All verdicts with their numbers on one page, and where the figures and tables are."""
    judged = verdicts(findings)
    subjects = tuple(dict.fromkeys(verdict.subject for verdict in judged))
    files = sorted(findings.run.get("files", []))
    quick = " It was a quick audit." if findings.settings["quick"] else ""
    return paragraphs(
        [
            f"# Bias audit of {escaped(findings.name)}",
            f"Evenhand {findings.run['versions']['evenhand']}, {findings.run['time'][:10]}. "
            f"Intervals are at {percent(findings.settings['prob'])}.{quick} "
            "The page with all figures: [report.html](report.html).",
            "## Verdicts",
            levels(judged),
            bullets(said(verdict) for verdict in judged) or "Nothing was judged.",
            *values_table("## Numbers", findings, judged),
            *none_found(judged, "## "),
            "## What these numbers cannot say",
            beyond(findings, subjects),
            *missing(findings, subjects, "## "),
            *mitigated(findings),
            *_links("## Figures", files, "figures"),
            *_links("## Tables", files, "tables"),
            "## Versions and seed",
            run_facts(findings, tuple(findings.subjects)),
        ]
    )


def _links(heading: str, files: Sequence[str], folder: str) -> list[str]:
    found = [name for name in files if name.startswith(f"{folder}/")]
    links = [f"[{Path(name).stem.replace('-', ' ')}]({name})" for name in found]
    return [heading, bullets(links)] if links else []


def write_cards(folder: str | os.PathLike[str]) -> list[Path]:
    """Write the cards of the audit in `folder` beside its page, as far as it has what they are of.

    `summary.md` always; `model_card.md` on the model, or on the vectors where no model was
    audited; `vectors_card.md` where both were; `data_card.md` where data were.
    """
    findings = read_findings(folder)
    texts = {"summary.md": summary_markdown(findings)}
    if "model" in findings.subjects or "vectors" in findings.subjects:
        texts["model_card.md"] = model_card(findings)
    if "model" in findings.subjects and "vectors" in findings.subjects:
        texts["vectors_card.md"] = model_card(findings, "vectors")
    if "data" in findings.subjects:
        texts["data_card.md"] = data_card(findings)
    written = []
    for name, text in texts.items():
        written.append(Path(folder) / name)
        with replace_file(written[-1]) as file:
            file.write(text.encode())
    return written
