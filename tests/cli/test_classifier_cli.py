"""`evenhand classifier` and `evenhand rewrite counterfactuals`."""

from __future__ import annotations

import json
import re

import pandas as pd
import pytest

from evenhand.cli import run
from evenhand.simulate.predictions import biased_predictions


@pytest.fixture(scope="module")
def predictions(tmp_path_factory):
    path = tmp_path_factory.mktemp("predictions") / "predictions.csv"
    frame = biased_predictions(400, gap=0.3, classes=3, seed=1, person=2)
    frame.columns = [name.replace(" ", "_").replace("y_", "") for name in frame.columns]
    frame["true"] = frame["true"].str.replace(" ", "_")
    frame["pred"] = frame["pred"].str.replace(" ", "_")
    frame.to_csv(path, index=False)
    return str(path)


def test_json_has_the_measures_with_parts_by_class(predictions, capsys):
    assert run(["classifier", predictions, "--group", "gender", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    names = [m["metric"] for m in shown["measurements"]]
    assert names == ["tpr-gap", "fpr-gap", "parity-gap", "equalized-odds"]
    for m in shown["measurements"]:
        assert {part["query"] for part in m["parts"] if part["by"] == "class"} == {
            "class_0",
            "class_1",
            "class_2",
        }
    assert {each["metric"] for each in shown["skipped"]} >= {"subgroup-auc", "calibration-gap"}


def test_table_document_and_sentence_have_one_p(predictions, capsys):
    assert run(["classifier", predictions, "--group", "gender", "--json"]) == 0
    gaps = json.loads(capsys.readouterr().out)["measurements"][:2]
    assert [m["family"] for m in gaps] == [2, 2]
    assert max(m["p_corrected"] / m["p_value"] for m in gaps) == pytest.approx(2)


def test_scores_clusters_and_the_last_line(predictions, capsys):
    scores = [f"--score=class_{i}=score_class_{i}" for i in range(3)]
    arguments = ["classifier", predictions, "--group", "gender", "--cluster", "person", *scores]
    assert run(arguments) == 0
    shown = capsys.readouterr().out
    assert "subgroup-auc" in shown
    assert "calibration-gap" in shown
    assert re.match(r"Found in \d+ of \d+ tests of ", shown.splitlines()[-1])
    assert run([*arguments, "--metric", "tpr-gap", "--positive", "class_1", "--json"]) == 0
    [m] = json.loads(capsys.readouterr().out)["measurements"]
    assert [part["query"] for part in m["parts"] if part["by"] == "class"] == ["class_1"]
    assert m["interval"].startswith("Newcombe's over clusters")


def test_texts_go_out_answers_come_back(tmp_path, capsys):
    table = tmp_path / "bios.csv"
    table.write_text(
        "id,bio,job\nr1,Mary said she would rather work nights.,nurse\n"
        "r2,He has been a surgeon for ten years.,surgeon\nr3,It rained all day long here.,none\n"
    )
    pairs = tmp_path / "pairs.jsonl"
    arguments = ["rewrite", "counterfactuals", str(table), "--text", "bio", "--item", "id"]
    assert run([*arguments, "-o", str(pairs)]) == 0
    assert "3 original, 2 swapped, 2 words, 1 names, 2 neutral" in capsys.readouterr().out
    rows = pd.read_json(pairs, lines=True)
    assert list(rows[rows.item == "r1"].version) == [
        "original",
        "swapped",
        "words",
        "names",
        "neutral",
    ]
    rows["answer"] = ["nurse" if "she" in bio.lower().split() else "surgeon" for bio in rows.bio]
    answered = tmp_path / "answered.jsonl"
    rows.to_json(answered, orient="records", lines=True)
    assert run(["classifier", str(answered), "--true", "job", "--json"]) == 0
    found = {m["query"]: m for m in json.loads(capsys.readouterr().out)["measurements"]}
    assert found["swapped"]["value"] == 1
    assert found["names"]["value"] == 0
    assert run(["classifier", str(answered)]) == 0
    assert "counterfactual-flips" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--group", "gendr"], "unknown column 'gendr': did you mean 'gender'?"),
        ([], "which column is the group of people? Name it with --group"),
        (["--group", "person", "--metric", "tpr"], "unknown metric 'tpr'"),
        (["--group", "gender", "--metric", "subgroup-auc"], "expected scores of the classes"),
        (["--group", "gender", "--score", "p"], "--score: expected NAME=COLUMN, got 'p'"),
        (
            ["--group", "gender", "--metric", "bpsn-auc", "--permutations", "9"],
            "none of the chosen",
        ),
    ],
)
def test_wrong_input_is_one_line(predictions, capsys, arguments, message):
    assert run(["classifier", predictions, *arguments]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert shown.count("\n") == 1
    assert message in shown


def test_wrong_texts_are_one_line(tmp_path, capsys):
    table = tmp_path / "t.csv"
    table.write_text("bio,version\nShe sang for many long years.,1\n")
    plain = tmp_path / "plain.csv"
    plain.write_text("bio\nShe sang for many long years.\n")
    swaped = ["rewrite", "counterfactuals", str(plain), "-o", str(tmp_path / "x.csv")]
    assert run([*swaped, "--versions", "swaped"]) == 2
    assert "did you mean 'swapped'" in capsys.readouterr().err
    for more, message in (
        (["-o", str(tmp_path / "x.txt")], "expected"),
        ([], "Missing option '-o' / '--out'"),
        (["-o", str(tmp_path / "x.jsonl")], "column 'version' is there already"),
        (["-o", str(tmp_path / "x.jsonl"), "--text", "boi"], "did you mean 'bio'"),
    ):
        assert run(["rewrite", "counterfactuals", str(table), *more]) == 2
        assert message in capsys.readouterr().err
    assert not (tmp_path / "x.jsonl").exists()
