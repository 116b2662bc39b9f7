"""Train the embedded judge of pronouns (assets/grammar.npz) on plain text, without labels.

    python tools/train_grammar.py --text corpus-1.txt.bz2 corpus-2.txt.bz2 --out grammar.npz

A file holds documents separated by blank lines, or one per line. Every twentieth document is held
out and measured at the end. The same text and seed give the same bytes.
"""

from __future__ import annotations

import argparse
import bz2
import gzip
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path

from threadpoolctl import threadpool_limits

from evenhand.files import replace_file
from evenhand.statistics.intervals import wilson
from evenhand.text.grammar import Model, read_model
from grammar_training.classes import word_classes
from grammar_training.examples import Example, of_contraction, of_her, of_his
from grammar_training.fitting import fit
from grammar_training.verbs import VERBS
from grammar_training.writing import write_model

Finder = Callable[[str], Iterable[Example]]
TASKS: dict[str, tuple[Finder, float, int]] = {
    "her": (of_her, 0.55, 80_000),
    "his": (of_his, 0.9, 12_000),
    "contraction": (of_contraction, 0.7, 20_000),
}
"""For each question: what finds its examples, the share of yes to expect, features to keep."""

HELD = 20


def documents(path: Path) -> list[str]:
    """The documents of a text file, plain, gzip or bz2."""
    opener = {".bz2": bz2.open, ".gz": gzip.open}.get(path.suffix, open)
    with opener(path, "rt", encoding="utf-8") as file:
        text = file.read()
    return text.split("\n\n") if "\n\n" in text.strip("\n") else text.splitlines()


def parts(paths: Sequence[Path]) -> tuple[list[str], list[str]]:
    """The documents to train on and those held out: every twentieth of each file."""
    train: list[str] = []
    held: list[str] = []
    for path in paths:
        for number, document in enumerate(documents(path)):
            (held if number % HELD == HELD - 1 else train).append(document)
    return train, held


def train_model(train: Sequence[str], *, words: int, min_count: int, seed: int) -> Model:
    """The model of some documents."""
    with threadpool_limits(1):  # faster here than several, and the order of sums is fixed
        kinds = word_classes(train, words, seed)
        tasks = {}
        for name, (finder, share, size) in TASKS.items():
            examples = [example for document in train for example in finder(document)]
            print(f"{name}: {len(examples):,} examples", file=sys.stderr)
            tasks[name] = fit(examples, kinds, VERBS, share=share, min_count=min_count, size=size)
    # as it will be read: with rounded weights
    return read_model(write_model(Model(kinds, VERBS, tasks)))


def report(model: Model, held: Sequence[str]) -> None:
    """Print how often the model is right on the documents it has not seen, by label."""
    for name, (finder, _, _) in TASKS.items():
        examples = [example for document in held for example in finder(document)]
        for yes in (True, False):
            calls = [example.around for example in examples if example.yes is yes]
            right = sum((model.score(name, around) > 0) is yes for around in calls)
            if calls:
                rate, low, high = wilson(right, len(calls))
                share = f"{rate:.4f} [{low:.4f}, {high:.4f}]"
                print(f"{name:12} {'yes' if yes else 'no':4} {len(calls):8,} {share}")


def main(arguments: list[str] | None = None) -> int:
    """Train, measure, write."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--text", type=Path, nargs="+", required=True, help="training text")
    parser.add_argument("--out", type=Path, required=True, help="the file to write")
    parser.add_argument("--words", type=int, default=25_000, help="words that get a class")
    parser.add_argument("--least", type=int, default=4, help="times a feature must be seen")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args(arguments)
    start = time.perf_counter()
    try:
        train, held = parts(options.text)
    except (OSError, UnicodeDecodeError) as problem:
        print(f"error: {problem}", file=sys.stderr)
        return 2
    model = train_model(train, words=options.words, min_count=options.least, seed=options.seed)
    report(model, held)
    data = write_model(model)
    with replace_file(options.out) as file:
        file.write(data)
    print(f"{options.out}: {len(data):,} bytes, {time.perf_counter() - start:.0f} s")
    return 0


if __name__ == "__main__":
    sys.exit(main())
