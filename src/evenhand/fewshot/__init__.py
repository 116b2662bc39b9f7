"""Few-shot classification: classes never seen before, from a handful of texts of each.

`read` gives the labelled texts, and `run` trains a network on many small tasks, tests it on new
classes, measures accuracy and gender bias and saves everything in a folder:

>>> import evenhand as eh
>>> data = eh.fewshot.read("simulated:per_class=20")
>>> settings = eh.fewshot.RunSettings(ways=3, shots=2, episodes="10000/600/600")
>>> settings.name
'proto-euclidean'

The steps are there too: `make_splits` divides the classes, `sample` draws episodes,
`networks.make` gives one of nine classifiers, `accuracy` and `bias` measure their answers.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from evenhand.fewshot.answers import Answers, Classifier, Counterfactuals
    from evenhand.fewshot.data import Dataset, read
    from evenhand.fewshot.encoders import TunedEncoder, encode
    from evenhand.fewshot.episodes import Episodes, sample
    from evenhand.fewshot.metrics.accuracy import accuracy
    from evenhand.fewshot.metrics.bias import bias
    from evenhand.fewshot.runs import FewShotRun, RunResults, read_run, run, summarise
    from evenhand.fewshot.settings import EpisodeCounts, RunSettings, TrainingSettings
    from evenhand.fewshot.splits import Split, make_splits
    from evenhand.fewshot.training import evaluate, train

__all__ = [
    "Answers",
    "Classifier",
    "Counterfactuals",
    "Dataset",
    "EpisodeCounts",
    "Episodes",
    "FewShotRun",
    "RunResults",
    "RunSettings",
    "Split",
    "TrainingSettings",
    "TunedEncoder",
    "accuracy",
    "bias",
    "encode",
    "evaluate",
    "make_splits",
    "read",
    "read_run",
    "run",
    "sample",
    "summarise",
    "train",
]

_MODULES = {
    "answers": ("Answers", "Classifier", "Counterfactuals"),
    "data": ("Dataset", "read"),
    "encoders": ("TunedEncoder", "encode"),
    "episodes": ("Episodes", "sample"),
    "metrics.accuracy": ("accuracy",),
    "metrics.bias": ("bias",),
    "runs": ("FewShotRun", "RunResults", "read_run", "run", "summarise"),
    "settings": ("EpisodeCounts", "RunSettings", "TrainingSettings"),
    "splits": ("Split", "make_splits"),
    "training": ("evaluate", "train"),
}


def __getattr__(name: str) -> Any:
    """Import on demand: some of the modules need torch."""
    for module, names in _MODULES.items():
        if name in names:
            return getattr(import_module(f"evenhand.fewshot.{module}"), name)
    raise AttributeError(f"module 'evenhand.fewshot' has no attribute {name!r}")


def __dir__() -> list[str]:
    return __all__
