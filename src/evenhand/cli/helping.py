"""`evenhand help`: the overview, or the help of a command."""

from __future__ import annotations

import click

from evenhand.cli.commands import Command


@click.command("help", cls=Command)
@click.argument("words", nargs=-1, metavar="[COMMAND…]")
def show_help(words: tuple[str, ...]) -> None:
    """Print the overview of all commands, or the help of a command or of a metric.

    \b
    Examples:
      evenhand help
      evenhand help measure weat
    """
    root = click.get_current_context().find_root()
    root.command.main([*words, "--help"], prog_name="evenhand", standalone_mode=False)
