r"""The crossed model: protected words and attributes each have effects of their own.

$$y_{ij} = \theta_j + u_i + \eta_{c(i)j} + \delta_i [\text{associated}]
  + s_i [\text{stereotype}_j] + h_i [\text{human}_j] + \varepsilon_{ij},$$
$$\theta_j \sim N(\gamma_{g(j)}, \tau_{g(j)}), \quad \eta_{cj} \sim N(0, \tau^\eta_{g(j)}),
  \quad \delta_i \sim N(\delta, \tau_\delta), \quad u, s, h \sim N(0, \tau).$$

An attribute recurs with every protected word, so the rows of a table are not independent; models
without $\theta_j$ treat them as independent and give intervals that are too short. $\delta$
compares the SAME attribute across classes. What an attribute shares with one word of a class it
shares with the other words of that class: without $\eta$, five words of a class would count as
five independent looks at the attribute, and the interval of $\delta$ would be too short
(`crossed-no-interaction`, the model of version 0.1). A group that the table lacks drops out; the
last group present (neutral, if there is one) has no slope of its own, because $u_i$ is its slope.
$\eta$ drops out where it cannot be distinguished from the rest: with one class, or one word in
every class.

Given the scales everything else is normal. So only the scales are sampled, from their marginal
posterior with all effects integrated out, and the effects are then drawn exactly. $\eta$ and
$\theta$ are integrated out first, by the formula for $D + \tau^2 1 1^\top$, once per class within
an attribute and once per attribute. Attributes of one group that the same words have, with the
same of them associated, have the same design, so this needs few cross products however many
attributes there are. The rest has $4 + 4 I$ columns.

Words of one class with the same cells have the same design as well. An orthonormal rotation turns
$n$ of them into their mean times $\sqrt n$, which alone contains $\gamma, \delta, \theta$ and
$\eta$, and $n - 1$ contrasts, which are independent of it and of one another and need a matrix
of four columns. In tables with many words only the means remain in the large matrix (`Pool`).

With Student-t errors, $\varepsilon \sim t_\nu(0, \sigma)$ is $N(0, \sigma^2 / \lambda)$ with
$\lambda \sim \Gamma(\nu/2, \nu/2)$ (Andrews & Mallows, 1974). A sweep draws the scales given
the weights $\lambda$ with all effects integrated out, the effects from their normal, then $\nu$
and $\lambda$ given the residuals. The prior of $\nu$ is $\Gamma(2, .1)$ (Juárez & Steel, 2010).
"""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.posterior.fits import Fit, Predictor, Term
from evenhand.posterior.tables import CONNECTIONS, CONTRASTS, GROUP_OF, GROUPS, Table
from evenhand.statistics.intervals import Floats
from evenhand.statistics.mcmc import (
    WARM_UP,
    Proposal,
    diagnose,
    sample,
    start_around_mode,
    step,
)

Ints = NDArray[np.int64]


MAX_DENSE = 30
"""From more words on, those with the same design are pooled to compute the density."""
MAX_DENSE_DRAWS = 100
"""From more words on, they are pooled to draw the effects too."""
BATCH_SIZE = 1 << 23
"""Most numbers of the matrices that are factored at a time."""
MAX_PRODUCTS = 1 << 21
"""Most numbers of products that are stored to integrate η out; with more they are recomputed."""
LOWEST, HIGHEST = 1e-8, 1e3
"""Bounds of the scales; cosine distances lie between 0 and 2."""


@dataclass(frozen=True, slots=True)
class CrossedPrior:
    """γ ~ N(1, .5), δ ~ N(0, .5), scale of the error ~ half-Cauchy(1), others half-normal(.25).

    The spreads, which are the scales of δ_i and η, determine the width of the interval of δ, and
    few words and attributes inform them. Some tables have an interaction and some have none, so a
    spread is negligible, half-normal(.005), or not, half-normal(.1), with equal probability. With
    one wide half-normal instead, intervals would be too long where there is no interaction.
    """

    level_mean: float = 1.0
    level_sd: float = 0.5
    delta_sd: float = 0.5
    error_scale: float = 1.0
    effect_scale: float = 0.25
    spread_scale: float = 0.1
    negligible_scale: float = 0.005

    def log_spread(self, tau: Floats) -> Floats:
        """Log density of a spread, up to a constant."""
        parts = [
            -0.5 * (tau / scale) ** 2 - np.log(scale)
            for scale in (self.spread_scale, self.negligible_scale)
        ]
        return np.asarray(np.logaddexp(*parts))

    def for_model(self, *, interaction: bool) -> CrossedPrior:
        """Return the prior of crossed, or of crossed-no-interaction."""
        return self if interaction else self.without_interaction()

    def without_interaction(self) -> CrossedPrior:
        """Return the prior of version 0.1, in which the scale of δ_i is like the others."""
        same = self.effect_scale
        return replace(self, spread_scale=same, negligible_scale=same)


@lru_cache(maxsize=16)
def _spread_quantiles(*scales: float) -> tuple[Floats, Floats]:
    from scipy.special import erf, erfc, ndtri

    tau = max(scales) * np.geomspace(1e-7, 30.0, 20_001)
    z = tau / (np.array(scales)[:, None] * np.sqrt(2))
    below, above = erf(z).mean(axis=0), erfc(z).mean(axis=0)
    x = np.where(below < 0.5, ndtri(below), -ndtri(above))
    finite = np.isfinite(x)
    return x[finite], tau[finite]


@dataclass(frozen=True, slots=True)
class CrossedData:
    """A distance table as arrays: distance, word, attribute and whether associated, by row.

    `group` has for every attribute its index into `GROUPS`, `word_class` for every word the index
    of its class; None: no class × attribute effects.
    """

    y: Floats
    word: Ints
    attribute: Ints
    associated: NDArray[np.bool_]
    group: Ints
    word_class: Ints | None = None

    @classmethod
    def of(cls, table: Table, *, interaction: bool = True) -> CrossedData:
        classes = find_classes(table)
        identified = interaction and 1 < np.unique(classes).size < classes.size
        return cls(
            table.distance,
            table.word,
            table.attribute,
            table.connection == 0,
            table.group,
            classes if identified else None,
        )

    @property
    def words(self) -> int:
        return int(self.word.max()) + 1

    @property
    def classes(self) -> int:
        return 1 if self.word_class is None else int(self.word_class.max()) + 1

    @property
    def class_index(self) -> Ints:
        """Class of every word; all in one class if the model has no interaction."""
        none = np.zeros(self.words, dtype=np.int64)
        return none if self.word_class is None else self.word_class

    @property
    def present(self) -> tuple[int, ...]:
        """Groups that have attributes."""
        return tuple(int(g) for g in np.unique(self.group))

    @property
    def scales(self) -> tuple[str, ...]:
        """Names of the scales, in the order in which they are sampled."""
        groups = [GROUPS[g] for g in self.present]
        slopes = [f"slope_{name}" for name in groups[:-1]]
        interactions = [] if self.word_class is None else [f"interaction_{g}" for g in groups]
        return ("error", *groups, "delta", "word", *slopes, *interactions)

    @property
    def is_spread(self) -> NDArray[np.bool_]:
        """Whether a scale is that of δ_i or of η, by scale."""
        return np.array([s == "delta" or s.startswith("interaction") for s in self.scales])

    def features(self) -> tuple[Floats, Floats]:
        """By row: γ of every group and δ; the word's own u, deviation from δ and slopes."""
        group = self.group[self.attribute]
        of_group = [group == g for g in self.present]
        everywhere = np.ones(self.y.size)
        fixed = np.column_stack([*of_group, self.associated]).astype(float)
        own = np.column_stack([everywhere, self.associated, *of_group[:-1]])
        return fixed, own

    def design(self) -> Floats:
        """Columns: γ of every group, δ, then by word u, the deviation from δ and the slopes."""
        fixed, own = self.features()
        first, i = fixed.shape[1], self.words
        x = np.zeros((self.y.size, first + i * own.shape[1]))
        x[:, :first] = fixed
        for block, values in enumerate(own.T):
            x[np.arange(self.y.size), first + block * i + self.word] = values
        return x


def find_classes(table: Table) -> Ints:
    """Find the class of every protected word, as an index.

    Words whose class the table does not state belong together if they agree on which attributes
    are associated, as far as they have the same attributes, and have an associated one in common.
    Those without associated attributes are one class.
    """
    associated = np.full((len(table.words), len(table.attributes)), np.nan)
    associated[table.word, table.attribute] = table.connection == 0
    keys: list[str | int] = list(table.word_class)
    patterns = [np.zeros(len(table.attributes))]
    for i in (i for i, name in enumerate(table.word_class) if not name):
        row = associated[i]
        if not np.nansum(row):
            keys[i] = 0
            continue
        for k, pattern in enumerate(patterns):
            if np.nansum(row * pattern) and not np.nansum(np.abs(row - pattern)):
                patterns[k] = np.where(np.isnan(pattern), row, pattern)
                break
        else:
            k = len(patterns)
            patterns.append(row)
        keys[i] = k
    index = {key: k for k, key in enumerate(dict.fromkeys(keys))}
    return np.array([index[key] for key in keys], dtype=np.int64)


@dataclass(slots=True)
class Pool:
    """Words with the same class and the same cells, and what their contrasts contribute.

    `number` is the pool of every word, `sizes` the number of words of every pool; `rotation`
    (words × pools) turns sums over rows by word into those of the pool's mean times √size. `gram`
    (pools × effects × effects) are the cross products of the columns of one word, `deviations`
    (words × effects) those with the residual, less their mean in the pool, `spread` (pools ×
    effects × effects) the sums of their products, `square` the sum of squares of the residual
    around the means of the pools.
    """

    number: Ints
    sizes: Ints
    word_class: Ints
    rotation: Floats
    gram: Floats
    deviations: Floats
    spread: Floats
    square: float

    @classmethod
    def of(cls, data: CrossedData, cells: NDArray[np.int8], own: Floats, residual: Floats) -> Pool:
        """Pool the words of a table; `cells` (attributes × words) are 0 where there is no row."""
        keys = np.column_stack([data.class_index, cells.T])
        _, example, number, sizes = np.unique(
            keys, axis=0, return_index=True, return_inverse=True, return_counts=True
        )
        rotation = np.zeros((data.words, sizes.size))
        rotation[np.arange(data.words), number] = 1 / np.sqrt(sizes[number])
        words, pools = data.words, sizes.size
        sums = [_sums(data.word, a * b, words)[example] for a in own.T for b in own.T]
        cross = np.stack([_sums(data.word, a * residual, words) for a in own.T], axis=1)
        means = np.stack([_sums(number, c, pools) for c in cross.T], axis=1) / sizes[:, None]
        deviations = cross - means[number]
        spread = np.zeros((pools, own.shape[1], own.shape[1]))
        np.add.at(spread, number, deviations[:, :, None] * deviations[:, None, :])
        of_row = number[data.word]
        place = data.attribute * pools + of_row
        mean = _sums(place, residual, data.group.size * pools)[place] / sizes[of_row]
        return cls(
            number,
            sizes,
            data.class_index[example],
            rotation,
            np.array(sums).T.reshape(pools, own.shape[1], own.shape[1]),
            deviations,
            spread,
            float(np.sum((residual - mean) ** 2)),
        )

    def misfit(self, sigma: Floats, sd: Floats) -> Floats:
        """Sum of log|M| and the unexplained part of all contrasts, as for a bordered factor."""
        variance, m, scaled = self._systems(sigma, sd)
        explained = np.trace(np.linalg.solve(m, scaled * self.spread), axis1=2, axis2=3)
        log_m = np.linalg.slogdet(m)[1] @ (self.sizes - 1)
        return np.asarray(log_m + self.square / variance - explained.sum(axis=1) / variance**2)

    def draw_words(
        self, gap: Floats, sigma: Floats, sd: Floats, rng: np.random.Generator
    ) -> Floats:
        """Draw the effects of all words; `gap` has the fixed ones and those of the pools."""
        effects, pools = sd.shape[1], self.sizes.size
        first = gap.shape[1] - effects * pools
        result = np.empty((len(gap), first + effects * self.number.size))
        result[:, :first] = gap[:, :first]
        means = gap[:, first:].reshape(len(gap), effects, pools) / np.sqrt(self.sizes)
        by_word = result[:, first:].reshape(len(gap), effects, self.number.size)
        batch = max(1, BATCH_SIZE // (4 * by_word[0].size))
        for rows in (slice(k, k + batch) for k in range(0, len(gap), batch)):
            variance, m, _ = self._systems(sigma[rows], sd[rows])
            d = sd[rows, :, None]
            inverse = np.linalg.inv(m)
            lower = np.linalg.cholesky(inverse)
            noise = rng.standard_normal((len(d), effects, self.number.size))
            for k in range(pools):
                words = np.flatnonzero(self.number == k)
                own = noise[:, :, words]
                own -= own.mean(axis=2, keepdims=True)
                explained = inverse[:, k] @ (d * self.deviations[words].T / variance[:, None, None])
                drawn = means[rows, :, k, None] + d * (explained + lower[:, k] @ own)
                by_word[rows, :, words] = drawn
        return result

    def _systems(self, sigma: Floats, sd: Floats) -> tuple[Floats, Floats, Floats]:
        """Variance of ε, M = I + D½GD½/σ² (sets × pools × effects × effects), and d dᵀ."""
        variance = sigma**2
        scaled = (sd[:, :, None] * sd[:, None, :])[:, None]
        m = scaled * self.gram / variance[:, None, None, None]
        m += np.eye(sd.shape[1])
        return variance, m, scaled


def _sums(index: Ints, values: Floats, size: int) -> Floats:
    """Sum the values of equal index."""
    return np.asarray(np.bincount(index, weights=values, minlength=size))


@dataclass(slots=True)
class Blocks:
    """Sums over the rows of every attribute and class, from which θ and η are integrated out.

    Attributes with the same design are one entry, `size` of them. `fixed` (entries × classes × F)
    has the sums of the columns of γ and δ, `by_word` (entries × other columns) those of the others,
    each of which belongs to one word, so to one class. `counts` and `totals` (entries × classes)
    are the numbers of rows and the sums of what is to be explained, `squares` (entries × classes ×
    classes) the sums of products of totals.
    """

    gram: Floats
    cross: Floats
    square: Floats
    fixed: Floats
    by_word: Floats
    counts: Floats
    totals: Floats
    squares: Floats
    size: Ints
    group_index: Ints

    def class_sums(self, c: int, columns: Ints) -> Floats:
        """Sums over the rows of class c of the fixed columns and of these columns of words."""
        return np.concatenate([self.fixed[:, c], self.by_word[:, columns]], axis=1)


class Marginal:
    """Marginal posterior of the scales, for many sets of scales at once.

    The points are log σ, the normal quantiles of the prior probabilities of the spreads, and
    log(τ + c) of the other scales, with a small c: like the logarithm for scales that the table
    determines, but without a long tail for those that may be 0.
    """

    def __init__(
        self, data: CrossedData, prior: CrossedPrior, *, pooled: bool | None = None
    ) -> None:
        self.data, self.prior = data, prior
        fixed, own = data.features()
        self.groups = len(data.present)
        self.first = self.groups + 1
        self.residual = data.y - prior.level_mean
        self.offset = max(float(data.y.std()) / 20, LOWEST)
        self.group_index = np.searchsorted(data.present, data.group)
        self.spreads = np.flatnonzero(data.is_spread)
        self.others = np.flatnonzero(~data.is_spread)[1:]
        self.quantiles = _spread_quantiles(prior.spread_scale, prior.negligible_scale)
        cells = np.zeros((data.group.size, data.words), dtype=np.int8)
        cells[data.attribute, data.word] = 1 + data.associated
        self.pool: Pool | None = None
        if data.words > MAX_DENSE if pooled is None else pooled:
            self.pool = Pool.of(data, cells, own, self.residual)
        self.words = data.words if self.pool is None else self.pool.sizes.size
        word_class = data.class_index if self.pool is None else self.pool.word_class
        self.column_class = np.tile(word_class, own.shape[1])
        self.columns = [np.flatnonzero(self.column_class == c) for c in range(data.classes)]
        self.prior_mean = np.zeros(self.first + self.words * own.shape[1])
        self.prior_mean[: self.groups] = prior.level_mean
        self.cell = data.attribute * data.classes + data.class_index[data.word]
        _, example, self.kind, size = np.unique(
            np.column_stack([data.group, cells]),
            axis=0,
            return_index=True,
            return_inverse=True,
            return_counts=True,
        )
        shape = (data.group.size, data.classes)
        by_class = [_sums(self.cell, x, shape[0] * shape[1]) for x in fixed.T]
        number = np.full(data.group.size, -1)
        number[example] = np.arange(example.size)
        rows = np.flatnonzero(number[data.attribute] >= 0)
        by_word = np.zeros((example.size, own.shape[1], data.words))
        by_word[number[data.attribute[rows]], :, data.word[rows]] = own[rows]
        counts = np.bincount(self.cell, minlength=shape[0] * shape[1]).reshape(shape)
        self.totals = _sums(self.cell, self.residual, shape[0] * shape[1]).reshape(shape)
        sums = np.zeros((size.size, shape[1]))
        np.add.at(sums, self.kind, self.totals)
        squares = np.zeros((size.size, shape[1], shape[1]))
        np.add.at(squares, self.kind, self.totals[:, :, None] * self.totals[:, None, :])
        square = self.residual @ self.residual
        self.blocks = Blocks(
            gram=self._gram(fixed, own),
            cross=self._cross(fixed, own),
            square=np.asarray(square if self.pool is None else square - self.pool.square),
            fixed=np.stack(by_class, axis=1).reshape(*shape, -1)[example],
            by_word=self._combine(by_word).reshape(example.size, -1),
            counts=counts[example].astype(float),
            totals=sums,
            squares=squares,
            size=size,
            group_index=self.group_index[example],
        )
        self.products = self._interaction_products()

    def _combine(self, by_word: Floats) -> Floats:
        """Columns of words (… × words) as columns of the pools, if there are any."""
        return by_word if self.pool is None else by_word @ self.pool.rotation

    def _cross(self, fixed: Floats, own: Floats) -> Floats:
        """Sums of products of all columns and the residual."""
        if self.data.words <= MAX_DENSE and self.pool is None:
            return np.asarray(self.data.design().T @ self.residual)
        products = [_sums(self.data.word, x * self.residual, self.data.words) for x in own.T]
        by_word = self._combine(np.array(products))
        return np.concatenate([fixed.T @ self.residual, by_word.ravel()])

    def _gram(self, fixed: Floats, own: Floats) -> Floats:
        """Cross products of all columns; columns of two words have none."""
        word, i = self.data.word, self.words
        gram = np.zeros((self.prior_mean.size,) * 2)
        gram[: self.first, : self.first] = fixed.T @ fixed
        diagonal = self.first + np.arange(i)
        scale = 1.0 if self.pool is None else 1 / np.sqrt(self.pool.sizes)
        for b, values in enumerate(own.T):
            for k, column in enumerate(fixed.T):
                sums = self._combine(_sums(word, values * column, self.data.words))
                gram[k, diagonal + b * i] = gram[diagonal + b * i, k] = sums
            for a, other in enumerate(own.T):
                sums = self._combine(_sums(word, values * other, self.data.words))
                gram[diagonal + a * i, diagonal + b * i] = sums * scale
        return gram

    def to_points(self, scales: Floats) -> Floats:
        """Coordinates in which the scales are sampled (… × scales)."""
        points = np.log(scales + self.offset)
        points[..., 0] = np.log(scales[..., 0])
        points[..., self.spreads] = np.interp(scales[..., self.spreads], *self.quantiles[::-1])
        return points

    def to_scales(self, points: Floats) -> Floats:
        """Return the scales of points; 0 or infinity outside the bounds."""
        with np.errstate(over="ignore"):
            scales = np.exp(points)
        scales[..., 1:] -= self.offset
        x, tau = self.quantiles
        spreads = points[..., self.spreads]
        scales[..., self.spreads] = np.interp(spreads, x, tau, left=0.0, right=np.inf)
        return scales

    def log_jacobian(self, points: Floats) -> Floats:
        """Log of the derivatives of the scales by the points."""
        x, tau = self.quantiles
        segment = np.clip(np.searchsorted(x, points[:, self.spreads]), 1, x.size - 1)
        slope = (tau[segment] - tau[segment - 1]) / (x[segment] - x[segment - 1])
        others = points[:, 0] + points[:, self.others].sum(axis=1)
        return np.asarray(others + np.log(slope).sum(axis=1))

    def effect_sd(self, scales: Floats) -> Floats:
        """Prior standard deviation of every column, by set of scales (… × columns)."""
        own = self.own_sd(scales)
        result = np.empty((*own.shape[:-1], self.prior_mean.size))
        result[..., : self.groups] = self.prior.level_sd
        result[..., self.groups] = self.prior.delta_sd
        result[..., self.first :] = np.repeat(own, self.words, axis=-1)
        return result

    def own_sd(self, scales: Floats) -> Floats:
        """Prior standard deviation of the effects of one word (… × effects)."""
        slopes = range(self.first + 2, self.first + 1 + self.groups)
        return np.asarray(scales[..., [self.first + 1, self.first, *slopes]])

    def variances(self, scales: Floats, group_index: Ints) -> tuple[Floats, Floats, Floats]:
        """Variances of ε (sets × 1), θ and η (sets × attributes)."""
        theta = scales[:, 1 + group_index] ** 2
        if self.data.word_class is None:
            return scales[:, :1] ** 2, theta, np.zeros_like(theta)
        eta = scales[:, scales.shape[1] - self.groups + group_index] ** 2
        return scales[:, :1] ** 2, theta, eta

    def factor(self, scales: Floats) -> tuple[Floats, Floats]:
        """Factor of `bordered_factor` and log|Σ|, by set of scales.

        Σ is the covariance of the rows given β. For an attribute it is A + τ²11ᵀ, where A has the
        blocks σ²I + τ_η²11ᵀ of its classes.
        """
        b = self.blocks
        variance, tau, eta = self.variances(scales, b.group_index)
        total = variance[:, :, None] + b.counts * eta[:, :, None]
        weight = np.sum(b.counts / total, axis=2)
        common = variance * tau / (1 + tau * weight)
        t = self._attribute_sums(b, 1 / total)
        explained = np.sum(b.totals / total, axis=2)
        gram = b.gram - np.swapaxes(t, 1, 2) @ ((b.size * common)[:, :, None] * t)
        cross = b.cross - ((common * explained)[:, None] @ t)[:, 0]
        products = np.sum((1 / total[:, :, None]) @ b.squares / total[:, :, None], axis=(2, 3))
        square = b.square - np.sum(common * products, axis=1)
        if self.data.word_class is not None:
            self._subtract_interaction(eta[:, :, None] / total, gram, cross)
            diagonal = np.diagonal(b.squares, axis1=-2, axis2=-1)
            square = square - np.sum(eta[:, :, None] / total * diagonal, axis=(1, 2))
        lower = bordered_factor(gram, cross, square, self.effect_sd(scales), variance[:, 0])
        cells = self.totals.size
        log_sigma = (self.data.y.size - cells) * np.log(variance[:, 0])
        log_sigma += (np.log(total).sum(axis=2) + np.log1p(tau * weight)) @ b.size
        return lower, np.asarray(log_sigma)

    def _subtract_interaction(self, own: Floats, gram: Floats, cross: Floats) -> None:
        """Subtract what η explains, Σ own · sums sumsᵀ over attributes and classes, in place."""
        b = self.blocks
        if self.products is not None:
            weights = own.reshape(len(own), len(self.products[0]))
            gram -= (weights @ self.products[0]).reshape(gram.shape)
            cross -= weights @ self.products[1]
            return
        for c, columns in enumerate(self.columns):
            s = b.class_sums(c, columns)
            index = np.concatenate([np.arange(self.first), self.first + columns])
            part = np.swapaxes((b.size * own[:, :, c])[:, :, None] * s, 1, 2) @ s
            gram[:, index[:, None], index] -= part
            cross[:, index] -= ((own[:, :, c] * b.totals[:, c])[:, None] @ s)[:, 0]

    def _interaction_products(self) -> tuple[Floats, Floats] | None:
        """Sums of products by entry and class, if they are few; each is one row."""
        b, p = self.blocks, self.prior_mean.size
        if self.data.word_class is None or b.counts.size * p * p > MAX_PRODUCTS:
            return None
        by_class = np.zeros((b.size.size, self.data.classes, p))
        for c, columns in enumerate(self.columns):
            by_class[:, c, : self.first] = b.fixed[:, c]
            by_class[:, c, self.first + columns] = b.by_word[:, columns]
        sums = by_class.reshape(-1, p)
        size = np.repeat(b.size, self.data.classes)
        gram = (size[:, None] * sums)[:, :, None] * sums[:, None, :]
        return gram.reshape(len(sums), -1), b.totals.reshape(-1, 1) * sums

    def _attribute_sums(self, b: Blocks, weight: Floats) -> Floats:
        """Sums of all columns over the rows of an attribute, weighted by class."""
        fixed = np.sum(weight[..., None] * b.fixed, axis=2)
        return np.concatenate([fixed, weight[:, :, self.column_class] * b.by_word], axis=2)

    def log_likelihood(self, scales: Floats) -> Floats:
        """Log likelihood by set of scales, all effects integrated out."""
        lower, log_sigma = self.factor(scales)
        constant = self.data.y.size * np.log(2 * np.pi)
        if self.pool is not None:
            log_sigma = log_sigma + self.pool.misfit(scales[:, 0], self.own_sd(scales))
        return np.asarray(-0.5 * (constant + log_sigma + misfit(lower)))

    def log_prior(self, scales: Floats) -> Floats:
        """Log prior of the scales, up to a constant."""
        error = -np.log1p((scales[:, 0] / self.prior.error_scale) ** 2)
        others = -0.5 * np.sum((scales[:, self.others] / self.prior.effect_scale) ** 2, axis=1)
        spreads = self.prior.log_spread(scales[:, self.spreads]).sum(axis=1)
        return np.asarray(error + others + spreads)

    def log_posterior(self, scales: Floats) -> Floats:
        """Log posterior density of the scales, up to a constant."""
        result = np.full(len(scales), -np.inf)
        inside = np.all((scales > LOWEST) & (scales < HIGHEST), axis=1)
        try:
            result[inside] = self._log_posterior(scales[inside])
        except np.linalg.LinAlgError:  # of some sets; evaluate the others
            for k in np.flatnonzero(inside):
                with suppress(np.linalg.LinAlgError):
                    result[k] = self._log_posterior(scales[k : k + 1])[0]
        return result

    def _log_posterior(self, scales: Floats) -> Floats:
        return np.asarray(self.log_likelihood(scales) + self.log_prior(scales))

    def __call__(self, points: Floats) -> Floats:
        """Log posterior density of the points, up to a constant."""
        return self.log_posterior(self.to_scales(points)) + self.log_jacobian(points)

    def start(self, guess: Floats, count: int, rng: np.random.Generator) -> Floats:
        """Draw starting points around the mode of the logarithms of the scales."""

        def log_density(logs: Floats) -> Floats:
            with np.errstate(over="ignore"):  # far from the mode, where the density is 0
                return np.asarray(self.log_posterior(np.exp(logs)) + logs.sum(axis=1))

        return self.to_points(np.exp(start_around_mode(log_density, np.log(guess), count, rng)))

    def jump(self, points: Floats, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Propose another value of one spread from its prior, in which it is negligible or not."""
        chosen = (np.arange(len(points)), rng.choice(self.spreads, len(points)))
        proposed = points.copy()
        proposed[chosen] = rng.standard_normal(len(points))
        return proposed, np.asarray(0.5 * (proposed[chosen] ** 2 - points[chosen] ** 2))

    def fit_totals(self, gap: Floats) -> Floats:
        """Sums that the effects explain (sets × entries × classes); `gap` is β less its mean."""
        fitted = np.empty((len(gap), self.blocks.size.size, self.data.classes))
        for c, columns in enumerate(self.columns):
            index = np.concatenate([np.arange(self.first), self.first + columns])
            fitted[:, :, c] = (self.blocks.class_sums(c, columns) @ gap[:, index, None])[..., 0]
        return fitted

    def draw_attributes(
        self,
        totals: Floats,
        counts: Floats,
        fitted: Floats,
        kind: Ints,
        scales: Floats,
        rng: np.random.Generator,
    ) -> tuple[Floats, Floats]:
        """Draw θ - γ (sets × attributes) and η (sets × attributes × classes).

        Totals are by attribute and class, counts and fitted totals by kind of attribute and class;
        totals and counts may be by set.
        """
        sets, shape = len(scales), (kind.size, self.data.classes)
        step = max(1, BATCH_SIZE // (8 * shape[0] * shape[1]))
        batches = [slice(k, min(k + step, sets)) for k in range(0, sets, step)]

        by_set = totals.ndim == 3

        def given(batch: slice) -> tuple[Floats, ...]:
            """Totals that β leaves, counts, variances of ε, θ and η, and that of a total."""
            left = (totals[batch] if by_set else totals) - fitted[batch][:, kind]
            own = (counts[batch] if by_set else counts)[..., kind, :]
            variance, tau, eta = self.variances(scales[batch], self.group_index)
            return left, own, variance, tau, eta, variance[:, :, None] + own * eta[:, :, None]

        # by attribute, then by set: what is read later are the draws of an attribute
        theta = np.empty((kind.size, sets)).T
        for batch in batches:
            left, own, _, tau, _, total = given(batch)
            information = 1 + tau * np.sum(own / total, axis=2)
            mean = tau * np.sum(left / total, axis=2) / information
            theta[batch] = mean + np.sqrt(tau / information) * rng.standard_normal(mean.shape)
        if self.data.word_class is None:
            return theta, np.zeros((sets, *shape))
        drawn = np.empty((shape[0] * shape[1], sets)).T
        for batch in batches:
            left, own, variance, _, eta, total = given(batch)
            mean = eta[:, :, None] / total * (left - own * theta[batch][:, :, None])
            spread = np.sqrt(eta[:, :, None] * variance[:, :, None] / total)
            new = mean + spread * rng.standard_normal(mean.shape)
            drawn[batch] = new.reshape(len(new), -1)
        return theta, drawn.reshape(sets, *shape)


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
    """Draws of the effects.

    β (draws × columns of the design), θ (draws × attributes), η (draws × attributes × classes).
    """

    beta: Floats
    theta: Floats
    eta: Floats


def draw_effects(marginal: Marginal, scales: Floats, rng: np.random.Generator) -> EffectDraws:
    """Draw all effects exactly, once per set of scales."""
    size = marginal.prior_mean.size * (marginal.prior_mean.size + 2 * marginal.blocks.size.size)
    batch = max(1, BATCH_SIZE // size)
    standard = np.concatenate(
        [
            draw_standard(marginal.factor(scales[k : k + batch])[0], rng)
            for k in range(0, len(scales), batch)
        ]
    )
    gap = marginal.effect_sd(scales) * standard
    counts, fitted = marginal.blocks.counts, marginal.fit_totals(gap)
    theta, eta = marginal.draw_attributes(
        marginal.totals, counts, fitted, marginal.kind, scales, rng
    )
    beta = gap
    if marginal.pool is not None:
        beta = marginal.pool.draw_words(gap, scales[:, 0], marginal.own_sd(scales), rng)
    beta[:, : marginal.groups] += marginal.prior.level_mean
    return EffectDraws(beta, beta[:, marginal.group_index] + theta, eta)


CROSSED = ("crossed-no-interaction", "crossed")
CHAINS = 16
THIN = 4
MIN_EFFECTIVE = 1000.0
MIN_LENGTH = 100
"""Shorter chains cannot be diagnosed and are not extended."""


def check_identified(table: Table) -> None:
    """Raise unless some stereotype is associated with one word and different for another."""
    if not table.shared_attributes:
        associated, different = _count_stereotypes(table)
        raise InputError(
            f"{table.source}: crossed compares the same attribute across classes: expected an "
            "attribute that is associated with one protected word and different for another, "
            f"got none ({associated} associated, {different} different)"
        )


def check_contrasts(table: Table) -> tuple[str, ...]:
    """Raise where no contrast remains; return a note where δ does not compare same attributes.

    In a table of one class no attribute is associated with one word and different for another.
    δ is then the difference between two sets of attributes, as uncertain as attributes differ.
    """
    if table.repeated:
        raise InputError(
            f"{table.source}: crossed: expected one row per pair of words, got {table.repeated:,} "
            "repeated rows: drop the duplicates"
        )
    remaining = [f"{a}-{b}" for a, b in CONTRASTS if {a, b} <= set(table.levels)]
    if not remaining:
        raise InputError(
            f"{table.source}: crossed: expected two connection classes to compare, one of them "
            f"associated or human and none, got {', '.join(table.levels)}"
        )
    if table.shared_attributes:
        return ()
    rest = f"remaining contrasts: {', '.join(remaining)}"
    absent = [name for name in CONNECTIONS[:2] if name not in table.levels]
    if absent:
        return (f"crossed: the table has no {' and no '.join(absent)} attributes; {rest}",)
    associated, different = _count_stereotypes(table)
    return (
        "crossed: no attribute is associated with one protected word and different for another: "
        f"associated-different compares {associated} attributes with {different} others, not the "
        f"same ones, and has no ideal value; {rest}",
    )


def _count_stereotypes(table: Table) -> list[int]:
    """Count the attributes that are associated, and those that are different, with any word."""
    return [int(np.unique(table.attribute[table.connection == k]).size) for k in (0, 1)]


def fit_crossed(
    table: Table,
    prior: CrossedPrior | None = None,
    *,
    interaction: bool = True,
    draws: int = 4000,
    seed: int = 0,
    warm_up: Sequence[int] = WARM_UP,
    attempts: int = 4,
) -> Fit:
    """Fit the crossed model with normal errors.

    Chains that have not mixed are continued, in up to `attempts` runs, with twice as many steps per
    retained draw each time. A short warm-up and one attempt suit simulations of many tables.
    """
    notes = check_contrasts(table)
    data, prior = CrossedData.of(table, interaction=interaction), prior or CrossedPrior()
    marginal = Marginal(data, prior.for_model(interaction=interaction))
    rng = np.random.default_rng(seed)
    scales = sample_scales(marginal, draws, rng, warm_up, attempts)
    if marginal.pool is not None and data.words <= MAX_DENSE_DRAWS:
        marginal = Marginal(data, marginal.prior, pooled=False)
    effects = draw_effects(marginal, scales.reshape(-1, scales.shape[2]), rng)
    fit = build_crossed_fit(table, data, scales, effects)
    return replace(fit, model=CROSSED[interaction], notes=notes)


def sample_scales(
    marginal: Marginal,
    draws: int,
    rng: np.random.Generator,
    warm_up: Sequence[int] = WARM_UP,
    attempts: int = 4,
) -> Floats:
    """Sample the scales (chains × draws × scales) until the chains have mixed."""
    start = start_scales(marginal, CHAINS, rng)
    length, thin = draws // CHAINS, THIN
    min_size = min(MIN_EFFECTIVE, draws / 4)
    for attempt in range(attempts):
        points = sample(
            marginal,
            start,
            draws=length,
            rng=rng,
            thin=thin,
            warm_up=warm_up,
            jump=marginal.jump,
        )
        scales = marginal.to_scales(points)
        if attempt == attempts - 1 or length < MIN_LENGTH:
            break
        ratio, bulk, tail = diagnose(scales)
        if ratio.max() <= 1.01 and min(bulk.min(), tail.min()) >= min_size:
            break
        start, thin = points[:, -1], 2 ** (attempt + 1) * THIN
    return scales


def start_scales(marginal: Marginal, chains: int, rng: np.random.Generator) -> Floats:
    """Draw starting points of the chains."""
    typical = max(float(marginal.data.y.std()), 1e-6) / 2
    start = marginal.start(np.full(len(marginal.data.scales), typical), chains, rng)
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
    effects: EffectDraws,
    freedom: Floats | None = None,
    sampler: str = "exact",
) -> Fit:
    """Build the fit from draws of the scales (chains × draws × scales) and the effects.

    Quantities: gamma (by group), delta, word (u), delta_word (δ_i), slopes by group, theta, eta (of
    stereotypes; those of the controls only predict), scale.
    """
    chains, length, _ = scales.shape
    beta, theta = effects.beta, effects.theta
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
    group = data.group[data.attribute]
    indices = {"theta": data.attribute, "word": data.word}
    indices["delta_word"] = np.where(data.associated, data.word, -1)
    for g, name in zip(data.present[:-1], groups, strict=False):
        indices[f"slope_{name}"] = np.where(group == g, data.word, -1)
    terms = [Term(np.ascontiguousarray(flat[name].T), index) for name, index in indices.items()]
    if data.word_class is not None:
        cell = data.attribute * data.classes + data.word_class[data.word]
        cells, index = np.unique(cell, return_inverse=True)
        eta = effects.eta.reshape(len(theta), -1).T
        eta = np.ascontiguousarray(eta if cells.size == len(eta) else eta[cells])
        terms.append(Term(eta, index))
        attribute, label = np.divmod(cells, data.classes)
        stereotype = data.group[attribute] == 0
        flat["eta"] = eta[stereotype].T
        names = _class_names(table, data.word_class)
        entries["eta"] = tuple(
            f"{names[c]}, {table.attributes[j]}"
            for c, j in zip(label[stereotype], attribute[stereotype], strict=True)
        )
    drawn = {name: x.reshape(chains, length, *x.shape[1:]) for name, x in flat.items()}
    drawn["scale"] = scales
    sigma = scales[..., 0].reshape(1, -1)
    if freedom is not None:
        drawn["freedom"] = freedom.reshape(chains, length)
    return Fit(
        model="crossed",
        table=table,
        draws=drawn,
        entries=entries,
        levels=_levels(table, groups, drawn["gamma"], drawn["delta"]),
        predictor=Predictor(
            tuple(terms), Term(sigma, np.zeros(table.rows, dtype=np.int64)), freedom
        ),
        sampler=sampler,
    )


def _class_names(table: Table, word_class: Ints) -> list[str]:
    """Name of every class: as the table states it, or its words."""
    names = []
    for c in range(int(word_class.max()) + 1):
        members = np.flatnonzero(word_class == c)
        names.append(table.word_class[members[0]] or "/".join(table.words[i] for i in members))
    return names


def _levels(table: Table, groups: list[str], gamma: Floats, delta: Floats) -> dict[str, Floats]:
    """Means of the connection classes that the table has: γ_S + δ, γ_S, γ_H, γ_N."""
    by_group = {name: gamma[..., k] for k, name in enumerate(groups)}
    levels = {name: by_group[GROUP_OF[name]] for name in table.levels}
    if "associated" in levels:
        levels["associated"] = levels["associated"] + delta
    return levels


STUDENT_CHAINS = 8
STUDENT_WARM_UP = (100, 200)
STEPS = 2
"""Steps of the scales per sweep."""
LOW_FREEDOM, HIGH_FREEDOM = np.log(1.0), np.log(1000.0)
"""Bounds of the logarithm of ν."""


class WeightedMarginal:
    """Marginal posterior of the scales given weights of the rows, one set of weights per chain.

    In the rows of one group of attributes a column of the design is the weight of a word, that of
    its associated rows, a sum of these (γ, δ) or zero, and a slope is the same as u. So products
    of the weights suffice, group by group, and memory is linear in words × attributes.
    """

    def __init__(self, marginal: Marginal) -> None:
        self.marginal = marginal
        data, i = marginal.data, marginal.data.words
        self.order = np.argsort(marginal.group_index, kind="stable")  # attributes, by group
        self.position = np.argsort(self.order)
        self.group_index = marginal.group_index[self.order]
        self.rows = (self.position[data.attribute], data.word)
        self.residual, self.associated = np.zeros((2, data.group.size, i))
        self.residual[self.rows] = marginal.residual
        self.associated[self.rows] = data.associated
        self.members = np.eye(data.classes)[data.class_index]
        self.parts = [self._columns(g) for g in range(marginal.groups)]

    def _columns(self, g: int) -> tuple[slice, Floats | None, Ints, Ints]:
        """Attributes of a group, which rows are associated, its columns, and what each one has.

        That is the weights of a word (0 to I - 1), those of its associated rows (I to 2I - 1), and
        after these their sums.
        """
        m, i = self.marginal, self.marginal.data.words
        attributes = slice(*np.searchsorted(self.group_index, [g, g + 1]))
        marks = self.associated[attributes]
        word = np.arange(i)
        columns, sources = [m.first + word], [word]
        if g < m.groups - 1:
            columns.append(m.first + (2 + g) * i + word)
            sources.append(word)
        if not marks.any():
            columns.append(np.array([g]))
            sources.append(np.array([i]))
            return attributes, None, np.concatenate(columns), np.concatenate(sources)
        columns += [m.first + i + word, np.array([g, m.groups])]
        sources += [i + word, np.array([2 * i, 2 * i + 1])]
        return attributes, marks, np.concatenate(columns), np.concatenate(sources)

    def set_weights(self, weights: Floats) -> None:
        """Set the weights (chains × rows)."""
        self.weights = np.zeros((len(weights), *self.residual.shape))
        self.weights[:, *self.rows] = weights  # one row of the table per cell
        weighted = self.weights * self.residual
        self.counts, self.totals = self.weights @ self.members, weighted @ self.members
        self.square = np.einsum("kji,ji->k", weighted, self.residual)
        self.log_weights = np.log(weights).sum(axis=1)
        self.sums = [
            _with_associated(self.weights[:, attributes], marks).sum(axis=1)
            for attributes, marks, _, _ in self.parts
        ]

    def factor(self, scales: Floats) -> tuple[Floats, Floats]:
        """Factor of `bordered_factor` and log|Σ| of every chain, as `Marginal.factor`."""
        m, i = self.marginal, self.marginal.data.words
        variance, tau, eta = m.variances(scales, self.group_index)
        total = variance[:, :, None] + self.counts * eta[:, :, None]
        weight = np.sum(self.counts / total, axis=2)
        explained = np.sum(self.totals / total, axis=2)
        common = variance * tau / (1 + tau * weight)
        own = eta[:, :, None] / total
        shares = (common * explained)[:, :, None] / total + own * self.totals
        left = self._multiply(-shares, self.residual)
        by_theta = self._multiply(np.sqrt(common)[:, :, None] / total)
        by_eta = self._multiply(np.sqrt(own)) if m.data.word_class is not None else None
        gram = np.zeros((len(scales), m.prior_mean.size, m.prior_mean.size))
        cross = np.zeros(gram.shape[:2])
        for (attributes, marks, columns, sources), sums in zip(self.parts, self.sums, strict=True):
            kinds = sums.shape[1] // i
            x = _with_associated(by_theta[:, attributes], marks)
            products = -(np.swapaxes(x, 1, 2) @ x)
            if by_eta is not None:
                x = _with_associated(by_eta[:, attributes], marks)
                same = np.tile(self.members @ self.members.T, (kinds, kinds))
                products -= (np.swapaxes(x, 1, 2) @ x) * same
            word = np.arange(i)
            for a, b in np.ndindex(kinds, kinds):
                last = max(a, b) * i + word
                products[:, a * i + word, b * i + word] += sums[:, last]
            vector = _with_associated(left[:, attributes], marks).sum(axis=1)
            add = np.repeat(np.eye(kinds), i, axis=0)
            products = np.concatenate([products, products @ add], axis=2)
            products = np.concatenate([products, add.T @ products], axis=1)
            vector = np.concatenate([vector, vector @ add], axis=1)
            gram[:, columns[:, None], columns] += products[:, sources[:, None], sources]
            cross[:, columns] += vector[:, sources]
        square = self.square - np.sum(common * explained**2, axis=1)
        square -= np.sum(own * self.totals**2, axis=(1, 2))
        lower = bordered_factor(gram, cross, square, m.effect_sd(scales), variance[:, 0])
        log_sigma = (m.data.y.size - m.totals.size) * np.log(variance[:, 0]) - self.log_weights
        log_sigma += np.sum(np.log(total).sum(axis=2) + np.log1p(tau * weight), axis=1)
        return lower, np.asarray(log_sigma)

    def _multiply(self, by_class: Floats, add: Floats | None = None) -> Floats:
        """Weights times numbers by attribute and class (chains × attributes × words)."""
        values = by_class @ self.members.T
        if add is not None:
            values += add
        values *= self.weights
        return values

    def __call__(self, points: Floats) -> Floats:
        """Log posterior density of the points, up to a constant."""
        m = self.marginal
        scales = m.to_scales(points)
        inside = np.all((scales > LOWEST) & (scales < HIGHEST), axis=1)
        lower, log_sigma = self.factor(np.where(inside[:, None], scales, 1.0))
        density = -0.5 * (log_sigma + misfit(lower)) + m.log_prior(scales)
        return np.where(inside, density + m.log_jacobian(points), -np.inf)

    def draw_effects(self, scales: Floats, rng: np.random.Generator) -> tuple[EffectDraws, Floats]:
        """Draw the effects of every chain from their normal; return the residuals by row too."""
        m = self.marginal
        gap = m.effect_sd(scales) * draw_standard(self.factor(scales)[0], rng)
        by_word = gap[:, m.first :].reshape(len(gap), -1, m.data.words)
        level = gap[:, : m.groups, None] + by_word[:, :1]
        level[:, :-1] += by_word[:, 2:]
        mean = level[:, self.group_index]
        for attributes, marks, _, _ in self.parts:
            if marks is not None:
                mean[:, attributes] += (gap[:, m.groups, None] + by_word[:, 1])[:, None] * marks
        totals, counts, fitted = (
            x[:, self.position]
            for x in (self.totals, self.counts, (self.weights * mean) @ self.members)
        )
        kind = np.arange(m.group_index.size)
        theta, eta = m.draw_attributes(totals, counts, fitted, kind, scales, rng)
        mean += theta[:, self.order, None] + eta[:, self.order] @ self.members.T
        np.subtract(self.residual, mean, out=mean)
        beta = m.prior_mean + gap
        effects = EffectDraws(beta, beta[:, m.group_index] + theta, eta)
        return effects, mean[:, *self.rows]


def _with_associated(values: Floats, marks: Floats | None) -> Floats:
    """Values of words and, if any row is associated, those of the associated rows beside them."""
    return values if marks is None else np.concatenate([values, values * marks], axis=2)


@dataclass
class _State:
    points: Floats
    log_freedom: Floats
    weights: Floats


def fit_student(
    table: Table,
    prior: CrossedPrior | None = None,
    *,
    interaction: bool = True,
    draws: int = 4000,
    seed: int = 0,
) -> Fit:
    """Fit the crossed model with Student-t errors; ν is one of its quantities, `freedom`."""
    notes = check_contrasts(table)
    data, prior = CrossedData.of(table, interaction=interaction), prior or CrossedPrior()
    prior = prior.for_model(interaction=interaction)
    marginal = Marginal(data, prior, pooled=False)
    weighted = WeightedMarginal(marginal)
    rng = np.random.default_rng(seed)
    normal = Marginal(data, prior)
    start = start_scales(normal, STUDENT_CHAINS, rng)
    state = _State(
        start,
        rng.uniform(np.log(5.0), np.log(40.0), STUDENT_CHAINS),
        np.ones((STUDENT_CHAINS, data.y.size)),
    )
    proposal = Proposal.fit(start_scales(normal, 40 * STUDENT_CHAINS, rng))
    for length in STUDENT_WARM_UP:
        visited = []
        for _ in range(length):
            _sweep(weighted, state, proposal, rng)
            visited.append(state.points)
        proposal = Proposal.fit(np.concatenate(visited[length // 3 :]))
    length, chains, attributes = draws // STUDENT_CHAINS, STUDENT_CHAINS, data.group.size
    scales, beta = (
        np.empty((chains, length, size)) for size in (len(data.scales), marginal.prior_mean.size)
    )
    log_freedom = np.empty((chains, length))
    # by attribute, then by draw, as in `draw_attributes`
    theta, eta = (
        np.empty((size, chains, length)) for size in (attributes, attributes * data.classes)
    )
    for k in range(length):
        for _ in range(THIN):
            effects = _sweep(weighted, state, proposal, rng)
        scales[:, k] = marginal.to_scales(state.points)
        log_freedom[:, k] = state.log_freedom
        beta[:, k] = effects.beta
        theta[:, :, k] = effects.theta.T
        eta[:, :, k] = effects.eta.reshape(chains, -1).T
    freedom = np.exp(log_freedom).ravel()
    drawn = EffectDraws(
        beta.reshape(freedom.size, -1),
        theta.reshape(attributes, -1).T,
        eta.reshape(len(eta), -1).T.reshape(freedom.size, attributes, -1),
    )
    fit = build_crossed_fit(table, data, scales, drawn, freedom)
    note = f"crossed: Student-t errors, mean degrees of freedom {float(freedom.mean()):.1f}"
    return replace(fit, notes=(*notes, note), model=CROSSED[interaction])


def _sweep(
    weighted: WeightedMarginal, state: _State, proposal: Proposal, rng: np.random.Generator
) -> EffectDraws:
    weighted.set_weights(state.weights)
    values = weighted(state.points)
    for _ in range(STEPS):
        state.points, values = step(weighted, state.points, values, proposal, rng)
    scales = weighted.marginal.to_scales(state.points)
    effects, residuals = weighted.draw_effects(scales, rng)
    z = residuals / scales[:, :1]
    state.log_freedom = _step_freedom(state.log_freedom, z**2, rng)
    nu = np.exp(state.log_freedom)[:, None]
    state.weights = rng.gamma((nu + 1) / 2, 2 / (nu + z**2))
    return effects


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
