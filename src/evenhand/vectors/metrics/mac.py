r"""MAC: the mean cosine distance between protected words and stereotype attributes.

$MAC(T, A) = \dfrac{1}{|T||A|} \sum_{t \in T} \sum_{A_j \in A} \dfrac{1}{|A_j|} \sum_{a \in A_j}
(1 - \cos(t, a))$

Manzini et al. (2019), D2 eq. 2.2-2.3. The paper calls it a similarity; its figures are distances,
so 1 means unrelated and less than 1 close.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.intervals import Floats, crossed_mean
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known_groups
from evenhand.vectors.metrics.reading import Labels, Options, Settings, read, unit
from evenhand.vectors.store import Vectors

__all__ = ["Mac", "mac"]


@dataclass(frozen=True, slots=True)
class Mac:
    """MAC with its protected words fixed; the attributes are the probes."""

    protected: Floats
    name: str = "mac"
    ideal: float | None = 1.0
    worse: Worse = "lower"

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(1 - unit(vectors) @ self.protected.T)

    def value(self, scores: Floats, labels: Labels) -> Floats:
        by_word = scores.mean(axis=-1)
        sets = [by_word[..., labels == label].mean(axis=-1) for label in np.unique(labels)]
        return np.asarray(np.mean(sets, axis=0))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        _, low, high = crossed_mean(scores.T, labels, prob)
        return low, high, "two-way random effects over protected words and attribute words"


def mac(
    v: Vectors,
    targets: Mapping[str, Sequence[str]],
    attributes: Mapping[str, Sequence[str]],
    *,
    query: str = "mac",
    **settings: Unpack[Settings],
) -> Measurement:
    """The mean cosine distance of all targets to all attribute sets, the sets counting equally.

    Random words have a mean distance below 1 in most embeddings, so judge the value by the null
    in `details`, not by the ideal alone.

    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> mac(v, {"woman": ["she", "her"]}, {"home": ["kitchen", "laundry"]}, null=0).value < 1
    True
    """
    fixed = known_groups(v, targets, f"mac '{query}': target set")
    probes = known_groups(v, attributes, f"mac '{query}': attribute set")
    return read(
        v, Mac(v.unit(fixed.rows)), probes,
        query=query, options=Options(**settings), fixed=fixed.rows, left_out=fixed.missing,
        details={"targets": len(fixed.words), "attribute_sets": len(probes.names)},
    )  # fmt: skip
