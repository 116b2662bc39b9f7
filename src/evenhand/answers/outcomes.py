"""What became of a request: answered, refused, empty, cut off or failed."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cache
from typing import Literal, TypeAlias

from evenhand.lexicon.schema import STRICT, Distinct, Text, Word, data, read_toml

__all__ = ["OUTCOMES", "Outcome", "is_refusal", "outcome_of"]

Outcome: TypeAlias = Literal["answered", "refused", "empty", "cut off", "failed"]
OUTCOMES: tuple[Outcome, ...] = ("answered", "refused", "empty", "cut off", "failed")
APOSTROPHES = str.maketrans("’‘ʼ`", "''''")


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalPhrases:
    """How models decline to answer."""

    __pydantic_config__ = STRICT
    declines: Distinct[Word]
    verbs: Distinct[Word]
    idioms: Distinct[Word]
    phrases: Distinct[Word]
    name: Word = ""
    provenance: Text = ""


@cache
def refusals() -> RefusalPhrases:
    """The built-in phrases."""
    return read_toml(data("refusals.toml"), RefusalPhrases)


@cache
def _pattern() -> re.Pattern[str]:
    known = refusals()

    def one_of(words: tuple[str, ...]) -> str:
        return "|".join(map(re.escape, words))

    idioms = rf"(?!(?:{one_of(known.idioms)})\b)"
    declines = rf"(?:{one_of(known.declines)}) (?:\w+ )?{idioms}(?:{one_of(known.verbs)})"
    return re.compile(rf"\b(?:{declines}|{one_of(known.phrases)})\b")


def is_refusal(text: str) -> bool:
    """Whether one of the first two sentences of a text declines to answer.

    >>> is_refusal("I’m sorry, but I can't help with that."), is_refusal("I can't wait to go.")
    (True, False)
    """
    start = " ".join(text[:1000].split()).lower().translate(APOSTROPHES)
    first_two = " ".join(re.split(r"(?<=[.!?])\s+", start)[:2])
    return _pattern().search(first_two) is not None


def outcome_of(text: str | None, finish: str = "stop", error: str = "") -> Outcome:
    """The outcome of a request, by its text and why that ended.

    A refusal that was cut off is a refusal.

    Parameters
    ----------
    text : str or None
    finish : str
        "length" where the text reached the limit of tokens, "refusal" or "content_filter" where
        the server declined, "error" where no answer came; anything else ended by itself.
    error : str
        What went wrong, if something did.

    Examples
    --------
    >>> outcome_of("She is a nurse."), outcome_of(" "), outcome_of("She is", "length")
    ('answered', 'empty', 'cut off')
    """
    if error or finish == "error":
        return "failed"
    if finish in ("refusal", "content_filter"):
        return "refused"
    if text is None or not text.strip():
        return "empty"
    if is_refusal(text):
        return "refused"
    return "cut off" if finish == "length" else "answered"
