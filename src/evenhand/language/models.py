"""A language model of any kind by name: which kind it is, and loading it."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Literal, cast

from evenhand.causal.model import EMBEDDED as CAUSAL
from evenhand.errors import FileError, InputError
from evenhand.files import parse_json
from evenhand.instruments import LANGUAGE, subject_of
from evenhand.language.encoders import MODULES
from evenhand.masked.memory import ModelSource, is_encoder, is_path, split
from evenhand.masked.model import EMBEDDED as MASKED
from evenhand.masked.sources import CAUSAL_FAMILIES, COMMON_FAMILIES, fetch

__all__ = ["Kind", "describe", "kind_of", "load"]

Kind = Literal["model", "causal", "encoder"]
"""Masked and causal language models and sentence encoders, by the names of their instruments'
subjects."""

EMBEDDED = (*MASKED, *CAUSAL)
"""Names of the models that come with the package."""
MASKED_HEADS = ("ForMaskedLM", "ForPreTraining")
CAUSAL_HEADS = ("ForCausalLM", "LMHeadModel")


def kind_of(source: ModelSource) -> Kind:
    """Which kind of language model a source is, by its name and its configuration.

    A folder with `modules.json` (of sentence-transformers), or one with a network of a masked
    family without a head (`BertModel`), is a sentence encoder.

    Parameters
    ----------
    source : str, path or model in memory
        An embedded name, a folder, a GGUF file, `hf:NAME`; or a model in memory: the pair
        (network, tokenizer) of transformers, its pipeline, a `SentenceTransformer`, or a model that
        was loaded before.

    Examples
    --------
    >>> kind_of("mini")
    'model'

    """
    if hasattr(source, "subject_kind"):
        return cast(Kind, subject_of(source))
    if is_encoder(source):
        return "encoder"
    if not is_path(source):
        network, _ = split(source)
        return _kind([type(network).__name__], network.config.model_type, "model in memory")
    name = os.fspath(source)
    if name in MASKED:
        return "model"
    if name in CAUSAL or name.lower().endswith(".gguf"):
        return "causal"
    folder = fetch(name[3:]) if name.startswith("hf:") else Path(name)
    if not folder.is_dir():
        raise InputError(
            f"model '{name}': no such folder or GGUF file, and not embedded "
            f"({', '.join(EMBEDDED)}); a model of the hub is named hf:NAME"
        )
    if (folder / MODULES).is_file():
        return "encoder"
    path = folder / "config.json"
    if not path.is_file():
        raise FileError(name, "expected config.json and the weights of a model, got none")
    config = parse_json(path.read_bytes(), path)
    if not isinstance(config, dict):
        raise FileError(path, f"expected a JSON object, got {type(config).__name__}")
    heads = config.get("architectures")
    names = [head for head in heads if isinstance(head, str)] if isinstance(heads, list) else []
    return _kind(names, config.get("model_type"), path)


def _kind(names: Sequence[str], family: Any, place: Path | str) -> Kind:
    """The kind of a model by the names of its classes and its family."""
    if any(head.endswith(CAUSAL_HEADS) for head in names):
        return "causal"
    if any(head.endswith(MASKED_HEADS) for head in names):
        return "model"
    if family in CAUSAL_FAMILIES:
        return "causal"
    if names and all(head.endswith("Model") for head in names):
        return "encoder"
    if family in COMMON_FAMILIES:
        return "model"
    raise FileError(
        place,
        "expected a masked or a causal language model or a sentence encoder (architectures that "
        f"end in ForMaskedLM, ForCausalLM or Model), got {', '.join(names) or family!r}",
    )


def open_subject(source: Any) -> Any | None:
    """A language model where the source is a name, a folder or a model in memory; else None."""
    if is_path(source):
        name = os.fspath(source)
        folder = Path(name).is_dir() or name.lower().endswith(".gguf")
        return load(source) if name in EMBEDDED or name.startswith("hf:") or folder else None
    network = (
        source[0] if isinstance(source, tuple) and source else getattr(source, "model", source)
    )
    return load(source) if is_encoder(source) or hasattr(network, "named_parameters") else None


def describe(model: Any) -> dict[str, Any]:
    """What a loaded model of any kind is: its kind, size and vocabulary.

    Examples
    --------
    >>> from evenhand.masked import load
    >>> about = describe(load("mini"))
    >>> about["kind"], about["layers"]
    ('masked language model', 6)

    """
    kind = subject_of(model)
    network = {"model": "core", "causal": "network", "encoder": "base"}[kind]
    weights: Any = getattr(model, network)
    about = {
        "name": model.name,
        "kind": LANGUAGE[kind],
        "weights": sum(weight.numel() for weight in weights.parameters()),
        "layers": int(weights.config.num_hidden_layers),
        "vocabulary": len(model.tokenizer),
        "longest_input": model.longest,
        "fingerprint": model.fingerprint,
    }
    if kind == "encoder":
        about |= {"dimension": model.dim, "pooling": model.pooling}
        about["length"] = "1" if model.normalize else "any"
    if getattr(model, "maps", None) is not None:
        about["layer_maps"] = str(model.maps)
    return about


def load(
    source: ModelSource,
    *,
    device: str = "auto",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
) -> Any:
    """Load a language model of any kind.

    Parameters
    ----------
    source : str, path or model in memory
        As for `kind_of`. A model in memory is not changed; it stays on its device and in its data
        type.
    device, dtype
        As for `evenhand.masked.load` and `evenhand.causal.load`.

    Returns
    -------
    masked.Model, causal.Model or SentenceEncoder
        All have `name`, `fingerprint`, `tokenizer` and `subject_kind`; a sentence encoder has
        `encode(texts)`, which gives vectors.

    """
    from evenhand.causal.model import load as load_causal
    from evenhand.language.encoders import load as load_encoder
    from evenhand.masked.model import load as load_masked

    readers: dict[Kind, Any] = {
        "model": load_masked,
        "causal": load_causal,
        "encoder": load_encoder,
    }
    if hasattr(source, "subject_kind") or hasattr(source, "logits"):
        return source
    return readers[kind_of(source)](source, device=device, dtype=dtype)
