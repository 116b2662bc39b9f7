"""Reading word-list files (TOML, JSON, CSV, plain lines) into dataclasses, checked by pydantic.

A schema is a dataclass whose annotations use the types below. Every error is one line that names
the file, the line or key, what was expected and what came.
"""

from __future__ import annotations

import csv
import difflib
import io
import json
import re
import tomllib
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import MISSING, fields, is_dataclass
from functools import cache, partial
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path
from types import NoneType
from typing import Annotated, Any, TypeVar, cast, get_args, get_origin, get_type_hints

from pydantic import (
    AfterValidator,
    BeforeValidator,
    ConfigDict,
    PlainValidator,
    Strict,
    TypeAdapter,
    ValidationError,
)
from pydantic_core import ErrorDetails, PydanticCustomError

from evenhand.errors import FileError, LexiconError
from evenhand.files import decode, read_limited, reading

T = TypeVar("T")
Source = Path | Traversable

STRICT = ConfigDict(extra="forbid")
"""Configuration of a schema (`__pydantic_config__`) that allows no unknown keys."""


def fail(message: str) -> PydanticCustomError:
    """Build the error that a validator raises."""
    return PydanticCustomError("lexicon", "{message}", {"message": message})


def _check_text(value: object) -> str:
    if not isinstance(value, str):
        raise fail(f"expected a text, got {_describe(value)}")
    if not value.strip():
        raise fail("the text is empty")
    return value


def _check_word(value: object) -> str:
    if not isinstance(value, str):
        raise fail(f"expected a word, got {_describe(value)}")
    return _check_blanks(value, "word")


def _check_blanks(value: str, kind: str) -> str:
    if not value or value != value.strip() or not value.isprintable():
        raise fail(f"expected a {kind} without blanks around it, got {value!r}")
    return value


def _check_yes_no(value: object) -> object:
    if isinstance(value, str):
        if value not in ("yes", "no"):
            raise fail(f"expected one of yes, no, got '{value}'")
        return value == "yes"
    return value


def _check_list(values: tuple[T, ...], *, distinct: bool = False, least: int = 1) -> tuple[T, ...]:
    if not values:
        raise fail("the list is empty")
    if distinct and len(set(values)) < len(values):
        repeated = next(value for i, value in enumerate(values) if value in values[:i])
        raise fail(f"the word '{repeated}' occurs twice in the list")
    if len(values) < least:
        raise fail(f"expected at least {least} words, got {len(values)}")
    return values


def with_one(expected: str, *slots: str) -> AfterValidator:
    """Validator of texts that have each of the slots once, such as [MASK]."""

    def check(text: str) -> str:
        if any(text.count(slot) != 1 for slot in slots):
            listed = " and ".join(f"one {slot}" for slot in slots)
            raise fail(f"expected {expected} with {listed}, got '{text}'")
        return text

    return AfterValidator(check)


Text = Annotated[str, PlainValidator(_check_text)]
"""A text that is not blank."""
Word = Annotated[str, PlainValidator(_check_word)]
"""A word or phrase."""
Name = Annotated[str, BeforeValidator(lambda name: _check_blanks(name, "name"))]
"""A key of a table whose keys are free."""
Flag = Annotated[bool, Strict()]
"""true or false."""
YesNo = Annotated[bool, BeforeValidator(_check_yes_no)]
"""yes or no, in a CSV file."""
Rows = Annotated[tuple[T, ...], AfterValidator(_check_list)]
"""A list that is not empty."""
Distinct = Annotated[tuple[T, ...], AfterValidator(partial(_check_list, distinct=True))]
"""A list without repeats, in the order of the file."""
Several = Annotated[tuple[T, ...], AfterValidator(partial(_check_list, distinct=True, least=2))]
"""At least two texts without repeats."""
Words = Distinct[Word]
"""A list of distinct words, in the order of the file."""
WordPair = tuple[Word, Word]
"""Two words."""


def data(*parts: str) -> Traversable:
    """Return a file or folder of the built-in data."""
    return files("evenhand.lexicon").joinpath("data", *parts)


@cache
def built_in(*parts: str) -> dict[str, Any]:
    """The content of a built-in TOML file that only Evenhand writes: tests check it, no schema."""
    return tomllib.loads(data(*parts).read_text("utf-8"))


def read_toml(source: Source, schema: type[T]) -> T:
    """Read a TOML file."""
    return validate(source, schema, _parse(source, "TOML", tomllib.loads))


def read_json(source: Source, schema: type[T]) -> T:
    """Read a JSON file, in which no object may repeat a name."""

    def parse(text: str) -> object:
        return json.loads(text, object_pairs_hook=_refuse_repeats)

    return validate(source, schema, _parse(source, "JSON", parse))


def read_csv(source: Source, schema: type[T]) -> list[tuple[int, T]]:
    """Read the rows of a CSV file with their line numbers.

    The header has the fields of the schema as columns; those with a default may be absent, and an
    empty cell takes the default. Blanks around a cell are removed and empty lines skipped.
    """
    columns = {field.name: field.default is MISSING for field in fields(cast("Any", schema))}
    text = str(_parse(source, "CSV", str))
    lines = csv.reader(io.StringIO(text, newline=""), strict=True)
    try:
        stripped = [([cell.strip() for cell in cells], lines.line_num) for cells in lines]
    except csv.Error as problem:
        raise LexiconError(str(source), f"not CSV: {problem}", line=lines.line_num) from None
    filled = [(cells, line) for cells, line in stripped if any(cells)]
    if filled:
        _check_header(source, filled[0][1], filled[0][0], columns)
    if len(filled) < 2:
        expected = f"a header ({', '.join(columns)}) and rows"
        raise LexiconError(str(source), f"expected {expected}, got no row")
    header = filled[0][0]
    rows = []
    for cells, line in filled[1:]:
        if len(cells) != len(header):
            counts = f"expected {len(header)} cells, got {len(cells)}"
            raise LexiconError(str(source), counts, line=line)
        named = dict(zip(header, cells, strict=True))
        given = {name: cell for name, cell in named.items() if cell or columns[name]}
        rows.append((line, validate(source, schema, given, line)))
    return rows


def read_lines(source: Source) -> list[tuple[int, str]]:
    """Read the lines of a text file with their numbers; blank lines and # comments are skipped."""
    text = str(_parse(source, "text", str))
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    content = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not content:
        raise LexiconError(str(source), "expected at least one line, got none")
    return content


def unique(lists: Iterable[Iterable[str]]) -> tuple[str, ...]:
    """Return the words of all lists without repeats, in the order of first appearance."""
    return tuple(dict.fromkeys(word for words in lists for word in words))


def refuse_shared(path: str, lists: Mapping[str, Iterable[str]], reason: str) -> None:
    """Raise if a word is in two of the named lists."""
    owner: dict[str, str] = {}
    for name, words in lists.items():
        for word in unique([words]):
            if word in owner:
                raise LexiconError(path, f"'{word}' is in {owner[word]} and in {name}: {reason}")
            owner[word] = name


def describe_unknown(kind: str, name: str, known: Sequence[str]) -> str:
    """Describe an unknown name, with the nearest known one."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"did you mean '{near[0]}'? " if near else ""
    return f"unknown {kind} '{name}': {hint}(known: {', '.join(known)})"


@cache
def _adapter(schema: Hashable) -> TypeAdapter[Any]:
    return TypeAdapter(cast(Any, schema))


def validate(source: Source | str, schema: type[T], content: object, line: int | None = None) -> T:
    """The content as an instance of the schema; `source` is the place that errors name."""
    try:
        result: T = _adapter(cast(Hashable, schema)).validate_python(content)
    except ValidationError as error:
        errors = error.errors(include_url=False)
        first = min(errors, key=lambda e: e["type"] != "unexpected_keyword_argument")
        raise LexiconError(str(source), _explain(schema, first), line=line) from None
    return result


EXPECTED = {
    "tuple_type": "a list",
    "dict_type": "a table",
    "mapping_type": "a table",
    "dataclass_type": "a table",
    "float_type": "a number",
    "float_parsing": "a number",
    "bool_type": "true or false",
    "string_type": "a text",
    **dict.fromkeys(("int_type", "int_parsing", "int_from_float"), "a whole number"),
}


def _explain(schema: object, error: ErrorDetails) -> str:
    """Describe a validation error in one line that begins with its key."""
    location, value = list(error["loc"]), error["input"]
    kind = error["type"]
    if kind == "unexpected_keyword_argument":
        name = str(location.pop())
        problem = describe_unknown("key", name, _known_keys(schema, location))
    elif kind == "missing":
        problem = f"the key '{location.pop()}' is missing"
    elif kind == "literal_error":
        allowed = re.findall(r"'([^']*)'", error["ctx"]["expected"])
        problem = f"expected one of {', '.join(allowed)}, got '{value}'"
    elif kind == "value_error":
        problem = str(error["ctx"]["error"])
    elif kind in EXPECTED:
        got = repr(value) if kind == "bool_type" else _describe(value)
        problem = f"expected {EXPECTED[kind]}, got {got}"
    else:
        problem = error["msg"]
    if location and location[-1] == "[key]":
        location = location[:-2]
    place = "".join(f" #{part + 1}" if isinstance(part, int) else f".{part}" for part in location)
    return f"{place.removeprefix('.')}: {problem}" if place else problem


def _known_keys(schema: Any, location: Sequence[int | str]) -> list[str]:
    """Field names of the dataclass at a location of the schema."""
    for part in location:
        if is_dataclass(schema):
            schema = get_type_hints(schema, include_extras=False)[str(part)]
        else:
            schema = get_args(schema)[-1 if get_origin(schema) is not tuple else 0]
        options = [option for option in get_args(schema) if option is not NoneType]
        if get_origin(schema) not in (tuple, dict, Mapping) and len(options) == 1:
            schema = options[0]
    return [field.name for field in fields(schema)]


def _check_header(
    source: Source, line: int, header: Sequence[str], columns: Mapping[str, bool]
) -> None:
    for name in header:
        if name not in columns:
            problem = describe_unknown("column", name, list(columns))
            raise LexiconError(str(source), problem, line=line)
        if header.count(name) > 1:
            raise LexiconError(str(source), f"the column '{name}' occurs twice", line=line)
    for name, required in columns.items():
        if required and name not in header:
            raise LexiconError(str(source), f"the column '{name}' is missing", line=line)


def _parse(source: Source, kind: str, parse: Callable[[str], object]) -> object:
    path = str(source)
    try:
        raw = read_limited(source) if isinstance(source, Path) else source.read_bytes()
    except OSError as problem:
        raise LexiconError(path, f"cannot be read: {problem.strerror}") from None
    except ValueError as problem:
        raise LexiconError(repr(path), f"not the name of a file: {problem}") from None
    try:
        with reading(encoding="utf-8"):
            text = decode(raw, path, line=1, mark=True)
        return parse(text.replace("\r\n", "\n"))
    except FileError as problem:
        raise LexiconError(path, f"not UTF-8 text: {problem.problem}", line=problem.line) from None
    except RecursionError:
        raise LexiconError(path, f"not {kind}: nested too deeply") from None
    except ValueError as problem:
        reason, line_number = _syntax(problem, raw)
        raise LexiconError(path, f"not {kind}: {reason}", line=line_number) from None


def _syntax(problem: ValueError, raw: bytes) -> tuple[str, int | None]:
    """Message and line of a parser's error."""
    if isinstance(problem, json.JSONDecodeError):
        return problem.msg, problem.lineno
    message = str(problem)
    if position := re.search(r" \(at line (\d+), column \d+\)$", message):
        return message[: position.start()], int(position[1])
    if message.endswith(" (at end of document)"):
        return message.removesuffix(" (at end of document)"), len(raw.splitlines()) or 1
    return message, None


def _refuse_repeats(pairs: list[tuple[str, object]]) -> dict[str, object]:
    content = dict(pairs)
    if len(content) < len(pairs):
        names = [name for name, _ in pairs]
        repeated = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the name {repeated!r} occurs twice in one object")
    return content


def _describe(value: object) -> str:
    """Describe a value in an error message."""
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
