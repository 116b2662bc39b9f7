"""The data set of docs/data: the sentences that the structural filter keeps, and their precision.

    python benchmarks/implicit_data.py docs/data                     # recount the verdicts
    python benchmarks/implicit_data.py docs/data --funnel OUT        # and write the data set

docs/data/implicit-verdicts.csv has the judged sentences: corpus, id, line, pronoun, verdict and
kind of error. An id is the beginning of the SHA-256 of a sentence, so that verdicts can be
recounted without its text. OUT is the folder of benchmarks/funnel.py, of which the corpora that may
be published are written, each to docs/data/implicit-NAME.csv.xz.
"""

from __future__ import annotations

import argparse
import csv
import hashlib
import io
import json
import lzma
from collections import Counter
from pathlib import Path

from evenhand.statistics.intervals import wilson

PUBLISHED = ("novels", "news", "wikibios")
"""The corpora whose licence allows it."""
COLUMNS = ("id", "sentence", "start", "pronoun", "antecedent", "source", "line", "verdict")
ERRORS = {
    "sentence": "no complete sentence",
    "person": "not a person",
    "antecedent": "the pronoun refers to somebody else",
    "term": "the term states a gender",
    "context": "another word implies it",
}

Row = dict[str, str]


def sentence_id(sentence: str) -> str:
    """The id of a sentence, whatever its corpus.

    >>> sentence_id("The cook dropped her spoon.")
    '030822e32cb4'
    """
    return hashlib.sha256(sentence.encode()).hexdigest()[:12]


def read_verdicts(path: Path) -> list[Row]:
    """The judged sentences; a no has a kind of error, a yes none."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    for row in rows:
        if row["verdict"] not in ("yes", "no") or (row["error"] in ERRORS) != (
            row["verdict"] == "no"
        ):
            raise SystemExit(f"{path}: id {row['id']}: got {row['verdict']!r}, {row['error']!r}")
    return rows


def precision(rows: list[Row]) -> dict[str, tuple[int, tuple[float, float, float], Counter[str]]]:
    """For every corpus the number judged, the share of yes with Wilson's interval, the errors."""
    found = {}
    for corpus in dict.fromkeys(row["corpus"] for row in rows):
        judged = [row for row in rows if row["corpus"] == corpus]
        errors = Counter(row["error"] for row in judged if row["verdict"] == "no")
        share = wilson(len(judged) - errors.total(), len(judged))
        found[corpus] = (len(judged), share, errors)
    return found


def write_corpus(accepted: Path, verdicts: list[Row], path: Path) -> int:
    """Write the accepted sentences of a corpus, with the verdict where there is one."""
    known = {row["id"]: row["verdict"] for row in verdicts if row["corpus"] == accepted.stem}
    text = io.StringIO()
    writer = csv.DictWriter(text, COLUMNS, restval="", extrasaction="ignore", lineterminator="\n")
    writer.writeheader()
    rows = [json.loads(line) for line in accepted.read_text(encoding="utf-8").splitlines()]
    for row in rows:
        name = sentence_id(row["sentence"])
        start = row["masked"].index("[MASK]")
        writer.writerow({**row, "id": name, "start": start, "verdict": known.pop(name, "")})
    if known:
        raise SystemExit(f"{accepted}: {len(known)} judged sentences are not in it")
    path.write_bytes(lzma.compress(text.getvalue().encode(), preset=9))
    return len(rows)


def main() -> None:
    """Print the precision and, with --funnel, write the data set."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("folder", type=Path)
    parser.add_argument("--funnel", type=Path)
    options = parser.parse_args()
    verdicts = read_verdicts(options.folder / "implicit-verdicts.csv")
    found = precision(verdicts)
    print(f"| | {' | '.join(found)} |\n|{' --- |' * (len(found) + 1)}")
    print(f"| judged | {' | '.join(str(n) for n, _, _ in found.values())} |")
    shares = [
        f"{100 * v:.0f} % [{100 * low:.0f}, {100 * high:.0f}]"
        for _, (v, low, high), _ in found.values()
    ]
    print(f"| structural | {' | '.join(shares)} |")
    for error, words in ERRORS.items():
        print(f"| {words} | {' | '.join(str(errors[error]) for *_, errors in found.values())} |")
    if options.funnel:
        for name in PUBLISHED:
            path = options.folder / f"implicit-{name}.csv.xz"
            n = write_corpus(options.funnel / f"{name}.jsonl", verdicts, path)
            print(f"{path}: {n:,} sentences, {path.stat().st_size:,} bytes")


if __name__ == "__main__":
    main()
