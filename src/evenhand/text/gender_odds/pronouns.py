"""The gender a text speaks of, told by the majority of its gendered pronouns."""

from __future__ import annotations

import re
from typing import Literal

__all__ = ["PronounGender", "pronoun_gender"]

PronounGender = Literal["female", "male", "tie", "none"]

_PRONOUN = re.compile(r"\b(?:s?he|hers?|him|his|h(?:er|im)self)\b")
_FEMALE = frozenset({"she", "her", "hers", "herself"})


def pronoun_gender(text: str) -> PronounGender:
    """The gender of most of the text's pronouns (she her hers herself, he him his himself).

    `tie` where there are as many of each, `none` where there are none at all.

    >>> pronoun_gender("She's a surgeon; her father taught her all he knew.")
    'female'
    >>> pronoun_gender("He met her."), pronoun_gender("They met.")
    ('tie', 'none')
    """
    found = _PRONOUN.findall(text.lower())
    female = sum(word in _FEMALE for word in found)
    if 2 * female == len(found):
        return "tie" if found else "none"
    return "female" if 2 * female > len(found) else "male"
