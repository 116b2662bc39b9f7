"""Nearest neighbours by cosine, exact, in pieces that fit the memory."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError

__all__ = ["nearest"]

_CELLS = 1 << 24
"""So many cosines at a time: 64 megabytes."""


def nearest(
    unit: NDArray[np.float32], k: int, asked: NDArray[np.float32] | NDArray[np.intp]
) -> tuple[NDArray[np.intp], NDArray[np.float32]]:
    """The k rows of `unit` nearest to each one asked for, nearest first, and their cosines.

    `asked` are unit vectors, or numbers of rows of `unit`, which are then not their own
    neighbours. All vectors have unit length.

    >>> unit = np.array([[1, 0], [0.6, 0.8], [0, 1]], dtype=np.float32)
    >>> nearest(unit, 2, np.array([2]))[0].tolist()
    [[1, 0]]
    >>> nearest(unit, 2, unit[2:])[0].tolist()
    [[2, 1]]
    """
    among = asked.ndim == 1
    if not 1 <= k <= len(unit) - among:
        raise InputError(f"neighbours: expected 1 to {len(unit) - among}, got {k}")
    places = np.empty((len(asked), k), dtype=np.intp)
    cosines = np.empty((len(asked), k), dtype=np.float32)
    step = max(1, _CELLS // len(unit))
    for start in range(0, len(asked), step):
        part = asked[start : start + step]
        if among:
            similar = unit[part] @ unit.T
            similar[np.arange(len(part)), part] = -np.inf
        else:
            similar = part @ unit.T
        top = np.argpartition(similar, -k, axis=1)[:, -k:]
        value = np.take_along_axis(similar, top, axis=1)
        order = np.argsort(-value, axis=1, kind="stable")
        places[start : start + step] = np.take_along_axis(top, order, axis=1)
        cosines[start : start + step] = np.take_along_axis(value, order, axis=1)
    return places, cosines
