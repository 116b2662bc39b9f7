"""`grid.yaml`: a task, the settings that stay as they are, and the axes along which others vary."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import yaml  # type: ignore[import-untyped]
from pydantic import BaseModel, ConfigDict, Field, ValidationError

from evenhand.errors import FileError, InputError, UnknownNameError
from evenhand.grid.cells import Cell, key_of, told
from evenhand.grid.tasks import Task, task_of

__all__ = ["Grid", "make_grid", "read_grid"]


class _Loader(yaml.SafeLoader):  # type: ignore[misc]
    """Plain values alone, with 5e-5 a number, as in YAML 1.2 and everywhere else."""


_Loader.add_implicit_resolver(
    "tag:yaml.org,2002:float",
    re.compile(r"^[-+]?(\d+\.?\d*|\.\d+)[eE][-+]?\d+$"),
    list("-+.0123456789"),
)


class _File(BaseModel):
    """What a grid's file may have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    task: str
    fixed: dict[str, Any] = Field(default_factory=dict)
    axes: dict[str, list[Any]] = Field(default_factory=dict)
    skip: list[dict[str, Any]] = Field(default_factory=list)


@dataclass(frozen=True, eq=False)
class Grid:
    """A grid of cells, all checked; `asked` is what was asked for, as it stands in the file."""

    task_name: str
    task: Task
    asked: Mapping[str, Any]
    cells: tuple[Cell, ...] = field(repr=False)
    settings: tuple[BaseModel, ...] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        """All a worker needs to know."""
        return {
            "task": self.task_name, "version": self.task.version, "asked": self.asked,
            "folder": str(Path.cwd()), "cells": [cell.as_dict() for cell in self.cells],
        }  # fmt: skip


def read_grid(
    path: str | os.PathLike[str], *, progress: Callable[[int, int], None] | None = None
) -> Grid:
    """Read a grid from a YAML file; errors name the line.

    Files that the settings name are found from the folder that one is in, as everywhere.
    """
    try:
        text = Path(path).read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise FileError(path, f"expected UTF-8 text: {error}") from None
    try:
        node = yaml.compose(text, Loader=_Loader)
        content = yaml.load(text, Loader=_Loader)  # noqa: S506
    except yaml.MarkedYAMLError as error:
        line = error.problem_mark.line + 1 if error.problem_mark else None
        raise FileError(path, f"not valid YAML: {error.problem}", line=line) from None
    except yaml.YAMLError as error:
        raise FileError(path, f"not valid YAML: {error}") from None
    lines: dict[tuple[Any, ...], int] = {}
    for place, line in _lines(node):
        if place in lines:
            raise FileError(path, f"expected '{place[-1]}' once, got it twice", line=line)
        lines[place] = line
    try:
        return make_grid(content, progress=progress)
    except _WrongError as error:
        where = next((lines[at] for at in _upwards(error.place) if at in lines), None)
        raise FileError(path, str(error), line=where) from None


def make_grid(content: Any, *, progress: Callable[[int, int], None] | None = None) -> Grid:
    """A grid from a mapping with `task`, `fixed`, `axes` and `skip`.

    >>> make_grid({"task": "fewshot", "axis": {}})
    Traceback (most recent call last):
    evenhand.grid.spec._WrongError: unknown key 'axis': did you mean 'axes'? ...
    """
    if not isinstance(content, dict):
        raise _WrongError(
            (), f"expected a mapping with task, fixed and axes, got {type(content).__name__}"
        )
    _check_keys((), content, list(_File.model_fields), "key")
    file = _validated(_File, content, ())
    try:
        task = task_of(file.task)
    except InputError as error:
        raise _WrongError(("task",), str(error)) from None
    fixed, axes = dict(file.fixed), dict(file.axes)
    if (expand := getattr(task, "expand", None)) is not None:
        try:
            fixed, axes = expand(fixed, axes)
        except InputError as error:
            raise _WrongError(("fixed",), str(error)) from error
    _check(task, fixed, axes, file.skip)
    cells, settings = [], []
    every = [each for each in _product(axes) if not _skipped(fixed | each, file.skip)]
    if not every:
        raise _WrongError(("skip",), "expected some cells to be left, got a skip for each of them")
    for number, varied in enumerate(every):
        made = _settings(task, fixed, varied)
        try:
            identity = task.identity(made)
        except InputError as error:
            raise InputError(f"{_named(varied)}{error}") from error
        cells.append(
            Cell(
                key_of(file.task, task.version, identity), made.model_dump(mode="json"), varied,
                task.group(made),
            )
        )  # fmt: skip
        settings.append(made)
        if progress is not None:
            progress(number + 1, len(every))
    _check_twice(cells)
    return Grid(file.task, task, file.model_dump(), tuple(cells), tuple(settings))


class _WrongError(InputError):
    """What is wrong with a grid, and at which key of its file."""

    def __init__(self, place: tuple[Any, ...], problem: str) -> None:
        self.place = place
        super().__init__(problem)


def _check(
    task: Task, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]],
    skip: Sequence[Mapping[str, Any]],
) -> None:  # fmt: skip
    """Keys that are none of the task's, or stand twice; axes without values, or with one twice."""
    known = list(task.settings.model_fields)
    _check_keys(("fixed",), fixed, known, f"setting of {task.name}")
    _check_keys(("axes",), axes, known, f"setting of {task.name}")
    for name, values in axes.items():
        if name in fixed:
            raise _WrongError(
                ("axes", name), f"expected '{name}' in fixed or in axes, got it in both of them"
            )
        if not values:
            raise _WrongError(("axes", name), f"axes: {name}: expected one value or more, got none")
        for place, value in enumerate(values):
            if value in values[:place]:
                raise _WrongError(
                    ("axes", name), f"axes: {name}: expected each value once, got {value!r} twice"
                )
    for number, each in enumerate(skip):
        _check_keys(("skip", number), each, known, f"setting of {task.name}")


def _settings(task: Task, fixed: Mapping[str, Any], varied: Mapping[str, Any]) -> BaseModel:
    given = {**fixed, **varied}
    try:
        made = task.settings(**given)
        task.check(made)
    except ValidationError as error:
        place, problem = _first(error)
        raise _WrongError(_in_file(place, varied), problem) from None
    except InputError as error:
        raise _WrongError(_in_file((), varied), f"{_named(varied)}{error}") from None
    return made


def _in_file(place: tuple[Any, ...], varied: Mapping[str, Any]) -> tuple[Any, ...]:
    if not place:
        return ("axes",) if varied else ("fixed",)
    return ("axes" if place[0] in varied else "fixed", *place)


def _named(varied: Mapping[str, Any]) -> str:
    return f"{Cell('', {}, varied).name}: " if varied else ""


def _validated(model: type[_File], content: dict[str, Any], place: tuple[Any, ...]) -> _File:
    try:
        return model(**content)
    except ValidationError as error:
        inside, problem = _first(error)
        if inside[:1] == ("axes",) and len(inside) == 2:
            problem += " (a single value belongs in fixed)"
        raise _WrongError((*place, *inside), problem) from None


def _first(error: ValidationError) -> tuple[tuple[Any, ...], str]:
    """The place and the words of the first thing that is wrong."""
    one = error.errors()[0]
    place = tuple(one["loc"])
    where = ": ".join(str(part) for part in place)
    cause = one.get("ctx", {}).get("error")
    if one["type"] == "missing":
        return (), f"expected '{where}', it is not there"
    what = str(cause) if isinstance(cause, InputError) else one["msg"].removeprefix("Value error, ")
    if isinstance(cause, InputError) and place and what.startswith(f"{place[-1]}"):
        return place, what
    what = what.replace("Input should be ", "expected ")
    return place, f"{where}: {what}, got {told(one['input'])}" if where else what


def _check_keys(
    place: tuple[Any, ...], given: Mapping[str, Any], known: Sequence[str], kind: str
) -> None:
    for name in given:
        if name not in known:
            raise _WrongError((*place, name), str(UnknownNameError(kind, str(name), known)))


def _check_twice(cells: Sequence[Cell]) -> None:
    """Two settings that come to the same would be told of as two results."""
    seen: dict[str, Cell] = {}
    for cell in cells:
        if (other := seen.setdefault(cell.key, cell)) is not cell:
            raise InputError(
                f"axes: expected cells that differ, got the same one as ({other.name}) and "
                f"({cell.name})"
            )


def _product(axes: Mapping[str, Sequence[Any]]) -> list[dict[str, Any]]:
    return [dict(zip(axes, each, strict=True)) for each in itertools.product(*axes.values())]


def _skipped(given: Mapping[str, Any], skip: Sequence[Mapping[str, Any]]) -> bool:
    return any(
        each and all(name in given and given[name] == value for name, value in each.items())
        for each in skip
    )


def _lines(node: Any, place: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], int]]:
    """The line of each key of a YAML file."""
    if isinstance(node, yaml.MappingNode):
        for key, value in node.value:
            here = (*place, key.value)
            yield here, key.start_mark.line + 1
            yield from _lines(value, here)
    elif isinstance(node, yaml.SequenceNode):
        for number, value in enumerate(node.value):
            yield (*place, number), value.start_mark.line + 1
            yield from _lines(value, (*place, number))


def _upwards(place: tuple[Any, ...]) -> Iterator[tuple[Any, ...]]:
    """A place in a file, then what it is in."""
    return (place[:end] for end in range(len(place), 0, -1))
