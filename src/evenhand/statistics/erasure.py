r"""Affine maps that remove a concept from vectors: LEACE, and the difference of means.

Every map here is $x \mapsto x - L R x + b$ with L (d, r) and R (r, d) of low rank, which is how it
is stored, scaled and applied, whether to word vectors, to vectors of texts or within a model.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError

Floats = NDArray[np.float64]

_CORRELATION = 1e-10
"""Correlations of the concept with whitened vectors below this are rounding."""


@dataclass(frozen=True, slots=True, eq=False)
class AffineMap:
    """The map x ↦ x - L R x + b.

    Parameters
    ----------
    left : array (d, r)
    right : array (r, d)
    shift : array (d)

    Examples
    --------
    >>> AffineMap(np.array([[1.0], [0.0]]), np.array([[1.0, 0.0]]), np.zeros(2))([[3.0, 4.0]])
    array([[0., 4.]])

    """

    left: Floats = field(repr=False)
    right: Floats = field(repr=False)
    shift: Floats = field(repr=False)

    def __post_init__(self) -> None:
        d, r = self.left.shape
        if self.right.shape != (r, d) or self.shift.shape != (d,):
            raise InputError(
                f"affine map: expected the shapes ({d}, {r}), ({r}, {d}) and ({d},), got "
                f"{self.left.shape}, {self.right.shape} and {self.shift.shape}"
            )

    @property
    def dim(self) -> int:
        return len(self.shift)

    @property
    def rank(self) -> int:
        """The number of dimensions that are removed."""
        return len(self.right)

    @property
    def matrix(self) -> Floats:
        """I - L R."""
        return np.asarray(np.eye(self.dim) - self.left @ self.right)

    def __call__(self, x: ArrayLike) -> Floats:
        """The images (n, d) of the rows of x."""
        rows = np.asarray(x, dtype=np.float64)
        return np.asarray(rows - (rows @ self.right.T) @ self.left.T + self.shift)

    def scaled(self, strength: float) -> AffineMap:
        """The map that changes x by `strength` times as much; 1 is this one, 0 changes nothing."""
        return AffineMap(strength * self.left, self.right, strength * self.shift)


def leace(
    x: ArrayLike, z: ArrayLike, *, weights: ArrayLike | None = None, shrinkage: float = 0.0
) -> AffineMap:
    r"""Fit least-squares concept erasure: the smallest change after which z is linearly hidden.

    Parameters
    ----------
    x : array (n, d)
        The vectors.
    z : array (n) or (n, k)
        The concept: a number, several, or classes as `one_hot` has them.
    weights : array (n), optional
        How much each vector counts; by default all count the same.
    shrinkage : float
        From 0 to 1: how far the covariance that defines "smallest" is shrunk towards a multiple of
        the identity, for vectors that are few for their dimension. The covariance of the erased
        vectors with z is 0 for every value; at 1 the map is an orthogonal projection.

    Returns
    -------
    AffineMap

    Notes
    -----
    $r(x) = x - \Sigma^{1/2} P \, \Sigma^{-1/2} (x - \mu)$ with $\Sigma$ the covariance of x,
    $\Sigma^{-1/2}$ the pseudo-inverse of its root, and P the orthogonal projection onto the columns
    of $\Sigma^{-1/2} \Sigma_{xz}$. Then $\mathrm{Cov}(r(x), z) = 0$, which holds if and only if no
    linear classifier with a convex loss predicts z from r(x) better than a constant does; and among
    affine maps with that property r changes x least, in mean squares and in every other norm
    $\mathbb{E}\|r(x) - x\|_M^2$ alike. Belrose et al. (2023).

    The roots come from the singular value decomposition of the centred x, not of its covariance,
    whose condition number is the square.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.arange(200) % 2
    >>> x = rng.standard_normal((200, 5)) + 2 * z[:, None]
    >>> erased = leace(x, z)(x)
    >>> bool(np.abs(erased[z == 0].mean(axis=0) - erased[z == 1].mean(axis=0)).max() < 1e-12)
    True

    """
    if not 0 <= shrinkage <= 1:
        raise InputError(f"shrinkage: expected a number from 0 to 1, got {shrinkage}")
    rows = _rows(x)
    n, d = rows.shape
    shares = _shares(weights, n)
    roots = np.sqrt(shares)[:, None]
    mean = shares @ rows
    centred = roots * (rows - mean)
    cross = centred.T @ (roots * _standardised(z, shares))
    reduced = np.linalg.qr(centred, mode="r") if n > d else centred
    _, sizes, axes = np.linalg.svd(reduced, full_matrices=False)
    known = sizes > sizes.max(initial=0.0) * max(n, d) * np.finfo(np.float64).eps
    axes, variances = axes[known], sizes[known] ** 2
    spreads = np.sqrt((1 - shrinkage) * variances + shrinkage * variances.sum() / d)[:, None]
    basis, correlations, _ = np.linalg.svd((axes @ cross) / spreads, full_matrices=False)
    basis = basis[:, correlations > _CORRELATION]
    left, right = axes.T @ (spreads * basis), (basis / spreads).T @ axes
    return AffineMap(left, right, left @ (right @ mean))


def project_difference(
    x: ArrayLike, labels: ArrayLike, *, weights: ArrayLike | None = None
) -> AffineMap:
    r"""Fit the projection that removes the difference of two classes' means.

    Parameters
    ----------
    x : array (n, d)
    labels : array (n)
        0 and 1, or any two values; the larger one is the second class.
    weights : array (n), optional
        How much each vector counts.

    Returns
    -------
    AffineMap
        $x - u u^\top (x - m)$ with u the unit vector from the first mean to the second and m
        between the two. It also hides the classes from linear classifiers, as LEACE does, by a
        change that is not the smallest.

    """
    first, second = _means(x, labels, weights)
    difference = second - first
    length = float(np.linalg.norm(difference))
    unit = difference / length if length else difference
    return AffineMap(unit[:, None], unit[None], unit * float(unit @ (first + second)) / 2)


def steer_difference(
    x: ArrayLike, labels: ArrayLike, *, weights: ArrayLike | None = None
) -> AffineMap:
    """Fit the steering vector: the difference of the classes' means, which the map adds to x.

    Parameters are those of `project_difference`. Scaled by s it moves x by s times the way from
    the first class to the second, by -s the other way. Nothing is removed.
    """
    first, second = _means(x, labels, weights)
    d = len(first)
    return AffineMap(np.zeros((d, 0)), np.zeros((0, d)), second - first)


def one_hot(labels: Sequence[object]) -> Floats:
    """Classes as columns of 0 and 1, in the order of the sorted class names.

    >>> one_hot(["f", "m", "f"]).tolist()
    [[1.0, 0.0], [0.0, 1.0], [1.0, 0.0]]
    """
    classes, index = np.unique(np.asarray(labels), return_inverse=True)
    return np.asarray(np.eye(len(classes))[index])


def _standardised(z: ArrayLike, shares: Floats) -> Floats:
    """The columns of z that vary, centred and at unit variance."""
    concept = np.asarray(z, dtype=np.float64)
    concept = concept[:, None] if concept.ndim == 1 else concept
    if concept.ndim != 2 or len(concept) != len(shares):
        raise InputError(
            f"z: expected one row for each of the {len(shares)} vectors, got shape {np.shape(z)}"
        )
    if not np.isfinite(concept).all():
        raise InputError("z: expected finite numbers, got others")
    varying = np.ptp(concept, axis=0) > 0
    if not varying.any():
        raise InputError(
            f"z: expected two classes or more, got the same for all {len(shares)} vectors"
        )
    concept = concept[:, varying] - shares @ concept[:, varying]
    return np.asarray(concept / np.sqrt(shares @ concept**2))


def _shares(weights: ArrayLike | None, n: int) -> Floats:
    """The weights, which sum to 1."""
    if weights is None:
        return np.full(n, 1 / n)
    given = np.asarray(weights, dtype=np.float64)
    if given.shape != (n,) or not np.isfinite(given).all() or not (given > 0).all():
        raise InputError(f"weights: expected {n} numbers above 0, got shape {given.shape}")
    return np.asarray(given / given.sum())


def _rows(x: ArrayLike) -> Floats:
    rows = np.asarray(x, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise InputError(f"x: expected two vectors or more as rows, got shape {rows.shape}")
    if not np.isfinite(rows).all():
        raise InputError("x: expected finite numbers, got others")
    return rows


def _means(x: ArrayLike, labels: ArrayLike, weights: ArrayLike | None) -> tuple[Floats, Floats]:
    rows, names = _rows(x), np.asarray(labels)
    classes = np.unique(names)
    if names.shape != (len(rows),) or len(classes) != 2:
        raise InputError(
            f"labels: expected one of two classes for each of the {len(rows)} vectors, got shape "
            f"{names.shape} of {len(classes)} classes"
        )
    shares = _shares(weights, len(rows))
    first, second = (
        shares[names == name] @ rows[names == name] / shares[names == name].sum()
        for name in classes
    )
    return np.asarray(first), np.asarray(second)
