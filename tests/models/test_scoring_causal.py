"""Log-likelihoods of causal models: against plain calls of transformers, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_causal import FAMILIES, VOCABULARY, small_model

from evenhand.cache import Cache
from evenhand.errors import InputError
from evenhand.models.causal_scoring import (
    continuation_log_likelihoods,
    log_likelihoods,
    next_log_probs,
    sentence_log_likelihoods,
)
from evenhand.models.trees import grow
from evenhand.simulate.causal import bigram_model


@pytest.fixture(scope="module", params=FAMILIES)
def model(request):
    return small_model(request.param)


def random_rows(seed, count=40):
    """Rows of which many begin alike."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        row = rng.integers(0, VOCABULARY, rng.integers(2, 20)).tolist()
        rows.append(row)
        for _ in range(rng.integers(0, 4)):
            end = rng.integers(0, VOCABULARY, rng.integers(2, 8)).tolist()
            rows.append(row[: rng.integers(1, len(row) + 1)] + end)
    return rows, [int(rng.integers(1, len(row))) for row in rows]


def plain(model, row, begin):
    """One call of transformers."""
    with torch.no_grad():
        logits = model.network(input_ids=torch.tensor([row])).logits[0]
    log_probs = logits.double().log_softmax(-1)
    return sum(log_probs[t - 1, row[t]].item() for t in range(begin, len(row)))


def test_likelihoods_are_those_of_plain_calls(model):
    rows, begins = random_rows(0)
    expected = [plain(model, row, begin) for row, begin in zip(rows, begins, strict=True)]
    assert model.decoder is not None
    np.testing.assert_allclose(log_likelihoods(model, rows, begins), expected, atol=1e-5)


def test_a_family_without_a_decoder_is_computed_by_its_own_call(model, monkeypatch):
    rows, begins = random_rows(1, count=5)
    expected = log_likelihoods(model, rows, begins)
    monkeypatch.setitem(model.__dict__, "decoder", None)
    np.testing.assert_allclose(log_likelihoods(model, rows, begins), expected, atol=1e-5)


def test_the_tokens_after_a_row(model):
    row = [3, 8, 5]
    values = next_log_probs(model, [row, row[:2]], [4, 9])
    assert values.shape == (2, 2)
    assert values[0, 1] == pytest.approx(plain(model, [*row, 9], 3), abs=1e-5)
    assert values[1, 0] == pytest.approx(plain(model, [*row[:2], 4], 2), abs=1e-5)


def test_the_batch_and_the_order_do_not_matter(model):
    rows, begins = random_rows(2, count=15)
    expected = log_likelihoods(model, rows, begins)
    order = np.random.default_rng(0).permutation(len(rows))
    shuffled = log_likelihoods(model, [rows[i] for i in order], [begins[i] for i in order])
    np.testing.assert_allclose(shuffled, expected[order], atol=1e-5)
    alone = [log_likelihoods(model, [r], [b])[0] for r, b in zip(rows, begins, strict=True)]
    np.testing.assert_allclose(alone, expected, atol=1e-5)


def test_answers_are_cached(model, tmp_path, monkeypatch):
    rows, begins = random_rows(3, count=5)
    expected = log_likelihoods(model, rows, begins, cache=Cache(tmp_path / "cache"))
    monkeypatch.setitem(model.__dict__, "decoder", None)
    monkeypatch.setattr(type(model), "logits", None)  # nothing is computed any more
    done = []
    again = log_likelihoods(
        model, rows, begins, cache=Cache(tmp_path / "cache"), progress=lambda n, _: done.append(n)
    )
    np.testing.assert_array_equal(again, expected)
    assert not done


def test_rows_that_are_too_short_or_too_long_are_refused(model):
    with pytest.raises(InputError, match="within the row, got 1"):
        log_likelihoods(model, [[3]])
    with pytest.raises(InputError, match="65 tokens or fewer, got 66"):
        log_likelihoods(model, [[3] * 66])
    assert np.isfinite(log_likelihoods(model, [[3] * 65])).all()


def test_a_tree_has_every_shared_token_once():
    rows = [np.array(row) for row in ([1, 2, 3, 4, 9], [1, 2, 3, 5, 9], [1, 2, 3, 4, 7], [8, 6])]
    trees = list(grow(rows))
    assert [len(tree) for tree in trees] == [5, 1]
    first = trees[0]
    assert first.tokens.tolist() == [1, 2, 3, 4, 5]
    assert first.depths.tolist() == [0, 1, 2, 3, 3]
    assert first.parents.tolist() == [-1, 0, 1, 2, 2]
    assert first.mask()[4].tolist() == [True, True, True, False, True]
    assert not first.is_row
    assert trees[1].is_row


def test_a_tree_has_a_largest_size():
    rows = [np.array([1, 2, 3, *[i] * 8]) for i in range(10)]
    assert max(len(tree) for tree in grow(rows, largest=50)) == 3 + 6 * 7
    assert sum(len(tree.rows) for tree in grow(rows, largest=50)) == 10


def test_a_long_beginning_is_shared_in_a_tree_of_three_rows():
    rows = [np.array([1, 2, 3, *[i] * 8]) for i in range(10)]
    assert max(len(tree) for tree in grow(rows, largest=20)) == 3 + 3 * 7


def test_likelihoods_of_sentences_by_hand():
    model = bigram_model({"[BOS]": {"she": 0.5}, "she": {"sings": 0.25}, "sings": {"she": 0.1}})
    values, tokens = sentence_log_likelihoods(model, ["She sings she", "she", ""])
    np.testing.assert_allclose(np.exp(values), [0.5 * 0.25 * 0.1, 0.5, 1], rtol=1e-6)
    assert tokens.tolist() == [3, 1, 0]


def test_likelihoods_of_continuations_by_hand():
    model = bigram_model({"nurse": {"she": 0.8, "he": 0.1}, "she": {"sings": 0.25}})
    contexts, ends = ["The nurse", "The nurse ", "The nurse"], [" she", "he", " she sings"]
    values, tokens = continuation_log_likelihoods(model, contexts, ends)
    np.testing.assert_allclose(np.exp(values), [0.8, 0.1, 0.2], rtol=1e-6)
    assert tokens.tolist() == [1, 1, 2]
    with pytest.raises(InputError, match="expected a continuation"):
        continuation_log_likelihoods(model, ["The nurse"], [" "])
