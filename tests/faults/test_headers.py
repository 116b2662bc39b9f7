"""What a file declares is checked against what it has: numbers, blocks, counts, records."""

from __future__ import annotations

import json
import math
import shutil
import struct
import time
from importlib import resources
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from cli_shell import failure, output

from evenhand.errors import FileError, InputError
from evenhand.files import reading
from evenhand.models.gguf_header import read_header

ASSETS = Path(str(resources.files("evenhand.assets")))


def _text(text: str) -> bytes:
    return struct.pack("<Q", len(text.encode())) + text.encode()


def gguf(blocks=2, *, tensors=None, counts=None, rope=1e4, vocabulary=5) -> bytes:
    """A GGUF file of a llama whose matrices have 4 × 4 weights."""
    names = tensors or ["token_embd.weight", *(f"blk.{i}.attn_q.weight" for i in range(blocks))]
    settings = [
        _text("general.architecture") + struct.pack("<I", 8) + _text("llama"),
        _text("llama.block_count") + struct.pack("<II", 4, blocks),
        _text("llama.context_length") + struct.pack("<II", 4, 64),
        _text("llama.rope.freq_base") + struct.pack("<If", 6, rope),
        _text("tokenizer.ggml.tokens")
        + struct.pack("<IIQ", 9, 8, vocabulary)
        + b"".join(_text(f"t{i}") for i in range(5)),
    ]
    infos = [
        _text(name) + struct.pack("<IQQIQ", 2, 4, 4, 0, 64 * i) for i, name in enumerate(names)
    ]
    declared = counts or (len(infos), len(settings))
    head = b"GGUF" + struct.pack("<IQQ", 3, *declared) + b"".join(settings) + b"".join(infos)
    return head + bytes(64 * len(infos) + 32)


def test_info_reads_the_header_only(tmp_path, capsys, monkeypatch):
    path = tmp_path / "small.gguf"
    path.write_bytes(gguf())
    monkeypatch.setattr("evenhand.models.loading.load", None)
    shown = json.loads(output(capsys, "info", str(path), "--json"))["model"]
    assert shown["kind"] == "causal language model"
    assert (shown["layers"], shown["weights"], shown["vocabulary"]) == (2, 48, 5)
    assert shown["longest_input"] == 64


CASES = {
    "5,000 blocks": gguf(5000, tensors=["a"] * 1200),
    "a billion blocks": gguf(10**9, tensors=["a"]),
    "no block": gguf(0),
    "more tensors than bytes": gguf(counts=(10**12, 5)),
    "more settings than bytes": gguf(counts=(3, 10**15)),
    "more tokens than bytes": gguf(vocabulary=10**14),
    "rope is nan": gguf(rope=math.nan),
    "rope is infinite": gguf(rope=math.inf),
    "empty": b"",
    "the mark only": b"GGUF",
    "another file": b"PK\3\4" + bytes(100),
    "version 99": b"GGUF" + struct.pack("<IQQ", 99, 1, 1) + bytes(100),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("command", [("info",), ("ask", "[MASK] reads.", "--model")], ids=str)
def test_a_header_that_declares_too_much_is_refused_at_once(tmp_path, capsys, case, command):
    path = tmp_path / "small.gguf"
    path.write_bytes(CASES[case])
    began = time.process_time()
    failure(capsys, *command, str(path))
    assert time.process_time() - began < 20


def test_headers_with_flipped_and_missing_bytes(tmp_path):
    """Each ends with a header or with one error."""
    path = tmp_path / "small.gguf"
    content, draw = gguf(), np.random.default_rng(0)
    for _ in range(500):
        damaged = bytearray(content)
        for at in draw.integers(len(content) - 200, size=2):
            damaged[at] = draw.integers(256)
        path.write_bytes(damaged[: draw.choice([len(content), draw.integers(len(content))])])
        try:
            read_header(path)
        except FileError:
            continue


@pytest.mark.parametrize(
    ("name", "change"),
    [
        ("tiny-causal", {"rope_theta": math.nan}),
        ("tiny-causal", {"rope_theta": math.inf}),
        ("tiny-causal", {"rope_parameters": {"rope_theta": math.nan, "rope_type": "default"}}),
        ("tiny-causal", {"rope_scaling": {"factors": [1.0, -math.inf]}}),
        ("mini", {"layer_norm_eps": math.nan}),
    ],
)
def test_every_number_of_a_configuration_is_finite(tmp_path, capsys, name, change):
    folder = tmp_path / "model"
    shutil.copytree(ASSETS / name, folder)
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps(config | change))
    message = failure(capsys, "ask", "The clerk lost [MASK] keys.", "--model", str(folder))
    assert "expected a finite number" in message
    assert next(iter(change)) in message


def test_an_integer_too_large_for_a_number_is_named(tmp_path, capsys):
    folder = tmp_path / "model"
    shutil.copytree(ASSETS / "tiny-causal", folder)
    config = json.loads((folder / "config.json").read_text()) | {"initializer_range": 10**400}
    (folder / "config.json").write_text(json.dumps(config))
    message = failure(capsys, "ask", "The clerk lost [MASK] keys.", "--model", str(folder))
    assert "config.json: not valid JSON: a whole number of 401 digits" in message


LONG = "she reads her book. " * 1000


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet"])
def test_the_limit_of_a_record_holds_for_cells(tmp_path, capsys, monkeypatch, ending):
    monkeypatch.chdir(tmp_path)
    frame = pd.DataFrame({"n": ["1", "2"], "text": ["she reads.", LONG]})
    match ending:
        case "csv":
            frame.to_csv("a.csv", index=False)
        case "jsonl":
            frame.to_json("a.jsonl", orient="records", lines=True)
        case "parquet":
            frame.to_parquet("a.parquet")
    words = ("rewrite", "counterfactuals", f"a.{ending}", "--text", "text", "-o", "out.csv")
    message = failure(capsys, *words, "--max-size", "1MB")
    assert "--max-size raises it" in message
    assert not Path("out.csv").exists()


def test_a_cell_of_50_mb_is_refused_at_once(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("a.csv").write_text("id,text\n1," + LONG * 2500 + "\n")
    began = time.process_time()
    words = ("a.csv", "--text", "text", "-o", "out.csv")
    for command in ("swap", "counterfactuals", "neutralize", "anonymize"):
        assert "--max-size raises it" in failure(capsys, "rewrite", command, *words)
    assert time.process_time() - began < 20
    Path("a.txt").write_text("a" * 50_000_000 + "\n")
    message = failure(capsys, "measure", "perplexity", "tiny-causal", "--data", "a.txt")
    assert "--max-size raises it" in message


def test_the_limit_can_be_raised():
    with reading(max_bytes=1 << 34) as how:
        assert how.max_record == 1 << 27
    with pytest.raises(InputError), reading(max_bytes=1):
        pass
