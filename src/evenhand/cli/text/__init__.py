"""`evenhand text …`: rewrite, filter and count text."""

from __future__ import annotations

import click

from evenhand.cli.lazy import LazyGroup

__all__ = ["text"]


@click.group(
    cls=LazyGroup,
    short_help="Rewrite, filter and count text.",
    places={
        "swap": "evenhand.cli.text.rewriting:swap",
        "substitute": "evenhand.cli.text.rewriting:substitute",
        "neutralize": "evenhand.cli.text.rewriting:neutralize",
        "anonymize": "evenhand.cli.text.rewriting:anonymize",
        "undo": "evenhand.cli.text.undo:undo",
        "filter": "evenhand.cli.text.filter:filter_command",
        "odds": "evenhand.cli.text.odds:odds",
        "annotate": "evenhand.cli.text.annotate:annotate",
    },
)
def text() -> None:
    """Text: swap, substitute, neutralize, anonymize, undo, filter, odds, annotate."""
