"""Models in memory: a network of transformers with its tokenizer, in place of a path.

A source is a pair `(network, tokenizer)`, or a `pipeline` of transformers, which has both. The
network is not changed: a copy of its modules, which shares the weights, runs in evaluation mode.
"""

from __future__ import annotations

import copy
import os
from pathlib import Path, PureWindowsPath
from typing import Any, TypeAlias, TypeGuard
from uuid import uuid4

from evenhand.errors import InputError
from evenhand.models.forward import guard_half, is_unmodified
from evenhand.models.sources import HUB_ID, quiet

ModelSource: TypeAlias = str | os.PathLike[str] | object
"""A name or a path, or a model in memory: a pair (network, tokenizer) of transformers, a pipeline
of it, or a model that was loaded before."""
SETTINGS = "_evenhand_settings"
"""The attribute of a network with the settings of its folder, and as transformers shows them."""


def is_path(source: object) -> TypeGuard[str | os.PathLike[str]]:
    """Whether a source is a name or a path, and not a model in memory."""
    return isinstance(source, str | os.PathLike)


def split(source: object) -> tuple[Any, Any]:
    """The network and the tokenizer of a model in memory.

    >>> split(7)
    Traceback (most recent call last):
    evenhand.errors.InputError: model: expected a name, a path, ... or a pipeline, got int
    """
    if isinstance(source, tuple | list) and len(source) == 2:
        network, tokenizer = source
    else:
        network, tokenizer = getattr(source, "model", None), getattr(source, "tokenizer", None)
    if tokenizer is None and is_network(source):
        raise InputError(
            f"model: expected the pair (model, tokenizer), got {type(source).__name__} alone"
        )
    if getattr(network, "peft_config", None) is not None:
        raise InputError(
            "model: expected a complete model, got one with an adapter: merge it first "
            "(merge_and_unload)"
        )
    if not is_network(network) or getattr(network, "config", None) is None:
        raise InputError(
            "model: expected a name, a path, the pair (model, tokenizer) of transformers or a "
            f"pipeline, got {type(source).__name__}"
        )
    return network, check_tokenizer(tokenizer, type(network).__name__)


def is_network(source: object) -> bool:
    """Whether a source is a network of torch, without importing it."""
    return callable(getattr(source, "named_parameters", None))


def check_tokenizer(tokenizer: object, name: str) -> Any:
    """A fast tokenizer of transformers, or our own; else an error."""
    if getattr(tokenizer, "backend_tokenizer", None) is None:
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


def borrow(network: Any, tokenizer: object) -> tuple[Any, Any]:
    """Copies for measuring: modules that share the weights, in evaluation mode, and a tokenizer.

    A network with modules of other libraries or with hooks can compute something else with the same
    weights. It gets a fingerprint of its own each time, so that nothing of it is cached.
    """
    from evenhand.models.tokenizer import Tokenizer

    shared = {id(tensor): tensor for tensor in (*network.parameters(), *network.buffers())}
    copied = copy.deepcopy(network, shared)
    copied.eval()
    if not all(is_unmodified(part) for part in network.modules()):
        settings = copied.config.to_dict()
        setattr(copied, SETTINGS, ({**settings, "in_memory": uuid4().hex}, settings))
    if copied.device.type == "cpu" and copied.dtype.itemsize < 4:
        guard_half()
    own = tokenizer if isinstance(tokenizer, Tokenizer) else copy.deepcopy(tokenizer)
    return copied, own


def save(source: object, folder: str | os.PathLike[str]) -> None:
    """Write a model in memory into a folder, from which it loads; the model is not changed."""
    if is_encoder(source):
        encoder: Any = source
        encoder.save(os.fspath(folder))
        return
    loaded = getattr(source, "subject_kind", None) is not None
    inner: Any = getattr(source, "model", source)
    pair = (inner.network, inner.tokenizer) if loaded else split(source)
    network, tokenizer = borrow(*pair)
    with quiet():
        network.save_pretrained(folder)
        tokenizer.save_pretrained(folder)


def is_encoder(source: object) -> bool:
    """Whether a source is a model of sentence-transformers, which can save itself."""
    return any(cls.__name__ == "SentenceTransformer" for cls in type(source).__mro__)
