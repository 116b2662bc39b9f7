"""Sentences with the pronoun of a person masked, the same for every model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from typing import Annotated

from evenhand.lexicon.schema import (
    STRICT,
    Distinct,
    Name,
    Source,
    Text,
    Word,
    data,
    read_toml,
    refuse_shared,
    with_one,
)

MASK, SENTENCE = "[MASK]", "{sentence}"
Masked = Annotated[Word, with_one("a sentence", MASK)]
Frame = Annotated[Word, with_one("an opening", SENTENCE)]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentenceGroup:
    """Sentences of one kind of situation, each with one [MASK] instead of a pronoun."""

    __pydantic_config__ = STRICT
    title: Text
    sentences: Distinct[Masked]


@dataclass(frozen=True, slots=True, kw_only=True)
class PronounSentences:
    """Groups of sentences by name; no sentence is in two groups."""

    __pydantic_config__ = STRICT
    groups: Mapping[Name, SentenceGroup]
    name: Word = ""
    provenance: Text = ""
    continuations: tuple[Masked, ...] = ()
    """Sentences that can follow a sentence about a person, each with one [MASK] for a pronoun."""
    frames: tuple[Frame, ...] = ()
    """Openings that change nothing in a sentence, each with {sentence} in its place."""
    neutral: tuple[Masked, ...] = ()
    """Sentences about somebody of whom nothing is known, each with one [MASK] for a pronoun."""

    @property
    def sentences(self) -> tuple[str, ...]:
        """All sentences, in the order of the groups."""
        return tuple(self.group_of)

    @property
    def group_of(self) -> Mapping[str, str]:
        """Name of the group by sentence."""
        return {text: name for name, group in self.groups.items() for text in group.sentences}


@cache
def pronoun_sentences() -> PronounSentences:
    """Return the built-in sentences.

    >>> built_in = pronoun_sentences()
    >>> list(built_in.groups), len(built_in.sentences)
    (['everyday', 'leisure', 'leadership', 'technical', 'care', 'home'], 120)
    """
    return _read(data("pronoun_sentences.toml"))


def _read(source: Source) -> PronounSentences:
    content = read_toml(source, PronounSentences)
    lists = {f"groups.{name}": group.sentences for name, group in content.groups.items()}
    reason = "a sentence may be in one group only"
    refuse_shared(str(source), lists | {"neutral": content.neutral}, reason)
    return content
