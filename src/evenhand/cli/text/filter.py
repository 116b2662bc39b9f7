"""`evenhand text filter`: sentences in which a gendered pronoun stands for a neutral word."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

import click

from evenhand.cli.options import json_option, output_option
from evenhand.cli.text.streaming import form_of, progress_bar, streaming_options

__all__ = ["filter_command"]


@click.command("filter", short_help="Sentences with structural bias, their pronoun masked.")
@click.argument("files", nargs=-1, metavar="[FILE…|-]")
@output_option("Write the kept sentences here instead of stdout, a JSON line each.")
@click.option(
    "--rejected", type=click.Path(dir_okay=False),
    help="Write the sentences left out here, a JSON line each, with the reason.",
)  # fmt: skip
@click.option("--funnel", is_flag=True, help="Print how many sentences each step leaves.")
@click.option(
    "--resolver", default="rules", show_default=True, metavar="NAME",
    help="Who finds the antecedent: rules, fastcoref[:MODEL], coreferee:MODEL or spacy:MODEL.",
)  # fmt: skip
@click.option("--keep-someone", is_flag=True, help='Keep antecedents such as "someone".')
@click.option("--keep-names", is_flag=True, help="Keep antecedents that are a person's name.")
@click.option(
    "--min-confidence", type=click.FloatRange(0, 1), default=0.7, show_default=True,
    help="Links the resolver is less sure of are not taken.",
)  # fmt: skip
@click.option("--sentences", "split", is_flag=True, help="Cut each document into its sentences.")
@click.option("--mask", default="[MASK]", show_default=True, help="What the pronoun becomes.")
@streaming_options
@json_option
def filter_command(
    files: tuple[str, ...],
    output: str | None,
    rejected: str | None,
    funnel: bool,
    resolver: str,
    keep_someone: bool,
    keep_names: bool,
    min_confidence: float,
    split: bool,
    mask: str,
    field: str | None,
    form: str | None,
    jobs: int,
    resume: bool,
    as_json: bool,
) -> None:
    """Keep sentences in which a gendered pronoun stands for a gender-neutral word, and mask it.

    Four steps (Ye et al. 2021): exactly one gendered pronoun; no other word that tells a sex; the
    pronoun and one other expression, not "someone", refer to the same person; the pronoun masked.
    A document is a line and holds one sentence, unless --sentences is given. With --json stdout
    has the counts of each step alone: the sentences go to -o, or nowhere.

    \b
    Examples:
      evenhand text filter sentences.txt -o biased.jsonl --funnel
      evenhand text filter news.jsonl --field body --sentences -o biased.jsonl --rejected out.jsonl
    """
    from evenhand.text.coreference import resolver as make
    from evenhand.text.corpus.pipeline import stream
    from evenhand.text.structural import Filter

    make(resolver)  # a missing package or model is told before any work
    work = Filter(
        resolver=resolver,
        someone=keep_someone,
        names=keep_names,
        min_confidence=min_confidence,
        mask=mask,
        split=split,
        log=rejected is not None,
    )
    sources = files or ("-",)
    with progress_bar(sources) as progress:
        counts = stream(
            sources,
            output or (os.devnull if as_json else "-"),
            work,
            form=form_of(sources, field, form),
            edits=rejected,
            jobs=jobs,
            resume=resume,
            progress=progress,
        )
    if as_json:
        from evenhand.cli.output import print_json

        print_json(command="text filter", output=output, resolver=resolver, **_told(counts))
    elif funnel:
        click.echo(_table(counts), err=output is None)
    elif output is not None or sys.stderr.isatty():
        told = f"{counts['kept']:,} of {counts['read']:,} sentences kept"
        click.echo(told + (f" → {output}" if output else ""), err=True)


def _told(counts: Mapping[str, int]) -> dict[str, Any]:
    """The counts of the steps, then the reasons."""
    from evenhand.text.structural import REASONS, STEPS

    reasons = {reason: counts.get("reason:" + reason, 0) for reason in REASONS}
    return {**{step: counts.get(step, 0) for step in STEPS}, "reasons": reasons}


def _table(counts: Mapping[str, int]) -> str:
    """The funnel for reading: each step, what it leaves, and why the rest went."""
    from evenhand.text.structural import REASONS, STEP_OF, STEPS

    names = ("sentences read", "one gendered pronoun", "no other sex indicator", "linked", "kept")
    read = max(counts.get("read", 0), 1)
    lines = []
    for step, name in zip(STEPS, names, strict=True):
        left = counts.get(step, 0)
        lines.append(f"{name:<24}{left:>12,}  {left / read:>7.2%}")
        for reason, at in STEP_OF.items():
            if at == step and counts.get("reason:" + reason):
                number = counts["reason:" + reason]
                lines.append(f"    {-number:>+12,}  {REASONS[reason]}")
    return "\n".join(lines)
