"""Relation networks: the similarity of a query and a class mean is learned (Sung 2018)."""

from __future__ import annotations

from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from evenhand.errors import InputError
from evenhand.fewshot.networks.base import FewShotNetwork

__all__ = ["NeuralTensor", "Relation", "RelationBase", "RelationNTL"]


class Relation(FewShotNetwork):
    """A relation score sigmoid(g(x, p_c)) for each pair, trained towards 1 for the right class.

    El Zein (2021), eq. 8 to 10. `score` gives g, the log odds of a match, so that no digit is lost
    near 0 and 1.
    """

    default_loss: ClassVar[str] = "mse"

    def responses(self, scores: Tensor) -> Tensor:
        return scores.sigmoid()


class RelationBase(Relation):
    """g(x, p) = ⟨w, M₂ ReLU(M₁ [x; p])⟩ with biases (El Zein 2021, eq. 11); `hidden` units, by
    default 2 dim.

    The first layer acts on x and p separately, once each, and their sum is taken for every pair.
    """

    def __init__(
        self, dim: int, *, projection: int | None = None, hidden: int | None = None
    ) -> None:
        super().__init__(dim, projection)
        hidden = 2 * self.width if hidden is None else hidden
        if hidden < 1:
            raise InputError(f"hidden: expected at least 1, got {hidden}")
        self.first = nn.Linear(2 * self.width, hidden)
        self.second = nn.Linear(hidden, hidden)
        self.last = nn.Linear(hidden, 1)

    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        of_query, of_class = self.first.weight.chunk(2, dim=1)
        classes = functional.linear(support.mean(dim=2), of_class, self.first.bias)
        pairs = functional.linear(query, of_query)[:, :, None] + classes[:, None]
        # no nonlinearity between the second layer and the last: they are one row
        row = self.last.weight @ self.second.weight
        shift = self.last(self.second.bias)
        return functional.linear(pairs.relu_(), row, shift).squeeze(-1)


class NeuralTensor(nn.Module):
    """g(x, p) = ⟨w, ReLU(xᵀ M_t p)⟩ + b over slices t = 1..h (Socher 2013; El Zein 2021, eq. 12).

    The slices begin as plus and minus the identity with noise of the same size, weighted by their
    sign: about the dot product. Purely random slices carry no similarity, and learn to separate the
    training classes rather than others.
    """

    def __init__(self, dim: int, slices: int) -> None:
        super().__init__()
        if slices < 1:
            raise InputError(f"slices: expected at least 1, got {slices}")
        signs = 1.0 - 2.0 * (torch.arange(slices) % 2)
        noise = torch.randn(slices, dim, dim) / dim**0.5
        self.slices = nn.Parameter(signs[:, None, None] * torch.eye(dim) + noise)
        self.weights = nn.Parameter(signs / slices)
        self.bias = nn.Parameter(torch.zeros(()))

    def forward(self, classes: Tensor, query: Tensor) -> Tensor:
        """Log odds (E, M, C) of classes (E, C, d) and query (E, M, d); M_t p first: fewer."""
        episodes, ways, dim = classes.shape
        slices = len(self.slices)
        moved = functional.linear(classes, self.slices.flatten(0, 1))
        pairs = moved.reshape(episodes, ways * slices, dim) @ query.mT
        bent = pairs.reshape(episodes, ways, slices, -1).relu()
        return torch.einsum("echm,h->emc", bent, self.weights) + self.bias


class RelationNTL(Relation):
    """A neural tensor layer of h slices as g (El Zein 2021, eq. 12), on means over √dim."""

    def __init__(self, dim: int, *, projection: int | None = None, slices: int = 100) -> None:
        super().__init__(dim, projection)
        self.tensor = NeuralTensor(self.width, slices)

    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        return self.tensor(support.mean(dim=2) / self.width**0.5, query)  # type: ignore[no-any-return]
