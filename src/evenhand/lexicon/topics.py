"""Topics: classes of people between which bias is measured, and the words to measure it with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from evenhand.arguments import checked
from evenhand.errors import LexiconError, UnknownNameError
from evenhand.lexicon.schema import (
    STRICT,
    Name,
    Rows,
    Several,
    Source,
    Text,
    Word,
    Words,
    data,
    describe_unknown,
    read_toml,
    refuse_shared,
    unique,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One kind of social bias as word lists.

    Attributes
    ----------
    name, title, provenance : str
    classes : tuple of str
        The classes of people.
    protected : mapping of str to tuple of str
        Words for the members of every class.
    stereotypes, extra_stereotypes : mapping of str to tuple of str
        Published stereotypes of every class, so that published results can be reproduced, and
        additional ones.
    definitional, equalize : tuple of tuple of str
        Sets of one word per class, in the order of `classes`.
    neutral, human : tuple of str
        Control words.
    occupations : mapping of str to tuple of str
    sources : mapping of str to str
        Origin of every list.
    """

    name: str
    title: str
    provenance: str
    classes: tuple[str, ...]
    protected: Mapping[str, Words]
    stereotypes: Mapping[str, Words]
    extra_stereotypes: Mapping[str, Words]
    definitional: tuple[Words, ...]
    equalize: tuple[Words, ...]
    neutral: Words
    human: Words
    occupations: Mapping[str, Words]
    sources: Mapping[str, str]

    def attributes(self, of: str, *, extended: bool = False) -> Words:
        """Return the stereotypes of a class, on request with the additional ones.

        >>> topic("religion").attributes("christian")
        ('judgemental', 'conservative', 'familial')
        >>> "hypocritical" in topic("religion").attributes("christian", extended=True)
        True
        """
        if of not in self.classes:
            raise UnknownNameError(f"class of the topic {self.name}", of, self.classes)
        return self.stereotypes[of] + (self.extra_stereotypes[of] if extended else ())

    def words(self) -> Words:
        """Return every word of the topic once."""
        return unique(self._lists())

    def _lists(self) -> Iterator[Words]:
        for by_class in (self.protected, self.stereotypes, self.extra_stereotypes):
            yield from by_class.values()
        yield from self.definitional
        yield from self.equalize
        yield from self.occupations.values()
        yield self.neutral
        yield self.human


def topic_names() -> tuple[str, ...]:
    """Return the names of the built-in topics.

    >>> topic_names()
    ('gender', 'race', 'religion')
    """
    names = (entry.name for entry in data("topics").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


@checked
def topic(name: str | os.PathLike[str] | Topic) -> Topic:
    """Load a topic.

    Parameters
    ----------
    name : str, path or Topic
        Name of a built-in topic, or path of a TOML file: anything that ends in `.toml` or contains
        a path separator. A topic is returned as it is.

    Returns
    -------
    Topic

    Notes
    -----
    The file has `name`, `title` and `provenance`; `definitional`, sets of one word per class in the
    order of the classes; optionally `equalize`, the sets that hard debiasing makes equal (default:
    the definitional ones); `controls`, the name "controls" or the path of a TOML file with
    `neutral` and `human`, or these two lists themselves; a table `[classes.NAME]` per class with
    `protected`, `stereotypes` and optionally `extra_stereotypes`; and optionally `[occupations]`
    with one list per class and `[sources]` with one sentence per list.

    Examples
    --------
    >>> gender = topic("gender")
    >>> gender.classes, gender.definitional[0]
    (('female', 'male'), ('she', 'he'))
    """
    if isinstance(name, Topic):
        return name
    given = os.fspath(name)
    is_path = any(mark in given for mark in ("/", os.sep, os.altsep) if mark)
    if isinstance(name, os.PathLike) or given.endswith(".toml") or is_path:
        return _read_topic(Path(given))
    if given not in topic_names():
        raise UnknownNameError("topic", given, topic_names())
    return _read_topic(data("topics", f"{given}.toml"))


@dataclass(frozen=True, kw_only=True)
class _ClassLists:
    __pydantic_config__ = STRICT
    protected: Several[Word]
    stereotypes: Words
    extra_stereotypes: Words = ()


_Listed = Literal[
    "protected",
    "stereotypes",
    "extra_stereotypes",
    "definitional",
    "equalize",
    "occupations",
    "neutral",
    "human",
]


@dataclass(frozen=True, kw_only=True)
class _TopicFile:
    __pydantic_config__ = STRICT
    name: Word
    title: Text
    provenance: Text
    classes: dict[Name, _ClassLists]
    definitional: Rows[Words]
    equalize: Rows[Words] | None = None
    controls: Word | None = None
    neutral: Words | None = None
    human: Words | None = None
    occupations: dict[Name, Words] = field(default_factory=dict)
    sources: dict[_Listed, Text] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class _ControlsFile:
    __pydantic_config__ = STRICT
    neutral: Words
    human: Words
    name: Word | None = None
    provenance: Text | None = None
    sources: dict[Name, Text] = field(default_factory=dict)


def _read_topic(source: Source) -> Topic:
    path, content = str(source), read_toml(source, _TopicFile)
    classes = tuple(content.classes)
    if len(classes) < 2:
        raise LexiconError(path, f"classes: expected at least 2 classes, got {len(classes)}")
    for name in content.occupations:
        if name not in classes:
            problem = describe_unknown("key", name, classes)
            raise LexiconError(path, f"occupations: {problem}")
    neutral, human = _read_controls(source, content)
    result = Topic(
        name=content.name,
        title=content.title,
        provenance=content.provenance,
        classes=classes,
        protected={name: lists.protected for name, lists in content.classes.items()},
        stereotypes={name: lists.stereotypes for name, lists in content.classes.items()},
        extra_stereotypes={
            name: lists.extra_stereotypes for name, lists in content.classes.items()
        },
        definitional=content.definitional,
        equalize=content.equalize or content.definitional,
        neutral=neutral,
        human=human,
        occupations=content.occupations,
        sources=dict(content.sources.items()),
    )
    _check(path, result)
    return result


def _read_controls(source: Source, content: _TopicFile) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Neutral and human control words: in the file, built in, or of another file."""
    path, named = str(source), content.controls
    if named is None and content.neutral is not None and content.human is not None:
        return content.neutral, content.human
    for name, words in (("neutral", content.neutral), ("human", content.human)):
        if named is None and words is None:
            raise LexiconError(path, f"expected the key 'controls', or '{name}' with control words")
        if named is not None and words is not None:
            raise LexiconError(path, f"expected either the key 'controls' or '{name}', got both")
    if named == "controls":
        lists = read_toml(data("controls.toml"), _ControlsFile)
    elif named is not None and named.endswith(".toml"):
        lists = read_toml(Path(path).parent / named, _ControlsFile)
    else:
        expected = "expected 'controls' or the path of a .toml"
        raise LexiconError(path, f"controls: {expected}, got '{named}'")
    return lists.neutral, lists.human


def _check(path: str, checked: Topic) -> None:
    """Raise if a set lacks a class, or a word is on two sides of a comparison."""
    classes = checked.classes
    for name in classes:
        if name in ("human", "neutral", "none"):
            problem = f"expected another name for the class '{name}', which control words have"
            raise LexiconError(path, problem)
        if repeated := set(checked.stereotypes[name]) & set(checked.extra_stereotypes[name]):
            problem = f"'{min(repeated)}' is in stereotypes and in extra_stereotypes of {name}"
            raise LexiconError(path, problem)
    protected = {f"the protected words of {name}": checked.protected[name] for name in classes}
    controls = {"neutral": checked.neutral, "human": checked.human}
    stereotypes = {
        f"the stereotypes of {name}": checked.attributes(name, extended=True) for name in classes
    } | controls
    defining = unique((*checked.definitional, *checked.equalize))
    occupations = {f"the occupations of {n}": words for n, words in checked.occupations.items()}
    for lists, reason in (
        (
            protected | stereotypes,
            "a word belongs to one class, and to either stereotypes or controls",
        ),
        (
            {"the definitional and equalize sets": defining} | stereotypes,
            "what defines a class cannot be an attribute",
        ),
        (
            {"occupations": unique(checked.occupations.values())} | controls,
            "a control word must have no tie to the topic",
        ),
        (occupations, "an occupation is tied to one class"),
    ):
        refuse_shared(path, lists, reason)
    home = {word: name for name, words in checked.protected.items() for word in words}
    for key, sets in (("definitional", checked.definitional), ("equalize", checked.equalize)):
        for number, words in enumerate(sets, 1):
            if len(words) != len(classes):
                expected = f"expected {len(classes)} words, one per class ({', '.join(classes)})"
                raise LexiconError(path, f"{key} #{number}: {expected}, got {len(words)}")
            for label, word in zip(classes, words, strict=True):
                if home.get(word, label) != label:
                    problem = f"'{word}' has the position of {label} and is a protected word of"
                    raise LexiconError(path, f"{key} #{number}: {problem} {home[word]}")
