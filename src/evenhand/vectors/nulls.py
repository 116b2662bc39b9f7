"""Null distributions: the values of a metric on random words, and the effect of dimension.

A cosine of .2 is neither large nor small in itself. Replacing the probe words by random words of
similar frequency, and computing the same statistic on them, says which values chance gives.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.instruments import Run
from evenhand.results import Items, Measurement, Worse
from evenhand.statistics.intervals import Floats, t_mean
from evenhand.statistics.sequential import Seed, draw_until_clear
from evenhand.vectors.declarations import DIMENSION
from evenhand.vectors.store import Vectors

if TYPE_CHECKING:
    from evenhand.vectors.probes import Statistic

_BLOCK = 512
"""Words scored per batch; small enough for the CPU cache."""
_CHUNK = 2**16
"""Scores reduced per batch; small enough for the CPU cache."""
_CANDIDATES = 200
"""The smallest number of candidates per probe word."""


@dataclass(frozen=True, slots=True)
class Null:
    """The statistic on sets of random words, and the value that is compared with them."""

    values: Floats
    value: float
    worse: Worse

    @property
    def p_value(self) -> float:
        """The share of draws at least as bad, the observed set counted in; `away`: two-sided."""
        extreme = _as_bad(_extremes(self.values, self.value), self.worse)
        return min(1.0, _factor(self.worse) * (1 + extreme) / (1 + self.values.size))

    def details(self) -> dict[str, object]:
        levels = (0.01, 0.025, 0.05, 0.25, 0.5, 0.75, 0.95, 0.975, 0.99)
        quantiles = np.quantile(self.values, levels).tolist()
        return {
            "draws": self.values.size // _factor(self.worse),
            "null_draws": self.values.size,
            "null_mean": float(self.values.mean()),
            "null_median": quantiles[4],
            "null_low": quantiles[1],
            "null_high": quantiles[7],
            "null_quantiles": {
                f"{level:g}": quantile for level, quantile in zip(levels, quantiles, strict=True)
            },
        }


def _extremes(values: Floats, value: float) -> NDArray[np.int64]:
    """The numbers of values at least and at most the one observed."""
    if not (np.isfinite(values).all() and math.isfinite(value)):
        raise InputError("a null needs finite values: the measure is undefined on some words")
    return np.array([(values >= value).sum(), (values <= value).sum()])


def _as_bad(extremes: NDArray[np.int64], worse: Worse) -> int:
    """The one of both numbers that decides."""
    above, below = int(extremes[0]), int(extremes[1])
    return min(above, below) if worse == "away" else above if worse == "higher" else below


def _factor(worse: Worse) -> int:
    """The multiple of a share of draws that the p-value is."""
    return 2 if worse == "away" else 1


def matched_rows(
    v: Vectors,
    rows: NDArray[np.intp],
    draws: int,
    *,
    seed: int | Seed,
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
    shape = draws, len(rows)
    if isinstance(seed, tuple) and seed[1]:  # faster than integers with limits of their own
        picks = (rng.random(shape) * widths).astype(np.intp)
    else:
        picks = rng.integers(0, widths, size=shape)
    drawn = allowed[starts + picks]
    again, slots = _repeated(drawn)
    while again.size:
        drawn[again, slots] = allowed[starts[slots] + rng.integers(0, widths[slots])]
        redrawn = np.unique(again)
        again, slots = _repeated(drawn[redrawn])
        again = redrawn[again]
    return np.asarray(drawn)


def _repeated(drawn: NDArray[np.intp]) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The rows and columns of the array where a row has a value for the second time."""
    ordered = np.sort(drawn, axis=1)
    rows = np.flatnonzero((ordered[:, 1:] == ordered[:, :-1]).any(axis=1))
    order = np.argsort(drawn[rows], axis=1, kind="stable")
    same = np.zeros(order.shape, dtype=bool)
    same[:, 1:] = ordered[rows, 1:] == ordered[rows, :-1]
    result = np.zeros(order.shape, dtype=bool)
    np.put_along_axis(result, order, same, axis=1)
    again, slots = np.nonzero(result)
    return rows[again], slots


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
    """The statistic's value on frequency-matched replacements of the probe words.

    There are `draws` of them, and more where it is not clear on which side of a level the p-value
    lies. Every drawn word is scored once, whatever the number of draws it occurs in.
    """
    scored = np.zeros(len(v), dtype=bool)
    scores = np.empty((len(v), statistic.scores(v.raw(rows[:1])).shape[1]))
    step = max(1, _CHUNK // (scores.shape[1] * rows.size))
    values: list[Floats] = []

    def count(size: int, seed: Seed) -> NDArray[np.int64]:
        drawn = matched_rows(v, rows, size, seed=seed, exclude=exclude)
        occurs = np.zeros(len(v), dtype=bool)
        occurs[drawn] = True
        unscored = np.flatnonzero(occurs & ~scored)
        scored[unscored] = True
        for start in range(0, unscored.size, _BLOCK):
            block = unscored[start : start + _BLOCK]
            scores[block] = statistic.scores(v.raw(block))
        batch = [
            statistic.value(np.take(scores, drawn[start : start + step], axis=0), labels)
            for start in range(0, size, step)
        ]
        values.extend(batch)
        return _extremes(np.concatenate(batch), value)

    draw_until_clear(
        count, draws, seed, factor=_factor(worse), deciding=lambda counts: _as_bad(counts, worse)
    )
    return Null(values=np.concatenate(values), value=value, worse=worse)


@checked
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
    seed, prob
        As for `Run`.

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
