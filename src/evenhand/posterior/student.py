r"""The crossed model with Student-t errors, as a normal whose variance differs from row to row.

$\varepsilon \sim t_\nu(0, \sigma)$ is $N(0, \sigma^2 / \lambda)$ with
$\lambda \sim \Gamma(\nu/2, \nu/2)$ (Andrews & Mallows, 1974). In turn: the scales given the
weights $\lambda$ with all effects integrated out, the effects from their normal, then $\nu$ and
$\lambda$ together given the residuals. Prior of $\nu$: $\Gamma(2, .1)$ (Juárez & Steel, 2010).
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.crossed import (
    CrossedData,
    CrossedPrior,
    Marginal,
    bordered_factor,
    draw_standard,
    misfit,
)
from evenhand.posterior.crossed_fit import check_identified, crossed_result, start_scales
from evenhand.posterior.fits import Fit
from evenhand.posterior.metropolis import Proposal, step
from evenhand.posterior.tables import Table

__all__ = ["Weighted", "fit_student"]

Floats = NDArray[np.float64]

CHAINS = 8
WARM_UP = (100, 200)
THIN = 4
STEPS = 2
"""Steps of the scales in each sweep."""
LEAST, MOST = np.log(1.0), np.log(1000.0)
"""Between these the logarithm of ν is looked for."""


class Weighted:
    """The posterior of the scales given weights of the rows, a set of weights for each chain.

    A row of the design depends on its word, group and connection alone, so sums over rows are
    sums over these few kinds of rows.
    """

    def __init__(self, marginal: Marginal) -> None:
        self.marginal = marginal
        data = marginal.data
        x = data.design()
        self.kinds, self.kind = np.unique(x, axis=0, return_inverse=True)
        self.attributes = data.group.size

    def set(self, weights: Floats) -> None:
        """Take up weights (chains × rows)."""
        m = self.marginal
        chains, k = len(weights), len(self.kinds)
        table = np.zeros((chains, self.attributes, k))
        table[:, m.data.attribute, self.kind] = weights  # each cell is one row of the table
        self.sums = table @ self.kinds
        self.counts = table.sum(axis=2)
        weighted = weights * m.residual
        totals = np.zeros((self.attributes, chains))
        np.add.at(totals, m.data.attribute, weighted.T)
        self.totals = totals.T
        of_kind = np.zeros((k, chains))
        np.add.at(of_kind, self.kind, weighted.T)
        self.gram = self.kinds.T @ (table.sum(axis=1)[:, :, None] * self.kinds)
        self.cross = of_kind.T @ self.kinds
        self.square = weighted @ m.residual
        self.log_weights = np.log(weights).sum(axis=1)

    def factor(self, scales: Floats) -> tuple[Floats, Floats]:
        """As `Marginal.factor`, one set of scales for each chain."""
        m = self.marginal
        variance = scales[:, 0] ** 2
        tau = scales[:, 1 + m.place] ** 2
        total = variance[:, None] + self.counts * tau
        kappa = tau / total
        shrunk = kappa[:, :, None] * self.sums
        lower = bordered_factor(
            self.gram - np.swapaxes(self.sums, 1, 2) @ shrunk,
            self.cross - np.einsum("cj,cjp->cp", self.totals, shrunk),
            self.square - np.sum(kappa * self.totals**2, axis=1),
            m.effect_sd(scales),
            variance,
        )
        rows = m.data.y.size - self.attributes
        log_sigma = rows * np.log(variance) + np.log(total).sum(axis=1) - self.log_weights
        return lower, np.asarray(log_sigma)

    def __call__(self, log_scales: Floats) -> Floats:
        """The log posterior density of the logarithms of the scales, up to a constant."""
        scales = np.exp(np.clip(log_scales, -18.0, 5.0))
        lower, log_sigma = self.factor(scales)
        density = -0.5 * (log_sigma + misfit(lower)) + self.marginal.log_prior(scales)
        inside = np.all((log_scales > -18.0) & (log_scales < 5.0), axis=1)
        return np.where(inside, density + log_scales.sum(axis=1), -np.inf)

    def draw_effects(self, scales: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """β and θ of every chain, from their normal."""
        m = self.marginal
        gap = m.effect_sd(scales) * draw_standard(self.factor(scales)[0], rng)
        left = self.totals - np.einsum("cjp,cp->cj", self.sums, gap)
        tau, variance = scales[:, 1 + m.place] ** 2, scales[:, :1] ** 2
        total = variance + self.counts * tau
        spread = np.sqrt(tau * variance / total)
        deviation = tau / total * left + spread * rng.standard_normal(left.shape)
        beta = m.prior_mean + gap
        return beta, beta[:, m.place] + deviation

    def residuals(self, beta: Floats, theta: Floats) -> Floats:
        """What the effects leave of every row (chains × rows)."""
        data = self.marginal.data
        rest = beta.copy()
        rest[:, : len(data.present)] = 0.0  # θ holds γ already
        by_kind = rest @ self.kinds.T
        return np.asarray(data.y - theta[:, data.attribute] - by_kind[:, self.kind])


@dataclass
class _State:
    log_scales: Floats
    log_freedom: Floats
    weights: Floats
    beta: Floats
    theta: Floats


def fit_student(
    table: Table, prior: CrossedPrior | None = None, *, draws: int = 4000, seed: int = 0
) -> Fit:
    """The crossed model with Student-t errors, ν among its quantities."""
    check_identified(table)
    data = CrossedData.of(table)
    marginal = Marginal(data, prior or CrossedPrior())
    weighted = Weighted(marginal)
    rng = np.random.default_rng(seed)
    start = start_scales(marginal, CHAINS, rng)
    state = _State(
        start, rng.uniform(np.log(5.0), np.log(40.0), CHAINS), np.ones((CHAINS, data.y.size)),
        np.empty(0), np.empty(0),
    )  # fmt: skip
    proposal = Proposal.fitted(start_scales(marginal, 40 * CHAINS, rng))
    for length in WARM_UP:
        seen = []
        for _ in range(length):
            _sweep(weighted, state, proposal, rng)
            seen.append(state.log_scales)
        proposal = Proposal.fitted(np.concatenate(seen[length // 3 :]))
    kept: dict[str, list[Floats]] = {"scales": [], "beta": [], "theta": [], "freedom": []}
    for _ in range(draws // CHAINS):
        for _ in range(THIN):
            _sweep(weighted, state, proposal, rng)
        kept["scales"].append(np.exp(state.log_scales))
        kept["beta"].append(state.beta)
        kept["theta"].append(state.theta)
        kept["freedom"].append(np.exp(state.log_freedom))
    stacked = {name: np.stack(parts, axis=1) for name, parts in kept.items()}
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in stacked.items()}
    fit = crossed_result(
        table, data, stacked["scales"], flat["beta"], flat["theta"], flat["freedom"]
    )
    nu = float(flat["freedom"].mean())
    return replace(fit, notes=(f"crossed: Student-t errors, mean of their freedom {nu:.1f}",))


def _sweep(weighted: Weighted, state: _State, proposal: Proposal, rng: np.random.Generator) -> None:
    weighted.set(state.weights)
    values = weighted(state.log_scales)
    for _ in range(STEPS):
        state.log_scales, values, _ = step(weighted, state.log_scales, values, proposal, rng)
    scales = np.exp(state.log_scales)
    state.beta, state.theta = weighted.draw_effects(scales, rng)
    z = weighted.residuals(state.beta, state.theta) / scales[:, :1]
    state.log_freedom = _step_freedom(state.log_freedom, z**2, rng)
    nu = np.exp(state.log_freedom)[:, None]
    state.weights = rng.gamma((nu + 1) / 2, 2 / (nu + z**2))


def _step_freedom(log_freedom: Floats, squares: Floats, rng: np.random.Generator) -> Floats:
    """Metropolis steps of log ν given the squared standardised residuals, λ integrated out."""
    value = _log_freedom_density(log_freedom, squares)
    for width in (0.15, 0.6):
        proposed = log_freedom + width * rng.standard_normal(log_freedom.size)
        new = _log_freedom_density(proposed, squares)
        take = np.log(rng.random(log_freedom.size)) < new - value
        log_freedom, value = np.where(take, proposed, log_freedom), np.where(take, new, value)
    return log_freedom


def _log_freedom_density(log_freedom: Floats, squares: Floats) -> Floats:
    from scipy.special import gammaln

    nu = np.exp(np.clip(log_freedom, LEAST, MOST))
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu)
    likelihood = squares.shape[1] * constant - (nu + 1) / 2 * np.sum(
        np.log1p(squares / nu[:, None]), axis=1
    )
    prior = np.log(nu) - 0.1 * nu + np.log(nu)
    inside = (log_freedom > LEAST) & (log_freedom < MOST)
    return np.where(inside, likelihood + prior, -np.inf)
