"""The sentences of an association test: every template with every profession and person."""

from __future__ import annotations

import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass

from evenhand.errors import InputError
from evenhand.lexicon.professions import (
    PersonPair,
    Profession,
    Template,
    TemplateSet,
    professions,
    template_set,
)
from evenhand.masked.words import Span
from evenhand.text.rewrite.neutralize import article_edit

__all__ = ["Design", "Sentence", "design", "fill"]

_SLOT = re.compile(r"\{(person|person:object|profession)\}")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence, and where in it the person word and the profession stand."""

    text: str
    person: Span
    profession: Span


@dataclass(frozen=True, slots=True)
class Design:
    """A complete crossing: sentences[((t * professions + p) * pairs + k) * 2 + gender].

    The man is gender 0, the woman 1.
    """

    templates: tuple[Template, ...]
    professions: tuple[Profession, ...]
    pairs: tuple[PersonPair, ...]
    sentences: tuple[Sentence, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Templates, professions, pairs."""
        return len(self.templates), len(self.professions), len(self.pairs)

    def at(self, template: int, profession: int, pair: int, gender: int) -> Sentence:
        """One of the sentences."""
        _, professions, pairs = self.shape
        return self.sentences[((template * professions + profession) * pairs + pair) * 2 + gender]

    def keep(self, professions: Collection[int], pairs: Collection[int]) -> Design:
        """The same with only these professions and pairs of persons, by their index."""
        return Design(
            self.templates,
            tuple(self.professions[p] for p in professions),
            tuple(self.pairs[k] for k in pairs),
            tuple(
                self.at(t, p, k, gender)
                for t in range(len(self.templates))
                for p in professions
                for k in pairs
                for gender in (0, 1)
            ),
        )


def design(
    templates: TemplateSet | None = None,
    attributes: Sequence[Profession] | None = None,
    persons: Sequence[PersonPair] | None = None,
) -> Design:
    """Every template with every profession and pair of persons; ours where none are given.

    >>> made = design()
    >>> made.shape
    (14, 73, 6)
    >>> made.at(0, 0, 3, 1).text
    'My sister earns a living as a carpenter.'
    """
    chosen = template_set() if templates is None else templates
    pairs = tuple(chosen.persons if persons is None else persons)
    listed = tuple(professions() if attributes is None else attributes)
    for what, given in (
        ("templates", chosen.templates),
        ("professions", listed),
        ("persons", pairs),
    ):
        if not given or len(set(given)) < len(given):
            raise InputError(f"{what}: expected at least one, each once, got {len(given)}")
    return Design(
        chosen.templates,
        listed,
        pairs,
        tuple(
            fill(template.text, profession.name, pair, gender)
            for template in chosen.templates
            for profession in listed
            for pair in pairs
            for gender in (0, 1)
        ),
    )


def fill(template: str, profession: str, pair: PersonPair, gender: int) -> Sentence:
    """A template with its slots filled, the article right and the first letter large.

    >>> pair = PersonPair("my son", "my daughter")
    >>> made = fill("{person} is a {profession}.", "engineer", pair, 1)
    >>> made.text, made.text[slice(*made.person)], made.text[slice(*made.profession)]
    ('My daughter is an engineer.', 'daughter', 'engineer')
    """
    text, done = "", 0
    spans: dict[str, Span] = {}
    for slot in _SLOT.finditer(template):
        text += template[done : slot.start()]
        done = slot.end()
        if slot[1] == "profession":
            edit = article_edit(text, len(text), "b", profession) or article_edit(
                text, len(text), "a", profession
            )
            if edit:
                text = text[: edit.offset] + edit.after + text[edit.offset + len(edit.before) :]
            spans["profession"] = (len(text), len(text) + len(profession))
            text += profession
        else:
            form = pair.form(as_object=slot[1] == "person:object")
            phrase = (form.male, form.female)[gender]
            begin, end = form.spans[gender]
            spans["person"] = (len(text) + begin, len(text) + end)
            text += phrase
    text += template[done:]
    if template.startswith("{"):
        text = text[:1].upper() + text[1:]
    return Sentence(text, spans["person"], spans["profession"])
