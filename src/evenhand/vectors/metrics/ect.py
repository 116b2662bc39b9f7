"""ECT: do two groups order the same words alike?"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.instruments import Run, instrument
from evenhand.lexicon import Query
from evenhand.results import Measurement
from evenhand.statistics.association import project, unit
from evenhand.statistics.correlation import average_ranks
from evenhand.statistics.intervals import Floats, fisher_z
from evenhand.vectors.probes import CentreMetric, Labels, all_attributes
from evenhand.vectors.store import Vectors


@dataclass(frozen=True, slots=True)
class EctStatistic:
    """ECT with the two groups' mean vectors fixed; the attribute words are the probes."""

    first: Floats
    second: Floats

    def scores(self, vectors: Floats) -> Floats:
        return project(vectors, unit(np.stack([self.first, self.second])))

    def value(self, scores: Floats, labels: Labels) -> Floats:  # noqa: ARG002
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
    subject="vectors",
    label="ECT",
    question="Do two classes rank the same words alike?",
    below="the two classes rank the same words differently",
    formula="Spearman's correlation, over the words, of their cosines with the two class centres",
    source="Dev & Phillips (2019)",
    ideal=1.0,
    worse="lower",
    stereotype=0,
    material="a topic, or a query with two target sets",
    reading="A rank correlation. 1: both classes order the words alike.",
    scale="Mean distance and rank agreement (ideal: 1)",
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Ect(CentreMetric):
    """The declaration of ECT; `ect` is its function."""

    minimum_words = 5

    def statistic(self, first: Floats, second: Floats) -> EctStatistic:
        return EctStatistic(first, second)

    def answer(self, v: Vectors, question: Query, run: Run) -> list[Measurement]:
        first, second = question.targets.values()
        return [self.compute(v, first, second, all_attributes(question), question.name, run)]


def ect(
    v: Vectors,
    first: Sequence[str],
    second: Sequence[str],
    words: Sequence[str],
    *,
    query: str = "ect",
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure how far the mean vectors of two groups rank words alike.

    Parameters
    ----------
    v : Vectors
    first, second : sequence of str
        The words of the two groups.
    words : sequence of str
        At least five with a vector.
    query : str
        The name of the question.
    null : int
        Draws of random words of similar frequency; 0: none, and no p-value.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

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
    >>> v = eh.vectors.load("glove")
    >>> words = ["nurse", "nanny", "engineer", "pilot", "cook", "judge"]
    >>> eh.vectors.ect(v, ["he", "man"], ["she", "woman"], words).value < 1
    True

    """
    metric = Ect(null=null)
    return metric.compute(v, first, second, words, query, Run(seed=seed, prob=prob))
