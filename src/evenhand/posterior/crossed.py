r"""The crossed model: protected words and attributes each have effects of their own.

$$y_{ij} = \theta_j + u_i + \delta_i [\text{associated}] + s_i [\text{stereotype}_j]
  + h_i [\text{human}_j] + \varepsilon_{ij}, \qquad \theta_j \sim N(\gamma_{g(j)}, \tau_{g(j)}),
  \quad \delta_i \sim N(\delta, \tau_\delta), \quad u, s, h \sim N(0, \tau).$$

An attribute recurs with every protected word, so the rows of a table are not independent; models
without $\theta_j$ treat them as independent and give intervals that are too short. $\delta$
compares the SAME attribute across classes. A group that the table lacks drops out; the last group
present (neutral, if there is one) has no slope of its own, because $u_i$ is its slope.

Given the scales everything else is normal. So only the scales are sampled, from their marginal
posterior with all effects integrated out, and the effects are then drawn exactly. The attribute
effects are integrated out first, by the formula for $\sigma^2 I + \tau^2 1 1^\top$, which leaves
small cross products by group and number of rows of an attribute; the rest has $4 + 4 I$ columns.

With Student-t errors, $\varepsilon \sim t_\nu(0, \sigma)$ is $N(0, \sigma^2 / \lambda)$ with
$\lambda \sim \Gamma(\nu/2, \nu/2)$ (Andrews & Mallows, 1974). A sweep draws the scales given
the weights $\lambda$ with all effects integrated out, the effects from their normal, then $\nu$
and $\lambda$ given the residuals. The prior of $\nu$ is $\Gamma(2, .1)$ (Juárez & Steel, 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.fits import Fit, Predictor, Term
from evenhand.posterior.tables import GROUPS, Table
from evenhand.statistics.mcmc import (
    WARM_UP,
    Proposal,
    ess_bulk,
    ess_tail,
    r_hat,
    sample,
    start_around_mode,
    step,
)

__all__ = [
    "CHAINS",
    "CrossedData",
    "CrossedPrior",
    "Marginal",
    "build_crossed_fit",
    "check_identified",
    "fit_crossed",
    "fit_student",
]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]


BATCH = 500
LOWEST, HIGHEST = np.log(1e-8), np.log(1e3)
"""Bounds of the logarithms of the scales; cosine distances lie between 0 and 2."""


@dataclass(frozen=True, slots=True)
class CrossedPrior:
    """γ ~ N(1, .5), δ ~ N(0, .5), scale of the error ~ half-Cauchy(1), others half-normal(.25)."""

    level_mean: float = 1.0
    level_sd: float = 0.5
    delta_sd: float = 0.5
    error_scale: float = 1.0
    effect_scale: float = 0.25


@dataclass(frozen=True, slots=True)
class CrossedData:
    """A distance table as arrays: distance, word, attribute and whether associated, by row.

    `group` has for every attribute its index into `GROUPS`.
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
        """Groups that have attributes."""
        return tuple(int(g) for g in np.unique(self.group))

    @property
    def scales(self) -> tuple[str, ...]:
        """Names of the scales, in the order in which they are sampled."""
        groups = [GROUPS[g] for g in self.present]
        return ("error", *groups, "delta", "word", *(f"slope_{name}" for name in groups[:-1]))

    def design(self) -> Floats:
        """Columns: γ of every group, δ, then by word u, the deviation from δ and the slopes."""
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
    """Marginal posterior of the scales, for many sets of scales at once."""

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
        group_index = np.searchsorted(data.present, data.group)
        patterns = np.stack([group_index, counts], axis=1)
        self.patterns, member = np.unique(patterns, axis=0, return_inverse=True)
        alike = [np.flatnonzero(member == k) for k in range(len(self.patterns))]
        self.size = np.array([rows.size for rows in alike])
        self.gram = x.T @ x
        self.cross = x.T @ r
        self.square = float(r @ r)
        self.part_gram = np.stack([sums[rows].T @ sums[rows] for rows in alike])
        self.part_cross = np.stack([sums[rows].T @ totals[rows] for rows in alike])
        self.part_square = np.array([np.sum(totals[rows] ** 2) for rows in alike])
        self.sums, self.totals, self.counts, self.group_index = sums, totals, counts, group_index
        self.residual = r

    def effect_sd(self, scales: Floats) -> Floats:
        """Prior standard deviation of every column, by set of scales (… × columns)."""
        i, groups = self.data.words, len(self.data.present)
        fixed = np.broadcast_to(self.prior.level_sd, (*scales.shape[:-1], groups))
        delta = np.broadcast_to(self.prior.delta_sd, (*scales.shape[:-1], 1))
        first = 1 + groups
        order = (first + 1, first, *range(first + 2, scales.shape[-1]))
        by_word = [np.repeat(scales[..., k : k + 1], i, axis=-1) for k in order]
        return np.concatenate([fixed, delta, *by_word], axis=-1)

    def factor(self, scales: Floats) -> tuple[Floats, Floats]:
        """Factor of `bordered_factor` and log|Σ|, by set of scales."""
        variance = scales[:, 0] ** 2
        group_index, count = self.patterns[:, 0], self.patterns[:, 1]
        tau = scales[:, 1 + group_index] ** 2
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
        """Log likelihood by set of scales, all effects integrated out."""
        lower, log_sigma = self.factor(scales)
        constant = self.data.y.size * np.log(2 * np.pi)
        return np.asarray(-0.5 * (constant + log_sigma + misfit(lower)))

    def log_prior(self, scales: Floats) -> Floats:
        """Log prior of the scales, up to a constant."""
        error = -np.log1p((scales[:, 0] / self.prior.error_scale) ** 2)
        others = -0.5 * np.sum((scales[:, 1:] / self.prior.effect_scale) ** 2, axis=1)
        return np.asarray(error + others)

    def __call__(self, log_scales: Floats) -> Floats:
        """Log posterior density of the logarithms of the scales, up to a constant."""
        result = np.full(len(log_scales), -np.inf)
        inside = np.all((log_scales > LOWEST) & (log_scales < HIGHEST), axis=1)
        try:
            result[inside] = self._log_density(log_scales[inside])
        except np.linalg.LinAlgError:  # of some sets; evaluate the others
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
    """Compute the Cholesky factor of [[M, v], [vᵀ, rᵀΣ⁻¹r]]; Σ⁻¹ is given times the variance.

    M = I + D½XᵀΣ⁻¹XD½ and v = D½XᵀΣ⁻¹r: the last row of the factor is L⁻¹v, and the square of its
    corner is the part that the effects do not explain, rᵀΣ⁻¹r - vᵀM⁻¹v.
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
    """Sum of log|M| and the unexplained part, from a bordered factor."""
    diagonal = np.diagonal(lower, axis1=1, axis2=2)
    return np.asarray(2 * np.sum(np.log(diagonal[:, :-1]), axis=1) + diagonal[:, -1] ** 2)


def draw_standard(lower: Floats, rng: np.random.Generator) -> Floats:
    """Draw the effects divided by their standard deviations, from a bordered factor."""
    noise = rng.standard_normal((len(lower), lower.shape[1] - 1))
    upper = np.swapaxes(lower[:, :-1, :-1], 1, 2)
    return np.asarray(np.linalg.solve(upper, (lower[:, -1, :-1] + noise)[..., None])[..., 0])


@dataclass(frozen=True, slots=True)
class EffectDraws:
    """Draws of the effects: β (draws × columns of the design) and θ (draws × attributes)."""

    beta: Floats
    theta: Floats


def draw_effects(marginal: Marginal, scales: Floats, rng: np.random.Generator) -> EffectDraws:
    """Draw all effects exactly, once per set of scales."""
    beta = np.concatenate(
        [_draw_beta(marginal, scales[k : k + BATCH], rng) for k in range(0, len(scales), BATCH)]
    )
    left = marginal.totals - (beta - marginal.prior_mean) @ marginal.sums.T
    tau = scales[:, 1 + marginal.group_index] ** 2
    variance = scales[:, :1] ** 2
    total = variance + marginal.counts * tau
    spread = np.sqrt(tau * variance / total)
    deviation = tau / total * left + spread * rng.standard_normal(left.shape)
    return EffectDraws(beta, beta[:, marginal.group_index] + deviation)


def _draw_beta(marginal: Marginal, scales: Floats, rng: np.random.Generator) -> Floats:
    standard = draw_standard(marginal.factor(scales)[0], rng)
    return np.asarray(marginal.prior_mean + marginal.effect_sd(scales) * standard)


CHAINS = 16
THIN = 4
MIN_LENGTH = 100
"""Shorter chains cannot be diagnosed and are not extended."""


def check_identified(table: Table) -> None:
    """Raise unless some stereotype is associated with one word and different for another."""
    attributes = len(table.attributes)
    associated = np.bincount(table.attribute[table.connection == 0], minlength=attributes) > 0
    different = np.bincount(table.attribute[table.connection == 1], minlength=attributes) > 0
    if not (associated & different).any():
        raise InputError(
            f"{table.source}: crossed compares the same attribute across classes: expected an "
            "attribute that is associated with one protected word and different for another, "
            f"got none ({int(associated.sum())} associated, {int(different.sum())} different)"
        )


def fit_crossed(
    table: Table,
    prior: CrossedPrior | None = None,
    *,
    draws: int = 4000,
    seed: int = 0,
    warm_up: Sequence[int] = WARM_UP,
    attempts: int = 4,
) -> Fit:
    """Fit the crossed model with normal errors.

    Chains that have not mixed are continued, in up to `attempts` runs, with twice as many steps per
    retained draw each time. A short warm-up and one attempt suit simulations of many tables.
    """
    check_identified(table)
    data = CrossedData.of(table)
    marginal = Marginal(data, prior or CrossedPrior())
    rng = np.random.default_rng(seed)
    log_scales = sample_scales(marginal, draws, rng, warm_up, attempts)
    scales = np.exp(log_scales)
    effects = draw_effects(marginal, scales.reshape(-1, scales.shape[2]), rng)
    return build_crossed_fit(table, data, scales, effects.beta, effects.theta)


def sample_scales(
    marginal: Marginal,
    draws: int,
    rng: np.random.Generator,
    warm_up: Sequence[int] = WARM_UP,
    attempts: int = 4,
) -> Floats:
    """Sample the logarithms of the scales (chains × draws × scales) until the chains have mixed."""
    start = start_scales(marginal, CHAINS, rng)
    length, thin = draws // CHAINS, THIN
    min_size = min(1000.0, draws / 4)
    for attempt in range(attempts):
        logs = sample(marginal, start, draws=length, rng=rng, thin=thin, warm_up=warm_up).draws
        if attempt == attempts - 1 or length < MIN_LENGTH:
            break
        smallest = min(float(ess_bulk(logs).min()), float(ess_tail(logs).min()))
        if float(r_hat(logs).max()) <= 1.01 and smallest >= min_size:
            break
        start, thin = logs[:, -1], 2 ** (attempt + 1) * THIN
    return logs


def start_scales(marginal: Marginal, chains: int, rng: np.random.Generator) -> Floats:
    """Draw starting points of the logarithms of the scales."""
    typical = max(float(marginal.data.y.std()), 1e-6) / 2
    guess = np.full(len(marginal.data.scales), np.log(typical))
    start = start_around_mode(marginal, guess, chains, rng)
    if float(np.median(start[:, 0])) < np.log(1e-6):
        raise InputError(
            "crossed: words and attributes explain every number exactly: expected numbers with "
            "some error, from which their uncertainty can be estimated"
        )
    return start


def build_crossed_fit(
    table: Table,
    data: CrossedData,
    scales: Floats,
    beta: Floats,
    theta: Floats,
    freedom: Floats | None = None,
    sampler: str = "exact",
) -> Fit:
    """Build the fit from draws of the scales (chains × draws × scales), β and θ (all draws × …).

    Quantities: gamma (by group), delta, word (u), delta_word (δ_i), slopes by group, theta, scale.
    """
    chains, length, _ = scales.shape
    i, groups = data.words, [GROUPS[g] for g in data.present]
    first = len(groups) + 1
    blocks = [beta[:, first + k * i : first + (k + 1) * i] for k in range(len(groups) + 1)]
    delta = beta[:, first - 1]
    flat = {
        "gamma": beta[:, : len(groups)],
        "delta": delta,
        "word": blocks[0],
        "delta_word": delta[:, None] + blocks[1],
        **{f"slope_{g}": block for g, block in zip(groups[:-1], blocks[2:], strict=True)},
        "theta": theta,
    }
    entries = {"gamma": tuple(groups), "theta": table.attributes, "scale": data.scales}
    entries |= {name: table.words for name in flat if name not in (*entries, "delta")}
    drawn = {name: x.reshape(chains, length, *x.shape[1:]) for name, x in flat.items()}
    drawn["scale"] = scales
    group = data.group[data.attribute]
    terms = [Term(theta.T, data.attribute), Term(blocks[0].T, data.word)]
    terms.append(Term(flat["delta_word"].T, np.where(data.associated, data.word, -1)))
    for g, name in zip(data.present[:-1], groups, strict=False):
        terms.append(Term(flat[f"slope_{name}"].T, np.where(group == g, data.word, -1)))
    sigma = scales[..., 0].reshape(1, -1)
    if freedom is not None:
        drawn["freedom"] = freedom.reshape(chains, length)
    return Fit(
        model="crossed",
        table=table,
        draws=drawn,
        entries=entries,
        levels=_levels(groups, drawn["gamma"], drawn["delta"]),
        predictor=Predictor(
            tuple(terms), Term(sigma, np.zeros(table.rows, dtype=np.int64)), freedom
        ),
        sampler=sampler,
    )


def _levels(groups: list[str], gamma: Floats, delta: Floats) -> dict[str, Floats]:
    """Means of the connection classes: γ_S + δ, γ_S, γ_H, γ_N."""
    by_group = {name: gamma[..., k] for k, name in enumerate(groups)}
    levels = {
        "associated": by_group["stereotype"] + delta,
        "different": by_group["stereotype"],
        "human": by_group.get("human"),
        "none": by_group.get("neutral"),
    }
    return {name: draws for name, draws in levels.items() if draws is not None}


STUDENT_CHAINS = 8
STUDENT_WARM_UP = (100, 200)
STEPS = 2
"""Steps of the scales per sweep."""
LOW_FREEDOM, HIGH_FREEDOM = np.log(1.0), np.log(1000.0)
"""Bounds of the logarithm of ν."""


class WeightedMarginal:
    """Marginal posterior of the scales given weights of the rows, one set of weights per chain.

    A row of the design depends only on its word, group and connection, so sums over rows are sums
    over these few kinds of rows.
    """

    def __init__(self, marginal: Marginal) -> None:
        self.marginal = marginal
        data = marginal.data
        x = data.design()
        self.kinds, self.kind = np.unique(x, axis=0, return_inverse=True)
        self.attributes = data.group.size

    def set_weights(self, weights: Floats) -> None:
        """Set the weights (chains × rows)."""
        m = self.marginal
        chains, k = len(weights), len(self.kinds)
        table = np.zeros((chains, self.attributes, k))
        table[:, m.data.attribute, self.kind] = weights  # one row of the table per cell
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
        """Like `Marginal.factor`, with one set of scales per chain."""
        m = self.marginal
        variance = scales[:, 0] ** 2
        tau = scales[:, 1 + m.group_index] ** 2
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
        """Log posterior density of the logarithms of the scales, up to a constant."""
        scales = np.exp(np.clip(log_scales, -18.0, 5.0))
        lower, log_sigma = self.factor(scales)
        density = -0.5 * (log_sigma + misfit(lower)) + self.marginal.log_prior(scales)
        inside = np.all((log_scales > -18.0) & (log_scales < 5.0), axis=1)
        return np.where(inside, density + log_scales.sum(axis=1), -np.inf)

    def draw_effects(self, scales: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw β and θ of every chain from their normal."""
        m = self.marginal
        gap = m.effect_sd(scales) * draw_standard(self.factor(scales)[0], rng)
        left = self.totals - np.einsum("cjp,cp->cj", self.sums, gap)
        tau, variance = scales[:, 1 + m.group_index] ** 2, scales[:, :1] ** 2
        total = variance + self.counts * tau
        spread = np.sqrt(tau * variance / total)
        deviation = tau / total * left + spread * rng.standard_normal(left.shape)
        beta = m.prior_mean + gap
        return beta, beta[:, m.group_index] + deviation

    def residuals(self, beta: Floats, theta: Floats) -> Floats:
        """Residual of every row (chains × rows)."""
        data = self.marginal.data
        rest = beta.copy()
        rest[:, : len(data.present)] = 0.0  # θ includes γ
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
    """Fit the crossed model with Student-t errors; ν is one of its quantities, `freedom`."""
    check_identified(table)
    data = CrossedData.of(table)
    marginal = Marginal(data, prior or CrossedPrior())
    weighted = WeightedMarginal(marginal)
    rng = np.random.default_rng(seed)
    start = start_scales(marginal, STUDENT_CHAINS, rng)
    state = _State(
        start,
        rng.uniform(np.log(5.0), np.log(40.0), STUDENT_CHAINS),
        np.ones((STUDENT_CHAINS, data.y.size)),
        np.empty(0),
        np.empty(0),
    )
    proposal = Proposal.fit(start_scales(marginal, 40 * STUDENT_CHAINS, rng))
    for length in STUDENT_WARM_UP:
        visited = []
        for _ in range(length):
            _sweep(weighted, state, proposal, rng)
            visited.append(state.log_scales)
        proposal = Proposal.fit(np.concatenate(visited[length // 3 :]))
    retained: dict[str, list[Floats]] = {"scales": [], "beta": [], "theta": [], "freedom": []}
    for _ in range(draws // STUDENT_CHAINS):
        for _ in range(THIN):
            _sweep(weighted, state, proposal, rng)
        retained["scales"].append(np.exp(state.log_scales))
        retained["beta"].append(state.beta)
        retained["theta"].append(state.theta)
        retained["freedom"].append(np.exp(state.log_freedom))
    stacked = {name: np.stack(parts, axis=1) for name, parts in retained.items()}
    flat = {name: x.reshape(-1, *x.shape[2:]) for name, x in stacked.items()}
    fit = build_crossed_fit(
        table, data, stacked["scales"], flat["beta"], flat["theta"], flat["freedom"]
    )
    nu = float(flat["freedom"].mean())
    return replace(fit, notes=(f"crossed: Student-t errors, mean degrees of freedom {nu:.1f}",))


def _sweep(
    weighted: WeightedMarginal, state: _State, proposal: Proposal, rng: np.random.Generator
) -> None:
    weighted.set_weights(state.weights)
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
    """Advance log ν given the squared standardised residuals, λ integrated out."""
    value = _log_freedom_density(log_freedom, squares)
    for width in (0.15, 0.6):
        proposed = log_freedom + width * rng.standard_normal(log_freedom.size)
        new = _log_freedom_density(proposed, squares)
        accept = np.log(rng.random(log_freedom.size)) < new - value
        log_freedom, value = np.where(accept, proposed, log_freedom), np.where(accept, new, value)
    return log_freedom


def _log_freedom_density(log_freedom: Floats, squares: Floats) -> Floats:
    from scipy.special import gammaln

    nu = np.exp(np.clip(log_freedom, LOW_FREEDOM, HIGH_FREEDOM))
    constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(nu)
    likelihood = squares.shape[1] * constant - (nu + 1) / 2 * np.sum(
        np.log1p(squares / nu[:, None]), axis=1
    )
    prior = np.log(nu) - 0.1 * nu + np.log(nu)
    inside = (log_freedom > LOW_FREEDOM) & (log_freedom < HIGH_FREEDOM)
    return np.where(inside, likelihood + prior, -np.inf)
