"""AdamW for all weights, or Muon for the matrices with AdamW for the rest."""

from __future__ import annotations

import math

import torch
from torch import Tensor

from .model import MATRICES, Weights
from .recipe import Recipe

_ADAM = ("exp_avg", "exp_avg_sq", "step")
_QUINTIC = (3.4445, -4.7750, 2.0315)


def orthogonal(stack: Tensor, rounds: int = 5) -> Tensor:
    """The nearest orthogonal matrix, roughly, to each of a stack, by a quintic Newton-Schulz.

    Singular values end between about 0.7 and 1.2 (Jordan et al. 2024, "Muon"). In bfloat16 on
    CUDA, for speed.
    """
    tall = stack.shape[-2] > stack.shape[-1]
    state: Tensor = stack.mT if tall else stack
    state = state.to(torch.bfloat16 if stack.is_cuda else stack.dtype)
    state = state / (state.norm(dim=(-2, -1), keepdim=True) + 1e-7)
    first, second, third = _QUINTIC
    for _ in range(rounds):
        square = state @ state.mT
        state = first * state + (second * square + third * square @ square) @ state
    state = state.mT if tall else state
    return state.to(stack.dtype)


class Muon:
    """Momentum whose every update of a matrix is made orthogonal (Jordan et al. 2024).

    Updates are scaled by 0.2 times the root of the longer side, so that they are of the size of
    AdamW's and learning rates and decay carry over (Liu et al. 2025). Queries, keys and values
    are matrices of their own.
    """

    def __init__(self, weights: Weights, *, decay: float, momentum: float = 0.95) -> None:
        self.weights = weights
        self.decay = decay
        self.momentum = momentum
        self.state = {name: torch.zeros_like(weight) for name, weight in weights.items()}

    @torch.no_grad()
    def step(self, rate: float) -> None:
        for name, weight in self.weights.items():
            gradient, state = weight.grad, self.state[name]
            if gradient is None:
                continue
            state.lerp_(gradient, 1 - self.momentum)
            ahead = gradient.lerp(state, self.momentum)
            rows, columns = weight.shape[-2:]
            rows = columns if name == "qkv" else rows
            update = orthogonal(ahead.view(-1, rows, columns)).view_as(weight)
            weight.mul_(1 - rate * self.decay)
            weight.add_(update, alpha=-rate * 0.2 * math.sqrt(max(rows, columns)))


class Optimizer:
    """One step for all weights, with clipped gradients."""

    def __init__(self, recipe: Recipe, weights: Weights) -> None:
        self.recipe = recipe
        self.weights = weights
        muon = recipe.optimizer == "muon"
        matrices = {name: weights[name] for name in MATRICES if name in weights} if muon else {}
        rest = {name: weight for name, weight in weights.items() if name not in matrices}
        decayed = [name for name in rest if name in (*MATRICES, "words")]
        self.muon = Muon(matrices, decay=recipe.weight_decay)
        self.names = [*decayed, *(name for name in rest if name not in decayed)]
        self.adam = torch.optim.AdamW(
            [
                {"params": [rest[name] for name in decayed], "weight_decay": recipe.weight_decay},
                {
                    "params": [rest[name] for name in self.names[len(decayed) :]],
                    "weight_decay": 0.0,
                },
            ],
            lr=recipe.lr,
            betas=(recipe.beta1, recipe.beta2),
            fused=True,
        )

    def step(self, factor: float) -> None:
        """Update with the learning rates times the schedule's factor, and clear the gradients."""
        torch.nn.utils.clip_grad_norm_(list(self.weights.values()), self.recipe.clip)
        for group in self.adam.param_groups:
            group["lr"] = self.recipe.lr * factor
        self.adam.step()
        self.muon.step(self.recipe.matrix_lr * factor)
        for weight in self.weights.values():
            weight.grad = None

    def state(self) -> dict[str, Tensor]:
        """What a checkpoint must hold beside the weights."""
        kept = {f"muon.{name}": value for name, value in self.muon.state.items()}
        for name in self.names:
            entry = self.adam.state.get(self.weights[name], {})
            kept |= {f"{kind}.{name}": entry[kind] for kind in _ADAM if kind in entry}
        return kept

    def restore(self, kept: dict[str, Tensor]) -> None:
        """Go on from a checkpoint's state."""
        for name, value in self.muon.state.items():
            value.copy_(kept[f"muon.{name}"])
        for name in self.names:
            weight = self.weights[name]
            if f"step.{name}" in kept:
                self.adam.state[weight] = {
                    kind: kept[f"{kind}.{name}"].to(weight.device, torch.float32, copy=True)
                    for kind in _ADAM
                }
