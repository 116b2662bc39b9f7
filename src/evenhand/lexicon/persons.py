"""Words by which the name of a person is told from other capitalised words."""

from __future__ import annotations

from dataclasses import dataclass, fields
from functools import cache

from evenhand.lexicon.reading import data, read_toml

__all__ = ["PersonWords", "counted_words", "persons"]


@dataclass(frozen=True, slots=True, kw_only=True)
class PersonWords:
    """The lists of `data/persons.toml`, each a set of lower-case words."""

    titles: frozenset[str]
    ranks: frozenset[str]
    dotted: frozenset[str]
    given_titles: frozenset[str]
    particles: frozenset[str]
    suffixes: frozenset[str]
    surnames: frozenset[str]
    heads: frozenset[str]
    place_prefixes: frozenset[str]
    thing_nouns: frozenset[str]
    never_names: frozenset[str]
    place_words: frozenset[str]
    person_verbs: frozenset[str]
    plain_verbs: frozenset[str]
    speech_verbs: frozenset[str]
    person_nouns: frozenset[str]
    kin: frozenset[str]
    greetings: frozenset[str]
    abbreviations: frozenset[str]
    proper: frozenset[str]


@cache
def persons() -> PersonWords:
    """The embedded lists.

    >>> "mrs" in persons().titles, "queen" in persons().given_titles
    (True, True)
    """
    lists = [field.name for field in fields(PersonWords)]
    table = read_toml(data("persons.toml")).table(["name", "provenance", *lists])
    return PersonWords(**{key: frozenset(table[key].text().split()) for key in lists})


@cache
def counted_words(kind: str) -> frozenset[str]:
    """One of the lists that `tools/name_words.py` counts: common_words, surnames, proper_words.

    >>> "however" in counted_words("common_words"), "johnson" in counted_words("surnames")
    (True, True)
    """
    return frozenset(data(f"{kind}.txt").read_text(encoding="utf-8").split())
