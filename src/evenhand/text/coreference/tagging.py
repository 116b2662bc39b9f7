"""The words of a sentence with a guess at the part of speech of each.

The tags: D determiner, N numeral, P preposition, S subordinator, R relative, C coordinator, M
modal, A auxiliary, T infinitive `to`, O pronoun without gender, H gendered pronoun, B adverb, V
finite verb, E participle in -ed, G verb in -ing, W noun or adjective, Z capitalised word (a name),
K possessive 's, X punctuation, and a comma for itself.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

from evenhand.text.coreference.vocabulary import (
    FUNCTION_WORDS,
    PRONOUNS,
    nouns,
    verb_forms,
    word_set,
)

__all__ = ["tag", "tokenize"]

TOKEN = re.compile(
    r"[^\W_]+(?=n['’]t\b)|n['’]t\b|['’](?:s|re|ve|ll|d|m)\b|[^\W_]+(?:[-‐][^\W_]+)*\.?(?:[^\W_]\.)*"
    r"|[^\w\s]|_"
)
ABBREVIATIONS = word_set("mr mrs ms mx dr st prof rev sgt lt capt col gen jr sr")
SUBJECTS = word_set("he she they i we you who")
PARTICLES = word_set("up down out off over")
ADVERB = re.compile(r".{2,}ly$")
NOT_ADVERBS = word_set(
    "elderly friendly lonely lovely only early daily ugly silly family belly ally bully jelly fly "
    "reply supply apply rely ply lily rally"
)
ADJECTIVES = word_set(
    "small big large little long short tall high low young old new right left own good bad great "
    "white black red blue green brown gray grey dark bright pale thin thick fat wide narrow deep "
    "empty full open bare wet dry hot cold warm cool soft hard heavy light fast slow strong weak "
    "rich poor poor happy sad angry tired sick dead free clean dirty fresh sweet sharp smooth "
    "rough loud quiet early late first second last next other same different several many few "
    "military political personal private public national local main final whole entire"
)
UNCHANGED = word_set("set put cut hit shut spread hurt let split burst quit read")
SUFFIXED = re.compile(r"(?:ed|ing|[^suio]s)$")


def tokenize(sentence: str) -> tuple[list[str], list[int]]:
    """The tokens of a sentence and where each begins.

    >>> tokenize("The guard's dog isn't his.")[0]
    ['The', 'guard', "'s", 'dog', 'is', "n't", 'his', '.']
    """
    words: list[str] = []
    starts: list[int] = []
    for found in TOKEN.finditer(sentence):
        word = found.group()
        words.append(word)
        starts.append(found.start())
        if (
            len(word) > 1
            and word.endswith(".")
            and not (word.count(".") > 1 or word[:-1].lower() in ABBREVIATIONS or len(word) == 2)
        ):
            words[-1] = word[:-1]
            words.append(".")
            starts.append(found.end() - 1)
    if words and len(words[-1]) == 2 and words[-1].endswith(".") and words[-1][0].islower():
        words[-1:] = [words[-1][0], "."]
        starts.append(starts[-1] + 1)
    return words, starts


def tag(tokens: Sequence[str]) -> list[str]:
    """A tag for each token.

    >>> "".join(tag("The dancer waves and shakes her hips .".split()))
    'DWVCVHWX'
    """
    lower = [word.lower().replace("’", "'") for word in tokens]
    tags = [_first(word, low, k) for k, (word, low) in enumerate(zip(tokens, lower, strict=True))]
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


def _first(word: str, low: str, place: int) -> str:
    """The tag of a word by itself; `?` where it may be a verb."""
    if low in PRONOUNS:
        return "H"
    if low in FUNCTION_WORDS:
        return FUNCTION_WORDS[low]
    if word == ",":
        return ","
    if not word[0].isalnum():
        return "X"
    if word[0].isdigit():
        return "N"
    if word[0].isupper() and place:
        return "Z"
    if ADVERB.search(low) and low not in NOT_ADVERBS:
        return "B"
    if low in verb_forms() or (len(low) > 4 and SUFFIXED.search(low)):
        return "?"
    return "W"


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
    form = _form(lower[k])
    if before == "X" and tokens[k - 1] in "-–":
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
    if not subject and after == "?" and _form(following) in ("s", "past"):
        return "W"
    if lower[k] not in verb_forms():
        return "V" if subject or (before == "W" and after in "DH") else "W"
    return "W" if before == "G" and after in "X,PC" else "V"


def _form(low: str) -> str:
    """What form of a verb a word would be."""
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
