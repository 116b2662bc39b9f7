"""Sentences with one mask: the material of measures and of fine-tuning, read from files."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from evenhand.errors import FileError
from evenhand.files import parse_json_line
from evenhand.models.words import MASKS
from evenhand.text.corpus.compression import SURROGATE
from evenhand.text.tables import Source, lines_of, name_of

if TYPE_CHECKING:
    from evenhand.text.structural import Filter


@dataclass(frozen=True, slots=True)
class Sentence:
    """A sentence with one mask; the original pronoun, line and group of sentences where known."""

    text: str
    pronoun: str = ""
    line: int = 0
    group: str = ""


def read_sentences(
    path: Source,
    *,
    counts: Counter[str] | None = None,
    keep: Filter | None = None,
) -> Iterator[Sentence]:
    """Read masked sentences from a file, lazily.

    Parameters
    ----------
    path : path or DataFrame
        Compressed or not; "-" is the standard input. A file whose first line begins with `{` has
        one JSON object per line, as `evenhand filter` writes them: `masked` and, where known,
        `pronoun`. Any other is text with one sentence per line; of a DataFrame it is the column of
        text. A line without exactly one [MASK] (or <mask>) is an error that names it.
    counts : Counter, optional
        Gets the numbers of "blank" lines and of "filtered" sentences.
    keep : Filter, optional
        The file is plain text; the sentences that the filter accepts are masked by it.

    """
    from evenhand.text.structural import Accepted

    name = name_of(path)
    tally = Counter[str]() if counts is None else counts
    as_json: bool | None = None
    with closing(lines_of(path)) as lines:
        for number, raw in lines:
            line = raw.strip()
            if not line:
                tally["blank"] += 1
                continue
            if keep is not None:
                result = keep.sentence(line)
                if isinstance(result, Accepted):
                    yield Sentence(result.masked, result.pronoun, number)
                else:
                    tally["filtered"] += 1
                continue
            if as_json is None:
                as_json = line.startswith("{")
            text, pronoun = _fields(name, number, line) if as_json else (line, "")
            masks = text.count(MASKS[0]) + text.count(MASKS[1])
            if masks != 1:
                received = "none" if masks == 0 else str(masks)
                raise FileError(name, f"expected one {MASKS[0]}, got {received}", line=number)
            yield Sentence(text, pronoun, number)


def read_texts(path: Source, expected: str) -> list[str]:
    """The lines of a file, or the texts of a DataFrame, without blank ones; none is an error."""
    texts = [line.strip() for _, line in lines_of(path) if line.strip()]
    if not texts:
        raise FileError(name_of(path), f"expected {expected}, got none")
    return texts


def _fields(name: str, number: int, line: str) -> tuple[str, str]:
    value = parse_json_line(line, name, number)
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


def built_in_sentences() -> list[Sentence]:
    """The built-in sentences with their groups."""
    from evenhand.lexicon.pronoun_sentences import pronoun_sentences

    groups = pronoun_sentences().group_of
    return [
        Sentence(text, line=n, group=group) for n, (text, group) in enumerate(groups.items(), 1)
    ]


def first_sentences(accepted: Iterable[Mapping[str, Any]]) -> list[Sentence]:
    """The first sentence of each text that the structural filter accepted.

    Several of one text are no sample. A row has `masked`, `pronoun` and `row`, that of the text.
    """
    first: dict[int, Sentence] = {}
    for row in accepted:
        if sum(map(row["masked"].count, MASKS)) == 1:
            first.setdefault(row["row"], Sentence(row["masked"], row["pronoun"], row["row"] + 1))
    distinct = {sentence.text: sentence for sentence in reversed(first.values())}
    return list(reversed(distinct.values()))
