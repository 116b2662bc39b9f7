"""Which of two words a pronoun stands for: her (him, his), his (her, hers), 's (is, has).

The embedded judge is a log-linear model of the words around the pronoun, trained without labels:
plain text shows by "him" and "his" which of the two "her" would stand in their place.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

from evenhand.errors import UnknownNameError
from evenhand.text.grammar.context import following, next_two, preceding, word_before
from evenhand.text.grammar.model import CLEAR, Model, embedded

__all__ = ["Embedded", "Judge", "contraction", "her_is_possessive", "his_is_determiner", "judge"]


class Judge(Protocol):
    """What rewriting needs to know of the grammar of a pronoun at text[start:end]."""

    def her_is_possessive(self, text: str, start: int, end: int) -> bool:
        """Whether this "her" is his (True) or him."""

    def his_is_determiner(self, text: str, start: int, end: int) -> bool:
        """Whether this "his" is her (True) or hers."""

    def contraction(self, text: str, start: int, end: int) -> Literal["is", "has"]:
        """What the 's behind the pronoun at text[start:end] stands for."""


@dataclass(frozen=True, slots=True)
class Embedded:
    """The embedded judge; it holds nothing, so it can cross to another process."""

    def her_is_possessive(self, text: str, start: int, end: int) -> bool:
        return her_is_possessive(text, start, end)

    def his_is_determiner(self, text: str, start: int, end: int) -> bool:
        return his_is_determiner(text, start, end)

    def contraction(self, text: str, start: int, end: int) -> Literal["is", "has"]:
        return contraction(text, start, end)


def judge(name: str = "embedded") -> Judge:
    """A judge by name: `embedded`, or `spacy:MODEL` for an installed spaCy pipeline.

    >>> judge().her_is_possessive("We saw her car.", 7, 10)
    True
    """
    if name == "embedded":
        return Embedded()
    kind, _, model = name.partition(":")
    if kind == "spacy" and model:
        from evenhand.text.grammar.spacy_judge import SpacyJudge

        return SpacyJudge(model)
    raise UnknownNameError("judge", name, ["embedded", "spacy:MODEL"])


def her_is_possessive(text: str, start: int, end: int) -> bool:
    """Whether "her" at text[start:end] is his (True) or him.

    >>> text = "Her neighbour waved to her."
    >>> her_is_possessive(text, 0, 3), her_is_possessive(text, 23, 26)
    (True, False)
    """
    if text[end : end + 8].lower() == " and her":  # "her and her friends": she and they
        return False
    return _answer(embedded(), "her", "she", text, start, end, yes="his", no="him")


def his_is_determiner(text: str, start: int, end: int) -> bool:
    """Whether "his" at text[start:end] is her (True) or hers.

    >>> text = "His car is a friend of his."
    >>> his_is_determiner(text, 0, 3), his_is_determiner(text, 23, 26)
    (True, False)
    """
    return _answer(embedded(), "his", "he", text, start, end, yes="her", no="hers")


def contraction(text: str, start: int, end: int) -> Literal["is", "has"]:
    """What the 's behind the pronoun at text[start:end] stands for.

    >>> contraction("She's a doctor.", 0, 3), contraction("She's been ill.", 0, 3)
    ('is', 'has')
    """
    yes = _answer(embedded(), "contraction", "", text, start, end + 2)
    return "is" if yes else "has"


def _answer(
    model: Model,
    task: str,
    own: str,
    text: str,
    start: int,
    end: int,
    *,
    yes: str = "",
    no: str = "",
) -> bool:
    """One decision; a partner such as "him or", "his/" beside the pronoun says it outright."""
    asked = model.tasks[task]
    plain = next_two(text, end)
    near = None
    if plain is not None:
        first, second, capital = plain
        settled = asked.settled.get(first)
        if settled is not None:
            return settled
        before = word_before(text, start)
        if before is not None and before not in _JOINS and first not in _JOINS:
            near = model.near(task, (first, second, "", "", capital), (before, "", ""))
            if not -CLEAR < near < CLEAR:
                return near > 0
    right = following(text, start, end)
    settled = asked.settled.get(right[0])
    if settled is not None:
        return settled
    left = preceding(text, start)
    if left[0] in _JOINS and left[1] in (yes, no):
        return left[1] == yes
    if right[0] in _JOINS and right[1] in (yes, no):
        return right[1] == yes
    if near is None:
        near = model.near(task, right, left)
        if not -CLEAR < near < CLEAR:
            return near > 0
    return model.yes(task, near, text, start, right, left, own)


_JOINS = frozenset(("or", "/"))
