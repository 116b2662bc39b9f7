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

from evenhand.arguments import checked
from evenhand.display import Shown
from evenhand.files import replace_file
from evenhand.lexicon import Topic
from evenhand.lexicon import topic as read_topic
from evenhand.statistics.intervals import Floats
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known_groups

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.charts import Chart

CONNECTIONS = {
    "associated": "stereotype of the word's own class",
    "different": "stereotype of another class",
    "human": "word about people",
    "none": "neutral word",
}
"""The kinds of connection between a protected word and an attribute."""


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

    def stereotypes(self) -> list[int]:
        """The columns of the stereotype words."""
        kinds = enumerate(self.attribute_class)
        return [j for j, name in kinds if name not in ("human", "neutral")]

    def plot(self) -> Chart:
        """The distribution of distances for each kind of connection (an Altair chart)."""
        connection = self.connection()
        return distance_curves({kind: self.distance[connection == kind] for kind in CONNECTIONS})

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

    def _rows(self) -> Sequence[Mapping[str, object]]:
        rows: list[Any] = self.to_frame().to_dict("records")
        return rows


def distance_curves(groups: Mapping[str, Floats], name: str = "") -> Chart:
    """The distribution of distances by kind of connection (an Altair chart).

    A kind with fewer than three different distances has no curve.
    """
    from evenhand.charts import BLUE, GREEN, ORANGE, PURPLE, curves
    from evenhand.statistics.densities import densities

    looks: Mapping[str, tuple[str, Sequence[int]]] = dict(
        zip(
            CONNECTIONS.values(),
            ((ORANGE, (1, 0)), (BLUE, (7, 3)), (PURPLE, (2, 2)), (GREEN, (8, 2, 2, 2))),
            strict=True,
        )
    )
    grid, found = densities(groups)
    chart = curves(
        [
            {"x": round(float(x), 4), "density": round(float(y), 4), "series": CONNECTIONS[kind]}
            for kind, curve in found.items()
            for x, y in zip(grid, curve, strict=True)
        ],
        {CONNECTIONS[kind]: looks[CONNECTIONS[kind]] for kind in found},
        x="x",
        y="density",
        x_title="cosine distance",
        y_title="density",
        title=f"Distances from protected words to attributes{', ' * bool(name)}{name}",
        area=True,
        width=560,
        x_axis={"tickCount": 10, "format": ".1f"},
    )
    return chart.properties(
        description="each curve shows how far the protected words are from one kind of word; "
        "further left is nearer. Without bias the curves for stereotypes of the own and of another "
        "class coincide."
    )


@checked
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
    # too few control words are no error
    kinds = {"human": topic.human, "neutral": topic.neutral}
    controls = known_groups(v, kinds, f"topic '{topic.name}': words", at_least=0)
    rows = np.concatenate([stereotypes.rows, controls.rows])
    missing = [*protected.missing, *stereotypes.missing, *controls.missing]
    return DistanceTable(
        topic=topic.name,
        vectors=v.name,
        protected=protected.words,
        protected_class=tuple(protected.label_names()),
        attributes=(*stereotypes.words, *controls.words),
        attribute_class=(*stereotypes.label_names(), *controls.label_names()),
        distance=1 - np.clip(v.unit(protected.rows) @ v.unit(rows).T, -1, 1),
        left_out=tuple(dict.fromkeys(missing)),
    )
