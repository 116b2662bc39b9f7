"""Direct bias: how far words that should be neutral lean along the bias direction."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.errors import InputError
from evenhand.instruments import Run, instrument, option
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import project
from evenhand.statistics.intervals import Floats
from evenhand.vectors.debias.subspace import bias_subspace
from evenhand.vectors.probes import MeanScore, WordMetric, all_attributes, all_classes, target_pairs
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known_groups


@dataclass(frozen=True, slots=True)
class DirectBiasStatistic(MeanScore):
    """Direct bias with its direction fixed; the neutral words are the probes."""

    direction: Floats
    strictness: float

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(np.abs(project(vectors, self.direction[None])) ** self.strictness)


@instrument(
    name="direct_bias",
    subject="vectors",
    label="Direct bias",
    question="How far do words that should be neutral lean along the line between the classes?",
    above="words that should be neutral lean along the line between the classes",
    formula="mean over words w of |cos(w, g)|^c, g the first principal component of the defining "
    "sets, each centred on its mean; c is the strictness",
    source="Bolukbasi et al. (2016)",
    worse="higher",
    role="confirms",
    stereotype=0,
    material="a topic, or a query with two target sets of pairs",
    reading="A mean absolute cosine: 0 where no word leans either way.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    caveats=(
        "In d dimensions random words read about √(2/πd) at strictness 1, never 0: compare the "
        "value with the null.",
    ),
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class DirectBias(WordMetric):
    """The declaration of direct bias; `direct_bias` is its function."""

    target_sets = 2
    paired = True

    strictness: float = option(1.0, help="direct_bias: the exponent c, above 0.")

    def __post_init__(self) -> None:
        if not 0 < self.strictness < np.inf:
            raise InputError(f"strictness: expected a number above 0, got {self.strictness}")

    def answer(self, v: Vectors, question: Query | Topic, run: Run) -> list[Measurement]:
        sets: Sequence[Sequence[str]]
        if isinstance(question, Topic):
            sets = question.definitional
            words = all_attributes(all_classes(question, extended=self.extended))
        else:
            sets, words = target_pairs(question), all_attributes(question)
        return [self.compute(v, sets, words, question.name, run)]

    def compute(
        self,
        v: Vectors,
        sets: Sequence[Sequence[str]],
        words: Sequence[str],
        query: str,
        run: Run,
    ) -> Measurement:
        """Measure these words."""
        subspace = bias_subspace(v, sets, k=1)
        probes = known_groups(v, {"words": words}, f"direct bias '{query}': list", at_least=2)
        direction = subspace.basis[0]
        return self.read(
            v,
            DirectBiasStatistic(direction, self.strictness),
            probes,
            query=query,
            run=run,
            fixed=v.find([word for members in subspace.sets for word in members]).rows,
            left_out=subspace.left_out,
            details={
                "strictness": self.strictness,
                "sets": len(subspace.sets),
                "explained": float(subspace.explained[0]),
            },
            columns={"projection": project(v.raw(probes.rows), direction[None])[:, 0]},
        )


def direct_bias(
    v: Vectors,
    sets: Sequence[Sequence[str]],
    words: Sequence[str],
    *,
    strictness: float = 1.0,
    query: str = "direct bias",
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    r"""Measure the direct bias of words along the direction that definitional sets span.

    Parameters
    ----------
    v : Vectors
    sets : sequence of sequences of str
        Defining sets, such as pairs ("he", "she").
    words : sequence of str
        Words that should be neutral.
    strictness : float
        The exponent c, above 0.
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

    Notes
    -----
    .. math:: \mathrm{directBias}_c(N, g) = \frac{1}{|N|} \sum_{w \in N} |\cos(w, g)|^c

    Bolukbasi et al. (2016). g is the first principal component of the sets' members, each set
    centred on its mean. In d dimensions even random words read about √(2/πd) at c = 1: the null
    in `details` says what chance gives.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> m = eh.vectors.direct_bias(v, [("he", "she"), ("man", "woman")], ["nurse", "engineer"])
    >>> m.value > m.details["null_median"]
    True

    """
    metric = DirectBias(strictness=strictness, null=null)
    return metric.compute(v, sets, words, query, Run(seed=seed, prob=prob))
