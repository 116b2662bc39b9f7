"""Documents as rows of token ids no longer than a block, and rows as full batches."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.text.tokens import sentences

if TYPE_CHECKING:
    import torch
    from transformers import PreTrainedTokenizerFast

__all__ = ["Batch", "Rows", "batch_of", "batches", "made_rows"]

Ids = NDArray[np.int64]
WINDOW = 16
"""Batches whose rows are sorted by length together: what is padded is little, the order random."""


@dataclass(frozen=True, slots=True)
class Rows:
    """Rows of token ids, special tokens included, and how many of these begin and end each."""

    ids: list[Ids]
    before: int
    after: int

    @property
    def tokens(self) -> int:
        """All tokens, special ones included: what the model computes."""
        return sum(map(len, self.ids))


@dataclass(frozen=True, slots=True)
class Batch:
    """Rows side by side: ids and which of them are there (n, longest), which may be hidden."""

    ids: torch.Tensor
    there: torch.Tensor
    ordinary: torch.Tensor


def made_rows(tokenizer: PreTrainedTokenizerFast, texts: Sequence[str], block: int) -> Rows:
    """Each document as one row; one longer than the block as several, cut between sentences.

    Rows never cross documents. A sentence longer than the block is cut where the block is full.
    """
    coded: Any = tokenizer(list(texts), verbose=False)["input_ids"] if texts else []
    before, after = _around(tokenizer)
    room = block - before - after
    rows: list[Ids] = []
    for text, ids in zip(texts, coded, strict=True):
        own = ids[before : len(ids) - after]
        if len(own) <= room:
            cuts = [(0, len(own))] if own else []
        else:
            cuts = list(_cuts(_sentence_ends(tokenizer, text, before), len(own), room))
        first, last = ids[:before], ids[len(ids) - after :]
        rows.extend(
            np.array([*first, *own[begin:end], *last], dtype=np.int64) for begin, end in cuts
        )
    return Rows(rows, before, after)


def batches(lengths: Sequence[int], tokens: int, rng: np.random.Generator) -> list[list[int]]:
    """The rows in random order as batches of like lengths, of at most so many padded tokens.

    >>> made = batches([4, 9, 4, 6], 10, np.random.default_rng(0))
    >>> sorted(sorted(batch) for batch in made)
    [[0, 2], [1], [3]]
    """
    order = rng.permutation(len(lengths)).tolist()
    made: list[list[int]] = []
    for window in _windows(order, lengths, WINDOW * tokens):
        part: list[list[int]] = []
        for row in sorted(window, key=lengths.__getitem__, reverse=True):
            if part and lengths[part[-1][0]] * (len(part[-1]) + 1) <= tokens:
                part[-1].append(row)
            else:
                part.append([row])
        made.extend(part[place] for place in rng.permutation(len(part)).tolist())
    return made


def batch_of(rows: Rows, chosen: Sequence[int], padding: int) -> Batch:
    """The chosen rows as tensors."""
    import torch

    picked = [rows.ids[row] for row in chosen]
    longest = max(map(len, picked))
    ids = np.full((len(picked), longest), padding, dtype=np.int64)
    there = np.zeros((len(picked), longest), dtype=np.int64)
    ordinary = np.zeros((len(picked), longest), dtype=bool)
    for place, row in enumerate(picked):
        ids[place, : len(row)] = row
        there[place, : len(row)] = 1
        ordinary[place, rows.before : len(row) - rows.after] = True
    return Batch(torch.from_numpy(ids), torch.from_numpy(there), torch.from_numpy(ordinary))


def _around(tokenizer: PreTrainedTokenizerFast) -> tuple[int, int]:
    """How many special tokens the tokenizer puts before and after a text."""
    added: Any = tokenizer("a", return_special_tokens_mask=True)["special_tokens_mask"]
    before = added.index(0)
    return before, added[::-1].index(0)


def _sentence_ends(tokenizer: PreTrainedTokenizerFast, text: str, before: int) -> list[int]:
    """After how many of the text's own tokens each sentence ends."""
    coded: Any = tokenizer(text, return_offsets_mapping=True, verbose=False)
    offsets: list[tuple[int, int]] = coded["offset_mapping"][before:]
    ends = [end for _, end in sentences(text)]
    places: list[int] = []
    place = 0
    for end in ends:
        while place < len(offsets) and offsets[place][1] <= end and any(offsets[place]):
            place += 1
        places.append(place)
    return places


def _cuts(ends: Sequence[int], total: int, room: int) -> Iterator[tuple[int, int]]:
    """Spans of at most `room` tokens that end with a sentence wherever one does in reach.

    >>> list(_cuts([3, 5, 9, 20], 20, 6))
    [(0, 5), (5, 9), (9, 15), (15, 20)]
    """
    begin = 0
    while begin < total:
        full = begin + room
        last = bisect_right(ends, full) - 1
        end = min(ends[last] if last >= 0 and ends[last] > begin else full, total)
        yield begin, end
        begin = end


def _windows(order: Sequence[int], lengths: Sequence[int], tokens: int) -> Iterator[list[int]]:
    window: list[int] = []
    held = 0
    for row in order:
        window.append(row)
        held += lengths[row]
        if held >= tokens:
            yield window
            window, held = [], 0
    if window:
        yield window
