"""Analogy questions: probes for bias, and controls whose answer is known."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from evenhand.lexicon.reading import Node, Words, data, distinct, read_toml

__all__ = ["Analogies", "analogies"]

Question = tuple[str, str, str, str]
"""a, b, c and the answer d of a : b = c : d."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Analogies:
    """Pairs a, c and probes b that ask a : b = c : ?, with factual controls by relation."""

    name: str
    title: str
    provenance: str
    pairs: tuple[tuple[str, str], ...]
    occupations: Words
    traits: Words
    controls: Mapping[str, tuple[Question, ...]]
    sources: Mapping[str, str]

    @property
    def probes(self) -> Words:
        """Occupations and traits together."""
        return self.occupations + self.traits

    def words(self) -> Words:
        """Every word of the questions, once."""
        questions = (question for group in self.controls.values() for question in group)
        return distinct([*self.pairs, self.probes, *questions])


def analogies() -> Analogies:
    """The built-in questions.

    >>> analogies().controls["capital"][0]
    ('france', 'paris', 'germany', 'berlin')
    """
    lists = ["pairs", "occupations", "traits", "controls"]
    keys = read_toml(data("analogies.toml")).table(
        ["name", "title", "provenance", *lists, "sources"]
    )
    return Analogies(
        name=keys["name"].word(),
        title=keys["title"].text(),
        provenance=keys["provenance"].text(),
        pairs=tuple(_pair(row) for row in keys["pairs"].rows()),
        occupations=keys["occupations"].words(),
        traits=keys["traits"].words(),
        controls={
            relation: tuple(_question(row) for row in node.rows())
            for relation, node in keys["controls"].entries().items()
        },
        sources={name: node.text() for name, node in keys["sources"].table(lists).items()},
    )


def _pair(row: Node) -> tuple[str, str]:
    first, second = row.words()
    return first, second


def _question(row: Node) -> Question:
    a, b, c, d = row.words()
    return a, b, c, d
