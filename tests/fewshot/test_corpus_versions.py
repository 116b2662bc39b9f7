"""The experiment with five versions of a corpus, whole, at the smallest size."""

from __future__ import annotations

import csv
import gzip
import json
import sys
from pathlib import Path

import pytest

from evenhand.fewshot import read
from small_encoder import save_small

sys.path.insert(0, str(Path(__file__).resolve().parents[2] / "benchmarks"))

import corpus_versions
from published import read_rows

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def prepared(tmp_path_factory):
    """Simulated biographies of 28 classes in all versions, and sentences of one more class."""
    folder = tmp_path_factory.mktemp("versions")
    data = read("simulated:leak=1,per_class=16")
    rows = [
        (text, data.classes[label], "MF"[gender])
        for text, label, gender in zip(data.texts, data.labels, data.genders, strict=True)
    ]
    long = "Every morning the old boats of the village leave for the islands in the north"
    rows += [(f"{long}, {number} of them.", "sailor", "M") for number in range(5)]
    with (folder / "bios.csv").open("w", newline="") as file:
        csv.writer(file).writerows([("text", "label", "gender"), *rows])
    path = folder / "versions.jsonl.gz"
    corpus_versions.main([str(folder / "bios.csv"), "--prepare", str(path), "--at-least", "10"])
    return path


def test_the_versions_of_the_corpus(prepared):
    with gzip.open(prepared, "rt") as file:
        about, *rows = map(json.loads, file)
    corpus = corpus_versions.Corpus.read(prepared, 0, 4)
    assert len(corpus.rows) == 28 * 16
    assert len(corpus.held_out) == 5
    assert {row["label"] for row in rows if "label" in row} >= {*about["leaning"]}
    for row in corpus.rows:
        side = {"male": "M", "female": "F"}.get(about["leaning"].get(row["label"]))
        if side is None:
            assert row["pro"] == row["anti"] == row["original"]
        else:
            assert (row["original"] == row["pro"]) or row["gender"] != side
            assert (row["original"] == row["anti"]) or row["gender"] == side
    datasets = {v: corpus.dataset(v) for v in corpus_versions.VERSIONS}
    first = datasets["original"]
    leans = [side in ("male", "female") for side in first.leaning]
    for version, data in datasets.items():
        assert data.leaning == first.leaning
        assert data.labels.tolist() == first.labels.tolist()
        for label, side in enumerate(first.leaning):
            if leans[label] and version in ("pro", "anti"):
                wanted = (side == "female") == (version == "pro")
                assert {*data.genders[data.labels == label].tolist()} == {int(wanted)}
    assert datasets["balanced"].digest == first.digest
    assert not any(" she " in text or " he " in text for text in datasets["neutral"].texts)


def test_a_text_and_its_copy_are_on_one_side(prepared):
    from evenhand.models.finetuning.text import collect

    corpus = corpus_versions.Corpus.read(prepared, 0, 4)
    texts = corpus.tuning_texts("balanced", 0.2)
    assert 1.5 * len(corpus.rows) < len(texts) < 2 * len(corpus.rows)
    parts = collect(texts, held_out=0, evaluation=0.2, max_tokens=10**9)
    pairs = {row["original"]: row["swapped"] for row in corpus.rows}
    training, evaluation = {*parts.training}, {*parts.evaluation}
    for original, swapped in pairs.items():
        if original != swapped:
            assert not ({original, swapped} & training and {original, swapped} & evaluation)


def test_the_experiment_resumes_and_has_every_row(prepared, tmp_path, capsys):
    model = save_small(tmp_path / "small")
    out = tmp_path / "out"
    small = "--device cpu --epochs 2 --block 32 --batch 64 --evaluations 2 --sentences 3 --ways 2 "
    small += "--shots 2 --queries 2 --splits 1 --episodes 8/4/8 --network proto-euclidean"
    command = [str(prepared), "--out", str(out), "--model", str(model), *small.split()]
    corpus_versions.main(command)
    results = (out / "results.csv.gz").read_bytes()
    rows, points = (read_rows(out / f"{name}.csv.gz") for name in ("results", "curves"))
    assert {point["version"] for point in points} == {*corpus_versions.VERSIONS}
    cells = {(row["encoder"], row["data"]) for row in rows}
    tuned = corpus_versions.VERSIONS
    assert cells >= {(encoder, "original") for encoder in ("untuned", *tuned)}
    assert cells >= {(encoder, version) for version in tuned for encoder in ("untuned", version)}
    measures = {row["query"] for row in rows if row["encoder"] == "pro" and not row["data"]}
    assert "male-leaning - female-leaning professions" in measures
    for row in rows:
        if row["encoder"] == "untuned":
            assert row["change"] == row["to_original"] == ""
        elif row["metric"] in ("accuracy", "professions") or row["query"] == "association":
            assert row["change"]
            assert row["to_original"] or row["data"] in ("", row["encoder"])
        if row["data"] == row["encoder"] == "neutral" and row["query"] == "association":
            assert float(row["value"]) == pytest.approx(0, abs=1e-6)
    weights = out / "pro" / "tuned" / "model" / "model.safetensors"
    written = weights.stat().st_mtime_ns
    corpus_versions.main(command)
    assert (out / "results.csv.gz").read_bytes() == results
    assert weights.stat().st_mtime_ns == written  # what is done is not done again
    corpus_versions.main(["--figure", str(out)])
    assert "balanced" in (out / "loss.svg").read_text()
    capsys.readouterr()
