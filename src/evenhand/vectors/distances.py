"""The table of cosine distances between protected words and attributes.

Its columns are those of Dobrzeniecka (2021, §3.1): protectedWord, wordToCompare, wordClass,
cosineDistance, cosineSimilarity, connection, which is `associated` (a stereotype of the word's own
class), `different` (of another class), `human` or `none` (the control words).
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.display import Shown
from evenhand.files import replace_file
from evenhand.lexicon import Topic
from evenhand.lexicon import topic as read_topic
from evenhand.statistics.intervals import Floats
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known, known_groups

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["DistanceTable", "distance_table"]


@dataclass(frozen=True, slots=True, repr=False)
class DistanceTable(Shown):
    """Cosine distances: one row per protected word, one column per attribute."""

    topic: str
    protected: tuple[str, ...]
    protected_class: tuple[str, ...]
    attributes: tuple[str, ...]
    attribute_class: tuple[str, ...]
    distance: Floats
    left_out: tuple[str, ...] = ()
    vectors: str = ""
    """The name of the vectors."""

    def connection(self) -> NDArray[np.str_]:
        """Associated, different, human or none for each cell."""
        own = np.array(self.protected_class)[:, None] == np.array(self.attribute_class)[None, :]
        cells = np.where(own, "associated", "different")
        columns = np.array(self.attribute_class)
        cells[:, columns == "human"] = "human"
        cells[:, columns == "neutral"] = "none"
        return cells

    def to_frame(self) -> pd.DataFrame:
        """The six columns, one row per pair of words."""
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
        """Write the table as CSV, atomically."""
        with replace_file(path) as file:
            self.to_frame().to_csv(file, index=False)

    def _headline(self) -> str:
        return f"{self.topic}: {len(self.protected)} words × {len(self.attributes)} attributes"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        rows: list[Any] = self.to_frame().to_dict("records")
        return rows


def distance_table(v: Vectors, topic: str | Topic, *, extended: bool = False) -> DistanceTable:
    """Compute the distances of a topic's protected words to stereotypes and control words.

    Parameters
    ----------
    v : Vectors
    topic : str or Topic
        Of a built-in topic the name.
    extended : bool
        Add our own stereotype words to the published ones.

    Returns
    -------
    DistanceTable

    Examples
    --------
    >>> import evenhand as eh
    >>> table = eh.vectors.distance_table(eh.vectors.load("glove"), "religion")
    >>> len(table.protected), str(table.connection()[0, 0])
    (15, 'associated')

    """
    topic = read_topic(topic)
    protected = known_groups(v, topic.protected, f"topic '{topic.name}': class", disjoint=True)
    lists = {name: topic.attributes(name, extended=extended) for name in topic.classes}
    stereotypes = known_groups(v, lists, f"topic '{topic.name}': stereotypes of")
    controls = {
        kind: known(v, words, f"topic '{topic.name}': {kind} words", at_least=0)
        for kind, words in (("human", topic.human), ("neutral", topic.neutral))
    }
    rows = np.concatenate([stereotypes.rows, *(control.rows for control in controls.values())])
    return DistanceTable(
        topic=topic.name,
        vectors=v.name,
        protected=protected.words,
        protected_class=tuple(protected.label_names()),
        attributes=(
            *stereotypes.words,
            *(w for control in controls.values() for w in control.words),
        ),
        attribute_class=(
            *stereotypes.label_names(),
            *(kind for kind, control in controls.items() for _ in control.words),
        ),
        distance=1 - np.clip(v.unit(protected.rows) @ v.unit(rows).T, -1, 1),
        left_out=tuple(
            dict.fromkeys(
                [*protected.missing, *stereotypes.missing]
                + [word for control in controls.values() for word in control.missing]
            )
        ),
    )
