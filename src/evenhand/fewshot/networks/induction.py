"""Induction networks: a class vector by dynamic routing from its shots (Geng 2019)."""

from __future__ import annotations

import torch
from torch import Tensor, nn

from evenhand.errors import InputError
from evenhand.fewshot.networks.relation import NeuralTensor, Relation

__all__ = ["Induction", "squash"]


class Induction(Relation):
    """Class vectors c from shots x_k, then the relation g(x, c) of a neural tensor layer.

    x̂_k = squash(W x_k + b), W and b shared by all; logits b_k = 0; then `iterations` times
    d = softmax(b) over the shots, c = squash(Σ_k d_k x̂_k), b_k += x̂_k · c (Geng 2019, eq. 3 to 8).
    El Zein (2021, eq. 16) drops the coupling coefficients d_k, without which nothing is routed.
    """

    def __init__(
        self, dim: int, *, projection: int | None = None, slices: int = 100, iterations: int = 3
    ) -> None:
        super().__init__(dim, projection)
        if iterations < 1:
            raise InputError(f"iterations: expected at least 1, got {iterations}")
        self.iterations = iterations
        self.shared = nn.Linear(self.width, self.width)
        nn.init.eye_(self.shared.weight)
        nn.init.zeros_(self.shared.bias)
        self.tensor = NeuralTensor(self.width, slices)

    def induce(self, support: Tensor) -> Tensor:
        """Class vectors (E, C, d) from support (E, C, K, d)."""
        shots = squash(self.shared(support))
        logits = shots.new_zeros(shots.shape[:-1])
        for step in range(self.iterations):
            coupling = logits.softmax(dim=-1)
            classes = squash((coupling.unsqueeze(-2) @ shots).squeeze(-2))
            if step + 1 < self.iterations:
                logits = logits + (shots @ classes.unsqueeze(-1)).squeeze(-1)
        return classes

    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        return self.tensor(self.induce(support), query)  # type: ignore[no-any-return]


def squash(vectors: Tensor) -> Tensor:
    """|v|² / (1 + |v|²) · v / |v|: same direction, length below 1; 0 at 0, where its slope is 0."""
    norm: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors * (norm / (1 + norm.square()))
