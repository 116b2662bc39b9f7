"""`evenhand answers measure`."""

from __future__ import annotations

import json
import re

import numpy as np
import pandas as pd
import pytest

from evenhand.answers.examples import example_answers
from evenhand.cli import run


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    own = example_answers()
    frame = pd.DataFrame({"item": own.items, "text": own.texts, "prompt": own.prompts})
    frame["gender"] = own.groups["gender"]
    frame["sample"] = np.tile(np.arange(4), 24)
    frame["rating"], frame["hired"] = own.scores["rating"], own.labels["hired"]
    path = tmp_path_factory.mktemp("answers") / "answers.jsonl"
    frame.to_json(path, orient="records", lines=True)
    gold = frame.iloc[::2][["item", "gender", "sample", "hired"]]
    gold.rename(columns={"hired": "gold"}).to_csv(path.with_name("gold.csv"), index=False)
    return str(path)


def measured(capsys, *arguments):
    assert run(["answers", "measure", *arguments, "--json"]) == 0
    return json.loads(capsys.readouterr().out)


def test_all_that_the_table_allows_is_measured(answers, capsys):
    shown = measured(capsys, answers, "--group", "gender")
    assert [m["query"] for m in shown["measurements"] if m["metric"] == "difference"] == [
        "sentiment, gender: man - woman",
        "length, gender: man - woman",
    ]
    assert {each["metric"] for each in shown["skipped"]} == {
        "agreement",
        "decisions",
        "representation",
    }
    assert run(["answers", "measure", answers, "--group", "gender"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert sum(line.startswith("not measured: ") for line in lines) == 3
    assert re.match(r"(Found|Undecided|None found)", lines[-1])


def test_scores_labels_and_gold(answers, capsys):
    arguments = ("--group", "gender", "--metric", "difference", "--score", "rating")
    shown = measured(capsys, answers, *arguments, "--score", "length", "--permutations", "200")
    assert [m["query"].split(",")[0] for m in shown["measurements"]] == ["rating", "length"]
    arguments = ("--group", "gender", "--metric", "decisions", "--label", "hired")
    [alone] = measured(capsys, answers, *arguments)["measurements"]
    gold = answers.replace("answers.jsonl", "gold.csv")
    [m] = measured(capsys, answers, *arguments, "--gold", gold)["measurements"]
    assert m["details"]["labels"] == 48
    assert m["high"] - m["low"] > alone["high"] - alone["low"]
    assert "taken at its word" in " ".join(alone["notes"])


def test_tables_and_items_are_saved(answers, capsys, tmp_path):
    out, items = tmp_path / "out.csv", tmp_path / "items.csv"
    arguments = ["answers", "measure", answers, "--group", "gender", "--metric", "refusals"]
    assert run([*arguments, "-o", str(out), "--items", str(items)]) == 0
    assert "refusals" in out.read_text()
    assert len(pd.read_csv(items)) == 12
    assert run([*arguments, "-o", answers, "--overwrite"]) == 2
    assert "error:" in capsys.readouterr().err


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--group", "gendr"], "unknown column 'gendr': did you mean 'gender'?"),
        (["--group", "gender", "--metric", "words", "--label", "hird"], "unknown column 'hird'"),
        (["--metric", "refusals"], "a column of groups, got none: name it with --group"),
        (["--group", "gender", "--metric", "decision"], "unknown metric 'decision'"),
        (["--group", "gender", "--score", "text"], "'text': expected a number, got"),
        (["--group", "gender", "--metric", "refusals", "--prior", "1"], "none of the chosen"),
        (["--group", "gender", "--text", "txt"], "unknown column 'txt'"),
        (
            ["--group", "prompt", "--item", "item", "--metric", "refusals"],
            "got answers to one item",
        ),
        (["--group", "gender", "--gold", "nowhere.csv"], "nowhere.csv"),
    ],
)
def test_wrong_input_is_one_line(answers, capsys, arguments, message):
    assert run(["answers", "measure", answers, *arguments]) == 2
    shown = capsys.readouterr().err
    assert shown.startswith("error: ")
    assert shown.count("\n") == 1
    assert message in shown
