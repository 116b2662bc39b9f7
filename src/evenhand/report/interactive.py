"""A masked model within the page: packed weights for `interactive.js`, which runs the model there.

Each matrix is rounded to whole numbers of some bits with one scale per row. The whole numbers are
stored as bytes of their lowest 8 bits, then the remaining bits of all of them; see `pack`.
"""

from __future__ import annotations

import base64
import copy
import json
import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.files import document, read_document, replace_file
from evenhand.language.asking import FORMS, WORDS, built_in_biases, pronoun_probabilities
from evenhand.lexicon.pronoun_sentences import pronoun_sentences

if TYPE_CHECKING:
    from evenhand.masked.model import Model

__all__ = ["check_embeddable", "embed", "pack", "read_embedded", "save_embedded", "unpack"]

Floats = NDArray[np.float32]
Facts = dict[str, Any]

FILE = "interactive.json"
"""What an audit saves for the page, beside `results.json`."""
LARGEST = 13_700_000
"""Characters that the packed weights of a model may have: the page stays under 15 MB."""
BITS = (10, 9, 8)
"""Bits of a weight, the first that fits is taken; 8 alone move the probabilities of `mini` by .04."""
FINE_BITS = 16
"""Bits of vectors and of the small matrices on which the probabilities depend most."""
FINE = ("position_embeddings", "token_type_embeddings", "predictions.transform")
TIED = ("cls.predictions.decoder.", "bert.pooler.", "bert.embeddings.position_ids")
"""Weights that are those of another name, and what a masked model does not use."""
TOLERANCE = 0.02
"""How much rounding may change a probability or a bias in any built-in sentence."""


def pack(matrix: Floats, bits: int) -> bytes:
    """Round a matrix to whole numbers of 8, 9, 10, 12 or 16 bits, with one scale per row.

    Parameters
    ----------
    matrix : array (rows, columns)
    bits : int

    Returns
    -------
    bytes
        The scales as float32, little-endian; for each number, increased by 2^(bits - 1), its lowest
        8 bits as a byte; then its other bits, several numbers in a byte, the first in the lowest
        bits; then zeros up to a multiple of 3 bytes, so that base64 needs no padding.

    Examples
    --------
    >>> round(float(unpack(pack(np.array([[1.0, -0.5]], np.float32), 8), (1, 2), 8)[0, 1]), 3)
    -0.504
    """
    top = 2 ** (bits - 1) - 1
    scales = np.abs(matrix).max(axis=1, keepdims=True).astype("<f4") / np.float32(top)
    scales[scales == 0] = 1
    numbers = np.rint(matrix / scales).clip(-top, top).astype(np.int32).ravel() + top + 1
    high = bits - 8
    per_byte = 8 // high if high else 1
    rest = np.zeros(-(-numbers.size // per_byte) * per_byte, dtype=np.int32)
    rest[: numbers.size] = numbers >> 8
    shifted = rest.reshape(-1, per_byte) << (high * np.arange(per_byte))
    content = scales.tobytes() + (numbers & 255).astype(np.uint8).tobytes()
    if high:
        content += shifted.sum(axis=1).astype(np.uint8).tobytes()
    return content + bytes(-len(content) % 3)


def unpack(content: bytes, shape: tuple[int, int], bits: int) -> Floats:
    """The rounded matrix, as the script of the page reads it."""
    rows, size, high = shape[0], shape[0] * shape[1], bits - 8
    scales = np.frombuffer(content, "<f4", rows)
    numbers = np.frombuffer(content, np.uint8, size, 4 * rows).astype(np.int32)
    if high:
        per_byte = 8 // high
        stored = np.frombuffer(content, np.uint8, -(-size // per_byte), 4 * rows + size)
        rest = (stored[:, None] >> (high * np.arange(per_byte))) & (2**high - 1)
        numbers |= rest.ravel()[:size].astype(np.int32) << 8
    whole = (numbers - 2 ** (bits - 1)).astype(np.float32).reshape(shape)
    return np.asarray(whole * scales[:, None], dtype=np.float32)


def check_embeddable(model: Any) -> None:
    """Raise an error that says what fits if a model cannot be run in a page."""
    weights = _weights(model) if _kind(model) == "bert" else {}
    fits = _bits(weights) is not None
    if not weights or not fits or not _has_bert_tokenizer(model):
        total = sum(tensor.numel() for tensor in weights.values())
        size = f", {total:,} weights" if weights else ""
        raise InputError(
            "interactive: expected a masked model of the family bert with its WordPiece tokenizer "
            f"and at most {LARGEST * 6 // BITS[-1] // 10**5 / 10:.0f} million weights, such as "
            f"mini, got {model.name} ({_kind(model)}{size})"
        )


def embed(model: Model) -> Facts:
    """Everything that the script needs to answer as `evenhand.ask` does, as plain JSON values.

    Parameters
    ----------
    model : Model
        A masked model for which `check_embeddable` raises no error.

    Returns
    -------
    dict
        `weights` in base64, their names, shapes and bits, the vocabulary, the pronouns, the bias
        of the model in the built-in sentences, and `difference`: the most that rounding changes a
        probability or a bias in these.

    """
    weights = _weights(model)
    bits = _bits(weights) or BITS[-1]
    packed, tensors = [], []
    rounded: dict[str, Floats] = {}
    for name, tensor in weights.items():
        matrix = _matrix(tensor)
        own = _bits_of(name, tensor, bits)
        packed.append(pack(matrix, own))
        shape = (matrix.shape[0], matrix.shape[1])
        rounded[name] = unpack(packed[-1], shape, own).reshape(tensor.shape)
        tensors.append({"name": name, "rows": shape[0], "columns": shape[1], "bits": own})
    sentences = pronoun_sentences().sentences
    biases = built_in_biases(model)
    difference = _difference(model, rounded, sentences, biases)
    if difference > TOLERANCE:
        raise InputError(
            f"interactive: expected a model whose weights can be rounded to {bits} bits, got "
            f"{model.name}, whose probabilities change by {difference:.3f} (at most {TOLERANCE})"
        )
    settings = model.settings
    return {
        "name": model.name,
        "layers": settings["num_hidden_layers"],
        "heads": settings["num_attention_heads"],
        "width": settings["hidden_size"],
        "epsilon": settings["layer_norm_eps"],
        "longest": model.longest,
        **_tokenizer(model),
        "forms": list(FORMS.values()),
        "biases": [round(float(bias), 4) for bias in biases],
        "bits": bits,
        "difference": difference,
        "tensors": tensors,
        "weights": base64.b64encode(b"".join(packed)).decode(),
    }


def save_embedded(folder: str | os.PathLike[str], facts: Mapping[str, Any] | None) -> None:
    """Save what the page of an audit embeds; None removes what an earlier audit saved."""
    path = Path(folder) / FILE
    if facts is None:
        path.unlink(missing_ok=True)
        return
    with replace_file(path) as file:
        file.write(json.dumps(document(**facts)).encode())


def read_embedded(folder: str | os.PathLike[str]) -> Facts | None:
    """What the page of an audit embeds, None if it embeds nothing."""
    path = Path(folder) / FILE
    return read_document(path) if path.exists() else None


# -------------------------------------------------------------------------------------- the model


def _kind(model: Any) -> str:
    settings: Mapping[str, Any] = getattr(model, "settings", {})
    family = str(settings.get("model_type", "of another kind"))
    if family == "bert" and settings.get("hidden_act") != "gelu":
        return f"bert with {settings.get('hidden_act')}"
    return family


def _weights(model: Model) -> dict[str, Any]:
    """The weights by name, each once, without those that are tied to others."""
    return {
        name: tensor
        for name, tensor in sorted(model.core.state_dict().items())
        if not name.startswith(TIED)
    }


def _matrix(tensor: Any) -> Floats:
    """A weight as a matrix of numbers; a vector is one row."""
    numbers = tensor.detach().float().cpu().numpy()
    return np.asarray(numbers.reshape(-1, numbers.shape[-1]), dtype=np.float32)


def _bits_of(name: str, tensor: Any, bits: int) -> int:
    fine = tensor.ndim == 1 or any(part in name for part in FINE)
    return FINE_BITS if fine else bits


def _bits(weights: Mapping[str, Any]) -> int | None:
    """The most bits with which the packed weights fit into a page, None if none do."""
    for bits in BITS:
        sizes = [
            4 * (tensor.numel() // tensor.shape[-1])
            + -(-tensor.numel() * _bits_of(name, tensor, bits) // 8)
            for name, tensor in weights.items()
        ]
        if sum(4 * -(-size // 3) for size in sizes) <= LARGEST:
            return bits
    return None


def _difference(
    model: Model, rounded: Mapping[str, Floats], sentences: Sequence[str], biases: Any
) -> float:
    """The largest change of a probability or a bias if the weights are rounded."""
    changed = with_weights(model, rounded)
    before, after = (pronoun_probabilities(m, sentences) for m in (model, changed))
    return max(
        float(np.abs(after - before).max()), float(np.abs(built_in_biases(changed) - biases).max())
    )


def with_weights(model: Model, weights: Mapping[str, Floats]) -> Model:
    """A copy of a model with other weights."""
    import torch

    from evenhand.masked.model import Model

    core = copy.deepcopy(model.core)
    own = core.state_dict()
    with torch.no_grad():
        for name, values in weights.items():
            own[name].copy_(torch.from_numpy(values))
    return Model(model.name, core, model.tokenizer)


# ---------------------------------------------------------------------------------- the tokenizer


def _has_bert_tokenizer(model: Any) -> bool:
    """Whether the script tokenizes as the model's tokenizer does, each pronoun to one piece."""
    from evenhand.masked.tokenizer import content

    parts = json.loads(content(model.tokenizer.backend_tokenizer))
    pieces, normalizer = parts["model"], parts["normalizer"] or {}
    return (
        pieces["type"] == "WordPiece"
        and pieces["continuing_subword_prefix"] == "##"
        and pieces["max_input_chars_per_word"] == 100
        and normalizer.get("type") == "BertNormalizer"
        and normalizer["clean_text"] is True
        and normalizer["handle_chinese_chars"] is True
        and parts["pre_tokenizer"] == {"type": "BertPreTokenizer"}
        and not any(
            token["normalized"] or token["lstrip"] or token["rstrip"] or token["single_word"]
            for token in parts["added_tokens"]
        )
        and all(_piece(model, form) is not None for w in WORDS for form in (w, w.capitalize()))
    )


def _piece(model: Any, word: str) -> int | None:
    """The only piece of a word, None if it has several or is unknown."""
    ids = model.tokenizer(word, add_special_tokens=False)["input_ids"]
    return ids[0] if len(ids) == 1 and ids[0] != model.tokenizer.unk_token_id else None


def _tokenizer(model: Model) -> Facts:
    from evenhand.masked.tokenizer import content

    tokenizer: Any = model.tokenizer
    parts = json.loads(content(tokenizer.backend_tokenizer))
    normalizer = parts["normalizer"]
    lower = normalizer["lowercase"]
    accents = normalizer["strip_accents"]
    vocabulary = sorted(tokenizer.get_vocab().items(), key=lambda item: item[1])
    return {
        "lower": lower,
        "strip": lower if accents is None else accents,
        "vocabulary": [token for token, _ in vocabulary],
        "added": {token["content"]: token["id"] for token in parts["added_tokens"]},
        "special": {
            name: getattr(tokenizer, f"{name}_token_id") for name in ("cls", "sep", "mask", "unk")
        },
        "words": {word: [_piece(model, word), _piece(model, word.capitalize())] for word in WORDS},
    }
