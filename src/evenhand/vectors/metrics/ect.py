"""ECT: do two groups order the same words alike?"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.instruments import instrument
from evenhand.statistics.association import project, unit
from evenhand.statistics.correlation import average_ranks
from evenhand.statistics.intervals import Floats, fisher_z
from evenhand.vectors.probes import CentreMetric, Labels


@dataclass(frozen=True, slots=True)
class EctStatistic:
    """ECT with the two groups' mean vectors fixed; the attribute words are the probes."""

    first: Floats
    second: Floats

    def scores(self, vectors: Floats) -> Floats:
        return project(vectors, unit(np.stack([self.first, self.second])))

    def value(self, scores: Floats, labels: Labels) -> Floats:
        ranks = average_ranks(scores, axis=-2)
        centred = ranks - ranks.mean(axis=-2, keepdims=True)
        product = (centred[..., 0] * centred[..., 1]).sum(axis=-1)
        norms = np.sqrt((centred**2).sum(axis=-2))
        return np.asarray(product / (norms[..., 0] * norms[..., 1]))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        low, high = fisher_z(float(self.value(scores, labels)), len(scores), prob, spearman=True)
        return low, high, "Fisher z for Spearman over the attribute words, groups held fixed"


@instrument(
    name="ect",
    label="ECT",
    question="Do two classes rank the same words alike?",
    below="the two classes rank the same words differently",
    formula="Spearman's correlation, over the words, of their cosines with the two class centres",
    source="Dev & Phillips (2019)",
    ideal=1.0,
    worse="lower",
    material="a topic, or a query with two target sets",
    reading="A rank correlation. 1: both classes order the words alike.",
    scale="Mean distance and rank agreement (ideal: 1)",
)
class Ect(CentreMetric):
    """ECT: how far the mean vectors of two groups rank words alike.

    The material is a query with two target sets, the groups, and attribute sets with at least five
    words that have a vector; or a topic.

    Returns
    -------
    Measurement
        1: both groups order the words alike.

    Notes
    -----
    The Spearman correlation, over the words, of their cosine with the first group's mean vector
    and with the second's. Dev & Phillips (2019).

    Examples
    --------
    >>> import evenhand as eh
    >>> gender = eh.lexicon.topic("gender")
    >>> eh.vectors.Ect()(eh.vectors.load("glove"), gender).value < 1
    True
    """

    minimum_words = 5

    def statistic(self, first: Floats, second: Floats) -> EctStatistic:
        return EctStatistic(first, second)
