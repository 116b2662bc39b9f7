"""BEC-Pro's table (Bartl, Nissim & Gatt, 2020) as a design, read as it is published.

Only the whole sentence is used. The masked columns have one `[MASK]` a word of the profession, not
one a piece, and 23 rows of the published file mask more than they should ("lodging [MASK]ager", the
"of" before "director of religious activities"): where person and profession stand is found anew.
"""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

from evenhand.errors import FileError
from evenhand.lexicon import pairs as lexicon_pairs
from evenhand.lexicon.professions import GROUPS, PersonPair, Profession, Template
from evenhand.masked.metrics.association_design import Design, Sentence
from evenhand.masked.words import Span

__all__ = ["read_becpro"]

COLUMNS = ("Sentence", "Template", "Person", "Gender", "Profession", "Prof_Gender")

_Key = tuple[str, str, str, int]
"""Template, profession, person word in lower case, gender (0 a man)."""


def read_becpro(path: str | os.PathLike[str]) -> tuple[Design, tuple[str, ...]]:
    """The design of a BEC-Pro TSV file, and the professions left out since sentences miss.

    Male and female person words are paired by the lexicon, those it does not know in the order of
    the file.
    """
    found: dict[_Key, Sentence] = {}
    groups: dict[str, str] = {}
    for line, row in _rows(path):
        gender = _choice(path, line, row, "Gender", ("male", "female"))
        group = _choice(path, line, row, "Prof_Gender", GROUPS)
        if groups.setdefault(row["Profession"], group) != group:
            raise FileError(path, f"'{row['Profession']}' has two values of Prof_Gender", line=line)
        key = (row["Template"], row["Profession"], row["Person"].lower(), int(gender == "female"))
        if key in found:
            raise FileError(path, "template, person and profession stood there before", line=line)
        found[key] = _located(path, line, row)
    templates = tuple(dict.fromkeys(key[0] for key in found))
    pairs = _paired(path, [dict.fromkeys(key[2] for key in found if key[3] == g) for g in (0, 1)])
    whole = [
        name for name in groups
        if all((t, name, word, g) in found for t in templates for p in pairs
               for g, word in enumerate((p.male, p.female)))
    ]  # fmt: skip
    if not whole:
        raise FileError(path, "expected every template with every person and profession, got gaps")
    made = Design(
        tuple(Template(text) for text in templates),
        tuple(Profession(name, groups[name]) for name in whole),
        pairs,
        tuple(
            found[t, name, word, gender]
            for t in templates
            for name in whole
            for pair in pairs
            for gender, word in enumerate((pair.male, pair.female))
        ),
    )
    return made, tuple(name for name in groups if name not in whole)


def _rows(path: str | os.PathLike[str]) -> Sequence[tuple[int, Mapping[str, str]]]:
    try:
        with Path(path).open(encoding="utf-8-sig", newline="") as file:
            reader = csv.DictReader(file, delimiter="\t", strict=True)
            rows = [(reader.line_num, row) for row in reader]
    except OSError as problem:
        raise FileError(path, f"cannot be read: {problem.strerror}") from None
    except (UnicodeDecodeError, csv.Error) as problem:
        raise FileError(path, f"not a table in UTF-8 with tabs: {problem}") from None
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
    """Where person and profession stand: inside their slots where the template fits."""
    text = row["Sentence"]
    slots = re.escape(row["Template"])
    for slot in ("person", "profession"):
        slots = re.sub(rf"<{slot}[^<>]*>", f"(?P<{slot}>.+)", slots, count=1)
    match = re.fullmatch(slots, text, re.IGNORECASE)
    whole = match.groupdict() if match else {}

    def span(slot: str, word: str) -> Span:
        begin, end = match.span(slot) if match and slot in whole else (0, len(text))
        pattern = re.compile(rf"(?<!\w){re.escape(word)}(?!\w)", re.IGNORECASE)
        places = [found.span() for found in pattern.finditer(text, begin, end)]
        if len(places) != 1:
            many = "more than once" if places else "not"
            raise FileError(path, f"'{word}' is {many} in '{text}'", line=line)
        return places[0]

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
