"""The scoring core: log probabilities of tokens at positions of token rows.

Equal rows are computed once, rows share a batch without padding, and the last layer and the head
are computed at the queried positions only. The numbers do not depend on the batch: they equal those
of a direct call of the model, up to rounding.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, pairwise
from typing import TYPE_CHECKING, Any, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from evenhand.cache import Cache, Progress, content_keys
from evenhand.errors import InputError
from evenhand.models.forward import ForwardPass, LayerStage, batches, logits_of, to_device
from evenhand.models.masked import MaskedLM, MaskedModel

if TYPE_CHECKING:
    import torch
    from tokenizers import Encoding

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
T = TypeVar("T")

BATCH_TOKENS = 8192
"""Tokens per batch on a CPU: larger batches save little time and cost memory."""
GPU_BATCH_TOKENS = 1 << 18
"""Tokens per batch on a GPU with enough memory."""
MAX_MASKED_TOKENS = 1 << 21
"""Token ids of masked rows that are held in memory at once."""
HEAD_ROWS = 512
"""MaskedPositions whose logits over the full vocabulary are held in memory at once, on a CPU."""
GPU_LOGITS = 1 << 28
"""Logits that are held in memory at once on a GPU."""


@dataclass(frozen=True, slots=True)
class MaskedPosition:
    """A position in a row of token ids, special tokens included."""

    ids: tuple[int, ...]
    position: int


@dataclass(frozen=True, slots=True, eq=False)
class MaskedPositions(Sequence[MaskedPosition]):
    """MaskedPositions in rows of token ids, as arrays.

    Parameters
    ----------
    ids : array
        The token ids of all rows, one row after the other.
    ends : array (n + 1)
        Where the rows begin and end in `ids`; the first number is 0.
    positions : array (n)
        One position in each row.

    """

    ids: NDArray[np.int32]
    ends: Ints
    positions: Ints

    @staticmethod
    def of(queries: Sequence[MaskedPosition]) -> MaskedPositions:
        """MaskedPositions as arrays."""
        if isinstance(queries, MaskedPositions):
            return queries
        return MaskedPositions.of_rows([q.ids for q in queries], [q.position for q in queries])

    @staticmethod
    def of_rows(rows: Sequence[Sequence[int]], positions: Sequence[int] | Ints) -> MaskedPositions:
        """One position in each row."""
        ends = np.zeros(len(rows) + 1, dtype=np.int64)
        np.cumsum([len(row) for row in rows], out=ends[1:])
        ids = np.fromiter(chain.from_iterable(rows), dtype=np.int32, count=int(ends[-1]))
        return MaskedPositions(ids, ends, np.asarray(positions, dtype=np.int64))

    @property
    def lengths(self) -> Ints:
        return np.diff(self.ends)

    def take(self, indices: Ints) -> MaskedPositions:
        """Some of the positions, in the order given."""
        lengths = self.lengths[indices]
        ends = np.concatenate([[0], np.cumsum(lengths)])
        tokens = np.arange(ends[-1]) + np.repeat(self.ends[indices] - ends[:-1], lengths)
        return MaskedPositions(self.ids[tokens], ends, self.positions[indices])

    def rows(self) -> list[bytes]:
        """The token ids of each row as bytes, which identify the row."""
        content = self.ids.tobytes()
        ends = (self.ids.itemsize * self.ends).tolist()
        return [content[begin:end] for begin, end in pairwise(ends)]

    def __len__(self) -> int:
        return len(self.positions)

    @overload
    def __getitem__(self, index: int) -> MaskedPosition: ...
    @overload
    def __getitem__(self, index: slice) -> MaskedPositions: ...
    def __getitem__(self, index: int | slice) -> MaskedPosition | MaskedPositions:
        if isinstance(index, slice):
            return self.take(np.arange(len(self))[index])
        row = range(len(self))[index]
        ids = self.ids[self.ends[row] : self.ends[row + 1]]
        return MaskedPosition(tuple(ids.tolist()), int(self.positions[row]))

    def check(self) -> None:
        """Check that the positions are in their rows."""
        outside = np.flatnonzero((self.positions < 0) | (self.positions >= self.lengths))
        if outside.size:
            first = outside[0]
            raise InputError(
                f"position: expected 0 to {self.lengths[first] - 1}, got {self.positions[first]}"
            )


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
    batch_tokens: int | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> TokenScores:
    """Compute the log probability of each token and the k likeliest tokens, in one pass.

    With a `cache`, only missing values are computed, and stored batch by batch. A model without a
    `fingerprint` cannot be distinguished from others and is never cached.
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
    batch_tokens: int | None = None,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> Floats:
    """Compute the log probability of each token at each position (n, tokens)."""
    columns = np.broadcast_to(np.array(tokens, dtype=np.int64), (len(positions), len(tokens)))
    return _query(model, positions, columns, 0, batch_tokens, progress, cache)


def target_log_probs(
    model: MaskedLM,
    positions: Sequence[MaskedPosition],
    targets: Sequence[int] | NDArray[np.int32],
    *,
    batch_tokens: int | None = None,
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
    batch_tokens: int | None = None,
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
    batch_tokens: int | None,
    progress: Progress | None,
    cache: Cache | None,
) -> Floats:
    """Compute one row per query: log probabilities of its columns and of its k likeliest tokens,
    then the ids of these tokens.
    """
    packed = MaskedPositions.of(positions)
    packed.check()
    result = np.empty((len(packed), columns.shape[1] + 2 * k))
    keys, missing = read_cached(model, cache, str(k), query_contents(packed, columns), result)
    done = len(packed) - len(missing)
    if progress is not None and done:
        progress(done, len(packed))

    def read(logits: torch.Tensor, rows: torch.Tensor, queries: Ints) -> torch.Tensor:
        return _extract(logits, rows, columns[queries], k)

    for indices, get in launched(model, compute(model, packed, missing, read, batch_tokens)):
        values = get()
        result[indices] = values
        if cache is not None and keys:
            cache.store([keys[index] for index in indices], values)
        done += len(indices)
        if progress is not None:
            progress(done, len(packed))
    return result


def query_contents(
    positions: MaskedPositions, columns: NDArray[np.integer[Any]]
) -> Iterator[bytes]:
    """The content of queries for the cache: their rows, positions and the tokens that are read."""
    width = columns.shape[1]
    numbers = np.empty((len(positions), 2 + width), dtype=np.int32)
    numbers[:, 0], numbers[:, 1], numbers[:, 2:] = width, positions.positions, columns
    heads = numbers.tobytes()
    step = numbers.itemsize * numbers.shape[1]
    for i, row in enumerate(positions.rows()):
        yield heads[i * step : (i + 1) * step] + row


def read_cached(
    model: object, cache: Cache | None, context: str, contents: Iterable[bytes], result: Floats
) -> tuple[list[bytes], Ints]:
    """Read what the cache has into the rows of `result`: the keys, and the numbers of missing rows.

    There are no keys without a cache or a fingerprint of the model.
    """
    fingerprint = None if cache is None else getattr(model, "fingerprint", None)
    if cache is None or fingerprint is None:
        return [], np.arange(len(result))
    keys = content_keys(f"{fingerprint} {context}", contents)
    entries = cache.get(keys)
    for index, entry in enumerate(entries):
        if entry is not None:
            result[index] = entry
    missing = [index for index, entry in enumerate(entries) if entry is None]
    return keys, np.array(missing, dtype=np.int64)


Read = Callable[["torch.Tensor", "torch.Tensor", Ints], "torch.Tensor"]
"""Reads numbers (n, width) from logits, at the rows of n queries, whose numbers are given too."""
Get = Callable[[], Floats]


def on_gpu(model: MaskedLM) -> bool:
    """Whether the model computes asynchronously."""
    return isinstance(model, MaskedModel) and model.device.type == "cuda"


def launched(model: MaskedLM, batches: Iterator[T]) -> Iterator[T]:
    """The batches in order; on a GPU each one's successor is started before it is given."""
    waiting: deque[T] = deque()
    for batch in batches:
        waiting.append(batch)
        if len(waiting) > on_gpu(model):
            yield waiting.popleft()
    yield from waiting


def compute(
    model: MaskedLM,
    positions: MaskedPositions,
    missing: Ints,
    read: Read,
    batch_tokens: int | None = None,
    stages: Sequence[LayerStage] | None = None,
) -> Iterator[tuple[Ints, Get]]:
    """Compute the missing queries batch by batch: their numbers, and a function to get the values.

    Equal rows are computed once. The batches of a resumed run are the remaining batches of the
    interrupted one, so it computes the same numbers to the last bit.
    """
    import torch

    if isinstance(model, MaskedModel):
        stages = stages or model.stages()
        batch_tokens = batch_tokens or _batch_tokens(model, positions.lengths[missing])
    for batch in _batches(positions, missing, batch_tokens or BATCH_TOKENS):
        indices: list[Ints] = []
        values: list[torch.Tensor] = []
        with torch.inference_mode():
            logits = (
                _logits(model, batch, stages)
                if isinstance(model, MaskedModel)
                else _logits_of_any(model, batch)
            )
            for start, part in logits:
                begin, end = np.searchsorted(batch.targets, (start, start + len(part)))
                queries = batch.queries[begin:end]
                rows = to_device(batch.targets[begin:end] - start, part.device, torch.long)
                values.append(read(part, rows, queries))
                indices.append(queries)
            get = _send(torch.cat(values))
        yield np.concatenate(indices), get


def _send(values: torch.Tensor) -> Get:
    """Start the copy of values to the host; the result waits for it."""
    import torch

    if values.device.type != "cuda":
        array = np.asarray(values.cpu().numpy())
        return lambda: array
    host = values.to("cpu", non_blocking=True)
    copied: Any = torch.cuda.Event()  # type: ignore[no-untyped-call]
    copied.record()

    def get() -> Floats:
        copied.synchronize()
        return np.asarray(host.numpy())

    return get


def _batch_tokens(model: MaskedModel, lengths: Ints) -> int:
    """Tokens per batch: on a GPU as many as its memory allows, in batches of about one size."""
    import torch

    if model.device.type != "cuda" or not len(lengths):
        return BATCH_TOKENS
    free, _ = torch.cuda.mem_get_info(model.device)
    free += torch.cuda.memory_reserved(model.device) - torch.cuda.memory_allocated(model.device)
    per_token = 32 * model.dim * model.dtype.itemsize
    most = int(min(GPU_BATCH_TOKENS, max(BATCH_TOKENS, free // 2 // per_token)))
    total, longest = int(lengths.sum()), int(lengths.max())
    count = -(-total // most)
    return min(most, -(-total // count) + longest)


def _extract(logits: torch.Tensor, rows: torch.Tensor, columns: Ints, k: int) -> torch.Tensor:
    """Read log probabilities of tokens and the k likeliest from logits (positions, vocabulary)."""
    import torch

    size = logits.shape[1]
    if k > size:
        raise InputError(f"k: expected 1 to {size}, got {k}")
    if columns.size and not 0 <= columns.min() <= columns.max() < size:
        invalid = columns.min() if columns.min() < 0 else columns.max()
        raise InputError(f"tokens: expected 0 to {size - 1}, got {invalid}")
    tokens = to_device(columns, logits.device, torch.long)
    best = logits.topk(k, dim=1)
    values = torch.cat([logits[rows[:, None], tokens], best.values[rows]], dim=1).double()
    values -= logits.logsumexp(dim=1)[rows, None]
    return torch.cat([values, best.indices[rows]], dim=1)


@dataclass(frozen=True, slots=True)
class _Batch:
    """Distinct rows in order of length, their queried positions, and the queries for these.

    `ids` and `lengths` are the rows; `rows` and `positions` the distinct positions, rows in order;
    `queries` are numbers of queries and `targets` the numbers of their positions, in order.
    """

    ids: NDArray[np.int32]
    lengths: Ints
    rows: Ints
    positions: Ints
    queries: Ints
    targets: Ints


Parts = Iterator[tuple[int, "torch.Tensor"]]
"""The number of the first position of a part of a batch, and the logits of the part."""


def _logits(model: MaskedModel, batch: _Batch, stages: Sequence[LayerStage] | None) -> Parts:
    """The logits of the batch, in parts that fit into memory."""
    forward = ForwardPass(model.core, batch.ids, batch.lengths, stages)
    step = HEAD_ROWS
    if model.device.type == "cuda":
        size = getattr(model.core.config, "vocab_size", len(model.tokenizer))
        step = max(step, GPU_LOGITS // size)
    everywhere = forward.states_at(batch.rows, batch.positions) if forward.is_packed else None
    for start in range(0, len(batch.rows), step):
        part = slice(start, start + step)
        hidden = (
            forward.states_at(batch.rows[part], batch.positions[part])
            if everywhere is None
            else everywhere[part]
        )
        yield start, logits_of(model.core, hidden).float()


def _logits_of_any(model: MaskedLM, batch: _Batch) -> Parts:
    """The logits of any `MaskedLM`, which takes rows of one length."""
    import torch

    ends = np.cumsum(batch.lengths)
    lengths = batch.lengths[batch.rows]
    begin = 0
    while begin < len(lengths):
        end = min(begin + HEAD_ROWS, int(np.searchsorted(lengths, lengths[begin], side="right")))
        tokens = (ends[batch.rows[begin:end]] - lengths[begin])[:, None] + np.arange(lengths[begin])
        rows = [tuple(row) for row in batch.ids[tokens].tolist()]
        yield begin, torch.as_tensor(model.logits(rows, batch.positions[begin:end].tolist()))
        begin = end


def _batches(positions: MaskedPositions, missing: Ints, batch_tokens: int) -> Iterator[_Batch]:
    """Group the missing queries by row and position into batches, rows in order of length."""
    if not len(missing):
        return
    queries = positions.take(missing)
    numbers: dict[bytes, int] = {}
    row_of = np.array([numbers.setdefault(row, len(numbers)) for row in queries.rows()])
    first = np.empty(len(numbers), dtype=np.int64)
    first[row_of[::-1]] = np.arange(len(row_of))[::-1]
    by_length = np.argsort(queries.lengths[first], kind="stable")
    rank = np.empty_like(by_length)
    rank[by_length] = np.arange(len(by_length))
    lengths = queries.lengths[first][by_length]
    # the distinct positions of each row, in the order in which they are queried
    longest = int(lengths[-1])
    keys, where, target = np.unique(
        rank[row_of] * longest + queries.positions, return_index=True, return_inverse=True
    )
    order = np.lexsort((where, keys // longest))
    place = np.empty_like(order)
    place[order] = np.arange(len(order))
    rows, columns = np.divmod(keys[order], longest)
    by_target = np.argsort(place[target], kind="stable")
    targets = place[target][by_target]
    ends = np.cumsum(lengths)
    begin = 0
    while begin < len(lengths):
        before = int(ends[begin - 1]) if begin else 0
        end = max(begin + 1, int(np.searchsorted(ends, before + batch_tokens, side="right")))
        low, high = np.searchsorted(rows, (begin, end))
        of_batch = slice(*np.searchsorted(targets, (low, high)))
        yield _Batch(
            queries.take(first[by_length[begin:end]]).ids,
            lengths[begin:end],
            rows[low:high] - begin,
            columns[low:high],
            missing[by_target[of_batch]],
            targets[of_batch] - low,
        )
        begin = end


@dataclass(frozen=True, slots=True)
class Tokens:
    """The token ids of a text, and the positions of its tokens that are not special."""

    ids: tuple[int, ...]
    own: tuple[int, ...]


def encode(model: MaskedLM, texts: Sequence[str]) -> list[Encoding]:
    """The encodings of the tokenizer: ids, offsets and word ids, special tokens included."""
    return list(_whole(model).encode_batch(list(texts)))


def encode_ids(model: MaskedLM, texts: Sequence[str]) -> list[list[int]]:
    """The token ids of texts, special ones included."""
    backend = _whole(model)
    encode_batch = getattr(backend, "encode_batch_fast", backend.encode_batch)
    return [coded.ids for coded in encode_batch(list(texts))]


def _whole(model: MaskedLM) -> Any:
    """The tokenizer, which takes texts as they are: neither cut nor padded."""
    backend = model.tokenizer.backend_tokenizer
    if backend.truncation is not None:
        backend.no_truncation()
    if backend.padding is not None:
        backend.no_padding()
    return backend


def coded_tokens(model: MaskedLM, text: str, coded: Encoding) -> Tokens | None:
    """The tokens of an encoded text; None if it is longer than the model accepts."""
    ids: list[int] = coded.ids
    if model.tokenizer.mask_token_id in ids:
        raise InputError(f"expected a text without a mask, got {text!r}")
    longest = model.longest if isinstance(model, MaskedModel) else model.tokenizer.model_max_length
    if len(ids) > longest:
        return None
    special: list[int] = coded.special_tokens_mask
    return Tokens(tuple(ids), tuple(i for i, added in enumerate(special) if not added))


def hidden_log_probs(
    model: MaskedLM,
    rows: Sequence[Sequence[int]],
    positions: Sequence[Sequence[int]],
    *,
    progress: Progress | None = None,
    cache: Cache | None = None,
) -> list[Floats]:
    """Compute the log probability of the token at each position of each row, each masked alone."""
    mask = model.tokenizer.mask_token_id
    counts = np.array([len(values) for values in positions], dtype=np.int64)
    lengths = np.array([len(row) for row in rows], dtype=np.int64)
    total, done = int(counts.sum()), 0
    answers: list[Floats] = []
    for part in batches((lengths * counts).tolist(), MAX_MASKED_TOKENS):
        own, chosen = counts[part], positions[part]
        columns = np.fromiter(chain.from_iterable(chosen), np.int64)
        shown = MaskedPositions.of_rows(rows[part], np.zeros_like(own))
        repeated = shown.take(np.repeat(np.arange(len(own)), own))
        queries = MaskedPositions(repeated.ids, repeated.ends, columns)
        at = queries.ends[:-1] + columns
        targets = queries.ids[at]
        queries.ids[at] = mask
        flat = target_log_probs(
            model,
            queries,
            targets,
            cache=cache,
            progress=None if progress is None else _offset_progress(progress, done, total),
        )
        done += len(queries)
        answers += np.split(flat, np.cumsum(own)[:-1])
    return answers


def _offset_progress(progress: Progress, before: int, total: int) -> Progress:
    return lambda done, _: progress(before + done, total)
