"""The page of a few-shot run can be read by everybody and loads nothing from elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from devtools import Page
from fewshot_runs import measured, run_of

from evenhand.report.fewshot import write_run

Open = Callable[..., Page]


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    results = measured(2.0).results(measured(0.0))
    return write_run(run_of(results), tmp_path_factory.mktemp("fewshot") / "report.html")


@pytest.mark.slow
@pytest.mark.parametrize("tab", ["start", "training", "setup"])
@pytest.mark.parametrize(("width", "dark"), [(1280, False), (360, True)])
def test_axe_finds_no_serious_problem(
    show: Open, axe: str, page: Path, tab: str, width: int, dark: bool
) -> None:
    shown = show(page, width=width, dark=dark, at=tab)
    assert shown.run("document.querySelector('main > section.on').id") == tab
    assert shown.run("document.documentElement.scrollWidth") == width
    assert shown.complaints() == []
    assert [address for address in shown.requests() if not address.startswith("file:")] == []
    shown.run(axe + ";0")
    serious = [
        (one["id"], [node["html"][:200] for node in one["nodes"]])
        for one in shown.run("axe.run().then(found => found.violations)")
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []
