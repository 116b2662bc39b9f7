"""Pseudo-log-likelihood and pseudo-perplexity against plain calls of the model and by hand."""

import math

import numpy as np
import pytest
import torch

from evenhand.errors import InputError
from evenhand.instruments import Run
from evenhand.models import load, masked_scoring
from evenhand.models.metrics.perplexity import Perplexity, pseudo_log_likelihoods
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
    log_probs, counts = pseudo_log_likelihoods(model, TEXTS)
    for k, text in enumerate(TEXTS):
        total, tokens = oracle(model, text)
        assert log_probs[k] == pytest.approx(total, abs=1e-4)
        assert counts[k] == tokens


@pytest.fixture(scope="module")
def fake():
    return bigram_model(
        {"[CLS]": {"he": 0.5, "she": 0.25}, "he": {"sings": 0.5}, "she": {"sings": 0.125}}
    )


def test_by_hand(fake):
    m = Perplexity()(fake, ["he sings", "she sings", ""])
    assert np.exp(m.items["log_prob"]) == pytest.approx([0.25, 0.25 * 0.125, 1.0])
    assert m.items["tokens"].tolist() == [2, 2, 0]
    assert m.value == pytest.approx((0.25 * 0.25 * 0.125) ** (-1 / 4))
    assert m.details["tokens"] == 4
    assert m.n == 2


def test_one_text_says_nothing_of_others(fake):
    m = Perplexity()(fake, ["he sings"])
    assert (m.low, m.high) == (0, np.inf)
    change = Perplexity.compare(m, m).change
    assert (change.value, change.low, change.high) == (1, 0, np.inf)


def test_chunks_and_progress_change_nothing(fake, monkeypatch):
    texts = ["he sings", "she sings", "he he sings"] * 4
    expected = pseudo_log_likelihoods(fake, texts)[0]
    monkeypatch.setattr(masked_scoring, "MAX_MASKED_TOKENS", 10)
    seen = []
    log_probs, _ = pseudo_log_likelihoods(fake, texts, progress=lambda *at: seen.append(at))
    assert log_probs == pytest.approx(expected)
    assert seen[-1] == (28, 28)
    assert [done for done, _ in seen] == sorted(done for done, _ in seen)


def test_a_text_that_is_too_long_is_left_out_and_listed(family):
    model = load(family)
    m = Perplexity()(model, ["He sings.", "he " * 80, "She reads."])
    assert m.left_out == ("text 2 (longer than the model takes)",)
    assert math.isnan(m.items["log_prob"][1])
    assert m.items["tokens"][1] == 0
    assert m.value == pytest.approx(Perplexity()(model, ["He sings.", "She reads."]).value)


def known(log_probs, tokens, seed=0, resamples=2000):
    """The measurement of texts whose likelihoods are given."""
    texts = [f"text {k}" for k in range(len(tokens))]
    return Perplexity(resamples=resamples).summarise(
        texts, np.array(log_probs, dtype=float), np.array(tokens), run=Run(seed=seed)
    )


def test_bad_input_is_refused(fake):
    with pytest.raises(InputError, match="without a mask"):
        Perplexity()(fake, ["he [MASK]"])
    with pytest.raises(InputError, match="got none of 1"):
        known([np.nan], [0])
    with pytest.raises(InputError, match="same texts"):
        Perplexity.compare(known([-2.0], [2]), known([-2.0], [3]))


def test_texts_are_read_from_a_file(tmp_path):
    path = tmp_path / "texts.txt"
    path.write_text("One text.\n\nAnother.\n")
    assert Perplexity().read(path) == ["One text.", "Another."]
    path.write_text("\n")
    with pytest.raises(InputError, match="expected texts, one per line, got none"):
        Perplexity().read(path)


def test_the_ratio_is_paired():
    rng = np.random.default_rng(1)
    tokens = rng.integers(5, 30, size=200)
    before = -tokens * rng.gamma(4, 0.5, size=200)
    after = before - 0.1 * tokens + rng.normal(0, 0.05, size=200) * tokens
    first, second = known(before, tokens), known(after, tokens)
    comparison = Perplexity.compare(first, second)
    ratio = comparison.change
    assert comparison.kind == "ratio"
    assert ratio.value == pytest.approx(second.value / first.value)
    assert ratio.low < math.exp(0.1) < ratio.high
    assert ratio.high - ratio.low < 0.05  # unpaired it would be some .3 wide


def test_the_interval_holds_the_truth_as_often_as_it_says():
    rng = np.random.default_rng(2)
    held = 0
    for trial in range(200):
        tokens = rng.integers(5, 30, size=60)
        sums = -tokens * rng.gamma(4, 0.5, size=60)
        m = known(sums, tokens, seed=trial, resamples=300)
        held += m.low <= math.exp(2.0) <= m.high
    assert 0.88 <= held / 200 <= 0.985
