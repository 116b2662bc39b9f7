"""Writing one biography: sentences of an order, their slots filled by draws, for either gender.

A text is drawn once, with its gendered slots open, and then read for a woman and for a man: the two
are each other's exact counterfactual.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator, Sequence
from typing import TypeVar

from evenhand.simulate.biographies.grammar import Grammar, Occupation, Pieces

__all__ = ["DRAWS", "write"]

T = TypeVar("T")

DRAWS = 160
"""Uniform numbers that one biography may use up."""

SENTENCES = (3, 6)
WORDS = (40, 100)
NOW = 2021
YEARS = (
    "three", "four", "five", "six", "seven", "eight", "nine", "ten", "eleven", "twelve", "thirteen",
    "fourteen", "fifteen", "sixteen", "seventeen", "eighteen", "nineteen", "twenty",
)  # fmt: skip


def write(
    grammar: Grammar, occupation: Occupation, *, wording: float, draws: Sequence[float]
) -> tuple[str, str]:
    """The biography of a woman and, from the same draws, of a man."""
    page = _Page(grammar, occupation, wording, draws)
    low, high = SENTENCES
    wanted = low + int(page.draw() * (high - low + 1))
    order = page.pick(grammar.orders)
    drafts = [page.sentence(page.pick(grammar.sentences[kind])) for kind in order[:high]]
    words = [
        {**slots, "first": name}
        for slots, name in zip(grammar.words, page.first_names, strict=True)
    ]
    lengths = [len(draft.format_map(words[0]).split()) for draft in drafts]
    while wanted < high and sum(lengths[:wanted]) < WORDS[0]:
        wanted += 1
    while wanted > low and sum(lengths[:wanted]) > WORDS[1]:
        wanted -= 1
    draft = " ".join(drafts[:wanted])
    return draft.format_map(words[0]), draft.format_map(words[1])


class _Page:
    """A text in the making: what was drawn for it and what has been used."""

    def __init__(
        self, grammar: Grammar, occupation: Occupation, wording: float, draws: Sequence[float]
    ) -> None:
        self._draws: Iterator[float] = iter(draws)
        self._grammar = grammar
        self._occupation = occupation
        self._wording = wording
        self._used: set[str] = set()
        self._opening = True
        self._named = False
        self.first_names = self.pick(grammar.first_names)
        self._surname = self.pick(grammar.lists["surname"])
        self._short = self.pick(
            (self._surname, self._surname, "{title} " + self._surname, "{first}")
        )
        self._graduated = 1986 + int(self.draw() * 24)

    def draw(self) -> float:
        return next(self._draws)

    def pick(self, choices: Sequence[T]) -> T:
        return choices[int(self.draw() * len(choices))]

    def sentence(self, pieces: Pieces) -> str:
        """The sentence with every slot filled but those of the gendered words."""
        text = "".join(
            plain + (self._fill(slot) if slot is not None else "") for plain, slot in pieces
        )
        self._opening = False
        return text

    def _fill(self, slot: str) -> str:
        kind = slot.lower()
        if kind in self._grammar.words[0]:
            return f"{{{slot}}}"
        if kind in ("who", "whose"):
            return self._person(slot)
        filled = self._drawn(kind)
        return filled if slot == kind else filled[0].upper() + filled[1:]

    def _drawn(self, kind: str) -> str:
        if kind in self._grammar.wording:
            return self._worded(kind)
        if kind == "graduated":
            return str(self._graduated)
        if kind == "later":
            return str(self._graduated + 2 + int(self.draw() * (NOW - 2 - self._graduated)))
        if kind == "years":
            return self.pick(YEARS[: NOW - self._graduated - 2])
        if kind == "number":
            return self._fresh(YEARS[:6])
        if kind in self._grammar.lists:
            return self._fresh(self._grammar.lists[kind])
        pools = self._occupation.phrases[kind]
        chosen = bisect_right(pools.bounds[:-1], self.draw())
        return self._fresh(pools.lists[chosen])

    def _fresh(self, phrases: Sequence[str]) -> str:
        """A phrase the text does not hold yet: the one drawn or the next behind it."""
        start = int(self.draw() * len(phrases))
        for i in range(len(phrases)):
            phrase = phrases[(start + i) % len(phrases)]
            if phrase not in self._used:
                break
        self._used.add(phrase)
        return phrase

    def _worded(self, kind: str) -> str:
        """A pair left open for the gender told, or with the side that a coin takes."""
        pairs = self._grammar.wording[kind]
        start = int(self.draw() * len(pairs))
        slots = (f"{kind}-{(start + i) % len(pairs)}" for i in range(len(pairs)))
        slot = next(slot for slot in slots if slot not in self._used)
        self._used.add(slot)
        open_, coin = self.draw() < self._wording, int(self.draw() * 2)
        return f"{{{slot}}}" if open_ else self._grammar.words[coin][slot]

    def _person(self, slot: str) -> str:
        """A name or a pronoun: no name twice running, the full name at the very beginning only."""
        chance = self.draw()
        by_name = chance < (0.75 if self._opening else 0.35) and not self._named
        self._named = by_name
        if not by_name:
            pronoun = "they" if slot.lower() == "who" else "their"
            return f"{{{pronoun.capitalize() if slot[0].isupper() else pronoun}}}"
        full = self._opening and chance < 0.3 and "{title}" not in self._short
        name = "{first} " + self._surname if full else self._short
        return name if slot.lower() == "who" else f"{name}'s"
