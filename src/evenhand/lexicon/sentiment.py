"""Words that praise or blame, and the sentiment of a text by them."""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from functools import cache

from evenhand.lexicon.schema import STRICT, Distinct, Text, Word, data, read_toml

__all__ = ["sentiment", "sentiment_words"]

WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*|[.;:!?,]")
REACH = 3
"""A negation changes the sign of the next words, this many of the same clause."""
DOUBLED = re.compile(r"[^aeiou][aeiou][bdgklmnprt]")
"""How a verb ends whose last letter may be doubled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class WordsOfSign:
    """Words of one sign by their class."""

    __pydantic_config__ = STRICT
    adjectives: Distinct[Word]
    nouns: Distinct[Word]
    verbs: Distinct[Word]


@dataclass(frozen=True, slots=True, kw_only=True)
class SentimentWords:
    """The lists, and the words that change the sign of others."""

    __pydantic_config__ = STRICT
    negations: Distinct[Word]
    positive: WordsOfSign
    negative: WordsOfSign
    name: Word = ""
    provenance: Text = ""


@cache
def sentiment_words() -> SentimentWords:
    """Return the built-in lists.

    >>> "kind" in sentiment_words().positive.adjectives
    True
    """
    return read_toml(data("sentiment.toml"), SentimentWords)


@cache
def _signs() -> Mapping[str, int]:
    """The sign of each word and of its regular inflections."""
    lists = sentiment_words()
    signs: dict[str, int] = {}
    for sign, words in ((1, lists.positive), (-1, lists.negative)):
        inflected = {
            **{_adverb(word): sign for word in words.adjectives},
            **{_plural(word): sign for word in words.nouns},
            **{form: sign for word in words.verbs for form in _forms(word)},
        }
        listed = dict.fromkeys((*words.adjectives, *words.nouns, *words.verbs), sign)
        signs = {**inflected, **signs, **listed}
    return signs


def _adverb(word: str) -> str:
    if word.endswith("y") and len(word) > 3:
        return f"{word[:-1]}ily"
    return f"{word[:-1]}y" if word.endswith("le") else f"{word}ly"


def _plural(word: str) -> str:
    if word.endswith("y") and word[-2] not in "aeiou":
        return f"{word[:-1]}ies"
    return f"{word}es" if word.endswith(("s", "sh", "ch", "x", "o")) else f"{word}s"


def _forms(verb: str) -> tuple[str, ...]:
    stem = verb.removesuffix("e")
    past = f"{verb[:-1]}ied" if _plural(verb).endswith("ies") else f"{stem}ed"
    forms = [_plural(verb), past, f"{stem}ing"]
    if DOUBLED.fullmatch(verb[-3:]):
        forms += [f"{verb}{verb[-1]}ed", f"{verb}{verb[-1]}ing"]
    return tuple(forms)


def sentiment(text: str, masked: Collection[str] = ()) -> float:
    """The sentiment of a text: (positive - negative) / (positive + negative) words, 0 without any.

    Parameters
    ----------
    text : str
    masked : collection of str
        Lower-case words that do not count.

    Examples
    --------
    >>> sentiment("She is kind, honest and never lazy."), sentiment("A cruel man, not helpful.")
    (1.0, -1.0)
    >>> sentiment("A straight answer."), sentiment("A gifted but rude editor.", {"gifted"})
    (0.0, -1.0)
    """
    signs, negations = _signs(), frozenset(sentiment_words().negations)
    words = [word.lower().replace("’", "'") for word in WORD.findall(text)]
    total = sum_of = 0
    negated = -1
    for place, word in enumerate(words):
        following = words[place + 1] if place + 1 < len(words) else ""
        if word in ".;:!?,":
            negated = -1
        elif word in negations:
            negated = -1 if following in ("only", "just") else place + REACH
        elif word in masked:
            continue
        elif (sign := signs.get(word, 0)) and not (word == "kind" and following == "of"):
            total += 1
            sum_of += -sign if place <= negated else sign
    return sum_of / total if total else 0.0
