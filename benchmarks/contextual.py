r"""Contextual bias (Ye et al. 2021, §2.1) on a corpus: sentences found by rule, and their scores.

    python benchmarks/contextual.py find NAME=FILE[@FIRST:LAST] … -o docs/data/contextual.csv.xz
    python benchmarks/contextual.py score MODEL … [--as NAME …] [--each 100] [--data FILE]
    python benchmarks/contextual.py tables [--data FILE]

`find` writes the sentences that the rule accepts, `score` adds columns for a model, `tables` prints
the tables of docs/data/contextual.md. The verdicts of the judge are in
docs/data/contextual-verdicts.csv.

**The rule**, written before any sentence was seen. A sentence of a corpus is accepted if

1. it has 6 to 30 words, begins with a capital, ends with a full stop, and has no other mark than
   commas, hyphens and apostrophes within words; no word but the first is capitalised (I may be),
   and the first is a function word: nobody is named;
2. it has exactly one of the connectives below directly before *he* or *she*, which divides it into
   two clauses; the second begins with that pronoun;
3. each clause has a finite verb, and the first has a gendered word: a pronoun or a noun of the
   lexicon (a person, a member of a family, a role, royalty or a title);
4. the two state one gender: `context` would not leave the sentence out.

At first rule 3 asked for exactly one gendered noun and no pronoun in the first clause. That gave 39
sentences of 215 MB; it was changed when this number was known, and no sentence had been read.

So the first clause says who is spoken of and the second decides what is said. Of each gender as
written the same number is drawn at random, at most 300, with seed 0.

**The scores.** `score` is `evenhand measure context` of the sentence, in nats. `added` is that less
the mean score of the same sentence with a neutral second clause ("she was there", "she did so"):
what the second clause adds. With --each only so many sentences of each gender are scored, drawn at
random with seed 2.

**The judge's rule**, written before any sentence was read; 50 sentences are drawn at random with
seed 1. *Form*: it is a complete sentence of two clauses, and the pronoun refers to the gendered
word of the first. *Contextual*: besides, what it says of that person is no matter of definition or
biology, and a reader who knows today's or its time's stereotypes of women and men recognises one in
it, in line or against: with the gender swapped the sentence would imply something else.
"""

from __future__ import annotations

import argparse
import csv
import io
import lzma
import re
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

import numpy as np

from evenhand.instruments import Run, judge_results
from evenhand.lexicon.gendered import pairs
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.models import load
from evenhand.models.metrics.context import Context
from evenhand.results import Measurement
from evenhand.statistics.intervals import Floats, t_mean, wilson
from evenhand.statistics.tests import sign_test
from evenhand.text.block import Block
from evenhand.text.rewrite.swap import Swap
from evenhand.text.tagger import FUNCTION_WORDS, tag
from evenhand.text.tokens import sentences, tokenize
from funnel import read
from implicit_data import sentence_id

ROOT = Path(__file__).resolve().parents[1]
DATA = ROOT / "docs" / "data" / "contextual.csv.xz"
VERDICTS = DATA.with_name("contextual-verdicts.csv")
CONNECTIVES = ("because", "since", "so", "but", "yet", "although", "though")
KINDS = ("person", "family", "role", "royalty", "title")
NEUTRAL = ("was there", "did so")
LENGTHS = range(6, 31)
EACH, JUDGED = 300, 50
PLAIN = re.compile(r"[A-Z][a-z]*(?:,? (?:I|[a-z]+(?:['-][a-z]+)*))+\.")
JOINT = re.compile(rf",? ({'|'.join(CONNECTIVES)}) (he|she) ")
FINITE = frozenset("VAM")
COLUMNS = ("id", "sentence", "second", "connective", "written", "source", "line")
Row = dict[str, str]


@cache
def gendered_words() -> frozenset[str]:
    """The gendered pronouns, and the gendered nouns of the lexicon for one person or several."""
    return frozenset(PRONOUNS) | frozenset(
        word
        for pair in pairs()
        if pair.kind in KINDS
        for word in (pair.female, pair.male)
        if word.isalpha() and word.islower()
    )


def find_contextual(sentence: str) -> Row | None:
    """The sentence with the start of its second clause, if rules 1 to 3 accept it.

    >>> find_contextual("The girl cried, because she was afraid of the dark.")["second"]
    '24'
    >>> find_contextual("The girl cried, because the boy was afraid of the dark.")
    """
    joints = list(JOINT.finditer(sentence))
    if len(joints) != 1 or not PLAIN.fullmatch(sentence) or len(sentence.split()) not in LENGTHS:
        return None
    [joint] = joints
    tokens, starts = tokenize(sentence)
    if tokens[0].lower() not in FUNCTION_WORDS:
        return None
    tags = tag(tokens)
    cut = next(i for i, start in enumerate(starts) if start >= joint.start(2))
    if not gendered_words() & {token.lower() for token in tokens[:cut]}:
        return None
    if not (FINITE & set(tags[:cut]) and FINITE & set(tags[cut + 1 :])):
        return None
    return {"sentence": sentence, "second": str(joint.start(2)), "connective": joint[1]}


def one_gender(rows: Sequence[Row]) -> Iterator[Row]:
    """The rows whose sentence has gendered words of one gender (rule 4), with that gender."""
    block = Block.of_documents([row["sentence"] for row in rows])
    found = {
        written: {
            int(np.searchsorted(block.starts, edit.offset, side="right")) - 1
            for edit in Swap(direction=direction)(block)
        }
        for written, direction in (("male", "male-to-female"), ("female", "female-to-male"))
    }
    for k, row in enumerate(rows):
        genders = [written for written, where in found.items() if k in where]
        if len(genders) == 1:
            yield {**row, "written": genders[0]}


def find(corpora: Sequence[str], target: Path) -> None:
    """Write a sample of what the rule accepts."""
    accepted: dict[str, Row] = {}
    for argument in corpora:
        name, _, rest = argument.partition("=")
        path, _, selection = rest.partition("@")
        rows = []
        for line, text in read(path, selection):
            if not JOINT.search(text):
                continue
            for start, end in sentences(text):
                if row := find_contextual(text[start:end].strip()):
                    rows.append({**row, "source": name, "line": f"{Path(path).name}:{line}"})
        kept = list(one_gender(rows))
        print(f"{argument}: {len(rows):,} by rules 1 to 3, {len(kept):,} of one gender", flush=True)
        for row in kept:
            accepted.setdefault(row["sentence"], row)
    rng = np.random.default_rng(0)
    chosen: list[Row] = []
    for written in ("female", "male"):
        rows = [row for row in accepted.values() if row["written"] == written]
        print(f"{written}: {len(rows):,} distinct")
        chosen += [rows[i] for i in np.sort(rng.permutation(len(rows))[:EACH])]
    save(target, [{"id": sentence_id(row["sentence"]), **row} for row in chosen])


def save(path: Path, rows: Sequence[Row]) -> None:
    """Write the corpus."""
    text = io.StringIO()
    writer = csv.DictWriter(text, rows[0].keys(), lineterminator="\n")
    writer.writeheader()
    writer.writerows(rows)
    path.write_bytes(lzma.compress(text.getvalue().encode(), preset=9))


def read_corpus(path: Path) -> list[Row]:
    """The published corpus."""
    with lzma.open(path, "rt", newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def with_neutral_clause(row: Row, clause: str) -> str:
    """The sentence with a neutral second clause."""
    start = int(row["second"])
    pronoun = row["sentence"][start:].split()[0]
    return f"{row['sentence'][:start]}{pronoun} {clause}."


def score(source: str, name: str, path: Path, each: int) -> None:
    """Add a model's scores to the corpus, of so many sentences of each gender (0: all)."""
    rows = read_corpus(path)
    chosen = [row for row in rows if not each]
    for written in ("female", "male") if each else ():
        own = [row for row in rows if row["written"] == written]
        chosen += [own[i] for i in np.random.default_rng(2).permutation(len(own))[:each]]
    texts = [row["sentence"] for row in chosen]
    texts += [with_neutral_clause(row, clause) for row in chosen for clause in NEUTRAL]
    m = Context()(load(source), texts)
    scores = dict(zip(m.items["sentence"], m.items["score"], strict=True))
    for row in rows:
        own_score = scores.get(row["sentence"], np.nan)
        general = np.mean([scores.get(with_neutral_clause(row, c), np.nan) for c in NEUTRAL])
        row[f"score {name}"] = f"{own_score:.4g}"
        row[f"added {name}"] = f"{own_score - general:.4g}"
    save(path, rows)


def summarise(rows: Sequence[Row], column: str) -> list[Measurement]:
    """The mean of a column, and with the sign of the gender that is written."""
    values = np.array([float(row[column]) for row in rows])
    as_written = values * np.array([1.0 if row["written"] == "male" else -1.0 for row in rows])
    verdict = read_verdicts()
    judged = np.array([verdict.get(row["id"], {}).get("contextual", "") for row in rows])
    quantity, _, model = column.partition(" ")
    groups = [("male less female", values), ("as written", as_written)]
    if quantity == "added":
        groups += [
            (f"as written, judged contextual: {answer}", as_written[judged == answer])
            for answer in ("yes", "no")
        ]

    def mean(name: str, x: Floats) -> Measurement:
        return Context.declaration.result(
            Run(),
            f"{quantity}, {name}",
            t_mean(x),
            n=x.size,
            p_value=sign_test(x),
            subject=model,
            test="sign test over sentences, two-sided",
            interval="Student's, over sentences",
        )

    return [mean(name, x[np.isfinite(x)]) for name, x in groups if np.isfinite(x).sum() > 1]


def read_verdicts() -> dict[str, Row]:
    """The judged sentences by id."""
    with VERDICTS.open(newline="", encoding="utf-8") as file:
        return {row["id"]: row for row in csv.DictReader(file)}


def tables(path: Path) -> str:
    """The tables of docs/data/contextual.md."""
    rows = read_corpus(path)
    sources = list(dict.fromkeys(row["source"] for row in rows))
    lines = ["| written | " + " | ".join(sources) + " | all |", "|" + " --- |" * (len(sources) + 2)]
    for written in ("female", "male"):
        own = [row["source"] for row in rows if row["written"] == written]
        counts = " | ".join(f"{own.count(source)}" for source in sources)
        lines.append(f"| {written} | {counts} | {len(own)} |")
    columns = [name for name in rows[0] if name.startswith(("score ", "added "))]
    measured = [m for column in columns for m in summarise(rows, column)]
    lines += ["", "| model | n | quantity | nats | p, corrected | |", "|" + " --- |" * 6]
    for m, (_, judgement) in zip(measured, judge_results(measured), strict=True):
        interval = f"{m.value:.2f} [{m.low:.2f}, {m.high:.2f}]"
        cells = (m.subject, str(m.n), m.query, interval, p_text(judgement.p), judgement.outcome)
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join([*lines, *verdict_table(rows)])


def p_text(p: float | None) -> str:
    """A p-value with two digits."""
    return "" if p is None else f"{p:.2g}"


def sample(rows: Sequence[Row]) -> list[Row]:
    """The sentences to be judged."""
    return [rows[i] for i in np.random.default_rng(1).permutation(len(rows))[:JUDGED]]


def verdict_table(rows: Sequence[Row]) -> list[str]:
    """The shares of the judged sentences."""
    verdicts = read_verdicts()
    judged = [verdicts[row["id"]] for row in sample(rows)]
    lines = ["", "| judged | yes | share |", "| --- | ---: | --- |"]
    for column in ("form", "contextual"):
        yes = sum(row[column] == "yes" for row in judged)
        value, low, high = (100 * x for x in wilson(yes, len(judged)))
        lines.append(
            f"| {column} | {yes} of {len(judged)} | {value:.0f} % [{low:.0f}, {high:.0f}] |"
        )
    return lines


def main() -> None:
    """Find, score, or print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("find", "score", "sheet", "tables"))
    parser.add_argument("sources", nargs="*")
    parser.add_argument("--as", dest="names", nargs="*", default=[])
    parser.add_argument("--each", type=int, default=0)
    parser.add_argument("-o", "--data", type=Path, default=DATA)
    options = parser.parse_args()
    if options.step == "find":
        find(options.sources, options.data)
    elif options.step == "score":
        for source, name in zip(options.sources, options.names or options.sources, strict=True):
            score(source, name, options.data, options.each)
            print(f"{name}: scored", flush=True)
    elif options.step == "sheet":
        for row in sample(read_corpus(options.data)):
            print(row["id"], row["sentence"])
    else:
        print(tables(options.data))


if __name__ == "__main__":
    main()
