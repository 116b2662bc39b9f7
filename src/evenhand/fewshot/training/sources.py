"""Where features come from, a table or an encoder, and how episodes take theirs from it."""

from __future__ import annotations

from hashlib import blake2b
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional

from evenhand.errors import InputError
from evenhand.fewshot.encoders.tokens import check_rows
from evenhand.fewshot.episodes import Episodes

__all__ = ["Scaling", "Source", "Table", "as_source", "gathered", "places_of", "rows_of", "targets"]

FITTED = 4096
"""Training texts that a scaling is fitted on, at most."""
FEWEST = 256
"""Rows that a part of a table has at least: fewer may be multiplied by other routines than the
whole table is, whose last bits are others."""


class Source(Protocol):
    """Features of the rows of a data set."""

    digest: str

    @property
    def dim(self) -> int: ...
    @property
    def device(self) -> torch.device: ...
    def weights(self) -> dict[str, nn.Parameter]:
        """What is learnt of it by name."""

    def reset(self) -> None:
        """Go back to the weights it began with."""

    def points(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[Any]]:
        """Features with those of all the rows among them, and where each row's are."""

    def backward(self) -> None:
        """Carry the gradients of the last points on into the weights."""

    def table(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[Any]]:
        """`points` without gradients."""


class Table:
    """Features that stay as they are, (n, dim), on a device: the CPU unless another is named."""

    def __init__(
        self, features: NDArray[np.float32], device: str | torch.device | None = None
    ) -> None:
        array = np.array(features, dtype="<f4", order="C")
        if array.ndim != 2 or not array.size:
            raise InputError(f"features: expected (texts, dimensions), got shape {array.shape}")
        if not np.isfinite(array).all():
            raise InputError("features: expected numbers, got some that are not finite")
        self._features = torch.from_numpy(array).to(device or "cpu")
        self.digest = blake2b(array.data, digest_size=16).hexdigest()

    @property
    def dim(self) -> int:
        return int(self._features.shape[1])

    @property
    def device(self) -> torch.device:
        return self._features.device

    def weights(self) -> dict[str, nn.Parameter]:
        return {}

    def points(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[Any]]:
        check_rows(rows, len(self._features))
        return self._at(rows), np.arange(rows.size).reshape(rows.shape)

    def table(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[Any]]:
        """The rows that are asked for, or the whole table where that would spare little."""
        check_rows(rows, len(self._features))
        distinct, places = np.unique(rows, return_inverse=True)
        if not FEWEST <= len(distinct) <= len(self._features) // 2:
            return self._features, rows
        return self._at(distinct), places.reshape(rows.shape)

    def reset(self) -> None:
        """There is nothing to learn."""

    def backward(self) -> None:
        """There is nothing to learn."""

    def _at(self, rows: NDArray[Any]) -> Tensor:
        chosen = torch.from_numpy(rows.ravel().astype(np.int64)).to(self.device)
        return self._features.index_select(0, chosen)


def as_source(
    given: NDArray[np.float32] | Source, device: str | torch.device | None = None
) -> Source:
    """Features as they were given, put on a device, or an encoder, as a source."""
    return Table(given, device) if isinstance(given, np.ndarray) else given


class Scaling:
    """Features measured from a mean in standard deviations, both of training texts."""

    def __init__(self, mean: Tensor, deviation: Tensor) -> None:
        self.mean, self.deviation = mean, deviation

    @classmethod
    def fit(cls, source: Source, episodes: Episodes) -> Scaling:
        """By the texts of the training episodes, or evenly chosen ones where there are many."""
        rows = np.unique(rows_of(episodes))
        points, places = source.table(rows[:: -(-len(rows) // FITTED)])
        known = gathered(points, places).double()
        deviation = known.std(dim=0, correction=0)
        deviation[deviation == 0] = 1.0
        return cls(known.mean(dim=0).float(), deviation.float())

    def __call__(self, points: Tensor) -> Tensor:
        mean, deviation = self.mean.to(points.device), self.deviation.to(points.device)
        return (points - mean) / deviation


def rows_of(episodes: Episodes, part: slice = slice(None)) -> NDArray[np.int32]:
    """All rows of some of the episodes: support, query, unlabelled, one after the other."""
    arrays = (episodes.support, episodes.query, episodes.unlabelled)
    return np.concatenate([array[part].ravel() for array in arrays if array is not None])


def places_of(
    episodes: Episodes, places: NDArray[Any], part: slice = slice(None)
) -> tuple[NDArray[Any], NDArray[Any], NDArray[Any] | None]:
    """`rows_of` taken apart again: support (E, C, K), query (E, C * Q) and unlabelled (E, U)."""
    support, query = episodes.support[part], episodes.query[part]
    first, second = support.size, support.size + query.size
    rest = places[second:].reshape(len(support), -1)
    return (
        places[:first].reshape(support.shape),
        places[first:second].reshape(len(query), -1),
        None if episodes.unlabelled is None else rest,
    )


def gathered(points: Tensor, places: NDArray[Any]) -> Tensor:
    """The points at the places, (..., dim); the way back adds up in one order, always the same."""
    chosen = torch.from_numpy(places.astype(np.int64)).to(points.device)
    return functional.embedding(chosen, points)


def targets(episodes: Episodes) -> NDArray[np.int64]:
    """The class of each query as its place in the episode (C * Q)."""
    return np.repeat(np.arange(episodes.ways), episodes.queries)
