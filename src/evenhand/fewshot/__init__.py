"""Few-shot classification: tell apart classes never seen before, from a handful of texts of each.

`read` gives the labelled texts, `make_splits` the classes to train, validate and test on, `sample`
the episodes, small tasks of a few classes each; `networks.make` one of nine classifiers for them.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset, read
    from evenhand.fewshot.episodes import Episodes, sample
    from evenhand.fewshot.splits import Split, make_splits

__all__ = ["Dataset", "Episodes", "Split", "make_splits", "read", "sample"]

_PLACES = {
    "Dataset": "data",
    "Episodes": "episodes",
    "Split": "splits",
    "make_splits": "splits",
    "read": "data",
    "sample": "episodes",
}


def __getattr__(name: str) -> Any:
    """Imported when asked for, so that the names of networks alone cost next to nothing."""
    if name in _PLACES:
        return getattr(import_module(f"evenhand.fewshot.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'evenhand.fewshot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
