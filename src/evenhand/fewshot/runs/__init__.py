"""Whole few-shot runs: train, test, keep every answer, summarise, compare.

`run` trains one network with one mitigation on some class splits and seeds and keeps all in a
folder, `read_run` reads such a folder again, `summary` gives its figures, `bias_of` and `changes`
its bias and what a mitigation changed. A `Library` has the texts and features of a data set ready
for many runs; `Tallies` are what is needed of a run to compare it with others.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from evenhand.fewshot.runs.settings import EpisodeCounts, RunSettings

if TYPE_CHECKING:
    from evenhand.fewshot.runs.folder import SavedRun, read_run
    from evenhand.fewshot.runs.library import Library
    from evenhand.fewshot.runs.running import run
    from evenhand.fewshot.runs.summaries import (
        BiasSummary,
        RunSummary,
        bias_of,
        changes,
        summary,
    )
    from evenhand.fewshot.runs.tallies import Tallies

__all__ = [
    "BiasSummary",
    "EpisodeCounts",
    "Library",
    "RunSettings",
    "RunSummary",
    "SavedRun",
    "Tallies",
    "bias_of",
    "changes",
    "read_run",
    "run",
    "summary",
]

_PLACES = {
    "BiasSummary": "summaries",
    "Library": "library",
    "RunSummary": "summaries",
    "SavedRun": "folder",
    "Tallies": "tallies",
    "bias_of": "summaries",
    "changes": "summaries",
    "read_run": "folder",
    "run": "running",
    "summary": "summaries",
}


def __getattr__(name: str) -> Any:
    """The rest is imported when asked for: a command's --help needs the settings alone."""
    if name in _PLACES:
        return getattr(import_module(f"evenhand.fewshot.runs.{_PLACES[name]}"), name)
    raise AttributeError(f"module 'evenhand.fewshot.runs' has no attribute {name!r}")
