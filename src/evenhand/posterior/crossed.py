r"""The crossed model: protected words and attributes each with effects of their own.

$$y_{ij} = \theta_j + u_i + \delta_i [\text{associated}] + s_i [\text{stereotype}_j]
  + h_i [\text{human}_j] + \varepsilon_{ij}, \qquad \theta_j \sim N(\gamma_{g(j)}, \tau_{g(j)}),
  \quad \delta_i \sim N(\delta, \tau_\delta), \quad u, s, h \sim N(0, \tau).$$

An attribute recurs with every protected word, so the rows of a table are not independent; the
models without $\theta_j$ take them as such and claim too much. $\delta$ compares the SAME attribute
across classes. A group that the table lacks drops out; the last group there is (neutral, where
present) has no slope of its own, since $u_i$ is it.

Given the scales everything else is one normal. So the scales alone are sampled, from their
marginal posterior with all effects integrated out, and the effects are then drawn exactly. The
attribute effects go first, by the formula for $\sigma^2 I + \tau^2 1 1^\top$, which leaves small
cross products by group and number of rows of an attribute; what remains has $4 + 4 I$ columns.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.tables import GROUPS, Table

__all__ = [
    "CrossedData",
    "CrossedPrior",
    "EffectDraws",
    "Marginal",
    "bordered_factor",
    "draw_effects",
    "draw_standard",
    "misfit",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
BATCH = 500
LOWEST, HIGHEST = np.log(1e-8), np.log(1e3)
"""Between these the logarithms of the scales are looked for: cosine distances reach from 0 to 2."""


@dataclass(frozen=True, slots=True)
class CrossedPrior:
    """γ ~ N(1, .5), δ ~ N(0, .5), the error's scale half-Cauchy(1), the others half-normal(.25)."""

    level_mean: float = 1.0
    level_sd: float = 0.5
    delta_sd: float = 0.5
    error_scale: float = 1.0
    effect_scale: float = 0.25


@dataclass(frozen=True, slots=True)
class CrossedData:
    """A distance table as arrays: the distance, its word, its attribute and whether associated.

    `group` gives for each attribute its place in `GROUPS`.
    """

    y: Floats
    word: Ints
    attribute: Ints
    associated: NDArray[np.bool_]
    group: Ints

    @classmethod
    def of(cls, table: Table) -> CrossedData:
        return cls(table.distance, table.word, table.attribute, table.connection == 0, table.group)

    @property
    def words(self) -> int:
        return int(self.word.max()) + 1

    @property
    def present(self) -> tuple[int, ...]:
        """The groups that have attributes."""
        return tuple(int(g) for g in np.unique(self.group))

    @property
    def scales(self) -> tuple[str, ...]:
        """The names of the scales, in the order in which they are sampled."""
        groups = [GROUPS[g] for g in self.present]
        return ("error", *groups, "delta", "word", *(f"slope_{name}" for name in groups[:-1]))

    def design(self) -> Floats:
        """The columns γ of each group, δ, then for each word u, its deviation in δ, its slopes."""
        n, i = self.y.size, self.words
        rows, group = np.arange(n), self.group[self.attribute]
        first = len(self.present) + 1
        x = np.zeros((n, first + i * (1 + len(self.present))))
        for column, g in enumerate(self.present):
            x[:, column] = group == g
        x[:, first - 1] = self.associated
        x[rows, first + self.word] = 1.0
        x[rows, first + i + self.word] = self.associated
        for slope, g in enumerate(self.present[:-1], start=2):
            x[rows, first + slope * i + self.word] = group == g
        return x


class Marginal:
    """The posterior of the scales alone, for many sets of them at once."""

    def __init__(self, data: CrossedData, prior: CrossedPrior) -> None:
        self.data, self.prior = data, prior
        x = data.design()
        groups = len(data.present)
        self.prior_mean = np.zeros(x.shape[1])
        self.prior_mean[:groups] = prior.level_mean
        r = data.y - x @ self.prior_mean
        attributes = data.group.size
        counts = np.bincount(data.attribute, minlength=attributes)
        sums = np.zeros((attributes, x.shape[1]))
        np.add.at(sums, data.attribute, x)
        totals = np.bincount(data.attribute, weights=r, minlength=attributes)
        place = np.searchsorted(data.present, data.group)
        patterns = np.stack([place, counts], axis=1)
        self.patterns, member = np.unique(patterns, axis=0, return_inverse=True)
        alike = [np.flatnonzero(member == k) for k in range(len(self.patterns))]
        self.size = np.array([rows.size for rows in alike])
        self.gram = x.T @ x
        self.cross = x.T @ r
        self.square = float(r @ r)
        self.part_gram = np.stack([sums[rows].T @ sums[rows] for rows in alike])
        self.part_cross = np.stack([sums[rows].T @ totals[rows] for rows in alike])
        self.part_square = np.array([np.sum(totals[rows] ** 2) for rows in alike])
        self.sums, self.totals, self.counts, self.place = sums, totals, counts, place
        self.residual = r

    def effect_sd(self, scales: Floats) -> Floats:
        """The prior standard deviation of each column, for each set of scales (… × columns)."""
        i, groups = self.data.words, len(self.data.present)
        fixed = np.broadcast_to(self.prior.level_sd, (*scales.shape[:-1], groups))
        delta = np.broadcast_to(self.prior.delta_sd, (*scales.shape[:-1], 1))
        first = 1 + groups
        order = (first + 1, first, *range(first + 2, scales.shape[-1]))
        by_word = [np.repeat(scales[..., k : k + 1], i, axis=-1) for k in order]
        return np.concatenate([fixed, delta, *by_word], axis=-1)

    def factor(self, scales: Floats) -> tuple[Floats, Floats]:
        """The factor of `bordered_factor` and log|Σ|, one for each set of scales."""
        variance = scales[:, 0] ** 2
        place, count = self.patterns[:, 0], self.patterns[:, 1]
        tau = scales[:, 1 + place] ** 2
        total = variance[:, None] + count * tau
        kappa = tau / total
        lower = bordered_factor(
            self.gram - np.tensordot(kappa, self.part_gram, axes=1),
            self.cross - kappa @ self.part_cross,
            self.square - kappa @ self.part_square,
            self.effect_sd(scales),
            variance,
        )
        log_sigma = np.sum(
            self.size * ((count - 1) * np.log(variance)[:, None] + np.log(total)), axis=1
        )
        return lower, log_sigma

    def log_likelihood(self, scales: Floats) -> Floats:
        """The log likelihood of each set of scales, all effects integrated out."""
        lower, log_sigma = self.factor(scales)
        constant = self.data.y.size * np.log(2 * np.pi)
        return np.asarray(-0.5 * (constant + log_sigma + misfit(lower)))

    def log_prior(self, scales: Floats) -> Floats:
        """The log prior of the scales, up to a constant."""
        error = -np.log1p((scales[:, 0] / self.prior.error_scale) ** 2)
        others = -0.5 * np.sum((scales[:, 1:] / self.prior.effect_scale) ** 2, axis=1)
        return np.asarray(error + others)

    def __call__(self, log_scales: Floats) -> Floats:
        """The log posterior density of the logarithms of the scales, up to a constant."""
        result = np.full(len(log_scales), -np.inf)
        inside = np.all((log_scales > LOWEST) & (log_scales < HIGHEST), axis=1)
        try:
            result[inside] = self._log_density(log_scales[inside])
        except np.linalg.LinAlgError:  # of one set or some; the others are sound
            for k in np.flatnonzero(inside):
                with suppress(np.linalg.LinAlgError):
                    result[k] = self._log_density(log_scales[k : k + 1])[0]
        return result

    def _log_density(self, log_scales: Floats) -> Floats:
        scales = np.exp(log_scales)
        density = self.log_likelihood(scales) + self.log_prior(scales)
        return np.asarray(density + np.sum(log_scales, axis=1))


def bordered_factor(
    gram: Floats, cross: Floats, square: Floats, d: Floats, variance: Floats
) -> Floats:
    """The Cholesky factor of [[M, v], [vᵀ, rᵀΣ⁻¹r]], where Σ⁻¹ comes multiplied by the variance.

    M = I + D½XᵀΣ⁻¹XD½ and v = D½XᵀΣ⁻¹r: the factor's last row is L⁻¹v, and the square of its
    corner what the effects leave unexplained, rᵀΣ⁻¹r - vᵀM⁻¹v.
    """
    columns = d.shape[1]
    matrix = np.empty((len(d), columns + 1, columns + 1))
    np.multiply(gram, d[:, :, None], out=matrix[:, :columns, :columns])
    matrix[:, :columns, :columns] *= (d / variance[:, None])[:, None, :]
    diagonal = np.arange(columns)
    matrix[:, diagonal, diagonal] += 1.0
    matrix[:, columns, :columns] = d * cross / variance[:, None]
    matrix[:, :columns, columns] = matrix[:, columns, :columns]
    matrix[:, columns, columns] = square / variance
    return np.asarray(np.linalg.cholesky(matrix), dtype=float)


def misfit(lower: Floats) -> Floats:
    """From a bordered factor log|M| and what remains unexplained, together."""
    diagonal = np.diagonal(lower, axis1=1, axis2=2)
    return np.asarray(2 * np.sum(np.log(diagonal[:, :-1]), axis=1) + diagonal[:, -1] ** 2)


def draw_standard(lower: Floats, rng: np.random.Generator) -> Floats:
    """From a bordered factor a draw of the effects over their standard deviations."""
    noise = rng.standard_normal((len(lower), lower.shape[1] - 1))
    upper = np.swapaxes(lower[:, :-1, :-1], 1, 2)
    return np.asarray(np.linalg.solve(upper, (lower[:, -1, :-1] + noise)[..., None])[..., 0])


@dataclass(frozen=True, slots=True)
class EffectDraws:
    """Draws of the effects: β (draws × columns of the design) and θ (draws × attributes)."""

    beta: Floats
    theta: Floats


def draw_effects(marginal: Marginal, scales: Floats, rng: np.random.Generator) -> EffectDraws:
    """Exact draws of all effects, one for each set of scales."""
    beta = np.concatenate(
        [_draw_beta(marginal, scales[k : k + BATCH], rng) for k in range(0, len(scales), BATCH)]
    )
    left = marginal.totals - (beta - marginal.prior_mean) @ marginal.sums.T
    tau = scales[:, 1 + marginal.place] ** 2
    variance = scales[:, :1] ** 2
    total = variance + marginal.counts * tau
    spread = np.sqrt(tau * variance / total)
    deviation = tau / total * left + spread * rng.standard_normal(left.shape)
    return EffectDraws(beta, beta[:, marginal.place] + deviation)


def _draw_beta(marginal: Marginal, scales: Floats, rng: np.random.Generator) -> Floats:
    standard = draw_standard(marginal.factor(scales)[0], rng)
    return np.asarray(marginal.prior_mean + marginal.effect_sd(scales) * standard)
