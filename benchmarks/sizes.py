"""Whether sizes are named as they are: verdicts on simulated worlds of a known size of bias.

    python benchmarks/sizes.py [--worlds 200] [--subject NAME …]

Prints a Markdown table, one row per subject and true size. The worlds are those of
`evenhand.simulate`, measured by the instruments and judged by the rules of the audit. The criteria
were written down in docs/concepts/sizes.md before the first run.
"""

from __future__ import annotations

import argparse
import math
import os
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cache

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np

from evenhand.instruments import lookup, measure
from evenhand.report.verdicts import Verdict, judge
from evenhand.results import Measurement
from evenhand.simulate.vectors import World, world
from evenhand.statistics.sizes import LOGISTIC, SIZES, name_size

SIZES_TRIED = (0.0, 0.1, 0.35, 0.65, 1.2)
"""No bias, and the middle of each size."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """What one world gave: the verdict, and the size of its leading test with its interval."""

    found: bool
    size: float
    low: float
    high: float


def _outcome(verdict: Verdict) -> Outcome:
    found = verdict.level in ("strong evidence", "some evidence")
    if not found and verdict.subject == "corpus":  # of many classes only the extreme are saved
        return Outcome(found=False, size=math.nan, low=math.nan, high=math.nan)
    test = verdict.size or verdict.tests[0]
    return Outcome(found=found, size=test.size, low=test.size_low, high=test.size_high)


def vectors(d: float, seed: int, words: int = 100) -> Outcome:
    """Word vectors with `words` stereotypes of each of two classes."""
    w = world(bias=_bias_for(d), dim=50, vocabulary=2 * words + 80, stereotypes=words, seed=seed)
    return _outcome(judge("vectors", _association(w), name="world"))


def few_words(d: float, seed: int) -> Outcome:
    """The same with 12 stereotypes of each class, about as many as the built-in topics have."""
    return vectors(d, seed, words=12)


def _association(w: World, permutations: int = 999) -> list[Measurement]:
    from evenhand.vectors.store import Vectors

    v = Vectors.from_arrays(w.words, w.matrix)
    return list(measure(v, w.topic, ["association"], options={"permutations": permutations}))


@cache
def _bias_for(d: float) -> float:
    """The dial of `world` that gives this size on average, in which the size is linear."""
    if not d:
        return 0.0
    values, spreads = [], []
    for seed in range(20):
        w = world(bias=0.1, dim=50, vocabulary=180, stereotypes=50, seed=1000 + seed)
        (m,) = _association(w, permutations=0)
        (evidence,) = lookup("vectors", "association").evidence(m)
        values.append(-m.value)
        spreads.append(evidence.spread**2)
    return 0.1 * d / float(np.mean(values) / np.sqrt(np.mean(spreads)))


def data(d: float, seed: int, classes: int = 12, texts: int = 1000) -> Outcome:
    """Labelled texts: half of the classes lean to men by the same odds, half to women."""
    from evenhand.text.metrics.odds import class_odds

    rng = np.random.default_rng([seed, 1])
    shift = d / LOGISTIC / 2
    # the odds ratio of a class against the others, of which one leans more often the other way
    men, women = {}, {}
    for number in range(classes):
        sign = 1 if number % 2 else -1
        share = 1 / (1 + math.exp(-sign * _share_shift(shift * 2, classes)))
        men[f"class {number}"] = int(rng.binomial(texts, share))
        women[f"class {number}"] = texts - men[f"class {number}"]
    parts = [replace(part, by="") for part in class_odds(men, women)]
    return _outcome(judge("corpus", parts, name="world"))


@cache
def _share_shift(log_ratio: float, classes: int) -> float:
    """The log odds of men in a class whose odds ratio against the others is this."""

    def log_odds_ratio(shift: float) -> float:
        share = 1 / (1 + math.exp(-shift))
        half = classes / 2
        men = share * (half - 1) + (1 - share) * half
        women = (1 - share) * (half - 1) + share * half
        return shift - math.log(men / women)

    low, high = 0.0, 10.0
    for _ in range(60):
        middle = (low + high) / 2
        low, high = (middle, high) if log_odds_ratio(middle) < log_ratio else (low, middle)
    return (low + high) / 2


def model(d: float, seed: int, sentences: int = 114) -> Outcome:
    """A masked model: the log odds of a man vary between sentences around their mean."""
    from evenhand.models.metrics.pronouns import BUILT_IN, Pronouns
    from evenhand.simulate.masked import bigram_model

    rng = np.random.default_rng([seed, 2])
    shifts = rng.normal(_mean_log_odds(d), SPREAD, size=sentences)
    shares = 1 / (1 + np.exp(-shifts))
    table = {f"c{i}": {"he": 0.8 * s, "she": 0.8 * (1 - s)} for i, s in enumerate(shares)}
    m = Pronouns()(bigram_model(table), [f"c{i} [MASK] ." for i in range(sentences)])
    return _outcome(judge("masked", [replace(m, query=BUILT_IN)], name="world"))


SPREAD = 1.0
"""The standard deviation of the log odds between sentences."""


@cache
def _mean_log_odds(d: float) -> float:
    """The mean of the log odds of which the mean share has this size."""
    wanted = 1 / (1 + math.exp(-d / LOGISTIC))
    points = np.random.default_rng(0).normal(0, SPREAD, size=200_000)
    points = np.concatenate([points, -points])
    low, high = 0.0, 10.0
    for _ in range(40):
        middle = (low + high) / 2
        share = float(np.mean(1 / (1 + np.exp(-points - middle))))
        low, high = (middle, high) if share < wanted else (low, middle)
    return (low + high) / 2


def predictions(d: float, seed: int, texts: int = 2000) -> Outcome:
    """A classifier that recognises women less often than men."""
    from evenhand.classifier import read_predictions
    from evenhand.simulate.predictions import biased_predictions

    gap = math.tanh(d / LOGISTIC / 4)
    frame = biased_predictions(texts, gap=gap, accuracy=0.6, seed=seed)
    read = read_predictions(frame, group="gender")
    return _outcome(judge("predictions", list(measure(read, None, ["tpr-gap"])), name="world"))


SUBJECTS: Mapping[str, Callable[[float, int], Outcome]] = {
    "vectors": vectors,
    "vectors, 12 words": few_words,
    "corpus": data,
    "masked": model,
    "predictions": predictions,
}


def run(subject: str, d: float, worlds: int) -> dict[str, float]:
    """The shares over the worlds of one subject and size.

    Of all worlds: `found`, and `covered`, where the interval contains the true size. Of those with
    evidence: `named`, with the right name, `near`, with that or a neighbouring one; `median` is
    that of the sizes.
    """
    outcomes = [SUBJECTS[subject](d, seed) for seed in range(worlds)]
    found = [outcome for outcome in outcomes if outcome.found]
    names = list(SIZES)
    steps = [abs(names.index(name_size(o.size)) - names.index(name_size(d))) for o in found]
    return {
        "found": len(found) / worlds,
        "covered": _share(o.low <= d <= o.high for o in outcomes if not math.isnan(o.size)),
        "named": _share(step == 0 for step in steps),
        "near": _share(step <= 1 for step in steps),
        "median": float(np.median([o.size for o in found])) if found else math.nan,
    }


def _share(marks: Iterator[bool]) -> float:
    marks = list(marks)
    return sum(marks) / len(marks) if marks else math.nan


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--worlds", type=int, default=200)
    parser.add_argument("--subject", action="append", choices=list(SUBJECTS))
    chosen = parser.parse_args()
    headers = ("worlds", "true d", "evidence", "true d in the interval", "right name")
    print(f"| {' | '.join(headers)} | right name or a neighbour | median d |")
    print("| --- | ---: | ---: | ---: | ---: | ---: | ---: |")
    for subject in chosen.subject or SUBJECTS:
        for d in SIZES_TRIED:
            shares = run(subject, d, chosen.worlds)
            cells = [
                "–" if math.isnan(shares[name]) else f"{100 * shares[name]:.0f} %"
                for name in ("found", "covered", "named", "near")
            ]
            median = "–" if math.isnan(shares["median"]) else f"{shares['median']:.2f}"
            print(f"| {subject} | {d:g} | {' | '.join(cells)} | {median} |", flush=True)


if __name__ == "__main__":
    main()
