r"""The 2024 paper's model, for reproduction: each connection class with its own spread and error.

For each class, $y \sim N(c_w, \sigma)$ with a mean $c_w \sim N(\mu, s)$ for each protected word,
$\mu \sim N(1, .3)$, $s$ and $\sigma \sim \text{Exp}(2)$. The classes share nothing, so each is
sampled alone: $(\sigma, s)$ by quadrature on a grid of two dimensions with everything else
integrated out, then $\mu$ and the $c_w$ from their normals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.fits import Fit, Predictor, Term, in_chains
from evenhand.posterior.tables import CONNECTIONS, Table

__all__ = ["PaperPrior", "fit_paper"]

Floats = NDArray[np.float64]
Log2 = Callable[[Floats, Floats], Floats]
GRID = 301
DEEP = 30.0
"""The grid holds all points whose log density is within this of the highest."""


@dataclass(frozen=True, slots=True)
class PaperPrior:
    """The paper's prior: a class's mean ~ N(1, .3), spread and error exponential with rate 2."""

    mean: float = 1.0
    mean_sd: float = 0.3
    spread_rate: float = 2.0
    error_rate: float = 2.0


@dataclass(frozen=True, slots=True)
class _Class:
    """What the data of one class enter by: rows, mean of each word, squares within words."""

    count: Floats
    mean: Floats
    within: float

    def log_density(self, prior: PaperPrior) -> Log2:
        """The log posterior of (log σ, log s), up to a constant."""

        def density(log_sigma: Floats, log_spread: Floats) -> Floats:
            sigma, spread = np.exp(log_sigma), np.exp(log_spread)
            centre, precision, rest, log_det = self.centre(sigma, spread, prior)
            free = self.count.sum() - self.count.size
            likelihood = -0.5 * (
                free * 2 * log_sigma + self.within / sigma**2 + log_det + rest
                + np.log(precision) - precision * centre**2
            )  # fmt: skip
            exponential = -prior.error_rate * sigma - prior.spread_rate * spread
            return np.asarray(likelihood + exponential + log_sigma + log_spread)

        return density

    def centre(
        self, sigma: Floats, spread: Floats, prior: PaperPrior
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean (less the prior's) and precision of μ; what enters the density besides them."""
        variance = spread[..., None] ** 2 + sigma[..., None] ** 2 / self.count
        gap = self.mean - prior.mean
        precision = 1 / prior.mean_sd**2 + np.sum(1 / variance, axis=-1)
        centre = np.sum(gap / variance, axis=-1) / precision
        rest = np.sum(gap**2 / variance, axis=-1)
        return centre, precision, rest, np.sum(np.log(variance), axis=-1)


def fit_paper(
    table: Table, prior: PaperPrior | None = None, *, draws: int = 4000, seed: int = 0
) -> Fit:
    """Draws of the paper's model, its classes one after the other."""
    prior = prior or PaperPrior()
    rng = np.random.default_rng(seed)
    values: dict[str, list[Floats]] = {"mean": [], "spread": [], "sigma": [], "c": []}
    cells: list[str] = []
    index = np.zeros(table.rows, dtype=np.int64)
    for level in table.levels:
        rows = np.flatnonzero(table.connection == CONNECTIONS.index(level))
        words, word = np.unique(table.word[rows], return_inverse=True)
        index[rows] = len(cells) + word
        cells += [f"{table.words[k]}, {level}" for k in words]
        drawn = _draw(_summary(table.distance[rows], word), prior, draws, rng)
        for name, value in zip(values, drawn, strict=True):
            values[name].append(value)
    stacked = {name: np.concatenate(parts, axis=1) for name, parts in values.items()}
    of_level = np.searchsorted(np.unique(table.connection), table.connection)
    drawn_in_chains = {name: in_chains(value) for name, value in stacked.items()}
    return Fit(
        model="paper",
        table=table,
        draws=drawn_in_chains,
        entries={**dict.fromkeys(("mean", "spread", "sigma"), table.levels), "c": tuple(cells)},
        levels={name: drawn_in_chains["mean"][..., k] for k, name in enumerate(table.levels)},
        predictor=Predictor((Term(stacked["c"].T, index),), Term(stacked["sigma"].T, of_level)),
    )


def _summary(y: Floats, word: NDArray[np.int64]) -> _Class:
    count = np.bincount(word).astype(float)
    mean = np.bincount(word, weights=y) / count
    return _Class(count, mean, float(np.sum((y - mean[word]) ** 2)))


def _draw(
    data: _Class, prior: PaperPrior, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    sigma, spread = _grid_draws(data.log_density(prior), draws, rng)
    centre, precision, _, _ = data.centre(sigma, spread, prior)
    mean = prior.mean + centre + rng.standard_normal(draws) / np.sqrt(precision)
    within = data.count / sigma[:, None] ** 2
    between = 1 / spread[:, None] ** 2
    total = within + between
    noise = rng.standard_normal(total.shape) / np.sqrt(total)
    c = (within * data.mean + between * mean[:, None]) / total + noise
    return mean[:, None], spread[:, None], sigma[:, None], c


def _grid_draws(log_density: Log2, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
    """Draws of two positive numbers from the density of their logarithms.

    The box is narrowed to where the density lies; a draw is a cell of the grid with a uniform
    place in it, so that what the grid's steps add to a variance is some ten-thousandth of it.
    """
    box = [(-14.0, 4.0), (-14.0, 4.0)]
    for _ in range(4):
        one, two = (np.linspace(*ends, GRID) for ends in box)
        density = log_density(one[:, None], two[None, :])
        inside = density > density.max() - DEEP
        box = [_span(one, inside.any(axis=1)), _span(two, inside.any(axis=0))]
    weights = np.exp(density - density.max()).ravel()
    cell = rng.choice(weights.size, size=draws, p=weights / weights.sum())
    place = rng.random((2, draws)) - 0.5
    row, column = np.divmod(cell, GRID)
    log_sigma = one[row] + place[0] * (one[1] - one[0])
    log_spread = two[column] + place[1] * (two[1] - two[0])
    return np.exp(log_sigma), np.exp(log_spread)


def _span(axis: Floats, inside: NDArray[np.bool_]) -> tuple[float, float]:
    where = np.flatnonzero(inside)
    return float(axis[max(where[0] - 1, 0)]), float(axis[min(where[-1] + 1, axis.size - 1)])
