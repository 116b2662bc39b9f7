"""SAME: how much of a word lies in the space that distinguishes the groups."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

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
    subject="vectors",
    label="SAME",
    question="How much of a word lies in the space that distinguishes the classes?",
    above="words that should be neutral have a part in the space that distinguishes the classes",
    formula="mean over words of the length of the unit vector's projection on the differences of "
    "the class centres",
    source="Schröder et al. (2021)",
    worse="higher",
    role="confirms",
    stereotype=0,
    material="a topic, or a query with two or more target sets",
    reading="A mean length between 0 and 1. For two classes, skew is the mean signed bias "
    "(positive: towards the first class) and stereotype its spread over the words.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    caveats=("Random words never read 0: compare the value with the null.",),
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Same(WordMetric):
    """The declaration of SAME; `same` is its function."""

    minimum_target_sets = 2

    def split(self, topic: Topic) -> Sequence[Query]:
        return [all_classes(topic, extended=self.extended)]

    def answer(self, v: Vectors, question: Query, run: Run) -> list[Measurement]:
        words = all_attributes(question)
        return [self.compute(v, question.targets, words, question.name, run)]

    def compute(
        self,
        v: Vectors,
        groups: Mapping[str, Sequence[str]],
        words: Sequence[str],
        query: str,
        run: Run,
    ) -> Measurement:
        """Measure these words."""
        if len(groups) < 2:
            raise InputError(f"same '{query}': expected two or more groups, got {len(groups)}")
        fixed = known_groups(v, groups, f"same '{query}': group", disjoint=True)
        probes = known_groups(v, {"words": words}, f"same '{query}': list", at_least=2)
        vectors = v.unit(fixed.rows)
        centres = np.stack([vectors[fixed.labels == i].mean(axis=0) for i in range(len(groups))])
        details: dict[str, Any] = {"groups": len(groups)}
        if len(groups) == 2:
            signed = v.unit(probes.rows) @ unit(centres[0] - centres[1])
            details |= {"skew": float(signed.mean()), "stereotype": float(signed.std(ddof=1))}
        return self.read(
            v,
            SameStatistic(bias_space(centres)),
            probes,
            query=query,
            run=run,
            fixed=fixed.rows,
            left_out=fixed.missing,
            details=details,
        )


def same(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    words: Sequence[str],
    *,
    query: str = "same",
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    r"""Measure the SAME score of words for two or more groups.

    Parameters
    ----------
    v : Vectors
    groups : Mapping of str to sequence of str
        The identity words by group.
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
    >>> v = eh.vectors.load("glove")
    >>> groups = {"men": ["he", "man"], "women": ["she", "woman"]}
    >>> eh.vectors.same(v, groups, ["nurse", "nanny"]).details["skew"] < 0
    True

    """
    return Same(null=null).compute(v, groups, words, query, Run(seed=seed, prob=prob))
