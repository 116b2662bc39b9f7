"""Distance tables: reading, pairing and simulating them.

One row is a pair of words with their cosine distance and its connection class: `associated` (a
stereotype of the word's own class), `different` (of another class), `human` or `none` (controls).
Columns are recognised by many headers: those of `evenhand lab vectors distances`, of Dobrzeniecka
(2021) and of the 2024 paper. Rows without a value are dropped, counted by reason and reported;
values that no cosine has and rows that contradict each other are errors with their line.
"""

from __future__ import annotations

import csv
import io
import math
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias, get_args

import numpy as np
from numpy.typing import NDArray

from evenhand.display import Shown
from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.files import public_name
from evenhand.statistics.intervals import Floats
from evenhand.text.corpus.compression import open_content, text_lines
from evenhand.text.tables import open_table

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.vectors.distances import DistanceTable


Ints = NDArray[np.int64]
Duplicates = Literal["drop", "keep"]
Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame | DistanceTable | Table"


CONNECTIONS = ("associated", "different", "human", "none")
GROUPS = ("stereotype", "human", "neutral")
GROUP_OF = dict(zip(CONNECTIONS, ("stereotype", *GROUPS), strict=True))
CONTRASTS = (
    ("associated", "different"),
    ("associated", "human"),
    ("associated", "none"),
    ("human", "none"),
)
ALIASES = {"neutral": "none"}
ROUNDING = 1e-6
AGREEMENT = 1e-3
"""Largest difference between a distance and one minus the similarity of its row."""


@dataclass(frozen=True, slots=True, repr=False)
class Table(Shown):
    """Cosine distances in long form, one row per pair of words.

    Attributes
    ----------
    source : str
        File (its base name) or object the table was read from.
    distance : array of shape (rows,)
    word, attribute, connection : array of shape (rows,)
        Indices into `words`, `attributes` and `CONNECTIONS`.
    words, attributes : tuple of str
    group : array of shape (attributes,)
        Index into `GROUPS`.
    word_class, attribute_class : tuple of str
        Class of every word and attribute; empty where the table does not state it.
    dropped : mapping of str to int
        Number of dropped rows by reason.
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
        """The connection classes that occur in the table."""
        return tuple(CONNECTIONS[k] for k in np.unique(self.connection))

    @property
    def shared_attributes(self) -> int:
        """Number of attributes associated with one protected word and different for another."""
        associated, different = (
            np.bincount(self.attribute[self.connection == k], minlength=len(self.attributes)) > 0
            for k in (0, 1)
        )
        return int((associated & different).sum())

    @property
    def repeated(self) -> int:
        """Number of rows whose pair of words an earlier row has."""
        cells = np.unique(self.word * len(self.attributes) + self.attribute)
        return self.rows - int(cells.size)

    def select(self, rows: NDArray[np.bool_]) -> Table:
        """Select rows; words and attributes without rows are removed."""
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

    def select_words(self, words: Iterable[str]) -> Table:
        """Select the rows of some protected words."""
        names = set(words)
        missing = sorted(names - set(self.words))
        if missing:
            raise InputError(f"{self.source}: no protected word '{missing[0]}' in the table")
        selected = np.array([name in names for name in self.words])
        return self.select(selected[self.word])

    def select_classes(self, classes: Iterable[str]) -> Table:
        """Select the rows of the protected words of some classes.

        The class of a word is that of its associated attributes. All attributes remain, those of
        other classes too.
        """
        names = set(classes)
        unknown = sorted(names - set(self.word_class) | names & {""})
        if unknown:
            known = dict.fromkeys(name for name in self.word_class if name)
            if not known:
                raise InputError(f"{self.source}: the table states no classes of protected words")
            raise UnknownNameError("class", unknown[0], known)
        return self.select_words(
            word for word, name in zip(self.words, self.word_class, strict=True) if name in names
        )

    def to_distances(self) -> DistanceTable:
        """Return the table with one row per word and one column per attribute.

        Attributes that lack a word or have several classes, and words without a class, are left
        out and named in `left_out`. MAC and the association contrast are measured from it.
        """
        from evenhand.vectors.distances import DistanceTable

        if self.repeated:
            raise InputError(
                f"{self.source}: expected one row per pair of words, got {self.repeated:,} "
                "repeated rows: drop the duplicates"
            )
        wide = np.full((len(self.words), len(self.attributes)), np.nan)
        wide[self.word, self.attribute] = self.distance
        kinds = ("", "human", "neutral")
        classes = [
            kinds[g] or name for g, name in zip(self.group, self.attribute_class, strict=True)
        ]
        rows = np.array([bool(name) for name in self.word_class])
        columns = np.array([bool(name) for name in classes]) & ~np.isnan(wide[rows]).any(axis=0)
        if not rows.any() or not columns.any():
            raise InputError(
                f"{self.source}: expected protected words and attributes with a class (column "
                f"wordClass) and complete distances, got {int(rows.sum())} words and "
                f"{int(columns.sum())} attributes"
            )
        left_out = [word for word, used in zip(self.words, rows, strict=True) if not used]
        left_out += [word for word, used in zip(self.attributes, columns, strict=True) if not used]
        return DistanceTable(
            topic=self.source,
            protected=tuple(np.array(self.words)[rows].tolist()),
            protected_class=tuple(np.array(self.word_class)[rows].tolist()),
            attributes=tuple(np.array(self.attributes)[columns].tolist()),
            attribute_class=tuple(np.array(classes)[columns].tolist()),
            distance=wide[np.ix_(rows, columns)],
            left_out=tuple(left_out),
        )

    def with_distance(self, distance: Floats, source: str) -> Table:
        """Replace the distances."""
        return replace(self, distance=distance, source=source)

    def _headline(self) -> str:
        size = f"{len(self.words)} words to {len(self.attributes)} attributes"
        return f"{self.source}: {self.rows:,} distances of {size}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [
            {"word": self.words[i], "attribute": self.attributes[j], "connection": CONNECTIONS[k]}
            | {"distance": float(distance)}
            for i, j, k, distance in zip(
                self.word, self.attribute, self.connection, self.distance, strict=True
            )
        ]


def read_table(source: Source, *, duplicates: Duplicates = "drop") -> Table:
    """Read a distance table.

    Parameters
    ----------
    source : path, DataFrame, DistanceTable or Table
        A DataFrame of pandas or polars. A path names a CSV file, optionally gzipped. The columns
        are protectedWord, wordToCompare, connection and cosineDistance or cosineSimilarity, under
        these or similar names.
    duplicates : {"drop", "keep"}
        Whether one row per pair of words remains, or all of them do, as in Dobrzeniecka (2021),
        whose models count a repeated row as another observation; crossed does not take such tables.
        A `Table` is returned as it is.

    Returns
    -------
    Table

    Raises
    ------
    FileError
        With the file, the line, what was expected and what came.

    Examples
    --------
    >>> import pandas as pd
    >>> table = read_table(pd.DataFrame({
    ...     "protected_word": ["imam", "imam", "imam"], "attribute": ["violent", "kind", "kind"],
    ...     "cosineSimilarity": [0.2, 0.1, 0.1], "connection": ["associated", "human", "human"],
    ... }))
    >>> table.rows, table.dropped["duplicate"], table.levels
    (2, 1, ('associated', 'human'))
    """
    from evenhand.vectors.distances import DistanceTable

    if duplicates not in get_args(Duplicates):
        raise UnknownNameError("duplicates", duplicates, get_args(Duplicates))
    if isinstance(source, Table):
        return source
    if isinstance(source, DistanceTable):
        rows = _frame_rows(source.to_frame())
        return _build_table(f"distances of {source.topic}", rows, duplicates)
    if isinstance(source, str | os.PathLike):
        table = _build_table(os.fspath(source), _csv_rows(source), duplicates)
        return replace(table, source=public_name(source))
    return _build_table("the table", _frame_rows(source), duplicates)


class DistanceRow(NamedTuple):
    """One usable row of a table; `connection` is an index into `CONNECTIONS`."""

    line: int
    word: str
    attribute: str
    word_class: str
    distance: float
    connection: int


Lines: TypeAlias = Iterator[tuple[int, list[str]]]
"""The number and the cells of every line, the header first."""


def _build_table(source: str, lines: Lines, duplicates: Duplicates) -> Table:
    _, header = next(lines)
    columns = _find_columns(source, header)
    dropped = dict.fromkeys(("sentinel", "missing", "duplicate"), 0)
    rows: list[DistanceRow] = []
    for line, cells in lines:
        row = _row(source, line, cells, header, columns)
        if isinstance(row, str):
            dropped[row] = dropped.get(row, 0) + 1
        else:
            rows.append(row)
    if duplicates == "drop":
        rows, dropped["duplicate"], conflicting = _drop_repeats(source, rows)
        if conflicting:
            dropped["conflicting"] = conflicting
    if not rows:
        counts = ", ".join(f"{count} {reason}" for reason, count in dropped.items() if count)
        raise FileError(source, f"expected rows with a distance, got none ({counts or 'no rows'})")
    return _encode(source, rows, dropped, duplicates)


SENTINELS = (-2, -9, -99, -100, -999, -9999, -10_000, -99_999)
"""Values of a similarity that mean a missing one; the distance is 1 minus it, or such a number."""


def _row(
    source: str, line: int, cells: Sequence[str], header: Sequence[str], columns: Mapping[str, int]
) -> DistanceRow | str:
    """A row, or the reason why it is unusable."""
    text = dict.fromkeys(HEADERS, "") | {role: cells[k].strip() for role, k in columns.items()}
    text = {role: "" if cell == "NA" else cell for role, cell in text.items()}

    def error(role: str, expected: str) -> FileError:
        problem = f"column {header[columns[role]]}: expected {expected}, got '{text[role][:40]}'"
        return FileError(source, problem, line=line)

    def number(role: str) -> float:
        """A cell as a number; NaN where it is empty."""
        try:
            return math.nan if text[role].lower() in EMPTY else float(text[role])
        except ValueError:
            raise error(role, "a number") from None

    distance, similarity = number("distance"), number("similarity")
    word, attribute, connection = text["word"], text["attribute"], text["connection"].lower()
    if not (word and attribute and connection):
        return "missing"
    for name, value, low, high in (("distance", distance, 0, 2), ("similarity", similarity, -1, 1)):
        if math.isnan(value) or low - ROUNDING <= value <= high + ROUNDING:
            continue
        if value in SENTINELS or -value in SENTINELS or 1 - value in SENTINELS:
            return "sentinel"
        problem = f"expected a cosine {name} between {low} and {high}, got {value:g}"
        raise FileError(source, f"'{word}' and '{attribute}': {problem}", line=line)
    if abs(distance + similarity - 1) > AGREEMENT:
        return "inconsistent"
    distance = 1.0 - similarity if math.isnan(distance) else distance
    if math.isnan(distance):
        return "missing"
    connection = ALIASES.get(connection, connection)
    if connection not in CONNECTIONS:
        raise error("connection", ", ".join(CONNECTIONS))
    number_of = CONNECTIONS.index(connection)
    return DistanceRow(line, word, attribute, text["word_class"], distance, number_of)


def _drop_repeats(source: str, rows: Iterable[DistanceRow]) -> tuple[list[DistanceRow], int, int]:
    """Reduce to one row per pair of words; count equal and conflicting repeats.

    Two distances of one pair are an error.

    Of several connections of a pair the first of associated, different, human, none is used: a
    stereotype of the word's own class remains one although it is also another class's.
    """
    first: dict[tuple[str, str], DistanceRow] = {}
    repeated = conflicting = 0
    for row in rows:
        key = row.word, row.attribute
        earlier = first.setdefault(key, row)
        gap = abs(earlier.distance - row.distance)
        if gap > AGREEMENT:
            raise FileError(
                source,
                f"'{row.word}' and '{row.attribute}': expected one distance, got "
                f"{earlier.distance:g} in line {earlier.line} and {row.distance:g} here",
                line=row.line,
            )
        if earlier is row:
            continue
        if earlier.connection == row.connection and gap <= ROUNDING:
            repeated += 1
            continue
        conflicting += 1
        if row.connection < earlier.connection:
            first[key] = row
    return list(first.values()), repeated, conflicting


def _encode(
    source: str, rows: list[DistanceRow], dropped: dict[str, int], duplicates: Duplicates
) -> Table:
    words = {name: i for i, name in enumerate(dict.fromkeys(row.word for row in rows))}
    names = {name: j for j, name in enumerate(dict.fromkeys(row.attribute for row in rows))}
    connection = np.array([row.connection for row in rows], dtype=np.int64)
    attribute = np.array([names[row.attribute] for row in rows], dtype=np.int64)
    groups = np.maximum(connection - 1, 0)
    group = np.full(len(names), len(GROUPS), dtype=np.int64)
    np.minimum.at(group, attribute, groups)
    table = Table(
        source=source,
        distance=np.array([row.distance for row in rows]),
        word=np.array([words[row.word] for row in rows], dtype=np.int64),
        attribute=attribute,
        connection=connection,
        words=tuple(words),
        attributes=tuple(names),
        group=group,
        word_class=_classes(words, ((r.word, r.word_class) for r in rows if r.connection == 0)),
        attribute_class=_classes(names, ((r.attribute, r.word_class) for r in rows)),
        dropped=dropped,
    )
    conflicting = groups != group[attribute]
    if conflicting.any() and duplicates == "drop":
        dropped["conflicting"] = dropped.get("conflicting", 0) + int(conflicting.sum())
        table = table.select(~conflicting)
    return table


def _classes(names: Mapping[str, int], pairs: Iterable[tuple[str, str]]) -> tuple[str, ...]:
    """Class of every name; empty where the table states none or several."""
    classes: dict[str, set[str]] = {name: set() for name in names}
    for name, label in pairs:
        if label:
            classes[name].add(label.removesuffix("_stereotype").removesuffix("Stereotype"))
    return tuple(labels.pop() if len(labels) == 1 else "" for labels in classes.values())


def pair_tables(before: Table, after: Table) -> tuple[Table, Table, dict[str, int]]:
    """Pair two tables by protected word and attribute.

    Returns
    -------
    before, after : Table
        The common rows, in one order.
    unpaired : dict of str to int
        Number of rows that only `before` and only `after` has.

    Notes
    -----
    The connections must agree: they belong to the words, not to the vectors. Repeated rows are
    paired in their order.
    """

    def cells(table: Table) -> dict[tuple[str, str, int], int]:
        seen: Counter[tuple[int, int]] = Counter()
        rows = {}
        for row, cell in enumerate(zip(table.word.tolist(), table.attribute.tolist(), strict=True)):
            rows[table.words[cell[0]], table.attributes[cell[1]], seen[cell]] = row
            seen[cell] += 1
        return rows

    rows_before, rows_after = cells(before), cells(after)
    common = [key for key in rows_before if key in rows_after]
    if not common:
        raise InputError(
            f"{before.source} and {after.source}: expected common pairs of words, got none"
        )
    rows = np.array([rows_before[key] for key in common])
    match = np.array([rows_after[key] for key in common])
    differ = np.flatnonzero(before.connection[rows] != after.connection[match])
    if differ.size:
        word, attribute, _ = common[int(differ[0])]
        raise InputError(
            f"{after.source}: '{word}' and '{attribute}': expected the connection "
            f"'{CONNECTIONS[before.connection[rows[differ[0]]]]}' as in {before.source}, "
            f"got '{CONNECTIONS[after.connection[match[differ[0]]]]}'"
        )
    selected = np.zeros(before.rows, dtype=bool)
    selected[rows] = True
    first = before.select(selected)
    second = first.with_distance(after.distance[match], after.source)
    unpaired = {"before": before.rows - rows.size, "after": after.rows - rows.size}
    return first, second, unpaired


HEADERS = {
    "word": ("protectedword", "protected", "targetword", "target"),
    "attribute": ("wordtocompare", "attributeword", "attribute", "comparedword", "compareword"),
    "word_class": ("wordclass", "attributeclass", "class"),
    "distance": ("cosinedistance", "cosdistance", "distance"),
    "similarity": ("cosinesimilarity", "cossimilarity", "similarity", "cosine"),
    "connection": ("connection", "connectiontype", "con"),
}
"""Headers of every role, in lower case and without spaces, dots and underscores."""

REQUIRED = {"word": "protectedWord", "attribute": "wordToCompare", "connection": "connection"}
EXPECTED = "protectedWord, wordToCompare, connection and cosineDistance or cosineSimilarity"
EMPTY = frozenset({"", "na", "nan", "null", "none", "n/a", "."})


def _csv_rows(path: str | os.PathLike[str]) -> Lines:
    """Rows of a CSV file; that of row names may lack a header."""
    with closing(open_content(os.fspath(path))) as file:
        reader = csv.reader(_lines(os.fspath(path), file), strict=True)
        try:
            header = next(reader, None)
            if header is None:
                raise FileError(path, f"expected the columns {EXPECTED}, got an empty file")
            yield 1, header
            for cells in filter(None, reader):
                shift = len(cells) - len(header)
                if shift not in (0, 1) or (shift == 1 and header[0] == ""):
                    problem = f"expected {len(header)} cells, got {len(cells)}"
                    raise FileError(path, problem, line=reader.line_num)
                yield reader.line_num, cells[shift:]
        except csv.Error as error:
            raise FileError(path, f"expected CSV, got {error}", line=reader.line_num) from None


def _frame_rows(frame: pd.DataFrame) -> Lines:
    """Rows of a DataFrame, counted from 1."""
    with open_table(frame) as table:
        yield 0, list(table.columns)
        for line, cells in table.read(table.columns):
            yield line, ["" if cell is None else str(cell) for cell in cells]


def _lines(path: str, file: io.BufferedReader) -> Iterator[str]:
    """The lines of a file, which a return alone may end."""
    for _, line in text_lines(path, file):
        yield from (RETURN.split(line) if "\r" in line else [line])


RETURN = re.compile(r"(?<=\r)(?!\n)")


def _find_columns(path: str | os.PathLike[str], header: Sequence[str]) -> Mapping[str, int]:
    """Column index of every role; unknown headers are ignored."""
    plain = [re.sub(r"[\W_]+", "", name).lower() for name in header]
    columns: dict[str, int] = {}
    for role, names in HEADERS.items():
        matches = [k for name in names for k, title in enumerate(plain) if title == name]
        if len(matches) > 1 and plain[matches[0]] == plain[matches[1]]:
            raise FileError(path, f"two columns named '{header[matches[1]]}'", line=1)
        if matches:
            columns[role] = matches[0]
    missing = [name for role, name in REQUIRED.items() if role not in columns]
    if not missing and "distance" not in columns and "similarity" not in columns:
        missing = ["cosineDistance"]
    if missing:
        headers = ", ".join(cell for cell in header if cell) or "none"
        raise FileError(
            path, f"no column {missing[0]}: expected {EXPECTED}, got {headers[:200]}", line=1
        )
    return columns


SCALES = {
    "error": 0.12,
    "stereotype": 0.19,
    "human": 0.12,
    "neutral": 0.14,
    "delta": 0.03,
    "word": 0.035,
    "slope_stereotype": 0.14,
    "slope_human": 0.07,
    "interaction_stereotype": 0.01,
    "interaction_human": 0.006,
    "interaction_neutral": 0.003,
}
"""Close to those of the religion table of Dobrzeniecka (2021)."""


def simulate(
    *,
    delta: float = 0.0,
    words: Sequence[int] = (5, 5, 5),
    stereotypes: Sequence[int] = (4, 4, 3),
    human: int = 27,
    neutral: int = 60,
    levels: tuple[float, float, float] = (0.9, 0.9, 0.95),
    scales: Mapping[str, float] = SCALES,
    freedom: float | None = None,
    unequal: tuple[float, float] = (0.0, 1.0),
    skew: float = 0.0,
    correlated: tuple[int, float] = (1, 0.0),
    seed: int = 0,
) -> Table:
    """Simulate a distance table with a known true δ, from the crossed model or one unlike it.

    Parameters
    ----------
    delta : float, default 0.0
        True mean difference associated - different.
    words, stereotypes : sequence of int
        Number of protected words and of stereotypes of every class.
    human, neutral : int
        Number of control words.
    levels : tuple of float
        γ of stereotype, human and neutral attributes.
    scales : mapping of str to float
        Standard deviations; `delta` is that of δ_i between words. Effects without one are 0.
    freedom : float, optional
        Degrees of freedom, above 2, of Student-t errors and effects with these standard deviations;
        normal by default, as crossed assumes.
    unequal : tuple of float
        Standard deviation, between words, of the logarithm of the scale of the error, and how many
        times larger that scale is for associated attributes; (0, 1) is what crossed assumes.
    skew : float, default 0.0
        Skewness of everything that belongs to an attribute: its level, its effects with classes and
        its errors, which are then gamma distributed with the same standard deviations. Negative
        where a few attributes are much closer than the others.
    correlated : tuple of int and float
        Attributes come in groups of so many neighbours of one class, such as synonyms, which share
        this part of the variance of their levels, effects with classes and errors; (1, 0) is what
        crossed assumes.
    seed : int, default 0

    Returns
    -------
    Table

    Examples
    --------
    >>> table = simulate(delta=-0.1, neutral=10)
    >>> table.rows, table.levels
    (720, ('associated', 'different', 'human', 'none'))
    """
    rng = np.random.default_rng(seed)
    word_class = np.repeat(np.arange(len(words)), words)
    stereotype_class = np.repeat(np.arange(len(stereotypes)), stereotypes)
    group = np.repeat([0, 1, 2], [stereotype_class.size, human, neutral])
    own = np.full((word_class.size, group.size), False)
    own[:, : stereotype_class.size] = word_class[:, None] == stereotype_class

    def draw(*shape: int) -> Floats:
        if freedom is None:
            return np.asarray(rng.standard_normal(shape))
        return np.asarray(rng.standard_t(freedom, shape) * np.sqrt(1 - 2 / freedom))

    kinds = np.concatenate([stereotype_class, np.full(human, -1), np.full(neutral, -2)])
    cluster = _clusters(kinds, correlated[0])

    def draw_attributes(*rows: int) -> Floats:
        """Draw one number per attribute in every row, skewed and correlated as requested."""
        own = _skewed(rng, (*rows, group.size), skew) if skew else draw(*rows, group.size)
        if not correlated[1]:
            return own
        size = (*rows, int(cluster.max()) + 1)
        common = _skewed(rng, size, skew) if skew else draw(*size)
        part = np.sqrt(correlated[1]) * common[..., cluster]
        return np.asarray(part + np.sqrt(1 - correlated[1]) * own)

    def by_group(prefix: str = "") -> Floats:
        return np.asarray(np.array([scales.get(prefix + name, 0.0) for name in GROUPS])[group])

    def by_word(name: str) -> Floats:
        return np.asarray(scales.get(name, 0.0) * draw(word_class.size, 1))

    theta = np.array(levels)[group] + by_group() * draw_attributes()
    mean = theta + by_word("word") + own * (delta + by_word("delta"))
    mean = mean + by_word("slope_stereotype") * (group == 0) + by_word("slope_human") * (group == 1)
    noise = scales["error"] * draw_attributes(word_class.size)
    mean = mean + (by_group("interaction_") * draw_attributes(len(words)))[word_class]
    if unequal != (0.0, 1.0):
        noise *= np.exp(unequal[0] * rng.standard_normal((word_class.size, 1)))
        noise *= np.where(own, unequal[1], 1.0)
    y = mean + noise
    word, attribute = np.indices(y.shape).reshape(2, -1)
    connection = np.where(group == 0, np.where(own, 0, 1), group + 1)
    names = [f"class{k + 1}" for k in range(len(words))]
    classes = [*(names[k] for k in stereotype_class), *["human"] * human, *["neutral"] * neutral]
    return Table(
        source="simulated",
        distance=y.ravel(),
        word=word,
        attribute=attribute,
        connection=connection.ravel(),
        words=tuple(f"word{i + 1}" for i in range(word_class.size)),
        attributes=tuple(f"attribute{j + 1}" for j in range(group.size)),
        group=group,
        word_class=tuple(names[k] for k in word_class),
        attribute_class=tuple(classes),
        dropped=dict.fromkeys(("sentinel", "missing", "duplicate"), 0),
    )


def _skewed(rng: np.random.Generator, shape: tuple[int, ...], skew: float) -> Floats:
    """Draw from a gamma distribution of this skewness, shifted to mean 0 and variance 1."""
    alpha = 4 / skew**2
    return np.asarray(np.sign(skew) * (rng.gamma(alpha, size=shape) - alpha) / np.sqrt(alpha))


def _clusters(kinds: Ints, size: int) -> Ints:
    """Number groups of `size` neighbours of one kind; the last of a kind may be smaller."""
    starts = np.ones(kinds.size, dtype=bool)
    run = 0
    for k in range(1, kinds.size):
        run = run + 1 if kinds[k] == kinds[k - 1] else 0
        starts[k] = run % size == 0
    return np.asarray(np.cumsum(starts) - 1)
