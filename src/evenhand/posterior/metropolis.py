"""Sampling a smooth density of few dimensions with many chains that step together.

Each step of a chain is a Metropolis one: either a move drawn afresh from a wide t distribution
fitted to the density, or a step from where the chain is, on the scale of its covariance. Both are
fitted in the warm-up and fixed after it, so the kept draws are those of a proper Markov chain.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["ROUNDS", "Chains", "Proposal", "around_mode", "sample", "step"]

Floats = NDArray[np.float64]
LogDensity = Callable[[Floats], Floats]
FORBIDDEN = 1e12
"""What stands for minus the logarithm of no density at all where the mode is looked for."""
FREEDOM = 6.0
AFRESH = 0.7
"""The share of moves drawn afresh."""
ROUNDS = (100, 200, 300)
"""Steps of the warm-up; the proposals are fitted anew after each round."""


@dataclass(frozen=True, slots=True)
class Chains:
    """Draws (chains × draws × dimensions) and the share of proposals that were taken."""

    draws: Floats
    accepted: float


@dataclass(frozen=True, slots=True)
class Proposal:
    """A t distribution fitted to points: for moves afresh, and for the size of local steps."""

    center: Floats
    factor: Floats

    @classmethod
    def fitted(cls, points: Floats) -> Proposal:
        covariance = np.atleast_2d(np.cov(points.T))
        covariance += 1e-8 * np.eye(points.shape[1])
        return cls(points.mean(axis=0), np.asarray(np.linalg.cholesky(covariance), dtype=float))

    def fresh(self, count: int, rng: np.random.Generator) -> Floats:
        normal = rng.standard_normal((count, self.center.size)) @ self.factor.T
        widen = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, count))
        return self.center + normal * widen[:, None]

    def log_density(self, points: Floats) -> Floats:
        z = np.linalg.solve(self.factor, (points - self.center).T)
        d = self.center.size
        return np.asarray(-0.5 * (FREEDOM + d) * np.log1p(np.sum(z**2, axis=0) / FREEDOM))


def sample(
    log_density: LogDensity,
    start: Floats,
    *,
    draws: int,
    rng: np.random.Generator,
    thin: int = 1,
    warm_up: Sequence[int] = ROUNDS,
) -> Chains:
    """Run the chains that begin at the rows of `start`; keep every `thin`-th of their steps."""
    points, values = start.copy(), log_density(start)
    proposal = Proposal.fitted(start)
    for length in warm_up:
        kept = []
        for _ in range(length):
            points, values, _ = step(log_density, points, values, proposal, rng)
            kept.append(points)
        proposal = Proposal.fitted(np.concatenate(kept[length // 3 :]))
    result = np.empty((len(start), draws, start.shape[1]))
    taken = 0.0
    for index in range(draws):
        for _ in range(thin):
            points, values, accepted = step(log_density, points, values, proposal, rng)
            taken += accepted
        result[:, index] = points
    return Chains(result, taken / (draws * thin))


def step(
    log_density: LogDensity,
    points: Floats,
    values: Floats,
    proposal: Proposal,
    rng: np.random.Generator,
) -> tuple[Floats, Floats, float]:
    """One step of every chain: where they are then, the density there, the share that moved."""
    count, d = points.shape
    afresh: NDArray[np.bool_] = np.less(rng.random(count), AFRESH)
    local = points + 2.38 / np.sqrt(d) * rng.standard_normal((count, d)) @ proposal.factor.T
    proposed = np.where(afresh[:, None], proposal.fresh(count, rng), local)
    new = log_density(proposed)
    change = new - values
    change[afresh] += (proposal.log_density(points) - proposal.log_density(proposed))[afresh]
    take: NDArray[np.bool_] = np.less(np.log(rng.random(count)), change)
    return (
        np.where(take[:, None], proposed, points),
        np.where(take, new, values),
        float(take.mean()),
    )


def around_mode(
    log_density: LogDensity, guess: Floats, chains: int, rng: np.random.Generator
) -> Floats:
    """Where chains begin: about the mode, as wide as the curvature there says, and some more."""
    from scipy.optimize import minimize

    reach = 1e-5 * np.eye(guess.size)

    def descent(x: Floats) -> tuple[float, Floats]:
        values = -log_density(np.concatenate([x[None], x + reach, x - reach]))
        values[~np.isfinite(values)] = FORBIDDEN
        ahead, behind = np.split(values[1:], 2)
        return float(values[0]), (ahead - behind) / 2e-5

    found: Any = minimize(descent, guess, jac=True, method="L-BFGS-B")
    curvature = -_hessian(log_density, found.x)
    eigenvalues, axes = np.linalg.eigh(curvature)
    wide = 1.0 / np.sqrt(np.maximum(eigenvalues, 0.02 * np.median(np.abs(eigenvalues))))
    normal = rng.standard_normal((chains, guess.size))
    start = np.asarray(found.x + 1.3 * (normal * wide) @ axes.T)
    start[~np.isfinite(log_density(start))] = found.x
    return start


def _hessian(log_density: LogDensity, point: Floats) -> Floats:
    """Second derivatives by central differences, all points in one call."""
    d = point.size
    steps = 1e-3 * np.eye(d)
    corners = [
        point + a * steps[i] + b * steps[j]
        for i in range(d)
        for j in range(d)
        for a, b in ((1, 1), (1, -1), (-1, 1), (-1, -1))
    ]
    values = log_density(np.array(corners)).reshape(d, d, 4)
    return np.asarray((values[..., 0] - values[..., 1] - values[..., 2] + values[..., 3]) / 4e-6)
