"""Adaptation to the support of an episode: a few gradient steps before its queries are answered.

A model that was trained through episodes "can be further fine-tuned using the support set that will
be encountered at test time" (El Zein 2021, §1.3.2). All weights move, those of the network and of
an encoder that is trained; the next episode begins with the weights of training again.

Each support text is classified by the others: in turn one text of every class is the query, the
other K - 1 are the support. With one text per class it is both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

from evenhand.fewshot.episodes import Episodes, episode_rows, split_rows
from evenhand.fewshot.networks.base import FewShotNetwork
from evenhand.training import select

if TYPE_CHECKING:
    from evenhand.fewshot.settings import TrainingSettings
    from evenhand.fewshot.training import Source

NETWORK, ENCODER = "network.", "encoder."
"""How the names of the weights of each begin."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A network and its features, adapted to one episode after another.

    θ* = θ - α ∇L(support), `adapt` times (El Zein 2021, §1.3.1, step (i)), with gradients of norm
    `clip` at most. The rate of an encoder is lower, as in training. θ itself is never changed.
    """

    settings: TrainingSettings
    network: FewShotNetwork
    source: Source

    @property
    def weights(self) -> dict[str, nn.Parameter]:
        """Every weight that is adapted."""
        return {
            **{f"{NETWORK}{name}": weight for name, weight in self.network.named_parameters()},
            **{f"{ENCODER}{name}": weight for name, weight in self.source.weights().items()},
        }

    def scores(self, episodes: Episodes) -> Iterator[Tensor]:
        """The scores (1, M, C) of the queries of each episode, after adapting to its support."""
        self.network.eval()
        for number in range(len(episodes)):
            moved = self.adapt(episodes.support[number])
            with torch.no_grad():
                output = self.answer(moved, episodes, number)
            yield output

    def learn(self, episodes: Episodes, part: slice, targets: Tensor) -> tuple[float, int, int]:
        """MAML: add up the gradients of the queries' loss at the adapted weights.

        First order they are taken with respect to the adapted weights; second order, where the
        network has it, with respect to the weights before the steps, through these. Attention has
        a second derivative in its plain form only. They are left in the weights' `grad`, averaged
        over the episodes; returned are the loss, and how many queries were right of how many.
        """
        weights = self.weights
        through = bool(getattr(self.network, "second_order", False))
        for weight in weights.values():
            weight.grad = torch.zeros_like(weight)
        total, right = 0.0, 0
        numbers = range(*part.indices(len(episodes)))
        for number in numbers:
            with sdpa_kernel(SDPBackend.MATH) if through else nullcontext():
                moved = self.adapt(episodes.support[number], through=through)
                output = self.answer(moved, episodes, number, through=through)
                loss = self.network.loss(output, targets[None], self.settings.loss)
                gradients = torch.autograd.grad(
                    loss / len(numbers),
                    list((weights if through else moved).values()),
                    allow_unused=True,
                )
            for weight, gradient in zip(weights.values(), gradients, strict=True):
                if weight.grad is not None and gradient is not None:
                    weight.grad += gradient
            total += loss.item() / len(numbers)
            right += int((output.detach().argmax(dim=-1) == targets).sum())
        return total, right, len(numbers) * targets.numel()

    def adapt(self, support: NDArray[Any], *, through: bool = False) -> dict[str, Tensor]:
        """The weights after the steps on a support.

        With `through` they are a differentiable function of the weights before.
        """
        moved: dict[str, Tensor] = dict(self.weights)
        for _ in range(self.settings.adapt):
            if not through:
                moved = {name: w.detach().requires_grad_() for name, w in moved.items()}
            moved = self._step(moved, support, through)
        return moved if through else {n: w.detach().requires_grad_() for n, w in moved.items()}

    def _step(
        self, weights: Mapping[str, Tensor], support: NDArray[Any], through: bool
    ) -> dict[str, Tensor]:
        settings = self.settings
        points, index = self._points(weights, support.ravel(), through)
        given, queries = leave_one_out(gather(points, index.reshape(support.shape)))
        output = self._call(weights, given, queries)
        wanted = torch.arange(len(support), device=output.device).expand(len(output), -1)
        loss = self.network.loss(output, wanted, settings.loss)
        gradients = torch.autograd.grad(
            loss, list(weights.values()), create_graph=through, allow_unused=True
        )
        squares = [gradient.square().sum() for gradient in gradients if gradient is not None]
        scale = (settings.clip / (torch.stack(squares).sum().sqrt() + 1e-6)).clamp(max=1)
        ratio = settings.encoder_learning_rate / settings.learning_rate
        moved = {}
        for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
            rate = settings.adapt_rate * (ratio if name.startswith(ENCODER) else 1)
            moved[name] = weight if gradient is None else weight - rate * scale * gradient
        return moved

    def answer(
        self,
        weights: Mapping[str, Tensor],
        episodes: Episodes,
        number: int,
        *,
        through: bool = False,
    ) -> Tensor:
        """The scores of the queries of an episode by a network and an encoder of these weights."""
        part = slice(number, number + 1)
        points, index = self._points(weights, episode_rows(episodes, part), through)
        return self._call(
            weights,
            *(
                None if rows is None else gather(points, rows)
                for rows in split_rows(episodes, index, part)
            ),
        )

    def _points(
        self, weights: Mapping[str, Tensor], rows: NDArray[Any], through: bool
    ) -> tuple[Tensor, NDArray[Any]]:
        """Features of the rows by an encoder with these weights, and the index of each row's."""
        points, index = self.source.points(rows, select(ENCODER, weights), through=through)
        return self.network.scaled(points), index

    def _call(self, weights: Mapping[str, Tensor], *points: Tensor | None) -> Tensor:
        output: Tensor = functional_call(self.network, select(NETWORK, weights), points)
        return output


def gather(points: Tensor, index: NDArray[Any]) -> Tensor:
    """The points (..., dim) of an index; the backward pass always adds up in the same order."""
    chosen = torch.from_numpy(index.astype(np.int64)).to(points.device)
    return functional.embedding(chosen, points)


def leave_one_out(support: Tensor) -> tuple[Tensor, Tensor]:
    """K small episodes of a support (C, K, d): supports (K, C, K - 1, d) and queries (K, C, d).

    With one text per class it is the support and the query of one episode.

    >>> given, queries = leave_one_out(torch.arange(6.0).reshape(2, 3, 1))
    >>> given[1].squeeze(-1).tolist(), queries[1].squeeze(-1).tolist()
    ([[0.0, 2.0], [3.0, 5.0]], [1.0, 4.0])
    """
    shots = support.shape[1]
    if shots == 1:
        return support[None], support[:, 0][None]
    others = [[j for j in range(shots) if j != k] for k in range(shots)]
    return support[:, others].transpose(0, 1), support.transpose(0, 1)
