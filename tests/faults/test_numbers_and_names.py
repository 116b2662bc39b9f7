"""Numbers, names, cells and options that are odd: one line and exit 2, or the right result."""

from __future__ import annotations

import csv
import io
import json
import os
from pathlib import Path
from xml.etree import ElementTree

import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.cli import run
from evenhand.explore.run import View, as_csv
from evenhand.files import encodable_name, parse_number, save_csv
from evenhand.gate import check
from evenhand.results import Measurement
from evenhand.scores import analyze

HUGE = "9" * 400


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,text,label\n1,she reads,x\n2,he runs,y\n")
    Path("p.toml").write_text('[[rules]]\nmetric = "weat"\nmin = -1.0\nmax = 1.0\n')
    Path("one.csv").write_text("true,pred,gender\n" + "a,a,m\na,a,f\n" * 10)
    Path("head.csv").write_text("true,pred,gender\n")


def _scores(first: str, second: str = "1") -> None:
    rows = [f"{i},{m},{v}\n" for i in range(6) for m, v in (("a", first), ("b", second))]
    Path("s.csv").write_text("item,model,score\n" + "".join(rows))


def _lm(value: str) -> None:
    Path("lm/m").mkdir(parents=True)
    row = '{"doc_id": %d, "doc": {}, "filter": "none", "acc": %s}\n'
    text = "".join(row % (i, value) for i in range(5))
    Path("lm/m/samples_t_2024-01-01T00-00-00.jsonl").write_text(text)


def _inspect(*values: str) -> None:
    sample = '{"id": %d, "epoch": 1, "scores": {"match": {"value": %s}}}'
    rows = ",".join(sample % (i, values[i % len(values)]) for i in range(6))
    about = '{"version": 2, "eval": {"model": "m", "task": "t"}, "samples": ['
    Path("log.json").write_text(about + rows + "]}")


@pytest.mark.parametrize("value", [HUGE, "1e308", "-1e308", "inf", "1_000", "١", "½", "0x10"])
def test_scores_that_are_no_numbers_of_a_table(capsys, value):
    _scores(value)
    assert "score" in failure(capsys, "scores", "s.csv")


def test_whole_numbers_of_400_digits(capsys):
    _lm(HUGE)
    _inspect(HUGE)
    assert "400 digits" in failure(capsys, "scores", "lm")
    assert "400 digits" in failure(capsys, "scores", "log.json")
    Path("big.toml").write_text(f'[[rules]]\nmetric = "weat"\nmax = {HUGE}\n')
    assert run(["measure", "glove", "--topic", "gender", "--metric", "weat", "-o", "w.json"]) == 0
    capsys.readouterr()
    assert "expected a number" in failure(capsys, "gate", "big.toml", "w.json")
    content = json.loads(Path("w.json").read_text())
    for key in ("value", "n", "seed"):
        content["measurements"][0][key] = 12345
        Path("big.json").write_text(json.dumps(content).replace("12345", HUGE))
        for words in (("gate", "p.toml"), ("gate", "--init"), ("compare", "w.json")):
            assert "400 digits" in failure(capsys, *words, "big.json")


def test_booleans_of_inspect_are_scores():
    _inspect("true", "false")
    assert analyze("log.json").measurements[0].value == 0.5


def test_numbers_are_those_of_json():
    assert [parse_number(cell) for cell in ("1", " 2.5e3 ", 3, True)] == [1, 2500, 3, 1]
    for cell in ("1_0", "١", "", "a", None, 10**400, []):
        with pytest.raises(ValueError):  # noqa: PT011
            parse_number(cell)


@pytest.mark.parametrize(
    "words",
    [
        ("rewrite", "swap", "a.csv", "--text", ""),
        ("classifier", "head.csv", "--group", "gender"),
        ("classifier", "one.csv", "--true", "gender", "--group", "gender"),
        ("classifier", "one.csv", "--true", "true", "--pred", "true", "--group", "gender"),
        ("lab", "fewshot", "run", "--data", "a.csv", "--male", "F", "--female", "F", "-o", "run"),
        ("measure", "weat", "glove", "--permutations", "100000000000"),
    ],
    ids=" ".join,
)
def test_each_is_one_line(capsys, words):
    failure(capsys, *words)


def test_300_classes_in_300_groups_are_refused_at_once(capsys):
    rows = [f"c{i % 300},c{i % 7},g{i // 300}\n" for i in range(90_000)]
    Path("many.csv").write_text("true,pred,g\n" + "".join(rows))
    message = failure(capsys, "classifier", "many.csv", "--group", "g")
    assert "300 groups and 300 classes (27,000,000): merge" in message


def test_one_class_is_measured(capsys):
    assert "0.000" in output(capsys, "classifier", "one.csv", "--group", "gender")


def test_names_that_are_not_utf8(capsys):
    odd = os.fsdecode(b"b\xff.csv")
    Path(odd).write_bytes(Path("a.csv").read_bytes())
    swapped = os.fsdecode(b"o\xff.csv")
    shown = output(capsys, "rewrite", "swap", odd, "--text", "text", "-o", swapped, "--json")
    assert json.loads(shown)["schema"] == "evenhand/2"
    assert Path(swapped).read_text().splitlines()[1] == "1,he reads,x"
    assert encodable_name(odd) == "b\ufffd.csv"
    assert json.loads(output(capsys, "odds", odd, "--label", "label", "--json"))


def test_junit_is_well_formed():
    name = "a\ufffe\uffff\x00b"
    about = {"worse": "higher", "interval": "bootstrap", "ideal": 0.0}
    m = Measurement(metric="demo", query=name, value=0.2, low=0.1, high=0.3, n=10, **about)
    Path("demo.toml").write_text('[[rules]]\nmetric = "demo"\nmax = 1.0\n')
    m.save("m.json")
    ElementTree.fromstring(check("demo.toml", ["m.json"]).to_junit())  # noqa: S314


CELLS = ["=1+1", "+1", "-1", "@A1", "\tx", "she"]


def test_cells_are_no_formulas(tmp_path):
    rows = [{"text": cell, "value": -1.5} for cell in CELLS]
    save_csv("t.csv", rows)
    with Path("t.csv").open(newline="") as file:
        saved = list(csv.DictReader(file))
    shown = list(csv.DictReader(io.StringIO(as_csv(rows, View()))))
    for cells in (saved, shown):
        assert [row["text"] for row in cells] == [*(f"'{cell}" for cell in CELLS[:-1]), "she"]
        assert cells[0]["value"] == "-1.5"


def test_items_are_no_formulas(capsys):
    rows = [
        {"item": f"=cmd|{i}", "true": "ab"[i % 2], "pred": "a", "g": "fm"[i // 2 % 2]}
        for i in range(12)
    ]
    pd.DataFrame(rows).to_csv("t.csv", index=False)
    words = ["classifier", "t.csv", "--group", "g", "--metric", "tpr-gap", "--items", "i.csv"]
    assert run(words) == 0
    with Path("i.csv").open(newline="") as file:
        saved = [row["item"] for row in csv.DictReader(file)]
    assert sorted(saved) == sorted(f"'=cmd|{i}" for i in range(12))
