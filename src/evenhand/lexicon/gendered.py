"""Gendered words: pairs that a swap exchanges, neutral forms, and words that state a sex.

The lists were written for Evenhand and compared with published ones; the tests state which words of
those are left out and why.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Annotated, Literal, get_args

from pydantic import PlainValidator

from evenhand.errors import LexiconError
from evenhand.lexicon.schema import STRICT, Source, YesNo, built_in, data, fail, read_csv

Direction = Literal["both", "female-to-male", "male-to-female"]
Case = Literal["any", "lower", "capital"]
DIRECTIONS: tuple[str, ...] = get_args(Direction)
PERSONS = ("pronoun", "title", "family", "person", "role", "royalty", "religion", "fiction")
"""Kinds of pairs that denote persons."""
WORD = re.compile(r"[^\W\d_]+(?:[ '-][^\W\d_]+)*")


def _check_word(cell: object) -> str:
    word = str(cell).lower().replace("\N{RIGHT SINGLE QUOTATION MARK}", "'")
    if not WORD.fullmatch(word):
        raise fail(
            f"expected letters, between them single blanks, hyphens or apostrophes, got '{cell}'"
        )
    return word


LowerWord = Annotated[str, PlainValidator(_check_word)]


@dataclass(frozen=True, slots=True, kw_only=True)
class GenderedPair:
    """A word for women and its counterpart for men, both in lower case.

    Attributes
    ----------
    female, male : str
    pos, kind, number : str
    direction : str
        Permitted direction of a swap: `actress` becomes `actor`, but an `actor` may be a woman, so
        that pair is female-to-male.
    safe : bool
        Whether the swap is right in nearly all running text, unlike `count` and `countess`.
    case : str
        Spelling in which the word has this meaning: `capital` for `Ms` (MS is a disease, ms a
        millisecond), `lower` for `king` (King is often a surname).
    note : str

    Notes
    -----
    A pronoun with two counterparts has two rows.
    """

    __pydantic_config__ = STRICT
    female: LowerWord
    male: LowerWord
    pos: Literal["pronoun", "noun", "adjective", "title"] = "noun"
    kind: Literal[
        "pronoun",
        "title",
        "family",
        "person",
        "role",
        "royalty",
        "religion",
        "fiction",
        "animal",
        "body",
    ] = "person"
    number: Literal["singular", "plural", "any"] = "any"
    direction: Direction = "both"
    safe: YesNo = True
    case: Case = "any"
    note: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class NeutralForm:
    """A gendered word and its neutral form in lower case; `safe` and `case`: see `GenderedPair`.

    `behind` is the word that must stand before, where only then the words have this meaning: "the
    man in the street" is anybody, "a man in the street" is a man.
    """

    __pydantic_config__ = STRICT
    gendered: LowerWord
    neutral: LowerWord
    kind: Literal["pronoun", "title", "role", "family", "person"] = "role"
    safe: YesNo = True
    case: Case = "any"
    behind: str = ""


@cache
def pairs() -> tuple[GenderedPair, ...]:
    """Return the built-in pairs, pronouns first.

    >>> next(pair.male for pair in pairs() if pair.female == "daughter")
    'son'
    """
    return _read_pairs(data("pairs.csv"))


def read_pairs(path: str | os.PathLike[str]) -> tuple[GenderedPair, ...]:
    """Read pairs from a CSV file.

    The columns are `female` and `male` and optionally `pos`, `kind`, `number`, `direction`, `safe`
    (yes or no), `case` and `note`. No word may be on both sides or have two counterparts, except
    pronouns, between whose forms grammar decides.
    """
    return _read_pairs(Path(path))


@cache
def neutral_forms() -> tuple[NeutralForm, ...]:
    """Return the built-in neutral forms; `her` and `his` have two, other words one.

    >>> next(form.neutral for form in neutral_forms() if form.gendered == "stewardess")
    'flight attendant'
    """
    return tuple(form for _, form in read_csv(data("neutral.csv"), NeutralForm))


@cache
def fixed_phrases() -> tuple[str, ...]:
    """Return fixed expressions whose gendered word states no gender, which a swap does not change.

    >>> "mother tongue" in fixed_phrases()
    True
    """
    lines = data("fixed_phrases.txt").read_text("utf-8").splitlines()
    return tuple(line for line in lines if not line.startswith("#"))


@cache
def sex_indicators() -> frozenset[str]:
    """Return words that state the sex of a person, in lower case, singular and plural.

    From such a word besides the pronoun a model could infer the gender of the pronoun, so the
    structural filter rejects the sentence. They are the words of the safe pairs that denote
    persons, except the male word of a female-to-male pair (an `actor` may be a woman) and the
    reverse, and the words of `indicators.toml`.

    >>> {"she", "sister", "boys", "actress"} <= sex_indicators(), "actor" in sex_indicators()
    (True, False)
    """
    lists = built_in("indicators.toml")["words"]
    indicators = {word for words in lists.values() for word in words}
    for pair in pairs():
        if pair.safe and pair.kind in PERSONS:
            if pair.direction != "male-to-female":
                indicators.add(pair.female)
            if pair.direction != "female-to-male":
                indicators.add(pair.male)
    return frozenset(indicators)


def _read_pairs(source: Source) -> tuple[GenderedPair, ...]:
    rows = read_csv(source, GenderedPair)
    _check_pairs(str(source), rows)
    return tuple(pair for _, pair in rows)


def _check_pairs(path: str, rows: Iterable[tuple[int, GenderedPair]]) -> None:
    """Raise unless every word has one gender and one counterpart."""
    sides: dict[str, tuple[str, int]] = {}
    duals: dict[str, tuple[str, int]] = {}
    for line, pair in rows:
        for word, side in ((pair.female, "female"), (pair.male, "male")):
            known, first = sides.setdefault(word, (side, line))
            if known != side:
                problem = f"'{word}' is {side} here and {known} on line {first}"
                raise LexiconError(path, problem, line=line)
        if pair.pos == "pronoun":
            continue
        for word, dual, barred in (
            (pair.female, pair.male, "male-to-female"),
            (pair.male, pair.female, "female-to-male"),
        ):
            if pair.direction == barred:
                continue
            known, first = duals.setdefault(word, (dual, line))
            if first != line:
                problem = f"'{word}' swaps to '{dual}' here and to '{known}' on line {first}"
                raise LexiconError(path, problem, line=line)
