"""One self-contained page from the findings: no script, font, style or picture from elsewhere."""

from __future__ import annotations

import os
from pathlib import Path

from evenhand.report.appendix import appendix
from evenhand.report.blocks import Section
from evenhand.report.findings import Findings, read_findings
from evenhand.report.judging import rules, verdicts
from evenhand.report.pages import render_page
from evenhand.report.sections import published_tests, topic_sections, vector_geometry
from evenhand.report.sections_fewshot import fewshot_section
from evenhand.report.sections_masked import masked_section
from evenhand.report.sections_mitigation import mitigations
from evenhand.report.sections_posterior import posterior_section
from evenhand.report.sections_text import text_section
from evenhand.report.verdicts import SUBJECTS
from evenhand.results import replace_file

__all__ = ["render", "sections", "write_report"]


def sections(findings: Findings) -> list[Section]:
    """The page's sections, in the order of reading; those with nothing to show are left out."""
    built = [
        text_section(findings),
        topic_sections(findings),
        posterior_section(findings),
        published_tests(findings),
        mitigations(findings),
        vector_geometry(findings),
        masked_section(findings),
        fewshot_section(findings),
        appendix(findings),
    ]
    return [section for section in built if section.blocks or section.parts]


def render(findings: Findings, built: list[Section]) -> str:
    """The page as HTML."""
    return render_page(
        "page.html",
        findings=findings,
        sections=built,
        verdicts=verdicts(findings),
        subjects=SUBJECTS,
        titles={"gender": "Gender", **{topic.name: topic.title for topic in findings.topics}},
        rules=rules(findings),
    )


def write_report(folder: str | os.PathLike[str]) -> list[Path]:
    """Make the page and its figures from what an audit saved in `folder`: the page, then figures.

    The figures stand in the page; their files are for use elsewhere.
    """
    findings = read_findings(folder)
    built = sections(findings)
    place = Path(folder)
    (place / "figures").mkdir(exist_ok=True)
    contents = {place / "report.html": render(findings, built)}
    contents |= {
        place / "figures" / f"{figure.name}.svg": figure.svg
        for section in built
        for figure in section.figures()
    }
    for path, text in contents.items():
        with replace_file(path) as file:
            file.write(text.encode())
    return list(contents)
