"""SAME: how much of a word lies in the space that distinguishes the groups."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.errors import InputError
from evenhand.instruments import Run, instrument
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import project, unit
from evenhand.statistics.intervals import Floats
from evenhand.vectors.probes import MeanScore, WordMetric, all_attributes, all_classes
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known_groups


def bias_space(centres: Floats) -> Floats:
    """An orthonormal basis (g-1, d) of the differences between g groups' centres."""
    _, sizes, right = np.linalg.svd(centres[:-1] - centres[1:], full_matrices=False)
    basis = right[sizes > 1e-10 * max(1.0, float(sizes.max()))]
    if not len(basis):
        raise InputError("same: the groups have the same centre, so no direction separates them")
    return np.asarray(basis)


@dataclass(frozen=True, slots=True)
class SameStatistic(MeanScore):
    """SAME with its bias space fixed."""

    basis: Floats

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(np.linalg.norm(project(vectors, self.basis), axis=1, keepdims=True))


@instrument(
    name="same",
    label="SAME",
    question="How much of a word lies in the space that distinguishes the classes?",
    above="words that should be neutral have a part in the space that distinguishes the classes",
    formula="mean over words of the length of the unit vector's projection on the differences of "
    "the class centres",
    source="Schröder et al. (2021)",
    worse="higher",
    role="confirms",
    material="a topic, or a query with two or more target sets",
    reading="A mean length between 0 and 1. For two classes, skew is the mean signed bias "
    "(positive: towards the first class) and stereotype its spread over the words.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    caveats=("Random words never read 0: compare the value with the null.",),
)
class Same(WordMetric):
    r"""SAME: how far words lie in the space that the differences of two or more groups span.

    The material is a topic, or a query with two or more target sets, the groups, and attribute
    sets.

    Returns
    -------
    Measurement
        For two groups `details` has `skew`, the mean signed bias (positive: towards the first
        group), and `stereotype`, its standard deviation over the words.

    Notes
    -----
    With :math:`\hat a_i` the mean of group i's unit vectors, the bias space is spanned by the
    differences :math:`\hat a_i - \hat a_{i+1}`; a word's bias is the length of its unit vector's
    projection on it (for two groups :math:`|\cos(w, \hat a_1 - \hat a_2)|`), SAME the mean over
    words. Schröder et al. (2021).

    Examples
    --------
    >>> import evenhand as eh
    >>> gender = eh.lexicon.topic("gender")
    >>> eh.vectors.Same()(eh.vectors.load("glove"), gender).details["skew"] < 0
    True
    """

    minimum_target_sets = 2

    def split(self, topic: Topic) -> Sequence[Query]:
        return [all_classes(topic, extended=self.extended)]

    def answer(self, v: Vectors, question: Query, run: Run) -> Iterator[Measurement]:
        query, groups, words = question.name, question.targets, all_attributes(question)
        fixed = known_groups(v, groups, f"same '{query}': group", disjoint=True)
        probes = known_groups(v, {"words": words}, f"same '{query}': list", at_least=2)
        vectors = v.unit(fixed.rows)
        centres = np.stack([vectors[fixed.labels == i].mean(axis=0) for i in range(len(groups))])
        details: dict[str, object] = {"groups": len(groups)}
        if len(groups) == 2:
            signed = v.unit(probes.rows) @ unit(centres[0] - centres[1])
            details |= {"skew": float(signed.mean()), "stereotype": float(signed.std(ddof=1))}
        yield self.score(
            v,
            SameStatistic(bias_space(centres)),
            probes,
            query=query,
            run=run,
            fixed=(fixed,),
            details=details,
        )
