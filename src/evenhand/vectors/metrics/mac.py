"""MAC: the mean cosine distance between protected words and stereotypes."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.instruments import Run, instrument
from evenhand.lexicon import Query, Topic
from evenhand.results import Items, Measurement
from evenhand.statistics.association import project
from evenhand.statistics.intervals import Floats, crossed_mean
from evenhand.vectors.distances import DistanceTable
from evenhand.vectors.probes import Labels, WordMetric, all_classes
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known_groups


@dataclass(frozen=True, slots=True)
class MacStatistic:
    """MAC with its protected words fixed; the attributes are the probes."""

    protected: Floats

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(1 - project(vectors, self.protected))

    def value(self, scores: Floats, labels: Labels) -> Floats:
        by_word = scores.mean(axis=-1)
        sets = [by_word[..., labels == label].mean(axis=-1) for label in np.unique(labels)]
        return np.asarray(np.mean(sets, axis=0))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        _, low, high = crossed_mean(scores.T, labels, prob)
        return low, high, "two-way random effects over protected words and attribute words"


@instrument(
    name="mac",
    label="MAC",
    question="How far are the protected words from the stereotypes, all classes together?",
    above="the protected words are further from the stereotypes than unrelated words",
    below="the protected words are close to the stereotypes",
    formula="mean over protected words t and stereotype lists A of the mean over a in A of "
    "1 - cos(t, a)",
    source="Manzini et al. (2019)",
    ideal=1.0,
    worse="lower",
    material="a topic, or a query",
    reading="A mean cosine distance. 1: unrelated; below 1: close.",
    scale="Mean distance and rank agreement (ideal: 1)",
    varies_with="dimension",
    caveats=(
        "Random words have a mean distance below 1 in most embeddings: compare the value with the "
        "null, not with the ideal alone.",
        "It cannot see bias between classes: stereotypes closer to their own class and as much "
        "further from the others cancel out.",
    ),
)
class Mac(WordMetric):
    r"""MAC: the mean cosine distance of all target words to all attribute sets.

    The material is a topic or a query: targets are protected words, attributes stereotypes. All
    attribute sets count equally.

    Returns
    -------
    Measurement

    Notes
    -----
    .. math:: MAC(T, A) = \frac{1}{|T||A|} \sum_{t \in T} \sum_{A_j \in A} \frac{1}{|A_j|}
              \sum_{a \in A_j} (1 - \cos(t, a))

    Manzini et al. (2019). The paper calls it a similarity; its figures are distances. Random
    words have a mean distance below 1 in most embeddings, so compare the value with the null in
    `details`.

    Examples
    --------
    >>> import evenhand as eh
    >>> query = eh.lexicon.Query(
    ...     name="home",
    ...     targets={"woman": ("she", "her")},
    ...     attributes={"home": ("kitchen", "laundry")},
    ... )
    >>> eh.vectors.Mac(null=0)(eh.vectors.load("glove"), query).value < 1
    True
    """

    def split(self, topic: Topic) -> Sequence[Query]:
        return [all_classes(topic, extended=self.extended)]

    def answer(self, v: Vectors, question: Query, run: Run) -> Iterator[Measurement]:
        targets, attributes, query = question.targets, question.attributes, question.name
        fixed = known_groups(v, targets, f"mac '{query}': target set")
        probes = known_groups(v, attributes, f"mac '{query}': attribute set")
        protected = v.unit(fixed.rows)
        yield self.score(
            v,
            MacStatistic(protected),
            probes,
            query=query,
            run=run,
            fixed=(fixed,),
            details={"targets": len(fixed.words), "attribute_sets": len(probes.names)},
            null_statistic=MacStatistic(protected.mean(axis=0, keepdims=True)),
        )


@checked
def mac_of_table(table: DistanceTable, run: Run = Run()) -> Measurement:
    """Measure MAC from a table of distances.

    Parameters
    ----------
    table : DistanceTable
        From `distance_table`, or from a file by `eh.posterior.read_table(path).to_distances()`.
        Its human and neutral words are not part of MAC.
    run : Run
        Seed and probability of the interval.

    Returns
    -------
    Measurement
        The value that `Mac` has for the vectors, without a null: a table has no random words.

    Examples
    --------
    >>> import evenhand as eh
    >>> v, topic = eh.vectors.load("glove"), eh.lexicon.topic("religion")
    >>> m = eh.vectors.mac_of_table(eh.vectors.distance_table(v, topic))
    >>> round(m.value, 6) == round(eh.measure(v, topic, "mac").value, 6)
    True

    """
    columns = table.stereotypes()
    classes = [table.attribute_class[j] for j in columns]
    names, labels = np.unique(classes, return_inverse=True)
    if not columns or not table.protected:
        raise InputError(f"mac: '{table.topic}' has no protected words or no stereotypes")
    scores = table.distance[:, columns].T
    statistic = MacStatistic(np.zeros((0, 0)))
    low, high, interval = statistic.interval(scores, labels, run.prob)
    return Mac.declaration.result(
        run,
        table.topic,
        (float(statistic.value(scores, labels)), low, high),
        subject=table.vectors,
        n=len(columns),
        interval=interval,
        items=Items(
            {
                "word": [table.attributes[j] for j in columns],
                "group": classes,
                "score": scores.mean(axis=1),
            }
        ),
        left_out=table.left_out,
        details={"targets": len(table.protected), "attribute_sets": len(names)},
    )
