"""`evenhand grid status`: how far a grid is."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.cli.options import json_option

__all__ = ["status"]


@click.command(short_help="How far a grid is: done, running, failed, waiting, time left.")
@click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
@json_option
def status(folder: Path, as_json: bool) -> None:
    """How far the grid in DIR is: cells done, running, failed and waiting, and the time left.

    It may be asked at any time, from any machine that sees the folder, and changes nothing.
    The time left goes by the mean of the cells done in each group and the workers seen at work.

    \b
    Examples:
      evenhand grid status out
      watch evenhand grid status out
      evenhand grid status out --json
    """
    from evenhand.grid.status import status as look

    found = look(folder)
    if as_json:
        from evenhand.cli.output import print_json

        print_json(command="grid status", folder=str(folder), **found.as_dict())
        return
    from evenhand.cli.grid.tables import print_status

    print_status(folder, found)
