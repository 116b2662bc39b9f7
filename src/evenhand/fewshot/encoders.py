"""Texts to features: with a frozen encoder, or with one that is trained through the episodes.

**Frozen** (`encode`): each text is encoded once and stored in a cache.

**Tuned** (`TunedEncoder`): the distinct texts of a step go through the encoder in one pass. Of the
word embeddings only the rows of pieces that the texts have are parameters: an optimiser's step over
the rest would change nothing and cost the most. Dropout is off, so that a text has one set of
features, and a repeated pass gives the same ones.
"""

from __future__ import annotations

import copy
import os
from collections.abc import Mapping, Sequence
from contextlib import nullcontext
from dataclasses import replace
from hashlib import blake2b
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.utils.checkpoint import checkpoint
from transformers import PreTrainedModel

from evenhand.arguments import checked
from evenhand.errors import InputError, UnknownNameError, parameter
from evenhand.fewshot import bilstm
from evenhand.fewshot.settings import StepProgress, check_pooling
from evenhand.models.base import LoadedModel
from evenhand.models.causal import load as load_causal
from evenhand.models.encoding import (
    Indices,
    Packed,
    TokenRows,
    batches,
    encode_texts,
    forward_packed,
)
from evenhand.models.forward import guard_half
from evenhand.models.loading import kind_of
from evenhand.models.masked import load as load_masked
from evenhand.models.memory import ModelSource, is_path
from evenhand.models.sources import choose_device

DTYPES = ("auto", "float32", "bfloat16")
HELD = 4 << 30
"""Bytes of inner states held for the backward pass; above, they are computed again. On a GPU: half
of the free memory."""
AT_ONCE = {"cpu": 2048, "cuda": 131_072}
"""Tokens in one pass of a tuned encoder: on a CPU as many as fit its caches."""
VOCABULARY = "vocabulary"


def check_rows(rows: NDArray[Any], count: int) -> None:
    """Raise an error if the rows are not those of `count` texts."""
    if rows.size and not 0 <= rows.min() <= rows.max() < count:
        raise InputError(
            f"episodes: expected rows 0 to {count - 1}, those of the texts, "
            f"got {rows.min()} to {rows.max()}"
        )


def load_encoder(source: ModelSource, *, device: str = "auto") -> LoadedModel:
    """A masked model, with or without its head, a causal one, or the Bi-LSTM before training."""
    if isinstance(source, bilstm.WordModel):
        return source
    if source == bilstm.NAME:
        return bilstm.build(choose_device(device))
    if kind_of(source) == "causal":
        return load_causal(source, device=device)
    return load_masked(source, device=device, head=False)


def check_frozen(model: LoadedModel) -> None:
    """Refuse a model that has learned nothing yet."""
    if isinstance(model, bilstm.WordModel):
        raise InputError(
            f"encoder: {bilstm.NAME} begins with random weights: expected it with "
            f"{parameter('finetune', True)}, got it frozen"
        )


@checked
def encode(
    source: ModelSource,
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
    source : str, path, MaskedModel or CausalModel
        A model, or its name, folder or GGUF file.
    texts : sequence of str
    pooling : {"mean", "cls", "last"}
        The mean over a text's tokens, the first or the last token.
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
    model = load_encoder(source, device=device)
    check_frozen(model)
    check_pooling(pooling, model.subject_kind)
    return encode_texts(model, texts, pooling=pooling, limit=limit, cache=cache, progress=progress)


# tuned


class TunedEncoder:
    """A model with the texts it reads, whose weights are learned.

    Parameters
    ----------
    source : str, path, MaskedModel or CausalModel
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
        source: ModelSource,
        texts: Sequence[str],
        *,
        pooling: str = "mean",
        limit: int | None = None,
        device: str = "auto",
        dtype: str = "auto",
    ) -> None:
        if dtype not in DTYPES:
            raise UnknownNameError("dtype", dtype, DTYPES)
        model = load_encoder(source, device=device)
        if not is_path(source):  # the weights of a model in memory are copied
            model = replace(model, networks=model.networks.copy())
        check_pooling(pooling, model.subject_kind)
        if model.network.dtype != torch.float32 or getattr(model, "int8", None) is not None:
            raise InputError("a tuned encoder: expected a model in float32, to learn its weights")
        self.model = model
        self.rows = TokenRows(model, texts, pooling=pooling, limit=limit)
        self.origin = f"{model.fingerprint} {pooling} {self.rows.limit}"
        digest = blake2b(repr((self.origin, dtype)).encode(), digest_size=16)
        for text in texts:
            key = blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16)
            digest.update(key.digest())
        self.digest = digest.hexdigest()
        kind = model.device.type
        self._half = dtype == "bfloat16" or (dtype == "auto" and kind == "cuda")
        if self._half and kind == "cpu":
            guard_half()
        self._room = _room(model)
        self._at_once = min(AT_ONCE.get(kind, AT_ONCE["cuda"]), self._room)
        self._base: Any = model.network.base_model
        self._full: nn.Embedding = self._embeddings()
        self._vocabulary = _trim(self._full, self.rows.tokens, model.network.config.pad_token_id)
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

    def points(
        self,
        rows: NDArray[Any],
        weights: Mapping[str, Tensor] | None = None,
        *,
        through: bool = False,
    ) -> tuple[Tensor, Indices]:
        """Features of the distinct rows, and the index of each row among them.

        They are a differentiable function of the encoder's weights, or of others. Where there are
        too many tokens to hold what the gradient needs, it is computed again part by part, but not
        with `through`, for second derivatives in float32.
        """
        distinct, index = self._distinct(rows)
        held = through or int(self.rows.lengths[distinct].sum()) <= self._room
        parts = [
            self._pass(part, weights, through)
            if held
            else checkpoint(self._pass, part, weights, use_reentrant=False)
            for part in batches(self.rows.lengths, distinct, self._at_once)
        ]
        return torch.cat(parts), index

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

    def reset(self, seed: int = 0) -> None:
        """Restore the initial weights; a Bi-LSTM has random ones, which the seed draws."""
        self.load(self._first)
        if isinstance(self._base, bilstm.BiLstm):
            self._base.draw(seed)

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
    def full_model(self) -> LoadedModel:
        """The model with its current weights and its full vocabulary, for other uses or saving."""
        full = copy.deepcopy(self._full)
        full.weight[torch.from_numpy(self._vocabulary).to(self.device)] = self._embeddings().weight
        network: Any = copy.deepcopy(self.model.network)
        network.base_model.set_input_embeddings(full)
        network.tie_weights()
        return replace(self.model, networks=network)

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

    def _pass(
        self, part: Indices, weights: Mapping[str, Tensor] | None = None, exact: bool = False
    ) -> Tensor:
        kind, rows = self.device.type, self.rows.pack(part, self.device)
        half = self._half and not exact
        with torch.autocast(kind, dtype=torch.bfloat16) if half else nullcontext():
            if weights is None:
                return forward_packed(self.model.network, rows)
            named = {f"base.{name}": weight for name, weight in weights.items()}
            states: Tensor = functional_call(_Pass(self.model.network), named, (rows,))
            return states


class _Pass(nn.Module):
    """`forward_packed` as a module, whose weights can be given by name."""

    def __init__(self, network: PreTrainedModel) -> None:
        super().__init__()
        self.base = network.base_model
        self._network = (network,)  # in a tuple: not a module of its own
        self.eval()

    def forward(self, rows: Packed) -> Tensor:
        return forward_packed(self._network[0], rows)


def _room(model: LoadedModel) -> int:
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
