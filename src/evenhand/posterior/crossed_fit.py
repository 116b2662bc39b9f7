"""Fitting the crossed model to a table: its scales by chains, everything else drawn exactly."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.crossed import CrossedData, CrossedPrior, Marginal, draw_effects
from evenhand.posterior.diagnostics import ess_bulk, ess_tail, r_hat
from evenhand.posterior.fits import Fit, Predictor, Term
from evenhand.posterior.metropolis import ROUNDS, around_mode, sample
from evenhand.posterior.tables import GROUPS, Table

__all__ = [
    "CHAINS",
    "check_identified",
    "crossed_result",
    "fit_crossed",
    "sample_scales",
    "start_scales",
]

Floats = NDArray[np.float64]

CHAINS = 16
THIN = 4
SHORT = 100
"""Chains of fewer kept draws cannot be judged, and are not gone on with."""


def check_identified(table: Table) -> None:
    """Refuse a table on which no stereotype is associated with one word and not with another."""
    attributes = len(table.attributes)
    own = np.bincount(table.attribute[table.connection == 0], minlength=attributes) > 0
    other = np.bincount(table.attribute[table.connection == 1], minlength=attributes) > 0
    if not (own & other).any():
        raise InputError(
            f"{table.source}: crossed compares the same attribute across classes: expected an "
            "attribute that is associated with one protected word and different for another, "
            f"got none ({int(own.sum())} associated, {int(other.sum())} different)"
        )


def fit_crossed(
    table: Table,
    prior: CrossedPrior | None = None,
    *,
    draws: int = 4000,
    seed: int = 0,
    warm_up: Sequence[int] = ROUNDS,
    attempts: int = 4,
) -> Fit:
    """The crossed model with normal errors.

    Chains that have not mixed go on, in up to so many attempts, with twice the steps between kept
    draws each time. A short warm-up and one attempt are for simulations of many tables.
    """
    check_identified(table)
    data = CrossedData.of(table)
    marginal = Marginal(data, prior or CrossedPrior())
    rng = np.random.default_rng(seed)
    log_scales = sample_scales(marginal, draws, rng, warm_up, attempts)
    scales = np.exp(log_scales)
    effects = draw_effects(marginal, scales.reshape(-1, scales.shape[2]), rng)
    return crossed_result(table, data, scales, effects.beta, effects.theta)


def sample_scales(
    marginal: Marginal,
    draws: int,
    rng: np.random.Generator,
    warm_up: Sequence[int] = ROUNDS,
    attempts: int = 4,
) -> Floats:
    """The logarithms of the scales (chains × draws × scales), as long as it takes to mix."""
    start = start_scales(marginal, CHAINS, rng)
    length, thin = draws // CHAINS, THIN
    wanted = min(1000.0, draws / 4)
    for attempt in range(attempts):
        kept = sample(marginal, start, draws=length, rng=rng, thin=thin, warm_up=warm_up).draws
        if attempt == attempts - 1 or length < SHORT:
            break
        smallest = min(float(ess_bulk(kept).min()), float(ess_tail(kept).min()))
        if float(r_hat(kept).max()) <= 1.01 and smallest >= wanted:
            break
        start, thin = kept[:, -1], 2 ** (attempt + 1) * THIN
    return kept


def start_scales(marginal: Marginal, chains: int, rng: np.random.Generator) -> Floats:
    """Where chains of the scales' logarithms begin."""
    typical = max(float(marginal.data.y.std()), 1e-6) / 2
    guess = np.full(len(marginal.data.scales), np.log(typical))
    start = around_mode(marginal, guess, chains, rng)
    if float(np.median(start[:, 0])) < np.log(1e-6):
        raise InputError(
            "crossed: words and attributes explain every number exactly: expected numbers with "
            "some error, from which their uncertainty can be told"
        )
    return start


def crossed_result(
    table: Table,
    data: CrossedData,
    scales: Floats,
    beta: Floats,
    theta: Floats,
    freedom: Floats | None = None,
    sampler: str = "exact",
) -> Fit:
    """The fit from draws of the scales (chains × draws × scales), β and θ (all draws × …).

    The quantities: gamma (by group), delta, word (u), delta_word (δ_i), slopes by group, theta,
    and the scales.
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
    """The means of the connection classes: γ_S + δ, γ_S, γ_H, γ_N."""
    by_group = {name: gamma[..., k] for k, name in enumerate(groups)}
    levels = {
        "associated": by_group["stereotype"] + delta,
        "different": by_group["stereotype"],
        "human": by_group.get("human"),
        "none": by_group.get("neutral"),
    }
    return {name: draws for name, draws in levels.items() if draws is not None}
