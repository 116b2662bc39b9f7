"""Plain, gzip, bzip2 and zstd bytes in and out; what was cut short or damaged is an error.

Whatever the encoding of the input, its content is given as UTF-8.
"""

from __future__ import annotations

import bz2
import codecs
import gzip
import io
import math
import os
import re
import sys
import zlib
from collections.abc import Iterator
from contextlib import suppress
from functools import partial
from itertools import chain
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal

from evenhand.errors import FileError
from evenhand.files import current_reading, decode, guess_encoding

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

Codec = Literal["", "gz", "bz2", "zst"]
STDIN = "-"
SURROGATE = re.compile("[\ud800-\udfff]")
"""Half of a surrogate pair: JSON can hold one, text cannot."""

MAGIC: tuple[tuple[Codec, re.Pattern[bytes]], ...] = (
    ("gz", re.compile(rb"\x1f\x8b\x08")),
    ("bz2", re.compile(rb"BZh[1-9](?:1AY&SY|\x17rE8P\x90)")),
    ("zst", re.compile(rb"(?s)\x28\xb5\x2f\xfd|[\x50-\x5f]\x2a\x4d\x18")),
)
REFUSED = {b"\xfd7zXZ\0": "xz", b"PK\x03\x04": "zip", b"7z\xbc\xaf\x27\x1c": "7z"}
GZIP_LEVEL = 4  # two and a half times the speed of 6, for files 4 % larger
STEP = 1 << 16  # raw bytes read at once
PIECE = 1 << 20
# The zstd decompressor has no limit on its output, and a block of four bytes can hold 128 KB:
# decompressors are fed little at a time, less when more than a PIECE comes out.
SMALL_SIP, LARGE_SIP = 1 << 6, 1 << 12
WIDEST_WINDOW = 1 << 31  # what `zstd --long=31` needs


def source_name(source: str) -> str:
    """The name of a source in messages."""
    return "<stdin>" if source == STDIN else source


def codec_of(path: str | Path) -> Codec:
    """The compression a file name asks for.

    >>> codec_of("corpus.txt.gz"), codec_of("corpus.txt")
    ('gz', '')
    """
    suffixes: dict[str, Codec] = {".gz": "gz", ".bz2": "bz2", ".zst": "zst"}
    return suffixes.get(Path(path).suffix.lower(), "")


def detect(head: bytes) -> Codec:
    """Detect the compression of a file from its first bytes.

    >>> detect(gzip.compress(b"text")), detect(b"text")
    ('gz', '')
    """
    return next((codec for codec, magic in MAGIC if magic.match(head)), "")


def compress(data: bytes, codec: Codec) -> bytes:
    """The data as a complete gzip member, bzip2 stream or zstd frame; always the same bytes."""
    if codec == "gz":
        return gzip.compress(data, compresslevel=GZIP_LEVEL, mtime=0)
    if codec == "bz2":
        return bz2.compress(data)
    if codec == "zst":
        import zstandard

        return zstandard.ZstdCompressor(write_checksum=True).compress(data)
    return data


def member_codec(path: str | Path) -> Codec:
    """The compression of a file that can be a sequence of separately compressed parts.

    A zstd file is written as one frame, since common readers stop at the end of the first.
    """
    codec = codec_of(path)
    return "" if codec == "zst" else codec


def pack(data: bytes, codec: Codec) -> bytes:
    """The data compressed as a part of a file; nothing stays nothing."""
    return compress(data, codec) if data else b""


class Reader(io.RawIOBase):
    """The content of one file or of stdin, decompressed and in UTF-8, read from front to back.

    `raw` is the number of bytes of the file itself that were read. With `prompt`, what has
    arrived is given out at once, for a filter at the end of a live pipe.
    """

    _own = False
    raw = 0

    def __init__(self, source: str, *, prompt: bool = False) -> None:
        self.name = source_name(source)
        self._own = source != STDIN
        self._file: IO[bytes] = open(source, "rb") if self._own else sys.stdin.buffer  # noqa: SIM115, PTH123
        self._prompt = prompt
        head = self._raw()
        for magic, kind in REFUSED.items():
            if head.startswith(magic):
                self.close()
                raise FileError(
                    self.name, f"expected plain text, gzip, bzip2 or zstd, got a {kind} file"
                )
        self.codec = detect(head)
        self._reading = current_reading()
        self._rest = b"" if self.codec else head
        self._pieces = self._expanded(head) if self.codec else None
        try:
            if not self._reading.is_utf8:
                self._pieces = self._recoded(self._pieces or chain([head], iter(self._raw, b"")))
                self._rest = b""
            elif self._reading.errors == "strict":
                self._check_text()
        except BaseException:
            self.close()
            raise

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        data = self.read(len(room))
        room[: len(data)] = data
        return len(data)

    def read(self, size: int = PIECE) -> bytes:
        """The next `size` bytes; fewer only at the end (or sooner, if prompt)."""
        parts = [self._rest]
        have = len(self._rest)
        while have < size and not (self._prompt and have):
            piece = self._raw(size - have) if self._pieces is None else next(self._pieces, b"")
            if not piece:
                break
            parts.append(piece)
            have += len(piece)
        data = b"".join(parts)
        self._rest = data[size:]
        return data[:size]

    def skip(self, count: int) -> None:
        """Pass over the next `count` bytes: a jump where the file allows it, else by reading."""
        if self._pieces is None and self._own:
            self._file.seek(count - len(self._rest), os.SEEK_CUR)
            self._rest = b""
            self.raw = self._file.tell()
            return
        while count > 0:
            piece = self.read(min(count, PIECE))
            if not piece:
                raise FileError(self.name, "is shorter than when the work on it began")
            count -= len(piece)

    def close(self) -> None:
        if self._own:
            self._file.close()
        super().close()

    def _raw(self, size: int = STEP) -> bytes:
        """The next bytes of the file itself; if prompt, those that are there."""
        data = self._file.read1(size) if self._prompt else self._file.read(size)  # type: ignore[attr-defined]
        self.raw += len(data)
        return bytes(data)

    def _check_text(self) -> None:
        """Refuse what is not UTF-8 by its first bytes; Parquet is for others to read."""
        if self._pieces is not None:
            self._rest = next(self._pieces, b"")
        guess = guess_encoding(self._rest)
        if guess and not self._rest.startswith(b"PAR1"):
            raise FileError(self.name, f"expected UTF-8, got {guess}", line=1)

    def _recoded(self, pieces: Iterator[bytes]) -> Iterator[bytes]:
        """The content in UTF-8, without a byte order mark."""
        name = self._reading.encoding
        decoder = codecs.getincrementaldecoder(name)()
        lines, first = 1, True

        def recode(piece: bytes, *, final: bool = False) -> bytes:
            nonlocal lines, first
            try:
                text = decoder.decode(piece, final)
                if first and text:
                    text, first = text.removeprefix("\ufeff"), False
                content = text.encode()
            except UnicodeError as error:
                at = getattr(error, "start", 0)
                problem = f"expected text in {name}, got bytes that are none near here ({error})"
                line = lines + piece.count(b"\n", 0, at)
                raise FileError(self.name, problem, line=line) from None
            lines += content.count(b"\n")
            return content

        for piece in pieces:
            yield from filter(None, [recode(piece)])
        yield from filter(None, [recode(b"", final=True)])

    def _expanded(self, data: bytes) -> Iterator[bytes]:
        """The decompressed content of all members of the file, one after the other."""
        import zstandard

        engine: Any = None
        total, sip = 0, SMALL_SIP
        while data or (data := self._raw()):
            if engine is None:
                if self.codec == "gz":  # tapes and block devices pad with zeros
                    data = data.lstrip(b"\0")
                    if not data:
                        continue
                engine = _decompressor(self.codec)
            largest = 0
            try:
                for piece in filter(None, _pieces(engine, data[:sip])):
                    largest = max(largest, len(piece))
                    total += len(piece)
                    self._reading.check_expanded(self.name, total, self.raw)
                    yield piece
            except FileError:
                raise
            except (zlib.error, zstandard.ZstdError, OSError, ValueError) as error:
                raise FileError(self.name, f"damaged {self.codec} data: {error}") from error
            data = data[sip:]
            if engine.eof:
                data = engine.unused_data + data
                engine = None
            sip = SMALL_SIP if largest > PIECE else min(2 * sip, LARGE_SIP)
        if engine is not None:
            raise FileError(self.name, f"the {self.codec} data ends too soon: it was cut short")


def _decompressor(codec: Codec) -> Any:
    """The decompressor of one member or frame: `decompress`, `eof`, `unused_data`."""
    if codec == "gz":
        return zlib.decompressobj(zlib.MAX_WBITS | 16)
    if codec == "bz2":
        return bz2.BZ2Decompressor()
    import zstandard

    return zstandard.ZstdDecompressor(max_window_size=WIDEST_WINDOW).decompressobj()


def _pieces(engine: Any, data: bytes) -> Iterator[bytes]:
    """Decompress some data; bzip2 in parts, since 64 bytes of it can hold 45 MB."""
    if not isinstance(engine, bz2.BZ2Decompressor):
        yield engine.decompress(data)
        return
    yield engine.decompress(data, PIECE)
    while not (engine.eof or engine.needs_input):
        yield engine.decompress(b"", PIECE)


def open_content(source: str) -> io.BufferedReader:
    """The content of a file or of stdin, decompressed, as a file to be read line by line."""
    return io.BufferedReader(Reader(source), STEP)


def text_lines(
    name: str, file: io.BufferedReader, *, held: bool = True
) -> Iterator[tuple[int, str]]:
    """The lines of a file as text, each with its number; what is not UTF-8 is named.

    A line, and with `held` the whole file and the number of its lines, is limited: the lines are
    held in memory.
    """
    how = current_reading()
    most, most_lines = (how.max_bytes, how.max_rows) if held else (math.inf, math.inf)
    number = total = 0
    for lines in _blocks_of_lines(file, how.max_record):
        block = b"".join(lines)
        within = number > 0 and max(map(len, lines)) <= how.max_record and b"\0" not in block
        within = within and total + len(block) <= most and number + len(lines) <= most_lines
        texts: list[str] = []
        if within:
            with suppress(UnicodeDecodeError):
                texts = [line.decode("utf-8", how.errors) for line in lines]
        if texts:
            yield from enumerate(texts, number + 1)
            number, total = number + len(lines), total + len(block)
            continue
        for line in lines:  # the first ones, and those with something wrong, which is named
            number, total = number + 1, total + len(line)
            if len(line) > how.max_record:
                raise how.refuse(name, f"a line of more than {how.max_record:,} bytes", number)
            if total > most:
                raise how.refuse(name, f"more than {most:,} bytes", number)
            if number > most_lines:
                raise how.refuse(name, f"more than {most_lines:,} lines", number)
            yield number, decode(line, name, line=number, mark=number == 1)


def _blocks_of_lines(file: io.BufferedReader, longest: int) -> Iterator[list[bytes]]:
    """The lines of a file, some at a time; one that is too long is cut."""
    lines: list[bytes] = []
    size, limit = 0, 1
    for line in iter(partial(file.readline, longest + 1), b""):
        lines.append(line)
        size += len(line)
        if size >= limit:
            yield lines
            lines, size, limit = [], 0, STEP
    if lines:
        yield lines
