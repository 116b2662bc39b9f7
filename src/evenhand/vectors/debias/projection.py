"""Whole-vocabulary passes in row chunks that fit the cache: one output array, no other copy."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.intervals import Floats

__all__ = ["Projection", "chunks", "project_out", "transform_rows", "unit_rows"]

_CHUNK = 1 << 18
"""So many numbers a chunk: one megabyte of float32."""

_INSIDE = 1e-5
"""A word of which no larger share is left lies in the subspace: the rest is float32 noise."""


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

    Each chunk is projected twice, since a word that nearly lies in the subspace keeps a share of
    it after one pass in float32 (Parlett, 1980: twice is enough). A word that lies in it entirely
    has no direction left: renormalised, it stays as it was at unit length and is returned in
    `inside`. Zero rows stay zero.

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
        given, result = matrix[part], out[part]
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
        np.matmul(matrix[part], columns, out=result)
        _divide(result, row_lengths(result))
    return out


def unit_rows(matrix: NDArray[np.float32]) -> NDArray[np.float32]:
    """Every row at unit length; zero rows stay zero."""
    out = np.empty(matrix.shape, dtype=np.float32)
    for part in chunks(*matrix.shape):
        np.copyto(out[part], matrix[part])
        _divide(out[part], row_lengths(out[part]))
    return out


def row_lengths(rows: NDArray[np.float32]) -> NDArray[np.float32]:
    """The length of every row, also where its square is beyond float32."""
    with np.errstate(over="ignore", under="ignore"):
        lengths: NDArray[np.float32] = np.sqrt(np.einsum("ij,ij->i", rows, rows))
    odd = np.flatnonzero(~((lengths > 1e-15) & (lengths < 1e15)))
    if odd.size:
        lengths[odd] = np.linalg.norm(rows[odd].astype(np.float64), axis=1)
    return lengths


def _divide(rows: NDArray[np.float32], lengths: NDArray[np.float32]) -> None:
    rows *= (1 / np.where(lengths > 0, lengths, 1))[:, None].astype(np.float32)
