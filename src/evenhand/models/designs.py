"""The sentences of the profession test: every template with every profession and person.

They are filled from templates, or read from a table in the layout of BEC-Pro (Bartl, Nissim & Gatt
2020). Of that table only the sentence is used. Its masked columns have one `[MASK]` per word of the
profession, not one per piece, and 23 rows of the published file mask more than they should
("lodging [MASK]ager", the "of" before "director of religious activities"): the positions of person
and profession are found in the sentence itself.
"""

from __future__ import annotations

import os
import re
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from itertools import product

from evenhand.errors import FileError, InputError
from evenhand.lexicon import pairs as lexicon_pairs
from evenhand.lexicon.templates import (
    GROUPS,
    PersonPair,
    Profession,
    Template,
    TemplateSet,
    professions,
    template_set,
)
from evenhand.models.words import Span
from evenhand.text.rewrite.neutralize import article_edit
from evenhand.text.tables import InputRow, Kind, read_records

COLUMNS: dict[str, Kind] = {
    **dict.fromkeys(("Sentence", "Template", "Person", "Profession"), str),
    "Gender": ("male", "female"),
    "Prof_Gender": GROUPS,
}

_Key = tuple[str, str, str, int]
"""Template, profession, person word in lower case, gender (0 a man)."""
_SLOT = re.compile(r"\{(person|person:object|profession)\}")


@dataclass(frozen=True, slots=True)
class DesignSentence:
    """A sentence with the character spans of the person word and of the profession."""

    text: str
    person: Span
    profession: Span


@dataclass(frozen=True, slots=True)
class ProfessionDesign:
    """A complete crossing: sentences[((t * professions + p) * pairs + k) * 2 + gender].

    The man is gender 0, the woman 1.
    """

    templates: tuple[Template, ...]
    professions: tuple[Profession, ...]
    pairs: tuple[PersonPair, ...]
    sentences: tuple[DesignSentence, ...]

    @property
    def shape(self) -> tuple[int, int, int]:
        """Templates, professions, pairs."""
        return len(self.templates), len(self.professions), len(self.pairs)

    def at(self, template: int, profession: int, pair: int, gender: int) -> DesignSentence:
        """One of the sentences."""
        _, professions, pairs = self.shape
        return self.sentences[((template * professions + profession) * pairs + pair) * 2 + gender]

    def keep(self, professions: Collection[int], pairs: Collection[int]) -> ProfessionDesign:
        """The same with only these professions and pairs of persons, by their index."""
        cells = product(range(len(self.templates)), professions, pairs, (0, 1))
        return ProfessionDesign(
            self.templates,
            tuple(self.professions[p] for p in professions),
            tuple(self.pairs[k] for k in pairs),
            tuple(self.at(*cell) for cell in cells),
        )


def design(
    templates: TemplateSet | None = None,
    attributes: Sequence[Profession] | None = None,
    persons: Sequence[PersonPair] | None = None,
) -> ProfessionDesign:
    """Every template with every profession and pair of persons; the default is the built-in ones.

    >>> built_in = design()
    >>> built_in.shape
    (14, 73, 6)
    >>> built_in.at(0, 0, 3, 1).text
    'My sister earns a living as a carpenter.'
    """
    chosen = template_set() if templates is None else templates
    pairs = tuple(chosen.persons if persons is None else persons)
    listed = tuple(professions() if attributes is None else attributes)
    everything: dict[str, Sequence[object]] = {
        "templates": chosen.templates,
        "professions": listed,
        "persons": pairs,
    }
    for what, given in everything.items():
        if not given or len(set(given)) < len(given):
            raise InputError(f"{what}: expected at least one, each once, got {len(given)}")
    cells = product(chosen.templates, listed, pairs, (0, 1))
    filled = tuple(fill(t.text, p.name, pair, gender) for t, p, pair, gender in cells)
    return ProfessionDesign(chosen.templates, listed, pairs, filled)


def fill(template: str, profession: str, pair: PersonPair, gender: int) -> DesignSentence:
    """A template with its slots filled, the article adapted and the first letter capitalised.

    >>> pair = PersonPair("my son", "my daughter")
    >>> filled = fill("{person} is a {profession}.", "engineer", pair, 1)
    >>> filled.text, filled.text[slice(*filled.person)], filled.text[slice(*filled.profession)]
    ('My daughter is an engineer.', 'daughter', 'engineer')
    """
    text, done = "", 0
    spans: dict[str, Span] = {}
    for slot in _SLOT.finditer(template):
        text += template[done : slot.start()]
        done = slot.end()
        if slot[1] == "profession":
            edits = (article_edit(text, len(text), start, profession) for start in "ba")
            if edit := next(filter(None, edits), None):
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
    return DesignSentence(text, spans["person"], spans["profession"])


def read_becpro(path: str | os.PathLike[str]) -> tuple[ProfessionDesign, tuple[str, ...]]:
    """The design of a BEC-Pro TSV file, and the professions left out for want of some sentences.

    Male and female person words are paired by the lexicon, others in the order of the file.
    """
    sentences: dict[_Key, DesignSentence] = {}
    groups: dict[str, str] = {}
    for row in read_records(path, "rows of BEC-Pro", COLUMNS):
        group = row["Prof_Gender"]
        if groups.setdefault(row["Profession"], group) != group:
            raise row.error(f"'{row['Profession']}' has two values of Prof_Gender")
        female = int(row["Gender"] == "female")
        key = (row["Template"], row["Profession"], row["Person"].lower(), female)
        if key in sentences:
            raise row.error("template, person and profession are repeated")
        sentences[key] = _located(row)
    templates = tuple(dict.fromkeys(key[0] for key in sentences))
    pairs = _paired(
        path, [dict.fromkeys(key[2] for key in sentences if key[3] == g) for g in (0, 1)]
    )
    words = [(word, gender) for p in pairs for gender, word in enumerate((p.male, p.female))]
    complete = [
        name
        for name in groups
        if all((t, name, *word) in sentences for t, word in product(templates, words))
    ]
    if not complete:
        raise FileError(path, "expected every template with every person and profession, got gaps")
    cells = product(templates, complete, words)
    result = ProfessionDesign(
        tuple(map(Template, templates)),
        tuple(Profession(name, groups[name]) for name in complete),
        pairs,
        tuple(sentences[t, name, word, gender] for t, name, (word, gender) in cells),
    )
    return result, tuple(name for name in groups if name not in complete)


def _located(row: InputRow) -> DesignSentence:
    """The spans of person and profession: inside their slots where the template fits."""
    text = row["Sentence"]
    slots = re.escape(row["Template"])
    for slot in ("person", "profession"):
        slots = re.sub(rf"<{slot}[^<>]*>", f"(?P<{slot}>.+)", slots, count=1)
    match = re.fullmatch(slots, text, re.IGNORECASE)
    slots_there = match.groupdict() if match else {}

    def span(slot: str, word: str) -> Span:
        begin, end = match.span(slot) if match and slot in slots_there else (0, len(text))
        pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
        spans = [each.span() for each in pattern.finditer(text, begin, end)]
        if len(spans) != 1:
            many = "more than once" if spans else "not"
            raise row.error(f"'{word}' is {many} in '{text}'")
        return spans[0]

    return DesignSentence(
        text, span("person", row["Person"]), span("profession", row["Profession"])
    )


def _paired(path: str | os.PathLike[str], words: list[dict[str, None]]) -> tuple[PersonPair, ...]:
    male, female = words
    if len(male) != len(female) or not male:
        raise FileError(
            path, f"expected as many male as female persons, got {len(male)} and {len(female)}"
        )
    known = {p.male: p.female for p in reversed(lexicon_pairs()) if p.direction == "both"}
    pairs = {man: known[man] for man in male if known.get(man) in female}
    left = iter([woman for woman in female if woman not in pairs.values()])
    return tuple(PersonPair(man, pairs[man] if man in pairs else next(left)) for man in male)
