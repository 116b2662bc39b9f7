r"""The table of cosine distances between protected words and attributes, and what it says.

Columns as in the thesis (D2 §3.1): protectedWord, wordToCompare, wordClass, cosineDistance,
cosineSimilarity, connection, which is `associated` (a stereotype of the word's own class),
`different` (of another class), `human` or `none` (the control words).

The contrast $\delta$ in $y_{ij} = u_i + \theta_j + \delta \cdot [\text{associated}]$ compares the
SAME attribute across classes: is a stereotype nearer the words of the class it is told of?
"""

from __future__ import annotations

import math
import os
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Unpack

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.intervals import Floats, two_way_jackknife
from evenhand.lexicon import Topic
from evenhand.results import Item, Measurement, replace_file
from evenhand.vectors.lookup import known, known_groups
from evenhand.vectors.metrics.reading import Options, Settings
from evenhand.vectors.store import Vectors

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DistanceTable", "association_contrast", "distance_table"]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class DistanceTable:
    """Cosine distances, a row a protected word and a column an attribute, with their classes."""

    topic: str
    protected: tuple[str, ...]
    protected_class: tuple[str, ...]
    attributes: tuple[str, ...]
    attribute_class: tuple[str, ...]
    distance: Floats
    left_out: tuple[str, ...] = ()

    def connection(self) -> NDArray[np.str_]:
        """Associated, different, human or none for each cell."""
        own = np.array(self.protected_class)[:, None] == np.array(self.attribute_class)[None, :]
        cells = np.where(own, "associated", "different")
        columns = np.array(self.attribute_class)
        cells[:, columns == "human"] = "human"
        cells[:, columns == "neutral"] = "none"
        return cells

    def to_frame(self) -> pd.DataFrame:
        """The thesis' six columns, a row a pair of words."""
        import pandas as pd

        columns = len(self.attributes)
        return pd.DataFrame(
            {
                "protectedWord": np.repeat(np.array(self.protected, dtype=object), columns),
                "wordToCompare": list(self.attributes) * len(self.protected),
                "wordClass": list(self.attribute_class) * len(self.protected),
                "cosineDistance": self.distance.ravel(),
                "cosineSimilarity": 1 - self.distance.ravel(),
                "connection": self.connection().ravel(),
            }
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the table as CSV, whole or not at all."""
        with replace_file(path) as file:
            self.to_frame().to_csv(file, index=False)


def distance_table(v: Vectors, topic: Topic, *, extended: bool = False) -> DistanceTable:
    """The distance table of a topic: its protected words against stereotypes and controls.

    `extended` adds our own stereotype words to the published ones.

    >>> import evenhand as eh
    >>> table = distance_table(eh.vectors.load("glove"), eh.lexicon.topic("religion"))
    >>> len(table.protected), str(table.connection()[0, 0])
    (15, 'associated')
    """
    protected = known_groups(v, topic.protected, f"topic '{topic.name}': class", disjoint=True)
    lists = {name: topic.attributes(name, extended=extended) for name in topic.classes}
    stereotypes = known_groups(v, lists, f"topic '{topic.name}': stereotypes of")
    controls = {
        kind: known(v, words, f"topic '{topic.name}': {kind} words", at_least=0)
        for kind, words in (("human", topic.human), ("neutral", topic.neutral))
    }
    rows = np.concatenate([stereotypes.rows, *(found.rows for found in controls.values())])
    return DistanceTable(
        topic=topic.name,
        protected=protected.words,
        protected_class=tuple(protected.label_names()),
        attributes=(*stereotypes.words, *(w for found in controls.values() for w in found.words)),
        attribute_class=(
            *stereotypes.label_names(),
            *(kind for kind, found in controls.items() for _ in found.words),
        ),
        distance=1 - np.clip(v.unit(protected.rows) @ v.unit(rows).T, -1, 1),
        left_out=tuple(
            dict.fromkeys(
                [*protected.missing, *stereotypes.missing]
                + [word for found in controls.values() for word in found.missing]
            )
        ),
    )


def association_contrast(table: DistanceTable, **settings: Unpack[Settings]) -> Measurement:
    """δ: how much nearer a stereotype is to its own class than to the others, same attribute.

    Two-way fixed effects (protected word, attribute) take out what is far or near to everything.
    The interval is a jackknife over both attributes and protected words; the p-value permutes
    the attributes' classes.
    """
    options = Options(**settings)
    columns = [
        j for j, name in enumerate(table.attribute_class) if name not in ("human", "neutral")
    ]
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
        value, by_attribute, by_word, _cell_variance(y, rows, labels, value), options.prob
    )
    own = rows[:, None] == labels[None, :]
    items = [
        *_items("attribute", [table.attributes[j] for j in columns],
                [table.attribute_class[j] for j in columns], y.T, own.T, by_attribute),
        *_items("protected", table.protected, table.protected_class, y, own, by_word),
    ]  # fmt: skip
    p_value = p_less = None
    if options.permutations:
        p_value, p_less = _class_permutation(y, rows, labels, options)
    connection, cells = table.connection(), table.distance
    return Measurement(
        metric="association", query=table.topic, value=value, low=low, high=high,
        prob=options.prob, p_value=p_value, n=len(columns), ideal=0.0, worse="lower",
        test=f"{options.permutations:,} permutations of the attributes' classes" if p_value else "",
        interval="jackknife over attributes and protected words", seed=options.seed,
        items=tuple(items),
        left_out=table.left_out,
        details={
            "p_less": p_less,
            "protected_words": len(table.protected),
            **{
                f"mean_{kind}": float(cells[connection == kind].mean())
                for kind in ("associated", "different", "human", "none")
                if (connection == kind).any()
            },
        },
    )  # fmt: skip


def _items(
    axis: str,
    words: Sequence[str],
    classes: Sequence[str],
    y: Floats,
    own: NDArray[np.bool_],
    without: Floats,
) -> list[Item]:
    """A row a word: its mean distance to its own class less that to the others."""
    return [
        {
            "word": word, "group": group, "axis": axis, "without": float(rest),
            "score": float(cells[mine].mean() - cells[~mine].mean()) if mine.any() else math.nan,
        }
        for word, group, cells, mine, rest in zip(words, classes, y, own, without, strict=True)
    ]  # fmt: skip


def _centred(table: Floats) -> Floats:
    rows, columns = table.mean(axis=1, keepdims=True), table.mean(axis=0, keepdims=True)
    return np.asarray(table - rows - columns + table.mean())


def _contrast(y: Floats, rows: NDArray[np.intp], labels: NDArray[np.intp]) -> float:
    """The least-squares δ of a complete table with row and column effects."""
    design = _centred((rows[:, None] == labels[None, :]).astype(float))
    power = float((design**2).sum())
    return float((design * y).sum()) / power if power > 1e-12 else float("nan")


def _cell_variance(
    y: Floats, rows: NDArray[np.intp], labels: NDArray[np.intp], value: float
) -> float:
    """The variance of δ that independent noise in the cells alone would give."""
    design = _centred((rows[:, None] == labels[None, :]).astype(float))
    residual = _centred(y) - value * design
    freedom = (y.shape[0] - 1) * (y.shape[1] - 1) - 1
    return float((residual**2).sum() / freedom / (design**2).sum())


def _without(y: Floats, rows: NDArray[np.intp], labels: NDArray[np.intp], *, axis: int) -> Floats:
    result = []
    for i in range(y.shape[axis]):
        kept = np.delete(np.arange(y.shape[axis]), i)
        if axis:
            result.append(_contrast(y[:, kept], rows, labels[kept]))
        else:
            result.append(_contrast(y[kept], rows[kept], labels))
    return np.array(result)


def _class_permutation(
    y: Floats, rows: NDArray[np.intp], labels: NDArray[np.intp], options: Options
) -> tuple[float, float]:
    """Two-sided and lower p for δ when the attributes' classes are shuffled.

    The design's sum of squares does not change under a shuffle, so only Σ [associated]·ỹ is
    needed, with ỹ the table centred both ways.
    """
    centred = _centred(y)
    by_class = np.stack([centred[rows == c].sum(axis=0) for c in range(rows.max() + 1)])
    places = np.arange(labels.size)
    observed = float(by_class[labels, places].sum())
    rng = np.random.default_rng(options.seed)
    both = lower = 0
    step = max(1, _CHUNK // labels.size)
    slack = 1e-12 * float(np.abs(by_class).sum())
    for start in range(0, options.permutations, step):
        shuffled = np.tile(labels, (min(step, options.permutations - start), 1))
        rng.permuted(shuffled, axis=1, out=shuffled)
        values = by_class[shuffled, places].sum(axis=1)
        both += int((np.abs(values) >= abs(observed) - slack).sum())
        lower += int((values <= observed + slack).sum())
    total = options.permutations + 1
    return (both + 1) / total, (lower + 1) / total
