"""Real vectors and models measured here: what the script writes, and what the page says."""

from __future__ import annotations

import runpy
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.files import document, save_json
from evenhand.results import Comparison, Measurement
from published import read_rows

ROOT = Path(__file__).parents[2]
SCRIPT = ROOT / "benchmarks" / "measured_here.py"


@pytest.fixture
def call(capsys, monkeypatch):
    """Run the script with these arguments; what it prints."""

    def run(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", [str(SCRIPT), *map(str, arguments)])
        runpy.run_path(str(SCRIPT), run_name="__main__")
        return capsys.readouterr().out

    return run


def weat(subject, query, value, p, **more):
    fields = {"metric": "weat", "n": 16, "ideal": 0.0, "worse": "away", "interval": "made up"}
    return Measurement(
        query=query,
        p_value=p,
        subject=subject,
        value=value,
        low=value - 0.3,
        high=value + 0.3,
        **fields | more,
    )


def test_all_vectors_are_converted_and_those_of_embedded_words(tmp_path, call):
    words = ["the", "qqzqx", "she", "doctor"]
    matrix = np.arange(8, dtype=np.float32).reshape(4, 2) + 1
    pd.DataFrame({"index": words}).to_parquet(tmp_path / "glove_6B_index.parquet")
    np.save(tmp_path / "glove_6B_50d_emb.npy", matrix)
    call("vectors", tmp_path, tmp_path / "out")
    every = eh.vectors.load(tmp_path / "out" / "glove-400k.npz")
    same = eh.vectors.load(tmp_path / "out" / "glove-400k-same-words.npz")
    assert every.words == words
    assert same.words == ["the", "she", "doctor"]
    np.testing.assert_allclose(every.matrix, matrix)
    np.testing.assert_allclose(same.matrix, matrix[[0, 2, 3]])


def test_outcomes_and_changes_are_counted(tmp_path, call):
    """Holm by hand: .01 and .04 are .02 and .04; .01 and .2 are .02 and .2; .03 and .04 are .06."""
    tests = {
        "glove": ("glove", 0.01, 0.04),
        "same": ("glove-400k-same-words.npz", 0.01, 0.2),
        "full": ("glove-400k.npz", 0.03, 0.04),
    }
    found = {}
    for name, (subject, *ps) in tests.items():
        found[name] = [weat(subject, f"weat-{6 + i}", 0.5 + i, p) for i, p in enumerate(ps)]
        rows = [m.to_dict() for m in found[name]]
        save_json(tmp_path / f"{name}.json", document(measurements=rows))
    for first, second, change in (("glove", "same", 0.4), ("same", "full", 0.0)):
        compared = [
            Comparison.of(
                one, other, (change, change - 0.1, change + 0.1), interval="made up", paired=16
            )
            for one, other in zip(found[first], found[second], strict=True)
        ]
        content = document(measurements=[], comparisons=[c.to_dict() for c in compared])
        save_json(tmp_path / f"{first}-{second}.json", content)
    part = weat("tiny", "lms", 0.8, None, metric="stereoset_lms", by="component", ideal=1.0)
    whole = weat("tiny", "items", 0.6, None, metric="stereoset", ideal=0.5, parts=(part,))
    save_json(tmp_path / "tiny.json", document(measurements=[whole.to_dict()]))
    run = weat("network", "new classes", 0.7, None, metric="accuracy", ideal=1.0)
    content = document(encoder={}, measurements=[run.to_dict()])
    save_json(tmp_path / "tiny.fewshot.json", content)

    call("publish", tmp_path, tmp_path / "published")
    shown = call("tables", tmp_path / "published").replace("−", "-").splitlines()
    for line in (
        "| weat | 2 | 2 | 1 | 0 |",
        "| all | 2 | 2 | 1 | 0 |",
        "| embedded, 100 | its words, 50 | 2 | 2 | 2 | 1 |",
        "| its words, 50 | all words, 50 | 2 | 0 | 2 | 1 |",
        "| weat | weat-6 | .500 | [.200, .800] | .020 | found "
        "| .500 | [.200, .800] | .060 | undecided |",
        "| weat | weat-6 | .400 | [.300, .500] | further from the ideal |",
        "| tiny | stereoset | items | .600 | [.300, .900] | – | undecided |",
        "| tiny | stereoset_lms | lms | .800 | [.500, 1.100] | – | component |",
        "| tiny, network | accuracy | new classes | .700 | [.400, 1.000] | – | not judged |",
    ):
        assert line in shown, line


def test_files_of_one_measure_are_a_family_and_complete_what_is_published(tmp_path, call):
    """Two tests of .03 alone are found; together (Holm) both have .06."""

    def publish(folder, **results):
        (tmp_path / folder).mkdir()
        for name, m in results.items():
            file = tmp_path / folder / f"tiny.{name}.json"
            save_json(file, document(measurements=[m.to_dict()]))
        call("publish", tmp_path / folder, tmp_path / "published")
        rows = read_rows(tmp_path / "published" / "measured-here.csv.gz")
        return [
            (row["metric"], row["question"], row["p_corrected"], row["outcome"]) for row in rows
        ]

    part = weat("tiny", "rest", 0.8, None, metric="weat_rest", by="component", ideal=1.0)
    ages, faiths = (weat("tiny", query, 0.5, 0.03, parts=(part,)) for query in ("ages", "faiths"))
    other = weat("tiny", "items", 0.6, None, metric="stereoset", ideal=0.5)
    *others, alone, rest = publish("first", **{"weat.ages": ages, "stereoset": other})
    assert alone == ("weat", "WEAT, ages", "0.03", "found")
    assert rest == ("weat_rest", "ages: rest", "", "component")
    assert publish("second", **{"weat.ages": ages, "weat.faiths": faiths}) == [
        *others,
        ("weat", "WEAT, ages", "0.06", "undecided"),
        ("weat", "WEAT, faiths", "0.06", "undecided"),
        ("weat_rest", "ages: rest", "", "component"),
        ("weat_rest", "faiths: rest", "", "component"),
    ]


def test_the_page_has_the_published_numbers(call):
    lines = call("tables", ROOT / "docs/results/real-models").splitlines()
    page = (ROOT / "docs/experiments/measured-here.md").read_text(encoding="utf-8")
    rows = [line for line in lines if line.startswith("| ")]
    assert len(rows) > 150
    for line in rows:
        assert line in page, line
