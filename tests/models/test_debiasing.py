"""LEACE, projection and steering within language models, measured before and after."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from small_causal import small_model
from small_models import made

from evenhand import models
from evenhand.cli import run as run_cli
from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.instruments import Run, instruments
from evenhand.models.causal import CausalModel
from evenhand.models.debiasing import (
    _row_states,
    _split,
    _token_rows,
    _with_masks,
    built_in_pairs,
    fit_maps,
    gender_pairs,
    hidden_states,
    mitigate_model,
    parse_layers,
    probe_states,
    save_model,
)
from evenhand.models.masked import MaskedModel
from evenhand.models.metrics.pronouns import Pronouns
from evenhand.simulate.causal import bigram_model
from small_encoder import save_small

pytestmark = pytest.mark.slow

PAIRS = [(f"w2 w{i} w{10 + i % 7} w4 w9", f"w5 w{i} w{10 + i % 7} w6 w9") for i in range(20, 70)]


@pytest.fixture(scope="module")
def llama():
    return small_model("llama")


def test_texts_in_two_versions():
    texts = ["She met her brother.", "It rained.", "She met her brother.", "A man sang."]
    assert gender_pairs(texts) == [
        ("He met his brother.", "She met her sister."),
        ("A man sang.", "A woman sang."),
    ]
    built_in = built_in_pairs(30)
    assert len(built_in) == 30
    assert all(male != female for male, female in built_in)
    assert built_in_pairs(30) == built_in != built_in_pairs(30, seed=1)


def test_states_are_those_of_transformers(mini, llama):
    tokenizer, network = made("bert")
    bert = MaskedModel("bert", network.eval(), tokenizer)
    texts = ["The nurse said that he was late.", "She reads."]
    for model, given in ((bert, texts), (llama, ["w3 w5", "w3 w9 w8 w7"])):
        states = hidden_states(model, given, [1, 2])
        for number, text in enumerate(given):
            ids = torch.tensor([_token_rows(model, [text])[0]])
            with torch.no_grad():
                expected = model.network.base_model(
                    input_ids=ids, output_hidden_states=True
                ).hidden_states
            first = 1 if isinstance(model, CausalModel) else 0  # the token that begins a text
            for layer in (1, 2):
                own = states.by_layer[layer][states.texts == number]
                np.testing.assert_allclose(own, expected[layer][0, first:].numpy(), atol=1e-4)
                np.testing.assert_allclose(states.means(layer)[number], own.mean(axis=0), atol=1e-5)


def test_states_without_our_own_pass_are_the_same(llama, monkeypatch):
    texts = [text for pair in PAIRS[:5] for text in pair]
    expected = hidden_states(llama, texts, [1, 3])
    monkeypatch.setitem(llama.__dict__, "decoder", None)
    plain = hidden_states(llama, texts, [1, 3])
    for layer in (1, 3):
        np.testing.assert_allclose(plain.by_layer[layer], expected.by_layer[layer], atol=1e-4)


def left(model, rows, layer):
    """The largest covariance of gender with the states, relative to their spread."""
    states = _row_states(model, rows, [layer])
    x = states.by_layer[layer].astype(float)
    weights = 1 / np.bincount(states.texts)[states.texts]
    weights /= weights.sum()
    z = states.texts % 2
    covariance = ((x - weights @ x) * weights[:, None]).T @ (z - weights @ z)
    return float((np.abs(covariance) / x.std(axis=0)).max())


@pytest.mark.parametrize("kind", ["masked", "causal"])
def test_gender_is_hidden_at_every_layer_that_was_fitted(kind, mini, llama):
    model, pairs = (mini, built_in_pairs(40)) if kind == "masked" else (llama, PAIRS)
    rows = _token_rows(model, [text for pair in pairs for text in pair])
    if kind == "masked":
        rows += _with_masks(model, rows)
    maps = fit_maps(model, pairs, "leace", [1, 3])
    changed = model.with_maps(maps)
    for layer in (1, 3):
        assert left(model, rows, layer) > 1e-3
        assert left(changed, rows, layer) < 1e-5  # states are in single precision
    states = _row_states(model, rows, [1])
    x = states.by_layer[1].astype(float)
    weights = 1 / np.bincount(states.texts)[states.texts]
    weights /= weights.sum()
    erased, z = maps.maps[1](x), states.texts % 2
    covariance = ((erased - weights @ erased) * weights[:, None]).T @ (z - weights @ z)
    assert np.abs(covariance).max() < 1e-8
    assert maps.about["method"] == "leace"
    assert maps.about["fingerprint"] == model.fingerprint


def test_a_masked_model_is_also_fitted_on_masked_tokens(mini):
    rows = _token_rows(mini, ["He reads a book.", "She reads a book.", "He sings."])
    masked_rows = _with_masks(mini, rows)
    mask = mini.tokenizer.mask_token_id
    places = [[i for i, token in enumerate(row) if token == mask] for row in masked_rows]
    assert all(places)
    assert places[0] == places[1]
    for row, other, hidden in zip(rows, masked_rows, places, strict=True):
        assert [t for i, t in enumerate(row) if i not in hidden] == [t for t in other if t != mask]
        assert 0 not in hidden
        assert len(row) - 1 not in hidden


def test_mini_is_measured_before_and_after(mini, tmp_path):
    texts = [text for pair in built_in_pairs(60) for text in pair[:1]]
    [done] = mitigate_model(
        mini, texts, layers="6", metrics=[(Pronouns(), None)], utility=["It rained.", "She sang."]
    )
    linear = done.hiding[0]
    assert linear.query == "layer 6"
    assert linear.before.value > 0.8
    assert linear.after.value < 0.75
    assert linear.before.n == 24
    assert [c.metric for c in done.measures] == ["pronouns"]
    [cost] = done.utility
    assert cost.kind == "ratio"
    assert 0.8 < cost.change.value < 1.25
    view = done.to_dict()
    assert view["maps"]["layers"] == [6]
    assert set(view) == {"maps", "measures", "hiding", "utility", "notes"}
    folder = tmp_path / "mini-leace"
    save_model(done.model, "mini", folder)
    loaded = models.load(folder)
    assert loaded.name == "mini-leace"
    again = Pronouns().measure(loaded, None, Run())
    assert again.value == pytest.approx(done.measures[0].after.value, abs=1e-6)
    with pytest.raises(FileError, match="expected a new or an empty folder"):
        save_model(done.model, "mini", folder)


def test_strength_scales_the_change(llama):
    texts = [text for pair in PAIRS for text in pair]
    perplexity = instruments("causal")["perplexity"]()
    before = perplexity.measure(llama, texts)
    maps = fit_maps(llama, PAIRS, "steer", [2])
    none, half, full = (
        perplexity.measure(llama.with_maps(maps.scaled(s)), texts).value for s in (0, 0.5, 1)
    )
    assert none == pytest.approx(before.value, rel=1e-5)
    assert abs(half - none) < abs(full - none)
    assert maps.maps[2].rank == 0


def test_steering_moves_the_states_from_men_to_women(llama):
    texts = [text for pair in PAIRS for text in pair]
    means = hidden_states(llama, texts, [2]).means(2)
    difference = means[1::2].mean(axis=0) - means[::2].mean(axis=0)
    maps = fit_maps(llama, PAIRS, "steer", [2])
    moved = hidden_states(llama.with_maps(maps), texts, [2]).means(2)
    direction = (moved - means).mean(axis=0)
    cosine = direction @ difference / np.linalg.norm(direction) / np.linalg.norm(difference)
    assert cosine > 0.99


def test_probes_find_what_is_there_and_nothing_else():
    rng = np.random.default_rng(0)
    content = np.repeat(rng.standard_normal((60, 8)), 2, axis=0)
    gender = np.arange(120) % 2
    clear = content.copy()
    clear[:, 0] += 5 * gender
    curved = content[:, :2].copy()
    curved[:, 0] = rng.choice([-1, 1], 120) * (1 + 2 * gender)
    assert probe_states(clear, "x", "linear").value > 0.95
    assert probe_states(curved, "x", "linear").value < 0.7
    assert probe_states(curved, "x", "rbf").value > 0.9
    rounding = np.column_stack([content, 1e-12 * gender])
    for kernel in ("linear", "rbf"):
        result = probe_states(rounding, "x", kernel)
        assert result.low <= 0.5 <= result.high
        assert result.ideal == 0.5


def test_layers_by_name():
    assert parse_layers("all", 4) == [1, 2, 3, 4]
    assert parse_layers(" 3, 1-2", 4) == [1, 2, 3]
    for wrong in ("0", "5", "2-9", "4-3", "one", "", "1-"):
        with pytest.raises(InputError, match="layers: expected"):
            parse_layers(wrong, 4)


def test_bad_input_is_named(llama):
    for call, message in (
        (lambda: fit_maps(llama, PAIRS[:5]), "expected 10 texts or more to fit on, got 5"),
        (lambda: fit_maps(llama, PAIRS, layers=[7]), "expected some of 1 to 3, .* got 7"),
        (lambda: fit_maps(llama, PAIRS, layers=[]), "expected some of 1 to 3, .* got none"),
        (lambda: mitigate_model(llama, ["It rained."]), "expected 20 or more with gendered words"),
        (lambda: mitigate_model(llama, held_out=1), "held_out: expected a share"),
        (lambda: mitigate_model(llama, strengths=()), "strength: expected one number or more"),
        (
            lambda: hidden_states(bigram_model({"he": {"sings": 0.5}}), ["x"], [1]),
            "expected a masked or causal",
        ),
        (lambda: hidden_states(llama, ["w3 " * 70], [1]), "longer than model 'llama' takes"),
        (lambda: hidden_states(llama, [""], [1]), "expected a text of some tokens, got none"),
        (lambda: save_model(llama, "x", "y"), "expected a model with layer maps, got none"),
    ):
        with pytest.raises(InputError, match=message):
            call()
    with pytest.raises(UnknownNameError, match="did you mean 'leace'"):
        fit_maps(llama, PAIRS, "leaec")


def test_the_command_saves_a_model_that_measures(tmp_path, capsys):
    path = tmp_path / "texts.txt"
    path.write_text("".join(f"{male}\n" for male, _ in built_in_pairs(40)))
    folder = tmp_path / "mini-leace"
    useful = tmp_path / "useful.txt"
    useful.write_text("It rained.\nThe book is here.\n")
    arguments = ["debias", "mini", "--layers", "6", "--texts", str(path)]
    arguments += ["--utility", str(useful)]
    assert run_cli([*arguments, "-o", str(folder), "--json"]) == 0
    content = json.loads(capsys.readouterr().out)
    [result] = content["strengths"]
    assert result["maps"]["layers"] == [6]
    assert content["sentence"].endswith(".")
    assert result["hiding"][0]["metric"] == "states_linear"
    assert run_cli(["info", str(folder), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)["model"]
    assert about["layer_maps"] == "leace at layer 6"
    assert run_cli([*arguments, "--method", "steer", "--strength", "-1", "--strength", "1"]) == 0
    assert "strength -1" in capsys.readouterr().out
    for wrong, message in (
        (["--layers", "9"], "layers: expected some of 1 to 6, got '9'"),
        (["--strength", "1", "--strength", "2", "-o", str(tmp_path / "x")], "expected one to save"),
        (["-o", str(folder)], "expected a new folder"),
        (["-o", str(folder), "--overwrite"], "expected a new or an empty folder"),
        (["--data", str(path)], "name the metrics that read it"),
    ):
        assert run_cli([*arguments, *wrong]) == 2
        assert message in capsys.readouterr().err
    path.write_text("It rained.\n")
    assert run_cli(arguments) == 2
    assert "expected 20 or more with gendered words" in capsys.readouterr().err


def save_encoder(folder, *modules):
    """A small random encoder that averages its states, as sentence-transformers saves it."""
    save_small(folder)
    kinds = ["Transformer", "Pooling", *modules]
    paths = ["", *(f"{number}_{kind}" for number, kind in enumerate(kinds[1:], start=1))]
    package = "sentence_transformers.models"
    listed = [
        {"idx": i, "name": str(i), "path": path, "type": f"{package}.{kind}"}
        for i, (kind, path) in enumerate(zip(kinds, paths, strict=True))
    ]
    (folder / "modules.json").write_text(json.dumps(listed))
    (folder / "1_Pooling").mkdir()
    (folder / "1_Pooling/config.json").write_text(json.dumps({"pooling_mode_mean_tokens": True}))
    return folder


@pytest.mark.parametrize("normalize", [False, True])
def test_vectors_of_a_sentence_encoder(tmp_path, normalize):
    folder = save_encoder(tmp_path / "small", *(["Normalize"] if normalize else []))
    encoder = models.load(folder)
    texts = [male for male, _ in built_in_pairs(100)]
    [done] = models.mitigate_encoder(encoder, texts, strengths=[1.0])
    fitted, tested = _split(texts, "leace", [1.0], 0.4, 0)
    assert len(fitted) == 60
    assert done.hiding[0].before.n == len(tested) / 2 == 40
    gaps = []
    for each in (encoder, done.model):
        x = replace(each, normalize=False).encode([text for pair in fitted for text in pair])
        gaps.append(np.abs(x[::2].mean(axis=0) - x[1::2].mean(axis=0)).max())
    assert gaps[0] > 1e-3
    assert gaps[1] < 1e-5
    [cost] = done.utility
    assert cost.before.value == pytest.approx(1)
    assert 0.3 < cost.after.value < 1
    assert str(done.maps) == "leace of the vectors"
    json.dumps(done.to_dict())
    [none] = models.mitigate_encoder(encoder, texts, strengths=[0.0])
    assert none.utility[0].after.value == pytest.approx(1, abs=1e-6)
    saved = tmp_path / "small-leace"
    save_model(done.model, folder, saved)
    loaded = models.load(saved)
    np.testing.assert_allclose(loaded.encode(texts), done.model.encode(texts), atol=1e-5)
    assert loaded.fingerprint != encoder.fingerprint
    listed = json.loads((saved / "modules.json").read_bytes())
    kinds = [module["type"].rpartition(".")[2] for module in listed]
    assert kinds == ["Transformer", "Pooling", "Dense", *(["Normalize"] if normalize else [])]
    assert [module["idx"] for module in listed] == list(range(len(listed)))
    with pytest.raises(InputError, match="expected a sentence encoder, got str"):
        models.mitigate_encoder("x")


def test_the_command_takes_a_sentence_encoder(tmp_path, capsys):
    folder = save_encoder(tmp_path / "small")
    saved = tmp_path / "small-leace"
    arguments = ["debias", str(folder), "-o", str(saved)]
    assert run_cli([*arguments, "--layers", "1"]) == 2
    assert "--layers: the vectors of a sentence encoder" in capsys.readouterr().err
    assert run_cli([*arguments, "--json"]) == 0
    [result] = json.loads(capsys.readouterr().out)["strengths"]
    assert [c["metric"] for c in result["hiding"]] == ["states_linear", "states_rbf"]
    assert run_cli(["info", str(saved)]) == 0
