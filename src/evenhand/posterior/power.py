r"""How well a design tells δ: by the information that its attributes give, and on simulated tables.

Only the cells of stereotypes are looked at. Control words tell the error's scale and $u_i$, but a
word's level on stereotypes, $u_i + s_i$, is told by the stereotypes themselves. So a design here is
the crossed model without controls, with $\sqrt{\tau_u^2 + \tau_s^2}$ for the spread of that level,
at a third of the work. It errs a little to the safe side: of 200 tables with δ = -.05 and 269
controls the model finds it in 75 %, in the same tables without them in 72 %.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.posterior.crossed import CrossedData, CrossedPrior, Marginal
from evenhand.posterior.metropolis import Proposal, around_mode
from evenhand.posterior.tables import Table

__all__ = ["SCALES", "Layout", "Mixture", "Precision", "delta_posterior", "simulated_data"]

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
SCALES = ("error", "stereotype", "delta", "word")
"""The scales of the model without controls, in the order of `CrossedData.scales`."""
STARTS, FIRST, SECOND = 60, 200, 300
"""Points of each round of importance sampling."""
NEGLIGIBLE = 1e-6
DELTA = SCALES.index("delta")
REACH, FINE = 6.0, 601
"""A density is looked at this many standard deviations about its mean, at so many points."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Kinds of attributes, a row each: for which protected words there is a cell, and an own one.

    Attributes are taken from the kinds in turn, so that all classes get as many, but for one.
    """

    own: Flags
    there: Flags
    classes: int

    @classmethod
    def of_classes(cls, words: Sequence[int]) -> Layout:
        """A kind for each class, by the numbers of protected words of the classes.

        >>> Layout.of_classes([2, 1]).own.astype(int).tolist()
        [[1, 1, 0], [0, 0, 1]]
        """
        label = np.repeat(np.arange(len(words)), words)
        own = np.arange(len(words))[:, None] == label
        return cls(own, np.ones_like(own), len(words))

    @classmethod
    def of_table(cls, table: Table) -> Layout:
        """A kind for each stereotype of a table."""
        table = table.keep(table.group[table.attribute] == 0)
        shape = (len(table.attributes), len(table.words))
        own, there = np.zeros(shape, dtype=bool), np.zeros(shape, dtype=bool)
        there[table.attribute, table.word] = True
        own[table.attribute, table.word] = table.connection == 0
        return cls(own, there, len({label for label in table.word_class if label}))

    @property
    def words(self) -> int:
        return int(self.own.shape[1])

    def cells(self, kinds: Ints) -> CrossedData:
        """The cells of a table with these kinds of attributes, their distances all 0."""
        attribute, word = np.nonzero(self.there[kinds])
        return CrossedData(
            np.zeros(word.size),
            word,
            attribute,
            self.own[kinds][attribute, word],
            np.zeros(len(kinds), dtype=np.int64),
        )

    def drawn(self, attributes: int, rng: np.random.Generator) -> CrossedData:
        """The cells of so many attributes, the kinds in turn and in random order."""
        return self.cells(np.resize(rng.permutation(len(self.own)), attributes))


class Precision:
    r"""The posterior standard deviation of δ by the number of attributes, the scales known.

    With $\theta$ integrated out an attribute adds $X_j^\top \Sigma_j^{-1} X_j$ to the information
    on $\beta$; $n$ attributes whose kinds are drawn add $n$ times the mean over the kinds. δ's
    variance is its entry of $(D^{-1} + n \bar M)^{-1}$, with $D$ the prior variances.
    """

    def __init__(self, layout: Layout, scales: Floats, prior: CrossedPrior) -> None:
        marginal = Marginal(layout.cells(np.arange(len(layout.own))), prior)
        variance, tau = scales[0] ** 2, scales[1] ** 2
        kappa = tau / (variance + marginal.patterns[:, 1] * tau)
        gram = marginal.gram - np.tensordot(kappa, marginal.part_gram, axes=1)
        d = marginal.effect_sd(scales)
        information = d[:, None] * gram * d / (variance * len(layout.own))
        self.eigenvalues, vectors = np.linalg.eigh(information)
        self.share = vectors[1] ** 2
        self.delta_sd = prior.delta_sd

    def sd(self, attributes: ArrayLike) -> Floats:
        """The standard deviation for each number of attributes, whole or not."""
        n = np.asarray(attributes, dtype=float)[..., None]
        return np.asarray(self.delta_sd * np.sqrt((1 / (1 + n * self.eigenvalues)) @ self.share))


def simulated_data(
    layout: Layout, attributes: int, effect: float, scales: Floats, rng: np.random.Generator
) -> CrossedData:
    """The cells of a table drawn from the model, its attributes and words all new."""
    cells = layout.drawn(attributes, rng)
    error, stereotype, delta, word = scales
    theta = stereotype * rng.standard_normal(attributes)
    level = word * rng.standard_normal(layout.words)
    own = effect + delta * rng.standard_normal(layout.words)
    y = 1.0 + theta[cells.attribute] + level[cells.word] + own[cells.word] * cells.associated
    y += error * rng.standard_normal(y.size)
    return CrossedData(y, cells.word, cells.attribute, cells.associated, cells.group)


@dataclass(frozen=True, slots=True)
class Mixture:
    """The posterior of δ: a normal for each set of scales, weighted."""

    weight: Floats
    mean: Floats
    sd: Floats

    def density(self, x: Floats) -> Floats:
        z = (x[:, None] - self.mean) / self.sd
        return np.asarray(np.exp(-0.5 * z**2) @ (self.weight / self.sd) / np.sqrt(2 * np.pi))

    def moments(self) -> tuple[float, float]:
        """The mean and the standard deviation."""
        mean = float(self.weight @ self.mean)
        return mean, float(np.sqrt(self.weight @ (self.sd**2 + (self.mean - mean) ** 2)))

    def mass_denser_than(self, x: float) -> float:
        """The probability of all values denser than x.

        The highest-density interval of that probability ends at x; shorter ones exclude x.
        """
        center, spread = self.moments()
        grid = np.linspace(center - REACH * spread, center + REACH * spread, FINE)
        density = self.density(grid)
        above = density > self.density(np.array([x]))
        return float(density[above].sum() / density.sum())


def delta_posterior(
    data: CrossedData, prior: CrossedPrior, guess: Floats, rng: np.random.Generator
) -> Mixture:
    """The posterior of δ with the scales integrated out by importance sampling, in two rounds.

    `guess` is where the scales' mode is looked for. The proposal is a t distribution, about the
    mode in the first round and fitted to the first round's points in the second.
    """
    marginal = Marginal(data, prior)
    start = around_mode(marginal, np.log(guess), STARTS, rng)
    start[:, DELTA] = np.exp(start[:, DELTA])
    points, weight = _weighted(marginal, Proposal.fitted(start), FIRST, rng)
    tempered = np.sqrt(weight)
    chosen = points[rng.choice(FIRST, size=FIRST, p=tempered / tempered.sum())]
    points, weight = _weighted(marginal, Proposal.fitted(chosen), SECOND, rng)
    kept = weight > NEGLIGIBLE
    lower = marginal.factor(np.exp(_logarithms(points[kept])))[0]
    unit = np.zeros((len(lower), lower.shape[1] - 1, 1))
    unit[:, 1] = 1.0
    column = np.linalg.solve(lower[:, :-1, :-1], unit)[..., 0]
    return Mixture(
        weight[kept] / weight[kept].sum(),
        prior.delta_sd * np.sum(column * lower[:, -1, :-1], axis=1),
        prior.delta_sd * np.sqrt(np.sum(column**2, axis=1)),
    )


def _weighted(
    marginal: Marginal, proposal: Proposal, size: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Points of the logarithms of the scales, but δ's own spread itself, and their weights.

    That spread may well be 0, where its logarithm has a long tail: it is drawn on its own scale,
    negative values folded over.
    """
    points = proposal.fresh(size, rng)
    mirrored = points.copy()
    mirrored[:, DELTA] *= -1
    drawn = np.logaddexp(proposal.log_density(points), proposal.log_density(mirrored))
    points[:, DELTA] = np.abs(points[:, DELTA])
    logarithms = _logarithms(points)
    log_weight = marginal(logarithms) - logarithms[:, DELTA] - drawn
    weight = np.exp(log_weight - log_weight.max())
    return points, weight / weight.sum()


def _logarithms(points: Floats) -> Floats:
    logarithms = points.copy()
    logarithms[:, DELTA] = np.log(points[:, DELTA])
    return logarithms
