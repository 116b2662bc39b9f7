"""What fitting a model gives: draws of its quantities, and each row's likelihood on demand."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.diagnostics import Summary, ess_bulk, ess_tail, r_hat, summarise
from evenhand.posterior.tables import Table

if TYPE_CHECKING:
    import pandas as pd

__all__ = ["Diagnostics", "Fit", "Predictor", "Term", "in_chains"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CHAINS = 4
"""Independent draws are shown as this many chains, so that the same diagnostics apply."""


@dataclass(frozen=True, slots=True)
class Term:
    """Values (entries × draws) and which entry each row of the table takes; -1: none, zero."""

    values: Floats
    index: Ints

    def at(self, rows: slice) -> Floats:
        """The values of these rows (rows × draws)."""
        index = self.index[rows]
        values = self.values[index]
        values[index < 0] = 0.0
        return values


@dataclass(frozen=True, slots=True)
class Predictor:
    """The mean of a row as a sum of terms, its error's scale, and Student's freedom or none."""

    terms: tuple[Term, ...]
    scale: Term
    freedom: Floats | None = None

    def mean(self, rows: slice) -> Floats:
        """The mean of these rows in every draw (rows × draws)."""
        total = self.terms[0].at(rows)
        for term in self.terms[1:]:
            total += term.at(rows)
        return total

    def log_likelihood(self, y: Floats, rows: slice) -> Floats:
        """The log likelihood of these rows in every draw (rows × draws)."""
        scale = self.scale.at(rows)
        z = (y[rows, None] - self.mean(rows)) / scale
        if self.freedom is None:
            return np.asarray(-0.5 * z**2 - np.log(scale) - 0.5 * np.log(2 * np.pi))
        from scipy.special import gammaln

        nu = self.freedom
        constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu)
        return np.asarray(constant - np.log(scale) - (nu + 1) / 2 * np.log1p(z**2 / nu))

    def replicate(self, draws: Ints, rng: np.random.Generator) -> Floats:
        """New tables, one for each of these draws (draws × rows)."""
        terms = tuple(Term(term.values[:, draws], term.index) for term in self.terms)
        everything = slice(None)
        scale = self.scale.values[:, draws][self.scale.index]
        noise = (
            rng.standard_normal(scale.shape)
            if self.freedom is None
            else rng.standard_t(np.broadcast_to(self.freedom[draws], scale.shape))
        )
        return np.asarray((Predictor(terms, self.scale).mean(everything) + scale * noise).T)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """The worst R-hat and effective sample size over all quantities, and whose they are."""

    rhat_max: float
    ess_min: float
    worst: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Fit:
    """A fitted model.

    `draws` has for each quantity chains × draws, and a third axis where it has several entries,
    which `entries` names. `levels` are the connection classes' means in the model's own terms.
    """

    model: str
    table: Table
    draws: Mapping[str, Floats] = field(repr=False)
    entries: Mapping[str, tuple[str, ...]] = field(repr=False)
    levels: Mapping[str, Floats] = field(repr=False)
    predictor: Predictor = field(repr=False)
    sampler: str = "exact"
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """The number of draws, all chains together."""
        first = next(iter(self.draws.values()))
        return int(first.shape[0] * first.shape[1])

    def log_likelihood(self, start: int, stop: int) -> Floats:
        """The log likelihood of the table's rows from `start` to `stop` (rows × draws)."""
        return self.predictor.log_likelihood(self.table.distance, slice(start, stop))

    def coefficients(self, prob: float = 0.89) -> dict[str, Summary]:
        """Each connection class's mean with its highest-density interval."""
        return {level: summarise(draws, prob) for level, draws in self.levels.items()}

    def diagnostics(self) -> Diagnostics:
        """R-hat and the smaller of bulk and tail effective sample size, the worst of all."""
        names: list[str] = []
        parts: list[Floats] = []
        for name, draws in self._everything():
            names += [label for label, _ in _columns(name, draws, self.entries)]
            parts.append(draws.reshape(*draws.shape[:2], -1))
        together = np.concatenate(parts, axis=2)
        sizes = np.minimum(ess_bulk(together), ess_tail(together))
        return Diagnostics(
            float(r_hat(together).max()), float(sizes.min()), names[int(sizes.argmin())]
        )

    def relative_efficiency(self) -> float:
        """Effective draws over draws, the mean over all quantities, as PSIS asks for it."""
        sizes = [ess_bulk(draws).ravel() for draws in self.draws.values()]
        return min(float(np.concatenate(sizes).mean()) / self.size, 1.0)

    def _everything(self) -> Iterator[tuple[str, Floats]]:
        yield from self.draws.items()
        for level, draws in self.levels.items():
            yield f"level[{level}]", draws

    def to_frame(self) -> pd.DataFrame:
        """The draws as a table, a row a draw, a column a quantity."""
        import pandas as pd

        chains, length = next(iter(self.draws.values())).shape[:2]
        columns: dict[str, NDArray[np.generic]] = {
            "chain": np.repeat(np.arange(chains), length),
            "draw": np.tile(np.arange(length), chains),
        }
        for name, draws in self._everything():
            columns |= dict(_columns(name, draws, self.entries))
        return pd.DataFrame(columns)


def in_chains(draws: Floats, chains: int = CHAINS) -> Floats:
    """Draws in a row (draws × …) as chains × draws × …"""
    return draws.reshape(chains, len(draws) // chains, *draws.shape[1:])


def _columns(
    name: str, draws: Floats, entries: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Floats]]:
    if draws.ndim == 2:
        yield name, draws.ravel()
        return
    for k, entry in enumerate(entries[name]):
        yield f"{name}[{entry}]", draws[..., k].ravel()
