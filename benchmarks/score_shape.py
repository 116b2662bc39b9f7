r"""The shape of the pronoun score: why it peaks at .55 in Ye et al. (2021) and not in `mini`.

    python benchmarks/score_shape.py measure DATA [-o docs/results/score-shape.csv]
    python benchmarks/score_shape.py tables

DATA has swag/ and gest/ with the scores of its authors. `measure` writes deciles and means of
scores; no sentence is written. `tables` prints them as docs/experiments/score-shape.md has them.

Quantities, each a number of a sentence between 0 and 1:

- *full*, *top 10*: the pronoun score P(m) / (P(m) + P(f)) over the full vocabulary, as published;
- *prior corrected*: sigmoid of the log odds less their mean in neutral carriers of the same
  role ("Then [MASK] came here."), those of `context`;
- *of logits*: l(m) / (l(m) + l(f)) with logits in place of probabilities. Logits are defined up to
  a constant, so this is no measure; it shows what such a mistake would look like;
- *published*: 1 / (1 + 10^-x) with x the published log10 odds of a sentence of GEST.

*narrow* is the share of sentences in [.45, .65], around the published peak; *male* the share of
sentences of at least .69, the score of the published example. Intervals are over sentences.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import lzma
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np

from evenhand.models import load
from evenhand.models.gender_words import bias, mask_query, probabilities
from evenhand.models.masked import MaskedLM
from evenhand.models.metrics.context import CARRIERS
from evenhand.models.sentences import built_in_sentences
from evenhand.statistics.intervals import Floats, bootstrap_mean, wilson
from evenhand.text.structural import Accepted, Filter
from implicit_data import PUBLISHED
from published import drop_zero

ROOT = Path(__file__).resolve().parents[1]
RESULTS = ROOT / "docs" / "results" / "score-shape.csv"
DECILES = tuple(range(10, 100, 10))
MOST = 300
"""Sentences of each published corpus, drawn at random with seed 0."""
NARROW, EXAMPLE = (0.45, 0.65), 0.69
GEST = ("bert-base-uncased", "distilbert-base-uncased", "roberta-base", "albert-base-v2")
ROLES = {
    "subject": "subject",
    "object": "object",
    "possessive": "possessive",
    "reflexive": "object",
}
Row = dict[str, str]


def sigmoid(x: Floats) -> Floats:
    """1 / (1 + exp(-x)).

    >>> float(sigmoid(np.array(0.0)))
    0.5
    """
    return np.asarray(1 / (1 + np.exp(-x)))


def corpora(data: Path) -> Iterator[tuple[str, list[str]]]:
    """Sets of masked sentences: SWAG without and with "someone", published ones, built-in ones."""
    lines = (data / "swag" / "swag_sent1_subset.txt").read_text(encoding="utf-8").splitlines()
    for name, someone in (("SWAG", False), ("SWAG with someone", True)):
        results = [Filter(someone=someone).sentence(line) for line in lines if line.strip()]
        masked = [result.masked for result in results if isinstance(result, Accepted)]
        yield name, list(dict.fromkeys(masked))
    for name in PUBLISHED:
        path = ROOT / "docs" / "data" / f"implicit-{name}.csv.xz"
        with lzma.open(path, "rt", newline="", encoding="utf-8") as file:
            rows = list(csv.DictReader(file))
        order = np.sort(np.random.default_rng(0).permutation(len(rows))[:MOST])
        chosen = [(rows[i]["sentence"], int(rows[i]["start"]), rows[i]["pronoun"]) for i in order]
        yield name, [f"{s[:start]}[MASK]{s[start + len(p) :]}" for s, start, p in chosen]
    yield "built in", [sentence.text for sentence in built_in_sentences()]


def log_odds(model: MaskedLM, texts: Sequence[str]) -> tuple[Floats, Floats, list[str]]:
    """The log odds of a male word, the published score, and the role of each mask."""
    p = probabilities(model, texts)
    odds = np.log(p.p_male) - np.log(p.p_female)
    return odds, np.asarray(bias(p.p_male_top, p.p_female_top)), p.slots().tolist()


def neutral_log_odds(model: MaskedLM) -> dict[str, Floats]:
    """The log odds of each role in neutral carriers."""
    return {
        carrier: log_odds(model, [text.replace("{}", "[MASK]") for text in CARRIERS[carrier]])[0]
        for carrier in dict.fromkeys(ROLES.values())
    }


def of_logits(model: MaskedLM, texts: Sequence[str]) -> Floats:
    """The larger logits of a male and a female pronoun as if they were probabilities."""
    ids = {
        side: [i for word in words for i in [model.tokenizer.convert_tokens_to_ids(word)]]
        for side, words in (("male", ("he", "his", "him")), ("female", ("she", "her")))
    }
    scores = []
    for text in texts:
        query = mask_query(model, text)
        logits = model.logits([query.ids], [query.position])[0]
        male, female = (float(max(logits[i] for i in ids[side])) for side in ("male", "female"))
        scores.append(male / (male + female) if min(male, female) > 0 else np.nan)
    return np.array(scores)


def describe(corpus: str, model: str, quantity: str, values: Floats) -> Row:
    """A row of the published file."""
    known = values[np.isfinite(values)]
    mean = bootstrap_mean(known, seed=0, bounds=(0.0, 1.0))
    inside = int(((known >= NARROW[0]) & (known <= NARROW[1])).sum())
    numbers: Mapping[str, float] = {
        **_interval("mean", mean),
        "sd": known.std(ddof=1),
        **{f"d{q}": x for q, x in zip(DECILES, np.percentile(known, DECILES), strict=True)},
        **_interval("narrow", wilson(inside, known.size)),
        **_interval("male", wilson(int((known >= EXAMPLE).sum()), known.size)),
    }
    row = {"sentences": corpus, "model": model, "score": quantity, "n": str(known.size)}
    return {**row, **{name: f"{x:.4f}" for name, x in numbers.items()}}


def _interval(name: str, ends: tuple[float, float, float]) -> dict[str, float]:
    return dict(zip((name, f"{name}_low", f"{name}_high"), ends, strict=True))


def measure(data: Path) -> Iterator[Row]:
    """The distributions of `mini`, and those of published models on GEST."""
    model = load("mini")
    neutral = neutral_log_odds(model)
    for name, texts in corpora(data):
        odds, top, roles = log_odds(model, texts)
        yield describe(name, "mini", "full", sigmoid(odds))
        yield describe(name, "mini", "top 10", top)
        general = np.array([neutral[ROLES[role]].mean() if role else np.nan for role in roles])
        yield describe(name, "mini", "prior corrected", sigmoid(odds - general))
        if name in ("SWAG", "built in"):
            yield describe(name, "mini", "of logits", of_logits(model, texts))
    for role, of_carriers in neutral.items():
        yield describe(f"neutral carriers, {role}", "mini", "full", sigmoid(of_carriers))
    for source in GEST:
        for template in (0, 2):
            path = data / "gest" / "scores" / "english_mlm" / f"{source}_template-{template}.txt.gz"
            with gzip.open(path, "rt") as file:
                x = np.array([float(line) for line in file if line.strip()])
            yield describe(
                f"GEST, template {template}", source, "published", sigmoid(x * np.log(10))
            )


def tables(path: Path) -> str:
    """The table of docs/experiments/score-shape.md."""
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    heads = (
        "sentences",
        "model",
        "score",
        "n",
        "mean",
        "deciles 1, 5, 9",
        "in [.45, .65]",
        "≥ .69",
    )
    lines = [f"| {' | '.join(heads)} |", "|" + " --- |" * len(heads)]
    for row in rows:
        deciles = ", ".join(_two(row[f"d{q}"]) for q in (10, 50, 90))
        cells = [_shown(row, "mean"), deciles, _shown(row, "narrow"), _shown(row, "male")]
        names = [row[name] for name in ("sentences", "model", "score", "n")]
        lines.append(f"| {' | '.join(names + cells)} |")
    return "\n".join(lines)


def _shown(row: Row, name: str) -> str:
    value, low, high = (_two(row[name + end]) for end in ("", "_low", "_high"))
    return f"{value} [{low}, {high}]"


def _two(text: str) -> str:
    return drop_zero(f"{float(text):.2f}")


def main() -> None:
    """Measure, or print the table."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("step", choices=("measure", "tables"))
    parser.add_argument("data", nargs="?", type=Path, default=Path("../shared/data"))
    parser.add_argument("-o", "--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    if options.step == "measure":
        rows = list(measure(options.data))
        with options.out.open("w", newline="", encoding="utf-8") as file:
            writer = csv.DictWriter(file, rows[0].keys(), lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
    print(tables(options.out))


if __name__ == "__main__":
    main()
