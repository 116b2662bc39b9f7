"""From probe words to a Measurement: what all metrics of word vectors share.

A metric fixes a `Statistic` with everything but the probe words. A statistic scores each word by
itself and combines the scores into one value, so that the same code gives the value, the value
without each word (leave-one-out, and the jackknife of comparisons) and the value on random words
(the null).
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand import lexicon
from evenhand.errors import InputError
from evenhand.instruments import Instrument, Run, option
from evenhand.lexicon import Query, Topic, WefatQuery
from evenhand.results import Items, Measurement
from evenhand.statistics.intervals import Floats, t_mean
from evenhand.vectors.nulls import null_distribution
from evenhand.vectors.store import Vectors, load
from evenhand.vectors.vocabulary import Groups, Lookup, known, known_groups, refuse_shared

Question: TypeAlias = Query | WefatQuery | Topic
Material: TypeAlias = Question | str | os.PathLike[str]
Labels = NDArray[np.intp]
Columns = Mapping[str, Sequence[Any] | NDArray[Any]]


def length_option() -> Any:
    """The field of metrics whose value depends on the length of the vectors."""
    return option(
        None,
        help="Read vectors at their own length, or scaled to length one (unit). By default RIPA "
        "takes own, as published, and RNSB unit.",
    )


class Statistic(Protocol):
    """A metric with everything fixed but the probe words."""

    def scores(self, vectors: Floats) -> Floats:
        """The score(s) of each word by itself: (n, d) raw vectors to (n, q) scores."""

    def value(self, scores: Floats, labels: Labels) -> Floats:
        """One value of the scores (…, n, q) of words that belong to the lists `labels` (n,)."""

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        """Low, high, and in words what they rest on."""


class MeanScore:
    """Value and interval of a statistic that is the mean score over the probe words."""

    __slots__ = ()

    def value(self, scores: Floats, labels: Labels) -> Floats:
        return np.asarray(scores[..., 0].mean(axis=-1))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        _, low, high = t_mean(scores[:, 0], prob)
        return low, high, "Student t over the probe words, the identity words held fixed"


@dataclass(frozen=True, slots=True)
class ProbeTest:
    """The outcome of a test: its p-value, what it rests on, and further numbers."""

    p_value: float | None
    text: str
    details: Mapping[str, object] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class WordMetric(Instrument):
    """Base of the metrics of word vectors: their common options, and which material they take.

    A subclass implements `answer`, and `split` where a topic asks it several questions. The class
    attributes say which queries it takes (None: any number of sets).
    """

    shared: ClassVar[Mapping[str, Any]] = {
        "subjects": ("vectors",),
        "stereotype": 0,
        "audit": True,
    }
    target_sets: ClassVar[int | None] = None
    minimum_target_sets: ClassVar[int] = 1
    attribute_sets: ClassVar[int | None] = None
    paired: ClassVar[bool] = False
    """Whether the words of the two target sets are pairs."""

    permutations: int = option(
        100_000,
        minimum=0,
        help="Random permutations where not all can be counted, and more where p is near a level; "
        "0: no permutation test.",
    )
    null: int = option(
        1000,
        minimum=0,
        help="Draws of random words of similar frequency, for metrics without a test of their "
        "own, and more where p is near a level; 0: none.",
    )
    extended: bool = option(
        False, help="Topics: add our own stereotype words to the published ones."
    )

    def answer(self, v: Vectors, question: Any, run: Run) -> Iterable[Measurement]:
        """Measure one question."""
        raise NotImplementedError

    def split(self, topic: Topic) -> Sequence[Question]:
        """The questions that a topic asks."""
        return [topic]

    def topic_misfit(self, topic: Topic) -> str | None:
        """Why a topic cannot be taken, None where it can."""
        return None

    @classmethod
    def default_material(cls) -> Question:
        """The default material."""
        return lexicon.topic("gender")

    @classmethod
    def example(cls) -> tuple[Vectors, Question]:
        """A subject and material to try the metric on."""
        return load("glove"), cls.default_material()

    def misfit(self, material: Material | None = None) -> str | None:
        """Why the material cannot be taken, in words; None where it can."""
        question = self.default_material() if material is None else resolve(material)
        if isinstance(question, Topic):
            return self.topic_misfit(question)
        if not isinstance(question, Query):
            return f"takes a topic or a query, '{question.name}' has words with facts"
        return self.query_misfit(question)

    def query_misfit(self, query: Query) -> str | None:
        """Why a query of this shape cannot be taken, None where it can."""
        counts = len(query.targets), len(query.attributes)
        for name, needed, count in zip(
            ("target", "attribute"), (self.target_sets, self.attribute_sets), counts, strict=True
        ):
            if needed is not None and needed != count:
                return f"needs {needed} {name} set{'s' * (needed > 1)}, '{query.name}' has {count}"
        if counts[0] < self.minimum_target_sets:
            least = f"needs {self.minimum_target_sets} or more target sets"
            return f"{least}, '{query.name}' has {counts[0]}"
        sizes = {len(words) for words in query.targets.values()}
        if self.paired and len(sizes) > 1:
            return f"pairs the words of its two target sets: '{query.name}' has unequal ones"
        return None

    def questions(self, material: Material | None = None) -> Sequence[Question]:
        """The questions that the material asks this metric."""
        question = self.default_material() if material is None else resolve(material)
        return self.split(question) if isinstance(question, Topic) else [question]

    def measure(
        self, v: Vectors, material: Material | None = None, run: Run | None = None
    ) -> list[Measurement]:
        """Measure the vectors.

        Parameters
        ----------
        v : Vectors
        material : Topic, Query, WefatQuery or str, optional
            A topic, its name or path, or a query; by default the topic gender.
        run : Run, optional
            Seed and probability of the intervals.

        Returns
        -------
        list of Measurement
            One per question that the material asks.

        """
        reason = self.misfit(material)
        if reason is not None:
            raise InputError(f"metric '{self.declaration.name}' {reason}")
        run = run or Run()
        return [m for question in self.questions(material) for m in self.answer(v, question, run)]

    def score(
        self,
        v: Vectors,
        statistic: Statistic,
        probes: Groups,
        *,
        query: str,
        run: Run,
        fixed: Sequence[Lookup | Groups],
        details: Mapping[str, object] | None = None,
        test: ProbeTest | None = None,
        columns: Columns | None = None,
        null_statistic: Statistic | None = None,
    ) -> Measurement:
        """The statistic on the probe words, with interval, null, items and leave-one-out.

        `fixed` are the rows that the statistic rests on: they never enter the null. A metric with
        a test of its own passes its outcome as `test`; there is no null then. `null_statistic` has
        the same value as `statistic` and is faster.
        """
        about = self.declaration
        compared = np.concatenate([words.rows for words in fixed])
        for word in itertools.compress(probes.words, np.isin(probes.rows, compared)):
            raise InputError(
                f"{about.name} '{query}': '{word}' is among the words in question and among "
                "those they are compared with"
            )
        scores = statistic.scores(v.raw(probes.rows))
        value = float(statistic.value(scores, probes.labels))
        low, high, interval = statistic.interval(scores, probes.labels, run.prob)
        if test is None and self.null:
            null = null_distribution(
                v,
                null_statistic or statistic,
                probes.rows,
                probes.labels,
                value=value,
                worse=about.worse,
                draws=self.null,
                seed=run.seed,
                exclude=compared,
            )
            text = (
                f"{null.values.size:,} draws of random words of similar frequency for the probe "
                "words"
            )
            test = ProbeTest(null.p_value, text, null.details())
        test = test or ProbeTest(None, "")
        single = scores[:, 0] if scores.shape[1] == 1 else scores.mean(axis=1)
        own = {"score": single, "without": without_each(statistic, scores, probes.labels)}
        return about.result(
            run,
            query,
            (value, low, high),
            subject=v.name,
            p_value=test.p_value,
            test=test.text,
            n=len(probes.words),
            interval=interval,
            items=items_of(probes, {**own, **(columns or {})}),
            left_out=tuple(
                dict.fromkeys(word for words in (probes, *fixed) for word in words.missing)
            ),
            details={**(details or {}), **test.details},
        )


@dataclass(frozen=True, kw_only=True)
class CentreMetric(WordMetric):
    """Base of the metrics that place words between the centres of two groups."""

    target_sets = 2
    minimum_words: ClassVar[int] = 2

    def statistic(self, first: Floats, second: Floats) -> Statistic:
        """The statistic of the centres of both groups."""
        raise NotImplementedError

    def lists(self, query: Query) -> Mapping[str, Sequence[str]]:
        """The lists of words with a result each, by the name of the result."""
        return {query.name: all_attributes(query)}

    def split(self, topic: Topic) -> Sequence[Query]:
        return class_pairs(topic, extended=self.extended)

    def answer(self, v: Vectors, question: Query, run: Run) -> Iterator[Measurement]:
        for name, words in self.lists(question).items():
            what = f"{self.declaration.name} '{name}'"
            first, second = (
                known(v, group, f"{what}: {which}")
                for which, group in zip(("first", "second"), question.targets.values(), strict=True)
            )
            refuse_shared(first, second, f"{what}: first and second group")
            probes = known_groups(v, {"words": words}, f"{what}: list", at_least=self.minimum_words)
            centres = (v.unit(group.rows).mean(axis=0) for group in (first, second))
            statistic = self.statistic(*centres)
            scores = statistic.scores(v.raw(probes.rows))
            both = scores.shape[1] == 2
            yield self.score(
                v,
                statistic,
                probes,
                query=name,
                run=run,
                fixed=(first, second),
                columns={"first": scores[:, 0], "second": scores[:, 1]} if both else {},
            )


def without_each(statistic: Statistic, scores: Floats, labels: Labels) -> Floats:
    """The value with each probe word left out in turn; nan where nothing is left of its list.

    Labels are in order, so they read the same whichever word of a list is left out: the words of
    a list are computed at once.
    """
    n = labels.size
    result = np.full(n, np.nan)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if own.size > 1:
            rest = np.arange(n - 1) + (np.arange(n - 1) >= own[:, None])
            result[own] = statistic.value(scores[rest], labels[rest[0]])
    return result


def items_of(groups: Groups, columns: Columns) -> Items:
    """One row per word: word, group, then the columns."""
    return Items({"word": groups.words, "group": groups.label_names(), **columns})


def resolve(material: Material) -> Question:
    """The material itself, or the topic of that name or path."""
    if isinstance(material, str | os.PathLike):
        return lexicon.topic(material)
    if isinstance(material, Query | WefatQuery | Topic):
        return material
    raise InputError(
        f"material: expected a topic, its name or a query, got {type(material).__name__}"
    )


def all_classes(topic: Topic, *, extended: bool = False) -> Query:
    """The protected words of all classes against the stereotypes of all classes."""
    return _class_query(topic, topic.name, topic.classes, extended)


def class_pairs(topic: Topic, *, extended: bool = False) -> list[Query]:
    """The same for each two classes."""
    if len(topic.classes) == 2:
        return [all_classes(topic, extended=extended)]
    return [
        _class_query(topic, f"{topic.name}: {'/'.join(pair)}", pair, extended)
        for pair in itertools.combinations(topic.classes, 2)
    ]


def _class_query(topic: Topic, name: str, classes: Sequence[str], extended: bool) -> Query:
    return Query(
        name=name,
        targets={each: topic.protected[each] for each in classes},
        attributes={
            f"{each} stereotypes": topic.attributes(each, extended=extended) for each in classes
        },
    )


def all_attributes(query: Query) -> list[str]:
    """The words of all attribute sets, each once."""
    return list(dict.fromkeys(word for words in query.attributes.values() for word in words))


def by_attribute_set(query: Query) -> dict[str, Sequence[str]]:
    """The words of each attribute set, by the name of the query and of the set."""
    return {f"{query.name}: {name}": words for name, words in query.attributes.items()}


def target_pairs(query: Query) -> list[tuple[str, str]]:
    """The words of the two target sets, paired by position."""
    first, second = query.targets.values()
    return list(zip(first, second, strict=True))
