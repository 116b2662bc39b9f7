"""`evenhand posterior plan`: how many stereotypes a study of δ needs."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

import click

from evenhand.cli.options import json_option, seed_option
from evenhand.cli.posterior.shared import prob_option

if TYPE_CHECKING:
    from evenhand.posterior.planning import Plan

__all__ = ["plan"]


@click.command(short_help="How many stereotypes a study needs.")
@click.argument("source", metavar="[TOPIC|TABLE.csv]", default="religion")
@click.option(
    "--effect", type=float, default=0.05, show_default=True,
    help="The difference associated-different that is to be found; its sign does not matter.",
)  # fmt: skip
@click.option(
    "--power", type=float, default=0.8, show_default=True,
    help="With what probability it is to be found.",
)  # fmt: skip
@click.option(
    "--sets", type=click.IntRange(10, 100_000), default=120, show_default=True,
    help="Tables simulated for each of some five numbers of stereotypes.",
)  # fmt: skip
@seed_option
@prob_option
@json_option
def plan(
    source: str, effect: float, power: float, sets: int, seed: int, prob: float, as_json: bool
) -> None:
    """How many stereotypes it takes until a difference between classes is found.

    Found: the interval of associated-different by the model crossed excludes 0. Given a topic
    (religion, if none is named) its numbers of protected words are taken, with the spreads of
    religion in Reddit vectors; given a distance table, its words and the spreads estimated
    from it.

    \b
    Examples:
      evenhand posterior plan religion --effect 0.03
      evenhand posterior plan religion.csv --power 0.9
    """
    from evenhand.cli.output import print_json
    from evenhand.posterior.planning import plan as make

    with _bar(quiet=as_json) as progress:
        found = make(source, effect, power, prob, seed, sets=sets, progress=progress)
    if as_json:
        print_json(**found.as_dict())
        return
    _print(found)


@contextmanager
def _bar(*, quiet: bool) -> Iterator[Callable[[int, int], None] | None]:
    """A progress bar on stderr where that is a terminal."""
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("simulating", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)


def _print(found: Plan) -> None:
    from evenhand.cli.output import number, table

    level = f"{found.prob:.0%}"
    table(
        f"{found.source}: {found.words} protected words; power to find a difference of "
        f"{found.effect:g} ({level} interval excludes 0)",
        ("stereotypes", "sd of δ", "approximation", "found", "share", "interval", "curve"),
        (
            (
                str(p.attributes), number(p.sd, 4), number(p.approximate),
                f"{p.detected} of {p.sets}",
                number(p.power), f"[{number(p.low)}, {number(p.high)}]", number(p.fitted),
            )
            for p in found.curve
        ),
    )  # fmt: skip
    each = f", {found.per_class} for each of {found.classes} classes" if found.per_class else ""
    click.echo(
        f"needed for a power of {found.power:g}: {_count(found.needed)} stereotypes{each} "
        f"(simulation, 95%: {_range((found.low, found.high))}; approximation: "
        f"{_count(found.approximate)})"
    )
    if found.scales_range:
        click.echo(f"as the table tells the spreads ({level}): {_range(found.scales_range)}")
    click.echo(f"with the {found.available} that there are: {number(found.power_available, 2)}")
    spreads = ", ".join(f"{name} {number(value)}" for name, value in found.scales.items())
    click.echo(f"spreads: {spreads}")
    for note in found.notes:
        click.echo(f"note: {note}")


def _range(ends: tuple[int | None, int | None]) -> str:
    return f"{_count(ends[0])} to {_count(ends[1])}"


def _count(value: int | None) -> str:
    from evenhand.posterior.planning import MAX_ATTRIBUTES

    return f"more than {MAX_ATTRIBUTES:,}" if value is None else f"{value:,}"
