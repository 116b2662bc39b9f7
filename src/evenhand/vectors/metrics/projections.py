"""Projections: where words fall between he and she (Bolukbasi et al. 2016; D2 §2.3).

The score of a word is the cosine of its vector with he - she (both at length one first), so it is
positive on the side of the first word. The value compares two lists, such as occupations held to
be men's and women's: the difference of their mean projections.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.errors import InputError
from evenhand.intervals import Floats, welch
from evenhand.permutation import two_sample
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known, known_groups
from evenhand.vectors.metrics.reading import (
    Labels,
    Options,
    Settings,
    Tested,
    read,
    unit,
)
from evenhand.vectors.store import Vectors

__all__ = ["Projection", "projections"]


@dataclass(frozen=True, slots=True)
class Projection:
    """The line between two words, fixed; two lists of words are the probes."""

    direction: Floats
    name: str = "projections"
    ideal: float | None = 0.0
    worse: Worse = "away"

    def scores(self, vectors: Floats) -> Floats:
        return np.asarray(unit(vectors) @ self.direction)[:, None]

    def value(self, scores: Floats, labels: Labels) -> Floats:
        s = scores[..., 0]
        return np.asarray(s[..., labels == 0].mean(axis=-1) - s[..., labels == 1].mean(axis=-1))

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        _, low, high = welch(scores[labels == 0, 0], scores[labels == 1, 0], prob)
        return low, high, "Welch's t over the words of both lists, the ends held fixed"


def projections(
    v: Vectors,
    groups: Mapping[str, Sequence[str]],
    *,
    ends: tuple[str, str] = ("he", "she"),
    query: str = "projections",
    **settings: Unpack[Settings],
) -> Measurement:
    """The projections of two lists of words on the line between `ends`, and how far they differ.

    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> m = projections(v, {"male": ["captain", "boss"], "female": ["nurse", "nanny"]})
    >>> m.value > 0, m.items[0]["word"]
    (True, 'captain')
    """
    options = Options(**settings)
    if len(groups) != 2:
        raise InputError(f"projections '{query}': expected two lists of words, got {len(groups)}")
    poles = known(v, ends, f"projections '{query}': ends", at_least=2)
    probes = known_groups(v, groups, f"projections '{query}': list", at_least=2, disjoint=True)
    first, second = v.unit(poles.rows)
    words = v.unit(probes.rows)
    instrument = Projection(unit(first - second))
    x, y = (words[probes.labels == label] @ instrument.direction for label in (0, 1))
    tested = None
    if options.permutations:
        test = two_sample(x, y, permutations=options.permutations, seed=options.seed)
        tested = Tested(test.p_value, test.words, {"exact": test.exact})
    return read(
        v, instrument, probes,
        query=query, options=options, tested=tested, fixed=poles.rows,
        columns={ends[0]: words @ first, ends[1]: words @ second},
        details={
            f"mean_{name}": float(side.mean()) for name, side in zip(groups, (x, y), strict=True)
        },
    )  # fmt: skip
