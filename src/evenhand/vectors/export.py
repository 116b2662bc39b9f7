"""Writing vectors: our .npz, and word2vec's text and binary formats as gensim reads them."""

from __future__ import annotations

import gzip
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

import numpy as np

from evenhand.errors import InputError
from evenhand.results import replace_file
from evenhand.vectors.formats.input import counted, shown
from evenhand.vectors.formats.npz import write_npz
from evenhand.vectors.formats.text import BOM

if TYPE_CHECKING:
    from evenhand.vectors.store import Vectors

__all__ = ["FORMATS", "format_of", "save"]

_ENDINGS = {
    ".npz": "npz",
    ".txt": "word2vec",
    ".vec": "word2vec",
    ".bin": "word2vec-binary",
}
_ROWS = 4096


def save(v: Vectors, path: str | os.PathLike[str], format: str | None) -> tuple[str, ...]:  # noqa: A002
    """Write `v` in a format told by name or by the path's ending; returns notes."""
    target, kind = Path(path), format_of(path, format)
    if kind == "npz":
        with replace_file(target) as file:
            blob, meta = bytes(v.vocabulary.blob), {"name": v.name}
            write_npz(file, blob, v.matrix, v.stored_ranks, meta)
        return ()
    words, notes = _joined(bytes(v.vocabulary.blob).split(b"\n"))
    with replace_file(target) as raw, _packed(raw, target) as file:
        FORMATS[kind](file, words, v)
    return notes


def format_of(path: str | os.PathLike[str], format: str | None) -> str:  # noqa: A002
    """The format to write in, by name or by the path's ending; an unknown one is an error."""
    kind = format or _by_ending(Path(path))
    if kind not in ("npz", *FORMATS):
        raise InputError(f"format: expected one of npz, {', '.join(FORMATS)}, got '{kind}'")
    return kind


def _by_ending(path: Path) -> str:
    ending = path.with_suffix("").suffix if path.suffix == ".gz" else path.suffix
    if ending not in _ENDINGS or (path.suffix == ".gz" and ending == ".npz"):
        raise InputError(
            f"{path}: cannot tell the format from the ending;"
            f" expected {', '.join(_ENDINGS)}, the last three also with .gz, or a format by name"
        )
    return _ENDINGS[ending]


@contextmanager
def _packed(raw: IO[bytes], path: Path) -> Iterator[IO[bytes]]:
    """Gzip without a name and a date inside, so that the same vectors give the same bytes."""
    if path.suffix != ".gz":
        yield raw
        return
    with gzip.GzipFile("", "wb", compresslevel=3, fileobj=raw, mtime=0) as file:
        yield file  # type: ignore[misc]


def _joined(words: list[bytes]) -> tuple[list[bytes], tuple[str, ...]]:
    """Words with underscores for spaces and tabs, as word2vec's formats demand."""
    table = bytes.maketrans(b" \t", b"__")
    joined = [word.translate(table) for word in words]
    changed = sum(new != old for new, old in zip(joined, words, strict=True))
    if not changed:
        return words, ()
    if len(set(joined)) != len(joined):
        seen: dict[bytes, bytes] = {}
        for new, old in zip(joined, words, strict=True):
            if seen.setdefault(new, old) != old:
                pair = f"'{shown(seen[new])}' and '{shown(old)}'"
                raise InputError(f"{pair} would be the same word in this format: save as .npz")
    return joined, (f"{counted(changed, 'word')} with spaces: underscores written instead",)


def _write_text(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    file.write(f"{len(v)} {v.dim}\n".encode())
    _write_lines(file, words, v)


def _write_glove(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    if v.dim == 1:
        raise InputError("glove: vectors of one number could be taken for a word2vec header")
    if words[0].startswith(BOM):
        file.write(BOM)  # the reader takes one away
    _write_lines(file, words, v)


def _write_lines(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    """Each number in the shortest form that reads back as the same float32."""
    import pyarrow as pa
    from pyarrow import compute

    for start in range(0, len(words), _ROWS):
        part = words[start : start + _ROWS]
        numbers = pa.array(v.matrix[start : start + _ROWS].ravel()).cast(pa.string())
        offsets = pa.array(np.arange(len(part) + 1, dtype=np.int32) * v.dim)
        vectors = compute.binary_join(
            pa.ListArray.from_arrays(offsets, numbers.cast(pa.binary())), b" "
        )
        lines = compute.binary_join_element_wise(pa.array(part, type=pa.binary()), vectors, b" ")
        file.write(b"\n".join(lines.to_pylist()) + b"\n")


def _write_binary(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    file.write(f"{len(v)} {v.dim}\n".encode())
    for start in range(0, len(words), _ROWS):
        rows = v.matrix[start : start + _ROWS].astype("<f4", copy=False)
        part = words[start : start + _ROWS]
        pairs = zip(part, rows, strict=True)
        file.write(b"".join(word + b" " + row.tobytes() for word, row in pairs))


FORMATS: dict[str, Callable[[IO[bytes], list[bytes], Vectors], None]] = {
    "word2vec": _write_text,
    "word2vec-binary": _write_binary,
    "glove": _write_glove,
}
"""The formats without place for spaces in words, each with its writer."""
