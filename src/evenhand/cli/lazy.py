"""A click group whose commands are imported when they are used, so that --help is fast."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from evenhand.registry import Registry


class LazyGroup(click.Group):
    """A group of names and the locations ("module:attribute") of their commands.

    With `helps`, the short help of each command by name, `--help` imports none of them.
    """

    def __init__(
        self,
        *args: Any,
        places: Mapping[str, str],
        helps: Mapping[str, str] | None = None,
        **keywords: Any,
    ) -> None:
        super().__init__(*args, **keywords)
        self.places = Registry("command", places)
        self.helps = helps or {}

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        command: click.Command = self.places[cmd_name]
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        if not self.helps:
            super().format_commands(ctx, formatter)
            return
        with formatter.section("Commands"):
            formatter.write_dl(list(self.helps.items()))
