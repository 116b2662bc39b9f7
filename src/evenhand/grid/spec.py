"""`grid.yaml`: a task, its fixed settings and the axes along which the others vary.

Each combination of the axes is a cell. Its key is a hash of all that determines its result.
"""

from __future__ import annotations

import itertools
import json
import math
import os
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.errors import FileError, InputError, UnknownNameError, parameter
from evenhand.files import to_json
from evenhand.grid.task import Task, load_task

Location = tuple[Any, ...]
"""The keys that lead to a value of the file."""


@dataclass(frozen=True, slots=True)
class Cell:
    """One combination of a grid.

    Parameters
    ----------
    key
        The content key: the name of the cell's result.
    settings
        All settings of the cell, as plain values.
    axes
        The settings that vary in the grid.
    group
        Cells of one group share what is expensive to load; they are computed in succession.
    """

    key: str
    settings: Mapping[str, Any] = field(repr=False)
    axes: Mapping[str, Any]
    group: str = field(default="", repr=False)

    @property
    def name(self) -> str:
        """The values of the axes as text.

        >>> Cell("0f", {}, {"network": "maml", "shots": 2}).name
        'network maml, shots 2'
        """
        parts = [f"{name} {format_value(value)}" for name, value in self.axes.items()]
        return ", ".join(parts) or "the cell"

    def to_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def format_value(value: object) -> str:
    """Format a setting: strings as they are, other values as JSON."""
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)


def cell_key(task: str, version: int, identity: Mapping[str, Any]) -> str:
    """Return the content key of a cell: a hash of all that determines its result."""
    return digest({"task": task, "version": version, "identity": identity})


def digest(value: object) -> str:
    """Return the hash of a JSON value; the order of its keys does not matter."""
    plain = json.loads(to_json(value, indent=None))
    text = json.dumps(plain, sort_keys=True, ensure_ascii=False, separators=(",", ":"))
    return blake2b(text.encode("utf-8", "surrogatepass"), digest_size=16).hexdigest()


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Plain values only; 5e-5 is a number, as in YAML 1.2, and `null` as a key is a name."""

    def construct_mapping(self, node: yaml.Node, deep: bool = False) -> dict[Any, Any]:
        for key, _ in node.value:
            if key.tag == "tag:yaml.org,2002:null" and key.value:
                key.tag = "tag:yaml.org,2002:str"
        mapping: dict[Any, Any] = super().construct_mapping(node, deep)
        return mapping


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in resolvers if not tag.endswith(":timestamp")]
    for first, resolvers in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
"""A date is a text, as in JSON."""

_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


MOST_BYTES = 4 << 20
MOST_VALUES = 200_000
DEEPEST = 20
MOST_CELLS = 100_000
"""The combinations of a grid, unless more are requested."""


class _File(BaseModel):
    """The keys of a grid's file."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: str
    fixed: dict[str, Any] = Field(default_factory=dict)
    axes: dict[str, list[Any]] = Field(default_factory=dict)
    skip: list[dict[str, Any]] = Field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid whose cells have been checked.

    `source` is the content of the grid's file; `settings` are those of each cell, validated.
    """

    task_name: str
    task: Task[Any]
    source: Mapping[str, Any]
    cells: tuple[Cell, ...] = field(repr=False)
    settings: tuple[BaseModel, ...] = field(repr=False)

    def to_dict(self) -> dict[str, Any]:
        return {
            "task": self.task_name,
            "version": self.task.version,
            "source": self.source,
            "cells": [cell.to_dict() for cell in self.cells],
        }


def read_grid(
    path: str | os.PathLike[str],
    *,
    max_cells: int = MOST_CELLS,
    progress: Callable[[int, int], None] | None = None,
) -> Grid:
    """Read a grid from a YAML file.

    Parameters
    ----------
    path
        The file. The files that its settings name are relative to the current folder. A task
        `package.module:ATTRIBUTE` is imported, which runs the code of that module: read only grids
        that you would run.
    max_cells
        The largest number of combinations of the axes.
    progress
        Called with the number of cells checked so far and their total.

    Raises
    ------
    FileError
        With the line of the file, what was expected there and what was given.
    """
    if Path(path).stat().st_size > MOST_BYTES:
        raise FileError(path, f"expected a grid of at most {MOST_BYTES >> 20} MB, got a larger one")
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(path, f"expected UTF-8 text: {error}") from None
    try:
        loader = _Loader(text)
        node = loader.get_single_node()
        lines = _check_nodes(path, node)  # before merge keys are replaced by what they merge
        content = None if node is None else loader.construct_document(node)
    except FileError:
        raise
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FileError(path, f"not valid YAML: {error.problem}", line=line) from None
    except yaml.YAMLError as error:
        raise FileError(path, f"not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise FileError(path, f"expected at most {DEEPEST} levels, got many more") from None
    except (ValueError, TypeError, AttributeError, OverflowError) as error:
        raise FileError(path, f"a value that cannot be read: {error}") from None
    try:
        return make_grid(content, max_cells=max_cells, progress=progress)
    except _SpecError as error:
        enclosing = (error.location[:end] for end in range(len(error.location), 0, -1))
        line = next((lines[location] for location in enclosing if location in lines), None)
        raise FileError(path, str(error), line=line) from None


def _check_nodes(path: str | os.PathLike[str], node: yaml.Node | None) -> dict[Location, int]:
    """Return the line of each key of a YAML file.

    Values inside themselves, deep nesting, aliases that multiply, and repeated keys are refused.
    """
    lines: dict[Location, int] = {}
    count = 0
    above: list[Any] = []
    waiting: list[tuple[Any, int, Location]] = [] if node is None else [(node, 0, ())]
    while waiting:
        current, depth, location = waiting.pop()
        del above[depth:]
        line = current.start_mark.line + 1
        if any(current is other for other in above):
            raise FileError(path, "a value that contains itself", line=line)
        count += 1
        if depth > DEEPEST:
            raise FileError(path, f"expected at most {DEEPEST} levels, got more", line=line)
        if count > MOST_VALUES:
            raise FileError(
                path, f"expected at most {MOST_VALUES:,} values, aliases written out", line=line
            )
        above.append(current)
        if isinstance(current, yaml.MappingNode):
            for key, value in current.value:
                inner = (*location, str(key.value))
                if inner in lines:
                    problem = f"expected '{key.value}' once, got it twice"
                    raise FileError(path, problem, line=key.start_mark.line + 1)
                lines[inner] = key.start_mark.line + 1
                waiting += [(key, depth + 1, inner), (value, depth + 1, inner)]
        elif isinstance(current, yaml.SequenceNode):
            for number, value in enumerate(current.value):
                lines[*location, number] = value.start_mark.line + 1
                waiting.append((value, depth + 1, (*location, number)))
    return lines


def _check_values(content: object, location: Location = ()) -> None:
    """Refuse what is no JSON: sets, bytes, times, numbers that are not finite."""
    if isinstance(content, dict):
        for key, value in content.items():
            if not isinstance(key, str):
                raise _SpecError(location, f"expected names as keys, got {key!r}")
            _check_values(value, (*location, key))
    elif isinstance(content, list):
        for number, value in enumerate(content):
            _check_values(value, (*location, number))
    elif isinstance(content, float) and not math.isfinite(content):
        raise _SpecError(location, f"expected a finite number, got {content}")
    elif not isinstance(content, str | int | float | None):
        raise _SpecError(
            location, f"expected a text, a number, a list or a mapping, got {content!r}"
        )


def make_grid(
    content: object,
    *,
    max_cells: int = MOST_CELLS,
    progress: Callable[[int, int], None] | None = None,
) -> Grid:
    """Make a grid from a mapping with `task`, `fixed`, `axes` and `skip`.

    Parameters
    ----------
    content
        What a grid's YAML file contains.
    max_cells
        The largest number of combinations of the axes.
    progress
        Called with the number of cells checked so far and their total.

    Examples
    --------
    >>> make_grid({"task": "fewshot", "axis": {}})
    Traceback (most recent call last):
    evenhand.grid.spec._SpecError: unknown key 'axis': did you mean 'axes'? ...
    """
    if not isinstance(content, dict):
        raise _SpecError(
            (), f"expected a mapping with task, fixed and axes, got {type(content).__name__}"
        )
    _check_values(content)
    _check_keys((), content, list(_File.model_fields), "key")
    try:
        file = _File(**content)
    except ValidationError as error:
        location, problem = _first_problem(error)
        if location[:1] == ("axes",) and len(location) == 2:
            problem += " (a single value belongs in fixed)"
        raise _SpecError(location, problem) from None
    try:
        task = load_task(file.task)
    except InputError as error:
        raise _SpecError(("task",), str(error)) from None
    try:
        fixed, axes = task.expand(file.fixed, file.axes)
    except InputError as error:
        raise _SpecError(("fixed",), str(error)) from error
    sizes = [len(values) for values in axes.values()]
    if math.prod(sizes) > max_cells:
        raise _SpecError(
            ("axes",),
            f"axes: expected at most {max_cells:,} combinations "
            f"({parameter('max_cells')} allows more), got {' × '.join(map(str, sizes))[:80]}",
        )
    _check_settings(task, fixed, axes, file.skip)
    combinations = [
        combination
        for values in itertools.product(*axes.values())
        if not _is_skipped(fixed | (combination := dict(zip(axes, values, strict=True))), file.skip)
    ]
    if not combinations:
        raise _SpecError(("skip",), "expected some cells to be left, got a skip for each of them")
    cells: dict[str, Cell] = {}
    settings: list[BaseModel] = []
    for varied in combinations:
        validated = _validate_cell(task, fixed, varied)
        try:
            identity = task.identity(validated)
        except InputError as error:
            raise InputError(f"{_prefix(varied)}{error}") from error
        key = cell_key(file.task, task.version, identity)
        cell = Cell(key, validated.model_dump(mode="json"), varied, task.group(validated))
        if (other := cells.setdefault(key, cell)) is not cell:
            raise InputError(  # a report would show them as two results
                f"axes: expected cells that differ, got the same one as ({other.name}) and "
                f"({cell.name})"
            )
        settings.append(validated)
        if progress is not None:
            progress(len(cells), len(combinations))
    return Grid(file.task, task, file.model_dump(), tuple(cells.values()), tuple(settings))


class _SpecError(InputError):
    """An error of a grid's file, at one of its keys."""

    def __init__(self, location: Location, problem: str) -> None:
        self.location = location
        super().__init__(problem)


def _check_settings(
    task: Task[Any],
    fixed: Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]],
    skip: Sequence[Mapping[str, Any]],
) -> None:
    """Refuse unknown and repeated keys, and axes without values or with repeated ones."""
    known = list(task.settings.model_fields)
    _check_keys(("fixed",), fixed, known, f"setting of {task.name}")
    _check_keys(("axes",), axes, known, f"setting of {task.name}")
    for name, values in axes.items():
        if name in fixed:
            raise _SpecError(
                ("axes", name), f"expected '{name}' in fixed or in axes, got it in both of them"
            )
        if not values:
            raise _SpecError(("axes", name), f"axes: {name}: expected one value or more, got none")
        known_values: set[Any] = set()
        for value in values:
            key = digest(value) if isinstance(value, list | dict) else value
            if key in known_values:
                raise _SpecError(
                    ("axes", name), f"axes: {name}: expected each value once, got {value!r} twice"
                )
            known_values.add(key)
    for number, entry in enumerate(skip):
        _check_keys(("skip", number), entry, known, f"setting of {task.name}")


def _validate_cell(
    task: Task[Any], fixed: Mapping[str, Any], varied: Mapping[str, Any]
) -> BaseModel:
    try:
        settings: BaseModel = task.settings(**{**fixed, **varied})
        task.check(settings)
    except ValidationError as error:
        location, problem = _first_problem(error)
        if not location:
            location = ("axes",) if varied else ("fixed",)
        else:
            location = ("axes" if location[0] in varied else "fixed", *location)
        raise _SpecError(location, problem) from None
    except InputError as error:
        location = ("axes",) if varied else ("fixed",)
        key = str(error).partition(":")[0]
        if key in varied or key in fixed:
            location = ("axes" if key in varied else "fixed", key)
        raise _SpecError(location, f"{_prefix(varied)}{error}") from None
    return settings


def _prefix(varied: Mapping[str, Any]) -> str:
    return f"{Cell('', {}, varied).name}: " if varied else ""


def _first_problem(error: ValidationError) -> tuple[Location, str]:
    """Return the location and the message of the first problem."""
    first = error.errors()[0]
    location = tuple(first["loc"])
    where = ": ".join(str(part) for part in location)
    cause = first.get("ctx", {}).get("error")
    if first["type"] == "missing":
        return (), f"expected '{where}', it is not there"
    own = isinstance(cause, InputError)
    problem = str(cause) if own else first["msg"].removeprefix("Value error, ")
    if own and location and problem.startswith(f"{location[-1]}"):
        return location, problem
    problem = problem.replace("Input should be ", "expected ")
    if where:
        problem = f"{where}: {problem}, got {format_value(first['input'])}"
    return location, problem


def _check_keys(
    location: Location, given: Mapping[str, Any], known: Sequence[str], kind: str
) -> None:
    for name in given:
        if name not in known:
            raise _SpecError((*location, name), str(UnknownNameError(kind, str(name), known)))


def _is_skipped(given: Mapping[str, Any], skip: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        entry and all(name in given and given[name] == value for name, value in entry.items())
        for entry in skip
    )
