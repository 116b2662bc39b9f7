"""Tables read row by row: CSV, TSV, JSONL (plain, gzip, bzip2, zstd), Parquet, DataFrames.

The format of a file is read from its content, not from its name. Memory does not grow with the
file. A file that is broken anywhere is an error that names the line, so that nothing is lost
silently.
"""

from __future__ import annotations

import csv
import io
import json
import os
from collections.abc import Callable, Collection, Generator, Iterable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass
from itertools import chain, islice
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, TypeAlias, cast, runtime_checkable

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.files import current_reading, parse_json_line
from evenhand.text.corpus.compression import SURROGATE, open_content, source_name, text_lines

if TYPE_CHECKING:
    import pandas as pd

Source: TypeAlias = "str | os.PathLike[str] | pd.DataFrame"
"""A path ("-" is standard input) or a DataFrame of pandas or polars."""

Cell = str | None
Row = tuple[Cell, ...]
INTERSECTION = " × "


def with_intersection(groups: Mapping[str, Row]) -> Mapping[str, Row]:
    """Columns of groups and, where there are several, that of their intersection.

    >>> with_intersection({"race": ("A", "B"), "gender": ("F", None)})["race × gender"]
    ('A × F', None)
    """
    if len(groups) < 2:
        return groups
    rows = zip(*groups.values(), strict=True)
    joined = tuple(None if None in row else INTERSECTION.join(map(str, row)) for row in rows)
    return {**groups, INTERSECTION.join(groups): joined}


@dataclass(frozen=True, slots=True)
class Corpus:
    """A table of texts as the subject of measurements, such as `odds`.

    Parameters
    ----------
    source : path, "-" or DataFrame
    name : str, optional
        Its name in results; by default the file's.

    """

    source: Source
    name: str = ""
    subject_kind: ClassVar[str] = "corpus"

    def __post_init__(self) -> None:
        if not self.name:
            object.__setattr__(self, "name", name_of(self.source))


@runtime_checkable
class Frame(Protocol):
    """A DataFrame, of pandas or polars."""

    columns: Iterable[object]


def open_subject(source: object) -> Corpus | None:
    """A corpus where the source is a table of texts, by its ending or as a DataFrame; else None."""
    if isinstance(source, str | os.PathLike):
        return Corpus(source) if Path(source).suffix.lower() in ENDINGS else None
    return Corpus(cast("Source", source)) if isinstance(source, Frame) else None


ENDINGS = (".csv", ".tsv", ".jsonl", ".parquet", ".gz", ".zst", ".bz2")
_AHEAD = 1000
"""JSON objects, of a few MB, read ahead to determine the columns."""
_AHEAD_SIZE = 1 << 24


@dataclass(frozen=True, slots=True)
class InputTable:
    """The columns of a table, and its rows with the requested columns as text.

    Empty cells, null and not-a-number are None; blanks around a value are dropped.
    """

    name: str
    columns: tuple[str, ...]
    read: Callable[[Sequence[str]], Iterator[tuple[int, Sequence[object]]]]
    """Line numbers and values of the requested columns."""

    def column(self, given: str | None, usual: Sequence[str] = ()) -> str | None:
        """The column that is named, else the first of the usual names, whatever its case.

        None where neither is there; a name that no column has is an error.
        """
        if given is not None and given not in self.columns:
            raise FileError(self.name, str(UnknownNameError("column", given, self.columns)))
        lower = {name.lower(): name for name in self.columns}
        return given or next((lower[name] for name in usual if name in lower), None)

    def rows(self, *names: str) -> Iterator[Row]:
        """The rows, only these columns of them; a table can be gone through once."""
        for name in names:
            if name not in self.columns:
                raise FileError(self.name, str(UnknownNameError("column", name, self.columns)))
            if self.columns.count(name) > 1:
                raise FileError(self.name, f"column '{name}' is there more than once")
        return (_row(self.name, names, values, line) for line, values in self.read(names))


@contextmanager
def open_table(source: Source, *, held: bool = True) -> Iterator[InputTable]:
    """Open a file, standard input ("-") or a DataFrame as a table.

    With `held`, the rows are held in memory, so that their number and size are limited; without,
    only those of a single row are. `evenhand.files.reading` has the limits and the encoding.

    >>> import pandas as pd
    >>> with open_table(pd.DataFrame({"job": ["nurse", None], "n": [1.0, 2.0]})) as table:
    ...     list(table.rows("n", "job"))
    [('1', 'nurse'), ('2', None)]
    """
    if not isinstance(source, str | os.PathLike):
        yield _frame(source)
        return
    path = os.fspath(source)
    name = source_name(path)
    with closing(open_content(path)) as file:
        if file.peek(4)[:4] != b"PAR1":
            yield _text(name, file, held)
            return
    if not Path(path).is_file():
        raise FileError(name, "Parquet cannot be read from a pipe: expected a file")
    with Path(path).open("rb") as raw:
        yield _parquet(name, raw, held)


Kind: TypeAlias = "type[str] | type[int] | type[dict[str, object]] | Sequence[str | int]"
"""A text that is not blank, a whole number, a JSON object, or one of some values."""


@dataclass(frozen=True, slots=True)
class InputRow:
    """One row of a file with a known schema: its values by column, its file and its line."""

    file: str
    line: int
    values: Mapping[str, Any]

    def __getitem__(self, column: str) -> Any:
        return self.values[column]

    def error(self, problem: str) -> FileError:
        """The error that names the line."""
        return FileError(self.file, problem, line=self.line)

    def left_out(self, reason: str) -> str:
        """The entry of a list of rows that are left out."""
        return f"{Path(self.file).name}, line {self.line} ({reason})"


def read_records(
    source: Source,
    what: str,
    columns: Mapping[str, Kind],
    *,
    blank: Collection[str] = (),
    optional: Collection[str] = (),
) -> Iterator[InputRow]:
    """Read the rows of a file or DataFrame by a schema.

    Parameters
    ----------
    source : path or DataFrame
        As for `open_table`.
    what : str
        What the rows are, for messages.
    columns : Mapping of str to Kind
        The kind of value of each column. Other columns of the file are ignored.
    blank, optional : collection of str
        Columns that may be empty, and columns that may be absent too; the value is then "".

    Examples
    --------
    >>> import pandas as pd
    >>> table = pd.DataFrame({"sentence": ["I ran."], "stereotype": [3]})
    >>> columns = {"sentence": str, "stereotype": range(1, 17)}
    >>> [record.values for record in read_records(table, "sentences", columns)]
    [{'sentence': 'I ran.', 'stereotype': 3}]
    """
    empty = True
    with open_table(source) as table:
        present = [name for name in columns if name in table.columns]
        for name in columns:
            if name not in present and name not in optional:
                known = ", ".join(filter(None, table.columns))
                problem = f"expected a column '{name}' ({what}), got {known}"
                raise FileError(table.name, problem, line=1)
            if table.columns.count(name) > 1:
                raise FileError(table.name, f"expected one column '{name}', got several", line=1)
        for line, cells in table.read(present):
            found = dict(zip(present, cells, strict=True))
            if all(cell is None or cell == "" for cell in cells):
                continue
            record = InputRow(table.name, line, found)
            values = {
                name: _value(record, name, kind, found.get(name), name in optional or name in blank)
                for name, kind in columns.items()
            }
            empty = False
            yield InputRow(table.name, line, values)
    if empty:
        raise FileError(name_of(source), f"expected {what} ({', '.join(columns)}), got none")


def _value(record: InputRow, name: str, kind: Kind, value: object, blank: bool) -> object:
    if kind is dict:
        if not isinstance(value, dict):
            raise record.error(f"'{name}': expected an object, got {value!r:.60}")
        return value
    cell = _cell(record.file, name, value, record.line)
    if cell is None and blank:
        return ""
    if kind is str:
        if cell is None:
            raise record.error(f"'{name}': expected a text, got none")
        return cell
    if kind is int:
        if cell is None or not cell.isdecimal():
            raise record.error(f"'{name}': expected a whole number, got '{cell or ''}'")
        return int(cell)
    allowed = {str(each): each for each in cast("Sequence[str | int]", kind)}
    if cell not in allowed:
        expected = " or ".join(allowed)
        if isinstance(kind, range):
            expected = f"{kind[0]} to {kind[-1]}"
        raise record.error(f"'{name}': expected {expected}, got '{cell or ''}'")
    return allowed[cell]


SAMPLED = 200
WORDS = 4
"""A column is text if half of its cells have at least this many words."""


def text_column(source: Source, advice: str = "Give that column alone") -> str:
    """The only column of a table that looks like text; with none or several, an error with advice.

    >>> import pandas as pd
    >>> text_column(pd.DataFrame({"id": ["1"], "bio": ["She has sung for years."]}))
    'bio'
    """
    with open_table(source) as table:
        rows = list(islice(table.rows(*dict.fromkeys(table.columns)), SAMPLED))
        columns, name = list(dict.fromkeys(table.columns)), table.name
    cells = {column: [row[i] for row in rows if row[i]] for i, column in enumerate(columns)}
    long = [
        column
        for column, texts in cells.items()
        if texts and 2 * sum(len(text.split()) >= WORDS for text in texts if text) >= len(texts)
    ]
    if len(long) == 1:
        return long[0]
    problem = f"which is the text: {', '.join(long)}" if long else "which column is the text"
    raise FileError(
        name,
        f"{problem}? {advice} (columns: {', '.join(columns)})",
    )


def lines_of(source: Source) -> Generator[tuple[int, str], None, None]:
    """The lines of a text file, or the texts of a DataFrame's only column of text, with numbers.

    >>> import pandas as pd
    >>> list(lines_of(pd.DataFrame({"sentence": ["The clerk lost [MASK] keys."]})))
    [(1, 'The clerk lost [MASK] keys.')]
    """
    if isinstance(source, str | os.PathLike):
        name = source_name(os.fspath(source))
        with closing(open_content(os.fspath(source))) as file:
            yield from text_lines(name, file)
        return
    with open_table(source) as table:
        column = table.columns[0] if len(table.columns) == 1 else text_column(source)
        yield from ((number, text or "") for number, (text,) in enumerate(table.rows(column), 1))


def name_of(source: Source) -> str:
    """The name of a source in messages."""
    return source_name(os.fspath(source)) if isinstance(source, str | os.PathLike) else "DataFrame"


def json_objects(path: str | os.PathLike[str]) -> Iterator[tuple[int, dict[str, Any]]]:
    """The objects of a JSONL file, each with its line number."""
    name = source_name(os.fspath(path))
    with closing(open_content(os.fspath(path))) as file:
        yield from _objects(name, text_lines(name, file))


def as_cell(value: object) -> Cell:
    """A value as text, None where missing; whole numbers without a decimal point.

    >>> as_cell(" nurse "), as_cell(1.0), as_cell(float("nan")), as_cell("")
    ('nurse', '1', None, None)
    """
    if isinstance(value, str):
        return value.strip() or None
    if value is None or value != value:
        return None
    if isinstance(value, Integral):
        return str(value)
    if not isinstance(value, Real):
        raise TypeError(f"expected text or a number, got {type(value).__name__}")
    number = float(value)
    return str(int(number)) if number.is_integer() else str(number)


def _text(name: str, file: io.BufferedReader, held: bool) -> InputTable:
    lines = text_lines(name, file, held=held)
    first = next((line for line in lines if line[1].strip()), None)
    if first is None:
        raise FileError(name, "the file is empty: expected a header or a JSON object")
    if first[1].lstrip().startswith("{"):
        return _jsonl(name, chain([first], lines))
    if first[1].lstrip().startswith("["):
        problem = "expected CSV, TSV, Parquet or one JSON object per line, got an array"
        raise FileError(name, problem)
    return _csv(name, first, lines)


def _csv(name: str, first: tuple[int, str], rest: Iterator[tuple[int, str]]) -> InputTable:
    # the limit is global to the csv module: it is only raised
    most = current_reading().max_record
    csv.field_size_limit(max(csv.field_size_limit(), most))
    delimiter = max(",\t;", key=first[1].count)
    size = 0

    def limited() -> Iterator[str]:
        nonlocal size
        for number, line in chain([first], rest):
            size += len(line)
            if size > most:
                raise current_reading().refuse(name, f"a row of over {most:,} characters", number)
            yield line

    text = limited()
    reader = csv.reader(text, delimiter=delimiter, strict=True)
    blank = first[0] - 1
    header = tuple(cell.strip() for cell in _record(name, reader, blank) or ())

    def read(names: Sequence[str]) -> Iterator[tuple[int, Sequence[object]]]:
        nonlocal size
        columns = [header.index(column) for column in names]
        line = reader.line_num + blank + 1
        while (record := _record(name, reader, blank, len(header))) is not None:
            size = 0
            if record:
                yield line, [record[i] for i in columns]
            line = reader.line_num + blank + 1

    return InputTable(name, header, read)


def _record(name: str, reader: Any, blank: int, width: int = 0) -> list[str] | None:
    """The next record of a CSV reader, checked; `blank` lines were skipped before its first."""
    begin = reader.line_num + blank + 1
    try:
        record: list[str] | None = next(reader, None)
    except csv.Error as error:
        raise FileError(name, f"the row that begins here is broken: {error}", line=begin) from None
    if record and width and len(record) != width:
        problem = f"expected {width} fields as in the header, got {len(record)}"
        raise FileError(name, problem, line=begin)
    return record


def _objects(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[tuple[int, dict[str, Any]]]:
    for number, line in lines:
        if not line.strip():
            continue
        value = parse_json_line(line, name, number)
        if not isinstance(value, dict):
            kind = type(value).__name__
            raise FileError(name, f"expected a JSON object, got {kind}", line=number)
        if "\\u" in line and SURROGATE.search(json.dumps(value, ensure_ascii=False)):
            raise FileError(name, "expected text, got half of a surrogate pair", line=number)
        yield number, value


def _jsonl(name: str, lines: Iterator[tuple[int, str]]) -> InputTable:
    ahead: list[tuple[int, dict[str, Any]]] = []
    size = 0

    def sized() -> Iterator[tuple[int, str]]:
        nonlocal size
        for number, line in lines:
            size += len(line)
            yield number, line

    objects = _objects(name, sized())
    for item in islice(objects, _AHEAD):
        ahead.append(item)
        if size > _AHEAD_SIZE:
            break
    columns = dict.fromkeys(key for _, value in ahead for key in value)

    def read(names: Sequence[str]) -> Iterator[tuple[int, Sequence[object]]]:
        for number, value in chain(ahead, objects):
            yield number, [value.get(key) for key in names]

    return InputTable(name, tuple(columns), read)


def _parquet(name: str, raw: io.BufferedReader, held: bool) -> InputTable:
    import pyarrow.parquet as pq

    how = current_reading()

    with _valid_parquet(name):
        file = pq.ParquetFile(raw, buffer_size=1 << 20, pre_buffer=False)

    def read(names: Sequence[str]) -> Iterator[tuple[int, Sequence[object]]]:
        number = total = 0
        with _valid_parquet(name):
            if held and file.metadata.num_rows > how.max_rows:
                raise how.refuse(name, f"{file.metadata.num_rows:,} rows")
            for batch in file.iter_batches(batch_size=4096, columns=list(dict.fromkeys(names))):
                total = batch.nbytes + (total if held else 0)
                if total > how.max_bytes:
                    raise how.refuse(name, f"more than {how.max_bytes:,} bytes in its rows")
                columns = [batch.column(column).to_pylist() for column in names]
                long = batch.nbytes > how.max_record
                for values in zip(*columns, strict=True):
                    number += 1
                    if long and sum(len(v) for v in values if isinstance(v, str)) > how.max_record:
                        what = f"a row of more than {how.max_record:,} characters"
                        raise how.refuse(name, what, number)
                    yield number, values

    return InputTable(name, tuple(file.schema_arrow.names), read)


@contextmanager
def _valid_parquet(name: str) -> Iterator[None]:
    """Errors of pyarrow become errors that name the file."""
    import pyarrow as pa

    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, OSError) and error.errno is not None:
            raise
        raise FileError(name, f"not a valid Parquet file: {error}") from None


def _frame(frame: object) -> InputTable:
    if not isinstance(frame, Frame):
        kind = type(frame).__name__
        raise InputError(f"source: expected a path or a DataFrame, got {kind}")
    data = cast("pd.DataFrame", frame)
    labels = {str(label): label for label in frame.columns}

    def read(names: Sequence[str]) -> Iterator[tuple[int, Sequence[object]]]:
        return enumerate(zip(*(_values(data[labels[name]]) for name in names), strict=True), 1)

    return InputTable("DataFrame", tuple(map(str, frame.columns)), read)


def _values(column: pd.Series[Any]) -> list[object]:
    import pandas as pd

    if not isinstance(column, pd.Series):  # of polars: null is None already
        return column.to_list()
    pairs = zip(column.tolist(), column.isna().tolist(), strict=True)
    return [None if missing else value for value, missing in pairs]


def _row(name: str, names: Sequence[str], values: Sequence[object], number: int) -> Row:
    try:
        return tuple([(v.strip() or None) if isinstance(v, str) else as_cell(v) for v in values])
    except TypeError:
        for column, value in zip(names, values, strict=True):
            _cell(name, column, value, number)
        raise


def _cell(name: str, column: str, value: object, number: int) -> Cell:
    try:
        return as_cell(value)
    except TypeError as error:
        raise FileError(name, f"'{column}': {error}", line=number) from None
