"""Capitalised words in a text: runs of them, and what each word may be."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from itertools import groupby
from typing import NamedTuple

from evenhand.lexicon.names import names
from evenhand.lexicon.persons import counted_words, persons

__all__ = [
    "COMMON",
    "GIVEN",
    "HEAD",
    "INITIAL",
    "PARTICLE",
    "PREFIX",
    "PROPER",
    "RANK",
    "SUFFIX",
    "SURNAME",
    "TITLE",
    "Token",
    "kinds",
    "runs",
    "table",
]

GIVEN = 1  # a first name of the lexicon
SURNAME = 2
COMMON = 4  # an ordinary word, usually in lower case
PROPER = 8  # a place, a people, a month, a maker
HEAD = 16  # University, Street, Bank …
TITLE = 32  # Mr., Dr. …
RANK = 64  # President, Queen …
SUFFIX = 128  # Jr., III
PREFIX = 256  # St., Lake …
INITIAL = 512
PARTICLE = 1024

NAMES = GIVEN | SURNAME | INITIAL | TITLE
"""One of these, or a word of which nothing is known, must be in a run that names a person."""

RARE = 12_000
"""Births below which a name that is also an ordinary word or a place is not taken for a name."""

UPPER = "".join(c for c in map(chr, range(0x530)) if c.isupper())
DERIVED = re.compile(
    r"(?i)(?:ness|tions?|sions?|ity|ities|ments?|ings?|isms?|ly|ists?|ances?|ences?|ical|ous|ful|less"
    r"|able|ible|ology|graphy|ship|wards?|ally)$"
)
"""Endings of ordinary words."""
APOSTROPHES = "'’"
INSIDE = frozenset("_@#/\\&$+-")
"""A capital directly behind one of these begins no word."""


@cache
def pattern() -> re.Pattern[str]:
    """What finds runs of capitalised words.

    It begins with a set of letters, which the engine searches much faster than anything else.
    """
    particles = "|".join(sorted(persons().particles, key=len, reverse=True))
    dotted = sorted((word.capitalize() for word in persons().dotted), key=len)
    same_length = ("|".join(words) for _, words in groupby(dotted, key=len))
    stops = "|".join(rf"(?<=\b(?:{words})\.)" for words in same_length)
    plain = rf"\w*(?:[{APOSTROPHES}](?!(?:s|S|ll|d|re|ve|m|t)\b)\w+|-\w+)*(?:\.(?:{stops}))?"
    token = rf"[{UPPER}](?:\.(?:-?[{UPPER}]\.)*(?!\w)|{plain})"
    return re.compile(rf"{token}(?:[ \u00a0](?:(?:{particles})[ \u00a0])*(?:al-|el-)?{token})*")


class Token(NamedTuple):
    """A word of a run, where it stands in the document and what it may be (see `kinds`)."""

    word: str
    start: int
    end: int
    kind: int


@cache
def table() -> dict[str, int]:
    """What each known lower-case word may be, as a sum of flags."""
    lists, known = persons(), names()
    found: dict[str, int] = {}
    for flag, group in (
        (SURNAME, counted_words("surnames")),
        (SURNAME, lists.surnames),
        (COMMON, counted_words("common_words")),
        (COMMON, lists.greetings),
        (PROPER, counted_words("proper_words")),
        (PROPER, lists.proper),
        (HEAD, lists.heads),
        (TITLE, lists.titles),
        (RANK, lists.ranks),
        (SUFFIX, lists.suffixes),
        (PREFIX, lists.place_prefixes),
        (INITIAL | PROPER, lists.abbreviations),
    ):
        for word in group:
            found[word] = found.get(word, 0) | flag
    for name in known.table:
        word = name.lower()
        if known.count(name) >= RARE or not found.get(word, 0) & (COMMON | PROPER):
            found[word] = found.get(word, 0) | GIVEN
    for word in lists.never_names:
        found[word] = found.get(word, COMMON) & ~GIVEN
    return found


@lru_cache(maxsize=65536)
def kinds(word: str) -> int:
    """What a capitalised word may be, 0 where nothing is known of it.

    >>> kinds("Elizabeth") == GIVEN, bool(kinds("Will") & COMMON), kinds("O'Brien") == SURNAME
    (True, True, True)
    """
    known = table().get(word.lower().rstrip("."))
    if known is not None:
        return known
    return _guess(word)


def _guess(word: str) -> int:
    if word.endswith("."):
        return table().get(word.lower(), INITIAL)
    if any(character.isdigit() or character == "_" for character in word):
        return PROPER
    if "-" in word:
        return _hyphenated(word)
    if word[:2] in ("O'", "O’", "D'", "D’", "Mc") or word.startswith("Fitz"):
        return SURNAME
    if len(word) == 1:
        return INITIAL
    if word.isupper() and len(word) < 6:
        return PROPER
    return COMMON if DERIVED.search(word) else 0


def _hyphenated(word: str) -> int:
    parts = [part for part in word.split("-") if part]
    # "Jong-un" and "Yun-fat" are names, "London-based" is not
    if parts[1:] and parts[-1].islower() and len(parts[-1]) < 5:
        parts.pop()
    flags = [kinds(part) for part in parts]
    if not flags or any(f & (PROPER | COMMON) and not f & (GIVEN | SURNAME) for f in flags):
        return PROPER
    if all(f & GIVEN for f in flags):
        return GIVEN
    return SURNAME if any(f & SURNAME for f in flags) else 0


def runs(text: str, also: frozenset[str] = frozenset()) -> list[list[Token]]:
    """The runs of capitalised words of a document that may name a person, with their particles.

    Words standing alone that are known to be no names are left out, but for those in `also`.

    >>> found = runs("Yesterday Dr. Ana de la Cruz saw J. K. Rowling's agent.")
    >>> [[token.word for token in run] for run in found]
    [['Yesterday', 'Dr.', 'Ana', 'de', 'la', 'Cruz'], ['J.', 'K.', 'Rowling']]
    """
    found: list[list[Token]] = []
    for match in pattern().finditer(text):
        base, written = match.start(), match.group()
        if " " not in written and "\u00a0" not in written:
            kind = kinds(written)
            if also and written.lower() in also:
                kind |= SURNAME
            if (not kind or kind & (GIVEN | SURNAME)) and _begins_word(text, base):
                found.append([_with_article(text, Token(written, base, match.end(), kind))])
            continue
        tokens: list[Token] = []
        hopeful = False
        position = base
        for word in written.replace("\u00a0", " ").split(" "):
            kind = PARTICLE if word.islower() else kinds(word)
            if not kind or kind & NAMES:
                hopeful = True
            end = position + len(word)
            tokens.append(Token(word, position, end, kind))
            position = end + 1
        if hopeful:
            if not _begins_word(text, base):
                del tokens[0]
            else:
                tokens[0] = _with_article(text, tokens[0])
            found.append(tokens)
    return found


def _begins_word(text: str, start: int) -> bool:
    """Whether a word begins there, and not the rest of one ("iPhone", "#Mary", "anti-American")."""
    if not start:
        return True
    before = text[start - 1]
    if before == "-":  # a dash, or the hyphen of al-Assad
        return text[max(0, start - 2) : start - 1] in ("", " ", "-", "l")
    return not (before.isalnum() or before in INSIDE)


def _with_article(text: str, token: Token) -> Token:
    """The word with the Arabic article that stands before it in lower case: al-Assad."""
    begin = token.start - 3
    if begin >= 0 and text[begin : token.start] in ("al-", "el-"):
        return Token(text[begin : token.end], begin, token.end, token.kind)
    return token
