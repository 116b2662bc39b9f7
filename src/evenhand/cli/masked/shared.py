"""Options that the commands on masked language models share, and a bar that tells the rate."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.masked.model import Model

__all__ = [
    "load_model",
    "model_option",
    "models_option",
    "open_cache",
    "running_options",
    "scoring_bar",
]

F = TypeVar("F", bound=Callable[..., Any])

_MODEL = "mini, the path of a folder, or hf:NAME"
model_option = click.option(
    "--model", default="mini", show_default=True, metavar="SRC", help=f"The model: {_MODEL}."
)
models_option = click.option(
    "--model", "models", multiple=True, default=("mini",), show_default=True, metavar="SRC",
    help=f"The model: {_MODEL}. Repeat it to compare several on the same input.",
)  # fmt: skip


def running_options(command: F) -> F:
    """--device, --dtype, --int8 and --cache: how the model is run, the same for all commands.

    The command takes them as `device`, `dtype`, `int8` and `cache`.
    """
    device = click.option(
        "--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 …"
    )
    dtype = click.option(
        "--dtype", type=click.Choice(["float32", "bfloat16", "float16"]), default="float32",
        show_default=True, help="What the model computes in; bfloat16 is for GPUs.",
    )  # fmt: skip
    int8 = click.option(
        "--int8", is_flag=True, help="8-bit weights on the CPU: faster, and no longer exact."
    )
    cache = click.option(
        "--cache", metavar="FOLDER", type=click.Path(file_okay=False),
        help="Keep the model's answers here: the same command, broken off or on a longer file,"
        " computes only what is missing.",
    )  # fmt: skip
    return device(dtype(int8(cache(command))))


def load_model(source: str, device: str, dtype: str, int8: bool) -> Model:
    """Load a model as the options say."""
    from evenhand.masked.model import load

    return load(source, device=device, dtype=dtype, int8=int8)  # type: ignore[arg-type]


def open_cache(folder: str | None) -> Cache | None:
    """The answers kept in the folder, or none."""
    if folder is None:
        return None
    from evenhand.cache import Cache

    return Cache(folder)


@contextmanager
def scoring_bar(label: str, unit: str = "") -> Iterator[Callable[[int, int], None] | None]:
    """A bar with the rate and the time left on stderr where that is a terminal; None elsewhere."""
    if not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn
    from rich.progress import TimeRemainingColumn as Left

    rate = TextColumn("{task.fields[rate]}")
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), rate, Left())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(label, total=None, rate="")

        def told(done: int, total: int) -> None:
            shown.update(task, completed=done, total=total)
            speed = shown.tasks[task].speed
            shown.update(task, rate=f"{speed:,.0f}{unit}/s" if speed else "")

        yield told
