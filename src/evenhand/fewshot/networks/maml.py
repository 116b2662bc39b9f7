"""MAML on the head: a linear classifier, fitted in a few steps (Finn 2017)."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn
from torch.nn import functional

from evenhand.errors import InputError
from evenhand.fewshot.networks.base import FewShotNetwork

__all__ = ["MAML"]


class MAML(FewShotNetwork):
    """softmax(W x + b) with W and b after `steps` full-batch steps on the support's cross-entropy:

    W_c ← W_c - a ∘ Σ_i (P(c | x_i) - [y_i = c]) x_i / (C K), and b likewise.

    Classes have no order and there may be any number of them, so all begin with the same row. Which
    row has no effect, since a softmax depends on differences only: it is 0. The learned parameters
    are the rates a, one per feature as in Meta-SGD (Li 2017), which begin at `rate`, by default
    1/√dim; and, through the queries, those of the projection or the encoder. First order: the outer
    gradient holds the inner gradients fixed, unless `second_order` is 1. Features are centred at
    the support's mean, since a common offset would only slow the steps.
    """

    def __init__(
        self,
        dim: int,
        *,
        projection: int | None = None,
        steps: int = 5,
        rate: float | None = None,
        second_order: int = 0,
    ) -> None:
        super().__init__(dim, projection)
        rate = self.width**-0.5 if rate is None else rate
        for name, value in (("steps", steps), ("rate", rate)):
            if value <= 0:
                raise InputError(f"{name}: expected a number above 0, got {value}")
        if second_order not in (0, 1):
            raise InputError(f"second_order: expected 0 or 1, got {second_order}")
        self.steps, self.second_order = steps, bool(second_order)
        self.log_rates = nn.Parameter(torch.full((self.width + 1,), math.log(rate)))

    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        centre = support.mean(dim=(1, 2)).unsqueeze(1)
        rates = self.log_rates.exp().unsqueeze(-1)
        with torch.set_grad_enabled(self.second_order and torch.is_grad_enabled()):
            moved = self._moved(_with_one(support.flatten(1, 2) - centre), support.shape[1], rates)
        centre = centre if self.second_order else centre.detach()
        return _with_one(query - centre) @ (rates * moved)

    def _moved(self, points: Tensor, classes: int, rates: Tensor) -> Tensor:
        """The sum over the steps of minus the support's gradient (E, d + 1, C)."""
        count = points.shape[1]
        labels = torch.arange(count, device=points.device) // (count // classes)
        wanted = functional.one_hot(labels, classes).to(points.dtype)
        moved = points.new_zeros(points.shape[0], points.shape[2], classes)
        for _ in range(self.steps):
            errors = wanted - (points @ (rates * moved)).softmax(dim=-1)
            moved = torch.baddbmm(moved, points.mT, errors, alpha=1 / count)
        return moved


def _with_one(points: Tensor) -> Tensor:
    """A last feature of 1, whose weight is the intercept."""
    return functional.pad(points, (0, 1), value=1.0)
