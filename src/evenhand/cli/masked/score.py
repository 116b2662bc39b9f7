"""`evenhand masked score`: which gender a model puts at the mask of sentences that name none."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli.figures import format_option
from evenhand.cli.masked.shared import (
    load_model,
    models_option,
    open_cache,
    running_options,
    scoring_bar,
)
from evenhand.cli.options import json_option, output_option, prob_option, seed_option

if TYPE_CHECKING:
    from evenhand.masked.metrics.pronouns import PairedDifference, PronounScores
    from evenhand.masked.metrics.pronouns_scores import Part
    from evenhand.masked.metrics.pronouns_summary import Summary
    from evenhand.masked.model import Model
    from evenhand.results import Estimate

__all__ = ["score"]


@click.command("score", short_help="The gender a model puts where a pronoun was masked.")
@click.argument("file", metavar="FILE|-")
@models_option
@click.option(
    "--filter", "filtered", is_flag=True,
    help="FILE is plain text, a sentence a line: score what `evenhand text filter` keeps of it.",
)  # fmt: skip
@click.option("--keep-someone", is_flag=True, help='With --filter: "someone" is kept too.')
@click.option(
    "--top-k", type=click.IntRange(1), default=10, show_default=True,
    help="Look for gender words among the K likeliest.",
)  # fmt: skip
@click.option(
    "--delta", type=click.FloatRange(0, 0.5, max_open=True), default=0.05, show_default=True,
    help="Scores within .5 ± DELTA are neutral.",
)  # fmt: skip
@click.option(
    "--least", type=click.FloatRange(0, 1), default=0.05, show_default=True,
    help="Undecided where no gender word has this probability.",
)  # fmt: skip
@click.option(
    "--words", type=click.Choice(["all", "pronouns"]), default="all", show_default=True,
    help="What counts: pronouns and gendered nouns, or pronouns alone.",
)  # fmt: skip
@output_option("Write every sentence's score here: .csv, .jsonl or .parquet.")
@click.option(
    "--figures", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path),
    help="Draw the distribution of the scores, and the differences of several models.",
)  # fmt: skip
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
    top_k: int,
    delta: float,
    least: float,
    words: str,
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
) -> None:
    """Score masked sentences: bias = P(male) / (P(male) + P(female)), 1 male, 0 female.

    FILE has what `evenhand text filter` wrote (JSON lines with "masked"), or text with one [MASK]
    a line, or with --filter plain text. P is the probability of the likeliest word of that gender
    among the --top-k likeliest words (Ye et al. 2021); a gender without a word among them counts
    0, and the same score by the whole vocabulary stands beside it. A sentence that comes again
    counts once. Intervals come from a bootstrap over sentences. With -o or --cache the same command
    goes on after a break.

    \b
    Examples:
      evenhand text filter sentences.txt -o biased.jsonl
      evenhand masked score biased.jsonl -o items.csv
      evenhand masked score biased.jsonl --model mini --model ./tuned --figures out
      evenhand masked score sentences.txt --filter --keep-someone --figures out
      echo "[MASK] waves at the driver." | evenhand masked score - --json
    """
    from evenhand.masked.metrics.pronouns import Rule, compare, score_file
    from evenhand.text.structural import Filter

    rule = Rule(
        top_k=top_k, delta=delta, least=least, prob=prob, seed=seed,
        words="all" if words == "all" else "pronouns",
    )  # fmt: skip
    if keep_someone and not filtered:
        raise click.UsageError("--keep-someone goes with --filter")
    keep = Filter(someone=keep_someone) if filtered else None
    loaded = _load(tuple(dict.fromkeys(models)), device, dtype, int8)
    with scoring_bar("scoring", " sentences") as progress:
        scores = score_file(
            loaded, file, rule=rule, output=output, cache=open_cache(cache), progress=progress,
            keep=keep,
        )  # fmt: skip
    comparisons = compare(scores)
    if as_json:
        from evenhand.cli.output import print_json

        print_json(
            command="masked score", file=file, output=output,
            models=[told.as_dict() for told in scores],
            comparisons=[pair.as_dict() for pair in comparisons],
        )  # fmt: skip
    else:
        _print(scores, comparisons)
    if figures is not None:
        _draw(scores, comparisons, figures, formats)


def _load(sources: Sequence[str], device: str, dtype: str, int8: bool) -> list[Model]:
    """The models, those of one name told apart by how they were given."""
    from dataclasses import replace

    loaded = [load_model(source, device, dtype, int8) for source in sources]
    names = Counter(model.name for model in loaded)
    return [
        replace(model, name=source) if names[model.name] > 1 else model
        for model, source in zip(loaded, sources, strict=True)
    ]


def _draw(
    scores: Sequence[PronounScores],
    comparisons: Sequence[PairedDifference],
    folder: Path,
    formats: tuple[str, ...],
) -> None:
    from evenhand.report.charts_masked_scores import score_charts
    from evenhand.report.charts_saving import save_charts

    made = score_charts(scores, comparisons)
    save_charts(made.charts, folder, formats)
    for name, reason in made.skipped.items():
        click.echo(f"figure not drawn: {name}: {reason}", err=True)


def _print(scores: Sequence[PronounScores], comparisons: Sequence[PairedDifference]) -> None:
    from evenhand.cli.output import table

    rule = scores[0].rule
    ways = (f"top {rule.top_k}", "full vocabulary")
    table(
        "Pronoun score: how many sentences (and their mean score)",
        ("model", "by", "n", "male", "female", "neutral", "undecided", "mean", "interval", "p"),
        (
            (told.model, way, *_cells(summary))
            for told in scores
            for way, summary in zip(ways, (told.top, told.full), strict=True)
        ),
    )
    click.echo(
        f"score: P(male)/(P(male)+P(female)). male above {0.5 + rule.delta:g}, female below "
        f"{0.5 - rule.delta:g}; undecided: no gender word of at least {rule.least:g}. mean: over "
        f"decided sentences, {rule.prob:.0%} interval; p: as many above .5 as below (sign test)."
    )
    _remarks(scores)
    table(
        "By the pronoun's place in the sentence",
        ("model", "place", "n", f"top {rule.top_k}", "full vocabulary, all sentences"),
        ((told.model, *_part(part)) for told in scores for part in told.by_slot),
    )
    if comparisons:
        table(
            "Models on the same sentences: difference of the score, paired",
            ("models", "n", "full vocabulary", "p", "decided by both", f"top {rule.top_k}"),
            (_difference(pair) for pair in comparisons),
        )
        click.echo("p: sign test on the full-vocabulary differences, corrected (Holm).")


def _remarks(scores: Sequence[PronounScores]) -> None:
    """What was left out or needs a word, each in a line."""
    for told in scores:
        one_sided = sum(told.top.one_sided.values())
        if one_sided:
            click.echo(
                f"{told.model}: only one gender is among the top {told.rule.top_k} (the other "
                f"counts 0) in {one_sided} of the sentences."
            )
        for out in told.left_out[:10]:
            click.echo(f"{told.model}: left out: line {out.line}: {out.reason}")
        if len(told.left_out) > 10:
            click.echo(f"{told.model}: left out: {len(told.left_out) - 10} more (see --json)")
        for note in told.notes:
            click.echo(f"{told.model}: {note}")
    if scores[0].filtered:
        click.echo(f"sentences that the structural filter left out: {scores[0].filtered:,}")
    if scores[0].duplicates:
        click.echo(f"sentences that came again and count once: {scores[0].duplicates}")


def _cells(told: Summary) -> tuple[str, ...]:
    from evenhand.cli.output import number, p_text

    mean = told.mean_bias
    groups = (
        f"{group.n} ({number(group.mean.value)})" if group.n and group.mean else str(group.n)
        for group in (told.groups[verdict] for verdict in ("male", "female", "neutral"))
    )
    return (
        str(told.n), *groups, str(told.groups["undecided"].n), number(mean.value),
        f"[{number(mean.low)}, {number(mean.high)}]", p_text(told.p_value),
    )  # fmt: skip


def _part(part: Part) -> tuple[str, ...]:
    return part.name, str(part.n), _span(part.mean_bias), _span(part.full_vocabulary)


def _difference(pair: PairedDifference) -> tuple[str, ...]:
    from evenhand.cli.output import p_text

    return (
        f"{pair.second} - {pair.first}", str(pair.n), _span(pair.full_vocabulary),
        p_text(pair.p_corrected), str(pair.decided["both"]), _span(pair.top_k),
    )  # fmt: skip


def _span(told: Estimate) -> str:
    from evenhand.cli.output import number

    return f"{number(told.value)} [{number(told.low)}, {number(told.high)}]"
