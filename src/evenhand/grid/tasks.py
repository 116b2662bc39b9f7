"""What a cell can be: the tasks by name, and what each has to know about its cells."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

from evenhand.errors import InputError
from evenhand.registry import Registry

if TYPE_CHECKING:
    from pydantic import BaseModel

__all__ = ["TASKS", "Place", "Progress", "Task", "task_of"]

Progress = Callable[[str, int, int, str], None]
"""Told as a cell goes on: what is being done, how much of it, of how much, and more in words."""

TASKS = Registry(
    "task",
    {name: f"evenhand.grid.task_{name}:TASK" for name in ("fewshot", "masked", "text", "vectors")},
    group="evenhand.tasks",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Place:
    """Where a cell is computed.

    `work` is a folder for this cell alone: what it leaves there is found again after a kill, and
    is gone once the result is saved. `cache` is shared by all cells and all workers, at once;
    `alone` waits until no other worker on any host holds a name, to make a shared thing once.
    """

    work: Path
    cache: Path
    device: str
    threads: int
    alone: Callable[[str], AbstractContextManager[None]]
    progress: Progress | None = None


class Task(Protocol):
    """A kind of cell.

    A task may also have `expand(fixed, axes)`, which gives both with its own short forms written
    out, and `whole(settings, result)`, which says whether what a result speaks of is still there.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int:
        """Raised when the numbers of a cell would change: old results then do not count."""

    @property
    def settings(self) -> type[BaseModel]:
        """Every key of a cell, with its default and what it means."""

    def check(self, settings: Any) -> None:
        """Raise an InputError for what can be known to be wrong before anything is computed."""

    def identity(self, settings: Any) -> dict[str, Any]:
        """All that decides the result: the settings, and the content of the files they name."""

    def group(self, settings: Any) -> str:
        """Cells of one group share what is dear to make; they are computed one after another."""

    def compute(self, settings: Any, place: Place) -> dict[str, Any]:
        """The result, the same bytes each time."""

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """The result in a few figures, for tables."""


def task_of(name: str) -> Task:
    """A task by its name, or one of the user's own as `package.module:ATTRIBUTE`."""
    if ":" not in name:
        found: Task = TASKS[name]
        return found
    module, _, attribute = name.partition(":")
    try:
        own: Task = getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise InputError(
            f"task: expected one of {', '.join(TASKS)}, or package.module:ATTRIBUTE that can be "
            f"imported, got '{name}' ({error})"
        ) from None
    return own
