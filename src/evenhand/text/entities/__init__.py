"""Persons named in a document, found without a download or by a spaCy pipeline."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from evenhand.errors import UnknownNameError

__all__ = ["Finder", "Part", "Person", "finder", "people"]


@dataclass(frozen=True, slots=True)
class Part:
    """One word of a name; `kind` is given, initial, particle or surname."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Person:
    """One mention of a person: the words of the name, without title, suffix and possessive 's."""

    parts: tuple[Part, ...]

    @property
    def start(self) -> int:
        """Where the name begins in the document."""
        return self.parts[0].start

    @property
    def end(self) -> int:
        """Where the name ends in the document."""
        return self.parts[-1].end


Finder = Callable[[str], list[Person]]
"""From a document to the mentions of persons in it, in order."""


def people(text: str) -> list[Person]:
    """The persons named in one document, by lexicon, capitals and the words around them.

    >>> text = "Barack Obama met Queen Elizabeth II in London. Obama's wife was with Mr. O'Brien."
    >>> [text[p.start : p.end] for p in people(text)]
    ['Barack Obama', 'Elizabeth', 'Obama', "O'Brien"]
    """
    from evenhand.text.entities.document import find

    return find(text)


@cache
def finder(name: str) -> Finder:
    """The finder of that name: `rules`, or `spacy:MODEL` for an installed spaCy pipeline.

    A pipeline is loaded once in a process.
    """
    if name == "rules":
        return people
    if name.startswith("spacy:"):
        from evenhand.text.entities.spacy_finder import SpacyPeople

        return SpacyPeople(name.removeprefix("spacy:"))
    raise UnknownNameError("finder of names", name, ["rules", "spacy:MODEL"])
