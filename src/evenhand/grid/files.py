"""Files that cells read and write: identified by their content, named after their shard.

The content of a file determines a result, not its path; what a cell wrote counts only as long as
it is there, byte for byte.
"""

from __future__ import annotations

import errno
import glob
import hashlib
import json
import os
import re
import shutil
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import lru_cache, partial
from importlib import resources
from pathlib import Path
from typing import Any

from evenhand.errors import FileError, InputError
from evenhand.files import HUB, replace_file, to_json
from evenhand.grid.spec import format_value

__all__ = [
    "are_intact",
    "causal_digest",
    "check_model",
    "content_digest",
    "expand_shards",
    "file_digest",
    "folder_digest",
    "folder_of",
    "lexicon_digest",
    "model_digest",
    "plain",
    "publish",
    "refuse_unused",
]

PLACEHOLDER = re.compile(r"\{(\w+)\}")
MODEL_ENDINGS = (".json", ".txt", ".model", ".safetensors", ".bin")
"""Files of a model's folder that count: configuration, tokenizer, weights."""

_blake2b = partial(hashlib.blake2b, digest_size=16)


def file_digest(path: str | os.PathLike[str]) -> str:
    """Return the hash of a file's bytes; it is read again when its time or size changes."""
    file = Path(path)
    if not file.is_file():
        raise FileError(path, "expected a file, got " + ("a folder" if file.exists() else "none"))
    stat = file.stat()
    return _digest(file.resolve(), stat.st_ino, stat.st_size, stat.st_mtime_ns)


def check_model(key: str, source: str) -> None:
    """Refuse what is not a model: a name that is built in, a folder with its files, or hf:NAME."""
    from evenhand.models.sources import MASKED as EMBEDDED

    named = source in EMBEDDED or (source.startswith(HUB) and source != HUB)
    if not named and not (Path(source) / "config.json").is_file():
        raise InputError(
            f"{key}: expected {', '.join(EMBEDDED)}, a folder with config.json or hf:NAME, got "
            f"'{source}'"
        )


def causal_digest(source: str) -> str:
    """Return the hash of a causal model's files, by its name, folder or GGUF file."""
    from evenhand.models.causal import load
    from evenhand.models.sources import locate

    if source.startswith(HUB):
        return load(source, device="cpu").fingerprint
    path = locate(source, "causal").path
    return file_digest(path) if path.is_file() else folder_digest(path)


def model_digest(source: str, *, head: bool = True) -> str:
    """Return the hash of a model's files, by its name or folder; `head` as in `load`."""
    from evenhand.models.sources import MASKED as EMBEDDED

    if source in EMBEDDED:
        with resources.as_file(resources.files("evenhand.assets") / source) as folder:
            return folder_digest(folder)
    return _hub_digest(source, head) if source.startswith(HUB) else folder_digest(source)


@lru_cache(maxsize=64)
def _hub_digest(source: str, head: bool) -> str:
    """Return the fingerprint of a model of the hub, which is downloaded."""
    from evenhand.models.masked import load

    return load(source, device="cpu", head=head).fingerprint


@lru_cache(maxsize=1 << 16)
def _digest(path: Path, *_: int) -> str:
    return _read_digest(path)


def _read_digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, _blake2b).hexdigest()


def folder_digest(path: str | os.PathLike[str]) -> str:
    """Return the hash of a model's folder: the names and the bytes of its files."""
    models = (file for file in Path(path).iterdir() if file.suffix in MODEL_ENDINGS)
    return _names_and_contents(Path(path), models)


def _names_and_contents(folder: Path, files: Iterable[Path]) -> str:
    """Return the hash of the names and the bytes of the files in a folder."""
    digest = _blake2b()
    for file in sorted(path for path in files if path.is_file()):
        digest.update(f"{file.relative_to(folder).as_posix()} {file_digest(file)}\n".encode())
    return digest.hexdigest()


def content_digest(value: object) -> str:
    """Return the hash of a value whose `repr` is complete, such as word lists."""
    return _blake2b(repr(value).encode("utf-8", "surrogatepass")).hexdigest()


@lru_cache(maxsize=1)
def lexicon_digest() -> str:
    """Return the hash of the built-in word lists and sentences."""
    with resources.as_file(resources.files("evenhand.lexicon") / "data") as folder:
        return _names_and_contents(folder, folder.rglob("*"))


def plain(result: Mapping[str, Any]) -> dict[str, Any]:
    """Return a result as it is read from its file: plain values, None for what is not finite."""
    content: dict[str, Any] = json.loads(to_json(result, indent=None))
    return content


def expand_shards(
    fixed: Mapping[str, Any], axes: Mapping[str, Sequence[Any]], name: Callable[[str], str]
) -> tuple[dict[str, Any], dict[str, list[Any]]]:
    """Write `shards: PATTERN` (or several) out as an axis `shard` of sorted files.

    `name` returns the name of the file that the cell of a shard writes: no two may be the same.
    """
    rest, varied = dict(fixed), {key: list(values) for key, values in axes.items()}
    if "shards" in varied:
        raise InputError("shards: expected a pattern in fixed, got it in axes")
    if (given := rest.pop("shards", None)) is not None:
        if "shard" in rest or "shard" in varied:
            raise InputError("shards: expected either shard or shards, got both of them")
        patterns = given if isinstance(given, list) else [given]
        if not patterns or not all(isinstance(pattern, str) for pattern in patterns):
            raise InputError(
                f"shards: expected a pattern such as corpus/*.jsonl, got {format_value(given)}"
            )
        varied["shard"] = sorted({path for pattern in patterns for path in _matching(pattern)})
    seen: dict[str, str] = {}
    for shard in varied.get("shard", []):
        other = seen.setdefault(name(str(shard)), str(shard))
        if other != str(shard):
            raise InputError(
                f"shard: expected files of different names, since each cell writes one named after "
                f"it, got {other} and {shard}"
            )
    return rest, varied


def _matching(pattern: str) -> list[str]:
    matching = glob.iglob(pattern, recursive=True)  # noqa: PTH207 - it may be absolute
    paths = [path for path in matching if Path(path).is_file()]
    if not paths:
        raise InputError(f"shards: expected files that match '{pattern}', got none")
    return paths


def refuse_unused(
    fixed: Mapping[str, Any],
    axes: Mapping[str, Sequence[Any]],
    choice: str,
    options: Mapping[str, Collection[str]],
    default: str = "",
) -> None:
    """Refuse an option that none of the chosen methods has: it would be ignored silently.

    >>> options = {"swap": ["seed"], "neutralize": ["nouns"]}
    >>> refuse_unused({"operation": "swap", "nouns": "all"}, {}, "operation", options)
    Traceback (most recent call last):
    evenhand.errors.InputError: nouns: goes with operation neutralize, not with swap
    """
    chosen = [str(value) for value in axes.get(choice, [fixed.get(choice, default)])]
    if not options.keys() >= set(chosen):
        return  # the settings have a better message for an unknown one
    for name in (*fixed, *axes):
        owners = [owner for owner, names in options.items() if name in names]
        if owners and not set(owners) & set(chosen):
            raise InputError(
                f"{name}: goes with {choice} {' or '.join(owners)}, not with {', '.join(chosen)}"
            )


def folder_of(out: str, settings: Mapping[str, Any]) -> Path:
    """Return the folder a cell writes to: `out` with each {setting} in it filled in.

    >>> folder_of("swapped/{model}-{seed}", {"model": "hf:some/bert", "seed": 2}).as_posix()
    'swapped/hf-some-bert-2'
    """

    def fill(match: re.Match[str]) -> str:
        if match[1] not in settings:
            raise InputError(f"out: expected settings in braces, got '{match[0]}'")
        return re.sub(r"[^\w.+-]+", "-", format_value(settings[match[1]])).strip("-.")

    return Path(PLACEHOLDER.sub(fill, out))


def publish(source: Path, target: Path) -> dict[str, Any]:
    """Move a finished file to its target, atomically; returns its name, size and hash."""
    entry = {
        "name": target.name,
        "bytes": source.stat().st_size,
        "blake2b": _read_digest(source),
    }
    target.parent.mkdir(parents=True, exist_ok=True)
    try:
        os.replace(source, target)
    except OSError as error:
        if error.errno != errno.EXDEV:
            raise
        with source.open("rb") as content, replace_file(target) as file:
            shutil.copyfileobj(content, file, 1 << 20)
        source.unlink()
    return entry


def are_intact(folder: Path, outputs: Iterable[Mapping[str, Any]]) -> bool:
    """Whether all files are there, byte for byte as they were published."""
    for output in outputs:
        path = folder / output["name"]
        try:
            if path.stat().st_size != output["bytes"] or _read_digest(path) != output["blake2b"]:
                return False
        except OSError:
            return False
    return True
