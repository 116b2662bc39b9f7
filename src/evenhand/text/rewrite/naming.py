"""First names swapped for names of the other gender, the same one all through a document.

Fixed pairs matched on frequency are those of counterfactual data substitution (Hall Maudslay et al.
2019); names drawn at random by frequency are those of D0 §3.5.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.lexicon.gendered import DIRECTIONS
from evenhand.lexicon.names import names
from evenhand.text.block import Block
from evenhand.text.edits import Edit
from evenhand.text.rewrite.first_names import Mention, first_names, known_names
from evenhand.text.rewrite.possessive import full_possessive
from evenhand.text.tokens import Words

__all__ = ["NAME_MODES", "NameSwap", "Swapped"]

NAME_MODES = ("fixed", "random")
MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


@dataclass(frozen=True, slots=True)
class Swapped:
    """The edits, and how many mentions of first names were left as they are.

    A name is left where its gender is not clear (fewer than 95 % of its bearers share one) or where
    the lexicon has no name to pair it with.
    """

    edits: list[Edit]
    left: int


@dataclass(frozen=True, slots=True)
class NameSwap:
    """Swaps first names: `fixed` by the pairs of the lexicon, `random` by draws.

    A fixed swap made twice gives the text back, but for names that are also words and lose what
    showed them to be names, and for "James' hat", which comes back as "James's hat". A random one
    draws a name in proportion to its births, one that the document does not hold and that no other
    of its names has become; the draws depend on the seed and the number of the document alone.
    Surnames are left alone. `direction` keeps to the names of one gender.

    >>> from evenhand.text.edits import apply
    >>> block = Block.of_lines("James saw Mary. Mr. James left James's hat with Mary Smith.")
    >>> apply(block.text, NameSwap()(block))
    "Mary saw James. Mr. James left Mary's hat with James Smith."
    """

    mode: str = "fixed"
    seed: int = 0
    direction: str = "both"

    def __post_init__(self) -> None:
        _one_of("names", self.mode, NAME_MODES)
        _one_of("direction", self.direction, DIRECTIONS)

    def __call__(self, block: Block) -> list[Edit]:
        return self.swapped(block).edits

    def edits(
        self, block: Block, chosen: NDArray[np.bool_] | None = None, words: Words | None = None
    ) -> list[Edit]:
        """The edits of the chosen documents of a block (all, where nothing is chosen); `words` are
        the words of its text where they are known already.
        """
        return self.swapped(block, chosen, words).edits

    def swapped(
        self, block: Block, chosen: NDArray[np.bool_] | None = None, words: Words | None = None
    ) -> Swapped:
        """The same with the number of mentions that were left."""
        edits: list[Edit] = []
        left = 0
        for number, mentions, present in first_names(block, chosen, words):
            become = self._become(mentions, present, block.first + number)
            for start, written, name in mentions:
                after = become.get(name)
                if after is None:
                    left += 1
                    continue
                if len(written) > 1 and written.isupper():
                    after = after.upper()
                whole = full_possessive(block.text, start + len(written), written, after)
                edits.append(Edit(start, "name", *whole))
        return Swapped(edits, left)

    def _become(
        self, mentions: list[Mention], present: frozenset[str], number: int
    ) -> dict[str, str]:
        """What each name of a document becomes."""
        swapped = list(dict.fromkeys(m.name for m in mentions if self._goes(m.name)))
        if self.mode == "random":
            return _drawn(swapped, present, self.seed, number)
        partners = _partners()
        become = {name: partners[name] for name in swapped if name in partners}
        if self.direction != "both":
            # where the partner stays in the document, another name keeps the two apart
            taken = [name for name, after in become.items() if after in present]
            become |= _drawn(taken, present | set(become.values()), self.seed, number)
        return become

    def _goes(self, name: str) -> bool:
        """Whether the direction lets this name be swapped."""
        if self.direction == "both":
            return True
        return names().gender(name) == self.direction.partition("-")[0]


def _one_of(place: str, value: str, allowed: tuple[str, ...]) -> None:
    if value not in allowed:
        raise InputError(f"{place}: expected one of {', '.join(allowed)}, got {value!r}")


@cache
def _partners() -> dict[str, str]:
    """The fixed pairs of which both names are looked for in texts."""
    known = known_names()
    every = ((name, names().partner(name)) for name in known)
    return {name: partner for name, partner in every if partner in known and partner}


@cache
def _genders() -> dict[str, str]:
    every = ((name, names().gender(name)) for name in known_names())
    return {name: gender for name, gender in every if gender}


@cache
def _drawable(gender: str) -> tuple[tuple[str, ...], list[int]]:
    """The names of a gender that are nothing else, and their births summed up."""
    known = names()
    every = known.female if gender == "female" else known.male
    clear = known_names() - known.ambiguous
    chosen = tuple(name for name in every if name in clear)
    return chosen, list(accumulate(known.count(name) for name in chosen))


def _uniform(seed: int, number: int) -> Iterator[int]:
    """64-bit numbers for one document by SplitMix64 (Steele, Lea and Flood 2014)."""
    state = _mix((_mix(seed & MASK) + number) & MASK)
    while True:
        state = (state + GOLDEN) & MASK
        yield _mix(state)


def _mix(z: int) -> int:
    z = ((z ^ (z >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    z = ((z ^ (z >> 27)) * 0x94D049BB133111EB) & MASK
    return z ^ (z >> 31)


def _drawn(swapped: list[str], present: frozenset[str], seed: int, number: int) -> dict[str, str]:
    """A name drawn for each name, none that is present and none twice."""
    become: dict[str, str] = {}
    used = set(present)
    numbers = _uniform(seed, number)
    genders = _genders()
    for name in swapped:
        gender = genders.get(name)
        if gender is None:
            continue
        others, sums = _drawable("male" if gender == "female" else "female")
        after = name
        while after == name or after in used:
            after = others[bisect_right(sums, next(numbers) * sums[-1] >> 64)]
        used.add(after)
        become[name] = after
    return become
