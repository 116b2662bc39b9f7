"""Causal models as encoders: the states that transformers computes, one text at a time."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import GPT2Config, GPT2LMHeadModel, LlamaConfig, LlamaForCausalLM

from evenhand.errors import InputError
from evenhand.fewshot import encoders, read
from evenhand.fewshot.encoders import TunedEncoder, encode
from evenhand.fewshot.metrics.bias import Bias
from evenhand.fewshot.runs import draw_parts, prepare, run
from evenhand.fewshot.settings import RunSettings, TrainingSettings
from evenhand.models import encoding
from evenhand.models.causal import CausalModel, load
from evenhand.models.causal_scoring import mean_states

TEXTS = [
    "She reads.",
    "The singers met near the old bridge, and a clerk told them of the fire.",
    "A guard.",
    "",
    "The farmer sold two horses to a friend.",
]


def small(family: str) -> CausalModel:
    """A small random model on the embedded tokenizer."""
    tokenizer = load("tiny-causal", device="cpu").tokenizer
    torch.manual_seed(5)
    if family == "gpt2":
        config = GPT2Config(
            vocab_size=len(tokenizer),
            n_positions=40,
            n_embd=16,
            n_layer=2,
            n_head=2,
            initializer_range=0.2,
        )
        return CausalModel(family, GPT2LMHeadModel(config).eval(), tokenizer)
    config = LlamaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        intermediate_size=24,
        num_hidden_layers=2,
        num_attention_heads=4,
        num_key_value_heads=2,
        max_position_embeddings=40,
        initializer_range=0.2,
    )
    return CausalModel(family, LlamaForCausalLM(config).eval(), tokenizer)


def plain(model: CausalModel, text: str, pooling: str, limit: int = 40):
    """The states after the final norm of a direct call for one text, without padding."""
    [coded] = model.encode([text])
    ids = torch.tensor([[model.begin, *coded.ids][:limit]])
    states = model.network(input_ids=ids, output_hidden_states=True).hidden_states[-1][0]
    own = states[1:] if len(states) > 1 else states
    return own.mean(dim=0) if pooling == "mean" else own[-1]


@pytest.mark.parametrize("family", ["gpt2", "llama"])
@pytest.mark.parametrize("pooling", ["mean", "last"])
@pytest.mark.parametrize("padded", [False, True])
def test_features_are_the_states_of_a_direct_call(monkeypatch, family, pooling, padded):
    model = small(family)
    if padded:
        monkeypatch.setitem(encoding.BUCKETS, "cpu", 2)
    found = encode(model, TEXTS, pooling=pooling)
    with torch.no_grad():
        expected = torch.stack([plain(model, text, pooling) for text in TEXTS]).numpy()
    np.testing.assert_allclose(found, expected, atol=3e-6)
    assert np.ptp(expected, axis=0).min() > 0.01
    cut = encode(model, TEXTS, pooling=pooling, limit=5)
    with torch.no_grad():
        np.testing.assert_allclose(cut[1], plain(model, TEXTS[1], pooling, 5).numpy(), atol=3e-6)


def test_the_embedded_model_has_the_states_of_its_own_decoder():
    model = load("tiny-causal", device="cpu")
    texts = [text for text in TEXTS if text]
    wanted = mean_states(model, texts)
    np.testing.assert_allclose(encode(model, texts, pooling="mean"), wanted, atol=2e-4, rtol=1e-3)
    np.testing.assert_array_equal(
        encode("tiny-causal", texts), encode(model, texts, pooling="mean")
    )


def test_the_first_token_of_a_causal_model_is_refused():
    for make in (encode, TunedEncoder):
        with pytest.raises(InputError, match="expected last or mean for a causal model, whose"):
            make(small("gpt2"), TEXTS, pooling="cls")


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_gradients_are_those_of_direct_calls(family):
    model = small(family)
    aims = torch.randn(len(TEXTS), model.dim, generator=torch.Generator().manual_seed(1))
    encoder = TunedEncoder(model, TEXTS, pooling="last")
    points, places = encoder.points(np.arange(len(TEXTS)))
    torch.autograd.backward((points[places] * aims).sum())
    for text, aim in zip(TEXTS, aims, strict=True):
        torch.autograd.backward((plain(model, text, "last") * aim).sum())
    expected = dict(model.network.base_model.named_parameters())
    words = model.network.base_model.get_input_embeddings().weight
    used = encoder.state()[encoders.VOCABULARY]
    for name, weight in encoder.weights().items():
        wanted = expected[name].grad
        wanted = wanted[used] if expected[name] is words else wanted
        torch.testing.assert_close(weight.grad, wanted, atol=3e-5, rtol=1e-3)
    with torch.no_grad():
        for weight in encoder.weights().values():
            weight *= 1.1
    points, places = encoder.table(np.arange(len(TEXTS)))
    changed = encode(encoder.full_model(), TEXTS, pooling="last")
    np.testing.assert_allclose(points[places], changed, atol=1e-5)
    assert np.abs(changed - encode(model, TEXTS, pooling="last")).max() > 0.01


def test_a_run_on_a_causal_encoder_reads_the_texts_of_its_episodes_alone(tmp_path, monkeypatch):
    people = read("simulated:per_class=30,leak=1", leaning="share")
    people = people.subset(people.classes[:9])
    settings = RunSettings(
        training=TrainingSettings(network="proto-euclidean", batch=4, validate_every=8),
        ways=2,
        shots=2,
        queries=1,
        episodes="8/4/8",
        limit=16,
    )
    texts: list[str] = []
    whole = encoders.encode_texts

    def counting(model, given, **more):
        texts.extend(given)
        return whole(model, given, **more)

    monkeypatch.setattr(encoders, "encode_texts", counting)
    how = {"encoder": "tiny-causal", "bias": Bias(permutations=20), "both_leanings": False}
    done = run(people, settings, tmp_path / "run", **how)
    assert done.record["settings"]["pooling"] == done.settings.pooling == "mean"
    assert done.record["encoder"]["source"] == "tiny-causal"
    assert len(texts) <= (8 + 4) * 2 * 3 + 8 * 2 * (2 + 3) < len(people)


def test_without_unused_texts_every_episode_has_the_same_ones():
    people = read("simulated:per_class=30,leak=1", leaning="share")
    people = people.subset(people.classes[:9])
    settings = RunSettings(
        ways=2, shots=2, queries=1, episodes="6/4/8", mitigation="neutralize", seeds=2
    )
    parts = draw_parts(people, settings, both_leanings=False)
    whole = prepare(people, settings, parts)
    less = whole.reduced()
    assert len(less.texts) < len(whole.texts) / 3
    [part] = parts

    def made(material):
        episodes = [material.training(part, 0), material.training(part, 1)]
        versions = (None, material.swapped, material.neutral)
        episodes += [material.validation(part), *(material.test(part, v) for v in versions)]
        return [
            [material.texts[row] for row in rows.ravel().tolist()]
            for each in episodes
            for rows in (each.support, each.query)
        ]

    assert made(less) == made(whole)
    many = RunSettings(ways=2, shots=2, queries=1, episodes="200/4/8")
    every = prepare(people, many, draw_parts(people, many, both_leanings=False))
    assert every.reduced() is every
