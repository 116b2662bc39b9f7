"""Person names replaced by E1, E2 … (D0 §4.2.2), the same word by the same number in a document."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count

from evenhand.text.block import Block
from evenhand.text.edits import Edit
from evenhand.text.entities import Person, finder

__all__ = ["Anonymize"]

TAKEN = re.compile(r"(?<!\w)E(\d+)(?!\w)")


@dataclass(frozen=True, slots=True)
class Anonymize:
    """Every word of a person's name becomes E and a number, counted anew in each document.

    Words are numbered by first appearance and told apart whatever their case; a number that the
    document already uses is not given. Titles, suffixes and the possessive 's stay. `entities` is
    `rules` or `spacy:MODEL`.

    >>> from evenhand.text.edits import apply
    >>> block = Block.of_lines("Barak Obama won. Mr. OBAMA's wife, Michelle Obama, smiled.")
    >>> apply(block.text, Anonymize()(block))
    "E1 E2 won. Mr. E2's wife, E3 E2, smiled."
    """

    entities: str = "rules"

    def __call__(self, block: Block) -> list[Edit]:
        find = finder(self.entities)
        edits: list[Edit] = []
        for index in range(len(block)):
            begin, end = block.span(index)
            document = block.text[begin:end]
            edits.extend(_document_edits(document, begin, find(document)))
        return edits


def _free_numbers(document: str) -> Iterator[int]:
    taken = {int(number) for number in TAKEN.findall(document)}
    return (number for number in count(1) if number not in taken)


def _document_edits(document: str, begin: int, persons: list[Person]) -> Iterator[Edit]:
    numbers: dict[str, int] = {}
    free = _free_numbers(document) if persons else count(1)
    for person in persons:
        for part in person.parts:
            word = document[part.start : part.end]
            key = word.casefold()
            if key not in numbers:
                numbers[key] = next(free)
            yield Edit(begin + part.start, "name", word, f"E{numbers[key]}")
