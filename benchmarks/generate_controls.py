r"""Do generated sentences reduce a model's bias more than other text does? Five arms, three seeds.

    python benchmarks/generate_controls.py swag=sent1.txt wikibios=wikibios.csv.gz \
        novels=a.txt.bz2@1:9000 news=a.txt.bz2@9001: --held-out b.txt.bz2@1:9000 -o OUT

Corpora are named as for benchmarks/funnel.py; no text of --held-out is generated from or trained
on. The rules below were written before anything was generated.

**Sentences.** Seeds are the sentences that the structural filter accepts, at most --most of a
corpus, drawn at random. `masked generate` edits each in the direction of its own bias, and at
random. *Fluency*: a generated sentence counts if its pseudo-perplexity under the model is at most
the 95th percentile of that of all seeds; so does a random edit. Where both count, the seed and both
edits are used.

**Arms**, each with the same number of sentences of each corpus and the same number of training
tokens, half of the sentences swapped (`--rewrite substitute`, redrawn in every epoch): *generated*;
*seeds*; *random* edits; *plain*: any sentences of 5 to 60 words of the same corpora, drawn at
random; *pronouns*: the same, of sentences with a gendered pronoun.

**Outcome**, for every arm and training seed: the change of the mean |bias - .5| of the pronoun
score over the full vocabulary on the filter's sentences of --held-out (main outcome), of the mean
bias, of both on the built-in sentences, and the ratio of pseudo-perplexities of plain sentences of
--held-out. Generated minus control: paired by sentence, sentences and training seeds both samples
in the interval (two-way, Satterthwaite). "Helps more" is said where the interval of the main
outcome excludes 0 and the mean bias is not on the other side of .5.

Every run is made with a fixed amount of training, and where the mean bias of other sentences of
--held-out passes .5, again with training stopped there (`stop="ideal"`). OUT gets seeds, texts, one
folder per run, runs.csv and results.json. The same command resumes.
"""

from __future__ import annotations

import argparse
import csv
import json
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from funnel import Line, funnel, read

from evenhand.cache import Cache
from evenhand.files import document, save_json
from evenhand.lexicon.pronouns import PRONOUNS
from evenhand.masked import load
from evenhand.masked.generation import generate
from evenhand.masked.learning_text import counterfactual_key
from evenhand.masked.metrics.perplexity import pseudo_log_likelihoods
from evenhand.masked.model import Model
from evenhand.text.tokens import sentences

ARMS = ("generated", "seeds", "random", "plain", "pronouns")
PERCENTILE = 95
WORDS = range(5, 61)
PRONOUN = re.compile(rf"\b({'|'.join(PRONOUNS)})\b", re.IGNORECASE)
Row = dict[str, Any]


def read_corpora(named: Sequence[str]) -> dict[str, list[Line]]:
    """The lines of each corpus; a name that is there twice is one corpus."""
    corpora: dict[str, list[Line]] = {}
    for argument in named:
        name, _, rest = argument.partition("=")
        path, _, selection = rest.partition("@")
        corpora.setdefault(name, []).extend(read(path, selection))
    return corpora


def choose_seeds(lines: list[Line], most: int, rng: np.random.Generator) -> list[str]:
    """The distinct sentences that the filter accepts, at most so many, in the order of the text."""
    accepted = list(dict.fromkeys(str(row["sentence"]) for row in funnel(lines)[1]))
    chosen = rng.permutation(len(accepted))[:most]
    return [accepted[i] for i in np.sort(chosen)]


def draw_plain(
    lines: list[Line], count: int, rng: np.random.Generator, *, pronoun: bool
) -> list[str]:
    """Distinct sentences of ordinary length, drawn at random, with a gendered pronoun or any."""
    drawn: dict[str, None] = {}
    for i in rng.permutation(len(lines)):
        text = lines[i][1]
        spans = sentences(text)
        start, end = spans[int(rng.integers(len(spans)))]
        sentence = text[start:end].strip()
        if len(sentence.split()) in WORDS and (not pronoun or PRONOUN.search(sentence)):
            drawn[sentence] = None
        if len(drawn) == count:
            break
    return list(drawn)


def perplexities(model: Model, texts: Sequence[str], cache: Cache | None = None) -> np.ndarray:
    """The pseudo-perplexity of each text, infinite where it is too long for the model."""
    log_probs, tokens = pseudo_log_likelihoods(model, texts, cache=cache)
    return np.where(tokens > 0, np.exp(-log_probs / np.maximum(tokens, 1)), np.inf)


def edit(model: Model, seeds: Sequence[str], seed: int, cache: Cache | None = None) -> list[Row]:
    """Each seed with its generated sentence and its random edit, None where there is none."""
    result = generate(model, seeds, seed=seed, cache=cache)
    generated, random = (
        {row["seed"]: row["sentence"] for row in rows}
        for rows in (result.sentences, result.controls)
    )
    rows = [{"seed": s, "generated": generated.get(s), "random": random.get(s)} for s in seeds]
    for column in ("seed", "generated", "random"):
        known = [row for row in rows if row[column] is not None]
        values = perplexities(model, [row[column] for row in known], cache)
        for row, value in zip(known, values, strict=True):
            row[f"perplexity_{column}"] = float(value)
    return rows


def fluent(rows: Mapping[str, Sequence[Row]]) -> tuple[float, dict[str, list[Row]], Row]:
    """The limit of the fluency rule, the seeds with two fluent edits by corpus, and counts."""
    every = [row for corpus in rows.values() for row in corpus]
    limit = float(np.percentile([row["perplexity_seed"] for row in every], PERCENTILE))
    passed = {
        kind: [row for row in every if row.get(f"perplexity_{kind}", np.inf) <= limit]
        for kind in ("generated", "random")
    }
    both = {
        name: [
            row
            for row in corpus
            if all(row.get(f"perplexity_{k}", np.inf) <= limit for k in ("generated", "random"))
        ]
        for name, corpus in rows.items()
    }
    counts: Row = {"seeds": {name: len(corpus) for name, corpus in rows.items()}}
    for kind in ("generated", "random"):
        counts[kind] = sum(row[kind] is not None for row in every)
        counts[f"{kind}_fluent"] = len(passed[kind])
    counts["used"] = {name: len(corpus) for name, corpus in both.items()}
    return limit, both, counts


def prepare(options: argparse.Namespace) -> Row:
    """The texts of every arm and the sentences to measure on, written once."""
    path = options.out / "texts.json"
    if path.is_file():
        texts: Row = json.loads(path.read_text(encoding="utf-8"))
        return texts
    corpora = read_corpora(options.corpora)
    model = load(options.model)
    cache = Cache(options.out / "answers")
    rows: dict[str, list[Row]] = {}
    for number, (name, lines) in enumerate(corpora.items()):
        done = options.out / f"edits-{name}.json"
        if not done.is_file():
            seeds = choose_seeds(lines, options.most, np.random.default_rng([0, number]))
            save_json(done, {"rows": edit(model, seeds, 0, cache)})
        rows[name] = json.loads(done.read_text(encoding="utf-8"))["rows"]
        print(f"{name}: {len(rows[name]):,} seeds edited", flush=True)
    limit, both, counts = fluent(rows)
    arms = {
        arm: [
            row[arm.removesuffix("s") if arm == "seeds" else arm]
            for c in both.values()
            for row in c
        ]
        for arm in ARMS[:3]
    }
    for number, arm in enumerate(ARMS[3:]):
        rng = np.random.default_rng([1, number])
        arms[arm] = [
            sentence
            for name, chosen in both.items()
            for sentence in draw_plain(corpora[name], len(chosen), rng, pronoun=arm == "pronouns")
        ]
    held_out = [
        line
        for lines in read_corpora([f"x={p}" for p in options.held_out]).values()
        for line in lines
    ]
    learned = {counterfactual_key(text) for arm in arms.values() for text in arm}
    accepted = [
        row
        for row in {row["masked"]: row for row in funnel(held_out)[1]}.values()
        if counterfactual_key(str(row["sentence"])) not in learned
    ]
    order = np.random.default_rng(2).permutation(len(accepted))
    masked = [str(accepted[i]["masked"]) for i in order]
    cut = len(masked) // 3
    plain = draw_plain(held_out, options.plain, np.random.default_rng(3), pronoun=False)
    texts = {
        "counts": counts,
        "limit": limit,
        "arms": arms,
        "watched": masked[:cut],
        "measured": masked[cut : cut + options.measured],
        "plain": plain,
    }
    save_json(path, texts)
    return texts


def main() -> None:
    """Prepare the texts, train and measure every run, and print the tables."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("corpora", nargs="+", metavar="NAME=FILE[@FIRST:LAST]")
    parser.add_argument("--held-out", action="append", required=True, metavar="FILE[@FIRST:LAST]")
    parser.add_argument("--model", default="mini")
    parser.add_argument("--most", type=int, default=500)
    parser.add_argument("--measured", type=int, default=300)
    parser.add_argument("--plain", type=int, default=200)
    parser.add_argument("--seeds", type=int, default=3)
    parser.add_argument("--tokens", type=int, default=100_000)
    parser.add_argument("-o", "--out", type=Path, required=True)
    options = parser.parse_args()
    options.out.mkdir(exist_ok=True, parents=True)
    texts = prepare(options)
    print(texts["counts"], texts["limit"])


if __name__ == "__main__":
    main()
