"""`evenhand report`: write the page again from saved results, or compare audits."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.cli.commands import Command
from evenhand.cli.options import json_option, output_option
from evenhand.cli.output import print_json, say
from evenhand.cli.outputs import check_output
from evenhand.cli.progress import is_set


@click.command(cls=Command)
@click.argument("folders", nargs=-1, required=True, metavar="DIR…", type=click.Path(path_type=Path))
@click.option(
    "--label",
    "labels",
    multiple=True,
    metavar="A=TEXT",
    help="What to call an audit of several, by its letter in the order given; repeatable.",
)
@output_option(
    "The comparison of several audits: a page, or by the end of its name CSV or JSON; by default "
    "comparison.html."
)
@json_option
def report(folders: tuple[Path, ...], labels: tuple[str, ...], output: str | None) -> None:
    """Write report.html, its figures and the cards again from what an audit saved in DIR.

    With several folders, compare the audits with the first: in how many measures each is less or
    more biased, the verdicts, each measure with its interval, and the differences, paired where
    both measured the same words. A file that ends in .csv has one row per measure and audit. The
    cards are model_card.md (a block for a Hugging Face model card), data_card.md and summary.md.

    \b
    Examples:
      evenhand report audit-out
      evenhand report before after -o compared.html
      evenhand report v1 v2 --label A=before --label B=after -o compared.csv
      evenhand report before after --json
    """
    if len(folders) > 1:
        from evenhand.report.comparison import compare_audits, write_comparison

        compared = compare_audits(folders, dict(_label(text) for text in labels))
        written = None
        if output is not None or not is_set("json"):
            target = output or "comparison.html"
            check_output(Path(target), list(folders))
            written = write_comparison(compared, target)
        if print_json(**compared.to_dict()):
            return
        for sentence in compared.findings:
            say(sentence)
        say(f"comparison: {written}")
        return
    for option, given in (("--out", output), ("--label", labels), ("--json", is_set("json"))):
        if given:
            raise click.UsageError(f"{option} is for the comparison of several audits")
    from evenhand.report import write_report
    from evenhand.report.cards import write_cards

    page, *figures = write_report(folders[0])
    cards = write_cards(folders[0])
    say(f"{len(figures)} figures and {', '.join(card.name for card in cards)} written")
    say(f"report: {page}")


def _label(text: str) -> tuple[str, str]:
    letter, equals, label = text.partition("=")
    if not equals:
        raise click.UsageError(f"--label: expected A=TEXT, got '{text}'")
    return letter.strip().upper(), label.strip()
