"""Small rewriters for the tests of streaming, in a file of their own for worker processes."""

from __future__ import annotations

import bz2
import gzip
import re
from dataclasses import dataclass

import zstandard

from evenhand.errors import FileError
from evenhand.text.block import Block
from evenhand.text.corpus.pipeline import Done
from evenhand.text.edits import Edit

UNPACK = {
    "": bytes,
    ".gz": gzip.decompress,
    ".bz2": bz2.decompress,
    ".zst": lambda data: zstandard.ZstdDecompressor().decompressobj().decompress(data),
}
PACK = {
    "": bytes,
    ".gz": gzip.compress,
    ".bz2": bz2.compress,
    ".zst": zstandard.ZstdCompressor().compress,
}
PAIRS = {"he": "she", "she": "he", "é": "ê", "ab": "", "q": 'x,"y', "z": "\\/"}
WORDS = re.compile("|".join(PAIRS))


@dataclass(frozen=True)
class Swapping:
    """Replaces by a fixed table, some of it with what needs quotes or escapes."""

    def __call__(self, block: Block) -> list[Edit]:
        return [
            Edit(
                m.start(), "pair" if m.group().isascii() else "accent", m.group(), PAIRS[m.group()]
            )
            for m in WORDS.finditer(block.text)
        ]


@dataclass(frozen=True)
class Numbering:
    """Puts the document's number where a # stands: output depends on the number alone."""

    def __call__(self, block: Block) -> list[Edit]:
        positions = [m.start() for m in re.finditer("#", block.text)]
        numbers = block.first + block.owner(positions)
        return [
            Edit(index, "number", "#", str(number))
            for index, number in zip(positions, numbers.tolist(), strict=True)
        ]


@dataclass(frozen=True)
class Nothing:
    def __call__(self, block: Block) -> list[Edit]:
        return []


@dataclass(frozen=True)
class Listing:
    """A line for each document: its number, source, line and length."""

    def __call__(self, block: Block) -> Done:
        rows = [
            f"{block.first + i} {block.source} {block.line(i)} {len(block.document(i))}\n"
            for i in range(len(block))
        ]
        return Done("".join(rows), counts={"seen": len(block)})


@dataclass(frozen=True)
class Failing:
    """Does its work up to a document with this text in it."""

    at: str
    how: str

    def __call__(self, block: Block) -> list[Edit]:
        if self.at in block.text:
            if self.how == "file":
                raise FileError("lexicon.csv", "broken", line=3)
            raise ZeroDivisionError("by hand")
        return Numbering()(block)
