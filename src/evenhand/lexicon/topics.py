"""Topics: the classes of people a bias is measured between, and the words it is measured with."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources.abc import Traversable
from pathlib import Path

from evenhand.errors import UnknownNameError
from evenhand.lexicon.reading import Node, Words, data, distinct, read_toml, refuse_shared

__all__ = ["Topic", "topic", "topic_names"]

LISTS = (
    "protected",
    "stereotypes",
    "extra_stereotypes",
    "definitional",
    "equalize",
    "occupations",
    "neutral",
    "human",
)


@dataclass(frozen=True, slots=True, kw_only=True)
class Topic:
    """One kind of social bias as word lists.

    `stereotypes` are the published ones, so that published results can be reproduced;
    `extra_stereotypes` are additions of ours. A definitional set holds one word of each class, in
    the order of `classes`. `sources` says for each list where it comes from.
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
        """The stereotypes of one class, on request with the additional ones.

        >>> topic("religion").attributes("christian")
        ('judgemental', 'conservative', 'familial')
        >>> "hypocritical" in topic("religion").attributes("christian", extended=True)
        True
        """
        if of not in self.classes:
            raise UnknownNameError(f"class of the topic {self.name}", of, self.classes)
        return self.stereotypes[of] + (self.extra_stereotypes[of] if extended else ())

    def words(self) -> Words:
        """Every word of the topic, once."""
        return distinct(self._lists())

    def _lists(self) -> Iterator[Words]:
        for by_class in (self.protected, self.stereotypes, self.extra_stereotypes):
            yield from by_class.values()
        yield from self.definitional
        yield from self.equalize
        yield from self.occupations.values()
        yield self.neutral
        yield self.human


def topic_names() -> tuple[str, ...]:
    """The built-in topics.

    >>> topic_names()
    ('gender', 'race', 'religion')
    """
    names = (entry.name for entry in data("topics").iterdir())
    return tuple(sorted(name.removesuffix(".toml") for name in names if name.endswith(".toml")))


def topic(name: str | os.PathLike[str]) -> Topic:
    """A built-in topic by its name, or a topic of yours by the path of its TOML file.

    A path is whatever ends in `.toml` or holds a path separator. The file holds `name`, `title`,
    `provenance`; `definitional`, sets of one word for each class in the order of the classes;
    `equalize`, optional, the sets made equal by hard debiasing (default: the definitional ones);
    `controls`, the name "controls" or the path of a TOML file with `neutral` and `human`, or these
    two lists themselves; a table `[classes.NAME]` for each class with `protected`, `stereotypes`
    and, optional, `extra_stereotypes`; and, optional, `[occupations]` with a list for a class and
    `[sources]` with a sentence for a list.

    >>> gender = topic("gender")
    >>> gender.classes, gender.definitional[0]
    (('female', 'male'), ('she', 'he'))
    """
    given = os.fspath(name)
    if isinstance(name, os.PathLike) or given.endswith(".toml") or _has_separator(given):
        return _read_topic(Path(given))
    if given not in topic_names():
        raise UnknownNameError("topic", given, topic_names())
    return _read_topic(data("topics", f"{given}.toml"))


def _has_separator(name: str) -> bool:
    return any(mark in name for mark in ("/", os.sep, os.altsep) if mark)


def _read_topic(source: Path | Traversable) -> Topic:
    root = read_toml(source)
    keys = root.table(
        ["name", "title", "provenance", "classes", "definitional"],
        ["equalize", "controls", "neutral", "human", "occupations", "sources"],
    )
    by_class = keys["classes"].entries()
    if len(by_class) < 2:
        raise keys["classes"].error(f"expected at least 2 classes, got {len(by_class)}")
    tables = {
        name: node.table(["protected", "stereotypes"], ["extra_stereotypes"])
        for name, node in by_class.items()
    }
    classes = tuple(tables)
    definitional = _sets(keys["definitional"], classes)
    neutral, human = _controls(root, keys, source)
    sources = keys["sources"].table([], LISTS) if "sources" in keys else {}
    occupations = keys["occupations"].table([], classes) if "occupations" in keys else {}
    result = Topic(
        name=keys["name"].word(),
        title=keys["title"].text(),
        provenance=keys["provenance"].text(),
        classes=classes,
        protected={name: table["protected"].words(2) for name, table in tables.items()},
        stereotypes={name: table["stereotypes"].words() for name, table in tables.items()},
        extra_stereotypes={
            name: table["extra_stereotypes"].words() if "extra_stereotypes" in table else ()
            for name, table in tables.items()
        },
        definitional=definitional,
        equalize=_sets(keys["equalize"], classes) if "equalize" in keys else definitional,
        neutral=neutral,
        human=human,
        occupations={name: node.words() for name, node in occupations.items()},
        sources={name: node.text() for name, node in sources.items()},
    )
    _check(root, result)
    return result


def _sets(node: Node, classes: tuple[str, ...]) -> tuple[Words, ...]:
    """Sets of one word for each class."""
    sets = []
    for row in node.rows():
        words = row.words()
        if len(words) != len(classes):
            raise row.error(
                f"expected {len(classes)} words, one of each class ({', '.join(classes)}), "
                f"got {len(words)}"
            )
        sets.append(words)
    return tuple(sets)


def _controls(
    root: Node, keys: Mapping[str, Node], source: Path | Traversable
) -> tuple[Words, Words]:
    """The neutral and the human control words: inline, built in, or of another file."""
    if "controls" not in keys:
        for name in ("neutral", "human"):
            if name not in keys:
                raise root.error(f"expected the key 'controls', or '{name}' with control words")
        return keys["neutral"].words(), keys["human"].words()
    for name in ("neutral", "human"):
        if name in keys:
            raise root.error(f"expected either the key 'controls' or '{name}', got both")
    given = keys["controls"].word()
    if given == "controls":
        place: Path | Traversable = data("controls.toml")
    elif given.endswith(".toml"):
        place = Path(str(source)).parent / given
    else:
        raise keys["controls"].error(f"expected 'controls' or the path of a .toml, got '{given}'")
    lists = read_toml(place).table(["neutral", "human"], ["name", "provenance", "sources"])
    return lists["neutral"].words(), lists["human"].words()


def _check(root: Node, checked: Topic) -> None:
    """No word may be on two sides of a comparison, and no class have a control list's name."""
    for name in checked.classes:
        if name in ("human", "neutral", "none"):
            raise root.error(f"expected another name for the class '{name}': control words have it")
    protected = {
        f"the protected words of {name}": checked.protected[name] for name in checked.classes
    }
    stereotypes = {
        f"the stereotypes of {name}": checked.attributes(name, extended=True)
        for name in checked.classes
    }
    controls = {"neutral": checked.neutral, "human": checked.human}
    for name in checked.classes:
        if repeated := set(checked.stereotypes[name]) & set(checked.extra_stereotypes[name]):
            raise root.error(
                f"'{min(repeated)}' stands in stereotypes and in extra_stereotypes of {name}"
            )
    refuse_shared(
        root,
        protected | stereotypes | controls,
        "a word belongs to one class, and to stereotypes or controls alone",
    )
    others = {
        "the definitional and equalize sets": distinct((*checked.definitional, *checked.equalize))
    }
    refuse_shared(
        root, others | stereotypes | controls, "what defines a class cannot be an attribute"
    )
    occupations = {"occupations": distinct(checked.occupations.values())}
    refuse_shared(root, occupations | controls, "a control word must have no tie to the topic")
    refuse_shared(
        root,
        {f"the occupations of {name}": words for name, words in checked.occupations.items()},
        "an occupation is tied to one class",
    )
    home = {word: name for name, words in checked.protected.items() for word in words}
    for key, sets in (("definitional", checked.definitional), ("equalize", checked.equalize)):
        for number, words in enumerate(sets, 1):
            for place, word in zip(checked.classes, words, strict=True):
                if home.get(word, place) != place:
                    raise root.error(
                        f"{key} #{number}: '{word}' stands in the place of {place} "
                        f"and is a protected word of {home[word]}"
                    )
