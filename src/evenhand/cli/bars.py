"""Bars of work in several steps, with rate and time left, on stderr where that is a terminal."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from rich.progress import Task

__all__ = ["Told", "step_bars"]

Told = Callable[[str, int, int, str], None]
"""Told as the work goes on: what is being done, how much of it, of how much, and more in words."""


@contextmanager
def step_bars(units: Mapping[str, str] | None = None) -> Iterator[Told | None]:
    """A bar for the step under way; None where stderr is not a terminal.

    `units` says what the rate of a step counts, by a part of its name. Words that tell a rate of
    their own ("/s") are shown alone.
    """
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, TextColumn
    from rich.progress import Progress as Bars
    from rich.table import Column

    rest = Column(ratio=1, no_wrap=True, overflow="ellipsis")
    columns = (
        TextColumn("{task.description}"), BarColumn(12), MofNCompleteColumn(),
        TextColumn("{task.fields[rest]}", markup=False, table_column=rest),
    )  # fmt: skip
    with Bars(*columns, console=Console(stderr=True), transient=True, expand=True) as shown:
        tasks: dict[str, Any] = {}

        def told(what: str, done: int, total: int, words: str) -> None:
            if what not in tasks:
                for earlier in tasks.values():
                    shown.update(earlier, visible=False)
                tasks[what] = shown.add_task(what, total=total, rest="")
            task = shown.tasks[tasks[what]]
            named = [unit for part, unit in (units or {}).items() if part in what]
            shown.update(
                tasks[what], completed=done, total=total,
                rest=words if "/s" in words else _rest(task, named[0] if named else "", words),
            )  # fmt: skip

        yield told


def _rest(task: Task, unit: str, words: str) -> str:
    """Rate and time left, where they are known, before the words."""
    parts = [words] if words else []
    if task.time_remaining is not None:
        left = int(task.time_remaining)
        parts.insert(0, f"{left // 60}:{left % 60:02} left")
    if task.speed:
        parts.insert(0, f"{task.speed:,.0f} {unit}/s".replace(" /s", "/s"))
    return ", ".join(parts)
