"""A Llama decoder for fast training, weight for weight the `LlamaForCausalLM` of transformers.

Norms before attention and feed-forward part (RMS), rotary positions, SwiGLU, a head tied to the
word embeddings, no biases, no dropout. The layers' weights are stacked, one tensor a kind.
Matrix products are in `dtype`; weights, the sums over the layers, norms and rotations in float32.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from evenhand.models.decoder import rotate

from .attention import Attention, causal_padded
from .model import Batch, Model, Weights, fused
from .recipe import Recipe

EPSILON = 1e-5
THETA = 10_000.0
LAYER = ("qkv", "out", "norm1", "gate", "up", "down", "norm2")


@dataclass(frozen=True)
class CausalModel(Model):
    """The weights and how to run them."""

    attention: Attention = causal_padded

    def hidden(self, batch: Batch) -> Tensor:
        """The last layer's output, (tokens, width)."""
        layer = fused(_layer) if self.compiled else _layer
        state = functional.embedding(batch.tokens, self.weights["words"])
        size = self.recipe.width // self.recipe.heads
        steps = torch.arange(0, size, 2, dtype=torch.float32, device=self.device)
        angles = batch.positions[:, None].float() * THETA ** (-steps / size)
        both = torch.cat([angles, angles], dim=-1)[:, None]
        turn = both.cos(), both.sin()
        stacks = [self.cast(name).unbind() for name in LAYER]
        for parts in zip(*stacks, strict=True):
            state = layer(
                state, batch.bounds, *turn, self.attention, size, batch.longest, self.dtype, *parts
            )
        return state

    def logits(self, batch: Batch, places: Tensor) -> Tensor:
        """Scores of all tokens as the next one after the given places of the batch."""
        return _logits(
            self.hidden(batch), places, self.weights["norm3"], self.cast("words")
        ).float()

    def loss(self, batch: Batch, places: Tensor, labels: Tensor) -> Tensor:
        """Mean cross-entropy of the labels at the places."""
        head = fused(_loss) if self.compiled else _loss
        return head(self.hidden(batch), places, labels, self.weights["norm3"], self.cast("words"))


def build(recipe: Recipe, weights: Weights, **options: object) -> Model:
    """The model of a recipe's kind."""
    kind = CausalModel if recipe.kind == "causal" else Model
    return kind(recipe, weights, **options)  # type: ignore[arg-type]


def _norm(state: Tensor, weight: Tensor, dtype: torch.dtype) -> Tensor:
    return functional.rms_norm(state, weight.shape, weight, EPSILON).to(dtype)


def _layer(
    state: Tensor,
    bounds: Tensor,
    cosine: Tensor,
    sine: Tensor,
    attention: Attention,
    size: int,
    longest: int,
    dtype: torch.dtype,
    qkv: Tensor,
    out: Tensor,
    norm1: Tensor,
    gate: Tensor,
    up: Tensor,
    down: Tensor,
    norm2: Tensor,
) -> Tensor:
    tokens, width = state.shape
    parts = functional.linear(_norm(state, norm1, dtype), qkv)
    query, key, value = parts.view(tokens, 3, width // size, size).unbind(1)
    query, key = (rotate(part.float(), (cosine, sine)).to(dtype) for part in (query, key))
    mixed = attention(query, key, value, bounds, longest).reshape(tokens, width)
    state = state + functional.linear(mixed, out)
    inner = _norm(state, norm2, dtype)
    inner = functional.silu(functional.linear(inner, gate)) * functional.linear(inner, up)
    return state + functional.linear(inner, down)


def _logits(state: Tensor, places: Tensor, norm: Tensor, words: Tensor) -> Tensor:
    chosen = state.index_select(0, places)
    return functional.linear(_norm(chosen, norm, words.dtype), words)


def _loss(state: Tensor, places: Tensor, labels: Tensor, norm: Tensor, words: Tensor) -> Tensor:
    return functional.cross_entropy(_logits(state, places, norm, words).float(), labels)
