"""Projections: where words fall between he and she."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.errors import InputError
from evenhand.instruments import Evidence, Run, instrument, option
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import project, unit
from evenhand.statistics.intervals import Floats, welch
from evenhand.statistics.sizes import spread_within
from evenhand.statistics.tests import two_sample
from evenhand.vectors.probes import Labels, Outcome, WordMetric
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known, known_groups


@dataclass(frozen=True, slots=True)
class ProjectionStatistic:
    """The line between two words, fixed; two lists of words are the probes."""

    direction: Floats

    def scores(self, vectors: Floats) -> Floats:
        return project(vectors, self.direction[None])

    def value(self, scores: Floats, labels: Labels) -> Floats:
        s = scores[..., 0]
        return np.asarray(s[..., labels == 0].mean(axis=-1) - s[..., labels == 1].mean(axis=-1))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        _, low, high = welch(scores[labels == 0, 0], scores[labels == 1, 0], prob)
        return low, high, "Welch's t over the words of both lists, the ends held fixed"


@instrument(
    name="projections",
    subject="vectors",
    label="Projections",
    question="Do occupations associated with one class fall on its side of the line between two "
    "words?",
    above="the occupations of the first class lie towards the first word",
    below="the occupations of the first class lie towards the second word",
    formula="cos(w, a - b) for each occupation; mean of the first list minus mean of the second",
    source="Bolukbasi et al. (2016)",
    worse="away",
    role="decides",
    material="a topic with two classes and occupations",
    reading="Above 0: the occupations of the first class lie towards the first word.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    size="spread",
    unit="occupations",
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Projections(WordMetric):
    """The declaration of the projections; `projections` is their function."""

    average: bool = option(
        False,
        help="projections: a name of several words that has no vector is the mean of theirs.",
    )

    def topic_misfit(self, topic: Topic) -> str | None:
        if len(topic.classes) == 2 and topic.occupations:
            return None
        return f"needs a topic with two classes and occupations, '{topic.name}' is none"

    def query_misfit(self, query: Query) -> str | None:
        return f"needs a topic with two classes and occupations, '{query.name}' is a query"

    def answer(self, v: Vectors, question: Topic, run: Run) -> list[Measurement]:
        ends = (question.definitional[0][0], question.definitional[0][1])
        name = f"{question.name}: occupations on {ends[0]}-{ends[1]}"
        groups = {kind: question.occupations[kind] for kind in question.classes}
        return [self.compute(v, groups, ends, name, run)]

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """The difference of the two lists."""
        items = measurement.items
        scores = [item.get("score", math.nan) for item in items]
        first = "near the side of their own group" if measurement.value > 0 else "on the other side"
        return [
            Evidence(
                measurement=measurement,
                quantity="a difference of projections",
                claim=f"places occupations {first} ({measurement.query})",
                spread=spread_within(scores, [str(item.get("group", "")) for item in items]),
            )
        ]

    def compute(
        self,
        v: Vectors,
        groups: Mapping[str, Sequence[str]],
        ends: tuple[str, str],
        query: str,
        run: Run,
    ) -> Measurement:
        """Measure these words."""
        if len(groups) != 2:
            raise InputError(
                f"projections '{query}': expected two lists of words, got {len(groups)}"
            )
        averaged: tuple[str, ...] = ()
        if self.average:
            v, averaged = average_names(
                v, [*ends, *(w for words in groups.values() for w in words)]
            )
        poles = known(v, ends, f"projections '{query}': ends", at_least=2)
        probes = known_groups(v, groups, f"projections '{query}': list", at_least=2, disjoint=True)
        first, second = v.unit(poles.rows)
        words = v.unit(probes.rows)
        statistic = ProjectionStatistic(unit(first - second))
        x, y = (words[probes.labels == label] @ statistic.direction for label in (0, 1))
        outcome = Outcome(None, "") if self.average else None  # random words have other names
        if self.permutations:
            test = two_sample(x, y, permutations=self.permutations, seed=run.seed)
            outcome = Outcome(test.p_value, test.words, {"exact": test.exact, **test.details})
        return self.read(
            v,
            statistic,
            probes,
            query=query,
            run=run,
            test=outcome,
            fixed=poles.rows,
            columns={ends[0]: words @ first, ends[1]: words @ second},
            details={
                **{
                    f"mean_{name}": float(side.mean())
                    for name, side in zip(groups, (x, y), strict=True)
                },
                **({"averaged": averaged} if self.average else {}),
            },
        )


def projections(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    *,
    ends: tuple[str, str] = ("he", "she"),
    query: str = "projections",
    average: bool = False,
    permutations: int = 100_000,
    null: int = 1000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure how far two lists of words differ in their projection on the line between two words.

    Parameters
    ----------
    v : Vectors
    groups : Mapping of str to sequence of str
        Two lists of words, such as occupations associated with men and with women.
    ends : (str, str)
        The two words that the line runs between.
    query : str
        The name of the question.
    average : bool
        Whether a name of several words, such as "interior designer", that has no vector is the mean
        of the unit vectors of its words; otherwise it is left out.
    permutations : int
        Random permutations where there are more than 40 words; with up to 40 every partition is
        counted. With 0 the words are compared with random words instead.
    null : int
        Draws of random words of similar frequency; used only without permutations.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

    Returns
    -------
    Measurement
        The difference of the two lists' mean projections. The items have each word's projection
        and its cosine with either end.

    Notes
    -----
    The score of a word is the cosine of its vector with first end - second end (both at length
    one), so it is positive on the side of the first. Bolukbasi et al. (2016).

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> groups = {"male": ["captain", "boss"], "female": ["nurse", "nanny"]}
    >>> m = eh.vectors.projections(v, groups)
    >>> m.value > 0, m.items[0]["word"]
    (True, 'captain')

    """
    metric = Projections(permutations=permutations, null=null, average=average)
    return metric.compute(v, groups, ends, query, Run(seed=seed, prob=prob))


def average_names(v: Vectors, names: Sequence[str]) -> tuple[Vectors, tuple[str, ...]]:
    """The vectors of these names alone, and which of them are means of the vectors of their words.

    >>> import evenhand as eh
    >>> small, averaged = average_names(eh.vectors.load("glove"), ["boss", "fighter pilot"])
    >>> small.words, averaged
    (['boss', 'fighter pilot'], ('fighter pilot',))
    """
    rows, averaged = [], []
    found = v.find(names)
    by_name: dict[str, Floats] = dict(zip(found.words, v.raw(found.rows), strict=True))
    for name in found.missing:
        parts = v.find(name.split())
        if len(name.split()) > 1 and not parts.missing:
            by_name[name] = v.unit(parts.rows).mean(axis=0)
            averaged.append(name)
    words = [name for name in dict.fromkeys(names) if name in by_name]
    rows = [by_name[name] for name in words]
    small = Vectors.from_arrays(words, np.array(rows).reshape(-1, v.dim), name=v.name, case="exact")
    return small, tuple(averaged)
