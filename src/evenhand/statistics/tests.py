"""Hypothesis tests on arrays: permutation, sign and binomial tests, Holm's correction.

The two-sample permutation test is exact where that is feasible, seeded Monte Carlo otherwise. Its
statistic is the difference of the two groups' means, which depends on a partition only
through the sum S of the first group. Scores are first put on a fixed-point grid (about 2^-52 of
the largest), so that sums are whole numbers and the order of adding does not matter; sums that
differ by no more than rounding to the grid can are ties, and ties count as extreme.

Exact counts come by meeting in the middle: all subset sums of each half of the words, sorted by
size of the subset, then binary search. That takes about 2^(n/2) steps where enumeration takes
C(n, n/2): 40 words, 1.4e11 partitions, need a second.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError
from evenhand.statistics.sequential import Seed, draw_until_clear

Alternative = Literal["two-sided", "greater", "less"]
ALTERNATIVES: tuple[Alternative, ...] = ("two-sided", "greater", "less")

EXACT_LIMIT = 40
"""The most words in both groups together for which every partition is counted."""

_CHUNK = 1 << 15
"""Words partitioned per batch; small enough for the CPU cache."""
_CACHED = 1 << 23
"""The most bytes of random partitions that are cached."""


@dataclass(frozen=True, slots=True)
class PermutationTest:
    """The two-sided p-value, the one-sided ones, and the number of partitions."""

    p_value: float
    p_greater: float
    p_less: float
    exact: bool
    partitions: int

    @property
    def details(self) -> dict[str, int]:
        """The details of a result on the random draws of its p-value; empty where it is exact."""
        return {} if self.exact else {"draws": self.partitions}

    @property
    def words(self) -> str:
        how = "all" if self.exact else "random"
        return f"permutation of words between the groups, {how} {self.partitions:,} partitions"


def two_sample(
    x: ArrayLike,
    y: ArrayLike,
    *,
    alternative: Alternative = "two-sided",
    permutations: int = 100_000,
    seed: int = 0,
    exact: bool | None = None,
) -> PermutationTest:
    """Is the mean of x other than the mean of y, the labels being exchangeable?

    Two-sided means |difference| at least as large as seen. Monte Carlo draws partitions without
    replacement within a draw and counts the observed one: (b + 1) / (m + 1). There are
    `permutations` of them, and more where it is not clear on which side of a level p lies.

    >>> two_sample([3.0, 4.0], [1.0, 2.0])
    PermutationTest(p_value=0.333..., p_greater=0.166..., p_less=1.0, exact=True, partitions=6)
    """
    x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
    if alternative not in ALTERNATIVES:
        raise InputError(f"alternative: expected two-sided, greater or less, got {alternative!r}")
    if not x.size or not y.size:
        raise InputError(f"a permutation test needs words on both sides, got {x.size} and {y.size}")
    scores, first = _fixed_point(np.concatenate([x, y])), x.size
    n, total, observed = scores.size, int(scores.sum()), int(scores[:first].sum())
    distance = abs(n * observed - first * total)
    bounds = {
        "upper": -(-(first * total + distance) // n) - n,
        "lower": (first * total - distance) // n + n,
        "greater": observed - n,
        "less": observed + n,
    }
    exact = n <= EXACT_LIMIT if exact is None else exact
    if exact:
        counts, partitions = _count_all(scores, first, bounds), math.comb(n, first)
        shares = dict(zip(ALTERNATIVES, (count / partitions for count in counts), strict=True))
    else:
        decides = ALTERNATIVES.index(alternative)
        counted = draw_until_clear(
            lambda size, batch: _count_random(scores, first, bounds, size, batch),
            permutations,
            seed,
            deciding=lambda counts: counts[decides],
        )
        partitions = counted.draws
        shares = dict(zip(ALTERNATIVES, counted.p_values.tolist(), strict=True))
    return PermutationTest(
        p_value=shares[alternative],
        p_greater=shares["greater"],
        p_less=shares["less"],
        exact=exact,
        partitions=partitions,
    )


def _fixed_point(scores: NDArray[np.float64]) -> NDArray[np.int64]:
    largest = float(np.abs(scores).max())
    if not math.isfinite(largest):
        raise InputError("a permutation test needs finite scores")
    bits = min(52, 61 - scores.size.bit_length())
    return np.rint(np.ldexp(scores, bits - math.frexp(largest)[1])).astype(np.int64)


def _count_all(scores: NDArray[np.int64], first: int, bounds: dict[str, int]) -> list[int]:
    """The number of extreme partitions among all, by alternative."""
    half = scores.size // 2
    left, right = _sums_by_size(scores[:half]), _sums_by_size(scores[half:])
    counts = dict.fromkeys(ALTERNATIVES, 0)
    for size, sums in enumerate(left):
        rest = first - size
        if not 0 <= rest < len(right):
            continue
        other = right[rest]
        at_least = {
            bound: int((other.size - np.searchsorted(other, bound - sums, "left")).sum())
            for bound in {bounds["upper"], bounds["greater"]}
        }
        at_most = {
            bound: int(np.searchsorted(other, bound - sums, "right").sum())
            for bound in {bounds["lower"], bounds["less"]}
        }
        counts["greater"] += at_least[bounds["greater"]]
        counts["less"] += at_most[bounds["less"]]
        if bounds["lower"] >= bounds["upper"]:
            counts["two-sided"] += sums.size * other.size
        else:
            counts["two-sided"] += at_least[bounds["upper"]] + at_most[bounds["lower"]]
    return list(counts.values())


def _sums_by_size(values: NDArray[np.int64]) -> list[NDArray[np.int64]]:
    """The sums of all subsets, one sorted array for each size of subset."""
    by_size = [np.zeros(1, dtype=np.int64)]
    for value in values:
        larger = [sums + value for sums in by_size]
        by_size = [
            np.concatenate(pair)
            for pair in zip(
                [*by_size, np.zeros(0, dtype=np.int64)],
                [np.zeros(0, dtype=np.int64), *larger],
                strict=True,
            )
        ]
    return [np.sort(sums) for sums in by_size]


def _count_random(
    scores: NDArray[np.int64], first: int, bounds: dict[str, int], draws: int, seed: Seed
) -> list[int]:
    """The number of extreme partitions among random ones, by alternative."""
    counts = dict.fromkeys(ALTERNATIVES, 0)
    # in float64 the sums of either half are exact, and a matrix product does them
    halves = np.stack([scores >> 26, scores & ((1 << 26) - 1)], axis=1).astype(float)
    for chosen in _partitions(scores.size, first, draws, seed):
        upper, lower = (chosen.astype(float) @ halves).T.astype(np.int64)
        sums = (upper << 26) + lower
        extreme = (sums >= bounds["upper"]) | (sums <= bounds["lower"])
        counts["two-sided"] += int(extreme.sum())
        counts["greater"] += int((sums >= bounds["greater"]).sum())
        counts["less"] += int((sums <= bounds["less"]).sum())
    return list(counts.values())


def _partitions(n: int, first: int, draws: int, seed: Seed) -> Iterable[NDArray[np.bool_]]:
    """Random partitions of n words, in chunks (draws, n): which words are in the first group.

    Tests of lists of the same sizes have the same partitions, so the last ones are cached.
    """
    large = n * draws > _CACHED
    return (_draw if large else _draw_cached)(n, first, draws, seed)


@lru_cache(maxsize=2)
def _draw_cached(n: int, first: int, draws: int, seed: Seed) -> tuple[NDArray[np.bool_], ...]:
    return tuple(_draw(n, first, draws, seed))


def _draw(n: int, first: int, draws: int, seed: Seed) -> Iterator[NDArray[np.bool_]]:
    rng = np.random.default_rng(seed)
    step = max(1, _CHUNK // n)
    for start in range(0, draws, step):
        keys = rng.random((min(step, draws - start), n), dtype=np.float32)
        ordered = np.sort(keys, axis=1)
        chosen = keys <= ordered[:, first - 1, None]
        tied = np.flatnonzero(ordered[:, first - 1] == ordered[:, first])
        for row, order in zip(tied, np.argpartition(keys[tied], first - 1, axis=1), strict=True):
            chosen[row, order[first:]] = False
        yield chosen


def binomial_test(successes: int, n: int) -> float:
    """The exact two-sided p-value of `successes` in `n` trials at one half.

    >>> binomial_test(9, 10)
    0.021484375
    """
    fewer = min(successes, n - successes)
    if n > 200:
        from scipy.special import bdtr

        return min(1.0, 2 * float(bdtr(fewer, n, 0.5)))
    return min(1.0, 2 * sum(math.comb(n, k) for k in range(fewer + 1)) / (1 << n))


def sign_counts(x: ArrayLike) -> tuple[int, int]:
    """The numbers of values above and below 0; a value within 1e-6 of 0 is a rounding error."""
    rounded = np.asarray(x, dtype=float).round(6)
    return int((rounded > 0).sum()), int((rounded < 0).sum())


def sign_test(x: ArrayLike) -> float:
    """The exact two-sided p-value that as many values lie above 0 as below; zeros drop out.

    >>> round(sign_test([0.1] * 8 + [-0.3] * 2 + [0.0]), 4)
    0.1094
    """
    above, below = sign_counts(x)
    return binomial_test(above, above + below)


def holm(p_values: Sequence[float]) -> list[float]:
    """The p-values corrected for their number, step by step (Holm 1979).

    >>> holm([0.01, 0.04, 0.03])
    [0.03, 0.06, 0.06]
    """
    order = sorted(range(len(p_values)), key=lambda i: p_values[i])
    result, reached = [0.0] * len(p_values), 0.0
    for rank, i in enumerate(order):
        reached = max(reached, min(1.0, (len(p_values) - rank) * p_values[i]))
        result[i] = reached
    return result
