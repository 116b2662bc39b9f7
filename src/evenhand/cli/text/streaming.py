"""What commands that stream a corpus share: how documents are cut out, processes, a bar."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click

if TYPE_CHECKING:
    from evenhand.text.corpus.formats import Form
    from evenhand.text.corpus.pipeline import Progress

__all__ = ["form_of", "form_options", "progress_bar", "streaming_options"]

F = TypeVar("F", bound=Callable[..., Any])

PACKED = (".gz", ".bz2", ".zst")
ENDINGS = {
    ".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv",
}  # fmt: skip


def form_options(command: F) -> F:
    """--field and --format: how documents are cut out of the files."""
    field = click.option(
        "--field", metavar="NAME",
        help="The field of each JSONL object or column of each CSV row that holds the document;"
        " the rest of the record stays as it is. Without it a document is a line.",
    )  # fmt: skip
    form = click.option(
        "--format", "form", type=click.Choice(["lines", "jsonl", "csv", "tsv"]),
        help="How the input is cut; by default lines, or with --field by the file's ending.",
    )  # fmt: skip
    return field(form(command))


def streaming_options(command: F) -> F:
    """--field, --format, --jobs and --no-resume."""
    jobs = click.option(
        "--jobs", type=click.IntRange(1), default=1, show_default=True,
        help="Processes; the order of the output is kept.",
    )  # fmt: skip
    resume = click.option(
        "--resume/--no-resume", default=True,
        help="With -o: go on where the same command was broken off (default).",
    )  # fmt: skip
    return form_options(jobs(resume(command)))


def form_of(sources: Sequence[str], field: str | None, form: str | None) -> Form:
    """How documents are cut out of the sources."""
    from evenhand.text.corpus.formats import Csv, Jsonl, Lines

    if form is None and field is not None:
        form = _by_ending(sources[0])
    if form in (None, "lines"):
        if field is not None:
            raise click.UsageError("--field goes with JSONL and CSV, not with lines")
        return Lines()
    if field is None:
        raise click.UsageError(f"--format {form} needs --field: which field holds the document?")
    if form == "jsonl":
        return Jsonl(field)
    return Csv(field, delimiter="\t" if form == "tsv" else ",")


def _by_ending(source: str) -> str:
    name = source.lower()
    for packed in PACKED:
        name = name.removesuffix(packed)
    ending = PurePath(name).suffix
    if ending not in ENDINGS:
        raise click.UsageError(
            f"{source}: --field needs a file ending in {', '.join(ENDINGS)}, or --format"
        )
    return ENDINGS[ending]


@contextmanager
def progress_bar(sources: Sequence[str]) -> Iterator[Progress | None]:
    """A bar with the rate and the time left on stderr, where that is a terminal."""
    if not sys.stderr.isatty() or list(sources) == ["-"]:
        yield None
        return
    from rich.console import Console
    from rich.progress import BarColumn, DownloadColumn, Progress, TimeRemainingColumn
    from rich.progress import TransferSpeedColumn as Speed

    columns = (BarColumn(), DownloadColumn(), Speed(), TimeRemainingColumn())
    with Progress(*columns, console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task("", total=None)
        yield lambda done, total: shown.update(task, completed=done, total=total)
