"""Frozen features: the model's own numbers, kept on disk and never mistaken for others."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
import torch
from transformers import (
    AlbertConfig,
    AlbertForMaskedLM,
    BertConfig,
    BertForMaskedLM,
    DistilBertConfig,
    DistilBertForMaskedLM,
    ElectraConfig,
    ElectraForMaskedLM,
    RobertaConfig,
    RobertaForMaskedLM,
)

from evenhand.errors import FileError, InputError
from evenhand.fewshot import encoders
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.models import encoding
from evenhand.models.forward import layers_of
from evenhand.models.masked import MaskedModel, load

TEXTS = [
    "The cook reads a letter.",
    "A guard.",
    "Singers met near the old bridge, and a clerk who had been late told them of the fire.",
    "The farmer sold two horses to a friend.",
    "",
    "The judge sang!",
    "A guard.",
    "Poets walk home before noon, mostly.",
]
FAMILIES = ("bert", "roberta", "distilbert", "albert", "electra")


def small(family: str = "bert", seed: int = 5) -> MaskedModel:
    """A small random model on the embedded tokenizer."""
    tokenizer = load("mini").tokenizer
    shape = {
        "vocab_size": len(tokenizer),
        "pad_token_id": tokenizer.pad_token_id,
        "initializer_range": 0.2,
        "max_position_embeddings": 48,
    }
    usual = {
        **shape,
        "hidden_size": 16,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 24,
    }
    torch.manual_seed(seed)
    network = {
        "bert": lambda: BertForMaskedLM(BertConfig(**usual)),
        "roberta": lambda: RobertaForMaskedLM(RobertaConfig(**usual)),
        "distilbert": lambda: DistilBertForMaskedLM(
            DistilBertConfig(**shape, dim=16, n_layers=2, n_heads=2, hidden_dim=24)
        ),
        "albert": lambda: AlbertForMaskedLM(AlbertConfig(**usual, embedding_size=8)),
        "electra": lambda: ElectraForMaskedLM(ElectraConfig(**usual, embedding_size=8)),
    }[family]()
    return MaskedModel(family, network.eval(), tokenizer)


def plain(model: MaskedModel, texts, pooling="mean", limit=40):
    """The usual way: everything padded to the longest, the whole encoder, a mean under the mask."""
    given = model.tokenizer(
        list(texts),
        padding=True,
        truncation=True,
        max_length=limit,
        return_tensors="pt",
        return_special_tokens_mask=True,
    )
    states = model.network.base_model(
        input_ids=given["input_ids"], attention_mask=given["attention_mask"]
    ).last_hidden_state
    if pooling == "cls":
        return states[:, 0]
    kept = (given["attention_mask"] * (1 - given["special_tokens_mask"])).float()
    kept[kept.sum(dim=1) == 0] = given["attention_mask"][kept.sum(dim=1) == 0].float()
    return (states * kept[:, :, None]).sum(dim=1) / kept.sum(dim=1, keepdim=True)


@pytest.fixture
def passes(monkeypatch):
    """How many rows went through the model, pass by pass."""
    counted: list[int] = []
    forward = encoding.forward_packed

    def counting(network, rows):
        counted.append(sum(len(span.ids) for span in rows.spans))
        return forward(network, rows)

    for module in (encoders, encoding):
        monkeypatch.setattr(module, "forward_packed", counting)
    return counted


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_features_are_those_of_the_padded_model(family, pooling):
    model = small(family)
    assert layers_of(model.network) is not None
    with torch.no_grad():
        expected = plain(model, TEXTS, pooling).numpy()
    found = encode(model, TEXTS, pooling=pooling, limit=40)
    np.testing.assert_allclose(found, expected, atol=2e-6)
    assert np.ptp(expected, axis=0).min() > 0.01


def test_a_model_of_unknown_layers_is_run_as_it_is():
    model = small()
    hidden = []
    model.network.base_model.encoder.layer[0].register_forward_hook(
        lambda *given: hidden.append(len(given[2][0]) if isinstance(given[2], tuple) else 1)
    )
    assert layers_of(model.network) is None
    with torch.no_grad():
        expected = plain(small(), TEXTS).numpy()
    np.testing.assert_allclose(encode(model, TEXTS, limit=40), expected, atol=2e-6)
    assert hidden


def test_texts_are_cut_at_the_limit_and_the_rest_does_not_matter():
    model = small()
    cut = encode(model, TEXTS, limit=6)
    with torch.no_grad():
        np.testing.assert_allclose(cut, plain(model, TEXTS, limit=6).numpy(), atol=2e-6)
    assert not np.allclose(cut[2], encode(model, TEXTS)[2])
    assert encode(model, []).shape == (0, 16)
    with pytest.raises(InputError, match="limit: expected 3 to 48 tokens, got 99"):
        encode(model, TEXTS, limit=99)
    with pytest.raises(InputError, match="unknown pooling 'max'"):
        encode(model, TEXTS, pooling="max")


def test_the_cache_gives_the_same_and_encodes_what_is_missing_alone(tmp_path, passes):
    model = small()
    without = encode(model, TEXTS)
    assert sum(passes) == len(set(TEXTS))
    first = encode(model, TEXTS[:4], cache=tmp_path)
    passes.clear()
    assert (encode(model, TEXTS[:4], cache=tmp_path) == first).all()
    assert not passes
    both = encode(model, TEXTS, cache=tmp_path)
    assert sum(passes) == len(set(TEXTS)) - 4
    np.testing.assert_allclose(both, without, atol=2e-6)
    assert (both[:4] == first).all()
    assert (both[1] == both[6]).all()


def test_another_model_pooling_or_limit_never_matches(tmp_path, passes):
    one, other = small(), small(seed=6)
    made = {"cache": tmp_path}
    found = [
        encode(one, TEXTS, **made),
        encode(other, TEXTS, **made),
        encode(one, TEXTS, pooling="cls", **made),
        encode(one, TEXTS, limit=5, **made),
    ]
    assert sum(passes) == 4 * len(set(TEXTS))
    for first in range(4):
        for second in range(first):
            assert not np.allclose(found[first], found[second])
    with torch.no_grad():
        next(one.network.base_model.parameters()).neg_()
    assert not np.allclose(encode(one, TEXTS, **made), found[0])


@pytest.mark.parametrize("damage", ["cut", "changed", "emptied"])
def test_a_damaged_file_is_not_used(tmp_path, passes, damage):
    model = small()
    expected = encode(model, TEXTS, cache=tmp_path)
    [file] = tmp_path.glob("*.npy")
    content = bytearray(file.read_bytes())
    if damage == "changed":
        content[len(content) // 2] ^= 1
    file.write_bytes(content[: {"cut": -5, "changed": None, "emptied": 0}[damage]])
    passes.clear()
    assert (encode(model, TEXTS, cache=tmp_path) == expected).all()
    assert sum(passes) == len(set(TEXTS))
    assert (encode(model, TEXTS, cache=tmp_path) == expected).all()
    assert sum(passes) == len(set(TEXTS))


def test_interrupted_work_resumes_with_the_same_numbers(tmp_path, monkeypatch, passes):
    monkeypatch.setitem(encoding.TOKENS, "cpu", 12)
    monkeypatch.setitem(encoding.STORED, "cpu", 1)
    model = small()
    expected = encode(model, TEXTS, cache=tmp_path / "whole")
    every = len(passes)

    def stop(what, done, total, words):
        if done > total / 2:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        encode(model, TEXTS, cache=tmp_path / "broken", progress=stop)
    assert list((tmp_path / "broken").glob(".request.*"))
    passes.clear()
    assert (encode(model, TEXTS, cache=tmp_path / "broken") == expected).all()
    assert 0 < len(passes) < every
    assert not list((tmp_path / "broken").glob(".request.*"))


def test_two_at_once_encode_once(tmp_path, passes):
    model = small()
    with ThreadPoolExecutor(2) as pool:
        one, other = pool.map(lambda _: encode(model, TEXTS, cache=tmp_path), range(2))
    assert (one == other).all()
    assert sum(passes) == len(set(TEXTS))


def test_a_file_in_the_place_of_the_cache_is_named(tmp_path):
    (tmp_path / "file").write_text("x")
    with pytest.raises(FileError, match="file: expected a folder for a cache, got a file"):
        encode(small(), TEXTS, cache=tmp_path / "file")


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_gradients_are_those_of_the_padded_model(family, pooling):
    model = small(family)
    aims = torch.randn(len(TEXTS), model.dim, generator=torch.Generator().manual_seed(1))
    encoder = TunedEncoder(model, TEXTS, pooling=pooling, limit=40)
    points, places = encoder.points(np.arange(len(TEXTS)))
    torch.autograd.backward((points[places] * aims).sum())
    torch.autograd.backward((plain(model, TEXTS, pooling) * aims).sum())
    expected = dict(model.network.base_model.named_parameters())
    words = model.network.base_model.get_input_embeddings().weight
    compared = 0
    for name, weight in encoder.weights().items():
        wanted = expected[name].grad
        if expected[name] is words:
            assert len(weight) < len(wanted) / 50
            missing = torch.ones(len(wanted), dtype=torch.bool)
            missing[encoder.state()[encoders.VOCABULARY]] = False
            assert not wanted[missing].any()
            wanted = wanted[~missing]
        if wanted is None:
            assert weight.grad is None
            continue
        torch.testing.assert_close(weight.grad, wanted, atol=3e-5, rtol=1e-4)
        compared += bool(wanted.abs().max() > 1e-3)
    assert compared > 8


@pytest.mark.parametrize("way", ["in parts", "in parts made again", "padded for attention"])
def test_other_ways_through_the_encoder_have_the_same_gradients(monkeypatch, way):
    def gradients():
        encoder = TunedEncoder(small(), TEXTS)
        points, places = encoder.points(np.arange(len(TEXTS)))
        torch.autograd.backward(points[places].square().sum())
        return points.detach(), {name: w.grad for name, w in encoder.weights().items()}

    expected, wanted = gradients()
    if way.startswith("in parts"):
        monkeypatch.setitem(encoders.AT_ONCE, "cpu", 20)
        monkeypatch.setattr(encoders, "_room", lambda model: 20 if "again" in way else 1000)  # noqa: ARG005
    else:
        monkeypatch.setitem(encoding.BUCKETS, "cpu", 3)
    found, made = gradients()
    torch.testing.assert_close(found, expected, atol=1e-6, rtol=1e-5)
    for name, gradient in made.items():
        torch.testing.assert_close(gradient, wanted[name], atol=1e-5, rtol=1e-4)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("pooling", ["mean", "cls"])
def test_padded_groups_have_the_same_features(monkeypatch, family, pooling):
    texts = [*TEXTS, "", "one"]
    expected = encode(small(family), texts, pooling=pooling)
    monkeypatch.setitem(encoding.BUCKETS, "cpu", 3)
    np.testing.assert_allclose(encode(small(family), texts, pooling=pooling), expected, atol=2e-6)


def test_a_tuned_encoder_leaves_the_model_it_was_made_of_alone():
    model = small()
    before = model.fingerprint
    encoder = TunedEncoder(model, TEXTS)
    with torch.no_grad():
        for weight in encoder.weights().values():
            weight += 0.1
    assert model.fingerprint == before
    changed = encoder.full_model()
    rows = np.arange(len(TEXTS))
    points, places = encoder.table(rows)
    np.testing.assert_allclose(points[places], encode(changed, TEXTS), atol=2e-6)
    others = ["A horse walks.", *TEXTS]
    again = TunedEncoder(model, others)
    again.load(encoder.state())
    points, places = again.table(np.arange(len(others)))
    np.testing.assert_allclose(points[places][1:], encode(changed, TEXTS), atol=2e-6)
    encoder.reset()
    points, places = encoder.table(rows)
    np.testing.assert_allclose(points[places], encode(model, TEXTS), atol=2e-6)


def test_half_precision_is_near_and_keeps_weights_and_gradients_whole():
    exact, near = (TunedEncoder(small(), TEXTS, dtype=dtype) for dtype in ("float32", "bfloat16"))
    rows = np.arange(len(TEXTS))
    expected, _ = exact.table(rows)
    points, _ = near.points(rows)
    assert points.dtype == torch.float32
    apart = (points.detach() - expected).abs().max()
    assert 1e-5 < apart < 0.1
    torch.autograd.backward(points.square().sum())
    kinds = {weight.grad.dtype for weight in near.weights().values() if weight.grad is not None}
    assert kinds == {torch.float32}


def test_rows_that_are_not_there_and_unfit_models_are_refused():
    with pytest.raises(InputError, match="expected rows 0 to 7, those of the texts, got 0 to 8"):
        TunedEncoder(small(), TEXTS).points(np.array([0, 8]))
    with pytest.raises(InputError, match="unknown dtype 'half'"):
        TunedEncoder(small(), TEXTS, dtype="half")
    half = small()
    half.network.bfloat16()
    with pytest.raises(InputError, match="expected a model in float32"):
        TunedEncoder(half, TEXTS)
