"""Masked sentences from a file: what the structural filter wrote, or text with a mask a line."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass

from evenhand.errors import FileError
from evenhand.masked.words import MASKS
from evenhand.text.corpus.compression import SURROGATE, open_content, source_name, text_lines
from evenhand.text.structural import Accepted, Filter

__all__ = ["Sentence", "read_sentences"]


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with one mask; the pronoun that stood there and its line, where known."""

    text: str
    pronoun: str = ""
    line: int = 0


def read_sentences(
    path: str | os.PathLike[str],
    *,
    counts: Counter[str] | None = None,
    keep: Filter | None = None,
) -> Iterator[Sentence]:
    """The sentences of a file, packed or not, or of stdin ("-"), read as they are asked for.

    A file whose first line begins with `{` has an object a line, as `evenhand text filter` writes
    them: `masked`, and `pronoun` where known. Any other is text, a sentence a line. A line
    without exactly one [MASK] (or <mask>) is an error that names it; blank lines are skipped and
    counted in `counts["blank"]`. With `keep` the file is plain text, a sentence a line: those
    that the structural filter keeps are masked by it, the others are counted in
    `counts["filtered"]`.
    """
    name = source_name(os.fspath(path))
    told = Counter[str]() if counts is None else counts
    as_json: bool | None = None
    with closing(open_content(os.fspath(path))) as file:
        for number, raw in text_lines(name, file):
            line = raw.strip()
            if not line:
                told["blank"] += 1
                continue
            if keep is not None:
                found = keep.sentence(line)
                if isinstance(found, Accepted):
                    yield Sentence(found.masked, found.pronoun, number)
                else:
                    told["filtered"] += 1
                continue
            if as_json is None:
                as_json = line.startswith("{")
            text, pronoun = _fields(name, number, line) if as_json else (line, "")
            masks = sum(text.count(mask) for mask in MASKS)
            if masks != 1:
                some = "none" if masks == 0 else str(masks)
                raise FileError(name, f"expected one {MASKS[0]}, got {some}", line=number)
            yield Sentence(text, pronoun, number)


def _fields(name: str, number: int, line: str) -> tuple[str, str]:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError) as error:
        raise FileError(name, f"not valid JSON: {error}", line=number) from None
    if not isinstance(value, dict) or not isinstance(value.get("masked"), str):
        problem = "expected an object with the sentence as 'masked', as the filter writes it"
        raise FileError(name, problem, line=number)
    pronoun = value.get("pronoun")
    if not isinstance(pronoun, str | None):
        kind = type(pronoun).__name__
        raise FileError(name, f"'pronoun': expected text, got {kind}", line=number)
    text = value["masked"].strip()
    if SURROGATE.search(text):
        raise FileError(name, "expected text, got half of a surrogate pair", line=number)
    return text, (pronoun or "").strip()
