"""What a record is and where its document is: a line, a JSON field, a CSV field.

A layout knows how to cut a stream of bytes into complete records, how to read the documents of a
piece of it, and how to change one document while every other byte of its record stays.
"""

from __future__ import annotations

import codecs
import json
import re
from bisect import bisect_left
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from dataclasses import field as dataclass_field
from functools import cache
from pathlib import Path
from typing import ClassVar, NamedTuple, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
from evenhand.files import decode
from evenhand.text.block import Block
from evenhand.text.corpus.compression import SURROGATE, codec_of
from evenhand.text.edits import Edit, apply


class Cut(NamedTuple):
    """The complete bytes, records and lines of a piece of a file."""

    end: int
    records: int
    lines: int


class Location(NamedTuple):
    """The position of a piece of a file: its first document's number, file and line."""

    first: int
    source: str
    line: int


@dataclass(frozen=True, slots=True)
class Records:
    """A piece of a file: record i is text[bounds[i]:bounds[i + 1]], its document is in the block.

    A blank line between records is a record whose document is empty; `documents` leaves them out.
    """

    text: str
    bounds: NDArray[np.int64]
    block: Block
    documents: int


class _ByLine:
    """A layout in which every line is a record, and which is the same for every file."""

    marks: ClassVar[tuple[str, ...]] = ("\n",)
    """The characters of which one closes a record, if it is not the last one."""

    def bind(self, source: str, head: bytes, *, final: bool) -> tuple[Self, int, list[str]]:
        """The layout of a file, the length of its header and the columns named there."""
        return self, 0, []

    def cut(self, data: bytes, *, final: bool) -> Cut:
        """The extent of the complete records; all of the data, if possible, where it is final."""
        return cut_lines(data, final=final)


def count_breaks(data: bytes) -> int:
    """The number of line breaks, however they are written."""
    return data.count(b"\n") + data.count(b"\r") - data.count(b"\r\n")


def cut_lines(data: bytes, *, final: bool) -> Cut:
    """The complete lines of the data."""
    end = len(data) if final else data.rfind(b"\n") + 1
    lines = data.count(b"\n", 0, end)
    if end and data[end - 1] != 0x0A:
        lines += 1
    return Cut(end, lines, lines)


@dataclass(frozen=True, slots=True)
class Lines(_ByLine):
    """Every line is a document."""

    def parse(self, text: str, location: Location) -> Records:
        block = Block.of_lines(
            text, first=location.first, source=location.source, line=location.line
        )
        return Records(text, np.append(block.starts, len(text)), block, len(block))

    def splice(self, record: str, edits: Sequence[Edit]) -> str:
        """The record with the edits made in its document; nothing else of it changes."""
        changed = apply(record, edits)
        if changed.count("\n") != record.count("\n"):
            raise InputError("an edit may not add or remove a line where a line is a document")
        return changed

    def change_cell(self, record: str, change: Callable[[str], str]) -> str:
        """The record with the text of its second column, `flip`, changed."""
        raise InputError("flip: expected JSONL or CSV, which have fields, got lines")

    def cells(self, record: str) -> tuple[str, str]:
        """The texts of the columns `label` and `flip` of a record."""
        raise InputError("label: expected JSONL or CSV, which have fields, got lines")


@dataclass(frozen=True, slots=True)
class Jsonl(_ByLine):
    """Every line is a JSON object, the document is the text of one of its fields.

    `flip` is a field with the person's gender, which rewriting may change too, `label` one with the
    class.
    """

    field: str
    flip: str | None = dataclass_field(default=None, repr=False)
    label: str | None = dataclass_field(default=None, repr=False)

    def parse(self, text: str, location: Location) -> Records:
        lines = text.split("\n")
        if not lines[-1]:
            lines.pop()
        documents: list[str] = []
        blank = 0
        for number, line in enumerate(lines, location.line):
            body = line.removeprefix("\ufeff") if number == 1 else line
            if not body.strip(" \t\r"):
                blank += 1
                documents.append("")
            else:
                documents.append(self._document(body, location.source, number))
        bounds = np.zeros(len(lines) + 1, dtype=np.int64)
        np.cumsum([len(line) + 1 for line in lines], out=bounds[1:])
        bounds[-1] = len(text)
        numbers = range(location.line, location.line + len(lines))
        block = Block.of_documents(
            documents, first=location.first, source=location.source, lines=numbers
        )
        return Records(text, bounds, block, len(documents) - blank)

    def splice(self, record: str, edits: Sequence[Edit]) -> str:
        begin, end = locate(record, self.field)
        inner = record[begin + 1 : end - 1]
        changed = splice_escaped(
            inner, ESCAPE, json.loads(f'"{inner}"'), edits, _writer(escaped=record.isascii())
        )
        return f"{record[: begin + 1]}{changed}{record[end - 1 :]}"

    def change_cell(self, record: str, change: Callable[[str], str]) -> str:
        begin, end = locate(record, self.flip or "")
        if not end:
            raise InputError(f"no field '{self.flip}'")
        value = json.loads(record[begin:end] or "null")
        if value is None:
            return record
        changed = change(_text_of(value))
        return record[:begin] + json.dumps(changed, ensure_ascii=record.isascii()) + record[end:]

    def cells(self, record: str) -> tuple[str, str]:
        row = json.loads(record.removeprefix("\ufeff"))
        return _text_of(row.get(self.label)), _text_of(row.get(self.flip))

    def _document(self, line: str, source: str, number: int) -> str:
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            problem = error.msg if isinstance(error, json.JSONDecodeError) else str(error)
            raise FileError(source, f"expected a JSON object: {problem}", line=number) from error
        if not isinstance(row, dict):
            raise FileError(source, f"expected a JSON object, got {_kind(row)}", line=number)
        if self.field not in row:
            known = ", ".join(sorted(row)) or "none"
            raise FileError(source, f"no field '{self.field}' (fields: {known})", line=number)
        value = row[self.field]
        if not isinstance(value, str):
            problem = f"field '{self.field}': expected a string, got {_kind(value)}"
            raise FileError(source, problem, line=number)
        return value


def _text_of(value: object) -> str:
    """The value of a field as text, empty for null."""
    return value if isinstance(value, str) else "" if value is None else json.dumps(value)


ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u[0-9a-fA-F]{4}|.)", re.DOTALL
)
SPACE = re.compile(r"[ \t\r\n]*")
DECODER = json.JSONDecoder()


def locate(line: str, field: str) -> tuple[int, int]:
    """The span of the string of a top-level field in a line of JSON, its quotes included.

    Of several fields of that name the last one counts, as it does when the line is read.

    >>> line = '{"id": 7, "text": "She sings."}'
    >>> line[slice(*locate(line, "text"))]
    '"She sings."'
    """
    span = (0, 0)
    position = line.index("{") + 1
    while True:
        position = _skip(line, position)
        if line[position] != '"':
            return span
        key, position = DECODER.raw_decode(line, position)
        begin = _skip(line, _skip(line, position) + 1)
        _, end = DECODER.raw_decode(line, begin)
        if key == field:
            span = begin, end
        position = _skip(line, end)
        if line[position] != ",":
            return span
        position += 1


def splice_escaped(
    raw: str,
    escape: re.Pattern[str],
    value: str,
    edits: Sequence[Edit],
    write: Callable[[str], str],
) -> str:
    """Edits of a value made in the text it is written as, in which an escape is one character."""
    positions: list[int] = []
    extra = [0]
    for match in escape.finditer(raw):
        positions.append(match.start() - extra[-1])
        extra.append(extra[-1] + len(match.group()) - 1)
    moved: list[Edit] = []
    for edit in edits:
        stop = edit.offset + len(edit.before)
        if value[edit.offset : stop] != edit.before:
            actual = value[edit.offset : stop]
            raise InputError(f"edit at {edit.offset}: expected {edit.before!r}, found {actual!r}")
        begin = edit.offset + extra[bisect_left(positions, edit.offset)]
        end = stop + extra[bisect_left(positions, stop)]
        moved.append(Edit(begin, edit.rule, raw[begin:end], write(edit.after)))
    return apply(raw, moved)


def _writer(*, escaped: bool) -> Callable[[str], str]:
    """How a replacement is written inside a JSON string: escaped where its line is all ASCII."""

    def write(text: str) -> str:
        ascii_only = escaped or SURROGATE.search(text) is not None
        return json.dumps(text, ensure_ascii=ascii_only)[1:-1]

    return write


def _skip(line: str, position: int) -> int:
    match = SPACE.match(line, position)
    return match.end() if match else position


def _kind(value: object) -> str:
    names = {dict: "an object", list: "a list", str: "a string", bool: "true or false"}
    return "null" if value is None else names.get(type(value), "a number")


DOUBLED = re.compile('""')
BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Csv:
    """A table with a header; the document is the field in the column of that name.

    The delimiter is a tab in files named .tsv (compressed or not) and a comma in others, unless
    it is given. `flip` is a column with the person's gender, which rewriting may change too,
    `label` one with the class.
    """

    field: str
    delimiter: str | None = None
    flip: str | None = dataclass_field(default=None, repr=False)
    label: str | None = dataclass_field(default=None, repr=False)

    def __post_init__(self) -> None:
        if self.delimiter is not None and not re.fullmatch(
            r'[\x00-\x7f](?<![\r\n"])', self.delimiter
        ):
            raise InputError(f"delimiter: expected one ASCII character, got {self.delimiter!r}")

    def bind(
        self, source: str, head: bytes, *, final: bool
    ) -> tuple[CsvLayout, int, list[str]] | None:
        """As for lines; None where more of the file is needed."""
        delimiter = self.delimiter or ("\t" if ending_of(source) == ".tsv" else ",")
        begin = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
        match = _record_bytes(delimiter, final).match(head, begin)
        if match is None:
            if final:
                raise FileError(source, "a quoted field of the header is never closed", line=1)
            return None
        columns = _columns(decode(match.group(), source, line=1), delimiter)
        if columns == [""]:
            raise FileError(source, f"expected a header with a column '{self.field}'", line=1)
        for name in (self.field, self.flip, self.label):
            if name is not None and columns.count(name) != 1:
                count = "no" if name not in columns else "more than one"
                known = ", ".join(columns)
                raise FileError(source, f"{count} column '{name}' (columns: {known})", line=1)
        flip, label = (columns.index(name) if name else None for name in (self.flip, self.label))
        layout = CsvLayout(columns.index(self.field), delimiter, flip, label)
        return layout, match.end(), columns


@dataclass(frozen=True, slots=True)
class CsvLayout:
    """A CSV file whose column of documents and whose delimiter are known."""

    column: int
    delimiter: str
    flip: int | None = None
    label: int | None = None
    marks: ClassVar[tuple[str, ...]] = ("\n", "\r")

    def cut(self, data: bytes, *, final: bool) -> Cut:
        if b'"' not in data and data.count(b"\r") == data.count(b"\r\n"):
            return cut_lines(data, final=final)
        match = _record_bytes(self.delimiter, final).match
        end = records = 0
        while end < len(data) and (record := match(data, end)):
            end = record.end()
            records += 1
        return Cut(end, records, count_breaks(data[:end]))

    def parse(self, text: str, location: Location) -> Records:
        match = _field(self.delimiter, self.column).match
        bounds, documents, lines = [0], [], []
        blank = end = 0
        line = location.line
        returns = "\r" in text
        while (begin := end) < len(text):
            record = match(text, begin)
            if record is None:
                raise FileError(location.source, "a quoted field is never closed", line=line)
            field = record.group(1)
            end = record.end()
            bounds.append(end)
            lines.append(line)
            if text[begin] in "\r\n":
                blank += 1
                field = ""
            elif field is None:
                problem = f"too few fields: expected at least {self.column + 1}"
                raise FileError(location.source, problem, line=line)
            documents.append(_value(field))
            line += len(BREAK.findall(record.group())) if returns else text.count("\n", begin, end)
        block = Block.of_documents(
            documents, first=location.first, source=location.source, lines=lines
        )
        return Records(text, np.array(bounds, dtype=np.int64), block, len(documents) - blank)

    def _located(self, record: str, column: int | None) -> tuple[str, int, int]:
        """A field of a record as it is written, and where it stands."""
        number = column or 0
        match = _field(self.delimiter, number).match(record)
        if match is None or match.group(1) is None:
            raise InputError(f"too few fields: expected at least {number + 1}")
        return match.group(1), match.start(1), match.end(1)

    def splice(self, record: str, edits: Sequence[Edit]) -> str:
        written, begin, end = self._located(record, self.column)
        return record[:begin] + self._splice_field(written, edits) + record[end:]

    def change_cell(self, record: str, change: Callable[[str], str]) -> str:
        written, begin, end = self._located(record, self.flip)
        value = _value(written)
        changed = change(value)
        if changed == value:
            return record
        quoted = written.startswith('"')
        return record[:begin] + (f'"{_doubled(changed)}"' if quoted else changed) + record[end:]

    def cells(self, record: str) -> tuple[str, str]:
        label, gender = (self._located(record, each)[0] for each in (self.label, self.flip))
        return _value(label), _value(gender)

    def _splice_field(self, raw: str, edits: Sequence[Edit]) -> str:
        if raw.startswith('"') and raw.endswith('"') and '"' not in raw[1:-1].replace('""', ""):
            inner = raw[1:-1]
            return f'"{splice_escaped(inner, DOUBLED, _value(raw), edits, _doubled)}"'
        changed = apply(_value(raw), edits)
        plain = not (raw.startswith('"') or changed.startswith('"'))
        if plain and not any(mark in changed for mark in (self.delimiter, "\r", "\n")):
            return changed
        return f'"{_doubled(changed)}"'


Form: TypeAlias = Lines | Jsonl | Csv
"""The format as requested; it becomes a layout when a file is opened."""
RecordLayout: TypeAlias = Lines | Jsonl | CsvLayout
"""How the records of one file are separated, read and changed."""


def _doubled(text: str) -> str:
    return text.replace('"', '""')


def _value(raw: str) -> str:
    """The value of a field without quotes; text after the closing quote counts, as in csv."""
    if not raw.startswith('"'):
        return raw
    inner = QUOTED.match(raw)
    end = inner.end() if inner else len(raw)
    return raw[1 : end - 1].replace('""', '"') + raw[end:]


QUOTED = re.compile(r'"[^"]*+(?:""[^"]*+)*+"')


def _pattern(delimiter: str) -> tuple[str, str]:
    """One field, and one field after a delimiter, as regular expressions that never go back."""
    mark = re.escape(delimiter)
    field = rf'(?>{QUOTED.pattern}[^{mark}\r\n]*+|[^"{mark}\r\n][^{mark}\r\n]*+|)'
    return field, f"{mark}{field}"


@cache
def _record_bytes(delimiter: str, final: bool) -> re.Pattern[bytes]:
    """A complete record; before the end of the file a final return may await its newline."""
    field, more = _pattern(delimiter)
    close = r"(?:\r\n|\n|\r|\Z)" if final else r"(?:\r\n|\n|\r(?=[^\n]))"
    return re.compile(f"{field}(?:{more})*+{close}".encode(), re.DOTALL)


@cache
def _field(delimiter: str, column: int) -> re.Pattern[str]:
    """A complete record, its field of that column as the group (none where there are too few)."""
    field, more = _pattern(delimiter)
    mark = re.escape(delimiter)
    before = rf"(?:{field}{mark}){{{column}}}"
    return re.compile(rf"(?:{before}({field})(?:{more})*+|{field}(?:{more})*+)(?:\r\n|\n|\r|\Z)")


def _columns(header: str, delimiter: str) -> list[str]:
    pattern, _ = _pattern(delimiter)
    field = re.compile(pattern)
    names, position = [], 0
    while match := field.match(header, position):
        names.append(_value(match.group()))
        position = match.end() + 1
        if header[match.end() : position] != delimiter:
            break
    return names


FORMATS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv"}
"""The formats of files with fields, by ending."""


def ending_of(source: str) -> str:
    """The ending of a file's name in lower case, its compression ignored.

    >>> ending_of("Bios.CSV.gz"), ending_of("notes.txt")
    ('.csv', '.txt')
    """
    path = Path(source.lower())
    return (path.with_suffix("") if codec_of(path) else path).suffix


def make_form(name: str | None, field: str | None) -> Form:
    """How documents are cut out of a format: lines, or the field of jsonl, csv or tsv."""
    if name in (None, "lines") or field is None:
        return Lines()
    return Jsonl(field) if name == "jsonl" else Csv(field, delimiter="\t" if name == "tsv" else ",")
