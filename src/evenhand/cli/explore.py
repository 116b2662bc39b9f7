"""`evenhand explore`: models, vectors, audits and answers in the browser, on this machine only."""

from __future__ import annotations

import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path

import click

from evenhand.cli import completion
from evenhand.cli import options as opt
from evenhand.cli.commands import Command
from evenhand.errors import InputError, MissingExtraError


@click.command(cls=Command)
@opt.model_option(
    multiple=True,
    default=(),
    show_default=False,
    help="A masked or causal model; repeat it to see several side by side, such as before and"
    " after fine-tuning.",
)
@opt.vectors_option(help="Word vectors: glove (embedded) or a file; repeatable.")
@click.option(
    "--run",
    "folder",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of an audit: its verdicts, results and items.",
)
@opt.predictions_option
@opt.true_option()
@opt.pred_option()
@opt.group_option(
    multiple=True, help="A column of the predictions or answers with groups; repeatable."
)
@click.option(
    "--text", metavar="COLUMN", help="The column with the texts of the predictions or the answers."
)
@click.option(
    "--answers",
    "collected",
    metavar="FILE",
    type=completion.TABLE,
    help="What a model wrote, a table as for evenhand answers measure.",
)
@opt.item_option
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The port on 127.0.0.1.  [default: 8750, or a free one if that is taken]",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@opt.model_options
def explore(
    model: tuple[str, ...],
    vectors: tuple[str, ...],
    folder: Path | None,
    predictions: str | None,
    collected: str | None,
    true: str | None,
    pred: str | None,
    item: str | None,
    group: tuple[str, ...],
    text: str | None,
    port: int | None,
    no_browser: bool,
    load: opt.ModelLoader,
) -> None:
    """Explore models, word vectors and an audit in the browser while you type.

    Four tabs: Sentence (which pronoun a model expects, how usual that is, what changes with
    another word, and how likely counterfactual versions are), Words (association tests of your own
    lists, two bias axes at once, neighbours before and after debiasing), Run (from the verdicts of
    an audit to their items, and the errors of a classifier) and Answers (what a model wrote, the
    groups of an item side by side). Without --model, --vectors, --run, --predictions and --answers
    the embedded model and vectors are shown, else what you name.

    The page is served on this machine only (127.0.0.1), to who has the token of the printed
    address, and loads nothing from elsewhere. A link restores a view while the explorer runs.
    Ctrl-C ends it.

    \b
    Examples:
      evenhand explore
      evenhand explore --model mini --model ./mini-finetuned
      evenhand explore --vectors my.vec --run audit-out
      evenhand explore --predictions test.csv --true y --pred yhat --group gender --text bio
      evenhand explore --answers answers.jsonl --group gender
    """
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "the explorer", "evenhand[explore]")
    from evenhand.answers.table import read_answers
    from evenhand.explore.run import read_prediction_table
    from evenhand.explore.server import listen, serve
    from evenhand.explore.subjects import load_subjects

    if not (model or vectors or folder or predictions or collected):
        model, vectors = ("mini",), ("glove",)
    if (true or pred) and predictions is None:
        raise click.UsageError("--true, --pred: need --predictions")
    if item and collected is None:
        raise click.UsageError("--item: needs --answers")
    if (group or text) and bool(predictions) == bool(collected):
        raise click.UsageError("--group, --text: need --predictions or --answers, one of them")
    table, answers = None, None
    if predictions is not None:
        table = read_prediction_table(predictions, true=true, pred=pred, group=group, text=text)
    if collected is not None:
        answers = read_answers(collected, text=text, item=item, group=group)
    try:
        connection = listen(port)
    except OSError as error:
        raise InputError(f"--port {port}: {error.strerror}; another one may be free") from None

    def ready(address: str) -> None:
        click.echo(f"explorer: {address}\nCtrl-C ends it.")
        if not no_browser:
            webbrowser.open(address)

    with connection:
        if sys.stderr.isatty() and (model or vectors):
            click.echo(f"loading {', '.join((*model, *vectors))} …", err=True)
        subjects = load_subjects(
            model,
            vectors,
            folder,
            load_model=load.any,
            load_vectors=lambda source: opt.load_vectors(source, "fallback"),
            predictions=table,
            collected=answers,
            cache=load.cache,
        )
        try:
            serve(subjects, connection, ready=ready)
        except KeyboardInterrupt:
            click.echo("explorer: ended")
