"""`evenhand classifier`: the predictions of any classifier, measured by groups of people."""

from __future__ import annotations

from typing import Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import print_finding, print_json, print_measurements, print_notes, say
from evenhand.errors import InputError
from evenhand.instruments import Job, Run, instruments, lookup, run_jobs

METRICS = list(instruments("predictions").values())

COLUMNS = ("true", "pred", "group", "cluster", "item", "version")

HELP = f"""Measure the gaps of a classifier between groups of people.

FILE is a table of predictions (CSV, TSV, JSONL, Parquet) with one row per text: the true class,
the predicted one, and a column or more with groups of people. Two groups are compared with each
other, more of them each with all others; of several columns the intersection is measured too. Or it
is what `evenhand rewrite counterfactuals` wrote, with the answers of your program: then measures of
groups use the originals only, and counterfactual measures compare them with their versions.

With two classes, rates are those of the positive one: 1 of 0 and 1, yes of no and yes, true of
false and true, else --positive. The metrics:

{opt.describe(METRICS)}

Without --metric, all that the table allows are measured. `evenhand list metrics NAME` explains one
of them.

\b
Examples:
  evenhand classifier predictions.csv --true y --pred yhat --group gender
  evenhand classifier predictions.csv --group gender --group age --cluster person --json
  evenhand classifier hired.csv --group gender --positive hired
  evenhand classifier scored.csv --group gender --score 'p_*'
  evenhand rewrite counterfactuals bios.csv --text bio -o pairs.jsonl
  evenhand classifier pairs-with-answers.jsonl --true job --pred answer --group gender
"""


@click.command(cls=Command, help=HELP)
@click.argument("source", metavar="FILE", type=completion.TABLE)
@opt.true_option()
@opt.pred_option()
@opt.group_option(multiple=True, help="A column with groups of people; repeatable.")
@opt.score_option(
    multiple=True,
    metavar="CLASS=COLUMN",
    help="The column with the scores of a class; repeatable, or once as a pattern such as 'p_*'. "
    "Without --pred the highest score decides.",
)
@opt.cluster_option(
    help="What texts have in common, such as a person or a document.",
)
@opt.item_option
@click.option(
    "--version-column",
    "version",
    metavar="COLUMN",
    help="The column with the versions of a text.",
)
@opt.reading_options
@opt.metric_option("predictions")
@opt.declared_options(*METRICS)
@opt.results_options()
@opt.run_options
@opt.json_option
def classifier(  # noqa: D103
    source: str,
    score: tuple[str, ...],
    metrics: tuple[str, ...],
    run: Run,
    **options: Any,
) -> None:
    from evenhand.classifier import read_predictions

    columns = {name: options.pop(name) for name in COLUMNS}
    chosen = [lookup("predictions", name) for name in metrics]
    given = opt.accepted_options(chosen or METRICS, options)
    subject = read_predictions(source, score=opt.parse_scores(score), **columns)
    jobs = [Job(opt.configure(cls, given), None) for cls in chosen or METRICS]
    results = run_jobs(subject, jobs, run, strict=bool(chosen))
    if not results:
        raise InputError(results.skipped[0]["reason"])
    by = ("class", *subject.groups)
    notes = [{"metric": skip["metric"], "reason": skip["reason"]} for skip in results.skipped]
    if print_json(command="classifier", measurements=list(results), skipped=notes):
        return
    print_measurements(subject.name, results, parts=("estimate", "correlation"))
    for m in results:
        own = [part for part in m.parts if part.metric == m.metric and part.by in by]
        if "positive" in m.details:  # the only class is the result itself
            continue
        print_measurements(f"{m.metric}, {m.query}", own, hide=("legend", "metric"))
    print_notes(note for m in results for note in m.notes)
    for name, reason in map(dict.values, notes):
        say(f"not measured: {reason if reason.startswith(name) else f'{name}: {reason}'}")
    print_finding(results, skipped=notes)
