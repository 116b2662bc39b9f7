"""Similarity of two points: a scaled cosine, or minus a scaled squared euclidean distance."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from evenhand.errors import InputError, UnknownNameError
from evenhand.fewshot.networks.base import FewShotNetwork

__all__ = ["METRICS", "Metric", "MetricNetwork", "unit"]

METRICS = ("cosine", "euclidean")


class Metric(nn.Module):
    """s · cos(x, y), or -s · |x - y|², with s > 0 one learned number.

    A metric alone determines which class is nearest, not how confident the softmax is: s does.
    Cosines lie within ±1, a softmax of them is nearly flat: s begins at 10 (Gidaris & Komodakis
    2018). Among random points
    |x - y|² varies as √dim: s begins at 1/√dim; Snell 2017 has s = 1. The distance is squared, a
    Bregman divergence, under which the mean of a class is its best single point (Snell 2017, §2.3),
    and smooth where points meet.
    """

    def __init__(self, kind: str, dim: int, scale: float | None = None) -> None:
        super().__init__()
        if kind not in METRICS:
            raise UnknownNameError("metric", kind, METRICS)
        if scale is None:
            scale = 10.0 if kind == "cosine" else dim**-0.5
        if scale <= 0:
            raise InputError(f"scale: expected a number above 0, got {scale}")
        self.kind = kind
        self.log_scale = nn.Parameter(torch.tensor(math.log(scale)))

    def forward(self, points: Tensor, others: Tensor) -> Tensor:
        """Similarity (E, N, R) of points (E, N, d) to others (E, R, d).

        The euclidean one leaves out |x|², the same for all others and so without effect on a
        softmax over them, and measures from the others' mean: 2xy - y² then loses no digits.
        """
        scale = self.log_scale.exp()
        if self.kind == "cosine":
            return scale * (unit(points) @ unit(others).mT)
        centre = others.mean(dim=1, keepdim=True).detach()
        points, others = points - centre, others - centre
        squares = others.square().sum(-1)[:, None]
        return scale * torch.baddbmm(squares, points, others.mT, beta=-1, alpha=2)


class MetricNetwork(FewShotNetwork):
    """A network that compares points by a metric."""

    def __init__(
        self,
        dim: int,
        *,
        metric: str = "euclidean",
        projection: int | None = None,
        scale: float | None = None,
    ) -> None:
        super().__init__(dim, projection)
        self.metric = Metric(metric, self.width, scale)


def unit(vectors: Tensor) -> Tensor:
    """Vectors of length 1; a zero vector stays zero and has no gradient, not an infinite one."""
    norm: Tensor = torch.linalg.vector_norm(vectors, dim=-1, keepdim=True)
    return vectors / norm.masked_fill(norm == 0, math.inf)
