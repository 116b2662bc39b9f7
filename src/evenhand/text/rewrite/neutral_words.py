"""Titles and nouns with a neutral form, and the article before them."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache

from evenhand.lexicon import neutral_forms
from evenhand.text.edits import Edit
from evenhand.text.rewrite.pairing import Phrase, phrase_after, phrase_at
from evenhand.text.tokens import WordIndex, match_case, words

__all__ = ["NOUNS", "Nouns", "article_edit", "nouns", "title"]

NOUNS = {"roles": ("role",), "all": ("role", "family", "person"), "none": ()}
"""Which kinds of neutral forms each choice of nouns applies."""

TITLES = {"mr": "mx", "mrs": "mx", "ms": "mx", "miss": "mx", "mister": "mx"}
NAME = re.compile(r"\.?\s{1,2}(?:[A-Z]\w|[A-Z]\.)|\.?\s(?:and|&|or)\s(?:Mrs?|Ms|Miss)\b")
NOT_NAMES = re.compile(
    r"\s(?:You|Me|Him|Her|Them|Us|The|My|Your|This|That|It|Out|America|USA|Universe|World|Earth"
    r"|International|Teen|Grand|Saigon)\b"
)
ARTICLE = re.compile(r"\b(an?)([ \t]+[\"'“‘(]?)$", re.IGNORECASE)
CONSONANT = re.compile(r"eu|ew|on(?:e|c)|u(?:ni(?!n|m)|s[aeu]|t[eio]|r[aeio]|k|b)", re.IGNORECASE)
SILENT = re.compile(r"hour|heir|hono|hones", re.IGNORECASE)


@dataclass(frozen=True, slots=True)
class Nouns:
    """The neutral forms of single words, of phrases by their first word, and where to look."""

    single: dict[str, tuple[str, str]]
    phrases: dict[str, tuple[Phrase, ...]]
    index: WordIndex

    def change(self, text: str, start: int) -> tuple[str, str, str] | None:
        """The rule, the words at `start` that have a neutral form, and that form."""
        end = start
        while end < len(text) and (text[end].isalnum() or text[end] == "_"):
            end += 1
        word = text[start:end]
        if found := phrase_at(text, start, self.phrases.get(word.lower(), ())):
            written, phrase = found
            return phrase.rule, written, phrase_after(written, phrase)
        known = self.single.get(word.lower())
        return None if known is None else (known[1], word, match_case(word, known[0]))


@cache
def nouns(choice: str) -> Nouns:
    """The neutral forms that a choice of nouns applies: roles, all or none.

    >>> nouns("roles").change("a Stewardess", 2)
    ('role', 'Stewardess', 'Flight attendant')
    """
    single: dict[str, tuple[str, str]] = {}
    phrases: dict[str, list[Phrase]] = {}
    for form in neutral_forms():
        if form.kind not in NOUNS[choice] or not form.safe:
            continue
        parts = words(form.gendered)
        if len(parts) == 1:
            single[form.gendered] = (form.neutral, form.kind)
        else:
            first = form.gendered[: int(parts.ends[0])]
            phrases.setdefault(first, []).append(Phrase(form.gendered, form.neutral, form.kind))
    longest_first = {
        first: tuple(sorted(found, key=lambda phrase: -len(phrase.written)))
        for first, found in phrases.items()
    }
    return Nouns(single, longest_first, WordIndex({*single, *phrases, *TITLES}))


def title(text: str, start: int, end: int) -> tuple[str, str, str] | None:
    """Mx for a title before a name; "Miss" or "ms" without one is something else.

    >>> title("Miss Bell", 0, 4), title("Miss you", 0, 4), title("40 ms", 3, 5)
    (('title', 'Miss', 'Mx'), None, None)
    """
    word = text[start:end]
    after = TITLES.get(word.lower())
    if after is None:
        return None
    named = NAME.match(text, end) and not NOT_NAMES.match(text, end)
    if word.lower() in ("ms", "miss", "mister") or word in ("MR", "MS"):
        if not named or (word.islower() and word != "ms"):
            return None
        if word in ("MR", "MS", "MISS") and not re.match(r"\.|\s[A-Z]{2}", text[end : end + 3]):
            return None
    return "title", word, match_case(word, after)


def article_edit(text: str, start: int, before: str, after: str) -> Edit | None:
    """The change of "a" or "an" right before a word that is replaced, where its sound asks for it.

    >>> article_edit("an alderman", 3, "alderman", "councillor")
    Edit(offset=0, rule='article', before='an', after='a')
    """
    if _vowel(before) == _vowel(after):
        return None
    found = ARTICLE.search(text, max(0, start - 12), start)
    if found is None:
        return None
    article = found.group(1)
    vowel = _vowel(after)
    if (len(article) == 2) == vowel:
        return None
    new = (
        article + ("N" if before.isupper() and article.isupper() else "n") if vowel else article[:1]
    )
    return Edit(found.start(1), "article", article, new)


def _vowel(word: str) -> bool:
    """Whether a word begins with the sound of a vowel."""
    if SILENT.match(word):
        return True
    return word[:1].lower() in "aeiou" and not CONSONANT.match(word)
