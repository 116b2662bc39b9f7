"""The cost of a mitigation: how much of the vectors' geometry is unchanged."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.instruments import Declaration, Run
from evenhand.results import Items, Measurement
from evenhand.statistics.correlation import average_ranks
from evenhand.statistics.intervals import Floats, fisher_z, t_mean
from evenhand.vectors.debias.subspace import unit_rows
from evenhand.vectors.declarations import COSINES, OVERLAP, RANKS
from evenhand.vectors.store import Vectors

_CELLS = 1 << 24
"""Cosines that are computed at a time: 64 megabytes."""


def nearest(
    unit: NDArray[np.float32], k: int, queries: NDArray[np.float32] | NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The k rows of `unit` with the largest cosine to each query, largest first, and the cosines.

    `queries` are unit vectors, or indices of rows of `unit`, which are then not their own
    neighbours. All vectors have unit length. The search is exact, in pieces that fit the memory.

    >>> unit = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
    >>> nearest(unit, 2, np.array([2]))[0].tolist()
    [[1, 0]]
    >>> nearest(unit, 2, unit[2:])[0].tolist()
    [[2, 1]]
    """
    among = queries.ndim == 1
    if not 1 <= k <= len(unit) - among:
        raise InputError(f"neighbours: expected 1 to {len(unit) - among}, got {k}")
    indices = np.empty((len(queries), k), dtype=np.intp)
    cosines = np.empty((len(queries), k), dtype=np.float32)
    step = max(1, _CELLS // len(unit))
    for start in range(0, len(queries), step):
        part = queries[start : start + step]
        if among:
            similar = unit[part] @ unit.T
            similar[np.arange(len(part)), part] = -np.inf
        else:
            similar = part @ unit.T
        top = np.argpartition(similar, -k, axis=1)[:, -k:]
        value = np.take_along_axis(similar, top, axis=1)
        order = np.argsort(-value, axis=1, kind="stable")
        indices[start : start + step] = np.take_along_axis(top, order, axis=1)
        cosines[start : start + step] = np.take_along_axis(value, order, axis=1)
    return indices, cosines


@checked
def neighbour_overlap(
    before: Vectors,
    after: Vectors,
    *,
    n_words: int = 1000,
    k: int = 10,
    limit: int = 50_000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure the mean share of a word's k nearest neighbours that are still its k nearest.

    Parameters
    ----------
    before, after : Vectors
        With the same words.
    n_words : int
        Random words of the `limit` most frequent; neighbours are among these.
    k : int
        The number of neighbours.
    limit : int
        The number of most frequent words that are drawn from.
    seed, prob
        As for `Run`.

    Returns
    -------
    Measurement
        1: nothing changed; 0: no neighbour is the same.

    """
    run = Run(seed=seed, prob=prob)
    first, second, rows, sample = _sample(before, after, n_words, run.seed, limit)
    neighbours, _ = nearest(first, k, sample)
    others, _ = nearest(second, k, sample)
    shares = (neighbours[:, :, None] == others[:, None, :]).any(axis=2).mean(axis=1)
    return _mean_over_words(OVERLAP, run, after, rows[sample], shares, k)


@checked
def neighbour_rank_correlation(
    before: Vectors,
    after: Vectors,
    *,
    n_words: int = 1000,
    k: int = 100,
    limit: int = 50_000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure the mean rank correlation of a word's cosines with its neighbours before and after.

    Parameters
    ----------
    before, after : Vectors
        With the same words.
    k : int
        The number of neighbours, those before.
    n_words, limit, seed, prob
        As for `neighbour_overlap`.

    Returns
    -------
    Measurement
        A mean Spearman correlation. 1: the neighbours are in the same order.

    """
    run = Run(seed=seed, prob=prob)
    first, second, rows, sample = _sample(before, after, n_words, run.seed, limit)
    if k < 3:
        raise InputError(f"k: expected 3 or more neighbours to rank, got {k}")
    neighbours, cosines = nearest(first, k, sample)
    later = np.array(
        [second[near] @ second[row] for near, row in zip(neighbours, sample, strict=True)]
    )
    x, y = (
        average_ranks(np.asarray(side, dtype=float), axis=1) - (k + 1) / 2
        for side in (cosines, later)
    )
    spread = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    scores = np.divide((x * y).sum(axis=1), spread, out=np.zeros(len(sample)), where=spread > 0)
    return _mean_over_words(RANKS, run, after, rows[sample], scores, k)


@checked
def cosine_rank_correlation(
    before: Vectors,
    after: Vectors,
    *,
    pairs: int = 20_000,
    limit: int = 50_000,
    seed: int = 0,
    prob: float = 0.95,
) -> Measurement:
    """Measure the rank correlation of the cosines of random word pairs before and after.

    Parameters
    ----------
    before, after : Vectors
        With the same words.
    pairs : int
        Random pairs, fewer where the vocabulary is too small. No word is in two pairs, so that
        the pairs are independent.
    limit, seed, prob
        As for `neighbour_overlap`.

    Returns
    -------
    Measurement
        Spearman's correlation. 1: the cosines are in the same order.

    """
    run = Run(seed=seed, prob=prob)
    rows = _shared_rows(before, after, limit)
    count = min(pairs, rows.size // 2)
    if count < 4:
        raise InputError(f"cosine_rank_correlation: expected 4 or more pairs, got {count}")
    drawn = np.random.default_rng(run.seed).permutation(rows)[: 2 * count].reshape(2, count)
    x, y = (
        np.einsum("ij,ij->i", unit_rows(v.matrix[drawn[0]]), unit_rows(v.matrix[drawn[1]]))
        for v in (before, after)
    )
    value = min(1.0, float(np.corrcoef(average_ranks(x), average_ranks(y))[0, 1]))
    return COSINES.result(
        run,
        "random word pairs",
        (value, *fisher_z(value, count, run.prob, spearman=True)),
        subject=after.name,
        n=count,
        interval="Fisher z for Spearman's correlation over pairs without common words",
        items=Items(
            {
                "word": [before.words[row] for row in drawn[0]],
                "other": [before.words[row] for row in drawn[1]],
                "score": y - x,
                "before": x,
                "after": y,
            }
        ),
    )


def _shared_rows(before: Vectors, after: Vectors, limit: int) -> NDArray[np.intp]:
    """The first `limit` rows that are not zero before or after; both must have the same words."""
    if before.words != after.words:
        raise InputError(f"expected the same words in both, got {before.name} and {after.name}")
    top = min(limit, len(before))
    alive = np.asarray(before.matrix[:top].any(axis=1)) & after.matrix[:top].any(axis=1)
    return np.flatnonzero(alive)


def _sample(
    before: Vectors, after: Vectors, n_words: int, seed: int, limit: int
) -> tuple[NDArray[np.float32], NDArray[np.float32], NDArray[np.intp], NDArray[np.intp]]:
    """The unit vectors before and after, their rows, and a random sample of indices into these."""
    rows = _shared_rows(before, after, limit)
    if n_words < 2:
        raise InputError(f"n_words: expected 2 or more, got {n_words}")
    drawn = np.random.default_rng(seed).permutation(rows.size)[:n_words]
    return unit_rows(before.matrix[rows]), unit_rows(after.matrix[rows]), rows, np.sort(drawn)


def _mean_over_words(
    declaration: Declaration,
    run: Run,
    after: Vectors,
    rows: NDArray[np.intp],
    scores: Floats,
    neighbours: int,
) -> Measurement:
    words = [after.words[row] for row in rows]
    value, low, high = t_mean(scores, run.prob)
    without = (scores.sum() - scores) / (scores.size - 1)
    return declaration.result(
        run,
        "random words",
        (value, low, min(1.0, high)),
        subject=after.name,
        n=scores.size,
        interval="Student t over the words",
        items=Items({"word": words, "score": scores, "without": without}),
        details={"neighbours": neighbours},
    )
