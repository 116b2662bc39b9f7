"""Gendered nouns that are part of a name: "Spider-Man", "The Beach Boys", "Old Man River"."""

from __future__ import annotations

import re

__all__ = ["inside_name"]

GUARDED = frozenset({"animal", "body", "family", "fiction", "person"})
BEFORE_CAPITALS = frozenset({"animal", "body", "fiction", "person"})
PREVIOUS = re.compile(r"(?:([A-Za-z'’.]+)[ -])?([A-Za-z'’]+)[ -]$")
NEXT = re.compile(r"(?:['’]s?)?[ -][A-Z]")
BRIDGES = frozenset({"A", "a", "and", "for", "My", "of", "Our", "The", "the", "to"})
NOT_NAMES = frozenset({"A", "An", "I", "My", "Our", "The"})
SPORTS = frozenset({"Ladies", "Men", "Women"})
ENDS = frozenset(".!?:;")
LOOK_BACK = 40


def inside_name(text: str, start: int, end: int, kind: str) -> bool:
    """Whether the capitalised noun at text[start:end] stands beside a capital and so in a name.

    Titles, roles and nationalities stand beside names without being part of them; "Women's" is in
    the names of events that have a dual.

    >>> text = "He saw Spider-Man. Man is mortal. The Women's Cup."
    >>> [inside_name(text, s, e, "person") for s, e in ((14, 17), (19, 22), (38, 43))]
    [True, False, False]
    """
    word = text[start:end]
    if kind not in GUARDED or word.isupper():
        return False
    if word in SPORTS and text[end : end + 1] in ("'", "’"):
        return False
    near = PREVIOUS.search(text, max(0, start - LOOK_BACK), start)
    if near is not None:
        before, previous = near.groups()
        joined = text[start - 1] == "-" or not _opens(text, near.start(2))
        if previous[0].isupper() and previous not in NOT_NAMES and joined:
            return True
        if (
            previous in BRIDGES
            and before
            and before[0].isupper()
            and before not in NOT_NAMES
            and not _opens(text, near.start(1))
        ):
            return True
    nationality = word.endswith(("man", "men", "woman", "women")) and len(word) > 5
    return kind in BEFORE_CAPITALS and not nationality and NEXT.match(text, end) is not None


def _opens(text: str, position: int) -> bool:
    """Whether a sentence begins at the position, where a capital says nothing."""
    before = text[max(0, position - 8) : position].rstrip(" \"“'‘(-—–*")
    return not before or before[-1] in ENDS or before[-1] == "\n"
