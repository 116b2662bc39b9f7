r"""Markov chain Monte Carlo on arrays: a Metropolis sampler, diagnostics, intervals and PSIS.

Diagnostics take draws as chains × draws × any further shape and return one number per quantity of
that shape. They follow Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization,
folding, and localization: an improved R-hat".

Pareto-smoothed importance sampling follows Vehtari, Simpson, Gelman, Yao & Gabry (2024): the
largest importance ratios of a row are replaced by the quantiles of a generalised Pareto
distribution fitted to them (Zhang & Stephens, 2009). Above a shape $\hat k$ of 0.7 the result
cannot be trusted.

The sampler is for smooth densities of few dimensions and advances many chains together. Each
Metropolis step proposes an independent point of a wide t distribution fitted to the density, new
values of a random half of the coordinates, or a local step on the scale of its covariance. The
proposals are fitted during warm-up and fixed after it, so that the retained draws come from a
proper Markov chain.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.statistics.correlation import average_ranks

Floats = NDArray[np.float64]

BATCHES = 20
"""Batches of draws that Monte Carlo errors are computed from."""


def diagnose(draws: Floats) -> tuple[Floats, Floats, Floats]:
    """Compute the convergence diagnostics of chains.

    Parameters
    ----------
    draws : array of shape (chains, draws, quantities)

    Returns
    -------
    r_hat : array of shape (quantities,)
        Rank-normalised split R-hat: the larger one of the ranks and of the ranks of the distances
        from the median.
    ess_bulk, ess_tail : array of shape (quantities,)
        The effective sample size for the centre of the distribution, and the smaller one of the
        5 % and the 95 % quantile.
    """
    halves = _split(draws)
    scores = _normal_scores(halves)
    folded = np.abs(halves - np.median(halves, axis=(0, 1)))
    ratio = np.maximum(_basic_r_hat(scores), _basic_r_hat(_normal_scores(folded)))
    ends = np.quantile(draws, (0.05, 0.95), axis=(0, 1))
    tail = np.minimum(*(_effective(_split((draws <= end).astype(float))) for end in ends))
    return ratio, _effective(scores), tail


def hdi(draws: Floats, prob: float = 0.95) -> tuple[float, float]:
    """Compute the highest-density interval: the shortest that holds a share `prob` of the draws.

    Parameters
    ----------
    draws : array of any shape
    prob : float, default 0.95

    Returns
    -------
    low, high : float

    Examples
    --------
    >>> hdi(np.array([0.0, 1.0, 2.0, 3.0, 10.0]), 0.6)
    (0.0, 3.0)
    """
    return sorted_hdi(np.sort(np.asarray(draws, dtype=float), axis=None), prob)


def sorted_hdi(x: Floats, prob: float) -> tuple[float, float]:
    """Compute the highest-density interval of draws in increasing order."""
    span = math.floor(prob * x.size)
    if span >= x.size:
        return float(x[0]), float(x[-1])
    start = int(np.argmin(x[span:] - x[: x.size - span]))
    return float(x[start]), float(x[start + span])


def hdi_error(draws: Floats, prob: float = 0.95) -> float:
    """Compute the larger Monte Carlo standard error of the two ends of `hdi`.

    By the jackknife over twenty batches: groups of chains, or blocks of each where there are fewer.
    The ends of a shortest interval are no smooth function of the draws: the error comes out about
    1.4 times too large, which is on the safe side.

    Parameters
    ----------
    draws : array of shape (chains, draws)
    prob : float, default 0.95

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> error = hdi_error(rng.normal(size=(4, 2500)))
    >>> 0.02 < error < 0.2
    True
    """
    chains, length = draws.shape
    blocks = -(-BATCHES // chains)
    batch = np.repeat(np.arange(chains), length) * blocks
    batch += np.tile(np.arange(length) * blocks // length, chains)
    batch %= BATCHES if chains >= BATCHES else chains * blocks
    order = np.argsort(draws, axis=None)
    ordered, of = draws.ravel()[order], batch[order]
    groups = np.unique(of)
    ends = np.array([sorted_hdi(ordered[of != group], prob) for group in groups])
    return float(np.sqrt((groups.size - 1) * ends.var(axis=0)).max())


def _split(x: Floats) -> Floats:
    """Split every chain in two, so that drift within a chain is a difference between chains."""
    half = x.shape[1] // 2
    return np.concatenate((x[:, :half], x[:, -half:]))


def _normal_scores(x: Floats) -> Floats:
    """Normal quantiles of the ranks over all chains (Blom's offset of 3/8)."""
    from scipy.special import ndtri

    flat = x.reshape(-1, x.shape[-1])
    ranks = average_ranks(flat, axis=0)
    return np.asarray(ndtri((ranks - 3 / 8) / (len(flat) + 1 / 4))).reshape(x.shape)


def _basic_r_hat(x: Floats) -> Floats:
    """√(pooled / within variance); 1 for a constant."""
    length = x.shape[1]
    within = x.var(axis=1, ddof=1).mean(axis=0)
    between = x.mean(axis=1).var(axis=0, ddof=1)
    constant = np.ptp(x, axis=(0, 1)) < 1e-15
    ratio = between / np.where(within > 0, within, 1e-300)
    return np.where(constant, 1.0, np.sqrt((length - 1) / length + ratio))


def _effective(x: Floats) -> Floats:
    """Draws over the autocorrelation time by Geyer's initial monotone sequence."""
    from scipy.fft import next_fast_len

    chains, length, _ = x.shape
    total = chains * length
    means = x.mean(axis=1)
    size = next_fast_len(2 * length)
    spectrum = np.fft.rfft(x - means[:, None], size, axis=1)
    covariance = np.fft.irfft(np.abs(spectrum) ** 2, size, axis=1)[:, :length].mean(axis=0) / length
    within = covariance[0] * length / (length - 1)
    pooled = covariance[0] + means.var(axis=0, ddof=1)
    constant = np.ptp(x, axis=(0, 1)) < 1e-15
    rho = 1 - (within - covariance) / np.where(constant, 1.0, pooled)
    rho[0] = 1.0
    pairs = max((length - 1) // 2, 1)
    even, odd = rho[0 : 2 * pairs : 2], rho[1 : 2 * pairs : 2]
    sums = even + odd
    # the first non-positive pair ends the sequence; its even term still counts once
    ends = sums <= 0
    ends[-1] = True
    end = ends.argmax(axis=0)
    inside = np.arange(pairs)[:, None] < end
    monotone = np.minimum.accumulate(sums, axis=0)
    last = np.maximum(even[end, np.arange(x.shape[2])], 0.0)
    time = -1 + 2 * np.sum(np.where(inside, monotone, 0.0), axis=0) + last
    time = np.maximum(time, 1 / math.log10(total))
    return np.where(constant, float(total), total / time)


TINY = float(np.log(np.finfo(float).tiny))
MIN_TAIL = 5
"""The fewest draws in the tail that a distribution is fitted to."""


def tail_size(draws: int, efficiency: float) -> int:
    """Number of the largest importance ratios that are smoothed."""
    return math.ceil(min(draws / 5, 3 * math.sqrt(draws / efficiency)))


def smooth_tail(largest: Floats) -> tuple[Floats, Floats]:
    """Smooth the largest log ratios, less their maximum.

    Parameters
    ----------
    largest : array of shape (rows, tail + 1)
        Increasing; the first of a row is the cutoff and not part of the tail.

    Returns
    -------
    smoothed : array of shape (rows, tail)
    pareto_k : array of shape (rows,)
    """
    top = largest[:, 1:].copy()
    cutoff = np.exp(np.maximum(largest[:, :1], TINY))
    excess = np.exp(top) - cutoff
    fits = excess[:, -1] > 1e-12 * cutoff[:, 0]  # rows of equal ratios have no tail
    k = np.full(len(top), -np.inf)
    if fits.any():
        k[fits], scale = fit_pareto(excess[fits])
        share = (np.arange(top.shape[1]) + 0.5) / top.shape[1]
        smoothed = _quantile(share, k[fits, None], scale[:, None]) + cutoff[fits]
        top[fits] = np.minimum(np.log(smoothed), 0.0)
    return top, k


def fit_pareto(x: Floats) -> tuple[Floats, Floats]:
    """Fit a generalised Pareto distribution to every sorted row of `x`.

    Returns
    -------
    shape, scale : array of shape (rows,)

    Notes
    -----
    The posterior mean of Zhang & Stephens (2009) over a grid of b = -k/σ; the shape is then shrunk
    towards 0.5 by a prior worth ten values.
    """
    n = x.shape[1]
    size = 30 + int(math.sqrt(n))
    quartile = x[:, int(n / 4 + 0.5) - 1]
    spread = 1 - np.sqrt(size / (np.arange(1, size + 1) - 0.5))
    b = 1 / x[:, -1:] + spread / (3 * np.maximum(quartile, 1e-300)[:, None])
    k = _shape(b, x)
    with np.errstate(divide="ignore", invalid="ignore"):
        profile = n * (np.log(-b / k) - k - 1)
    profile = np.where(np.isfinite(profile), profile, -np.inf)
    weights = np.exp(profile - profile.max(axis=1, keepdims=True))
    weights /= weights.sum(axis=1, keepdims=True)
    weights[weights < 10 * np.finfo(float).eps] = 0.0
    weights /= weights.sum(axis=1, keepdims=True)
    mean = np.sum(weights * b, axis=1)
    shape = _shape(mean[:, None], x)[:, 0]
    return (n * shape + 5) / (n + 10), -shape / mean


def _shape(b: Floats, x: Floats) -> Floats:
    """Mean of log(1 - b x) over a row, by row and column of b.

    The factors are multiplied in eights first: one logarithm then does for eight.
    """
    rows, n = x.shape
    size = -(-n // 8) * 8
    padded, factors = np.zeros((size, rows)), np.empty((size, rows))
    padded[:n] = x.T
    result = np.empty(b.shape)
    for k, column in enumerate(-b.T):
        np.multiply(padded, column, out=factors)
        factors += 1.0
        for half in (size // 2, size // 4, size // 8):
            factors[:half] *= factors[half : 2 * half]
        result[:, k] = np.log(factors[: size // 8]).sum(axis=0)
    return np.asarray(result / n)


def _quantile(share: Floats, k: Floats, scale: Floats) -> Floats:
    flat = np.abs(k) < 1e-12
    safe = np.where(flat, 1.0, k)
    tail = -np.log1p(-share)
    return np.asarray(scale * np.where(flat, tail, np.expm1(safe * tail) / safe))


LogDensity = Callable[[Floats], Floats]
Jump = Callable[[Floats, np.random.Generator], tuple[Floats, Floats]]
JUMPS = 0.35
"""Share of steps that use the caller's proposals, if there are any."""
NO_DENSITY = 1e12
"""Replaces an infinite negative log density in the search for the mode."""
FREEDOM = 6.0
INDEPENDENT = 0.4
"""Share of proposals that are independent of the current point."""
PARTIAL = 0.4
"""Share of proposals that redraw a random half of the coordinates."""
WARM_UP = (100, 200, 300)
"""Steps of the warm-up rounds; the proposals are refitted after every round."""


@dataclass(frozen=True, slots=True)
class Proposal:
    """A t distribution fitted to points, for independent proposals and the size of local steps."""

    center: Floats
    factor: Floats

    @classmethod
    def fit(cls, points: Floats) -> Proposal:
        """Fit mean and covariance."""
        covariance = np.atleast_2d(np.cov(points.T))
        covariance += 1e-8 * np.eye(points.shape[1])
        return cls(points.mean(axis=0), np.asarray(np.linalg.cholesky(covariance), dtype=float))

    @property
    def sd(self) -> Floats:
        """Scale of every coordinate."""
        return np.asarray(np.sqrt(np.sum(self.factor**2, axis=1)))

    def draw(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw independent points (count × dimensions)."""
        normal = rng.standard_normal((count, self.center.size)) @ self.factor.T
        widen = np.sqrt(FREEDOM / rng.chisquare(FREEDOM, count))
        return self.center + normal * widen[:, None]

    def draw_each(self, count: int, rng: np.random.Generator) -> Floats:
        """Draw every coordinate independently from its marginal (count × dimensions)."""
        return self.center + self.sd * rng.standard_t(FREEDOM, (count, self.center.size))

    def log_density_each(self, points: Floats) -> Floats:
        """Evaluate the log density of `draw_each`, up to a constant."""
        z = (points - self.center) / self.sd
        return np.asarray(-0.5 * (FREEDOM + 1) * np.log1p(z**2 / FREEDOM).sum(axis=1))

    def log_density(self, points: Floats) -> Floats:
        """Evaluate the log density, up to a constant."""
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
    warm_up: Sequence[int] = WARM_UP,
    jump: Jump | None = None,
) -> Floats:
    """Run Metropolis chains.

    Parameters
    ----------
    log_density : callable
        Log density of points (points × dimensions), up to a constant.
    start : array of shape (chains, dimensions)
    draws : int
        Retained draws per chain.
    rng : numpy.random.Generator
    thin : int, default 1
        Steps per retained draw.
    warm_up : sequence of int
        Steps of the warm-up rounds, after each of which the proposal is refitted.
    jump : callable, optional
        Proposals of the caller for all points, used in a share of the steps, for densities with
        several modes. Returns the proposed points and, of each, the log density of the reverse
        proposal less that of the proposal.

    Returns
    -------
    array of shape (chains, draws, dimensions)
    """

    def advance(points: Floats, values: Floats) -> tuple[Floats, Floats]:
        if jump is None or rng.random() >= JUMPS:
            return step(log_density, points, values, proposal, rng)
        proposed, log_ratio = jump(points, rng)
        new = log_density(proposed)
        return _accept(points, values, proposed, new, new - values + log_ratio, rng)

    points, values = start.copy(), log_density(start)
    proposal = Proposal.fit(start)
    for length in warm_up:
        visited = []
        for _ in range(length):
            points, values = advance(points, values)
            visited.append(points)
        proposal = Proposal.fit(np.concatenate(visited[length // 3 :]))
    result = np.empty((len(start), draws, start.shape[1]))
    for index in range(draws):
        for _ in range(thin):
            points, values = advance(points, values)
        result[:, index] = points
    return result


def step(
    log_density: LogDensity,
    points: Floats,
    values: Floats,
    proposal: Proposal,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    """Advance every chain by one step; return points and log densities.

    A proposal redraws all coordinates, redraws a random half of them or moves all of them locally.
    Where a few coordinates are in the tail, redrawing all of them is rarely accepted.
    """
    count, d = points.shape
    kind = rng.random(count)
    independent = np.less(kind, INDEPENDENT)
    partial = np.greater(kind, 1 - PARTIAL)
    local = points + 2.38 / np.sqrt(d) * rng.standard_normal((count, d)) @ proposal.factor.T
    redrawn = np.where(rng.random((count, d)) < 0.5, proposal.draw_each(count, rng), points)
    proposed = np.where(independent[:, None], proposal.draw(count, rng), local)
    proposed = np.where(partial[:, None], redrawn, proposed)
    new = log_density(proposed)
    change = new - values
    both = np.concatenate([points, proposed])
    for chosen, log_proposal in (
        (independent, proposal.log_density),
        (partial, proposal.log_density_each),
    ):
        before, after = np.split(log_proposal(both), 2)
        change[chosen] += (before - after)[chosen]
    return _accept(points, values, proposed, new, change, rng)


def _accept(
    points: Floats,
    values: Floats,
    proposed: Floats,
    new: Floats,
    change: Floats,
    rng: np.random.Generator,
) -> tuple[Floats, Floats]:
    accept: NDArray[np.bool_] = np.less(np.log(rng.random(len(points))), change)
    return np.where(accept[:, None], proposed, points), np.where(accept, new, values)


def start_around_mode(
    log_density: LogDensity, guess: Floats, chains: int, rng: np.random.Generator
) -> Floats:
    """Draw starting points around the mode, somewhat wider than the curvature there implies."""
    from scipy.optimize import minimize

    offset = 1e-5 * np.eye(guess.size)

    def descent(x: Floats) -> tuple[float, Floats]:
        values = -log_density(np.concatenate([x[None], x + offset, x - offset]))
        values[~np.isfinite(values)] = NO_DENSITY
        ahead, behind = np.split(values[1:], 2)
        return float(values[0]), (ahead - behind) / 2e-5

    mode: Any = minimize(descent, guess, jac=True, method="L-BFGS-B")
    curvature = -_hessian(log_density, mode.x)
    eigenvalues, axes = np.linalg.eigh(curvature)
    width = 1.0 / np.sqrt(np.maximum(eigenvalues, 0.02 * np.median(np.abs(eigenvalues))))
    normal = rng.standard_normal((chains, guess.size))
    start = np.asarray(mode.x + 1.3 * (normal * width) @ axes.T)
    start[~np.isfinite(log_density(start))] = mode.x
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
