"""Gendered pairs compiled for rewriting: what each written form of a word becomes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from functools import cache
from pathlib import Path

from evenhand.errors import InputError
from evenhand.lexicon import Pair, kept_phrases, pairs, read_pairs
from evenhand.lexicon.gendered import DIRECTIONS
from evenhand.text.tokens import WordIndex, match_case, words

__all__ = ["Pairing", "Phrase", "pairing", "phrase_after", "phrase_at"]

BY_GRAMMAR = frozenset({"her", "his"})


@dataclass(frozen=True, slots=True)
class Phrase:
    """A word of several parts ("ma'am"), met at its first part."""

    written: str
    after: str
    rule: str


@dataclass(frozen=True, slots=True)
class Pairing:
    """`forms` gives for a word as written what it becomes and by which rule; `opening` the same for
    plurals that take a capital only where they open a sentence ("Sons and daughters", but "Lehman
    Sons"); `phrases` the words of several parts by their first part; `index` finds the words where
    any of this may apply.
    """

    forms: dict[str, tuple[str, str]]
    opening: dict[str, tuple[str, str]]
    phrases: dict[str, tuple[Phrase, ...]]
    index: WordIndex
    grammar: frozenset[str]


def _arrows(pair: Pair, direction: str) -> Iterator[tuple[str, str]]:
    if direction != "male-to-female" and pair.direction != "male-to-female":
        yield pair.female, pair.male
    if direction != "female-to-male" and pair.direction != "female-to-male":
        yield pair.male, pair.female


def _written(pair: Pair, word: str, after: str) -> Iterator[tuple[str, str]]:
    """The ways in which a word is written where it is meant, and what each becomes."""
    if pair.case != "capital":
        yield word, after
    if pair.case != "lower":
        yield word[:1].upper() + word[1:], after[:1].upper() + after[1:]
    if pair.case == "any":
        yield word.upper(), after.upper()


def _parts(word: str) -> list[str]:
    found = words(word)
    return [word[s:e] for s, e in zip(found.starts, found.ends, strict=True)]


def _compile(chosen: Iterable[Pair], direction: str, kept: Iterable[str]) -> Pairing:
    forms: dict[str, tuple[str, str]] = {}
    opening: dict[str, tuple[str, str]] = {}
    phrases: dict[str, list[Phrase]] = {}
    grammar: set[str] = set()
    for phrase in kept:
        phrases.setdefault(_parts(phrase)[0], []).append(Phrase(phrase, phrase, "kept"))
    for pair in chosen:
        for word, after in _arrows(pair, direction):
            if pair.kind == "pronoun" and word in BY_GRAMMAR:
                grammar.add(word)
                continue
            parts = _parts(word)
            if len(parts) > 1:
                phrases.setdefault(parts[0], []).append(Phrase(word, after, pair.kind))
                continue
            for written, becomes in _written(pair, word, after):
                forms.setdefault(written, (becomes, pair.kind))
            if pair.case == "lower" and pair.number == "plural":
                opening.setdefault(word.capitalize(), (after.capitalize(), pair.kind))
    singles = {word.lower() for word in forms}
    ordered = {
        written: tuple(sorted(found, key=lambda phrase: -len(phrase.written)))
        for first, found in phrases.items()
        for written in (first, first.capitalize(), first.upper())
    }
    index = WordIndex(singles | set(phrases) | grammar)
    return Pairing(forms, opening, ordered, index, frozenset(grammar))


@cache
def pairing(
    direction: str = "both",
    kinds: tuple[str, ...] | None = None,
    unsafe: bool = False,
    own: str | None = None,
) -> Pairing:
    """The embedded pairs, or those of a file, compiled for one direction.

    `kinds` keeps only some kinds of words (pronoun, title, family, …); `unsafe` adds the pairs
    whose swap is wrong in much running text (count and countess, master and mistress).

    >>> pairing().forms["Mother"]
    ('Father', 'family')
    """
    if direction not in DIRECTIONS:
        raise InputError(f"direction: expected one of {', '.join(DIRECTIONS)}, got {direction!r}")
    every = read_pairs(Path(own)) if own is not None else pairs()
    known = {pair.kind for pair in every}
    unknown = [kind for kind in kinds or () if kind not in known]
    if unknown:
        raise InputError(
            f"kinds: expected some of {', '.join(sorted(known))}, got {', '.join(unknown)!r}"
        )
    chosen = [p for p in every if (p.safe or unsafe) and (kinds is None or p.kind in kinds)]
    nouns = any(pair.kind != "pronoun" for pair in chosen)
    return _compile(chosen, direction, kept_phrases() if nouns and own is None else ())


def phrase_at(text: str, start: int, phrases: tuple[Phrase, ...]) -> tuple[str, Phrase] | None:
    """The longest of the phrases that begins at `start`, as written there."""
    for phrase in phrases:
        stop = start + len(phrase.written)
        written = text[start:stop]
        if written.lower().replace("’", "'") == phrase.written:
            following = text[stop : stop + 1]
            if not (following.isalnum() or following == "_"):
                return written, phrase
    return None


def phrase_after(written: str, phrase: Phrase) -> str:
    """What a phrase becomes, in the case and with the apostrophe of what was written."""
    after = match_case(written, phrase.after)
    return after.replace("'", "’") if "’" in written else after
