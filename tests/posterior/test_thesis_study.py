"""The study of Dobrzeniecka (2021): its page has what the script prints, and the rules by hand."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import pytest

import thesis
from evenhand.posterior import fit, read_table

ROOT = Path(__file__).parents[2]
PUBLISHED = ROOT / "docs" / "results" / "thesis"


def test_the_page_has_the_published_numbers(capsys, monkeypatch):
    script = ROOT / "benchmarks" / "thesis.py"
    monkeypatch.setattr(sys, "argv", [str(script), str(PUBLISHED), "--tables"])
    runpy.run_path(str(script), run_name="__main__")
    rows = [line for line in capsys.readouterr().out.splitlines() if line.startswith("| ")]
    page = (ROOT / "docs" / "experiments" / "thesis.md").read_text(encoding="utf-8")
    assert len(rows) > 130
    for line in rows:
        assert line in page, line


def outcomes_of(*outcomes):
    """One test per word: its value and what the judge says; "!" is a value below 0."""
    return [
        {
            "word": f"word{i}|man",
            "query": thesis.DELTA,
            "value": "-0.2" if outcome.endswith("!") else "0.2",
            "outcome": outcome.rstrip("!"),
        }
        for i, outcome in enumerate(outcomes)
    ]


@pytest.mark.parametrize(
    ("sign", "some", "outcomes", "expected"),
    [
        (1, False, ("found", "found", "undecided"), ("2, 0, 1", "holds")),
        (1, False, ("found", "found", "found!", "none found"), ("2, 2, 0", "does not hold")),
        (1, False, ("found", "undecided", "found!"), ("1, 1, 1", "undecided")),
        (-1, True, ("found!", "found", "undecided"), ("1, 1, 1", "holds")),
        (-1, True, ("found", "none found"), ("0, 2, 0", "does not hold")),
        (-1, True, ("found", "undecided"), ("0, 1, 1", "undecided")),
        (0, False, ("none found", "none found", "found"), ("2, 1, 0", "holds")),
        (0, False, ("undecided", "found", "found!"), ("0, 2, 1", "does not hold")),
    ],
)
def test_the_rule_of_a_statement(sign, some, outcomes, expected):
    statement = thesis.Statement("gender", "…", (thesis.DELTA,), sign, some=some)
    assert thesis.judge_statement(statement, outcomes_of(*outcomes)) == expected


def test_a_statement_about_one_class_has_no_words_of_another():
    statement = thesis.Statement("gender", "…", (thesis.DELTA,), 1, of="woman")
    assert thesis.judge_statement(statement, outcomes_of("found"))[0] == "0, 0, 0"


@pytest.mark.slow
def test_a_run_on_the_author_s_tables_gives_the_published_results(shared):
    """What has no random draws is the same; what has them is near."""
    folder = shared / "data" / "cosine"
    results = thesis.Results(PUBLISHED)

    def compare(rows, **tolerance):
        for r in rows:
            where = {name: r.get(name, "") for name in ("model", "query", "word")}
            known = results.one(r["part"], r["table"], **where)
            assert r["value"] == pytest.approx(float(known["value"]), **tolerance), where
            assert r.get("outcome", "") == known["outcome"]

    table = read_table(folder / f"{thesis.RELIGION}.csv")
    compare(thesis.describe(thesis.RELIGION, table), abs=2e-5)
    compare(thesis.measure_controls("Google", folder / "controlGoogle.csv"), abs=2e-5)
    compare(thesis.measure_euclidean(), abs=2e-4)
    crossed = fit(table, draws=1600, seed=1)
    rows = thesis.measure_crossed(thesis.RELIGION, crossed)
    compare([r for r in rows if r["part"] != "crossed"], abs=0.012)  # not the weight of one model
    islam = table.select_words(thesis.ISLAM_WORDS)
    naive = list(thesis.measure_coefficients(thesis.ISLAM, fit(islam, "coefficients", seed=1)))
    compare([r for r in naive if r["part"] == "contrast"], abs=0.006)


@pytest.mark.slow
def test_the_words_of_the_statements_are_tested_on_the_author_s_tables(shared):
    """The differences of means are exact; 800 draws decide as the published ones where clear."""
    folder = shared / "data" / "cosine"
    published = thesis.Results(PUBLISHED)
    names = [folder / f"{name}.csv" for name in ("genderReddit", thesis.debiased("gender"))]
    change = thesis.compare_tables(*names, "separate", draws=800)
    rows = list(thesis.check_statements("separate", {"gender": change}, {"draws": 800}))
    assert len(rows) == 14 * 5
    for r in rows:
        where = {name: r[name] for name in ("model", "query", "word")}
        known = published.one("statement", "gender", **where)
        assert r["sd"] == pytest.approx(float(known["sd"]), abs=1e-5)
        assert r["value"] == pytest.approx(float(known["value"]), abs=0.015)
