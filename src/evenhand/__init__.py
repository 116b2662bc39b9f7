"""Evenhand measures, explains and reduces social bias, and says how sure it is.

>>> import evenhand as eh
>>> v = eh.vectors.load("glove")
>>> m = eh.measure(v, eh.lexicon.weat(6), ["weat"]).measurements[0]
>>> m.value > 1 and m.low > 0.5
True
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand import (
        audit,
        errors,
        fewshot,
        lexicon,
        masked,
        posterior,
        report,
        results,
        simulate,
        text,
        vectors,
    )
    from evenhand.instruments import compare
    from evenhand.vectors.measuring import measure

__all__ = [
    "__version__",
    "audit",
    "compare",
    "errors",
    "fewshot",
    "lexicon",
    "masked",
    "measure",
    "posterior",
    "report",
    "results",
    "simulate",
    "text",
    "vectors",
]

__version__ = "0.1.0"

_ATTRIBUTES = {"compare": "evenhand.instruments", "measure": "evenhand.vectors.measuring"}


def __getattr__(name: str) -> Any:
    if name in _ATTRIBUTES:
        return getattr(import_module(_ATTRIBUTES[name]), name)
    if name in __all__:
        return import_module(f"evenhand.{name}")
    raise AttributeError(f"module 'evenhand' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
