r"""Direct bias: how far words that should be neutral lean along the bias direction.

$\mathrm{directBias}_c(N, g) = \frac{1}{|N|} \sum_{w \in N} |\cos(w, g)|^c$

Bolukbasi et al. (2016), D2 eq. 2.1. g is the first principal component of the pairs' members,
each pair centred on its mean; c is the strictness (0 < c; 1 by default).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats
from evenhand.results import Measurement, Worse
from evenhand.vectors.debias.subspace import bias_subspace
from evenhand.vectors.lookup import known_groups
from evenhand.vectors.metrics.mean_over_words import MeanOverWords
from evenhand.vectors.metrics.reading import Options, Settings, read, unit
from evenhand.vectors.store import Vectors

__all__ = ["DirectBias", "direct_bias"]


@dataclass(frozen=True, slots=True)
class DirectBias(MeanOverWords):
    """Direct bias with its direction fixed; the neutral words are the probes."""

    direction: Floats
    strictness: float
    name: str = "direct_bias"
    ideal: float | None = 0.0
    worse: Worse = "higher"

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(np.abs(unit(vectors) @ self.direction) ** self.strictness)[:, None]


def direct_bias(
    v: Vectors,
    sets: Sequence[Sequence[str]],
    words: Sequence[str],
    *,
    strictness: float = 1.0,
    query: str = "direct bias",
    **settings: Unpack[Settings],
) -> Measurement:
    """The direct bias of `words` along the direction that the definitional `sets` span.

    In d dimensions even random words read about √(2/πd) at strictness 1: the null in `details`
    says what chance gives here.
    """
    if not 0 < strictness < np.inf:
        raise InputError(f"strictness: expected a number above 0, got {strictness}")
    subspace = bias_subspace(v, sets, k=1)
    probes = known_groups(v, {"words": words}, f"direct bias '{query}': list", at_least=2)
    direction = subspace.basis[0]
    fixed = v.find([word for members in subspace.sets for word in members]).rows
    return read(
        v, DirectBias(direction, strictness), probes,
        query=query, options=Options(**settings), fixed=fixed, left_out=subspace.left_out,
        details={
            "strictness": strictness, "sets": len(subspace.sets),
            "explained": float(subspace.explained[0]),
        },
        columns={"projection": unit(v.raw(probes.rows)) @ direction},
    )  # fmt: skip
