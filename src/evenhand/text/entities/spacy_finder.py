"""Persons found by a spaCy pipeline the user has installed."""

from __future__ import annotations

import re
from importlib import import_module
from typing import Any

from evenhand.errors import InputError, MissingExtraError
from evenhand.text.entities import Part, Person

__all__ = ["SpacyPeople"]

WORD = re.compile(r"\S+")
POSSESSIVE = re.compile(r"['’]s?$")


class SpacyPeople:
    """Calls the pipeline `model` on a document and takes its entities labelled PERSON or PER."""

    def __init__(self, model: str) -> None:
        self._pipeline = load_pipeline(model)

    def __call__(self, text: str) -> list[Person]:
        found = []
        for entity in self._pipeline(text).ents:
            if entity.label_ in ("PERSON", "PER"):
                parts = _parts(text, entity.start_char, entity.end_char)
                if parts:
                    found.append(Person(parts))
        return found


def load_pipeline(model: str) -> Any:
    """An installed spaCy pipeline, or an error that says how to get it."""
    try:
        spacy = import_module("spacy")
    except ImportError:
        raise MissingExtraError("spacy", f"entities 'spacy:{model}'", "evenhand[spacy]") from None
    try:
        return spacy.load(model)
    except OSError:
        raise InputError(
            f"entities 'spacy:{model}': expected an installed spaCy pipeline, found none of that "
            f"name: python -m spacy download {model}"
        ) from None


def _parts(text: str, start: int, end: int) -> tuple[Part, ...]:
    """The words of an entity; the last is the surname, a possessive 's is left out."""
    end -= len(text[start:end]) - len(POSSESSIVE.sub("", text[start:end]))
    spans = [match.span() for match in WORD.finditer(text, start, end)]
    kinds = ["given"] * (len(spans) - 1) + ["surname"]
    return tuple(Part(*span, kind) for span, kind in zip(spans, kinds, strict=False))
