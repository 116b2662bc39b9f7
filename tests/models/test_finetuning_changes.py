"""What a fine-tuning measures on is not learned from; what it says of a change holds."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.instruments import Run
from evenhand.models.finetuning.text import collect, counterfactual_key, key, rewritten
from evenhand.models.finetuning.training import (
    FinetuneFolder,
    FinetuneSettings,
    _crows_change,
    _mean_change,
)
from evenhand.models.metrics.crows import Crows
from evenhand.results import Comparison

TEXTS = [
    f"The {job} said {pronoun} {verb} {thing} {number}."
    for number in range(4)
    for job in ("nurse", "waiter", "teacher", "actress")
    for pronoun in ("he", "she")
    for verb in ("lost the", "saw a")
    for thing in ("book", "table")
]


def test_no_held_out_document_is_learned_from():
    split = collect(TEXTS, held_out=0.3, evaluation=0.1, max_tokens=10**6)
    parts = [set(map(key, part)) for part in (split.training, split.evaluation, split.held_out)]
    assert sum(len(part) for part in (split.training, split.evaluation, split.held_out)) == len(
        TEXTS
    )
    assert all(parts)
    assert sum(map(len, parts)) == len(set.union(*parts))
    # a counterfactual is on the same side, so rewriting brings none back either
    for epoch in range(5):
        seen = {key(text) for text in rewritten(split.training, "substitute", 0, epoch)}
        assert not seen & parts[2]
    again = collect(reversed(TEXTS), held_out=0.3, evaluation=0.1, max_tokens=10**6)
    assert set(again.held_out) == set(split.held_out)


def test_documents_with_a_sentence_that_is_measured_on_are_left_out():
    texts = ["A nurse lost her keys. It rained.", "A nurse lost his keys.", "A cook sings."]
    split = collect(texts * 3, held_out=1e-9, evaluation=1e-9, max_tokens=100)
    rest = split.without(["A nurse lost [MASK] keys."])
    assert set(rest.training) == {"A cook sings."}
    assert rest.held_out_elsewhere == 6


def test_no_swapped_counterfactual_of_what_is_measured_is_learned_from():
    texts = [
        "The waitress lost her keys. It rained.",
        "The waiter lost his keys.",
        "Mrs Hill met a king.",
        "Miss Hill met a king.",
        "A cook sings.",
    ]
    split = collect(texts, held_out=1e-9, evaluation=1e-9, max_tokens=100)
    rest = split.without(["The waitress lost [MASK] keys.", "Mr Hill met a king."])
    assert rest.training == ("A cook sings.",)
    for rewrite in ("swap", "substitute"):
        for text, counterfactual in zip(TEXTS, rewritten(TEXTS, rewrite, 0, 1), strict=True):
            assert counterfactual_key(text) == counterfactual_key(counterfactual)


def test_a_large_input_is_sampled_whatever_its_order(monkeypatch):
    monkeypatch.setattr("evenhand.models.finetuning.text.CHARACTERS", 1000)
    texts = [f"Sentence number {number} of many." for number in range(3000)]
    split = collect(texts, held_out=0.2, evaluation=0.1, max_tokens=100)
    kept = {*split.training, *split.evaluation, *split.held_out}
    assert sum(map(len, kept)) <= 1200
    assert split.above_cap == 3000 - len(kept)
    assert len(kept) > 30
    other = collect(reversed(texts), held_out=0.2, evaluation=0.1, max_tokens=100)
    assert {*other.training, *other.evaluation, *other.held_out} == kept
    places = [texts.index(text) for text in kept]
    assert min(places) < 500 < 2500 < max(places)


def change(before, after, ideal=0.5, spread=0.1, n=200):
    """The change of means of scores around the two values, noise of the sentence in both."""
    rng = np.random.default_rng(2)
    noise = rng.normal(0, spread, (3, n))
    shared, *own = noise - noise.mean(axis=1, keepdims=True)
    one, two = (m + shared + x / 4 for m, x in zip((before, after), own, strict=True))
    return _mean_change("mean bias", one, two, FinetuneSettings(), ideal=ideal)


def test_nearer_is_said_of_the_distance_and_not_of_the_change():
    crossed = change(0.55, 0.455)
    assert crossed.change.high < -0.05
    assert crossed.effect == "about as far from the ideal, on its other side"
    distance = crossed.details["distance"]
    assert distance["low"] < 0 < distance["high"]
    expected = abs(crossed.after.value - 0.5) - abs(crossed.before.value - 0.5)
    assert distance["value"] == pytest.approx(expected)
    assert Comparison.from_dict(crossed.to_dict()) == crossed
    near = change(0.75, 0.51)
    assert near.effect == "nearer the ideal"
    assert change(0.75, 0.4).effect == "nearer the ideal, on its other side"
    assert near.details["distance"]["value"] == pytest.approx(
        abs(near.after.value - 0.5) - abs(near.before.value - 0.5)
    )
    assert change(0.55, 0.4).effect == "further from the ideal, on its other side"
    same_side = change(0.75, 0.65)
    assert same_side.details["distance"] == same_side.change.to_dict()
    assert change(0.6, 0.6).effect == "no clear change"
    assert change(0.501, 0.52).effect == "about as far from the ideal"
    for measured in (change(0.3, 0.2, ideal=0.0), change(0.2, 0.3, ideal=0.0)):
        assert measured.details["distance"] == measured.change.to_dict()
    assert change(0.3, 0.2, ideal=0.0).effect == "nearer the ideal"


def test_nearer_keeps_its_level_where_the_distance_is_the_same():
    """Means of .56 and .44 are as far from .5: no more than 5 % may report a change."""
    rng = np.random.default_rng(7)
    message = 0
    for _ in range(300):
        shared, *own = rng.normal(0, 0.1, (3, 40))
        one, two = (m + shared + x / 3 for m, x in zip((0.56, 0.44), own, strict=True))
        effect = _mean_change("mean bias", one, two, FinetuneSettings(), ideal=0.5).effect
        message += effect.startswith(("nearer", "further"))
    assert message <= 27  # 15 expected; P(more | 5 %) < .002


def test_crows_shares_are_those_of_the_pairs_that_count():
    def result(differences):
        rows = [
            {
                "line": 0,
                "bias_type": "age",
                "stereo_antistereo": "stereo",
                "writer": "",
                "sent_more": f"more {n}",
                "sent_less": f"less {n}",
                "difference": float(d),
                "prefers": {1: "more", -1: "less", 0: "neither"}[d],
            }
            for n, d in enumerate(differences)
        ]
        return Crows().summarise(rows, [], "", "shared", "m", Run())

    before = result([1, 1, 1, 1, 1, 1, -1, -1, 0, 0])
    after = result([1, -1, -1, -1, -1, 0, -1, 1, 1, 1])
    made = _crows_change(before, after)
    assert made.paired == 7
    assert made.before.value == pytest.approx(5 / 7)
    assert made.after.value == pytest.approx(2 / 7)
    assert made.change.value == pytest.approx(made.after.value - made.before.value)
    assert made.details["distance"]["value"] == pytest.approx(0, abs=1e-12)
    assert made.details["distance"]["low"] < 0 < made.details["distance"]["high"]
    much = _crows_change(result([1] * 95 + [-1] * 5), result([1] * 50 + [-1] * 50))
    assert much.effect == "nearer the ideal"
    turned = _crows_change(result([1] * 70 + [-1] * 30), result([-1] * 70 + [1] * 30))
    assert turned.effect == "about as far from the ideal, on its other side"


def test_no_number_is_an_empty_cell(tmp_path):
    FinetuneFolder(tmp_path).save_table([{"a": float("nan"), "b": 1.5}], "items.csv")
    assert (tmp_path / "items.csv").read_text() == "a,b\n,1.5\n"
