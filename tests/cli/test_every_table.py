"""What every command prints, at 80 columns: it fits, and measuring commands end with a sentence,
which their JSON has too."""

from __future__ import annotations

import io
import json
import re
import sys

import click
import pandas as pd
import pytest
from cli_shell import output

import evenhand.cli
from evenhand.cli import command, run
from evenhand.cli.tables import width
from evenhand.simulate.predictions import biased_predictions

slow = pytest.mark.slow
MEASURING = {
    "classifier": "classifier pred.csv --group gender --permutations 200",
    "masked context": "masked context",
    "masked crows": "masked crows pairs.csv",
    "masked measure": "masked measure mini --metric crows,sss --data pairs.csv",
    "masked score": "masked score masked.txt",
    "model measure": "model measure mini --metric crows --data pairs.csv --control negate",
    "posterior describe": "posterior describe religion.csv other.csv",
    "posterior compare": "posterior compare religion.csv other.csv --draws 160",
    "posterior fit": "posterior fit religion.csv --draws 160",
    "posterior plan": "posterior plan religion --simulations 10",
    "scores": "scores scores.csv",
    "text annotate read": "text annotate read ann.csv ben.csv",
    "text odds": "text odds bios.csv --label job --gender sex",
    "vectors analogies": "vectors analogies glove",
    "vectors debias": "vectors debias glove --method hard",
    "vectors distances": "vectors distances glove --topic gender",
    "vectors measure": "vectors measure glove --topic religion --null 20 --permutations 200",
    "vectors null": "vectors null glove --topic gender --metric rnd,direct_bias --null 20",
    "vectors occupations": "vectors occupations glove",
    "masked associate": "masked associate --persons he/she",
    "masked phrases": "masked phrases --set machines",
    "fewshot run": "fewshot run --ways 3 --shots 2 --queries 2 --episodes 8/4/12 --out run "
    "--data simulated:per_class=12,leak=1",
    "fewshot bias": "fewshot bias run",
}
"""One command line for each command that measures."""
OTHERS = {
    "ask": 'ask "The clerk lost [MASK] keys."',
    "audit": "audit --predictions pred.csv --group gender --out audit-out",
    "cite": "cite",  # entries of metrics are BibTeX, which is not wrapped
    "doctor": "doctor",
    "gate": "gate policy.toml results.json",
    "list metrics": "list metrics",
    "list models": "list models",
    "list networks": "list networks",
    "list templates": "list templates",
    "list topics": "list topics",
    "model info": "model info mini",
    "report": "report audit-out",
    "vectors info": "vectors info glove",
    "vectors pairs": "vectors pairs glove --limit 500",
}
WITHOUT_TABLES = {
    *("completion", "grid run", "grid status", "masked finetune", "masked generate"),
    *("text annotate sheet", "text anonymize", "text counterfactuals", "text filter"),
    *("text neutralize", "text stereotype", "text substitute", "text swap", "text undo"),
}
"""Commands that write texts or files, or run for hours; their tables are those of the others."""
TESTED_ELSEWHERE = {"explore", "grid report", "model debias"}
"""A server; a grid, in its own tests; minutes of work for tables as those of `vectors debias`."""
SLOW = {
    *("masked associate", "masked phrases", "fewshot run", "fewshot bias"),
    *("audit", "report", "posterior fit", "vectors debias", "model info", "vectors analogies"),
    *("posterior plan", "posterior compare", "vectors pairs"),
}
STARTS = (
    *("^Found", "^Undecided", "^None found", "^Measured", "^No clear change"),
    *("^Nothing can be said", "^To detect a difference of ", "^glove.hard is"),
    *(" is less biased ", " could be first "),
)
"""What a closing sentence begins with, or says."""


def leaves(tree, path=()):
    """The names of all commands."""
    context = click.Context(tree)
    if not isinstance(tree, click.Group):
        return [" ".join(path)]
    names = tree.list_commands(context)
    return [
        leaf for name in names for leaf in leaves(tree.get_command(context, name), (*path, name))
    ]


def test_every_command_is_listed():
    known = {*MEASURING, *OTHERS, *WITHOUT_TABLES, *TESTED_ELSEWHERE}
    assert set(leaves(command)) <= known


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """A folder with what the commands read."""
    folder = tmp_path_factory.mktemp("tables")
    biased_predictions(200, gap=0.2, seed=1).to_csv(folder / "pred.csv", index=False)
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
        assert (
            run(["vectors", "distances", "glove", "--topic", "religion", "-o", "religion.csv"]) == 0
        )
        assert run(["text", "filter", "plain.txt", "-o", "accepted.jsonl"]) == 0
        for name, verdict in (("ann.csv", "yes"), ("ben.csv", "no")):
            assert run(["text", "annotate", "sheet", "accepted.jsonl", "-o", name]) == 0
            pd.read_csv(name).assign(verdict=["yes", verdict]).to_csv(name, index=False)
        table = pd.read_csv("religion.csv")
        table["cosineDistance"] *= 0.95
        table["cosineSimilarity"] = 1 - table["cosineDistance"]
        table.to_csv("other.csv", index=False)
        crows = ["masked", "crows", "pairs.csv", "-o", "results.json"]
        assert run(crows) == 0
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
    if name == "fewshot bias" and not (place / "run").is_dir():
        pytest.skip("needs the run of the test before it")
    if name == "report" and not (place / "audit-out").is_dir():
        pytest.skip("needs the audit of the test before it")
    text = output(capsys, *shlex.split(line))
    check_fit(text)
    if name == "audit":
        found = json.loads(output(capsys, *shlex.split(line), "--json"))
        assert found["sentence"] == found["answer"]["headline"]
    if name in MEASURING:
        again = ("--restart",) if name == "fewshot run" else ()
        sentence = json.loads(output(capsys, *shlex.split(line), *again, "--json"))["sentence"]
        assert re.search("|".join(STARTS), sentence), sentence
        assert sentence.endswith(".")
        assert " ".join(text.split()).endswith(" ".join(sentence.split())), text


def test_a_saved_table_has_the_rows_on_the_screen_with_all_digits(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    measure = ["vectors", "measure", "glove", "--topic", "gender", "--metric", "mac,weat"]
    text = output(capsys, *measure, "--null", "20", "-o", "table.csv", "--items", "items.csv")
    table, items = pd.read_csv("table.csv"), pd.read_csv("items.csv")
    assert table["metric"].tolist() == ["mac", "weat"]
    assert "table" not in table.columns, "of one table the title is no column"
    for value in table["value"]:
        assert f"{value:.3f}" in text
        assert len(str(value)) > 6
    assert set(items["metric"]) == {"mac", "weat"}
    assert {"query", "word", "score"} <= set(items.columns)
    assert text.splitlines()[-3].startswith("written: table.csv")
    as_json = json.loads(output(capsys, *measure, "--null", "20", "--json", "-o", "again.csv"))
    assert pd.read_csv("again.csv")["value"].tolist() == table["value"].tolist()
    assert as_json["sentence"].startswith("Found in ")
    for m in as_json["measurements"]:
        assert m["sentence"].endswith(".")


def test_where_results_cannot_be_saved_is_one_line(place, monkeypatch, capsys):
    monkeypatch.chdir(place)
    for option, path, expected in (
        ("-o", "table.xlsx", "expected a file that ends in .csv or .json, got table.xlsx"),
        ("--items", "items.json", "expected a file that ends in .csv, got items.json"),
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
    measure = ["evenhand", "vectors", "measure", "glove", "--topic", "gender", "--metric", "mac"]
    shown = {}
    for form in ((), ("--json",)):
        stream = io.TextIOWrapper(io.BytesIO(), encoding=encoding)
        monkeypatch.setattr(sys, "stdout", stream)
        monkeypatch.setattr(sys, "argv", [*measure, "--null", "20", *form])
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
