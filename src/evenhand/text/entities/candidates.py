"""Candidates: the words of a run that may be a name, with what stands around them."""

from __future__ import annotations

import re
from dataclasses import dataclass

from evenhand.lexicon.persons import persons
from evenhand.text.entities.capitalised import (
    COMMON,
    GIVEN,
    HEAD,
    INITIAL,
    PARTICLE,
    PREFIX,
    PROPER,
    RANK,
    SUFFIX,
    SURNAME,
    TITLE,
    Token,
)
from evenhand.text.tokens import protected

__all__ = ["Candidate", "cut"]

NEXT = re.compile(r"(?:(['’]s?)(?!\w))?(,? )?([a-z]+)?")
QUOTES = '"“”'
OPENERS = " \"“‘'([*\t_"
ENDERS = ".!?:\n…—–"


@dataclass(slots=True)
class Candidate:
    """Words of a run that may be a name, and what stands around them."""

    tokens: list[Token]
    title: int  # TITLE, RANK or 0
    before: str  # the lower-case word before, "" at the beginning of a sentence
    comma: bool  # a comma stands between that word and the name
    opening: bool  # first in its sentence (its capital says nothing)
    after: str  # the lower-case word behind, "" where the run goes on or punctuation stands
    possessive: bool
    led: bool  # an ordinary capitalised word stands directly before, not first in its sentence
    quoted: bool  # alone in quotation marks, as titles of works are
    closed: bool  # another capitalised word follows directly
    caps: bool  # in a line of capitals
    verdict: bool | None = None


def _is_opening(text: str, start: int) -> bool:
    position = start - 1
    while position >= 0 and text[position] in OPENERS:
        position -= 1
    return position < 0 or text[position] in ENDERS or text[start - 1] in '"“‘'


def _nameable(kind: int) -> bool:
    """Whether a word may be part of a name without further proof."""
    return not kind & (HEAD | SUFFIX | PREFIX | TITLE) and (
        not kind or bool(kind & (GIVEN | SURNAME | INITIAL))
    )


def _stretch(run: list[Token], begin: int, title: int) -> int:
    """Where the name that begins at run[begin] ends in its run."""
    end = begin + 1
    first = run[begin].kind
    while end < len(run):
        kind = run[end].kind
        if kind & PARTICLE:
            after = end
            while after < len(run) and run[after].kind & PARTICLE:
                after += 1
            if not _nameable(run[after].kind) and not run[after].kind & PROPER:
                break
            end = after + 1
            continue
        last = end + 1 == len(run) or bool(run[end + 1].kind & SUFFIX)
        known = title or (first & GIVEN and not first & (COMMON | PROPER)) or first & INITIAL
        bare = not any(token.kind & SURNAME for token in run[begin + 1 : end])
        odd = not kind & (HEAD | SUFFIX | TITLE | RANK | PREFIX)
        if not (_nameable(kind) or (last and known and bare and odd)):
            break
        end += 1
    while end > begin + 1 and run[end - 1].kind & INITIAL:
        end -= 1
    return end


def _in_capitals(run: list[Token]) -> bool:
    """Whether a run is a line in capitals, where the case of a word says nothing."""
    return (
        len(run) > 1
        and run[0].word.isupper()
        and all(token.word.isupper() for token in run)
        and any(token.kind & COMMON for token in run)
    )


def cut(text: str, run: list[Token]) -> list[Candidate]:
    """The candidates of one run of capitalised words, not yet judged but for the hopeless."""
    found: list[Candidate] = []
    words = persons()
    caps = _in_capitals(run)
    opening = _is_opening(text, run[0].start)
    position = 0
    while position < len(run):
        begin, title = position, 0
        while position + 1 < len(run) and run[position].kind & (TITLE | RANK):
            title |= run[position].kind & (TITLE | RANK)
            position += 1
        token = run[position]
        article = token.word.lower() in words.particles and position + 1 < len(run)
        led = article and not token.kind & GIVEN and _nameable(run[position + 1].kind)
        if not led and not (title & TITLE and not token.kind & (HEAD | PARTICLE)):
            if token.kind & PREFIX:
                position += 2
                continue
            if not _nameable(token.kind):
                position += 1
                continue
        end = _stretch(run, position, title)
        found.append(_candidate(text, run, begin, position, end, title, opening, caps))
        position = end
    return found


def _word_before(text: str, start: int) -> tuple[str, bool]:
    """The word before a place in the text, and whether a comma stands between."""
    end = start - 1
    if end < 1 or text[end] not in " \u00a0":
        return "", False
    comma = text[end - 1] == ","
    end -= comma
    word = text[text.rfind(" ", max(0, end - 24), end) + 1 : end].lstrip(OPENERS)
    return (word, comma) if word[-1:].isalnum() else ("", False)


def _candidate(
    text: str,
    run: list[Token],
    begin: int,
    first: int,
    end: int,
    title: int,
    opening: bool,
    caps: bool,
) -> Candidate:
    tokens = run[first:end]
    before, comma = "", False
    if begin:
        before = run[begin - 1].word.lower()
    elif not opening:
        before, comma = _word_before(text, run[0].start)
    closed = end < len(run) and not run[end].kind & SUFFIX
    stop = tokens[-1].end
    behind = NEXT.match(text, stop)
    after, possessive = "", False
    if behind and not closed:
        possessive, after = bool(behind.group(1)), behind.group(3) or ""
        if after and not behind.group(2):
            after = ""
    led = begin > 1 or (begin == 1 and not opening)
    quoted = (
        tokens[0].start > 0
        and text[tokens[0].start - 1] in QUOTES
        and text[stop : stop + 1] in QUOTES
    )
    place = Candidate(
        tokens,
        title,
        before,
        comma,
        opening and not begin,
        after,
        possessive,
        led,
        quoted,
        closed,
        caps,
    )
    headed = closed and not title & TITLE and any(token.kind & HEAD for token in run[end:])
    negated = text.startswith(("'t", "’t"), stop)  # "Don't"
    if headed or negated or protected(text, tokens[0].start, stop):
        place.verdict = False
    return place
