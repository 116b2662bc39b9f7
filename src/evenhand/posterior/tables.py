"""Reading distance tables: ours, the thesis' CSV files and the 2024 paper's, by any headers.

A row is a pair of words with their cosine distance and its connection class: `associated` (a
stereotype of the word's own class), `different` (of another class), `human` or `none` (controls).
Rows that cannot be used are dropped, counted by reason, and reported.
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.posterior.rows import Row, frame_rows, read_rows
from evenhand.vectors.distances import DistanceTable

if TYPE_CHECKING:
    import pandas as pd

    Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | DistanceTable | Table"

__all__ = ["CONNECTIONS", "GROUPS", "GROUP_OF", "Table", "pair", "read_table"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

CONNECTIONS = ("associated", "different", "human", "none")
GROUPS = ("stereotype", "human", "neutral")
GROUP_OF = dict(zip(CONNECTIONS, ("stereotype", *GROUPS), strict=True))
ALIASES = {"neutral": "none"}
ROUNDING = 1e-6
AGREEMENT = 1e-3
"""How far a distance may be from one less the similarity of its row."""


@dataclass(frozen=True, slots=True)
class Table:
    """Cosine distances in long form, a row a pair of words, with what was dropped and why.

    `word`, `attribute` and `connection` index into `words`, `attributes` and `CONNECTIONS`;
    `group` gives each attribute's place in `GROUPS`. The class of a word, or of a stereotype, is
    empty where the table does not tell it.
    """

    source: str
    distance: Floats = field(repr=False)
    word: Ints = field(repr=False)
    attribute: Ints = field(repr=False)
    connection: Ints = field(repr=False)
    words: tuple[str, ...]
    attributes: tuple[str, ...] = field(repr=False)
    group: Ints = field(repr=False)
    word_class: tuple[str, ...] = field(repr=False)
    attribute_class: tuple[str, ...] = field(repr=False)
    dropped: Mapping[str, int] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        return self.distance.size

    @property
    def levels(self) -> tuple[str, ...]:
        """The connection classes that the table has."""
        return tuple(CONNECTIONS[k] for k in np.unique(self.connection))

    def keep(self, rows: NDArray[np.bool_]) -> Table:
        """The table of these rows alone; words and attributes without any are gone."""
        words, word = np.unique(self.word[rows], return_inverse=True)
        attributes, attribute = np.unique(self.attribute[rows], return_inverse=True)
        return Table(
            source=self.source,
            distance=self.distance[rows],
            word=word.astype(np.int64),
            attribute=attribute.astype(np.int64),
            connection=self.connection[rows],
            words=tuple(self.words[i] for i in words),
            attributes=tuple(self.attributes[j] for j in attributes),
            group=self.group[attributes],
            word_class=tuple(self.word_class[i] for i in words),
            attribute_class=tuple(self.attribute_class[j] for j in attributes),
            dropped=self.dropped,
        )

    def of_words(self, words: Iterable[str]) -> Table:
        """The table of some protected words alone, as the thesis' model of the Islam words."""
        asked = set(words)
        missing = sorted(asked - set(self.words))
        if missing:
            raise InputError(f"{self.source}: no protected word '{missing[0]}' in the table")
        chosen = np.array([name in asked for name in self.words])
        return self.keep(chosen[self.word])

    def with_distance(self, distance: Floats, source: str) -> Table:
        """The same cells with other numbers."""
        return Table(
            source, distance, self.word, self.attribute, self.connection, self.words,
            self.attributes, self.group, self.word_class, self.attribute_class, self.dropped,
        )  # fmt: skip


def read_table(source: Source) -> Table:
    """The table of a CSV file (also gzipped), a DataFrame or a `DistanceTable`.

    >>> import pandas as pd
    >>> table = read_table(pd.DataFrame({
    ...     "protected_word": ["imam", "imam", "imam"], "attribute": ["violent", "kind", "kind"],
    ...     "cosineSimilarity": [0.2, 0.1, 0.1], "connection": ["associated", "human", "human"],
    ... }))
    >>> table.rows, table.dropped["duplicate"], table.levels
    (2, 1, ('associated', 'human'))
    """
    if isinstance(source, Table):
        return source
    if isinstance(source, DistanceTable):
        return _table(f"distances of {source.topic}", list(frame_rows("", source.to_frame())))
    if isinstance(source, str | os.PathLike):
        return _table(os.fspath(source), list(read_rows(source)))
    return _table("the table", list(frame_rows("the table", source)))


def _table(source: str, rows: Sequence[Row]) -> Table:
    dropped = dict.fromkeys(("sentinel", "missing", "duplicate"), 0)
    kept: list[tuple[Row, float, int]] = []
    for row in rows:
        distance = _distance(row)
        if isinstance(distance, str):
            dropped[distance] = dropped.get(distance, 0) + 1
        else:
            kept.append((row, distance, _connection(source, row)))
    kept, repeated, conflicting = _without_repeats(kept)
    dropped["duplicate"] = repeated
    if conflicting:
        dropped["conflicting"] = conflicting
    if not kept:
        counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
        raise FileError(source, f"expected rows with a distance, got none ({counts or 'no rows'})")
    return _coded(source, kept, dropped)


def _distance(row: Row) -> float | str:
    """The distance of a row, or why the row cannot be used."""
    if not row.word or not row.attribute or not row.connection:
        return "missing"
    distance, similarity = row.distance, row.similarity
    far = (distance is not None and not -ROUNDING <= distance <= 2 + ROUNDING) or (
        similarity is not None and not -1 - ROUNDING <= similarity <= 1 + ROUNDING
    )
    if far:
        return "sentinel"
    if distance is None:
        return "missing" if similarity is None else 1.0 - similarity
    if similarity is not None and abs(distance + similarity - 1) > AGREEMENT:
        return "inconsistent"
    return distance


def _connection(source: str, row: Row) -> int:
    name = row.connection.lower()
    name = ALIASES.get(name, name)
    if name not in CONNECTIONS:
        raise FileError(
            source,
            f"column {row.connection_column}: expected {', '.join(CONNECTIONS)}, "
            f"got '{row.connection}'",
            line=row.line,
        )
    return CONNECTIONS.index(name)


def _without_repeats(
    rows: list[tuple[Row, float, int]],
) -> tuple[list[tuple[Row, float, int]], int, int]:
    """Each pair of words once: the repeats, and those of them that say something else, counted.

    Where a pair is listed under several connections the first of associated, different, human,
    none holds: a stereotype of one's own class remains one although it is another's as well.
    """
    first: dict[tuple[str, str], tuple[Row, float, int]] = {}
    repeated = conflicting = 0
    for row in rows:
        key = (row[0].word, row[0].attribute)
        held = first.get(key)
        if held is None:
            first[key] = row
            continue
        if held[2] == row[2] and abs(held[1] - row[1]) <= ROUNDING:
            repeated += 1
            continue
        conflicting += 1
        if row[2] < held[2]:
            first[key] = row
    return list(first.values()), repeated, conflicting


def _coded(source: str, rows: list[tuple[Row, float, int]], dropped: dict[str, int]) -> Table:
    words = {name: i for i, name in enumerate(dict.fromkeys(row.word for row, _, _ in rows))}
    names = {name: j for j, name in enumerate(dict.fromkeys(row.attribute for row, _, _ in rows))}
    connection = np.array([level for _, _, level in rows], dtype=np.int64)
    attribute = np.array([names[row.attribute] for row, _, _ in rows], dtype=np.int64)
    groups = np.maximum(connection - 1, 0)
    group = np.full(len(names), len(GROUPS), dtype=np.int64)
    np.minimum.at(group, attribute, groups)
    table = Table(
        source=source,
        distance=np.array([distance for _, distance, _ in rows]),
        word=np.array([words[row.word] for row, _, _ in rows], dtype=np.int64),
        attribute=attribute,
        connection=connection,
        words=tuple(words),
        attributes=tuple(names),
        group=group,
        word_class=_classes(words, ((r.word, r.word_class) for r, _, c in rows if c == 0)),
        attribute_class=_classes(names, ((r.attribute, r.word_class) for r, _, _ in rows)),
        dropped=dropped,
    )
    astray = groups != group[attribute]
    if astray.any():
        dropped["conflicting"] = dropped.get("conflicting", 0) + int(astray.sum())
        table = table.keep(~astray)
    return table


def _classes(names: Mapping[str, int], pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """The one class of each name; none where the table gives several or none."""
    found: dict[str, set[str]] = {name: set() for name in names}
    for name, label in pairs:
        if label:
            found[name].add(label.removesuffix("_stereotype").removesuffix("Stereotype"))
    return tuple(labels.pop() if len(labels) == 1 else "" for labels in found.values())


def pair(before: Table, after: Table) -> tuple[Table, Table, dict[str, int]]:
    """The cells that both tables have, in one order, and how many only one of them has.

    The connections must agree: they belong to the words, not to the vectors.
    """

    def cells(table: Table) -> dict[tuple[str, str], int]:
        return {
            (table.words[i], table.attributes[j]): row
            for row, (i, j) in enumerate(zip(table.word, table.attribute, strict=True))
        }

    one, two = cells(before), cells(after)
    common = [key for key in one if key in two]
    if not common:
        raise InputError(f"{before.source} and {after.source}: no pair of words is in both")
    rows = np.array([one[key] for key in common])
    match = np.array([two[key] for key in common])
    differ = np.flatnonzero(before.connection[rows] != after.connection[match])
    if differ.size:
        word, attribute = common[int(differ[0])]
        raise InputError(
            f"{after.source}: '{word}' and '{attribute}': expected the connection "
            f"'{CONNECTIONS[before.connection[rows[differ[0]]]]}' as in {before.source}, "
            f"got '{CONNECTIONS[after.connection[match[differ[0]]]]}'"
        )
    chosen = np.zeros(before.rows, dtype=bool)
    chosen[rows] = True
    first = before.keep(chosen)
    second = first.with_distance(after.distance[match], after.source)
    alone = {"before": before.rows - rows.size, "after": after.rows - rows.size}
    return first, second, alone
