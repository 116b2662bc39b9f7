"""RIPA: the relational inner product association of words with a relation such as man-woman."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.instruments import Run, instrument
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import unit
from evenhand.statistics.intervals import Floats
from evenhand.vectors.probes import (
    MeanScore,
    WordMetric,
    all_classes,
    by_attribute_set,
    length_option,
    target_pairs,
)
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known_groups, known_tuples


def relation(differences: Floats) -> Floats:
    """The unit vector that the difference vectors share most, in the direction of their mean.

    >>> relation(np.array([[2.0, 0.0], [3.0, 0.0]]))
    array([1., 0.])
    """
    direction = np.linalg.svd(differences, full_matrices=False)[2][0]
    aligned = direction if differences.mean(axis=0) @ direction >= 0 else -direction
    return np.asarray(aligned + 0.0)


@dataclass(frozen=True, slots=True)
class RipaStatistic(MeanScore):
    """RIPA with its relation fixed."""

    relation: Floats
    scaled: bool = False
    """Whether words are scaled to length one."""

    def scores(self, vectors: Floats) -> Floats:
        words = unit(vectors) if self.scaled else vectors
        return np.asarray(words @ self.relation)[:, None]


@instrument(
    name="ripa",
    label="RIPA",
    question="Where do words fall on the relation between two classes?",
    above="the words fall towards the first words of the pairs",
    below="the words fall towards the second words of the pairs",
    formula="mean over words of w · b, b the first principal component of the pairs' differences "
    "at length one, w at its own length",
    source="Ethayarajh, Duvenaud & Hirst (2019)",
    material="a topic with two classes, or a query with two target sets of pairs",
    reading="Above 0: towards the first words of the pairs; below 0: towards the second.",
    scale="Inner product, depends on the vectors' length (ideal: 0)",
    varies_with="length",
    caveats=(
        "It depends on the length of the vectors: compare embeddings with length = unit, as "
        "mitigations do.",
    ),
)
class Ripa(WordMetric):
    r"""RIPA: the mean projection of words on the relation first - second of word pairs.

    The material is a query with two target sets, whose words are pairs in their order, and
    attribute sets; or a topic of two classes, which has one result per class. A pair with an
    unknown word is left out; the others stay paired.

    Returns
    -------
    Measurement
        Above 0: nearer the first words of the pairs.

    Notes
    -----
    :math:`\beta(w; b) = \langle w, b \rangle`, b the first principal component of the pairs'
    differences at length one, w at its own length. Ethayarajh, Duvenaud & Hirst (2019).

    Examples
    --------
    >>> import evenhand as eh
    >>> query = eh.lexicon.Query(
    ...     name="care",
    ...     targets={"men": ("man",), "women": ("woman",)},
    ...     attributes={"jobs": ("nurse", "nanny")},
    ... )
    >>> eh.vectors.Ripa()(eh.vectors.load("glove"), query).value < 0
    True
    """

    target_sets = 2
    paired = True

    length: Literal["own", "unit"] | None = length_option()

    def topic_misfit(self, topic: Topic) -> str | None:
        count = len(topic.classes)
        return None if count == 2 else f"needs a topic with 2 classes, '{topic.name}' has {count}"

    def split(self, topic: Topic) -> Sequence[Query]:
        """The definitional sets are the pairs; one question per class of stereotypes."""
        ends = {
            name: tuple(s[i] for s in topic.definitional) for i, name in enumerate(topic.classes)
        }
        return [
            Query(name=topic.name, targets=ends, attributes={name: words})
            for name, words in all_classes(topic, extended=self.extended).attributes.items()
        ]

    def answer(self, v: Vectors, question: Query, run: Run) -> list[Measurement]:
        what, pairs = f"ripa '{question.name}'", target_pairs(question)
        known = known_tuples(v, pairs, f"{what}: pairs")
        ends = v.raw(known.rows)
        scaled = self.length == "unit"
        ends = (unit(ends) if scaled else ends).reshape(-1, 2, v.dim)
        statistic = RipaStatistic(relation(ends[:, 0] - ends[:, 1]), scaled)
        return [
            self.score(
                v,
                statistic,
                known_groups(v, {"words": words}, f"ripa '{name}': list", at_least=2),
                query=name,
                run=run,
                fixed=(known,),
                details={
                    "pairs": len(ends),
                    "pairs_dropped": len(pairs) - len(ends),
                    "length": "unit" if scaled else "own",
                },
            )
            for name, words in by_attribute_set(question).items()
        ]
