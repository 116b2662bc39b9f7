"""The structural filter's funnel on several corpora: what each step leaves, and why it drops.

    python benchmarks/funnel.py swag=sent1.txt bios=wikibios.csv.gz news=corpus.txt.bz2@0.9 \
        [--megabytes 2] [-o OUT]

Each argument is NAME=FILE; a CSV file has its text in the column `text`. Text after @ is the share
of the file's lines at which the sample begins, for files with several corpora in turn. Lines are
cut into sentences. At most --megabytes of each corpus are read (0: everything). Prints the tables
of docs/text.md; OUT gets funnel.json. Accepted sentences are not written.
"""

from __future__ import annotations

import argparse
import csv
import io
from collections import Counter
from pathlib import Path

from evenhand.files import document, save_json
from evenhand.statistics.intervals import wilson
from evenhand.text.block import Block
from evenhand.text.corpus.compression import open_content
from evenhand.text.structural import REASONS, STEPS, Filter

LINES_PER_BLOCK = 5000


def read(path: str, share: float, limit: int) -> list[str]:
    """The lines of a corpus from a share of its lines on, at most `limit` characters."""
    with open_content(path) as file:
        text = file.read().decode("utf-8", "replace")
    if ".csv" in Path(path).suffixes:
        csv.field_size_limit(1 << 24)
        lines = [" ".join(row["text"].split()) for row in csv.DictReader(io.StringIO(text))]
    else:
        lines = text.split("\n")
    chosen, size = [], 0
    for line in lines[int(share * len(lines)) :]:
        if limit and size + len(line) > limit:
            break
        if line.strip():
            chosen.append(line)
            size += len(line)
    return chosen


def funnel(lines: list[str]) -> Counter[str]:
    """The counts of the filter over all sentences."""
    counts: Counter[str] = Counter()
    keep = Filter(split=True)
    for start in range(0, len(lines), LINES_PER_BLOCK):
        counts.update(keep(Block.of_documents(lines[start : start + LINES_PER_BLOCK])).counts)
    return counts


def main() -> None:
    """Print the funnel of every corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", metavar="NAME=FILE[@SHARE]")
    parser.add_argument("--megabytes", type=float, default=2)
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    found: dict[str, Counter[str]] = {}
    for corpus in options.corpora:
        name, _, rest = corpus.partition("=")
        path, _, share = rest.partition("@")
        lines = read(path, float(share or 0), int(options.megabytes * 1e6))
        found[name] = funnel(lines)
        print(f"{name}: {len(lines):,} lines, {sum(map(len, lines)) / 1e6:.1f} MB", flush=True)
    print(f"\n| left after | {' | '.join(found)} |\n|{' --- |' * (len(found) + 1)}")
    for step in STEPS:
        print(
            f"| {step.replace('_', ' ')} | {' | '.join(f'{c[step]:,}' for c in found.values())} |"
        )
    shares = []
    for counts in found.values():
        value, low, high = (100 * x for x in wilson(counts["accepted"], counts["read"]))
        shares.append(f"{value:.2f} % [{low:.2f}, {high:.2f}]")
    print(f"| accepted, share | {' | '.join(shares)} |")
    print(f"\n| dropped because | {' | '.join(found)} |\n|{' --- |' * (len(found) + 1)}")
    for reason, words in REASONS.items():
        cells = [f"{counts['reason:' + reason]:,}" for counts in found.values()]
        print(f"| {words} | {' | '.join(cells)} |")
    if options.out:
        options.out.mkdir(exist_ok=True)
        save_json(options.out / "funnel.json", document(**{k: dict(v) for k, v in found.items()}))


if __name__ == "__main__":
    main()
