"""Behavioural phrases for the phrase WEAT: built in, or from a TOML file of the same layout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from evenhand.errors import InputError, LexiconError, UnknownNameError
from evenhand.lexicon.schema import (
    STRICT,
    Flag,
    Name,
    Several,
    Source,
    Text,
    Word,
    data,
    fail,
    read_toml,
    refuse_shared,
)

__all__ = ["PhraseSet", "Phrases", "phrases", "read_phrases"]

PHRASE, MASK = "{phrase}", "[MASK]"


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseSet:
    """Two named lists of phrases.

    By stereotype the first list goes with the first attribute and the second with the second; in a
    `neutral` set the two should not differ.
    """

    name: str
    title: str
    targets: Mapping[str, tuple[str, ...]]
    neutral: bool = False

    @property
    def phrases(self) -> tuple[str, ...]:
        """All phrases, those of the first list first."""
        return tuple(phrase for side in self.targets.values() for phrase in side)


@dataclass(frozen=True, slots=True, kw_only=True)
class Phrases:
    """Phrase sets and the material to measure them with.

    `attributes` has two named lists; `carriers` are sentences with {phrase} and [MASK], for the
    pronoun of a model; `control` are phrases on whose mean embeddings are centred.
    """

    sets: Mapping[str, PhraseSet]
    attributes: Mapping[str, tuple[str, ...]]
    carriers: tuple[str, ...]
    control: tuple[str, ...]
    provenance: str = ""

    def select(self, names: Sequence[str]) -> Phrases:
        """Select sets by their names."""
        for name in names:
            if name not in self.sets:
                raise UnknownNameError("phrase set", name, self.sets)
        return replace(self, sets={name: self.sets[name] for name in dict.fromkeys(names)})

    def join(self, others: Phrases) -> Phrases:
        """Add the sets of others; attributes, carriers and control phrases stay."""
        for name in others.sets:
            if name in self.sets:
                raise InputError(f"phrase set '{name}': expected one of that name, got two")
        return replace(self, sets={**self.sets, **others.sets})


@cache
def phrases() -> Phrases:
    """Return the built-in sets: force, machines, command and neutral.

    >>> list(phrases().sets), len(phrases().carriers)
    (['force', 'machines', 'command', 'neutral'], 8)
    """
    return _read(data("phrases.toml"), None)


def read_phrases(path: str | os.PathLike[str]) -> Phrases:
    """Read phrase sets from a TOML file.

    `[sets.NAME.targets]` has two named lists of phrases, `[sets.NAME]` optionally a `title` and
    `neutral = true`. The keys `attributes` (two named lists), `carriers` and `control` are
    optional; their defaults are the built-in ones.
    """
    return _read(Path(path), phrases())


def _check_two(lists: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    if len(lists) != 2:
        raise fail(f"expected two named lists, got {len(lists)}")
    (first, words), (second, others) = lists.items()
    for word in words:
        if word in others:
            raise fail(f"'{word}' is in '{first}' and in '{second}': it may be in one list only")
    return lists


def _check_carrier(text: str) -> str:
    if text.count(PHRASE) != 1 or text.count(MASK) != 1:
        raise fail(f"expected a sentence with one {PHRASE} and one {MASK}, got '{text}'")
    return text


TwoLists = Annotated[Mapping[Name, Several[Word]], AfterValidator(_check_two)]


@dataclass(frozen=True, kw_only=True)
class _Set:
    __pydantic_config__ = STRICT
    targets: TwoLists
    title: Text = ""
    neutral: Flag = False


@dataclass(frozen=True, kw_only=True)
class _File:
    __pydantic_config__ = STRICT
    sets: Mapping[Name, _Set]
    name: Word = ""
    provenance: Text = ""
    attributes: TwoLists | None = None
    carriers: Several[Annotated[Word, AfterValidator(_check_carrier)]] | None = None
    control: Several[Word] | None = None


def _read(source: Source, defaults: Phrases | None) -> Phrases:
    path, content = str(source), read_toml(source, _File)
    if not content.sets:
        raise LexiconError(path, "sets: expected at least one phrase set, got none")
    values = {name: getattr(content, name) for name in ("attributes", "carriers", "control")}
    for name, value in values.items():
        if value is None:
            if defaults is None:
                raise LexiconError(path, f"the key '{name}' is missing")
            values[name] = getattr(defaults, name)
    sets = {
        name: PhraseSet(
            name=name, title=part.title or name, targets=part.targets, neutral=part.neutral
        )
        for name, part in content.sets.items()
    }
    result = Phrases(sets=sets, provenance=content.provenance, **values)
    refuse_shared(
        path,
        {f"sets.{name}": part.phrases for name, part in sets.items()}
        | {f"attributes.{name}": words for name, words in result.attributes.items()},
        "a phrase may be in one set only",
    )
    return result
