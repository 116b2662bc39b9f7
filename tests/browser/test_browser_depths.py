"""The brief prints on one page; brief and methods can be read by everybody."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from devtools import Page

from evenhand.report.brief import ROWS, render_brief
from evenhand.report.findings import read_findings
from evenhand.report.verdicts import Verdict, VerdictTest

Open = Callable[..., Page]


def pages(printed: bytes) -> int:
    return printed.count(b"/Type /Page\n") + printed.count(b"/Type /Page ")


def test_the_brief_is_one_page(show: Open, report: Path) -> None:
    page = show(report.with_name("brief.html"))
    assert pages(page.printed()) == 1
    assert page.complaints() == []


def test_the_brief_of_a_long_audit_is_one_page(show: Open, report: Path, tmp_path: Path) -> None:
    findings = read_findings(report.parent)
    (first, *_) = findings.verdicts
    long = [
        replace(first, name=f"a-model-with-a-rather-long-name-{i}", topic=f"topic {i}")
        for i in range(3 * ROWS)
    ]
    none = [_none(f"another-model-with-a-long-name-{i}") for i in range(ROWS)]
    for name, verdicts in (("found", long), ("none", none)):
        path = tmp_path / f"{name}.html"
        path.write_text(render_brief(replace(findings, verdicts=tuple(verdicts))), encoding="utf-8")
        page = show(path)
        assert pages(page.printed()) == 1, name
        assert page.run("document.querySelectorAll('.findings tbody tr').length") == ROWS


def _none(name: str) -> Verdict:
    test = VerdictTest(
        label="A test with a name of some length",
        quantity="a quantity with a name of some length",
        metric="association",
        query="gender",
        value=0.01,
        low=-0.1,
        high=0.1234,
        size=0.1,
        size_low=-1.0,
        size_high=1.234,
        ruled_out=0.1234,
        n=20,
        unit="stereotype words",
        needed=2000,
        p=0.5,
    )
    return Verdict(
        subject="vectors",
        name=name,
        topic="gender",
        level="undecided",
        sentence="None.",
        tests=(test, test),
    )


@pytest.mark.parametrize("name", ["brief.html", "methods.html"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_axe_finds_no_serious_problem(
    show: Open, axe: str, report: Path, name: str, width: int, dark: bool
) -> None:
    page = show(report.with_name(name), width=width, dark=dark)
    assert page.run("document.documentElement.scrollWidth") == width
    page.run(axe + ";0")
    violations: list[dict[str, Any]] = page.run("axe.run().then(found => found.violations)")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in violations
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
