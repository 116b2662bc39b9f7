"""Vectors as text: GloVe, word2vec with a header line, fastText's .vec.

Blocks of lines are parsed in parallel, the numbers by Arrow, which rounds correctly to float32.
A block that is not regular is read again line by line, and either is valid after all (words with
spaces, runs of separators) or gets an error with its line number.
"""

from __future__ import annotations

import os
import re
from collections import Counter, deque
from collections.abc import Generator, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import closing
from itertools import takewhile
from typing import IO, TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import FileError, InputError
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

BOM = b"\xef\xbb\xbf"
BLOCK = 1 << 21
WORKERS = min(8, os.cpu_count() or 1)

_SEPARATOR = re.compile(rb"[ \t]+")
_FLOAT = rb"[-+]?+(?:\d++\.?+\d*+|\.\d++)(?:[eE][-+]?+\d++)?+"
NUMBER = re.compile(_FLOAT)
_NUMBERS = re.compile(_FLOAT + rb"(?:[ \t]++" + _FLOAT + rb")*+")
_NOT_FINITE = re.compile(rb"[-+]?(nan|inf|infinity)", re.IGNORECASE)

Rows = tuple[list[bytes], NDArray[np.float32]]


def read_text(source: Input, header: Header | None, limit: int | None) -> VectorTable:
    """Read lines of a word and its numbers, split only at ASCII space and tab.

    A word may contain spaces as long as none of its later parts is a number: the vector is the
    last fields of the line.
    """
    width = _width(source, header)
    reader = _Reader(source, width, 1 if header is None else 2)
    expected = None if header is None else header[0]
    # pages of the matrix that stay unused cost no memory
    matrix = np.empty((_guess_rows(source, header, width, limit), width), dtype=np.float32)
    words: list[bytes] = []
    last = b"\n"
    for new, numbers, block in reader.rows(limit):
        stop = len(words) + len(new)
        if stop > len(matrix):
            matrix.resize((stop + stop // 2, width), refcheck=False)
        matrix[len(words) : stop] = numbers
        words += new
        last = block[-1:]
        if expected is not None and len(words) > expected:
            problem = f"the header promises {counted(expected, 'word')}, here is one more"
            raise FileError(source.path, problem, line=expected + 2)
    if expected is not None and len(words) < min(expected, limit or expected):
        promise = f"the header promises {counted(expected, 'word')}"
        raise FileError(source.path, f"{promise}, the file has {len(words):,}", line=1)
    cut = last != b"\n" and (limit is None or len(words) < limit)
    notes = ["no line end after the last line: its last number may be cut short"] if cut else []
    return finish(source.path, words, matrix[: len(words)], notes)


class _Reader:
    """Gives the rows of one file block by block, in order, parsed ahead in parallel."""

    def __init__(self, source: Input, width: int, line: int) -> None:
        self._source = source
        self._width = width
        self._line = line
        self._blank: int | None = None

    def rows(self, limit: int | None) -> Iterator[tuple[list[bytes], NDArray[np.float32], bytes]]:
        left = limit
        with closing(self._parsed()) as blocks:
            for block, parsed in blocks:
                words, matrix = parsed or self._careful(block, left)
                if self._blank is not None and parsed:
                    raise FileError(self._source.path, "an empty line", line=self._blank)
                self._line += block.count(b"\n")
                if left is not None:
                    words, matrix = words[:left], matrix[:left]
                    left -= len(words)
                yield words, matrix, block
                if left == 0:
                    return

    def _parsed(self) -> Generator[tuple[bytes, Rows | None]]:
        waiting: deque[tuple[bytes, Future[Rows | None]]] = deque()
        with ThreadPoolExecutor(WORKERS) as pool:
            try:
                for block in self._source.blocks(BLOCK):
                    waiting.append((block, pool.submit(_fast, block, self._width)))
                    if len(waiting) > WORKERS + 1:
                        block, future = waiting.popleft()
                        yield block, future.result()
                while waiting:
                    block, future = waiting.popleft()
                    yield block, future.result()
            finally:
                pool.shutdown(cancel_futures=True)

    def _careful(self, block: bytes, most: int | None) -> Rows:
        """Line by line, with the number of the first line that is not a word and its numbers."""
        words: list[bytes] = []
        regular: list[bytes] = []
        lines = block.removesuffix(b"\n").split(b"\n")
        for number, line in enumerate(lines, self._line):
            if most is not None and len(words) == most:
                break
            if not line.strip(b" \t\r"):
                self._blank = self._blank or number
                continue
            if self._blank is not None:
                raise FileError(self._source.path, "an empty line", line=self._blank)
            try:
                word, numbers = split_line(line, self._width)
            except ValueError as error:
                raise FileError(self._source.path, str(error), line=number) from None
            words.append(word)
            regular.append(b"word " + numbers + b"\n")
        if not words:
            return [], np.empty((0, self._width), dtype=np.float32)
        rows = _cast(b"".join(regular), self._width)
        if rows is None:
            raise FileError(self._source.path, "a number cannot be read", line=self._line)
        for row in np.flatnonzero(~np.isfinite(rows[1]).all(axis=1)):
            problem = f"a number of '{shown(words[row])}' is too large for float32"
            raise FileError(self._source.path, problem, line=self._line + int(row))
        return words, rows[1]


def split_line(line: bytes, width: int) -> tuple[bytes, bytes]:
    """The word and the `width` numbers of a line, or a ValueError that says what is wrong.

    >>> split_line(b"New York +0.5  1e-3 ", 2)
    (b'New York', b'0.5 1e-3')
    """
    body = line.rstrip(b" \t\r")
    if body.startswith((b" ", b"\t")):
        raise ValueError("the word is empty: the line starts with white space")
    gaps = list(_SEPARATOR.finditer(body))
    if len(gaps) < width:
        raise ValueError(f"expected a word and {counted(width, 'number')}, got {len(gaps)}")
    word, numbers = body[: gaps[-width].start()], body[gaps[-width].end() :]
    extra = _SEPARATOR.split(word)[1:]
    if any(NUMBER.fullmatch(part) or _NOT_FINITE.fullmatch(part) for part in extra):
        raise ValueError(f"expected a word and {counted(width, 'number')}, got {len(gaps)}")
    if not _NUMBERS.fullmatch(numbers):
        raise ValueError(_what_is_no_number(word, numbers))
    return word, b" ".join(numbers.split()).removeprefix(b"+").replace(b" +", b" ")


def _what_is_no_number(word: bytes, numbers: bytes) -> str:
    fields = enumerate(_SEPARATOR.split(numbers), 1)
    position, field = next((i, field) for i, field in fields if not NUMBER.fullmatch(field))
    what = "a finite number" if _NOT_FINITE.fullmatch(field) else "a number"
    return f"expected {what} as number {position} of '{shown(word)}', got '{shown(field)}'"


def _fast(block: bytes, width: int) -> Rows | None:
    """A block all of whose lines are regular; None: it needs the careful way."""
    rows = _cast(_tidied(block), width)
    return None if rows is None or b"" in rows[0] or not all_finite(rows[1]) else rows


def _cast(block: bytes, width: int) -> Rows | None:
    """Words and numbers of lines with single separators and plain line ends; else None.

    The block itself becomes an Arrow array of strings, field, separator, field, separator …, in
    which words and separators are marked as missing, so that one cast reads every number.
    """
    import pyarrow as pa

    data = np.frombuffer(block, dtype=np.uint8)
    separators = np.flatnonzero(data <= ord(" ")).astype(np.int32)
    if separators.size % (width + 1):
        return None
    ends = separators.reshape(-1, width + 1)
    marks = data[ends]
    between = (marks[:, :-1] == ord(" ")) | (marks[:, :-1] == ord("\t"))
    if not between.all() or not (marks[:, -1] == ord("\n")).all():
        return None
    offsets = np.zeros(2 * ends.size + 1, dtype=np.int32)
    offsets[1::2] = separators
    offsets[2::2] = offsets[1::2] + 1
    valid = np.zeros((*ends.shape, 2), dtype=bool)
    valid[:, 1:, 0] = True
    bits = np.packbits(valid, bitorder="little")
    buffers = [pa.py_buffer(bits), pa.py_buffer(offsets), pa.py_buffer(block)]
    try:
        numbers = pa.Array.from_buffers(pa.string(), 2 * ends.size, buffers).cast(pa.float32())
    except pa.ArrowException:
        return None
    values = np.frombuffer(numbers.buffers()[1], dtype=np.float32, count=2 * ends.size)
    matrix = np.ascontiguousarray(values.reshape(valid.shape)[:, 1:, 0])
    starts = offsets[:-1].reshape(valid.shape)[:, 0, 0]
    spans = zip(starts.tolist(), ends[:, 0].tolist(), strict=True)
    words = [block[start:end] for start, end in spans]
    return words, matrix


def _tidied(block: bytes) -> bytes:
    """Plain line ends after every line, without fastText's space before them."""
    if b"\r" in block:
        block = block.replace(b"\r\n", b"\n")
    if not block.endswith(b"\n"):
        block += b"\n"
    return block.replace(b" \n", b"\n") if block[: block.index(b"\n")].endswith(b" ") else block


def _width(source: Input, header: Header | None) -> int:
    """Numbers a line: the header's, else what the first lines have most often.

    Each line votes twice, with all its fields but the first and with the numbers at its end, so
    that neither a word with spaces nor a field that is no number decides alone.
    """
    lines = [line for line in source.first_lines() if line.strip(b" \t\r")]
    votes: Counter[int] = Counter()
    for line in lines:
        fields = _SEPARATOR.split(line.rstrip(b" \t\r"))[1:]
        at_end = len(list(takewhile(NUMBER.fullmatch, reversed(fields))))
        votes.update([len(fields), at_end or len(fields)])
    common = max(votes, key=lambda width: (votes[width], -width), default=0)
    if header is None:
        if lines and not common:
            problem = f"expected a word and its numbers, got '{shown(lines[0])}'"
            raise FileError(source.path, problem, line=1)
        return max(common, 1)
    try:
        split_line(lines[0] if lines else b"", header[1])
    except ValueError:
        if lines and common != header[1]:
            promise = f"the header promises {counted(header[1], 'number')} a word"
            problem = f"{promise}, the lines have {common}"
            raise FileError(source.path, problem, line=1) from None
    return header[1]


def _guess_rows(source: Input, header: Header | None, width: int, limit: int | None) -> int:
    """The number of rows to allocate: never more than the file can have, whatever it promises."""
    if source.size is None:
        guess = 4096
    elif header is not None:
        guess = min(header[0], source.size // (2 * width + 2) + 1)
    else:
        lines = source.first_lines()
        mean = sum(map(len, lines)) / max(len(lines), 1) + 1
        guess = int(1.05 * source.size / mean) + 16
    return guess if limit is None else min(guess, limit)


def write_word2vec(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    """Write word2vec's text format: a header line, then one line per word."""
    file.write(f"{len(v)} {v.dim}\n".encode())
    _write_lines(file, words, v)


def write_glove(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    """Write GloVe's format: one line per word, no header."""
    if v.dim == 1:
        raise InputError("glove: vectors of one number could be taken for a word2vec header")
    if words[0].startswith(BOM):
        file.write(BOM)  # the reader removes one
    _write_lines(file, words, v)


def _write_lines(file: IO[bytes], words: list[bytes], v: Vectors) -> None:
    """Each number in the shortest form that reads back as the same float32."""
    import pyarrow as pa
    from pyarrow import compute

    for start in range(0, len(words), ROWS):
        part = words[start : start + ROWS]
        numbers = pa.array(v.matrix[start : start + ROWS].ravel()).cast(pa.string())
        offsets = pa.array(np.arange(len(part) + 1, dtype=np.int32) * v.dim)
        vectors = compute.binary_join(
            pa.ListArray.from_arrays(offsets, numbers.cast(pa.binary())), b" "
        )
        lines = compute.binary_join_element_wise(pa.array(part, type=pa.binary()), vectors, b" ")
        file.write(b"\n".join(lines.to_pylist()) + b"\n")
