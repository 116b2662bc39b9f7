"""Behavioural phrases for the phrase WEAT: built in, or from a TOML file of the same layout."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cache, partial
from pathlib import Path
from typing import Annotated, Any

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
    with_one,
)

PHRASE, MASK = "{phrase}", "[MASK]"


def _check_two(lists: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    if len(lists) != 2:
        raise fail(f"expected two named lists, got {len(lists)}")
    (first, words), (second, others) = lists.items()
    for word in words:
        if word in others:
            raise fail(f"'{word}' is in '{first}' and in '{second}': it may be in one list only")
    return lists


TwoLists = Annotated[Mapping[Name, Several[Word]], AfterValidator(_check_two)]
Carriers = Several[Annotated[Word, with_one("a sentence", PHRASE, MASK)]]


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseSet:
    """Two named lists of phrases.

    By stereotype the first list goes with the first attribute and the second with the second; in a
    `neutral` set the two should not differ.
    """

    __pydantic_config__ = STRICT
    name: Word = ""
    title: Text = ""
    targets: TwoLists
    neutral: Flag = False

    @property
    def phrases(self) -> tuple[str, ...]:
        """All phrases, those of the first list first."""
        return tuple(phrase for side in self.targets.values() for phrase in side)


def _built_in(name: str) -> Any:
    return getattr(phrases(), name)


@dataclass(frozen=True, slots=True, kw_only=True)
class PhraseLists:
    """Phrase sets and the material to measure them with.

    `attributes` has two named lists; `carriers` are sentences with {phrase} and [MASK], for the
    pronoun of a model; `control` are phrases on whose mean embeddings are centred.
    """

    __pydantic_config__ = STRICT
    sets: Mapping[Name, PhraseSet]
    attributes: TwoLists = field(default_factory=partial(_built_in, "attributes"))
    carriers: Carriers = field(default_factory=partial(_built_in, "carriers"))
    control: Several[Word] = field(default_factory=partial(_built_in, "control"))
    provenance: Text = ""
    name: Word = ""

    def select(self, names: Sequence[str]) -> PhraseLists:
        """Select sets by their names."""
        for name in names:
            if name not in self.sets:
                raise UnknownNameError("phrase set", name, self.sets)
        return replace(self, sets={name: self.sets[name] for name in dict.fromkeys(names)})

    def join(self, others: PhraseLists) -> PhraseLists:
        """Add the sets of others; attributes, carriers and control phrases stay."""
        for name in others.sets:
            if name in self.sets:
                raise InputError(f"phrase set '{name}': expected one of that name, got two")
        return replace(self, sets={**self.sets, **others.sets})


@cache
def phrases() -> PhraseLists:
    """Return the built-in sets: force, machines, command and neutral.

    >>> list(phrases().sets), len(phrases().carriers)
    (['force', 'machines', 'command', 'neutral'], 8)
    """
    return _read(data("phrases.toml"))


def read_phrases(path: str | os.PathLike[str]) -> PhraseLists:
    """Read phrase sets from a TOML file.

    `[sets.NAME.targets]` has two named lists of phrases, `[sets.NAME]` optionally a `title` and
    `neutral = true`. The keys `attributes` (two named lists), `carriers` and `control` are
    optional; their defaults are the built-in ones.
    """
    return _read(Path(path))


def _read(source: Source) -> PhraseLists:
    lists = read_toml(source, PhraseLists)
    if not lists.sets:
        raise LexiconError(str(source), "sets: expected at least one phrase set, got none")
    sets = {
        name: replace(part, name=name, title=part.title or name)
        for name, part in lists.sets.items()
    }
    refuse_shared(
        str(source),
        {f"sets.{name}": part.phrases for name, part in sets.items()}
        | {f"attributes.{name}": words for name, words in lists.attributes.items()},
        "a phrase may be in one set only",
    )
    return replace(lists, sets=sets)
