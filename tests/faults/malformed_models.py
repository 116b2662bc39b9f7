"""Folders of small models with something wrong in them: the cases, and a runner for all.

    python malformed_models.py FOLDER [every N-th]

runs each case through the command line and prints a JSON line with its name, exit code and stderr.
"""

from __future__ import annotations

import contextlib
import io
import json
import shutil
import struct
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

Change = Callable[[Path], None]

VALUES: dict[str, Any] = {
    "null": None,
    "text": "abc",
    "list": [1, 2],
    "object": {"a": 1},
    "true": True,
    "zero": 0,
    "negative": -1,
    "fraction": 2.5,
    "huge": 10**9,
    "enormous": 10**18,
    "infinite": float("inf"),
    "nan": float("nan"),
}
NUMBERS = (
    "vocab_size",
    "hidden_size",
    "num_hidden_layers",
    "num_attention_heads",
    "intermediate_size",
    "max_position_embeddings",
)
OTHERS = (
    "type_vocab_size",
    "pad_token_id",
    "layer_norm_eps",
    "hidden_dropout_prob",
    "attention_probs_dropout_prob",
    "initializer_range",
    "hidden_act",
    "model_type",
    "architectures",
    "dtype",
    "torch_dtype",
    "tie_word_embeddings",
    "chunk_size_feed_forward",
    "position_embedding_type",
    "id2label",
    "is_decoder",
    "add_cross_attention",
    "output_attentions",
    "return_dict",
    "quantization_config",
)


def rewrite(name: str, change: Callable[[Any], Any]) -> Change:
    """A change of a JSON file; the function changes its value or returns another."""

    def apply(folder: Path) -> None:
        path = folder / name
        content = json.loads(path.read_text())
        changed = change(content)
        path.write_text(json.dumps(content if changed is None else changed))

    return apply


def setting(name: str, key: str, value: Any) -> Change:
    return rewrite(name, lambda content: content.__setitem__(key, value))


def removed(name: str, key: str) -> Change:
    return rewrite(name, lambda content: content.pop(key, None) and None)


def raw(name: str, change: Callable[[bytes], bytes]) -> Change:
    def apply(folder: Path) -> None:
        path = folder / name
        path.write_bytes(change(path.read_bytes()))

    return apply


def tensors(change: Callable[[dict[str, Any]], None]) -> Change:
    """A change of the weights, saved again."""

    def apply(folder: Path) -> None:
        from safetensors.torch import load_file, save_file

        path = folder / "model.safetensors"
        weights = load_file(path)
        change(weights)
        save_file(weights, path, metadata={"format": "pt"})

    return apply


def header(change: Callable[[dict[str, Any]], None]) -> Change:
    """A change of the header of the weights; the numbers stay where they are."""

    def apply(folder: Path) -> None:
        path = folder / "model.safetensors"
        data = path.read_bytes()
        (length,) = struct.unpack("<Q", data[:8])
        content = json.loads(data[8 : 8 + length])
        change(content)
        text = json.dumps(content).encode()
        path.write_bytes(struct.pack("<Q", len(text)) + text + data[8 + length :])

    return apply


def cases() -> Iterator[tuple[str, str, Change]]:
    """The family, the name and the change of each case."""
    for key in NUMBERS:
        yield "bert", f"config {key} missing", removed("config.json", key)
        for name, value in VALUES.items():
            yield "bert", f"config {key} {name}", setting("config.json", key, value)
    for key in OTHERS:
        for name in ("null", "text", "list", "negative", "enormous", "nan"):
            yield "bert", f"config {key} {name}", setting("config.json", key, VALUES[name])
    for key in ("num_hidden_layers", "num_hidden_groups", "inner_group_num", "embedding_size"):
        for name in ("text", "zero", "negative", "huge", "enormous"):
            yield "albert", f"config {key} {name}", setting("config.json", key, VALUES[name])
    for key in ("n_layers", "n_heads", "dim", "hidden_dim", "sinusoidal_pos_embds"):
        for name in ("text", "negative", "huge", "true"):
            yield "distilbert", f"config {key} {name}", setting("config.json", key, VALUES[name])
    for key in ("num_hidden_layers", "pad_token_id", "max_position_embeddings"):
        for name in ("text", "negative", "huge", "zero"):
            yield "roberta", f"config {key} {name}", setting("config.json", key, VALUES[name])
    yield from _texts()
    yield from _tokenizers()
    yield from _weights()


def _texts() -> Iterator[tuple[str, str, Change]]:
    """Files that are no JSON, or not the JSON they should be."""
    contents = {
        "empty": lambda _: b"",
        "half": lambda data: data[: len(data) // 2],
        "nested": lambda _: b"[" * 100_000,
        "nested objects": lambda _: b'{"a":' * 100_000 + b"1" + b"}" * 100_000,
        "list": lambda _: b"[]",
        "number": lambda _: b"1" * 10_000,
        "bytes": lambda _: bytes(range(256)) * 4,
        "utf-16": lambda data: data.decode().encode("utf-16"),
        "null": lambda _: b"null",
        "empty object": lambda _: b"{}",
    }
    for file in ("config.json", "tokenizer.json", "tokenizer_config.json"):
        for name, change in contents.items():
            yield "bert", f"{file} {name}", raw(file, change)


def _tokenizers() -> Iterator[tuple[str, str, Change]]:
    parts = ("model", "normalizer", "pre_tokenizer", "post_processor", "decoder", "added_tokens")
    for key in (*parts, "version", "truncation", "padding"):
        yield "bert", f"tokenizer {key} missing", removed("tokenizer.json", key)
        for name in ("null", "text", "list", "object", "huge"):
            yield "bert", f"tokenizer {key} {name}", setting("tokenizer.json", key, VALUES[name])

    def vocabulary(change: Callable[[dict[str, Any]], Any]) -> Change:
        return rewrite("tokenizer.json", lambda content: change(content["model"]["vocab"]) and None)

    for name, number in {"above": 10**6, "maximum": 2**32 - 1, "negative": -1}.items():
        yield "bert", f"vocabulary id {name}", vocabulary(lambda v, n=number: v.update({"the": n}))
        yield (
            "bert",
            f"added token id {name}",
            rewrite(
                "tokenizer.json",
                lambda content, n=number: content["added_tokens"][-1].update(id=n),
            ),
        )
        yield (
            "bert",
            f"template id {name}",
            rewrite("tokenizer.json", lambda content, n=number: _template(content, n)),
        )
    yield "bert", "vocabulary empty", vocabulary(lambda v: v.clear())
    yield "bert", "vocabulary text", vocabulary(lambda v: v.update({"the": "x"}))
    yield "bert", "vocabulary repeats", vocabulary(lambda v: v.update(dict.fromkeys(v, 3)))
    for key in ("mask_token", "unk_token", "pad_token", "model_max_length", "tokenizer_class"):
        for name in ("null", "text", "list", "object", "negative", "zero", "huge", "fraction"):
            value = VALUES[name]
            yield "bert", f"{key} {name}", setting("tokenizer_config.json", key, value)
    for file in ("tokenizer.json", "tokenizer_config.json", "config.json", "model.safetensors"):
        yield "bert", f"no {file}", lambda folder, f=file: (folder / f).unlink()
        yield "bert", f"a folder as {file}", lambda folder, f=file: _as_folder(folder / f)
        yield "bert", f"a loop of links as {file}", lambda folder, f=file: _as_loop(folder / f)
    yield (
        "roberta",
        "merges wrong",
        setting_in("tokenizer.json", ("model", "merges"), [["a", "zz"]]),
    )
    yield "roberta", "merges text", setting_in("tokenizer.json", ("model", "merges"), "abc")
    yield "albert", "scores wrong", setting_in("tokenizer.json", ("model", "vocab"), [["a", "b"]])
    yield "albert", "no unknown", setting_in("tokenizer.json", ("model", "unk_id"), 10**6)


def setting_in(name: str, keys: tuple[str, str], value: Any) -> Change:
    return rewrite(name, lambda content: content[keys[0]].__setitem__(keys[1], value))


def _template(content: Any, number: int) -> None:
    for token in content["post_processor"]["special_tokens"].values():
        token["ids"] = [number]


def _as_folder(path: Path) -> None:
    path.unlink()
    path.mkdir()


def _as_loop(path: Path) -> None:
    path.unlink()
    path.symlink_to(path.name)


def _weights() -> Iterator[tuple[str, str, Change]]:
    file = "model.safetensors"
    embeddings = "bert.embeddings.word_embeddings.weight"
    for share in (0, 1, 7, 8, 9, 100):
        yield "bert", f"weights cut at {share}", raw(file, lambda data, n=share: data[:n])
    yield "bert", "weights half", raw(file, lambda data: data[: len(data) // 2])
    yield "bert", "weights longer", raw(file, lambda data: data + b"x" * 100)
    yield "bert", "weights zeros", raw(file, lambda data: bytes(len(data)))
    for name, length in {"huge": 2**63, "past the end": 10**8, "zero": 0, "one": 1}.items():
        yield (
            "bert",
            f"weights header {name}",
            raw(file, lambda data, n=length: struct.pack("<Q", n) + data[8:]),
        )
    yield "bert", "header nested", raw(file, lambda _: struct.pack("<Q", 90_000) + b"[" * 90_000)
    for name, change in {
        "shape": {"shape": [3, 4]},
        "shape negative": {"shape": [-1, 32]},
        "shape huge": {"shape": [2**40, 2**40]},
        "shape text": {"shape": "abc"},
        "dtype": {"dtype": "F64"},
        "dtype unknown": {"dtype": "F7"},
        "dtype number": {"dtype": 7},
        "offsets": {"data_offsets": [0, 10**12]},
        "offsets reversed": {"data_offsets": [100, 0]},
        "offsets equal": {"data_offsets": [0, 0]},
    }.items():
        yield "bert", f"header {name}", header(lambda h, c=change: h[embeddings].update(c))
    yield "bert", "header without tensors", header(lambda h: h.clear())

    def as_type(name: str) -> Change:
        def change(weights: dict[str, Any]) -> None:
            import torch

            for key, weight in weights.items():
                weights[key] = weight.to(getattr(torch, name))

        return tensors(change)

    for name in ("int64", "int8", "bool", "float16", "bfloat16", "float64", "complex64"):
        yield "bert", f"weights {name}", as_type(name)
    yield (
        "bert",
        "weights transposed",
        tensors(lambda w: w.update({embeddings: w[embeddings].T.contiguous()})),
    )
    yield "bert", "weights nan", tensors(lambda w: w[embeddings].fill_(float("nan")))
    yield "bert", "weights infinite", tensors(lambda w: w[embeddings].fill_(float("inf")))
    yield "bert", "weights overflow", tensors(lambda w: w[embeddings].fill_(1e38))
    yield "bert", "weights missing", tensors(lambda w: w.__delitem__(embeddings))
    yield "bert", "weights empty", tensors(lambda w: w.clear())
    yield "bert", "weights renamed", tensors(lambda w: w.update({"a": w.pop(embeddings)}))
    yield (
        "bert",
        "weights of a scalar",
        tensors(lambda w: w.update({embeddings: w[embeddings].sum()})),
    )
    for name, content in {"empty": b"", "text": b"abc", "zip": b"PK\x03\x04" + bytes(100)}.items():
        yield "bert", f"pickle {name}", lambda folder, c=content: _pickled(folder, c)
    yield "bert", "index of weights", lambda folder: _indexed(folder)


def _pickled(folder: Path, content: bytes) -> None:
    (folder / "model.safetensors").unlink()
    (folder / "pytorch_model.bin").write_bytes(content)


def _indexed(folder: Path) -> None:
    (folder / "model.safetensors").unlink()
    index = {"metadata": {}, "weight_map": {"a": "../../../etc/passwd"}}
    (folder / "model.safetensors.index.json").write_text(json.dumps(index))


def prepare(folder: Path) -> dict[str, Path]:
    """The models without a fault, by family."""
    from small_models import made

    models = {}
    for family in ("bert", "albert", "distilbert", "roberta"):
        models[family] = folder / f"sound-{family}"
        tokenizer, network = made(family)
        network.save_pretrained(models[family])
        tokenizer.save_pretrained(models[family])
    (folder / "sentences.txt").write_text("The nurse said that [MASK] was late.\n")
    return models


def run_case(folder: Path, model: Path, change: Change) -> tuple[int, str]:
    """The exit code of scoring a sentence with the changed model, and what stands on stderr."""
    from evenhand.cli import run

    copy = folder / "model"
    shutil.rmtree(copy, ignore_errors=True)
    shutil.copytree(model, copy)
    change(copy)
    out, err = io.StringIO(), io.StringIO()
    arguments = [
        "measure",
        "pronouns",
        str(copy),
        "--data",
        str(folder / "sentences.txt"),
        "--json",
    ]
    with contextlib.redirect_stdout(out), contextlib.redirect_stderr(err):
        code = run(arguments)
    return code, err.getvalue()


def main(folder: Path, step: int = 1) -> None:
    import time
    import traceback

    models = prepare(folder)
    for family, name, change in list(cases())[::step]:
        start = time.monotonic()
        try:
            code, err = run_case(folder, models[family], change)
        except BaseException:
            code, err = -1, traceback.format_exc()
        row = {"case": f"{family} {name}", "code": code, "stderr": err}
        row["seconds"] = round(time.monotonic() - start, 1)
        sys.stdout.write(json.dumps(row) + "\n")
        sys.stdout.flush()


if __name__ == "__main__":
    main(Path(sys.argv[1]), *map(int, sys.argv[2:]))
