"""The association contrast: is a stereotype closer to its own class than to the others?"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.instruments import READABLE, Evidence, Exhibit, Run, instrument
from evenhand.lexicon import Query, Topic
from evenhand.results import Items, Measurement
from evenhand.statistics.intervals import Floats, two_way_jackknife
from evenhand.statistics.sequential import Counted, Seed, draw_until_clear
from evenhand.statistics.sizes import spread_within
from evenhand.vectors.distances import DistanceTable, distance_table
from evenhand.vectors.probes import Labels, WordMetric
from evenhand.vectors.store import Vectors
from evenhand.wording import number

_ROUNDING = 1e-7
"""Relative error of distances of vectors in single precision."""
_CHUNK = 1 << 15
"""Labels permuted per batch; small enough for the CPU cache."""


@instrument(
    name="association",
    label="Association contrast",
    question="Is a stereotype closer to its own class than to the other classes?",
    above="stereotypes are further from their own class than from the others",
    below="stereotypes are closer to their own class than to the others",
    estimates=("posterior_contrast associated-different",),
    formula="distance(i, j) = u_i + t_j + d · [j is a stereotype of i's class]; d by least "
    "squares, with an effect for each protected word i and each stereotype j",
    source="our own, on distances as in Dobrzeniecka (2021)",
    worse="lower",
    role="leads",
    stereotype=-1,
    material="a topic",
    reading="A difference of cosine distances. Below 0: stereotypes are closer to their own class "
    "than to the others, the same attribute compared across classes.",
    scale="Difference of cosines (ideal: 0)",
    varies_with="dimension",
    size="spread",
    unit="stereotype words",
)
class Association(WordMetric):
    r"""Association contrast: how much closer stereotypes are to their own class than to the others.

    The material is a topic; `measure_table` takes a table of distances.

    Returns
    -------
    Measurement
        Below 0: stereotypes are closer to their own class.

    Notes
    -----
    The contrast :math:`\delta` in :math:`y_{ij} = u_i + \theta_j + \delta \cdot
    [\text{associated}]` compares the same attribute across classes. The effects of the protected
    word and of the attribute take out what is far from or close to everything. The interval is a
    jackknife over both attributes and protected words; the p-value permutes the attributes'
    classes.

    Examples
    --------
    >>> import evenhand as eh
    >>> v, topic = eh.vectors.load("glove"), eh.lexicon.topic("gender")
    >>> m = eh.vectors.Association()(v, topic)
    >>> m.high < 0
    True
    >>> table = eh.vectors.distance_table(v, topic)
    >>> eh.vectors.Association().measure_table(table).value == m.value
    True
    """

    def query_misfit(self, query: Query) -> str | None:
        return f"needs a topic, '{query.name}' is a query"

    def answer(self, v: Vectors, question: Topic, run: Run) -> list[Measurement]:
        return [self.measure_table(distance_table(v, question, extended=self.extended), run)]

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """The contrast, as a distance."""
        where = "nearer to" if measurement.value < 0 else "further from"
        rows = [item for item in measurement.items if item.get("axis") == "attribute"]
        groups = [str(item["group"]) for item in rows]
        spread = spread_within([item["score"] for item in rows], groups)
        classes = len(set(groups))
        return [
            Evidence(
                measurement=measurement,
                claim=f"places stereotype words {where} the group they are about "
                f"({measurement.query})",
                # own against other classes: k / (k - 1) of it is the leaning to one of k classes
                spread=spread * (classes - 1) / classes if spread else None,
                quantity="an association contrast",
                sentence=f"Stereotype words lie {where} the class they are associated with, by "
                f"{number(abs(measurement.value))} of cosine distance on average.",
            )
        ]

    @staticmethod
    def exhibit(measurement: Measurement) -> Exhibit | None:
        """The stereotype word that is nearest to its own group compared with the others."""
        sign = -1 if measurement.value < 0 else 1
        rows = [
            item
            for item in measurement.items
            if item.get("axis") == "attribute"
            and len(item["word"]) <= READABLE
            and item["score"] * sign > 0
        ]
        if not rows:
            return None
        item = max(rows, key=lambda row: abs(row["score"]))
        where = "nearer to" if sign < 0 else "further from"
        reading = f"{number(abs(item['score']))} of cosine distance {where} it than to the others"
        return Exhibit(
            text=f"“{item['word']}”, in the list about “{item['group']}”",
            readings=(("lies", reading, None),),
            effect=abs(item["score"]),
        )

    def measure_table(self, table: DistanceTable, run: Run = Run()) -> Measurement:
        """Measure a table of distances, from `distance_table` or a file."""
        columns = table.stereotypes()
        classes = sorted(set(table.protected_class))
        if len(classes) < 2 or len(columns) < 3:
            raise InputError(
                f"topic '{table.topic}': a contrast needs two classes and three stereotype words, "
                f"got {len(classes)} and {len(columns)}"
            )
        y = table.distance[:, columns]
        rows = np.array([classes.index(name) for name in table.protected_class])
        labels = np.array([classes.index(table.attribute_class[j]) for j in columns])
        value = _contrast(y, rows, labels)
        by_attribute = _without(y, rows, labels, axis=1)
        by_word = _without(y, rows, labels, axis=0)
        low, high = two_way_jackknife(
            value, by_attribute, by_word, _cell_variance(y, rows, labels, value), run.prob
        )
        own = rows[:, None] == labels[None, :]
        attributes = [table.attributes[j] for j in columns]
        attribute_classes = [table.attribute_class[j] for j in columns]
        items = [
            *_items("attribute", attributes, attribute_classes, y.T, own.T, by_attribute),
            *_items("protected", table.protected, table.protected_class, y, own, by_word),
        ]
        p_value = p_less = None
        test, draws = "", dict[str, int]()
        if self.permutations:
            counted = _class_permutation(y, rows, labels, self.permutations, run.seed)
            p_value, p_less = counted.p_values.tolist()
            test = f"{counted.draws:,} permutations of the attributes' classes"
            draws = counted.details
        connection, cells = table.connection(), table.distance
        return self.declaration.result(
            run,
            table.topic,
            (value, low, high),
            subject=table.vectors,
            p_value=p_value,
            test=test,
            n=len(columns),
            interval="jackknife over attributes and protected words",
            items=Items(items),
            left_out=table.left_out,
            details={
                "p_less": p_less,
                **draws,
                "protected_words": len(table.protected),
                **{
                    f"mean_{kind}": float(cells[connection == kind].mean())
                    for kind in ("associated", "different", "human", "none")
                    if (connection == kind).any()
                },
            },
        )


def _items(
    axis: str,
    words: Sequence[str],
    classes: Sequence[str],
    y: Floats,
    own: NDArray[np.bool_],
    without: Floats,
) -> list[dict[str, Any]]:
    """One row per word: its mean distance to its own class minus that to the others."""
    return [
        {
            "word": word,
            "group": group,
            "axis": axis,
            "without": float(rest),
            "score": float(cells[same].mean() - cells[~same].mean()) if same.any() else math.nan,
        }
        for word, group, cells, same, rest in zip(words, classes, y, own, without, strict=True)
    ]


def _centred(table: Floats) -> Floats:
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    return np.asarray(table - rows - columns + table.mean())


def _contrast(y: Floats, rows: Labels, labels: Labels) -> float:
    """The least-squares δ of a complete table with row and column effects.

    It is exactly 0 where nothing but rounding remains, as of words that hard debiasing equalised.
    """
    design = _centred((rows[:, None] == labels[None, :]).astype(float))
    power, total = float((design**2).sum()), float((design * y).sum())
    if power <= 1e-12:
        return float("nan")
    return total / power if abs(total) > _ROUNDING * float(np.abs(design * y).sum()) else 0.0


def _cell_variance(y: Floats, rows: Labels, labels: Labels, value: float) -> float:
    """The variance of δ that independent noise in the cells alone would give."""
    design = _centred((rows[:, None] == labels[None, :]).astype(float))
    residual = _centred(y) - value * design
    freedom = (y.shape[0] - 1) * (y.shape[1] - 1) - 1
    return float((residual**2).sum() / freedom / (design**2).sum())


def _without(y: Floats, rows: Labels, labels: Labels, *, axis: int) -> Floats:
    result = []
    for i in range(y.shape[axis]):
        rest = np.delete(np.arange(y.shape[axis]), i)
        if axis:
            result.append(_contrast(y[:, rest], rows, labels[rest]))
        else:
            result.append(_contrast(y[rest], rows[rest], labels))
    return np.array(result)


def _class_permutation(
    y: Floats, rows: Labels, labels: Labels, permutations: int, seed: int
) -> Counted:
    """Two-sided and lower test of δ when the attributes' classes are shuffled; the first decides.

    The design's sum of squares does not change under a shuffle, so only Σ [associated]·ỹ is
    needed, with ỹ the table centred both ways. Values that differ by rounding alone are equal: the
    classes of equalised words have the same distances, and p is 1.
    """
    centred = _centred(y)
    by_class = np.stack([centred[rows == c].sum(axis=0) for c in range(rows.max() + 1)])
    columns = np.arange(labels.size)
    observed = float(by_class[labels, columns].sum())
    step = max(1, _CHUNK // labels.size)
    slack = _ROUNDING * float(np.abs(y).sum())

    def count(size: int, seed: Seed) -> tuple[int, int]:
        rng, both, lower = np.random.default_rng(seed), 0, 0
        for start in range(0, size, step):
            shuffled = np.tile(labels, (min(step, size - start), 1))
            rng.permuted(shuffled, axis=1, out=shuffled)
            values = np.take(by_class, shuffled * labels.size + columns).sum(axis=1)
            both += int((np.abs(values) >= abs(observed) - slack).sum())
            lower += int((values <= observed + slack).sum())
        return both, lower

    return draw_until_clear(count, permutations, seed, deciding=lambda counts: counts[0])
