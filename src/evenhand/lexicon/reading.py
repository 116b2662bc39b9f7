"""Reading word-list files (TOML, JSON, CSV): every complaint names the file and the place."""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
import tomllib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from typing import Any

from evenhand.errors import LexiconError

__all__ = [
    "Node",
    "Row",
    "Words",
    "data",
    "distinct",
    "read_csv",
    "read_json",
    "read_toml",
    "refuse_shared",
]

Words = tuple[str, ...]
"""The words of one list, in the order of the file."""


@dataclass(frozen=True, slots=True)
class Node:
    """A value of a file together with the place where it stands."""

    path: str
    value: object
    place: str = ""

    def error(self, problem: str) -> LexiconError:
        """A complaint about this value, to be raised."""
        return LexiconError(self.path, f"{self.place}: {problem}" if self.place else problem)

    def entries(self) -> dict[str, Node]:
        """The named values of a table, whatever their names."""
        if not isinstance(self.value, dict):
            raise self.error(f"expected a table, got {_kind(self.value)}")
        for name in self.value:
            _check_word(self, name, "name")
        place = f"{self.place}." if self.place else ""
        return {name: Node(self.path, value, place + name) for name, value in self.value.items()}

    def table(self, required: Sequence[str], optional: Sequence[str] = ()) -> dict[str, Node]:
        """The values of a table with all of `required`, perhaps some of `optional`, no other."""
        entries = self.entries()
        known = [*required, *optional]
        for name in entries:
            if name not in known:
                raise self.error(_unknown("key", name, known))
        for name in required:
            if name not in entries:
                raise self.error(f"the key '{name}' is missing")
        return entries

    def rows(self) -> list[Node]:
        """The values of a list that is not empty, numbered from 1."""
        if not isinstance(self.value, list):
            raise self.error(f"expected a list, got {_kind(self.value)}")
        if not self.value:
            raise self.error("the list is empty")
        return [
            Node(self.path, value, f"{self.place} #{number}")
            for number, value in enumerate(self.value, 1)
        ]

    def text(self) -> str:
        """A text that is not blank."""
        if not isinstance(self.value, str):
            raise self.error(f"expected a text, got {_kind(self.value)}")
        if not self.value.strip():
            raise self.error("the text is empty")
        return self.value

    def word(self) -> str:
        """One word or phrase."""
        if not isinstance(self.value, str):
            raise self.error(f"expected a word, got {_kind(self.value)}")
        _check_word(self, self.value, "word")
        return self.value

    def words(self, least: int = 1) -> Words:
        """At least `least` words, none of them twice."""
        words = tuple(row.word() for row in self.rows())
        seen: set[str] = set()
        for word in words:
            if word in seen:
                raise self.error(f"the word '{word}' stands in the list twice")
            seen.add(word)
        if len(words) < least:
            raise self.error(f"expected at least {least} words, got {len(words)}")
        return words

    def percentage(self) -> float:
        """A number from 0 to 100."""
        value = self.value
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise self.error(f"expected a number, got {_kind(value)}")
        if not 0 <= value <= 100:
            raise self.error(f"expected a percentage from 0 to 100, got {value}")
        return float(value)


@dataclass(frozen=True, slots=True)
class Row:
    """A row of a CSV file: its cells by column, and the line it ends on."""

    path: str
    line: int
    cells: Mapping[str, str]

    def error(self, problem: str) -> LexiconError:
        """A complaint about this row, to be raised."""
        return LexiconError(self.path, problem, line=self.line)

    def choice(self, column: str, allowed: Sequence[str], default: str) -> str:
        """One of the words `allowed`; `default` where the column is absent or the cell empty."""
        value = self.cells.get(column, "") or default
        if value not in allowed:
            raise self.error(f"{column}: expected one of {', '.join(allowed)}, got '{value}'")
        return value


def data(*parts: str) -> Traversable:
    """A file or folder of the built-in data."""
    return files("evenhand.lexicon").joinpath("data", *parts)


def read_toml(source: Path | Traversable) -> Node:
    """The content of a TOML file."""
    return _read(source, "TOML", tomllib.loads)


def read_json(source: Path | Traversable) -> Node:
    """The content of a JSON file, in which no object may have a name twice."""
    return _read(source, "JSON", lambda text: json.loads(text, object_pairs_hook=_once))


def read_csv(
    source: Path | Traversable, required: Sequence[str], optional: Sequence[str] = ()
) -> list[Row]:
    """The rows of a CSV file whose header has all of `required` and no column but `optional`.

    Blanks around a cell are taken away and empty lines passed over.
    """
    known = [*required, *optional]
    node = _read(source, "CSV", str)
    lines = csv.reader(io.StringIO(str(node.value), newline=""), strict=True)
    header: list[str] | None = None
    rows = []
    try:
        for cells in lines:
            stripped = [cell.strip() for cell in cells]
            if not any(stripped):
                continue
            if header is None:
                header = stripped
                _check_header(Row(node.path, lines.line_num, {}), header, required, known)
                continue
            row = Row(node.path, lines.line_num, dict(zip(header, stripped, strict=False)))
            if len(stripped) != len(header):
                raise row.error(f"expected {len(header)} cells, got {len(stripped)}")
            rows.append(row)
    except csv.Error as problem:
        raise LexiconError(node.path, f"not CSV: {problem}", line=lines.line_num) from None
    if not rows:
        raise node.error(f"expected a header ({', '.join(known)}) and rows, got no row")
    return rows


def _check_header(
    row: Row, header: Sequence[str], required: Sequence[str], known: Sequence[str]
) -> None:
    for name in header:
        if name not in known:
            raise row.error(_unknown("column", name, known))
        if header.count(name) > 1:
            raise row.error(f"the column '{name}' stands in the header twice")
    for name in required:
        if name not in header:
            raise row.error(f"the column '{name}' is missing")


def distinct(lists: Iterable[Iterable[str]]) -> Words:
    """Every word of the lists, once, in the order of first appearance."""
    return tuple(dict.fromkeys(word for words in lists for word in words))


def refuse_shared(node: Node, lists: Mapping[str, Iterable[str]], reason: str) -> None:
    """Complain about a word that stands in two of the named lists."""
    owner: dict[str, str] = {}
    for name, words in lists.items():
        for word in distinct([words]):
            if word in owner:
                raise node.error(f"'{word}' stands in {owner[word]} and in {name}: {reason}")
            owner[word] = name


def _read(source: Path | Traversable, kind: str, parse: Callable[[str], object]) -> Node:
    path = str(source)
    try:
        raw = source.read_bytes()
    except OSError as problem:
        raise LexiconError(path, f"cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise LexiconError(repr(path), f"not the name of a file: {problem}") from None
    try:
        return Node(path, parse(raw.decode("utf-8-sig").replace("\r\n", "\n")))
    except UnicodeDecodeError as problem:
        line = raw.count(b"\n", 0, problem.start) + 1
        raise LexiconError(path, "not UTF-8 text", line=line) from None
    except RecursionError:
        raise LexiconError(path, f"not {kind} of ours: nested too deeply") from None
    except ValueError as problem:
        reason, line_number = _syntax(problem, raw)
        raise LexiconError(path, f"not {kind}: {reason}", line=line_number) from None


def _syntax(problem: ValueError, raw: bytes) -> tuple[str, int | None]:
    """What a parser complained about and the line it named."""
    if isinstance(problem, json.JSONDecodeError):
        return problem.msg, problem.lineno
    message = str(problem)
    if found := re.search(r" \(at line (\d+), column \d+\)$", message):
        return message[: found.start()], int(found[1])
    if message.endswith(" (at end of document)"):
        return message.removesuffix(" (at end of document)"), len(raw.splitlines()) or 1
    return message, None


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {twice!r} stands in one object twice")
    return content


def _unknown(what: str, name: str, known: Sequence[str]) -> str:
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"unknown {what} '{name}': {hint}(known: {', '.join(known)})"


def _check_word(node: Node, word: str, what: str) -> None:
    if not word or word != word.strip() or not word.isprintable():
        raise node.error(f"expected a {what} without blanks around it, got {word!r}")


def _kind(value: object) -> str:
    """A value as it is called in a complaint."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return f"the text {value[:40]!r}"
        case int() | float():
            return "a number"
        case list():
            return "a list"
        case dict():
            return "a table"
    return f"the date {value}"
