"""Persons named in a document, found by rules or by a spaCy pipeline.

The rules cut runs of capitalised words into candidates and judge each by what its words may be
(a first name, a surname, an ordinary word, a place) and by the words beside it. What was accepted
anywhere in a document decides what was left open: "Obama" alone is a person where "Barack Obama"
was one.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, lru_cache
from itertools import groupby, pairwise
from typing import NamedTuple

from evenhand.arguments import checked
from evenhand.errors import UnknownNameError
from evenhand.lexicon.first_names import counted_words, names, persons
from evenhand.text.external import load_pipeline
from evenhand.text.tokens import protected


class NamePart(NamedTuple):
    """One word of a name; `kind` is given, initial, particle or surname."""

    start: int
    end: int
    kind: str


@dataclass(frozen=True, slots=True)
class Person:
    """One mention of a person: the words of the name, without title, suffix and possessive 's."""

    parts: tuple[NamePart, ...]

    @property
    def start(self) -> int:
        """The start of the name in the document."""
        return self.parts[0].start

    @property
    def end(self) -> int:
        """The end of the name in the document."""
        return self.parts[-1].end


Finder = Callable[[str], list[Person]]
"""From a document to the mentions of persons in it, in order."""

GIVEN = 1  # a first name of the lexicon
SURNAME = 2
COMMON = 4  # an ordinary word, usually in lower case
PROPER = 8  # a place, a people, a month, a maker
HEAD = 16  # University, Street, Bank …
TITLE = 32  # Mr., Dr. …
RANK = 64  # President, Queen …
SUFFIX = 128  # Jr., III
PREFIX = 256  # St., Lake …
INITIAL = 512
PARTICLE = 1024

NAMES = GIVEN | SURNAME | INITIAL | TITLE
"""One of these, or a word of which nothing is known, must be in a run that names a person."""

RARE = 12_000
"""Births below which a name that is also an ordinary word or a place is not taken for a name."""

LONGEST = 24
"""Words of one name; a longer run of capitals is cut."""
LONGEST_WORD = 64
"""Characters of a word of a name."""

UPPER = "".join(c for c in map(chr, range(0x530)) if c.isupper())
DERIVED = re.compile(
    r"(?i)(?:ness|tions?|sions?|ity|ities|ments?|ings?|isms?|ly|ists?|ances?|ences?|ical|ous|ful|less"
    r"|able|ible|ology|graphy|ship|wards?|ally)$"
)
"""Endings of ordinary words."""
APOSTROPHES = "'’"
INSIDE = frozenset("_@#/\\&$+-")
"""A capital right after one of these does not begin a word."""


@cache
def pattern() -> re.Pattern[str]:
    """A finder of runs of capitalised words.

    It begins with a set of letters, which the engine searches much faster than anything else.
    """
    particles = "|".join(sorted(persons()["particles"], key=len, reverse=True))
    dotted = sorted((word.capitalize() for word in persons()["dotted"]), key=len)
    same_length = ("|".join(words) for _, words in groupby(dotted, key=len))
    stops = "|".join(rf"(?<=\b(?:{words})\.)" for words in same_length)
    plain = rf"\w*(?:[{APOSTROPHES}](?!(?:s|S|ll|d|re|ve|m|t)\b)\w+|-\w+)*(?:\.(?:{stops}))?"
    initials = rf"(?:-?[{UPPER}]\.){{0,{LONGEST}}}"
    token = rf"[{UPPER}](?:\.{initials}(?!\w)|{plain})"
    return re.compile(rf"{token}(?:[ \u00a0](?:(?:{particles})[ \u00a0])*(?:al-|el-)?{token})*")


class Token(NamedTuple):
    """A word of a run, its position in the document and what it may be (see `kinds`)."""

    word: str
    start: int
    end: int
    kind: int


@cache
def table() -> dict[str, int]:
    """The possible kinds of each known lower-case word, as a sum of flags."""
    lists, known = persons(), names()
    flags: dict[str, int] = {}
    for flag, group in (
        (SURNAME, counted_words("surnames")),
        (SURNAME, lists["surnames"]),
        (COMMON, counted_words("common_words")),
        (COMMON, lists["greetings"]),
        (PROPER, counted_words("proper_words")),
        (PROPER, lists["proper"]),
        (HEAD, lists["heads"]),
        (TITLE, lists["titles"]),
        (RANK, lists["ranks"]),
        (SUFFIX, lists["suffixes"]),
        (PREFIX, lists["place_prefixes"]),
        (INITIAL | PROPER, lists["abbreviations"]),
    ):
        for word in group:
            flags[word] = flags.get(word, 0) | flag
    for name in known.table:
        word = name.lower()
        if known.count(name) >= RARE or not flags.get(word, 0) & (COMMON | PROPER):
            flags[word] = flags.get(word, 0) | GIVEN
    for word in lists["never_names"]:
        flags[word] = flags.get(word, COMMON) & ~GIVEN
    return flags


def kinds(word: str) -> int:
    """What a capitalised word may be, 0 where nothing is known of it.

    >>> kinds("Elizabeth") == GIVEN, bool(kinds("Will") & COMMON), kinds("O'Brien") == SURNAME
    (True, True, True)
    """
    return _kinds(word) if len(word) <= LONGEST_WORD else PROPER


@cache
def known_names() -> frozenset[str]:
    """The first names of the lexicon that are looked for; the rest are words or places mostly."""
    return frozenset(name for name in names().table if kinds(name) & GIVEN)


@lru_cache(maxsize=65536)
def _kinds(word: str) -> int:
    known = table().get(word.lower().rstrip("."))
    return _guess(word) if known is None else known


def _guess(word: str) -> int:
    if word.endswith("."):
        return table().get(word.lower(), INITIAL)
    if any(character.isdigit() or character == "_" for character in word):
        return PROPER
    if "-" in word:
        return _hyphenated(word)
    if word[:2] in ("O'", "O’", "D'", "D’", "Mc") or word.startswith("Fitz"):
        return SURNAME
    if len(word) == 1:
        return INITIAL
    if word.isupper() and len(word) < 6:
        return PROPER
    return COMMON if DERIVED.search(word) else 0


def _hyphenated(word: str) -> int:
    parts = [part for part in word.split("-") if part]
    # "Jong-un" and "Yun-fat" are names, "London-based" is not
    if parts[1:] and parts[-1].islower() and len(parts[-1]) < 5:
        parts.pop()
    flags = [kinds(part) for part in parts]
    if not flags or any(f & (PROPER | COMMON) and not f & (GIVEN | SURNAME) for f in flags):
        return PROPER
    if all(f & GIVEN for f in flags):
        return GIVEN
    return SURNAME if any(f & SURNAME for f in flags) else 0


def runs(text: str, also: frozenset[str] = frozenset()) -> list[list[Token]]:
    """The runs of capitalised words of a document that may name a person, with their particles.

    Words standing alone that are known to be no names are left out, but for those in `also`.

    >>> found = runs("Yesterday Dr. Ana de la Cruz saw J. K. Rowling's agent.")
    >>> [[token.word for token in run] for run in found]
    [['Yesterday', 'Dr.', 'Ana', 'de', 'la', 'Cruz'], ['J.', 'K.', 'Rowling']]
    """
    found_runs: list[list[Token]] = []
    for match in pattern().finditer(text):
        base, written = match.start(), match.group()
        if " " not in written and "\u00a0" not in written:
            kind = kinds(written)
            if also and written.lower() in also:
                kind |= SURNAME
            if (not kind or kind & (GIVEN | SURNAME)) and _begins_word(text, base):
                found_runs.append([_with_article(text, Token(written, base, match.end(), kind))])
            continue
        tokens: list[Token] = []
        hopeful = False
        position = base
        for word in written.replace("\u00a0", " ").split(" "):
            kind = PARTICLE if word.islower() else kinds(word)
            if not kind or kind & NAMES:
                hopeful = True
            end = position + len(word)
            tokens.append(Token(word, position, end, kind))
            position = end + 1
        if hopeful:
            if not _begins_word(text, base):
                del tokens[0]
            else:
                tokens[0] = _with_article(text, tokens[0])
            found_runs.append(tokens)
    return found_runs


def _begins_word(text: str, start: int) -> bool:
    """Whether a word begins there, and not the rest of one ("iPhone", "#Mary", "anti-American")."""
    if not start:
        return True
    before = text[start - 1]
    if before == "-":  # a dash, or the hyphen of al-Assad
        return text[max(0, start - 2) : start - 1] in ("", " ", "-", "l")
    return not (before.isalnum() or before in INSIDE)


def _with_article(text: str, token: Token) -> Token:
    """The word with the Arabic article that stands before it in lower case: al-Assad."""
    begin = token.start - 3
    if begin >= 0 and text[begin : token.start] in ("al-", "el-"):
        return Token(text[begin : token.end], begin, token.end, token.kind)
    return token


BEHIND = re.compile(r"(?:(['’]s?)(?!\w))?(,? )?([a-z]+)?")
QUOTES = '"“”'
OPENERS = " \"“‘'([*\t_"
ENDERS = ".!?:\n…—–"


@dataclass(slots=True)
class _Candidate:
    """Words of a run that may be a name, and what stands around them."""

    tokens: list[Token]
    title: int  # TITLE, RANK or 0
    before: str  # the lower-case word before, "" at the beginning of a sentence
    comma: bool  # a comma stands between that word and the name
    opening: bool  # first in its sentence (its capital says nothing)
    after: str  # the lower-case word behind, "" where the run continues or punctuation stands
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
    """The end, in its run, of the name that begins at run[begin]."""
    end = begin + 1
    first = run[begin].kind
    stop = min(len(run), begin + LONGEST)
    bare = True  # no surname yet
    while end < stop:
        kind = run[end].kind
        if kind & PARTICLE:
            after = end
            while after < len(run) and run[after].kind & PARTICLE:
                after += 1
            if not _nameable(run[after].kind) and not run[after].kind & PROPER:
                break
            bare = bare and not any(token.kind & SURNAME for token in run[end : after + 1])
            end = after + 1
            continue
        last = end + 1 == len(run) or bool(run[end + 1].kind & SUFFIX)
        known = title or (first & GIVEN and not first & (COMMON | PROPER)) or first & INITIAL
        odd = not kind & (HEAD | SUFFIX | TITLE | RANK | PREFIX)
        if not (_nameable(kind) or (last and known and bare and odd)):
            break
        bare = bare and not kind & SURNAME
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


def cut_candidates(text: str, run: list[Token]) -> list[_Candidate]:
    """The candidates of one run of capitalised words, judged only where they cannot be names."""
    candidates: list[_Candidate] = []
    words = persons()
    caps = _in_capitals(run)
    last_head = max((i for i, token in enumerate(run) if token.kind & HEAD), default=-1)
    opening = _is_opening(text, run[0].start)
    position = 0
    while position < len(run):
        begin, title = position, 0
        while position + 1 < len(run) and run[position].kind & (TITLE | RANK):
            title |= run[position].kind & (TITLE | RANK)
            position += 1
        token = run[position]
        article = token.word.lower() in words["particles"] and position + 1 < len(run)
        led = article and not token.kind & GIVEN and _nameable(run[position + 1].kind)
        if not led and not (title & TITLE and not token.kind & (HEAD | PARTICLE)):
            if token.kind & PREFIX:
                position += 2
                continue
            if not _nameable(token.kind):
                position += 1
                continue
        end = _stretch(run, position, title)
        headed = end <= last_head
        candidates.append(_candidate(text, run, begin, position, end, title, opening, caps, headed))
        position = end
    return candidates


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
    headed: bool,
) -> _Candidate:
    tokens = run[first:end]
    before, comma = "", False
    if begin:
        before = run[begin - 1].word.lower()
    elif not opening:
        before, comma = _word_before(text, run[0].start)
    closed = end < len(run) and not run[end].kind & SUFFIX
    stop = tokens[-1].end
    behind = BEHIND.match(text, stop)
    after, possessive = "", False
    if behind and not closed:
        possessive = bool(behind.group(1))
        after = (behind.group(3) or "") if behind.group(2) else ""
    led = begin > 1 or (begin == 1 and not opening)
    quoted = (
        tokens[0].start > 0
        and text[tokens[0].start - 1] in QUOTES
        and text[stop : stop + 1] in QUOTES
    )
    opens = opening and not begin
    candidate = _Candidate(
        tokens, title, before, comma, opens, after, possessive, led, quoted, closed, caps
    )
    headed = headed and closed and not title & TITLE
    negated = text.startswith(("'t", "’t"), stop)  # "Don't"
    if headed or negated or protected(text, tokens[0].start, stop):
        candidate.verdict = False
    return candidate


AGE = re.compile(r", \d\d?\b|,? \(\d\d?\)|,? \([Bb]orn|,? \(b\.")
BORN = re.compile(r" (?:was|is|were) (?:born|educated|raised|married|survived|buried)\b")
BESIDES = frozenset({"the", "a", "an", "this", "these"})


def _judge(text: str, c: _Candidate) -> bool | None:
    """Whether a candidate is a person by itself, None where the rest of the document decides."""
    words = persons()
    if c.before in BESIDES and not c.comma and not c.title & TITLE:
        return False if c.closed or c.after in words["thing_nouns"] or len(c.tokens) > 1 else None
    if c.after in words["thing_nouns"]:
        return False
    if c.title:
        return _titled(c)
    if all(token.kind & INITIAL for token in c.tokens):
        return False
    return _full(text, c) if len(c.tokens) > 1 else _single(text, c)


def _titled(c: _Candidate) -> bool:
    first = c.tokens[0].kind
    if c.title & TITLE:
        return True
    return not first & (COMMON | PROPER) or bool(first & (GIVEN | SURNAME))


def _context(text: str, c: _Candidate) -> bool:
    """Whether the words beside a candidate are those beside a person."""
    words = persons()
    if c.comma:
        return c.before in words["kin"] or c.after in words["speech_verbs"]
    return (
        c.after in words["speech_verbs"]
        or c.before in words["person_nouns"]
        or c.before in words["greetings"]
        or (c.before in words["speech_verbs"] and not c.closed)
        or AGE.match(text, c.tokens[-1].end) is not None
        or BORN.match(text, c.tokens[-1].end) is not None
    )


def _full(text: str, c: _Candidate) -> bool | None:
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
    if c.tokens[0].word.lower() in persons()["particles"]:
        return None
    return None if c.before in persons()["place_words"] or c.closed or c.led else True


def _single(text: str, c: _Candidate) -> bool | None:
    words = persons()
    kind = c.tokens[0].kind
    firm = kind & GIVEN and not kind & (COMMON | PROPER)
    if (c.closed and not c.caps) or ((c.led or c.quoted) and not firm):
        return None
    placed = c.before in words["place_words"] and not c.comma
    if not kind & (COMMON | PROPER):
        if kind & GIVEN:
            return None if placed else True
        if c.caps:
            return True if kind & SURNAME else None
        if _context(text, c):
            return True
        if kind & SURNAME or c.after in words["person_verbs"]:
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
    acts = c.after in words["speech_verbs"] or c.after in words["person_verbs"]
    return True if called or acts or _context(text, c) else None


PLACE_BEHIND = re.compile(r", [A-Z]")
LINK = re.compile(r"(?:['’]s)?(?:,? and |, | & |,? or )$")


def _recurring(candidates: list[_Candidate]) -> None:
    """Accept an unknown word that keeps standing where persons stand, and never where places do."""
    words = persons()
    acts = words["person_verbs"] | words["speech_verbs"]
    not_persons = BESIDES | words["place_words"]
    seen: dict[str, list[_Candidate]] = {}
    for c in candidates:
        if c.verdict is None and len(c.tokens) == 1 and not c.tokens[0].kind and not c.caps:
            seen.setdefault(c.tokens[0].word, []).append(c)
    for group in seen.values():
        if len(group) < 2 or any(c.led or c.closed or c.before in not_persons for c in group):
            continue
        good = sum(c.after in acts or (c.comma and not c.after) for c in group)
        if good >= 2 or (good and len(group) > 2):
            for c in group:
                c.verdict = True


def _remember(candidates: list[_Candidate]) -> frozenset[str]:
    return frozenset(
        token.word.lower()
        for c in candidates
        if c.verdict
        for token in c.tokens
        if not token.kind & (INITIAL | PARTICLE)
    )


def _recall(text: str, c: _Candidate, known: frozenset[str]) -> bool:
    """Whether a candidate left open is one of the document's persons."""
    words = persons()
    if not all(
        t.word.lower() in known
        or t.kind & (INITIAL | PARTICLE)
        or t.word.lower() in words["particles"]
        for t in c.tokens
    ):
        return False
    kind = c.tokens[-1].kind
    if (c.closed and not c.caps) or (
        c.before in BESIDES and c.after not in ("administration", "government")
    ):
        return False
    if kind & PROPER and (
        c.before in words["place_words"] or PLACE_BEHIND.match(text, c.tokens[-1].end)
    ):
        return False
    if kind & COMMON and c.opening:
        return (
            c.possessive
            or c.after in words["speech_verbs"]
            or c.after in words["person_verbs"]
            or c.after in words["plain_verbs"]
        )
    return True


def _linked(text: str, candidates: list[_Candidate]) -> None:
    """Accept what is listed with a person: "Athos, Porthos and Aramis drew"."""
    for order in (candidates, candidates[::-1]):
        for first, second in pairwise(order):
            if first.verdict and second.verdict is None:
                left, right = (first, second) if order is candidates else (second, first)
                gap = text[left.tokens[-1].end : right.tokens[0].start]
                kind = second.tokens[0].kind
                free = not kind & PROPER and (not kind & COMMON or kind & GIVEN)
                if len(gap) < 9 and LINK.fullmatch(gap) and free and not second.caps:
                    second.verdict = True


def _parts(c: _Candidate) -> Person:
    parts: list[NamePart] = []
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
        parts.append(NamePart(token.start, token.end, kind))
    return Person(tuple(parts))


def _decided(text: str, also: frozenset[str]) -> tuple[list[_Candidate], frozenset[str]]:
    """The candidates of a document, and the words of those accepted."""
    candidates = [c for run in runs(text, also) for c in cut_candidates(text, run)]
    for candidate in candidates:
        if candidate.verdict is None:
            candidate.verdict = _judge(text, candidate)
    _recurring(candidates)
    _linked(text, candidates)
    known = _remember(candidates)
    if known:
        for candidate in candidates:
            if candidate.verdict is None:
                candidate.verdict = _recall(text, candidate, known)
    return candidates, known


@checked
def find_people(text: str) -> list[Person]:
    """Find the persons named in a document, by lexicon, capitals and the words around them.

    Parameters
    ----------
    text : str

    Returns
    -------
    list of Person
        One per mention, in order.

    Examples
    --------
    >>> text = "Barack Obama met Queen Elizabeth II in London. Obama's wife was with Mr. O'Brien."
    >>> [text[p.start : p.end] for p in find_people(text)]
    ['Barack Obama', 'Elizabeth', 'Obama', "O'Brien"]

    """
    candidates, known = _decided(text, frozenset())
    # "Little" alone is an ordinary word until somebody of the document is called so
    odd = frozenset(w for w in known if kinds(w) and not kinds(w) & (GIVEN | SURNAME))
    if odd:
        candidates, _ = _decided(text, odd)
    return [_parts(c) for c in candidates if c.verdict]


@cache
def ordinary_words() -> frozenset[str]:
    """Words that are written in lower case and are no part of a name, such as "the".

    >>> {"the", "nurses", "will", "german"} & ordinary_words() == {"the", "nurses"}
    True
    """
    return frozenset(word for word, kind in table().items() if kind == COMMON) - {"i"} | {"a"}


FIRST = re.compile(r"[^\W\d_]+")


def lower_start(text: str) -> str:
    """The text with its first letter in lower case, unless the first word always has a capital.

    These are names, titles before them, "I", abbreviations in capitals, and words that are not
    known to be written in lower case.

    >>> lower_start("The clerk slept."), lower_start("Mary slept."), lower_start("I slept.")
    ('the clerk slept.', 'Mary slept.', 'I slept.')
    >>> lower_start("Will the clerk sleep?"), lower_start("Will slept.")
    ('will the clerk sleep?', 'Will slept.')
    """
    match = FIRST.match(text)
    word = match[0] if match else ""
    if not word.istitle():
        return text
    if word.lower() not in ordinary_words():
        people = [person.start for person in find_people(text)]
        titled = kinds(word) & (TITLE | RANK) and len(word) + 1 in people
        if word == "I" or not kinds(word) & COMMON or titled or 0 in people:
            return text
    return text[0].lower() + text[1:]


WORD = re.compile(r"\S+")
POSSESSIVE = re.compile(r"['’]s?$")


class SpacyPeople:
    """Calls the pipeline `model` on a document and takes its entities labelled PERSON or PER."""

    def __init__(self, model: str) -> None:
        self._pipeline = load_pipeline(model, "entities")

    def __call__(self, text: str) -> list[Person]:
        named = [each for each in self._pipeline(text).ents if each.label_ in ("PERSON", "PER")]
        found = [_entity_parts(text, each.start_char, each.end_char) for each in named]
        return [Person(parts) for parts in found if parts]


def _entity_parts(text: str, start: int, end: int) -> tuple[NamePart, ...]:
    """The words of an entity; the last is the surname, a possessive 's is left out."""
    end -= len(text[start:end]) - len(POSSESSIVE.sub("", text[start:end]))
    spans = [match.span() for match in WORD.finditer(text, start, end)]
    kinds = ["given"] * (len(spans) - 1) + ["surname"]
    return tuple(NamePart(*span, kind) for span, kind in zip(spans, kinds, strict=False))


@cache
def finder(name: str) -> Finder:
    """The finder of that name: `rules`, or `spacy:MODEL` for an installed spaCy pipeline.

    A pipeline is loaded once in a process.
    """
    if name == "rules":
        return find_people
    if name.startswith("spacy:"):
        return SpacyPeople(name.removeprefix("spacy:"))
    raise UnknownNameError("finder of names", name, ["rules", "spacy:MODEL"])
