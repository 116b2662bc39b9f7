"""Corpora read as chunks of about a megabyte that end where a record ends."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import FileError
from evenhand.files import current_reading, decode, show_size
from evenhand.text.corpus.compression import STDIN, Reader
from evenhand.text.corpus.formats import Form, Location, RecordLayout, count_breaks


@dataclass(frozen=True, slots=True, kw_only=True)
class CorpusPosition:
    """How far the reading is: file, offset in its content, and the numbers of what comes next.

    `open_end` says that the last record read lacked its newline.
    """

    file: int = 0
    offset: int = 0
    document: int = 0
    line: int = 1
    open_end: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Chunk:
    """Some complete records, their location, and how to read them.

    `prefix` is what a copy of the records has to begin with: the header of a table, or the newline
    that the last line of the file before lacked. `done` counts the bytes read of the files as they
    are on disk.
    """

    data: bytes
    location: Location
    layout: RecordLayout
    prefix: bytes
    after: CorpusPosition
    done: int

    def text(self) -> str:
        """The records as text; what is not UTF-8 is an error that names the line."""
        return decode(self.data, self.location.source, line=self.location.line)


def total_size(sources: Sequence[str]) -> int:
    """The bytes of the files as they are on disk; stdin counts for nothing."""
    return sum(Path(source).stat().st_size for source in sources if source != STDIN)


def chunks(
    sources: Sequence[str],
    form: Form,
    *,
    size: int = 1 << 20,
    start: CorpusPosition | None = None,
    same_columns: bool = True,
    prompt: bool = False,
) -> Iterator[Chunk]:
    """Pieces of about `size` bytes, from `start` on; they depend on nothing but these arguments.

    With `same_columns`, all tables must have the header of the first one, which is given out once.
    With `prompt`, a piece is given out as soon as a record is complete.
    """
    position = start or CorpusPosition()
    columns: list[str] | None = None
    if position.file and same_columns:
        with closing(_Opened(sources[0], form, size)) as first:
            columns = first.columns
    for index in range(position.file, len(sources)):
        with closing(_Opened(sources[index], form, size, prompt=prompt)) as opened:
            if same_columns and columns not in (None, opened.columns):
                expected, got = ", ".join(columns or ()), ", ".join(opened.columns)
                problem = f"expected the columns {expected}, got {got}"
                raise FileError(opened.name, problem, line=1)
            columns = opened.columns
            before = total_size(sources[:index])
            for chunk in opened.chunks(position, index, before):
                position = chunk.after
                yield chunk
        position = CorpusPosition(
            file=index + 1, document=position.document, open_end=position.open_end
        )


class _Opened:
    """One source with its layout, and the content that was read but not yet given out."""

    def __init__(self, source: str, form: Form, size: int, *, prompt: bool = False) -> None:
        self._reader = Reader(source, prompt=prompt)
        self.name = self._reader.name
        self._size = size
        self._prompt = prompt
        self._data = b""
        self._ended = False
        try:
            self.layout, self._header, self.columns = self._bind(form)
        except BaseException:
            self.close()
            raise

    def close(self) -> None:
        self._reader.close()

    def chunks(self, start: CorpusPosition, index: int, before: int) -> Iterator[Chunk]:
        """The records from `start` on, which is in this file or at the end of the one before."""
        header, offset, line, prefix = b"", start.offset, start.line, b""
        if start.offset:
            self._skip(start.offset)
        else:
            header = self._take(len(self._header))
            offset = len(header)
            line = 1 + count_breaks(header)
            prefix = header if index == 0 else b""
        open_end = self._open(prefix) if prefix else start.open_end
        document = start.document
        size = self._size
        how = current_reading()
        longest = how.max_record
        while True:
            self._fill(size)
            data = self._data[:size]
            final = self._ended and len(self._data) < size
            cut = self.layout.cut(data, final=final)
            if not cut.end and data:
                if final:
                    raise FileError(self.name, "a quoted field is never closed", line=line)
                if len(self._data) >= size:
                    size *= 2
                if size > max(longest, self._size):
                    raise how.refuse(self.name, f"a record of more than {show_size(longest)}", line)
                continue
            data = self._take(cut.end)
            location = Location(document, self.name, line)
            if data and open_end:
                prefix += b"\n"
            if data:
                open_end = self._open(data)
            offset, line, document = offset + cut.end, line + cut.lines, document + cut.records
            if data or prefix:
                after = CorpusPosition(
                    file=index, offset=offset, document=document, line=line, open_end=open_end
                )
                yield Chunk(
                    data=data,
                    location=location,
                    layout=self.layout,
                    prefix=prefix,
                    after=after,
                    done=before + self._reader.raw,
                )
            if final and not self._data:
                return
            size, prefix = self._size, b""

    def _bind(self, form: Form) -> tuple[RecordLayout, bytes, list[str]]:
        how = current_reading()
        longest, size = how.max_record, 0
        while True:
            self._fill(size)
            bound = form.bind(self.name, self._data, final=self._ended)
            if bound is not None:
                layout, end, columns = bound
                return layout, self._data[:end], columns
            size = max(self._size, 2 * size)
            if size > max(longest, self._size):
                raise how.refuse(self.name, f"a header of more than {show_size(longest)}", 1)

    def _fill(self, size: int) -> None:
        """Have `size` bytes at hand, or what there is."""
        while len(self._data) < size and not self._ended:
            piece = self._reader.read(size - len(self._data))
            self._ended = not piece
            self._data += piece
            if self._prompt:
                return

    def _open(self, data: bytes) -> bool:
        return chr(data[-1]) not in self.layout.marks

    def _take(self, count: int) -> bytes:
        taken, self._data = self._data[:count], self._data[count:]
        return taken

    def _skip(self, count: int) -> None:
        held = len(self._take(count))
        self._reader.skip(count - held)
