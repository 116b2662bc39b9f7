"""What is done to a block of documents: any function of it, or a rewriting of its records."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Protocol

import numpy as np

from evenhand.text.block import Block
from evenhand.text.corpus.records import Layout, Lines, Records
from evenhand.text.edits import Edit, invert
from evenhand.text.rewrite import Rewriter

__all__ = ["Done", "RewriteWork", "Work"]


@dataclass(frozen=True, slots=True)
class Done:
    """What one block became: text to write, text for the second file, and counts to add up."""

    output: str
    edits: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)


class Work(Protocol):
    """A function of a block of documents that can be sent to another process.

    What it does with a document may depend on the document and its number, not on the block, so
    that the output is the same however the corpus is cut.
    """

    def __call__(self, block: Block) -> Done: ...


@dataclass(frozen=True, slots=True)
class RewriteWork:
    """The records with their documents rewritten and every other byte as it was.

    With `append`, each record that changes is kept and followed by its rewritten copy, as
    counterfactual data augmentation asks. Counts: `documents`, `changed` (documents with an edit),
    `edits`, and `rule:NAME` for the edits of each rule.
    """

    rewriter: Rewriter
    append: bool = False

    def rewrite(self, records: Records, layout: Layout, *, log: bool = False) -> Done:
        """The records rewritten and, if asked for, a JSON line for each edit."""
        counts = Counter(documents=records.documents, changed=0, edits=0)
        if not len(records.block):
            return Done(records.text, counts=counts)
        edits = self.rewriter(records.block)
        if not edits:
            return Done(records.text, counts=counts)
        counts.update(f"rule:{rule}" for rule in _rules(edits))
        counts["edits"] = len(edits)
        if not (self.append or log) and isinstance(layout, Lines):
            offsets = np.fromiter((edit.offset for edit in edits), np.int64, len(edits))
            counts["changed"] = len(np.unique(records.block.owner(offsets)))
            return Done(layout.splice(records.text, edits), counts=counts)
        pieces: list[str] = []
        lines: list[str] = []
        done = 0
        for index, made in _by_document(records.block, edits):
            begin, end = records.bounds[index : index + 2].tolist()
            record = records.text[begin:end]
            changed = layout.splice(record, made)
            pieces.append(records.text[done:begin])
            if self.append:
                pieces.append(record if record[-1] in layout.marks else record + "\n")
            pieces.append(changed)
            done = end
            counts["changed"] += 1
            if log:
                exact = self.append or layout.splice(changed, invert(made)) == record
                lines.extend(_lines(records.block, index, made, None if exact else record))
        pieces.append(records.text[done:])
        return Done("".join(pieces), "".join(lines), counts)


def _rules(edits: Sequence[Edit]) -> Iterator[str]:
    return (edit.rule for edit in edits)


def _by_document(block: Block, edits: Sequence[Edit]) -> Iterator[tuple[int, list[Edit]]]:
    """The edits of each document that has some, their offsets counted from where it begins."""
    offsets = np.fromiter((edit.offset for edit in edits), np.int64, len(edits))
    owners = block.owner(offsets)
    changed, firsts = np.unique(owners, return_index=True)
    ends = [*firsts[1:].tolist(), len(edits)]
    for index, first, end in zip(changed.tolist(), firsts.tolist(), ends, strict=True):
        start = int(block.starts[index])
        yield (
            index,
            [Edit(e.offset - start, e.rule, e.before, e.after) for e in edits[first:end]],
        )


@lru_cache(maxsize=1 << 14)
def _quoted(text: str) -> str:
    """The text as a JSON string; what has no place in UTF-8 is escaped."""
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
    place = f'"source": {_quoted(block.source)}, "line": {block.line(index)}'
    extra = "" if record is None else f', "record": {json.dumps(record)}'
    for edit in edits:
        yield (
            f'{{"document": {number}, {place}, "offset": {edit.offset}, '
            f'"rule": {_quoted(edit.rule)}, "before": {_quoted(edit.before)}, '
            f'"after": {_quoted(edit.after)}{extra}}}\n'
        )
        extra = ""
