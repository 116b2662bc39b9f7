"""`evenhand report`: write the page again from saved results, or compare audits."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.cli.commands import Command
from evenhand.cli.options import output_option
from evenhand.cli.output import say


@click.command(cls=Command, short_help="Write the page of an audit again, or compare audits.")
@click.argument("folders", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@output_option("The page of the comparison of several audits; by default comparison.html.")
def report(folders: tuple[Path, ...], output: str | None) -> None:
    """Write report.html, its figures and the cards again from what an audit saved in DIR.

    With several folders, write one page with the audits side by side: what differs in their
    set-up, the verdicts, each measure with its interval, and the differences, paired where both
    measured the same words. The cards are model_card.md (a block for a Hugging Face model card),
    data_card.md and summary.md.

    \b
    Examples:
      evenhand report audit-out
      evenhand report before after -o compared.html
    """
    if len(folders) > 1:
        from evenhand.report.comparison import write_comparison

        say(f"comparison: {write_comparison(folders, output or 'comparison.html')}")
        return
    if output is not None:
        raise click.UsageError("--out is for the comparison of several audits")
    from evenhand.report import write_report
    from evenhand.report.cards import write_cards

    page, *figures = write_report(folders[0])
    cards = write_cards(folders[0])
    say(f"{len(figures)} figures and {', '.join(card.name for card in cards)} written")
    say(f"report: {page}")
