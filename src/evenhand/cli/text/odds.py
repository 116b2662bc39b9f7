"""`evenhand text odds`: which classes of a corpus lean to men and which to women."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.options import json_option, output_option, prob_option

if TYPE_CHECKING:
    from evenhand.text.odds import Odds, OddsRatio

__all__ = ["odds"]


@click.command(short_help="Which classes of a corpus lean male, which female.")
@click.argument("file")
@click.option("--label", required=True, help="The column with each row's class.")
@click.option("--gender", help="The column with each row's gender.")
@click.option("--text", help="The column whose pronouns tell the gender, or are compared with it.")
@click.option("--male", multiple=True, help="A value that means male; repeatable.")
@click.option("--female", multiple=True, help="A value that means female; repeatable.")
@click.option(
    "--top", type=click.IntRange(1), default=10, show_default=True, help="Classes shown a side."
)
@click.option("--exact", is_flag=True, help="Show the exact interval in the table.")
@output_option("Write every class as .csv, or everything as .json.")
@prob_option
@json_option
def odds(
    file: str,
    label: str,
    gender: str | None,
    text: str | None,
    male: tuple[str, ...],
    female: tuple[str, ...],
    top: int,
    exact: bool,
    output: str | None,
    prob: float,
    as_json: bool,
) -> None:
    """The odds ratio of each class: its odds among men over its odds among women.

    FILE is CSV, TSV, JSONL (also as gzip, bzip2 or zstd), Parquet, or - for standard input. Gender
    comes from --gender (M/F, male/female, man/woman; --male and --female name other codes) or, with
    --text alone, from the majority of the text's pronouns. Above 1 a class leans male.

    \b
    Examples:
      evenhand text odds bios.csv --label occupation --gender gender
      evenhand text odds bios.jsonl.gz --label job --gender sex --male 0 --female 1 --json
      evenhand text odds bios.parquet --label job --text biography --top 5 -o odds.csv
    """
    from evenhand.cli.output import print_json
    from evenhand.errors import InputError
    from evenhand.text.corpus.pipeline import check
    from evenhand.text.odds import odds as measure

    if output and Path(output).suffix.lower() not in (".csv", ".json"):
        raise InputError(f"--output: expected a name ending in .csv or .json, got {output}")
    if output:
        check([file], output)
    with _waiting(f"reading {file}"):
        found = measure(file, label, gender, text, male=male, female=female, prob=prob)
    if output:
        found.save(output)
    if as_json:
        sides = [[row.label for row in side] for side in found.top(top)]
        print_json(**found.as_dict(), leaning_male=sides[0], leaning_female=sides[1])
        return
    _print(found, top, exact)
    if output:
        click.echo(f"{len(found.rows):,} classes written to {output}")


@contextmanager
def _waiting(text: str) -> Iterator[None]:
    """A sign of life on stderr where that is a terminal."""
    from rich.console import Console

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status(text):
        yield


def _print(found: Odds, top: int, exact: bool) -> None:
    from evenhand.cli.output import p_text, table

    def cells(row: OddsRatio) -> tuple[str, ...]:
        ends = (row.exact_low, row.exact_high) if exact else (row.low, row.high)
        return (
            row.label + ("*" if row.corrected else ""),
            _short(row.odds_ratio), f"[{_short(ends[0])}, {_short(ends[1])}]",
            p_text(row.p_holm), f"{row.male:,}", f"{row.female:,}",
        )  # fmt: skip

    male, female = found.top(top)
    for title, rows in (("Leaning male", male), ("Leaning female", female)):
        table(title, ("class", "odds ratio", "interval", "p", "male", "female"), map(cells, rows))
    counts = found.counts
    kind = "exact, given the margins" if exact else "normal on the log odds ratio"
    click.echo(
        f"{len(found.rows):,} classes in '{found.label}', {counts['read']:,} rows: "
        f"{counts['male']:,} male, {counts['female']:,} female, {counts['left_out']:,} left out. "
        f"Gender: {found.gender_from}."
    )
    click.echo(
        f"interval: {found.prob:.0%}, {kind}; rows taken as independent. "
        "p: Fisher's exact test, Holm-corrected over the classes."
    )
    if any(row.corrected for row in (*male, *female)):
        click.echo("*: a cell is 0; one half added to all four (the exact interval does without).")
    for reason, count in found.left_out.items():
        click.echo(f"left out: {reason}: {count:,}")
    if found.agreement is not None:
        a = found.agreement
        click.echo(
            f"pronouns agree with the column in {a.agree:,} of {a.compared:,} rows "
            f"({a.share:.2%} [{a.low:.2%}, {a.high:.2%}]); {a.undecided:,} undecided"
        )
    for note in found.notes:
        click.echo(f"note: {note}")


def _short(value: float) -> str:
    """Three digits that count, since odds ratios span powers of ten.

    >>> _short(0.02284), _short(31.07), _short(1543.2), _short(float("inf"))
    ('0.0228', '31.1', '1,543', '∞')
    """
    if value == float("inf"):
        return "∞"
    return f"{value:,.0f}" if value >= 1000 else f"{value:.3g}"
