"""Professions and sentence templates for the association test: built in, or from files.

The groups of the built-in list follow the share of women among the employed in the United States:
`male` up to 30 %, `female` from 70 %, `balanced` from 35 to 65 %. The shares are approximate; a
share is given only if it lies within five points of the census microdata of 2012 (IPUMS, in the
table of 320 occupations that FiveThirtyEight published in 2014), otherwise only the group.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal

from pydantic import AfterValidator, PlainValidator

from evenhand.errors import InputError, LexiconError
from evenhand.lexicon.schema import (
    STRICT,
    Rows,
    Source,
    Text,
    Word,
    Words,
    data,
    fail,
    read_csv,
    read_lines,
    read_toml,
)

GROUPS = ("male", "female", "balanced")
"""Gender of the majority in a profession."""

_OBJECTS = {"he": "him", "she": "her"}
_SLOTS = re.compile(r"\{([^{}]*)\}")


@dataclass(frozen=True, slots=True)
class Profession:
    """A profession, the gender of its majority, and its percentage of women, where known."""

    name: str
    group: str | None = None
    women: float | None = None


@dataclass(frozen=True, slots=True)
class PersonPair:
    """A phrase for a man and its counterpart for a woman: he and she, my brother and my sister."""

    male: str
    female: str

    @property
    def name(self) -> str:
        return f"{self.male}/{self.female}"

    @classmethod
    def parse(cls, text: str) -> PersonPair:
        """Parse a pair written with a slash, the man first.

        >>> PersonPair.parse("my brother/my sister").words
        ('brother', 'sister')
        """
        male, _, female = (" ".join(part.split()) for part in text.partition("/"))
        pair = cls(male, female)
        if not male or not female or "/" in female or pair.words[0] == pair.words[1]:
            raise InputError(
                f"persons '{text}': expected MALE/FEMALE, two phrases that differ in one position, "
                "such as he/she or my brother/my sister"
            )
        return pair

    @property
    def words(self) -> tuple[str, str]:
        """The words in which the two differ, which the test masks."""
        (male, female), phrases = self.spans, (self.male, self.female)
        return phrases[0][slice(*male)], phrases[1][slice(*female)]

    @property
    def spans(self) -> tuple[tuple[int, int], tuple[int, int]]:
        """Positions of those words in the two phrases."""
        male, female = self.male.split(" "), self.female.split(" ")
        most = min(len(male), len(female)) - 1
        lead = next((n for n in range(most) if male[n] != female[n]), most)
        tail = next((n for n in range(most - lead) if male[-n - 1] != female[-n - 1]), most - lead)
        begin = len(" ".join([*male[:lead], ""]))
        end = len(" ".join(["", *male[len(male) - tail :]]))
        return (begin, len(self.male) - end), (begin, len(self.female) - end)

    def form(self, *, as_object: bool) -> PersonPair:
        """Return the pair as an object: him and her; nouns do not change.

        >>> PersonPair("he", "she").form(as_object=True).name
        'him/her'
        """
        if not as_object:
            return self
        return PersonPair(
            _OBJECTS.get(self.male, self.male), _OBJECTS.get(self.female, self.female)
        )


def _explain_slots(text: str) -> str:
    """Describe what is wrong with the slots of a template; empty if nothing is."""
    slots = _SLOTS.findall(text)
    persons = [slot for slot in slots if slot in ("person", "person:object")]
    if len(persons) == 1 and slots.count("profession") == 1 and len(slots) == 2:
        return ""
    return (
        "expected {person} or {person:object} once and {profession} once, "
        f"got '{text if len(text) <= 60 else text[:60] + '…'}'"
    )


def _check_slots(text: str) -> str:
    if problem := _explain_slots(text):
        raise fail(problem)
    return text


@dataclass(frozen=True, slots=True)
class Template:
    """A sentence with the slots {person} or {person:object}, and {profession}."""

    __pydantic_config__ = STRICT
    text: Annotated[Text, AfterValidator(_check_slots)]
    kind: Word = ""


@dataclass(frozen=True, slots=True)
class TemplateSet:
    """Templates and the pairs of persons to fill in."""

    templates: tuple[Template, ...]
    persons: tuple[PersonPair, ...]


@cache
def professions() -> tuple[Profession, ...]:
    """Return the built-in professions.

    >>> [p for p in professions() if p.name == "nurse"]
    [Profession(name='nurse', group='female', women=88.0)]
    """
    return _from_csv(data("professions.csv"))


def read_professions(path: str | os.PathLike[str]) -> tuple[Profession, ...]:
    """Read professions from a text file, one per line, or a CSV file with a column `profession`.

    A file whose name ends in .csv and that has several columns must have it. Optional columns:
    `group` (male, female, balanced) and `women`, a percentage.
    """
    lines = read_lines(Path(path))
    header = [cell.strip() for cell in lines[0][1].split(",")]
    if "profession" in header or (len(header) > 1 and Path(path).suffix.lower() == ".csv"):
        return _from_csv(Path(path))
    return _check_professions(str(path), [(line, Profession(name)) for line, name in lines])


@cache
def template_set() -> TemplateSet:
    """Return the built-in templates and persons.

    >>> len(template_set().templates), template_set().persons[0].name
    (14, 'he/she')
    """
    return _from_toml(data("templates.toml"))


def read_templates(path: str | os.PathLike[str]) -> TemplateSet:
    """Read templates from a TOML file of the built-in layout, or a text file, one per line.

    A file without persons uses the built-in pairs.
    """
    if Path(path).suffix.lower() == ".toml":
        return _from_toml(Path(path))
    lines = read_lines(Path(path))
    for number, line in lines:
        if problem := _explain_slots(line):
            raise LexiconError(path, problem, line=number)
    return TemplateSet(tuple(Template(line) for _, line in lines), template_set().persons)


def _check_share(cell: object) -> float:
    try:
        share = float(str(cell))
    except ValueError:
        share = -1.0
    if not 0 <= share <= 100:
        raise fail(f"expected a percentage from 0 to 100, got '{cell}'")
    return share


def _parse_persons(texts: tuple[str, ...]) -> tuple[str, ...]:
    for text in texts:
        try:
            PersonPair.parse(text)
        except InputError as problem:
            raise fail(str(problem)) from None
    return texts


@dataclass(frozen=True)
class _Row:
    profession: str
    group: Literal["male", "female", "balanced"] | None = None
    women: Annotated[float, PlainValidator(_check_share)] | None = None


@dataclass(frozen=True)
class _File:
    __pydantic_config__ = STRICT
    template: Rows[Template]
    persons: Annotated[Words, AfterValidator(_parse_persons)] = ()
    provenance: Text = ""


def _from_csv(source: Source) -> tuple[Profession, ...]:
    rows = [
        (line, Profession(row.profession, row.group, row.women))
        for line, row in read_csv(source, _Row)
    ]
    return _check_professions(str(source), rows)


LONGEST = 100
"""The most characters of a profession; a longer one is probably a text."""


def _check_professions(path: str, rows: Iterable[tuple[int, Profession]]) -> tuple[Profession, ...]:
    known: dict[str, tuple[int, Profession]] = {}
    for line, profession in rows:
        if not profession.name or _SLOTS.search(profession.name):
            raise LexiconError(path, f"expected a profession, got '{profession.name}'", line=line)
        if len(profession.name) > LONGEST:
            name = f"{profession.name[:40]}…"
            raise LexiconError(
                path,
                f"expected a profession of at most {LONGEST} characters, got '{name}'",
                line=line,
            )
        if profession.name in known:
            first = known[profession.name][0]
            raise LexiconError(path, f"'{profession.name}' is also on line {first}", line=line)
        known[profession.name] = (line, profession)
    return tuple(profession for _, profession in known.values())


def _from_toml(source: Source) -> TemplateSet:
    content = read_toml(source, _File)
    persons = tuple(PersonPair.parse(text) for text in content.persons)
    return TemplateSet(content.template, persons or template_set().persons)
