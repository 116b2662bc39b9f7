"""The scoring core against plain calls of the model, one sentence at a time, on five families."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import MPNetConfig, MPNetForMaskedLM

import evenhand as eh
from evenhand.errors import InputError
from evenhand.masked import scoring
from evenhand.masked.model import Model
from evenhand.masked.scoring import Place, log_probs, target_log_probs, top_k
from evenhand.simulate.masked import bigram_model

SENTENCES = [
    "The nurse said that {} was late.",
    "{} sings.",
    "The doctor lost {} keys on the table, and the engineer is here.",
    "A teacher reads to {}.",
    "The nurse said that {} was late.",
]


def oracle(model: Model, place: Place) -> np.ndarray:
    """Log probabilities of the whole vocabulary by one plain call of the model."""
    with torch.no_grad():
        logits = model.network(input_ids=torch.tensor([place.ids])).logits[0, place.place]
        return torch.log_softmax(logits.double(), dim=-1).numpy()


def masked_places(model: Model) -> list[Place]:
    mask = model.tokenizer.mask_token_id
    rows = [
        tuple(model.tokenizer(s.format(model.tokenizer.mask_token))["input_ids"]) for s in SENTENCES
    ]
    return [Place(row, row.index(mask)) for row in rows]


def test_every_family_agrees_with_plain_calls(family):
    model = eh.masked.load(family)
    places = masked_places(model)
    expected = np.stack([oracle(model, place) for place in places])
    everything = list(range(expected.shape[1]))
    assert np.allclose(log_probs(model, places, everything), expected, atol=1e-5)
    some = [5, 9, 7]
    for tokens in (1, 16, 10_000):
        found = log_probs(model, places, some, batch_tokens=tokens)
        assert np.allclose(found, expected[:, some], atol=1e-5)


def test_every_family_at_every_place_of_a_row(family):
    model = eh.masked.load(family)
    row = masked_places(model)[2].ids
    places = [Place(row, k) for k in range(len(row))]
    expected = np.array([oracle(model, p)[row[p.place]] for p in places])
    found = target_log_probs(model, places, row)
    assert np.allclose(found, expected, atol=1e-5)


def test_top_k_is_best_first_and_agrees(family):
    model = eh.masked.load(family)
    places = masked_places(model)
    found = top_k(model, places, 4)
    for k, place in enumerate(places):
        every = oracle(model, place)
        order = np.argsort(-every, kind="stable")[:4]
        assert np.allclose(found.log_probs[k], every[order], atol=1e-5)
        assert np.all(np.diff(found.log_probs[k]) <= 0)
    assert np.array_equal(found.ids[0], found.ids[4])


def test_equal_rows_are_computed_once(family, monkeypatch):
    model = eh.masked.load(family)
    seen: list[int] = []
    base = model.network.base_model
    plain = type(base).forward

    def counted(self, *arguments, **named):
        seen.append(len(named["input_ids"]))
        return plain(self, *arguments, **named)

    monkeypatch.setattr(type(base), "forward", counted)
    log_probs(model, masked_places(model) * 3, [5])
    assert sum(seen) == 4
    monkeypatch.setattr(scoring, "HEAD_ROWS", 2)
    log_probs(model, masked_places(model) * 3, [5])
    assert sum(seen) == 8  # the head in parts, the rest of the model once


def test_a_family_that_is_not_known_is_run_whole():
    torch.manual_seed(1)
    config = MPNetConfig(
        vocab_size=40, hidden_size=16, num_hidden_layers=2, num_attention_heads=2,
        intermediate_size=32, max_position_embeddings=20,
    )  # fmt: skip
    network = MPNetForMaskedLM(config).eval()
    model = Model("mpnet", network, bigram_model({"he": {}}).tokenizer)
    places = [Place((0, 7, 9, 3, 2), 2), Place((0, 7, 2), 1), Place((0, 7, 9, 3, 2), 3)]
    expected = np.stack([oracle(model, place) for place in places])
    assert np.allclose(log_probs(model, places, range(40)), expected, atol=1e-5)


def test_a_model_whose_probabilities_are_known():
    chain = {"he": {"sings": 0.75, "reads": 0.25}, "she": {"sings": 0.5, "reads": 0.5}}
    model = bigram_model(chain)
    ids = tuple(model.tokenizer("he [MASK]")["input_ids"])
    at = ids.index(model.tokenizer.mask_token_id)
    words = model.tokenizer.convert_tokens_to_ids(["sings", "reads"])
    found = np.exp(log_probs(model, [Place(ids, at)], words))[0]
    assert found[0] / found[1] == pytest.approx(3.0, rel=1e-6)


def test_progress_counts_every_place():
    model = eh.masked.load("mini")
    told: list[tuple[int, int]] = []
    places = [Place((2, k, 3), 1) for k in range(300, 340)]
    log_probs(model, places, [5], batch_tokens=30, progress=lambda *n: told.append(n))
    assert told[-1] == (40, 40)
    assert len(told) == 4


def test_wrong_questions():
    model = eh.masked.load("mini")
    with pytest.raises(InputError, match="place: expected 0 to 2, got 3"):
        log_probs(model, [Place((2, 300, 3), 3)], [5])
    with pytest.raises(InputError, match="targets: expected one a place, got 2 for 1"):
        target_log_probs(model, [Place((2, 300, 3), 1)], [5, 6])
    with pytest.raises(InputError, match="k: expected 1 to"):
        top_k(model, [Place((2, 300, 3), 1)], 0)
    assert log_probs(model, [], [5, 6]).shape == (0, 2)
