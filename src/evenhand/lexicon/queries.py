"""Queries: target and attribute word sets of association tests, built in or the user's own."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from evenhand.errors import UnknownNameError
from evenhand.lexicon.reading import Node, Words, data, read_json, read_toml, refuse_shared

__all__ = ["Query", "WefatQuery", "read_query", "weat", "weat_queries", "wefat", "wefat_queries"]


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """Named sets of target words and of attribute words, in the order of their file."""

    name: str
    targets: Mapping[str, Words]
    attributes: Mapping[str, Words]
    provenance: str = ""
    title: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class WefatQuery:
    """Words with a fact about each, the percentage of women, and attribute words by gender."""

    name: str
    title: str
    words: Words
    shares: Mapping[str, float]
    attributes: Mapping[str, Words]
    provenance: str


def weat_queries() -> tuple[Query, ...]:
    """The ten tests of Caliskan, Bryson & Narayanan (2017), in their order."""
    keys = read_toml(data("weat.toml")).table(["lists", "weat"])
    lists = {name: node.words() for name, node in keys["lists"].entries().items()}
    return tuple(_listed_query(node, lists) for node in keys["weat"].rows())


def weat(which: int | str) -> Query:
    """One of the WEAT queries, by its number or its name.

    >>> weat(7).targets["math"][:3], weat("weat-7") == weat(7)
    (('math', 'algebra', 'geometry'), True)
    """
    name = str(which)
    queries = {query.name: query for query in weat_queries()}
    found = queries.get(f"weat-{name}" if name.isdigit() else name)
    if found is None:
        raise UnknownNameError("WEAT query", name, queries)
    return found


def wefat_queries() -> tuple[WefatQuery, ...]:
    """The built-in factual association tests."""
    keys = read_toml(data("wefat.toml")).table(["attributes", "wefat"])
    attributes = {name: node.words() for name, node in keys["attributes"].entries().items()}
    return tuple(_wefat_query(node, attributes) for node in keys["wefat"].rows())


def wefat(name: str) -> WefatQuery:
    """One of the WEFAT queries.

    >>> wefat("wefat-occupations").shares["nurse"]
    89.58
    """
    queries = {query.name: query for query in wefat_queries()}
    if name not in queries:
        raise UnknownNameError("WEFAT query", name, queries)
    return queries[name]


def read_query(path: str | os.PathLike[str]) -> Query:
    """A query of the user's from a JSON file.

    The file holds one object: `{"name": ..., "targets": {NAME: [words]}, "attributes":
    {NAME: [words]}}`, optionally with `title` and `provenance`.
    """
    root = read_json(Path(path))
    keys = root.table(["name", "targets", "attributes"], ["title", "provenance"])
    query = Query(
        name=keys["name"].word(),
        targets=_sets(keys["targets"]),
        attributes=_sets(keys["attributes"]),
        provenance=keys["provenance"].text() if "provenance" in keys else "",
        title=keys["title"].text() if "title" in keys else "",
    )
    _check(root, query)
    return query


def _sets(node: Node) -> dict[str, Words]:
    sets = {name: entry.words() for name, entry in node.entries().items()}
    if not sets:
        raise node.error("expected at least one named list of words, got none")
    return sets


def _check(root: Node, query: Query) -> None:
    """A word in two sets would be compared with itself."""
    targets = {f"targets.{name}": words for name, words in query.targets.items()}
    attributes = {f"attributes.{name}": words for name, words in query.attributes.items()}
    refuse_shared(root, targets | attributes, "a word may be in one set only")


def _listed_query(node: Node, lists: Mapping[str, Words]) -> Query:
    """A query whose sets are named lists of the same file."""
    keys = node.table(["name", "title", "targets", "attributes", "provenance"])
    query = Query(
        name=keys["name"].word(),
        targets=_named_sets(keys["targets"], lists),
        attributes=_named_sets(keys["attributes"], lists),
        provenance=keys["provenance"].text(),
        title=keys["title"].text(),
    )
    _check(node, query)
    return query


def _named_sets(node: Node, lists: Mapping[str, Words]) -> dict[str, Words]:
    return {label: lists[entry.word()] for label, entry in node.entries().items()}


def _wefat_query(node: Node, attributes: Mapping[str, Words]) -> WefatQuery:
    keys = node.table(["name", "title", "provenance", "shares"])
    shares = {word: entry.percentage() for word, entry in keys["shares"].entries().items()}
    return WefatQuery(
        name=keys["name"].word(),
        title=keys["title"].text(),
        words=tuple(shares),
        shares=shares,
        attributes=dict(attributes),
        provenance=keys["provenance"].text(),
    )
