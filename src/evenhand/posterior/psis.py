r"""Pareto-smoothed importance sampling (Vehtari, Simpson, Gelman, Yao & Gabry, 2024).

The largest of a row's importance ratios are replaced by the quantiles of a generalised Pareto
distribution fitted to them (Zhang & Stephens, 2009); its shape $\hat k$ says whether the result
can be trusted: above 0.7 it cannot.
"""

from __future__ import annotations

import math

import numpy as np
from numpy.typing import NDArray

__all__ = ["fit_pareto", "smooth"]

Floats = NDArray[np.float64]
TINY = float(np.log(np.finfo(float).tiny))
SHORTEST = 5
"""With fewer draws than this in the tail no distribution is fitted to it."""


def smooth(log_ratios: Floats, efficiency: float = 1.0) -> tuple[Floats, Floats]:
    """Smoothed, normalised log weights of every row (rows × draws), and each row's k̂."""
    from scipy.special import logsumexp

    rows, draws = log_ratios.shape
    x = log_ratios - log_ratios.max(axis=1, keepdims=True)
    tail = math.ceil(min(draws / 5, 3 * math.sqrt(draws / efficiency)))
    if tail < SHORTEST:
        return x - logsumexp(x, axis=1, keepdims=True), np.full(rows, np.inf)
    places = np.argpartition(x, draws - tail - 1, axis=1)[:, draws - tail - 1 :]
    largest = np.take_along_axis(x, places, axis=1)
    order = np.argsort(largest, axis=1)
    places = np.take_along_axis(places, order, axis=1)
    largest = np.take_along_axis(largest, order, axis=1)
    cutoff = np.exp(np.maximum(largest[:, :1], TINY))
    excess = np.exp(largest[:, 1:]) - cutoff
    fits = excess[:, -1] > 1e-12 * cutoff[:, 0]  # rows all of whose ratios are equal have no tail
    k = np.full(rows, -np.inf)
    if fits.any():
        k[fits], scale = fit_pareto(excess[fits])
        share = (np.arange(tail) + 0.5) / tail
        smoothed = _quantile(share, k[fits, None], scale[:, None]) + cutoff[fits]
        top = np.minimum(np.log(smoothed), 0.0)
        chosen = np.flatnonzero(fits)[:, None]
        x[chosen, places[fits][:, 1:]] = top
    return x - logsumexp(x, axis=1, keepdims=True), k


def fit_pareto(x: Floats) -> tuple[Floats, Floats]:
    """Shape and scale of a generalised Pareto distribution for each sorted row of `x`.

    Zhang & Stephens' posterior mean over a grid of b = -k/σ, the shape then drawn to 0.5 by a
    prior worth ten values.
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
    return np.stack([np.log1p(-column[:, None] * x).mean(axis=1) for column in b.T], axis=1)


def _quantile(share: Floats, k: Floats, scale: Floats) -> Floats:
    flat = np.abs(k) < 1e-12
    safe = np.where(flat, 1.0, k)
    tail = -np.log1p(-share)
    return np.asarray(scale * np.where(flat, tail, np.expm1(safe * tail) / safe))
