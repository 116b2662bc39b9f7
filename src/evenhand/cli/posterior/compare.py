"""`evenhand posterior compare`: before against after, paired by word and attribute."""

from __future__ import annotations

from pathlib import Path

import click

from evenhand.cli.figures import format_option, save_figures
from evenhand.cli.options import folder_option, json_option, seed_option
from evenhand.cli.posterior.shared import (
    draws_option,
    print_dropped,
    prior_option,
    prob_option,
    save_named,
    shown,
)

__all__ = ["compare"]


@click.command(short_help="Before against after debiasing.")
@click.argument("before", type=click.Path())
@click.argument("after", type=click.Path())
@draws_option
@prior_option
@folder_option("Folder for results.json, words.csv and the figures.")
@format_option
@seed_option
@prob_option
@json_option
def compare(
    before: str,
    after: str,
    draws: int,
    priors: tuple[str, ...],
    output: Path | None,
    formats: tuple[str, ...],
    seed: int,
    prob: float,
    as_json: bool,
) -> None:
    """Two tables of the same words, before and after debiasing, with intervals on the change.

    The model crossed is fitted to the differences of the cells that both tables have, so that the
    interval on the change is paired by protected word and attribute.

    \b
    Example:  evenhand posterior compare before.csv after.csv
    """
    from evenhand.cli.output import print_json, table
    from evenhand.posterior.contrasts import compare_tables
    from evenhand.posterior.models import Priors
    from evenhand.results import document, save_json

    change = compare_tables(
        before, after, priors=Priors().update(priors), draws=draws, seed=seed
    )  # fmt: skip
    if output:
        output.mkdir(exist_ok=True)
        save_named(output / "words.csv", change.words(prob))
        save_json(output / "results.json", document(**change.as_dict(prob)))
        from evenhand.report.posterior import change_charts

        save_figures(change_charts(change, prob), output, formats)
    if as_json:
        print_json(**change.as_dict(prob))
        return
    for title, parts in (
        ("Mean distance by connection", change.levels(prob)),
        ("Contrasts", change.contrasts(prob)),
    ):
        table(
            f"{title}, {change.change.table.rows:,} pairs of words ({prob:.0%})",
            ("", "when", "mean", "sd", "interval", "P(< 0)"),
            (
                (name, when, *shown(summary))
                for name, summaries in parts.items()
                for when, summary in summaries.items()
            ),
        )
    table(
        f"Change of each protected word ({prob:.0%})",
        ("word", "to", "mean", "sd", "interval", "P(< 0)"),
        ((row.word, row.of, *shown(row.summary)) for row in change.words(prob)),
    )
    for source, which in ((before, "before"), (after, "after")):
        print_dropped(source, change.dropped[which])
        if change.unpaired[which]:
            click.echo(f"only in {source}, left out: {change.unpaired[which]:,} rows")
    for note in change.notes:
        click.echo(f"note: {note}")
