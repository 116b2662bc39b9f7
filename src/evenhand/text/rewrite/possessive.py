"""The possessive of a word in s, an apostrophe alone, where another word takes its place."""

from __future__ import annotations

import re

__all__ = ["full_possessive"]

BARE = re.compile(r"['’](?= \w)")
QUOTE = re.compile(r"(?:^|[\s(\[—–-])['‘](?=\w)")
LOOK_BACK = 300


def full_possessive(text: str, end: int, before: str, after: str) -> tuple[str, str]:
    """What is written and what takes its place, the bare apostrophe behind the word filled up.

    "James' hat" becomes "Mary's hat", not "Mary' hat". An apostrophe that may close a quotation is
    left alone.

    >>> full_possessive("James' hat", 5, "James", "Mary")
    ("James'", "Mary's")
    >>> full_possessive("James' hat", 5, "James", "Frances")
    ('James', 'Frances')
    >>> full_possessive("'I saw James' he said", 12, "James", "Mary")
    ('James', 'Mary')
    """
    if before[-1:] not in "sS" or after[-1:] in "sS":
        return before, after
    mark = BARE.match(text, end)
    near = max(0, end - LOOK_BACK)
    if mark is None or QUOTE.search(text, max(near, text.rfind("\n", near, end)), end):
        return before, after
    added = "S" if len(after) > 1 and after.isupper() else "s"
    return before + mark.group(), f"{after}{mark.group()}{added}"
