"""`evenhand scores`: models compared by the scores of items, whoever made them."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from evenhand.cli import completion
from evenhand.cli.commands import Command
from evenhand.cli.options import (
    cluster_option,
    group_option,
    item_option,
    json_option,
    prob_option,
    score_option,
)
from evenhand.cli.output import (
    interval,
    number,
    p_text,
    print_json,
    print_notes,
    recording,
    say,
    table,
)

if TYPE_CHECKING:
    from evenhand.results import Comparison
    from evenhand.scores import ScoreAnalysis

__all__ = ["scores"]

SHOWN = 10
"""With more pairs of models than this, only those with the first-ranked model are shown."""


@click.command(
    cls=Command, short_help="Compare models by per-item scores from any tool, with uncertainty."
)
@click.argument("sources", metavar="FILE|FOLDER…", nargs=-1, required=True, type=completion.TABLE)
@item_option
@click.option(
    "--model-column", "model", metavar="COLUMN", help="The column with the models' names."
)
@score_option(
    help="The column with the scores; the metric or scorer of a log (METRIC or METRIC,FILTER).",
)
@cluster_option(
    multiple=True,
    help="What items have in common: a document they are from, or a template that all of them "
    "were asked in; repeatable.",
)
@group_option(help="Groups of items to show separately.")
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
    show_default=True,
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
@prob_option()
@click.option(
    "-o",
    "--out",
    "output",
    metavar="FILE",
    type=click.Path(dir_okay=False, path_type=Path),
    help="Save everything as a page (.html) or JSON (.json), or the tables on the screen (.csv).",
)
@json_option
def scores(
    sources: tuple[str, ...],
    item: str | None,
    model: str | None,
    score: str | None,
    cluster: tuple[str, ...],
    group: str | None,
    task: tuple[str, ...],
    ideal: float | None,
    best: Literal["highest", "lowest"],
    gap: bool,
    fixed: bool,
    prob: float,
    output: Path | None,
    as_json: bool,
) -> None:
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

    kinds = (".html", ".json", ".csv")
    if output is not None and output.suffix.lower() not in kinds:
        raise click.UsageError(f"--out: expected a file that ends in {' or '.join(kinds)}")
    analysis = analyze(
        *sources,
        item=item,
        model=model,
        score=score,
        cluster=cluster,
        group=group,
        task=task,
        ideal=ideal,
        best=best,
        gap=gap,
        fixed=fixed,
        prob=prob,
    )
    if output is not None and output.suffix.lower() == ".html":
        from evenhand.report.scores import write_scores

        write_scores(analysis, output)
    elif output is not None and output.suffix.lower() == ".json":
        analysis.save(output)
    elif output is not None and as_json:
        raise click.UsageError("-o FILE.csv saves the tables on the screen: give it without --json")
    if as_json:
        print_json(command="scores", **analysis.to_dict())
        return
    with recording() as record:
        _print_tables(analysis)
    if output is not None and output.suffix.lower() == ".csv":
        record.save(str(output))
    print_notes(analysis.notes)
    if output is not None:
        say(f"written: {output}")
    say(analysis.sentence)


def _print_tables(analysis: ScoreAnalysis) -> None:
    """Means, differences, ranks and their agreement."""
    _print_means(analysis)
    _print_differences(analysis)
    if len(analysis.ranking) > 1:
        ranks = [
            (m.query, f"{m.value:g}", f"{m.low:g} to {m.high:g}", number(m.details["mean"]))
            for m in analysis.ranking
        ]
        table("Ranks", ("model", "rank", "could be", "mean"), ranks)
    if analysis.agreement:
        taus = [
            (m.by, m.query, number(m.value, 2), interval(m.low, m.high, 2), f"{m.n}")
            for m in analysis.agreement
        ]
        table("Agreement of ranks (Kendall's τ)", ("by", "between", "τ", "interval", "n"), taus)


def _print_means(analysis: ScoreAnalysis) -> None:
    """The means by rank, with the groups' and those for the templates at hand."""
    measured = analysis.by_rank()
    first = measured[0]
    scoped = any(m.select("scope") for m in measured)
    rows = []
    for m in measured:
        [ends] = [interval(s.low, s.high) for s in m.select("scope")] or ["–"]
        outcome = (p_text(m.p), str(m.details.get("outcome", "")))
        rows.append([m.query, number(m.value), interval(m.low, m.high), *outcome, ends, f"{m.n:,}"])
        rows += [
            [
                f"  {part.query}",
                *(number(part.value), interval(part.low, part.high), "", "", "", f"{part.n:,}"),
            ]
            for part in m.parts
            if part.by in ("group", "contrast")
        ]
    headers = ["model", "mean", "interval", "p", "bias", "these only", "n"]
    hidden = {*(() if scoped else (5,)), *((3, 4) if first.ideal is None else ())}
    used = [i for i in range(len(headers)) if i not in hidden]
    table(
        "Means" if first.metric != "gap" else "Gaps",
        [headers[i] for i in used],
        ([row[i] for i in used] for row in rows),
    )
    text = f"interval: {100 * first.prob:g}%, {first.interval}."
    if first.ideal is not None:
        text += f" p: of a mean of {first.ideal:g}, corrected for all models (Holm)."
    if scoped:
        text += (
            f" these only: {first.select('scope')[0].query} as the only ones of interest, which "
            "decides nothing."
        )
    say(text)


def _print_differences(analysis: ScoreAnalysis) -> None:
    """All pairs, or those with the first-ranked model where there are many."""
    from evenhand.scores.analysis import needed_text

    best = analysis.ranking[0].query
    chosen, many = analysis.comparisons, len(analysis.comparisons) > SHOWN
    if many:
        chosen = tuple(c for c in chosen if best in (c.before.query, c.after.query))
    if not chosen:
        return
    scoped = any(c.parts for c in chosen)
    rows = []
    for c in chosen:
        names, sign = (c.after.query, c.before.query), 1.0
        if c.after.query == best:
            names, sign = names[::-1], -1.0

        def ends(result: Comparison, sign: float = sign) -> str:
            low, high = sorted((sign * result.change.low, sign * result.change.high))
            return interval(low, high)

        row = [
            names[0] if many else " - ".join(names),
            number(sign * c.change.value),
            ends(c),
            p_text(c.p),
            str(c.details["outcome"]),
        ]
        if scoped:
            row.append(ends(c.parts[0]) if c.parts else "–")
        rows.append([*row, needed_text(c)])
    ideal = analysis.measurements[0].ideal
    what = "Differences" if ideal is None else f"Differences of the distance from {ideal:g}"
    table(
        f"{what}: from {best}" if many else what,
        [
            *("model" if many else "models", "difference", "interval", "p", "outcome"),
            *(["these only"] if scoped else []),
            "needed",
        ],
        rows,
    )
    say(
        f"interval, p: for all {len(analysis.comparisons)} pairs together (Bonferroni, Holm). "
        "needed: what would find a difference as large with a power of 80%, that pair alone."
    )
    if many:
        rest = len(analysis.comparisons) - len(chosen)
        say(f"{rest} further pairs of models: --json, or -o FILE.")
