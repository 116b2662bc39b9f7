"""SEAT: an independent computation, worlds of known association, and bad input."""

from __future__ import annotations

import json
import math
import subprocess
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import torch
from small_causal import FAMILIES, small_model
from transformers import BertConfig, BertModel, GPTNeoXConfig, GPTNeoXForCausalLM

import evenhand as eh
from evenhand.cli import run
from evenhand.errors import InputError
from evenhand.lexicon import Query, sentence_templates, weat, weat_queries
from evenhand.models.causal import CausalModel
from evenhand.models.metrics.seat import Seat, combine_templates
from evenhand.simulate.causal import bigram_model
from evenhand.simulate.encoders import SimulatedEncoder
from evenhand.simulate.masked import bigram_model as masked_bigrams
from small_encoder import save_small
from small_sentence_encoder import save_encoder

SHARED = Path(__file__).parents[3] / "shared"


def plain_effect(encoder, template, query):
    """WEAT's effect size with a dictionary of vectors and loops over words."""

    @cache
    def vector(word):
        text = template.replace("{word}", word)
        return encoder.encode([text[0].upper() + text[1:]])[0].astype(float)

    def cosine(u, v):
        return sum(u * v) / math.sqrt(sum(u * u) * sum(v * v))

    def score(word, first, second):
        own = vector(word)
        sides = [[cosine(own, vector(other)) for other in words] for words in (first, second)]
        return np.mean(sides[0]) - np.mean(sides[1])

    X, Y = ([score(word, *query.attributes.values()) for word in q] for q in query.targets.values())
    return (np.mean(X) - np.mean(Y)) / np.std([*X, *Y], ddof=1)


def test_effects_by_template_are_those_of_a_plain_computation():
    encoder, query = Seat.example()
    m = eh.models.Seat()(encoder, query)
    expected = [plain_effect(encoder, template, query) for template in sentence_templates()]
    np.testing.assert_allclose([part.value for part in m.parts], expected, atol=1e-6)
    assert m.value == pytest.approx(np.mean(expected))
    spread = np.var(expected, ddof=1)
    assert m.details["tau2"] <= spread + 1e-12
    rest = Query(
        name="without algebra",
        targets={"math": ("geometry", "sum"), "arts": query.targets["arts"]},
        attributes=query.attributes,
    )
    shorter = [plain_effect(encoder, template, rest) for template in sentence_templates()]
    assert m.items["word"][0] == "algebra"
    assert m.items["without"][0] == pytest.approx(np.mean(shorter), abs=1e-6)
    assert m.items["without"][m.n] == pytest.approx(np.mean(expected[1:]))


def test_the_association_is_recovered_and_none_reads_none():
    def measure(bias):
        worlds = [SimulatedEncoder(weat(7), bias=bias, seed=seed) for seed in range(12)]
        return [eh.models.Seat()(world, weat(7)) for world in worlds]

    values = {bias: measure(bias) for bias in (-0.4, 0.0, 0.4, 1.0)}
    means = {bias: np.mean([m.value for m in measured]) for bias, measured in values.items()}
    assert means[-0.4] < -0.6 < -0.3 < means[0.0] < 0.3 < 0.6 < means[0.4] < means[1.0]
    assert sum(m.p_value < 0.05 for m in values[0.0]) <= 2
    assert all(m.p_value < 0.01 and m.low > 0 for m in values[1.0])
    inside = [m.details["null_low"] <= m.value <= m.details["null_high"] for m in values[0.0]]
    assert sum(inside) >= 10


def test_the_spread_between_templates_is_found():
    def tau(spread):
        worlds = (SimulatedEncoder(weat(1), bias=0.4, spread=spread, seed=s) for s in range(6))
        return np.mean([eh.models.Seat()(world, weat(1)).details["tau"] for world in worlds])

    assert tau(0.0) < 0.1 < 0.25 < tau(0.4)


@pytest.mark.slow
@pytest.mark.parametrize(("lean", "tau"), [(0.0, 0.0), (0.0, 0.3), (0.4, 0.3), (1.2, 0.3)])
def test_intervals_cover(lean, tau):
    """In worlds of words, templates and noise, of which the interval assumes no distribution."""
    rng = np.random.default_rng(7)
    labels = np.repeat([0, 1], [8, 8])
    leans = lean + tau * rng.standard_normal(200_000)
    truth = np.mean(2 * leans / np.sqrt(leans**2 + 2))
    covered = 0
    for _ in range(400):
        own = lean + tau * rng.standard_normal(12)
        scores = own[:, None] * (1 - 2 * labels) + rng.standard_normal(16)
        scores = scores + rng.standard_normal((12, 16))
        combined = combine_templates(scores, labels)
        covered += combined.low <= truth <= combined.high
    assert 0.92 <= covered / 400 <= 0.99


def test_random_encoders_show_what_pieces_do(tmp_path):
    """The pieces of names give networks with random weights an effect, which the control finds."""
    folder = save_encoder(tmp_path / "small", limit=64)
    torch.manual_seed(1)
    network = BertModel(BertConfig.from_pretrained(folder, hidden_size=64, num_hidden_layers=3))
    network.save_pretrained(folder)
    encoder = eh.models.load(folder)
    endings = ("wp", "zb", "qd", "fg", "hh", "jx", "vw", "xz")
    names = {
        "short": ("Ann", "Tom", "Mary", "John", "Paul", "Kate", "Bill", "Jane"),
        "long": tuple(f"Xqzjvk{ending}" for ending in endings),
    }
    attributes = {"one": ("love", "joy", "peace"), "many": ("zxqvkjw", "qqxzvj", "wvkzxqj")}
    query = Query(name="pieces", targets=names, attributes=attributes)
    m = eh.models.Seat()(encoder, query)
    assert m.value > 1.5
    assert m.p_value < 0.01
    assert m.details["random_model"] > 1.5
    assert m.details["random_significant"] == 20
    assert m.notes[0].startswith("pieces: 20 of 20 random encoders")
    assert Seat.evidence(m) == []
    arts = eh.models.Seat()(encoder, weat(7))
    assert abs(arts.details["random_model"]) < 0.5
    assert arts.details["random_significant"] <= 4
    assert len(Seat.evidence(arts)) == 1


def test_a_masked_model_is_read_by_the_mean_of_its_states(tmp_path):
    model = eh.models.load(save_small(tmp_path / "small"))
    texts = ["This is love.", "Joy comes to mind.", "Think of war."]
    np.testing.assert_allclose(eh.models.encode(model, texts), model.embed(texts), atol=1e-5)
    measured = eh.measure(model, None, ["seat"])
    assert [m.query for m in measured] == [query.name for query in weat_queries()]
    assert all(m.low <= m.value <= m.high for m in measured)


def plain_mean(network, rows):
    means = []
    for row in rows:
        with torch.no_grad():
            out = network(input_ids=torch.tensor([row]), output_hidden_states=True)
        means.append(out.hidden_states[-1][0, 1:].mean(dim=0))
    return torch.stack(means)


@pytest.mark.parametrize("family", [*FAMILIES, "another"])
def test_a_causal_model_is_read_by_the_mean_of_its_states(tmp_path, family):
    if family == "another":
        model = small_model("llama")
        torch.manual_seed(0)
        network = GPTNeoXForCausalLM(
            GPTNeoXConfig(
                vocab_size=211,
                hidden_size=32,
                num_hidden_layers=2,
                num_attention_heads=2,
                intermediate_size=48,
            )
        )
        model = CausalModel("another", network.eval(), model.tokenizer)
        assert model.decoder is None
    else:
        model = small_model(family)
    texts = ["w3 w4 w5", "w3 w4 w9 w10 w11", "w20", "w3 w4 w5", "w20 w21 w4 w8 w9 w50 w61"]
    rows = [[model.begin, *coded.ids] for coded in model.encode(texts)]
    expected = plain_mean(model.network, rows)
    np.testing.assert_allclose(eh.models.encode(model, texts), expected, atol=1e-5)
    cache = eh.cache.Cache(tmp_path / "cache")
    for _ in range(2):
        np.testing.assert_allclose(eh.models.encode(model, texts, cache=cache), expected, atol=1e-5)
    assert len(cache) == 4


def test_a_change_is_paired_over_words_and_templates():
    query = weat(6)
    before, after = (
        eh.models.Seat()(SimulatedEncoder(query, bias=bias), query) for bias in (0.8, 0.3)
    )
    change = eh.compare(before, after)
    assert change.paired == 16 + 12
    assert change.change.value == pytest.approx(after.value - before.value)
    assert change.change.high < 0
    assert change.change.high - change.change.low < after.high - after.low


def test_bad_input_is_one_line(tmp_path, capsys):
    encoder, query = Seat.example()
    few = Query(
        name="few", targets={"x": ("a", "b"), "y": ("c", "d", "e")}, attributes=query.attributes
    )
    with pytest.raises(InputError, match="target set 'x': expected three words or more, got 2"):
        eh.models.Seat()(encoder, few)
    one = Query(name="one", targets=query.targets, attributes={"a": ("x",)})
    with pytest.raises(InputError, match="expected two attribute sets, got 1"):
        eh.models.Seat()(encoder, one)
    flat = SimulatedEncoder(query, identity=0.0, noise=0.0)
    object.__setattr__(flat, "encode", lambda texts, **_: np.ones((len(texts), 4), np.float32))
    with pytest.raises(InputError, match="expected vectors that differ between words"):
        eh.models.Seat()(flat, query)
    for model in (
        bigram_model({"a": {"b": 0.5}}),
        masked_bigrams({"a": {"b": 1}}),
    ):
        with pytest.raises(InputError, match="expected a network with inner states, got none"):
            eh.models.Seat()(model, query)
    (tmp_path / "query.json").write_text('{"name": "a", "targets": {}}')
    arguments = ["--metric", "seat", "--data", str(tmp_path / "query.json")]
    assert run(["measure", "mini", *arguments]) == 2
    assert capsys.readouterr().err.count("\n") == 1


def test_a_query_of_your_own_from_the_shell(tmp_path, capsys):
    _, query = Seat.example()
    content = {"name": "own", "targets": query.targets, "attributes": query.attributes}
    (tmp_path / "query.json").write_text(json.dumps(content))
    arguments = ["--metric", "seat", "--data", str(tmp_path / "query.json"), "--json"]
    assert run(["measure", "mini", *arguments]) == 0
    [m] = json.loads(capsys.readouterr().out)["measurements"]
    assert (m["metric"], m["query"], m["n"], len(m["parts"])) == ("seat", "own", 6, 12)


@pytest.mark.slow
def test_a_real_encoder_separates_flowers_from_insects():
    script = SHARED / "models" / "get"
    if not script.is_file():
        pytest.skip("needs ../shared/models/get")
    done = subprocess.run([script, "minilm"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the model cannot be fetched here")
    encoder = eh.models.load(done.stdout.strip(), device="cpu")
    m = eh.models.Seat()(encoder, weat(1))
    assert m.low > 0.5
    template = sentence_templates()[3]
    assert m.part(template).value == pytest.approx(
        plain_effect(encoder, template, weat(1)), abs=1e-4
    )
