"""`evenhand scores`: models compared by per-item scores from any tool."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import Column, p_text, print_json, print_notes, print_rows, recording, say
from evenhand.cli.progress import is_set
from evenhand.wording import interval, number

if TYPE_CHECKING:
    from evenhand.results import Comparison, Measurement
    from evenhand.scores import ScoreAnalysis

SHOWN = 10
"""The most pairs of models that are all shown; beyond, only those with the first-ranked model."""


@click.command(cls=Command)
@click.argument("sources", metavar="FILE|FOLDER…", nargs=-1, required=True, type=completion.TABLE)
@opt.item_option
@click.option(
    "--model-column", "model", metavar="COLUMN", help="The column with the models' names."
)
@opt.score_option(
    help="The column with the scores; the metric or scorer of a log (METRIC or METRIC,FILTER).",
)
@opt.cluster_option(
    multiple=True,
    help="What items have in common: a document they are from, or a template that all of them "
    "were asked in; repeatable.",
)
@opt.group_option(help="Groups of items to show separately.")
@click.option(
    "--task",
    metavar="NAME",
    multiple=True,
    help="The task to use, of several in the logs or in a column task; repeatable, or a pattern "
    "('mmlu_*', '*' for all): then the mean is over the items of all these tasks.",
)
@click.option(
    "--ideal",
    type=float,
    metavar="NUMBER",
    help="The mean without bias, such as 0.5 for CrowS-Pairs: the nearest to it is ranked first.",
)
@click.option(
    "--best",
    type=click.Choice(["highest", "lowest"]),
    default="highest",
    help="Which mean is ranked first.",
)
@click.option(
    "--gap",
    is_flag=True,
    help="Compare models by the difference of two groups' means, not by the mean.",
)
@click.option(
    "--fixed",
    is_flag=True,
    help="Templates that all items were asked in are the only ones of interest, not a sample.",
)
@opt.reading_options
@opt.prob_option()
@opt.output_option(
    "Save everything as a page (.html) or JSON (.json), or the tables on the screen (.csv).",
    endings=(".html", ".json", ".csv"),
)
@opt.json_option
def scores(sources: tuple[str, ...], prob: float, output: str | None, **options: Any) -> None:
    """Compare models by scores of the same items that any tool has made.

    \b
    FILE or FOLDER is one of
      a table of item scores: CSV, TSV, JSONL or Parquet; columns that are named item, model,
        score, cluster (or template) and group, or alike, are recognised
      samples_*.jsonl of lm-evaluation-harness, or the folder of a run
      a JSON log of inspect, or a folder of them
      a folder of text files with one score a line, one file per model (MODEL.txt), or one per
        model and template (MODEL_template-0.txt)

    Every mean has an interval that respects clusters: items of one document are not independent,
    and items that were all asked in the same templates are crossed with these, so that intervals
    hold for other items and other templates. All pairs of models are compared on the items that
    both have; p-values and intervals are for all pairs together. A difference found with these
    templates only decides nothing. The ranking says which ranks each model could have, and "needed"
    how many items would decide between two models.

    \b
    Examples:
      evenhand scores results.csv --score accuracy --cluster document
      evenhand scores output/ --score acc_norm -o comparison.html
      evenhand scores output/ --task crows_pairs_english --ideal 0.5
      evenhand scores gest/scores/english_mlm --best lowest --json
    """
    from evenhand.scores import analyze

    analysis = analyze(*sources, prob=prob, **options)
    target = Path(output or "")
    kind = target.suffix.lower()
    if kind == ".html":
        from evenhand.report.scores import write_scores

        write_scores(analysis, target)
    elif kind == ".json":
        analysis.save(target)
    elif kind and is_set("json"):
        raise click.UsageError("-o FILE.csv saves the tables on the screen: give it without --json")
    if print_json(command="scores", **analysis.to_dict()):
        return
    with recording() as record:
        _print_tables(analysis)
    if kind == ".csv":
        record.save(str(target))
    print_notes(analysis.notes)
    if output is not None:
        say(f"written: {output}")
    say(analysis.sentence)


def _print_tables(analysis: ScoreAnalysis) -> None:
    """Means, differences, ranks and their agreement."""
    _print_means(analysis)
    _print_differences(analysis)
    if len(analysis.ranking) > 1:
        print_rows(
            "Ranks",
            analysis.ranking,
            {
                "model": "query",
                "rank": lambda m: f"{m.value:g}",
                "could be": lambda m: f"{m.low:g} to {m.high:g}",
                "mean": "mean",
            },
        )
    if analysis.agreement:
        print_rows(
            "Agreement of ranks (Kendall's τ)",
            analysis.agreement,
            {
                "by": "by",
                "between": "query",
                "τ": lambda m: number(m.value, 2),
                "interval": lambda m: interval(m.low, m.high, 2),
                "n": lambda m: str(m.n),
            },
        )


def _print_means(analysis: ScoreAnalysis) -> None:
    """The means by rank, with the groups' and those for the templates at hand."""
    measured = analysis.by_rank()
    first = measured[0]
    scoped = any(m.select("scope") for m in measured)
    rows = [
        row
        for m in measured
        for row in (m, *(part for part in m.parts if part.by in ("group", "contrast")))
    ]

    def of_models(show: Callable[[Measurement], str]) -> Callable[[Measurement], str]:
        return lambda m: show(m) if m in measured else ""

    columns: dict[str, Column[Measurement]] = {
        "model": lambda m: m.query if m in measured else f"  {m.query}",
        "mean": "value",
        "interval": lambda m: interval(m.low, m.high),
    }
    if first.ideal is not None:
        columns["p"] = of_models(lambda m: p_text(m.p))
        columns["bias"] = of_models(lambda m: str(m.details.get("outcome", "")))
    if scoped:
        columns["these only"] = of_models(_scope)
    columns["n"] = "n"
    print_rows("Means" if first.metric != "gap" else "Gaps", rows, columns)
    text = f"interval: {100 * first.prob:g}%, {first.interval}."
    if first.ideal is not None:
        text += f" p: of a mean of {first.ideal:g}, corrected for all models (Holm)."
    if scoped:
        text += (
            f" these only: {first.select('scope')[0].query} as the only ones of interest, which "
            "decides nothing."
        )
    say(text)


def _scope(m: Measurement) -> str:
    """The interval for the items and templates at hand."""
    [ends] = [interval(part.low, part.high) for part in m.select("scope")] or ["–"]
    return ends


def _print_differences(analysis: ScoreAnalysis) -> None:
    """All pairs, or those with the first-ranked model where there are many."""
    from evenhand.scores.analysis import needed_text

    best = analysis.ranking[0].query
    chosen, many = analysis.comparisons, len(analysis.comparisons) > SHOWN
    if many:
        chosen = tuple(c for c in chosen if best in (c.before.query, c.after.query))
    if not chosen:
        return

    def turned(c: Comparison) -> bool:
        """Whether the row is the other model less the best, not the reverse."""
        return c.after.query == best

    def ends(c: Comparison, of: Comparison) -> tuple[float, float]:
        low, high = of.change.low, of.change.high
        return (-high, -low) if turned(c) else (low, high)

    def name(c: Comparison) -> str:
        pair = (c.before.query, c.after.query) if turned(c) else (c.after.query, c.before.query)
        return pair[0] if many else " - ".join(pair)

    columns: dict[str, Column[Comparison]] = {
        "model" if many else "models": name,
        "difference": lambda c: -c.change.value if turned(c) else c.change.value,
        "interval": lambda c: ends(c, c),
        "p": lambda c: p_text(c.p),
        "outcome": "outcome",
    }
    if any(c.parts for c in chosen):
        columns["these only"] = lambda c: ends(c, c.parts[0]) if c.parts else None
    columns["needed"] = needed_text
    ideal = analysis.measurements[0].ideal
    what = "Differences" if ideal is None else f"Differences of the distance from {ideal:g}"
    print_rows(f"{what}: from {best}" if many else what, chosen, columns)
    pairs = len(analysis.comparisons)
    together = f"interval, p: for all {pairs} pairs together (Bonferroni, Holm). " * (pairs > 1)
    say(
        f"{together}needed: what would find a difference as large with a power of 80%, that pair "
        "alone."
    )
    if many:
        rest = len(analysis.comparisons) - len(chosen)
        say(f"{rest} further pairs of models: --json, or -o FILE.")
