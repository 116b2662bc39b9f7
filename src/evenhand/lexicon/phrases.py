"""Behavioural phrases for the phrase WEAT: built in, or the user's own in the same TOML layout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from evenhand.errors import InputError, UnknownNameError
from evenhand.lexicon.reading import Node, Words, data, read_toml, refuse_shared

__all__ = ["PhraseSet", "Phrases", "phrases", "read_phrases"]

PHRASE, MASK = "{phrase}", "[MASK]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseSet:
    """Two named sides of phrases.

    By stereotype the first goes with the first attribute, the second with the second; in a
    `neutral` set the two should not differ.
    """

    name: str
    title: str
    targets: Mapping[str, Words]
    neutral: bool = False

    @property
    def phrases(self) -> Words:
        """All phrases, the first side's first."""
        return tuple(phrase for side in self.targets.values() for phrase in side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """Phrase sets with what they are measured by.

    `attributes` has two named lists; `carriers` are sentences with {phrase} and [MASK] in them,
    to ask a model for the pronoun; `control` are phrases on whose mean embeddings are centred.
    """

    sets: Mapping[str, PhraseSet]
    attributes: Mapping[str, Words]
    carriers: Words
    control: Words
    provenance: str = ""

    def chosen(self, names: Sequence[str]) -> Phrases:
        """Only some of the sets, by their names."""
        for name in names:
            if name not in self.sets:
                raise UnknownNameError("phrase set", name, self.sets)
        return replace(self, sets={name: self.sets[name] for name in dict.fromkeys(names)})

    def joined(self, others: Phrases) -> Phrases:
        """The sets of both, with these attributes, carriers and control phrases."""
        for name in others.sets:
            if name in self.sets:
                raise InputError(f"phrase set '{name}': expected one of that name, got two")
        return replace(self, sets={**self.sets, **others.sets})


@cache
def phrases() -> Phrases:
    """The built-in sets: force, machines, command and neutral.

    >>> list(phrases().sets), len(phrases().carriers)
    (['force', 'machines', 'command', 'neutral'], 8)
    """
    return _read(data("phrases.toml"), None)


def read_phrases(path: str | os.PathLike[str]) -> Phrases:
    """The user's own sets from a TOML file.

    `[sets.NAME.targets]` holds two named lists of phrases, `[sets.NAME]` perhaps a `title` and
    `neutral = true`. The keys `attributes` (two named lists), `carriers` and `control` may be
    left out: the built-in ones are used then.
    """
    return _read(Path(path), phrases())


def _read(source: Path | Traversable, usual: Phrases | None) -> Phrases:
    root = read_toml(source)
    rest = ["attributes", "carriers", "control"]
    needed = ["sets"] if usual else ["sets", *rest]
    keys = root.table(needed, ["name", "provenance", *rest])
    sets = {name: _set(name, node) for name, node in keys["sets"].entries().items()}
    if not sets:
        raise keys["sets"].error("expected at least one phrase set, got none")

    def listed(name: str, of: Words) -> Words:
        return keys[name].words(2) if name in keys else of

    result = Phrases(
        sets=sets,
        attributes=(
            _two(keys["attributes"]) if "attributes" in keys or not usual else usual.attributes
        ),
        carriers=listed("carriers", usual.carriers if usual else ()),
        control=listed("control", usual.control if usual else ()),
        provenance=keys["provenance"].text() if "provenance" in keys else "",
    )
    if "carriers" in keys:
        _check_carriers(keys["carriers"])
    refuse_shared(
        root,
        {f"sets.{name}": part.phrases for name, part in sets.items()}
        | {f"attributes.{name}": words for name, words in result.attributes.items()},
        "a phrase may be in one set only",
    )
    return result


def _set(name: str, node: Node) -> PhraseSet:
    keys = node.table(["targets"], ["title", "neutral"])
    neutral = keys["neutral"].value if "neutral" in keys else False
    if not isinstance(neutral, bool):
        raise keys["neutral"].error(f"expected true or false, got {neutral!r}")
    return PhraseSet(
        name=name,
        title=keys["title"].text() if "title" in keys else name,
        targets=_two(keys["targets"]),
        neutral=neutral,
    )


def _two(node: Node) -> dict[str, Words]:
    lists = {name: entry.words(2) for name, entry in node.entries().items()}
    if len(lists) != 2:
        raise node.error(f"expected two named lists, got {len(lists)}")
    refuse_shared(
        node, {f"'{name}'": words for name, words in lists.items()}, "it may be on one side only"
    )
    return lists


def _check_carriers(node: Node) -> None:
    for row in node.rows():
        text = row.text()
        if text.count(PHRASE) != 1 or text.count(MASK) != 1:
            raise row.error(f"expected a sentence with one {PHRASE} and one {MASK}, got '{text}'")
