"""What a cell computes: the `Task` protocol, the built-in tasks and the user's own."""

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

__all__ = ["TASKS", "Progress", "Task", "Workspace", "load_task"]

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
    """Where a cell is computed.

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


class Task(Protocol):
    """A kind of cell.

    Three methods are optional: ``expand(fixed, axes)`` returns both with the task's short forms
    written out, ``intact(settings, result)`` says whether the files that a result lists are still
    as they were written, and ``pool(results)`` joins the results of all shards of a setting.
    """

    @property
    def name(self) -> str: ...
    @property
    def version(self) -> int:
        """Raised when the numbers of a cell change, so that earlier results no longer count."""

    @property
    def settings(self) -> type[BaseModel]:
        """Every key of a cell, with its default and description."""

    def check(self, settings: Any) -> None:
        """Raise an InputError for settings that are known to be wrong before the computation."""

    def identity(self, settings: Any) -> dict[str, Any]:
        """Return all that decides the result: settings and the content of the files they name."""

    def group(self, settings: Any) -> str:
        """Return the group of the cell: cells of one group share what is expensive to load."""

    def compute(self, settings: Any, workspace: Workspace) -> dict[str, Any]:
        """Return the result, the same bytes each time."""

    def row(self, result: Mapping[str, Any]) -> dict[str, Any]:
        """Return the main figures of a result, for tables."""


METHODS = ("check", "identity", "group", "compute", "row")


def load_task(name: str) -> Task:
    """Return a task by its name, or one of the user's own as `package.module:ATTRIBUTE`.

    The module is imported, which runs its code; nothing of it is called unless it declares all of
    a `Task`.
    """
    if ":" not in name:
        return _checked(name, TASKS[name])
    module, _, attribute = name.partition(":")
    try:
        own = getattr(import_module(module), attribute)
    except (Exception, SystemExit) as error:  # a module of the user may raise anything
        reason = " ".join(f"{error}".split()) or type(error).__name__
        raise InputError(
            f"task: expected one of {', '.join(TASKS)}, or package.module:ATTRIBUTE that can be "
            f"imported, got '{name}' ({reason})"
        ) from None
    return _checked(name, own)


def _checked(name: str, task: Any) -> Task:
    """The object, if it declares what a task has."""
    from pydantic import BaseModel

    settings = getattr(task, "settings", None)
    lacking = [method for method in METHODS if not callable(getattr(task, method, None))]
    if not isinstance(getattr(task, "name", None), str):
        lacking.append("name")
    if not isinstance(getattr(task, "version", None), int):
        lacking.append("version")
    if not (isinstance(settings, type) and issubclass(settings, BaseModel)):
        lacking.append("settings")
    if isinstance(task, type) or lacking:
        what = "a class" if isinstance(task, type) else f"{type(task).__name__}"
        more = f" without {', '.join(lacking)}" if lacking else ""
        raise InputError(f"task: expected an object that is a task, got '{name}', {what}{more}")
    checked: Task = task
    return checked
