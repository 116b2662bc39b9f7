"""Whether a candidate is a person, by what its words may be and by the words beside it."""

from __future__ import annotations

import re

from evenhand.lexicon.persons import persons
from evenhand.text.entities.candidates import Candidate
from evenhand.text.entities.capitalised import (
    COMMON,
    GIVEN,
    INITIAL,
    PARTICLE,
    PROPER,
    SURNAME,
    TITLE,
)

__all__ = ["BESIDES", "judge"]

AGE = re.compile(r", \d\d?\b|,? \(\d\d?\)|,? \([Bb]orn|,? \(b\.")
BORN = re.compile(r" (?:was|is|were) (?:born|educated|raised|married|survived|buried)\b")
BESIDES = frozenset({"the", "a", "an", "this", "these"})


def judge(text: str, c: Candidate) -> bool | None:
    """Whether a candidate is a person by itself, None where the document must tell."""
    words = persons()
    if c.before in BESIDES and not c.comma and not c.title & TITLE:
        return False if c.closed or c.after in words.thing_nouns or len(c.tokens) > 1 else None
    if c.after in words.thing_nouns:
        return False
    if c.title:
        return _titled(c)
    if all(token.kind & INITIAL for token in c.tokens):
        return False
    return _full(text, c) if len(c.tokens) > 1 else _single(text, c)


def _titled(c: Candidate) -> bool:
    first = c.tokens[0].kind
    if c.title & TITLE:
        return True
    return not first & (COMMON | PROPER) or bool(first & (GIVEN | SURNAME))


def _context(text: str, c: Candidate) -> bool:
    """Whether the words beside a candidate are those beside a person."""
    words = persons()
    if c.comma:
        return c.before in words.kin or c.after in words.speech_verbs
    return (
        c.after in words.speech_verbs
        or c.before in words.person_nouns
        or c.before in words.greetings
        or (c.before in words.speech_verbs and not c.closed)
        or AGE.match(text, c.tokens[-1].end) is not None
        or BORN.match(text, c.tokens[-1].end) is not None
    )


def _full(text: str, c: Candidate) -> bool | None:
    first = c.tokens[0].kind
    if first & INITIAL:
        return not first & PROPER
    if first & GIVEN and not first & (COMMON | PROPER):
        return True
    rest = [t.kind for t in c.tokens[1:] if not t.kind & (PARTICLE | INITIAL)]
    firm = all(not kind & (COMMON | PROPER) or kind & SURNAME for kind in rest)
    if first & GIVEN:
        return firm or None
    if not firm or c.caps or c.quoted:
        return None
    if _context(text, c):
        return True
    if c.tokens[0].word.lower() in persons().particles:
        return None
    return None if c.before in persons().place_words or c.closed or c.led else True


def _single(text: str, c: Candidate) -> bool | None:
    words = persons()
    kind = c.tokens[0].kind
    firm = kind & GIVEN and not kind & (COMMON | PROPER)
    if (c.closed and not c.caps) or ((c.led or c.quoted) and not firm):
        return None
    placed = c.before in words.place_words and not c.comma
    if not kind & (COMMON | PROPER):
        if kind & GIVEN:
            return None if placed else True
        if c.caps:
            return True if kind & SURNAME else None
        if _context(text, c):
            return True
        if kind & SURNAME or c.after in words.person_verbs:
            return None if placed else True
        return None
    if not kind & (GIVEN | SURNAME):
        return None
    if placed or c.caps:
        return None
    if kind & PROPER:
        fit = _context(text, c) and not c.closed and c.before not in ("for", "of", "to")
        return True if fit else None
    if not c.opening:
        return None if c.closed else True
    called = text[c.tokens[0].end : c.tokens[0].end + 1] in ("!", "?")
    acts = c.after in words.speech_verbs or c.after in words.person_verbs
    return True if called or acts or _context(text, c) else None
