"""Grammar of pronouns and their verbs, decided from the words around them."""

from __future__ import annotations

from evenhand.text.grammar.pronouns import (
    Judge,
    contraction,
    her_is_possessive,
    his_is_determiner,
    judge,
)

__all__ = ["Judge", "contraction", "her_is_possessive", "his_is_determiner", "judge"]
