"""The structural filter's funnel on several corpora: what each step leaves, and why it drops.

    python benchmarks/funnel.py swag=sent1.txt bios=wikibios.csv.gz news=a.txt.bz2@335759: \
        news=b.txt.bz2@310506: [--megabytes 0] [--sample 100] [-o OUT]

Each argument is NAME=FILE; a CSV file has its text in the column `text`, and the column `id`, if
there is one, identifies a row. Text after @ is FIRST:LAST, the lines to read (from 1), for files
with several corpora in turn; a NAME that is there twice is one corpus in two files. Lines are cut
into sentences. --megabytes limits what is read of each file (0: everything). Prints the tables of
docs/data/implicit.md. OUT gets funnel.json, the accepted sentences of each corpus (NAME.jsonl,
repeated ones once) and, with --sample, a sheet of that many of them, drawn at random, to be
judged (NAME.csv, as `evenhand lab annotate sheet` writes it).
"""

from __future__ import annotations

import argparse
import csv
import io
import json
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from evenhand.files import document, save_json
from evenhand.statistics.intervals import wilson
from evenhand.text.block import Block
from evenhand.text.corpus.compression import open_content
from evenhand.text.sheets import write_sheet
from evenhand.text.structural import REASONS, STEPS, Filter

LINES_PER_BLOCK = 5000

Line = tuple[str, str]
"""What identifies a line (its number, or the id of its row), and its text."""


def read(path: str, lines: str = "", limit: int = 0) -> list[Line]:
    """The lines FIRST:LAST of a corpus that are not blank, at most `limit` characters."""
    first, _, last = lines.partition(":")
    chosen: list[Line] = []
    size = 0
    for number, (name, text) in enumerate(_lines(path), 1):
        if number < int(first or 1) or (last and number > int(last)) or not text.strip():
            continue
        if limit and size + len(text) > limit:
            break
        chosen.append((name, text))
        size += len(text)
    return chosen


def _lines(path: str) -> Iterator[Line]:
    with open_content(path) as file:
        text = file.read().decode("utf-8", "replace")
    if ".csv" in Path(path).suffixes:
        csv.field_size_limit(1 << 24)
        for number, row in enumerate(csv.DictReader(io.StringIO(text)), 1):
            yield row.get("id") or str(number), " ".join(row["text"].split())
    else:
        for number, line in enumerate(text.split("\n"), 1):
            yield str(number), line


def funnel(lines: list[Line], source: str = "") -> tuple[Counter[str], list[dict[str, object]]]:
    """The counts of the filter over all sentences, and the accepted ones."""
    counts: Counter[str] = Counter()
    accepted: list[dict[str, object]] = []
    keep = Filter(split=True)
    for start in range(0, len(lines), LINES_PER_BLOCK):
        part = lines[start : start + LINES_PER_BLOCK]
        done = keep(Block.of_documents([text for _, text in part]))
        counts.update(done.counts)
        accepted += [
            {**row, "line": part[row["line"] - 1][0], "source": source}
            for row in map(json.loads, done.output.splitlines())
        ]
    return counts, accepted


def main() -> None:
    """Print the funnel of every corpus."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", metavar="NAME=FILE[@FIRST:LAST]")
    parser.add_argument("--megabytes", type=float, default=0)
    parser.add_argument("--sample", type=int, default=0)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("-o", "--out", type=Path)
    options = parser.parse_args()
    found: dict[str, Counter[str]] = {}
    sentences: dict[str, dict[str, dict[str, object]]] = {}
    for corpus in options.corpora:
        name, _, rest = corpus.partition("=")
        path, _, selection = rest.partition("@")
        lines = read(path, selection, int(options.megabytes * 1e6))
        counts, accepted = funnel(lines, Path(path).name)
        counts["lines"], counts["characters"] = len(lines), sum(len(text) for _, text in lines)
        found.setdefault(name, Counter()).update(counts)
        for row in accepted:
            sentences.setdefault(name, {}).setdefault(str(row["sentence"]), row)
        print(f"{name}: {len(lines):,} lines, {counts['characters'] / 1e6:.1f} MB", flush=True)
    for name, counts in found.items():
        counts["distinct"] = len(sentences.get(name, ()))
    _print(found)
    if options.out:
        options.out.mkdir(exist_ok=True, parents=True)
        save_json(options.out / "funnel.json", document(**{k: dict(v) for k, v in found.items()}))
        for name, rows in sentences.items():
            path = options.out / f"{name}.jsonl"
            content = "".join(json.dumps(row, ensure_ascii=False) + "\n" for row in rows.values())
            path.write_text(content, encoding="utf-8")
            if options.sample:
                sample = min(options.sample, len(rows))
                write_sheet(path, path.with_suffix(".csv"), sample=sample, seed=options.seed)


def _print(found: dict[str, Counter[str]]) -> None:
    print(f"\n| left after | {' | '.join(found)} |\n|{' --- |' * (len(found) + 1)}")
    for step in (*STEPS, "distinct"):
        cells = [f"{counts[step]:,}" for counts in found.values()]
        print(f"| {step.replace('_', ' ')} | {' | '.join(cells)} |")
    shares = []
    for counts in found.values():
        value, low, high = (100 * x for x in wilson(counts["accepted"], counts["read"]))
        shares.append(f"{value:.2f} % [{low:.2f}, {high:.2f}]")
    print(f"| accepted, share | {' | '.join(shares)} |")
    print(f"\n| dropped because | {' | '.join(found)} |\n|{' --- |' * (len(found) + 1)}")
    for reason, words in REASONS.items():
        cells = [f"{counts['reason:' + reason]:,}" for counts in found.values()]
        print(f"| {words} | {' | '.join(cells)} |")


if __name__ == "__main__":
    main()
