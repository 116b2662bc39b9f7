"""Gendered words: pairs that a swap exchanges, their neutral forms, and what states a sex.

The lists were written for Evenhand; published ones served to look for gaps, and the tests say what
of those is left out and why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from importlib.resources.abc import Traversable
from pathlib import Path

from evenhand.lexicon.reading import Row, data, read_csv, read_toml

__all__ = [
    "NeutralForm",
    "Pair",
    "kept_phrases",
    "neutral_forms",
    "pairs",
    "read_pairs",
    "sex_indicators",
]

POS = ("pronoun", "noun", "adjective", "title")
NUMBERS = ("singular", "plural", "any")
DIRECTIONS = ("both", "female-to-male", "male-to-female")
CASES = ("any", "lower", "capital")
PERSONS = ("pronoun", "title", "family", "person", "role", "royalty", "religion", "fiction")
KINDS = (*PERSONS, "animal", "body")
NEUTRAL_KINDS = ("pronoun", "title", "role", "family", "person")
WORD = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """A word for women and its dual for men, both in lower case.

    `direction` says which way a swap may go: `actress` becomes `actor`, but an `actor` may be a
    woman, so that pair goes female-to-male. A `safe` swap is right in nearly all running text; the
    others (`count` and `countess`) are for whoever asks for them. `case` says how the word must be
    written to be meant: `capital`, the first letter only, for `Ms` (MS is a disease, ms a
    thousandth of a second), `lower` for `king` (King is often a surname). A pronoun that the other
    gender has two forms of stands in two rows.
    """

    female: str
    male: str
    pos: str = "noun"
    kind: str = "person"
    number: str = "any"
    direction: str = "both"
    safe: bool = True
    case: str = "any"
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeutralForm:
    """A gendered word and what to write where the gender should not show, both in lower case.

    `safe` and `case` mean what they mean for a `Pair`.
    """

    gendered: str
    neutral: str
    kind: str
    safe: bool
    case: str = "any"


@cache
def pairs() -> tuple[Pair, ...]:
    """The built-in pairs, pronouns first.

    >>> next(pair.male for pair in pairs() if pair.female == "daughter")
    'son'
    """
    return _read_pairs(data("pairs.csv"))


def read_pairs(path: str | os.PathLike[str]) -> tuple[Pair, ...]:
    """Pairs of the user's from a CSV file.

    The header names the columns `female` and `male` and, optional, `pos`, `kind`, `number`,
    `direction`, `safe` (yes or no), `case` and `note`. No word may be on both sides, nor swap to
    two words; pronouns may, for grammar decides between their forms.
    """
    return _read_pairs(Path(path))


@cache
def neutral_forms() -> tuple[NeutralForm, ...]:
    """The built-in neutral forms; each gendered word stands there once, `her` and `his` twice.

    >>> next(form.neutral for form in neutral_forms() if form.gendered == "stewardess")
    'flight attendant'
    """
    rows = read_csv(data("neutral.csv"), ["gendered", "neutral", "kind", "safe", "case"])
    return tuple(
        NeutralForm(
            gendered=_word(row, "gendered"),
            neutral=_word(row, "neutral"),
            kind=row.choice("kind", NEUTRAL_KINDS, "role"),
            safe=row.choice("safe", ("yes", "no"), "yes") == "yes",
            case=row.choice("case", CASES, "any"),
        )
        for row in rows
    )


@cache
def kept_phrases() -> tuple[str, ...]:
    """Fixed expressions whose gendered word states nobody's gender: a swap leaves them alone.

    >>> "mother tongue" in kept_phrases()
    True
    """
    lines = data("kept_phrases.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


@cache
def sex_indicators() -> frozenset[str]:
    """Pronouns and words that state the sex of a person, in lower case, singular and plural.

    A sentence with one of them besides its pronoun lets a model infer the pronoun's gender, and the
    structural filter leaves it out. They are the words of the safe pairs that denote persons,
    without the men's side of a pair that goes female-to-male only (an `actor` may be a woman) or
    the reverse, and the further words of `indicators.toml`.

    >>> {"she", "sister", "boys", "actress"} <= sex_indicators(), "actor" in sex_indicators()
    (True, False)
    """
    keys = read_toml(data("indicators.toml")).table(["provenance", "words"])
    found = {word for node in keys["words"].entries().values() for word in node.words()}
    for pair in pairs():
        if pair.safe and pair.kind in PERSONS:
            if pair.direction != "male-to-female":
                found.add(pair.female)
            if pair.direction != "female-to-male":
                found.add(pair.male)
    return frozenset(found)


def _read_pairs(source: Path | Traversable) -> tuple[Pair, ...]:
    optional = ["pos", "kind", "number", "direction", "safe", "case", "note"]
    rows = read_csv(source, ["female", "male"], optional)
    found = tuple(_pair(row) for row in rows)
    _check_pairs(zip(rows, found, strict=True))
    return found


def _pair(row: Row) -> Pair:
    return Pair(
        female=_word(row, "female"),
        male=_word(row, "male"),
        pos=row.choice("pos", POS, "noun"),
        kind=row.choice("kind", KINDS, "person"),
        number=row.choice("number", NUMBERS, "any"),
        direction=row.choice("direction", DIRECTIONS, "both"),
        safe=row.choice("safe", ("yes", "no"), "yes") == "yes",
        case=row.choice("case", CASES, "any"),
        note=row.cells.get("note", ""),
    )


def _word(row: Row, column: str) -> str:
    word = row.cells[column].lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if not WORD.fullmatch(word):
        raise row.error(
            f"{column}: expected letters, between them single blanks, hyphens or apostrophes, "
            f"got '{row.cells[column]}'"
        )
    return word


def _check_pairs(numbered: Iterable[tuple[Row, Pair]]) -> None:
    """A word is of one gender, and there is one word it swaps to."""
    sides: dict[str, tuple[str, int]] = {}
    duals: dict[str, tuple[str, int]] = {}
    for row, pair in numbered:
        for word, side in ((pair.female, "female"), (pair.male, "male")):
            known, line = sides.setdefault(word, (side, row.line))
            if known != side:
                raise row.error(f"'{word}' stands here as {side} and on line {line} as {known}")
        if pair.pos == "pronoun":
            continue
        for word, dual, barred in (
            (pair.female, pair.male, "male-to-female"),
            (pair.male, pair.female, "female-to-male"),
        ):
            if pair.direction == barred:
                continue
            known, line = duals.setdefault(word, (dual, row.line))
            if line != row.line:
                raise row.error(f"'{word}' swaps to '{dual}' here and to '{known}' on line {line}")
