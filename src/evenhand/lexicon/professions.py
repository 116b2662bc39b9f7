"""Professions and the sentences they are put in, for the association test: ours or the user's.

The groups of our own list follow the share of women among those employed in the United States:
`male` up to 30 %, `female` from 70 %, `balanced` from 35 to 65 %. The shares are approximate; one
is given only where it lies within five points of the census microdata of 2012 (IPUMS, in the table
of 320 occupations that FiveThirtyEight published in 2014), elsewhere only the group.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from evenhand.errors import InputError, LexiconError
from evenhand.lexicon.reading import Node, data, read_csv, read_toml

__all__ = [
    "GROUPS",
    "PersonPair",
    "Profession",
    "Template",
    "TemplateSet",
    "professions",
    "read_professions",
    "read_templates",
    "template_set",
]

GROUPS = ("male", "female", "balanced")
"""Who mostly has a profession."""

_OBJECTS = {"he": "him", "she": "her"}
_SLOTS = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Profession:
    """A profession, who mostly has it, and the percentage of women in it, where known."""

    name: str
    group: str | None = None
    women: float | None = None


@dataclass(frozen=True, slots=True)
class PersonPair:
    """A phrase for a man and the same one for a woman: he and she, my brother and my sister."""

    male: str
    female: str

    @property
    def name(self) -> str:
        return f"{self.male}/{self.female}"

    @classmethod
    def parse(cls, text: str) -> PersonPair:
        """A pair written with a slash, the man first.

        >>> PersonPair.parse("my brother/my sister").words
        ('brother', 'sister')
        """
        male, _, female = (" ".join(part.split()) for part in text.partition("/"))
        pair = cls(male, female)
        if not male or not female or "/" in female or pair.words[0] == pair.words[1]:
            raise InputError(
                f"persons '{text}': expected MALE/FEMALE, two phrases that differ in one place, "
                "such as he/she or my brother/my sister"
            )
        return pair

    @property
    def words(self) -> tuple[str, str]:
        """Where the two differ: what the test masks."""
        (male, female), phrases = self.spans, (self.male, self.female)
        return phrases[0][slice(*male)], phrases[1][slice(*female)]

    @property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Where those words stand in the two phrases."""
        male, female = self.male.split(" "), self.female.split(" ")
        most = min(len(male), len(female)) - 1
        lead = next((n for n in range(most) if male[n] != female[n]), most)
        tail = next((n for n in range(most - lead) if male[-n - 1] != female[-n - 1]), most - lead)
        begin = len(" ".join([*male[:lead], ""]))
        end = len(" ".join(["", *male[len(male) - tail :]]))
        return (begin, len(self.male) - end), (begin, len(self.female) - end)

    def form(self, *, as_object: bool) -> PersonPair:
        """The pair as an object: him and her; nouns have one form for both.

        >>> PersonPair("he", "she").form(as_object=True).name
        'him/her'
        """
        if not as_object:
            return self
        return PersonPair(
            _OBJECTS.get(self.male, self.male), _OBJECTS.get(self.female, self.female)
        )


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with the slots {person} or {person:object}, and {profession}."""

    text: str
    kind: str = ""


@dataclass(frozen=True, slots=True)
class TemplateSet:
    """Templates, and the pairs of persons that go into each."""

    templates: tuple[Template, ...]
    persons: tuple[PersonPair, ...]


@cache
def professions() -> tuple[Profession, ...]:
    """The built-in professions.

    >>> [p for p in professions() if p.name == "nurse"]
    [Profession(name='nurse', group='female', women=88.0)]
    """
    return _from_csv(data("professions.csv"))


def read_professions(path: str | os.PathLike[str]) -> tuple[Profession, ...]:
    """Professions of the user's, one a line, or a CSV file with the column `profession`.

    Optional columns: `group` (male, female, balanced) and `women`, a percentage.
    """
    lines = _lines(path)
    header = [cell.strip() for cell in lines[0][1].split(",")]
    if "profession" in header:
        return _from_csv(Path(path))
    found = [(number, Profession(name)) for number, name in lines]
    return _distinct(str(path), found)


@cache
def template_set() -> TemplateSet:
    """The built-in templates and persons.

    >>> len(template_set().templates), template_set().persons[0].name
    (14, 'he/she')
    """
    return _from_toml(data("templates.toml"))


def read_templates(path: str | os.PathLike[str]) -> TemplateSet:
    """Templates of the user's: a TOML file laid out as ours, or text, one template a line.

    A file that names no persons takes our own pairs.
    """
    if Path(path).suffix.lower() == ".toml":
        return _from_toml(Path(path))
    found = []
    for number, line in _lines(path):
        if problem := _wrong_slots(line):
            raise LexiconError(path, problem, line=number)
        found.append(Template(line))
    return TemplateSet(tuple(found), template_set().persons)


def _from_csv(source: Path | Traversable) -> tuple[Profession, ...]:
    found = []
    for row in read_csv(source, ["profession"], ["group", "women"]):
        women = row.cells.get("women", "")
        try:
            share = float(women) if women else None
        except ValueError:
            share = -1.0
        if share is not None and not 0 <= share <= 100:
            raise row.error(f"women: expected a percentage from 0 to 100, got '{women}'")
        group = row.choice("group", (*GROUPS, ""), "") or None
        found.append((row.line, Profession(row.cells["profession"], group, share)))
    return _distinct(str(source), found)


def _distinct(path: str, found: Iterable[tuple[int, Profession]]) -> tuple[Profession, ...]:
    known: dict[str, tuple[int, Profession]] = {}
    for line, profession in found:
        if not profession.name or _SLOTS.search(profession.name):
            raise LexiconError(path, f"expected a profession, got '{profession.name}'", line=line)
        if profession.name in known:
            first = known[profession.name][0]
            raise LexiconError(path, f"'{profession.name}' stands on line {first} too", line=line)
        known[profession.name] = (line, profession)
    return tuple(profession for _, profession in known.values())


def _from_toml(source: Path | Traversable) -> TemplateSet:
    keys = read_toml(source).table(["template"], ["persons", "provenance"])
    found = []
    for node in keys["template"].rows():
        row = node.table(["text"], ["kind"])
        text = row["text"].text()
        if problem := _wrong_slots(text):
            raise row["text"].error(problem)
        found.append(Template(text, row["kind"].word() if "kind" in row else ""))
    persons = _persons(keys["persons"]) if "persons" in keys else template_set().persons
    return TemplateSet(tuple(found), persons)


def _persons(node: Node) -> tuple[PersonPair, ...]:
    pairs = []
    for text in node.words():
        try:
            pairs.append(PersonPair.parse(text))
        except InputError as problem:
            raise node.error(str(problem)) from None
    return tuple(pairs)


def _wrong_slots(text: str) -> str:
    """What is wrong with the slots of a template, "" if nothing is."""
    slots = _SLOTS.findall(text)
    persons: Sequence[str] = [slot for slot in slots if slot in ("person", "person:object")]
    if len(persons) == 1 and slots.count("profession") == 1 and len(slots) == 2:
        return ""
    return (
        "expected {person} or {person:object} once and {profession} once, "
        f"got '{text if len(text) <= 60 else text[:60] + '…'}'"
    )


def _lines(path: str | os.PathLike[str]) -> list[tuple[int, str]]:
    """The lines of a text file that say something, numbered; # begins a comment."""
    try:
        text = Path(path).read_text("utf-8-sig")
    except OSError as problem:
        raise LexiconError(path, f"cannot be read: {problem.strerror}") from None
    except UnicodeDecodeError:
        raise LexiconError(path, "not UTF-8 text") from None
    lines = [(number, line.strip()) for number, line in enumerate(text.splitlines(), 1)]
    said = [(number, line) for number, line in lines if line and not line.startswith("#")]
    if not said:
        raise LexiconError(path, "expected at least one line, got none")
    return said
