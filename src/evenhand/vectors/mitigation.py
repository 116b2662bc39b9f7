"""Measure, mitigate, measure again: what a debiasing changed, where bias hides, what it cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

from evenhand.errors import InputError, UnknownNameError
from evenhand.lexicon import Topic
from evenhand.paired import compare
from evenhand.results import Comparison, Measurement
from evenhand.vectors.debias import METHODS, Debiased
from evenhand.vectors.debias.leaning import leaning_by_class
from evenhand.vectors.hiding import hiding_tests
from evenhand.vectors.measuring import run_jobs, topic_jobs
from evenhand.vectors.store import Vectors
from evenhand.vectors.utility import (
    cosine_rank_correlation,
    neighbour_overlap,
    neighbour_rank_correlation,
)

__all__ = ["Mitigation", "mitigate"]


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
    lam: float = 0.2,
    scale: Literal["sum", "mean"] = "sum",
    neutralize: Literal["all", "stereotypes"] = "all",
    n: int = 500,
    prob: float = 0.95,
    seed: int = 0,
) -> Mitigation:
    """Debias the vectors for a topic, then measure everything again.

    `k` dimensions of bias are removed (hard, soft; default one less than the topic has classes);
    `lam` and `scale` are soft's; `neutralize` says which words hard and soft make neutral. The
    protected words stay as they are, apart from those that hard debiasing equalises. INLP and
    the hiding tests look at different words: the `n` that lean most to each class, every second
    one in turn.
    """
    if method not in METHODS:
        raise UnknownNameError("debias method", method, METHODS)
    n = min(n, _most(v, topic))
    protected = [word for words in topic.protected.values() for word in words]
    groups = leaning_by_class(v, topic.protected, 2 * n, exclude=_defining(topic))
    fitted = {name: words[::2] for name, words in groups.items()}
    tested = {name: words[1::2] for name, words in groups.items()}
    k = len(topic.classes) - 1 if k is None else k
    words: Literal["all"] | Sequence[str] = "all"
    if neutralize == "stereotypes":
        words = [word for name in topic.classes for word in topic.attributes(name, extended=True)]
    elif neutralize != "all":
        raise InputError(f"neutralize: expected all or stereotypes, got {neutralize!r}")
    if method == "hard":
        debiased = METHODS["hard"](
            v, topic.definitional, k=k, equalize=topic.equalize, neutralize=words, keep=protected
        )
    elif method == "soft":
        debiased = METHODS["soft"](
            v, topic.definitional, k=k, lam=lam, scale=scale, neutral=words, keep=protected
        )
    else:
        debiased = METHODS["inlp"](v, fitted, seed=seed, prob=prob)
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
    jobs = topic_jobs(topic)
    first, second = (
        run_jobs(v, jobs, prob=prob, seed=seed, permutations=0, null=0) for v in (before, after)
    )
    later = {(m.metric, m.query): m for m in second.measurements}
    return tuple(
        compare(m, later[m.metric, m.query])
        for m in first.measurements
        if (m.metric, m.query) in later
    )


def _defining(topic: Topic) -> list[str]:
    lists = [*topic.definitional, *topic.equalize, *topic.protected.values()]
    return [word for words in lists for word in words]


def _most(v: Vectors, topic: Topic) -> int:
    """No more leaning words a class than a tenth of the vocabulary has, half of them for tests."""
    return max(10, len(v) // (20 * len(topic.classes)))
