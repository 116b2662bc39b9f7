"""CSV and TSV as RFC 4180 has them: a header, fields in quotes that may hold newlines."""

from __future__ import annotations

import codecs
import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import ClassVar

import numpy as np

from evenhand.errors import FileError, InputError
from evenhand.text.block import Block
from evenhand.text.corpus.opening import codec_of
from evenhand.text.corpus.records import Cut, Layout, Place, Records, cut_lines, splice_escaped
from evenhand.text.edits import Edit, apply

__all__ = ["Csv", "Table"]

DOUBLED = re.compile('""')
BREAK = re.compile(r"\r\n|\n|\r")


@dataclass(frozen=True, slots=True)
class Csv:
    """A table with a header; the document is the field in the column of that name.

    The delimiter is a tab in files named .tsv (compressed or not) and a comma in others, unless
    it is given.
    """

    field: str
    delimiter: str | None = None

    def __post_init__(self) -> None:
        if self.delimiter is not None and not re.fullmatch(
            r'[\x00-\x7f](?<![\r\n"])', self.delimiter
        ):
            raise InputError(f"delimiter: expected one ASCII character, got {self.delimiter!r}")

    def bind(
        self, source: str, head: bytes, *, final: bool
    ) -> tuple[Layout, int, list[str]] | None:
        delimiter = self.delimiter or _delimiter_of(source)
        begin = len(codecs.BOM_UTF8) if head.startswith(codecs.BOM_UTF8) else 0
        match = _record_bytes(delimiter, final).match(head, begin)
        if match is None:
            if final:
                raise FileError(source, "a quoted field of the header is never closed", line=1)
            return None
        columns = _columns(match.group().decode("utf-8", "surrogateescape"), delimiter)
        if columns == [""]:
            raise FileError(source, f"expected a header with a column '{self.field}'", line=1)
        if columns.count(self.field) != 1:
            count = "no" if self.field not in columns else "more than one"
            known = ", ".join(columns)
            raise FileError(source, f"{count} column '{self.field}' (columns: {known})", line=1)
        return Table(columns.index(self.field), delimiter), match.end(), columns


@dataclass(frozen=True, slots=True)
class Table:
    """A CSV file whose column of documents and whose delimiter are known."""

    column: int
    delimiter: str
    marks: ClassVar[tuple[str, ...]] = ("\n", "\r")

    def cut(self, data: bytes, *, final: bool) -> Cut:
        if b'"' not in data and data.count(b"\r") == data.count(b"\r\n"):
            return cut_lines(data, final=final)
        match = _record_bytes(self.delimiter, final).match
        end = records = 0
        while end < len(data) and (found := match(data, end)):
            end = found.end()
            records += 1
        whole = data[:end]
        lines = whole.count(b"\n") + whole.count(b"\r") - whole.count(b"\r\n")
        return Cut(end, records, lines)

    def parse(self, text: str, place: Place) -> Records:
        match = _field(self.delimiter, self.column).match
        bounds, documents, lines = [0], [], []
        blank = end = 0
        line = place.line
        returns = "\r" in text
        while (begin := end) < len(text):
            found = match(text, begin)
            if found is None:
                raise FileError(place.source, "a quoted field is never closed", line=line)
            field = found.group(1)
            end = found.end()
            bounds.append(end)
            lines.append(line)
            if text[begin] in "\r\n":
                blank += 1
                field = ""
            elif field is None:
                problem = f"too few fields: expected at least {self.column + 1}"
                raise FileError(place.source, problem, line=line)
            documents.append(_value(field))
            line += len(BREAK.findall(found.group())) if returns else text.count("\n", begin, end)
        block = Block.of_documents(documents, first=place.first, source=place.source, lines=lines)
        return Records(text, np.array(bounds, dtype=np.int64), block, len(documents) - blank)

    def splice(self, record: str, edits: Sequence[Edit]) -> str:
        found = _field(self.delimiter, self.column).match(record)
        if found is None or found.group(1) is None:
            raise InputError(f"too few fields: expected at least {self.column + 1}")
        begin, end = found.span(1)
        return record[:begin] + self._splice_field(found.group(1), edits) + record[end:]

    def _splice_field(self, raw: str, edits: Sequence[Edit]) -> str:
        if raw.startswith('"') and raw.endswith('"') and '"' not in raw[1:-1].replace('""', ""):
            inner = raw[1:-1]
            return f'"{splice_escaped(inner, DOUBLED, _value(raw), edits, _doubled)}"'
        changed = apply(_value(raw), edits)
        plain = not (raw.startswith('"') or changed.startswith('"'))
        if plain and not any(mark in changed for mark in (self.delimiter, "\r", "\n")):
            return changed
        return f'"{_doubled(changed)}"'


def _doubled(text: str) -> str:
    return text.replace('"', '""')


def _value(raw: str) -> str:
    """What a field says: quotes off; text behind the closing quote belongs to it, as csv has it."""
    if not raw.startswith('"'):
        return raw
    inner = QUOTED.match(raw)
    end = inner.end() if inner else len(raw)
    return raw[1 : end - 1].replace('""', '"') + raw[end:]


QUOTED = re.compile(r'"[^"]*+(?:""[^"]*+)*+"')


def _pattern(delimiter: str) -> tuple[str, str]:
    """One field, and one field behind a delimiter, as regular expressions that never go back."""
    mark = re.escape(delimiter)
    one = rf'(?>{QUOTED.pattern}[^{mark}\r\n]*+|[^"{mark}\r\n][^{mark}\r\n]*+|)'
    return one, f"{mark}{one}"


@cache
def _record_bytes(delimiter: str, final: bool) -> re.Pattern[bytes]:
    """A whole record; before the end of the file a return that comes last may await its newline."""
    one, more = _pattern(delimiter)
    close = r"(?:\r\n|\n|\r|\Z)" if final else r"(?:\r\n|\n|\r(?=[^\n]))"
    return re.compile(f"{one}(?:{more})*+{close}".encode(), re.DOTALL)


@cache
def _field(delimiter: str, column: int) -> re.Pattern[str]:
    """A whole record, its field of that column as the group (none where there are too few)."""
    one, more = _pattern(delimiter)
    mark = re.escape(delimiter)
    before = rf"(?:{one}{mark}){{{column}}}"
    return re.compile(rf"(?:{before}({one})(?:{more})*+|{one}(?:{more})*+)(?:\r\n|\n|\r|\Z)")


def _columns(header: str, delimiter: str) -> list[str]:
    one, _ = _pattern(delimiter)
    field = re.compile(one)
    names, position = [], 0
    while found := field.match(header, position):
        names.append(_value(found.group()))
        position = found.end() + 1
        if header[found.end() : position] != delimiter:
            break
    return names


def _delimiter_of(source: str) -> str:
    path = Path(source)
    name = path.with_suffix("") if codec_of(path) else path
    return "\t" if name.suffix.lower() == ".tsv" else ","
