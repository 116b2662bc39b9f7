"""Neutral rewriting: singular they with its verbs, neutral titles and neutral nouns."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import groupby
from operator import attrgetter, itemgetter

from evenhand.errors import InputError
from evenhand.text.block import Block
from evenhand.text.edits import Edit
from evenhand.text.grammar.agreement import agreement
from evenhand.text.grammar.pronouns import Judge, judge
from evenhand.text.rewrite.neutral_words import NOUNS, Nouns, article_edit, nouns, title
from evenhand.text.sentences import sentences
from evenhand.text.tokens import WordIndex, Words, match_case, protected

__all__ = ["Neutralize"]

REFLEXIVES = ("themself", "themselves")
PLAIN = {
    "he": "they", "she": "they", "him": "them", "hers": "theirs",
    "himself": "themself", "herself": "themself",
}  # fmt: skip
SUBJECTS = WordIndex(["he", "she", "hes", "shes"])
PRONOUNS = WordIndex(
    ["he", "she", "him", "her", "his", "hers", "himself", "herself", "hes", "shes"]
)
APOSTROPHES = frozenset("'’ʼ`´")
PAIRS = {
    frozenset({"he", "she"}): "they",
    frozenset({"him", "her"}): "them",
    frozenset({"his", "her"}): "their",
    frozenset({"his", "hers"}): "theirs",
    frozenset({"himself", "herself"}): "themself",
    frozenset({"him", "herself"}): "themself",
    frozenset({"her", "himself"}): "themself",
}
SECOND = re.compile(
    r"(?: ?/ ?| or | and/or )(hers?|herself|himself|him|his|she|he)\b"
    r"(?:(?:/| or )the(?:y|m|irs?|mself|mselves)\b)?",
    re.IGNORECASE,
)
STATED = re.compile(
    r"(?:she/hers?|he/(?:him|his)|s?he/they|they/s?he)(?:/(?:him|his|hers?|the(?:y|m|irs?)))*",
    re.IGNORECASE,
)
"""Pronouns that are named, not used: "Lee (she/her)"."""
SPANISH = re.compile(r"\s(?:\w{2,}[aií]do|visto|hecho|dicho|puesto|escrito|abierto|vuelto)\b")
"""What follows he where it is the Spanish for "I have"."""
SLASHED = re.compile(r"(?:\bs/|\(s\))$", re.I)


@dataclass(frozen=True, slots=True, kw_only=True)
class Neutralize:
    """Pronouns to they, them, their, theirs, with the verbs that agree; titles to Mx; nouns.

    `nouns` says which gendered nouns get their neutral form: "roles" (chairman, stewardess), "all"
    (also mother, boy) or "none". `reflexive` is "themself" or "themselves". Names stay.

    >>> from evenhand.text.edits import apply
    >>> text = "She says the chairman loves his job, doesn't he?"
    >>> apply(text, Neutralize()(Block.of_lines(text)))
    "They say the chair loves their job, don't they?"
    """

    nouns: str = "roles"
    reflexive: str = "themself"
    judge: str = "embedded"

    def __post_init__(self) -> None:
        for name, allowed in (("nouns", NOUNS), ("reflexive", REFLEXIVES)):
            if getattr(self, name) not in allowed:
                expected = ", ".join(allowed)
                raise InputError(f"{name}: expected one of {expected}, got {getattr(self, name)!r}")

    def __call__(self, block: Block) -> list[Edit]:
        """The edits of a block."""
        text = block.text
        found = Words(text)
        table = nouns(self.nouns)
        edits = list(_pronouns(text, found, judge(self.judge), self.reflexive))
        edits += _agreeing(block, found)
        edits += _nouns(text, found, table)
        return _in_order(edits)


def _in_order(edits: list[Edit]) -> list[Edit]:
    """The edits by offset; where two would change the same word, the first of the list does."""
    kept: list[Edit] = []
    done = 0
    for edit in sorted(edits, key=attrgetter("offset")):
        if edit.offset >= done:
            kept.append(edit)
            done = edit.offset + len(edit.before)
    return kept


def _pronouns(text: str, found: Words, grammar: Judge, reflexive: str) -> Iterator[Edit]:
    """Pronouns and what hangs on them by an apostrophe."""
    starts, ends = PRONOUNS.find(found)
    done = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start < done or _stays(text, start, end):
            continue
        lower = text[start:end].lower()
        pair = _pair(text, lower, end)
        stop = pair[1] if pair else end
        if protected(text, start, stop):
            continue
        after = pair[0] if pair else _single(text, start, end, lower, grammar)
        if after == "they" and text[start - 1 : start] in ("/", ")"):
            prefix = SLASHED.search(text, max(done, start - 3), start)
            start = prefix.start() if prefix else start
        if after == "themself":
            after = reflexive
        word = text[start:stop]
        if not word.islower():
            after = match_case(word.lstrip("(")[0] + word[-1], after)
        yield Edit(start, "pronoun", word, after)
        done = stop
        if after.lower() == "they":
            gap = text[stop : stop + 1] == " "  # "he 's", as treebanks write it
            if text[stop + gap : stop + gap + 1] in APOSTROPHES:
                yield from _contraction(text, start, stop + gap, grammar)


def _single(text: str, start: int, end: int, lower: str, grammar: Judge) -> str:
    """What the pronoun at text[start:end] becomes."""
    if lower == "her":
        if text[end : end + 1] in APOSTROPHES:
            return "their"  # her's, for hers
        return "their" if grammar.her_is_possessive(text, start, end) else "them"
    if lower == "his":
        return "their" if grammar.his_is_determiner(text, start, end) else "theirs"
    if lower in ("hes", "shes"):
        return "theyre" if grammar.contraction(text, start, end - 2) == "is" else "theyve"
    return PLAIN[lower]


def _contraction(text: str, start: int, end: int, grammar: Judge) -> Iterator[Edit]:
    """The 's behind a pronoun, its apostrophe at `end`."""
    clitic = text[end + 1 : end + 2]
    if clitic in ("s", "S") and not text[end + 2 : end + 3].isalnum():
        after = "re" if grammar.contraction(text, start, end) == "is" else "ve"
        yield Edit(end + 1, "contraction", clitic, after.upper() if clitic == "S" else after)


def _pair(text: str, first: str, end: int) -> tuple[str, int] | None:
    """What "he or she", "him/her" and the like become, and where they end."""
    if text[end : end + 1] not in (" ", "/"):
        return None
    second = SECOND.match(text, end)
    if second is None:
        return None
    after = PAIRS.get(frozenset((first, second.group(1).lower())))
    return None if after is None else (after, second.end())


def _stays(text: str, start: int, end: int) -> bool:
    """What is written like a pronoun and is none: she-wolf, "Lee (she/her)", (He), "he visto"."""
    before, after = text[max(start - 1, 0) : start], text[end : end + 1]
    if before == "/" or after == "/":
        return _stated(text, start, end)
    if before == "-" and text[max(start - 2, 0)].isalpha():
        return True
    if after == "-":
        return text[end + 1 : end + 2].isalpha()
    if end - start != 2:
        return False
    symbol = before == "(" and text[start : end + 1] == "He)"
    return symbol or (after == " " and SPANISH.match(text, end) is not None)


def _stated(text: str, start: int, end: int) -> bool:
    """Whether the pronoun is one of several that are named with strokes between."""
    while start and (text[start - 1].isalpha() or text[start - 1] == "/"):
        start -= 1
    while end < len(text) and (text[end].isalpha() or text[end] == "/"):
        end += 1
    return STATED.fullmatch(text, start, end) is not None


def _agreeing(block: Block, found: Words) -> Iterator[Edit]:
    """The verbs of he and she, sentence by sentence."""
    starts, ends = SUBJECTS.find(found)
    text = block.text
    owners = block.owner(starts).tolist()
    places = zip(owners, starts.tolist(), ends.tolist(), strict=True)
    for index, group in groupby(places, key=itemgetter(0)):
        begin, _ = block.span(index)
        inside = [
            start - begin
            for _, start, end in group
            if not _stays(text, start, end) and not protected(text, start, end)
        ]
        if inside:
            yield from _document(block.document(index), begin, inside)


def _document(document: str, begin: int, subjects: list[int]) -> Iterator[Edit]:
    """The verbs of the subjects at the given places of one document."""
    rest = iter(subjects)
    subject = next(rest, None)
    for start, end in sentences(document):
        if subject is None:
            return
        if subject >= end:
            continue
        for offset, before, after in agreement(document, start, end):
            if not protected(document, offset, offset + len(before)):
                yield Edit(begin + offset, "agreement", before, after)
        while subject is not None and subject < end:
            subject = next(rest, None)


def _nouns(text: str, found: Words, table: Nouns) -> Iterator[Edit]:
    """Titles and nouns, with the article before a noun where its form changes."""
    starts, ends = table.index.find(found)
    done = 0
    for start, end in zip(starts.tolist(), ends.tolist(), strict=True):
        if start < done or protected(text, start, end):
            continue
        change = title(text, start, end) or table.change(text, start)
        if change is None:
            continue
        rule, before, after = change
        if rule != "title" and (article := article_edit(text, start, before, after)):
            yield article
        yield Edit(start, rule, before, after)
        done = start + len(before)
