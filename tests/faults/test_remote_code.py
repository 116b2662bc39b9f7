"""Models of the hub never run code of their own, whatever stands on standard input."""

from __future__ import annotations

import json
import os
import pickle
import shutil
import subprocess
import sys
import time
from pathlib import Path

import pytest
from small_models import made

import evenhand as eh
from evenhand.errors import FileError, InputError

pytestmark = pytest.mark.slow

COMMIT = "0" * 40


@pytest.fixture(scope="module")
def model(tmp_path_factory):
    folder = tmp_path_factory.mktemp("model") / "bert"
    tokenizer, network = made("bert")
    network.save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder


def change(path: Path, **settings: object) -> None:
    content = json.loads(path.read_text()) if path.exists() else {}
    path.write_text(json.dumps(content | settings))


def write_code(folder: Path, trace: Path) -> None:
    """A module that writes a file when it is imported."""
    (folder / "code.py").write_text(
        f"open({str(trace)!r}, 'w').write('the code ran')\n"
        "from transformers import BertConfig, BertForMaskedLM, PreTrainedTokenizerFast\n"
        "class OwnConfig(BertConfig):\n    model_type = 'own'\n"
        "class OwnModel(BertForMaskedLM):\n    config_class = OwnConfig\n"
        "class OwnTokenizer(PreTrainedTokenizerFast):\n    pass\n"
    )


def make_hub(home: Path, model: Path) -> Path:
    """The cache of the hub in the folder `home`, with the model someone/own; its folder."""
    repository = home / "hub" / "models--someone--own"
    folder = repository / "snapshots" / COMMIT
    shutil.copytree(model, folder)
    (repository / "refs").mkdir()
    (repository / "refs" / "main").write_text(COMMIT)
    return folder


def shell(home: Path, *arguments: str, stdin: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-m", "evenhand", *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=300,
        env={**os.environ, "HF_HOME": str(home), "HF_HUB_OFFLINE": "1"},
        check=False,
    )


AUTO_MAP = {
    "AutoConfig": "code.OwnConfig",
    "AutoModelForMaskedLM": "code.OwnModel",
    "AutoTokenizer": ["code.OwnTokenizer", "code.OwnTokenizer"],
}


def test_an_answer_on_standard_input_does_not_run_code_of_the_hub(model, tmp_path):
    folder = make_hub(tmp_path / "home", model)
    trace = tmp_path / "trace"
    write_code(folder, trace)
    change(folder / "config.json", auto_map=AUTO_MAP, model_type="own")
    done = shell(
        tmp_path / "home",
        *("measure", "pronouns", "hf:someone/own", "--data", "-"),
        stdin="y\ny\ny\nThe clerk lost [MASK] keys.\n",
    )
    assert not trace.exists()
    assert done.returncode == 2
    assert done.stderr.count("\n") == 1, done.stderr
    assert "code of its own (auto_map), which is never run" in done.stderr
    assert "[y/N]" not in done.stdout


@pytest.mark.parametrize("file", ["config.json", "tokenizer_config.json"])
@pytest.mark.parametrize("hub", [False, True])
def test_code_is_refused_from_hub_and_folder_alike(model, tmp_path, monkeypatch, file, hub):
    folder, trace = tmp_path / "own", tmp_path / "trace"
    shutil.copytree(model, folder)
    write_code(folder, trace)
    change(folder / file, auto_map=AUTO_MAP)
    monkeypatch.setattr("builtins.input", lambda *_: pytest.fail("an answer was read"))
    name = str(folder)
    if hub:
        monkeypatch.setattr("evenhand.models.sources.fetch", lambda _: folder)
        name = "hf:someone/own"
    with pytest.raises(FileError, match=rf"{file}: the model comes with code of its own"):
        eh.models.load(name)
    assert not trace.exists()


@pytest.mark.parametrize(
    "implementation",
    ["someone/kernel", "kernels-community/flash-attn2", "flash_attention_2", {"": "a/b"}, 7],
)
def test_kernels_of_the_hub_are_refused(model, tmp_path, implementation):
    folder = tmp_path / "own"
    shutil.copytree(model, folder)
    change(folder / "config.json", attn_implementation=implementation)
    with pytest.raises(FileError, match="kernels of the hub are code, which is never run"):
        eh.models.load(folder)


@pytest.mark.parametrize("implementation", ["eager", "sdpa", None])
def test_attention_of_torch_is_accepted(model, tmp_path, implementation):
    folder = tmp_path / "own"
    shutil.copytree(model, folder)
    change(folder / "config.json", attn_implementation=implementation)
    assert eh.models.load(folder).dim == 32


@pytest.mark.parametrize("complete", [False, True])
def test_adapters_are_refused(model, tmp_path, complete):
    folder = tmp_path / "own"
    shutil.copytree(model, folder)
    if not complete:
        (folder / "config.json").unlink()
    change(folder / "adapter_config.json", base_model_name_or_path="someone/model")
    with pytest.raises(FileError, match="expected a complete model, got an adapter"):
        eh.models.load(folder)


class Harm:
    def __init__(self, trace: Path) -> None:
        self.trace = trace

    def __reduce__(self):
        return (Path.touch, (self.trace,))


def test_pickled_weights_that_would_run_code_are_refused(model, tmp_path):
    import torch

    for number, save in enumerate((torch.save, lambda value, path: path.write_bytes(value))):
        folder, trace = tmp_path / f"own{number}", tmp_path / f"trace{number}"
        shutil.copytree(model, folder)
        (folder / "model.safetensors").unlink()
        value = {"harm": Harm(trace)}
        save(value if number == 0 else pickle.dumps(value), folder / "pytorch_model.bin")
        with pytest.raises(FileError, match="not a masked language model that loads") as caught:
            eh.models.load(folder)
        assert "\n" not in str(caught.value)
        assert not trace.exists()


def test_only_data_is_downloaded(model, tmp_path, monkeypatch):
    from fnmatch import fnmatch

    requests = []

    def download(name, *, allow_patterns, ignore_patterns, local_files_only):
        requests.append((name, allow_patterns, ignore_patterns, local_files_only))
        return str(model)

    monkeypatch.setattr("huggingface_hub.snapshot_download", download)
    monkeypatch.setattr("evenhand.models.sources.reachable", lambda: True)
    assert eh.models.load("hf:someone/data").name == "hf:someone/data"
    [(name, allowed, ignored, cached)] = requests
    assert name == "someone/data"
    assert not cached
    for file in ("modeling_own.py", "code.py", "setup.sh", "kernel.so", "own.pkl"):
        assert not any(fnmatch(file, pattern) for pattern in allowed)
    assert any(fnmatch("onnx/model.safetensors", pattern) for pattern in ignored)


def test_without_network_the_cache_is_used(model, tmp_path):
    make_hub(tmp_path / "home", model)
    arguments = ("measure", "pronouns", "hf:someone/own", "--data", "-", "--json")
    done = shell(tmp_path / "home", *arguments, stdin="The nurse said that [MASK] was late.\n")
    assert done.returncode == 0, done.stderr


def test_without_network_a_model_of_the_hub_is_refused_at_once(monkeypatch, tmp_path):
    def wait(_):
        raise AssertionError("it waited for the hub")

    def refuse(*_, **__):
        raise OSError("no route")

    monkeypatch.setattr(time, "sleep", wait)
    monkeypatch.setattr("socket.getaddrinfo", refuse)
    monkeypatch.setattr("socket.create_connection", refuse)
    monkeypatch.setattr("huggingface_hub.constants.HF_HUB_CACHE", str(tmp_path))
    with pytest.raises(InputError, match=r"'hf:no/such-model': could not be had .*does not answer"):
        eh.models.load("hf:no/such-model")
    with pytest.raises(InputError, match="could not be had"):
        eh.models.load("hf:../../etc")
    with pytest.raises(InputError, match="could not be had"):
        eh.models.load("hf:")
