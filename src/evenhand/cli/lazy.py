"""A click group whose commands are imported when they are asked for, so that --help is instant."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import click

from evenhand.registry import Registry

__all__ = ["LazyGroup"]


class LazyGroup(click.Group):
    """A group made of names and the places ("module:attribute") of their commands."""

    def __init__(self, *args: Any, places: Mapping[str, str], **keywords: Any) -> None:
        super().__init__(*args, **keywords)
        self.places = Registry("command", places)

    def list_commands(self, ctx: click.Context) -> list[str]:  # noqa: ARG002
        return list(self.places)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:  # noqa: ARG002
        command: click.Command = self.places[cmd_name]
        return command
