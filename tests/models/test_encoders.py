"""Sentence encoders: vectors as transformers and the folder's modules give them."""

from __future__ import annotations

import json
import subprocess
from pathlib import Path

import numpy as np
import pytest
import torch
from safetensors.torch import save_file
from transformers import AutoModel, AutoTokenizer, MPNetConfig, MPNetModel, RobertaConfig

import evenhand as eh
from evenhand.cli import run
from evenhand.errors import FileError, InputError
from evenhand.models.encoder import MODES, load
from evenhand.models.sources import fetch
from small_encoder import small_config
from small_sentence_encoder import save_encoder, write

SHARED = Path(__file__).parents[3] / "shared"
TEXTS = ["She sings.", "A doctor walked into the old house.", "", "Nurses.", "word " * 90]


def plain_states(folder: Path, texts: list[str], limit: int = 40) -> list[torch.Tensor]:
    """The last states of each text by itself, by transformers."""
    tokenizer, network = AutoTokenizer.from_pretrained(folder), AutoModel.from_pretrained(folder)
    states = []
    for text in texts:
        coded = tokenizer(text, truncation=True, max_length=limit, return_tensors="pt")
        with torch.no_grad():
            states.append(network(**coded).last_hidden_state[0])
    return states


def by_hand(states: torch.Tensor, mode: str) -> torch.Tensor:
    weights = torch.arange(1, len(states) + 1)[:, None]
    return {
        "cls_token": lambda: states[0],
        "max_tokens": lambda: states.max(dim=0).values,
        "mean_tokens": lambda: states.mean(dim=0),
        "mean_sqrt_len_tokens": lambda: states.sum(dim=0) / len(states) ** 0.5,
        "weightedmean_tokens": lambda: (states * weights).sum(dim=0) / weights.sum(),
        "lasttoken": lambda: states[-1],
    }[mode]()


@pytest.mark.parametrize("modes", [*((mode,) for mode in MODES), ("cls_token", "mean_tokens")])
def test_vectors_are_those_of_transformers_pooled_by_hand(tmp_path, modes):
    folder = save_encoder(tmp_path / "small", modes)
    assert eh.models.kind_of(folder) == "encoder"
    encoder = eh.models.load(folder, device="cpu")
    assert encoder.subject_kind == "encoder"
    assert encoder.longest == 40
    vectors = encoder.encode(TEXTS)
    expected = [
        torch.cat([by_hand(states, mode) for mode in modes])
        for states in plain_states(folder, TEXTS)
    ]
    assert vectors.shape == (len(TEXTS), encoder.dim)
    np.testing.assert_allclose(vectors, torch.stack(expected), atol=1e-5)


def test_a_linear_map_and_unit_length(tmp_path):
    folder = save_encoder(tmp_path / "small", modules=("Dense", "Normalize"))
    torch.manual_seed(1)
    weight, bias = torch.randn(6, 16), torch.randn(6)
    save_file({"linear.weight": weight, "linear.bias": bias}, folder / "2_Dense/model.safetensors")
    write(
        folder / "2_Dense/config.json",
        {"activation_function": "torch.nn.modules.activation.Tanh"},
    )
    encoder = load(folder)
    assert (encoder.dim, encoder.normalize) == (6, True)
    pooled = torch.stack([states.mean(dim=0) for states in plain_states(folder, TEXTS)])
    mapped = torch.tanh(pooled @ weight.T + bias)
    expected = mapped / mapped.norm(dim=1, keepdim=True)
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-5)


def test_a_network_without_a_head_is_averaged_over_all_tokens(tmp_path):
    folder = save_encoder(tmp_path / "small")
    (folder / "modules.json").unlink()
    assert eh.models.kind_of(folder) == "encoder"
    encoder = eh.models.load(folder)
    expected = [states.mean(dim=0) for states in plain_states(folder, TEXTS, limit=64)]
    np.testing.assert_allclose(encoder.encode(TEXTS), torch.stack(expected), atol=1e-5)


def test_a_network_with_relative_positions_is_run_unchanged(tmp_path):
    """MPNet is no family whose layers are read here: transformers runs it."""
    folder = save_encoder(tmp_path / "small")
    torch.manual_seed(5)
    sizes = {name: getattr(small_config(), name) for name in ("vocab_size", "hidden_size")}
    config = MPNetConfig(**sizes, num_hidden_layers=2, num_attention_heads=2, intermediate_size=32)
    MPNetModel(config).save_pretrained(folder)
    encoder = eh.models.load(folder, device="cpu")
    assert type(encoder.base).__name__ == "MPNetModel"
    expected = [states.mean(dim=0) for states in plain_states(folder, TEXTS)]
    np.testing.assert_allclose(encoder.encode(TEXTS), torch.stack(expected), atol=1e-5)


def test_a_network_in_a_folder_of_its_own_with_lower_case_and_a_prompt(tmp_path):
    folder = save_encoder(tmp_path / "small", inner="0_Transformer", do_lower_case=True)
    about = {"prompts": {"own": "query: "}, "default_prompt_name": "own"}
    write(folder / "config_sentence_transformers.json", about)
    states = plain_states(folder / "0_Transformer", ["query: she sings."])
    vectors = load(folder).encode(["She SINGS."])
    np.testing.assert_allclose(vectors[0], states[0].mean(dim=0), atol=1e-5)


def test_a_cache_answers_the_second_time(tmp_path, monkeypatch):
    encoder = load(save_encoder(tmp_path / "small"))
    expected = encoder.encode(TEXTS, cache=tmp_path / "cache")
    np.testing.assert_allclose(encoder.encode(TEXTS), expected, atol=1e-6)

    def refuse(*_):
        raise AssertionError("it was encoded again")

    monkeypatch.setattr("evenhand.models.encoding.forward_packed", refuse)
    np.testing.assert_array_equal(encoder.encode(TEXTS, cache=tmp_path / "cache"), expected)


def test_the_fingerprint_depends_on_weights_and_modules(tmp_path):
    prints = {
        load(save_encoder(tmp_path / "mean")).fingerprint,
        load(save_encoder(tmp_path / "max", ("max_tokens",))).fingerprint,
        load(save_encoder(tmp_path / "unit", modules=("Normalize",))).fingerprint,
        load(save_encoder(tmp_path / "short", limit=20)).fingerprint,
    }
    assert len(prints) == 4
    assert load(save_encoder(tmp_path / "again")).fingerprint in prints


@pytest.mark.parametrize(
    ("file", "content", "message"),
    [
        ("modules.json", {}, "expected a list of modules, got dict"),
        ("modules.json", [{"type": "a.Transformer"}], "a Transformer and its Pooling first"),
        ("modules.json", [{"type": 1}], "expected modules with a type and a path"),
        ("modules.json", [{"type": "a.Transformer", "path": "../x"}], "within the model"),
        ("1_Pooling/config.json", {"pooling_mode_mean_tokens": False}, "to be true, got none"),
        ("1_Pooling/config.json", [], "expected a JSON object, got list"),
        ("config_sentence_transformers.json", {"prompts": {}, "default_prompt_name": "q"}, "'q'"),
    ],
)
def test_bad_modules_are_one_line(tmp_path, file, content, message):
    folder = save_encoder(tmp_path / "small")
    write(folder / file, content)
    with pytest.raises(FileError, match=message) as caught:
        eh.models.load(folder)
    assert "\n" not in str(caught.value)


@pytest.mark.parametrize(
    ("modules", "message"),
    [
        (("WordWeights",), "types Dense and Normalize after Pooling, got WordWeights"),
        (("Normalize", "Dense"), "expected Normalize as the last module"),
        (("Dense",), "expected the weights of a linear map"),
    ],
)
def test_modules_that_are_not_known_are_refused(tmp_path, modules, message):
    with pytest.raises(FileError, match=message):
        load(save_encoder(tmp_path / "small", modules=modules))


def test_other_networks_are_refused(tmp_path):
    folder = save_encoder(tmp_path / "small")
    write(folder / "config.json", {"model_type": "t5", "architectures": ["T5EncoderModel"]})
    with pytest.raises(FileError, match="family with a masked head"):
        load(folder)
    config = RobertaConfig(architectures=["RobertaForSequenceClassification"])
    (tmp_path / "classifier").mkdir()
    config.to_json_file(tmp_path / "classifier/config.json", use_diff=False)
    assert eh.models.kind_of(tmp_path / "classifier") == "masked"


@pytest.mark.parametrize(
    ("family", "network"),
    [("t5", "T5ForConditionalGeneration"), ("bart", "BartModel"), ("t5", "T5WithLMHeadModel")],
)
def test_encoder_decoder_models_are_refused_by_name(tmp_path, capsys, family, network):
    about = {"model_type": family, "architectures": [network], "is_encoder_decoder": True}
    write(tmp_path / "config.json", about)
    for command in (["measure", "pronouns"], ["info"]):
        assert run([*command, str(tmp_path)]) == 2
        said = capsys.readouterr().err
        assert "config.json: expected a masked or a causal language model" in said
        assert f"got an encoder-decoder model ({network}), which no measure takes\n" in said
        assert said.count("\n") == 1


def test_info_and_measures_of_other_kinds(tmp_path, capsys):
    folder = save_encoder(tmp_path / "small", modules=("Normalize",))
    assert run(["info", str(folder), "--json"]) == 0
    about = json.loads(capsys.readouterr().out)
    shown = {key: about["model"][key] for key in ("name", "kind", "dimension", "pooling", "length")}
    assert shown == {
        "name": "small",
        "kind": "sentence encoder",
        "dimension": 16,
        "pooling": "mean",
        "length": "1",
    }
    assert run(["measure", str(folder), "--metric", "gest"]) == 2
    assert "'gest' does not measure a sentence encoder; these do:" in capsys.readouterr().err
    encoder = load(folder)
    with pytest.raises(InputError, match="'gest' does not measure a sentence encoder"):
        eh.measure(encoder, metrics="gest")
    sentences = [eh.models.GestSentence("I cried", kind) for kind in (1, 2, 8, 9)]
    with pytest.raises(InputError, match="'gest' does not measure a sentence encoder"):
        eh.models.Gest()(encoder, sentences)


def test_modules_are_downloaded_and_nothing_else(tmp_path, monkeypatch):
    from fnmatch import fnmatch

    folder = save_encoder(tmp_path / "small", modules=("Dense",))
    requests = []

    def download(name, *, allow_patterns, ignore_patterns, local_files_only):
        requests.append((allow_patterns, ignore_patterns))
        return str(folder)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr("evenhand.models.sources.reachable", lambda: True)
    assert fetch("someone/encoder") == folder

    def taken(file):
        return any(
            any(fnmatch(file, pattern) for pattern in allowed)
            and not any(fnmatch(file, pattern) for pattern in ignored)
            for allowed, ignored in requests
        )

    for file in ("1_Pooling/config.json", "2_Dense/model.safetensors", "model.safetensors"):
        assert taken(file)
    for file in ("onnx/model.safetensors", "1_Pooling/code.py", "2_Dense/pytorch_model.bin"):
        assert not taken(file)


@pytest.mark.slow
def test_a_real_encoder():
    script = SHARED / "models" / "get"
    if not script.is_file():
        pytest.skip("needs ../shared/models/get")
    done = subprocess.run([script, "minilm"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the model cannot be fetched here")
    folder = Path(done.stdout.strip())
    encoder = eh.models.load(folder, device="cpu")
    texts = ["A man is eating food.", "A man eats something.", "The stars are far away."]
    states = plain_states(folder, texts, limit=256)
    pooled = torch.stack([each.mean(dim=0) for each in states])
    expected = torch.nn.functional.normalize(pooled, dim=1)
    vectors = encoder.encode(texts)
    np.testing.assert_allclose(vectors, expected, atol=1e-5)
    near, far = vectors[0] @ vectors[1], vectors[0] @ vectors[2]
    assert near > 0.6 > 0.3 > far
