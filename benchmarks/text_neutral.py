"""Neutral rewriting: word error rate and exact match on our gold sentences, and speed.

    python benchmarks/text_neutral.py [--split held] [--corpus ../shared/data/corpus]

The word error rate is the edit distance in words, summed over sentences, by the number of words of
the gold sentences; its interval is a bootstrap over sentences. Exact match is the share of
sentences that come out as the gold has them, with Wilson's interval. Speed is measured on novels
and on encyclopedia text against a plain regular expression that only replaces the pronouns.
"""

from __future__ import annotations

import argparse
import bz2
import re
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from evenhand.statistics.intervals import wilson
from evenhand.text.block import Block
from evenhand.text.rewrite import rewrite_all
from evenhand.text.rewrite.neutralize import Neutralize

ROOT = Path(__file__).parents[1]
DATA = ROOT / "tests" / "text" / "data"
GOLD = ("neutral.tsv", "neutral2.tsv")
CORPUS = ROOT.parent / "shared" / "data" / "corpus"
PRONOUN = re.compile(r"\b(?:he|she|him|hers?|his|himself|herself)\b", re.IGNORECASE)
LONG, DENSE = 6000, 0.03
"""So many characters and such a share of gendered pronouns make a document a novel's."""


def word_errors(ours: str, gold: str) -> tuple[int, int]:
    """The edit distance in words, and the number of words of the gold.

    >>> word_errors("they is here", "they are here")
    (1, 3)
    """
    first, two = ours.split(), gold.split()
    row = list(range(len(two) + 1))
    for i, word in enumerate(first, 1):
        corner, row[0] = row[0], i
        for j, other in enumerate(two, 1):
            change = corner + (word != other)
            corner, row[j] = row[j], min(row[j] + 1, row[j - 1] + 1, change)
    return row[-1], len(two)


def read_gold(name: str) -> list[list[str]]:
    """The rows of a file of gold sentences: id, split, genre, source, target."""
    lines = (DATA / name).read_text(encoding="utf-8").splitlines()
    return [line.split("\t") for line in lines[1:]]


def rewritten(rows: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    """Our sentence beside the gold one, for each row."""
    ours = [str(r) for r in rewrite_all([row[3] for row in rows], Neutralize())]
    return list(zip(ours, [row[4] for row in rows], strict=True))


def scores(rows: Sequence[Sequence[str]]) -> tuple[int, int, int]:
    """Wrong words, words of the gold, and sentences that are exactly as the gold has them."""
    pairs = rewritten(rows)
    counts = [word_errors(*pair) for pair in pairs]
    exact = sum(first == two for first, two in pairs)
    return sum(wrong for wrong, _ in counts), sum(words for _, words in counts), exact


def report(name: str, rows: Sequence[Sequence[str]]) -> None:
    """One line of the table."""
    pairs = rewritten(rows)
    counts = np.array([word_errors(*pair) for pair in pairs])
    draws = np.random.default_rng(0).integers(0, len(rows), (2000, len(rows)))
    sampled = counts[draws].sum(1)
    low, high = np.quantile(sampled[:, 0] / sampled[:, 1], [0.025, 0.975])
    rate = counts[:, 0].sum() / counts[:, 1].sum()
    exact = sum(first == two for first, two in pairs)
    share, bottom, top = wilson(exact, len(rows))
    print(
        f"{name:16}{len(rows):>6}{rate:>9.2%} [{low:.2%}, {high:.2%}]"
        f"{share:>9.1%} [{bottom:.1%}, {top:.1%}]"
    )


def dense(document: str) -> bool:
    """Whether the document is as full of pronouns as a novel."""
    return len(PRONOUN.findall(document)) > DENSE * len(document.split())


def speed(name: str, documents: Sequence[str], repeats: int = 3) -> None:
    """Megabytes a second, ours and the expression that only replaces pronouns."""
    text = "\n".join(documents)
    block, rewriter = Block.of_lines(text), Neutralize()
    ways: dict[str, Callable[[], object]] = {
        "ours": lambda: rewriter(block),
        "pronouns alone": lambda: PRONOUN.sub("they", text),
    }
    for way in ways.values():
        way()
    best = dict.fromkeys(ways, float("inf"))
    for _ in range(repeats):
        for label, way in ways.items():
            start = time.process_time()
            way()
            best[label] = min(best[label], time.process_time() - start)
    rates = {label: len(text.encode()) / 1e6 / seconds for label, seconds in best.items()}
    ratio = rates["ours"] / rates["pronouns alone"]
    print(f"{name:16}{rates['ours']:>8.2f} MB/s{rates['pronouns alone']:>10.1f}{ratio:>10.3f}")


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--split", choices=["tune", "held"], help="only this half")
    parser.add_argument("--corpus", type=Path, default=CORPUS)
    options = parser.parse_args()
    for name in GOLD:
        print(f"{name:16}{'n':>6}{'word error rate':>25}{'exact match':>24}")
        for split in [options.split] if options.split else ["tune", "held"]:
            chosen = [row for row in read_gold(name) if row[1] == split]
            report(split, chosen)
            for genre in sorted({row[2] for row in chosen}):
                report(f"  {genre}", [row for row in chosen if row[2] == genre])
    path = options.corpus / "corpus-2.txt.bz2"
    if not path.exists():
        print(f"{path}: not there, so no speed")
        return
    with bz2.open(path, "rt", encoding="utf-8") as file:
        documents = file.read().split("\n\n")
    novels = [d for d in documents if len(d) > LONG and dense(d)]
    print(f"\n{'':16}{'ours':>13}{'pronouns':>10}{'ratio':>10}")
    speed("all text", documents[::40])
    speed("novels", novels[::5])


if __name__ == "__main__":
    main()
