"""Null distributions: the values of a metric on random words, and the effect of dimension.

A cosine of .2 is neither large nor small in itself. Replacing the probe words by random words of
similar frequency, and computing the same statistic on them, says which values chance gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.instruments import Declaration, Run
from evenhand.results import Items, Measurement, Worse
from evenhand.statistics.intervals import Floats, t_mean
from evenhand.vectors.store import Vectors

if TYPE_CHECKING:
    from evenhand.vectors.probes import Statistic

Rows = NDArray[np.intp]

__all__ = ["Null", "dimension_spread", "matched_rows", "null_distribution"]

_BLOCK = 512
"""So many words are scored at once: their vectors stay in the processor's cache."""
_CHUNK = 2**16
"""So many scores of draws are reduced at once, for the same reason."""
_CACHED = 16
_DRAWS: WeakKeyDictionary[Vectors, dict[tuple[Any, ...], tuple[Rows, Rows]]] = WeakKeyDictionary()
"""The last draws of random words from each vectors."""
_CANDIDATES = 200
"""The smallest number of candidates for each probe word, however rare it is."""


@dataclass(frozen=True, slots=True)
class Null:
    """The statistic on sets of random words, and the value that is compared with them."""

    values: Floats
    value: float
    worse: Worse

    @property
    def p_value(self) -> float:
        """The share of draws at least as bad, the observed set counted in; `away`: two-sided."""
        if not (np.isfinite(self.values).all() and math.isfinite(self.value)):
            raise InputError("a null needs finite values: the measure is undefined on some words")
        above = (1 + int((self.values >= self.value).sum())) / (1 + self.values.size)
        below = (1 + int((self.values <= self.value).sum())) / (1 + self.values.size)
        if self.worse == "away":
            return min(1.0, 2 * min(above, below))
        return above if self.worse == "higher" else below

    def details(self) -> dict[str, Any]:
        levels = (0.01, 0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975, 0.99)
        quantiles = np.quantile(self.values, levels).tolist()
        return {
            "null_draws": self.values.size,
            "null_mean": float(self.values.mean()),
            "null_median": quantiles[4],
            "null_low": quantiles[1],
            "null_high": quantiles[7],
            "null_quantiles": {
                f"{level:g}": quantile for level, quantile in zip(levels, quantiles, strict=True)
            },
        }


def matched_rows(
    v: Vectors,
    rows: NDArray[np.intp],
    draws: int,
    *,
    seed: int,
    exclude: Sequence[int] | NDArray[np.intp] = (),
) -> NDArray[np.intp]:
    """`draws` × len(rows) random rows, each within a factor 1.5 of its word's frequency rank.

    No word is twice in a draw; the excluded rows, the probe words themselves and words with a
    zero vector are never drawn.
    """
    barred = v.blank.copy()
    barred[np.asarray(exclude, dtype=np.intp)] = True
    barred[rows] = True
    allowed = np.flatnonzero(~barred)
    if allowed.size < max(2 * len(rows), 20):
        raise InputError(
            f"a null from random words needs at least {max(2 * len(rows), 20)} other words, "
            f"{v.name} has {allowed.size}: use larger vectors or no null"
        )
    reach = min(allowed.size, max(_CANDIDATES, 4 * len(rows)))
    ranks, own = v.ranks[allowed].astype(float), v.ranks[rows].astype(float)
    starts, stops = np.searchsorted(ranks, own / 1.5), np.searchsorted(ranks, own * 1.5 + 1)
    widths = np.maximum(stops - starts, reach)
    centred = np.clip((starts + stops - reach) // 2, 0, allowed.size - reach)
    starts = np.where(stops - starts < reach, centred, starts)
    rng = np.random.default_rng(seed)
    drawn = allowed[starts + rng.integers(0, widths, size=(draws, len(rows)))]
    again = _repeated(drawn)
    while again.any():
        first = np.broadcast_to(starts, drawn.shape)[again]
        drawn[again] = allowed[first + rng.integers(0, np.broadcast_to(widths, drawn.shape)[again])]
        again = _repeated(drawn)
    return np.asarray(drawn)


def _repeated(drawn: NDArray[np.intp]) -> NDArray[np.bool_]:
    """Where a row of the array has a value for the second time."""
    result = np.zeros(drawn.shape, dtype=bool)
    ordered = np.sort(drawn, axis=1)
    rows = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    order = np.argsort(drawn[rows], axis=1, kind="stable")
    same = np.zeros(order.shape, dtype=bool)
    same[:, 1:] = ordered[rows, 1:] == ordered[rows, :-1]
    result[rows[:, None], order] = same
    return result


def null_distribution(
    v: Vectors,
    statistic: Statistic,
    rows: NDArray[np.intp],
    labels: NDArray[np.intp],
    *,
    value: float,
    worse: Worse,
    draws: int,
    seed: int,
    exclude: Sequence[int] | NDArray[np.intp] = (),
) -> Null:
    """The statistic's value on `draws` frequency-matched replacements of the probe words.

    Every drawn word is scored once, whatever the number of draws it occurs in.
    """
    distinct, positions = _replacements(v, rows, draws, seed, np.unique(exclude).astype(np.intp))
    blocks = [
        statistic.scores(v.raw(distinct[start : start + _BLOCK]))
        for start in range(0, distinct.size, _BLOCK)
    ]
    scores = np.concatenate(blocks)
    step = max(1, _CHUNK // (scores.shape[1] * rows.size))
    values = [
        statistic.value(np.take(scores, positions[start : start + step], axis=0), labels)
        for start in range(0, draws, step)
    ]
    return Null(values=np.concatenate(values), value=value, worse=worse)


def _replacements(
    v: Vectors, rows: Rows, draws: int, seed: int, exclude: Rows
) -> tuple[Rows, Rows]:
    """The rows of all drawn words, and which of them are in each draw (draws, len(rows)).

    Several metrics ask about the same words, so the last draws are cached.
    """
    cache = _DRAWS.setdefault(v, {})
    key = (rows.tobytes(), draws, seed, exclude.tobytes())
    if key not in cache:
        drawn = matched_rows(v, rows, draws, seed=seed, exclude=exclude)
        mask = np.zeros(len(v), dtype=bool)
        mask[drawn] = True
        distinct = np.flatnonzero(mask)
        numbers = np.empty(len(v), dtype=np.intp)
        numbers[distinct] = np.arange(distinct.size)
        cache[key] = distinct, numbers[drawn]
        if len(cache) > _CACHED:
            del cache[next(iter(cache))]
    return cache[key]


DIMENSION = Declaration(
    name="dimension_spread",
    subject="vectors",
    label="Dimension",
    question="How does the spread of cosines between random vectors shrink with dimension?",
    formula="slope of log sd on log dimension; theory: -1/2",
    source="Dobrzeniecka (2021)",
    ideal=-0.5,
)
DECLARATIONS = (DIMENSION,)


def dimension_spread(
    dims: Sequence[int] = (2, 5, 10, 25, 50, 100, 200, 300, 500, 1000),
    *,
    points: int = 1000,
    repeats: int = 20,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure how the spread of cosines between random vectors shrinks with dimension.

    Parameters
    ----------
    dims : sequence of int
        The dimensions.
    points : int
        Random vectors of each kind.
    repeats : int
        Repetitions, which the interval rests on.
    seed : int
        The random seed.
    prob : float
        The probability of the interval.

    Returns
    -------
    Measurement
        The slope of log sd on log d for normal coordinates; -1/2 means that a cosine counts √2
        times as much where the dimension doubles. One item per dimension.

    Notes
    -----
    For each dimension: the standard deviation of the cosine between one random vector and
    `points` others, coordinates uniform on [0, 1] as in Dobrzeniecka (2021, §2.5.6) and standard
    normal as in embeddings (theory: 1/√d).

    Examples
    --------
    >>> import evenhand as eh
    >>> m = eh.vectors.dimension_spread([2, 10, 50], points=100, repeats=4)
    >>> m.low < -0.4
    True

    """
    if len(dims) < 2 or min(dims) < 2:
        raise InputError(f"dims: expected at least two dimensions of 2 or more, got {list(dims)}")
    run = Run(seed=seed, prob=prob)
    rng = np.random.default_rng(run.seed)
    slopes, table = [], np.empty((repeats, len(dims), 2))
    for repeat in range(repeats):
        for i, dim in enumerate(dims):
            size = (points + 1, dim)
            for j, cloud in enumerate((rng.random(size), rng.standard_normal(size))):
                cloud /= np.linalg.norm(cloud, axis=1, keepdims=True)
                table[repeat, i, j] = (cloud[1:] @ cloud[0]).std(ddof=1)
        slopes.append(np.polyfit(np.log(dims), np.log(table[repeat, :, 1]), 1)[0])
    means = table.mean(axis=0)
    return DIMENSION.result(
        run,
        "random vectors",
        t_mean(slopes, run.prob),
        n=repeats,
        interval=f"Student t over {repeats} repetitions",
        items=Items(
            {
                "word": [str(dim) for dim in dims],
                "score": means[:, 1],
                "dimension": dims,
                "sd_uniform": means[:, 0],
                "sd_normal": means[:, 1],
                "theory_normal": [1 / math.sqrt(dim) for dim in dims],
            }
        ),
    )
