"""Words of running text by what they are when capitalised: the lists the name finder reads.

Three files, each a word a line by falling frequency, are counted from English text and the first
names of the lexicon; no list of others is used.

- common_words.txt: words mostly written in lower case that also begin sentences or stand in
  headings, where their capital says nothing.
- surnames.txt: words that often stand last behind a first name, an initial or a title.
- proper_words.txt: words mostly capitalised that hardly ever stand there (places, peoples, makers).

    python tools/name_words.py corpus-1.txt.bz2 corpus-2.txt.bz2 -o src/evenhand/lexicon/data
"""

from __future__ import annotations

import argparse
import bz2
import re
import sys
from collections import Counter
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from evenhand.files import replace_file
from evenhand.lexicon.first_names import names, persons

LOWER = re.compile(r"(?<![\w'-])[a-z]{2,}(?![\w'-])")
PLACE = re.compile(r"\b(?:[Ii]n|[Nn]ear|[Aa]t|[Tt]he|into|across|a|an) ([A-Z][a-z]+)")
OPENING = re.compile(r"(?:^|[.!?:\"'] )[\"']?([A-Z][a-z]+)(?![\w'-])", re.MULTILINE)
RUN = re.compile(r"(?<=[a-z,;] )[A-Z][a-z]*\.?(?: [A-Z][a-z]*\.?)*(?![\w'-])")
LARGEST = 95_000
"""Bytes a list may have."""


@dataclass
class Counts:
    """In how many documents each word was in lower case, capitalised, the last part of a name,
    where a place, a people or a thing stands ("in …", "the …"), or first in a sentence.

    Documents and not places are counted: the hero of one novel is no common surname.
    """

    lower: Counter[str] = field(default_factory=Counter)
    capital: Counter[str] = field(default_factory=Counter)
    surname: Counter[str] = field(default_factory=Counter)
    place: Counter[str] = field(default_factory=Counter)
    opening: Counter[str] = field(default_factory=Counter)

    def add(self, text: str, first: frozenset[str], titles: frozenset[str]) -> None:
        """Count the words of one document."""
        capital: set[str] = set()
        surname: set[str] = set()
        for run in RUN.findall(text):
            parts = run.split()
            capital.update(part.lower() for part in parts if not part.endswith("."))
            last, opening = parts[-1].rstrip("."), parts[0].lower().rstrip(".")
            initial = len(parts) > 1 and len(parts[-2]) == 2
            named = initial or opening in first or opening in titles
            if named and len(parts) in (2, 3) and len(last) > 2:
                surname.add(last.lower())
        self.lower.update(set(LOWER.findall(text)))
        self.capital.update(capital)
        self.surname.update(surname)
        self.opening.update({word.lower() for word in OPENING.findall(text)})
        self.place.update({word.lower() for word in PLACE.findall(text)})


def documents(path: Path, limit: int) -> Iterator[str]:
    """The documents of a plain or bz2 file, a blank line between them, up to so many characters."""
    lines: list[str] = []
    with bz2.open(path, "rt") if path.suffix == ".bz2" else path.open() as file:
        for line in file:
            limit -= len(line)
            if limit < 0:
                break
            if line.strip():
                lines.append(line)
            else:
                yield "".join(lines)
                lines = []
    yield "".join(lines)


def ranked(counter: Counter[str]) -> list[tuple[str, int]]:
    """Words and counts by falling count, then by the alphabet: every run writes the same."""
    return sorted(counter.items(), key=lambda pair: (-pair[1], pair[0]))


def write(path: Path, words: Iterable[str]) -> None:
    """As many words as fit into the largest list."""
    text = ""
    for word in words:
        if len(text) + len(word) >= LARGEST:
            break
        text += word + "\n"
    with replace_file(path) as file:
        file.write(text.encode())
    print(f"{path.name}: {text.count(chr(10))} words, {len(text)} bytes")


def write_lists(out: Path, counts: Counts, first: frozenset[str], every: frozenset[str]) -> None:
    """Sort the counted words into the three lists."""
    words = persons()
    lower, capital, surname = counts.lower, counts.capital, counts.surname
    write(
        out / "common_words.txt",
        (
            w
            for w, _ in ranked(counts.opening + capital)
            if lower[w] >= max(5, capital[w]) or (w in every and lower[w] >= 15)
        ),
    )
    write(
        out / "surnames.txt",
        (
            w
            for w, n in ranked(surname)
            if n >= 3
            and n >= 0.15 * capital[w]
            and lower[w] < 20 * capital[w]
            and w not in words["heads"]
            and w not in words["titles"]
        ),
    )
    write(
        out / "proper_words.txt",
        (
            w
            for w, n in ranked(capital)
            if n >= 10
            and surname[w] < 0.03 * n
            and counts.place[w] > 0.3 * n
            and lower[w] < n
            and w not in first
        ),
    )


def main(arguments: list[str] | None = None) -> None:
    """Count and write the three lists."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("text", type=Path, nargs="+", help="English text, a paragraph a line")
    parser.add_argument("-o", "--out", type=Path, required=True, help="folder of the lists")
    parser.add_argument("--limit", type=int, default=60_000_000, help="characters read of a file")
    options = parser.parse_args(arguments)
    known, words = names(), persons()
    # A first name that is also a word or a place proves nothing about the word behind it.
    first = frozenset(
        name.lower()
        for name in (*known.female[:1200], *known.male[:1200])
        if name not in known.ambiguous and name.lower() not in words["proper"]
    )
    every = frozenset(name.lower() for name in known.table)
    counts = Counts()
    try:
        for path in options.text:
            for document in documents(path, options.limit):
                counts.add(document, first, words["titles"])
        write_lists(options.out, counts, first, every)
    except OSError as problem:
        sys.exit(f"error: {problem.filename}: {problem.strerror}")


if __name__ == "__main__":
    main()
