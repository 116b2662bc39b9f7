"""The sentences of the profession test: every template with every profession and person.

They are filled from templates, or read from a table in the layout of BEC-Pro (Bartl, Nissim & Gatt
2020). Of that table only the sentence is used. Its masked columns have one `[MASK]` per word of the
profession, not one per piece, and 23 rows of the published file mask more than they should
("lodging [MASK]ager", the "of" before "director of religious activities"): the positions of person
and profession are found in the sentence itself.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass

from evenhand.errors import FileError, InputError
from evenhand.lexicon import pairs as lexicon_pairs
from evenhand.lexicon.professions import (
    GROUPS,
    PersonPair,
    Profession,
    Template,
    TemplateSet,
    professions,
    template_set,
)
from evenhand.masked.words import Span
from evenhand.text.rewrite.neutralize import article_edit

__all__ = ["Design", "Sentence", "design", "fill", "read_becpro"]

COLUMNS = ("Sentence", "Template", "Person", "Gender", "Profession", "Prof_Gender")

_Key = tuple[str, str, str, int]
"""Template, profession, person word in lower case, gender (0 a man)."""
_SLOT = re.compile(r"\{(person|person:object|profession)\}")


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with the character spans of the person word and of the profession."""

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


def read_becpro(path: str | os.PathLike[str]) -> tuple[Design, tuple[str, ...]]:
    """The design of a BEC-Pro TSV file, and the professions left out for want of some sentences.

    Male and female person words are paired by the lexicon, others in the order of the file.
    """
    sentences: dict[_Key, Sentence] = {}
    groups: dict[str, str] = {}
    for line, row in _rows(path):
        gender = _choice(path, line, row, "Gender", ("male", "female"))
        group = _choice(path, line, row, "Prof_Gender", GROUPS)
        if groups.setdefault(row["Profession"], group) != group:
            raise FileError(path, f"'{row['Profession']}' has two values of Prof_Gender", line=line)
        key = (row["Template"], row["Profession"], row["Person"].lower(), int(gender == "female"))
        if key in sentences:
            raise FileError(path, "template, person and profession are repeated", line=line)
        sentences[key] = _located(path, line, row)
    templates = tuple(dict.fromkeys(key[0] for key in sentences))
    pairs = _paired(
        path, [dict.fromkeys(key[2] for key in sentences if key[3] == g) for g in (0, 1)]
    )
    complete = [
        name
        for name in groups
        if all(
            (t, name, word, g) in sentences
            for t in templates
            for p in pairs
            for g, word in enumerate((p.male, p.female))
        )
    ]
    if not complete:
        raise FileError(path, "expected every template with every person and profession, got gaps")
    result = Design(
        tuple(Template(text) for text in templates),
        tuple(Profession(name, groups[name]) for name in complete),
        pairs,
        tuple(
            sentences[t, name, word, gender]
            for t in templates
            for name in complete
            for pair in pairs
            for gender, word in enumerate((pair.male, pair.female))
        ),
    )
    return result, tuple(name for name in groups if name not in complete)


def _rows(path: str | os.PathLike[str]) -> Sequence[tuple[int, Mapping[str, str]]]:
    from evenhand.text.corpus.compression import open_content, text_lines

    name = os.fspath(path)
    try:
        with open_content(name) as file:
            lines = (line for _, line in text_lines(name, file))
            reader = csv.DictReader(lines, delimiter="\t", strict=True)
            rows = [(reader.line_num, row) for row in reader]
    except OSError as problem:
        raise FileError(path, f"cannot be read: {problem.strerror}") from None
    except csv.Error as problem:
        raise FileError(path, f"not a table with tabs: {problem}") from None
    missing = [name for name in COLUMNS if name not in (reader.fieldnames or ())]
    if missing:
        raise FileError(
            path,
            f"expected a table with tabs and the columns {', '.join(COLUMNS)}; "
            f"{', '.join(missing)} missing",
            line=1,
        )
    if not rows:
        raise FileError(path, "expected rows, got none")
    for line, row in rows:
        for name in COLUMNS:
            if not (row[name] or "").strip():
                raise FileError(path, f"{name}: expected a text, got none", line=line)
    return rows


def _choice(
    path: str | os.PathLike[str],
    line: int,
    row: Mapping[str, str],
    name: str,
    allowed: tuple[str, ...],
) -> str:
    if row[name] not in allowed:
        known = ", ".join(allowed)
        raise FileError(path, f"{name}: expected one of {known}, got '{row[name]}'", line=line)
    return row[name]


def _located(path: str | os.PathLike[str], line: int, row: Mapping[str, str]) -> Sentence:
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
            raise FileError(path, f"'{word}' is {many} in '{text}'", line=line)
        return spans[0]

    return Sentence(text, span("person", row["Person"]), span("profession", row["Profession"]))


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
