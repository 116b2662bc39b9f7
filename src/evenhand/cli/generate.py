"""`evenhand lab generate`: sentences edited until a model's gender bias shows."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import estimate, print_json, print_measurements, say
from evenhand.cli.progress import progress_bar
from evenhand.instruments import Run
from evenhand.models.generation.search import DIRECTIONS, GenerateSettings
from evenhand.text.structural import Filter

if TYPE_CHECKING:
    from evenhand.models.generation.search import Generation
    from evenhand.results import Measurement


@click.command(cls=Command)
@click.argument("file", metavar="FILE|-", type=completion.TEXT_FILE)
@opt.model_option()
@click.option(
    "--toward",
    "direction",
    type=click.Choice(DIRECTIONS),
    default="own",
    help="Direction of the bias: the way each seed leans (own), both, or one gender.",
)
@opt.limit_option(type=click.IntRange(1))
@opt.declared_options(GenerateSettings)
@opt.declared_options(Filter, only=["resolver", "someone", "split"])
@click.option(
    "--control-edits/--no-control-edits",
    "control",
    default=True,
    help="Compare with random edits of the same seeds.",
)
@click.option(
    "--judge",
    "judges",
    multiple=True,
    metavar="SRC",
    type=completion.MODEL,
    help="Another model that scores the sentences. May be repeated.",
)
@click.option(
    "--min-bias",
    "threshold",
    type=click.FloatRange(0, 0.5, max_open=True),
    default=0.4,
    help="Count sentences whose bias is at least this far from .5 toward the target side.",
)
@opt.output_option("Write the sentences here instead of stdout, as JSON lines.")
@opt.model_options
@opt.run_options
@opt.json_option
def generate(
    file: str,
    model: str,
    limit: int | None,
    judges: tuple[str, ...],
    output: str | None,
    load: opt.ModelLoader,
    run: Run,
    **options: Any,
) -> None:
    """Edit sentences to push the bias of a model, P(male) / (P(male) + P(female)), to one end.

    FILE is the output of `evenhand filter`, or text, from which the filter selects the
    sentences in which a pronoun refers to a neutral word. One to three words are replaced by words
    that the model expects there. No gendered word or name is added, the sentence stays about as
    likely, and it passes the filter again with the same antecedent. The output has the format of
    the filter, for `lab annotate`, `measure pronouns` and `finetune`, with the seed, the edits,
    and the bias before and after.

    The control replaces as many words of each seed at random. The search maximises the score of
    its own model at the pronoun of the sentence, or with --guide phrases the association of the
    clause around it (phrase WEAT); neither is evidence by itself: all sentences are
    judged by the masked pronouns of continuations ("Later [MASK] went home."), which the search
    never scores. Add other models with --judge to see whether the bias transfers. With --json
    stdout has only the summary: the sentences are written to -o, if given.

    \b
    Examples:
      evenhand lab generate biased.jsonl -o pushed.jsonl
      evenhand lab generate sentences.txt --toward both --max-edits 3 -o pushed.jsonl
      evenhand lab generate biased.jsonl --judge ./bert-base -o pushed.jsonl --json
    """
    from evenhand.models.generation.drafts import read_seeds
    from evenhand.models.generation.search import generate as run_generation
    from evenhand.text.coreference import resolver as load_resolver

    load_resolver(options["resolver"])  # report a missing package or model before any work
    chosen = opt.configure(Filter, {name: options[name] for name in ("resolver", "someone")})
    seeds = read_seeds(file, filter=chosen, split=options["split"], limit=limit)
    searched, *readers = map(load, (model, *judges))
    with progress_bar("searching", "queries") as progress:
        result = run_generation(
            searched,
            seeds,
            settings=opt.configure(GenerateSettings, options),
            filter=chosen,
            judges=readers,
            **{name: options[name] for name in ("direction", "control", "threshold")},
            prob=run.prob,
            seed=run.seed,
            cache=load.cache,
            progress=progress,
        )
    if output is not None:
        result.save(output)
    if print_json(command="masked generate", file=file, output=output, **result.to_dict()):
        return
    if output is not None:
        say(f"{_generation_text(result)} → {output}")
        _print_generation(result)
    else:
        click.echo(result.lines(), nl=False)
        if sys.stderr.isatty():
            say(_generation_text(result), err=True)


def _generation_text(result: Generation) -> str:
    from evenhand.models.generation.search import REASONS

    text = f"{len(result.sentences):,} sentences from {len(result.outcomes):,} searches"
    for reason, n in result.nothing.items():
        text += f"\n  nothing {n:,}×: {REASONS[reason]}"
    left_out = ", ".join(f"{reason} {n:,}" for reason, n in result.left_out.items())
    return text + (f"\n  of {result.read:,} read no seeds: {left_out}" if left_out else "")


def _print_generation(result: Generation) -> None:
    """The distance from .5, by model, direction and kind of sentence."""
    rule = result.rule

    def column(name: str, digits: int = 2) -> Callable[[Measurement], str]:
        return lambda arm: estimate(arm.part(name).estimate, digits)

    moved = column("moved")
    print_measurements(
        "|bias - .5| of the seeds, of the generated sentences and of random edits",
        [
            replace(arm, query=f"toward {m.query}: {arm.query}")
            for m in result.measurements
            for arm in m.select("sentences")
        ],
        label="query",
        columns={
            "score": "score",
            "top k": column("distance_top", 3),
            "target side": column("push", 3),
            "moved": lambda arm: "" if "seeds" in arm.query else moved(arm),
            "above": column("above_threshold"),
        },
        note="\nscore: of the pronoun or phrase that the search maximises, or of the masked "
        "pronouns of continuations that it never scores, which alone is evidence. intervals: "
        "bootstrap over seeds; p: sign test. target side: the distance of the bias from .5 toward "
        "the target side. moved: share of seeds whose bias moved "
        f"{rule.gain:g} or more to that side; above: {rule.threshold:g} or more from .5 on that "
        "side. A seed without a result counts as its own sentence.",
    )
    for c in result.comparisons:
        if c.query == "random":
            [push] = c.parts
            say(
                f"{c.before.subject}, toward {c.details['toward']}, {c.details['score']}: "
                "found - random "
                f"{estimate(c.change)} in |bias - .5| (p = {c.p_value:.2g}), "
                f"{estimate(push.change)} toward the target side (p = {push.p_value:.2g}), paired "
                f"over {c.paired:,} seeds"
            )
    say(result.sentence)
