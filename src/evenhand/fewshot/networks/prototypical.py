"""Prototypical networks: the nearest mean (Snell 2017), refined by unlabelled ones (Ren 2018)."""

from __future__ import annotations

from typing import ClassVar

from torch import Tensor

from evenhand.fewshot.networks.metric import MetricNetwork

__all__ = ["Prototypical", "SoftPrototypical"]


class Prototypical(MetricNetwork):
    """P(c | x) = softmax over classes of similarity(x, p_c), p_c the mean of the class's shots.

    El Zein (2021), eq. 4 to 6; similarity is minus a scaled squared distance or a scaled cosine
    (`Metric`).
    """

    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        return self.metric(query, support.mean(dim=2))  # type: ignore[no-any-return]


class SoftPrototypical(Prototypical):
    """Prototypes moved by one step of soft k-means over unlabelled points u (El Zein 2021, eq. 7):

    p̃_c = (Σ_k x_ck + Σ_u r_uc u) / (K + Σ_u r_uc), with r_uc = P(c | u) under the same metric that
    classifies. Without unlabelled points it is the plain network.
    """

    uses_unlabelled: ClassVar[bool] = True

    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        means = support.mean(dim=2)
        if unlabelled is not None:
            shares = self.probabilities(self.metric(unlabelled, means))
            weights = shares.sum(dim=1).unsqueeze(-1)
            means = (support.sum(dim=2) + shares.mT @ unlabelled) / (support.shape[2] + weights)
        return self.metric(query, means)  # type: ignore[no-any-return]
