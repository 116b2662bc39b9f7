"""A BERT encoder for fast training, weight for weight the `BertForMaskedLM` of transformers.

Post-norm layers, exact GELU, absolute positions, a decoder tied to the word embeddings, no
dropout. The layers' weights are stacked, one tensor a kind. Activations and matrix products are in
`dtype`; weights, sums before a norm and the norms themselves in float32.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import torch
from torch import Tensor
from torch.nn import functional

from .attention import Attention, padded
from .recipe import Recipe

EPSILON = 1e-12
LAYER = (
    "qkv", "qkv_bias", "out", "out_bias", "norm1", "norm1_bias",
    "up", "up_bias", "down", "down_bias", "norm2", "norm2_bias",
)  # fmt: skip
MATRICES = ("qkv", "out", "gate", "up", "down", "transform")

Weights = dict[str, Tensor]


def shapes(recipe: Recipe) -> dict[str, tuple[int, ...]]:
    """The shape of every weight tensor."""
    vocabulary, width, inner, layers = recipe.vocabulary, recipe.width, recipe.inner, recipe.layers
    if recipe.kind == "causal":
        return {
            "words": (vocabulary, width),
            "qkv": (layers, 3 * width, width),
            "out": (layers, width, width),
            "norm1": (layers, width),
            "gate": (layers, inner, width),
            "up": (layers, inner, width),
            "down": (layers, width, inner),
            "norm2": (layers, width),
            "norm3": (width,),
        }
    return {
        "words": (vocabulary, width),
        "positions": (recipe.max_positions, width),
        "types": (2, width),
        "norm0": (width,),
        "norm0_bias": (width,),
        "qkv": (layers, 3 * width, width),
        "qkv_bias": (layers, 3 * width),
        "out": (layers, width, width),
        "out_bias": (layers, width),
        "norm1": (layers, width),
        "norm1_bias": (layers, width),
        "up": (layers, inner, width),
        "up_bias": (layers, inner),
        "down": (layers, width, inner),
        "down_bias": (layers, width),
        "norm2": (layers, width),
        "norm2_bias": (layers, width),
        "transform": (width, width),
        "transform_bias": (width,),
        "norm3": (width,),
        "norm3_bias": (width,),
        "decoder_bias": (vocabulary,),
    }


def fresh_weights(recipe: Recipe, device: torch.device) -> Weights:
    """Normal with deviation 0.02, as BERT begins; norms 1 and biases 0."""
    generator = torch.Generator().manual_seed(recipe.seed)
    made = {}
    for name, shape in shapes(recipe).items():
        if name.endswith("_bias"):
            weight = torch.zeros(shape)
        elif name.startswith("norm"):
            weight = torch.ones(shape)
        else:
            weight = torch.randn(shape, generator=generator) * 0.02
        made[name] = weight.to(device).requires_grad_()
    return made


def parameter_count(recipe: Recipe) -> int:
    """How many numbers a model of this shape has."""
    return sum(math.prod(shape) for shape in shapes(recipe).values())


@dataclass(frozen=True)
class Batch:
    """Rows end to end: token ids, position in the row, bounds of the rows, longest row possible."""

    tokens: Tensor
    positions: Tensor
    bounds: Tensor
    longest: int


@dataclass(frozen=True)
class Model:
    """The weights and how to run them; `compiled` fuses the work of a layer and of the head."""

    recipe: Recipe
    weights: Weights
    attention: Attention = padded
    dtype: torch.dtype = torch.float32
    compiled: bool = False

    @property
    def device(self) -> torch.device:
        """Where the weights are."""
        return self.weights["words"].device

    def here(self, batch: Batch) -> Batch:
        """The batch on the device of the weights."""
        to = self.device
        return Batch(
            batch.tokens.to(to), batch.positions.to(to), batch.bounds.to(to), batch.longest
        )

    def hidden(self, batch: Batch) -> Tensor:
        """The last layer's output, (tokens, width)."""
        weights, layer = self.weights, fused(_layer) if self.compiled else _layer
        mixed = (
            functional.embedding(batch.tokens, weights["words"])
            + functional.embedding(batch.positions, weights["positions"])
            + weights["types"][0]
        )
        state = _norm(mixed, weights["norm0"], weights["norm0_bias"], self.dtype)
        stacks = [self.cast(name).unbind() for name in LAYER]
        for parts in zip(*stacks, strict=True):
            state = layer(
                state, batch.bounds, self.attention, self.recipe.heads, batch.longest, *parts
            )
        return state

    def _head(self) -> list[Tensor]:
        names = ("transform", "transform_bias", "norm3", "norm3_bias", "words", "decoder_bias")
        return [self.cast(name) for name in names]

    def cast(self, name: str) -> Tensor:
        """A weight as the layers use it: norms stay in float32."""
        weight = self.weights[name]
        return weight if name.startswith("norm") else weight.to(self.dtype)

    def logits(self, batch: Batch, places: Tensor) -> Tensor:
        """Scores of all word pieces at the given places of the batch."""
        return _logits(self.hidden(batch), places, *self._head()).float()

    def loss(self, batch: Batch, places: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of the labels at the places."""
        head = fused(_loss) if self.compiled else _loss
        return head(self.hidden(batch), places, labels, *self._head())


def _norm(state: Tensor, weight: Tensor, bias: Tensor, dtype: torch.dtype) -> Tensor:
    return functional.layer_norm(state.float(), weight.shape, weight, bias, EPSILON).to(dtype)


def _layer(
    state: Tensor,
    bounds: Tensor,
    attention: Attention,
    heads: int,
    longest: int,
    qkv: Tensor,
    qkv_bias: Tensor,
    out: Tensor,
    out_bias: Tensor,
    norm1: Tensor,
    norm1_bias: Tensor,
    up: Tensor,
    up_bias: Tensor,
    down: Tensor,
    down_bias: Tensor,
    norm2: Tensor,
    norm2_bias: Tensor,
) -> Tensor:
    tokens, width = state.shape
    parts = functional.linear(state, qkv, qkv_bias).view(tokens, 3, heads, width // heads)
    query, key, value = parts.unbind(1)
    mixed = attention(query, key, value, bounds, longest).reshape(tokens, width)
    mixed = functional.linear(mixed, out, out_bias)
    state = _norm(state.float() + mixed, norm1, norm1_bias, state.dtype)
    inner = functional.gelu(functional.linear(state, up, up_bias))
    inner = functional.linear(inner, down, down_bias)
    return _norm(state.float() + inner, norm2, norm2_bias, state.dtype)


def _logits(
    state: Tensor,
    places: Tensor,
    transform: Tensor,
    transform_bias: Tensor,
    norm: Tensor,
    norm_bias: Tensor,
    words: Tensor,
    bias: Tensor,
) -> Tensor:
    chosen = state.index_select(0, places)
    chosen = functional.gelu(functional.linear(chosen, transform, transform_bias))
    return functional.linear(_norm(chosen, norm, norm_bias, state.dtype), words, bias)


def _loss(state: Tensor, places: Tensor, labels: Tensor, *head: Tensor) -> Tensor:
    return functional.cross_entropy(_logits(state, places, *head).float(), labels)


@cache
def fused(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """The function compiled: one graph serves all layers, since weights are its arguments."""
    torch._dynamo.config.recompile_limit = 64
    return torch.compile(function, dynamic=False)
