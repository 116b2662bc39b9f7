"""Affine maps within a model: the same by our own passes and by hooks, saved and loaded."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import torch
from small_causal import small_model, small_network, small_tokenizer
from small_models import made

from evenhand.errors import FileError, InputError
from evenhand.models import causal, masked
from evenhand.models.causal_scoring import sentence_log_likelihoods
from evenhand.models.encoding import encode_texts
from evenhand.models.finetuning.training import FinetuneFolder
from evenhand.models.layers import FILE, LayerMaps, hooked, read_maps
from evenhand.models.masked import MaskedModel
from evenhand.models.metrics.perplexity import pseudo_log_likelihoods
from evenhand.statistics.erasure import AffineMap

MASKED = ("bert", "distilbert", "roberta", "electra")
CAUSAL = ("gpt2", "llama", "llama, grouped", "opt")
TEXTS = ["The nurse said that he was late.", "She reads.", "A teacher lost her keys and his book."]
NAN = float("nan")
ROWS = ["w3 w5 w9", "w3 w5 w7 w8 w11 w4", "w100 w20"]


def random_maps(layers=(1, 3), dim=32, seed=0, **about):
    rng = np.random.default_rng(seed)
    return LayerMaps(
        {
            layer: AffineMap(
                rng.standard_normal((dim, 2)) / 4,
                rng.standard_normal((2, dim)) / 4,
                rng.standard_normal(dim) / 4,
            )
            for layer in layers
        },
        {"method": "leace", **about},
    )


def by_hand(network, maps, **inputs):
    """A plain call of transformers whose layers are changed by hand."""

    def change(affine):
        def hook(module, given, output):
            states = output[0] if isinstance(output, tuple) else output
            matrix = torch.tensor(affine.matrix, dtype=torch.float32)
            states = states @ matrix.T + torch.tensor(affine.shift, dtype=torch.float32)
            return (states, *output[1:]) if isinstance(output, tuple) else states

        return hook

    network = copy.deepcopy(network)
    [layers] = [
        module
        for module in network.base_model.modules()
        if isinstance(module, torch.nn.ModuleList) and len(module) == 3
    ]
    for layer, affine in maps.maps.items():
        layers[layer - 1].register_forward_hook(change(affine))
    with torch.no_grad():
        return network(**inputs).logits


@pytest.fixture(scope="module", params=MASKED)
def masked_folder(request, tmp_path_factory):
    folder = tmp_path_factory.mktemp("models") / request.param
    tokenizer, network = made(request.param)
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def test_masked_predictions_are_those_of_changed_layers(masked_folder):
    model = masked.load(masked_folder)
    maps = random_maps()
    changed = model.with_maps(maps)
    ids = model.tokenizer(TEXTS[2])["input_ids"]
    expected = by_hand(model.network, maps, input_ids=torch.tensor([ids]))[0].numpy()
    positions = list(range(len(ids)))
    np.testing.assert_allclose(changed.logits([ids] * len(ids), positions), expected, atol=2e-4)
    before = model.logits([ids] * len(ids), positions)
    assert np.abs(before - expected).max() > 0.01
    changed.network  # noqa: B018  # from now on the network of transformers is run, with hooks
    np.testing.assert_allclose(changed.logits([ids] * len(ids), positions), expected, atol=2e-4)
    np.testing.assert_array_equal(model.logits([ids] * len(ids), positions), before)


def test_scores_and_embeddings_of_a_masked_model_go_through_the_maps(masked_folder):
    model = masked.load(masked_folder)
    changed = model.with_maps(random_maps())
    own = pseudo_log_likelihoods(changed, TEXTS)[0]
    plain = MaskedModel("hooks", copy.deepcopy(changed.network), changed.tokenizer)
    assert plain.stages() is None  # the hooks are seen, and the network is run unchanged
    np.testing.assert_allclose(pseudo_log_likelihoods(plain, TEXTS)[0], own, atol=1e-3)
    assert np.abs(pseudo_log_likelihoods(model, TEXTS)[0] - own).max() > 0.01
    embedded = encode_texts(changed, TEXTS)
    np.testing.assert_allclose(embedded, encode_texts(plain, TEXTS), atol=1e-4)
    np.testing.assert_allclose(changed.embed(TEXTS), embedded, atol=1e-4)
    assert np.abs(embedded - encode_texts(model, TEXTS)).max() > 0.01


def test_eight_bit_layers_go_through_the_maps(masked_folder):
    model = masked.load(masked_folder, int8=True)
    maps = random_maps()
    exact = pseudo_log_likelihoods(masked.load(masked_folder).with_maps(maps), TEXTS)[0]
    near = pseudo_log_likelihoods(model.with_maps(maps), TEXTS)[0]
    without = pseudo_log_likelihoods(model, TEXTS)[0]
    assert np.abs(near - exact).max() < np.abs(near - without).max()


@pytest.mark.parametrize("family", CAUSAL)
def test_causal_predictions_are_those_of_changed_layers(family):
    model = small_model(family)
    maps = random_maps(dim=48)
    changed = model.with_maps(maps)
    assert changed.decoder is not None
    values, _ = sentence_log_likelihoods(changed, ROWS)
    for text, value in zip(ROWS, values, strict=True):
        row = [model.begin, *model.encode([text])[0].ids]
        logits = by_hand(model.network, maps, input_ids=torch.tensor([row]))[0]
        np.testing.assert_allclose(changed.logits(np.array(row)), logits, atol=1e-3)
        log_probs = logits.double().log_softmax(-1)
        expected = sum(log_probs[t - 1, row[t]].item() for t in range(1, len(row)))
        assert value == pytest.approx(expected, abs=1e-3)
    assert np.abs(sentence_log_likelihoods(model, ROWS)[0] - values).max() > 0.01


def test_a_causal_family_without_a_decoder_is_changed_by_hooks(monkeypatch):
    model = small_model("llama")
    changed = model.with_maps(random_maps(dim=48))
    expected, _ = sentence_log_likelihoods(changed, ROWS)
    monkeypatch.setitem(changed.__dict__, "decoder", None)
    np.testing.assert_allclose(sentence_log_likelihoods(changed, ROWS)[0], expected, atol=1e-4)


def test_maps_are_loaded_with_a_masked_model(masked_folder, tmp_path):
    model = masked.load(masked_folder)
    folder = tmp_path / "changed"
    model.network.save_pretrained(folder)
    model.tokenizer.save_pretrained(folder)
    maps = random_maps(strength=0.5)
    maps.save(folder)
    loaded = masked.load(folder)
    assert str(loaded.maps) == "leace at layers 1, 3, strength 0.5"
    expected = pseudo_log_likelihoods(model.with_maps(maps), TEXTS)[0]
    np.testing.assert_allclose(pseudo_log_likelihoods(loaded, TEXTS)[0], expected, atol=1e-4)
    assert len({model.fingerprint, loaded.fingerprint}) == 2
    other = model.with_maps(maps.scaled(2))
    assert other.fingerprint != model.with_maps(maps).fingerprint
    with pytest.raises(InputError, match="expected a model without layer maps, got leace at"):
        loaded.with_maps(maps)


@pytest.mark.parametrize("family", ["gpt2", "llama"])
def test_maps_are_loaded_with_a_causal_model(family, tmp_path):
    small_network(family).save_pretrained(tmp_path)
    small_tokenizer().save_pretrained(tmp_path)
    model = causal.load(tmp_path)
    maps = random_maps(dim=48)
    maps.save(tmp_path)
    loaded = causal.load(tmp_path)
    expected = sentence_log_likelihoods(model.with_maps(maps), ROWS)[0]
    np.testing.assert_allclose(sentence_log_likelihoods(loaded, ROWS)[0], expected, atol=1e-4)
    row = np.array([0, 5, 9])
    np.testing.assert_allclose(loaded.logits(row), model.with_maps(maps).logits(row), atol=1e-4)
    assert loaded.fingerprint != model.fingerprint


def test_saved_maps_are_the_same(tmp_path):
    maps = random_maps(pairs=7)
    maps.save(tmp_path)
    again = read_maps(tmp_path)
    assert again is not None
    assert again.about == maps.about
    assert again.fingerprint == maps.fingerprint
    assert read_maps(tmp_path / "elsewhere") is None
    for layer in maps.layers:
        for part in ("left", "right", "shift"):
            np.testing.assert_array_equal(
                getattr(again.maps[layer], part), getattr(maps.maps[layer], part)
            )


def test_damaged_maps_are_refused(tmp_path, masked_folder):
    path = tmp_path / FILE
    path.write_bytes(b"nothing")
    with pytest.raises(FileError, match="not the maps of a model's layers"):
        read_maps(tmp_path)
    from safetensors.numpy import save_file

    for arrays, message in (
        ({"1.left": np.zeros((4, 1))}, "expected left, right and shift"),
        (
            {
                "1.left": np.zeros((4, 1)),
                "1.right": np.zeros((1, 4)),
                "1.shift": np.full(4, np.nan),
            },
            "expected finite numbers",
        ),
        (
            {"1.left": np.zeros((4, 1)), "1.right": np.zeros((2, 4)), "1.shift": np.zeros(4)},
            "expected the shapes",
        ),
        (
            {"0.left": np.zeros((4, 1)), "0.right": np.zeros((1, 4)), "0.shift": np.zeros(4)},
            "expected layers from 1, got 0",
        ),
    ):
        save_file(arrays, path)
        with pytest.raises(FileError, match=message):
            read_maps(tmp_path)
    model = masked.load(masked_folder)
    with pytest.raises(FileError, match="expected layers 1 to 3, got 4"):
        model.with_maps(random_maps(layers=[4]))
    with pytest.raises(FileError, match="expected 32 dimensions as in the model, got 8"):
        model.with_maps(random_maps(dim=8))


def test_layers_that_share_their_weights_are_refused(tmp_path):
    tokenizer, network = made("albert")
    network.save_pretrained(tmp_path)
    tokenizer.save_pretrained(tmp_path)
    with pytest.raises(InputError, match="got albert, whose layers share theirs"):
        masked.load(tmp_path).with_maps(random_maps())


def test_hooks_are_gone_after_their_context():
    network = small_network("llama")
    ids = torch.tensor([[3, 4, 5]])
    with torch.no_grad():
        before = network(input_ids=ids).logits
        with hooked(network, random_maps(dim=48).functions):
            during = network(input_ids=ids).logits
        after = network(input_ids=ids).logits
    assert (before - during).abs().max() > 0.01
    assert torch.equal(before, after)


def test_a_fine_tuned_model_is_saved_with_its_maps(masked_folder, tmp_path):
    maps = random_maps()
    changed = masked.load(masked_folder).with_maps(maps)
    FinetuneFolder(tmp_path).save_model(changed, "model")
    saved = read_maps(tmp_path / "model")
    assert saved is not None
    assert saved.fingerprint == maps.fingerprint
