"""Measure, mitigate, measure again: what a debiasing changed, where bias hides, what it cost."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import Run, compare, plan, run_jobs
from evenhand.lexicon import Topic
from evenhand.results import Comparison, Measurement
from evenhand.vectors.debias import METHODS, Debiased
from evenhand.vectors.debias.leaning import leaning_by_class
from evenhand.vectors.hiding import hiding_tests
from evenhand.vectors.store import Vectors
from evenhand.vectors.utility import (
    cosine_rank_correlation,
    neighbour_overlap,
    neighbour_rank_correlation,
)

__all__ = ["Mitigation", "mitigate"]

_OPTIONS = {
    "hard": {"k", "neutralize"},
    "soft": {"k", "lam", "scale", "neutralize"},
    "inlp": frozenset[str](),
}
"""Which options of `mitigate` each method has."""

_PART = 6
"""One leaning word in so many is kept for the hiding tests. INLP needs many words of the same
kind: learning from as many as are tested, it leaves a linear trace of .56 on glove's gender.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class Mitigation:
    """A debiasing with its account: the measures before and after, the hiding tests, the cost."""

    debiased: Debiased
    measures: tuple[Comparison, ...] = field(repr=False)
    hiding: tuple[Comparison, ...] = field(repr=False)
    utility: tuple[Measurement, ...] = field(repr=False)

    def as_dict(self) -> dict[str, Any]:
        return {
            "debias": self.debiased.as_dict(),
            "measures": [comparison.as_dict() for comparison in self.measures],
            "hiding": [comparison.as_dict() for comparison in self.hiding],
            "utility": [measurement.as_dict() for measurement in self.utility],
        }


def mitigate(
    v: Vectors,
    topic: Topic,
    method: str = "hard",
    *,
    k: int | None = None,
    lam: float | None = None,
    scale: Literal["sum", "mean"] | None = None,
    neutralize: Literal["all", "stereotypes"] | None = None,
    n: int = 500,
    prob: float = 0.95,
    seed: int = 0,
) -> Mitigation:
    """Debias the vectors for a topic, then measure everything again.

    Options of the methods (None: its default): `k` dimensions of bias (hard, soft; default one
    less than the topic has classes), `lam` and `scale` (soft), `neutralize` (hard, soft: all words
    or the topic's stereotypes). Hard leaves the protected words as they are, apart from those it
    equalises; soft and INLP map every word. Of the 6n words that lean most to each class the
    hiding tests look at every sixth, and INLP learns from the others: no word is in both.
    """
    if method not in METHODS:
        raise UnknownNameError("debias method", method, METHODS)
    n = min(n, max(10, len(v) // (2 * _PART * len(topic.classes))))
    protected = [word for words in topic.protected.values() for word in words]
    groups = leaning_by_class(v, topic.protected, _PART * n, exclude=_defining(topic))
    tested = {name: words[1::_PART] for name, words in groups.items()}
    fitted = {
        name: [word for i, word in enumerate(words) if i % _PART != 1]
        for name, words in groups.items()
    }
    given = {"k": k, "lam": lam, "scale": scale, "neutralize": neutralize}
    options: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
    for name in options:
        if name not in _OPTIONS[method]:
            raise InputError(f"{name}: not an option of {method} debiasing")
    if method == "inlp":
        debiased = METHODS["inlp"](v, fitted, seed=seed, prob=prob)
    else:
        neutral = _neutral(topic, options.pop("neutralize", "all"))
        options = {"k": len(topic.classes) - 1, "keep": protected, **options}
        if method == "hard":
            options |= {"neutralize": neutral, "equalize": topic.equalize}
        else:
            options |= {"neutral": neutral}
        debiased = METHODS[method](v, topic.definitional, **options)
    return Mitigation(
        debiased=debiased,
        measures=_measures(v, debiased.vectors, topic, prob, seed),
        hiding=hiding_tests(
            v, debiased.vectors, groups=tested, query=topic.name, seed=seed, prob=prob
        ),
        utility=tuple(
            cost(v, debiased.vectors, seed=seed, prob=prob)
            for cost in (neighbour_overlap, neighbour_rank_correlation, cosine_rank_correlation)
        ),
    )


def _measures(
    before: Vectors, after: Vectors, topic: Topic, prob: float, seed: int
) -> tuple[Comparison, ...]:
    jobs = plan("vectors", topic, options={"permutations": 0, "null": 0})
    first, second = (run_jobs(v, jobs, Run(seed=seed, prob=prob)) for v in (before, after))
    later = {(m.metric, m.query): m for m in second}
    return tuple(
        compare(m, later[m.metric, m.query]) for m in first if (m.metric, m.query) in later
    )


def _neutral(topic: Topic, which: str) -> Literal["all"] | list[str]:
    if which == "all":
        return "all"
    if which == "stereotypes":
        return [word for name in topic.classes for word in topic.attributes(name, extended=True)]
    raise InputError(f"neutralize: expected all or stereotypes, got {which!r}")


def _defining(topic: Topic) -> list[str]:
    lists = [*topic.definitional, *topic.equalize, *topic.protected.values()]
    return [word for words in lists for word in words]
