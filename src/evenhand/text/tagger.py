"""One tagger for all rules on sentences.

A tag has two parts. The word class, a capital letter, says what a word is; the rules on noun
phrases (`coreference`) read it. The role, a small letter, says what a word does in a clause; the
rules on agreement (`agreement`) read it. `read_word` tags a word by itself; `tag` gives the word
classes of a sentence, in which the words around decide between noun and verb.

======  ====================================  ====  ============================================
class   meaning                               role  meaning
======  ====================================  ====  ============================================
``D``   determiner                            d     determiner or possessive
``N``   numeral                               s     pronoun of the third person singular
``O``   pronoun without gender                p     subject pronoun of another person
``H``   gendered pronoun                      h     he or she, with or without a clitic
``P``   preposition                           i     preposition
``T``   to before an infinitive               t     to
``S``   subordinating conjunction             u     subordinating conjunction
``R``   relative pronoun                      q     relative or question word
``C``   coordinating conjunction              c     coordinating conjunction
``B``   adverb                                a     adverb
``M``   modal verb                            m     modal verb, also did and had
``A``   auxiliary                             v     auxiliary, third person singular
``V``   finite verb                           l     finite verb of a plural subject
``E``   participle in -ed                     e     past tense that is never a participle
``G``   verb in -ing                          y     word in -ed
``W``   noun or adjective                     z     word in -s that may be a verb
``Z``   capitalised word, a name              x     no role of its own
``K``   possessive 's
``X``   punctuation
======  ====================================  ====  ============================================

A comma is a class of its own, and every mark of punctuation is a role of its own.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import NamedTuple

from evenhand.text.vocabulary import ADVERBS_IN_S, GRAMMAR, LISTS, nouns, verb_forms, word_set


class Word(NamedTuple):
    """A token in lower case, its word class (`?` where it may be a verb) and its role."""

    lower: str
    word_class: str
    role: str


def _listed(lists: Mapping[str, str]) -> dict[str, str]:
    return {word: tag for tag, words in lists.items() for word in words.split()}


FUNCTION_WORDS = _listed(GRAMMAR["function_words"])
"""Closed-class words and their tags."""

OPEN_WORDS = _listed(GRAMMAR["open_words"])
"""Words that are nouns, verbs or adjectives as well: their form gives their class."""

SUBJECTS = word_set("he she they i we you who")
PARTICLES = word_set("up down out off over")
NOT_ADVERBS = LISTS["not_adverbs"]
ADJECTIVES = LISTS["adjectives"]
UNCHANGED = word_set("set put cut hit shut spread hurt let split burst quit read")
SUFFIXED = re.compile(r"(?:ed|ing|[^suio]s)$")
MARKS = frozenset(',;:()—–-“”"?!./')
DASHES = frozenset({"-", "–", "--"})
LONGEST = 64
"""Characters of a word that are read; of a longer one the beginning and the end."""


@lru_cache(maxsize=1 << 16)
def read_word(token: str) -> Word:
    """The tag of a token by itself.

    >>> read_word("They")
    Word(lower='they', word_class='O', role='p')
    >>> read_word("barks").role, read_word("She's").role
    ('z', 'h')
    """
    lower = token.lower().replace("’", "'")
    listed = FUNCTION_WORDS.get(lower)
    if listed is not None:
        return Word(lower, listed[0], listed[1])
    if lower.partition("'")[0] in ("he", "she"):
        return Word(lower, "H", "h")
    return Word(lower, _class_by_form(lower), OPEN_WORDS.get(lower) or _role_by_form(lower))


def read_words(tokens: Sequence[str]) -> list[Word]:
    """The tags of tokens, each by itself."""
    if max(map(len, tokens), default=0) > LONGEST:
        half = LONGEST // 2
        tokens = [t if len(t) <= LONGEST else t[:half] + t[-half:] for t in tokens]
    return list(map(read_word, tokens))


def _class_by_form(lower: str) -> str:
    if lower == ",":
        return ","
    if not lower[0].isalnum():
        return "X"
    if lower[0].isdigit():
        return "N"
    if lower.endswith("ly") and len(lower) > 3 and lower not in NOT_ADVERBS:
        return "B"
    return "?" if lower in verb_forms() or (len(lower) > 4 and SUFFIXED.search(lower)) else "W"


def _role_by_form(lower: str) -> str:
    if not lower[0].isalpha():
        return lower[:2] if lower[0] in MARKS else "x"
    if lower[-1] == "s" and len(lower) > 2 and "'" not in lower:
        return "x" if lower in ADVERBS_IN_S or lower.endswith(("ss", "ous")) else "z"
    if lower.endswith("ly"):
        return "a"
    return "y" if lower.endswith("ed") else "x"


def tag(tokens: Sequence[str]) -> list[str]:
    """The word class of each token of a sentence.

    >>> "".join(tag("The dancer waves and shakes her hips .".split()))
    'DWVCVHWX'
    """
    words = read_words(tokens)
    lower = [word.lower for word in words]
    tags = [
        "Z" if k and token[0].isupper() and word.lower not in FUNCTION_WORDS else word.word_class
        for k, (token, word) in enumerate(zip(tokens, words, strict=True))
    ]
    for k, low in enumerate(lower):
        if low == "'s":
            tags[k] = _clitic(tags, k)
        elif (
            low == "that"
            and k + 1 < len(tags)
            and ((k == 0 or tags[k - 1] in "PC") and tags[k + 1] not in "DHO")
        ):
            tags[k] = "D"
        elif tags[k] in "?V":
            tags[k] = _verb(tokens, lower, tags, k)
    for k, low in enumerate(lower):
        if low in ("before", "after", "since", "until", "as") and not _has_verb(tags, k + 1):
            tags[k] = "P"
    return tags


def _clitic(tags: list[str], k: int) -> str:
    """Whether 's is a genitive: after a noun, unless a word that only follows "is" comes next."""
    before = tags[k - 1] if k else "X"
    after = tags[k + 1] if k + 1 < len(tags) else "X"
    return "A" if before in "HORS" or after in "DTH" else "K"


def _verb(tokens: Sequence[str], lower: list[str], tags: list[str], k: int) -> str:
    """The tag of what may be a verb, by its form and by the words before and after it."""
    before = tags[k - 1] if k else "^"
    after = tags[k + 1] if k + 1 < len(tags) else "X"
    previous = lower[k - 1] if k else ""
    following = lower[k + 1] if k + 1 < len(lower) else ""
    form = form_of_verb(lower[k])
    if before == "X" and tokens[k - 1] in DASHES:
        return "W"
    possessive = before == "H" and previous in ("his", "her")
    helped = before in "MAT" or (before == "B" and k > 1 and tags[k - 2] in "MAT")
    if form == "ing":
        return "W" if before in "DK" or (possessive and after in "W?AM") else "G"
    if before in "DK":
        return "W" if form != "past" or after in "W?Z" else "E"
    if form == "past":
        if lower[k] in UNCHANGED and before == "W" and after in "X,PC":
            return "V" if nouns().is_person(previous) else "W"
        adjective = before == "W" and after in "W?" and lower[k] not in verb_forms()
        return "E" if helped or before in "PN^" or possessive or adjective else "V"
    if previous in SUBJECTS:
        return "V"
    if form == "base":
        return _base(lower[k], previous, before, after, helped=helped)
    if possessive or before in "^N" or (before == "P" and previous not in PARTICLES):
        return "W"
    subject = nouns().is_person(previous) or before in "ZR"
    if after in "AM" or (previous in ADJECTIVES and after not in "DHP"):
        return "W"
    if not subject and after == "?" and form_of_verb(following) in ("s", "past"):
        return "W"
    if lower[k] not in verb_forms():
        return "V" if subject or (before == "W" and after in "DH") else "W"
    return "W" if before == "G" and after in "X,PC" else "V"


def form_of_verb(low: str) -> str:
    """The form of a verb that a word would be."""
    by_ending = "ing" if low.endswith("ing") else "past" if low.endswith("ed") else "s"
    return verb_forms().get(low, by_ending)


def _base(low: str, previous: str, before: str, after: str, *, helped: bool) -> str:
    """Whether a base form is a verb: after an auxiliary or a plural, or before an object."""
    if helped:
        return "V"
    known = nouns()
    if known.is_person(low):
        return "W"
    if known.singular(previous) is not None and after in "DHPOBC":
        return "V"
    if before == "W" and known.is_person(previous):
        return "V" if after in "DH" else "W"
    return "V" if before == "C" and after in "DH" else "W"


def _has_verb(tags: list[str], begin: int) -> bool:
    """Whether a clause with a subject and a finite verb begins here."""
    for k in range(begin, len(tags)):
        if tags[k] in "VAM":
            return k > begin
        if tags[k] in ",XSR" or tags[k] == "G":
            return False
    return False
