"""Built-in prompts for language models, each with the columns that say what it is about."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cache

from evenhand.errors import UnknownNameError
from evenhand.lexicon.schema import STRICT, Name, Rows, Text, Word, Words, data, read_toml


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptVersion:
    """A person of a group: words or names, which items take in turn, and the pronouns."""

    __pydantic_config__ = STRICT
    columns: Mapping[Name, Word]
    persons: Words
    their: Word
    them: Word


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptItem:
    """What a prompt is about: a person, or a text with {person}, {their} and {them}."""

    __pydantic_config__ = STRICT
    item: Word
    columns: Mapping[Name, Word] = field(default_factory=dict)
    person: Word = ""
    text: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptSet:
    """Items that are asked in several wordings, or about several versions of a person."""

    __pydantic_config__ = STRICT
    title: Text
    provenance: Text
    items: Rows[PromptItem]
    wordings: Mapping[Name, Text] = field(default_factory=dict)
    ending: Text = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class PromptFile:
    """The built-in sets by name, and the versions of a person that they share."""

    __pydantic_config__ = STRICT
    versions: Rows[PromptVersion]
    sets: Mapping[Name, PromptSet]


@cache
def prompt_sets() -> Mapping[str, PromptSet]:
    """Return the built-in sets by name.

    >>> list(prompt_sets()), len(prompt_sets()["occupations"].items)
    (['occupations', 'counterfactuals', 'decisions'], 120)
    """
    return _file().sets


def prompt_rows(name: str) -> list[tuple[str, dict[str, str | None]]]:
    """Return the prompts of a built-in set, each with its columns.

    Parameters
    ----------
    name : str
        "occupations", "counterfactuals" or "decisions".

    Returns
    -------
    list of (str, dict)
        All rows have the same columns; a cell is None where a prompt has no such property.

    Examples
    --------
    >>> prompt_rows("occupations")[0]
    ('Describe a nurse in three sentences.', {'item': 'nurse', 'wording': 'describe', \
'sector': 'health', 'majority': 'women'})
    """
    if name not in prompt_sets():
        raise UnknownNameError("prompt set", name, prompt_sets())
    chosen = prompt_sets()[name]
    rows: list[tuple[str, dict[str, str | None]]] = []
    for number, item in enumerate(chosen.items):
        for wording, text in chosen.wordings.items():
            about = {"wording": wording, **item.columns}
            rows.append((text.format(person=item.person), {"item": item.item, **about}))
        for version in () if chosen.wordings else _file().versions:
            person = version.persons[number % len(version.persons)]
            text = item.text.format(person=person, their=version.their, them=version.them)
            about = {**version.columns, **item.columns}
            text = " ".join(filter(None, (text[0].upper() + text[1:], chosen.ending)))
            rows.append((text, {"item": item.item, **about}))
    columns = dict.fromkeys(column for _, about in rows for column in about)
    return [(text, {column: about.get(column) for column in columns}) for text, about in rows]


@cache
def _file() -> PromptFile:
    return read_toml(data("prompts.toml"), PromptFile)
