"""`evenhand masked generate`: sentences with implicit bias, made with the model under test."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from evenhand.cli.masked.shared import (
    load_model,
    model_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import json_option, output_option, prob_option, seed_option

if TYPE_CHECKING:
    from collections.abc import Iterator

    from evenhand.masked.generation import Generation, Group
    from evenhand.results import Estimate

__all__ = ["generate"]


@click.command("generate", short_help="Edit sentences until a model's gender bias shows.")
@click.argument("file", metavar="FILE|-")
@model_option
@click.option(
    "--direction", type=click.Choice(["own", "both", "male", "female"]), default="own",
    show_default=True, help="Which way to push: the way each seed leans, both, or one.",
)  # fmt: skip
@click.option("--limit", type=click.IntRange(1), metavar="N", help="Use the first N seeds alone.")
@click.option(
    "--edits", type=click.IntRange(1, 3), default=2, show_default=True,
    help="Replace at most so many words.",
)  # fmt: skip
@click.option(
    "--beam", type=click.IntRange(1), default=2, show_default=True,
    help="Sentences gone on from after each edit.",
)  # fmt: skip
@click.option(
    "--fills", type=click.IntRange(1), default=20, show_default=True,
    help="Words tried at a place, the model's likeliest.",
)  # fmt: skip
@click.option(
    "--tried", type=click.IntRange(1), default=32, show_default=True,
    help="Candidates of a sentence that are scored: those that should move it most.",
)  # fmt: skip
@click.option(
    "--fluency", type=click.FloatRange(1), default=1.1, show_default=True, metavar="FACTOR",
    help="How much less likely the words may become, on (geometric) average.",
)  # fmt: skip
@click.option("--edit-antecedent", is_flag=True, help="Replace the antecedent's head as well.")
@click.option("--sentences", "split", is_flag=True, help="Cut lines of text into sentences.")
@click.option(
    "--resolver", default="rules", show_default=True, metavar="NAME",
    help="Who finds the antecedent, as for `text filter`.",
)  # fmt: skip
@click.option("--keep-someone", is_flag=True, help='Take seeds about "someone" too.')
@click.option(
    "--control/--no-control", default=True, show_default=True,
    help="Make random edits of the same seeds to compare with.",
)  # fmt: skip
@click.option(
    "--judge", "judges", multiple=True, metavar="SRC",
    help="A model that reads the sentences too. May be repeated.",
)  # fmt: skip
@click.option(
    "--beyond", type=click.FloatRange(0, 0.5, max_open=True), default=0.4, show_default=True,
    help="Count sentences whose bias is at least so far from .5 on the wanted side.",
)  # fmt: skip
@output_option("Write the sentences here instead of stdout, a JSON line each.")
@running_options
@prob_option
@seed_option
@json_option
def generate(
    file: str,
    model: str,
    direction: str,
    limit: int | None,
    edits: int,
    beam: int,
    fills: int,
    tried: int,
    fluency: float,
    edit_antecedent: bool,
    split: bool,
    resolver: str,
    keep_someone: bool,
    control: bool,
    judges: tuple[str, ...],
    beyond: float,
    output: str | None,
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    prob: float,
    seed: int,
    as_json: bool,
) -> None:
    """Edit sentences so that the model's bias, P(male) / (P(male) + P(female)), goes to one end.

    FILE has what `evenhand text filter` wrote, or text, of which the filter first takes the
    sentences in which a pronoun stands for a neutral word. One to three words are replaced by
    words that the model itself expects there. No gendered word or name enters, the sentence stays
    about as likely, and it passes the filter again with the same antecedent. The output has the
    filter's form, for `text annotate`, `masked score` and `masked finetune`, and tells seed,
    edits, and bias before and after.

    The control replaces as many words of each seed at random. The search maximises the score of
    its own model: give others with --judge to see what carries over. With --json stdout has the
    summary alone: the sentences go to -o, or nowhere.

    \b
    Examples:
      evenhand masked generate biased.jsonl -o pushed.jsonl
      evenhand masked generate sentences.txt --direction both --edits 3 -o pushed.jsonl
      evenhand masked generate biased.jsonl --judge ./bert-base -o pushed.jsonl --json
    """
    from evenhand.masked.generation import Settings, read_seeds
    from evenhand.masked.generation import generate as made_by
    from evenhand.text.coreference import resolver as make
    from evenhand.text.structural import Filter

    make(resolver)  # a missing package or model is told before any work
    chosen = Filter(resolver=resolver, someone=keep_someone)
    seeds = read_seeds(file, filter=chosen, split=split, limit=limit)
    searched = load_model(model, device, dtype, int8)
    readers = [load_model(judge, device, dtype, int8) for judge in judges]
    with scoring_bar("searching", " questions") as progress:
        found = made_by(
            searched,
            seeds,
            direction=direction,  # type: ignore[arg-type]
            settings=Settings(
                edits=edits, beam=beam, fills=fills, tried=tried, fluency=fluency,
                antecedent=edit_antecedent,
            ),
            filter=chosen,
            control=control,
            judges=readers,
            beyond=beyond,
            prob=prob,
            seed=seed,
            cache=open_cache(cache),
            progress=progress,
        )  # fmt: skip
    if output is not None:
        found.save(output)
    if as_json:
        from evenhand.cli.output import print_json

        print_json(command="masked generate", file=file, output=output, **found.as_dict())
        return
    if output is None:
        click.echo(found.lines(), nl=False)
        if sys.stderr.isatty():
            click.echo(_told(found), err=True)
        return
    click.echo(f"{_told(found)} → {output}")
    _print(found)


def _told(found: Generation) -> str:
    from evenhand.masked.generation import REASONS

    told = f"{len(found.sentences):,} sentences from {len(found.outcomes):,} searches"
    for reason, n in found.nothing.items():
        told += f"\n  nothing {n:,}×: {REASONS[reason]}"
    left = ", ".join(f"{reason} {n:,}" for reason, n in found.left_out.items())
    return told + (f"\n  of {found.read:,} read no seeds: {left}" if left else "")


def _print(found: Generation) -> None:
    """The distance from .5, by model, direction and kind of sentence."""
    from evenhand.cli.output import table

    headers = (
        "model", "toward", "sentences", "n", "|bias - .5|", "top k", "wanted side", "moved",
        "beyond",
    )  # fmt: skip
    table(
        "bias of the seeds, of the sentences found and of random edits",
        headers,
        (
            (reading.model if first else "", group.toward if first else "", *row)
            for reading in found.readings
            for group in reading.groups
            for first, row in _rows(group)
        ),
    )
    for reading in found.readings:
        for group in reading.groups:
            if group.against_control is None:
                continue
            by = group.against_control
            click.echo(
                f"{reading.model}, toward {group.toward}: found - random {_estimate(by.distance)} "
                f"in |bias - .5| (p = {by.distance_p:.2g}), {_estimate(by.push)} toward the wanted "
                f"side (p = {by.push_p:.2g}), paired over {group.n:,} seeds"
            )
    rule = found.rule
    click.echo(
        f"intervals: {rule.prob:.0%}, bootstrap over seeds; p: sign test. wanted side: how far the "
        "bias lies beyond .5 on the side pushed to. moved: share of seeds whose bias went "
        f"{rule.gain:g} or more to that side; beyond: {rule.beyond:g} or more from .5 there. A "
        "seed that yielded nothing counts with its own sentence."
    )


def _rows(group: Group) -> Iterator[tuple[bool, tuple[str, ...]]]:
    arms = (("seeds", group.seed), ("found", group.search), ("random", group.control))
    for name, arm in arms:
        if arm is not None:
            yield (
                name == "seeds",
                (
                    name,
                    f"{group.n:,}",
                    _estimate(arm.distance),
                    _estimate(arm.distance_top),
                    _estimate(arm.push),
                    _estimate(arm.moved, 2) if name != "seeds" else "",
                    _estimate(arm.beyond, 2),
                ),
            )


def _estimate(value: Estimate, digits: int = 3) -> str:
    from evenhand.cli.output import number

    low, high = number(value.low, digits), number(value.high, digits)
    return f"{number(value.value, digits)} [{low}, {high}]"
