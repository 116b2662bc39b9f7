"""`evenhand completion`, and the values that a shell completes: names, and files by suffix."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from importlib import import_module
from pathlib import Path

import click
from click.shell_completion import (
    BashComplete,
    CompletionItem,
    FishComplete,
    ZshComplete,
    add_completion_class,
)

from evenhand.cli.commands import Command

VARIABLE = "_EVENHAND_COMPLETE"
TABLES = (".csv", ".tsv", ".jsonl", ".ndjson", ".json", ".parquet")
COMPRESSED = (".gz", ".bz2", ".zst")


class Value(click.ParamType[str]):
    """A text whose completion offers names and files.

    Parameters
    ----------
    names : callable, optional
        Returns the names; called only when a shell completes.
    files : tuple of str, optional
        Endings of files, which are offered with the folders.
    separator : str
        What separates several names in one value; the last of them is completed.

    """

    name = "text"

    def __init__(
        self,
        names: Callable[[], Iterable[str]] = tuple,
        *,
        files: tuple[str, ...] | None = None,
        separator: str = "",
    ) -> None:
        self.names, self.files, self.separator = names, files, separator

    def convert(
        self, value: object, param: click.Parameter | None, ctx: click.Context | None
    ) -> str:
        return str(value)

    def shell_complete(
        self, ctx: click.Context, param: click.Parameter, incomplete: str
    ) -> list[CompletionItem]:
        given, sign, last = "", "", incomplete
        if self.separator:
            given, sign, last = incomplete.rpartition(self.separator)
        chosen = given.split(self.separator) if given else []
        offered = [name for name in self.names() if name.startswith(last) and name not in chosen]
        if self.files is not None:
            offered += _paths(last, self.files)
        return [CompletionItem(given + sign + name) for name in offered]


def _paths(begun: str, endings: tuple[str, ...]) -> Iterator[str]:
    """Folders and files that complete `begun`; without endings, files of every kind."""
    folder, slash, name = begun.rpartition("/")
    try:
        entries = sorted(Path(folder + slash or ".").expanduser().iterdir())
    except OSError:
        return
    for path in entries:
        if not path.name.startswith(name) or (path.name.startswith(".") and not name):
            continue
        if path.is_dir():
            yield f"{folder}{slash}{path.name}/"
        elif not endings or path.name.lower().endswith(endings):
            yield folder + slash + path.name


def listed(*places: str) -> Callable[[], Iterable[str]]:
    """The names that these have, each given as "module:attribute" and imported when it is used.

    An attribute is a collection of names, or a function that returns one.
    """

    def names() -> Iterator[str]:
        for place in places:
            module, _, attribute = place.partition(":")
            found = getattr(import_module(f"evenhand.{module}"), attribute)
            yield from found() if callable(found) else found

    return names


def metrics_of(*subjects: str) -> Value:
    """The metrics of some subjects, with commas between them; of all subjects if none is named."""

    def names() -> Iterable[str]:
        from evenhand.instruments import all_declarations

        every = all_declarations(subjects) if subjects else all_declarations()
        return dict.fromkeys(about.name for about in every)

    return Value(names, separator=",")


def _wefats() -> Iterable[str]:
    from evenhand import lexicon

    return (*(query.name for query in lexicon.wefat_queries()), "all")


def _phrase_sets() -> Iterable[str]:
    from evenhand.lexicon.phrases import phrases

    return phrases().sets


def _kinds() -> Iterable[str]:
    from evenhand.lexicon.gendered import pairs

    return sorted({pair.kind for pair in pairs()})


VECTOR_NAMES, MODEL_NAMES = "vectors.store:EMBEDDED", "models.sources:EMBEDDED"
VECTOR_FILES = (".txt", ".vec", ".bin", ".npz", ".gz")
METRICS = metrics_of()
METRIC = Value(METRICS.names)
SOURCE = Value(listed(VECTOR_NAMES, MODEL_NAMES), files=(*VECTOR_FILES, ".gguf"))
MEASURED = Value(
    lambda: (*METRICS.names(), *SOURCE.names()), files=(*VECTOR_FILES, ".gguf", ".json")
)
VECTORS = Value(listed(VECTOR_NAMES), files=VECTOR_FILES)
MODEL = Value(listed(MODEL_NAMES), files=(".gguf",))
TOPICS = Value(listed("lexicon:topic_names"), files=(".toml",), separator=",")
WEATS = Value(lambda: (*map(str, range(1, 11)), "all"), separator=",")
WEFATS = Value(_wefats, separator=",")
FAMILIES = Value(lambda: (*listed("posterior:MODELS")(), "all"), separator=",")
PARTS = Value(listed("audit.inputs:PARTS"), separator=",")
PHRASE_SETS = Value(_phrase_sets, files=(".toml",), separator=",")
DEVICE = Value(lambda: ("auto", "cpu", "cuda", "cuda:0", "mps"), separator=",")
ENCODING = Value(lambda: ("utf-8", "utf-8-lenient", "latin-1", "cp1252", "utf-16"))
DATA = Value(lambda: ("simulated",), files=(*TABLES, *COMPRESSED))
TABLE = Value(files=(*TABLES, *COMPRESSED))
TEXT_FILE = Value(files=(".txt", *TABLES, *COMPRESSED))
RESULTS = Value(files=(".json", ".toml"))
DECLARED = {
    "network": Value(listed("fewshot.networks:CHOICES")),
    "encoder": MODEL,
    "model": MODEL,
    "data": DATA,
    "mitigation": Value(lambda: ("none", "augment", "neutralize", "calibrate"), separator="+"),
    "sets": PHRASE_SETS,
    "kinds": Value(_kinds, separator=","),
    "resolver": Value(lambda: ("rules", "fastcoref", "coreferee:", "spacy:")),
    "entities": Value(lambda: ("rules", "spacy:")),
    "judge": Value(lambda: ("embedded", "spacy:")),
}
"""Completion of options that settings and instruments declare, by their name."""


# ---- the scripts


class Bash(BashComplete):
    """Bash adds no space after a folder, so that one can go on."""

    source_template = BashComplete.source_template.replace(
        "COMPREPLY+=($value)\n",
        "COMPREPLY+=($value)\n            [[ $value == */ ]] && compopt -o nospace\n",
    )


class Zsh(ZshComplete):
    """Zsh adds no space after a folder."""

    source_template = ZshComplete.source_template.replace(
        'completions+=("$key")',
        'if [[ "$key" == */ ]]; then compadd -U -S "" -- "$key"; else completions+=("$key"); fi',
    )


class Fish(FishComplete):
    """Fish splits only at the first comma, since a value may have some."""

    source_template = FishComplete.source_template.replace(
        'string split "," $completion', 'string split -m1 "," $completion'
    )


for shell_class in (Bash, Zsh, Fish):
    add_completion_class(shell_class)
SHELLS = {cls.name: cls for cls in (Bash, Zsh, Fish)}


@click.command(cls=Command)
@click.argument("shell", type=click.Choice(list(SHELLS)))
def completion(shell: str) -> None:
    """Print the script that lets a shell complete commands, options and their values.

    After it, the tab key completes commands and options, and values such as topics, metrics, the
    embedded models and vectors, networks, mitigations, and files with the endings that an option
    reads.

    \b
    Examples, for this session, and for good:
      eval "$(evenhand completion bash)"
      evenhand completion bash >> ~/.bashrc
      evenhand completion zsh >> ~/.zshrc
      evenhand completion fish > ~/.config/fish/completions/evenhand.fish
    """
    root = click.get_current_context().find_root()
    click.echo(SHELLS[shell](root.command, {}, "evenhand", VARIABLE).source())
