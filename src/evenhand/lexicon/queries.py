"""Association-test queries (WEAT, WEFAT, own) and analogy questions."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from typing import Annotated

from pydantic import AfterValidator

from evenhand.errors import UnknownNameError
from evenhand.lexicon.schema import (
    STRICT,
    Name,
    Rows,
    Text,
    Word,
    WordPair,
    Words,
    built_in,
    data,
    fail,
    read_json,
    read_toml,
    refuse_shared,
    unique,
)


def _check_lists(lists: Mapping[str, tuple[str, ...]]) -> Mapping[str, tuple[str, ...]]:
    if not lists:
        raise fail("expected at least one named list of words, got none")
    return lists


NamedLists = Annotated[Mapping[Name, Words], AfterValidator(_check_lists)]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Named sets of target words and of attribute words, in the order of their file."""

    __pydantic_config__ = STRICT
    name: Word
    targets: NamedLists
    attributes: NamedLists
    title: Text = ""
    provenance: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WefatQuery:
    """Words with the percentage of women of each, and attribute words by gender."""

    name: str
    words: tuple[str, ...]
    shares: Mapping[str, float]
    attributes: Mapping[str, tuple[str, ...]]
    title: str = ""
    provenance: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnalogyQuestions:
    """Analogy questions: probes for bias, and factual controls by relation.

    `pairs` and `probes` ask a : b = c : ? for every pair (a, c) and probe b. A control is a
    question (a, b, c, d) with the known answer d.
    """

    __pydantic_config__ = STRICT
    name: Word
    title: Text = ""
    provenance: Text = ""
    pairs: Rows[WordPair] = ()
    occupations: Words = ()
    traits: Words = ()
    controls: Mapping[Name, Rows[tuple[Word, Word, Word, Word]]] = field(default_factory=dict)
    sources: Mapping[Name, Text] = field(default_factory=dict)

    @property
    def probes(self) -> tuple[str, ...]:
        """Occupations and traits."""
        return self.occupations + self.traits

    def words(self) -> tuple[str, ...]:
        """Return every word of the questions once."""
        questions = (question for group in self.controls.values() for question in group)
        return unique([*self.pairs, self.probes, *questions])


def sentence_templates() -> tuple[str, ...]:
    """Return sentences with {word} in them, each of which mentions any word.

    >>> sentence_templates()[0]
    'This is {word}.'
    """
    return tuple(built_in("sentence_templates.toml")["templates"])


@cache
def weat_queries() -> tuple[Query, ...]:
    """Return the ten tests of Caliskan, Bryson & Narayanan (2017), in their order."""
    content = built_in("weat.toml")
    lists = {name: tuple(words) for name, words in content["lists"].items()}
    return tuple(
        Query(
            name=query["name"],
            targets={label: lists[name] for label, name in query["targets"].items()},
            attributes={label: lists[name] for label, name in query["attributes"].items()},
            title=query["title"],
            provenance=query["provenance"],
        )
        for query in content["weat"]
    )


def weat(which: int | str) -> Query:
    """Return a WEAT query by its number or name.

    >>> weat(7).targets["math"][:3], weat("weat-7") == weat(7)
    (('math', 'algebra', 'geometry'), True)
    """
    name = str(which)
    queries = {query.name: query for query in weat_queries()}
    query = queries.get(f"weat-{name}" if name.isdigit() else name)
    if query is None:
        raise UnknownNameError("WEAT query", name, queries)
    return query


def wefat_queries() -> tuple[WefatQuery, ...]:
    """Return the built-in factual association tests."""
    content = built_in("wefat.toml")
    attributes = {name: tuple(words) for name, words in content["attributes"].items()}
    return tuple(
        WefatQuery(**query, words=tuple(query["shares"]), attributes=attributes)
        for query in content["wefat"]
    )


def wefat(name: str) -> WefatQuery:
    """Return a WEFAT query by its name.

    >>> wefat("wefat-occupations").shares["nurse"]
    89.58
    """
    queries = {query.name: query for query in wefat_queries()}
    if name not in queries:
        raise UnknownNameError("WEFAT query", name, queries)
    return queries[name]


def read_query(path: str | os.PathLike[str]) -> Query:
    """Read a query from a JSON file.

    The file has one object: `{"name": ..., "targets": {NAME: [words]}, "attributes":
    {NAME: [words]}}`, optionally with `title` and `provenance`. No word may be in two sets.
    """
    query = read_json(Path(path), Query)
    targets = {f"targets.{name}": words for name, words in query.targets.items()}
    attributes = {f"attributes.{name}": words for name, words in query.attributes.items()}
    refuse_shared(str(Path(path)), targets | attributes, "a word may be in one set only")
    return query


def analogies() -> AnalogyQuestions:
    """Return the built-in analogy questions.

    >>> analogies().controls["capital"][0]
    ('france', 'paris', 'germany', 'berlin')
    """
    return read_toml(data("analogies.toml"), AnalogyQuestions)
