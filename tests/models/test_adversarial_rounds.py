"""Adversarial training in rounds: a run of a few sentences, which resumes."""

import csv
import gzip
import json
import sys
from pathlib import Path

import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import adversarial_rounds as study


@pytest.mark.slow
def test_each_round_is_generated_by_the_model_of_the_round_before(tmp_path, monkeypatch, capsys):
    people = ("nurse", "doctor", "guard", "clerk", "cook", "baker", "pilot", "judge")
    acts = ("raised {} arm", "dropped {} hat", "opened {} book")
    seeds = [f"The {who} {act.format('her')} there." for who in people for act in acts]
    held = [(f"The {who} turned [MASK] head.", f"The {who} turned his head.") for who in people]
    material = {"seeds": {"a": seeds}, "held_out": held, "held_out_plain": ["Rain fell here."] * 3}
    path = tmp_path / "material.json.gz"
    path.write_bytes(gzip.compress(json.dumps(material).encode()))
    sources = []

    def edited(source, given, kind, options):
        sources.append((kind, source))
        return [text.replace("there", "here") for text in given]

    monkeypatch.setattr(study, "edited", edited)
    monkeypatch.setattr("generate_controls.HELD_OUT", 0.2)
    monkeypatch.setattr("generate_controls.EVALUATION", 0.2)
    small = [
        "--rounds",
        "2",
        "--measured",
        "4",
        "--plain",
        "3",
        "--tokens",
        "300",
        "--evaluations",
        "1",
    ]
    arguments = [
        "x",
        "--material",
        str(path),
        "-o",
        str(tmp_path / "out"),
        *small,
        "--device",
        "cpu",
    ]
    monkeypatch.setattr(sys, "argv", arguments)
    study.main()
    shown = capsys.readouterr().out
    assert "intervals over sentences only: one training seed" in shown
    rows = list(csv.DictReader((tmp_path / "out" / "rounds.csv").read_text().splitlines()))
    assert [(row["arm"], row["stop"]) for row in rows] == [
        ("before", ""),
        *((arm, f"round {n}") for arm in study.ARMS for n in (1, 2)),
    ]
    of_kind = {arm: [s for kind, s in sources if kind == arm] for arm in study.ARMS}
    assert of_kind["once"] == ["mini", "mini"]
    assert of_kind["seeds"] == []
    assert of_kind["adversarial"][0] == "mini"
    assert "adversarial-0-1" in of_kind["adversarial"][1]
    assert "random-0-1" in of_kind["random"][1]
    monkeypatch.setattr(study, "finetune", None)  # everything is there already
    monkeypatch.setattr(study, "measure", lambda *_: json.loads(first))
    first = next((tmp_path / "out").rglob("measured.json")).read_text()
    study.main()
    assert "round 2: done" in capsys.readouterr().out
