"""What every command prints, at 80 columns: it fits, and measuring commands end with a sentence,
which their JSON has too."""

from __future__ import annotations

import io
import json
import re
import sys

import pandas as pd
import pytest
from cli_shell import output

import evenhand.cli
from evenhand.answers.examples import example_answers
from evenhand.cli import run
from evenhand.cli.tables import width
from evenhand.simulate.predictions import biased_predictions

slow = pytest.mark.slow
MEASURING = {
    "answers measure": "answers measure answers.jsonl --group gender --permutations 200",
    "classifier": "classifier pred.csv --group gender --permutations 200",
    "compare": "compare results.json again.json",
    "measure": "measure glove --topic religion --option null=20 --option permutations=200",
    "measure context": "measure context mini",
    "measure crows": "measure crows mini --data pairs.csv --control negate",
    "measure crows,sss": "measure mini --metric crows,sss --data pairs.csv",
    "measure pronouns": "measure pronouns mini --data masked.txt",
    "measure professions": "measure professions mini --persons he/she",
    "measure phrases": "measure phrases mini --set machines",
    "lab posterior describe": "lab posterior describe religion.csv other.csv",
    "lab posterior compare": "lab posterior compare religion.csv other.csv --draws 160",
    "lab posterior fit": "lab posterior fit religion.csv --draws 160",
    "plan": "plan religion --simulations 10",
    "scores": "scores scores.csv",
    "lab annotate read": "lab annotate read ann.csv ben.csv",
    "odds": "odds bios.csv --label job --gender sex",
    "debias": "debias glove --method hard",
    "lab vectors analogies": "lab vectors analogies glove",
    "lab vectors distances": "lab vectors distances glove --topic gender",
    "lab vectors null": "lab vectors null glove --topic gender --metric rnd,direct_bias --null 20",
    "lab vectors occupations": "lab vectors occupations glove",
    "lab fewshot run": "lab fewshot run --ways 3 --shots 2 --queries 2 --episodes 8/4/12 --out run "
    "--data simulated:per_class=12,leak=1",
    "lab fewshot bias": "lab fewshot bias run",
}
"""One command line for each command that measures."""
OTHERS = {
    "ask": 'ask "The clerk lost [MASK] keys."',
    "audit": "audit --predictions pred.csv --group gender --out audit-out",
    "cite": "cite",  # entries of metrics are BibTeX, which is not wrapped
    "doctor": "doctor",
    "gate": "gate policy.toml results.json",
    "info": "info glove",
    "info model": "info mini",
    "list metrics": "list metrics",
    "list models": "list models",
    "list networks": "list networks",
    "list templates": "list templates",
    "list prompts": "list prompts",
    "list topics": "list topics",
    "report": "report audit-out",
    "lab vectors pairs": "lab vectors pairs glove --limit 500",
}
SLOW = {
    *("measure professions", "measure phrases", "lab fewshot run", "lab fewshot bias"),
    *("audit", "report", "lab posterior fit", "debias", "info model", "lab vectors analogies"),
    *("plan", "lab posterior compare", "lab vectors pairs"),
}
STARTS = (
    *("^Found", "^Undecided", "^None found", "^Measured", "^No clear change"),
    *("^Nothing can be said", "^To detect a difference of ", "^glove.hard is"),
    *(" is less biased ", " could be first "),
)
"""What a closing sentence begins with, or says."""


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("tables")
    biased_predictions(200, gap=0.2, seed=1).to_csv(folder / "pred.csv", index=False)
    own = example_answers()
    answers = pd.DataFrame({"item": own.items, "gender": own.groups["gender"], "text": own.texts})
    answers.to_json(folder / "answers.jsonl", orient="records", lines=True)
    (folder / "pairs.csv").write_text(
        ",sent_more,sent_less,stereo_antistereo,bias_type\n"
        "0,The nurse said that she was late.,The nurse said that he was late.,stereo,gender\n"
        "1,The old man was slow.,The young man was slow.,stereo,age\n"
        "2,He was good at maths.,She was good at maths.,antistereo,socioeconomic-status\n"
    )
    (folder / "masked.txt").write_text(
        "[MASK] waves at the driver.\nThe clerk lost [MASK] keys.\nThe cook burned [MASK] hand.\n"
    )
    rows = [("nurse", "F")] * 9 + [("nurse", "M")] * 2 + [("pilot", "M")] * 9 + [("pilot", "F")] * 2
    rows += [("speech and language therapist", "F")] * 4 + [("cook", "M")] * 3
    pd.DataFrame(rows, columns=["job", "sex"]).to_csv(folder / "bios.csv", index=False)
    (folder / "plain.txt").write_text(
        "The drummer sits at the back tapping her foot.\nThe clerk lost his keys.\n"
    )
    scores = [
        {"item": i, "model": f"a-model-with-a-long-name-{m}", "score": (i * 7 + m * 3) % 11}
        for i in range(20)
        for m in range(3)
    ]
    pd.DataFrame(scores).to_csv(folder / "scores.csv", index=False)
    with pytest.MonkeyPatch.context() as patched:
        patched.chdir(folder)
        line = "lab vectors distances glove --topic religion -o religion.csv"
        assert run(line.split()) == 0
        assert run(["filter", "plain.txt", "-o", "accepted.jsonl"]) == 0
        for name, verdict in (("ann.csv", "yes"), ("ben.csv", "no")):
            assert run(["lab", "annotate", "sheet", "accepted.jsonl", "-o", name]) == 0
            pd.read_csv(name).assign(verdict=["yes", verdict]).to_csv(name, index=False)
        table = pd.read_csv("religion.csv")
        table["cosineDistance"] *= 0.95
        table["cosineSimilarity"] = 1 - table["cosineDistance"]
        table.to_csv("other.csv", index=False)
        crows = ["measure", "crows", "mini", "--data", "pairs.csv", "-o", "results.json"]
        assert run(crows) == 0
        (folder / "again.json").write_bytes((folder / "results.json").read_bytes())
        (folder / "policy.toml").write_text(
            'title = "A policy"\n[[rules]]\nmetric = "crows"\nmin = 0.0\nmax = 1.0\n'
        )
    return folder


def check_fit(text, limit=80):
    """No line is too long, no number is cut or wrapped, no column has one word per line."""
    lines = text.splitlines()
    for line in lines:
        assert width(line) <= limit, line
        assert not re.search(r"\d…|…\d", line), line
        assert not re.search(r"\[[-−\d.∞–]+,?$|^\s*[-−\d.∞–]+\]", line), (
            f"a wrapped interval: {line}"
        )
    alone = [len(line.split()) == 1 and line.startswith("   ") for line in lines]
    assert not any(map(all, zip(alone, alone[1:], alone[2:], strict=False))), text


COMMANDS = [
    pytest.param(name, line, marks=slow if name in SLOW else ())
    for name, line in {**MEASURING, **OTHERS}.items()
]


@pytest.mark.parametrize(("name", "line"), COMMANDS, ids=lambda value: value.split(" -")[0])
def test_what_a_command_prints_fits_80_columns(name, line, place, monkeypatch, capsys):
    import shlex

    monkeypatch.chdir(place)
    monkeypatch.setenv("COLUMNS", "80")
    if name == "lab fewshot bias" and not (place / "run").is_dir():
        pytest.skip("needs the run of the test before it")
    if name == "report" and not (place / "audit-out").is_dir():
        pytest.skip("needs the audit of the test before it")
    text = output(capsys, *shlex.split(line))
    check_fit(text)
    if name == "audit":
        found = json.loads(output(capsys, *shlex.split(line), "--json"))
        assert found["sentence"] == found["answer"]["headline"]
    if name in MEASURING:
        again = ("--restart",) if name == "lab fewshot run" else ()
        sentence = json.loads(output(capsys, *shlex.split(line), *again, "--json"))["sentence"]
        assert re.search("|".join(STARTS), sentence), sentence
        assert sentence.endswith(".")
        assert " ".join(text.split()).endswith(" ".join(sentence.replace("−", "-").split())), text


def test_a_saved_table_has_the_rows_on_the_screen_with_all_digits(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    measure = ["measure", "glove", "--topic", "gender", "--metric", "mac,weat"]
    text = output(
        capsys, *measure, "--option", "null=20", "-o", "table.csv", "--items", "items.csv"
    )
    table, items = pd.read_csv("table.csv"), pd.read_csv("items.csv")
    assert table["metric"].tolist() == ["mac", "weat"]
    assert "table" not in table.columns, "of one table the title is no column"
    for value in table["value"]:
        assert f"{value:.3f}" in text
        assert len(str(value)) > 6
    assert set(items["metric"]) == {"mac", "weat"}
    assert {"query", "word", "score"} <= set(items.columns)
    assert text.splitlines()[-3].startswith("written: table.csv")
    as_json = json.loads(
        output(capsys, *measure, "--option", "null=20", "--json", "-o", "again.csv")
    )
    assert pd.read_csv("again.csv")["value"].tolist() == table["value"].tolist()
    assert as_json["sentence"].startswith("Found in ")
    for m in as_json["measurements"]:
        assert m["sentence"].endswith(".")


def test_where_results_cannot_be_saved_is_one_line(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    for option, path, expected in (
        ("-o", "table.xlsx", "expected a file that ends in .csv or .json, got table.xlsx"),
        (
            "--items",
            "items.json",
            "expected a file that ends in .csv or .jsonl or .parquet, got items.json",
        ),
        ("-o", "nowhere/table.csv", "expected a file in a folder that exists"),
        ("-o", "pred.csv", "pred.csv: is an input"),
    ):
        assert run(["classifier", "pred.csv", "--group", "gender", option, path]) == 2
        shown = capsys.readouterr()
        assert shown.out == ""
        assert shown.err.count("\n") == 1
        assert expected in shown.err


@pytest.mark.parametrize("encoding", ["cp1252", "cp437", "ascii"])
def test_old_code_pages_do_not_stop_the_printing(encoding, place, monkeypatch):
    monkeypatch.chdir(place)
    measure = ["evenhand", "measure", "glove", "--topic", "gender", "--metric", "mac"]
    shown = {}
    for form in ((), ("--json",)):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "argv", [*measure, "--option", "null=20", *form])
        with pytest.raises(SystemExit) as ended:
            evenhand.cli.main()
        assert ended.value.code == 0
        stream.flush()
        shown[form] = stream.buffer.getvalue().decode(encoding)
    table = shown[()]
    assert "?" not in table
    assert "1.0 v" in table
    assert "^ v ^v: more bias is above, below, on either side" in table
    assert json.loads(shown[("--json",)])["sentence"].startswith("Found in glove")
