"""Word lists to rows: what is missing is collected and named, never silently dropped."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, VocabularyError
from evenhand.vectors.store import Found, Vectors

__all__ = ["Groups", "known", "known_groups", "known_tuples", "refuse_shared"]


@dataclass(frozen=True, slots=True)
class Groups:
    """Several word lists found in the vectors: one row a word, with the list it belongs to."""

    names: tuple[str, ...]
    words: tuple[str, ...]
    rows: NDArray[np.intp]
    labels: NDArray[np.intp]
    missing: tuple[str, ...]

    def label_names(self) -> list[str]:
        return [self.names[label] for label in self.labels]


def known(v: Vectors, words: Sequence[str], what: str, *, at_least: int = 1) -> Found:
    """The words of one list that have a vector; too few of them is an error that names them."""
    words = words if isinstance(words, str) else list(words)
    found = v.find(words)
    if len(found.words) < at_least:
        listed = ", ".join(found.missing[:8]) + (" …" if len(found.missing) > 8 else "")
        without = f" (without: {listed})" if found.missing else ""
        raise VocabularyError(
            f"{what}: expected at least {at_least} words with a vector in {v.name}, "
            f"got {len(found.words)} of {len(words)}{without}"
        )
    return found


def known_groups(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    what: str,
    *,
    at_least: int = 1,
    disjoint: bool = False,
) -> Groups:
    """Several lists at once, each with at least so many known words; if `disjoint`, no word in
    two of them.
    """
    if not groups:
        raise InputError(f"{what}: expected at least one list of words, got none")
    parts = [
        known(v, words, f"{what} '{name}'", at_least=at_least) for name, words in groups.items()
    ]
    if disjoint:
        for (one, first), (two, second) in combinations(zip(groups, parts, strict=True), 2):
            refuse_shared(first, second, f"{what}s '{one}' and '{two}'")
    return Groups(
        names=tuple(groups),
        words=tuple(word for part in parts for word in part.words),
        rows=np.concatenate([part.rows for part in parts]),
        labels=np.repeat(np.arange(len(parts)), [len(part.words) for part in parts]),
        missing=tuple(word for part in parts for word in part.missing),
    )


def refuse_shared(one: Found | Groups, two: Found | Groups, what: str) -> None:
    """A word in two lists that are compared with each other is an error that names it."""
    shared = np.isin(one.rows, two.rows)
    if shared.any():
        word = one.words[int(shared.argmax())]
        raise InputError(f"{what}: expected no word in both, got '{word}'")


def known_tuples(
    v: Vectors, tuples: Sequence[Sequence[str]], what: str, *, at_least: int = 1
) -> tuple[list[tuple[str, ...]], list[NDArray[np.intp]], tuple[str, ...]]:
    """Pairs (or longer tuples) of which every member is known; a missing word takes its whole
    tuple out and so never shifts the pairing. Returns the tuples, their rows and missing words.
    """
    kept: list[tuple[str, ...]] = []
    rows: list[NDArray[np.intp]] = []
    missing: dict[str, None] = {}
    for words in tuples:
        if isinstance(words, str):
            raise InputError(f"{what}: expected tuples of words, got the string '{words}'")
        found = v.find(words)
        missing.update(dict.fromkeys(found.missing))
        if len(found.words) == len(words):
            kept.append(tuple(words))
            rows.append(found.rows)
    if len(kept) < at_least:
        raise VocabularyError(
            f"{what}: expected at least {at_least} complete tuples in {v.name}, "
            f"got {len(kept)} of {len(tuples)} (without: {', '.join(list(missing)[:8])})"
        )
    return kept, rows, tuple(missing)
