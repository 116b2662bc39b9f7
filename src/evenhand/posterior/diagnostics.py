r"""Whether draws can be trusted: R-hat, effective sample sizes, Monte Carlo errors; and intervals.

After Vehtari, Gelman, Simpson, Carpenter & Bürkner (2021), "Rank-normalization, folding, and
localization: an improved R-hat". Every function takes draws as chains × draws × any further
shape and gives a number for each quantity of that shape.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["Summary", "ess_bulk", "ess_mean", "ess_tail", "hdi", "mcse_mean", "r_hat", "summarise"]

Floats = NDArray[np.float64]


def r_hat(draws: Floats) -> Floats:
    """The larger R-hat of the ranks and of the ranks of the distances from the median."""

    def measure(x: Floats) -> Floats:
        halves = _split(x)
        folded = np.abs(halves - np.median(halves, axis=(0, 1)))
        both = (_basic_r_hat(_normal_scores(part)) for part in (halves, folded))
        return np.asarray(np.maximum(*both))

    return _each(draws, measure)


def ess_bulk(draws: Floats) -> Floats:
    """How many independent draws would tell the middle of the distribution as well."""
    return _each(draws, lambda x: _effective(_normal_scores(_split(x))))


def ess_tail(draws: Floats) -> Floats:
    """The same for the 5 % and the 95 % quantile, whichever is told worse."""

    def measure(x: Floats) -> Floats:
        ends = np.quantile(x, (0.05, 0.95), axis=(0, 1))
        return np.minimum(*(_effective(_split((x <= end).astype(float))) for end in ends))

    return _each(draws, measure)


def ess_mean(draws: Floats) -> Floats:
    """The same for the mean."""
    return _each(draws, lambda x: _effective(_split(x)))


def mcse_mean(draws: Floats) -> Floats:
    """The standard error of the mean that is owed to the number of draws alone."""
    return np.asarray(np.std(draws, axis=(0, 1), ddof=1) / np.sqrt(ess_mean(draws)))


def hdi(draws: Floats, prob: float = 0.89) -> tuple[float, float]:
    """The shortest interval that holds a share `prob` of the draws.

    >>> hdi(np.array([0.0, 1.0, 2.0, 3.0, 10.0]), 0.6)
    (0.0, 3.0)
    """
    x = np.sort(np.asarray(draws, dtype=float), axis=None)
    span = math.floor(prob * x.size)
    if span >= x.size:
        return float(x[0]), float(x[-1])
    start = int(np.argmin(x[span:] - x[: x.size - span]))
    return float(x[start]), float(x[start + span])


@dataclass(frozen=True, slots=True)
class Summary:
    """A quantity in a few numbers: mean, sd, its highest-density interval, P(< 0)."""

    mean: float
    sd: float
    low: float
    high: float
    p_below_zero: float

    def as_dict(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self.__slots__}


def summarise(draws: Floats, prob: float = 0.89) -> Summary:
    """The summary of one quantity's draws, of any shape.

    >>> summarise(np.array([-1.0, 0.0, 1.0, 2.0])).p_below_zero
    0.25
    """
    low, high = hdi(draws, prob)
    spread = float(np.std(draws, ddof=1)) if draws.size > 1 else math.nan
    return Summary(float(np.mean(draws)), spread, low, high, float(np.mean(draws < 0)))


def _each(draws: Floats, measure: Callable[[Floats], Floats]) -> Floats:
    """A measure of chains × draws × quantities, on draws of any further shape."""
    chains, length, *shape = draws.shape
    return np.asarray(measure(draws.reshape(chains, length, -1)).reshape(shape))


def _split(x: Floats) -> Floats:
    """Each chain as two, so that a drift within a chain shows as a difference between chains."""
    half = x.shape[1] // 2
    return np.concatenate((x[:, :half], x[:, -half:]))


def _normal_scores(x: Floats) -> Floats:
    """The normal quantiles of the ranks over all chains (Blom's offset of 3/8)."""
    from scipy.special import ndtri
    from scipy.stats import rankdata

    flat = x.reshape(-1, x.shape[-1])
    ranks = rankdata(flat, axis=0)
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
    # the first pair that is not positive ends the sequence; its even term alone still counts once
    ends = sums <= 0
    ends[-1] = True
    end = ends.argmax(axis=0)
    inside = np.arange(pairs)[:, None] < end
    monotone = np.minimum.accumulate(sums, axis=0)
    last = np.maximum(even[end, np.arange(x.shape[2])], 0.0)
    time = -1 + 2 * np.sum(np.where(inside, monotone, 0.0), axis=0) + last
    time = np.maximum(time, 1 / math.log10(total))
    return np.where(constant, float(total), total / time)
