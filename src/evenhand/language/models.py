"""A language model of any kind by name: which kind it is, and loading it."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any, Literal

from evenhand.errors import FileError, InputError
from evenhand.files import parse_json
from evenhand.masked.sources import CAUSAL_FAMILIES, COMMON_FAMILIES, fetch

__all__ = ["Kind", "kind_of", "load"]

Kind = Literal["model", "causal"]
"""Masked and causal language models, by the names of their instruments' subjects."""

MASKED_HEADS = ("ForMaskedLM", "ForPreTraining")
CAUSAL_HEADS = ("ForCausalLM", "LMHeadModel")


def kind_of(source: str | os.PathLike[str]) -> Kind:
    """Which kind of language model a source is, by its name and its configuration.

    Parameters
    ----------
    source : str or path
        An embedded name, a folder, a GGUF file, or `hf:NAME`.

    Examples
    --------
    >>> kind_of("mini")
    'model'

    """
    from evenhand.causal.model import EMBEDDED as CAUSAL
    from evenhand.masked.model import EMBEDDED as MASKED

    name = os.fspath(source)
    if name in MASKED:
        return "model"
    if name in CAUSAL or name.lower().endswith(".gguf"):
        return "causal"
    folder = fetch(name[3:]) if name.startswith("hf:") else Path(name)
    path = folder / "config.json"
    if not folder.is_dir():
        raise InputError(
            f"model '{name}': no such folder or GGUF file, and not embedded "
            f"({', '.join(MASKED + CAUSAL)}); a model of the hub is named hf:NAME"
        )
    if not path.is_file():
        raise FileError(name, "expected config.json and the weights of a model, got none")
    config = parse_json(path.read_bytes(), path)
    if not isinstance(config, dict):
        raise FileError(path, f"expected a JSON object, got {type(config).__name__}")
    heads = config.get("architectures")
    names = [head for head in heads if isinstance(head, str)] if isinstance(heads, list) else []
    if any(head.endswith(CAUSAL_HEADS) for head in names):
        return "causal"
    if any(head.endswith(MASKED_HEADS) for head in names):
        return "model"
    family = config.get("model_type")
    if family in CAUSAL_FAMILIES:
        return "causal"
    if family in COMMON_FAMILIES:
        return "model"
    raise FileError(
        path,
        "expected a masked or a causal language model (architectures that end in ForMaskedLM or "
        f"ForCausalLM), got {', '.join(names) or family!r}",
    )


def load(
    source: str | os.PathLike[str],
    *,
    device: str = "auto",
    dtype: Literal["float32", "bfloat16", "float16"] = "float32",
) -> Any:
    """Load a language model of any kind.

    Parameters
    ----------
    source : str or path
        As for `kind_of`.
    device, dtype
        As for `evenhand.masked.load` and `evenhand.causal.load`.

    """
    from evenhand.causal.model import load as load_causal
    from evenhand.masked.model import load as load_masked

    reader = load_causal if kind_of(source) == "causal" else load_masked
    return reader(source, device=device, dtype=dtype)
