"""RIPA: the relational inner product association of words with a relation such as man-woman."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand.errors import InputError
from evenhand.instruments import Run, instrument
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import unit
from evenhand.statistics.intervals import Floats
from evenhand.vectors.probes import (
    MeanScore,
    WordMetric,
    all_classes,
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
    subject="vectors",
    label="RIPA",
    question="Where do words fall on the relation between two classes?",
    above="the words fall towards the first words of the pairs",
    below="the words fall towards the second words of the pairs",
    formula="mean over words of w · b, b the first principal component of the pairs' differences "
    "at length one, w at its own length",
    source="Ethayarajh, Duvenaud & Hirst (2019)",
    worse="away",
    stereotype=0,
    material="a topic with two classes, or a query with two target sets of pairs",
    reading="Above 0: towards the first words of the pairs; below 0: towards the second.",
    scale="Inner product, depends on the vectors' length (ideal: 0)",
    varies_with="length",
    caveats=(
        "It depends on the length of the vectors: compare embeddings with length = unit, as "
        "mitigations do.",
    ),
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Ripa(WordMetric):
    """The declaration of RIPA; `ripa` is its function."""

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
        return [
            self.compute(v, target_pairs(question), words, f"{question.name}: {name}", run)
            for name, words in question.attributes.items()
        ]

    def compute(
        self,
        v: Vectors,
        pairs: Sequence[tuple[str, str]],
        words: Sequence[str],
        query: str,
        run: Run,
    ) -> Measurement:
        """Measure these words."""
        pairs = list(pairs)
        if any(isinstance(pair, str) or len(pair) != 2 for pair in pairs):
            raise InputError(f"ripa '{query}': expected pairs of words, got {pairs[:3]}")
        complete, rows, missing = known_tuples(v, pairs, f"ripa '{query}': pairs")
        ends = v.raw(np.concatenate(rows))
        scaled = self.length == "unit"
        ends = (unit(ends) if scaled else ends).reshape(len(complete), 2, -1)
        return self.read(
            v,
            RipaStatistic(relation(ends[:, 0] - ends[:, 1]), scaled),
            known_groups(v, {"words": words}, f"ripa '{query}': list", at_least=2),
            query=query,
            run=run,
            fixed=np.concatenate(rows),
            left_out=missing,
            details={
                "pairs": len(complete),
                "pairs_dropped": len(pairs) - len(complete),
                "length": "unit" if scaled else "own",
            },
        )


def ripa(
    v: Vectors,
    pairs: Sequence[tuple[str, str]],
    words: Sequence[str],
    *,
    query: str = "ripa",
    length: Literal["own", "unit"] = "own",
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    r"""Measure the mean RIPA of words for the relation first - second of pairs.

    Parameters
    ----------
    v : Vectors
    pairs : sequence of (str, str)
        A pair with an unknown word is left out; the others stay paired.
    words : sequence of str
    query : str
        The name of the question.
    length : {"own", "unit"}
        Whether vectors are read at their own length, as published, or scaled to length one.
    null : int
        Draws of random words of similar frequency; 0: none, and no p-value.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

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
    >>> v = eh.vectors.load("glove")
    >>> eh.vectors.ripa(v, [("man", "woman")], ["nurse", "nanny"]).value < 0
    True

    """
    return Ripa(null=null, length=length).compute(v, pairs, words, query, Run(seed=seed, prob=prob))
