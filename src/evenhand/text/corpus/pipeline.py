"""Files of any size through a function, in several processes, in order; and back again."""

from __future__ import annotations

import json
import os
import re
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import closing, contextmanager
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib.metadata import version
from itertools import groupby
from operator import itemgetter
from pathlib import Path
from typing import TYPE_CHECKING, TypeAlias

import numpy as np

from evenhand.errors import FileError, InputError
from evenhand.files import current_reading, reading, real_path
from evenhand.text.block import Block, Done
from evenhand.text.corpus.compression import STDIN, Codec, member_codec, pack
from evenhand.text.corpus.formats import Form, Lines, RecordLayout, Records
from evenhand.text.corpus.pool import ordered
from evenhand.text.corpus.reading import Chunk, CorpusPosition, chunks, total_size
from evenhand.text.corpus.writing import STDOUT, OutputTarget, run_key
from evenhand.text.edits import Edit, apply, invert
from evenhand.text.tokens import match_case

if TYPE_CHECKING:
    from evenhand.text.rewrite import Rewriter
    from evenhand.text.rewrite.stereotype import Selection


CorpusWork: TypeAlias = Callable[[Block], Done]
"""A function of a block of documents that can be sent to another process.

What it does with a document may depend on the document and its number, not on the block, so that
the output is the same however the corpus is cut.
"""


@dataclass(frozen=True, slots=True)
class RewriteWork:
    """The records with their documents rewritten and every other byte as it was.

    With `append`, each record that changes is followed by its rewritten copy, as in
    counterfactual data augmentation. With `flip`, the gender code in the second column of the
    layout is swapped in the records that change. With `select`, only some of the records are
    rewritten, by their class and gender. Counts: `documents`, `changed` (documents with an edit),
    `edits`, `rule:NAME` for the edits of each rule, and `unchanged:REASON` for the documents that
    `select` leaves.
    """

    rewriter: Rewriter
    append: bool = False
    flip: Flip | None = None
    select: Selection | None = None

    def rewrite(self, records: Records, layout: RecordLayout, *, log: bool = False) -> Done:
        """The records rewritten and, if requested, a JSON line for each edit."""
        counts = Counter(documents=records.documents, changed=0, edits=0)
        if not len(records.block):
            return Done(records.text, counts=counts)
        edits = self.rewriter(records.block)
        if self.select is not None:
            edits = self._selected(records, layout, edits, counts)
        if not edits:
            return Done(records.text, counts=counts)
        counts.update(f"rule:{edit.rule}" for edit in edits)
        counts["edits"] = len(edits)
        if not (self.append or log) and isinstance(layout, Lines):
            counts["changed"] = len(np.unique(records.block.owners(edits)))
            return Done(layout.splice(records.text, edits), counts=counts)
        pieces: list[str] = []
        lines: list[str] = []
        done = 0
        for index, document_edits in records.block.by_document(edits):
            begin, end = records.bounds[index : index + 2].tolist()
            record = records.text[begin:end]
            changed = layout.splice(record, document_edits)
            if self.flip is not None:
                with _located(records.block, index):
                    changed = layout.change_cell(changed, self.flip)
            pieces.append(records.text[done:begin])
            if self.append:
                pieces.append(record if record[-1] in layout.marks else record + "\n")
            pieces.append(changed)
            done = end
            counts["changed"] += 1
            if log:
                exact = self.append or layout.splice(changed, invert(document_edits)) == record
                lines.extend(
                    _lines(records.block, index, document_edits, None if exact else record)
                )
        pieces.append(records.text[done:])
        return Done("".join(pieces), "".join(lines), counts)

    def _selected(
        self, records: Records, layout: RecordLayout, edits: list[Edit], counts: Counter[str]
    ) -> list[Edit]:
        """The edits of the records that are to be rewritten."""
        assert self.select is not None  # noqa: S101
        wanted = np.zeros(len(records.block), dtype=np.bool_)
        for index in range(len(records.block)):
            begin, end = records.bounds[index : index + 2].tolist()
            record = records.text[begin:end]
            if not record.strip():
                continue
            with _located(records.block, index):
                reason = self.select.reason(*layout.cells(record))
            wanted[index] = not reason
            if reason:
                counts[f"unchanged:{reason}"] += 1
        owners = records.block.owners(edits)
        left = int(wanted.sum()) - len(np.unique(owners[wanted[owners]]))
        if left:
            counts["unchanged:no gendered word"] += left
        return [edit for edit, use in zip(edits, wanted[owners].tolist(), strict=True) if use]


@contextmanager
def _located(block: Block, index: int) -> Iterator[None]:
    """Name the file and the line of a document in an error about its record."""
    try:
        yield
    except InputError as error:
        raise FileError(block.source, str(error), line=block.line(index)) from None


GENDER_CODES = (
    ("m", "f"),
    ("male", "female"),
    ("man", "woman"),
    ("men", "women"),
    ("boy", "girl"),
    ("masculine", "feminine"),
)
"""Codes of men and of women in data, in lower case."""


@dataclass(frozen=True, slots=True)
class Flip:
    """Swaps the gender code of a record; other codes are an error.

    >>> flip = Flip("sex")
    >>> flip("F"), flip("Male"), flip(" WOMAN"), flip("")
    ('M', 'Female', ' MAN', '')
    """

    column: str
    direction: str = "both"
    codes: tuple[tuple[str, str], ...] = GENDER_CODES

    def __call__(self, code: str) -> str:
        word = code.strip()
        if not word:
            return code
        for male, female in self.codes:
            if word.lower() in (male, female):
                to_female = word.lower() == male
                if self.direction == ("female-to-male" if to_female else "male-to-female"):
                    return code
                return code.replace(word, match_case(word, female if to_female else male))
        known = ", ".join("/".join(pair) for pair in GENDER_CODES)
        raise InputError(f"column '{self.column}': expected a gender ({known}), got '{word}'")


@lru_cache(maxsize=1 << 14)
def _quoted(text: str) -> str:
    """The text as a JSON string; what UTF-8 cannot encode is escaped."""
    written = json.dumps(text, ensure_ascii=False)
    try:
        written.encode()
    except UnicodeEncodeError:
        return json.dumps(text)
    return written


def _lines(block: Block, index: int, edits: Sequence[Edit], record: str | None) -> Iterator[str]:
    """A JSON line an edit; where the edits alone would not lead back to the very bytes (an escape
    written in an unusual way), the first one carries the record as it was.
    """
    number = block.first + index
    location = f'"source": {_quoted(block.source)}, "line": {block.line(index)}'
    extra = "" if record is None else f', "record": {json.dumps(record)}'
    for edit in edits:
        yield (
            f'{{"document": {number}, {location}, "offset": {edit.offset}, '
            f'"rule": {_quoted(edit.rule)}, "before": {_quoted(edit.before)}, '
            f'"after": {_quoted(edit.after)}{extra}}}\n'
        )
        extra = ""


ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+>")
"""The end of a default `repr`, which does not identify an object: such work is not resumed."""
UNWRITABLE = re.compile("[\ud800-\udc7f\udd00-\udfff]")

Progress = Callable[[int, int | None], None]
"""Called with the bytes read so far, as they are on disk, and how many there are, if known."""


def stream(
    sources: Sequence[str | Path],
    output: str | Path,
    work: CorpusWork | RewriteWork,
    *,
    form: Form = Lines(),  # noqa: B008
    edits: str | Path | None = None,
    workers: int = 1,
    restart: bool = False,
    block_size: int = 1 << 20,
    progress: Progress | None = None,
    fingerprint: str | None = None,
    folders: bool = True,
) -> Counter[str]:
    """Apply a function to every block of the sources and write the results in order.

    Parameters
    ----------
    sources : sequence of paths
        Read one after the other; "-" is stdin. Compressed input is known by its first bytes. Its
        encoding is that of `evenhand.files.reading`; output is in UTF-8.
    output : path
        "-" is stdout. A name that ends in .gz, .bz2 or .zst is compressed. The file appears when
        it is complete.
    work : CorpusWork or RewriteWork
    form : Form
        How documents are cut out of the files: `Lines()`, `Jsonl(field)` or `Csv(field)`.
    edits : path, optional
        Where the edits, or what else the work logs, are written.
    workers : int
        The number of processes. The work is imported again in each: call this from a module, under
        `if __name__ == "__main__":` in a script.
    restart : bool
        Start over. Without it an interrupted run is resumed at its last checkpoint when the same is
        requested again: the same files, unchanged, and the same `fingerprint`. Input from stdin is
        always read from the start.
    block_size : int
        Bytes per block. The output does not depend on it, nor on `workers`.
    progress : callable, optional
    fingerprint : str, optional
        All that the output depends on; by default the `repr` of the work.
    folders : bool
        Whether what is written names the sources with their folders.

    Returns
    -------
    Counter of str
        The counts of the work, summed. If the reader of stdout closes it, they are of what was
        written.

    """
    names = [str(source) for source in sources]
    check(names, output, edits)
    if workers < 1 or block_size < 1:
        raise InputError(
            f"expected at least one worker and a block of one byte, got {workers}, {block_size}"
        )
    known = all(name != STDIN and Path(name).is_file() for name in names)
    key = None
    identity = repr(work) if fingerprint is None else fingerprint
    if known and not restart and not ADDRESS.search(identity):
        made_by = version("evenhand")
        settings = {"work": identity, "form": repr(form), "edits": str(edits), "version": made_by}
        key = run_key(names, encoding=current_reading().encoding, **settings)
    log = edits is not None
    encoding = current_reading().encoding
    task = _Task(work, member_codec(output), member_codec(edits or ""), log, encoding, folders)
    total = total_size(names) if known else None
    with OutputTarget(output, edits, key) as target:
        pieces = chunks(
            names,
            form,
            size=block_size,
            start=target.state.position,
            same_columns=isinstance(work, RewriteWork),
            prompt=names == [STDIN] and str(output) == STDOUT,
        )
        with closing(ordered(task, pieces, workers)) as results:
            for chunk, result in results:
                target.add(chunk.after, *result)
                if progress is not None:
                    progress(chunk.done, total)
        target.finish()
    return Counter(target.state.counts)


@dataclass(frozen=True, slots=True)
class _Task:
    """All that is done to a chunk where the work is done: decode, work, encode, compress."""

    work: CorpusWork | RewriteWork
    codec: Codec
    edits_codec: Codec
    log: bool
    encoding: str
    folders: bool

    def __call__(self, chunk: Chunk) -> tuple[bytes, bytes, Mapping[str, int]]:
        """The output, the edits and the counts, ready to be written."""
        with reading(encoding=self.encoding):
            text = chunk.text()
        records = chunk.layout.parse(text, chunk.location)
        if not self.folders:
            name = Path(records.block.source).name
            records = replace(records, block=replace(records.block, source=name))
        prefix = b""
        if isinstance(self.work, RewriteWork):
            prefix = chunk.prefix
            done = self.work.rewrite(records, chunk.layout, log=self.log)
        elif len(records.block):
            done = self.work(records.block)
        else:
            return b"", b"", {}
        output = pack(prefix + encode(done.output), self.codec)
        edits = pack(encode(done.edits), self.edits_codec) if self.log else b""
        return output, edits, dict(done.counts)


def encode(text: str) -> bytes:
    """UTF-8, with the bytes that were not UTF-8 in the input as they were.

    Half of a surrogate pair, which only an escape in JSON can bring, becomes such an escape again.
    """
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        escaped = UNWRITABLE.sub(lambda match: f"\\u{ord(match.group()):04x}", text)
        return escaped.encode("utf-8", "surrogateescape")


def check(sources: Sequence[str], output: str | Path, edits: str | Path | None = None) -> None:
    """Check that the inputs can be read, and that outputs overwrite neither them nor each other."""
    if not sources:
        raise InputError("no input: expected at least one file, or - for stdin")
    targets = [str(path) for path in (output, edits) if path is not None and str(path) != STDOUT]
    if edits is not None and real_path(output) == real_path(edits):
        raise InputError(f"{edits}: is the output already: expected a file of its own")
    for source in sources:
        if source == STDIN:
            continue
        if Path(source).is_dir():
            raise FileError(source, "is a folder: expected a file")
        stat = Path(source).stat()
        for target in targets:
            if Path(target).is_file() and os.path.samestat(stat, Path(target).stat()):
                raise FileError(target, "is an input and cannot be the output at the same time")


def restore(
    output: str | Path,
    edits: str | Path,
    destination: str | Path,
    *,
    form: Form = Lines(),  # noqa: B008
    append: bool = False,
) -> int:
    """Undo a rewriting: write to `destination` the input of which `output` was made.

    The input is restored byte for byte or, where it was in another encoding, in UTF-8.

    Parameters
    ----------
    output, edits : path
        What the rewriting wrote.
    destination : path
        Several inputs are restored as one file, in the order in which they were read.
    form, append
        Those of the rewriting.

    Returns
    -------
    int
        The number of documents that had been changed.

    """
    check([str(output), str(edits)], destination)
    if not current_reading().is_utf8:
        raise InputError("encoding: what a rewriting writes is in UTF-8, whatever its input was")
    changes = _Changes(str(edits), append=append)
    codec = member_codec(destination)
    with OutputTarget(destination, None, None) as target:
        held, documents = b"", 0
        for chunk in chunks([str(output)], form):
            documents = chunk.after.document
            text, cut_short = changes.undo(chunk)
            restored = chunk.prefix + encode(text)
            if cut_short:  # a newline was put between the last record and its copy
                held, restored = (held, restored[:-1]) if restored else (held[:-1], b"")
            target.add(CorpusPosition(), pack(held, codec), b"", {})
            held = restored
        if isinstance(form, Lines):
            text, cut_short = changes.undo_vanished(documents)
            held = (held[:-1] if cut_short else held) + encode(text)
        target.add(CorpusPosition(), pack(held, codec), b"", {})
        changes.check_end()
        target.finish()
    return changes.done


@dataclass(slots=True)
class _Change:
    """The edits of one document, and their line in the file of edits."""

    document: int
    line: int
    edits: Sequence[Edit]
    record: str | None


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
        text = chunk.text()
        records = chunk.layout.parse(text, chunk.location)
        pieces: list[str] = []
        position = 0
        cut_short = False
        while (change := self._next) is not None:
            index = change.document - chunk.location.first
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
                    problem = f"does not fit {chunk.location.source}: {error}"
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
        rows = (
            (number, *self._edit(line, number))
            for chunk in chunks([self._path], Lines())
            for number, line in enumerate(chunk.text().split("\n"), chunk.location.line)
            if line
        )
        last = 0
        for document, group in groupby(rows, key=itemgetter(1)):
            numbers, _, edits, records = zip(*group, strict=True)
            if document < last:
                raise FileError(self._path, "documents out of order", line=numbers[0])
            last = document
            yield _Change(document, numbers[0], edits, records[0])

    def _edit(self, line: str, number: int) -> tuple[int, Edit, str | None]:
        try:
            row = json.loads(line)
            edit = Edit(row["offset"], row["rule"], row["before"], row["after"])
            return row["document"], edit, row.get("record")
        except (ValueError, KeyError, TypeError, RecursionError) as error:
            expected = "expected an edit with document, offset, rule, before and after"
            raise FileError(self._path, expected, line=number) from error
