"""Person names: precision and recall on the hand-marked documents, and speed on running text.

Run: python benchmarks/text_names.py [FILE.bz2 [megabytes]]

The marked documents are tests/text/persons.txt, of which both halves flatter the rules (the word
lists were written after them), and real biographies marked before the rules were run on them, which
give the figure to quote ("real"). The text is ../shared/data/corpus by default. The plain method to
compare with takes every capitalised first name of the lexicon together with the capitalised words
that follow it.
"""

from __future__ import annotations

import bz2
import csv
import gzip
import re
import sys
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from pathlib import Path

from evenhand.lexicon.first_names import names
from evenhand.text.block import Block
from evenhand.text.people import find_people
from evenhand.text.rewrite.names import Anonymize, NameSwap
from evenhand.text.tokens import Words

ROOT = Path(__file__).resolve().parents[1]
GOLD = ROOT / "tests" / "text" / "persons.txt"
BIOGRAPHIES = ROOT / "tests" / "text" / "bios_persons.txt"
OPENING = 420
SHARED = ROOT.parent / "shared" / "data"
MARK = re.compile(r"\[([^\]]+)\]")
CAPITALISED = re.compile(r"[A-Z]\w+(?: [A-Z]\w+)*")

Span = tuple[int, int]


@dataclass(frozen=True)
class Marked:
    """A document, its kind, and where the names of persons stand in it."""

    kind: str
    text: str
    spans: tuple[Span, ...]


def read_marked(path: Path = GOLD) -> tuple[list[Marked], list[Marked]]:
    """The documents for tuning and those held back."""
    result: list[Marked] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        kind, _, marked = line.partition("|")
        text, spans, done = "", [], 0
        for mark in MARK.finditer(marked):
            text += marked[done : mark.start()]
            spans.append((len(text), len(text) + len(mark.group(1))))
            text += mark.group(1)
            done = mark.end()
        result.append(Marked(kind, text + marked[done:], tuple(spans)))
    return result[::2], result[1::2]


def read_biographies(table: Path, path: Path = BIOGRAPHIES) -> list[Marked]:
    """The openings of real biographies, whose texts are not part of the project."""
    with gzip.open(table, "rt", encoding="utf-8", newline="") as file:
        texts = {row["id"]: row["text"][:OPENING] for row in csv.DictReader(file)}
    result: list[Marked] = []
    for line in path.read_text(encoding="utf-8").splitlines():
        if line.startswith("#"):
            continue
        number, *mentions = line.split("|")
        text, done, spans = texts[number], 0, []
        for mention in mentions:
            match = re.compile(rf"(?<!\w){re.escape(mention)}(?!\w)").search(text, done)
            if match is None:
                raise SystemExit(f"error: {path}: biography {number} does not hold {mention!r}")
            spans.append(match.span())
            done = match.end()
        result.append(Marked("biography", text, tuple(spans)))
    return result


def found_by_rules(text: str) -> list[Span]:
    """The spans of the names that `people` finds."""
    return [(person.start, person.end) for person in find_people(text)]


def found_by_lexicon(text: str) -> list[Span]:
    """The spans of capitalised runs that begin with a first name of the lexicon."""
    runs = CAPITALISED.finditer(text)
    return [run.span() for run in runs if run.group().split()[0] in names()]


def word_spans(text: str, spans: Iterable[Span]) -> set[Span]:
    """The spans of the single words."""
    word = re.compile(r"\S+")
    return {match.span() for span in spans for match in word.finditer(text, *span)}


def scores(
    documents: Iterable[Marked], find: Callable[[str], list[Span]], *, words: bool
) -> tuple[float, float, float]:
    """Precision, recall and F1, of complete names or of their words."""
    right = wrong = missed = 0
    for document in documents:
        gold, got = set(document.spans), set(find(document.text))
        if words:
            gold, got = word_spans(document.text, gold), word_spans(document.text, got)
        right += len(gold & got)
        wrong += len(got - gold)
        missed += len(gold - got)
    precision, recall = right / (right + wrong), right / (right + missed)
    return precision, recall, 2 * precision * recall / (precision + recall)


def proper_nouns(path: Path) -> tuple[int, int]:
    """How many words of names found in a treebank there are, and how many of them are PROPN."""
    total = proper = 0
    for sentence in path.read_text(encoding="utf-8").split("\n\n"):
        text, tags = "", {}
        for row in sentence.splitlines():
            cells = row.split("\t")
            if len(cells) > 7 and cells[0].isdigit():
                tags[len(text)] = cells[3]
                text += cells[1] + ("" if "SpaceAfter=No" in cells[9] else " ")
        for person in find_people(text):
            for part in person.parts:
                total += 1
                proper += tags.get(part.start) == "PROPN"
    return total, proper


def speed(job: Callable[[], object], megabytes: float) -> float:
    """Megabytes a CPU-second, the best of three."""
    best = float("inf")
    for _ in range(3):
        start = time.process_time()
        job()
        best = min(best, time.process_time() - start)
    return megabytes / best


def main(text: Path = SHARED / "corpus" / "corpus-1.txt.bz2", megabytes: int = 8) -> None:
    """Print the tables."""
    print(f"{'documents':<12}{'unit':<8}{'method':<28}{'precision':>10}{'recall':>8}{'F1':>7}")
    methods = {"evenhand": found_by_rules, "lexicon + capitals": found_by_lexicon}
    sets = dict(zip(("tune", "held"), read_marked(), strict=True))
    bios = SHARED / "bios" / "wikibios.csv.gz"
    if bios.exists():
        sets["real"] = read_biographies(bios)
    for half, documents in sets.items():
        for unit in ("words", "names"):
            for label, find in methods.items():
                p, r, f = scores(documents, find, words=unit == "words")
                print(f"{half:<12}{unit:<8}{label:<28}{p:>10.3f}{r:>8.3f}{f:>7.3f}")
    treebank = SHARED / "ud" / "en_ewt-ud-dev.conllu"
    if treebank.exists():
        total, proper = proper_nouns(treebank)
        print(
            f"UD EWT dev: {proper} of {total} words of names found are PROPN ({proper / total:.1%})"
        )
    if text.exists():
        with bz2.open(text, "rt", encoding="utf-8") as file:
            block = Block.of_lines(file.read(megabytes * 10**6))
        limit = speed(lambda: Words(block.text), megabytes)
        print(f"{megabytes} MB of {text.name}, one document per line")
        print(f"{'work':<40}{'MB/s':>7}{'of limit':>10}")
        jobs: list[tuple[str, Callable[[], object]]] = [
            ("names swapped, fixed", lambda: NameSwap("fixed")(block)),
            ("names swapped, random", lambda: NameSwap("random")(block)),
            ("anonymize", lambda: Anonymize()(block)),
        ]
        for label, job in jobs:
            rate = speed(job, megabytes)
            print(f"{label:<40}{rate:>7.1f}{rate / limit:>10.2f}")
        print(f"{'limit: splitting the text into words':<40}{limit:>7.1f}{1:>10.2f}")


if __name__ == "__main__":
    main(*map(Path, sys.argv[1:2]), *map(int, sys.argv[2:3]))
