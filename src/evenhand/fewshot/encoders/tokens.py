"""Texts as rows of token ids, and which tokens of a row a text's features are the mean of."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.encoders import POOLINGS
from evenhand.masked.model import Model
from evenhand.text.corpus.compression import SURROGATE

__all__ = ["Group", "Rows", "check_rows", "pieces"]

BUCKETS = {"cuda": 8, "mps": 8}
"""So many groups of rows where a device prefers few and large calls."""


class Rows:
    """The texts a model reads, `limit` tokens of each at most, and how they are pooled.

    `mean` is over the tokens of the text, special tokens apart; `cls` takes the first token. The
    pooler of a model is not used: a masked language model has none, and what a library puts there
    instead is random.
    """

    def __init__(
        self, model: Model, texts: Sequence[str], *, pooling: str, limit: int | None
    ) -> None:
        if pooling not in POOLINGS:
            raise UnknownNameError("pooling", pooling, POOLINGS)
        if limit is not None and not 3 <= limit <= model.longest:
            raise InputError(f"limit: expected 3 to {model.longest} tokens, got {limit}")
        self.pooling = pooling
        self.limit = model.longest if limit is None else limit
        given = [SURROGATE.sub("\ufffd", text) for text in texts]
        coded: Any = model.tokenizer(given, truncation=True, max_length=self.limit) if given else {}
        self.ids: list[list[int]] = coded.get("input_ids", [])
        self.lengths: NDArray[np.int64] = np.array([len(row) for row in self.ids], dtype=np.int64)
        tokenizer = model.tokenizer
        self._special = [i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id]
        self._padding = tokenizer.pad_token_id or 0

    def by_length(self, chosen: NDArray[np.int64]) -> NDArray[np.int64]:
        """The chosen rows from the shortest to the longest."""
        return chosen[np.argsort(self.lengths[chosen], kind="stable")]

    def groups(self, ordered: NDArray[np.int64], device: torch.device) -> list[Group]:
        """Rows in order of their length as tensors: one for each length, or on a GPU, which
        prefers fewer and larger calls, for some like lengths, padded.
        """
        rows = [self.ids[row] for row in ordered.tolist()]
        buckets = BUCKETS.get(device.type)
        if buckets is None:
            return [self._group(list(same), device) for _, same in groupby(rows, key=len)]
        step = max(1, -(-len(rows) // buckets))
        return [self._group(rows[i : i + step], device) for i in range(0, len(rows), step)]

    def renumber(self, vocabulary: NDArray[np.int64]) -> None:
        """Count ids among those of the vocabulary, which has all of them, in order."""
        place = {piece: number for number, piece in enumerate(vocabulary.tolist())}
        self.ids = [[place[piece] for piece in row] for row in self.ids]
        self._special = [place[piece] for piece in self._special if piece in place]
        self._padding = place[self._padding]

    def _group(self, rows: list[list[int]], device: torch.device) -> Group:
        """Rows from the shortest to the longest, padded to the longest."""
        longest = len(rows[-1])
        ids = torch.tensor([[*row, *[self._padding] * (longest - len(row))] for row in rows])
        if len(rows[0]) == longest:
            return Group(ids.to(device), self._pooled(ids).to(device))
        lengths = torch.tensor([len(row) for row in rows])
        there = torch.arange(longest) < lengths[:, None]
        # padding is a special token: it is pooled nowhere, but where a text has nothing else
        kept = self._pooled(ids) & there
        return Group(ids.to(device), kept.to(device), there.to(device))

    def _pooled(self, ids: torch.Tensor) -> torch.Tensor:
        if self.pooling == "cls":
            kept = torch.zeros_like(ids, dtype=torch.bool)
            kept[:, 0] = True
            return kept
        kept = ~torch.isin(ids, torch.tensor(self._special))
        return kept | ~kept.any(dim=1, keepdim=True)  # an empty text has its special tokens alone


@dataclass(frozen=True, slots=True)
class Group:
    """Rows (n, length): their ids, which of these are pooled, and which are there at all, None
    where none is padding.
    """

    ids: torch.Tensor
    kept: torch.Tensor
    there: torch.Tensor | None = None


def check_rows(rows: NDArray[Any], count: int) -> None:
    """Raise an error where rows are not those of so many texts."""
    if rows.size and not 0 <= rows.min() <= rows.max() < count:
        raise InputError(
            f"episodes: expected rows 0 to {count - 1}, those of the texts, "
            f"got {rows.min()} to {rows.max()}"
        )


def pieces(
    lengths: NDArray[np.int64], ordered: NDArray[np.int64], tokens: int
) -> Iterator[NDArray[np.int64]]:
    """Rows one after the other in pieces of at most so many tokens, or of a single row.

    >>> [piece.tolist() for piece in pieces(np.array([5, 2, 9, 3]), np.array([1, 3, 0, 2]), 10)]
    [[1, 3, 0], [2]]
    """
    begin = held = 0
    for place, length in enumerate(lengths[ordered].tolist()):
        if place > begin and held + length > tokens:
            yield ordered[begin:place]
            begin, held = place, 0
        held += length
    if begin < len(ordered):
        yield ordered[begin:]
