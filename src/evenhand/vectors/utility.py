"""What a mitigation cost: how much of the vectors' geometry it left as it was."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.intervals import Floats, fisher_z, t_mean
from evenhand.results import Measurement
from evenhand.vectors.debias.projection import unit_rows
from evenhand.vectors.neighbours import nearest
from evenhand.vectors.store import Vectors

__all__ = ["cosine_rank_correlation", "neighbour_overlap", "neighbour_rank_correlation"]


def neighbour_overlap(
    before: Vectors,
    after: Vectors,
    *,
    n_words: int = 1000,
    k: int = 10,
    seed: int = 0,
    limit: int = 50_000,
    prob: float = 0.95,
) -> Measurement:
    """The mean share of a word's k nearest neighbours that are still among its k nearest.

    Over `n_words` random words of the `limit` most frequent, neighbours among these; 1 means
    that nothing changed, 0 that no neighbour was kept.
    """
    first, second, rows, asked = _sample(before, after, n_words, seed, limit)
    places, _ = nearest(first, k, asked)
    others, _ = nearest(second, k, asked)
    kept = (places[:, :, None] == others[:, None, :]).any(axis=2).mean(axis=1)
    words = [before.words[row] for row in rows[asked]]
    return _mean_over_words("neighbour_overlap", words, kept, prob, seed, {"neighbours": k})


def neighbour_rank_correlation(
    before: Vectors,
    after: Vectors,
    *,
    n_words: int = 1000,
    k: int = 100,
    seed: int = 0,
    limit: int = 50_000,
    prob: float = 0.95,
) -> Measurement:
    """The mean Spearman correlation of a word's cosines with its k nearest, before and after.

    Over `n_words` random words of the `limit` most frequent; the k neighbours are those before.
    1 means that they stand in the same order.
    """
    from scipy.stats import rankdata

    first, second, rows, asked = _sample(before, after, n_words, seed, limit)
    if k < 3:
        raise InputError(f"k: expected 3 or more neighbours to rank, got {k}")
    places, cosines = nearest(first, k, asked)
    later = np.array([second[near] @ second[row] for near, row in zip(places, asked, strict=True)])
    x, y = (rankdata(side, axis=1) - (k + 1) / 2 for side in (cosines, later))
    spread = np.sqrt((x * x).sum(axis=1) * (y * y).sum(axis=1))
    scores = np.divide((x * y).sum(axis=1), spread, out=np.zeros(len(asked)), where=spread > 0)
    words = [before.words[row] for row in rows[asked]]
    return _mean_over_words(
        "neighbour_rank_correlation", words, scores, prob, seed, {"neighbours": k}
    )


def cosine_rank_correlation(
    before: Vectors,
    after: Vectors,
    *,
    pairs: int = 20_000,
    seed: int = 0,
    limit: int = 50_000,
    prob: float = 0.95,
) -> Measurement:
    """Spearman's correlation of the cosines of random word pairs before with those after.

    No word is in two pairs, so the pairs are independent; where the vocabulary is too small for
    `pairs` of them there are as many as it has.
    """
    from scipy.stats import spearmanr

    rows = _shared_rows(before, after, limit)
    count = min(pairs, rows.size // 2)
    if count < 4:
        raise InputError(f"cosine_rank_correlation: expected 4 or more pairs, got {count}")
    drawn = np.random.default_rng(seed).permutation(rows)[: 2 * count].reshape(2, count)
    x, y = (
        np.einsum("ij,ij->i", unit_rows(v.matrix[drawn[0]]), unit_rows(v.matrix[drawn[1]]))
        for v in (before, after)
    )
    value = min(1.0, float(spearmanr(x, y).statistic))
    low, high = fisher_z(value, count, prob, spearman=True)
    items = tuple(
        {
            "word": before.words[a], "other": before.words[b],
            "score": float(q - p), "before": float(p), "after": float(q),
        }
        for a, b, p, q in zip(*drawn, x, y, strict=True)
    )  # fmt: skip
    return Measurement(
        metric="cosine_rank_correlation", query="random word pairs", value=value, low=low,
        high=high, prob=prob, n=count, ideal=1.0, worse="lower", seed=seed, items=items,
        interval="Fisher z for Spearman's correlation over pairs without common words",
    )  # fmt: skip


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
    """Both sides' unit vectors, the rows they are of, and random places among them."""
    rows = _shared_rows(before, after, limit)
    if n_words < 2:
        raise InputError(f"n_words: expected 2 or more, got {n_words}")
    drawn = np.random.default_rng(seed).permutation(rows.size)[:n_words]
    return unit_rows(before.matrix[rows]), unit_rows(after.matrix[rows]), rows, np.sort(drawn)


def _mean_over_words(
    metric: str,
    words: list[str],
    scores: Floats,
    prob: float,
    seed: int,
    details: Mapping[str, Any],
) -> Measurement:
    value, low, high = t_mean(scores, prob)
    without = (scores.sum() - scores) / (scores.size - 1)
    items = tuple(
        {"word": word, "score": score, "without": rest}
        for word, score, rest in zip(words, scores.tolist(), without.tolist(), strict=True)
    )
    return Measurement(
        metric=metric, query="random words", value=value, low=low, high=min(1.0, high), prob=prob,
        n=scores.size, ideal=1.0, worse="lower", seed=seed, items=items, details=details,
        interval="Student t over the words",
    )  # fmt: skip
