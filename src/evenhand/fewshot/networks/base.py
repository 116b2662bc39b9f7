"""What all networks share: features in, one score per class out, probabilities and losses."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import torch
from torch import Tensor, nn
from torch.nn import functional

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.networks import LOSSES

__all__ = ["FewShotNetwork"]


class FewShotNetwork(nn.Module):
    """A few-shot classifier of E episodes at once: C classes, K shots, M queries, dim features.

    Scores (E, M, C) are log-probabilities up to a constant of each query: P = softmax(scores).
    A relation network scores each pair of query and class separately, by the log odds that they
    match: with one match among C classes, all equally likely before, Bayes' rule gives the softmax
    too.
    """

    default_loss: ClassVar[str] = "ce"
    mean: Tensor
    deviation: Tensor
    uses_unlabelled: ClassVar[bool] = False
    """Whether unlabelled points change the scores; the other networks ignore them."""

    def __init__(self, dim: int, projection: int | None) -> None:
        super().__init__()
        self.dim = dim
        self.width = dim if projection is None else projection
        """The width of the features that `score` compares."""
        self.projection = (
            None if projection is None else nn.Parameter(_near_identity(dim, projection))
        )
        self.register_buffer("mean", torch.zeros(dim))
        self.register_buffer("deviation", torch.ones(dim))

    def scaled(self, points: Tensor) -> Tensor:
        """Features standardised by mean and standard deviation of the training texts."""
        return (points - self.mean) / self.deviation

    def forward(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        """Scores (E, M, C) from support (E, C, K, dim), query (E, M, dim), unlabelled (E, U, dim).

        Computed in the type of the weights, float32, also where autocast asks for less.
        """
        _check(self.dim, support, query, unlabelled)
        if not self.uses_unlabelled:
            unlabelled = None
        with torch.autocast(support.device.type, enabled=False):
            return self.score(
                self.project(support),
                self.project(query),
                None if unlabelled is None else self.project(unlabelled),
            )

    def project(self, features: Tensor) -> Tensor:
        """Features as `score` takes them: on a fixed network, project a whole table once."""
        if self.projection is None:
            return features.float() if features.dtype.itemsize < 4 else features
        return functional.linear(features.to(self.projection.dtype), self.projection)

    @abstractmethod
    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        """`forward` on features already projected."""

    def log_probabilities(self, scores: Tensor) -> Tensor:
        """The log of P(class) of each query (E, M, C)."""
        return functional.log_softmax(scores, dim=-1)

    def probabilities(self, scores: Tensor) -> Tensor:
        """P(class) of each query (E, M, C); sums to 1 over classes."""
        return functional.softmax(scores, dim=-1)

    def responses(self, scores: Tensor) -> Tensor:
        """What the squared error compares with 1 for the true class and 0 for the others."""
        return self.probabilities(scores)

    def loss(self, scores: Tensor, targets: Tensor, kind: str | None = None) -> Tensor:
        """The mean over queries of the loss against targets (E, M), indices of the classes.

        ce: -log P(true class). mse: the sum over classes of squared errors (El Zein 2021, eq. 10),
        which on probabilities is Brier's score. None: `default_loss`.
        """
        kind = kind or self.default_loss
        if kind == "ce":
            return functional.cross_entropy(scores.flatten(0, 1), targets.flatten())
        if kind == "mse":
            wanted = functional.one_hot(targets, scores.shape[-1]).to(scores.dtype)
            return (self.responses(scores) - wanted).square().sum(-1).mean()
        raise UnknownNameError("loss", kind, LOSSES)


def _near_identity(dim: int, width: int) -> Tensor:
    """A linear map that preserves distances: exactly, or on average if dimensions are dropped."""
    if width == dim:
        return torch.eye(dim)
    return nn.init.orthogonal_(torch.empty(width, dim), gain=max(1.0, dim / width) ** 0.5)


def _check(dim: int, support: Tensor, query: Tensor, unlabelled: Tensor | None) -> None:
    episodes = support.shape[0]
    for name, tensor, axes in (
        ("support", support, 4),
        ("query", query, 3),
        ("unlabelled", unlabelled, 3),
    ):
        if tensor is None:
            continue
        if tensor.ndim != axes or tensor.shape[-1] != dim or tensor.shape[0] != episodes:
            inner = "classes, shots" if axes == 4 else "points"
            raise InputError(
                f"{name} features: expected ({episodes} episodes, {inner}, {dim} dimensions), "
                f"got {tuple(tensor.shape)}"
            )
