"""`evenhand scores`: tables on the screen, JSON, the page, and errors in one line."""

from __future__ import annotations

import json

import numpy as np
import pandas as pd
import pytest

from evenhand.cli import run


@pytest.fixture
def table(tmp_path):
    rng = np.random.default_rng(0)
    rows = [
        {
            "item": i,
            "model": model,
            "template": t,
            "group": "ab"[i % 2],
            "kind": "xyz"[i % 3],
            "score": score,
        }
        for model, mean in (("one", 0.0), ("two", 0.1), ("three", 2.0), ("four", 2.5))
        for t in ("x", "y", "z")
        for i, score in enumerate((mean + rng.normal(size=30)).tolist())
    ]
    path = tmp_path / "table.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    return path


def test_json_has_models_pairs_and_ranks(table, capsys):
    assert run(["scores", str(table), "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert {m["query"] for m in shown["measurements"]} == {"one", "two", "three", "four"}
    assert len(shown["comparisons"]) == 6
    assert shown["ranking"][0]["query"] == "four"
    assert {m["by"] for m in shown["agreement"]} == {"template", "group"}
    assert shown["comparisons"][0]["p_corrected"] <= 1
    assert {c["family"] for c in shown["comparisons"]} == {6}
    assert run(["scores", str(table)]) == 0
    assert " ".join(capsys.readouterr().out.split()).endswith(shown["sentence"])


def test_the_tables_and_the_last_line_say_what_was_found(table, capsys):
    assert run(["scores", str(table), "--fixed"]) == 0
    shown = capsys.readouterr().out
    for title in ("Means", "Differences", "Ranks", "Agreement of ranks"):
        assert title in shown
    assert "pairs of models differ" in " ".join(shown.split())
    assert "these only" not in shown
    assert run(["scores", str(table)]) == 0
    assert capsys.readouterr().out.count("these only") == 3
    assert run(["scores", str(table), "--gap", "--best", "lowest"]) == 0
    assert "Compared is the gap a - b" in capsys.readouterr().out


def test_many_models_show_the_pairs_with_the_first(tmp_path, capsys):
    rng = np.random.default_rng(1)
    for i in range(6):
        (tmp_path / f"m{i}.txt").write_text("\n".join(map(str, rng.normal(i, 1, 20))))
    assert run(["scores", str(tmp_path)]) == 0
    shown = capsys.readouterr().out
    assert "Differences: from m5" in shown
    assert "10 further pairs" in shown


def test_the_page_and_the_file(table, tmp_path, capsys):
    page, file = tmp_path / "page.html", tmp_path / "all.json"
    assert run(["scores", str(table), "-o", str(page)]) == 0
    text = page.read_text()
    assert "<svg" in text
    assert "Agreement of ranks" in text
    assert "three" in text
    assert run(["scores", str(table), "-o", str(file)]) == 0
    assert len(json.loads(file.read_text())["ranking"]) == 4
    assert "written: " in capsys.readouterr().out


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--score", "scor"], "unknown column 'scor': did you mean 'score'?"),
        (["--gap", "--group", "kind"], "gap: expected two groups of items, got x, y, z"),
        (["-o", "x.pdf"], "expected a file that ends in .html or .json or .csv"),
        (["--cluster", "group", "--cluster", "model"], "column 'model': expected one role"),
    ],
)
def test_wrong_input_is_one_line(table, capsys, options, message):
    assert run(["scores", str(table), *options]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert shown.count("\n") == 1
    assert message in shown


def test_an_ideal_and_several_tasks(tmp_path, capsys):
    rng = np.random.default_rng(0)
    rows = [
        {"item": i, "model": model, "task": task, "score": int(rng.random() < share)}
        for task in ("crows", "other")
        for model, share in (("fair", 0.5), ("low", 0.1), ("high", 0.95))
        for i in range(200)
    ]
    path = tmp_path / "table.csv"
    pd.DataFrame(rows).to_csv(path, index=False)
    assert run(["scores", str(path), "--ideal", "0.5"]) == 2
    assert "expected one task, got 2 (crows, other): choose one with --task" in (
        capsys.readouterr().err
    )
    page = tmp_path / "page.html"
    assert run(["scores", str(path), "--ideal", "0.5", "--task", "crows", "-o", str(page)]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "fair is first, that is nearest to 0.5, of 3 models" in shown
    assert "Differences of the distance from 0.5" in shown
    assert "a difference from 0.5 is found in 2 of 3 models" in shown
    assert "the distance of the mean from 0.5" in page.read_text()


def test_the_help_promises_uncertainty(capsys):
    assert run(["--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "with certainty" not in shown
