"""An encoder that learns through the episodes: the distinct texts of a step in one pass.

Of the word embeddings only the rows of pieces that the texts have are parameters: an optimiser's
step over the rest would change nothing and cost the most. Dropout is off, so that a text has one
set of features, and a pass made again the same ones.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from contextlib import nullcontext
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.encoders.cache import Cache
from evenhand.fewshot.encoders.packed import packed
from evenhand.fewshot.encoders.tokens import Rows, check_rows, pieces
from evenhand.masked.forward import guard_half
from evenhand.masked.model import Model, load

__all__ = ["DTYPES", "Tuned"]

DTYPES = ("auto", "float32", "bfloat16")
HELD = 4 << 30
"""Bytes of inner states held for the way back; beyond, they are computed again. On a GPU: half of
what is free."""
AT_ONCE = {"cpu": 2048, "cuda": 131_072}
"""Tokens in one pass, as far as they can be held: on a CPU as many as stay near the processor."""
VOCABULARY = "vocabulary"


class Tuned:
    """A model with the texts it reads, whose weights are to be learned.

    `pooling` and `limit` are those of `frozen`. `dtype` is the type of the products: `auto` is
    bfloat16 on a GPU, float32 elsewhere; weights and sums are float32.

    >>> encoder = Tuned("mini", ["she sings.", "he cooks."])
    >>> points, places = encoder.points(np.array([1, 0, 1]))
    >>> points.shape, places.tolist()
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
            raise InputError("a tuned encoder: expected a model in float32, its weights are learnt")
        self.model = model
        self.rows = Rows(model, texts, pooling=pooling, limit=limit)
        self.origin = f"{model.fingerprint} {pooling} {self.rows.limit}"
        content = (self.origin, dtype)
        self.digest = blake2b(
            repr(content).encode() + b"".join(Cache.keys(texts)), digest_size=16
        ).hexdigest()
        kind = model.device.type
        self._half = dtype == "bfloat16" or (dtype == "auto" and kind == "cuda")
        if self._half and kind == "cpu":
            guard_half()
        self._room = _room(model)
        self._at_once = min(AT_ONCE.get(kind, AT_ONCE["cuda"]), self._room)
        self._base: Any = model.network.base_model
        self._full: nn.Embedding = self._words()
        self._vocabulary = _trimmed(self._full, self.rows.ids, model.network.config.pad_token_id)
        self._held: list[tuple[NDArray[np.int64], Tensor | None]] = []
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
        """What is learnt: all weights the features depend on."""
        named = self._base.named_parameters()
        return {name: weight for name, weight in named if not name.startswith("pooler.")}

    def points(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[np.int64]]:
        """Features of the distinct rows, and where each row's are; `backward` goes on from them."""
        distinct, places = self._distinct(rows)
        parts = list(pieces(self.rows.lengths, distinct, self._at_once))
        held = int(self.rows.lengths[distinct].sum()) <= self._room
        self._held = []
        with torch.set_grad_enabled(held):
            for part in parts:
                self._held.append((part, self._pass(part)))
        made = torch.cat([states.detach() for _, states in self._held if states is not None])
        if not held:
            self._held = [(part, None) for part in parts]
        self._leaf = made.requires_grad_()
        return self._leaf, places

    def backward(self) -> None:
        """Carry the gradients of the last points on into the weights.

        Where there were too many tokens to hold, part by part, each passed through once more.
        """
        if self._leaf is None or self._leaf.grad is None:
            return
        begin = 0
        for part, states in self._held:
            again = self._pass(part) if states is None else states
            torch.autograd.backward(again, self._leaf.grad[begin : begin + len(part)])
            begin += len(part)
        self._held, self._leaf = [], None

    @torch.no_grad()
    def table(self, rows: NDArray[Any]) -> tuple[Tensor, NDArray[np.int64]]:
        """`points` for use alone: each text is encoded once, however often it is asked for."""
        distinct, places = self._distinct(rows)
        parts = pieces(self.rows.lengths, distinct, self._at_once)
        return torch.cat([self._pass(part) for part in parts]), places

    def state(self) -> dict[str, Tensor]:
        """The weights, and which pieces the word embeddings are of."""
        named = {name: weight.detach().cpu().clone() for name, weight in self.weights().items()}
        return {**named, VOCABULARY: torch.from_numpy(self._vocabulary.copy())}

    def reset(self) -> None:
        """Go back to the weights it began with."""
        self.load(self._first)

    @torch.no_grad()
    def load(self, state: dict[str, Tensor]) -> None:
        """Take over weights, of an encoder that began as the same model and reads other texts."""
        words = self._words()
        for name, weight in self.weights().items():
            if weight is not words.weight:
                weight.copy_(state[name])
                continue
            mine, theirs = self._vocabulary, state[VOCABULARY].numpy()
            _, here, there = np.intersect1d(mine, theirs, return_indices=True)
            weight.copy_(self._full.weight[torch.from_numpy(mine).to(self.device)])
            weight[torch.from_numpy(here).to(self.device)] = state[name][there].to(self.device)

    @torch.no_grad()
    def whole(self) -> Model:
        """The model as it stands, with its whole vocabulary, for other uses and for saving."""
        words = self._words()
        full = copy.deepcopy(self._full)
        full.weight[torch.from_numpy(self._vocabulary).to(self.device)] = words.weight
        network: Any = copy.deepcopy(self.model.network)
        network.base_model.set_input_embeddings(full)
        network.tie_weights()
        return replace(self.model, network=network)

    def _words(self) -> nn.Embedding:
        found: nn.Embedding = self._base.get_input_embeddings()
        return found

    def _reduce(self) -> None:
        """Put the trimmed embeddings in place, and the ids of the rows to theirs."""
        size, width = len(self._vocabulary), self._full.embedding_dim
        small = nn.Embedding(size, width, padding_idx=self._full.padding_idx, device=self.device)
        with torch.no_grad():
            chosen = torch.from_numpy(self._vocabulary).to(self.device)
            small.weight.copy_(self._full.weight[chosen])
        self._base.set_input_embeddings(small)
        self.rows.renumber(self._vocabulary)

    def _distinct(self, rows: NDArray[Any]) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """The distinct rows in order of their length, and where among them each row is."""
        check_rows(rows, len(self.rows.ids))
        found = self.rows.by_length(np.unique(rows).astype(np.int64))
        place = np.empty(len(self.rows.ids), dtype=np.int64)
        place[found] = np.arange(len(found))
        return found, place[rows]

    def _pass(self, part: NDArray[np.int64]) -> Tensor:
        kind = self.device.type
        with torch.autocast(kind, dtype=torch.bfloat16) if self._half else nullcontext():
            return packed(self.model.network, self.rows.groups(part, self.device))


def _room(model: Model) -> int:
    """How many tokens can be held: each has some 32 numbers for every layer and dimension."""
    cuda = model.device.type == "cuda"
    free = torch.cuda.mem_get_info(model.device)[0] // 2 if cuda else HELD
    return max(1, free // (32 * 4 * model.dim * int(model.network.config.num_hidden_layers)))


def _trimmed(
    full: nn.Embedding, rows: Sequence[Sequence[int]], padding: int | None
) -> NDArray[np.int64]:
    """The ids that are needed: those of the rows, and all up to the padding, which keep their place
    since some models count positions by it.

    >>> _trimmed(nn.Embedding(9, 1), [[4, 7], [4]], 2).tolist()
    [0, 1, 2, 4, 7]
    """
    used = np.zeros(full.num_embeddings, dtype=bool)
    used[: (padding or 0) + 1] = True
    for row in rows:
        used[row] = True
    return np.flatnonzero(used)
