"""Options of commands: each is declared by an instrument, by settings, or here, and only once."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeGuard, TypeVar

import click
from click.core import ParameterSource

from evenhand.cli import completion
from evenhand.cli.output import recording, say
from evenhand.cli.outputs import OutputFile, OutputFolder
from evenhand.cli.progress import flag, is_set, progress_bar
from evenhand.errors import InputError, UnknownNameError
from evenhand.files import check_folder, reading, real_path
from evenhand.instruments import Instrument, Option, Run, options_of

if TYPE_CHECKING:
    from evenhand.cache import Cache
    from evenhand.models.masked import MaskedModel
    from evenhand.models.sources import DType
    from evenhand.text.corpus import Form
    from evenhand.vectors.store import Vectors

A = TypeVar("A")
B = TypeVar("B")
F = TypeVar("F", bound=Callable[..., object])


def combine(*options: Callable[[Any], Any]) -> Callable[[F], F]:
    """Several decorators as one, in the order in which help shows them."""

    def decorate(command: F) -> F:
        for option in reversed(options):
            command = option(command)
        return command

    return decorate


def shared(*flags: str, **usual: object) -> Callable[..., Callable[[F], F]]:
    """An option of several commands; a command gives what differs, such as its help."""
    return lambda *name, **own: click.option(*flags, *name, **{**usual, **own})


# ---- what several commands have

json_option = click.option("--json", **flag("One JSON document on stdout."))
seed_option = shared(
    "--seed",
    type=click.IntRange(0, 2**32 - 1),
    default=0,
    help="Seed of all random draws.",
)
prob_option = shared(
    "--prob",
    type=click.FloatRange(0, 1, min_open=True, max_open=True),
    default=0.95,
    help="Probability of the intervals.",
)
restart_option = click.option(
    "--restart", is_flag=True, help="Start again, not where the same command was interrupted."
)
workers_option = click.option(
    "--workers",
    type=click.IntRange(1),
    help="Processes at work at the same time; the results are the same.  [default: one per core, "
    "for short input one]",
)
figures_option = shared(
    "--figures", metavar="FOLDER", type=OutputFolder(file_okay=False, path_type=Path)
)
vectors_option = shared("--vectors", multiple=True, metavar="SRC", type=completion.VECTORS)
predictions_option = click.option(
    "--predictions",
    metavar="FILE",
    type=completion.TABLE,
    help="Predictions of your classifier, a table as for evenhand classifier.",
)
true_option = shared("--true", metavar="COLUMN", help="The column with the true classes.")
positive_option = click.option(
    "--positive",
    metavar="CLASS",
    help="The class whose rates are measured; inferred for 0/1, yes/no, true/false.",
)
pred_option = shared("--pred", metavar="COLUMN", help="The column with the predicted classes.")
item_option = click.option(
    "--item", metavar="COLUMN", help="The column with the names of the texts or items."
)
group_option = shared("--group", metavar="COLUMN")
limit_option = shared(
    "--limit", metavar="N", help="Use only the first N: seeds, or the most frequent words."
)
score_option = shared("--score", metavar="COLUMN")
cluster_option = shared("--cluster", metavar="COLUMN")


def run_options(command: F) -> F:
    """--seed and --prob, which the command takes as `run`."""

    @wraps(command)
    def call(*, seed: int, prob: float, **others: object) -> object:
        return command(run=Run(seed=seed, prob=prob), **others)

    decorated: F = combine(seed_option(), prob_option())(call)  # type: ignore[assignment]
    return decorated


def callback(convert: Callable[[A], B]) -> Callable[[click.Context, click.Parameter, A], B]:
    """A function of a value as a callback of click."""
    return lambda _context, _parameter, value: convert(value)


def split_names(values: Iterable[str]) -> tuple[str, ...]:
    """The names of a repeatable option, whose values may have commas between them."""
    return tuple(name for value in values for part in value.split(",") if (name := part.strip()))


def names_option(flag: str, *name: str, **about: Any) -> Callable[[F], F]:
    """An option that can be repeated, and has commas between the names of one value."""
    usual = {"multiple": True, "metavar": "NAME[,NAME…]", "callback": callback(split_names)}
    return click.option(flag, *name, **{**usual, **about})


def metric_option(*subjects: str) -> Callable[[F], F]:
    """--metric as `metrics`, of these subjects."""
    return names_option(
        "--metric",
        "metrics",
        type=completion.metrics_of(*subjects),
        help="Only these metrics; repeatable.",
    )


def topic_option(*default: str) -> Callable[[F], F]:
    """--topic as `topics`: built-in topics or files."""
    about: dict[str, Any] = {"default": default} if default else {}
    return names_option(
        "--topic",
        "topics",
        type=completion.TOPICS,
        help="Built-in topics or .toml files of yours; repeatable.",
        **about,
    )


question_options = combine(
    topic_option(),
    names_option(
        "--weat",
        "weats",
        metavar="N[,N…]",
        type=completion.WEATS,
        help="Built-in WEATs, 1 to 10, or all; repeatable.",
    ),
    click.option(
        "--query",
        "queries",
        multiple=True,
        type=click.Path(),
        help='A JSON file {"name", "targets": {name: [words]}, "attributes": {name: [words]}}; '
        "repeatable.",
    ),
)
"""--topic, --weat and --query as `topics`, `weats` and `queries`."""

material_option = shared(metavar="FILE", type=click.Path(allow_dash=True))
"""A file that a command measures on beside its input, under the name that the command gives."""

data_option = click.option(
    "--data",
    metavar="FILE|-",
    type=completion.TEXT_FILE,
    help="The material of the metric instead of the built-in one; - is the standard input.",
)


def single(values: Sequence[str], flag: str) -> str:
    """The one value of a repeatable option, where a command takes one."""
    if len(values) != 1:
        raise click.UsageError(f"{flag}: expected one, got {', '.join(values) or 'none'}")
    return values[0]


def worker_count(workers: int | None, sources: Sequence[str] = ()) -> int:
    """The number of processes: as given, else one per core, or one for less than `SHORT` bytes."""
    if workers is not None:
        return workers
    if sources and sum(_size_of(source) for source in sources) < SHORT:
        return 1
    return len(os.sched_getaffinity(0))


SHORT = 50_000_000
"""Bytes of text below which one process is faster than starting others."""


def _size_of(source: str) -> int:
    path = Path(source)
    return path.stat().st_size if path.is_file() else 0


def _formats(value: str) -> tuple[str, ...]:
    from evenhand.charts import FORMATS

    formats = tuple(dict.fromkeys(name.strip().lower() for name in value.split(",")))
    for name in formats:
        if name not in FORMATS:
            raise click.BadParameter(f"expected some of {', '.join(FORMATS)}, got '{name}'")
    return formats


format_option = click.option(
    "--figure-format",
    "formats",
    default="svg",
    callback=callback(_formats),
    metavar="FORMAT,…",
    help="Formats of the figures: svg, pdf, html.",
)


# ---- how input is read


def parse_size(value: str) -> int:
    """A number of bytes, such as 500MB or 4GB."""
    match = re.fullmatch(r"(\d{1,15})\s*([KMGT]?)i?B?", value.strip(), re.IGNORECASE)
    if match is None:
        raise click.BadParameter(f"expected a size such as 500MB or 4GB, got '{value}'")
    return int(match[1]) << 10 * " KMGT".index(match[2].upper() or " ")


def _read_with(ctx: click.Context, parameter: click.Parameter, value: Any) -> None:
    """While the command runs, input is read with this encoding or limit."""
    if value is not None:
        ctx.with_resource(reading(**{str(parameter.name): value}))


size_option = click.option(
    "--max-size",
    "max_bytes",
    type=parse_size,
    metavar="SIZE",
    expose_value=False,
    callback=_read_with,
    help="Limit of an input file, decompressed, where it is held in memory; a line or a record may "
    "have a 128th of it.  [default: 1GB]",
)
encoding_option = click.option(
    "--encoding",
    metavar="NAME",
    type=completion.ENCODING,
    expose_value=False,
    callback=_read_with,
    help="Encoding of the input, such as latin-1, cp1252 or utf-16; utf-8-lenient leaves bytes "
    "that are not UTF-8 as they are. Output is in UTF-8.  [default: utf-8]",
)
reading_options = combine(encoding_option, size_option)
"""How a command reads texts and tables."""


# ---- what is written


RESULTS = (".csv", ".json")
ROWS = (".csv", ".jsonl", ".parquet")


def results_options(*, items: bool = True, page: bool = False) -> Callable[[F], F]:
    """-o FILE saves the tables on the screen, --items FILE what they rest on.

    Both are written when the command has succeeded. With `items=False` the command has an option
    --items of its own; with `page` it offers a page (`offer_page`).
    """

    def decorate(command: F) -> F:
        @wraps(command)
        def call(*, out: str | None, **others: Any) -> object:
            path = others.pop("items", None) if items else None
            with recording() as record:
                code = command(**others)
            if out is not None:
                record.save(out)
            if path is not None:
                record.save_items(path)
            if not is_set("json"):
                for written in filter(None, (out, path)):
                    say(f"written: {written}")
                if record.finding:
                    say(record.finding)
            return code

        options = [
            output_option(
                "Save the tables on the screen as FILE.csv, or all results with their items as "
                "FILE.json, which a gate reads"
                + (", or their page as FILE.html." if page else "."),
                name="out",
                endings=(*RESULTS, ".html") if page else RESULTS,
            )
        ]
        if items:
            options.append(
                items_option("Save the items behind the results: .csv, .jsonl or .parquet.", ROWS)
            )
        decorated: F = combine(*options)(call)  # type: ignore[assignment]
        return decorated

    return decorate


def items_option(text: str, endings: Sequence[str] = (".csv",)) -> Callable[[F], F]:
    """--items FILE, refused before any work if its folder does not exist."""
    return file_option("--items", endings=endings, help=text)


def output_option(
    text: str, *, name: str = "output", endings: Sequence[str] = (), required: bool = False
) -> Callable[[F], F]:
    """-o FILE, refused before any work if its folder does not exist."""
    return file_option("-o", "--out", name, endings=endings, help=text, required=required)


def file_option(*flags: str, endings: Sequence[str] = (), **about: Any) -> Callable[[F], F]:
    """A file to write, refused before any work if its folder does not exist."""

    def check(value: str | None) -> str | None:
        if value is not None and endings and Path(value).suffix.lower() not in endings:
            expected = " or ".join(endings)
            raise click.BadParameter(f"expected a file that ends in {expected}, got {value}")
        real_path(value or ".")
        if not Path(value or ".").parent.is_dir():
            raise click.BadParameter(f"expected a file in a folder that exists, got {value}")
        return value

    usual = {"metavar": "FILE", "type": OutputFile(), "callback": callback(check)}
    return click.option(*flags, **{**usual, **about})


def folder_option(
    text: str, *, default: str | None = None, required: bool = False
) -> Callable[[F], F]:
    """-o FOLDER as `folder`; if nothing has to be written, one that cannot be made is refused."""
    always = required or default is not None

    def check(path: Path | None) -> Path | None:
        real_path(path or ".")
        if path and always:
            return check_folder(path)
        if path and (not path.parent.is_dir() or (path.exists() and not path.is_dir())):
            raise click.BadParameter(f"expected a folder that exists or can be created, got {path}")
        return path

    usual: dict[str, Any] = {} if default is None else {"default": default}
    return click.option(
        "-o",
        "--out",
        "folder",
        metavar="FOLDER",
        type=OutputFolder(path_type=Path),
        required=required,
        callback=callback(check),
        help=text,
        **usual,
    )


# ---- word vectors and models

source_argument = combine(
    click.argument("source", metavar="SRC", type=completion.VECTORS), size_option
)
"""A file of vectors, which has no encoding."""
folder_argument = click.argument(
    "folder", metavar="DIR", type=click.Path(exists=True, file_okay=False, path_type=Path)
)
case_option = click.option(
    "--case",
    type=click.Choice(["fallback", "exact"]),
    default="fallback",
    help="fallback: look up a word as it is, then in lower case, Capitalised, UPPER.",
)


def kind_of_source(source: str, others: Iterable[str] = ()) -> str:
    """The kind of what a name or a path means: vectors, masked, causal or encoder.

    An error also suggests `others`, such as the names of metrics.
    """
    from evenhand.models.loading import kind_of
    from evenhand.models.sources import EMBEDDED
    from evenhand.vectors.store import EMBEDDED as VECTORS

    model = source in EMBEDDED or source.startswith("hf:") or source.lower().endswith(".gguf")
    if model or Path(source).is_dir():
        return kind_of(source)
    if source in VECTORS:
        return "vectors"
    if not Path(source).exists():
        raise UnknownNameError("source", source, [*VECTORS, *EMBEDDED, *others])
    if source.lower().endswith(TABLES):
        raise InputError(
            f"{source}: expected word vectors or a model, got a table; `evenhand odds` measures "
            "texts, `evenhand classifier` predictions, `evenhand scores` scores"
        )
    return "vectors"


def load_vectors(source: str, case: str) -> Vectors:
    """Load the vectors, with progress on stderr."""
    from evenhand.vectors.store import load

    with progress_bar(f"reading {source}") as progress:
        return load(source, case=case, progress=progress)  # type: ignore[arg-type]


model_option = shared(
    "--model",
    default="mini",
    metavar="SRC",
    type=completion.MODEL,
    help="The model: mini, the path of a folder, or hf:NAME.",
)
device_option = shared(
    "--device",
    default="auto",
    metavar="DEVICE",
    type=completion.DEVICE,
    help="Where models run: auto, cpu, cuda, cuda:1 …",
)
dtype_option = click.option(
    "--dtype",
    type=click.Choice(["float32", "bfloat16", "float16"]),
    default="float32",
    help="Data type of the computation; on a GPU float16 is fast and near float32, "
    "bfloat16 less near.",
)
cache_option = shared("--cache", metavar="FOLDER", type=click.Path(file_okay=False, path_type=Path))


@dataclass(frozen=True)
class ModelLoader:
    """Loads models as the options of `model_options` say."""

    device: str
    dtype: DType
    int8: bool
    folder: Path | None

    def check_device(self) -> None:
        """Check that a device that was named is there, before anything is read."""
        from evenhand.models.sources import choose_device

        if self.device != "auto":
            choose_device(self.device)

    def __call__(self, source: str) -> MaskedModel:
        from evenhand.models.masked import load

        return load(source, device=self.device, dtype=self.dtype, int8=self.int8)

    def any(self, source: str) -> Any:
        """A language model of any kind."""
        from evenhand.models.loading import load

        return load(source, device=self.device, dtype=self.dtype, int8=self.int8)

    @cached_property
    def cache(self) -> Cache | None:
        from evenhand.cache import Cache

        return None if self.folder is None else Cache(self.folder)


def model_options(command: F) -> F:
    """--device, --dtype, --int8 and --cache, which the command takes as `load`."""

    @wraps(command)
    def call(
        *, device: str, dtype: DType, int8: bool, cache: Path | None, **others: object
    ) -> object:
        return command(load=ModelLoader(device, dtype, int8, cache), **others)

    options = combine(
        device_option(),
        dtype_option,
        click.option(
            "--int8", is_flag=True, help="8-bit weights on the CPU: faster, and no longer exact."
        ),
        cache_option(
            help="Cache the scores of the model here: the same command, interrupted or on a longer"
            " file, computes only what is missing."
        ),
        reading_options,
    )
    decorated: F = options(call)  # type: ignore[assignment]
    return decorated


# ---- documents

format_options = combine(
    click.option(
        "--text",
        "field",
        metavar="COLUMN",
        help="The field of each JSONL object or column of each CSV row that holds the document;"
        " the rest of the record stays as it is. By default the only one that looks like"
        " text; in other files a document is a line.",
    ),
    click.option(
        "--input-format",
        "form",
        type=click.Choice(["lines", "jsonl", "csv", "tsv"]),
        help="How the input is cut; by default by the file's ending.",
    ),
    reading_options,
)


def form_of(sources: Sequence[str], field: str | None, form: str | None) -> Form:
    """How documents are cut out of the sources."""
    from evenhand.text.corpus.formats import FORMATS, ending_of, make_form

    if form is None and field is None and _is_table(sources[0]):
        from evenhand.text.tables import text_column

        lines = "--input-format lines takes every line as it is"
        field = text_column(sources[0], f"Name it with --text; {lines}")
        click.echo(f"{sources[0]}: the text is in '{field}' (--text names another)", err=True)
    if form is None and field is not None and (form := FORMATS.get(ending_of(sources[0]))) is None:
        raise click.UsageError(
            f"{sources[0]}: --text needs a file ending in {', '.join(FORMATS)}, or --input-format"
        )
    if form == "lines" and field is not None:
        raise click.UsageError("--text goes with JSONL and CSV, not with lines")
    if form not in (None, "lines") and field is None:
        raise click.UsageError(
            f"--input-format {form} needs --text: which field holds the document?"
        )
    return make_form(form, field)


TABLES = (".csv", ".tsv", ".jsonl", ".ndjson")


def _is_table(source: str) -> bool:
    """Whether a file is a table by its ending; its lines are then not documents."""
    from evenhand.text.corpus.formats import ending_of

    return ending_of(source) in TABLES and Path(source).is_file()


# ---- what instruments and settings declare


def declared_options(
    *classes: type | Option, only: Iterable[str] | None = None, **changes: Mapping[str, Any]
) -> Callable[[F], F]:
    """The options of these instruments and settings; one that several share appears once.

    `changes` are arguments of click, by option, where a command differs from the declaration.
    """
    owners: dict[str, list[tuple[str, Option]]] = {}
    for cls in classes:
        metric = cls.declaration.name if _is_instrument(cls) else ""
        for option in (cls,) if isinstance(cls, Option) else options_of(cls):
            if option.public and (only is None or option.name in only):
                owners.setdefault(option.name, []).append((metric, option))
    several = len({metric for listed in owners.values() for metric, _ in listed if metric}) > 1
    return combine(
        *(
            _click_option(
                _of_metrics(listed) if several else listed[0][1],
                {**_defaults(listed), **changes.get(name, {})},
            )
            for name, listed in owners.items()
        )
    )


def _is_instrument(cls: type | Option) -> TypeGuard[type[Instrument]]:
    return isinstance(cls, type) and issubclass(cls, Instrument)


def _defaults(owners: Sequence[tuple[str, Option]]) -> dict[str, str]:
    """How help shows the defaults of an option of several metrics, where they differ."""
    metrics: dict[object, str] = {}
    for metric, option in owners:
        if metric:
            metrics.setdefault(option.default, metric)
    if len(metrics) < 2:
        return {}
    (first, _), *others = metrics.items()
    return {"show_default": "; ".join([f"{first}", *(f"{name}: {x}" for x, name in others)])}


MOST_OWNERS = 3
"""The most metrics that the help of a shared option names."""


def _of_metrics(owners: Sequence[tuple[str, Option]]) -> Option:
    """The option, its help beginning with the few metrics that have it."""
    option = owners[0][1]
    metrics = list(dict.fromkeys(metric for metric, _ in owners if metric))
    names = ", ".join(metrics)
    if not 0 < len(metrics) <= MOST_OWNERS or option.help.startswith(f"{names}: "):
        return option
    return replace(option, help=f"{names}: {option.help}")


def configure(cls: type[A], parameters: Mapping[str, object], **fixed: object) -> A:
    """The instrument or settings with the options taken from the parameters of a command."""
    kind: type = cls
    names = {option.name for option in options_of(kind)}
    return cls(**{name: parameters[name] for name in names & parameters.keys()}, **fixed)


def given_options(parameters: Mapping[str, Any]) -> dict[str, Any]:
    """Those of a command's parameters that the user gave; the others have their defaults."""
    context = click.get_current_context()
    return {
        name: value
        for name, value in parameters.items()
        if context.get_parameter_source(name) is not ParameterSource.DEFAULT
    }


def accepted_options(classes: Iterable[Any], parameters: Mapping[str, Any]) -> dict[str, Any]:
    """The options that were given; one that none of the instruments has is an error."""
    given = given_options(parameters)
    accepted = {option.name for cls in classes for option in cls.declaration.options}
    for name in given:
        if name not in accepted:
            raise click.UsageError(f"option '{name}': none of the chosen metrics has it")
    return given


def describe(classes: Iterable[Any]) -> str:
    """The instruments for a help text: name and question, one line each."""
    rows = [(cls.declaration.name, cls.declaration.question) for cls in classes]
    width = max(len(name) for name, _ in rows)
    lines = "\n".join(f"  {name.ljust(width)}  {question}" for name, question in rows)
    return f"\b\n{lines}"


def flags_of(option: Option) -> list[str]:
    """The names of an option on the command line."""
    return (option.flag or f"--{option.name.replace('_', '-')}").split()


def _click_option(option: Option, changes: Mapping[str, Any]) -> Callable[[F], F]:
    about: dict[str, Any] = {
        "default": option.default,
        "multiple": option.multiple,
        "metavar": option.metavar,
        "help": option.help,
    }
    bounds = (option.minimum, option.maximum, option.above, option.below)
    if option.type is bool:
        about["is_flag"] = True
    elif option.type is dict:
        about |= {
            "default": (),
            "multiple": True,
            "callback": callback(parse_numbers),
            "metavar": "NAME=VALUE",
        }
    else:
        about["type"] = completion.DECLARED.get(option.name, option.type)
        if option.choices:
            about["type"] = click.Choice([str(choice) for choice in option.choices])
        elif any(bound is not None for bound in bounds):
            about["type"] = _range(option)
    return click.option(*flags_of(option), option.name, **{**about, **changes})


def _range(option: Option) -> click.IntRange | click.FloatRange:
    low = option.minimum if option.above is None else option.above
    high = option.maximum if option.below is None else option.below
    ends = {"min_open": option.above is not None, "max_open": option.below is not None}
    if option.type is float:
        return click.FloatRange(low, high, **ends)
    smallest, largest = (None if end is None else int(end) for end in (low, high))
    return click.IntRange(smallest, largest, **ends)


def parse_pairs(
    given: Iterable[str], kind: str = "VALUE", flag: str = "--option"
) -> dict[str, str]:
    """NAME=VALUE pairs as a mapping.

    >>> parse_pairs(("partition=gpu", "nodes = 2"))
    {'partition': 'gpu', 'nodes': '2'}
    """
    pairs: dict[str, str] = {}
    for text in given:
        name, sign, value = (part.strip() for part in text.partition("="))
        if not name or not sign:
            raise InputError(f"{flag}: expected NAME={kind}, got '{text}'")
        if name in pairs:
            raise InputError(f"{flag}: expected '{name}' once, got it twice")
        pairs[name] = value
    return pairs


def parse_scores(given: Sequence[str]) -> dict[str, str] | str:
    """The columns of scores: CLASS=COLUMN pairs, or one pattern with * for the class.

    >>> parse_scores(["p_*"]), parse_scores(["nurse=p1", "judge=p2"])
    ('p_*', {'nurse': 'p1', 'judge': 'p2'})
    """
    if len(given) == 1 and "*" in given[0] and "=" not in given[0]:
        return given[0]
    return parse_pairs(given, "COLUMN", "--score")


def parse_numbers(given: Iterable[str]) -> dict[str, int | float]:
    """NAME=NUMBER pairs as a mapping.

    >>> parse_numbers(("slices=50", "scale=1e-1"))
    {'slices': 50, 'scale': 0.1}
    """
    numbers: dict[str, int | float] = {}
    for name, value in parse_pairs(given, "NUMBER").items():
        try:
            parsed = float(value)
        except ValueError:
            parsed = math.nan
        if not math.isfinite(parsed):
            raise InputError(f"--option: expected NAME=NUMBER, got '{name}={value}'")
        numbers[name] = int(value) if value.lstrip("+-").isdecimal() else parsed
    return numbers
