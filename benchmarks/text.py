"""Rewriting and filtering at corpus speed: ours, the usual ways and the limit, in one run.

    python benchmarks/text.py [--megabytes 8] [--text FILE…]

One core, text in memory, megabytes a second; the last column is the ratio to splitting at white
space and looking every piece up, which swaps "her" blindly and misses whatever touches
punctuation. `alternation` is one regular expression of all words. Without --text the corpus of
../shared is read, or, where that is not there, sentences made here.
"""

from __future__ import annotations

import argparse
import bz2
import re
import time
from collections.abc import Callable
from pathlib import Path

from evenhand.text import Block
from evenhand.text.edits import apply
from evenhand.text.rewrite import Rewriter
from evenhand.text.rewrite.names import Anonymize
from evenhand.text.rewrite.neutralize import Neutralize
from evenhand.text.rewrite.swap import Swap, build_substitution, pairing
from evenhand.text.structural import Filter
from evenhand.text.tokens import Words

CORPUS = Path(__file__).resolve().parents[2] / "shared/data/corpus"
MEGABYTE = 1_000_000
NOVELS = 80 * MEGABYTE


def sample(paths: list[Path], megabytes: float) -> str:
    """The beginning of each text and a part from further on, where the shared corpus has novels."""
    if not paths:
        result = "The doctor said that she had seen his brother with her. It rained all day.\n"
        return result * int(megabytes * MEGABYTE / len(result))
    share = int(megabytes * MEGABYTE / len(paths))
    texts = []
    for path in paths:
        with bz2.open(path) if path.suffix == ".bz2" else path.open("rb") as stream:
            texts.append(stream.read(share * 3 // 4))
            stream.seek(NOVELS)
            texts.append(stream.read(share // 4))
    return b"\n".join(texts).decode("utf-8", "surrogateescape")


def blocks(text: str) -> list[Block]:
    """Pieces of about a megabyte, cut at line ends."""
    pieces = []
    begin = 0
    while begin < len(text):
        end = text.find("\n", begin + MEGABYTE) + 1 or len(text)
        pieces.append(Block.of_lines(text[begin:end], first=len(pieces) * MEGABYTE))
        begin = end
    return pieces


def rate(text: str, work: Callable[[], object], repeats: int = 3) -> float:
    """Megabytes a second of processor time, the best of some runs."""
    times = []
    for _ in range(repeats):
        start = time.process_time()
        work()
        times.append(time.process_time() - start)
    return len(text) / MEGABYTE / min(times)


def rewriting(pieces: list[Block], rewriter: Rewriter) -> Callable[[], object]:
    """A complete rewriting: find, decide, apply."""
    return lambda: [apply(block.text, rewriter(block)) for block in pieces]


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--megabytes", type=float, default=8)
    parser.add_argument("--text", type=Path, nargs="*", default=sorted(CORPUS.glob("*.bz2")))
    options = parser.parse_args()
    text = sample(options.text, options.megabytes)
    pieces = blocks(text)
    flat = {word: after for word, (after, _) in pairing().forms.items()}
    flat |= {"her": "his", "his": "her", "Her": "His", "His": "Her"}
    listed = re.compile(r"\b(" + "|".join(map(re.escape, flat)) + r")\b")
    short = text[: MEGABYTE // 4]

    rates = {
        "split + dict": rate(
            text, lambda: " ".join([flat.get(word, word) for word in text.split(" ")])
        ),
        "alternation": rate(short, lambda: listed.sub(lambda m: flat[m.group()], short), 1),
        "limit: words only": rate(text, lambda: [Words(block.text) for block in pieces]),
        "swap": rate(text, rewriting(pieces, Swap())),
        "substitute": rate(text, rewriting(pieces, build_substitution())),
        "substitute, all documents": rate(
            text, rewriting(pieces, build_substitution(probability=1))
        ),
        "neutralize": rate(text, rewriting(pieces, Neutralize())),
        "anonymize": rate(text, rewriting(pieces, Anonymize())),
        "filter, by sentence": rate(text, lambda: [Filter(split=True)(b) for b in pieces]),
    }
    base = rates["split + dict"]
    print(f"{len(text) / MEGABYTE:.1f} MB, one core")
    print(f"{'':28}{'MB/s':>8}{'ratio':>8}")
    for name, value in rates.items():
        print(f"{name:28}{value:8.2f}{value / base:8.2f}")


if __name__ == "__main__":
    main()
