"""The words of a set of vectors: kept as one block of bytes, decoded and indexed when asked for."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator
from functools import cached_property
from typing import Literal

__all__ = ["Case", "Vocabulary", "spellings"]

Case = Literal["exact", "fallback"]
"""How a word is looked up: as asked only, or else in other cases and joinings."""

_PART = re.compile(r"(^|[ _-])(\w)")


class Vocabulary:
    r"""Words in order of frequency; `blob` is UTF-8 with one word a line.

    Bytes that are not UTF-8 are shown as `\xNN`, and stay what they are in `blob` and exports.
    """

    def __init__(self, blob: bytes | memoryview) -> None:
        self.blob = blob

    @cached_property
    def words(self) -> list[str]:
        return str(self.blob, "utf-8", "backslashreplace").split("\n")

    @cached_property
    def index(self) -> dict[str, int]:
        backwards = range(len(self.words) - 1, -1, -1)
        return dict(zip(reversed(self.words), backwards, strict=True))

    def row(self, word: str, case: Case) -> int | None:
        """The row of the first spelling there is, or None."""
        index = self.index
        row = index.get(word)
        if row is not None or case == "exact":
            return row
        return next((index[form] for form in spellings(word) if form in index), None)

    def nearest(self, word: str) -> str | None:
        """A word spelt much like this one, for "did you mean"."""
        wanted = word.lower()
        near = [
            known
            for known in self.words
            if abs(len(known) - len(wanted)) <= 2 and known[:1].lower() == wanted[:1]
        ]
        found = difflib.get_close_matches(wanted, near[:5000], n=1, cutoff=0.7)
        return found[0] if found else None

    def __getstate__(self) -> bytes:
        return bytes(self.blob)

    def __setstate__(self, state: bytes) -> None:
        self.blob = state


def spellings(word: str) -> Iterator[str]:
    """The forms under which a word is looked for, in order.

    >>> list(spellings("US"))
    ['US', 'us', 'Us']
    >>> list(spellings("new york"))[:5]
    ['new york', 'New york', 'New York', 'NEW YORK', 'new_york']
    """
    seen: set[str] = set()
    for joiner in " _-" if " " in word else " ":
        joined = word.replace(" ", joiner)
        lower = joined.lower()
        every_part = _PART.sub(lambda part: part[1] + part[2].upper(), lower)
        for form in (joined, lower, lower.capitalize(), every_part, joined.upper()):
            if form not in seen:
                seen.add(form)
                yield form
