"""Adaptation to the support of an episode: a few gradient steps before its queries are answered.

A model that was trained through episodes "can be further fine-tuned using the support set that will
be encountered at test time" (El Zein 2021, §1.3.2). All weights move, those of the network and of
an encoder that is trained, and go back to where they were before the next episode.

Each support text is classified by the others: in turn one text of every class is the query, the
other K - 1 are the support. With one text per class it is both.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.func import functional_call
from torch.nn.attention import SDPBackend, sdpa_kernel

from evenhand.fewshot.episodes import Episodes
from evenhand.fewshot.networks.base import Network
from evenhand.training import load_weights

if TYPE_CHECKING:
    from evenhand.fewshot.settings import TrainingSettings
    from evenhand.fewshot.training import Scaling, Source

__all__ = ["Adaptation"]

NETWORK, ENCODER = "network.", "encoder."
"""How the names of the weights of each begin."""


@dataclass(frozen=True, eq=False)
class Adaptation:
    """A network and its features, adapted to one episode after another.

    θ* = θ - α ∇L(support), `adapt` times (El Zein 2021, §1.3.1, step (i)), with gradients of norm
    `clip` at most. The rate of an encoder is lower, as in training.
    """

    settings: TrainingSettings
    network: Network
    scaling: Scaling | None
    source: Source

    @property
    def weights(self) -> dict[str, nn.Parameter]:
        """Every weight that moves."""
        return {
            **{f"{NETWORK}{name}": weight for name, weight in self.network.named_parameters()},
            **{f"{ENCODER}{name}": weight for name, weight in self.source.weights().items()},
        }

    def scores(self, episodes: Episodes) -> Iterator[Tensor]:
        """The scores (1, M, C) of the queries of each episode, after adapting to its support."""
        weights = self.weights
        before = {name: weight.detach().clone() for name, weight in weights.items()}
        self.network.eval()
        try:
            for number in range(len(episodes)):
                self.adapt(episodes, number, weights)
                with torch.no_grad():
                    output = self._answer(episodes, number, *self._table(episodes, number))
                load_weights(weights, before)
                yield output
        finally:
            load_weights(weights, before)

    def learn(self, episodes: Episodes, part: slice, targets: Tensor) -> tuple[float, int, int]:
        """MAML: add up the gradients of the queries' loss at the adapted weights.

        First order they are taken with respect to the adapted weights; second order, where the
        network has it, with respect to the weights before the steps, through these. They are left
        in the weights' `grad`, averaged over the episodes; returned are the loss, and how many
        queries were right of how many.
        """
        weights = self.weights
        if getattr(self.network, "second_order", False):
            return self._learn_through(episodes, part, targets, weights)
        before = {name: weight.detach().clone() for name, weight in weights.items()}
        sums = {name: torch.zeros_like(weight) for name, weight in weights.items()}
        total, right, queries = 0.0, 0, 0
        numbers = range(*part.indices(len(episodes)))
        for number in numbers:
            self.adapt(episodes, number, weights)
            rows = _rows(episodes, number)
            points, index = self.source.points(rows)
            output = self._answer(episodes, number, self._scaled(points), index)
            loss = self.network.loss(output, targets[None], self.settings.loss)
            torch.autograd.backward(loss)
            self.source.backward()
            for name, weight in weights.items():
                if weight.grad is not None:
                    sums[name] += weight.grad / len(numbers)
                    weight.grad = None
            load_weights(weights, before)
            total += loss.item() * targets.numel()
            right += int((output.detach().argmax(dim=-1) == targets).sum())
            queries += targets.numel()
        for name, weight in weights.items():
            weight.grad = sums[name]
        return total / queries, right, queries

    def adapt(self, episodes: Episodes, number: int, weights: Mapping[str, nn.Parameter]) -> None:
        """Move the weights by some steps on the support of an episode."""
        settings = self.settings
        ratio = settings.encoder_learning_rate / settings.learning_rate
        support = episodes.support[number]
        for _ in range(settings.adapt):
            points, index = self.source.points(support.ravel())
            chosen = self._gather(self._scaled(points), index.reshape(support.shape))
            given, queries = leave_one_out(chosen)
            output = self.network(given, queries)
            wanted = torch.arange(len(support), device=output.device).expand(len(output), -1)
            torch.autograd.backward(self.network.loss(output, wanted, settings.loss))
            self.source.backward()
            torch.nn.utils.clip_grad_norm_(weights.values(), settings.clip)
            with torch.no_grad():
                for name, weight in weights.items():
                    if weight.grad is not None:
                        rate = settings.adapt_rate * (ratio if name.startswith(ENCODER) else 1)
                        weight.sub_(rate * weight.grad)
                        weight.grad = None

    def _learn_through(
        self,
        episodes: Episodes,
        part: slice,
        targets: Tensor,
        weights: Mapping[str, nn.Parameter],
    ) -> tuple[float, int, int]:
        """Second-order MAML: θ* is a function of θ, and ∇L(queries; θ*) is taken of θ.

        θ is never changed. Attention has a second derivative in its plain form only.
        """
        from evenhand.fewshot.training import split_rows

        for weight in weights.values():
            weight.grad = torch.zeros_like(weight)
        total, right, queries = 0.0, 0, 0
        numbers = range(*part.indices(len(episodes)))
        with sdpa_kernel(SDPBackend.MATH):
            for number in numbers:
                moved: dict[str, Tensor] = dict(weights)
                for _ in range(self.settings.adapt):
                    moved = self._step(moved, episodes.support[number])
                points, index = self._points(moved, _rows(episodes, number))
                support, query, _ = split_rows(episodes, index, slice(number, number + 1))
                output = self._scores(
                    moved, self._gather(points, support), self._gather(points, query)
                )
                loss = self.network.loss(output, targets[None], self.settings.loss)
                torch.autograd.backward(loss / len(numbers), inputs=list(weights.values()))
                total += loss.item() * targets.numel()
                right += int((output.detach().argmax(dim=-1) == targets).sum())
                queries += targets.numel()
        return total / queries, right, queries

    def _step(self, weights: Mapping[str, Tensor], support: NDArray[Any]) -> dict[str, Tensor]:
        """The weights after a step on the support, as a differentiable function of them."""
        settings = self.settings
        ratio = settings.encoder_learning_rate / settings.learning_rate
        points, index = self._points(weights, support.ravel())
        given, queries = leave_one_out(self._gather(points, index.reshape(support.shape)))
        output = self._scores(weights, given, queries)
        wanted = torch.arange(len(support), device=output.device).expand(len(output), -1)
        loss = self.network.loss(output, wanted, settings.loss)
        gradients = torch.autograd.grad(
            loss, list(weights.values()), create_graph=True, allow_unused=True
        )
        squares = [gradient.square().sum() for gradient in gradients if gradient is not None]
        scale = (settings.clip / (torch.stack(squares).sum().sqrt() + 1e-6)).clamp(max=1)
        moved = {}
        for (name, weight), gradient in zip(weights.items(), gradients, strict=True):
            rate = settings.adapt_rate * (ratio if name.startswith(ENCODER) else 1)
            moved[name] = weight if gradient is None else weight - rate * scale * gradient
        return moved

    def _points(
        self, weights: Mapping[str, Tensor], rows: NDArray[Any]
    ) -> tuple[Tensor, NDArray[Any]]:
        """Features of the rows by an encoder with these weights, and the index of each row's."""
        own = {
            name.removeprefix(ENCODER): weight
            for name, weight in weights.items()
            if name.startswith(ENCODER)
        }
        points, index = self.source.points_with(own, rows)
        return self._scaled(points), index

    def _scores(self, weights: Mapping[str, Tensor], support: Tensor, query: Tensor) -> Tensor:
        own = {
            name.removeprefix(NETWORK): weight
            for name, weight in weights.items()
            if name.startswith(NETWORK)
        }
        output: Tensor = functional_call(self.network, own, (support, query))
        return output

    def _answer(
        self, episodes: Episodes, number: int, points: Tensor, index: NDArray[Any]
    ) -> Tensor:
        from evenhand.fewshot.training import split_rows

        support, query, unlabelled = split_rows(episodes, index, slice(number, number + 1))
        used = unlabelled if self.network.uses_unlabelled else None
        output: Tensor = self.network(
            self._gather(points, support),
            self._gather(points, query),
            None if used is None else self._gather(points, used),
        )
        return output

    def _table(self, episodes: Episodes, number: int) -> tuple[Tensor, NDArray[Any]]:
        points, index = self.source.table(_rows(episodes, number))
        return self._scaled(points), index

    def _scaled(self, points: Tensor) -> Tensor:
        return points if self.scaling is None else self.scaling(points)

    @staticmethod
    def _gather(points: Tensor, index: NDArray[Any]) -> Tensor:
        from evenhand.fewshot.training import gather

        return gather(points, index)


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


def _rows(episodes: Episodes, number: int) -> NDArray[np.int32]:
    from evenhand.fewshot.training import episode_rows

    return episode_rows(episodes, slice(number, number + 1))
