"""Projections: where words fall between he and she."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from evenhand.instruments import Evidence, Run, instrument, option
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import project, unit
from evenhand.statistics.intervals import Floats, welch
from evenhand.statistics.sizes import spread_within
from evenhand.statistics.tests import two_sample
from evenhand.vectors.probes import Labels, ProbeTest, WordMetric
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
    label="Projections",
    question="Do occupations associated with one class fall on its side of the line between two "
    "words?",
    above="occupations of the first class lie closer to the first word than those of the second",
    below="occupations of the second class lie closer to the first word than those of the first",
    formula="cos(w, a - b) for each occupation; mean of the first list minus mean of the second",
    source="Bolukbasi et al. (2016)",
    role="decides",
    stereotype=1,
    material="a topic with two classes and occupations",
    reading="Above 0: occupations of the first class lie closer to the first word than those of "
    "the second.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    size="spread",
    unit="occupations",
)
class Projections(WordMetric):
    """Projections: how far two lists of words differ on the line between two words.

    The material is a topic with occupations of two classes; or a query whose two target sets are
    the lists and whose two attribute sets have one word each, the ends of the line. With up to 40
    words every partition is counted; without permutations the words are compared with random words.

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
    >>> query = eh.lexicon.Query(
    ...     name="jobs",
    ...     targets={"male": ("captain", "boss"), "female": ("nurse", "nanny")},
    ...     attributes={"first": ("he",), "second": ("she",)},
    ... )
    >>> m = eh.vectors.Projections()(eh.vectors.load("glove"), query)
    >>> m.value > 0, m.items[0]["word"]
    (True, 'captain')
    """

    average: bool = option(
        False,
        help="projections: a name of several words that has no vector is the mean of theirs.",
    )

    def topic_misfit(self, topic: Topic) -> str | None:
        if len(topic.classes) == 2 and topic.occupations:
            return None
        return f"needs a topic with two classes and occupations, '{topic.name}' is none"

    def query_misfit(self, query: Query) -> str | None:
        ends = [len(words) for words in query.attributes.values()]
        if len(query.targets) == 2 and ends == [1, 1]:
            return None
        return (
            "needs a topic with two classes and occupations, or two target sets and two attribute "
            f"sets of one word, '{query.name}' is neither"
        )

    def answer(self, v: Vectors, question: Topic | Query, run: Run) -> Iterator[Measurement]:
        if isinstance(question, Query):
            (a,), (b,) = question.attributes.values()
            ends, groups, query = (a, b), question.targets, question.name
        else:
            ends = (question.definitional[0][0], question.definitional[0][1])
            groups = {kind: question.occupations[kind] for kind in question.classes}
            query = f"{question.name}: occupations on {ends[0]}-{ends[1]}"
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
        outcome = ProbeTest(None, "") if self.average else None  # random words have other names
        if self.permutations:
            test = two_sample(x, y, permutations=self.permutations, seed=run.seed)
            outcome = ProbeTest(test.p_value, test.words, {"exact": test.exact, **test.details})
        yield self.score(
            v,
            statistic,
            probes,
            query=query,
            run=run,
            test=outcome,
            fixed=(poles,),
            columns={ends[0]: words @ first, ends[1]: words @ second},
            details={
                "lists": list(groups),
                "ends": list(ends),
                **{
                    f"mean_{name}": float(side.mean())
                    for name, side in zip(groups, (x, y), strict=True)
                },
                **({"averaged": averaged} if self.average else {}),
            },
        )

    @staticmethod
    def clause(m: Measurement) -> str:
        """Which occupations lie closer to which word."""
        (x, y), (a, _) = m.details["lists"], m.details["ends"]
        first, second = (x, y) if m.value > 0 else (y, x)
        return f"occupations of '{first}' lie closer to '{a}' than those of '{second}'"

    @staticmethod
    def charts(measurement: Measurement) -> dict[str, Any]:
        """Each occupation by its cosine with either end (Dobrzeniecka 2021, §2.3)."""
        from evenhand.charts import BLUE, ORANGE, heading, scatter

        first, second = ends_of(measurement)
        averaged = measurement.details.get("averaged", ())
        groups = list(dict.fromkeys(item["group"] for item in measurement.items))
        chart = scatter(
            [
                {
                    first: item[first],
                    second: item[second],
                    "series": f"associated with {item['group']}",
                    "word": (word := item["word"] + "*" * (item["word"] in averaged)),
                    "left" if item["score"] > 0 else "right": word,
                }
                for item in measurement.items
            ],
            x=first,
            y=second,
            x_title=f"cosine with {first}",
            y_title=f"cosine with {second}",
            looks={
                f"associated with {group}": look
                for group, look in zip(groups, ((ORANGE, "circle"), (BLUE, "square")), strict=False)
            },
            tips={"word": "", first: first, second: second},
            title=heading(
                f"Occupations between {first} and {second}",
                f"above the line: nearer {second}; below it: nearer {first}"
                + "; *: mean of the words of the name" * bool(averaged),
            ),
            diagonal=True,
            width=560,
            height=560,
        )
        return {
            "occupations": chart.properties(
                description="each mark is an occupation; on the dashed line it is as near to one "
                "word as to the other. Without bias both kinds lie mixed around the line."
            )
        }

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


def ends_of(measurement: Measurement) -> tuple[str, str]:
    """The two words that the occupations lie between."""
    known = ("word", "group", "score", "without", "axis")
    first, second = (name for name in measurement.items.columns if name not in known)
    return first, second
