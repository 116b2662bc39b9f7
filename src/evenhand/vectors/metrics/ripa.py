r"""RIPA: the relational inner product association of words with a relation such as man-woman.

$\beta(w; b) = \langle w, b \rangle$, b the first principal component of the pairs' differences
at length one, w at its own length. Ethayarajh, Duvenaud & Hirst (2019).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known_groups, known_tuples
from evenhand.vectors.metrics.mean_over_words import MeanOverWords
from evenhand.vectors.metrics.reading import Options, Settings, read
from evenhand.vectors.store import Vectors

__all__ = ["Ripa", "relation", "ripa"]


def relation(differences: Floats) -> Floats:
    """The unit vector that the difference vectors share most, pointing their mean's way.

    >>> relation(np.array([[2.0, 0.0], [3.0, 0.0]]))
    array([1., 0.])
    """
    direction = np.linalg.svd(differences, full_matrices=False)[2][0]
    aligned = direction if differences.mean(axis=0) @ direction >= 0 else -direction
    return np.asarray(aligned + 0.0)


@dataclass(frozen=True, slots=True)
class Ripa(MeanOverWords):
    """RIPA with its relation fixed; positive means nearer the first words of the pairs."""

    relation: Floats
    name: str = "ripa"
    ideal: float | None = 0.0
    worse: Worse = "away"

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(vectors @ self.relation)[:, None]


def ripa(
    v: Vectors,
    pairs: Sequence[tuple[str, str]],
    words: Sequence[str],
    *,
    query: str = "ripa",
    **settings: Unpack[Settings],
) -> Measurement:
    """The mean RIPA of `words` for the relation first - second of `pairs`.

    A pair of which one word is unknown is left out whole: the others stay paired.
    """
    pairs = list(pairs)
    if any(isinstance(pair, str) or len(pair) != 2 for pair in pairs):
        raise InputError(f"ripa '{query}': expected pairs of words, got {pairs[:3]}")
    kept, rows, missing = known_tuples(v, pairs, f"ripa '{query}': pairs")
    ends = v.raw(np.concatenate(rows)).reshape(len(kept), 2, -1)
    probes = known_groups(v, {"words": words}, f"ripa '{query}': list", at_least=2)
    return read(
        v, Ripa(relation(ends[:, 0] - ends[:, 1])), probes,
        query=query, options=Options(**settings), fixed=np.concatenate(rows), left_out=missing,
        details={"pairs": len(kept), "pairs_dropped": len(pairs) - len(kept)},
    )  # fmt: skip
