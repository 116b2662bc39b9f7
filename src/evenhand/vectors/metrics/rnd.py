r"""RND: the relative norm distance of words from the centres of two groups.

$\mathrm{RND} = \frac{1}{|W|} \sum_{w \in W} (\lVert w - \bar g_1 \rVert - \lVert w - \bar g_2
\rVert)$, all vectors at length one, $\bar g$ the mean of a group. Garg et al. (2018) sum over the
words; the mean keeps lists of different length comparable. Negative: nearer the first group.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.intervals import Floats
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known, known_groups, refuse_shared
from evenhand.vectors.metrics.mean_over_words import MeanOverWords
from evenhand.vectors.metrics.reading import Options, Settings, read, unit
from evenhand.vectors.store import Vectors

__all__ = ["Rnd", "rnd"]


@dataclass(frozen=True, slots=True)
class Rnd(MeanOverWords):
    """RND with the two groups' centres fixed."""

    first: Floats
    second: Floats
    name: str = "rnd"
    ideal: float | None = 0.0
    worse: Worse = "away"

    def scores(self, vectors: Floats) -> Floats:
        words = unit(vectors)
        near = np.linalg.norm(words - self.first, axis=1)
        far = np.linalg.norm(words - self.second, axis=1)
        return np.asarray(near - far)[:, None]


def rnd(
    v: Vectors,
    first: Sequence[str],
    second: Sequence[str],
    words: Sequence[str],
    *,
    query: str = "rnd",
    **settings: Unpack[Settings],
) -> Measurement:
    """The mean relative norm distance of `words` from the centres of the two groups."""
    one, two = known(v, first, f"rnd '{query}': first"), known(v, second, f"rnd '{query}': second")
    refuse_shared(one, two, f"rnd '{query}': first and second group")
    probes = known_groups(v, {"words": words}, f"rnd '{query}': list", at_least=2)
    instrument = Rnd(v.unit(one.rows).mean(axis=0), v.unit(two.rows).mean(axis=0))
    return read(
        v, instrument, probes,
        query=query, options=Options(**settings), fixed=np.concatenate([one.rows, two.rows]),
        left_out=[*one.missing, *two.missing],
    )  # fmt: skip
