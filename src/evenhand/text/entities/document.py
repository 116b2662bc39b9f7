"""The persons of a document: what was accepted anywhere in it decides what was left open.

"Obama" alone is a person where "Barack Obama" was one; an unknown word is one where it keeps
speaking, and where it is listed with persons.
"""

from __future__ import annotations

import re
from itertools import pairwise

from evenhand.lexicon.persons import persons
from evenhand.text.entities import Part, Person
from evenhand.text.entities.candidates import Candidate, cut
from evenhand.text.entities.capitalised import (
    COMMON,
    GIVEN,
    INITIAL,
    PARTICLE,
    PROPER,
    SURNAME,
    TITLE,
    kinds,
    runs,
)
from evenhand.text.entities.rules import BESIDES, judge

__all__ = ["find"]

PLACE_BEHIND = re.compile(r", [A-Z]")
LINK = re.compile(r"(?:['’]s)?(?:,? and |, | & |,? or )$")


def _recurring(candidates: list[Candidate]) -> None:
    """Accept an unknown word that keeps standing where persons stand, and never where places do."""
    words = persons()
    acts = words.person_verbs | words.speech_verbs
    seen: dict[str, list[Candidate]] = {}
    for c in candidates:
        if c.verdict is None and len(c.tokens) == 1 and not c.tokens[0].kind and not c.caps:
            seen.setdefault(c.tokens[0].word, []).append(c)
    for group in seen.values():
        if len(group) < 2 or any(
            c.led or c.closed or c.before in BESIDES or c.before in words.place_words for c in group
        ):
            continue
        good = sum(c.after in acts or (c.comma and not c.after) for c in group)
        if good >= 2 or (good and len(group) > 2):
            for c in group:
                c.verdict = True


def _remember(candidates: list[Candidate]) -> frozenset[str]:
    return frozenset(
        token.word.lower()
        for c in candidates
        if c.verdict
        for token in c.tokens
        if not token.kind & (INITIAL | PARTICLE)
    )


def _recall(text: str, c: Candidate, known: frozenset[str]) -> bool:
    """Whether a candidate left open is one of the document's persons."""
    words = persons()
    if not all(
        t.word.lower() in known
        or t.kind & (INITIAL | PARTICLE)
        or t.word.lower() in words.particles
        for t in c.tokens
    ):
        return False
    kind = c.tokens[-1].kind
    if (c.closed and not c.caps) or (
        c.before in BESIDES and c.after not in ("administration", "government")
    ):
        return False
    if kind & PROPER and (
        c.before in words.place_words or PLACE_BEHIND.match(text, c.tokens[-1].end)
    ):
        return False
    if kind & COMMON and c.opening:
        return (
            c.possessive
            or c.after in words.speech_verbs
            or c.after in words.person_verbs
            or c.after in words.plain_verbs
        )
    return True


def _linked(text: str, candidates: list[Candidate]) -> None:
    """Accept what is listed with a person: "Athos, Porthos and Aramis drew"."""
    for order in (candidates, candidates[::-1]):
        for one, other in pairwise(order):
            if one.verdict and other.verdict is None:
                left, right = (one, other) if order is candidates else (other, one)
                gap = text[left.tokens[-1].end : right.tokens[0].start]
                kind = other.tokens[0].kind
                free = not kind & PROPER and (not kind & COMMON or kind & GIVEN)
                if len(gap) < 9 and LINK.fullmatch(gap) and free and not other.caps:
                    other.verdict = True


def _parts(c: Candidate) -> Person:
    parts: list[Part] = []
    last = len(c.tokens) - 1
    for number, token in enumerate(c.tokens):
        if token.kind & PARTICLE:
            kind = "particle"
        elif token.kind & INITIAL:
            kind = "initial"
        elif number < last:
            kind = "given"
        else:
            kind = "given" if not last and token.kind & GIVEN and not c.title & TITLE else "surname"
        parts.append(Part(token.start, token.end, kind))
    return Person(tuple(parts))


def _decided(text: str, also: frozenset[str]) -> tuple[list[Candidate], frozenset[str]]:
    """The candidates of a document, and the words of those accepted."""
    candidates = [c for run in runs(text, also) for c in cut(text, run)]
    for candidate in candidates:
        if candidate.verdict is None:
            candidate.verdict = judge(text, candidate)
    _recurring(candidates)
    _linked(text, candidates)
    known = _remember(candidates)
    if known:
        for candidate in candidates:
            if candidate.verdict is None:
                candidate.verdict = _recall(text, candidate, known)
    return candidates, known


def find(text: str) -> list[Person]:
    """The persons named in one document, in order."""
    candidates, known = _decided(text, frozenset())
    # "Little" alone is an ordinary word until somebody of the document is called so
    odd = frozenset(w for w in known if kinds(w) and not kinds(w) & (GIVEN | SURNAME))
    if odd:
        candidates, _ = _decided(text, odd)
    return [_parts(c) for c in candidates if c.verdict]
