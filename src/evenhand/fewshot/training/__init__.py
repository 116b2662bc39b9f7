"""Training through episodes, on features that stay as they are or with the encoder; evaluation."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand.fewshot.training.settings import Settings

if TYPE_CHECKING:
    from evenhand.fewshot.training.evaluation import Predictions, evaluate
    from evenhand.fewshot.training.loop import train
    from evenhand.fewshot.training.trained import Point, Trained

__all__ = ["Point", "Predictions", "Settings", "Trained", "evaluate", "train"]

_PLACES = {
    "Point": "trained",
    "Predictions": "evaluation",
    "Trained": "trained",
    "evaluate": "evaluation",
    "train": "loop",
}


def __getattr__(name: str) -> Any:
    """The rest is imported when asked for: a command's --help needs the settings alone."""
    if name in _PLACES:
        return getattr(import_module(f"evenhand.fewshot.training.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'evenhand.fewshot.training' has no attribute {name!r}")
