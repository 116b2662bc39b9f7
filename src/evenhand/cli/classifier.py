"""`evenhand classifier`: the predictions of any classifier, measured by groups of people."""

from __future__ import annotations

from typing import Any

import click

from evenhand.cli import completion
from evenhand.cli.commands import Command
from evenhand.cli.options import (
    accepted_options,
    cluster_option,
    configure,
    declared_options,
    describe,
    group_option,
    item_option,
    json_option,
    metric_option,
    parse_scores,
    pred_option,
    results_options,
    run_options,
    score_option,
    true_option,
)
from evenhand.cli.output import print_finding, print_json, print_measurements, print_notes, say
from evenhand.errors import InputError
from evenhand.instruments import Run, correct_results, instruments, lookup
from evenhand.results import Measurement

__all__ = ["classifier"]

METRICS = list(instruments("predictions").values())

HELP = f"""Measure the gaps of a classifier between groups of people.

FILE is a table of predictions (CSV, TSV, JSONL, Parquet) with one row per text: the true class,
the predicted one, and a column or more with groups of people. Two groups are compared with each
other, more of them each with all others; of several columns the intersection is measured too. Or it
is what `evenhand text counterfactuals` wrote, with the answers of your program: then measures of
groups use the originals only, and counterfactual measures compare them with their versions.

With two classes, rates are those of the positive one: 1 of 0 and 1, yes of no and yes, true of
false and true, else --positive. The metrics:

{describe(METRICS)}

Without --metric, all that the table allows are measured. `evenhand list metrics NAME` explains one
of them.

\b
Examples:
  evenhand classifier predictions.csv --true y --pred yhat --group gender
  evenhand classifier predictions.csv --group gender --group age --cluster person --json
  evenhand classifier hired.csv --group gender --positive hired
  evenhand classifier scored.csv --group gender --score 'p_*'
  evenhand text counterfactuals bios.csv --text bio -o pairs.jsonl
  evenhand classifier pairs-with-answers.jsonl --true job --pred answer --group gender
"""


@click.command(
    cls=Command, short_help="Gaps of any classifier between groups of people.", help=HELP
)
@click.argument("source", metavar="FILE", type=completion.TABLE)
@true_option()
@pred_option()
@group_option(multiple=True, help="A column with groups of people; repeatable.")
@score_option(
    multiple=True,
    metavar="CLASS=COLUMN",
    help="The column with the scores of a class; repeatable, or once as a pattern such as 'p_*'. "
    "Without --pred the highest score decides.",
)
@cluster_option(
    help="What texts have in common, such as a person or a document.",
)
@item_option
@click.option(
    "--version-column",
    "version",
    metavar="COLUMN",
    help="The column with the versions of a text.",
)
@metric_option("predictions")
@declared_options(*METRICS)
@results_options()
@run_options
@json_option
def classifier(  # noqa: D103
    source: str,
    true: str | None,
    pred: str | None,
    group: tuple[str, ...],
    score: tuple[str, ...],
    cluster: str | None,
    item: str | None,
    version: str | None,
    metrics: tuple[str, ...],
    run: Run,
    as_json: bool,
    **options: Any,
) -> None:
    from evenhand.classifier import read_predictions

    chosen = [lookup("predictions", name) for name in metrics]
    given = accepted_options(chosen or METRICS, options)
    subject = read_predictions(
        source,
        true=true,
        pred=pred,
        group=group,
        score=parse_scores(score),
        cluster=cluster,
        item=item,
        version=version,
    )
    results: list[Measurement] = []
    skipped: dict[str, str] = {}
    for cls in chosen or METRICS:
        try:
            results += configure(cls, given).measure(subject, None, run)
        except InputError as error:
            if chosen:
                raise
            skipped[cls.declaration.name] = str(error)
    if not results:
        raise InputError(next(iter(skipped.values())))
    results = correct_results(results)
    by = ("class", *subject.groups)
    notes = [{"metric": name, "reason": reason} for name, reason in skipped.items()]
    if as_json:
        print_json(command="classifier", measurements=results, skipped=notes)
        return
    print_measurements(subject.name, results, parts=("estimate", "correlation"))
    for m in results:
        own = [part for part in m.parts if part.metric == m.metric and part.by in by]
        if "positive" in m.details:  # the only class is the result itself
            continue
        print_measurements(f"{m.metric}, {m.query}", own, hide=("legend", "metric"))
    print_notes(note for m in results for note in m.notes)
    for name, reason in skipped.items():
        say(f"not measured: {reason if reason.startswith(name) else f'{name}: {reason}'}")
    print_finding(results, skipped=notes)
