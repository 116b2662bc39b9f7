"""`evenhand explore`: models, word vectors and an audit in the browser, on this machine only."""

from __future__ import annotations

import sys
import webbrowser
from importlib.util import find_spec
from pathlib import Path

import click

from evenhand.cli.commands import Command
from evenhand.cli.options import (
    ModelLoader,
    group_option,
    load_vectors,
    model_option,
    model_options,
    pred_option,
    predictions_option,
    true_option,
    vectors_option,
)
from evenhand.errors import InputError, MissingExtraError

__all__ = ["explore"]


@click.command(cls=Command, short_help="Models, vectors and audits in the browser, live.")
@model_option(
    multiple=True,
    default=(),
    show_default=False,
    help="A masked or causal model; repeat it to see several side by side, such as before and"
    " after fine-tuning.",
)
@vectors_option(help="Word vectors: glove (embedded) or a file; repeatable.")
@click.option(
    "--run",
    "folder",
    metavar="FOLDER",
    type=click.Path(exists=True, file_okay=False, path_type=Path),
    help="The folder of an audit: its verdicts, results and items.",
)
@predictions_option
@true_option()
@pred_option()
@group_option(multiple=True, help="A column of the predictions with groups of people; repeatable.")
@click.option("--text", metavar="COLUMN", help="The column of the predictions with the texts.")
@click.option(
    "--port",
    type=click.IntRange(1, 65535),
    help="The port on 127.0.0.1.  [default: 8750, or a free one if that is taken]",
)
@click.option("--no-browser", is_flag=True, help="Only print the address.")
@model_options
def explore(
    model: tuple[str, ...],
    vectors: tuple[str, ...],
    folder: Path | None,
    predictions: str | None,
    true: str | None,
    pred: str | None,
    group: tuple[str, ...],
    text: str | None,
    port: int | None,
    no_browser: bool,
    load: ModelLoader,
) -> None:
    """Explore models, word vectors and an audit in the browser while you type.

    Three tabs: Sentence (which pronoun a model expects, how usual that is, what changes with
    another word, and how likely counterfactual versions are), Words (association tests of your own
    lists, two bias axes at once, neighbours before and after debiasing) and Run (from the verdicts
    of an audit to their items, and the errors of a classifier). Without --model, --vectors, --run
    and --predictions the embedded model and vectors are shown, else what you name.

    The page is served on this machine only (127.0.0.1), to who has the token of the printed
    address, and loads nothing from elsewhere. A link restores a view while the explorer runs.
    Ctrl-C ends it.

    \b
    Examples:
      evenhand explore
      evenhand explore --model mini --model ./mini-finetuned
      evenhand explore --vectors my.vec --run audit-out
      evenhand explore --predictions test.csv --true y --pred yhat --group gender --text bio
    """
    for package in ("starlette", "uvicorn"):
        if find_spec(package) is None:
            raise MissingExtraError(package, "the explorer", "evenhand[explore]")
    from evenhand.explore.run import read_prediction_table
    from evenhand.explore.server import listen, serve
    from evenhand.explore.subjects import load_subjects

    if not (model or vectors or folder or predictions):
        model, vectors = ("mini",), ("glove",)
    table = None
    if predictions is not None:
        table = read_prediction_table(predictions, text=text, true=true, pred=pred, group=group)
    elif any((true, pred, group, text)):
        raise click.UsageError("--true, --pred, --group, --text: need --predictions")
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
            load_vectors=lambda source: load_vectors(source, "fallback"),
            predictions=table,
            cache=load.cache,
        )
        try:
            serve(subjects, connection, ready=ready)
        except KeyboardInterrupt:
            click.echo("explorer: ended")
