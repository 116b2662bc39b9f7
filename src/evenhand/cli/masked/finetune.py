"""`evenhand masked finetune`: train on rewritten text, and measure before and after."""

from __future__ import annotations

import sys
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import click

from evenhand.cli.masked.shared import model_option
from evenhand.cli.options import form_of, format_options, json_option, prob_option, seed_option
from evenhand.cli.output import step_bars

if TYPE_CHECKING:
    from evenhand.masked.finetuning import FinetuneResult
    from evenhand.results import Comparison

__all__ = ["finetune"]

F = TypeVar("F", bound=Callable[..., Any])


def _training_options(command: F) -> F:
    """What and how is learned; each is a field of `Settings`."""
    from evenhand.masked.finetuning import REWRITES, Settings

    usual = Settings()

    def option(name: str, kind: Any, text: str) -> Callable[[F], F]:
        default = getattr(usual, name)
        flag = f"--{name.replace('_', '-')}"
        return click.option(flag, name, type=kind, default=default, show_default=True, help=text)

    options = [
        option(
            "rewrite", click.Choice(REWRITES),
            "What becomes of the text as it is read: substitute swaps gender in half of the"
            " documents, drawn anew in every epoch; swap in all; neutralize makes it neutral.",
        ),
        option(
            "max_tokens", click.IntRange(1),
            "Tokens to learn from in all, whatever the epochs; of a larger input a random sample"
            " of that size is used.",
        ),
        option("epochs", click.IntRange(1), "Passes over the text, at most."),
        option("learning_rate", click.FloatRange(0, min_open=True), "The highest learning rate."),
        option("block", click.IntRange(8), "Tokens of a row, at most."),
        option(
            "batch", click.IntRange(1),
            "Blocks of a step; shorter rows fill it up to as many tokens.",
        ),
        option("mask", click.FloatRange(0, 1, True, True), "Share of the tokens that are hidden."),
        option("evaluations", click.IntRange(1), "Points of the loss curve, over the whole run."),
        option(
            "patience", click.IntRange(1),
            "Stop after so many evaluations that are no better than the best.",
        ),
        option(
            "held_out", click.FloatRange(0, 1, True, True),
            "Share of the documents kept for the measurements before and after.",
        ),
        option("top_k", click.IntRange(1), "Likeliest words that the second pronoun score reads."),
        option(
            "dtype", click.Choice(["auto", "float32", "bfloat16"]),
            "What products are computed in; auto: bfloat16 on a GPU, float32 elsewhere.",
        ),
    ]  # fmt: skip
    for each in reversed(options):
        command = each(command)
    return command


@click.command(short_help="Train on rewritten text; bias and perplexity before and after.")
@click.argument("files", nargs=-1, required=True, metavar="FILE…")
@click.option(
    "-o", "--output", metavar="FOLDER", default="finetuned", show_default=True,
    type=click.Path(file_okay=False, path_type=Path),
    help="Folder for the model, the curve, the figures and the results.",
)  # fmt: skip
@model_option
@_training_options
@format_options
@click.option(
    "--sentences", metavar="FILE", type=click.Path(),
    help="Measure on these: what `evenhand text filter` writes, or text with a [MASK] a line. By"
    " default the filter is run on the held-out documents.",
)  # fmt: skip
@click.option("--crows", metavar="FILE", type=click.Path(), help="Measure CrowS-Pairs as well.")
@click.option(
    "--control", is_flag=True,
    help="Train a second time on the text as it is, to tell the rewriting from the domain.",
)  # fmt: skip
@click.option("--restart", is_flag=True, help="Clear an earlier run out of FOLDER and begin anew.")
@click.option("--device", default="auto", show_default=True, help="auto, cpu, cuda, cuda:1 …")
@seed_option
@prob_option
@json_option
def finetune(
    files: tuple[str, ...],
    output: Path,
    model: str,
    field: str | None,
    form: str | None,
    sentences: str | None,
    crows: str | None,
    control: bool,
    restart: bool,
    device: str,
    as_json: bool,
    **chosen: Any,
) -> None:
    """Fine-tune a masked language model on text rewritten on the fly; say what that changed.

    A document is a line, or with --field a field of a JSONL or CSV file; packed files are read
    too, and none is changed. By a hash of their content the documents are split: most are learned
    from, some give the evaluation loss, some are held out. On sentences of these the pronoun bias
    is measured before and after, and the pseudo-perplexity on plain ones, each change with an
    interval. The same command goes on where it was stopped or killed.

    \b
    Examples:
      evenhand masked finetune sentences.txt -o even
      evenhand masked finetune news.jsonl.gz --field body --rewrite swap --control -o even
      evenhand masked finetune generated.jsonl --field sentence --crows crows.csv -o even
      evenhand masked score biased.jsonl --model mini --model even/model
    """
    from evenhand.masked.finetuning import Settings
    from evenhand.masked.finetuning import finetune as work
    from evenhand.masked.learning_text import input_hashes, read_documents
    from evenhand.masked.metrics.pronouns import read_sentences
    from evenhand.masked.pairs import read_pairs

    cut = form_of(files, field, form)
    named = [*files, *(name for name in (sentences, crows) if name)]
    with step_bars({"training": "tokens"}) as progress:
        result = work(
            model, read_documents(files, cut), Settings(**chosen), output,
            sentences=read_sentences(sentences) if sentences else None,
            pairs=read_pairs(crows) if crows else (),
            control=control, restart=restart, device=device, progress=progress,
            run={"arguments": sys.argv[1:], "inputs": input_hashes(named)},
        )  # fmt: skip
    _draw(result)
    if as_json:
        from evenhand.cli.output import print_json

        print_json(**result.to_dict())
        return
    _print(result)


def _draw(result: FinetuneResult) -> None:
    from evenhand.cli.output import save_figures
    from evenhand.report.masked import finetune_charts

    save_figures(finetune_charts(result), result.folder, ("svg",))


def _print(result: FinetuneResult) -> None:
    data, training, settings = result.data, result.training, result.settings
    loss = training["evaluation_loss"]
    ended = {
        "epochs": "all epochs done",
        "max_tokens": f"--max-tokens {settings['max_tokens']:,} reached",
        "patience": f"no better in {settings['patience']} evaluations",
    }[training["ended"]]
    click.echo(
        f"{data['documents_read']:,} documents read, {training['documents']:,} learned from "
        f"({training['epoch_tokens']:,} tokens), {training['evaluation_documents']:,} for the "
        f"evaluation loss, {data['held_out']:,} held out; rewrite: {settings['rewrite']}\n"
        f"{training['steps']:,} steps, {training['tokens']:,} tokens, {training['epochs']:.1f} "
        f"epochs: {ended}; evaluation loss {loss['before']:.3f} → {loss['after']:.3f} "
        f"(the best, of step {training['best']['step']:,})\n"
        f"measured on {data['sentences']:,} sentences ({data['sentences_from']}) and "
        f"{data['plain_sentences']:,} plain sentences\n"
    )
    _table(f"{result.model}: before and after", ("before", "after"), result.changes)
    if result.control:
        _table(
            "Control: the same training on the text as it is", ("before", "after"), result.control
        )
        _table(
            "The rewriting against the control", ("control", "rewritten"), result.against_control
        )
    for note in result.notes:
        click.echo(f"note: {note}")
    click.echo(
        f"ideal: what no bias would read. The intervals ({settings['prob']:.0%}) hold the trained "
        f"weights fixed.\nwritten to {result.folder}: model/, curve.csv, items.csv, figures/, "
        "results.json, run.json"
    )


def _table(title: str, times: tuple[str, str], changes: tuple[Comparison, ...]) -> None:
    from evenhand.cli.output import number, table

    def row(change: Comparison) -> tuple[str, ...]:
        times = "× " if change.kind == "ratio" else ""
        return (
            change.query, number(change.before.value), number(change.after.value),
            f"{times}{number(change.change.value)}",
            f"[{number(change.change.low)}, {number(change.change.high)}]",
            "–" if change.before.ideal is None else f"{change.before.ideal:g}",
            str(change.paired), change.details["verdict"],
        )  # fmt: skip

    headers = ("measure", *times, "change", "interval", "ideal", "n", "")
    table(title, headers, map(row, changes))
