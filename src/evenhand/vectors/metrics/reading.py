"""From an instrument and its probe words to a Measurement: the part all metrics share.

An instrument is a metric made ready: everything is fixed but the probe words. It scores each
word by itself and makes one value of the scores, so that the same code gives the value, the
value without each word (leave-one-out, and the jackknife for comparisons) and the value on
random words (the null).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypedDict

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.results import Item, Measurement, Worse
from evenhand.vectors.lookup import Groups
from evenhand.vectors.nulls import null_distribution
from evenhand.vectors.store import Vectors

__all__ = [
    "Instrument",
    "Options",
    "Settings",
    "Tested",
    "items_of",
    "read",
    "unit",
    "without_each",
]

Labels = NDArray[np.intp]


@dataclass(frozen=True, slots=True)
class Options:
    """What every metric can be told: the interval's probability, draws and seed."""

    prob: float = 0.95
    seed: int = 0
    permutations: int = 100_000
    null: int = 1000

    def __post_init__(self) -> None:
        if not (isinstance(self.prob, int | float) and 0 < self.prob < 1):
            raise InputError(f"prob: expected a number between 0 and 1, got {self.prob!r}")
        for name in ("permutations", "null", "seed"):
            number = getattr(self, name)
            if not isinstance(number, int | np.integer) or not 0 <= number < 2**32:
                raise InputError(f"{name}: expected a whole number of 0 or more, got {number!r}")


class Settings(TypedDict, total=False):
    """The options as keyword arguments of the metric functions."""

    prob: float
    seed: int
    permutations: int
    null: int


@dataclass(frozen=True, slots=True)
class Tested:
    """The outcome of a test: its p-value, what it rests on, and what else it found."""

    p_value: float | None
    words: str
    details: Mapping[str, Any] = field(default_factory=dict)


class Instrument(Protocol):
    """A metric with everything fixed but the probe words."""

    @property
    def name(self) -> str: ...
    @property
    def ideal(self) -> float | None: ...
    @property
    def worse(self) -> Worse: ...

    def scores(self, vectors: Floats) -> Floats:
        """The score(s) of each word by itself: (n, d) raw vectors to (n, q) scores."""

    def value(self, scores: Floats, labels: Labels) -> Floats:
        """One value of the scores (…, n, q) of words that belong to the lists `labels` (n,)."""

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        """Low, high, and in words what they rest on."""


def unit(vectors: Floats) -> Floats:
    """Each vector at length one (a zero vector stays zero)."""
    norms = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return np.asarray(vectors / np.where(norms > 0, norms, 1.0))


def without_each(instrument: Instrument, scores: Floats, labels: Labels) -> Floats:
    """The value with each probe word left out in turn; nan where nothing is left of its list.

    Labels stand in order, so they read the same whichever word of a list is left out: the words
    of a list are done at once.
    """
    n = labels.size
    result = np.full(n, np.nan)
    for label in np.unique(labels):
        own = np.flatnonzero(labels == label)
        if own.size > 1:
            kept = np.arange(n - 1) + (np.arange(n - 1) >= own[:, None])
            result[own] = instrument.value(scores[kept], labels[kept[0]])
    return result


def items_of(
    groups: Groups, columns: Mapping[str, Sequence[Any] | NDArray[Any]]
) -> tuple[Item, ...]:
    """A row a word: word, group, then the columns."""
    plain = {
        name: column.tolist() if isinstance(column, np.ndarray) else column
        for name, column in columns.items()
    }
    return tuple(
        {"word": word, "group": group, **{name: column[i] for name, column in plain.items()}}
        for i, (word, group) in enumerate(zip(groups.words, groups.label_names(), strict=True))
    )


def read(
    v: Vectors,
    instrument: Instrument,
    probes: Groups,
    *,
    query: str,
    options: Options,
    fixed: Sequence[int] | NDArray[np.intp] = (),
    left_out: Iterable[str] = (),
    details: Mapping[str, Any] | None = None,
    tested: Tested | None = None,
    columns: Mapping[str, Sequence[Any] | NDArray[Any]] | None = None,
) -> Measurement:
    """The instrument's reading of the probe words, with interval, null, items and leave-one-out.

    `fixed` are the rows the instrument is made of: they never enter the null. A metric with a
    test of its own passes its outcome as `tested`; there is no null then.
    """
    twice = np.isin(probes.rows, np.asarray(fixed, dtype=np.intp))
    if twice.any():
        raise InputError(
            f"{instrument.name} '{query}': '{probes.words[int(twice.argmax())]}' stands among the "
            "words in question and among those they are compared with"
        )
    scores = instrument.scores(v.raw(probes.rows))
    value = float(instrument.value(scores, probes.labels))
    low, high, interval = instrument.interval(scores, probes.labels, options.prob)
    if tested is None and options.null:
        null = null_distribution(
            v, instrument, probes.rows, probes.labels,
            value=value, draws=options.null, seed=options.seed, exclude=fixed,
        )  # fmt: skip
        words = f"{options.null:,} draws of random words of like frequency for the probe words"
        tested = Tested(null.p_value, words, null.details())
    tested = tested or Tested(None, "")
    single = scores[:, 0] if scores.shape[1] == 1 else scores.mean(axis=1)
    shown = {"score": single, "without": without_each(instrument, scores, probes.labels)}
    return Measurement(
        metric=instrument.name, query=query, value=value, low=low, high=high, prob=options.prob,
        p_value=tested.p_value, test=tested.words, n=len(probes.words), ideal=instrument.ideal,
        worse=instrument.worse, interval=interval,
        items=items_of(probes, {**shown, **(columns or {})}),
        left_out=tuple(dict.fromkeys([*probes.missing, *left_out])), seed=options.seed,
        details={**(details or {}), **tested.details},
    )  # fmt: skip
