"""Direct bias: how far words that should be neutral lean along the bias direction."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

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
    label="Direct bias",
    question="How far do words that should be neutral lean along the line between the classes?",
    above="words that should be neutral lean along the line between the classes",
    formula="mean over words w of |cos(w, g)|^c, g the first principal component of the defining "
    "sets, each centred on its mean; c is the strictness",
    source="Bolukbasi et al. (2016)",
    worse="higher",
    role="confirms",
    material="a topic, or a query with two target sets of pairs",
    reading="A mean absolute cosine: 0 where no word leans either way.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    caveats=(
        "In d dimensions random words score about √(2/πd) at strictness 1, never 0: compare the "
        "value with the null.",
    ),
)
class DirectBias(WordMetric):
    r"""Direct bias: how far words lie along the direction that definitional sets span.

    The material is a topic, or a query with two target sets, whose words are pairs in their order
    ("he" and "she"), and attribute sets of words that should be neutral.

    Returns
    -------
    Measurement

    Notes
    -----
    .. math:: \mathrm{directBias}_c(N, g) = \frac{1}{|N|} \sum_{w \in N} |\cos(w, g)|^c

    Bolukbasi et al. (2016). g is the first principal component of the sets' members, each set
    centred on its mean. In d dimensions even random words score about √(2/πd) at c = 1: the null
    in `details` says what chance gives.

    Examples
    --------
    >>> import evenhand as eh
    >>> gender = eh.lexicon.topic("gender")
    >>> m = eh.vectors.DirectBias()(eh.vectors.load("glove"), gender)
    >>> m.value > m.details["null_median"]
    True
    """

    target_sets = 2
    paired = True

    strictness: float = option(1.0, above=0, help="direct_bias: the exponent c, above 0.")

    def answer(self, v: Vectors, question: Query | Topic, run: Run) -> Iterator[Measurement]:
        sets: Sequence[Sequence[str]]
        if isinstance(question, Topic):
            sets = question.definitional
            words = all_attributes(all_classes(question, extended=self.extended))
        else:
            sets, words = target_pairs(question), all_attributes(question)
        subspace = bias_subspace(v, sets, k=1)
        probes = known_groups(
            v, {"words": words}, f"direct bias '{question.name}': list", at_least=2
        )
        direction = subspace.basis[0]
        defining = v.find([word for members in subspace.sets for word in members])
        yield self.score(
            v,
            DirectBiasStatistic(direction, self.strictness),
            probes,
            query=question.name,
            run=run,
            fixed=(replace(defining, missing=subspace.left_out),),
            details={
                "strictness": self.strictness,
                "sets": len(subspace.sets),
                "explained": float(subspace.explained[0]),
            },
            columns={"projection": project(v.raw(probes.rows), direction[None])[:, 0]},
        )
