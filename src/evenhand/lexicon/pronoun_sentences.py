"""Sentences with the pronoun of a person masked, the same for every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from pydantic import AfterValidator

from evenhand.lexicon.schema import (
    STRICT,
    Distinct,
    Name,
    Source,
    Text,
    Word,
    data,
    fail,
    read_toml,
    refuse_shared,
)

MASK, SENTENCE = "[MASK]", "{sentence}"


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceGroup:
    """Sentences of one kind of situation, each with one [MASK] instead of a pronoun."""

    name: str
    title: str
    sentences: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounSentences:
    """Groups of sentences by name; no sentence is in two groups."""

    groups: Mapping[str, SentenceGroup]
    provenance: str = ""
    continuations: tuple[str, ...] = ()
    """Sentences that can follow a sentence about a person, each with one [MASK] for a pronoun."""
    frames: tuple[str, ...] = ()
    """Openings that change nothing in a sentence, each with {sentence} in its place."""
    neutral: tuple[str, ...] = ()
    """Sentences about somebody of whom nothing is known, each with one [MASK] for a pronoun."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, in the order of the groups."""
        return tuple(text for group in self.groups.values() for text in group.sentences)

    @property
    def group_of(self) -> Mapping[str, str]:
        """Name of the group by sentence."""
        return {text: group.name for group in self.groups.values() for text in group.sentences}


@cache
def pronoun_sentences() -> PronounSentences:
    """Return the built-in sentences.

    >>> built_in = pronoun_sentences()
    >>> list(built_in.groups), len(built_in.sentences)
    (['everyday', 'leisure', 'leadership', 'technical', 'care', 'home'], 120)
    """
    return _read(data("pronoun_sentences.toml"))


def _check_mask(text: str) -> str:
    if text.count(MASK) != 1:
        raise fail(f"expected a sentence with one {MASK}, got '{text}'")
    return text


def _check_frame(text: str) -> str:
    if text.count(SENTENCE) != 1:
        raise fail(f"expected an opening with one {SENTENCE}, got '{text}'")
    return text


@dataclass(frozen=True, kw_only=True)
class _Group:
    __pydantic_config__ = STRICT
    title: Text
    sentences: Distinct[Annotated[Word, AfterValidator(_check_mask)]]


@dataclass(frozen=True, kw_only=True)
class _File:
    __pydantic_config__ = STRICT
    groups: Mapping[Name, _Group]
    name: Word = ""
    provenance: Text = ""
    continuations: tuple[Annotated[Word, AfterValidator(_check_mask)], ...] = ()
    frames: tuple[Annotated[Word, AfterValidator(_check_frame)], ...] = ()
    neutral: tuple[Annotated[Word, AfterValidator(_check_mask)], ...] = ()


def _read(source: Source) -> PronounSentences:
    content = read_toml(source, _File)
    groups = {
        name: SentenceGroup(name=name, title=group.title, sentences=group.sentences)
        for name, group in content.groups.items()
    }
    refuse_shared(
        str(source),
        {f"groups.{name}": group.sentences for name, group in groups.items()}
        | {"neutral": content.neutral},
        "a sentence may be in one group only",
    )
    return PronounSentences(
        groups=groups,
        provenance=content.provenance,
        continuations=content.continuations,
        frames=content.frames,
        neutral=content.neutral,
    )
