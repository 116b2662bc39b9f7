"""`evenhand answers measure`: what language models wrote, by the groups of their prompts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.answers.scores import BUILT_IN
from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import (
    offer_page,
    print_finding,
    print_json,
    print_measurements,
    print_notes,
    say,
)
from evenhand.errors import InputError
from evenhand.instruments import Instrument, Job, Run, instruments, lookup, run_jobs

if TYPE_CHECKING:
    from evenhand.answers.table import Answers
    from evenhand.results import Measurement

__all__ = ["measure"]

METRICS = list(instruments("answers").values())
OWN = {option.name for cls in METRICS for option in cls.declaration.options} - {"score", "label"}
PARTS = (
    *("judge", "group", "category", "reference", "scope", "distance", "conditional", "refusals"),
    *("contrast", "outcome", "pooled"),
)
"""The kinds of parts that are printed."""

COLUMNS = {
    "text": "The column with the answers.",
    "item": "What a prompt is about: prompts that differ only in group or wording are one item.",
    "wording": "The wording of the prompt, of those that all items are asked in.",
    "topic": "What items have in common; topics are then what is sampled.",
    "prompt": "The prompt itself.",
    "outcome": "answered, refused, empty, cut off or failed; by default read from the text.",
}

HELP = f"""Measure what a language model wrote, by the groups of its prompts.

FILE is a table with one row per answer (CSV, TSV, JSONL, Parquet), a log of lm-evaluation-harness
or inspect, or what `evenhand answers collect` wrote. Two groups are compared with each other, more
of them each with all others; of several columns the intersection is measured too. The samples of a
prompt count once: intervals are over items (or topics) and over wordings. The metrics:

{opt.describe(METRICS)}

Without --metric, all that the table allows are measured. `evenhand list metrics NAME` explains one
of them.

\b
Examples:
  evenhand answers measure answers.jsonl --group gender
  evenhand answers measure answers.jsonl --group gender --metric difference --score length
  evenhand answers measure scored.csv --group race --group gender --score toxicity
  evenhand answers measure hired.csv --group gender --metric decisions --label hired --gold g.csv
  evenhand answers measure answers.jsonl --metric representation --json
  evenhand answers measure answers.jsonl --group gender -o page.html
"""


def _column_options(command: Any) -> Any:
    for name, text in reversed(COLUMNS.items()):
        command = click.option(f"--{name}", metavar="COLUMN", help=text)(command)
    return command


@click.command(cls=Command, help=HELP)
@click.argument("source", metavar="FILE", type=completion.TABLE)
@opt.group_option(multiple=True, help="A column with groups; repeatable.")
@_column_options
@opt.score_option(
    multiple=True,
    help="difference: sentiment, length or a column of numbers; decisions: a column of numbers. "
    "Repeatable.",
)
@click.option(
    "--label",
    multiple=True,
    metavar="COLUMN",
    help="decisions, agreement: the column with what was read from the answers. Repeatable.",
)
@click.option(
    "--gold",
    metavar="FILE",
    type=completion.TABLE,
    help="A few answers with their true labels, which correct what was read from the text.",
)
@opt.reading_options
@opt.metric_option("answers")
@opt.declared_options(*METRICS, only=OWN)
@opt.results_options(page=True)
@opt.run_options
@opt.json_option
def measure(  # noqa: D103
    source: str,
    score: tuple[str, ...],
    label: tuple[str, ...],
    gold: str | None,
    metrics: tuple[str, ...],
    run: Run,
    **options: Any,
) -> None:
    from evenhand.answers import read_answers

    columns = {name: options.pop(name) for name in (*COLUMNS, "group")}
    chosen = [lookup("answers", name) for name in metrics]
    given = opt.accepted_options(chosen or METRICS, options)
    subject = read_answers(
        source, score=[name for name in score if name not in BUILT_IN], label=label, **columns
    )
    named = {"score": score, "label": label}
    jobs = [
        Job(made, made.read(gold) if gold and made.misfit(gold) is None else None)
        for cls in chosen or METRICS
        for made in _variants(cls, given, {k: v for k, v in named.items() if v}, bool(chosen))
    ]
    results = run_jobs(subject, jobs, run, strict=bool(chosen))
    if not results:
        raise InputError(results.skipped[0]["reason"])
    notes = [{"metric": skip["metric"], "reason": skip["reason"]} for skip in results.skipped]
    offer_page(lambda path: _write_page(subject, results, path, source, notes))
    if print_json(command="answers measure", measurements=list(results), skipped=notes):
        return
    print_measurements(subject.name, results, parts=PARTS)
    print_notes(dict.fromkeys(note for m in results for note in m.notes))
    for name, reason in map(dict.values, notes):
        say(f"not measured: {reason if reason.startswith(name) else f'{name}: {reason}'}")
    print_finding(results, skipped=notes)


def _write_page(
    subject: Answers,
    results: Sequence[Measurement],
    path: str,
    source: str,
    skipped: Sequence[Mapping[str, str]],
) -> None:
    from evenhand.files import is_ours, read_document, record_of
    from evenhand.report.answers import write_answers

    recorded = record_of(source).is_file() and is_ours(Path(source))
    record = read_document(record_of(source)) if recorded else None
    write_answers(subject, results, path, record=record, skipped=skipped)


def _variants(
    cls: type[Instrument],
    given: Mapping[str, Any],
    named: Mapping[str, Sequence[str]],
    chosen: bool,
) -> Iterator[Instrument]:
    """The instrument once for each column of scores or labels that it can read."""
    own = {option.name: option.default for option in cls.declaration.options}
    columns = [(role, name) for role, names in named.items() if role in own for name in names]
    if not columns and not chosen and own.get("score") in BUILT_IN:
        columns = [("score", name) for name in BUILT_IN]
    for role, name in columns:
        yield opt.configure(cls, given, **{role: name})
    if not columns:
        yield opt.configure(cls, given)
