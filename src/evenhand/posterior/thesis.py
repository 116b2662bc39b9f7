"""The thesis' three models (D2 §3.4-4.1): baseline, coefficients and separate, sampled exactly.

All are linear with normal errors: a mean for each protected word; that plus a coefficient for each
connection class; a mean for each pair of word and class. None of them knows that an attribute
recurs with every protected word.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.fits import Fit, Predictor, Term, in_chains
from evenhand.posterior.gaussian import LinearModel, half_cauchy, solve
from evenhand.posterior.tables import CONNECTIONS, Table

__all__ = ["THESIS", "Design", "ThesisPrior", "design", "fit_thesis", "thesis_result"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]

THESIS = ("baseline", "coefficients", "separate")
UNIDENTIFIED = (
    "co alone is not identified: moving every m down and every co up by the same amount leaves "
    "the likelihood unchanged, so the width of these intervals is the prior's; only differences "
    "between classes and m + co mean anything"
)


@dataclass(frozen=True, slots=True)
class ThesisPrior:
    """The prior of the thesis' code: m, c ~ N(1, .5), co ~ N(0, .5), σ ~ half-Cauchy(1)."""

    mean: float = 1.0
    mean_sd: float = 0.5
    coefficient_sd: float = 0.5
    error_scale: float = 1.0


@dataclass(frozen=True, slots=True)
class Design:
    """Blocks of indicator columns: their name and entries, and the entry of each row."""

    names: tuple[str, ...]
    entries: tuple[tuple[str, ...], ...]
    index: tuple[Ints, ...]

    def matrix(self) -> Floats:
        rows = np.arange(self.index[0].size)
        blocks = []
        for entries, index in zip(self.entries, self.index, strict=True):
            block = np.zeros((rows.size, len(entries)))
            block[rows, index] = 1.0
            blocks.append(block)
        return np.hstack(blocks)


def design(model: str, table: Table) -> Design:
    """The columns of one of the three models; levels and pairs that do not occur have none."""
    levels, level = np.unique(table.connection, return_inverse=True)
    if model == "baseline":
        return Design(("m",), (table.words,), (table.word,))
    if model == "coefficients":
        names = tuple(CONNECTIONS[k] for k in levels)
        return Design(("m", "co"), (table.words, names), (table.word, level))
    cell = table.word * len(CONNECTIONS) + table.connection
    cells, index = np.unique(cell, return_inverse=True)
    names = tuple(f"{table.words[k // 4]}, {CONNECTIONS[k % 4]}" for k in cells)
    return Design(("c",), (names,), (index,))


def fit_thesis(
    model: str,
    table: Table,
    prior: ThesisPrior | None = None,
    *,
    draws: int = 4000,
    seed: int = 0,
) -> Fit:
    """Exact draws of the posterior of baseline, coefficients or separate."""
    prior = prior or ThesisPrior()
    layout = design(model, table)
    x, y = layout.matrix(), table.distance
    fixed = {"co": (0.0, prior.coefficient_sd)}
    each = [fixed.get(name, (prior.mean, prior.mean_sd)) for name in layout.names]
    sizes = [len(entries) for entries in layout.entries]
    posterior = solve(
        LinearModel(
            x.T @ x, x.T @ y, float(y @ y), y.size,
            np.repeat([mean for mean, _ in each], sizes),
            np.repeat([sd for _, sd in each], sizes),
            half_cauchy(prior.error_scale),
        )
    )  # fmt: skip
    beta, sigma = posterior.draw(draws, np.random.default_rng(seed))
    parts = np.split(in_chains(beta), np.cumsum(sizes)[:-1], axis=2)
    drawn = dict(zip(layout.names, parts, strict=True))
    return thesis_result(model, table, layout, {**drawn, "sigma": in_chains(sigma)})


def thesis_result(
    model: str, table: Table, layout: Design, draws: dict[str, Floats], sampler: str = "exact"
) -> Fit:
    """The fit of one of the three models from its draws, whoever drew them."""
    size = draws["sigma"].size
    terms = tuple(
        Term(draws[name].reshape(size, -1).T, index)
        for name, index in zip(layout.names, layout.index, strict=True)
    )
    levels: dict[str, Floats] = {}
    if model == "coefficients":
        levels = {name: draws["co"][..., k] for k, name in enumerate(layout.entries[1])}
    elif model == "separate":
        endings = np.array([name.rpartition(", ")[2] for name in layout.entries[0]])
        levels = {name: draws["c"][..., endings == name].mean(axis=-1) for name in table.levels}
    scale = Term(draws["sigma"].reshape(1, size), np.zeros(table.rows, dtype=np.int64))
    return Fit(
        model=model,
        table=table,
        draws=draws,
        entries=dict(zip(layout.names, layout.entries, strict=True)),
        levels=levels,
        predictor=Predictor(terms, scale),
        sampler=sampler,
        notes=(UNIDENTIFIED,) if model == "coefficients" else (),
    )
