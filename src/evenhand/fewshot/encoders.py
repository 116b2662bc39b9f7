"""Texts to features: with a frozen encoder, or with one that is trained through the episodes.

**The pass.** The tokens of all rows lie one after the other, so that nothing is padded: everything
except attention works on single tokens, and attention on groups of rows of one length, or on a GPU
of similar lengths, which are padded for attention only. After the attention of the last layer only
the tokens that are pooled are computed. Models of unknown families run as they are, group by group.

**Frozen** (`encode`): each text is encoded once and stored in a cache.

**Tuned** (`TunedEncoder`): the distinct texts of a step go through the encoder in one pass. Of the
word embeddings only the rows of pieces that the texts have are parameters: an optimiser's step over
the rest would change nothing and cost the most. Dropout is off, so that a text has one set of
features, and a repeated pass gives the same ones.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, replace
from hashlib import blake2b
from itertools import chain
from pathlib import Path
from typing import Any
from zlib import crc32

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn import functional
from transformers import PreTrainedModel

from evenhand.cache import Cache, content_key
from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.settings import POOLINGS, StepProgress
from evenhand.files import replace_file
from evenhand.masked.forward import (
    Layer,
    attend_packed,
    embed_tokens,
    guard_half,
    is_packed,
    layers_of,
)
from evenhand.masked.model import Model, load
from evenhand.text.corpus.compression import SURROGATE

__all__ = ["TokenRows", "TunedEncoder", "check_rows", "encode"]

TOKENS = {"cpu": 4096, "cuda": 131_072}
"""Tokens that go through a frozen model at once, on a CPU as many as fit its caches."""
STORED = {"cpu": 16, "cuda": 2}
"""So many of these passes are stored together."""
BUCKETS = {"cuda": 8, "mps": 8}
"""The number of groups of rows where a device prefers few and large calls."""
DTYPES = ("auto", "float32", "bfloat16")
HELD = 4 << 30
"""Bytes of inner states held for the backward pass; above, they are computed again. On a GPU: half
of the free memory."""
AT_ONCE = {"cpu": 2048, "cuda": 131_072}
"""Tokens in one pass of a tuned encoder: on a CPU as many as fit its caches."""
VOCABULARY = "vocabulary"

Indices = NDArray[np.int64]


# tokens


class TokenRows:
    """Texts as rows of token ids, at most `limit` tokens each, and how they are pooled.

    `mean` is over the tokens of the text without special tokens; `cls` takes the first token. The
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
        tokenizer = model.tokenizer
        coded = self._tokenize(tokenizer, [SURROGATE.sub("\ufffd", text) for text in texts])
        self.lengths: Indices = np.array([len(row) for row in coded], dtype=np.int64)
        self.starts: Indices = np.cumsum(self.lengths) - self.lengths
        self.tokens: Indices = np.fromiter(
            chain.from_iterable(coded), dtype=np.int64, count=int(self.lengths.sum())
        )
        special = [i for i in tokenizer.all_special_ids if i != tokenizer.unk_token_id]
        self.pooled = self._find_pooled(special)
        self._padding = int(tokenizer.pad_token_id or 0)

    def __len__(self) -> int:
        return len(self.lengths)

    def _tokenize(self, tokenizer: Any, texts: list[str]) -> list[list[int]]:
        """The ids of each text; in one call, so that all cores take part."""
        if not texts:
            return []
        backend = tokenizer.backend_tokenizer
        side = getattr(tokenizer, "truncation_side", "right")
        backend.enable_truncation(self.limit, direction=side)
        backend.no_padding()
        encode_batch = getattr(backend, "encode_batch_fast", backend.encode_batch)
        ids = [coded.ids for coded in encode_batch(texts)]
        backend.no_truncation()
        return ids

    def _find_pooled(self, special: list[int]) -> NDArray[np.bool_]:
        """Which tokens are pooled."""
        if self.pooling == "cls":
            pooled = np.zeros(len(self.tokens), dtype=bool)
            pooled[self.starts] = True
            return pooled
        pooled = ~np.isin(self.tokens, special)
        if len(self):  # an empty text has only special tokens
            empty = np.add.reduceat(pooled.astype(np.int64), self.starts) == 0
            pooled |= np.repeat(empty, self.lengths)
        return pooled

    def by_length(self, chosen: Indices) -> Indices:
        """The chosen rows from the shortest to the longest."""
        return chosen[np.argsort(self.lengths[chosen], kind="stable")]

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
        within = np.arange(int(lengths.sum())) - np.repeat(np.cumsum(lengths) - lengths, lengths)
        pooled = self.pooled[np.repeat(self.starts[ordered], lengths) + within]
        owner = np.repeat(np.arange(len(ordered)), lengths)[pooled]
        counts = np.bincount(owner, minlength=len(ordered))
        return Packed(
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
        """Of values for all positions those of actual tokens."""
        return values if self.positions is None else values.index_select(0, self.positions)


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows as spans. Of all their tokens: which are pooled, the row of each, and how many it has;
    where the rows begin and end, and the length of the longest.

    All is computed before the pass, which therefore never has to wait for the device.
    """

    spans: list[Span]
    pooled: Tensor
    owner: Tensor
    counts: Tensor
    ends: Tensor
    longest: int


def check_rows(rows: NDArray[Any], count: int) -> None:
    """Raise an error if the rows are not those of `count` texts."""
    if rows.size and not 0 <= rows.min() <= rows.max() < count:
        raise InputError(
            f"episodes: expected rows 0 to {count - 1}, those of the texts, "
            f"got {rows.min()} to {rows.max()}"
        )


def batches(lengths: Indices, ordered: Indices, tokens: int) -> Iterator[Indices]:
    """Consecutive rows in batches of at most `tokens` tokens, or of a single row.

    >>> [batch.tolist() for batch in batches(np.array([5, 2, 9, 3]), np.array([1, 3, 0, 2]), 10)]
    [[1, 3, 0], [2]]
    """
    first = held = 0
    for position, length in enumerate(lengths[ordered].tolist()):
        if position > first and held + length > tokens:
            yield ordered[first:position]
            first, held = position, 0
        held += length
    if first < len(ordered):
        yield ordered[first:]


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
        return _means(torch.cat(states).index_select(0, rows.pooled), rows)
    embedded = [span.select(embed_tokens(network, span.ids).flatten(0, 1)) for span in rows.spans]
    tokens = torch.cat(embedded)
    for number, layer in enumerate(layers, start=1):
        attended = _attention(layer, tokens, rows)
        if number == len(layers):
            tokens = tokens.index_select(0, rows.pooled)
            attended = attended.index_select(0, rows.pooled)
        middle = layer.norm(tokens + layer.out(attended))
        tokens = layer.last_norm(middle + layer.down(layer.activation(layer.up(middle))))
    return _means(tokens, rows)


def _attention(layer: Layer, tokens: Tensor, packed: Packed) -> Tensor:
    """What each token gathers from its row (tokens, width), before the layer's `out`."""
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


def _means(tokens: Tensor, rows: Packed) -> Tensor:
    """The mean over each row's pooled tokens, which lie one after the other."""
    dtype = torch.promote_types(tokens.dtype, torch.float32)
    total = torch.zeros(len(rows.counts), tokens.shape[1], device=tokens.device, dtype=dtype)
    return total.index_add(0, rows.owner, tokens.to(dtype)) / rows.counts[:, None]


# frozen


def encode(
    source: str | os.PathLike[str] | Model,
    texts: Sequence[str],
    *,
    pooling: str = "mean",
    limit: int | None = None,
    cache: str | os.PathLike[str] | None = None,
    device: str = "auto",
    progress: StepProgress | None = None,
) -> NDArray[np.float32]:
    """The features of texts by a model that stays as it is.

    Parameters
    ----------
    source : str, path or Model
        A model, or its name or folder.
    texts : sequence of str
    pooling : {"mean", "cls"}
        The mean over a text's tokens, or the first token.
    limit : int, optional
        The longest text in tokens; by default that of the model.
    cache : path, optional
        A folder that stores features by text, model content, pooling and limit.
    device : str
    progress : callable, optional
        Called with ("encoding", tokens done, tokens, text).

    Returns
    -------
    array (n, dim)
        In the order of the texts.

    Examples
    --------
    >>> encode("mini", ["she sings.", "he cooks.", "she sings."]).shape
    (3, 256)

    """
    model = source if isinstance(source, Model) else load(source, device=device, head=False)
    rows = TokenRows(model, [], pooling=pooling, limit=limit)  # checks the settings
    context = f"features {model.fingerprint} {pooling} {rows.limit}"
    keys = [content_key(context, text=text) for text in texts]
    if cache is None:
        first = {key: position for position, key in enumerate(keys)}
        distinct = [texts[position] for position in first.values()]
        rows = TokenRows(model, distinct, pooling=pooling, limit=limit)
        features = np.empty((len(distinct), model.dim), dtype=np.float32)
        for chosen, encoded in _encode_rows(model, rows, progress=progress):
            features[chosen] = encoded
        order = {key: number for number, key in enumerate(first)}
        return features[[order[key] for key in keys]]
    stored = Cache(cache)
    if stored.missing(keys):
        with stored.lock():
            _encode_missing(stored, keys, model, texts, pooling, limit, progress)
    if not keys:
        return np.empty((0, model.dim), dtype=np.float32)
    return np.ascontiguousarray(stored.stack(keys), dtype=np.float32)


def _encode_rows(
    model: Model,
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
            features = np.empty((len(batch), model.dim), dtype=np.float32)
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
    model: Model,
    texts: Sequence[str],
    pooling: str,
    limit: int | None,
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
        with replace_file(request) as file:
            np.save(file, np.append(missing, crc32(missing.tobytes())))
    own = [keys[position] for position in missing.tolist()]
    rows = TokenRows(model, [texts[p] for p in missing.tolist()], pooling=pooling, limit=limit)

    def is_stored(batch: Indices) -> bool:
        return all(own[row] in stored for row in batch.tolist())

    for batch, features in _encode_rows(model, rows, skip=is_stored, progress=progress):
        stored.store([own[row] for row in batch.tolist()], features)
    request.unlink(missing_ok=True)


def _read_request(path: Path, count: int) -> Indices | None:
    try:
        saved: Indices = np.load(path, allow_pickle=False)
        missing, checksum = saved[:-1], saved[-1]
    except Exception:  # a damaged header can raise almost anything
        return None
    intact = missing.size and checksum == crc32(missing.tobytes())
    return missing if intact and 0 <= missing.min() <= missing.max() < count else None


# tuned


class TunedEncoder:
    """A model with the texts it reads, whose weights are learned.

    Parameters
    ----------
    source : str, path or Model
    texts : sequence of str
    pooling, limit, device
        As for `encode`.
    dtype : {"auto", "float32", "bfloat16"}
        The type of the products: `auto` is bfloat16 on a GPU, float32 elsewhere. Weights and sums
        are float32.

    Examples
    --------
    >>> encoder = TunedEncoder("mini", ["she sings.", "he cooks."])
    >>> points, index = encoder.points(np.array([1, 0, 1]))
    >>> points.shape, index.tolist()
    (torch.Size([2, 256]), [1, 0, 1])

    """

    def __init__(
        self,
        source: str | os.PathLike[str] | Model,
        texts: Sequence[str],
        *,
        pooling: str = "mean",
        limit: int | None = None,
        device: str = "auto",
        dtype: str = "auto",
    ) -> None:
        if dtype not in DTYPES:
            raise UnknownNameError("dtype", dtype, DTYPES)
        given = source if isinstance(source, Model) else load(source, device=device, head=False)
        model = replace(given, network=copy.deepcopy(given.network)) if given is source else given
        if model.network.dtype != torch.float32 or model.int8 is not None:
            raise InputError("a tuned encoder: expected a model in float32, to learn its weights")
        self.model = model
        self.rows = TokenRows(model, texts, pooling=pooling, limit=limit)
        self.origin = f"{model.fingerprint} {pooling} {self.rows.limit}"
        keys = b"".join(_text_key(text) for text in texts)
        self.digest = blake2b(
            repr((self.origin, dtype)).encode() + keys, digest_size=16
        ).hexdigest()
        kind = model.device.type
        self._half = dtype == "bfloat16" or (dtype == "auto" and kind == "cuda")
        if self._half and kind == "cpu":
            guard_half()
        self._room = _room(model)
        self._at_once = min(AT_ONCE.get(kind, AT_ONCE["cuda"]), self._room)
        self._base: Any = model.network.base_model
        self._full: nn.Embedding = self._embeddings()
        self._vocabulary = _trim(self._full, self.rows.tokens, model.network.config.pad_token_id)
        self._held: list[tuple[Indices, Tensor | None]] = []
        self._leaf: Tensor | None = None
        self._reduce()
        self._first = self.state()

    @property
    def dim(self) -> int:
        return self.model.dim

    @property
    def device(self) -> torch.device:
        return self.model.device

    def weights(self) -> dict[str, nn.Parameter]:
        """All weights that the features depend on."""
        named = self._base.named_parameters()
        return {name: weight for name, weight in named if not name.startswith("pooler.")}

    def points(self, rows: NDArray[Any]) -> tuple[Tensor, Indices]:
        """Features of the distinct rows, and the index of each row among them."""
        distinct, index = self._distinct(rows)
        parts = list(batches(self.rows.lengths, distinct, self._at_once))
        held = int(self.rows.lengths[distinct].sum()) <= self._room
        self._held = []
        with torch.set_grad_enabled(held):
            for part in parts:
                self._held.append((part, self._pass(part)))
        features = torch.cat([states.detach() for _, states in self._held if states is not None])
        if not held:
            self._held = [(part, None) for part in parts]
        self._leaf = features.requires_grad_()
        return self._leaf, index

    def points_with(
        self, weights: Mapping[str, Tensor], rows: NDArray[Any]
    ) -> tuple[Tensor, Indices]:
        """`points` as a differentiable function of other weights, all of it held, in float32."""
        distinct, index = self._distinct(rows)
        module = _Pass(self.model.network)
        named = {f"base.{name}": weight for name, weight in weights.items()}
        parts = [
            torch.func.functional_call(module, named, (self.rows.pack(part, self.device),))
            for part in batches(self.rows.lengths, distinct, self._at_once)
        ]
        return torch.cat(parts), index

    def backward(self) -> None:
        """Propagate the gradients of the last points into the weights.

        Where there were too many tokens to hold, part by part, each passed through once more.
        """
        if self._leaf is None or self._leaf.grad is None:
            return
        first = 0
        for part, states in self._held:
            again = self._pass(part) if states is None else states
            torch.autograd.backward(again, self._leaf.grad[first : first + len(part)])
            first += len(part)
        self._held, self._leaf = [], None

    @torch.no_grad()
    def table(self, rows: NDArray[Any]) -> tuple[Tensor, Indices]:
        """`points` without gradients: each text is encoded once, however often it occurs."""
        distinct, index = self._distinct(rows)
        parts = batches(self.rows.lengths, distinct, self._at_once)
        return torch.cat([self._pass(part) for part in parts]), index

    def state(self) -> dict[str, Tensor]:
        """The weights, and which pieces the word embeddings are of."""
        named = {name: weight.detach().cpu().clone() for name, weight in self.weights().items()}
        return {**named, VOCABULARY: torch.from_numpy(self._vocabulary.copy())}

    def reset(self) -> None:
        """Restore the initial weights."""
        self.load(self._first)

    @torch.no_grad()
    def load(self, state: dict[str, Tensor]) -> None:
        """Take the weights of an encoder that began as the same model and reads other texts."""
        embeddings = self._embeddings()
        for name, weight in self.weights().items():
            if weight is not embeddings.weight:
                weight.copy_(state[name])
                continue
            mine, theirs = self._vocabulary, state[VOCABULARY].numpy()
            _, here, there = np.intersect1d(mine, theirs, return_indices=True)
            weight.copy_(self._full.weight[torch.from_numpy(mine).to(self.device)])
            weight[torch.from_numpy(here).to(self.device)] = state[name][there].to(self.device)

    @torch.no_grad()
    def full_model(self) -> Model:
        """The model with its current weights and its full vocabulary, for other uses or saving."""
        full = copy.deepcopy(self._full)
        full.weight[torch.from_numpy(self._vocabulary).to(self.device)] = self._embeddings().weight
        network: Any = copy.deepcopy(self.model.network)
        network.base_model.set_input_embeddings(full)
        network.tie_weights()
        return replace(self.model, network=network)

    def _embeddings(self) -> nn.Embedding:
        embeddings: nn.Embedding = self._base.get_input_embeddings()
        return embeddings

    def _reduce(self) -> None:
        """Replace the embeddings by the trimmed ones, and the ids of the rows by theirs."""
        size, width = len(self._vocabulary), self._full.embedding_dim
        small = nn.Embedding(size, width, padding_idx=self._full.padding_idx, device=self.device)
        with torch.no_grad():
            chosen = torch.from_numpy(self._vocabulary).to(self.device)
            small.weight.copy_(self._full.weight[chosen])
        self._base.set_input_embeddings(small)
        self.rows.renumber(self._vocabulary)

    def _distinct(self, rows: NDArray[Any]) -> tuple[Indices, Indices]:
        """The distinct rows in order of length, and the index of each row among them."""
        check_rows(rows, len(self.rows))
        distinct = self.rows.by_length(np.unique(rows).astype(np.int64))
        index = np.empty(len(self.rows), dtype=np.int64)
        index[distinct] = np.arange(len(distinct))
        return distinct, index[rows]

    def _pass(self, part: Indices) -> Tensor:
        kind = self.device.type
        with torch.autocast(kind, dtype=torch.bfloat16) if self._half else nullcontext():
            return forward_packed(self.model.network, self.rows.pack(part, self.device))


class _Pass(nn.Module):
    """`forward_packed` as a module, whose weights can be given by name."""

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.base = network.base_model
        self._network = (network,)  # in a tuple: not a module of its own
        self.eval()

    def forward(self, rows: Packed) -> Tensor:
        return forward_packed(self._network[0], rows)


def _text_key(text: str) -> bytes:
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).digest()


def _room(model: Model) -> int:
    """How many tokens can be held: each has some 32 numbers per layer and dimension."""
    cuda = model.device.type == "cuda"
    free = torch.cuda.mem_get_info(model.device)[0] // 2 if cuda else HELD
    return max(1, free // (32 * 4 * model.dim * int(model.network.config.num_hidden_layers)))


def _trim(full: nn.Embedding, tokens: Indices, padding: int | None) -> Indices:
    """The ids that are needed: those of the texts, and all up to the padding, which stay in place
    since some models count positions by it.

    >>> _trim(nn.Embedding(9, 1), np.array([4, 7, 4]), 2).tolist()
    [0, 1, 2, 4, 7]
    """
    used = np.zeros(full.num_embeddings, dtype=bool)
    used[: (padding or 0) + 1] = True
    used[tokens] = True
    return np.flatnonzero(used)
