"""The questions that metrics ask: word sets of a query, or of the classes of a topic."""

from __future__ import annotations

import os
from itertools import combinations
from typing import TypeAlias

from evenhand import lexicon
from evenhand.errors import InputError
from evenhand.lexicon import Query, Topic, WefatQuery

Question: TypeAlias = Query | WefatQuery | Topic
Material: TypeAlias = Question | str | os.PathLike[str]


def resolve(material: Material) -> Question:
    """The material itself, or the topic of that name or path."""
    if isinstance(material, str | os.PathLike):
        return lexicon.topic(material)
    if isinstance(material, Query | WefatQuery | Topic):
        return material
    raise InputError(
        f"material: expected a topic, its name or a query, got {type(material).__name__}"
    )


def all_classes(topic: Topic, *, extended: bool = False) -> Query:
    """The protected words of all classes against the stereotypes of all classes."""
    return Query(
        name=topic.name,
        targets=topic.protected,
        attributes=_stereotypes(topic, topic.classes, extended),
    )


def class_pairs(topic: Topic, *, extended: bool = False) -> list[Query]:
    """The same for each two classes."""
    return [
        Query(
            name=topic.name if len(topic.classes) == 2 else f"{topic.name}: {first}/{second}",
            targets={name: topic.protected[name] for name in (first, second)},
            attributes=_stereotypes(topic, (first, second), extended),
        )
        for first, second in combinations(topic.classes, 2)
    ]


def _stereotypes(
    topic: Topic, classes: tuple[str, ...], extended: bool
) -> dict[str, tuple[str, ...]]:
    return {f"{name} stereotypes": topic.attributes(name, extended=extended) for name in classes}


def all_attributes(query: Query) -> list[str]:
    """The words of all attribute sets, each once."""
    return list(dict.fromkeys(word for words in query.attributes.values() for word in words))


def target_pairs(query: Query) -> list[tuple[str, str]]:
    """The words of the two target sets, paired by position."""
    first, second = query.targets.values()
    return list(zip(first, second, strict=True))
