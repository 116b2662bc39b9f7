"""Texts written in process: against `generate` of transformers, and token by token."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from small_causal import FAMILIES, VOCABULARY, small_model, small_tokenizer
from transformers import GPTNeoXConfig, GPTNeoXForCausalLM

from evenhand.errors import InputError
from evenhand.models.causal import CausalModel
from evenhand.models.local_writer import LocalWriter
from evenhand.models.writing import Message, Request, WriteSettings

GREEDY = WriteSettings(temperature=0, max_new_tokens=12)
TEMPLATE = (
    "{% for m in messages %}w2 {{ m['content'] }} w3 {% endfor %}"
    "{% if add_generation_prompt %}w4{% endif %}"
)


def unknown_family() -> CausalModel:
    """A family that only transformers computes."""
    torch.manual_seed(0)
    config = GPTNeoXConfig(
        vocab_size=VOCABULARY,
        hidden_size=48,
        num_hidden_layers=2,
        num_attention_heads=4,
        intermediate_size=96,
        max_position_embeddings=64,
        bos_token_id=0,
        eos_token_id=1,
    )
    network = GPTNeoXForCausalLM(config)
    with torch.no_grad():
        for weight in network.parameters():
            weight *= 3 if weight.ndim > 1 else 1
    return CausalModel("neox", network.eval(), small_tokenizer())


@pytest.fixture(scope="module", params=[*FAMILIES, "neox"])
def writer(request):
    model = unknown_family() if request.param == "neox" else small_model(request.param)
    assert (model.decoder is None) == (request.param == "neox")
    return LocalWriter(model)


def requests_of(count, samples=3, seed=0):
    """Prompts of different lengths, each asked several times."""
    rng = np.random.default_rng(seed)
    prompts = [
        " ".join(f"w{i}" for i in rng.integers(2, VOCABULARY, rng.integers(1, 9)))
        for _ in range(count)
    ]
    return [Request((Message("user", p),), seed=s) for p in prompts for s in range(samples)]


def written(writer, requests, settings):
    texts = dict(writer.write(requests, settings))
    assert sorted(texts) == list(range(len(requests)))
    return [texts[i] for i in range(len(requests))]


def test_greedy_texts_are_those_of_generate(writer):
    requests = requests_of(6)
    texts = written(writer, requests, GREEDY)
    for request, text in zip(requests, texts, strict=True):
        ids = torch.tensor([[0, *writer.model.encode([writer.render(request)])[0].ids]])
        out = writer.model.network.generate(
            ids, do_sample=False, max_new_tokens=12, eos_token_id=1, pad_token_id=1
        )
        own = out[0, ids.shape[1] :].tolist()
        assert text.text == writer.model.tokenizer.decode(own, skip_special_tokens=True)
        assert text.finish == ("stop" if own[-1] == 1 else "length")
        assert text.tokens == len(own) - (own[-1] == 1)


def test_sampled_texts_do_not_depend_on_their_batch(writer):
    requests = requests_of(5, samples=4)
    settings = WriteSettings(temperature=0.8, top_p=0.9, max_new_tokens=10)
    together = written(writer, requests, settings)
    for i in (0, 7, 19):
        assert written(writer, [requests[i]], settings) == [together[i]]
    assert len({text.text for text in together}) > 10


def test_tokens_are_sampled_by_their_probability():
    writer = LocalWriter(small_model("llama"))
    prompt = (Message("user", "w7 w8"),)
    draws = 4_000
    settings = WriteSettings(temperature=2.0, top_p=0.7, max_new_tokens=1)
    texts = written(writer, [Request(prompt, seed=s) for s in range(draws)], settings)
    ids = writer.model.encode(["w7 w8"])[0].ids
    logits = writer.model.logits(np.array([0, *ids]))[-1].astype(float) / 2
    shares = np.exp(logits - logits.max())
    shares /= shares.sum()
    order = np.argsort(-shares)
    allowed = order[: int(np.searchsorted(shares[order].cumsum(), 0.7)) + 1]
    expected = {f"w{i}" if i > 1 else "": shares[i] / shares[allowed].sum() for i in allowed}
    assert {text.text for text in texts} <= set(expected)
    assert 1 < len(expected) < VOCABULARY
    for word, share in expected.items():
        seen = np.mean([text.text == word for text in texts])
        assert seen == pytest.approx(share, abs=5 * np.sqrt(share * (1 - share) / draws) + 1e-3)


def test_a_chat_template_is_used():
    model = small_model("llama")
    model.tokenizer.chat_template = TEMPLATE
    writer = LocalWriter(model)
    request = Request((Message("system", "w5"), Message("user", "w6")))
    assert writer.render(request) == "w2 w5 w3 w2 w6 w3 w4"
    assert writer.about["chat_template"] is True
    [text] = written(writer, [request], GREEDY)
    plain = LocalWriter(small_model("llama"))
    assert plain.fingerprint != writer.fingerprint
    # without a template the token that begins a text comes first
    [other] = written(plain, [Request((Message("user", writer.render(request)),))], GREEDY)
    assert (text.text == other.text) is False


def test_prompts_that_do_not_fit_fail_alone():
    writer = LocalWriter(small_model("gpt2"))  # 64 positions
    requests = [Request((Message("user", "w5 " * n),)) for n in (70, 60)]
    long, short = written(writer, requests, WriteSettings(temperature=0, max_new_tokens=50))
    assert long.finish == "error"
    assert long.error == "expected a prompt of 1 to 63 tokens, got 71"
    assert short.finish in ("length", "stop")
    assert short.tokens <= 3


def test_likelihoods_of_labels_are_those_of_plain_calls(writer):
    requests = requests_of(3, samples=1)
    labels = [["w5", "w6 w7"], ["w9"], ["w2", "w3", "w4"]]
    for request, own, values in zip(
        requests, labels, writer.label_likelihoods(requests, labels), strict=True
    ):
        prompt = [0, *writer.model.encode([writer.render(request)])[0].ids]
        for label, value in zip(own, values, strict=True):
            row = [*prompt, *writer.model.encode([label])[0].ids]
            with torch.no_grad():
                logits = writer.model.network(input_ids=torch.tensor([row])).logits[0]
            shares = logits.double().log_softmax(-1)
            expected = sum(shares[t - 1, row[t]].item() for t in range(len(prompt), len(row)))
            assert value == pytest.approx(expected, abs=1e-4)


@pytest.mark.parametrize("wrong", [{"temperature": -1}, {"top_p": 0}, {"max_new_tokens": 0}])
def test_settings_are_checked(wrong):
    with pytest.raises(InputError, match="expected"):
        WriteSettings(**wrong)
