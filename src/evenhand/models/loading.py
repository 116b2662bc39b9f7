"""A language model of any kind by name: which kind it is, and loading it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from evenhand.errors import FileError, InputError, parameter
from evenhand.instruments import LANGUAGE, subject_of
from evenhand.models.encoder import MODULES
from evenhand.models.memory import ModelSource, is_encoder, is_network, is_path, split
from evenhand.models.sources import (
    CAUSAL_FAMILIES,
    COMMON_FAMILIES,
    EMBEDDED,
    DType,
    Kind,
    locate,
    read_configuration,
)

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
    'masked'

    """
    if getattr(source, "subject_kind", None) is not None:
        return cast(Kind, subject_of(source))
    if is_encoder(source):
        return "encoder"
    if not is_path(source):
        network, _ = split(source)
        config = {
            name: getattr(network.config, name, None)
            for name in ("model_type", "is_encoder_decoder")
        }
        return _kind([type(network).__name__], config, "model in memory")
    name = os.fspath(source)
    if name in EMBEDDED:
        return EMBEDDED[name]
    if name.lower().endswith(".gguf"):
        return "causal"
    folder = locate(name).path
    if (folder / MODULES).is_file():
        return "encoder"
    config = read_configuration(folder, name)
    heads = config.get("architectures")
    names = [head for head in heads if isinstance(head, str)] if isinstance(heads, list) else []
    return _kind(names, config, folder / "config.json")


def _kind(names: Sequence[str], config: Mapping[str, Any], place: Path | str) -> Kind:
    """The kind of a model by the names of its classes and its configuration."""
    family = config.get("model_type")
    if config.get("is_encoder_decoder") is True:
        raise FileError(
            place,
            "expected a masked or a causal language model or a sentence encoder, got an "
            f"encoder-decoder model ({', '.join(names) or family}), which no measure takes",
        )
    if any(head.endswith(CAUSAL_HEADS) for head in names):
        return "causal"
    if any(head.endswith(MASKED_HEADS) for head in names):
        return "masked"
    if family in CAUSAL_FAMILIES:
        return "causal"
    if names and all(head.endswith("Model") for head in names):
        return "encoder"
    if family in COMMON_FAMILIES:
        return "masked"
    raise FileError(
        place,
        "expected a masked or a causal language model or a sentence encoder (architectures that "
        f"end in ForMaskedLM, ForCausalLM or Model), got {', '.join(names) or family!r}",
    )


def open_subject(source: object) -> Any | None:
    """A language model where the source is a name, a folder or a model in memory; else None."""
    if is_path(source):
        name = os.fspath(source)
        folder = Path(name).is_dir() or name.lower().endswith(".gguf")
        return load(source) if name in EMBEDDED or name.startswith("hf:") or folder else None
    network = getattr(source, "model", source)
    if isinstance(source, tuple) and source:
        network = source[0]
    return load(source) if is_encoder(source) or is_network(network) else None


def describe(model: Any) -> dict[str, Any]:
    """What a loaded model of any kind is: its kind, size and vocabulary.

    Examples
    --------
    >>> from evenhand.models import load
    >>> about = describe(load("mini"))
    >>> about["kind"], about["layers"]
    ('masked language model', 6)

    """
    kind = subject_of(model)
    weights: Any = model.base if kind == "encoder" else model.core
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
    dtype: DType = "float32",
    int8: bool = False,
) -> Any:
    """Load a language model of any kind.

    Parameters
    ----------
    source : str, path or model in memory
        As for `kind_of`. A model in memory is not changed; it stays on its device and in its data
        type.
    device : str
        `auto` (a GPU if there is one), `cpu`, `cuda` or `cuda:1` …
    dtype : {"float32", "bfloat16", "float16"}
        The data type of the computation.
    int8 : bool
        Whether the linear maps of a masked model are computed with 8-bit integers.

    Returns
    -------
    MaskedModel, CausalModel or SentenceEncoder
        All have `name`, `fingerprint`, `tokenizer` and `subject_kind`; a sentence encoder has
        `encode(texts)`, which gives vectors.

    """
    from evenhand.models.causal import load as load_causal
    from evenhand.models.encoder import load as load_encoder
    from evenhand.models.masked import load as load_masked

    if any(getattr(source, name, None) is not None for name in ("subject_kind", "logits")):
        return source
    kind = kind_of(source)
    if kind == "masked":
        return load_masked(source, device=device, dtype=dtype, int8=int8)
    if int8:
        expected = f"expected a masked language model, got a {LANGUAGE[kind]}"
        raise InputError(f"{parameter('int8', True)}: {expected}")
    reader = load_causal if kind == "causal" else load_encoder
    return reader(source, device=device, dtype=dtype)
