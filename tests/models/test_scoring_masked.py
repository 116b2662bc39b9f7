"""The scoring core against plain calls of the model, one sentence at a time, on five families."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from transformers import (
    BertConfig,
    BertForMaskedLM,
    CamembertConfig,
    CamembertForMaskedLM,
    ModernBertConfig,
    ModernBertForMaskedLM,
    MPNetConfig,
    MPNetForMaskedLM,
)

import evenhand as eh
from evenhand.errors import InputError
from evenhand.models import forward, masked_scoring
from evenhand.models.masked import MaskedModel
from evenhand.models.masked_scoring import (
    MaskedPosition,
    log_probs,
    query_tokens,
    target_log_probs,
    top_k,
)
from evenhand.simulate.masked import bigram_model

SENTENCES = [
    "The nurse said that {} was late.",
    "{} sings.",
    "The doctor lost {} keys on the table, and the engineer is here.",
    "A teacher reads to {}.",
    "The nurse said that {} was late.",
]


def oracle(model: MaskedModel, position: MaskedPosition) -> np.ndarray:
    """Log probabilities of the whole vocabulary by one plain call of the model."""
    with torch.no_grad():
        logits = model.network(input_ids=torch.tensor([position.ids])).logits[0, position.position]
        return torch.log_softmax(logits.double(), dim=-1).numpy()


def masked_positions(model: MaskedModel) -> list[MaskedPosition]:
    mask = model.tokenizer.mask_token_id
    rows = [
        tuple(model.tokenizer(s.format(model.tokenizer.mask_token))["input_ids"]) for s in SENTENCES
    ]
    return [MaskedPosition(row, row.index(mask)) for row in rows]


def test_every_family_agrees_with_plain_calls(family):
    model = eh.models.load(family)
    positions = masked_positions(model)
    expected = np.stack([oracle(model, position) for position in positions])
    everything = list(range(expected.shape[1]))
    assert np.allclose(log_probs(model, positions, everything), expected, atol=1e-5)
    some = [5, 9, 7]
    for tokens in (1, 16, 10_000):
        result = log_probs(model, positions, some, batch_tokens=tokens)
        assert np.allclose(result, expected[:, some], atol=1e-5)


def test_every_family_at_every_position_of_a_row(family):
    model = eh.models.load(family)
    row = masked_positions(model)[2].ids
    positions = [MaskedPosition(row, k) for k in range(len(row))]
    expected = np.array([oracle(model, p)[row[p.position]] for p in positions])
    result = target_log_probs(model, positions, row)
    assert np.allclose(result, expected, atol=1e-5)


def test_top_k_is_best_first_and_agrees(family):
    model = eh.models.load(family)
    positions = masked_positions(model)
    result = top_k(model, positions, 4)
    for k, position in enumerate(positions):
        every = oracle(model, position)
        order = np.argsort(-every, kind="stable")[:4]
        assert np.allclose(result.log_probs[k], every[order], atol=1e-5)
        assert np.all(np.diff(result.log_probs[k]) <= 0)
    assert np.array_equal(result.ids[0], result.ids[4])


def test_ask_is_columns_and_top_k_of_one_pass(family, rows_run):
    model = eh.models.load(family)
    positions = masked_positions(model)
    columns, best = log_probs(model, positions, [5, 9, 5]), top_k(model, positions, 3)
    rows_run.clear()
    result = query_tokens(model, positions, tokens=[5, 9, 5], k=3)
    assert sum(rows_run) == 4
    assert np.array_equal(result.log_probs, columns)
    assert np.array_equal(result.top.ids, best.ids)
    assert np.array_equal(result.top.log_probs, best.log_probs)


@pytest.fixture
def rows_run(monkeypatch):
    """The numbers of rows that were run, pass by pass."""
    seen: list[int] = []

    def counted(self, network, ids, lengths, stages, plain=forward.ForwardPass.__init__):
        seen.append(len(lengths))
        plain(self, network, ids, lengths, stages)

    monkeypatch.setattr(forward.ForwardPass, "__init__", counted)
    return seen


def test_equal_rows_are_computed_once(family, rows_run, monkeypatch):
    model = eh.models.load(family)
    rows_run.clear()  # every load checks that the model runs
    log_probs(model, masked_positions(model) * 3, [5])
    assert sum(rows_run) == 4
    monkeypatch.setattr(masked_scoring, "HEAD_ROWS", 2)
    log_probs(model, masked_positions(model) * 3, [5])
    assert sum(rows_run) == 8  # the head in parts, the rest of the model once


def test_equal_positions_go_through_the_head_once(monkeypatch):
    model = eh.models.load("mini")
    head_rows: list[int] = []

    def counted(network, hidden, plain=masked_scoring.logits_of):
        head_rows.append(len(hidden))
        return plain(network, hidden)

    monkeypatch.setattr(masked_scoring, "logits_of", counted)
    positions = [MaskedPosition((2, 300, 301, 3), k) for k in (1, 2, 1, 1, 2)]
    result = target_log_probs(model, positions, [7, 8, 9, 7, 8])
    assert head_rows == [2]
    assert result[0] == result[3] != result[2]
    assert result[1] == result[4]


def test_weights_changed_in_place_are_the_ones_used(family):
    model = eh.models.load(family)
    positions = masked_positions(model)
    before = log_probs(model, positions, [5, 9])
    optimiser = torch.optim.AdamW(model.network.parameters(), lr=0.01)
    ids = torch.tensor([positions[0].ids])
    model.network(input_ids=ids, labels=ids).loss.backward()
    optimiser.step()
    with torch.no_grad():
        for parameter in model.network.base_model.parameters():
            parameter.data.mul_(1.01)  # does not even count as a new version of the tensor
    after = log_probs(model, positions, [5, 9])
    expected = np.stack([oracle(model, position)[[5, 9]] for position in positions])
    assert np.abs(after - before).max() > 1e-3
    assert np.allclose(after, expected, atol=1e-5)


@pytest.mark.parametrize("change", ["hook", "adapter", "training", "layer", "forward"])
def test_a_model_that_was_changed_is_run_as_it_is(family, change):
    """Whatever is not the plain family is not taken apart: its own forward pass decides."""
    model = eh.models.load(family)
    positions = masked_positions(model)
    plain = log_probs(model, positions, [5, 9])
    base = model.network.base_model
    linear = next(m for m in base.modules() if type(m) is torch.nn.Linear)
    if change == "hook":
        linear.register_forward_hook(lambda *given: given[-1] * 1.5)
    elif change == "training":
        model.network.train()  # no dropout here, so that the numbers are known
        for part in model.network.modules():
            if isinstance(part, torch.nn.Dropout):
                part.p = 0.0
        for name in ("attention_probs_dropout_prob", "attention_dropout"):
            setattr(model.network.config, name, 0.0)
    elif change == "adapter":

        class Adapted(torch.nn.Linear):
            def forward(self, states):
                return super().forward(states) * 1.5

        linear.__class__ = Adapted
    elif change == "forward":
        forward = linear.forward
        linear.forward = lambda states: forward(states) * 1.5
    else:
        layers = [m for m in base.modules() if type(m).__name__.endswith(("Layer", "Block"))]

        def louder(self, *given, **named):
            return layer_class.forward(self, *given, **named) * 1.5

        layer_class = type(layers[-1])
        layers[-1].__class__ = type("Mine", (layer_class,), {"forward": louder})
    expected = np.stack([oracle(model, position)[[5, 9]] for position in positions])
    assert np.allclose(log_probs(model, positions, [5, 9]), expected, atol=1e-5)
    assert change == "training" or np.abs(expected - plain).max() > 1e-3


def test_half_precision_is_the_models_own(family):
    model = eh.models.load(family, dtype="bfloat16", device="cpu")
    exact = eh.models.load(family)
    positions = masked_positions(model)
    every = range(len(oracle(model, positions[0])))
    result, plain = log_probs(model, positions, every), log_probs(exact, positions, every)
    expected = np.stack([oracle(model, position) for position in positions])
    assert np.abs(result - plain).max() < 2 * np.abs(expected - plain).max()
    assert np.allclose(np.logaddexp.reduce(result, axis=1), 0, atol=1e-5)  # a float32 normaliser


def test_a_family_that_is_not_known_is_run_whole():
    torch.manual_seed(1)
    config = MPNetConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=2,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=20,
    )
    network = MPNetForMaskedLM(config).eval()
    model = MaskedModel("mpnet", network, bigram_model({"he": {}}).tokenizer)
    positions = [
        MaskedPosition((0, 7, 9, 3, 2), 2),
        MaskedPosition((0, 7, 2), 1),
        MaskedPosition((0, 7, 9, 3, 2), 3),
    ]
    expected = np.stack([oracle(model, position) for position in positions])
    assert np.allclose(log_probs(model, positions, range(40)), expected, atol=1e-5)


def test_modern_bert_with_a_head_of_its_own():
    torch.manual_seed(2)
    config = ModernBertConfig(
        vocab_size=40,
        hidden_size=16,
        num_hidden_layers=3,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=20,
        pad_token_id=0,
        bos_token_id=2,
        eos_token_id=3,
        cls_token_id=2,
        sep_token_id=3,
        attn_implementation="eager",
    )
    network = ModernBertForMaskedLM(config).eval()
    model = MaskedModel("modern", network, bigram_model({"he": {}}).tokenizer)
    positions = [MaskedPosition((2, 7, 9, 3), 2), MaskedPosition((2, 7, 3), 1)]
    expected = np.stack([oracle(model, position) for position in positions])
    assert np.allclose(log_probs(model, positions, range(40)), expected, atol=1e-5)


def test_models_that_count_positions_from_the_padding_take_fewer_tokens():
    """Camembert and MPNet do as RoBERTa does, under names that do not tell."""
    for config, kind, longest in (
        (CamembertConfig, CamembertForMaskedLM, 18),
        (MPNetConfig, MPNetForMaskedLM, 18),
        (BertConfig, BertForMaskedLM, 20),
    ):
        small = config(
            vocab_size=40,
            hidden_size=16,
            num_hidden_layers=1,
            num_attention_heads=2,
            intermediate_size=32,
            max_position_embeddings=20,
            pad_token_id=1,
        )
        model = MaskedModel("small", kind(small).eval(), bigram_model({"he": {}}).tokenizer)
        assert model.longest == longest
        row = (2, *[7] * (longest - 2), 3)
        assert np.isfinite(log_probs(model, [MaskedPosition(row, 1)], [5])).all()


def test_a_model_whose_probabilities_are_known():
    chain = {"he": {"sings": 0.75, "reads": 0.25}, "she": {"sings": 0.5, "reads": 0.5}}
    model = bigram_model(chain)
    ids = tuple(model.tokenizer("he [MASK]")["input_ids"])
    at = ids.index(model.tokenizer.mask_token_id)
    words = model.tokenizer.convert_tokens_to_ids(["sings", "reads"])
    result = np.exp(log_probs(model, [MaskedPosition(ids, at)], words))[0]
    assert result[0] / result[1] == pytest.approx(3.0, rel=1e-6)


def test_progress_counts_every_position():
    model = eh.models.load("mini")
    calls: list[tuple[int, int]] = []
    positions = [MaskedPosition((2, k, 3), 1) for k in range(300, 340)]
    log_probs(model, positions, [5], batch_tokens=30, progress=lambda *n: calls.append(n))
    assert calls[-1] == (40, 40)
    assert len(calls) == 4


def test_wrong_queries():
    model = eh.models.load("mini")
    with pytest.raises(InputError, match="position: expected 0 to 2, got 3"):
        log_probs(model, [MaskedPosition((2, 300, 3), 3)], [5])
    with pytest.raises(InputError, match="targets: expected one per position, got 2 for 1"):
        target_log_probs(model, [MaskedPosition((2, 300, 3), 1)], [5, 6])
    with pytest.raises(InputError, match="k: expected at least 1, got 0"):
        top_k(model, [MaskedPosition((2, 300, 3), 1)], 0)
    with pytest.raises(InputError, match="k: expected 1 to 12000, got 12001"):
        top_k(model, [MaskedPosition((2, 300, 3), 1)], 12001)
    with pytest.raises(InputError, match="tokens: expected 0 to 11999, got -1"):
        log_probs(model, [MaskedPosition((2, 300, 3), 1)], [5, -1])
    assert log_probs(model, [], [5, 6]).shape == (0, 2)
