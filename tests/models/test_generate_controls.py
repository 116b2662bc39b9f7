"""The experiment of docs/experiments/generate.md: texts, tables, and a run of a few sentences."""

import csv
import json
import sys
from pathlib import Path

import numpy as np
import pytest

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import generate_controls as study
from evenhand.models import load


def edited(seed, generated, random, *perplexities):
    names = ("perplexity_seed", "perplexity_generated", "perplexity_random")
    known = {name: value for name, value in zip(names, perplexities, strict=True) if value}
    return {"seed": seed, "generated": generated, "random": random, **known}


def test_seeds_are_used_where_both_edits_are_fluent():
    rows = {
        "a": [edited("s1", "g1", "r1", 10.0, 12.0, 9.0), edited("s2", "g2", "r2", 20.0, 90.0, 9.0)],
        "b": [edited("s3", None, "r3", 30.0, None, 9.0), edited("s4", "g4", None, 5.0, 9.0, None)],
    }
    limit, both, counts = study.fluent(rows)
    assert limit == np.percentile([10, 20, 30, 5], 95)
    assert {name: [row["seed"] for row in chosen] for name, chosen in both.items()} == {
        "a": ["s1"],
        "b": [],
    }
    assert (counts["generated"], counts["generated_fluent"], counts["random_fluent"]) == (3, 2, 3)
    assert counts["used"] == {"a": 1, "b": 0}


def replaced(model, seeds, seed, cache=None):
    """The edits of a search that always replaces the same word."""
    words = {"generated": "here", "random": "again"}
    return [
        edited(s, *(s.replace("there", w) for w in words.values()), 5.0, 5.0, 5.0) for s in seeds
    ]


def run_of(bias, log_probs):
    return {"held_out": bias, "built_in": bias, "log_probs": log_probs, "tokens": [4, 4, 0]}


def test_differences_are_of_changes_paired_by_sentence_and_perplexity_is_a_ratio():
    before = run_of([0.9, 0.8, 0.7, float("nan")], [-8.0, -4.0, float("nan")])
    generated = [run_of([0.6, 0.55, 0.5, 0.5], [-6.0, -3.0, float("nan")]) for _ in range(2)]
    seeds = [run_of([0.7, 0.65, 0.55, 0.5], [-8.0, -4.0, float("nan")]) for _ in range(2)]
    result = study.tables(before, {"generated": generated, "seeds": seeds})
    arm, difference = result["arms"]["generated"], result["differences"]["seeds"]
    assert result["before"]["held_out"]["n"] == 3
    assert arm["bias"][0] == pytest.approx(-0.25)
    assert arm["distance"][0] == pytest.approx(-0.25)
    value, low, high = difference["distance"]
    assert value == pytest.approx(-np.mean([0.1, 0.1, 0.05]))
    assert low < value < high
    # perplexity exp(12/8) before and exp(9/8) after
    assert np.exp(arm["log_perplexity"][0]) == pytest.approx(np.exp(9 / 8) / np.exp(12 / 8))


def test_more_is_said_where_the_interval_excludes_0_and_the_other_side_is_named():
    def result(low, high, bias):
        return {
            "before": {"held_out": {"bias": 0.7}},
            "arms": {"generated": {"bias": (bias, bias, bias)}},
            "differences": {"generated": {}, "seeds": {"distance": ((low + high) / 2, low, high)}},
        }

    said = study.answer(result(-0.03, -0.01, -0.1), "care")
    assert said == "**With care, generated sentences helped more than seeds alone**."
    assert "not clearly more than seeds" in study.answer(result(-0.03, 0.01, -0.1), "care")
    assert "less than seeds" in study.answer(result(0.01, 0.03, -0.1), "care")
    crossed = study.answer(result(-0.03, -0.01, -0.3), "care")
    assert "the mean bias went to the other side of .5 (0.400)" in crossed
    assert "more than" not in crossed


@pytest.mark.slow
def test_a_seed_has_its_edits_and_their_perplexities():
    seeds = ["The nurse lifted the heavy box onto her shoulder.", "The cook dropped her spoon."]
    rows = study.edit(load("mini"), seeds, 0)
    assert [row["seed"] for row in rows] == seeds
    assert any(row["generated"] for row in rows)
    for row in rows:
        for name in ("seed", "generated", "random"):
            assert (row[name] is None) == (f"perplexity_{name}" not in row)
            assert row[name] is None or 1 < row[f"perplexity_{name}"] < 1000


@pytest.mark.slow
def test_a_small_run_resumes_and_writes_one_row_per_run(tmp_path, monkeypatch, capsys):
    people = ("nurse", "doctor", "guard", "clerk", "cook", "baker", "pilot", "judge")
    acts = ("raised {} arm", "dropped {} hat", "opened {} book", "wiped {} face", "lost {} keys")
    texts = [f"The {who} {act.format('her')} there." for who in people for act in acts]
    places = ("by the door", "in the hall", "near the car")
    held_out = [f"The {who} turned his head {place}." for who in people for place in places]
    (tmp_path / "a.txt").write_text("\n".join(texts[:20]))
    (tmp_path / "b.txt").write_text("\n".join(texts[20:]))
    (tmp_path / "held.txt").write_text("\n".join(f"{text} Rain fell here." for text in held_out))
    monkeypatch.chdir(tmp_path)
    small = [
        "--most",
        "30",
        "--plain",
        "5",
        "--seeds",
        "1",
        "--tokens",
        "600",
        "--evaluations",
        "2",
    ]
    corpora = ["a=a.txt", "b=b.txt", "--held-out", "held.txt", "-o", "out", *small]
    monkeypatch.setattr(sys, "argv", ["x", *corpora, "--collect"])
    study.main()
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["material.json.gz"]
    monkeypatch.setattr(study, "HELD_OUT", 0.2)
    monkeypatch.setattr(study, "EVALUATION", 0.2)
    monkeypatch.setattr(study, "edit", replaced)
    monkeypatch.setattr("evenhand.models.finetuning.text.MIN_WATCHED", 2)
    monkeypatch.setattr(sys, "argv", ["x", "-o", "out", *small, "--device", "cpu"])
    study.main()
    shown = capsys.readouterr().out
    assert "| generated sentences |" in shown
    assert "**With training stopped at the ideal, generated sentences helped" in shown
    content = (tmp_path / "out" / "runs.csv").read_text()
    rows = list(csv.DictReader(content.splitlines()))
    assert [(row["arm"], row["stop"]) for row in rows] == [
        ("before", ""),
        *((arm, stop) for arm in study.ARMS for stop in ("loss", "ideal")),
    ]
    results = json.loads((tmp_path / "out" / "results.json").read_text())
    assert set(results["loss"]["differences"]["plain"]) == set(study.OUTCOMES)
    monkeypatch.setattr(study, "finetune", None)  # everything is there already
    (tmp_path / "docs" / "experiments").mkdir(parents=True)
    page = Path(__file__).resolve().parents[2] / "docs" / "experiments" / "generate.md"
    (tmp_path / "docs" / "experiments" / "generate.md").write_text(page.read_text())
    sys.argv += ["--docs", "docs"]
    study.main()
    written = (tmp_path / "docs" / "experiments" / "generate.md").read_text()
    assert shown[shown.index("\n\nBefore the training") :].strip() in written
    assert written.count("<!-- end of results -->") == 1
    assert (tmp_path / "docs" / "results" / "generate-controls.csv").read_text() == content
    assert (tmp_path / "out" / "runs.csv").read_text() == content
