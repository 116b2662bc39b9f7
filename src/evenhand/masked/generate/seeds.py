"""The sentences a search sets out from: those of the structural filter, or text to be filtered."""

from __future__ import annotations

import json
import os
from collections import Counter
from collections.abc import Iterable, Iterator
from contextlib import closing
from dataclasses import dataclass
from itertools import chain
from typing import NamedTuple

from evenhand.errors import FileError, InputError
from evenhand.text.corpus.compression import SURROGATE, open_content, source_name, text_lines
from evenhand.text.structural import Accepted, Filter
from evenhand.text.tokens import sentences

__all__ = ["Seed", "Seeds", "Told", "read_seeds", "seeds_of"]


class Told(NamedTuple):
    """A sentence that may become a seed, and where it stands."""

    sentence: str
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Seed:
    """A sentence with structural bias, and where it comes from."""

    found: Accepted
    line: int | None = None
    source: str | None = None


@dataclass(frozen=True, slots=True)
class Seeds:
    """The seeds, how many sentences were read, and why the others are none of them."""

    seeds: tuple[Seed, ...]
    read: int
    left_out: dict[str, int]


def seeds_of(
    told: Iterable[Told],
    *,
    filter: Filter = Filter(),  # noqa: A002, B008
    limit: int | None = None,
) -> Seeds:
    """The sentences that the filter keeps, each once; reading ends after `limit` of them.

    What is left out is counted by the filter's reasons, and as "repeated".

    >>> told = [Told("The cook dropped her spoon."), Told("A cook sings.")]
    >>> seeds_of(told).left_out
    {'no_pronoun': 1}
    """
    if limit is not None and limit < 1:
        raise InputError(f"limit: expected at least 1, got {limit}")
    seeds: dict[str, Seed] = {}
    left_out: Counter[str] = Counter()
    read = 0
    for sentence, line, source in told:
        read += 1
        found = filter.sentence(sentence)
        if not isinstance(found, Accepted):
            left_out[found.reason] += 1
        elif found.masked in seeds:
            left_out["repeated"] += 1
        else:
            seeds[found.masked] = Seed(found, line, source)
        if len(seeds) == limit:
            break
    return Seeds(tuple(seeds.values()), read, dict(sorted(left_out.items())))


def read_seeds(
    path: str | os.PathLike[str],
    *,
    filter: Filter = Filter(),  # noqa: A002, B008
    split: bool = False,
    limit: int | None = None,
) -> Seeds:
    """The seeds of a file: the filter's JSON lines, or text with a sentence a line; "-" is stdin.

    Either way the sentences pass the filter here, since what is made of them must pass it too.
    `split` cuts lines of text into their sentences.
    """
    name = source_name(os.fspath(path))
    with closing(open_content(os.fspath(path))) as file:
        lines = text_lines(name, file)
        first = next((line for line in lines if line[1].strip()), None)
        if first is None:
            raise FileError(name, "the file is empty: expected sentences, one a line")
        rest = chain([first], lines)
        records = first[1].lstrip().startswith("{")
        told = _records(name, rest) if records else _texts(name, rest, split)
        return seeds_of(told, filter=filter, limit=limit)


def _texts(name: str, lines: Iterable[tuple[int, str]], split: bool) -> Iterator[Told]:
    for number, line in lines:
        text = line.strip()
        spans = sentences(text) if split else [(0, len(text))]
        for begin, end in spans:
            if text[begin:end].strip():
                yield Told(text[begin:end], number, name)


def _records(name: str, lines: Iterable[tuple[int, str]]) -> Iterator[Told]:
    for number, line in lines:
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError):
            raise FileError(name, "expected a JSON object, got text", line=number) from None
        sentence = record.get("sentence") if isinstance(record, dict) else None
        if not isinstance(sentence, str):
            problem = 'expected the filter\'s JSON with the sentence in "sentence", got none'
            raise FileError(name, problem, line=number)
        if SURROGATE.search(sentence):
            raise FileError(name, "expected text, got half of a surrogate pair", line=number)
        at, source = record.get("line"), record.get("source")
        yield Told(
            sentence,
            at if isinstance(at, int) else number,
            source if isinstance(source, str) else name,
        )
