"""Options and tables that fit and compare share."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from evenhand.posterior.contrasts import Named
    from evenhand.posterior.fits import Summary

__all__ = [
    "draws_option",
    "print_dropped",
    "prior_option",
    "prob_option",
    "save_named",
    "shown",
]

F = TypeVar("F", bound=Callable[..., Any])

prob_option = click.option(
    "--prob",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.89,
    show_default=True,
    help="Probability of the highest-density intervals.",
)
draws_option = click.option(
    "--draws", type=click.IntRange(160, 1_000_000), default=4000, show_default=True,
    help="Draws from each posterior.",
)  # fmt: skip
prior_option = click.option(
    "--prior", "priors", multiple=True, metavar="FAMILY.NAME=VALUE",
    help="Change a prior, e.g. crossed.delta_sd=0.1; repeatable.",
)  # fmt: skip


def shown(summary: Summary, digits: int = 3) -> tuple[str, str, str, str]:
    """A summary as the cells mean, sd, interval, P(< 0)."""
    from evenhand.cli.output import number

    return (
        number(summary.mean, digits),
        number(summary.sd, digits),
        f"[{number(summary.low, digits)}, {number(summary.high, digits)}]",
        number(summary.p_below_zero),
    )


def print_dropped(source: str, dropped: Mapping[str, int]) -> None:
    """Say what was dropped from a table, by reason."""
    counts = [f"{count:,} {reason}" for reason, count in dropped.items() if count]
    if counts:
        click.echo(f"dropped from {source}: {', '.join(counts)}")


def save_named(path: Path, rows: Iterable[Named]) -> None:
    """Write summaries as CSV, a row each, whole or not at all."""
    import pandas as pd

    from evenhand.results import replace_file

    with replace_file(path) as file:
        pd.DataFrame([row.as_dict() for row in rows]).to_csv(file, index=False)
