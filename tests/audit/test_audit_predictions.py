"""An audit of predictions: verdicts in known worlds, the page, and the command."""

import json

import pytest

import evenhand as eh
from evenhand.cli import run
from evenhand.report import blocks
from evenhand.report.comparison import compare_audits, write_comparison
from evenhand.simulate.predictions import biased_predictions


def predictions(gap, seed=1, n=900):
    table = biased_predictions(n, gap=gap, classes=4, seed=seed)
    return eh.classifier.read_predictions(table, group="gender", score="score *")


@pytest.fixture(scope="module")
def biased(tmp_path_factory):
    return eh.audit(predictions=predictions(0.3), out=tmp_path_factory.mktemp("audits") / "biased")


@pytest.fixture(scope="module")
def fair(tmp_path_factory):
    """Without figures, which take longest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks.Figure, "of", lambda *_, **__: blocks.Text("No figure."))
        out = tmp_path_factory.mktemp("audits") / "fair"
        return eh.audit(predictions=predictions(0.0, seed=2), out=out)


def test_a_large_gap_is_strong_evidence_and_none_is_not_found(biased, fair):
    [verdict] = biased.verdicts
    assert (verdict.subject, verdict.topic) == ("predictions", "gender")
    assert verdict.level == "strong evidence"
    assert "Classes are not recognised equally often" in verdict.sentence
    [verdict] = fair.verdicts
    assert verdict.level == "none found"
    assert "the intervals rule out" in verdict.sentence
    assert not fair.failed


def test_the_page_shows_classes_and_what_was_not_measured(biased):
    text = biased.report.read_text()
    assert "Your classifier" in text
    assert "class 3" in text
    assert "expected items and versions of texts" in text
    assert (
        biased.out / "figures" / "predictions-tpr-gap-true-positive-gap-gender-man-woman-class.svg"
    ).exists()
    saved = json.loads((biased.out / "results.json").read_text())
    assert saved["subjects"]["predictions"]["texts"] == 900


def test_two_audits_are_compared(biased, fair, tmp_path):
    page = write_comparison(compare_audits([biased.out, fair.out]), tmp_path / "comparison.html")
    assert "True-positive gap" in page.read_text()


def test_the_command(tmp_path, capsys):
    table = tmp_path / "p.csv"
    biased_predictions(300, gap=0.4, classes=2, seed=1).to_csv(table, index=False)
    arguments = ["audit", "--predictions", str(table), "--group", "gender"]
    assert run([*arguments, "--out", str(tmp_path / "out"), "--json"]) == 0
    [verdict] = json.loads(capsys.readouterr().out)["verdicts"]
    assert verdict["subject"] == "predictions"
    assert run(["audit", "--group", "gender", "--out", str(tmp_path / "x")]) == 2
    assert "need --predictions" in capsys.readouterr().err
    assert run([*arguments[:3], "--out", str(tmp_path / "x")]) == 2
    assert "which column is the group of people" in capsys.readouterr().err
    assert not (tmp_path / "x").exists()
