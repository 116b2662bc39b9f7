"""Labelled places without a labeller: pronouns whose two readings are written differently.

Where text has him, them, me or us, "her" would be an object; where it has his, their, my or our,
a possessive. Mine, yours … and my, your … part the readings of "his"; they're, I'm, she is … and
they've, I've, she has done … those of "'s".
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass

from evenhand.text.grammar import PronounContext, following, preceding, subject
from grammar_training.verbs import ADVERBS, MINES, PARTICIPLES


@dataclass(frozen=True, slots=True)
class Example:
    """A place, its label, the pronoun it came from, and whether its document talks."""

    around: PronounContext
    yes: bool
    source: str
    talk: bool


OBJECTS = {"him": "he", "them": "they", "me": "i", "us": "we"}
POSSESSIVES = {"his": "he", "their": "they", "my": "i", "our": "we"}
DETERMINERS = {"my": "i", "our": "we", "your": "you", "their": "they"}
PRONOUNS = {"mine": "i", "ours": "we", "yours": "you", "theirs": "they", "hers": "she"}

_HER = re.compile(rf"\b(?:{'|'.join([*OBJECTS, *POSSESSIVES])})\b", re.IGNORECASE)
_HIS = re.compile(rf"\b(?:{'|'.join([*DETERMINERS, *PRONOUNS])})\b", re.IGNORECASE)
_BE_OR_HAVE = re.compile(
    r"\b(?:(?:they|you|we)(?:'re|'ve| are| have)|i(?:'m|'ve| am| have)|(?:he|she|it) (?:is|has))\b",
    re.IGNORECASE,
)
_TALK = re.compile(r"\b(?:I|you|me|my)\b")
_NO_NOUN = frozenset(["", *'.!?,;:)"…'])


def of_her(document: str) -> Iterable[Example]:
    """Possessive (yes) or object, from him/his and their like."""
    talk = talks(document)
    for match in _HER.finditer(document):
        source = match[0].lower()
        yes = source in POSSESSIVES
        right = following(document, *match.span())
        if match[0] == "US" or (source == "his" and right[0] in _NO_NOUN):
            continue  # the country; "a friend of his"
        left = preceding(document, match.start())
        who = subject(document, match.start(), (POSSESSIVES if yes else OBJECTS)[source])
        yield Example(PronounContext(right, left, who), yes, source, talk)


def of_his(document: str) -> Iterable[Example]:
    """Determiner (yes) or a phrase by itself, from my/mine and their like."""
    talk = talks(document)
    for match in _HIS.finditer(document):
        source = match[0].lower()
        yes = source in DETERMINERS
        left = preceding(document, match.start())
        right = following(document, *match.span())
        if source == "mine" and (left[0] in MINES or not talk):
            continue
        if source == "yours" and left[0] in ("", "."):
            continue  # "Yours truly"
        who = subject(document, match.start(), (DETERMINERS if yes else PRONOUNS)[source])
        yield Example(PronounContext(right, left, who), yes, source, talk)


def of_contraction(document: str) -> Iterable[Example]:
    """Is (yes) or has, from forms that show it; only a "have" that can be contracted counts."""
    talk = talks(document)
    for match in _BE_OR_HAVE.finditer(document):
        source = match[0].lower()
        yes = source.endswith(("re", "m", "is"))
        right = following(document, *match.span())
        if not yes and not any(map(_participle, _heads(right[:4]))):
            continue
        if right[0] in _NO_NOUN:
            continue  # a contraction never ends its clause
        left = preceding(document, match.start())
        who = subject(document, match.start(), "")
        yield Example(PronounContext(right, left, who), yes, source, talk)


def _heads(tokens: Iterable[str]) -> Iterable[str]:
    """The first token that is no adverb."""
    for token in tokens:
        if token not in ADVERBS and not token.endswith("ly"):
            yield token
            return


def _participle(token: str) -> bool:
    return token in PARTICIPLES or (token.endswith("ed") and len(token) > 3)


def talks(document: str) -> bool:
    """Whether a document speaks in the first and second person: novels and interviews do.

    >>> talks("I told you so."), talks("The river flows north.")
    (True, False)
    """
    return len(_TALK.findall(document)) * 1100 > len(document)
