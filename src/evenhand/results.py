"""The results of every measurement: `Estimate`, `Measurement`, `Comparison`.

A number never stands alone: it has an interval, the items it was computed from, the ideal value,
the direction that is worse, and what was left out. Results nest (`parts`), read themselves back
from JSON at any depth, and can be tabulated, plotted and shown in a notebook.
"""

from __future__ import annotations

import hashlib
import io
import json
import math
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import check_arguments, checked
from evenhand.display import Result, ResultList, Shown
from evenhand.errors import FileError, InputError
from evenhand.files import document, plain, public, read_document, replace_file, save_json
from evenhand.judging import excludes, holds, side
from evenhand.wording import supported

if TYPE_CHECKING:
    import pandas as pd

    from evenhand.charts import Chart

__all__ = [
    "Comparison",
    "Estimate",
    "Items",
    "Measurement",
    "Measurements",
    "Result",
    "ResultList",
    "Worse",
    "load",
]

Worse = Literal["higher", "lower", "away"]
"""The direction of more bias: above the ideal, below it, or away from it on either side."""

Item: TypeAlias = Mapping[str, Any]
"""One row of `Items`."""

Column: TypeAlias = NDArray[Any] | tuple[Any, ...]
KEYS = ("axis", "cluster", "word", "item", "group")
"""Columns that say what an item is; the items of two measurements are paired by them."""
M = TypeVar("M", "Measurement", "Comparison")


class Items(Sequence[Mapping[str, Any]], Shown):
    """The rows behind a measurement, stored by column.

    Numeric columns are arrays (float, int or bool; a missing number is NaN), all others tuples.
    Items of an audit that was read from its folder are loaded from `items.parquet` when they are
    first used.

    Parameters
    ----------
    columns : Mapping of str to Sequence, or Iterable of Mapping
        The columns, all of one length, or the rows.

    Examples
    --------
    >>> items = Items({"word": ["nurse", "pilot"], "score": [-0.5, 0.25]})
    >>> len(items), items[0]["word"], items["score"].tolist()
    (2, 'nurse', [-0.5, 0.25])

    """

    __slots__ = ("_held",)
    _held: dict[str, Column] | Callable[[], dict[str, Column]]

    def __init__(
        self, columns: Mapping[str, Iterable[Any]] | Iterable[Mapping[str, Any]] = ()
    ) -> None:
        if isinstance(columns, Items):
            self._held = columns._held
            return
        if not isinstance(columns, Mapping):
            rows = list(columns)
            names = dict.fromkeys(name for row in rows for name in row)
            columns = {name: [row.get(name) for row in rows] for name in names}
        self._held = {str(name): _column(values) for name, values in columns.items()}
        lengths = {name: len(column) for name, column in self._held.items()}
        if len(set(lengths.values())) > 1:
            raise InputError(f"items: expected columns of one length, got {lengths}")

    @property
    def _columns(self) -> dict[str, Column]:
        if callable(self._held):
            self._held = self._held()
        return self._held

    @property
    def columns(self) -> tuple[str, ...]:
        """The names of the columns."""
        return tuple(self._columns)

    def __len__(self) -> int:
        return len(next(iter(self._columns.values()), ()))

    @overload
    def __getitem__(self, key: str) -> Any: ...
    @overload
    def __getitem__(self, key: int) -> Mapping[str, Any]: ...
    @overload
    def __getitem__(self, key: slice) -> Items: ...
    def __getitem__(self, key: str | int | slice) -> Any:
        """A column by its name, a row by its number, or some rows by a slice."""
        if isinstance(key, str):
            return self._columns[key]
        if isinstance(key, slice):
            return Items({name: column[key] for name, column in self._columns.items()})
        return {name: _scalar(column[key]) for name, column in self._columns.items()}

    def __iter__(self) -> Iterator[Mapping[str, Any]]:
        lists = [
            column.tolist() if isinstance(column, np.ndarray) else column
            for column in self._columns.values()
        ]
        for row in zip(*lists, strict=True):
            yield dict(zip(self._columns, row, strict=True))

    def __contains__(self, name: object) -> bool:
        return name in self._columns

    def get(self, name: str) -> Any:
        """The column of that name, or None."""
        return self._columns.get(name)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Items):
            return NotImplemented
        return self.columns == other.columns and all(
            _equal(column, other._columns[name]) for name, column in self._columns.items()
        )

    __hash__ = None  # type: ignore[assignment]

    def _headline(self) -> str:
        return f"{len(self)} rows: {', '.join(self.columns)}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return self

    def to_dict(self) -> dict[str, list[Any]]:
        """The columns as lists."""
        return {name: plain(column) for name, column in self._columns.items()}

    def to_frame(self) -> pd.DataFrame:
        """The rows as a DataFrame."""
        import pandas as pd

        return pd.DataFrame(
            {
                name: column if isinstance(column, np.ndarray) else list(column)
                for name, column in self._columns.items()
            }
        )


def _column(values: Iterable[Any]) -> Column:
    if isinstance(values, np.ndarray) and values.ndim == 1:
        if values.dtype.kind in "bi":
            return values
        if values.dtype.kind in "fu":
            return values.astype(float if values.dtype.kind == "f" else np.int64)
    given = list(values)
    types = set(map(type, given))
    if types == {str}:
        return tuple(given)
    if len(types) == 1 and types <= {bool, int, float}:
        (kind,) = types
        return np.array(given, dtype=np.int64 if kind is int else kind)
    listed = [_scalar(value) for value in given]
    kinds = {type(value) for value in listed if value is not None}
    if kinds <= {int, float}:
        if kinds == {int} and None not in listed:
            return np.array(listed, dtype=np.int64)
        return np.array([math.nan if value is None else value for value in listed], dtype=float)
    if kinds == {bool} and None not in listed:
        return np.array(listed, dtype=bool)
    return tuple(plain(value) for value in listed)


def _scalar(value: object) -> Any:
    return value.item() if isinstance(value, np.generic) else value


def _equal(one: Column, other: Column) -> bool:
    if isinstance(one, np.ndarray) and isinstance(other, np.ndarray):
        floats = one.dtype.kind == "f"
        return one.dtype.kind == other.dtype.kind and np.array_equal(one, other, equal_nan=floats)
    return isinstance(one, tuple) and isinstance(other, tuple) and one == other


ITEMS = "items.parquet"
"""The items of an audit, beside its `results.json`."""

STORED = {"b": "bool", "i": "int64", "f": "double"}
"""Arrow's types of the numeric columns, by the kind of the array."""


class ItemTables:
    """The items of many measurements as one Parquet file, equal tables once.

    Its columns are those of all tables; columns of one name that differ in type are stored apart.
    The column `table` has the number of the table, which stands in place of the items in the
    document. What Parquet has no type for (mixed or nested values) is stored as JSON.
    """

    def __init__(self) -> None:
        self._numbers: dict[bytes, int] = {}
        self._tables: list[dict[tuple[str, str], Column]] = []

    def add(self, items: Items) -> int:
        """The number of the table with these items."""
        table = {(name, _stored_type(items[name])): items[name] for name in items.columns}
        digest = hashlib.sha256(repr(list(table)).encode())
        for column in table.values():
            array = isinstance(column, np.ndarray)
            digest.update(column.tobytes() if array else json.dumps(column).encode())
        number = self._numbers.setdefault(digest.digest(), len(self._tables))
        if number == len(self._tables):
            self._tables.append(table)
        return number

    def save(self, path: Path) -> dict[str, str]:
        """Write the file; returns the reference to it, the entry `items` of the document."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        texts = iter(  # no path of this machine, as in the document
            public([c for table in self._tables for c in table.values() if isinstance(c, tuple)])
        )
        tables = [
            {key: next(texts) if isinstance(c, tuple) else c for key, c in table.items()}
            for table in self._tables
        ]
        names: dict[tuple[str, str], str] = {}
        for key in (key for table in tables for key in table):
            name = key[0]
            while key not in names and (name == "table" or name in names.values()):
                name += f" ({key[1]})"
            names.setdefault(key, name)
        lengths = [len(next(iter(table.values()), ())) for table in tables]
        columns: dict[str, Any] = {
            "table": pa.array(np.repeat(np.arange(len(lengths)), lengths), pa.int64())
        }
        for key, name in names.items():
            kind = pa.type_for_alias("string" if key[1] == "json" else key[1])
            columns[name] = pa.chunked_array(
                [
                    pa.array(_cells(table[key], key[1]), kind)
                    if key in table
                    else pa.nulls(length, kind)
                    for table, length in zip(tables, lengths, strict=True)
                ],
                kind,
            )
        layout = {
            "columns": {name: key for key, name in names.items()},
            "tables": [
                [length, [names[key] for key in table]]
                for table, length in zip(tables, lengths, strict=True)
            ],
        }
        content = io.BytesIO()
        pq.write_table(
            pa.table(columns).replace_schema_metadata({"evenhand": json.dumps(layout)}),
            content,
            compression="zstd",
            use_dictionary=[name for (_, kind), name in names.items() if kind == "string"],
        )
        with replace_file(path) as file:
            file.write(content.getvalue())
        return {"file": path.name, "sha256": hashlib.sha256(content.getvalue()).hexdigest()}


def _stored_type(column: Column) -> str:
    if isinstance(column, np.ndarray):
        return STORED[column.dtype.kind]
    return "string" if all(value is None or type(value) is str for value in column) else "json"


def _cells(column: Any, stored: str) -> Any:
    return list(map(json.dumps, column)) if stored == "json" else column


@dataclass(frozen=True)
class _StoredTables:
    """The Parquet file that a document refers to, read when the first of its items are used."""

    path: Path
    sha256: str

    @cached_property
    def _content(self) -> tuple[Any, list[tuple[int, int, dict[str, tuple[str, str]]]]]:
        """Arrow's table, and of each table its first row, its length and its columns."""
        import pyarrow as pa
        import pyarrow.parquet as pq

        try:
            content = self.path.read_bytes()
        except OSError:
            problem = "no such file: expected the items beside the results of an audit"
            raise FileError(self.path, problem) from None
        if hashlib.sha256(content).hexdigest() != self.sha256:
            raise FileError(
                self.path, "expected the items of these results, got those of other results"
            )
        stored = pq.read_table(pa.BufferReader(content)).combine_chunks()
        layout = json.loads(stored.schema.metadata[b"evenhand"])
        tables, start = [], 0
        for length, names in layout["tables"]:
            keys = {
                layout["columns"][name][0]: (name, layout["columns"][name][1]) for name in names
            }
            tables.append((start, length, keys))
            start += length
        return stored, tables

    def columns(self, number: int) -> dict[str, Column]:
        """The columns of a table."""
        stored, tables = self._content
        if not 0 <= number < len(tables):
            raise FileError(self.path, f"expected {number + 1} tables or more, got {len(tables)}")
        start, length, keys = tables[number]
        columns: dict[str, Column] = {}
        for name, (column, kind) in keys.items():
            cells = stored.column(column).slice(start, length)
            if kind in STORED.values():
                columns[name] = cells.to_numpy().copy()
            else:
                texts = cells.to_pylist()
                columns[name] = tuple(map(json.loads, texts) if kind == "json" else texts)
        return columns


def read_with_items(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Read a document; its items may be in a Parquet file beside it (see `attach_items`)."""
    return attach_items(read_document(path), Path(path).parent)


def attach_items(content: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Replace the numbers of tables in a document by `Items` that are read from `folder`.

    Without the file all values are there, and using items is an error that names it. Documents
    that contain their items stay as they are.
    """
    reference = content.get("items")
    if isinstance(reference, dict) and reference.keys() == {"file", "sha256"}:
        tables = _StoredTables(folder / Path(reference["file"]).name, reference["sha256"])
        _attach(content, tables)
    return content


def _attach(value: object, tables: _StoredTables) -> None:
    if isinstance(value, dict):
        if "metric" in value and type(number := value.get("items")) is int:
            value["items"] = Items()
            value["items"]._held = partial(tables.columns, number)
        for inner in value.values():
            _attach(inner, tables)
    elif isinstance(value, list):
        for inner in value:
            _attach(inner, tables)


def _same(one: object, other: object) -> bool:
    return bool(one == other or (one != one and other != other))  # NaN is the same as NaN


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Estimate(Result):
    """A value with an interval that contains the truth with probability `prob`.

    An end that is not known is unbounded (infinite). JSON has null for it, and for a value that
    could not be computed.
    """

    value: float
    low: float
    high: float
    prob: float = 0.95

    def __post_init__(self) -> None:
        _normalise_interval(self)

    @classmethod
    def of(cls, interval: tuple[float, float, float], prob: float = 0.95) -> Estimate:
        """From (value, low, high), as the functions of `evenhand.statistics` return them."""
        value, low, high = interval
        return cls(value=value, low=low, high=high, prob=prob)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Estimate):
            return NotImplemented
        return self.prob == other.prob and all(
            _same(getattr(self, name), getattr(other, name)) for name in ("value", "low", "high")
        )

    def __hash__(self) -> int:
        return hash((self.value, self.low, self.high, self.prob))

    def __str__(self) -> str:
        return f"{self.value:.3f} [{self.low:.3f}, {self.high:.3f}] ({self.prob:.0%})"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return [self.to_dict()]

    def to_dict(self) -> dict[str, Any]:
        return {"value": self.value, "low": self.low, "high": self.high, "prob": self.prob}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Estimate:
        fields = {**row, **_interval(row)}
        _check_read(cls, fields)
        return cls(**fields)


def _interval(row: Mapping[str, Any]) -> dict[str, float]:
    """Value and ends from JSON: null is NaN for the value, unbounded for an end."""
    return {
        name: float(missing if row[name] is None else row[name])
        for name, missing in (("value", math.nan), ("low", -math.inf), ("high", math.inf))
    }


def _check_read(cls: Callable[..., object], fields: Mapping[str, Any]) -> None:
    """An InputError where a field of a saved result is not what its annotation says."""
    check_arguments(cls, fields)
    if not 0 <= fields.get("prob", 0.95) <= 1:
        raise InputError(f"prob: expected a number from 0 to 1, got {fields['prob']!r}")


def _read_items(given: Any) -> Items:
    """The items of a saved result: columns, or rows."""
    if isinstance(given, Items):
        return given
    if given is None:
        return Items()
    columns: Any = given
    kinds: Any = (list, tuple, np.ndarray)
    rows = given.values() if isinstance(given, Mapping) else given
    kind: Any = kinds if isinstance(given, Mapping) else Mapping
    if not isinstance(given, (Mapping, *kinds)) or not all(isinstance(each, kind) for each in rows):
        raise InputError(f"items: expected columns or rows, got {given!r:.80}")
    items = Items(columns)
    for name in KEYS:
        if any(isinstance(cell, list | dict) for cell in items._columns.get(name, ())):
            raise InputError(f"items: expected texts in the column '{name}', got a list")
    without = items._columns.get("without", ())
    if len(without) and not isinstance(without, np.ndarray):
        raise InputError("items: expected numbers in the column 'without', got something else")
    return items


def _normalise_interval(result: Estimate | Measurement) -> None:
    """Convert to float: unknown ends become ±inf, unknown values NaN."""
    for name, missing in (("value", math.nan), ("low", -math.inf), ("high", math.inf)):
        number = getattr(result, name)
        number = missing if number is None or math.isnan(number) else float(number)
        object.__setattr__(result, name, number)
    if not math.isfinite(result.value):
        object.__setattr__(result, "value", math.nan)


class _Tested(Result):
    """The base of measurements and comparisons: a p-value, parts, and their storage."""

    __slots__: tuple[str, ...] = ()
    p_value: float | None
    p_corrected: float | None
    family: int
    details: Mapping[str, Any]

    def __post_init__(self) -> None:
        p = self.p_value
        converted = {
            "p_value": None if p is None or math.isnan(p) else float(p),
            "details": plain(self.details),
        }
        for name in ("left_out", "notes", "parts"):
            if name in self.__slots__:
                converted[name] = tuple(getattr(self, name))
        for name, value in converted.items():
            object.__setattr__(self, name, value)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, type(self)):
            return NotImplemented
        return all(_same(getattr(self, name), getattr(other, name)) for name in self.__slots__)

    __hash__ = None  # type: ignore[assignment]

    @property
    def p(self) -> float | None:
        """The p-value, corrected for its family where it has one."""
        return self.p_value if self.p_corrected is None else self.p_corrected

    @property
    def draws(self) -> float | None:
        """The random draws behind the p-value, None where it is exact.

        Where the p-value was corrected, the number that has the error of the corrected one: fewer
        by the factor of the correction.
        """
        draws, p = self.details.get("draws"), self.p
        return draws * self.p_value / p if draws and p and self.p_value else draws

    def _p_text(self) -> str:
        """The p-value as part of a line, with the family that it is corrected for."""
        if self.p is None:
            return ""
        value, _, bound = supported(self.p, self.draws)
        family = f" (corrected for {self.family} tests)" if self.family > 1 else ""
        return f", p {'<' if bound else '='} {value:.2g}{family}"


def _find(parts: Sequence[M], query: str, of: str) -> M:
    """The part of that name."""
    for part in parts:
        if query in (part.query, part.metric):
            return part
    known = ", ".join(dict.fromkeys(part.query for part in parts)) or "none"
    raise KeyError(f"no part '{query}' of {of} (known: {known})")


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Measurement(_Tested):
    """One measured bias: the number, how sure it is, and everything it was computed from.

    Parameters
    ----------
    metric, query : str
        The instrument and the question it was asked.
    value, low, high, prob : float
        The value and the interval that contains the truth with probability `prob`. An end that
        is not known is infinite.
    n : int
        The number of items behind the value.
    ideal : float or None
        The value without bias.
    worse : {"higher", "lower", "away"}
        The direction of more bias.
    interval, test : str
        What `low` and `high`, and `p_value`, rest on.
    p_value : float or None
        Of this result alone.
    p_corrected : float or None
        Corrected for the `family` tests that were judged together (Holm); `p` is what is shown.
    family : int
    subject : str
        The name of what was measured (vectors, model, corpus).
    by : str
        For a part: the kind of part, such as "category" or "template".
    items : Items
        One row per word, pair or sentence. `score` is its own score; `without`, where present,
        the value with that item left out (the jackknife replicate that comparisons use).
    left_out : tuple of str
        What could not be measured.
    parts : tuple of Measurement
        The same measure on parts of the items, or the components it is made of.
    seed : int or None
    details : Mapping
        Further numbers, plain JSON values; a number that could not be computed is None.
    notes : tuple of str
        What a reader must know before quoting the number.

    Examples
    --------
    >>> m = Measurement(metric="weat", query="6", value=1.5, low=1.0, high=1.8, n=16, ideal=0.0,
    ...                 worse="away", interval="noncentral t")
    >>> print(m)
    weat 6: 1.500 [1.000, 1.800] (95%), n = 16; ideal 0
    >>> Measurement.from_dict(m.to_dict()) == m
    True

    """

    metric: str
    query: str
    value: float
    low: float
    high: float
    n: int
    ideal: float | None
    worse: Worse
    interval: str
    prob: float = 0.95
    p_value: float | None = None
    p_corrected: float | None = None
    family: int = 1
    test: str = ""
    subject: str = ""
    by: str = ""
    items: Items = field(default_factory=Items, repr=False)
    left_out: tuple[str, ...] = ()
    parts: tuple[Measurement, ...] = field(default=(), repr=False)
    seed: int | None = None
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        _normalise_interval(self)
        object.__setattr__(self, "items", Items(self.items))
        super(Measurement, self).__post_init__()

    @property
    def estimate(self) -> Estimate:
        """The value and its interval alone."""
        return Estimate(value=self.value, low=self.low, high=self.high, prob=self.prob)

    @property
    def null(self) -> str:
        """The null of the p-value: "the ideal", "random words", or empty without one."""
        if self.p_value is None:
            return ""
        return "the ideal" if self.details.get("null_draws") is None else "random words"

    def part(self, query: str, by: str | None = None) -> Measurement:
        """The part of that name; with `by`, among the parts by it."""
        return _find(self.select(by), query, f"{self.metric} {self.query}")

    def select(self, by: str | None = None) -> tuple[Measurement, ...]:
        """The parts by `by` ("category", "template", …); without it, all."""
        return tuple(part for part in self.parts if by in (None, part.by))

    def __str__(self) -> str:
        p = self._p_text()
        p += " against random words" if self.null == "random words" else ""
        ideal = "" if self.ideal is None else f"; ideal {self.ideal:g}"
        if self.null == "random words":
            ideal += f", random words score {self.details['null_median']:.3f}"
        out = f"; left out: {', '.join(self.left_out)}" if self.left_out else ""
        name = f"{self.subject}: {self.metric}" if self.subject else self.metric
        return f"{name} {self.query}: {self.estimate}{p}, n = {self.n}{ideal}{out}"

    def to_dict(self, *, items: bool | Callable[[Items], Any] = True) -> dict[str, Any]:
        """The JSON view; `items=False` leaves out the items, which can be thousands.

        A function of the items returns their replacement.
        """
        row = {name: getattr(self, name) for name in self.__slots__ if name != "items"}
        row["parts"] = [part.to_dict(items=items) for part in self.parts]
        if items:
            row["items"] = items(self.items) if callable(items) else self.items.to_dict()
        return row

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Measurement:
        """Read what `to_dict` wrote, parts at any depth."""
        fields = {**row, **_interval(row)}
        fields.pop("sentence", None)  # what a command adds to its JSON
        fields["items"] = _read_items(row.get("items"))
        fields["parts"] = tuple(cls.from_dict(part) for part in row.get("parts", ()))
        _check_read(cls, fields)
        return cls(**fields)

    def to_frame(self, rows: Literal["items", "parts"] | None = None) -> pd.DataFrame:
        """The items as a DataFrame, or the measurement and its parts with one row each.

        Without `rows`: the items, or the parts where there are no items.
        """
        if rows == "items" or (rows is None and len(self.items)):
            return self.items.to_frame()
        return Measurements([self]).to_frame(parts=True)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the measurement, items and parts included, as one JSON document."""
        save_json(path, document(measurements=[self.to_dict()]))

    def plot(self, *, title: str | None = None, width: int = 380) -> Chart:
        """A forest plot of the value and its parts (an Altair chart)."""
        from evenhand.charts import forest

        shown = f"{self.metric} {self.query}" if title is None else title
        return forest(_forest_rows([self]), title=shown, width=width)

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return _table_rows([self], parts=True)

    def _notes(self) -> Sequence[str]:
        left_out = [f"left out: {', '.join(self.left_out)}"] if self.left_out else []
        return [*self.notes, *left_out]


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Comparison(_Tested):
    """The same measurement twice, with an interval on the change, paired item by item.

    Parameters
    ----------
    before, after : Measurement
    change : Estimate
        After minus before, or after divided by before where `kind` is "ratio".
    interval, test : str
        What the interval of the change, and `p_value`, rest on.
    paired : int
        The number of items that both have.
    p_value, p_corrected : float or None
    family : int
        As for `Measurement`.
    kind : {"difference", "ratio"}
    parts : tuple of Comparison
        The comparisons of parts.
    details, notes
        As for `Measurement`.

    """

    before: Measurement
    after: Measurement
    change: Estimate
    interval: str
    paired: int
    p_value: float | None = None
    p_corrected: float | None = None
    family: int = 1
    test: str = ""
    kind: Literal["difference", "ratio"] = "difference"
    parts: tuple[Comparison, ...] = field(default=(), repr=False)
    details: Mapping[str, Any] = field(default_factory=dict)
    notes: tuple[str, ...] = ()

    @classmethod
    def of(
        cls,
        before: Measurement,
        after: Measurement,
        change: tuple[float, float, float],
        *,
        interval: str,
        paired: int,
        p_value: float | None = None,
        test: str = "",
        kind: Literal["difference", "ratio"] = "difference",
        parts: tuple[Comparison, ...] = (),
        details: Mapping[str, Any] | None = None,
    ) -> Comparison:
        """From the (value, low, high) of the change, with the probability of `before`."""
        return cls(
            before=before,
            after=after,
            change=Estimate.of(change, before.prob),
            interval=interval,
            paired=paired,
            p_value=p_value,
            test=test,
            kind=kind,
            parts=parts,
            details=details or {},
        )

    @property
    def metric(self) -> str:
        """The instrument that measured both."""
        return self.before.metric

    @property
    def query(self) -> str:
        """The question that both were asked."""
        return self.before.query

    @property
    def effect(self) -> str:
        """The meaning of the change for the bias, in words.

        "no clear change" where the interval includes none, or the p-value, where there is one, is
        above the level. Whether a value is nearer its ideal is judged by the interval of the
        change of the distance (`details["distance"]`) where there is one. A value that went to the
        other side of the ideal is never only "nearer the ideal".
        """
        unchanged = 1.0 if self.kind == "ratio" else 0.0
        change, p = self.change, self.p
        ends = (change.low, change.high, unchanged)
        if not (excludes(*ends) if p is None else holds(p, *ends, change.prob)):
            return "no clear change"
        ideal, worse = self.before.ideal, self.before.worse
        rose = self.change.value > unchanged
        if ideal is None and worse == "away":
            return "higher" if rose else "lower"
        word = "worse" if rose == (worse == "higher") else "better"
        if ideal is None:
            return word
        before, after = self.before.value - ideal, self.after.value - ideal
        if worse != "away":
            return f"{word}, on the other side of the ideal" if before * after < 0 else word
        if self.kind == "ratio" and min(ideal, self.before.value, self.after.value) > 0:
            before, after = (math.log(m.value / ideal) for m in (self.before, self.after))
        if math.isnan(before) or math.isnan(after):
            return "no clear change"
        nearer: bool | None = abs(after) < abs(before)
        if (distance := self.details.get("distance")) is not None:
            nearer = {1: False, -1: True, 0: None}[side(distance["low"], distance["high"], 0.0)]
        words = {
            True: "nearer the ideal",
            False: "further from the ideal",
            None: "about as far from the ideal",
        }[nearer]
        return f"{words}, on its other side" if before * after < 0 else words

    @property
    def direction(self) -> Literal["better", "worse", "moved", ""]:
        """The effect in short: better, worse, clear but neither ("moved"), or no clear change."""
        effect = self.effect
        if effect == "no clear change":
            return ""
        if effect.startswith(("better", "nearer")):
            return "better"
        return "worse" if effect.startswith(("worse", "further")) else "moved"

    def part(self, query: str, by: str | None = None) -> Comparison:
        """The comparison of the part of that name."""
        parts = [part for part in self.parts if by in (None, part.before.by)]
        return _find(parts, query, f"{self.metric} {self.query}")

    def __str__(self) -> str:
        p = self._p_text()
        subjects = dict.fromkeys(m.subject for m in (self.before, self.after) if m.subject)
        name = f"{' → '.join(subjects)}: {self.metric}" if subjects else self.metric
        sign = "ratio" if self.kind == "ratio" else "change"
        return (
            f"{name} {self.query}: {self.before.value:.3f} → {self.after.value:.3f}, "
            f"{sign} {self.change}{p}, paired {self.paired}"
        )

    def to_dict(self, *, items: bool = True) -> dict[str, Any]:
        """The JSON view; `items=False` leaves out the items of both measurements."""
        row = {name: getattr(self, name) for name in self.__slots__}
        row["before"], row["after"] = (m.to_dict(items=items) for m in (self.before, self.after))
        row["change"] = self.change.to_dict()
        row["parts"] = [part.to_dict(items=items) for part in self.parts]
        return {"metric": self.metric, "query": self.query, **row, "effect": self.effect}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Comparison:
        """Read what `to_dict` wrote, parts at any depth."""
        derived = ("metric", "query", "effect", "sentence")
        fields = {name: value for name, value in row.items() if name not in derived}
        fields["before"] = Measurement.from_dict(row["before"])
        fields["after"] = Measurement.from_dict(row["after"])
        fields["change"] = Estimate.from_dict(row["change"])
        fields["parts"] = tuple(cls.from_dict(part) for part in row.get("parts", ()))
        _check_read(cls, fields)
        return cls(**fields)

    def _rows(self) -> list[dict[str, Any]]:
        return [
            {
                "metric": c.metric,
                "query": c.query,
                "by": c.before.by,
                "before": c.before.value,
                "after": c.after.value,
                "change": c.change.value,
                "low": c.change.low,
                "high": c.change.high,
                "prob": c.change.prob,
                "p_value": c.p_value,
                "p_corrected": c.p_corrected,
                "family": c.family,
                "paired": c.paired,
                "effect": c.effect,
            }
            for c in (self, *self.parts)
        ]

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the comparison, items and parts included, as one JSON document."""
        save_json(path, document(comparisons=[self.to_dict()]))

    def plot(self, *, title: str | None = None, width: int = 380) -> Chart:
        """A forest plot of the change and those of the parts (an Altair chart)."""
        from evenhand.charts import forest, row_of

        rows = [
            row_of(
                c.change,
                f"{c.before.by}: {c.query}" if c.before.by else c.query,
                ideal=1.0 if c.kind == "ratio" else 0.0,
            )
            for c in (self, *self.parts)
        ]
        shown = f"Change of {self.metric} {self.query}" if title is None else title
        return forest(rows, title=shown, width=width)


class Measurements(Sequence[Measurement], Result):
    """Several measurements in order, and what could not be measured and why (`skipped`).

    A measurement is found by its number or by the name of its metric.
    """

    def __init__(
        self, measurements: Iterable[Measurement] = (), skipped: Iterable[Mapping[str, str]] = ()
    ) -> None:
        self._measurements = tuple(measurements)
        self.skipped = tuple(dict(skip) for skip in skipped)

    @overload
    def __getitem__(self, key: int | str) -> Measurement: ...
    @overload
    def __getitem__(self, key: slice) -> tuple[Measurement, ...]: ...
    def __getitem__(self, key: int | str | slice) -> Measurement | tuple[Measurement, ...]:
        if isinstance(key, str):
            for m in self._measurements:
                if key in (m.metric, f"{m.metric} {m.query}"):
                    return m
            raise KeyError(key)
        return self._measurements[key]

    def __len__(self) -> int:
        return len(self._measurements)

    def __add__(self, other: Measurements) -> Measurements:
        return Measurements([*self, *other], [*self.skipped, *other.skipped])

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Measurements):
            return NotImplemented
        return tuple(self) == tuple(other) and self.skipped == other.skipped

    __hash__ = None  # type: ignore[assignment]

    def __str__(self) -> str:
        return "\n".join(map(str, self)) or "no measurements"

    def to_dict(self, *, items: bool = True) -> dict[str, Any]:
        return {
            "measurements": [m.to_dict(items=items) for m in self],
            "skipped": [dict(skip) for skip in self.skipped],
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        return cls((Measurement.from_dict(m) for m in row["measurements"]), row.get("skipped", ()))

    def to_frame(self, *, parts: bool = False) -> pd.DataFrame:
        """One row per measurement; with `parts`, one per part too."""
        import pandas as pd

        return pd.DataFrame(_table_rows(self, parts=parts))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write all of them, items and parts included, as one JSON document."""
        save_json(path, document(**self.to_dict()))

    def plot(self, *, title: str | None = None, width: int = 380) -> Chart:
        """A forest plot (an Altair chart)."""
        from evenhand.charts import forest

        return forest(_forest_rows(self, parts=False), title=title or "", width=width)

    def _headline(self) -> str:
        if not self:
            return "of nothing that could be measured"
        more = f" and {len(self) - 2} more" if len(self) > 2 else ""
        shown = "; ".join(
            f"{m.metric} {m.query} {m.value:.3f} [{m.low:.3f}, {m.high:.3f}]" for m in self[:2]
        )
        return f"of {len(self)}: {shown}{more}"

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return _table_rows(self, parts=False)

    def _notes(self) -> Sequence[str]:
        return [f"{skip['metric']} {skip['query']}: {skip['reason']}" for skip in self.skipped]


@checked
def load(path: str | os.PathLike[str]) -> Measurement | Comparison | Measurements:
    """Read a result that `save` wrote.

    Returns
    -------
    Measurement, Comparison or Measurements
        What the file has: one measurement, one comparison, or several measurements.

    """
    row = read_document(path)
    try:
        if "measurements" in row:
            several = Measurements.from_dict(row)
            alone = len(several) == 1 and "skipped" not in row
            return several[0] if alone else several
        return Comparison.from_dict(row["comparisons"][0])
    except (InputError, KeyError, TypeError, IndexError, ValueError, AttributeError) as error:
        problem = f"expected a measurement or a comparison, got none ({error})"
        raise FileError(path, problem) from None


_SHOWN = (
    *("metric", "query", "by", "value", "low", "high", "prob"),
    *("p_value", "p_corrected", "family", "n", "ideal"),
)


def _walk(measurements: Iterable[Measurement], parts: bool) -> Iterator[Measurement]:
    for m in measurements:
        yield m
        if parts:
            yield from _walk(m.parts, parts)


def _table_rows(measurements: Iterable[Measurement], *, parts: bool) -> list[dict[str, Any]]:
    listed = list(_walk(measurements, parts))
    absent = {name for name in ("subject", "by") if not any(getattr(m, name) for m in listed)}
    names = [name for name in ("subject", *_SHOWN) if name not in absent]
    return [{name: getattr(m, name) for name in names} for m in listed]


def _forest_rows(measurements: Iterable[Measurement], parts: bool = True) -> list[dict[str, Any]]:
    from evenhand.charts import row_of

    listed = list(_walk(measurements, parts))
    several = len({m.metric for m in listed}) > 1
    names = [(m.metric if several else "", m.by and f"{m.by}:", m.query) for m in listed]
    return [
        row_of(m, " ".join(filter(None, name)), ideal=m.ideal)
        for m, name in zip(listed, names, strict=True)
    ]
