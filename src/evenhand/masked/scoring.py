"""The scoring core: log probabilities of tokens at positions of token rows.

Equal rows are computed once, rows share a batch without padding, and the last layer and the head
are computed at the queried positions only. The numbers do not depend on the batch: they equal those
of a direct call of the model, up to rounding.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import groupby
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache, content_key
from evenhand.errors import InputError
from evenhand.masked.forward import ForwardPass, Stage, logits_of
from evenhand.masked.model import MaskedLM, Model

if TYPE_CHECKING:
    import torch

__all__ = [
    "MaskedPosition",
    "TokenScores",
    "TopTokens",
    "log_probs",
    "query_tokens",
    "target_log_probs",
    "top_k",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Progress = Callable[[int, int], None]

BATCH_TOKENS = 8192
"""Tokens per batch: larger batches save little time and cost memory."""
MAX_MASKED_TOKENS = 1 << 21
"""Token ids of masked rows that are held in memory at once."""
HEAD_ROWS = 512
"""Positions whose logits over the full vocabulary are held in memory at once."""


@dataclass(frozen=True, slots=True)
class MaskedPosition:
    """A position in a row of token ids, special tokens included."""

    ids: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True)
class TopTokens:
    """The k likeliest tokens at each position: ids and log probabilities (n, k), best first."""

    ids: Ints
    log_probs: Floats


@dataclass(frozen=True, slots=True)
class TokenScores:
    """Log probabilities of given tokens (n, tokens), and the likeliest tokens at each position."""

    log_probs: Floats
    top: TopTokens


def query_tokens(
    model: MaskedLM,
    positions: Sequence[MaskedPosition],
    *,
    tokens: Sequence[int],
    k: int,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> TokenScores:
    """Compute the log probability of each token and the k likeliest tokens, in one pass.

    With a `cache`, only missing values are computed, and stored batch by batch. A model without a
    `fingerprint` cannot be distinguished from others and is never cached. `progress` is called with
    the number of positions done, cached ones included, and the number of all positions.
    """
    columns = np.broadcast_to(np.array(tokens, dtype=np.int64), (len(positions), len(tokens)))
    numbers = _query(model, positions, columns, k, batch_tokens, progress, cache)
    values, best, ids = np.split(numbers, [len(tokens), len(tokens) + k], axis=1)
    return TokenScores(values, TopTokens(ids.astype(np.int64), best))


def log_probs(
    model: MaskedLM,
    positions: Sequence[MaskedPosition],
    tokens: Sequence[int],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Floats:
    """Compute the log probability of each token at each position (n, tokens)."""
    columns = np.broadcast_to(np.array(tokens, dtype=np.int64), (len(positions), len(tokens)))
    return _query(model, positions, columns, 0, batch_tokens, progress, cache)


def target_log_probs(
    model: MaskedLM,
    positions: Sequence[MaskedPosition],
    targets: Sequence[int],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Floats:
    """Compute the log probability of the target token of each position (n,)."""
    if len(positions) != len(targets):
        raise InputError(
            f"targets: expected one per position, got {len(targets)} for {len(positions)}"
        )
    columns = np.array(targets, dtype=np.int64)[:, None]
    return _query(model, positions, columns, 0, batch_tokens, progress, cache)[:, 0]


def top_k(
    model: MaskedLM,
    positions: Sequence[MaskedPosition],
    k: int,
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> TopTokens:
    """Find the k likeliest tokens at each position."""
    if k < 1:
        raise InputError(f"k: expected at least 1, got {k}")
    return query_tokens(
        model, positions, tokens=(), k=k, batch_tokens=batch_tokens, progress=progress, cache=cache
    ).top


def _query(
    model: MaskedLM,
    positions: Sequence[MaskedPosition],
    columns: Ints,
    k: int,
    batch_tokens: int,
    progress: Progress | None,
    cache: Cache | None,
) -> Floats:
    """Compute one row per query: log probabilities of its columns and of its k likeliest tokens,
    then the ids of these tokens.
    """
    for query in positions:
        if not 0 <= query.position < len(query.ids):
            raise InputError(f"position: expected 0 to {len(query.ids) - 1}, got {query.position}")
    result = np.empty((len(positions), columns.shape[1] + 2 * k))
    missing: Sequence[int] = range(len(positions))
    keys: list[bytes] = []
    fingerprint = None if cache is None else getattr(model, "fingerprint", None)
    if cache is not None and fingerprint is not None:
        keys = [
            content_key(
                fingerprint, query.position, k, len(query.ids), *query.ids, *tokens.tolist()
            )
            for query, tokens in zip(positions, columns, strict=True)
        ]
        missing = []
        for index, cached in enumerate(cache.get(keys)):
            if cached is None:
                missing.append(index)
            else:
                result[index] = cached
    done = len(positions) - len(missing)
    if progress is not None and done:
        progress(done, len(positions))
    for indices, values in _compute(model, positions, missing, columns, k, batch_tokens):
        result[indices] = values
        if cache is not None and keys:
            cache.store([keys[index] for index in indices], values)
        done += len(indices)
        if progress is not None:
            progress(done, len(positions))
    return result


def _compute(
    model: MaskedLM,
    positions: Sequence[MaskedPosition],
    missing: Sequence[int],
    columns: Ints,
    k: int,
    batch_tokens: int,
) -> Iterator[tuple[list[int], Floats]]:
    """Compute the missing queries batch by batch: their indices and values."""
    import torch

    stages = None
    for batch in _batches(positions, missing, batch_tokens):
        indices: list[int] = []
        values: list[Floats] = []
        with torch.inference_mode():
            if isinstance(model, Model):
                stages = stages or model.stages()
                logits = _logits(model, batch, stages)
            else:
                logits = _logits_of_any(model, batch)
            for part, part_logits in logits:
                repeats = [len(position.queries) for position in part]
                queries = [index for position in part for index in position.queries]
                indices += queries
                values.append(_extract(part_logits, repeats, columns[queries], k))
        yield indices, np.concatenate(values)


def _extract(logits: torch.Tensor, repeats: Sequence[int], columns: Ints, k: int) -> Floats:
    """Read the values from logits (positions, vocabulary); a position has `repeats` queries."""
    import torch

    size = logits.shape[1]
    if k > size:
        raise InputError(f"k: expected 1 to {size}, got {k}")
    if columns.size and not 0 <= columns.min() <= columns.max() < size:
        invalid = columns.min() if columns.min() < 0 else columns.max()
        raise InputError(f"tokens: expected 0 to {size - 1}, got {invalid}")
    rows = torch.arange(len(logits)).repeat_interleave(torch.tensor(repeats)).to(logits.device)
    tokens = torch.as_tensor(columns).to(logits.device)
    best = logits.topk(k, dim=1)
    values = torch.cat([logits[rows[:, None], tokens], best.values[rows]], dim=1).double()
    values -= logits.logsumexp(dim=1)[rows, None]
    return np.asarray(torch.cat([values, best.indices[rows]], dim=1).cpu().numpy())


@dataclass(slots=True)
class _BatchPosition:
    """A position in a row of the batch, and the queries for it."""

    row: int
    position: int
    queries: list[int]


@dataclass(frozen=True, slots=True)
class _Batch:
    """Distinct rows in order of length, and their queried positions."""

    rows: list[tuple[int, ...]]
    positions: list[_BatchPosition]

    @staticmethod
    def of(
        rows: list[tuple[int, ...]],
        queries_by_row: Mapping[tuple[int, ...], Mapping[int, list[int]]],
    ) -> _Batch:
        """The rows with their queried positions."""
        return _Batch(
            rows,
            [
                _BatchPosition(row, position, queries)
                for row, ids in enumerate(rows)
                for position, queries in queries_by_row[ids].items()
            ],
        )


Parts = Iterator[tuple[list[_BatchPosition], "torch.Tensor"]]


def _logits(model: Model, batch: _Batch, stages: Sequence[Stage] | None) -> Parts:
    """The logits of the batch, in parts that fit into memory."""
    forward = ForwardPass(model.network, batch.rows, stages)
    for start in range(0, len(batch.positions), HEAD_ROWS):
        part = batch.positions[start : start + HEAD_ROWS]
        hidden = forward.states_at(
            [position.row for position in part], [position.position for position in part]
        )
        yield part, logits_of(model.network, hidden).float()


def _logits_of_any(model: MaskedLM, batch: _Batch) -> Parts:
    """The logits of any `MaskedLM`, which takes rows of one length."""
    import torch

    for _, group in groupby(batch.positions, key=lambda position: len(batch.rows[position.row])):
        positions = list(group)
        for start in range(0, len(positions), HEAD_ROWS):
            part = positions[start : start + HEAD_ROWS]
            rows = [batch.rows[position.row] for position in part]
            yield (
                part,
                torch.as_tensor(model.logits(rows, [position.position for position in part])),
            )


def _batches(
    positions: Sequence[MaskedPosition], missing: Sequence[int], batch_tokens: int
) -> Iterator[_Batch]:
    """Group the missing queries by row and position into batches, rows in order of length.

    The batches of a resumed run are the remaining batches of the interrupted one, so it computes
    the same numbers to the last bit.
    """
    by_row: dict[tuple[int, ...], dict[int, list[int]]] = {}
    for index in missing:
        query = positions[index]
        by_row.setdefault(query.ids, {}).setdefault(query.position, []).append(index)
    rows: list[tuple[int, ...]] = []
    tokens = 0
    for ids in sorted(by_row, key=len):
        if rows and tokens + len(ids) > batch_tokens:
            yield _Batch.of(rows, by_row)
            rows, tokens = [], 0
        rows.append(ids)
        tokens += len(ids)
    if rows:
        yield _Batch.of(rows, by_row)


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of a text, and the positions of its tokens that are not special."""

    ids: tuple[int, ...]
    own: tuple[int, ...]


def tokens_of(model: MaskedLM, text: str) -> Tokens | None:
    """Tokenize a text; None if it is longer than the model accepts."""
    coded = model.tokenizer(text, return_special_tokens_mask=True, verbose=False)
    ids: list[int] = coded["input_ids"]
    if model.tokenizer.mask_token_id in ids:
        raise InputError(f"expected a text without a mask, got {text!r}")
    longest = model.longest if isinstance(model, Model) else model.tokenizer.model_max_length
    if len(ids) > longest:
        return None
    special: list[int] = coded["special_tokens_mask"]
    return Tokens(tuple(ids), tuple(i for i, added in enumerate(special) if not added))


def hidden_log_probs(
    model: MaskedLM,
    rows: Sequence[Sequence[int]],
    positions: Sequence[Sequence[int]],
    *,
    batch_tokens: int = BATCH_TOKENS,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> list[Floats]:
    """Compute the log probability of the token at each position of each row, each masked alone."""
    mask = model.tokenizer.mask_token_id
    counts = [len(values) for values in positions]
    total, done = sum(counts), 0
    answers: list[Floats] = []
    for part in _chunks([len(row) * n for row, n in zip(rows, counts, strict=True)]):
        queries, targets = [], []
        for index in part:
            row = tuple(rows[index])
            for position in positions[index]:
                queries.append(
                    MaskedPosition((*row[:position], mask, *row[position + 1 :]), position)
                )
                targets.append(row[position])
        before = done
        flat = target_log_probs(
            model,
            queries,
            targets,
            batch_tokens=batch_tokens,
            cache=cache,
            progress=None if progress is None else _offset_progress(progress, before, total),
        )
        done += len(queries)
        ends = np.cumsum([counts[index] for index in part])[:-1]
        answers += [np.asarray(values, dtype=float) for values in np.split(flat, ends)]
    return answers


def _offset_progress(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)


def _chunks(sizes: Sequence[int]) -> Iterator[list[int]]:
    """Group row numbers into chunks that fit into memory."""
    part: list[int] = []
    size = 0
    for index, length in enumerate(sizes):
        if part and size + length > MAX_MASKED_TOKENS:
            yield part
            part, size = [], 0
        part.append(index)
        size += length
    if part:
        yield part
