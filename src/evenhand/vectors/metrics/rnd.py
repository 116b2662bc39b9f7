"""RND: the relative norm distance of words from the centres of two groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.instruments import Run, instrument
from evenhand.lexicon import Query
from evenhand.results import Measurement
from evenhand.statistics.association import project
from evenhand.statistics.intervals import Floats
from evenhand.vectors.probes import CentreMetric, MeanScore
from evenhand.vectors.store import Vectors


@dataclass(frozen=True, slots=True)
class RndStatistic(MeanScore):
    """RND with the two groups' centres fixed."""

    first: Floats
    second: Floats

    def scores(self, vectors: Floats) -> Floats:
        centres = np.stack([self.first, self.second])
        squares = 1 + (centres**2).sum(axis=1) - 2 * project(vectors, centres)
        near, far = np.sqrt(np.maximum(squares, 0)).T
        return np.asarray(near - far)[:, None]


@instrument(
    name="rnd",
    subject="vectors",
    label="RND",
    question="Are the words nearer the centre of one class than of the other?",
    above="the words are nearer the second class",
    below="the words are nearer the first class",
    formula="mean over words of |w - centre 1| - |w - centre 2|, unit vectors",
    source="Garg et al. (2018), who sum over the words",
    worse="away",
    stereotype=0,
    material="a topic, or a query with two target sets",
    reading="Below 0: nearer the first class; above 0: nearer the second.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Rnd(CentreMetric):
    """The declaration of RND; `rnd` is its function."""

    def statistic(self, first: Floats, second: Floats) -> RndStatistic:
        return RndStatistic(first, second)

    def answer(self, v: Vectors, question: Query, run: Run) -> list[Measurement]:
        first, second = question.targets.values()
        return [
            self.compute(v, first, second, words, f"{question.name}: {name}", run)
            for name, words in question.attributes.items()
        ]


def rnd(
    v: Vectors,
    first: Sequence[str],
    second: Sequence[str],
    words: Sequence[str],
    *,
    query: str = "rnd",
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    r"""Measure the mean relative norm distance of words from the centres of two groups.

    Parameters
    ----------
    v : Vectors
    first, second : sequence of str
        The words of the two groups.
    words : sequence of str
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
        Below 0: nearer the first group.

    Notes
    -----
    .. math:: \mathrm{RND} = \frac{1}{|W|} \sum_{w \in W} (\lVert w - \bar g_1 \rVert
              - \lVert w - \bar g_2 \rVert)

    All vectors at length one, :math:`\bar g` the mean of a group. Garg et al. (2018) sum over the
    words; the mean makes lists of different length comparable.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> eh.vectors.rnd(v, ["he", "man"], ["she", "woman"], ["nurse", "nanny"]).value > 0
    True

    """
    metric = Rnd(null=null)
    return metric.compute(v, first, second, words, query, Run(seed=seed, prob=prob))
