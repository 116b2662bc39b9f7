"""A spaCy pipeline as the judge of pronouns: tags PRP$ and PRP, and the lemma of 's."""

from __future__ import annotations

from dataclasses import dataclass, field
from importlib import import_module
from typing import Any, Literal

from evenhand.errors import InputError, MissingExtraError

__all__ = ["SpacyJudge"]

_DOCUMENTS = 64
"""Texts whose analysis is kept: a text is asked about once for every pronoun in it."""


@dataclass
class SpacyJudge:
    """The tags of an installed pipeline; it is loaded at once, so that a lack is told early.

    A block of many documents is analysed line by line: a decision rests on its own line alone.
    """

    model: str
    _pipeline: Any = field(init=False, repr=False, compare=False)
    _parsed: dict[str, Any] = field(init=False, default_factory=dict, repr=False, compare=False)

    def __post_init__(self) -> None:
        try:
            spacy = import_module("spacy")
        except ImportError:
            raise MissingExtraError(
                "spacy", f"judge 'spacy:{self.model}'", "evenhand[spacy]"
            ) from None
        try:
            self._pipeline = spacy.load(self.model)
        except OSError:
            raise InputError(
                f"judge 'spacy:{self.model}': expected an installed spaCy pipeline, found none of "
                f"that name: python -m spacy download {self.model}"
            ) from None

    def __reduce__(self) -> tuple[type[SpacyJudge], tuple[str]]:
        return SpacyJudge, (self.model,)  # another process loads the pipeline itself

    def her_is_possessive(self, text: str, start: int, end: int) -> bool:
        token = self._token(text, start, end)
        return token is not None and token.tag_ == "PRP$"

    def his_is_determiner(self, text: str, start: int, end: int) -> bool:
        """Whether a noun follows that "his" belongs to: English tags give PRP$ to both."""
        token = self._token(text, start, end)
        return token is not None and token.dep_ == "poss"

    def contraction(self, text: str, start: int, end: int) -> Literal["is", "has"]:  # noqa: ARG002
        token = self._token(text, end, end + 2)
        return "has" if token is not None and token.lemma_ == "have" else "is"

    def _token(self, text: str, start: int, end: int) -> Any | None:
        """The token at text[start:end], or None where the pipeline cuts otherwise."""
        first = text.rfind("\n", 0, start) + 1
        last = text.find("\n", end)
        line = text[first : len(text) if last < 0 else last]
        if line not in self._parsed:
            if len(self._parsed) >= _DOCUMENTS:
                self._parsed.clear()
            self._parsed[line] = self._pipeline(line)
        span = self._parsed[line].char_span(start - first, end - first)
        return None if span is None else span[0]
