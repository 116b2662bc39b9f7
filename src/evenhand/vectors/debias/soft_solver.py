"""The exact minimum of the soft-debias objective, from d × d matrices alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from evenhand.intervals import Floats

__all__ = ["Solution", "objective", "slope", "solve"]

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


def objective(whole: Floats, neutral: Floats, basis: Floats, lam: float, inner: Floats) -> float:
    r"""$tr(C(M-I)C(M-I)) + λ\,tr(B M S M Bᵀ)$ with C = `whole`, S = `neutral`, M = `inner`."""
    moved = whole @ (inner - np.eye(len(whole)))
    along = basis @ inner
    return float((moved * moved.T).sum() + lam * ((along @ neutral) * along).sum())


def slope(whole: Floats, neutral: Floats, basis: Floats, lam: float, inner: Floats) -> Floats:
    """The gradient of the objective with respect to the symmetric M; that of T is 2T times it."""
    half = neutral @ inner @ basis.T @ basis
    return np.asarray(2 * whole @ (inner - np.eye(len(whole))) @ whole + lam * (half + half.T))


def solve(whole: Floats, neutral: Floats, basis: Floats, lam: float) -> Solution:
    r"""The T = M^½ that minimises the soft objective, given C = WWᵀ, S = NNᵀ and the basis B.

    In M = TᵀT the objective is the convex quadratic $|C^½(M-I)C^½|_F^2 + λ\,tr(B M S M Bᵀ)$ over
    the positive semidefinite matrices. In coordinates that whiten C, turned so that B lies in
    the first k of them, only the first k rows and columns of M - I differ from zero, and linear
    equations give them. Should that M have a negative eigenvalue (possible where N is not all of
    W), accelerated projected gradients on the cone go on from it (Nesterov, 2004, for strongly
    convex functions). Directions in which no word lies (C of deficient rank) stay as they are.
    T is symmetric, and I at λ = 0.
    """
    values, axes = np.linalg.eigh(whole)
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
    unchanged = np.eye(len(whole))
    inner = unchanged + white @ change @ white.T
    eigenvalues, vectors = np.linalg.eigh((inner + inner.T) / 2)
    transform = (vectors * np.sqrt(np.maximum(eigenvalues, 0))) @ vectors.T
    inner = transform @ transform
    gradient = 2 * np.linalg.norm(transform @ slope(whole, neutral, basis, lam, inner))
    start = 2 * np.linalg.norm(slope(whole, neutral, basis, lam, unchanged))
    return Solution(
        transform=transform,
        objective_before=objective(whole, neutral, basis, lam, unchanged),
        objective_after=objective(whole, neutral, basis, lam, inner),
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
    """Go on from `change` to the best Y with C + Y positive semidefinite."""
    k = len(weights)

    def gradient(place: Floats) -> Floats:
        half = common @ place[:, :k] * weights
        total = 2 * (place - target)
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
