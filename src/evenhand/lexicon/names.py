"""First names: how often girls and boys have them, and fixed pairs across the genders."""

from __future__ import annotations

import csv
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property
from importlib.resources import files
from importlib.resources.abc import Traversable

from evenhand.lexicon.reading import data

__all__ = ["Names", "ambiguous_names", "names"]

CLEAR = 0.95
"""Share of its more common gender from which on a name tells the gender."""


@dataclass(frozen=True, slots=True)
class Entry:
    """Births of girls and of boys, and the name of the other gender it is paired with."""

    female: int
    male: int
    partner: str | None


@dataclass(frozen=True)
class Names:
    """First names by births; `ambiguous` ones are also words, places or surnames.

    A name is looked up with its first letter a capital and the rest small: `MARY` and `McKenzie`
    are found, `mary` is not.
    """

    table: Mapping[str, Entry]
    ambiguous: frozenset[str]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and self._find(name) is not None

    def __len__(self) -> int:
        return len(self.table)

    def gender(self, name: str) -> str | None:
        """`female` or `male` where at least 95 % of the births were of that gender, else None.

        >>> names().gender("Mary"), names().gender("James"), names().gender("Casey")
        ('female', 'male', None)
        """
        share = self.share(name)
        if share is None or 1 - CLEAR < share < CLEAR:
            return None
        return "female" if share >= CLEAR else "male"

    def share(self, name: str) -> float | None:
        """Share of girls among the births of that name, None where it is unknown."""
        entry = self._find(name)
        return None if entry is None else entry.female / (entry.female + entry.male)

    def count(self, name: str) -> int:
        """Births of that name, 0 where it is unknown."""
        entry = self._find(name)
        return 0 if entry is None else entry.female + entry.male

    def partner(self, name: str) -> str | None:
        """The name of the other gender it is paired with, about as frequent and as specific.

        >>> names().partner("Mary"), names().partner("James")
        ('James', 'Mary')
        """
        entry = self._find(name)
        return None if entry is None else entry.partner

    @cached_property
    def female(self) -> tuple[str, ...]:
        """Names whose gender is female, the most frequent first."""
        return self._of("female")

    @cached_property
    def male(self) -> tuple[str, ...]:
        """Names whose gender is male, the most frequent first."""
        return self._of("male")

    def _of(self, gender: str) -> tuple[str, ...]:
        found = [name for name in self.table if self.gender(name) == gender]
        return tuple(sorted(found, key=lambda name: (-self.count(name), name)))

    def _find(self, name: str) -> Entry | None:
        return self.table.get(name.capitalize()) if name[:1].isupper() else None


@cache
def names() -> Names:
    """The built-in names: given to at least 400 babies in the United States from 1880 to 2016."""
    table = _read_table(files("evenhand.assets").joinpath("names.csv"))
    return Names(table=table, ambiguous=ambiguous_names())


def ambiguous_names() -> frozenset[str]:
    """First names that, written with a capital, are often a word, a place or a surname."""
    lines = data("ambiguous_names.txt").read_text("ascii").splitlines()
    return frozenset(name for line in lines if line[:1] != "#" for name in line.split())


def _read_table(source: Traversable) -> dict[str, Entry]:
    rows = csv.reader(source.read_text("ascii").splitlines())
    next(rows)
    return {name: Entry(int(girls), int(boys), other or None) for name, girls, boys, other in rows}
