"""Texts to features: by a model that stays as it is, or by one that learns through the episodes."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.fewshot.encoders.encoding import frozen
    from evenhand.fewshot.encoders.tuned import Tuned

__all__ = ["POOLINGS", "Tuned", "frozen"]

POOLINGS = ("mean", "cls")
"""How the states of a text's tokens become its features."""

_PLACES = {"Tuned": "tuned", "frozen": "encoding"}


def __getattr__(name: str) -> Any:
    """The rest is imported when asked for: it needs torch."""
    if name in _PLACES:
        return getattr(import_module(f"evenhand.fewshot.encoders.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'evenhand.fewshot.encoders' has no attribute {name!r}")
