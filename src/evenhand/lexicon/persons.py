"""Words that distinguish names of persons from other capitalised words."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import BeforeValidator

from evenhand.lexicon.schema import STRICT, Text, Word, data, read_toml

__all__ = ["PersonWords", "counted_words", "persons"]

WordSet = Annotated[frozenset[str], BeforeValidator(lambda text: text.split())]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonWords:
    """The lists of `data/persons.toml`: sets of lower-case words."""

    __pydantic_config__ = STRICT
    name: Word
    provenance: Text
    titles: WordSet
    ranks: WordSet
    dotted: WordSet
    given_titles: WordSet
    particles: WordSet
    suffixes: WordSet
    surnames: WordSet
    heads: WordSet
    place_prefixes: WordSet
    thing_nouns: WordSet
    never_names: WordSet
    place_words: WordSet
    person_verbs: WordSet
    plain_verbs: WordSet
    speech_verbs: WordSet
    person_nouns: WordSet
    kin: WordSet
    greetings: WordSet
    abbreviations: WordSet
    proper: WordSet


@cache
def persons() -> PersonWords:
    """Return the built-in lists.

    >>> "mrs" in persons().titles, "queen" in persons().given_titles
    (True, True)
    """
    return read_toml(data("persons.toml"), PersonWords)


@cache
def counted_words(kind: str) -> frozenset[str]:
    """Return a list counted by `tools/name_words.py`: common_words, surnames or proper_words.

    >>> "however" in counted_words("common_words"), "johnson" in counted_words("surnames")
    (True, True)
    """
    return frozenset(data(f"{kind}.txt").read_text(encoding="utf-8").split())
