"""RND: the relative norm distance of words from the centres of two groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.instruments import instrument
from evenhand.lexicon import Query
from evenhand.statistics.association import project
from evenhand.statistics.intervals import Floats
from evenhand.vectors.probes import CentreMetric, MeanScore, by_attribute_set


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
    label="RND",
    question="Are the words nearer the centre of one class than of the other?",
    above="the words are nearer the second class",
    below="the words are nearer the first class",
    formula="mean over words of |w - centre 1| - |w - centre 2|, unit vectors",
    source="Garg et al. (2018), who sum over the words",
    material="a topic, or a query with two target sets",
    reading="Below 0: nearer the first class; above 0: nearer the second.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
)
class Rnd(CentreMetric):
    r"""RND: the mean relative norm distance of words from the centres of two groups.

    The material is a query with two target sets, the groups, and attribute sets, each with a
    result; or a topic.

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
    >>> query = eh.lexicon.Query(
    ...     name="care",
    ...     targets={"men": ("he", "man"), "women": ("she", "woman")},
    ...     attributes={"jobs": ("nurse", "nanny")},
    ... )
    >>> eh.vectors.Rnd()(eh.vectors.load("glove"), query).value > 0
    True
    """

    def statistic(self, first: Floats, second: Floats) -> RndStatistic:
        return RndStatistic(first, second)

    def lists(self, query: Query) -> Mapping[str, Sequence[str]]:
        return by_attribute_set(query)
