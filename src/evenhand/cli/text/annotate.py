"""`evenhand text annotate`: sheets for annotators, and their verdicts back."""

from __future__ import annotations

import click

from evenhand.cli.options import json_option, output_option, prob_option, seed_option

__all__ = ["annotate"]


@click.group(short_help="Sheets for annotators, and their verdicts back.")
def annotate() -> None:
    """Have people judge what the filter kept: write a sheet, read the filled sheets back."""


@annotate.command(short_help="Write a sheet from the filter's output.")
@click.argument("filtered")
@output_option("The sheet to write, a CSV.")
@click.option("--sample", type=click.IntRange(1), help="Only so many sentences, at random.")
@seed_option
def sheet(filtered: str, output: str | None, sample: int | None, seed: int) -> None:
    """Write a CSV with a row a sentence and an empty column verdict, to be filled with yes or no.

    FILTERED is what `evenhand text filter` wrote. Every annotator gets a copy of the same sheet.

    \b
    Example:  evenhand text annotate sheet kept.jsonl -o sheet.csv --sample 100
    """
    from evenhand.text.annotation import write_sheet

    if output is None:
        raise click.UsageError("sheet: expected -o and the name of the sheet to write")
    count = write_sheet(filtered, output, sample=sample, seed=seed)
    click.echo(f"{count:,} sentences written to {output}")


@annotate.command(short_help="Majority, accuracy and agreement of filled sheets.")
@click.argument("sheets", nargs=-1, required=True, metavar="SHEET...")
@click.option(
    "--majority", type=click.IntRange(1), help="Yes needed (default: more than half of the sheets)."
)
@click.option("--filtered", help="The filter's JSONL: check the ids, carry all its fields.")
@output_option("Write the sentences with their verdicts as JSONL.")
@prob_option
@json_option
def read(
    sheets: tuple[str, ...],
    majority: int | None,
    filtered: str | None,
    output: str | None,
    prob: float,
    as_json: bool,
) -> None:
    """Read filled sheets, one an annotator, and say how many sentences are truly structural.

    \b
    Example:  evenhand text annotate read ann.csv ben.csv cleo.csv dan.csv -o judged.jsonl
    """
    from evenhand.cli.output import number, print_json, table
    from evenhand.text.annotation import read_sheets
    from evenhand.text.corpus.pipeline import check

    if output:
        check([*sheets, *([filtered] if filtered else [])], output)
    found = read_sheets(sheets, majority=majority, filtered=filtered, prob=prob)
    if output:
        found.save(output)
    if as_json:
        print_json(**found.as_dict())
        return
    table(
        "Annotators",
        ("annotator", "yes", "no", "empty", "absent"),
        ([name, *(f"{n:,}" for n in tally.values())] for name, tally in found.annotators.items()),
    )
    table(
        "Verdict of the majority, and agreement",
        ("measure", "value", "interval", "n"),
        (
            (m.metric, number(m.value), f"[{number(m.low)}, {number(m.high)}]", f"{m.n:,}")
            for m in (found.accuracy, *found.agreement)
        ),
    )
    counts = found.counts
    click.echo(
        f"{counts['sentences']:,} sentences: {counts['yes']:,} structural (yes by "
        f"{found.majority} of {len(sheets)} or more), {counts['no']:,} not, "
        f"{counts['undecided']:,} undecided for lack of verdicts. interval: {prob:.0%}."
    )
    for note in [*found.notes, *(note for m in found.agreement for note in m.notes)]:
        click.echo(f"note: {note}")
    if output:
        click.echo(f"{counts['sentences']:,} sentences written to {output}")
