"""Many documents in one string, so that a block is searched at once and not line by line."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenhand.text.edits import Edit

Offsets = NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Block:
    """Consecutive documents of a corpus, each followed by a newline (the last one may lack it).

    `starts` says where in `text` each document begins, `first` is the number of the first one in
    the corpus, `source` the file it came from and `lines` the line of that file on which
    each document begins (counted from 1).
    """

    text: str
    starts: Offsets
    first: int = 0
    source: str = ""
    lines: Offsets | None = None

    @classmethod
    def of_lines(cls, text: str, *, first: int = 0, source: str = "", line: int = 1) -> Block:
        r"""A block in which every line is a document.

        >>> block = Block.of_lines("She sings.\nHe hums.\n")
        >>> [block.document(i) for i in range(len(block))]
        ['She sings.', 'He hums.']
        """
        starts = [0] if text else []
        position = text.find("\n")
        last = len(text) - 1
        while 0 <= position < last:
            starts.append(position + 1)
            position = text.find("\n", position + 1)
        lines = np.arange(line, line + len(starts), dtype=np.int64)
        return cls(text, np.asarray(starts, dtype=np.int64), first, source, lines)

    @classmethod
    def of_documents(
        cls,
        documents: Sequence[str],
        *,
        first: int = 0,
        source: str = "",
        lines: Sequence[int] | None = None,
    ) -> Block:
        """A block of documents that may hold newlines themselves, such as fields of records."""
        lengths = np.fromiter((len(d) + 1 for d in documents), dtype=np.int64, count=len(documents))
        starts = np.concatenate(([0], np.cumsum(lengths)[:-1])) if documents else lengths
        text = "\n".join(documents) + "\n" if documents else ""
        numbers = range(first + 1, first + 1 + len(documents)) if lines is None else lines
        return cls(text, starts, first, source, np.fromiter(numbers, dtype=np.int64))

    def __len__(self) -> int:
        return len(self.starts)

    def span(self, index: int) -> tuple[int, int]:
        """The span of a document in the text, without its closing newline."""
        begin = int(self.starts[index])
        if index + 1 < len(self.starts):
            return begin, int(self.starts[index + 1]) - 1
        return begin, len(self.text) - self.text.endswith("\n")

    def document(self, index: int) -> str:
        """The text of one document, without its closing newline."""
        begin, end = self.span(index)
        return self.text[begin:end]

    def owner(self, offsets: Offsets) -> Offsets:
        """The document of the block that each offset of its text falls in."""
        return np.searchsorted(self.starts, offsets, side="right") - 1

    def owners(self, edits: Sequence[Edit]) -> Offsets:
        """The document of the block that each edit falls in."""
        return self.owner(np.fromiter((edit.offset for edit in edits), np.int64, len(edits)))

    def by_document(self, edits: Sequence[Edit]) -> Iterator[tuple[int, list[Edit]]]:
        """The edits of each document that has some, their offsets counted from where it begins."""
        changed, firsts = np.unique(self.owners(edits), return_index=True)
        ends = np.append(firsts, len(edits))[1:].tolist()
        for index, first, end in zip(changed.tolist(), firsts.tolist(), ends, strict=True):
            start = int(self.starts[index])
            yield index, [Edit(e.offset - start, *e[1:]) for e in edits[first:end]]

    def line(self, index: int) -> int:
        """The line of the source on which a document begins."""
        return self.first + index + 1 if self.lines is None else int(self.lines[index])


@dataclass(frozen=True, slots=True)
class Done:
    """The output of one block: text, text for the second file, and counts to add up."""

    output: str
    edits: str = ""
    counts: Mapping[str, int] = field(default_factory=dict)
