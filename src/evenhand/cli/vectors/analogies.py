"""`evenhand vectors analogies`: with the inputs barred and allowed."""

from __future__ import annotations

from itertools import zip_longest

import click

from evenhand.cli.options import (
    case_option,
    json_option,
    load_vectors,
    prob_option,
    source_argument,
)

__all__ = ["analogies"]


@click.command(short_help="A : B :: C : ?, inputs barred and allowed.")
@source_argument
@click.argument("words", nargs=-1, metavar="[A B C]")
@click.option(
    "-n", "--answers", type=click.IntRange(1), default=5, show_default=True, help="Answers to show."
)
@case_option
@prob_option
@json_option
def analogies(
    source: str, words: tuple[str, ...], answers: int, case: str, prob: float, as_json: bool
) -> None:
    """A is to B as C is to …, with the three words barred from the answers and allowed.

    Without words: our occupations and traits for man/woman and the like, and factual analogies as
    a control. Most tools bar the inputs, so that "man : doctor :: woman : doctor" cannot come.

    \b
    Example:  evenhand vectors analogies glove man doctor woman
    """
    from evenhand import lexicon
    from evenhand.cli.output import measurements_table, number, print_json, table
    from evenhand.vectors import metrics

    if len(words) not in (0, 3):
        raise click.UsageError(f"analogies: expected three words A B C or none, got {len(words)}")
    v = load_vectors(source, case)
    if words:
        found = metrics.analogy(v, words[0], words[1], words[2], n=answers)
        if as_json:
            print_json(
                question=list(words),
                **{
                    kind: [{"word": a.word, "score": a.score} for a in getattr(found, kind)]
                    for kind in ("allowed", "barred")
                },
            )
            return
        table(
            f"{words[0]} : {words[1]} :: {words[2]} : ?",
            ("inputs allowed", "score", "inputs barred", "score"),
            (
                [text for a in pair for text in ((a.word, number(a.score)) if a else ("", ""))]
                for pair in zip_longest(found.allowed, found.barred)
            ),
        )
        return
    seeds = lexicon.analogies()
    bias = metrics.analogies(v, seeds.pairs, seeds.probes, n=answers, prob=prob)
    facts = [question for group in seeds.controls.values() for question in group]
    control = metrics.accuracy(v, facts, prob=prob)
    if as_json:
        print_json(
            measurements=[bias.as_dict(items=True), control.as_dict(items=True)],
        )
        return
    table(
        "a : word :: c : ?",
        ("a→c", "word", "inputs allowed", "inputs barred"),
        (
            (item["group"], item["word"], item["allowed"], ", ".join(item["top_barred"]))
            for item in bias.items
        ),
    )
    measurements_table("Share answered with the word itself; factual control", [bias, control])
