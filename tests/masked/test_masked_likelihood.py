"""Pseudo-log-likelihood and pseudo-perplexity against plain calls of the model and by hand."""

import math

import numpy as np
import pytest
import torch

from evenhand.errors import InputError
from evenhand.masked import load
from evenhand.masked.metrics import likelihood
from evenhand.masked.metrics.likelihood import (
    Likelihoods,
    perplexity,
    perplexity_ratio,
    pseudo_log_likelihood,
    pseudo_perplexity,
)
from evenhand.simulate.masked import bigram_model

TEXTS = ["The doctor lost her keys.", "A teacher reads to him and sings.", "She was late."]


def oracle(model, text):
    """Token by token: one plain call of the network each, log-softmax over the vocabulary."""
    ids = model.tokenizer(text)["input_ids"]
    total = 0.0
    for place in range(1, len(ids) - 1):
        hidden = list(ids)
        hidden[place] = model.tokenizer.mask_token_id
        with torch.no_grad():
            logits = model.network(input_ids=torch.tensor([hidden])).logits[0, place]
        total += float(torch.log_softmax(logits.double(), dim=0)[ids[place]])
    return total, len(ids) - 2


def test_every_family_agrees_with_plain_calls(family):
    model = load(family)
    found = pseudo_log_likelihood(model, TEXTS)
    for k, text in enumerate(TEXTS):
        total, tokens = oracle(model, text)
        assert found.log_probs[k] == pytest.approx(total, abs=1e-4)
        assert found.tokens[k] == tokens
    assert found.left_out == ()


@pytest.fixture(scope="module")
def fake():
    return bigram_model(
        {"[CLS]": {"he": 0.5, "she": 0.25}, "he": {"sings": 0.5}, "she": {"sings": 0.125}}
    )


def test_by_hand(fake):
    found = pseudo_log_likelihood(fake, ["he sings", "she sings", ""])
    assert np.exp(found.log_probs) == pytest.approx([0.25, 0.25 * 0.125, 1.0])
    assert found.tokens.tolist() == [2, 2, 0]
    told = perplexity(found)
    assert told.perplexity.value == pytest.approx((0.25 * 0.25 * 0.125) ** (-1 / 4))
    assert told.as_dict()["tokens"] == 4
    assert told.as_dict()["texts"] == 2


def test_parts_of_the_work_and_progress_change_nothing(fake, monkeypatch):
    texts = ["he sings", "she sings", "he he sings"] * 4
    whole = pseudo_log_likelihood(fake, texts)
    monkeypatch.setattr(likelihood, "HELD", 10)
    seen = []
    parts = pseudo_log_likelihood(fake, texts, progress=lambda *at: seen.append(at))
    assert parts.log_probs == pytest.approx(whole.log_probs)
    assert seen[-1] == (28, 28)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_text_that_is_too_long_is_left_out_and_told(family):
    model = load(family)
    found = pseudo_log_likelihood(model, ["He sings.", "he " * 80, "She reads."])
    assert found.left_out == (1,)
    assert math.isnan(found.log_probs[1])
    assert found.tokens[1] == 0
    told = perplexity(found)
    alone = pseudo_perplexity(model, ["He sings.", "She reads."])
    assert told.perplexity.value == pytest.approx(alone.perplexity.value)
    assert told.as_dict()["left_out"] == 1


def test_bad_input_is_refused(fake):
    with pytest.raises(InputError, match="without a mask"):
        pseudo_log_likelihood(fake, ["he [MASK]"])
    with pytest.raises(InputError, match="got none of 1"):
        perplexity(Likelihoods(np.array([np.nan]), np.array([0]), (0,)))
    one = Likelihoods(np.array([-2.0]), np.array([2]))
    with pytest.raises(InputError, match="same texts"):
        perplexity_ratio(one, Likelihoods(np.array([-2.0]), np.array([3])))


def test_the_ratio_is_paired():
    rng = np.random.default_rng(1)
    tokens = rng.integers(5, 30, size=200)
    before = -tokens * rng.gamma(4, 0.5, size=200)
    after = before - 0.1 * tokens + rng.normal(0, 0.05, size=200) * tokens
    first, second = Likelihoods(before, tokens), Likelihoods(after, tokens)
    told = perplexity_ratio(first, second)
    apart = perplexity(second).perplexity.value / perplexity(first).perplexity.value
    assert told.value == pytest.approx(apart)
    assert told.low < math.exp(0.1) < told.high
    assert told.high - told.low < 0.05  # unpaired it would be some .3 wide


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(2)
    held = 0
    for trial in range(200):
        tokens = rng.integers(5, 30, size=60)
        sums = -tokens * rng.gamma(4, 0.5, size=60)
        told = perplexity(Likelihoods(sums, tokens), draws=300, seed=trial)
        held += told.perplexity.low <= math.exp(2.0) <= told.perplexity.high
    assert 0.88 <= held / 200 <= 0.985
