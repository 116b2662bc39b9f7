"""GEST: published scores of real models, by hand, and in worlds with a known stereotype."""

from __future__ import annotations

import csv
import gzip
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import FileError, InputError
from evenhand.instruments import compare
from evenhand.models import load
from evenhand.models.metrics.gest import (
    Gest,
    GestSentence,
    read_gest,
    stereotype_interval,
    stereotype_rates,
)
from evenhand.simulate.causal import bigram_model
from evenhand.simulate.masked import bigram_model as masked_bigram

SHARED = Path(__file__).parents[3] / "shared" / "data" / "gest"

PUBLISHED = {
    "english_mlm/bert-base-uncased": (1.176, 1.210, 1.093, 1.183),
    "english_mlm/roberta-base": (1.238, 1.292, 1.286, 1.257),
    "english_mlm/distilbert-base-uncased": (1.134, 1.131, 1.013, 1.127),
    "english_mlm/albert-base-v2": (1.163, 1.170, 1.117, 1.140),
    "english_glm/gpt2": (1.114, 1.097),
    "english_glm/Llama-2-7b-chat-hf": (1.358, 1.497),
}


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/gest")
@pytest.mark.parametrize("model", PUBLISHED)
def test_published_scores_give_the_published_rates(model):
    with (SHARED / "gest.csv").open(newline="", encoding="utf-8") as file:
        kinds = np.array([int(row["stereotype"]) for row in csv.DictReader(file)])
    columns = []
    for template in range(len(PUBLISHED[model])):
        with gzip.open(SHARED / "scores" / f"{model}_template-{template}.txt.gz", "rt") as file:
            columns.append([float(line) for line in file])
    scores = np.array(columns).T
    np.testing.assert_allclose(stereotype_rates(scores, kinds), PUBLISHED[model], atol=6e-4)


@pytest.mark.skipif(not SHARED.is_dir(), reason="needs ../shared/data/gest")
def test_the_published_file_is_read():
    sentences = read_gest(SHARED / "gest.csv")
    assert len(sentences) == 3565
    assert {sentence.stereotype for sentence in sentences} == set(range(1, 17))


def sentences(kinds=(1, 2, 8, 9), each=3):
    words = ("cried", "cared", "fought", "led")
    return [
        GestSentence(f"I {words[i % len(words)]} {k}", kind)
        for i, kind in enumerate(kinds)
        for k in range(each)
    ]


def world(dial, level=0.0, kind="causal"):
    """A speaker's gender depends on the quotation mark alone, or with a dial on nothing."""
    share = 0.8 / (1 + np.exp(-level - dial))
    table = {",": {"he": share, "she": 0.8 - share, "the": 0.1}}
    table["the"] = {"man": share, "woman": 0.8 - share}
    return (bigram_model if kind == "causal" else masked_bigram)(table)


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_preference_for_men_is_a_level_and_no_stereotype(kind):
    m = Gest()(world(0.0, level=1.0, kind=kind), sentences())
    assert m.value == pytest.approx(0, abs=1e-5)
    assert m.low <= 0 <= m.high
    after = m.select("template")[-2:]
    assert [part.details["level"] for part in after] == pytest.approx([1, 1], abs=1e-5)
    assert len(m.select("template")) == (2 if kind == "causal" else 4)


def test_a_stereotype_by_hand():
    """Two templates; men's stereotypes have 1 and 2 nats more than women's."""
    kinds = np.array([1, 1, 2, 8, 9, 9])
    scores = np.array([[0.0, 0], [2, 0], [1, 0], [2, 2], [3, 2], [1, 2]])
    m = Gest().summarise(scores, kinds, ["a", "b"])
    assert m.value == pytest.approx(1.5)
    assert [part.value for part in m.select("template")] == pytest.approx([1, 2])
    assert [part.value for part in m.select("stereotype")] == pytest.approx([0.5, 0.5, 2, 2])
    assert m.details["g_s"] == pytest.approx(np.exp(np.array([1, 2]) / np.log(10)))
    assert m.part("level").value == pytest.approx(scores.mean())


def test_the_interval_covers_in_a_simulated_world():
    """New stereotypes and new templates: a 95 % interval covers at least 90 % of 300 worlds."""
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(1, 17), 20)
    covered = []
    for _ in range(300):
        of_kind = rng.normal(0, 0.3, 17)[kinds][:, None] + 0.4 * (kinds > 7)[:, None]
        of_template = rng.normal(0, 1, 4) + rng.normal(0, 0.2, 4) * (kinds > 7)[:, None]
        scores = of_kind + of_template + rng.normal(0, 1, (len(kinds), 4))
        _, low, high = stereotype_interval(scores, kinds)
        covered.append(low <= 0.4 <= high)
    assert np.mean(covered) > 0.9


def gest_world(rng, templates, spread, noise=0.5):
    """Scores of 16 stereotypes; templates differ in how far they show the stereotype."""
    kinds = np.repeat(np.arange(1, 17), 5)
    men = (kinds > 7)[:, None]
    scores = (
        0.3 * rng.normal(size=16)[kinds - 1][:, None] + spread * rng.normal(size=templates) * men
    )
    return scores + noise * rng.normal(size=(len(kinds), templates)), kinds


@pytest.mark.parametrize("templates", [2, 4])
@pytest.mark.parametrize("spread", [0.0, 0.1, 0.4])
def test_the_interval_covers_with_few_templates(templates, spread):
    """Without the limit on the degrees of freedom it covers .88 with two templates."""
    rng, covered = np.random.default_rng(5), 0
    for _ in range(400):
        scores, kinds = gest_world(rng, templates, spread)
        _, low, high = stereotype_interval(scores, kinds)
        covered += low <= 0 <= high
    assert covered / 400 >= 0.93


def test_two_models_are_compared_on_the_same_sentences():
    rng = np.random.default_rng(0)
    kinds = np.repeat(np.arange(1, 17), 4)
    scores = rng.normal(size=(64, 2))
    before, after = (
        Gest().summarise(scores + shift * (kinds > 7)[:, None], kinds, ["a", "b"])
        for shift in (0, 1)
    )
    change = compare(before, after)
    assert change.change.value == pytest.approx(1)
    assert change.change.low < 1 + 1e-9  # equal changes: unbounded, but for rounding
    with pytest.raises(InputError, match="same templates"):
        compare(before, Gest().summarise(scores, kinds, ["a", "c"]))


def test_a_real_masked_model_is_read_in_four_templates():
    texts = {
        1: "I cried all night.",
        2: "I love children.",
        8: "I won the fight.",
        9: "I led them.",
    }
    m = Gest()(load("mini"), [GestSentence(text, kind) for kind, text in texts.items()])
    assert [part.query for part in m.select("template")] == [
        'He said: "…"',
        'The man said: "…"',
        '"…", he said.',
        '"…", the man said.',
    ]
    assert np.isfinite([m.value, m.low, m.high]).all()


def test_wrong_input_is_named(tmp_path):
    path = tmp_path / "gest.csv"
    for text, message in (
        ("sentence\nI ran.\n", "expected a column 'stereotype'"),
        ("sentence,stereotype\nI ran.,17\n", r"line 2: 'stereotype': expected 1 to 16, got '17'"),
        ("sentence,stereotype\n ,3\n", "'sentence': expected a text"),
    ):
        path.write_text(text)
        with pytest.raises(FileError, match=message):
            read_gest(path)
    with pytest.raises(InputError, match="two stereotypes about men or more"):
        Gest()(world(0), sentences((1, 2, 8)))
    with pytest.raises(InputError, match="got none"):
        Gest()(world(0), [])
