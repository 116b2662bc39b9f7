"""`evenhand text undo`: the input back from the output and its edits."""

from __future__ import annotations

import click

from evenhand.cli.options import output_option
from evenhand.cli.text.streaming import form_of, form_options

__all__ = ["undo"]


@click.command(short_help="The input back, from the output and its edits.")
@click.argument("rewritten", type=click.Path(exists=True, dir_okay=False))
@click.argument("edits", type=click.Path(exists=True, dir_okay=False))
@output_option("Where the input as it was is written; required.")
@form_options
@click.option("--append", is_flag=True, help="The output was written with --append.")
def undo(
    rewritten: str,
    edits: str,
    output: str | None,
    field: str | None,
    form: str | None,
    append: bool,
) -> None:
    """Make the edits of `--edits` backwards: byte for byte what was read.

    \b
    Example:
      evenhand text swap in.txt -o out.txt --edits edits.jsonl
      evenhand text undo out.txt edits.jsonl -o back.txt
    """
    from evenhand.text.corpus.pipeline import restore

    if output is None:
        raise click.UsageError("-o is needed: where should the input be written?")
    cut = form_of([rewritten], field, form)
    count = restore(rewritten, edits, output, form=cut, append=append)
    click.echo(f"{count:,} documents as they were → {output}", err=True)
