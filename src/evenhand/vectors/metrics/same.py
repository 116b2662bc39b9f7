r"""SAME: how much of a word lies in the space that tells the groups apart.

With $\hat a_i$ the mean of group i's unit vectors, the bias space is spanned by the differences
$\hat a_i - \hat a_{i+1}$; a word's bias is the length of its unit vector's projection on it (for
two groups $|\cos(w, \hat a_1 - \hat a_2)|$), SAME the mean over words. Schröder et al. (2021).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Unpack

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known_groups
from evenhand.vectors.metrics.mean_over_words import MeanOverWords
from evenhand.vectors.metrics.reading import Options, Settings, read, unit
from evenhand.vectors.store import Vectors

__all__ = ["Same", "bias_space", "same"]


def bias_space(centres: Floats) -> Floats:
    """An orthonormal basis (g-1, d) of the differences between g groups' centres."""
    _, sizes, right = np.linalg.svd(centres[:-1] - centres[1:], full_matrices=False)
    basis = right[sizes > 1e-10 * max(1.0, float(sizes.max()))]
    if not len(basis):
        raise InputError("same: the groups have the same centre, so no direction tells them apart")
    return np.asarray(basis)


@dataclass(frozen=True, slots=True)
class Same(MeanOverWords):
    """SAME with its bias space fixed."""

    basis: Floats
    name: str = "same"
    ideal: float | None = 0.0
    worse: Worse = "higher"

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(np.linalg.norm(unit(vectors) @ self.basis.T, axis=1, keepdims=True))


def same(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    words: Sequence[str],
    *,
    query: str = "same",
    **settings: Unpack[Settings],
) -> Measurement:
    """The SAME score of `words` for two or more groups.

    For two groups `details` splits it as the authors do: `skew`, the mean signed bias (positive:
    towards the first group), and `stereotype`, the spread of it over the words.
    """
    if len(groups) < 2:
        raise InputError(f"same '{query}': expected two or more groups, got {len(groups)}")
    fixed = known_groups(v, groups, f"same '{query}': group", disjoint=True)
    probes = known_groups(v, {"words": words}, f"same '{query}': list", at_least=2)
    vectors = v.unit(fixed.rows)
    centres = np.stack([vectors[fixed.labels == i].mean(axis=0) for i in range(len(groups))])
    details: dict[str, Any] = {"groups": len(groups)}
    if len(groups) == 2:
        signed = v.unit(probes.rows) @ unit(centres[0] - centres[1])
        details |= {"skew": float(signed.mean()), "stereotype": float(signed.std(ddof=1))}
    return read(
        v, Same(bias_space(centres)), probes,
        query=query, options=Options(**settings), fixed=fixed.rows, left_out=fixed.missing,
        details=details,
    )  # fmt: skip
