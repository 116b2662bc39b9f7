"""The common part of all readers of vector files: a stream of bytes in, a table out."""

from __future__ import annotations

import gzip
import os
import zlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import IO

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError
from evenhand.files import current_reading

Progress = Callable[[int, int], None]
"""Called with the bytes read so far and the bytes there are."""

Header = tuple[int, int]
"""Number of words and of dimensions, as a word2vec header promises them."""

GZIP = b"\x1f\x8b"
ROWS = 4096
"""Rows that are written at a time."""
HEAD = 1 << 16
LONGEST_LINE = 1 << 26


@dataclass(frozen=True, slots=True, kw_only=True)
class VectorTable:
    """Words and their vectors as read: the words as UTF-8, one per line, and a matrix row each."""

    words: bytes | memoryview
    matrix: NDArray[np.float32]
    ranks: NDArray[np.uint32] | None = None
    duplicates: int = 0
    notes: tuple[str, ...] = ()


class Input:
    """The bytes of a file, unpacked when they are gzip, read once from front to end."""

    def __init__(self, path: str | os.PathLike[str], progress: Progress | None = None) -> None:
        self.path = os.fspath(path)
        self._progress = progress
        self._raw: IO[bytes] = Path(path).open("rb")  # noqa: SIM115
        self._total = os.fstat(self._raw.fileno()).st_size
        self.packed = self._raw.read(2) == GZIP
        self._raw.seek(0)
        self._stream: IO[bytes] = (
            gzip.GzipFile(fileobj=self._raw) if self.packed else self._raw  # type: ignore[assignment]
        )
        self.size = None if self.packed else self._total
        self._head = b""
        self._expanded = 0

    def __enter__(self) -> Input:
        return self

    def __exit__(self, *_: object) -> None:
        self._raw.close()

    def peek(self, size: int = HEAD) -> bytes:
        """The next `size` bytes (fewer at the end), which `read` gives again."""
        if len(self._head) < size:
            self._head += self._unpacked(size - len(self._head))
        return self._head[:size]

    def first_lines(self) -> list[bytes]:
        """Up to 20 complete lines from here on, at least one if there is any."""
        size = HEAD
        while b"\n" not in (head := self.peek(size)) and len(head) == size < LONGEST_LINE:
            size *= 2
        lines = head.split(b"\n")
        return lines[: min(20, len(lines) - 1) or 1]

    def read(self, size: int = -1) -> bytes:
        """The next `size` bytes, fewer only at the end; -1: all that is left."""
        head = self._head if size < 0 else self._head[:size]
        self._head = self._head[len(head) :]
        if len(head) == size:
            return head
        data = head + self._unpacked(size if size < 0 else size - len(head))
        if self._progress is not None:
            self._progress(self._raw.tell(), self._total)
        return data

    def blocks(self, size: int) -> Iterator[bytes]:
        """The rest in blocks of about `size` bytes that end at a line end (but for the last)."""
        rest = b""
        while chunk := self.read(size):
            cut = chunk.rfind(b"\n") + 1
            if cut:
                yield rest + chunk[:cut]
                rest = chunk[cut:]
            else:
                rest += chunk
                if len(rest) > LONGEST_LINE:
                    raise FileError(self.path, f"no line end in {len(rest):,} bytes: not text")
        if rest:
            yield rest

    def _unpacked(self, size: int) -> bytes:
        if size < 0 and self.packed:
            return b"".join(iter(lambda: self._unpacked(HEAD), b""))
        try:
            data = self._stream.read(size)
            self._expanded += len(data)
            if self.packed:
                current_reading().check_expanded(self.path, self._expanded, self._total)
            return data
        except FileError:
            raise
        except EOFError as error:
            raise FileError(self.path, "the gzip data is cut short") from error
        except (gzip.BadGzipFile, zlib.error) as error:
            raise FileError(self.path, f"the gzip data is damaged ({error})") from error
        except OSError as error:
            raise FileError(self.path, f"cannot be read ({error.strerror or error})") from error


def finish(
    path: str, words: list[bytes], matrix: NDArray[np.float32], notes: list[str]
) -> VectorTable:
    """Drop repeated words (the first stays) and note what a user should know."""
    if not words:
        raise FileError(path, "the file has no vectors")
    first: dict[bytes, int] = {}
    for row, word in enumerate(words):
        first.setdefault(word, row)
    duplicates = len(words) - len(first)
    if duplicates:
        notes.append(f"{counted(duplicates, 'duplicate word')}: first kept")
        matrix = matrix[np.fromiter(first.values(), dtype=np.intp, count=len(first))]
        words = list(first)
    blob = b"\n".join(words)
    if odd := undecodable(blob):
        notes.append(f"{counted(odd, 'word')} not in UTF-8: odd bytes shown as \\xNN")
    return VectorTable(words=blob, matrix=matrix, duplicates=duplicates, notes=tuple(notes))


def undecodable(blob: bytes) -> int:
    """The number of words that are not valid UTF-8."""
    try:
        blob.decode()
    except UnicodeDecodeError:
        return sum(word != word.decode(errors="ignore").encode() for word in blob.split(b"\n"))
    return 0


def shown(data: bytes, most: int = 40) -> str:
    """Bytes of a file as text for a message."""
    text = data.decode(errors="backslashreplace")
    text = text if len(text) <= most else text[:most] + "…"
    return "".join(c if c.isprintable() else ascii(c)[1:-1] for c in text)


def counted(number: int, noun: str) -> str:
    """A number with its noun.

    >>> counted(1, "word"), counted(1200, "word")
    ('1 word', '1,200 words')
    """
    return f"{number:,} {noun}{'' if number == 1 else 's'}"


def all_finite(matrix: NDArray[np.float32], rows: int = 4096) -> bool:
    """Whether no number is nan or infinite, in pieces so that memory stays small."""
    return all(
        bool(np.isfinite(matrix[start : start + rows]).all())
        for start in range(0, len(matrix), rows)
    )
