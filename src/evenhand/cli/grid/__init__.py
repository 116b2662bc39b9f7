"""`evenhand grid …`: many settings at once, on one machine or many, and what came of them."""

from __future__ import annotations

import click

from evenhand.cli.lazy import LazyGroup

__all__ = ["grid"]


@click.group(
    cls=LazyGroup,
    short_help="Grids of experiments that finish: run, status, report.",
    places={
        "run": "evenhand.cli.grid.run:run",
        "status": "evenhand.cli.grid.status:status",
        "report": "evenhand.cli.grid.report:report",
    },
)
def grid() -> None:
    """Grids of experiments: run, status, report.

    A grid is a YAML file: a task, settings that stay as they are, and axes along which others
    vary. `run` computes a cell for each combination, a file a result; what is there is never
    computed again, so that the same command goes on after a break, a kill or a failure, and a
    value more on an axis costs only its own cells. `status` says how far it is, `report` makes
    tables and figures of what is there.
    """
