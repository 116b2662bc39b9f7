"""Make the statistics by which `neutralize` distinguishes "she plays" from "the plays".

    python tools/make_verbs.py ../shared/data/corpus/corpus-*.txt.bz2

Reads running English text, and writes two tables that hold only counts of that text:

- verbs.csv: each verb, and the log odds that its -s form is the verb, not a plural noun;
- verb_contexts.csv: each common word, and what it says about an -s form when it stands just
  before it or just after it (log odds).

No text is annotated. An -s form is a verb or a noun by a two-class mixture over (form, word
before, word after), the two words independent given the class (naive Bayes), fitted by EM. The
classes are anchored by forms whose stem is hardly ever seen
after a modal, or between `to` and an object: they are nouns, and begin
from the words before: "he plays" is a verb, "the plays" is not.
"""

from __future__ import annotations

import argparse
import bz2
import csv
import io
import re
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from evenhand.files import replace_file
from evenhand.text.tagger import FUNCTION_WORDS, OPEN_WORDS
from evenhand.text.vocabulary import ADVERBS_IN_S, shape, stems, word_set

TARGET = Path(__file__).parents[1] / "src" / "evenhand" / "lexicon" / "data"
TOKEN = re.compile(r"[A-Za-z]+(?:'[a-z]+)?|\d[\d,.]*\d|[^\s]")
FORM = re.compile(r"[a-z]+[a-hj-rtv-z]s")
AUXILIARIES = word_set("is was has does")
TO_OBJECT = [["to", word] for word in ("the", "a", "an", "it", "him", "them", "me", "his", "my")]
MODALS = word_set(
    "will would can could should must may might shall cannot didn't don't won't can't couldn't "
    "wouldn't doesn't"
)
SUBJECTS = word_set("he she it who which")
DETERMINERS = word_set(
    "the these those many several some few various other two three four five six ten of their "
    "his our my your all such more most both"
)
FUNCTION_VERBS = word_set(
    "better cause damn down further last like long near out please right second still up well okay"
)
"""Function words that are verbs, too: "she likes it", "he ups the ante"."""
COMMON = 600
"""So many words count as contexts of their own; the others by their shape."""
LEAST = 3
"""A stem seen this often after a modal, or between `to` and an object, is a verb."""
ROUNDS = 25


def lines(paths: Iterable[Path]) -> Iterator[list[str]]:
    """The tokens of each line."""
    for path in paths:
        with bz2.open(path, "rt", encoding="utf-8") as file:
            for line in file:
                yield TOKEN.findall(line)


def count(paths: Iterable[Path]) -> tuple[Counter[str], Counter[str], Counter[tuple[str, ...]]]:
    """How often each word comes, each word after a modal, and each form between two words."""
    words: Counter[str] = Counter()
    verbal: Counter[str] = Counter()
    triples: Counter[tuple[str, ...]] = Counter()
    for tokens in lines(paths):
        words.update(tokens)
        last = len(tokens) - 1
        for i, token in enumerate(tokens):
            if token[-1] == "s" and 0 < i < last and FORM.fullmatch(token):
                triples[tokens[i - 1], token, tokens[i + 1]] += 1
            elif i < last and (token in MODALS or tokens[i : i + 3 : 2] in TO_OBJECT):
                verbal[tokens[i + 1]] += 1
    return words, verbal, triples


def _is_function(word: str) -> bool:
    """Whether a word has a role in the clause that it owes to no form."""
    return FUNCTION_WORDS.get(word, "Wx")[1] != "x" or word in OPEN_WORDS


def verb_stem(form: str, verbal: Counter[str]) -> str | None:
    """The likeliest verb an -s form may come from, None where there is none."""
    possible = [s for s in stems(form) if not _is_function(s) or s in FUNCTION_VERBS]
    best = max(possible, key=lambda stem: verbal[stem], default="")
    return best if verbal[best] >= LEAST else None


Numbers = NDArray[np.float64]


def fit(
    form: NDArray[np.int64],
    contexts: tuple[NDArray[np.int64], NDArray[np.int64]],
    weight: Numbers,
    start: Numbers,
    noun: NDArray[np.bool_],
) -> tuple[Numbers, list[Numbers]]:
    """EM: log odds of verb per form, and of each context word before and after."""
    share = start
    for _ in range(ROUNDS):
        verb, other = weight * share, weight * (1 - share)
        prior = np.log(
            (np.bincount(form, verb, len(noun)) + 0.3) / (np.bincount(form, other, len(noun)) + 0.3)
        )
        tables = []
        for context in contexts:
            first, two = (np.bincount(context, mass) + 2.0 for mass in (verb, other))
            tables.append(np.log(first / first.sum()) - np.log(two / two.sum()))
        logit = prior[form] + tables[0][contexts[0]] + tables[1][contexts[1]]
        share = np.where(noun[form], 0.0, 1 / (1 + np.exp(-np.clip(logit, -30, 30))))
    return prior, tables


def estimate(
    words: Counter[str], verbal: Counter[str], triples: Counter[tuple[str, ...]]
) -> tuple[dict[str, tuple[str, float]], list[tuple[str, float, float]]]:
    """Per form its verb and log odds; per context word its two log odds."""
    common = {word.lower() for word, _ in words.most_common(COMMON)}

    def key(token: str) -> str:
        return token.lower() if token.lower() in common else shape(token)

    merged: Counter[tuple[str, str, str]] = Counter()
    for (before, form, after), n in triples.items():
        merged[key(before), form, key(after)] += n
    forms = sorted({form for _, form, _ in merged} - ADVERBS_IN_S - AUXILIARIES)
    index = {form: i for i, form in enumerate(forms)}
    rows = [(b, index[f], a, n) for (b, f, a), n in sorted(merged.items()) if f in index]
    contexts = sorted({row[0] for row in rows} | {row[2] for row in rows})
    where = {word: i for i, word in enumerate(contexts)}
    form = np.array([row[1] for row in rows])
    before = np.array([where[row[0]] for row in rows])
    after = np.array([where[row[2]] for row in rows])
    weight = np.array([row[3] for row in rows], float)
    known = [verb_stem(f, verbal) for f in forms]
    noun = np.array([stem is None for stem in known])
    start = np.select(
        [
            np.array([row[0] in SUBJECTS for row in rows]),
            np.array([row[0] in DETERMINERS for row in rows]),
        ],
        [np.float64(0.98), np.float64(0.02)],
        np.float64(0.3),
    )
    prior, (b, a) = fit(form, (before, after), weight, np.where(noun[form], 0, start), noun)
    verbs = {f: (s, float(prior[index[f]])) for f, s in zip(forms, known, strict=True) if s}
    return verbs, [(word, float(b[i]), float(a[i])) for word, i in where.items()]


def main() -> None:
    """Read the arguments, write the tables, print their sizes."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("text", nargs="+", type=Path, help="bz2 files of running English")
    parser.add_argument("--out", type=Path, default=TARGET)
    options = parser.parse_args()
    verbs, contexts = estimate(*count(options.text))
    for name, header, rows in (
        ("verbs.csv", ["form", "verb", "log_odds"], [(f, *row) for f, row in verbs.items()]),
        ("verb_contexts.csv", ["word", "before", "after"], contexts),
    ):
        table = io.StringIO()
        writer = csv.writer(table, lineterminator="\n")
        writer.writerow(header)
        writer.writerows([f"{x:.1f}" if isinstance(x, float) else x for x in row] for row in rows)
        with replace_file(options.out / name) as file:
            file.write(table.getvalue().encode())
        print(f"{options.out / name}: {len(rows)} rows, {len(table.getvalue())} bytes")


if __name__ == "__main__":
    main()
