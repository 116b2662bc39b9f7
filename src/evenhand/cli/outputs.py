"""What commands write: never an input, and over what others wrote only with --overwrite.

Every option that names an output has one of the two types here; `check_outputs` looks at all of
them before a command begins.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import click

from evenhand.cli.progress import flag, is_set
from evenhand.errors import InputError
from evenhand.files import is_ours, real_path

STDOUT = "-"


class OutputFile(click.Path):
    """A file that a command writes."""


class OutputFolder(click.Path):
    """A folder that a command writes into."""


def overwrite_option() -> click.Option:
    """--overwrite, which a command with outputs has."""
    text = "Replace files that exist, even if Evenhand did not write them; never an input."
    return click.Option(["--overwrite"], **flag(text))


def has_outputs(parameters: list[click.Parameter]) -> bool:
    """Whether a command with these parameters writes files."""
    return any(isinstance(p.type, OutputFile | OutputFolder) for p in parameters)


def check_outputs(ctx: click.Context) -> None:
    """Check that a command overwrites no input, and nothing else that is not Evenhand's."""
    outputs: dict[str, Path] = {}
    inputs: list[Path] = []
    for parameter in ctx.command.get_params(ctx):
        named = list(_paths(ctx.params.get(str(parameter.name))))
        if not isinstance(parameter.type, OutputFile | OutputFolder):
            if parameter.name != "cache":
                inputs += [path for path in named if _exists(path)]
            continue
        for path in named:
            for earlier, other in outputs.items():
                if real_path(path) == real_path(other) and path.suffix:
                    raise InputError(
                        f"{parameter.opts[-1]}: expected another file than {earlier}, got {path}"
                    )
            outputs[parameter.opts[-1]] = path
    for path in outputs.values():
        check_output(path, inputs)


def check_output(path: Path, inputs: list[Path] | None = None) -> None:
    """Check one output; see `check_outputs`."""
    target = real_path(path)
    if not path.exists():
        return
    for given in inputs or ():
        if path.samefile(given):
            kind = "folder" if path.is_dir() else "file"
            raise InputError(f"{path}: is an input: expected another {kind} to write")
        if path.is_dir() and target in given.resolve().parents:
            raise InputError(f"{path}: has the input {given}: expected another folder to write")
    if is_set("overwrite"):
        return
    within = any(given.is_dir() and given.resolve() in target.parents for given in inputs or ())
    if path.is_file() and path.stat().st_size and (within or not is_ours(path)):
        reason = "is in an input folder" if within else "does not say that Evenhand wrote it"
        raise InputError(f"{path}: exists and {reason}: --overwrite replaces it")
    if path.is_dir():
        there = [each for each in path.iterdir() if not each.name.startswith(".")]
        runs = any(each.name == "run.json" for each in there)  # its command refuses others' runs
        if there and not runs and not any(map(is_ours, there)):
            raise InputError(
                f"{path}: has '{min(each.name for each in there)}' and nothing that says that "
                "Evenhand wrote it: expected a new folder, or --overwrite to write into this one"
            )


def _paths(value: object) -> Iterator[Path]:
    """The paths among the values of a parameter."""
    match value:
        case tuple() | list():
            for each in value:
                yield from _paths(each)
        case str() | os.PathLike() if os.fspath(value) not in ("", STDOUT):
            yield Path(value)


def _exists(path: Path) -> bool:
    try:
        return path.exists()
    except (OSError, ValueError):  # a text that is no path
        return False
