"""The words of a set of vectors, and looking up word lists in them.

Words without a vector are collected and named, never silently dropped.
"""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, VocabularyError

if TYPE_CHECKING:
    from evenhand.vectors.store import Vectors

Case = Literal["exact", "fallback"]
"""Lookup of a word: exact, or also in other cases and joinings."""

_PART = re.compile(r"(^|[ _-])(\w)")


class Vocabulary:
    r"""Words in order of frequency; `blob` is UTF-8 with one word per line.

    Bytes that are not UTF-8 are shown as `\xNN`; they are unchanged in `blob` and exports.
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
        """The row of the first known spelling, or None."""
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
        matches = difflib.get_close_matches(wanted, near[:5000], n=1, cutoff=0.7)
        return matches[0] if matches else None

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


@dataclass(frozen=True, slots=True, eq=False)
class Lookup:
    """Which words of a list have a vector, and in which row.

    `words` are spelt and ordered as in the list. A word with the same row as one before it
    (repeated, or `He` after `he` where only `he` has a vector) is counted once, as the first.
    `missing` are out of vocabulary or have a zero vector, whose cosine is undefined.
    """

    words: tuple[str, ...]
    rows: NDArray[np.intp]
    missing: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Groups:
    """Several word lists looked up in the vectors: one row per word, with its list."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    rows: NDArray[np.intp]
    labels: NDArray[np.intp]
    missing: tuple[str, ...]

    def label_names(self) -> list[str]:
        return [self.names[label] for label in self.labels]


def known(v: Vectors, words: Sequence[str], what: str, *, at_least: int = 1) -> Lookup:
    """The words of one list that have a vector; too few of them is an error that names them."""
    words = words if isinstance(words, str) else list(words)
    rows = v.find(words)
    if len(rows.words) < at_least:
        listed = ", ".join(rows.missing[:8]) + (" …" if len(rows.missing) > 8 else "")
        without = f" (without: {listed})" if rows.missing else ""
        raise VocabularyError(
            f"{what}: expected at least {at_least} words with a vector in {v.name}, "
            f"got {len(rows.words)} of {len(words)}{without}"
        )
    return rows


def known_groups(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    what: str,
    *,
    at_least: int = 1,
    disjoint: bool = False,
) -> Groups:
    """Several lists at once, each with a minimum number of known words; if `disjoint`, no word in
    two of them.
    """
    if not groups:
        raise InputError(f"{what}: expected at least one list of words, got none")
    parts = [
        known(v, words, f"{what} '{name}'", at_least=at_least) for name, words in groups.items()
    ]
    if disjoint:
        for (name, first), (other, second) in combinations(zip(groups, parts, strict=True), 2):
            refuse_shared(first, second, f"{what}s '{name}' and '{other}'")
    return Groups(
        names=tuple(groups),
        words=tuple(word for part in parts for word in part.words),
        rows=np.concatenate([part.rows for part in parts]),
        labels=np.repeat(np.arange(len(parts)), [len(part.words) for part in parts]),
        missing=tuple(word for part in parts for word in part.missing),
    )


def refuse_shared(first: Lookup | Groups, second: Lookup | Groups, what: str) -> None:
    """A word in two lists that are compared with each other is an error that names it."""
    others = set(second.rows.tolist())
    for word, row in zip(first.words, first.rows.tolist(), strict=True):
        if row in others:
            raise InputError(f"{what}: expected no word in both, got '{word}'")


def known_tuples(v: Vectors, tuples: Sequence[Sequence[str]], what: str) -> Lookup:
    """Pairs (or longer tuples) of which every member is known, one after the other; the others are
    left out, so that a missing word never shifts the pairing.
    """
    complete: list[Lookup] = []
    missing: dict[str, None] = {}
    for words in tuples:
        if isinstance(words, str):
            raise InputError(f"{what}: expected tuples of words, got the string '{words}'")
        members = v.find(words)
        missing.update(dict.fromkeys(members.missing))
        if len(members.words) == len(words):
            complete.append(members)
    if not complete:
        raise VocabularyError(
            f"{what}: expected at least 1 complete tuples in {v.name}, "
            f"got 0 of {len(tuples)} (without: {', '.join(list(missing)[:8])})"
        )
    return Lookup(
        words=tuple(word for members in complete for word in members.words),
        rows=np.concatenate([members.rows for members in complete]),
        missing=tuple(missing),
    )
