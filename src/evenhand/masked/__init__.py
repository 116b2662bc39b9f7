"""Masked language models: load one, measure it, generate sentences, fine-tune it.

`pronouns`, `professions`, `phrases`, `crows`, `sss`, `disco`, `context` and `perplexity` measure a
model; every one returns a `Measurement`. `evenhand.measure(model, material, metrics)` calls them by
name. The names that users import are listed in `__init__.pyi`, once, and loaded when first used.
`crows` and `professions` measure causal models too and are those of `evenhand.language`.
"""

from importlib import import_module
from typing import Any

import lazy_loader

_LANGUAGE = ("crows", "professions")
_load, _, _own = lazy_loader.attach_stub(__name__, __file__)
__all__ = sorted((*_own, *_LANGUAGE))


def __getattr__(name: str) -> Any:
    if name in _LANGUAGE:
        return getattr(import_module("evenhand.language"), name)
    return _load(name)


def __dir__() -> list[str]:
    return __all__
