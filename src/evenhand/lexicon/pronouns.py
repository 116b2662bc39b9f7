"""The gendered pronouns of English: their gender and their form in each slot of a sentence."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

SLOTS: Mapping[str, tuple[str, str]] = MappingProxyType(
    {
        "subject": ("he", "she"),
        "object": ("him", "her"),
        "possessive": ("his", "her"),
        "reflexive": ("himself", "herself"),
    }
)
"""The slots a pronoun can fill in a sentence, with its male and its female form there."""

PRONOUNS: Mapping[str, str] = MappingProxyType(
    {male: "male" for male, _ in SLOTS.values()}
    | {female: "female" for _, female in SLOTS.values()}
    | {"hers": "female"}
)
"""The gendered pronouns, each with its gender."""

MALE = frozenset(word for word, gender in PRONOUNS.items() if gender == "male")
FEMALE = frozenset(word for word, gender in PRONOUNS.items() if gender == "female")
