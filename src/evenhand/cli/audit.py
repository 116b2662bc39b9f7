"""`evenhand audit`: audit the embedded defaults or your own files, and write one page."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.cli.output import p_text, print_json, say, table
from evenhand.cli.progress import StepProgress, step_bars
from evenhand.fewshot.settings import COLUMNS, DataSettings
from evenhand.wording import interval, number

if TYPE_CHECKING:
    from evenhand.audit import Audit
    from evenhand.report.verdicts import Verdict


def _once(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,
    values: tuple[str, ...],
) -> str | None:
    """The one value of an option; the first of several would otherwise be dropped silently."""
    if len(values) > 1:
        raise click.BadParameter(
            f"expected once, got {', '.join(values)}: audit each into a folder of its own, then "
            "compare them with evenhand report A B",
            param_hint=f"--{parameter.name}",
        )
    return values[0] if values else None


ONCE = {"multiple": True, "default": (), "show_default": False, "callback": _once}


@click.command(cls=Command)
@opt.vectors_option(
    callback=_once,
    help="Word vectors: glove (embedded) or a file: GloVe or word2vec text with or without a"
    " header, word2vec binary, fastText .vec, our .npz; gzip of these. The format is detected.",
)
@opt.model_option(
    **ONCE,
    help="A language model: mini (embedded), a folder as save_pretrained writes it, with"
    " config.json, the weights and the tokenizer, a GGUF file, or hf:NAME of the hub. Its kind"
    " (masked, causal, sentence encoder) is read from its configuration.",
)
@opt.declared_options(
    DataSettings,
    only=["data", *COLUMNS],
    data={
        **ONCE,
        "help": "Labelled texts: simulated (embedded), a CSV, TSV, JSONL or Parquet file (gzip,"
        " bzip2 or zstd too) in UTF-8, - for standard input, or hf:NAME.",
    },
)
@opt.predictions_option
@click.option(
    "--answers",
    metavar="FILE",
    type=completion.TABLE,
    help="What a model wrote, a table as for evenhand answers measure.",
)
@opt.item_option
@opt.true_option()
@opt.pred_option()
@opt.group_option(
    multiple=True, help="A column of the predictions or answers with groups; repeatable."
)
@opt.score_option(multiple=True, metavar="CLASS=COLUMN", help="Columns of their scores, or 'p_*'.")
@opt.cluster_option(help="What texts have in common, such as a person or a document.")
@opt.positive_option
@opt.topic_option("gender", "religion", "race")
@click.option(
    "--quick",
    is_flag=True,
    help="A first look: no fine-tuning, one way of debiasing, the Bayesian model of one topic"
    " without its calibration, one few-shot network with less training, fewer texts.",
)
@opt.names_option(
    "--skip",
    metavar="PART[,PART…]",
    type=completion.PARTS,
    help="Leave out some of corpus, vectors, posterior, masked, causal, encoder, answers,"
    " fewshot, predictions.",
)
@click.option(
    "--interactive/--no-interactive",
    default=False,
    help="Embed the model in the page: whoever opens it can type a sentence and see the pronouns"
    " that the model expects, without a server. For BERT models of the size of mini; the page then"
    " has up to 15 MB.",
)
@opt.folder_option("Folder for the page, results, tables and figures.", default="audit-out")
@opt.device_option()
@opt.workers_option
@opt.restart_option
@opt.reading_options
@opt.seed_option()
@opt.prob_option()
@opt.json_option
def audit(
    predictions: str | None,
    answers: str | None,
    item: str | None,
    score: tuple[str, ...],
    topics: tuple[str, ...],
    folder: Path,
    workers: int | None,
    **options: Any,
) -> None:
    """Measure, mitigate, measure again, and write one page with a verdict on each finding.

    Without --vectors, --model and --data the embedded defaults are audited: GloVe vectors, a small
    BERT, simulated biographies. With some of them, only what you name: your vectors by their own
    measures and a Bayesian model, your model by the measures of its kind that have built-in
    material (a masked one by pronouns, professions and phrases), your data by odds ratios and by
    few-shot classifiers on the model (or on mini). A causal model with a chat template is asked
    some of the built-in prompts, and its answers are measured; saved answers of any model are
    measured with --answers. Everything you name is checked before the work starts. A part that
    fails does not lose the others; the same command resumes where it stopped.

    On two cores the defaults take about five minutes, with --quick about one; larger models take
    longer. One that would take more than ten minutes to fine-tune is not fine-tuned, and the page
    says so.

    \b
    Examples:
      evenhand audit
      evenhand audit --quick -o first-look
      evenhand audit --interactive -o to-share
      evenhand audit --vectors my.vec --topic gender,mine.toml -o my-audit
      evenhand audit --model ./my-bert -o my-model
      evenhand audit --model ./SmolLM2-135M.gguf -o my-causal-model
      evenhand audit --data my.csv --text bio --label job --gender sex --male 1 --female 2
      evenhand audit --vectors my.vec --model ./my-bert --data my.csv --label job -o all-mine
      evenhand audit --predictions test.csv --true y --pred yhat --group gender -o mine
      evenhand audit --answers answers.jsonl --group gender -o my-chatbot
    """
    from evenhand import lexicon
    from evenhand.audit import audit as run
    from evenhand.errors import PartialFailure
    from evenhand.files import public_arguments

    chosen = [lexicon.topic(name) for name in topics]
    read, written = None, None
    named = {name: options.pop(name) for name in ("true", "pred", "group", "cluster", "positive")}
    group = named["group"]
    if predictions is not None:
        from evenhand.classifier import read_predictions

        if answers is not None and group:
            raise click.UsageError("--group: expected --predictions or --answers, got both")
        read = read_predictions(predictions, score=opt.parse_scores(score), **named)
    elif score or any(value for name, value in named.items() if name != "group"):
        raise click.UsageError("--true, --pred, --score, --cluster, --positive: need --predictions")
    elif group and answers is None:
        raise click.UsageError("--group: need --predictions or --answers")
    if answers is not None:
        from evenhand.answers import read_answers

        written = read_answers(answers, item=item, group=group)
    elif item is not None:
        raise click.UsageError("--item: needs --answers")
    with step_bars() as show:
        columns = {name: options.pop(name) for name in COLUMNS}
        result = run(
            options.pop("vectors"),
            predictions=read,
            answers=written,
            topics=chosen,
            out=folder,
            columns=columns,
            workers=opt.worker_count(workers),
            progress=None if show is None else _Stages(show),
            command=["evenhand", *public_arguments(sys.argv[1:])],
            **options,
        )
    if not print_json(
        sentence=result.answer.headline,
        answer=result.answer.to_dict(),
        verdicts=result.verdicts,
        report=str(result.report),
        out=str(result.out),
        failed=result.failed,
    ):
        _show(result)
    if result.failed:
        reasons = "; ".join(f"{title} ({reason})" for title, reason in result.failed.items())
        raise PartialFailure(f"failed, the rest is saved: {reasons}")


def verdict_row(verdict: Verdict) -> tuple[str, ...]:
    """A verdict with its first number, as cells of a table."""
    numbers = ("–", "–", "–")
    if verdict.numbers:
        first = verdict.numbers[0]
        numbers = (
            number(first.value),
            interval(first.low, first.high),
            p_text(first.p_value, first.draws),
        )
    return (f"{verdict.name}: {verdict.topic}", verdict.level, *numbers, verdict.sentence)


def _show(result: Audit) -> None:
    headers = ("what", "verdict", "value", "interval", "p", "summary")
    table("Verdicts", headers, map(verdict_row, result.verdicts))
    for line in result.answer.lines():
        say(line)
    say(f"report: {result.report}")


class _Stages:
    """Shows the stages of an audit, each with its number, and the steps of the present one."""

    def __init__(self, show: StepProgress) -> None:
        self.show, self.title = show, ""

    def stage(self, title: str, number: int, of: int) -> None:
        self.title = f"{number} of {of}: {title}"
        self.show(self.title, 0, None, "")

    def step(self, done: int, of: int) -> None:
        self.show(self.title, done, of, "")
