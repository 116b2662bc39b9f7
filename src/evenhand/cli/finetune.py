"""`evenhand finetune`: train a masked language model on rewritten text."""

from __future__ import annotations

import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import print_comparisons, print_json, print_notes, save_figures, say
from evenhand.cli.progress import step_bars
from evenhand.files import public_arguments
from evenhand.models.finetuning.training import FinetuneSettings

if TYPE_CHECKING:
    from evenhand.models.finetuning.training import FinetuneResult


@click.command(cls=Command)
@click.argument("files", nargs=-1, required=True, metavar="FILE…", type=completion.TEXT_FILE)
@opt.folder_option(
    "Folder for the model, the curve, the figures and the results.", default="finetuned"
)
@opt.model_option()
@opt.declared_options(FinetuneSettings)
@opt.format_options
@opt.material_option(
    "--sentences",
    help="Measure on these: output of `evenhand filter`, or text with one [MASK] per line. By"
    " default the filter selects sentences of the held-out documents.",
)
@opt.material_option(
    "--watch",
    "watched",
    help="Stop by the mean bias of these sentences, in the same form; none is measured on. By"
    " default those of the evaluation text.",
)
@opt.material_option("--crows", "pairs", help="Measure CrowS-Pairs as well.")
@click.option(
    "--control-training",
    "control",
    is_flag=True,
    help="Train a second time on the unchanged text, to separate rewriting and domain effects.",
)
@opt.format_option
@opt.restart_option
@opt.device_option()
@opt.seed_option()
@opt.prob_option()
@opt.json_option
def finetune(
    files: tuple[str, ...],
    folder: Path,
    model: str,
    field: str | None,
    form: str | None,
    sentences: str | None,
    watched: str | None,
    pairs: str | None,
    control: bool,
    formats: tuple[str, ...],
    restart: bool,
    device: str,
    **options: object,
) -> None:
    """Fine-tune a masked language model on text rewritten on the fly and measure the change.

    A document is a line, or with --text a field of a JSONL or CSV file; files may be compressed
    and are not changed. The documents are split by a hash of their content: most are for training,
    some for the evaluation loss, some are held out. On held-out sentences the pronoun bias and the
    pseudo-perplexity are measured before and after, and each change has an interval. The pronoun
    bias is also measured on the built-in sentences, of a kind not trained on: an effect on one kind
    of text need not hold on another. Where the held-out text has no such sentences, as job
    biographies have not, the built-in ones are measured on alone; --no-measure trains on all of the
    text and measures nothing. Where the mean bias of sentences of the evaluation text (--watch: of
    others) goes to the other side of one half, training stops, and weights with which it has not
    yet are used (--stop). The same command resumes an interrupted run.

    \b
    Examples:
      evenhand finetune sentences.txt -o even
      evenhand finetune news.jsonl.gz --text body --rewrite swap --control-training -o even
      evenhand finetune generated.jsonl --text sentence --crows crows.csv -o even
      evenhand finetune bios.csv --text text --rewrite none --max-tokens 0 --no-measure
      evenhand measure pronouns mini even/model --data biased.jsonl
    """
    from evenhand.models.finetuning.charts import finetune_charts
    from evenhand.models.finetuning.text import input_hashes, read_documents
    from evenhand.models.finetuning.training import finetune as run_finetuning
    from evenhand.models.pairs import read_pairs
    from evenhand.models.sentences import read_sentences

    cut = opt.form_of(files, field, form)
    named = [*files, *(name for name in (sentences, watched, pairs) if name)]
    with step_bars({"training": "tokens"}) as progress:
        result = run_finetuning(
            model,
            read_documents(files, cut),
            opt.configure(FinetuneSettings, options),
            folder,
            sentences=read_sentences(sentences) if sentences else None,
            watched=read_sentences(watched) if watched else None,
            pairs=read_pairs(pairs) if pairs else (),
            control=control,
            restart=restart,
            device=device,
            progress=progress,
            run={
                "arguments": public_arguments(sys.argv[1:]),
                "inputs": input_hashes(named),
            },
        )
    save_figures(finetune_charts(result), result.folder / "figures", formats)
    if not print_json(**result.to_dict()):
        _print_finetuning(result)


def _print_finetuning(result: FinetuneResult) -> None:
    from evenhand.models.metrics.pronouns import BUILT_IN

    data, training, settings = result.data, result.training, result.settings
    loss = training["evaluation_loss"]
    ended = {
        "epochs": "all epochs done",
        "max_tokens": f"--max-tokens {settings['max_tokens']:,} reached",
        "patience": f"no better in {settings['patience']} evaluations",
        "ideal": "stopped at the ideal",
    }[training["ended"]]
    chosen = "just before it" if training["ended"] == "ideal" else "the best"
    say(
        f"{data['documents_read']:,} documents read, {training['documents']:,} learned from "
        f"({training['epoch_tokens']:,} tokens), {training['evaluation_documents']:,} for the "
        f"evaluation loss, {data['held_out']:,} held out; rewrite: {settings['rewrite']}\n"
        f"{training['steps']:,} steps, {training['tokens']:,} tokens, {training['epochs']:.1f} "
        f"epochs: {ended}; evaluation loss {loss['before']:.3f} → {loss['after']:.3f} "
        f"({chosen}, of step {training['best']['step']:,})"
    )
    if not result.changes:
        print_notes(result.notes)
        written = "model/, curve.csv, figures/, results.json, run.json"
        say(f"written to {result.folder}: {written}")
        return
    say(
        f"measured on {data['sentences']:,} sentences ({data['sentences_from']}), "
        f"{data['built_in_sentences']:,} built-in sentences, which are of another kind, and "
        f"{data['plain_sentences']:,} plain sentences\n"
    )
    compared = ("before", "after")
    for title, times, changes in (
        (f"{result.model}: before and after", compared, result.changes),
        ("Control: the same training on the unchanged text", compared, result.control),
        ("The rewriting against the control", ("control", "rewritten"), result.against_control),
    ):
        print_comparisons(
            title,
            [
                replace(c, before=replace(c.before, subject=""), after=replace(c.after, subject=""))
                for c in changes
            ],
            times=times,
            label=lambda change: change.query.removesuffix(f", {BUILT_IN}"),
            columns={
                "sentences": lambda change: change.details.get("sentences", ""),
                "n": lambda change: str(change.paired),
            },
        )
    print_notes(result.notes)
    say(
        f"ideal: the value without bias. The intervals ({settings['prob']:.0%}) hold the trained "
        f"weights fixed.\nwritten to {result.folder}: model/, curve.csv, items.csv, figures/, "
        "results.json, run.json"
    )
    say(result.sentence)
