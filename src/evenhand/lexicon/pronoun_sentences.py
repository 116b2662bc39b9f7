"""Sentences with a person's pronoun masked, on which every model is asked the same."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from evenhand.lexicon.reading import Node, Words, data, read_toml, refuse_shared

__all__ = ["PronounSentences", "SentenceGroup", "pronoun_sentences"]

MASK = "[MASK]"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceGroup:
    """Sentences of one kind of situation, each with one [MASK] in the place of a pronoun."""

    name: str
    title: str
    sentences: Words


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounSentences:
    """Groups of sentences by name; no sentence stands in two of them."""

    groups: Mapping[str, SentenceGroup]
    provenance: str = ""

    @property
    def sentences(self) -> Words:
        """All sentences, in the order of the groups."""
        return tuple(text for group in self.groups.values() for text in group.sentences)

    @property
    def group_of(self) -> Mapping[str, str]:
        """The name of the group of each sentence."""
        return {text: group.name for group in self.groups.values() for text in group.sentences}


@cache
def pronoun_sentences() -> PronounSentences:
    """The built-in sentences.

    >>> built_in = pronoun_sentences()
    >>> list(built_in.groups), len(built_in.sentences)
    (['everyday', 'leisure', 'leadership', 'technical', 'care', 'home'], 120)
    """
    return _read(data("pronoun_sentences.toml"))


def _read(source: Path | Traversable) -> PronounSentences:
    root = read_toml(source)
    keys = root.table(["groups"], ["name", "provenance"])
    groups = {name: _group(name, node) for name, node in keys["groups"].entries().items()}
    refuse_shared(
        root,
        {f"groups.{name}": group.sentences for name, group in groups.items()},
        "a sentence may be in one group only",
    )
    return PronounSentences(
        groups=groups, provenance=keys["provenance"].text() if "provenance" in keys else ""
    )


def _group(name: str, node: Node) -> SentenceGroup:
    keys = node.table(["title", "sentences"])
    for row in keys["sentences"].rows():
        if row.text().count(MASK) != 1:
            raise row.error(f"expected a sentence with one {MASK}, got '{row.text()}'")
    return SentenceGroup(name=name, title=keys["title"].text(), sentences=keys["sentences"].words())
