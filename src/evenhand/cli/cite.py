"""`evenhand cite`: how to cite Evenhand, and whom to cite for a measure."""

from __future__ import annotations

import click

from evenhand import __version__
from evenhand.citations import bibtex, keys_of
from evenhand.cli import completion
from evenhand.cli.commands import Command
from evenhand.cli.options import json_option
from evenhand.cli.output import print_json, say
from evenhand.errors import UnknownNameError
from evenhand.instruments import all_declarations


@click.command(cls=Command)
@click.argument("metrics", metavar="[METRIC]…", nargs=-1, type=completion.METRIC)
@json_option
def cite(metrics: tuple[str, ...]) -> None:
    """Print the BibTeX entry of Evenhand, and those of the sources of each measure that is named.

    \b
    Examples:
      evenhand cite
      evenhand cite weat crows tpr-gap
    """
    sources = {about.name: about.source for about in all_declarations() if about.source}
    for name in metrics:
        if name not in sources:
            raise UnknownNameError("metric", name, sources)
    chosen = {name: sources[name] for name in metrics}
    keys = dict.fromkeys(key for source in chosen.values() for key in keys_of(source))
    if print_json(
        command="cite",
        bibtex=bibtex(["evenhand"]),
        version=__version__,
        sources=chosen,
        references=bibtex(keys),
    ):
        return
    click.echo(bibtex(["evenhand", *keys]))
    for name, source in chosen.items():
        say(f"{name}: {source}")
    if not metrics:
        say("\nCite the authors of each measure that you report too: evenhand cite METRIC …")
