"""A rewritten corpus back to what it was, byte for byte, from the file of its edits."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.errors import FileError, InputError
from evenhand.text.corpus.feed import Chunk, Position, chunks
from evenhand.text.corpus.opening import member_codec, pack
from evenhand.text.corpus.pipeline import check, encode
from evenhand.text.corpus.records import Form, Lines
from evenhand.text.corpus.target import Target
from evenhand.text.edits import Edit, apply, invert

__all__ = ["restore"]


def restore(
    output: str | Path,
    edits: str | Path,
    destination: str | Path,
    *,
    form: Form = Lines(),  # noqa: B008
    append: bool = False,
) -> int:
    """Undo a rewriting: write to `destination` what `output` was made of.

    `form` and `append` are those of the rewriting. Of several inputs the whole is restored: the
    files one after the other, as they were read. Returns how many documents had been changed.
    """
    check([str(output), str(edits)], destination)
    changes = _Changes(str(edits), append=append)
    codec = member_codec(destination)
    with Target(destination, None, None) as target:
        held, documents = b"", 0
        for chunk in chunks([str(output)], form):
            documents = chunk.after.document
            text, cut_short = changes.undo(chunk)
            restored = chunk.prefix + encode(text)
            if cut_short:  # a newline was put between the last record and its copy
                held, restored = (held, restored[:-1]) if restored else (held[:-1], b"")
            target.add(Position(), pack(held, codec), b"", {})
            held = restored
        if isinstance(form, Lines):
            text, cut_short = changes.undo_vanished(documents)
            held = (held[:-1] if cut_short else held) + encode(text)
        target.add(Position(), pack(held, codec), b"", {})
        changes.check_end()
        target.finish()
    return changes.done


@dataclass(slots=True)
class _Change:
    """What was done to one document, and the line on which the file of edits says so."""

    document: int
    line: int
    edits: list[Edit] = field(default_factory=list)
    record: str | None = None


class _Changes:
    """The changed documents of a file of edits, to be undone in the order in which they come."""

    def __init__(self, path: str, *, append: bool) -> None:
        self._path = path
        self._append = append
        self._coming = self._read()
        self._next = next(self._coming, None)
        self.done = 0

    def undo(self, chunk: Chunk) -> tuple[str, bool]:
        """The records of a chunk as they were, and whether an unfinished copy was left out."""
        text = chunk.data.decode("utf-8", "surrogateescape")
        records = chunk.layout.parse(text, chunk.place)
        pieces: list[str] = []
        position = 0
        cut_short = False
        while (change := self._next) is not None:
            index = change.document - chunk.place.first
            if self._append:  # each copy so far has moved what follows on by one
                index += self.done + 1
            if index >= len(records.block):
                break
            begin, end = records.bounds[index : index + 2].tolist()
            pieces.append(text[position:begin])
            record = text[begin:end]
            if self._append:
                cut_short = record[-1] not in chunk.layout.marks
            elif change.record is not None:
                pieces.append(change.record)
            else:
                try:
                    pieces.append(chunk.layout.splice(record, invert(change.edits)))
                except InputError as error:
                    problem = f"does not fit {chunk.place.source}: {error}"
                    raise FileError(self._path, problem, line=change.line) from error
            position = end
            self.done += 1
            self._next = next(self._coming, None)
        pieces.append(text[position:])
        return "".join(pieces), cut_short

    def undo_vanished(self, documents: int) -> tuple[str, bool]:
        """The same for a last line that lacked its newline and of which nothing was left."""
        change = self._next
        if change is None or any(edit.after for edit in change.edits):
            return "", False
        if change.document + (self.done + 1 if self._append else 0) != documents:
            return "", False
        self.done += 1
        self._next = next(self._coming, None)
        return ("", True) if self._append else (apply("", invert(change.edits)), False)

    def check_end(self) -> None:
        """All edits must have found their document."""
        if self._next is not None:
            problem = f"document {self._next.document} is not in the rewritten file"
            raise FileError(self._path, problem, line=self._next.line)

    def _read(self) -> Iterator[_Change]:
        change: _Change | None = None
        for chunk in chunks([self._path], Lines()):
            lines = chunk.data.decode("utf-8", "surrogateescape").split("\n")
            for number, line in enumerate(lines, chunk.place.line):
                if not line:
                    continue
                document, edit, record = self._edit(line, number)
                if change is None or document != change.document:
                    if change is not None:
                        if document < change.document:
                            raise FileError(self._path, "documents out of order", line=number)
                        yield change
                    change = _Change(document, number, record=record)
                change.edits.append(edit)
        if change is not None:
            yield change

    def _edit(self, line: str, number: int) -> tuple[int, Edit, str | None]:
        try:
            row = json.loads(line)
            edit = Edit(row["offset"], row["rule"], row["before"], row["after"])
            return row["document"], edit, row.get("record")
        except (ValueError, KeyError, TypeError) as error:
            expected = "expected an edit with document, offset, rule, before and after"
            raise FileError(self._path, expected, line=number) from error
