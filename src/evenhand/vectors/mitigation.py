"""Measure, mitigate, measure again: what debiasing changed, what is hidden, what it cost."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Literal

from evenhand.arguments import checked
from evenhand.display import Result
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import Run, compare, option, plan, run_jobs
from evenhand.lexicon import Topic
from evenhand.lexicon import topic as read_topic
from evenhand.results import Comparison, Measurement, Measurements
from evenhand.vectors.debias import METHODS, Debiased
from evenhand.vectors.debias.groups import leaning_by_class
from evenhand.vectors.hiding import hiding_tests
from evenhand.vectors.store import Vectors
from evenhand.vectors.utility import (
    cosine_rank_correlation,
    neighbour_overlap,
    neighbour_rank_correlation,
)

METHOD_OPTIONS = {
    "hard": ("k", "neutralize"),
    "soft": ("k", "lam", "scale", "neutralize"),
    "inlp": (),
    "leace": (),
}
"""The fields of `DebiasSettings` by method."""

LEARNING = ("inlp", "leace")
"""The methods that learn from words which lean to a class."""
_HIDING = 6
"""One leaning word in six is for the hiding tests, the others are for INLP and LEACE, which need
many words of the same kind: learning from as many as are tested, INLP leaves a linear trace of .56
on glove.
"""


@dataclass(frozen=True, slots=True, kw_only=True)
class DebiasSettings:
    """The options of `mitigate`, as commands and grids have them; None for the default."""

    method: Literal["hard", "soft", "inlp", "leace"] = option(
        "hard",
        help="hard: project out and equalise; soft: a linear map; inlp: against a linear probe; "
        "leace: the same by the smallest change.",
    )
    k: int | None = option(
        None,
        minimum=1,
        flag="--dimensions",
        help="hard, soft: dimensions of bias (default: classes - 1).",
    )
    lam: float | None = option(
        None, minimum=0, help="soft: weight of the bias term (default: 0.2)."
    )
    scale: Literal["sum", "mean"] | None = option(
        None,
        help="soft: each term a mean (default), so that lam works at any size, or summed as "
        "published.",
    )
    neutralize: Literal["all", "stereotypes"] | None = option(
        None,
        help="hard, soft: what becomes neutral: every word (default) or the topic's stereotypes.",
    )


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class VectorMitigation(Result):
    """Debiased vectors, with the metrics and hiding tests before and after, and the cost."""

    debiased: Debiased
    measures: tuple[Comparison, ...] = field(repr=False)
    hiding: tuple[Comparison, ...] = field(repr=False)
    utility: tuple[Measurement, ...] = field(repr=False)

    def to_dict(self, *, items: bool = False) -> dict[str, object]:
        """The JSON view; the items of the results only on request."""
        return {
            "debias": self.debiased.to_dict(),
            "measures": [comparison.to_dict(items=items) for comparison in self.measures],
            "hiding": [comparison.to_dict(items=items) for comparison in self.hiding],
            "utility": [measurement.to_dict(items=items) for measurement in self.utility],
        }

    def _headline(self) -> str:
        changes = f"{len(self.measures)} measures and {len(self.hiding)} hiding tests"
        return f"{self.debiased.method}: {changes} before and after, {len(self.utility)} costs"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        groups = (("measure", self.measures), ("hiding", self.hiding))
        changes = [{"kind": kind, **c._rows()[0]} for kind, listed in groups for c in listed]
        costs = [{"kind": "utility", **row} for row in Measurements(self.utility)._rows()]
        return [*changes, *costs]


@checked
def mitigate(
    v: Vectors,
    topic: str | Topic,
    method: str = "hard",
    *,
    k: int | None = None,
    lam: float | None = None,
    scale: Literal["sum", "mean"] | None = None,
    neutralize: Literal["all", "stereotypes"] | None = None,
    n: int = 500,
    prob: float = 0.95,
    seed: int = 0,
) -> VectorMitigation:
    """Debias vectors for a topic, then measure everything again.

    Parameters
    ----------
    v : Vectors
    topic : str or Topic
        Of a built-in topic the name.
    method : {"hard", "soft", "inlp", "leace"}
    k : int, optional
        hard, soft: dimensions of bias; by default one less than the topic has classes.
    lam, scale : optional
        soft: as for `soft`.
    neutralize : {"all", "stereotypes"}, optional
        hard, soft: which words become neutral; by default all.
    n : int
        Words per class in the hiding tests; fewer where fewer lean to a class, which the notes of
        the debiased vectors say.
    prob : float
        Probability of the intervals.
    seed : int

    Returns
    -------
    VectorMitigation

    Notes
    -----
    Hard debiasing leaves the protected words as they are, except those it equalises; soft, INLP
    and LEACE map every word. Of the 6n words that lean most to each class the hiding tests use
    every sixth, and INLP and LEACE learn from the others: no word is in both. A test for which
    there are too few words is left out, and the notes say so; the vectors are debiased in any case.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove", limit=8000)
    >>> result = eh.vectors.mitigate(v, "gender", n=50)
    >>> result.debiased.method, [c.metric for c in result.hiding][0]
    ('hard', 'cluster_purity')

    """
    if method not in METHODS:
        raise UnknownNameError("debias method", method, METHODS)
    topic = read_topic(topic)
    notes: list[str] = []
    n, groups = _leaning(v, topic, n)
    tested = {name: words[1::_HIDING] for name, words in groups.items()}
    count = min(map(len, tested.values()))
    if count < n:
        notes.append(
            f"hiding tests: {count} words per class, not {n}: too few words lean to one of the "
            "classes"
        )
    given = {"k": k, "lam": lam, "scale": scale, "neutralize": neutralize}
    options: dict[str, Any] = {name: x for name, x in given.items() if x is not None}
    debiased = _debias(v, topic, method, options, groups, prob=prob, seed=seed)
    after = debiased.vectors
    hiding: tuple[Comparison, ...] = ()
    try:
        hiding = hiding_tests(v, after, groups=tested, query=topic.name, seed=seed, prob=prob)
    except InputError as error:
        notes.append(f"hiding tests left out: {error}")
    utility: list[Measurement] = []
    for cost in (neighbour_overlap, neighbour_rank_correlation, cosine_rank_correlation):
        try:
            utility.append(cost(v, after, seed=seed, prob=prob))
        except InputError as error:
            notes.append(f"{cost.__name__.replace('_', ' ')} left out: {error}")
    # debiased vectors have another length than the original ones, so both are read at length one
    jobs = plan("vectors", topic, options={"permutations": 0, "null": 0, "length": "unit"})
    measured = (run_jobs(each, jobs, Run(seed=seed, prob=prob)) for each in (v, after))
    return VectorMitigation(
        debiased=replace(debiased, notes=(*debiased.notes, *notes)),
        measures=tuple(compare(*measured)),
        hiding=hiding,
        utility=tuple(utility),
    )


def debias_topic(v: Vectors, topic: Topic, method: str = "hard") -> Debiased:
    """Debias vectors for a topic as `mitigate` does by default, without measuring them again."""
    if method not in METHODS:
        raise UnknownNameError("debias method", method, METHODS)
    groups = _leaning(v, topic, 500)[1] if method in LEARNING else {}
    return _debias(v, topic, method, {}, groups, prob=0.95, seed=0)


def _debias(
    v: Vectors,
    topic: Topic,
    method: str,
    options: dict[str, Any],
    groups: Mapping[str, Sequence[str]],
    *,
    prob: float,
    seed: int,
) -> Debiased:
    for name in options:
        if name not in METHOD_OPTIONS[method]:
            raise InputError(f"{name}: not an option of {method} debiasing")
    if method in LEARNING:
        fitted = {
            name: [word for i, word in enumerate(words) if i % _HIDING != 1]
            for name, words in groups.items()
        }
        return METHODS[method](v, fitted, seed=seed, prob=prob)
    options = dict(options)
    neutral = _neutral(topic, options.pop("neutralize", "all"))
    protected = [word for words in topic.protected.values() for word in words]
    options = {"k": len(topic.classes) - 1, "keep": protected, **options}
    if method == "hard":
        options |= {"neutralize": neutral, "equalize": topic.equalize}
    else:
        options |= {"neutral": neutral}
    return METHODS[method](v, topic.definitional, **options)


def _leaning(v: Vectors, topic: Topic, n: int) -> tuple[int, dict[str, list[str]]]:
    """The number of words per class in the hiding tests, and the words that lean to each class."""
    n = min(n, max(10, len(v) // (2 * _HIDING * len(topic.classes))))
    lists = [*topic.definitional, *topic.equalize, *topic.protected.values()]
    defining = [word for words in lists for word in words]
    return n, leaning_by_class(v, topic.protected, _HIDING * n, exclude=defining)


def _neutral(topic: Topic, which: str) -> Literal["all"] | list[str]:
    if which == "all":
        return "all"
    if which == "stereotypes":
        return [word for name in topic.classes for word in topic.attributes(name, extended=True)]
    raise InputError(f"neutralize: expected all or stereotypes, got {which!r}")
