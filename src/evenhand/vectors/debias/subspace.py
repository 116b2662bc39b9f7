"""The bias subspace that defining sets span."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError, VocabularyError
from evenhand.intervals import Floats
from evenhand.vectors.store import Vectors

__all__ = ["NO_SETS", "KnownSets", "Subspace", "bias_subspace", "known_sets"]

_SAME = 1e-6
"""Differences below this (of unit vectors stored as float32) are rounding, not direction."""


@dataclass(frozen=True, slots=True)
class KnownSets:
    """The sets that still have two members with a vector, and what was left out of them."""

    words: tuple[tuple[str, ...], ...]
    rows: tuple[NDArray[np.intp], ...]
    left_out: tuple[str, ...]
    defining: NDArray[np.intp] = field(repr=False)
    """The rows of every known word of the sets, those of dropped sets among them."""


NO_SETS = KnownSets((), (), (), np.zeros(0, dtype=np.intp))
"""Where nothing is asked for."""


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """An orthonormal basis (k, d) with the share of the sets' variance each component explains.

    Each component points so that the first member of the first set lies on its positive side,
    seen from the set's mean (the first member that does not sit at the mean, to be exact).
    """

    basis: Floats = field(repr=False)
    explained: tuple[float, ...]
    sets: tuple[tuple[str, ...], ...]
    left_out: tuple[str, ...]

    @property
    def direction(self) -> Floats:
        """The first component: for gender pairs, the gender direction."""
        return np.asarray(self.basis[0])


def known_sets(v: Vectors, sets: Sequence[Sequence[str]], what: str) -> KnownSets:
    """Each set's known members; a set with fewer than two distinct ones is dropped and named."""
    words: list[tuple[str, ...]] = []
    rows: list[NDArray[np.intp]] = []
    missing: list[str] = []
    alone: list[str] = []
    defining: list[NDArray[np.intp]] = []
    for members in sets:
        if isinstance(members, str):
            raise InputError(f"{what}: expected sets of words, got the word {members!r}")
        found = v.find(members)
        missing.extend(found.missing)
        defining.append(found.rows)
        if len(found.words) < 2:
            alone.extend(found.words)
        else:
            words.append(found.words)
            rows.append(found.rows)
    if not words:
        listed = ", ".join(dict.fromkeys([*missing, *alone]))
        raise VocabularyError(
            f"{what}: expected a set with at least 2 words that have a vector in {v.name}, "
            f"got none in {len(sets)} sets (left out: {listed or 'nothing'})"
        )
    used = {word for members in words for word in members}
    left_out = tuple(dict.fromkeys([*missing, *(word for word in alone if word not in used)]))
    return KnownSets(tuple(words), tuple(rows), left_out, np.unique(np.concatenate(defining)))


def bias_subspace(v: Vectors, sets: Sequence[Sequence[str]], k: int = 1) -> Subspace:
    """The first k principal components of the sets' unit vectors, each centred on its set's mean.

    For k = 1 and pairs it is the gender direction of Bolukbasi et al. (2016); in general the bias
    subspace of Manzini et al. (2019).
    """
    known = known_sets(v, sets, "sets")
    centred = np.concatenate([_centred(v.unit(rows)) for rows in known.rows])
    _, sizes, axes = np.linalg.svd(centred, full_matrices=False)
    rank = int((sizes > _SAME * max(1.0, sizes[0])).sum())
    if not 1 <= k <= rank:
        raise InputError(
            f"k: expected 1 to {rank} (what {len(known.rows)} sets span), got {k}"
            if rank
            else f"sets: the members of every set have the same vector in {v.name}"
        )
    basis = axes[:k]
    for axis in basis:
        along = centred @ axis
        first = along[np.abs(along) > _SAME][0]
        axis *= np.sign(first)
    shares = sizes[:k] ** 2 / (sizes @ sizes)
    return Subspace(basis, tuple(shares.tolist()), known.words, known.left_out)


def _centred(members: Floats) -> Floats:
    return np.asarray(members - members.mean(axis=0))
