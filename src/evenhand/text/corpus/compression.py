"""Plain, gzip, bzip2 and zstd bytes in and out; what was cut short or damaged is an error."""

from __future__ import annotations

import bz2
import gzip
import io
import os
import re
import sys
import zlib
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import IO, TYPE_CHECKING, Any, Literal, Protocol

from evenhand.errors import FileError

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
PIECE = 1 << 20  # bytes a gzip or bzip2 decompressor may give at once
# The zstd decompressor has no limit on its output, and a block of four bytes can hold 128 KB:
# it is fed little at a time, the less the more comes out.
SMALL_SIP, LARGE_SIP = 1 << 6, 1 << 12
WIDEST_WINDOW = 1 << 31  # what `zstd --long=31` needs


def source_name(source: str) -> str:
    """How a source is called in messages."""
    return "<stdin>" if source == STDIN else source


def codec_of(path: str | Path) -> Codec:
    """The compression a file name asks for.

    >>> codec_of("corpus.txt.gz"), codec_of("corpus.txt")
    ('gz', '')
    """
    suffixes: dict[str, Codec] = {".gz": "gz", ".bz2": "bz2", ".zst": "zst"}
    return suffixes.get(Path(path).suffix.lower(), "")


def detect(head: bytes) -> Codec:
    """The compression of a file by its first bytes, whatever its name.

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
    """The compression of which a file may hold several parts, each compressed by itself.

    A zstd file is written as one frame, since common readers stop at the end of the first.
    """
    codec = codec_of(path)
    return "" if codec == "zst" else codec


def pack(data: bytes, codec: Codec) -> bytes:
    """The data compressed as a part of a file; nothing stays nothing."""
    return compress(data, codec) if data else b""


class Reader:
    """The content of one file or of stdin, decompressed, read from front to back.

    `raw` is the number of bytes of the file itself that were read. With `prompt`, what has
    arrived is given out at once, for a filter at the end of a live pipe.
    """

    def __init__(self, source: str, *, prompt: bool = False) -> None:
        self.name = source_name(source)
        self._own = source != STDIN
        self._file: IO[bytes] = open(source, "rb") if self._own else sys.stdin.buffer  # noqa: SIM115, PTH123
        self._prompt = prompt
        head = self._file.read(STEP) if not prompt else self._arrived(STEP)
        for magic, kind in REFUSED.items():
            if head.startswith(magic):
                self.close()
                raise FileError(
                    self.name, f"expected plain text, gzip, bzip2 or zstd, got a {kind} file"
                )
        self.raw = len(head)
        self.codec = detect(head)
        self._pieces = self._expanded(head) if self.codec else None
        self._rest = b"" if self.codec else head

    def read(self, size: int) -> bytes:
        """The next `size` bytes; fewer only at the end (or sooner, if prompt)."""
        parts = [self._rest]
        have = len(self._rest)
        while have < size and not (self._prompt and have):
            piece = self._next(size - have)
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

    def _arrived(self, size: int) -> bytes:
        """What a pipe has to give now, at least a byte unless it has ended."""
        return bytes(self._file.read1(size))  # type: ignore[attr-defined]

    def _next(self, size: int) -> bytes:
        if self._pieces is not None:
            return next(self._pieces, b"")
        data = self._arrived(size) if self._prompt else self._file.read(size)
        self.raw += len(data)
        return data

    def _raw(self) -> bytes:
        data = self._file.read(STEP)
        self.raw += len(data)
        return data

    def _expanded(self, data: bytes) -> Iterator[bytes]:
        """The decompressed content of all members of the file, one after the other."""
        import zstandard

        engine: _Engine | None = None
        while data or (data := self._raw()):
            if engine is None:
                if self.codec == "gz":  # tapes and block devices pad with zeros
                    data = data.lstrip(b"\0")
                    if not data:
                        continue
                engine = ENGINES[self.codec]()
            try:
                yield from filter(None, engine.pieces(data))
            except (zlib.error, zstandard.ZstdError, OSError, ValueError) as error:
                raise FileError(self.name, f"damaged {self.codec} data: {error}") from error
            data = engine.unused_data
            if engine.eof:
                engine = None
        if engine is not None:
            raise FileError(self.name, f"the {self.codec} data ends too soon: it was cut short")


def open_content(source: str) -> io.BufferedReader:
    """The content of a file or of stdin, decompressed, as a file to be read line by line."""
    return io.BufferedReader(_Content(Reader(source)), STEP)


def text_lines(name: str, file: Iterable[bytes]) -> Iterator[tuple[int, str]]:
    """The lines of a file as text, each with its number; what is not UTF-8 is named."""
    for number, line in enumerate(file, 1):
        try:
            yield number, line.decode("utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            problem = f"expected UTF-8, got the byte 0x{line[error.start]:02x}"
            raise FileError(name, problem, line=number) from None


class _Content(io.RawIOBase):
    """What a reader gives, as the raw stream a buffer can be put on."""

    def __init__(self, reader: Reader) -> None:
        self._reader = reader

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        room = memoryview(buffer).cast("B")
        data = self._reader.read(len(room))
        room[: len(data)] = data
        return len(data)

    def close(self) -> None:
        self._reader.close()
        super().close()


class _Engine(Protocol):
    """One member's decompressor: pieces of bounded size; at its `eof` the rest is not its own."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def pieces(self, data: bytes) -> Iterator[bytes]: ...


class _Library:
    """What the decompressors of gzip and bzip2 say of themselves."""

    _engine: Any

    @property
    def eof(self) -> bool:
        return bool(self._engine.eof)

    @property
    def unused_data(self) -> bytes:
        return bytes(self._engine.unused_data)


class _Gzip(_Library):
    def __init__(self) -> None:
        self._engine = zlib.decompressobj(zlib.MAX_WBITS | 16)

    def pieces(self, data: bytes) -> Iterator[bytes]:
        while True:
            piece = self._engine.decompress(data, PIECE)
            data = self._engine.unconsumed_tail
            yield piece
            if not data and len(piece) < PIECE:
                return


class _Bzip2(_Library):
    def __init__(self) -> None:
        self._engine = bz2.BZ2Decompressor()

    def pieces(self, data: bytes) -> Iterator[bytes]:
        yield self._engine.decompress(data, PIECE)
        while not (self._engine.eof or self._engine.needs_input):
            yield self._engine.decompress(b"", PIECE)


class _Zstd:
    def __init__(self) -> None:
        import zstandard

        self._engine = zstandard.ZstdDecompressor(max_window_size=WIDEST_WINDOW).decompressobj()
        self._sip = SMALL_SIP
        self.eof = False
        self.unused_data = b""

    def pieces(self, data: bytes) -> Iterator[bytes]:
        done = 0
        while done < len(data):
            piece = self._engine.decompress(data[done : done + self._sip])
            done += self._sip
            self._sip = SMALL_SIP if len(piece) > PIECE else min(2 * self._sip, LARGE_SIP)
            yield piece
            if self._engine.eof:
                self.eof = True
                self.unused_data = self._engine.unused_data + data[done:]
                return


ENGINES: dict[Codec, Callable[[], _Engine]] = {"gz": _Gzip, "bz2": _Bzip2, "zst": _Zstd}
