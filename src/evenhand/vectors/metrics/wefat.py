r"""WEFAT: does a word's tie to two attribute sets mirror a fact about the word?

$s(w) = \dfrac{\operatorname{mean}_{a \in A} \cos(w, a) - \operatorname{mean}_{b \in B} \cos(w, b)}
{\operatorname{std}_{x \in A \cup B} \cos(w, x)}$, correlated over the words with the fact, such
as the share of women in an occupation. Caliskan, Bryson & Narayanan (2017), n - 1 in the
standard deviation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.errors import InputError, VocabularyError
from evenhand.intervals import Floats, fisher_z
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import Groups, known, known_groups, refuse_shared
from evenhand.vectors.metrics.mean_over_words import MeanOverWords
from evenhand.vectors.metrics.reading import Options, Settings, items_of, read, unit
from evenhand.vectors.store import Vectors

__all__ = ["Wefat", "wefat"]

_CHUNK = 1 << 20


@dataclass(frozen=True, slots=True)
class Wefat(MeanOverWords):
    """WEFAT's word score with the attribute words fixed."""

    a: Floats
    b: Floats
    name: str = "wefat"
    ideal: float | None = 0.0
    worse: Worse = "away"

    def scores(self, vectors: Floats) -> Floats:
        cosines = unit(vectors) @ np.concatenate([self.a, self.b]).T
        split = len(self.a)
        difference = cosines[:, :split].mean(axis=1) - cosines[:, split:].mean(axis=1)
        return np.asarray(difference / cosines.std(axis=1, ddof=1))[:, None]


def wefat(
    v: Vectors,
    words: Sequence[str],
    A: Sequence[str],
    B: Sequence[str],
    facts: Mapping[str, float] | None = None,
    *,
    query: str = "wefat",
    **settings: Unpack[Settings],
) -> Measurement:
    """With `facts` (a number for each word): Pearson's r between the word scores and the facts.

    Without: the mean word score. The scores themselves are the items.
    """
    options = Options(**settings)
    first = known(v, A, f"wefat '{query}': attribute set A")
    second = known(v, B, f"wefat '{query}': attribute set B")
    refuse_shared(first, second, f"wefat '{query}': attribute sets A and B")
    if len(first.words) + len(second.words) < 3:
        raise VocabularyError(f"wefat '{query}': expected at least 3 attribute words, got 2")
    instrument = Wefat(v.unit(first.rows), v.unit(second.rows))
    missing = [*first.missing, *second.missing]
    if facts is None:
        return read(
            v, instrument, known_groups(v, {"words": words}, f"wefat '{query}': list", at_least=2),
            query=query, options=options, fixed=np.concatenate([first.rows, second.rows]),
            left_out=missing,
        )  # fmt: skip
    words = list(words)
    unknown = [word for word in words if word not in facts]
    if unknown:
        raise InputError(f"wefat '{query}': no fact given for {', '.join(unknown[:8])}")
    probes = known_groups(v, {"words": words}, f"wefat '{query}': list", at_least=4)
    return _correlation(v, instrument, probes, facts, query, options, missing)


def _correlation(
    v: Vectors,
    instrument: Wefat,
    probes: Groups,
    facts: Mapping[str, float],
    query: str,
    options: Options,
    missing: Sequence[str],
) -> Measurement:
    scores = instrument.scores(v.raw(probes.rows))[:, 0]
    truth = np.array([_number(facts[word], word, query) for word in probes.words])
    if truth.std() == 0 or scores.std() == 0:
        raise InputError(f"wefat '{query}': a correlation needs facts and scores that vary")
    rest = np.arange(len(scores))
    without = np.array([_pearson(scores[rest != i], truth[rest != i]) for i in rest])
    value = _pearson(scores, truth)
    low, high = fisher_z(value, len(scores), options.prob)
    p_value = _permutation_p(scores, truth, options) if options.permutations else None
    return Measurement(
        metric="wefat", query=query, value=value, low=low, high=high, prob=options.prob,
        p_value=p_value, n=len(scores), ideal=0.0, worse="away", seed=options.seed,
        test=f"{options.permutations:,} random permutations of the facts" if p_value else "",
        interval="Fisher z over the words, attribute words held fixed",
        items=items_of(probes, {"score": scores, "fact": truth, "without": without}),
        left_out=tuple(dict.fromkeys([*missing, *probes.missing])),
        details={"mean_score": float(scores.mean())},
    )  # fmt: skip


def _number(fact: object, word: str, query: str) -> float:
    if isinstance(fact, int | float) and np.isfinite(fact):
        return float(fact)
    raise InputError(f"wefat '{query}': expected a number as the fact of '{word}', got {fact!r}")


def _pearson(x: Floats, y: Floats) -> float:
    a, b = x - x.mean(), y - y.mean()
    return float(a @ b / np.sqrt((a @ a) * (b @ b)))


def _permutation_p(x: Floats, y: Floats, options: Options) -> float:
    rng = np.random.default_rng(options.seed)
    a, b = x - x.mean(), y - y.mean()
    observed, extreme = abs(float(a @ b)), 0
    step = max(1, _CHUNK // x.size)
    for start in range(0, options.permutations, step):
        shuffled = np.tile(b, (min(step, options.permutations - start), 1))
        rng.permuted(shuffled, axis=1, out=shuffled)
        extreme += int((np.abs(shuffled @ a) >= observed * (1 - 1e-12)).sum())
    return (extreme + 1) / (options.permutations + 1)
