"""What the methods share: the bias subspace of defining sets, projections, and the result.

Passes over the vocabulary work in chunks of rows that fit the processor's cache: one output array,
no other copy.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.display import Shown
from evenhand.errors import InputError, VocabularyError
from evenhand.statistics.intervals import Floats
from evenhand.vectors.store import Vectors

_SAME = 1e-6
"""Differences below this (of unit vectors stored as float32) are rounding, not direction."""


@dataclass(frozen=True, slots=True)
class KnownSets:
    """The sets with at least two members that have a vector, and what was left out."""

    words: tuple[tuple[str, ...], ...]
    rows: tuple[NDArray[np.intp], ...]
    left_out: tuple[str, ...]
    defining: NDArray[np.intp] = field(repr=False)
    """The rows of every known word of the sets, dropped sets included."""


NO_SETS = KnownSets((), (), (), np.zeros(0, dtype=np.intp))
"""No sets."""


@dataclass(frozen=True, slots=True, eq=False)
class Subspace:
    """An orthonormal basis (k, d) with the share of the sets' variance each component explains.

    Each component points so that the first member of the first set lies on its positive side,
    seen from the set's mean (more exactly, the first member that is not at the mean).
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
        lookup = v.find(members)
        missing.extend(lookup.missing)
        defining.append(lookup.rows)
        if len(lookup.words) < 2:
            alone.extend(lookup.words)
        else:
            words.append(lookup.words)
            rows.append(lookup.rows)
    if not words:
        listed = ", ".join(dict.fromkeys([*missing, *alone]))
        raise VocabularyError(
            f"{what}: expected a set with at least 2 words that have a vector in {v.name}, "
            f"got none in {len(sets)} sets (left out: {listed or 'nothing'})"
        )
    used = {word for members in words for word in members}
    left_out = tuple(dict.fromkeys([*missing, *(word for word in alone if word not in used)]))
    return KnownSets(tuple(words), tuple(rows), left_out, np.unique(np.concatenate(defining)))


def listed(words: str | Sequence[str] | Sequence[Sequence[str]]) -> object:
    """Words, or sets of words, as the settings of a result list them."""
    return words if isinstance(words, str) else [listed(each) for each in words]


@checked
def bias_subspace(v: Vectors, sets: Sequence[Sequence[str]], k: int = 1) -> Subspace:
    """Compute the bias subspace that defining sets span.

    Parameters
    ----------
    v : Vectors
    sets : sequence of sequences of str
        Defining sets, such as pairs ("he", "she") or triples for three classes.
    k : int
        The number of components.

    Returns
    -------
    Subspace

    Notes
    -----
    The first k principal components of the sets' unit vectors, each centred on its set's mean.
    For k = 1 and pairs it is the gender direction of Bolukbasi et al. (2016); in general the bias
    subspace of Manzini et al. (2019).

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> eh.vectors.bias_subspace(v, [("he", "she"), ("man", "woman")]).basis.shape
    (1, 100)

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


_CHUNK = 1 << 18
"""Numbers per chunk: one megabyte of float32."""

_INSIDE = 1e-5
"""A word of which only this share is left lies in the subspace: the rest is float32 noise."""


@dataclass(frozen=True, slots=True, eq=False)
class Projection:
    """The projected matrix, the rows of it that lie inside the subspace, the largest |v_B| left."""

    matrix: NDArray[np.float32]
    inside: NDArray[np.intp]
    largest_left: float


def chunks(rows: int, dim: int) -> Iterator[slice]:
    """Slices over `rows` rows of `dim` numbers, each small enough for the cache."""
    step = max(1, _CHUNK // max(1, dim))
    for start in range(0, rows, step):
        yield slice(start, min(rows, start + step))


def project_out(
    matrix: NDArray[np.float32], basis: Floats, *, renormalize: bool = True
) -> Projection:
    """Remove the subspace from every row: v ← (v - v_B)/|v - v_B|, or else (v - v_B)/|v|.

    Each chunk is projected twice, since a word that nearly lies in the subspace retains a share
    of it after one pass in float32 (Parlett, 1980: twice is enough). A word that lies in it
    entirely has no direction left: renormalised, it stays as it was at unit length and is
    returned in `inside`. Zero rows stay zero.

    >>> v = np.array([[3.0, 4.0], [0.0, 2.0]], dtype=np.float32)
    >>> p = project_out(v, np.array([[0.0, 1.0]]))
    >>> p.matrix.tolist(), p.inside.tolist()
    ([[1.0, 0.0], [0.0, 1.0]], [1])
    """
    rows, dim = matrix.shape
    out = np.empty((rows, dim), dtype=np.float32)
    inside: list[NDArray[np.intp]] = []
    largest = 0.0
    axes = basis.astype(np.float32)
    for part in chunks(rows, dim):
        given, result = moderate_rows(matrix[part]), out[part]
        shadow = (given @ axes.T) @ axes
        np.subtract(given, shadow, out=result)
        np.matmul(result @ axes.T, axes, out=shadow)
        result -= shadow
        before, after = row_lengths(given), row_lengths(result)
        lost = after <= _INSIDE * before
        _divide(result, after if renormalize else before)
        if lost.any():
            result[lost] = 0.0
            again = np.flatnonzero(lost & (before > 0))
            if renormalize:
                result[again] = given[again] / before[again, None]
            inside.append(again + part.start)
        left = np.linalg.norm(result @ axes.T, axis=1)
        if renormalize:
            left[lost] = 0.0
        largest = max(largest, float(left.max(initial=0.0)))
    rows_inside = np.concatenate([np.zeros(0, dtype=np.intp), *inside])
    return Projection(matrix=out, inside=rows_inside, largest_left=largest)


def transform_rows(matrix: NDArray[np.float32], transform: Floats) -> NDArray[np.float32]:
    """T v / |T v| for every row v; a row that T makes zero stays zero."""
    out = np.empty((matrix.shape[0], transform.shape[0]), dtype=np.float32)
    columns = np.ascontiguousarray(transform.T, dtype=np.float32)
    for part in chunks(*matrix.shape):
        result = out[part]
        np.matmul(moderate_rows(matrix[part]), columns, out=result)
        _divide(result, row_lengths(result))
    return out


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row at unit length; zero rows stay zero."""
    out = np.empty(matrix.shape, dtype=np.float32)
    for part in chunks(*matrix.shape):
        np.copyto(out[part], moderate_rows(matrix[part]))
        _divide(out[part], row_lengths(out[part]))
    return out


def row_lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The length of every row, also where its square overflows float32."""
    with np.errstate(over="ignore", under="ignore"):
        lengths: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
        odd = np.flatnonzero(~((lengths > 1e-15) & (lengths < 1e15)))
        if odd.size:
            lengths[odd] = np.linalg.norm(rows[odd].astype(np.float64), axis=1)
    return lengths


def moderate_rows(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The rows, those at unit length whose squares or reciprocals float32 cannot hold."""
    lengths = row_lengths(rows)
    odd = np.flatnonzero(~((lengths > 1e-15) & (lengths < 1e15)) & (lengths > 0))
    if not odd.size:
        return rows
    result = rows.copy()
    exact = rows[odd].astype(np.float64)
    result[odd] = exact / np.linalg.norm(exact, axis=1, keepdims=True)
    return result


def _divide(rows: NDArray[np.float32], lengths: NDArray[np.float32]) -> None:
    rows *= (1 / np.where(lengths > 0, lengths, 1))[:, None].astype(np.float32)


@dataclass(frozen=True, slots=True, kw_only=True, eq=False, repr=False)
class Debiased(Shown):
    """Debiased vectors, with how they were computed.

    Parameters
    ----------
    vectors : Vectors
        The new vectors.
    method : str
    settings, report : Mapping
        The options of the method, and the numbers that it reports.
    removed : array (r, d) or None
        An orthonormal basis of what was projected out.
    transform : array (d, d) or None
        The matrix T of a method that transforms instead.
    shift : array (d) or None
        What an affine method adds after that.
    fitted_on : tuple of str
        The words the method learned from. Test on other words.
    left_out, notes : tuple of str
    seed : int or None

    """

    vectors: Vectors = field(repr=False)
    method: str
    settings: Mapping[str, Any]
    report: Mapping[str, Any]
    removed: Floats | None = field(default=None, repr=False)
    transform: Floats | None = field(default=None, repr=False)
    shift: Floats | None = field(default=None, repr=False)
    fitted_on: tuple[str, ...] = field(default=(), repr=False)
    left_out: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    seed: int | None = None

    def to_dict(self) -> dict[str, object]:
        """The JSON view, without the matrices and the long word lists."""
        return {
            "method": self.method,
            "vectors": self.vectors.name,
            "words": len(self.vectors),
            "dim": self.vectors.dim,
            "settings": dict(self.settings),
            "removed_dimensions": None if self.removed is None else len(self.removed),
            "fitted_on": len(self.fitted_on),
            "report": dict(self.report),
            "left_out": list(self.left_out),
            "notes": list(self.notes),
            "seed": self.seed,
        }

    def _headline(self) -> str:
        return f"{self.method}: {self.vectors!r}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return [{"setting": name, "text": str(x)} for name, x in self.settings.items()]
