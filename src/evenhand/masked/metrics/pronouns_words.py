"""Which words tell a gender at the mask, and which tokens of a model they are in a context."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from types import MappingProxyType
from typing import Literal
from weakref import WeakKeyDictionary

from evenhand.errors import InputError, UnknownNameError
from evenhand.lexicon import pairs
from evenhand.lexicon.gendered import PERSONS
from evenhand.lexicon.pronouns import PRONOUNS, SLOTS
from evenhand.masked.model import MaskedLM
from evenhand.masked.words import single_pieces

__all__ = ["PRONOUNS", "SLOTS", "Words", "check_pieces", "gendered", "lacking", "pieces"]

Words = Literal["all", "pronouns"]
"""Which words count: pronouns and gendered nouns, or pronouns alone."""

USUAL = ("[MASK] a", "a [MASK] a", "a [MASK].")
"""Where a mask mostly stands: at the beginning, in the middle, at the end."""


@cache
def gendered() -> Mapping[str, str]:
    """The words that count as male or female at the mask, in lower case, each with its gender.

    The pronouns, and the nouns of one word in `lexicon.pairs` that state a person's gender, on
    the sides that do: an `actress` is female, an `actor` may be either.

    >>> gendered()["her"], gendered()["uncle"], "actor" in gendered()
    ('female', 'male', False)
    """
    return MappingProxyType(dict(PRONOUNS) | {word: gender for word, gender, _ in _nouns()})


@dataclass(frozen=True, slots=True, eq=False)
class Pieces:
    """The tokens that are gender words in one context: token id -> word, for each gender."""

    male: Mapping[int, str]
    female: Mapping[int, str]

    @property
    def ids(self) -> frozenset[int]:
        return frozenset(self.male) | frozenset(self.female)

    @property
    def words(self) -> frozenset[str]:
        return frozenset(self.male.values()) | frozenset(self.female.values())


def pieces(model: MaskedLM, text: str, words: Words = "all") -> Pieces:
    """The tokens that are one of the gender words, whole, at the mask of the text.

    A noun that with a capital is as often a name (king, baron) counts in lower case only.
    Contexts with the same tokens share one object.
    """
    single = tuple(single_pieces(model, text, _listed(words)).items())
    known = _known.setdefault(model, {})
    if single not in known:
        male: dict[int, str] = {}
        female: dict[int, str] = {}
        for token, word in single:
            if word not in _names() or not _capital(model, token):
                (male if gendered()[word] == "male" else female)[token] = word
        known[single] = Pieces(male, female)
    return known[single]


_known: WeakKeyDictionary[MaskedLM, dict[tuple[tuple[int, str], ...], Pieces]] = WeakKeyDictionary()


def lacking(found: Pieces) -> list[str]:
    """The pronouns that are no single piece though their counterpart is one.

    >>> lacking(Pieces({5: "he", 6: "his"}, {7: "her"}))
    ['she', 'him']
    """
    some = found.words
    lacks = [
        (male, female)[side]
        for male, female in SLOTS.values()
        for side in (0, 1)
        if (male, female)[side] not in some and (male, female)[1 - side] in some
    ]
    return list(dict.fromkeys(lacks))


def unfit(found: Pieces) -> bool:
    """Whether no fair score is possible: of he/she, or of his, him/her, one side has no piece."""
    some = found.words
    subject = ("he" in some, "she" in some)
    other = ("his" in some or "him" in some, "her" in some)
    return not any(subject + other) or subject[0] != subject[1] or other[0] != other[1]


def check_pieces(model: MaskedLM, words: Words = "all") -> tuple[str, ...]:
    """Refuse a model that lacks the pronouns as single pieces; name those it lacks besides."""
    if words not in ("all", "pronouns"):
        raise UnknownNameError("words", words, ["all", "pronouns"])
    found = pieces(model, USUAL[1], words)
    if unfit(found):
        there = [word for word in PRONOUNS if word in found.words]
        raise InputError(
            f"model '{model.name}': expected he and she, his or him and her as single pieces of "
            f"its vocabulary, got {', '.join(there) or 'none of them'}: a word of several pieces "
            "cannot be predicted at one mask"
        )
    return tuple(lacking(found))


def usual_ids(model: MaskedLM, words: Words) -> frozenset[int]:
    """The tokens of the gender words wherever a mask mostly stands."""
    return frozenset().union(*(pieces(model, text, words).ids for text in USUAL))


@cache
def _listed(words: Words) -> tuple[str, ...]:
    return tuple(gendered() if words == "all" else PRONOUNS)


@cache
def _nouns() -> tuple[tuple[str, str, str], ...]:
    """The gendered nouns of one word: the word, its gender, and how it must be written."""
    found = []
    for pair in pairs():
        if pair.pos != "noun" or not pair.safe or pair.kind not in PERSONS:
            continue
        if pair.direction != "male-to-female":
            found.append((pair.female, "female", pair.case))
        if pair.direction != "female-to-male":
            found.append((pair.male, "male", pair.case))
    return tuple(entry for entry in found if entry[0].isalpha())


@cache
def _names() -> frozenset[str]:
    return frozenset(word for word, _, case in _nouns() if case == "lower") - frozenset(PRONOUNS)


def _capital(model: MaskedLM, token: int) -> bool:
    shown: str | Iterable[str] = model.tokenizer.convert_ids_to_tokens(token)
    return any(letter.isupper() for letter in shown)
