"""First names by births, pairs of names across the genders, and words around names."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from typing import NamedTuple

from evenhand.lexicon.schema import built_in, data

CLEAR = 0.95
"""Smallest share of its more common gender at which a name has a gender."""
FREE = (0.4, 0.6)
"""Shares of girls among the births of a gender-free name."""


class Entry(NamedTuple):
    """Births of girls and of boys, and the paired name of the other gender."""

    female: int
    male: int
    partner: str | None


@dataclass(frozen=True)
class Names:
    """First names by births; `ambiguous` ones are also words, places or surnames.

    A name is looked up capitalised: `MARY` and `McKenzie` are names, `mary` is not.
    """

    table: Mapping[str, Entry]
    ambiguous: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __len__(self) -> int:
        return len(self.table)

    def gender(self, name: str) -> str | None:
        """Return `female` or `male` if at least 95 % of the births have that gender, else None.

        >>> names().gender("Mary"), names().gender("James"), names().gender("Casey")
        ('female', 'male', None)
        """
        share = self.share(name)
        if share is None or 1 - CLEAR < share < CLEAR:
            return None
        return "female" if share >= CLEAR else "male"

    def share(self, name: str) -> float | None:
        """Return the share of girls among the births of a name, or None if it is unknown."""
        entry = self._find(name)
        return None if entry is None else entry.female / (entry.female + entry.male)

    def count(self, name: str) -> int:
        """Return the births of a name, 0 if it is unknown."""
        entry = self._find(name)
        return 0 if entry is None else entry.female + entry.male

    def partner(self, name: str) -> str | None:
        """Return the paired name of the other gender, similarly frequent and specific.

        >>> names().partner("Mary"), names().partner("James")
        ('James', 'Mary')
        """
        entry = self._find(name)
        return None if entry is None else entry.partner

    @cached_property
    def female(self) -> tuple[str, ...]:
        """Female names, most frequent first."""
        return self._of("female")

    @cached_property
    def male(self) -> tuple[str, ...]:
        """Male names, most frequent first."""
        return self._of("male")

    @cached_property
    def gender_free(self) -> tuple[str, ...]:
        """Names with 40 to 60 % girls that are no words, places or surnames, most frequent first.

        >>> names().gender_free[:3], len(names().gender_free)
        (('Casey', 'Jackie', 'Jaime'), 271)
        """
        fewest, most = FREE
        shares = {name: self.share(name) or 0.0 for name in self.table.keys() - self.ambiguous}
        matches = [name for name, share in shares.items() if fewest <= share <= most]
        return tuple(sorted(matches, key=lambda name: (-self.count(name), name)))

    def _of(self, gender: str) -> tuple[str, ...]:
        matches = [name for name in self.table if self.gender(name) == gender]
        return tuple(sorted(matches, key=lambda name: (-self.count(name), name)))

    def _find(self, name: str) -> Entry | None:
        return self.table.get(name.capitalize()) if name[:1].isupper() else None


@cache
def names() -> Names:
    """Return the built-in names: given to at least 400 babies in the United States, 1880-2016."""
    lines = files("evenhand.assets").joinpath("names.csv").read_text("ascii").splitlines()
    table = {
        name: Entry(int(girls), int(boys), other or None)
        for name, girls, boys, other in csv.reader(lines[1:])
    }
    return Names(table=table, ambiguous=ambiguous_names())


def ambiguous_names() -> frozenset[str]:
    """Return first names that, capitalised, are often a word, a place or a surname."""
    lines = data("ambiguous_names.txt").read_text("ascii").splitlines()
    return frozenset(name for line in lines if line[:1] != "#" for name in line.split())


@cache
def persons() -> Mapping[str, frozenset[str]]:
    """Return the lists of `data/persons.toml`, sets of lower-case words.

    >>> "mrs" in persons()["titles"], "queen" in persons()["given_titles"]
    (True, True)
    """
    return {name: frozenset(words.split()) for name, words in built_in("persons.toml").items()}


@cache
def counted_words(kind: str) -> frozenset[str]:
    """Return a list counted by `tools/name_words.py`: common_words, surnames or proper_words.

    >>> "however" in counted_words("common_words"), "johnson" in counted_words("surnames")
    (True, True)
    """
    return frozenset(data(f"{kind}.txt").read_text(encoding="utf-8").split())
