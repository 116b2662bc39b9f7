"""`evenhand masked score`: the gender a model predicts where a pronoun was masked."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.declared import configure, declared_options
from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import format_option, json_option, output_option, prob_option, seed_option
from evenhand.masked.metrics.pronouns import Pronouns

if TYPE_CHECKING:
    from evenhand.masked.model import Model
    from evenhand.results import Comparison, Estimate, Measurement


@click.command("score", short_help="The gender a model predicts where a pronoun was masked.")
@click.argument("file", metavar="FILE|-")
@models_option
@click.option(
    "--filter",
    "filtered",
    is_flag=True,
    help="FILE is plain text, one sentence per line: score what `evenhand text filter` accepts.",
)
@click.option("--keep-someone", is_flag=True, help='With --filter: accept "someone" too.')
@declared_options(Pronouns)
@output_option("Write every sentence's score here: .csv, .jsonl or .parquet.")
@click.option(
    "--figures",
    metavar="FOLDER",
    type=click.Path(file_okay=False, path_type=Path),
    help="Draw the distribution of the scores, and the differences of several models.",
)
@format_option
@running_options
@prob_option
@seed_option
@json_option
def score(
    file: str,
    models: tuple[str, ...],
    filtered: bool,
    keep_someone: bool,
    output: str | None,
    figures: Path | None,
    formats: tuple[str, ...],
    device: str,
    dtype: str,
    int8: bool,
    cache: str | None,
    prob: float,
    seed: int,
    as_json: bool,
    **options: Any,
) -> None:
    """Score masked sentences: bias = P(male) / (P(male) + P(female)), 1 male, 0 female.

    FILE has what `evenhand text filter` wrote (JSON lines with "masked"), or text with one [MASK]
    per line, or with --filter plain text. P is the probability of the likeliest word of that gender
    in the full vocabulary or, as published by Ye et al. (2021), among the --top-k likeliest words,
    where a gender without a word counts 0. A repeated sentence counts once. Intervals come from a
    bootstrap over sentences. With -o or --cache the same command resumes after a break.

    \b
    Examples:
      evenhand text filter sentences.txt -o biased.jsonl
      evenhand masked score biased.jsonl -o items.csv
      evenhand masked score biased.jsonl --model mini --model ./tuned --figures out
      evenhand masked score sentences.txt --filter --keep-someone --figures out
      echo "[MASK] waves at the driver." | evenhand masked score - --json
    """
    from evenhand.instruments import Run
    from evenhand.masked.metrics.pronouns import pronouns_of_file
    from evenhand.text.structural import Filter

    instrument = configure(Pronouns, options)
    if keep_someone and not filtered:
        raise click.UsageError("--keep-someone goes with --filter")
    keep = Filter(someone=keep_someone) if filtered else None
    loaded = _load(tuple(dict.fromkeys(models)), device, dtype, int8)
    with scoring_bar("scoring", " sentences") as progress:
        run = Run(seed=seed, prob=prob, cache=open_cache(cache), progress=progress)
        results = pronouns_of_file(loaded, file, instrument, run, output=output, keep=keep)
    comparisons = _compare(results)
    if as_json:
        from evenhand.cli.output import print_json

        print_json(
            command="masked score",
            file=file,
            output=output,
            measurements=results,
            comparisons=comparisons,
        )
    else:
        _print(results, comparisons)
    if figures is not None:
        _draw(results, comparisons, figures, formats)


def _compare(results: Sequence[Measurement]) -> list[Comparison]:
    """Every two models, with p corrected for the number of comparisons."""
    from evenhand.statistics.tests import holm

    comparisons = [Pronouns.compare(first, second) for first, second in combinations(results, 2)]
    corrected = holm([c.p_value for c in comparisons if c.p_value is not None])
    return [
        replace(c, details={**c.details, "p_holm": p})
        for c, p in zip(comparisons, corrected, strict=True)
    ]


def _load(sources: Sequence[str], device: str, dtype: str, int8: bool) -> list[Model]:
    """The models; those of one name are distinguished by how they were given."""
    loaded = [load_model(source, device, dtype, int8) for source in sources]
    names = Counter(model.name for model in loaded)
    return [
        replace(model, name=source) if names[model.name] > 1 else model
        for model, source in zip(loaded, sources, strict=True)
    ]


def _draw(
    results: Sequence[Measurement],
    comparisons: Sequence[Comparison],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    from evenhand.charts import save_charts
    from evenhand.report.masked import score_charts

    charts = score_charts(results, comparisons)
    save_charts(charts.charts, folder, formats)
    for name, reason in charts.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)


def _print(results: Sequence[Measurement], comparisons: Sequence[Comparison]) -> None:
    from evenhand.cli.output import p_text, table

    settings, prob = results[0].details["settings"], results[0].prob
    delta, top = settings["delta"], f"top {settings['top_k']}"
    table(
        "Pronoun score: how many sentences (and their mean score)",
        ("model", "by", "n", "male", "female", "neutral", "undecided", "mean", "interval", "p"),
        (
            (m.subject, name, *_cells(part))
            for m in results
            for name, part in ((top, m.part(top, "vocabulary")), ("full vocabulary", m))
        ),
    )
    click.echo(
        f"score: P(male)/(P(male)+P(female)). male above {0.5 + delta:g}, female below "
        f"{0.5 - delta:g}; undecided: no gender word of at least {settings['threshold']:g}. mean: "
        f"over decided sentences, {prob:.0%} interval; p: as many above .5 as below (sign test)."
    )
    _remarks(results, top)
    table(
        "By the role of the pronoun in the sentence",
        ("model", "role", "n", top, "full vocabulary, all sentences"),
        (
            (
                m.subject,
                part.query,
                str(part.n),
                _span(part.part(top).estimate),
                _span(part.estimate),
            )
            for m in results
            for part in m.select("slot")
        ),
    )
    if comparisons:
        table(
            "Models on the same sentences: difference of the score, paired",
            ("models", "n", "full vocabulary", "p", "decided by both", top),
            (
                (
                    f"{c.after.subject} - {c.before.subject}",
                    str(c.paired),
                    _span(c.change),
                    p_text(c.details["p_holm"]),
                    str(c.details["decided"]["both"]),
                    _span(c.parts[0].change),
                )
                for c in comparisons
            ),
        )
        click.echo("p: sign test on the full-vocabulary differences, corrected (Holm).")


def _remarks(results: Sequence[Measurement], top: str) -> None:
    """What was left out or needs a comment, one line each."""
    for m in results:
        one_sided = sum(m.part(top, "vocabulary").details["one_sided"].values())
        if one_sided:
            click.echo(
                f"{m.subject}: only one gender is among the {top} (the other counts 0) in "
                f"{one_sided} of the sentences."
            )
        for reason in m.left_out[:10]:
            click.echo(f"{m.subject}: left out: {reason}")
        if len(m.left_out) > 10:
            click.echo(f"{m.subject}: left out: {len(m.left_out) - 10} more (see --json)")
        for note in m.notes:
            click.echo(f"{m.subject}: {note}")
    details = results[0].details
    if details["filtered"]:
        click.echo(f"sentences that the structural filter left out: {details['filtered']:,}")
    if details["duplicates"]:
        click.echo(f"repeated sentences, which count once: {details['duplicates']}")


def _cells(m: Measurement) -> tuple[str, ...]:
    from evenhand.cli.output import number, p_text

    groups = []
    for verdict in ("male", "female", "neutral"):
        part = m.part(verdict, "verdict")
        count = part.details["count"]
        mean = part.part("mean score").value
        groups.append(f"{count} ({number(mean)})" if count else "0")
    return (
        str(m.details["sentences"]),
        *groups,
        str(m.part("undecided", "verdict").details["count"]),
        number(m.value),
        f"[{number(m.low)}, {number(m.high)}]",
        p_text(m.p_value),
    )


def _span(estimate: Estimate) -> str:
    from evenhand.cli.output import number

    return f"{number(estimate.value)} [{number(estimate.low)}, {number(estimate.high)}]"
