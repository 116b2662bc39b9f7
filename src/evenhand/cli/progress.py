"""Progress on stderr: live bars in a terminal, plain lines elsewhere, nothing with --quiet."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeAlias, TypeVar

import click

if TYPE_CHECKING:
    from rich.progress import Task

T = TypeVar("T")

StepProgress: TypeAlias = Callable[[str, int, int | None, str], None]
"""Called with the name of the step, the number of units done and of all units, and a text."""

INTERVAL = 5.0
"""Seconds between two lines, and before the first: short work prints none."""
STEP_INTERVAL = 1.0
"""Seconds before the line of a new step, once there have been others."""
LINES = "evenhand.progress"
"""Where the context of a command has the time of its last line."""


def flag(text: str) -> dict[str, Any]:
    """The arguments of a flag that is no parameter of its command: code asks for it (`is_set`)."""
    return {"is_flag": True, "expose_value": False, "callback": _set, "help": text}


def _set(ctx: click.Context, parameter: click.Parameter, value: bool) -> None:
    ctx.meta[f"evenhand.{parameter.name}"] = value


def is_set(name: str) -> bool:
    """Whether the command runs with a flag, such as "quiet" or "json"."""
    context = click.get_current_context(silent=True)
    return context is not None and bool(context.meta.get(f"evenhand.{name}"))


def bar(items: Sequence[T], label: str) -> Iterator[T]:
    """The items, with the progress through them on stderr."""
    with progress_bar(label) as progress:
        for done, item in enumerate(items):
            if progress is not None:
                progress(done, len(items))
            yield item


@contextmanager
def progress_bar(
    label: str, unit: str = "", *, scale: int = 1
) -> Iterator[Callable[[int, int | None], None] | None]:
    """Progress of one step, called with what is done and the total, in units of `scale`."""
    with step_bars({label: unit}) as show:
        if show is None:
            yield None
            return
        show(label, 0, None, "")
        yield lambda done, total: show(label, done // scale, total and total // scale, "")


@contextmanager
def step_bars(units: Mapping[str, str] | None = None) -> Iterator[StepProgress | None]:
    """Progress of the current step, with rate and time left; None with --quiet.

    `units` names what the rate of a step counts, by a part of the step's name. A text that has a
    rate of its own ("/s") is shown alone.
    """
    if is_set("quiet"):
        yield None
        return
    if not sys.stderr.isatty():
        context = click.get_current_context(silent=True)
        yield ProgressLines(
            units or {}, times=context.meta.setdefault(LINES, {}) if context else {}
        )
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.table import Column

    columns = (
        TextColumn("{task.description}"),
        BarColumn(12),
        MofNCompleteColumn(),
        TextColumn(
            "{task.fields[text]}",
            markup=False,
            table_column=Column(ratio=1, no_wrap=True, overflow="ellipsis"),
        ),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True, expand=True) as bars:
        tasks: dict[str, Any] = {}

        def show(step: str, done: int, total: int | None, text: str) -> None:
            if step not in tasks:
                for earlier in tasks.values():
                    bars.update(earlier, visible=False)
                tasks[step] = bars.add_task(step, total=total, text="")
            task = bars.tasks[tasks[step]]
            shown = text if "/s" in text else _with_rate(task, unit_of(step, units or {}), text)
            bars.update(tasks[step], completed=done, total=total, text=shown)

        yield show


def _with_rate(task: Task, unit: str, text: str) -> str:
    """Rate and time left, where they are known, before the text."""
    return ", ".join(filter(None, (*_rate(task.speed, task.time_remaining, unit), text)))


def unit_of(step: str, units: Mapping[str, str]) -> str:
    """The unit of a step's rate."""
    return next((unit for part, unit in units.items() if part in step), "")


def _rate(speed: float | None, left: float | None, unit: str) -> Iterator[str]:
    if speed:
        shown = f"{speed:,.0f}" if speed >= 10 else f"{speed:.2g}"
        yield f"{shown} {unit}/s".replace(" /s", "/s")
    if left is not None:
        yield f"{int(left) // 60}:{int(left) % 60:02} left"


class ProgressLines:
    """Progress as lines, one every few seconds: for logs, where a bar would be thousands.

    `times` has when the last line was written (`line`) and when work began (`begin`); the steps of
    a command share it.

    >>> now = iter([0, 1, 6, 7, 12])
    >>> show = ProgressLines({"scoring": "sentences"}, clock=lambda: next(now), write=print)
    >>> for done in (0, 50, 300, 350):
    ...     show("scoring", done, 900, "")
    scoring: 300 of 900 (33%), 50 sentences/s, 0:12 left
    >>> show("comparing", 0, None, "")
    comparing
    """

    def __init__(
        self,
        units: Mapping[str, str],
        *,
        times: dict[str, float] | None = None,
        clock: Callable[[], float] = time.monotonic,
        write: Callable[[str], object] = lambda line: click.echo(line, err=True),
    ) -> None:
        self.units, self.clock, self.write = units, clock, write
        self.step, self.began, self.first = "", 0.0, 0
        self.times = {} if times is None else times

    def __call__(self, step: str, done: int, total: int | None, text: str) -> None:
        now = self.clock()
        interval = INTERVAL
        if step != self.step:
            self.step, self.began, self.first = step, now, done
            interval = STEP_INTERVAL if "line" in self.times else INTERVAL
        if now - self.times.get("line", self.times.setdefault("begin", now)) < interval:
            return
        self.times["line"] = now
        counted = f"{done:,}" if done else ""
        if total:
            counted = f"{done:,} of {total:,} ({done / total:.0%})"
        rates: tuple[str, ...] = ()
        if done > self.first and now > self.began and "/s" not in text:
            speed = (done - self.first) / (now - self.began)
            left = None if total is None else (total - done) / speed
            rates = tuple(_rate(speed, left, unit_of(step, self.units)))
        details = ", ".join(filter(None, (counted, *rates, text)))
        self.write(f"{step}: {details}" if details else step)
