"""The grammar of the biographies: occupations, fields, sentences and lists, from data files."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from itertools import accumulate
from string import Formatter

from evenhand.lexicon.names import names
from evenhand.lexicon.reading import Node, Words, read_toml
from evenhand.text.rewrite.names import known_names

__all__ = ["GENDERS", "KINDS", "Grammar", "Occupation", "Pieces", "Pools", "grammar"]

GENDERS = ("F", "M")
KINDS = ("study", "work", "subject", "place", "did")
"""What an occupation and its fields have phrases of."""

OWN = 0.3
"""Share of the phrases that are the occupation's own; the rest comes from its fields."""

FIRST_NAMES = 300
"""Pairs of first names that persons are drawn from, the most frequent."""

Pieces = tuple[tuple[str, str | None], ...]
"""A sentence as pairs of plain text and the slot behind it."""


@dataclass(frozen=True, slots=True)
class Pools:
    """Lists of phrases, and up to where in [0, 1) each is drawn from."""

    lists: tuple[Words, ...]
    bounds: tuple[float, ...]


@dataclass(frozen=True, slots=True)
class Occupation:
    """An occupation: the share of women in it and where its phrases are drawn from."""

    name: str
    women: float
    phrases: Mapping[str, Pools]


@dataclass(frozen=True, slots=True)
class Grammar:
    """All that biographies are written with.

    `words` has for each gender the gendered words by slot, the wording typical of it among them:
    the slot `hobby-3` is the fourth pair of hobbies.
    """

    occupations: Mapping[str, Occupation]
    sentences: Mapping[str, tuple[Pieces, ...]]
    orders: tuple[Words, ...]
    lists: Mapping[str, Words]
    wording: Mapping[str, tuple[tuple[str, str], ...]]
    words: tuple[Mapping[str, str], Mapping[str, str]]
    first_names: tuple[tuple[str, str], ...]


@cache
def grammar() -> Grammar:
    """The built-in grammar."""
    folder = files("evenhand.simulate.biographies").joinpath("data")
    parts = sorted(folder.joinpath("fields").iterdir(), key=lambda file: file.name)
    fields = {
        name: {kind: entry.words() for kind, entry in node.table(KINDS).items()}
        for part in parts
        for name, node in read_toml(part).entries().items()
    }
    occupations = {
        name: _occupation(name, node, fields)
        for name, node in read_toml(folder.joinpath("occupations.toml")).entries().items()
    }
    sentences = read_toml(folder.joinpath("sentences.toml")).entries()
    orders = tuple(order.words() for order in sentences.pop("orders").rows())
    lists = read_toml(folder.joinpath("lists.toml")).entries()
    pairs = read_toml(folder.joinpath("pairs.toml")).table(("words", "wording"))
    wording = {
        kind: tuple(_pair(row) for row in rows.rows())
        for kind, rows in pairs["wording"].entries().items()
    }
    return Grammar(
        occupations=occupations,
        sentences={kind: _sentences(node) for kind, node in sentences.items()},
        orders=orders,
        lists={name: node.words() for name, node in lists.items()}
        | {"aside": tuple(dict.fromkeys(s for field in fields.values() for s in field["subject"]))},
        wording=wording,
        words=_gendered(
            {slot: _pair(node) for slot, node in pairs["words"].entries().items()}, wording
        ),
        first_names=_first_names(),
    )


def _occupation(name: str, node: Node, fields: Mapping[str, Mapping[str, Words]]) -> Occupation:
    entries = node.table(("women", "fields", "work", "subject", "did"))
    weights = {field: weight.percentage() for field, weight in entries["fields"].entries().items()}
    for field in weights:
        if field not in fields:
            raise entries["fields"].error(f"unknown field '{field}'")
    total = sum(weights.values())
    phrases = {}
    for kind in KINDS:
        own = entries[kind].words() if kind in entries else ()
        lists = [fields[field][kind] for field in weights]
        left = (1 - OWN) if own else 1.0
        shares = [left * weight / total for weight in weights.values()]
        if own:
            lists, shares = [own, *lists], [OWN, *shares]
        phrases[kind] = Pools(tuple(lists), tuple(accumulate(shares)))
    return Occupation(name, entries["women"].percentage() / 100, phrases)


def _sentences(node: Node) -> tuple[Pieces, ...]:
    return tuple(
        tuple((plain, slot) for plain, slot, _, _ in Formatter().parse(row.text()))
        for row in node.rows()
    )


def _pair(node: Node) -> tuple[str, str]:
    words = node.words(2)
    if len(words) != 2:
        raise node.error(f"expected [women, men], got {len(words)} phrases")
    return words[0], words[1]


def _gendered(
    words: Mapping[str, tuple[str, str]], wording: Mapping[str, tuple[tuple[str, str], ...]]
) -> tuple[Mapping[str, str], Mapping[str, str]]:
    slots = dict(words)
    slots |= {slot.capitalize(): (pair[0].capitalize(), pair[1].capitalize())
              for slot, pair in words.items()}  # fmt: skip
    slots |= {
        f"{kind}-{i}": pair for kind, pairs in wording.items() for i, pair in enumerate(pairs)
    }
    one, two = ({slot: pair[side] for slot, pair in slots.items()} for side in (0, 1))
    return one, two


def _first_names() -> tuple[tuple[str, str], ...]:
    """The most frequent pairs of first names that are nothing but first names."""
    known = names()
    clear = known_names() - known.ambiguous
    found = [
        (name, other)
        for name in known.female
        if name in clear and (other := known.partner(name)) in clear
        if other is not None and known.gender(other) == "male" and known.partner(other) == name
    ]
    return tuple(found[:FIRST_NAMES])
