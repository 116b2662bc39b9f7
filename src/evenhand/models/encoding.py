"""Texts to vectors with a frozen encoder, or one pass of it through which gradients flow.

The tokens of all rows lie one after the other, so that nothing is padded: everything except
attention works on single tokens, and attention on groups of rows of one length, or on a GPU of
similar lengths, which are padded for attention only. After the attention of the last layer only the
tokens that are pooled are computed. Models of unknown families run as they are, group by group.

`encode_texts` encodes each text once and can store the vectors in a cache.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional

from evenhand.cache import Cache, content_key
from evenhand.errors import InputError, UnknownNameError
from evenhand.files import own_entries, replace_file
from evenhand.models.forward import Layer, attend_packed, embed_tokens, is_packed, layers_of
from evenhand.models.forward import batches as consecutive
from evenhand.text.corpus.compression import SURROGATE

if TYPE_CHECKING:
    from transformers import PreTrainedModel

    from evenhand.models.base import LoadedModel

TOKENS = {"cpu": 4096, "cuda": 131_072}
"""Tokens that go through a frozen model at once, on a CPU as many as fit its caches."""
STORED = {"cpu": 16, "cuda": 2}
"""The number of passes that are stored together."""
BUCKETS = {"cuda": 8, "mps": 8}
"""The number of groups of rows where a device prefers few and large calls."""
POOLINGS = ("cls", "max", "mean", "mean_sqrt", "weighted_mean", "last")
"""The first token, the maximum, the mean, the sum over the root of the number, the mean weighted by
position, the last token. Several, joined by +, are concatenated in this order."""

Indices = NDArray[np.int64]
StepProgress: TypeAlias = Callable[[str, int, int, str], None]
"""Called with the name of the step, the amount done, the total, and a text."""


# tokens


class TokenRows:
    """Texts as rows of token ids, at most `limit` tokens each, and how they are pooled.

    Special tokens are not pooled unless `special`, but for the first token by `cls`; nor is the
    token before a text that a causal model reads. The pooler of a model is not used: a masked
    language model has none, and what a library puts there instead is random.
    """

    def __init__(
        self,
        model: LoadedModel,
        texts: Sequence[str],
        *,
        pooling: str,
        limit: int | None,
        special: bool = False,
    ) -> None:
        self.modes = tuple(pooling.split("+"))
        for mode in self.modes:
            if mode not in POOLINGS:
                raise UnknownNameError("pooling", mode, POOLINGS)
        if limit is not None and not 3 <= limit <= model.longest:
            raise InputError(f"limit: expected 3 to {model.longest} tokens, got {limit}")
        self.limit = model.longest if limit is None else limit
        tokenizer = model.tokenizer
        clean = [SURROGATE.sub("\ufffd", text) for text in texts]
        coded = self._tokenize(tokenizer, clean, model.before)
        self.lengths: Indices = np.array([len(row) for row in coded], dtype=np.int64)
        self.starts: Indices = np.cumsum(self.lengths) - self.lengths
        self.tokens: Indices = np.fromiter(
            chain.from_iterable(coded), dtype=np.int64, count=int(self.lengths.sum())
        )
        own = [i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id]
        own = [] if special or model.before is not None else own
        self.pooled = self._find_pooled(own, len(model.before or ()))
        self._padding = int(tokenizer.pad_token_id or 0)

    def __len__(self) -> int:
        return len(self.lengths)

    def _tokenize(
        self, tokenizer: Any, texts: list[str], before: tuple[int, ...] | None
    ) -> list[list[int]]:
        """The ids of each text; in one call, so that all cores take part.

        A text without a token is an unknown one.
        """
        if not texts:
            return []
        backend = tokenizer.backend_tokenizer
        side = getattr(tokenizer, "truncation_side", "right")
        first, unknown = list(before or ()), tokenizer.unk_token_id or 0
        backend.enable_truncation(self.limit - len(first), direction=side)
        backend.no_padding()
        encode_batch = getattr(backend, "encode_batch_fast", backend.encode_batch)
        coded = encode_batch(texts, add_special_tokens=before is None)
        backend.no_truncation()
        return [[*first, *row.ids] or [unknown] for row in coded]

    def _find_pooled(self, special: list[int], before: int) -> NDArray[np.bool_]:
        """The mask of pooled tokens: neither special ones nor so many at the beginning."""
        if self.modes == ("cls",):
            pooled = np.zeros(len(self.tokens), dtype=bool)
            pooled[self.starts] = True
            return pooled
        pooled = ~np.isin(self.tokens, special)
        for offset in range(before):
            pooled[self.starts + offset] = False
        if len(self):  # an empty text has only special tokens
            empty = np.add.reduceat(pooled.astype(np.int64), self.starts) == 0
            pooled |= np.repeat(empty, self.lengths)
        return pooled

    def by_length(self, chosen: Indices) -> Indices:
        """The chosen rows from the shortest to the longest."""
        return chosen[np.argsort(self.lengths[chosen], kind="stable")]

    def select(self, ordered: Indices) -> Indices:
        """The token ids of the rows, one row after the other."""
        return self.tokens[self._tokens_of(ordered)]

    def _tokens_of(self, ordered: Indices) -> Indices:
        """The numbers of the tokens of these rows."""
        lengths = self.lengths[ordered]
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        return np.asarray(np.repeat(self.starts[ordered], lengths) + within)

    def pack(self, ordered: Indices, device: torch.device) -> Packed:
        """Rows in order of length as tensors: one group per length or, on a GPU, which prefers
        fewer and larger calls, one per range of lengths, padded.
        """
        lengths = self.lengths[ordered]
        buckets = BUCKETS.get(device.type)
        if buckets is None:
            starts = np.flatnonzero(np.diff(lengths, prepend=-1))
        else:
            starts = np.arange(0, len(ordered), max(1, -(-len(ordered) // buckets)))
        ends = np.append(starts[1:], len(ordered))
        spans = [
            self._span(ordered[first:end], device)
            for first, end in zip(starts.tolist(), ends.tolist(), strict=True)
        ]
        pooled = self.pooled[self._tokens_of(ordered)]
        owner = np.repeat(np.arange(len(ordered)), lengths)[pooled]
        counts = np.bincount(owner, minlength=len(ordered))
        return Packed(
            self.modes,
            spans,
            _send(np.flatnonzero(pooled), device),
            _send(owner, device),
            _send(counts, device),
            _send(np.append(0, np.cumsum(lengths)).astype(np.int32), device),
            int(lengths.max(initial=1)),
        )

    def renumber(self, vocabulary: Indices) -> None:
        """Replace ids by their indices in the vocabulary, which has all of them, in order."""
        self.tokens = np.searchsorted(vocabulary, self.tokens)
        self._padding = int(np.searchsorted(vocabulary, self._padding))

    def _span(self, rows: Indices, device: torch.device) -> Span:
        """Rows from the shortest to the longest, padded to the longest."""
        lengths, longest = self.lengths[rows], int(self.lengths[rows[-1]])
        offsets = np.arange(longest)
        index = self.starts[rows, None] + offsets
        if lengths[0] == longest:
            return Span(_send(self.tokens[index], device), index.size)
        present = offsets < lengths[:, None]
        ids = np.full(index.shape, self._padding, dtype=np.int64)
        ids[present] = self.tokens[index[present]]
        return Span(
            _send(ids, device),
            int(lengths.sum()),
            _send(np.flatnonzero(present), device),
            _send(present, device),
        )


def _send(array: NDArray[Any], device: torch.device) -> Tensor:
    return torch.from_numpy(array).to(device, non_blocking=True)


@dataclass(frozen=True, slots=True)
class Span:
    """Rows (n, length): their ids, the number of their tokens and, where some are padded, the
    positions of the actual tokens and which are (n, length).
    """

    ids: Tensor
    tokens: int
    positions: Tensor | None = None
    present: Tensor | None = None

    def select(self, values: Tensor) -> Tensor:
        """The values of actual tokens among those of all positions."""
        return values if self.positions is None else values.index_select(0, self.positions)


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows as spans, and how they are pooled. Of all their tokens: which are pooled, the row of
    each, and how many it has; where the rows begin and end, and the length of the longest.

    All is computed before the pass, which therefore never has to wait for the device.
    """

    modes: tuple[str, ...]
    spans: list[Span]
    pooled: Tensor
    owner: Tensor
    counts: Tensor
    ends: Tensor
    longest: int


def batches(lengths: Indices, ordered: Indices, tokens: int) -> Iterator[Indices]:
    """Consecutive rows in batches of at most `tokens` tokens, or of a single row.

    >>> [batch.tolist() for batch in batches(np.array([5, 2, 9, 3]), np.array([1, 3, 0, 2]), 10)]
    [[1, 3, 0], [2]]
    """
    for batch in consecutive(lengths[ordered].tolist(), tokens):
        yield ordered[batch]


# one pass, through which gradients flow


def forward_packed(network: PreTrainedModel, rows: Packed) -> Tensor:
    """The pooled last states (n, width) of the rows."""
    layers = layers_of(network)
    if layers is None:
        states = [
            span.select(
                network.base_model(
                    input_ids=span.ids, attention_mask=span.present
                ).last_hidden_state.flatten(0, 1)
            )
            for span in rows.spans
        ]
        return pool(torch.cat(states).index_select(0, rows.pooled), rows)
    embedded = [span.select(embed_tokens(network, span.ids).flatten(0, 1)) for span in rows.spans]
    tokens = torch.cat(embedded)
    for number, layer in enumerate(layers, start=1):
        attended = _attention(layer, tokens, rows)
        if number == len(layers):
            tokens = tokens.index_select(0, rows.pooled)
            attended = attended.index_select(0, rows.pooled)
        middle = layer.norm(tokens + layer.out(attended))
        tokens = layer.last_norm(middle + layer.down(layer.activation(layer.up(middle))))
    return pool(tokens, rows)


def _attention(layer: Layer, tokens: Tensor, packed: Packed) -> Tensor:
    """The attention output of each token (tokens, width), before the layer's `out`."""
    three = (layer.query, layer.key, layer.value)
    weight = torch.cat([linear.weight for linear in three])
    joint = functional.linear(tokens, weight, torch.cat([linear.bias for linear in three]))
    if is_packed(joint.device, joint.dtype, layer):
        query, key, value = joint.view(len(joint), 3, layer.heads, -1).unbind(1)
        ends, longest = packed.ends, packed.longest
        mixed = attend_packed(query, key, value, ends, ends, longest, longest)
        return mixed.reshape(len(joint), -1)
    parts = []
    # split, not sliced: in the backward pass the parts are then concatenated once
    sizes = [span.tokens for span in packed.spans]
    for span, own in zip(packed.spans, torch.split(joint, sizes), strict=True):
        rows, length = span.ids.shape
        mask = None
        if span.positions is not None and span.present is not None:
            room = own.new_zeros(rows * length, own.shape[1])
            own = room.index_copy(0, span.positions, own)
            mask = span.present[:, None, None, :]
        shaped = own.view(rows, length, 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
        query, key, value = shaped.unbind()
        mixed = functional.scaled_dot_product_attention(query, key, value, attn_mask=mask)
        parts.append(span.select(mixed.transpose(1, 2).reshape(rows * length, -1)))
    return torch.cat(parts)


def pool(tokens: Tensor, rows: Packed) -> Tensor:
    """The vector of each row from its pooled tokens, which lie one after the other."""
    dtype = torch.promote_types(tokens.dtype, torch.float32)
    tokens, counts = tokens.to(dtype), rows.counts[:, None]
    parts = [_pool_by(mode, tokens, rows.owner, counts) for mode in rows.modes]
    return parts[0] if len(parts) == 1 else torch.cat(parts, dim=1)


def _pool_by(mode: str, tokens: Tensor, owner: Tensor, counts: Tensor) -> Tensor:
    if mode in ("cls", "last"):
        ends = torch.cumsum(counts[:, 0], dim=0)
        return tokens.index_select(0, ends - (counts[:, 0] if mode == "cls" else 1))
    if mode == "max":
        lowest = tokens.new_full((len(counts), tokens.shape[1]), -torch.inf)
        return lowest.scatter_reduce(0, owner[:, None].expand_as(tokens), tokens, "amax")
    if mode == "weighted_mean":
        first = torch.cumsum(counts[:, 0], dim=0) - counts[:, 0]
        numbers = torch.arange(1, len(owner) + 1, device=owner.device) - first[owner]
        tokens, counts = tokens * numbers[:, None], counts * (counts + 1) / 2
    total = torch.zeros(len(counts), tokens.shape[1], device=tokens.device, dtype=tokens.dtype)
    total = total.index_add(0, owner, tokens)
    return total / (counts.sqrt() if mode == "mean_sqrt" else counts)


# frozen


def encode_texts(
    model: LoadedModel,
    texts: Sequence[str],
    *,
    pooling: str = "mean",
    limit: int | None = None,
    special: bool = False,
    cache: Cache | str | os.PathLike[str] | None = None,
    progress: StepProgress | None = None,
) -> NDArray[np.float32]:
    """The vectors (n, dim) of texts by a model that stays as it is, in the order of the texts.

    Parameters
    ----------
    model : LoadedModel
    texts : sequence of str
    pooling : str
        One of `POOLINGS`, or several joined by +.
    limit : int, optional
        The longest text in tokens; by default that of the model.
    special : bool
        Whether special tokens are pooled too, as sentence encoders are trained.
    cache : Cache or path, optional
        Stores vectors by text, model content, pooling and limit.
    progress : callable, optional
        Called with ("encoding", tokens done, tokens, text).

    """
    rows = TokenRows(model, [], pooling=pooling, limit=limit)  # checks the settings
    context = f"features {model.fingerprint} {pooling} {rows.limit}{' special' * special}"
    keys = [content_key(context, text=text) for text in texts]

    def tokenize(chosen: Sequence[str]) -> TokenRows:
        return TokenRows(model, chosen, pooling=pooling, limit=limit, special=special)

    if cache is None:
        first = {key: position for position, key in enumerate(keys)}
        rows = tokenize([texts[position] for position in first.values()])
        features = np.empty((len(first), model.dim * len(rows.modes)), dtype=np.float32)
        for chosen, encoded in _encode_rows(model, rows, progress=progress):
            features[chosen] = encoded
        order = {key: number for number, key in enumerate(first)}
        return features[[order[key] for key in keys]]
    stored = cache if isinstance(cache, Cache) else Cache(cache)
    if stored.missing(keys):
        with stored.lock():
            _encode_missing(stored, keys, model, texts, tokenize, progress)
    if not keys:
        return np.empty((0, model.dim * len(rows.modes)), dtype=np.float32)
    return np.ascontiguousarray(stored.stack(keys), dtype=np.float32)


def _encode_rows(
    model: LoadedModel,
    rows: TokenRows,
    *,
    skip: Callable[[Indices], bool] = lambda batch: False,  # noqa: ARG005
    progress: StepProgress | None = None,
) -> Iterator[tuple[Indices, NDArray[np.float32]]]:
    """The features of all rows, batch by batch, from the shortest rows to the longest.

    The batches depend on the rows only; those to skip are not yielded.
    """
    total = int(rows.lengths.sum())
    tokens = count = 0
    kind = "cpu" if model.device.type == "cpu" else "cuda"
    ordered = rows.by_length(np.arange(len(rows)))
    for batch in batches(rows.lengths, ordered, TOKENS[kind] * STORED[kind]):
        if not skip(batch):
            width = model.dim * len(rows.modes)
            features = np.empty((len(batch), width), dtype=np.float32)
            parts = list(batches(rows.lengths, batch, TOKENS[kind]))
            ends = np.cumsum([len(part) for part in parts]).tolist()
            waiting: list[tuple[slice, Tensor]] = []
            for part, end in zip(parts, ends, strict=True):
                with torch.inference_mode():
                    states = forward_packed(model.network, rows.pack(part, model.device))
                waiting.append((slice(end - len(part), end), states))
                if len(waiting) > 1 or kind == "cpu":  # a GPU is one pass ahead of the copies
                    place, states = waiting.pop(0)
                    features[place] = states.cpu().numpy()
                if progress is not None:
                    done = tokens + int(rows.lengths[batch[:end]].sum())
                    text = f"{count + end:,} of {len(ordered):,} texts"
                    progress("encoding", done, total, text)
            for place, states in waiting:
                features[place] = states.cpu().numpy()
            yield batch, features
        tokens += int(rows.lengths[batch].sum())
        count += len(batch)


def _encode_missing(
    stored: Cache,
    keys: Sequence[bytes],
    model: LoadedModel,
    texts: Sequence[str],
    tokenize: Callable[[Sequence[str]], TokenRows],
    progress: StepProgress | None,
) -> None:
    """Encode what the cache does not have.

    The last bits of features depend on the batch, so a killed run must resume with the same
    batches: until all is stored, a file lists the texts that were missing at the start.
    """
    digest = blake2b(b"".join(keys), digest_size=16).hexdigest()
    request = stored.folder / f".request.{digest}"
    missing = _read_request(request, len(keys))
    if missing is None:
        missing = np.array(stored.missing(keys), dtype="<i8")
        if not len(missing):
            return
        with replace_file(request, entry=True) as file:
            np.save(file, np.append(missing, crc32(missing.tobytes())))
    own = [keys[position] for position in missing.tolist()]
    rows = tokenize([texts[position] for position in missing.tolist()])

    def is_stored(batch: Indices) -> bool:
        return all(own[row] in stored for row in batch.tolist())

    for batch, features in _encode_rows(model, rows, skip=is_stored, progress=progress):
        stored.store([own[row] for row in batch.tolist()], features)
    request.unlink(missing_ok=True)


def _read_request(path: Path, count: int) -> Indices | None:
    if not own_entries([path]):
        return None
    try:
        saved: Indices = np.load(path, allow_pickle=False)
        missing, checksum = saved[:-1], saved[-1]
    except Exception:  # a damaged header can raise almost anything
        return None
    intact = missing.size and checksum == crc32(missing.tobytes())
    return missing if intact and 0 <= missing.min() <= missing.max() < count else None
