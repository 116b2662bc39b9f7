"""The page of a few-shot run: its answer comes first, and its numbers are those of the run."""

from __future__ import annotations

import re
from dataclasses import replace
from html import unescape
from pathlib import Path

import pytest
from fewshot_runs import measured, run_of

import evenhand as eh
from evenhand.fewshot.metrics.bias import MEASURES
from evenhand.fewshot.runs import RunResults
from evenhand.report.fewshot import write_run


@pytest.fixture(scope="module")
def results() -> RunResults:
    return measured(2.0).results(measured(0.0))


@pytest.fixture(scope="module")
def page(results: RunResults, tmp_path_factory: pytest.TempPathFactory) -> str:
    path = tmp_path_factory.mktemp("page") / "report.html"
    assert eh.report.write_run(run_of(results), path) == path
    return path.read_text(encoding="utf-8")


def text_of(page: str) -> str:
    body = re.sub(r"<(style|script)\b.*?</\1>", "", page, flags=re.DOTALL)
    return " ".join(unescape(re.sub(r"<[^>]+>", " ", body)).split())


def values_of(page: str, caption: str) -> list[list[float]]:
    """The numbers of a table, as they are without rounding."""
    (table,) = (
        part
        for part in re.findall(r"<table.*?</table>", page, flags=re.DOTALL)
        if re.search(rf"<caption[^>]*>{caption}", part)
    )
    rows = re.findall(r"<tr>(.*?)</tr>", table.partition("<tbody>")[2], flags=re.DOTALL)
    return [[float(value) for value in re.findall(r'data-value="([^"]+)"', row)] for row in rows]


def test_the_answer_comes_first_and_the_set_up_last(page: str, results: RunResults) -> None:
    text = text_of(page)
    sentence = " ".join(results.sentence.split())
    assert eh.summary.summarize(results.bias) == results.sentence
    places = [
        text.index(part)
        for part in (
            sentence,
            "ε-robust at",
            "Beside counting words",
            "the loss should fall",
            "given 4 texts of each of 3 classes",
        )
    ]
    assert places == sorted(places)
    assert "The texts are simulated" not in text
    assert "evenhand lab fewshot run --data guilds.csv" in text


def test_numbers_are_those_of_the_run(page: str, results: RunResults) -> None:
    bias, right, above = results.bias, results.accuracy, results.above_baseline
    assert bias is not None
    rows = values_of(page, "The results<")
    assert [row[0] for row in rows] == pytest.approx(
        [right.value, results.baseline.value, bias.value]
    )
    parts = [row[0] for row in values_of(page, "The results, part by part")]
    for name in MEASURES:
        assert bias.part(name, by="measure").value in parts
    for part in right.select("class"):
        assert part.value in parts
    [change] = values_of(page, "Every measure before and after")[:1]
    assert change[2] == pytest.approx(above.change.value)
    gap = bias.part("epsilon", by="measure").details
    assert f"a gap (ε) of {gap['size']:.3f}" in text_of(page)
    assert f"ε-robust at 0.05: {bias.details['verdict']}." in text_of(page)


def test_several_runs_are_compared_with_the_first(results: RunResults, tmp_path: Path) -> None:
    better = measured(0.5).results(measured(0.0))
    runs = [run_of(results), run_of(better, mitigation="neutralize")]
    page = write_run(runs, tmp_path / "page.html").read_text(encoding="utf-8")
    text = text_of(page)
    changes = [eh.compare(results.bias, better.bias), eh.compare(results.accuracy, better.accuracy)]
    assert " ".join(eh.summary.summarize([], changes[:1]).split()) in text
    assert "Before is the first run, proto-euclidean; after is each of the others" in text
    assert "Run 2: proto-euclidean neutralize" in text
    assert len(set(ids := re.findall(r' id="([^"]+)"', page))) == len(ids)
    alone = write_run(runs[:1], tmp_path / "alone.html").read_text(encoding="utf-8")
    assert alone == write_run(runs[0], tmp_path / "one.html").read_text(encoding="utf-8")


def test_runs_of_one_name_have_their_folders(results: RunResults, tmp_path: Path) -> None:
    runs = [replace(run_of(results), folder=Path(name)) for name in ("first", "second")]
    text = text_of(write_run(runs, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert "proto-euclidean (first)" in text
    assert "proto-euclidean (second)" in text


def test_nothing_is_loaded_from_elsewhere(page: str) -> None:
    assert "default-src 'none'" in page
    links = re.findall(r'\b(?:src|href|action|data|poster)="([^"]*)"', page)
    assert links
    assert all(link.startswith(("#", "data:")) for link in links)
    assert not re.search(r"@import|url\(", page)


def test_mitigation_simulated_data_and_missing_bias_are_said(
    results: RunResults, tmp_path: Path
) -> None:
    run = run_of(
        replace(results, bias=None), "simulated:leak=1", mitigation="neutralize", finetune=True
    )
    text = text_of(write_run(run, tmp_path / "page.html").read_text(encoding="utf-8"))
    assert text.index("The texts are simulated") < text.index(str(results.accuracy.value)[:5])
    assert text.count("Gender bias was not measured: no test text") == 1
    assert "Few-shot gender bias" not in text
    assert "the test texts are as they are" in text
    assert "in all texts" not in text
    assert "The classes are divided once" in text
    assert "mini reads the texts and is trained too" in text
