"""Matching networks: attention over the labelled examples (Vinyals 2016)."""

from __future__ import annotations

from torch import Tensor

from evenhand.fewshot.networks.metric import MetricNetwork

__all__ = ["Matching"]


class Matching(MetricNetwork):
    """P(c | x) = Σ of α(x, x_i) over the shots x_i of class c, α = softmax over all the support.

    El Zein (2021), eq. 1 and 2, with α = exp(similarity) / Σ exp(similarity): similarity is a
    scaled cosine or minus a scaled squared distance (`Metric`). Eq. 2 has exp of a distance, which
    would favour the farthest.
    """

    def score(self, support: Tensor, query: Tensor, unlabelled: Tensor | None = None) -> Tensor:
        similarity: Tensor = self.metric(query, support.flatten(1, 2))
        return similarity.reshape(*query.shape[:2], *support.shape[1:3]).logsumexp(dim=-1)
