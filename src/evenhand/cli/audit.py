"""`evenhand audit`: audit the embedded defaults or your own files, and write one page."""

from __future__ import annotations

import os
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import click

from evenhand.cli.options import F, json_option, prob_option, reading_options, seed_option

if TYPE_CHECKING:
    from rich.progress import Progress as Bars

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


def _source(name: str, text: str) -> Callable[[F], F]:
    return click.option(name, metavar="SRC", multiple=True, callback=_once, help=text)


@click.command(short_help="Audit vectors, a model and data; one page with verdicts.")
@_source(
    "--vectors",
    "Word vectors: glove (embedded) or a file: GloVe or word2vec text with or without a header,"
    " word2vec binary, fastText .vec, our .npz; gzip of these. The format is detected.",
)
@_source(
    "--model",
    "A masked language model: mini (embedded), a folder as save_pretrained writes it, with"
    " config.json, the weights with their masked head and the tokenizer; or hf:NAME of the hub.",
)
@_source(
    "--data",
    "Labelled texts: simulated (embedded), a CSV, TSV, JSONL or Parquet file (gzip, bzip2 or zstd"
    " too) in UTF-8, - for standard input, or hf:NAME.",
)
@click.option(
    "--text", metavar="COLUMN", help="Column of the text, if not text, sentence or hard_text."
)
@click.option(
    "--label", metavar="COLUMN", help="Column of the class, if not label, occupation, profession."
)
@click.option(
    "--gender",
    metavar="COLUMN",
    help="Column of the person's gender, if not gender. Without one, what compares women and men"
    " is left out.",
)
@click.option("--male", metavar="CODE", help="What the file has for a man, if not M or male.")
@click.option("--female", metavar="CODE", help="What it has for a woman, if not F or female.")
@click.option(
    "--topics",
    default="gender,religion,race",
    show_default=True,
    help="Topics of the vectors: built-in ones or .toml files of yours, with commas between them.",
)
@click.option(
    "--quick",
    is_flag=True,
    help="A first look: no fine-tuning, one way of debiasing, the Bayesian model of one topic"
    " without its calibration, one few-shot network with less training, fewer texts.",
)
@click.option(
    "--skip",
    default="",
    metavar="PART,…",
    help="Leave out some of text, vectors, posterior, masked, fewshot.",
)
@click.option(
    "-o",
    "--out",
    default="audit-out",
    show_default=True,
    type=click.Path(),
    help="Folder for the page, results, tables and figures.",
)
@click.option(
    "--jobs", type=click.IntRange(1), help="Processes that rewrite texts; by default one per core."
)
@reading_options
@seed_option
@prob_option
@json_option
def audit(
    vectors: str | None,
    model: str | None,
    data: str | None,
    topics: str,
    quick: bool,
    skip: str,
    out: str,
    jobs: int | None,
    seed: int,
    prob: float,
    as_json: bool,
    **columns: str | None,
) -> None:
    """Measure, mitigate, measure again, and write one page with a verdict on each finding.

    Without --vectors, --model and --data the embedded defaults are audited: GloVe vectors, a small
    BERT, simulated biographies. With some of them, only what you name: your vectors by their own
    measures and a Bayesian model, your model by pronouns, professions and phrases, your data by
    odds ratios and by few-shot classifiers on the model (or on mini). Everything you name is
    checked before the work starts. A part that fails does not lose the others; the same command
    resumes where it stopped.

    On two cores the defaults take about five minutes, with --quick about one; larger models take
    longer. One that would take more than ten minutes to fine-tune is not fine-tuned, and the page
    says so.

    \b
    Examples:
      evenhand audit
      evenhand audit --quick --out first-look
      evenhand audit --vectors my.vec --topics gender,mine.toml --out my-audit
      evenhand audit --model ./my-bert --out my-model
      evenhand audit --data my.csv --text bio --label job --gender sex --male 1 --female 2
      evenhand audit --vectors my.vec --model ./my-bert --data my.csv --label job --out all-mine
    """
    from evenhand import lexicon
    from evenhand.audit import audit as run
    from evenhand.cli.output import print_json
    from evenhand.errors import PartialFailure

    chosen = [lexicon.topic(name.strip()) for name in topics.split(",") if name.strip()]
    with _bars(quiet=as_json) as progress:
        result = run(
            vectors,
            model=model,
            data=data,
            topics=chosen,
            out=out,
            quick=quick,
            skip=[name.strip() for name in skip.split(",") if name.strip()],
            columns=columns,
            seed=seed,
            prob=prob,
            jobs=jobs or len(os.sched_getaffinity(0)),
            progress=progress,
            command=["evenhand", *sys.argv[1:]],
        )
    if as_json:
        print_json(
            verdicts=result.verdicts,
            report=str(result.report),
            out=str(result.out),
            failed=result.failed,
        )
    else:
        _show(result)
    if result.failed:
        reasons = "; ".join(f"{title} ({reason})" for title, reason in result.failed.items())
        raise PartialFailure(f"failed, the rest is saved: {reasons}")


def _row(verdict: Verdict) -> tuple[str, ...]:
    from evenhand.cli.output import number, p_text

    first = verdict.numbers[0] if verdict.numbers else None
    numbers = ("–", "–", "–")
    if first is not None:
        span = f"[{number(first.low)}, {number(first.high)}]"
        numbers = (number(first.value), span, p_text(first.p_value))
    return (f"{verdict.name}: {verdict.topic}", verdict.level, *numbers, verdict.sentence)


def _show(result: Audit) -> None:
    from evenhand.cli.output import table

    headers = ("what", "verdict", "value", "interval", "p", "summary")
    table("Verdicts", headers, map(_row, result.verdicts))
    click.echo(f"report: {result.report}")


class _Shown:
    """Two bars: the stages, and the steps of the present one."""

    def __init__(self, bars: Bars) -> None:
        self.bars = bars
        self.whole = bars.add_task("audit", total=None)
        self.part = bars.add_task("", total=None)
        self.before = 0

    def stage(self, title: str, number: int, of: int) -> None:
        self.before = number - 1
        self.bars.update(self.whole, completed=number - 1, total=of)
        self.bars.reset(self.part, description=title, total=None)

    def step(self, done: int, of: int) -> None:
        self.bars.update(self.part, completed=done, total=of)
        self.bars.update(self.whole, completed=self.before + done / max(1, of))


@contextmanager
def _bars(*, quiet: bool) -> Iterator[Any]:
    if quiet or not sys.stderr.isatty():
        yield None
        return
    from rich.console import Console
    from rich.progress import Progress as Bars

    with Bars(console=Console(stderr=True), transient=True) as bars:
        yield _Shown(bars)
