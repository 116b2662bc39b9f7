"""Reading and writing files of vectors.

`read` detects the format from the content rather than the name; `save` takes it by name or from
the ending.
"""

from __future__ import annotations

import gzip
import io
import os
import re
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO, TYPE_CHECKING

from evenhand.errors import FileError, InputError
from evenhand.files import replace_file
from evenhand.vectors.formats.binary import read_binary, write_binary
from evenhand.vectors.formats.input import (
    HEAD,
    Header,
    Input,
    Progress,
    VectorTable,
    counted,
    shown,
)
from evenhand.vectors.formats.npz import read_npz, write_npz
from evenhand.vectors.formats.text import (
    BOM,
    NUMBER,
    read_text,
    write_glove,
    write_word2vec,
)

if TYPE_CHECKING:
    from evenhand.vectors.store import Vectors

_HEADER = re.compile(rb"(\d{1,18})[ \t]+(\d{1,9})[ \t]*\r?(?:\n|\Z)")
_ODD = re.compile(rb"[^\t\r\x20-\x7e]")
_CONTROL = re.compile(rb"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f]")
_FOREIGN = {
    b"\x89PNG": "a PNG image",
    b"%PDF": "a PDF",
    b"\x93NUMPY": "a bare .npy array, without words",
    b"\x80": "a Python pickle (from gensim, save with save_word2vec_format)",
    b"\xba\x16\x4f\x2f": "a fastText model (use the .vec that comes with it)",
    b"version https://git-lfs": "a Git LFS pointer (run git lfs pull)",
    b"<": "HTML or XML",
    b"{": "JSON",
    b"[": "JSON",
}

_ENDINGS = {
    ".npz": "npz",
    ".txt": "word2vec",
    ".vec": "word2vec",
    ".bin": "word2vec-binary",
}
FORMATS: dict[str, Callable[[IO[bytes], list[bytes], Vectors], None]] = {
    "word2vec": write_word2vec,
    "word2vec-binary": write_binary,
    "glove": write_glove,
}
"""The formats that cannot have spaces in words, each with its writer."""


def read(
    path: str | os.PathLike[str],
    *,
    limit: int | None = None,
    progress: Progress | None = None,
) -> VectorTable:
    """Read word vectors: GloVe, word2vec text or binary, fastText .vec, .npz, gzip of these."""
    with Input(path, progress) as source:
        head = source.peek()
        if not head:
            raise FileError(path, "the file is empty")
        if head.startswith(b"PK\x03\x04"):
            return shortened(_read_zip(source), limit)
        try:
            return _read_lines(source, head, limit)
        except FileError as error:
            kind = next((kind for start, kind in _FOREIGN.items() if head.startswith(start)), None)
            if kind is None:
                raise
            problem = f"{error.problem}; the file looks like {kind}"
            raise FileError(error.path, problem, line=error.line) from None


def _read_zip(source: Input) -> VectorTable:
    if source.packed:
        return read_npz(io.BytesIO(source.read()), source.path)
    with Path(source.path).open("rb") as file:
        return read_npz(file, source.path)


def _read_lines(source: Input, head: bytes, limit: int | None) -> VectorTable:
    mark = len(BOM) if head.startswith(BOM) else 0
    match = _HEADER.match(head, mark)
    if match is None:
        source.read(mark)
        return read_text(source, None, limit)
    header: Header = int(match[1]), int(match[2])
    source.read(match.end())
    if not header[0] or not header[1]:
        problem = f"the header promises {header[0]} words of {header[1]} numbers"
        raise FileError(source.path, problem, line=1)
    if _is_binary(source, header):
        return read_binary(source, header, match.end(), limit)
    return read_text(source, header, limit)


def _is_binary(source: Input, header: Header) -> bool:
    """Whether numbers follow the first word as bytes rather than as digits."""
    head = source.peek()
    numbers = head.lstrip(b"\n").partition(b" ")[2][: 4 * header[1]]
    line = numbers.partition(b"\n")[0]
    if not _ODD.search(line) and any(map(NUMBER.fullmatch, line.split())):
        return False
    if _CONTROL.search(numbers) or not _is_utf8(numbers):
        return True
    return _is_chain(head, header)


def _is_chain(head: bytes, header: Header) -> bool:
    """Whether words and vectors of the right length follow each other, for bytes that by chance
    all look like letters.
    """
    at = 0
    for _ in range(header[0]):
        end = head.find(b" ", at)
        if end < 0 or end + 1 + 4 * header[1] > len(head):
            return at > 0 and len(head) == HEAD
        word = head[at:end].removeprefix(b"\n")
        if not word or b"\n" in word:
            return False
        at = end + 1 + 4 * header[1]
    return not head[at:].strip(b"\n")


def _is_utf8(data: bytes) -> bool:
    try:
        data.decode()
    except UnicodeDecodeError as error:
        return error.end == len(data) and error.reason == "unexpected end of data"
    return True


def shortened(table: VectorTable, limit: int | None) -> VectorTable:
    """The first `limit` rows."""
    if limit is None or limit >= len(table.matrix):
        return table
    return VectorTable(
        words=b"\n".join(bytes(table.words).split(b"\n", limit)[:limit]),
        matrix=table.matrix[:limit],
        ranks=None if table.ranks is None else table.ranks[:limit],
        notes=table.notes,
    )


def save(v: Vectors, path: str | os.PathLike[str], format: str | None) -> tuple[str, ...]:  # noqa: A002
    """Write `v` in a format given by name or by the path's ending; returns notes."""
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
    """Words with underscores for spaces and tabs, as word2vec's formats require."""
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
