"""Models in memory give the numbers of the same models in folders, and stay as they are."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import torch
from small_causal import small_network, small_tokenizer
from transformers import (
    AutoTokenizer,
    BertForMaskedLM,
    BertModel,
    RobertaConfig,
    RobertaForMaskedLM,
)

import evenhand as eh
from evenhand.cache import Cache
from evenhand.errors import EvenhandError
from evenhand.models.encoder import encode
from evenhand.models.likelihood import likelihoods
from small_encoder import save_small
from small_sentence_encoder import save_encoder

SENTENCES = ["The clerk lost [MASK] keys.", "The nurse said that [MASK] was late."]
TEXTS = ["w5 w9 w30 w7", "w8 w9", "w40 w41 w42 w43 w44"]


def state(network):
    return (
        network.training,
        network.config.to_dict(),
        [weight.detach().clone() for weight in network.parameters()],
        [weight.requires_grad for weight in network.parameters()],
        [len(module._forward_hooks) for module in network.modules()],
    )


def unchanged(before, network):
    now = state(network)
    same = all(torch.equal(a, b) for a, b in zip(before[2], now[2], strict=True))
    return same and (before[:2], before[3:]) == (now[:2], now[3:])


@pytest.fixture(scope="module")
def masked(tmp_path_factory):
    """The folder of a small BERT, and the same model in memory, in training mode."""
    folder = save_small(tmp_path_factory.mktemp("models") / "small")
    network = BertForMaskedLM.from_pretrained(folder).train()
    return folder, (network, AutoTokenizer.from_pretrained(folder))


def test_a_masked_model_in_memory(masked):
    folder, pair = masked
    before, tokenizer = state(pair[0]), pair[1].backend_tokenizer.to_str()
    from_folder, in_memory = eh.models.load(folder), eh.models.load(pair)
    assert in_memory.name == "small (in memory)"
    values = [
        eh.measure(model, SENTENCES, "pronouns").items["full_bias"]
        for model in (from_folder, in_memory, pair)
    ]
    for other in values[1:]:
        assert np.allclose(values[0], other, atol=1e-6)
    answers = [eh.ask(SENTENCES, model)[0].bias for model in (folder, pair)]
    assert answers[0] == pytest.approx(answers[1], abs=1e-6)
    assert unchanged(before, pair[0])
    assert pair[1].backend_tokenizer.to_str() == tokenizer


def test_several_models_are_asked(masked):
    folder, pair = masked
    names = [answer.model for answer in eh.ask(SENTENCES[0], [pair, folder])]
    assert names == ["small (in memory)", "small"]


def test_a_pipeline(masked):
    folder, pair = masked
    pipeline = SimpleNamespace(model=pair[0], tokenizer=pair[1], task="fill-mask")
    one, other = (eh.ask(SENTENCES, source) for source in (folder, pipeline))
    assert [a.bias for a in one] == pytest.approx([a.bias for a in other], abs=1e-6)


def test_a_masked_family_with_other_positions(tmp_path, masked):
    tokenizer = masked[1][1]
    config = RobertaConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=66,
        pad_token_id=tokenizer.pad_token_id,
    )
    torch.manual_seed(1)
    network = RobertaForMaskedLM(config)
    network.save_pretrained(tmp_path / "roberta")
    tokenizer.save_pretrained(tmp_path / "roberta")
    models = eh.models.load(tmp_path / "roberta"), eh.models.load((network, tokenizer))
    one, other = (eh.models.Pronouns()(model, SENTENCES).items["full_bias"] for model in models)
    assert np.allclose(one, other, atol=1e-6)


@pytest.mark.parametrize("family", ["gpt2", "llama", "llama, grouped", "opt"])
def test_a_causal_model_in_memory(tmp_path, family):
    network, tokenizer = small_network(family), small_tokenizer()
    network.save_pretrained(tmp_path / "saved")
    tokenizer.save_pretrained(tmp_path / "saved")
    network.train()
    before = state(network)
    models = eh.models.load(tmp_path / "saved"), eh.models.load((network, tokenizer))
    assert [model.subject_kind for model in models] == ["causal", "causal"]
    one, other = (likelihoods(model, TEXTS)[0] for model in models)
    assert np.allclose(one, other, atol=1e-4)
    assert unchanged(before, network)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_training_and_hooks_change_results_and_fingerprints(family, tmp_path):
    network, tokenizer = small_network(family), small_tokenizer()
    model = eh.models.load((network, tokenizer))
    cache = Cache(tmp_path / "cache")
    first, mark = likelihoods(model, TEXTS, cache=cache)[0], model.fingerprint
    assert eh.models.load((network, tokenizer)).fingerprint == mark
    with torch.no_grad():
        for weight in network.parameters():
            weight *= 1.1
    again = likelihoods(model, TEXTS, cache=cache)[0]
    assert model.fingerprint != mark
    assert not np.allclose(first, again)
    fresh = likelihoods(eh.models.load((network, tokenizer)), TEXTS)[0]
    assert np.allclose(again, fresh, atol=1e-5)
    inner = network.get_input_embeddings()
    handle = inner.register_forward_hook(lambda _module, _given, output: output * 0.5)
    hooked = [eh.models.load((network, tokenizer)) for _ in range(2)]
    assert hooked[0].fingerprint != hooked[1].fingerprint  # nothing of it is cached
    assert not np.allclose(likelihoods(hooked[0], TEXTS, cache=cache)[0], again)
    handle.remove()


def test_hooks_inside_of_a_masked_model_count(masked):
    _, (network, tokenizer) = masked
    plain = eh.models.Pronouns()(eh.models.load((network, tokenizer)), SENTENCES)
    layer = network.bert.encoder.layer[0].output.dense
    handle = layer.register_forward_hook(lambda _module, _given, output: output * 3)
    hooked = eh.models.Pronouns()(eh.models.load((network, tokenizer)), SENTENCES)
    handle.remove()
    again = eh.models.Pronouns()(eh.models.load((network, tokenizer)), SENTENCES)
    assert not np.allclose(plain.items["full_bias"], hooked.items["full_bias"])
    assert np.allclose(plain.items["full_bias"], again.items["full_bias"])


def test_a_network_without_a_head_is_a_sentence_encoder(tmp_path, masked):
    tokenizer = masked[1][1]
    network = BertModel.from_pretrained(masked[0], add_pooling_layer=False).train()
    network.save_pretrained(tmp_path / "encoder")
    tokenizer.save_pretrained(tmp_path / "encoder")
    models = eh.models.load(tmp_path / "encoder"), eh.models.load((network, tokenizer))
    assert [model.subject_kind for model in models] == ["encoder", "encoder"]
    one, other = (encode(model, ["She sings.", "He cooks rice."]) for model in models)
    assert np.allclose(one, other, atol=1e-6)
    assert network.training


class SentenceTransformer:
    """What sentence-transformers has: a class that saves itself in its layout."""

    def __init__(self, *modules):
        self.modules_ = modules

    def save(self, path):
        save_encoder(Path(path), modules=self.modules_)


def test_a_sentence_transformer(tmp_path):
    folder = save_encoder(tmp_path, modules=("Normalize",))
    model = SentenceTransformer("Normalize")
    assert eh.models.kind_of(model) == "encoder"
    one, other = (encode(eh.models.load(each), ["She sings."]) for each in (folder, model))
    assert np.array_equal(one, other)


def test_a_model_in_memory_is_saved_and_loads(tmp_path, masked):
    from evenhand.models.memory import save

    pair = masked[1]
    before = state(pair[0])
    for number, source in enumerate((pair, eh.models.load(pair), eh.models.load("mini"))):
        save(source, tmp_path / str(number))
        assert eh.models.kind_of(tmp_path / str(number)) == "masked"
    one, other = (eh.models.load(each) for each in (tmp_path / "0", masked[0]))
    assert one.fingerprint == other.fingerprint
    assert unchanged(before, pair[0])


def test_training_leaves_a_model_in_memory_as_it_is(masked):
    from evenhand.fewshot import TunedEncoder

    pair = masked[1]
    before = state(pair[0])
    encoder = TunedEncoder(pair, ["She sings.", "He cooks."])
    with torch.no_grad():
        for weight in encoder.model.network.parameters():
            weight += 1
    assert unchanged(before, pair[0])


@pytest.mark.parametrize(
    ("break_it", "problem"),
    [
        (lambda network, _tokenizer: network, "the pair (model, tokenizer), got BertForMaskedLM"),
        (lambda network, _tokenizer: (network, None), "its fast tokenizer, got none"),
        (lambda _network, tokenizer: (tokenizer, tokenizer), "the pair (model, tokenizer)"),
        (lambda network, _tokenizer: (network, small_tokenizer()), "no mask token"),
        (lambda _network, _tokenizer: 7, "got int"),
    ],
)
def test_what_is_no_model_is_refused(masked, break_it, problem):
    with pytest.raises(EvenhandError) as error:
        eh.models.load(break_it(*masked[1]))
    assert problem in str(error.value)
    assert "\n" not in str(error.value)
