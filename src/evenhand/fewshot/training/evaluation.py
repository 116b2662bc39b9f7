"""What a network says about the queries of episodes, thousands of episodes a second."""

from __future__ import annotations

import os
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from evenhand.errors import FileError, InputError
from evenhand.fewshot.data_set import Dataset
from evenhand.fewshot.episodes import Episodes
from evenhand.fewshot.networks.base import Network
from evenhand.fewshot.statistics import Answers
from evenhand.fewshot.training.sources import (
    Scaling,
    Source,
    as_source,
    gathered,
    places_of,
    rows_of,
    targets,
)
from evenhand.fewshot.training.trained import Trained
from evenhand.results import replace_file

__all__ = ["Predictions", "evaluate", "scores"]

NUMBERS = 1 << 20
"""Numbers of features that are gathered at once: as much as stays near the processor."""


@dataclass(frozen=True, eq=False)
class Predictions:
    """The log-probabilities (E, M, C) of each episode's M = C * Q queries, class after class."""

    log_probs: NDArray[np.float32] = field(repr=False)
    episodes: Episodes

    def __post_init__(self) -> None:
        expected = (len(self.episodes), self.episodes.query[0].size, self.episodes.ways)
        if self.log_probs.shape != expected:
            raise InputError(f"log_probs: expected {expected}, got {self.log_probs.shape}")

    @property
    def accuracy(self) -> float:
        """The share of queries classified right; `answers` leads to its interval."""
        return float((self.log_probs.argmax(axis=2) == targets(self.episodes)).mean())

    def answers(self, dataset: Dataset) -> Answers:
        """The same with the texts, classes and genders of the data set, for statistics."""
        return Answers.of(self.log_probs, self.episodes, dataset)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the log-probabilities as .npy, whole or not at all; episodes save themselves."""
        with replace_file(path) as file:
            np.save(file, self.log_probs)

    @classmethod
    def load(cls, path: str | os.PathLike[str], episodes: Episodes) -> Predictions:
        """Read what `save` wrote, of these episodes."""
        try:
            return cls(np.load(Path(path), allow_pickle=False), episodes)
        except (ValueError, EOFError) as error:
            raise FileError(path, f"expected predictions of these episodes: {error}") from None


def evaluate(
    trained: Trained, source: NDArray[np.float32] | Source, episodes: Episodes
) -> Predictions:
    """Classify the queries of all episodes.

    `source` has the features (n, dim) of the data set the episodes' rows are of, or is a `Tuned`
    encoder of its texts: made from the model that training began with, it is given the weights
    that were learnt. Each text is encoded once.
    """
    ready = trained.ready(as_source(source))
    parts = scores(trained.network, trained.scaling, ready, episodes)
    made = [trained.network.log_probabilities(part).cpu().numpy() for part in parts]
    return Predictions(np.concatenate(made), episodes)


@torch.no_grad()
def scores(
    network: Network, scaling: Scaling | None, source: Source, episodes: Episodes
) -> Iterator[Tensor]:
    """The network's scores (some episodes, M, C), a few episodes at a time."""
    network.eval()
    points, places = source.table(rows_of(episodes))
    points = network.project(points if scaling is None else scaling(points))
    support, query, unlabelled = places_of(episodes, places)
    if not network.uses_unlabelled:
        unlabelled = None
    size = len(rows_of(episodes, slice(1))) * points.shape[1]
    step = max(1, NUMBERS // size)
    for begin in range(0, len(episodes), step):
        part = slice(begin, begin + step)
        yield network.score(
            gathered(points, support[part]),
            gathered(points, query[part]),
            None if unlabelled is None else gathered(points, unlabelled[part]),
        )
