"""Models in memory: a network of transformers with its tokenizer, wherever a path is accepted.

A source is a pair `(network, tokenizer)`, or a `pipeline` of transformers, which has both. The
network is not changed: a copy of its modules, which shares the weights, runs in evaluation mode.
"""

from __future__ import annotations

import copy
import os
import re
from pathlib import Path, PureWindowsPath
from typing import Any, TypeAlias
from uuid import uuid4

from evenhand.errors import InputError
from evenhand.masked.forward import is_unmodified

ModelSource: TypeAlias = "str | os.PathLike[str] | Any"
"""A name or a path, or a model in memory: a pair (network, tokenizer) of transformers, a pipeline
of it, or a model that was loaded before."""
HUB_ID = re.compile(r"[\w.-]+(/[\w.-]+)?")
SETTINGS = "_evenhand_settings"
"""The attribute of a network with the settings of its folder, and as transformers shows them."""


def is_path(source: Any) -> bool:
    """Whether a source is a name or a path, and not a model in memory."""
    return isinstance(source, str | os.PathLike)


def split(source: Any) -> tuple[Any, Any]:
    """The network and the tokenizer of a model in memory.

    >>> split(7)
    Traceback (most recent call last):
    evenhand.errors.InputError: model: expected a name, a path, ... or a pipeline, got int
    """
    if isinstance(source, tuple | list) and len(source) == 2:
        network, tokenizer = source
    else:
        network, tokenizer = getattr(source, "model", None), getattr(source, "tokenizer", None)
    if hasattr(source, "named_parameters") and not hasattr(source, "tokenizer"):
        raise InputError(
            f"model: expected the pair (model, tokenizer), got {type(source).__name__} alone"
        )
    if hasattr(network, "peft_config"):
        raise InputError(
            "model: expected a complete model, got one with an adapter: merge it first "
            "(merge_and_unload)"
        )
    if not hasattr(network, "named_parameters") or not hasattr(network, "config"):
        raise InputError(
            "model: expected a name, a path, the pair (model, tokenizer) of transformers or a "
            f"pipeline, got {type(source).__name__}"
        )
    return network, check_tokenizer(tokenizer, type(network).__name__)


def check_tokenizer(tokenizer: Any, name: str) -> Any:
    """A fast tokenizer of transformers, or our own; else an error."""
    if not hasattr(tokenizer, "backend_tokenizer"):
        kind = "none" if tokenizer is None else type(tokenizer).__name__
        raise InputError(f"model {name}: expected its fast tokenizer, got {kind}")
    return tokenizer


def name_in_memory(network: Any) -> str:
    """The name of the model that a network was loaded from, or its class's.

    >>> from types import SimpleNamespace
    >>> name_in_memory(SimpleNamespace(config=SimpleNamespace(_name_or_path="/runs/bert-small")))
    'bert-small (in memory)'
    """
    given = str(getattr(network.config, "_name_or_path", "") or "")
    hub = HUB_ID.fullmatch(given) and not Path(given).exists()
    base = given if hub else PureWindowsPath(given).name
    return f"{base or type(network).__name__} (in memory)"


def borrow(network: Any, tokenizer: Any) -> tuple[Any, Any]:
    """Copies for measuring: modules that share the weights, in evaluation mode, and a tokenizer.

    A network with modules of other libraries or with hooks can compute something else with the same
    weights. It gets a fingerprint of its own each time, so that nothing of it is cached.
    """
    from evenhand.masked.tokenizer import Tokenizer

    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    copied = copy.deepcopy(network, shared)
    copied.eval()
    if not all(is_unmodified(part) for part in network.modules()):
        settings = copied.config.to_dict()
        setattr(copied, SETTINGS, ({**settings, "in_memory": uuid4().hex}, settings))
    own = tokenizer if isinstance(tokenizer, Tokenizer) else copy.deepcopy(tokenizer)
    return copied, own


def save(source: Any, folder: str | os.PathLike[str]) -> None:
    """Write a model in memory into a folder, from which it loads; the model is not changed."""
    from evenhand.masked.model import quiet

    if is_encoder(source):
        source.save(os.fspath(folder))
        return
    if hasattr(source, "subject_kind"):  # loaded by us
        inner = getattr(source, "model", source)
        pair = inner.network, inner.tokenizer
    else:
        pair = split(source)
    network, tokenizer = borrow(*pair)
    with quiet():
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def is_encoder(source: Any) -> bool:
    """Whether a source is a model of sentence-transformers, which can save itself."""
    return any(cls.__name__ == "SentenceTransformer" for cls in type(source).__mro__)
