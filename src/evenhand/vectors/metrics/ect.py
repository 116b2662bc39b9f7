r"""ECT: do two groups order the same words alike?

The Spearman correlation, over the attribute words, of their cosine with the first group's mean
vector and with the second's. Dev & Phillips (2019). 1: both groups see the words alike.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.intervals import Floats, fisher_z
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known, known_groups, refuse_shared
from evenhand.vectors.metrics.reading import Labels, Options, Settings, read, unit
from evenhand.vectors.store import Vectors

__all__ = ["Ect", "ect"]


@dataclass(frozen=True, slots=True)
class Ect:
    """ECT with the two groups' mean vectors fixed; the attribute words are the probes."""

    first: Floats
    second: Floats
    name: str = "ect"
    ideal: float | None = 1.0
    worse: Worse = "lower"

    def scores(self, vectors: Floats) -> Floats:
        return unit(vectors) @ unit(np.stack([self.first, self.second])).T

    def value(self, scores: Floats, labels: Labels) -> Floats:  # noqa: ARG002
        from scipy.stats import rankdata

        ranks = rankdata(scores, axis=-2)
        centred = ranks - ranks.mean(axis=-2, keepdims=True)
        product = (centred[..., 0] * centred[..., 1]).sum(axis=-1)
        norms = np.sqrt((centred**2).sum(axis=-2))
        return np.asarray(product / (norms[..., 0] * norms[..., 1]))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        low, high = fisher_z(float(self.value(scores, labels)), len(scores), prob, spearman=True)
        return low, high, "Fisher z for Spearman over the attribute words, groups held fixed"


def ect(
    v: Vectors,
    first: Sequence[str],
    second: Sequence[str],
    words: Sequence[str],
    *,
    query: str = "ect",
    **settings: Unpack[Settings],
) -> Measurement:
    """The coherence with which two groups' mean vectors rank `words`."""
    one, two = known(v, first, f"ect '{query}': first"), known(v, second, f"ect '{query}': second")
    refuse_shared(one, two, f"ect '{query}': first and second group")
    probes = known_groups(v, {"words": words}, f"ect '{query}': list", at_least=5)
    instrument = Ect(v.unit(one.rows).mean(axis=0), v.unit(two.rows).mean(axis=0))
    cosines = instrument.scores(v.raw(probes.rows))
    return read(
        v, instrument, probes,
        query=query, options=Options(**settings), fixed=np.concatenate([one.rows, two.rows]),
        left_out=[*one.missing, *two.missing],
        columns={"first": cosines[:, 0], "second": cosines[:, 1]},
    )  # fmt: skip
