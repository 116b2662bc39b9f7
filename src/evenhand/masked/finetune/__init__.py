"""Fine-tuning on text that is rewritten as it is read, and what that does to the bias."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from evenhand.masked.finetune.settings import REWRITES, Settings

if TYPE_CHECKING:
    from evenhand.masked.finetune.main import Progress, finetune
    from evenhand.masked.finetune.result import Change, FinetuneResult

__all__ = ["REWRITES", "Change", "FinetuneResult", "Progress", "Settings", "finetune"]

_PLACES = {"Change": "result", "FinetuneResult": "result", "Progress": "main", "finetune": "main"}


def __getattr__(name: str) -> Any:
    """The rest is imported when asked for: a command's --help needs the settings alone."""
    from importlib import import_module

    if name in _PLACES:
        return getattr(import_module(f"evenhand.masked.finetune.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'evenhand.masked.finetune' has no attribute {name!r}")
