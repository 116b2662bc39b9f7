"""Soft debiasing: the linear map that weighs unchanged similarities against removed bias."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.statistics.intervals import Floats
from evenhand.vectors.debias.subspace import (
    Debiased,
    bias_subspace,
    chunks,
    known_sets,
    listed,
    transform_rows,
    unit_rows,
)
from evenhand.vectors.store import Vectors


@checked
def soft(
    v: Vectors,
    sets: Sequence[Sequence[str]],
    *,
    lam: float = 0.2,
    k: int = 1,
    neutral: Literal["all"] | Sequence[str] = "all",
    keep: Sequence[str] = (),
    scale: Literal["sum", "mean"] = "mean",
) -> Debiased:
    r"""Apply the linear map that weighs unchanged similarities against removed bias.

    Parameters
    ----------
    v : Vectors
    sets : sequence of sequences of str
        The defining sets that span the bias subspace.
    lam : float
        The weight λ of the bias term.
    k : int
        The dimension of the subspace.
    neutral : "all" or sequence of str
        The neutral words: all except those of `sets` and `keep`, or these.
    keep : sequence of str
        Words that are not neutral.
    scale : {"mean", "sum"}
        Whether the two terms are means, or sums as published.

    Returns
    -------
    Debiased
        `report["removed"]` is the share of the neutral words' root mean square |v_B| that is
        removed; the report also has the norm of the gradient at the minimum.

    Notes
    -----
    Minimises :math:`|(TW)^T(TW) - W^TW|_F^2 + λ|(TN)^T(TB)|_F^2` over T and sets w ← Tw/|Tw|, W
    the unit vectors of all words, N those of the neutral words, B the bias subspace (Bolukbasi et
    al., 2016; Manzini et al., 2019). The minimum is exact, see `solve`.

    The first term sums over all V² pairs of words, the second over \|N\|·k entries only. As
    published (`scale="sum"`), λ = .2 therefore does almost nothing on a vocabulary of thousands:
    words spread evenly over d dimensions lose a share of about λd/2V of their bias.
    The default divides each term by its number of entries, so that λ weighs a mean squared change
    of similarity against a mean squared bias, whatever the vocabulary.

    Examples
    --------
    >>> import evenhand as eh
    >>> v, gender = eh.vectors.load("glove", limit=5000), eh.lexicon.topic("gender")
    >>> result = eh.vectors.soft(v, gender.definitional)
    >>> 0 < result.report["removed"] < 1
    True

    """
    if not (np.isfinite(lam) and lam >= 0):
        raise InputError(f"lam: expected a number of 0 or more, got {lam}")
    if scale not in ("sum", "mean"):
        raise UnknownNameError("scale", scale, ["sum", "mean"])
    subspace = bias_subspace(v, sets, k)
    rows, missing = _neutral_rows(v, sets, neutral, keep)
    gram = _gram(v, np.arange(len(v)))
    others = np.setdiff1d(np.arange(len(v)), rows)
    common = gram - _gram(v, others) if others.size < rows.size else _gram(v, rows)
    weight = lam if scale == "sum" else lam * len(v) ** 2 / (rows.size * k)
    solution = solve(gram, common, subspace.basis, weight)
    matrix = transform_rows(v.matrix, solution.transform)
    before = float(np.sqrt((subspace.basis @ common * subspace.basis).sum() / rows.size))
    along = (matrix @ subspace.basis.T.astype(np.float32))[rows].astype(np.float64)
    after = float(np.sqrt((along**2).sum() / rows.size))
    removed = 1 - after / before if before > 0 else 0.0
    notes = [] if solution.converged else ["not converged: see gradient_relative"]
    if scale == "sum" and lam > 0 and removed < 0.01:
        notes.append(
            f"only {removed:.2g} of the bias was removed: summed as published, λ = {lam:g} has "
            f"almost no weight in a vocabulary of {len(v):,} words; scale 'mean' gives it one"
        )
    return Debiased(
        vectors=v.with_matrix(matrix, name=f"{v.name}+soft"),
        method="soft",
        settings={
            "lam": lam,
            "k": k,
            "scale": scale,
            "keep": listed(keep),
            "sets": listed(sets),
            "neutral": listed(neutral),
        },
        report={
            "explained": subspace.explained,
            "neutral": int(rows.size),
            "weight": weight,
            **solution.report(),
            "bias_before": before,
            "bias_after": after,
            "removed": removed,
        },
        transform=solution.transform,
        fitted_on=tuple(dict.fromkeys(word for members in subspace.sets for word in members)),
        left_out=tuple(dict.fromkeys([*subspace.left_out, *missing])),
        notes=tuple(notes),
    )


def _neutral_rows(
    v: Vectors, sets: Sequence[Sequence[str]], neutral: str | Sequence[str], keep: Sequence[str]
) -> tuple[NDArray[np.intp], tuple[str, ...]]:
    """The rows of the neutral words, and the words without a vector."""
    unchanged = v.find(keep)
    if isinstance(neutral, str):
        if neutral != "all":
            raise InputError(f"neutral: expected 'all' or a list of words, got {neutral!r}")
        barred = np.union1d(known_sets(v, sets, "sets").defining, unchanged.rows)
        rows, missing = np.setdiff1d(np.arange(len(v)), barred), unchanged.missing
    else:
        named = v.find(neutral)
        clash = [v.words[row] for row in np.intersect1d(named.rows, unchanged.rows)]
        if clash:
            raise InputError(f"neutral: also in keep: {', '.join(clash)}")
        rows, missing = np.unique(named.rows), (*unchanged.missing, *named.missing)
    if not rows.size:
        raise VocabularyError(f"neutral: none of the words has a vector in {v.name}")
    return rows, missing


def _gram(v: Vectors, rows: NDArray[np.intp]) -> Floats:
    """The d × d sum of uuᵀ over the unit vectors u of the rows."""
    total = np.zeros((v.dim, v.dim))
    for part in chunks(rows.size, v.dim):
        unit = unit_rows(v.matrix[rows[part]]).astype(np.float64)
        total += unit.T @ unit
    return total


_RANK = 1e-10
"""Eigenvalues of WWᵀ below this share of the largest count as zero."""

_TOLERANCE = 1e-10
_MOST_STEPS = 20_000


@dataclass(frozen=True, slots=True, eq=False)
class Solution:
    """The minimiser T = M^½ with what shows that it is one.

    The gradients are with respect to T; `gradient_relative` is as a share of that at T = I.
    """

    transform: Floats
    objective_before: float
    objective_after: float
    gradient_norm: float
    gradient_relative: float
    smallest_eigenvalue: float
    solver: str
    steps: int
    converged: bool

    def report(self) -> dict[str, object]:
        """Everything but the map."""
        return {name: getattr(self, name) for name in self.__slots__ if name != "transform"}


def objective(gram: Floats, neutral: Floats, basis: Floats, lam: float, inner: Floats) -> float:
    r"""$tr(C(M-I)C(M-I)) + λ\,tr(B M S M Bᵀ)$ with C = `gram`, S = `neutral`, M = `inner`."""
    moved = gram @ (inner - np.eye(len(gram)))
    along = basis @ inner
    return float((moved * moved.T).sum() + lam * ((along @ neutral) * along).sum())


def slope(gram: Floats, neutral: Floats, basis: Floats, lam: float, inner: Floats) -> Floats:
    """The gradient of the objective with respect to the symmetric M; that of T is 2T times it."""
    half = neutral @ inner @ basis.T @ basis
    return np.asarray(2 * gram @ (inner - np.eye(len(gram))) @ gram + lam * (half + half.T))


def solve(gram: Floats, neutral: Floats, basis: Floats, lam: float) -> Solution:
    r"""The T = M^½ that minimises the soft objective, given C = WWᵀ, S = NNᵀ and the basis B.

    In M = TᵀT the objective is the convex quadratic $|C^½(M-I)C^½|_F^2 + λ\,tr(B M S M Bᵀ)$ over
    the positive semidefinite matrices. In coordinates that whiten C, turned so that B lies in
    the first k of them, only the first k rows and columns of M - I differ from zero, and linear
    equations give them. Should that M have a negative eigenvalue (possible where N is not all of
    W), accelerated projected gradients on the cone continue from it (Nesterov, 2004, for strongly
    convex functions). Directions in which no word lies (C of deficient rank) stay as they are.
    T is symmetric, and I at λ = 0.
    """
    values, axes = np.linalg.eigh(gram)
    seen = values > _RANK * values[-1]
    white = axes[:, seen] / np.sqrt(values[seen])
    turn, sizes, _ = np.linalg.svd(white.T @ basis.T)
    white = white @ turn
    target = (turn.T * values[seen]) @ turn
    common, weights = white.T @ neutral @ white, lam * sizes**2
    change = _unconstrained(target, common, weights)
    solver, steps, converged = "linear equations", 0, True
    if np.linalg.eigvalsh(target + change)[0] < -1e-12 * values[-1]:
        solver = "projected gradient"
        change, steps, converged = _on_cone(target, common, weights, change)
    unchanged = np.eye(len(gram))
    inner = unchanged + white @ change @ white.T
    eigenvalues, vectors = np.linalg.eigh((inner + inner.T) / 2)
    transform = (vectors * np.sqrt(np.maximum(eigenvalues, 0))) @ vectors.T
    inner = transform @ transform
    gradient = 2 * np.linalg.norm(transform @ slope(gram, neutral, basis, lam, inner))
    start = 2 * np.linalg.norm(slope(gram, neutral, basis, lam, unchanged))
    return Solution(
        transform=transform,
        objective_before=objective(gram, neutral, basis, lam, unchanged),
        objective_after=objective(gram, neutral, basis, lam, inner),
        gradient_norm=float(gradient),
        gradient_relative=float(gradient / start) if start > 0 else 0.0,
        smallest_eigenvalue=float(eigenvalues[0]),
        solver=solver,
        steps=steps,
        converged=converged,
    )


def _unconstrained(target: Floats, common: Floats, weights: Floats) -> Floats:
    """The symmetric Y with 2Y + E + Eᵀ = 0, E = S(C+Y)P, P = diag(weights, 0 …).

    With Y = [[A, Fᵀ], [F, 0]] each column of F follows from the same column of A, which leaves
    k² equations for A.
    """
    k = len(weights)
    right = -(common @ target[:, :k]) * weights
    eliminated = np.empty((k, len(target) - k, 1 + k))
    own, own_right = np.empty((k, k, k)), np.empty((k, k))
    for j, weight in enumerate(weights):
        known = np.column_stack([right[k:, j], -weight * common[k:, :k]])
        eliminated[j] = np.linalg.solve(
            2 * np.eye(len(target) - k) + weight * common[k:, k:], known
        )
        onto = weight * common[:k, k:] @ eliminated[j]
        own[j] = weight * common[:k, :k] + onto[:, 1:]
        own_right[:, j] = right[:k, j] - onto[:, 0]
    system = np.empty((k * k, k * k))
    for i, single in enumerate(np.eye(k * k).reshape(-1, k, k)):
        product = np.einsum("jab,bj->aj", own, single)
        system[:, i] = (2 * single + product + product.T).ravel()
    top = np.linalg.solve(system, (own_right + own_right.T).ravel()).reshape(k, k)
    change = np.zeros_like(target)
    change[:k, :k] = top
    for j in range(k):
        change[k:, j] = eliminated[j, :, 0] + eliminated[j, :, 1:] @ top[:, j]
    change[:k, k:] = change[k:, :k].T
    return change


def _on_cone(
    target: Floats, common: Floats, weights: Floats, change: Floats
) -> tuple[Floats, int, bool]:
    """Continue from `change` to the best Y with C + Y positive semidefinite."""
    k = len(weights)

    def gradient(point: Floats) -> Floats:
        half = common @ point[:, :k] * weights
        total = 2 * (point - target)
        total[:, :k] += half
        total[:k] += half.T
        return np.asarray(total)

    steepest = 2 + 2 * float(weights.max()) * float(np.linalg.eigvalsh(common)[-1])
    root = np.sqrt(steepest / 2)
    momentum = (root - 1) / (root + 1)
    enough = _TOLERANCE * float(np.linalg.norm(gradient(target)))
    here = ahead = _nearest_on_cone(target + change)
    for step in range(1, _MOST_STEPS + 1):
        last, here = here, _nearest_on_cone(ahead - gradient(ahead) / steepest)
        if steepest * np.linalg.norm(here - ahead) <= enough:
            return here - target, step, True
        ahead = here + momentum * (here - last)
    return here - target, _MOST_STEPS, False


def _nearest_on_cone(matrix: Floats) -> Floats:
    values, vectors = np.linalg.eigh((matrix + matrix.T) / 2)
    return np.asarray((vectors * np.maximum(values, 0)) @ vectors.T)
