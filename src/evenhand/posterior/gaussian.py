r"""Linear models with normal errors and one unknown scale, sampled exactly.

With $y = X\beta + \varepsilon$, $\varepsilon \sim N(0, \sigma^2)$ and $\beta \sim N(\mu_0, D)$,
everything but $\sigma$ is normal given $\sigma$ and can be integrated out. What is left is the
density of one number, $p(\sigma \mid y)$, which a fine grid gives to any accuracy; each draw of
$\sigma$ from it is followed by a draw of $\beta$ from its normal. The draws are independent: no
chain, no warm-up, nothing to converge.

With $D^{1/2} X^\top X D^{1/2} = V \Lambda V^\top$, $r = y - X\mu_0$ and
$w = V^\top D^{1/2} X^\top r$ the marginal likelihood is, for $n$ rows and $p$ columns,

$$-2 \log p(y \mid \sigma) = (n - p) \log \sigma^2 + \sum_k \log(\sigma^2 + \lambda_k)
  + \frac{1}{\sigma^2}\Big(r^\top r - \sum_k \frac{w_k^2}{\lambda_k + \sigma^2}\Big)
  + n \log 2\pi .$$
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

__all__ = ["LinearModel", "LinearPosterior", "half_cauchy", "sample_density", "solve"]

Floats = NDArray[np.float64]
GRID = 4001


def half_cauchy(scale: float) -> Callable[[Floats], Floats]:
    """The logarithm of a half-Cauchy density of a scale, up to a constant."""
    return lambda sigma: -np.log1p((sigma / scale) ** 2)


@dataclass(frozen=True, slots=True)
class LinearModel:
    """What the data enter by: cross products, so that the rows themselves are not needed again."""

    gram: Floats
    cross: Floats
    square: float
    rows: int
    prior_mean: Floats
    prior_sd: Floats
    log_prior: Callable[[Floats], Floats]


@dataclass(frozen=True, slots=True)
class LinearPosterior:
    """The posterior: a grid of the scale with its density, and the normal given a scale."""

    rotation: Floats
    eigenvalues: Floats
    projected: Floats
    prior_mean: Floats
    prior_sd: Floats
    grid: Floats
    log_density: Floats
    log_evidence: float

    def draw(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Independent draws of the coefficients (draws × p) and of the scale."""
        log_sigma = sample_density(np.log(self.grid), self.log_density, draws, rng)
        variance = np.exp(2 * log_sigma)[:, None]
        spread = variance + self.eigenvalues
        standard = rng.standard_normal((draws, self.eigenvalues.size))
        rotated = self.projected / spread + np.sqrt(variance / spread) * standard
        coefficients = self.prior_mean + self.prior_sd * (rotated @ self.rotation.T)
        return coefficients, np.exp(log_sigma)


def solve(model: LinearModel) -> LinearPosterior:
    """The posterior of a linear model, its scale on a grid wide enough to hold all its mass."""
    d = model.prior_sd
    eigenvalues, rotation = np.linalg.eigh(d[:, None] * model.gram * d)
    eigenvalues = np.clip(eigenvalues, 0.0, None)
    residual = model.cross - model.gram @ model.prior_mean
    projected = rotation.T @ (d * residual)
    square = model.square - model.prior_mean @ (model.cross + residual)

    def log_density(log_sigma: Floats) -> Floats:
        sigma = np.exp(log_sigma)
        v = sigma[:, None] ** 2
        misfit = square - np.sum(projected**2 / (eigenvalues + v), axis=1)
        determinant = np.sum(np.log(v + eigenvalues), axis=1)
        free = model.rows - eigenvalues.size
        log_likelihood = -0.5 * (
            free * 2 * log_sigma + determinant + misfit / sigma**2 + model.rows * np.log(2 * np.pi)
        )
        return np.asarray(log_likelihood + model.log_prior(sigma) + log_sigma)

    grid = _grid(log_density, 0.5 * float(np.log(max(float(square), 1e-300) / model.rows)))
    density = log_density(grid)
    top = float(density.max())
    step = grid[1] - grid[0]
    log_evidence = top + float(np.log(np.exp(density - top).sum() * step))
    return LinearPosterior(
        rotation,
        eigenvalues,
        projected,
        model.prior_mean,
        d,
        np.exp(grid),
        density - log_evidence,
        log_evidence,
    )


def _grid(log_density: Callable[[Floats], Floats], guess: float) -> Floats:
    """An even grid over all the mass: found coarsely, then refined twice where the mass is."""
    low, high = guess - 15.0, guess + 15.0
    for _ in range(4):
        grid = np.linspace(low, high, GRID)
        density = log_density(grid)
        inside = np.flatnonzero(density > density.max() - 40.0)
        low = grid[max(inside[0] - 1, 0)]
        high = grid[min(inside[-1] + 1, GRID - 1)]
    return np.linspace(low, high, GRID)


def sample_density(
    grid: Floats, log_density: Floats, draws: int, rng: np.random.Generator
) -> Floats:
    """Draws from a density given on an even grid, linear between its points."""
    density = np.exp(log_density - log_density.max())
    masses = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    uniform = rng.random(draws) * masses[-1]
    cell = np.clip(np.searchsorted(masses, uniform, side="right") - 1, 0, grid.size - 2)
    left, right = density[cell], density[cell + 1]
    rest = uniform - masses[cell]
    slope = right - left
    # the root in [0, 1] of left t + slope t²/2 = rest, written so that slope = 0 is no division
    t = 2 * rest / (left + np.sqrt(np.maximum(left**2 + 2 * slope * rest, 0.0)) + 1e-300)
    return np.asarray(grid[cell] + np.clip(t, 0.0, 1.0) * (grid[1] - grid[0]))
