"""Options and arguments: those that several commands share, and those that instruments declare."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path, PurePath
from typing import TYPE_CHECKING, Any, TypeVar

import click
from click.core import ParameterSource

from evenhand.files import reading, real_path

if TYPE_CHECKING:
    from evenhand.instruments import Option
    from evenhand.text.corpus import Form
    from evenhand.vectors.store import Vectors

F = TypeVar("F", bound=Callable[..., Any])


def combine(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several decorators as one, in the order in which help shows them."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


json_option = click.option("--json", "as_json", is_flag=True, help="One JSON document on stdout.")
seed_option = click.option(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    show_default=True,
    help="Seed of all random draws.",
)
prob_option = click.option(
    "--prob",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    show_default=True,
    help="Probability of the intervals.",
)
case_option = click.option(
    "--case",
    type=click.Choice(["fallback", "exact"]),
    default="fallback",
    show_default=True,
    help="fallback: look up a word as it is, then in lower case, Capitalised, UPPER.",
)


class Size(click.ParamType):
    """A number of bytes, such as 500MB or 4GB."""

    name = "SIZE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        match = re.fullmatch(r"(\d{1,15})\s*([KMGT]?)i?B?", str(value).strip(), re.IGNORECASE)
        if match is None:
            self.fail(f"expected a size such as 500MB or 4GB, got '{value}'", param, ctx)
        return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


def _read_with(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """While the command runs, input is read with this encoding or limit."""
    if value is not None:
        ctx.with_resource(reading(**{str(parameter.name): value}))


size_option = click.option(
    "--max-size",
    "max_bytes",
    type=Size(),
    metavar="SIZE",
    expose_value=False,
    callback=_read_with,
    help="Limit of an input file, decompressed, where it is held in memory; a record may have a "
    "quarter of it.  [default: 1GB]",
)
encoding_option = click.option(
    "--encoding",
    metavar="NAME",
    expose_value=False,
    callback=_read_with,
    help="Encoding of the input, such as latin-1, cp1252 or utf-16; utf-8-lenient leaves bytes "
    "that are not UTF-8 as they are. Output is in UTF-8.  [default: utf-8]",
)
reading_options = combine(encoding_option, size_option)
"""How a command reads texts and tables."""
source_argument = combine(click.argument("source", metavar="SRC"), size_option)
"""A file of vectors, which has no encoding."""


def _formats(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: str,
) -> tuple[str, ...]:
    from evenhand.charts import FORMATS

    formats = tuple(dict.fromkeys(name.strip().lower() for name in value.split(",")))
    for name in formats:
        if name not in FORMATS:
            raise click.BadParameter(f"expected some of {', '.join(FORMATS)}, got '{name}'")
    return formats


format_option = click.option(
    "--format",
    "formats",
    default="svg",
    show_default=True,
    callback=_formats,
    metavar="FORMAT,…",
    help="Formats of the figures in FOLDER: svg, pdf, html.",
)


def output_option(text: str) -> Callable[[F], F]:
    """-o FILE, refused before any work if its folder does not exist."""
    return click.option("-o", "--output", type=click.Path(), callback=_writable, help=text)


def _writable(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> str | None:
    real_path(value or ".")
    folder = Path(value or ".").parent
    if not folder.is_dir():
        raise click.BadParameter(f"expected a file in a folder that exists, got {value}")
    return value


def folder_option(text: str) -> Callable[[F], F]:
    """-o FOLDER, refused before any work if it cannot be created."""
    return click.option(
        "-o", "--output", metavar="FOLDER", type=click.Path(), callback=_folder, help=text
    )


def _folder(
    ctx: click.Context,  # noqa: ARG001
    parameter: click.Parameter,  # noqa: ARG001
    value: str | None,
) -> Path | None:
    if value is None:
        return None
    path = Path(value)
    real_path(path)
    if not path.parent.is_dir() or (path.exists() and not path.is_dir()):
        raise click.BadParameter(f"expected a folder that exists or can be created, got {value}")
    return path


def load_vectors(source: str, case: str) -> Vectors:
    """Load the vectors, with a progress bar on stderr where that is a terminal."""
    from evenhand.vectors.store import load

    if not sys.stderr.isatty():
        return load(source, case=case)  # type: ignore[arg-type]
    from rich.console import Console
    from rich.progress import Progress

    with Progress(console=Console(stderr=True), transient=True) as shown:
        task = shown.add_task(f"reading {source}", total=None)
        return load(
            source,
            case=case,  # type: ignore[arg-type]
            progress=lambda done, total: shown.update(task, completed=done, total=total),
        )


COMPRESSED = (".gz", ".bz2", ".zst")
ENDINGS = {".jsonl": "jsonl", ".ndjson": "jsonl", ".json": "jsonl", ".csv": "csv", ".tsv": "tsv"}
format_options = combine(
    click.option(
        "--field",
        metavar="NAME",
        help="The field of each JSONL object or column of each CSV row that holds the document;"
        " the rest of the record stays as it is. Without it a document is a line.",
    ),
    click.option(
        "--format",
        "form",
        type=click.Choice(["lines", "jsonl", "csv", "tsv"]),
        help="How the input is cut; by default lines, or with --field by the file's ending.",
    ),
    reading_options,
)


def form_of(sources: Sequence[str], field: str | None, form: str | None) -> Form:
    """How documents are cut out of the sources."""
    from evenhand.text.corpus.formats import Csv, Jsonl, Lines

    if form is None and field is not None:
        form = _form_by_ending(sources[0])
    if form in (None, "lines"):
        if field is not None:
            raise click.UsageError("--field goes with JSONL and CSV, not with lines")
        return Lines()
    if field is None:
        raise click.UsageError(f"--format {form} needs --field: which field holds the document?")
    if form == "jsonl":
        return Jsonl(field)
    return Csv(field, delimiter="\t" if form == "tsv" else ",")


def _form_by_ending(source: str) -> str:
    name = source.lower()
    for ending in COMPRESSED:
        name = name.removesuffix(ending)
    ending = PurePath(name).suffix
    if ending not in ENDINGS:
        raise click.UsageError(
            f"{source}: --field needs a file ending in {', '.join(ENDINGS)}, or --format"
        )
    return ENDINGS[ending]


def declared_options(*classes: Any) -> Callable[[F], F]:
    """The options of these instruments; an option that several share appears once."""
    options: dict[str, Option] = {}
    for cls in classes:
        for option in cls.declaration.options:
            options.setdefault(option.name, option)

    return combine(*map(_click_option, options.values()))


def configure(cls: Any, parameters: Mapping[str, Any], **fixed: Any) -> Any:
    """The instrument with its options taken from the parameters of a command."""
    names = {option.name for option in cls.declaration.options}
    return cls(**{name: parameters[name] for name in names & parameters.keys()}, **fixed)


def given_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a command's parameters that the user gave; the others have their defaults."""
    context = click.get_current_context()
    return {
        name: value
        for name, value in parameters.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def describe(classes: Iterable[Any]) -> str:
    """The instruments for a help text: name and question, one line each."""
    rows = [(cls.declaration.name, cls.declaration.question) for cls in classes]
    width = max(len(name) for name, _ in rows)
    lines = "\n".join(f"  {name.ljust(width)}  {question}" for name, question in rows)
    return f"\b\n{lines}"


def flags_of(option: Option) -> list[str]:
    """The names of an option on the command line."""
    return (option.flag or f"--{option.name.replace('_', '-')}").split()


def _click_option(option: Option) -> Callable[[F], F]:
    flags = flags_of(option)
    if option.type is bool:
        return click.option(
            *flags, option.name, is_flag=True, default=option.default, help=option.help
        )
    kind: Any = option.type
    if option.choices:
        kind = click.Choice([str(choice) for choice in option.choices])
    elif option.type is int and (option.minimum is not None or option.maximum is not None):
        kind = click.IntRange(_whole(option.minimum), _whole(option.maximum))
    elif option.type is float and (option.minimum is not None or option.maximum is not None):
        kind = click.FloatRange(option.minimum, option.maximum)
    return click.option(
        *flags,
        option.name,
        type=kind,
        default=option.default,
        multiple=option.multiple,
        show_default=option.default not in (None, ()),
        help=option.help,
    )


def _whole(value: float | None) -> int | None:
    return None if value is None else int(value)
