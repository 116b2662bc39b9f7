"""A browser for all tests of the page, the page itself, and axe-core."""

from __future__ import annotations

import shutil
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest
from devtools import Browser, Page

from evenhand.audit import audit
from evenhand.report.findings import read_findings
from evenhand.report.page import write_report
from evenhand.report.verdicts import Number, Verdict, VerdictTest
from evenhand.simulate import world
from evenhand.vectors import nulls
from evenhand.vectors.store import Vectors

Open = Callable[..., Page]


@pytest.fixture(scope="session")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    program = shutil.which("chromium") or shutil.which("chromium-browser")
    if program is None:
        pytest.skip("chromium is not installed")
    started = Browser(program, tmp_path_factory.mktemp("profile"))
    yield started
    started.close()


@pytest.fixture
def show(browser: Browser, report: Path) -> Iterator[Open]:
    """Open the report, or a page given by its path."""
    pages = []

    def show(path: Path = report, **how: object) -> Page:
        pages.append(browser.open(path, **how))  # type: ignore[arg-type]
        return pages[-1]

    yield show
    for page in pages:
        page.close()


@pytest.fixture(scope="session")
def axe() -> str:
    """The accessibility checker, which `make` puts into the environment."""
    file = Path(sys.prefix) / "browser" / "axe_playwright_python" / "axe.min.js"
    if not file.is_file():
        pytest.skip("axe-core is not installed: `make browser` does it")
    return file.read_text(encoding="utf-8")


WORK = VerdictTest(
    label="words about work", metric="odds", query="work", value=2, low=1.5, high=2.7, p=0.02
)
MORE = (
    Verdict(
        subject="corpus",
        name="letters",
        topic="gender",
        level="some evidence",
        sentence="Some words stand more often beside one gender.",
        numbers=(Number(label="Odds ratio", value=2, low=1.5, high=2.7, p_value=0.001, ideal=1),),
        tests=(WORK,),
        cannot_mean="Of the data.",
    ),
    Verdict(
        subject="masked",
        name="tiny",
        topic="gender",
        level="none found",
        sentence="No difference.",
        numbers=(Number(label="Score", value=0.1, low=-0.2, high=float("inf")),),
        cannot_mean="Not that there is no bias.",
    ),
    Verdict(
        subject="fewshot",
        name="network",
        topic="gender",
        level="not measured",
        sentence="There was nothing to measure it on.",
    ),
)


@pytest.fixture(scope="session")
def report(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The page of a small audit of vectors, with verdicts of all levels on all subjects."""
    w = world(bias=0.5, dim=30, vocabulary=600, seed=2)
    out = tmp_path_factory.mktemp("browser") / "out"
    with pytest.MonkeyPatch.context() as patch:
        few = partial(nulls.dimension_spread, dims=(2, 10, 50), points=100, repeats=4)
        patch.setattr(nulls, "dimension_spread", few)
        v = Vectors.from_arrays(w.words, w.matrix, name="small")
        audit(v, topics=[w.topic], out=out, quick=True, skip=["posterior"])
    findings = read_findings(out)
    shown = replace(findings, verdicts=(*findings.verdicts, *MORE))
    shown.save(out)
    return write_report(out)[0]
