"""The published results of the grid, and the tables of the page that are printed from them."""

from __future__ import annotations

import runpy
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDER = ROOT / "docs" / "results" / "wikibios-minilm"


@pytest.fixture(scope="module")
def script():
    return runpy.run_path(str(ROOT / "benchmarks" / "grid_tables.py"))


@pytest.mark.parametrize("table", ["measure", "task", "network", "mitigation"])
def test_the_tables_of_the_page_are_those_of_the_published_results(script, table):
    page = (ROOT / "docs" / "results.md").read_text(encoding="utf-8")
    assert script[f"{table}_table"](FOLDER) in page


def test_every_cell_of_the_grid_is_published(script):
    rows = script["read"](FOLDER, "results")
    cells = {(row["network"], row["ways"], row["shots"], row["mitigation"]) for row in rows}
    assert len(rows) == len(cells) == 9 * 4 * 4 * 7
    assert {row["splits"] for row in rows} == {"5"}


def test_published_files_are_rounded_copies_of_a_report(script, tmp_path):
    report = tmp_path / "grid" / "report"
    report.mkdir(parents=True)
    for name in script["FILES"]:
        text = "network,ways,value,low\nmaml,16,0.123456789,nan\n"
        (report / f"{name}.csv").write_text(text, encoding="utf-8")
    script["publish"](tmp_path / "grid", tmp_path / "out")
    expected = {"network": "maml", "ways": "16", "value": "0.123457", "low": "nan"}
    assert script["read"](tmp_path / "out", "effects") == [expected]


def test_numbers_are_written_without_a_leading_zero(script):
    row = {"x": "-0.0304", "x_low": "-0.0004", "x_high": "1.25"}
    assert script["shown"](row, "x") == "−.030 [.000, 1.250]"
