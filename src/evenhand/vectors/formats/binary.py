"""Vectors in word2vec's binary format: a header line, then for each word its bytes, a space, and
float32 numbers, with or without a line end after them.
"""

from __future__ import annotations

from typing import IO, TYPE_CHECKING

import numpy as np

from evenhand.errors import FileError
from evenhand.vectors.formats.input import (
    ROWS,
    Header,
    Input,
    VectorTable,
    all_finite,
    counted,
    finish,
    shown,
)

if TYPE_CHECKING:
    from evenhand.vectors.store import Vectors

BLOCK = 1 << 22
LONGEST_WORD = 1 << 12


def read_binary(source: Input, header: Header, start: int, limit: int | None) -> VectorTable:
    """Read what follows the header line; `start` is the byte at which it begins."""
    count, width = header
    wanted = count if limit is None else min(count, limit)
    size = 4 * width
    words: list[bytes] = []
    numbers = bytearray()
    data, at = b"", 0
    while len(words) < wanted:
        skip = data[at : at + 1] == b"\n"
        end = data.find(b" ", at, at + LONGEST_WORD)
        if end < 0 and len(data) - at >= LONGEST_WORD:
            what = f"no space after the word in {LONGEST_WORD:,} bytes"
            raise _error(source, words, start + at, what)
        if end < 0 or end + 1 + size > len(data):
            chunk = source.read(max(BLOCK, size))
            if not chunk:
                raise _error(source, words, start + at, _cut(data, at, end, size, header))
            data, start, at = data[at:] + chunk, start + at, 0
            continue
        word = data[at + skip : end]
        if not word or b"\n" in word:
            what = f"a word with a line end in it ('{shown(word)}')" if word else "an empty word"
            raise _error(source, words, start + at, f"expected a word, got {what}")
        words.append(word)
        at = end + 1 + size
        numbers += memoryview(data)[end + 1 : at]
    if wanted == count:
        _check_end(source, data[at:], start + at, count)
    matrix = np.frombuffer(numbers, dtype="<f4").astype(np.float32, copy=False)
    matrix = matrix.reshape(len(words), width)
    if not all_finite(matrix):
        row = int(np.flatnonzero(~np.isfinite(matrix).all(axis=1))[0])
        problem = f"word {row + 1:,} ('{shown(words[row])}'): a number is nan or infinite"
        raise FileError(source.path, problem)
    return finish(source.path, words, matrix, [])


def _error(source: Input, words: list[bytes], at: int, what: str) -> FileError:
    return FileError(source.path, f"word {len(words) + 1:,}, at byte {at:,}: {what}")


def _cut(data: bytes, at: int, end: int, size: int, header: Header) -> str:
    """The error for a file with fewer words than its header states."""
    promise = f"the header promises {counted(header[0], 'word')}"
    if not data[at:].strip(b"\n"):
        return f"the file ends here, {promise}"
    if end < 0:
        return f"the file ends in the middle of a word, {promise}"
    return f"the file ends after {len(data) - end - 1:,} of the vector's {size:,} bytes, {promise}"


def _check_end(source: Input, rest: bytes, at: int, count: int) -> None:
    rest = rest or source.read(16)
    if rest.strip(b"\n") or source.read(1):
        promise = f"the header promises {counted(count, 'word')}"
        raise FileError(source.path, f"{promise}, but more follows at byte {at:,}")


def write_binary(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    """Write word2vec's binary format."""
    file.write(f"{len(v)} {v.dim}\n".encode())
    for start in range(0, len(words), ROWS):
        rows = v.matrix[start : start + ROWS].astype("<f4", copy=False)
        part = words[start : start + ROWS]
        pairs = zip(part, rows, strict=True)
        file.write(b"".join(word + b" " + row.tobytes() for word, row in pairs))
