"""`evenhand vectors debias`: reduce bias and measure again."""

from __future__ import annotations

from typing import Any

import click

from evenhand.cli.options import (
    case_option,
    json_option,
    load_vectors,
    output_option,
    prob_option,
    seed_option,
    source_argument,
)

__all__ = ["debias"]


@click.command(short_help="Reduce a topic's bias, then measure again.")
@source_argument
@click.option("--topic", default="gender", show_default=True, help="A topic or your .toml file.")
@click.option(
    "--method", type=click.Choice(["hard", "soft", "inlp"]), default="hard", show_default=True,
    help="hard: project out and equalise; soft: a linear map; inlp: against a linear probe.",
)  # fmt: skip
@click.option("-k", type=int, help="hard, soft: dimensions of bias (default: classes - 1).")
@click.option("--lam", type=float, help="soft: weight of the bias term (default: 0.2).")
@click.option(
    "--scale", type=click.Choice(["sum", "mean"]),
    help="soft: terms summed as published (default), or each a mean: lam works at any size.",
)  # fmt: skip
@click.option(
    "--neutralize", type=click.Choice(["all", "stereotypes"]),
    help="hard, soft: what becomes neutral: every word (default) or the topic's stereotypes.",
)  # fmt: skip
@output_option(
    "Write the vectors here: .txt or .vec word2vec text, .bin binary, .npz ours; .gz of text."
)
@click.option("--format", "form", help="word2vec, word2vec-binary, glove or npz; else by ending.")
@case_option
@seed_option
@prob_option
@json_option
def debias(
    source: str,
    topic: str,
    output: str | None,
    form: str | None,
    case: str,
    as_json: bool,
    **options: Any,
) -> None:
    """Reduce a topic's bias, then measure again: the same measures, where bias hides, the cost.

    \b
    Example:  evenhand vectors debias glove --topic gender --method hard -o fair.bin
    """
    from evenhand.cli.output import comparisons_table, measurements_table, print_json
    from evenhand.lexicon import topic as read_topic
    from evenhand.vectors.export import format_of
    from evenhand.vectors.mitigation import mitigate

    asked = read_topic(topic)
    if output:
        format_of(output, form)
    v = load_vectors(source, case)
    done = mitigate(v, asked, **options)
    notes = list(done.debiased.notes)
    if output:
        notes += done.debiased.vectors.save(output, form)
    if as_json:
        print_json(output=output, **done.as_dict())
        return
    comparisons_table(f"{done.debiased.vectors.name}: {topic}", done.measures)
    comparisons_table("Where it hides (words most tied to each class, none fitted on)", done.hiding)
    measurements_table("What is kept of the vectors' use", done.utility)
    for note in notes:
        click.echo(f"note: {note}")
    if done.debiased.left_out:
        click.echo(f"left out, no vector: {', '.join(done.debiased.left_out)}")
    if output:
        click.echo(f"{len(v):,} words written to {output}")
