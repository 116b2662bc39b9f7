"""Loading causal language models."""

from __future__ import annotations

import json
import subprocess
import warnings
from importlib import resources
from pathlib import Path

import numpy as np
import pytest
from small_causal import FAMILIES, small_network, small_tokenizer

from evenhand.errors import FileError, InputError
from evenhand.models.causal import load
from evenhand.models.causal_scoring import log_likelihoods, sentence_log_likelihoods
from evenhand.models.sources import CAUSAL as EMBEDDED

ENGLISH = ["The nurse took her coat and went home.", "home coat The and her nurse went took."]
SHARED = Path(__file__).parents[3] / "shared"


@pytest.fixture(scope="module")
def folders(tmp_path_factory):
    """A folder of every family."""
    saved = {}
    for family in FAMILIES:
        saved[family] = tmp_path_factory.mktemp("models") / family.replace(", ", "-")
        small_network(family).save_pretrained(saved[family])
        small_tokenizer().save_pretrained(saved[family])
    return saved


@pytest.mark.parametrize("family", FAMILIES)
def test_a_folder_loads_with_its_numbers(folders, family):
    model = load(folders[family], device="cpu")
    assert model.name == folders[family].name
    assert model.longest == 64
    assert model.begin == 0
    row = [0, 5, 9, 7]
    logits = small_network(family)
    expected = sum(_log_softmax(logits, row)[t - 1, row[t]].item() for t in range(1, len(row)))
    assert log_likelihoods(model, [row])[0] == pytest.approx(expected, abs=1e-5)
    values, tokens = sentence_log_likelihoods(model, ["w5 w9 w7"])
    assert values[0] == pytest.approx(expected, abs=1e-5)
    assert tokens.tolist() == [3]


def _log_softmax(network, row):
    import torch

    with torch.no_grad():
        return network(input_ids=torch.tensor([row])).logits[0].double().log_softmax(-1)


def test_the_fingerprint_depends_on_the_weights(folders):
    first, again = (load(folders["llama"], device="cpu") for _ in range(2))
    assert first.fingerprint == again.fingerprint
    assert first.fingerprint != load(folders["gpt2"], device="cpu").fingerprint


def test_names_of_nothing_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"no such folder or GGUF file.* hf:NAME"):
        load(tmp_path / "none")
    (tmp_path / "model.bin").write_bytes(b"")
    with pytest.raises(FileError, match=r"or a \.gguf file"):
        load(tmp_path / "model.bin")
    (tmp_path / "model.gguf").write_bytes(b"GGUF")
    with pytest.raises(FileError, match="expected a GGUF file, got something else"):
        load(tmp_path / "model.gguf")


def test_a_masked_model_is_refused(tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"model_type": "bert"}))
    with pytest.raises(FileError, match=r"predicts the next word \(gpt2, llama, opt …\), got 'be"):
        load(tmp_path)


def test_missing_weights_are_named(folders, tmp_path):
    from safetensors.torch import load_file, save_file

    folder = tmp_path / "broken"
    folder.mkdir()
    for path in folders["opt"].iterdir():
        (folder / path.name).write_bytes(path.read_bytes())
    weights = load_file(folder / "model.safetensors")
    del weights["model.decoder.layers.1.fc1.weight"]
    save_file(weights, folder / "model.safetensors", metadata={"format": "pt"})
    with pytest.raises(FileError, match=r"got none for .*layers\.1\.fc1\.weight"):
        load(folder)


@pytest.mark.parametrize("name", EMBEDDED)
def test_an_embedded_model_predicts_english(name, capfd):
    from transformers import AutoModelForCausalLM

    model = load(name, device="cpu")
    values, tokens = sentence_log_likelihoods(model, ENGLISH)
    sentence, shuffled = np.exp(-values / tokens)
    assert sentence < shuffled / 4
    folder = resources.files("evenhand.assets") / name
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        network, report = AutoModelForCausalLM.from_pretrained(folder, output_loading_info=True)
    assert not any(report.values())
    assert "warn" not in capfd.readouterr().err.lower()
    row = [model.begin, *model.encode(ENGLISH[:1])[0].ids]
    plain = sum(_log_softmax(network, row)[t - 1, row[t]].item() for t in range(1, len(row)))
    assert values[0] == pytest.approx(plain, rel=1e-5)
    assert sum(entry.stat().st_size for entry in folder.iterdir()) < 20_000_000


@pytest.mark.slow
def test_a_real_gguf_file_predicts_english(capsys):
    script = SHARED / "models" / "get"
    if not script.is_file():
        pytest.skip("needs ../shared/models/get")
    done = subprocess.run([script, "smollm"], capture_output=True, text=True, check=False)
    if done.returncode:
        pytest.skip("the model cannot be fetched here")
    [path] = Path(done.stdout.strip()).glob("*.gguf")
    model = load(path, device="cpu")
    assert model.decoder is not None
    assert capsys.readouterr().err == ""
    values, tokens = sentence_log_likelihoods(model, ENGLISH)
    assert model.tokenizer.convert_ids_to_tokens(model.begin) == "<|endoftext|>"
    sentence, shuffled = np.exp(-values / tokens)
    assert sentence < shuffled / 4
    rows = [[model.begin, *coded.ids] for coded in model.encode(ENGLISH)]
    plain = [
        sum(_log_softmax(model.network, row)[t - 1, row[t]].item() for t in range(1, len(row)))
        for row in rows
    ]
    np.testing.assert_allclose(values, plain, rtol=1e-5)
