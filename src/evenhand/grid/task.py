"""What a cell computes: the base class `Task`, the built-in tasks and the user's own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any, Generic, TypeAlias, TypeVar

from pydantic import BaseModel

from evenhand.errors import InputError
from evenhand.registry import Registry

if TYPE_CHECKING:
    from evenhand.grid.spec import Cell

Settings = TypeVar("Settings", bound=BaseModel)
Result: TypeAlias = Mapping[str, Any]
"""The content of a cell's result file."""
Row: TypeAlias = dict[str, Any]
"""A row of a table, by column."""

Progress = Callable[[str, int, int, str], None]
"""Called with the step, how much of it is done, its total, and further text."""

TASKS = Registry(
    "task",
    {
        "fewshot": "evenhand.grid.fewshot:TASK",
        "masked": "evenhand.grid.measures:MODELS",
        "text": "evenhand.grid.corpus:TASK",
        "vectors": "evenhand.grid.measures:VECTORS",
    },
    group="evenhand.tasks",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Workspace:
    """The place of a cell's computation.

    Parameters
    ----------
    work
        Folder of this cell alone. A cell that was killed finds here what it had written; the
        folder is removed once the result is saved.
    cache
        Folder shared by all cells and all workers.
    device, threads
        The torch device and the number of threads of the worker.
    lock
        ``lock(name)`` holds a name of the cache, so that what cells share is computed once.
    progress
        Called as the cell proceeds.
    """

    work: Path
    cache: Path
    device: str
    threads: int
    lock: Callable[[str], AbstractContextManager[Any]]
    progress: Progress | None = None

    def step(self, name: str) -> Callable[[int, int | None], None] | None:
        """Return what is called with the progress of one step, None where it is not reported."""
        if (progress := self.progress) is None:
            return None
        return lambda done, total: progress(name, done, total or done, "")


class Task(Generic[Settings]):
    """A kind of cell. A subclass has a `name`, `settings` and `compute`; the rest has defaults."""

    name = ""
    version = 1
    """Raised when the numbers of a cell change, so that earlier results no longer count."""

    @property
    def settings(self) -> type[Settings]:
        """Every key of a cell, with its default and description."""
        raise NotImplementedError

    def compute(self, settings: Settings, workspace: Workspace) -> dict[str, Any]:
        """Return the result, the same bytes each time."""
        raise NotImplementedError

    def expand(
        self, fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]]
    ) -> tuple[dict[str, Any], dict[str, list[Any]]]:
        """Return fixed settings and axes with the task's short forms written out."""
        return dict(fixed), {name: list(values) for name, values in axes.items()}

    def check(self, settings: Settings) -> None:
        """Raise an InputError for settings that are known to be wrong before the computation."""

    def identity(self, settings: Settings) -> dict[str, Any]:
        """Return all that decides the result: settings and the content of the files they name."""
        return settings.model_dump(mode="json")

    def group(self, settings: Settings) -> str:
        """Return the group of the cell: cells of one group share what is expensive to load."""
        return ""

    def intact(self, settings: Settings, result: Result) -> bool:
        """Whether the files that a result lists are still as they were written."""
        return True

    def row(self, result: Result) -> Row:
        """Return the main figures of a result, for tables."""
        return {
            name: value
            for name, value in result.items()
            if isinstance(value, int | float | str) and not isinstance(value, bool)
        }

    def pool(self, results: Sequence[Result]) -> dict[str, Any]:
        """Join the results of all shards of a setting."""
        raise NotImplementedError

    def summarize(
        self,
        results: Sequence[tuple[Cell, Result]],
        missing: Sequence[tuple[Cell, str]],
        prob: float,
        progress: Progress | None,
    ) -> tuple[dict[str, list[Row]], dict[str, Any], tuple[str, ...]]:
        """Return the task's own tables, their content as a document, and notes."""
        raise NotImplementedError


def load_task(name: str) -> Task[Any]:
    """Return a task by its name, or one of the user's own as `package.module:ATTRIBUTE`.

    The module is imported, which runs its code; nothing of it is called unless it is a `Task`.
    """
    if ":" not in name:
        task = TASKS[name]
    else:
        module, _, attribute = name.partition(":")
        try:
            task = getattr(import_module(module), attribute)
        except (Exception, SystemExit) as error:  # a module of the user may raise anything
            reason = " ".join(f"{error}".split()) or type(error).__name__
            raise InputError(
                f"task: expected one of {', '.join(TASKS)}, or package.module:ATTRIBUTE that can "
                f"be imported, got '{name}' ({reason})"
            ) from None
    if not isinstance(task, Task):
        kind = "a class" if isinstance(task, type) else type(task).__name__
        raise InputError(f"task: expected an object that is a Task, got '{name}', {kind}")
    return task
