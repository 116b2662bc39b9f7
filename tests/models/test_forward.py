"""Eight bits: how far from float32, and never mixed up with it."""

from __future__ import annotations

import subprocess
from itertools import pairwise
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from torch.nn.functional import scaled_dot_product_attention
from transformers import MPNetConfig, MPNetForMaskedLM

import evenhand as eh
from evenhand.errors import InputError
from evenhand.models import forward
from evenhand.models.forward import Int8, guard_half, int8_stages
from evenhand.models.masked_scoring import MaskedPosition, log_probs

TEXTS = [
    f"{who} {did} [MASK] {what}."
    for who in ("the nurse", "a young farmer", "the old judge", "my neighbour", "the captain")
    for did in ("lost", "sold", "found", "carried", "spoke about")
    for what in ("keys", "horse on the market", "book in the garden of the school", "sister")
]


def masked_positions(model):
    rows = [tuple(ids) for ids in model.tokenizer(TEXTS)["input_ids"]]
    return [MaskedPosition(row, row.index(model.tokenizer.mask_token_id)) for row in rows]


def test_a_linear_map_in_eight_bits():
    torch.manual_seed(0)
    first, second = torch.nn.Linear(64, 48), torch.nn.Linear(64, 16)
    states = torch.nn.functional.gelu(torch.randn(200, 64) * torch.logspace(-3, 3, 200)[:, None])
    with torch.inference_mode():
        exact = torch.cat([first(states), second(states)], dim=1)
        quantized = Int8(first, second)(states)
        residual = torch.randn(200, 64)
        added = Int8(first, second).onto(residual, states)
    size = exact.sub(torch.cat([first.bias, second.bias])).norm(dim=1)
    assert ((quantized - exact).norm(dim=1) / size).max() < 0.02  # each row by its own scale
    assert torch.allclose(added, quantized + residual, atol=1e-4)


def test_mini_in_eight_bits_is_near():
    """Not a promise of accuracy: per tensor and in seven bits it was off by 4 and more."""
    exact, model = eh.models.load("mini"), eh.models.load("mini", int8=True)
    words = model.tokenizer.convert_tokens_to_ids(["his", "her"])
    queries = masked_positions(model)
    plain, result = log_probs(exact, queries, words), log_probs(model, queries, words)
    assert 0 < np.abs(result - plain).mean() < 0.1
    assert np.abs(result - plain).max() < 0.6
    assert np.corrcoef(result[:, 0] - result[:, 1], plain[:, 0] - plain[:, 1])[0, 1] > 0.99
    near = model.embed(TEXTS[:5]) / exact.embed(TEXTS[:5])
    assert 0 < np.abs(np.median(near) - 1) < 0.05


def test_the_batch_hardly_changes_the_numbers():
    """Rounding may carry a state over to the next of 256 levels; nothing more than that."""
    model = eh.models.load("mini", int8=True)
    queries = masked_positions(model)
    together = log_probs(model, queries, [5, 6])
    for tokens in (1, 100):
        assert np.allclose(
            log_probs(model, queries, [5, 6], batch_tokens=tokens), together, atol=0.02
        )


def test_every_family(family):
    exact, model = eh.models.load(family), eh.models.load(family, int8=True)
    queries = [MaskedPosition((2, 5, 9, 4, 7, 11, 3), 3), MaskedPosition((2, 4, 8, 3), 1)]
    every = range(model.network.config.vocab_size)
    plain, result = log_probs(exact, queries, every), log_probs(model, queries, every)
    assert 0 < np.abs(result - plain).mean() < 0.05
    assert model.logits([queries[0].ids], [3]).shape == (1, len(every))


def test_it_says_what_it_is():
    exact, model = eh.models.load("mini"), eh.models.load("mini", int8=True)
    assert model.name == "mini (int8)"
    assert model.fingerprint == f"int8 {exact.fingerprint}"


def test_what_cannot_be_in_eight_bits():
    with pytest.raises(InputError, match="expected device cpu and dtype float32, got cpu and fl"):
        eh.models.load("mini", int8=True, dtype="float16", device="cpu")
    config = MPNetConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=20,
    )
    with pytest.raises(InputError, match="int8: expected a model of the BERT family, got MPNet"):
        int8_stages(MPNetForMaskedLM(config).eval())


@pytest.mark.parametrize(
    ("flags", "code", "on"),
    [
        ("amx_tile", -4, False),
        ("amx_tile", 0, True),
        ("sse", -4, True),
    ],
)
def test_a_processor_that_dies_of_half_precision(monkeypatch, flags, code, on):
    """Where trying it ends another process, oneDNN is switched off in this one."""
    was = torch.backends.mkldnn.enabled
    torch.backends.mkldnn.set_flags(_enabled=True)
    monkeypatch.setattr(forward, "_processor_flags", lambda: flags)
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: SimpleNamespace(returncode=code))
    guard_half.cache_clear()
    try:
        guard_half()
        assert torch.backends.mkldnn.enabled is on
    finally:
        torch.backends.mkldnn.set_flags(_enabled=was)
        guard_half.cache_clear()


def test_packed_rows_give_the_same_numbers(family, monkeypatch):
    """The layout of the GPU pass, with attention row by row in place of its kernel."""
    model = eh.models.load(family)
    rng = np.random.default_rng(0)
    size = model.core.config.vocab_size
    rows = [tuple(rng.integers(5, size, size=n).tolist()) for n in (4, 9, 2, 9, 14, 1, 4)]
    positions = [MaskedPosition(row, k) for row in rows for k in range(0, len(row), 2)]
    expected = log_probs(model, positions, range(size))
    embedded = model.embed(["he reads", "she", "the nurse was late"])
    used = []

    def attend(query, key, value, query_ends, key_ends, most_queries, longest):
        used.append((most_queries, longest))
        rows = zip(pairwise(query_ends.tolist()), pairwise(key_ends.tolist()), strict=True)
        parts = [
            scaled_dot_product_attention(
                query[begin:end].transpose(0, 1),
                key[first:last].transpose(0, 1),
                value[first:last].transpose(0, 1),
            ).transpose(0, 1)
            for (begin, end), (first, last) in rows
        ]
        return torch.cat(parts)

    monkeypatch.setattr(forward, "is_packed", lambda *_: True)
    monkeypatch.setattr(forward, "attend_packed", attend)
    assert np.allclose(log_probs(model, positions, range(size)), expected, atol=1e-5)
    assert used == [(14, 14), (14, 14), (7, 14)]
    again = model.embed(["he reads", "she", "the nurse was late"])
    assert np.allclose(again, embedded, atol=1e-5)
