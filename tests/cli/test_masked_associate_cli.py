"""`evenhand masked associate` as its users meet it."""

from __future__ import annotations

import csv
import json

import pytest
from cli_shell import failure, output

from evenhand.results import Measurement


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Small templates and professions of one's own, as options."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "own.txt").write_text(
        "{person} is a {profession}.\nAs a {profession}, {person} gets up early.\n"
    )
    (tmp_path / "jobs.csv").write_text(
        "profession,group,women\nnurse,female,88\nmechanic,male,2\nengineer,male,\n"
        "dietitian,female,89\nlawyer,,39\npilot,male,8\n"
    )
    return ["--templates", "own.txt", "--professions", "jobs.csv", "--persons", "he/she"]


def test_json_has_the_promised_shape(capsys, own):
    content = json.loads(output(capsys, "masked", "associate", *own, "--json"))
    assert content["schema"] == "evenhand/2"
    assert content["comparisons"] == []
    m = Measurement.from_dict(*content["measurements"])
    assert (m.subject, m.n) == ("mini", 2 * 6)
    assert m.low < m.value < m.high
    assert {part.query for part in m.select("group")} == {"male", "female"}
    assert m.select("contrast")[0].value > 0
    assert m.select("profession")[-1].query in ("nurse", "dietitian")
    assert m.select("template")[0].query == "{person} is a {profession}."
    assert m.part("share of women").n == 5
    assert any("one pair of persons" in note for note in m.notes)


def test_tables_for_reading(capsys, own):
    message = output(capsys, "masked", "associate", *own, "--prob", "0.9")
    assert "mini: 2 templates × 6 professions × 1 pair of persons" in " ".join(message.split())
    assert "interval over templates and professions." in message  # one pair has no spread
    for part in (
        "male - female",
        "mechanic",
        "Templates: the value of each",
        "90% interval",
        "note:",
    ):
        assert part in message
    assert "one template left out" in message


def test_two_models_are_compared_and_everything_is_saved(capsys, own, tmp_path):
    import evenhand.masked

    copy = tmp_path / "copy"
    model = evenhand.masked.load("mini")
    model.network.save_pretrained(copy)
    model.tokenizer.save_pretrained(copy)
    capsys.readouterr()
    arguments = ["--model", "mini", "--model", "copy", "-o", "out", *own]
    message = output(capsys, "masked", "associate", *arguments)
    assert "copy - mini" in message
    saved = json.loads((tmp_path / "out" / "results.json").read_text())
    (change,) = saved["comparisons"]
    assert change["change"]["value"] == pytest.approx(0, abs=1e-6)
    with (tmp_path / "out" / "items.csv").open(newline="") as file:
        items = list(csv.DictReader(file))
    assert len(items) == 2 * 2 * 6
    first = items[0]
    difference = float(first["score_male"]) - float(first["score_female"])
    assert float(first["difference"]) == pytest.approx(difference)
    figures = sorted(path.name for path in (tmp_path / "out" / "figures").iterdir())
    assert figures == [
        "professions-copy.svg", "professions-mini.svg", "templates-copy.svg", "templates-mini.svg",
    ]  # fmt: skip


def test_answers_are_cached_between_runs(capsys, own, monkeypatch):
    arguments = ["masked", "associate", "--cache", "cache", "--json", *own]
    first = output(capsys, *arguments)
    import torch

    def refuse(*_, **__):
        pytest.fail("computed again")

    monkeypatch.setattr("evenhand.masked.model.check_run", lambda *_: None)  # at every load
    monkeypatch.setattr(torch.nn.functional, "embedding", refuse)
    with pytest.raises(pytest.fail.Exception):
        output(capsys, *arguments[:2], *arguments[4:])
    capsys.readouterr()
    assert output(capsys, *arguments) == first


def test_a_figure_without_intervals_is_not_drawn(capsys, own, tmp_path):
    (tmp_path / "own.txt").write_text("{person} is a {profession}.\n")
    output(capsys, "masked", "associate", "-o", "out", *own)
    assert [path.name for path in (tmp_path / "out" / "figures").iterdir()] == ["templates.svg"]


def test_one_profession_a_group_has_no_bounds(capsys, own, tmp_path):
    (tmp_path / "jobs.csv").write_text("profession,group\nnurse,female\nmechanic,male\n")
    message = output(capsys, "masked", "associate", "-o", "out", *own)
    (line,) = [
        line for line in message.splitlines() if "male - female" in line and "note" not in line
    ]
    assert "[-∞, ∞]" in line
    assert "note: one profession in a group (male, female)" in message
    [saved] = json.loads((tmp_path / "out" / "results.json").read_text())["measurements"]
    [contrast] = Measurement.from_dict(saved).select("contrast")
    assert contrast.p_value is None
    assert contrast.interval.startswith("unbounded")


def test_a_becpro_table(capsys, tmp_path):
    head = "Sentence\tTemplate\tPerson\tGender\tProfession\tProf_Gender\n"
    rows = "".join(
        f"{text.format(p, job)}\t{text.format('<person>', '<profession>')}\t{p}\t{g}\t{job}\t{of}\n"
        for text in ("{0} is a {1}.", "{0} likes the {1}.")
        for p, g in (("He", "male"), ("She", "female"))
        for job, of in (("nurse", "female"), ("miner", "male"), ("zoo keeper", "balanced"))
    )
    path = tmp_path / "bec.tsv"
    path.write_text(head + rows)
    content = json.loads(output(capsys, "masked", "associate", str(path), "--json"))
    m = Measurement.from_dict(*content["measurements"])
    assert [m.details[name] for name in ("templates", "professions", "pairs")] == [2, 3, 1]
    assert {part.query for part in m.select("group")} == {"male", "female", "balanced"}


@pytest.mark.parametrize(
    ("arguments", "problem"),
    [
        (["none.tsv"], "none.tsv: cannot be read: No such file"),
        (["a.tsv", "--persons", "he/she"], "FILE has its own sentences"),
        (["--persons", "he"], "persons 'he': expected MALE/FEMALE"),
        (["--professions", "none.csv"], "none.csv: cannot be read"),
        (["--templates", "bad.txt"], "bad.txt, line 1: expected {person}"),
        (["--model", "nowhere", "--persons", "he/she"], "model 'nowhere': no such folder"),
    ],
)
def test_bad_input_is_one_line(capsys, tmp_path, monkeypatch, arguments, problem):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "bad.txt").write_text("nobody here\n")
    assert problem in failure(capsys, "masked", "associate", *arguments)
