"""Rows of whole sentences, and batches of a fixed number of tokens made of such rows.

A row is a run of neighbouring sentences of one document, so it is a slice of the text: it never
begins within a sentence and never crosses documents. `[CLS]` and `[SEP]` are put around it when a
batch is gathered. Rows of all lengths lie end to end in a batch, with no padding between them.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError

from .prepared import Text

SINGLE = 1
"""The length limit that stands for rows of one sentence."""
_SINGLE_LIMIT = 64
_SINGLE_TYPICAL = 28


@dataclass(frozen=True)
class Rows:
    """Slices of the text: where each row's first token is and how many it has."""

    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]
    full: NDArray[np.bool_]
    """Whether the row ended because the next sentence did not fit."""


@dataclass(frozen=True)
class Batches:
    """Fixed shapes for one epoch: `starts` (n, slots) and `bounds` (n, slots + 1).

    Slot s of batch b holds the row that begins at token `starts[b, s]` of the text, and lies at
    `bounds[b, s]` to `bounds[b, s + 1]` of the batch with `[CLS]` and `[SEP]`. A start of -1 marks
    `[PAD]` tokens, which fill the batch up; they come last and are no longer than a row may be.
    """

    starts: NDArray[np.int64]
    bounds: NDArray[np.int64]


def pack(
    text: Text, mixture: Mapping[int, float], ends: NDArray[np.bool_], longest: int, seed: int
) -> Rows:
    """Cut every document into rows, each with a length limit drawn from the mixture.

    `mixture` gives the part of the tokens for each limit, with `[CLS]` and `[SEP]` counted;
    `ends` says which sentences have final punctuation: only those, up to 64 tokens, are single
    rows. A sentence longer than the limit drawn is a row of its own; one longer than `longest`
    is left out, and no row reaches over it.
    """
    limits = np.array(list(mixture))
    typical = np.where(limits == SINGLE, _SINGLE_TYPICAL, limits)
    chances = np.array(list(mixture.values())) / typical
    rng = np.random.default_rng([seed, 7])
    draws = rng.choice(limits, size=len(text.lengths), p=chances / chances.sum()).tolist()
    starts: list[int] = []
    sizes: list[int] = []
    full: list[bool] = []
    begin = size = position = room = 0

    def close(for_want_of_room: bool) -> None:
        nonlocal size
        if size:
            starts.append(begin)
            sizes.append(size)
            full.append(for_want_of_room)
        size = 0

    sentences = zip(text.lengths.tolist(), text.first().tolist(), ends.tolist(), strict=True)
    for length, first, ended in sentences:
        if first:
            close(False)
        elif size + length > room:
            close(True)
        if length <= longest - 2:
            if not size:
                begin = position
                limit = draws[len(starts)]
                if limit == SINGLE:
                    proper = ended and length <= _SINGLE_LIMIT
                    limit = 0 if proper else _SINGLE_LIMIT
                room = min(limit, longest) - 2
            size += length
        position += length
    close(False)
    return Rows(np.array(starts, dtype=np.int64), np.array(sizes, dtype=np.int64), np.array(full))


def sentence_ends(
    text: Text, final: NDArray[np.int64], closing: NDArray[np.int64]
) -> NDArray[np.bool_]:
    """Which sentences end in one of the `final` tokens, perhaps with a `closing` one after it."""
    after = np.cumsum(text.lengths)
    last = text.tokens[after - 1]
    before = text.tokens[np.maximum(after - 2, 0)]
    ended = np.isin(last, closing) & np.isin(before, final) & (text.lengths > 1)
    return np.asarray(np.isin(last, final) | ended)


def batches(
    rows: Rows, tokens: int, average: int, longest: int, order: NDArray[np.int64]
) -> Batches:
    """Lay rows, in the given order, into batches; every row is in exactly one batch.

    A batch has slots for a quarter more rows than the `average`, a number fixed for all epochs,
    and for the `[PAD]` tokens.
    """
    if tokens < longest:
        raise InputError(f"batch_tokens: expected at least {longest}, got {tokens}")
    sizes = rows.sizes[order] + 2
    cumulated = np.concatenate([[0], np.cumsum(sizes)])
    slots = int(1.25 * average) + 8
    width = slots + tokens // longest + 1
    starts, bounds = [], []
    first = 0
    while first < len(order):
        last = int(np.searchsorted(cumulated, cumulated[first] + tokens, side="right")) - 1
        last = min(last, first + slots)
        used = cumulated[first : last + 1] - cumulated[first]
        padding = np.arange(used[-1] + longest, tokens + longest, longest).clip(max=tokens)
        bound = np.full(width + 1, tokens)
        bound[: len(used)] = used
        bound[len(used) : len(used) + len(padding)] = padding
        start = np.full(width, -1)
        start[: last - first] = rows.starts[order[first:last]]
        starts.append(start)
        bounds.append(bound)
        first = last
    return Batches(np.array(starts), np.array(bounds))


@dataclass(frozen=True)
class Packer:
    """Makes the batches of any epoch, each time with other rows in another order."""

    text: Text
    """Its sentences and documents; the tokens are not needed."""
    ends: NDArray[np.bool_]
    mixture: Mapping[int, float]
    tokens: int
    longest: int
    rows: int
    """Rows of a batch, on average."""
    seed: int

    def epoch(self, number: int) -> Batches:
        """All whole batches of an epoch: the last, unfilled one is left out."""
        rows = pack(self.text, self.mixture, self.ends, self.longest, self.seed + number)
        order = np.random.default_rng([self.seed, number]).permutation(len(rows.starts))
        made = batches(rows, self.tokens, self.rows, self.longest, order)
        if len(made.starts) < 2:
            raise InputError(f"expected a text of several batches of {self.tokens:,} tokens")
        return Batches(made.starts[:-1], made.bounds[:-1])

    def epochs(self, first: int, *, ahead: bool) -> Iterator[Batches]:
        """Epoch after epoch for ever; `ahead` makes the next in a process of its own meanwhile."""
        number = first
        if not ahead:
            while True:
                yield self.epoch(number)
                number += 1
        with ProcessPoolExecutor(1, get_context("spawn"), _keep, (self,)) as pool:
            coming: Future[Batches] = pool.submit(_kept_epoch, number)
            while True:
                made = coming.result()
                number += 1
                coming = pool.submit(_kept_epoch, number)
                yield made


_packer: Packer | None = None


def _keep(packer: Packer) -> None:
    global _packer
    _packer = packer


def _kept_epoch(number: int) -> Batches:
    if _packer is None:
        raise RuntimeError("the packer was not sent to the process")
    return _packer.epoch(number)
