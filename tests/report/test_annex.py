"""The annex says what was done and what was not, and makes no legal claim."""

from __future__ import annotations

import re
from dataclasses import replace

from evenhand.report.annex import annex_section
from evenhand.report.blocks import PageTable
from evenhand.report.findings import Findings


def texts(findings: Findings) -> str:
    blocks = annex_section(findings).blocks
    cells = [c.text for b in blocks if isinstance(b, PageTable) for row in b.rows for c in row]
    return " ".join([*cells, *(b.words for b in blocks if not isinstance(b, PageTable))])


def test_what_was_examined_is_named_with_its_measures(findings: Findings) -> None:
    said = texts(findings)
    assert "Association contrast (" in said
    assert "No data set was examined" in said
    assert "Art. 10(2)(f)" in said
    assert "Art. 10(2)(g)" in said
    assert "Measure 2.11" in said
    assert str(findings.run["seed"]) in said
    for remedy in findings.answer.remedies:
        assert remedy.method in said


def test_simulated_texts_and_what_could_not_be_measured_are_named(findings: Findings) -> None:
    data = {"name": "texts", "source": "simulated", "texts": 1200, "classes": 4}
    skip = {"metric": "phrases", "query": "force", "reason": "too few words"}
    first, *rest = findings.stages
    given = replace(
        findings,
        subjects={**findings.subjects, "corpus": data},
        stages=(replace(first, skipped=(skip,)), *rest),
    )
    said = texts(given)
    assert "1,200 texts in 4 classes" in said
    assert "too few words" in said


def test_there_is_no_legal_claim(findings: Findings) -> None:
    assert not re.search(r"compl(y|ies|iant|iance)|conform|certif|lawful", texts(findings).lower())
