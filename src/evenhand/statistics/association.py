r"""The association of words with two attribute sets, the arithmetic that every WEAT shares.

$s(w, A, B) = \operatorname{mean}_{a \in A} \cos(w, a) - \operatorname{mean}_{b \in B} \cos(w, b)$

$d = \dfrac{\operatorname{mean}_{x \in X} s(x) - \operatorname{mean}_{y \in Y} s(y)}
{\operatorname{std}_{w \in X \cup Y} s(w)}$

Caliskan, Bryson & Narayanan (2017), with n - 1 in the standard deviation as in their own code.
Words, phrases and sentences use the same functions; only their vectors differ.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from evenhand.statistics.intervals import Floats

ROUNDING = 1e-6
"""Differences of cosines of vectors in single precision that are only rounding."""


def lengths(vectors: Floats) -> Floats:
    """The length of each vector, 1 for a zero vector, so that one can divide by it."""
    norms = np.sqrt(np.vecdot(vectors, vectors))
    return np.where(norms > 0, norms, 1.0)


def unit(vectors: Floats) -> Floats:
    """Each vector scaled to length one (a zero vector stays zero)."""
    return np.asarray(vectors / lengths(vectors)[..., None])


def project(vectors: Floats, directions: Floats) -> Floats:
    """The products of the rows of `vectors`, scaled to length one, with `directions` (k, d).

    Directions of length one give cosines.

    >>> project(np.array([[3.0, 4.0]]), np.eye(2))
    array([[0.6, 0.8]])
    """
    products = np.asarray(vectors @ directions.T)
    products /= lengths(vectors)[:, None]
    return products


def association(words: Floats, a: Floats, b: Floats) -> Floats:
    """s(w, A, B) of each row of `words`; all three are arrays of unit vectors.

    What is only rounding is 0: after hard debiasing with equalised sets a word is equally near to
    both, and the effect size of rounding errors could be anything.

    >>> association(np.eye(2), np.array([[1.0, 0.0]]), np.array([[0.0, 1.0]]))
    array([ 1., -1.])
    """
    scores = np.asarray(words @ (a.mean(axis=0) - b.mean(axis=0)))
    scores[np.abs(scores) <= ROUNDING] = 0.0
    return scores


def effect(scores: Floats, labels: NDArray[np.intp]) -> Floats:
    """D of scores (…, n) whose words belong to X (label 0) or Y (label 1); NaN of equal scores.

    >>> float(effect(np.array([1.0, 2.0, 0.0, 1.0]), np.array([0, 0, 1, 1])).round(3))
    1.225
    """
    difference = scores[..., labels == 0].mean(axis=-1) - scores[..., labels == 1].mean(axis=-1)
    spread = scores.std(axis=-1, ddof=1)
    undefined = np.full(spread.shape, np.nan)
    return np.asarray(np.divide(difference, spread, out=undefined, where=spread > 0))
