r"""Published models, for reproduction, sampled exactly.

Dobrzeniecka (2021, §3.4-4.1) has three models, linear with normal errors: `baseline`, one mean per
protected word; `coefficients`, that plus one coefficient per connection class; `separate`, one mean
per pair of word and class. In the model of the 2024 paper, `paper`, every connection class has its
own spread and error. None of them knows that an attribute recurs with every protected word.

Of a linear model $y = X\beta + \varepsilon$ with $\varepsilon \sim N(0, \sigma^2)$ and
$\beta \sim N(\mu_0, D)$ everything but $\sigma$ is normal given $\sigma$ and can be integrated out.
The remaining density of one number, $p(\sigma \mid y)$, is evaluated on a fine grid; every draw of
$\sigma$ is followed by a draw of $\beta$ from its normal. The draws are independent: there are no
chains, no warm-up and nothing that must converge. With
$D^{1/2} X^\top X D^{1/2} = V \Lambda V^\top$, $r = y - X\mu_0$ and
$w = V^\top D^{1/2} X^\top r$ the marginal likelihood is, for $n$ rows and $p$ columns,

$$-2 \log p(y \mid \sigma) = (n - p) \log \sigma^2 + \sum_k \log(\sigma^2 + \lambda_k)
  + \frac{1}{\sigma^2}\Big(r^\top r - \sum_k \frac{w_k^2}{\lambda_k + \sigma^2}\Big)
  + n \log 2\pi .$$

In the paper's model, within a class $y \sim N(c_w, \sigma)$ with $c_w \sim N(\mu, s)$ by protected
word, $\mu \sim N(1, .3)$, and $s$ and $\sigma \sim \text{Exp}(2)$. The classes share nothing
and are sampled separately: $(\sigma, s)$ by quadrature on a two-dimensional grid with everything
else integrated out, then $\mu$ and the $c_w$ from their normals.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.posterior.fits import Fit, Predictor, Term, in_chains
from evenhand.posterior.tables import CONNECTIONS, Table
from evenhand.statistics.intervals import Floats

Ints = NDArray[np.int64]


GRID = 4001


NAIVE = (
    "the models of Dobrzeniecka (2021) and of the 2024 paper treat the rows of an attribute as "
    "independent: their intervals for contrasts with human and none words are far too short; draw "
    "conclusions from crossed"
)


@dataclass(frozen=True, slots=True)
class LinearPosterior:
    """Posterior: a grid of the scale with its density, and the normal given a scale."""

    rotation: Floats
    eigenvalues: Floats
    projected: Floats
    prior_mean: Floats
    prior_sd: Floats
    grid: Floats
    log_density: Floats
    log_evidence: float

    def draw(self, draws: int, rng: np.random.Generator) -> tuple[Floats, Floats]:
        """Draw the coefficients (draws × p) and the scale independently."""
        log_sigma = sample_density(np.log(self.grid), self.log_density, draws, rng)
        variance = np.exp(2 * log_sigma)[:, None]
        spread = variance + self.eigenvalues
        standard = rng.standard_normal((draws, self.eigenvalues.size))
        rotated = self.projected / spread + np.sqrt(variance / spread) * standard
        coefficients = self.prior_mean + self.prior_sd * (rotated @ self.rotation.T)
        return coefficients, np.exp(log_sigma)


def solve(
    gram: Floats,
    cross: Floats,
    y: Floats,
    *,
    prior_mean: Floats,
    prior_sd: Floats,
    error_scale: float,
) -> LinearPosterior:
    """Compute the posterior of a linear model, its scale on a grid that covers all its mass.

    `gram` and `cross` are the products of its columns with each other and with y; the scale of the
    errors has a half-Cauchy prior.
    """
    rows = y.size
    eigenvalues, rotation = np.linalg.eigh(prior_sd[:, None] * gram * prior_sd)
    eigenvalues = np.clip(eigenvalues, 0.0, None)
    residual = cross - gram @ prior_mean
    projected = rotation.T @ (prior_sd * residual)
    square = float(y @ y) - prior_mean @ (cross + residual)

    def log_density(log_sigma: Floats) -> Floats:
        sigma = np.exp(log_sigma)
        v = sigma[:, None] ** 2
        misfit = square - np.sum(projected**2 / (eigenvalues + v), axis=1)
        determinant = np.sum(np.log(v + eigenvalues), axis=1)
        free = rows - eigenvalues.size
        log_likelihood = -0.5 * (
            free * 2 * log_sigma + determinant + misfit / sigma**2 + rows * np.log(2 * np.pi)
        )
        return np.asarray(log_likelihood - np.log1p((sigma / error_scale) ** 2) + log_sigma)

    grid = _grid(log_density, 0.5 * float(np.log(max(float(square), 1e-300) / rows)))
    density = log_density(grid)
    top = float(density.max())
    step = grid[1] - grid[0]
    log_evidence = top + float(np.log(np.exp(density - top).sum() * step))
    return LinearPosterior(
        rotation,
        eigenvalues,
        projected,
        prior_mean,
        prior_sd,
        np.exp(grid),
        density - log_evidence,
        log_evidence,
    )


def _grid(log_density: Callable[[Floats], Floats], guess: float) -> Floats:
    """Even grid over all the mass, refined four times."""
    low, high = guess - 15.0, guess + 15.0
    for _ in range(4):
        grid = np.linspace(low, high, GRID)
        density = log_density(grid)
        inside = np.flatnonzero(density > density.max() - 40.0)
        low = grid[max(inside[0] - 1, 0)]
        high = grid[min(inside[-1] + 1, GRID - 1)]
    return np.linspace(low, high, GRID)


def sample_density(
    grid: Floats, log_density: Floats, draws: int, rng: np.random.Generator
) -> Floats:
    """Draw from a density given on an even grid, linear between its points."""
    density = np.exp(log_density - log_density.max())
    masses = np.concatenate(([0.0], np.cumsum((density[1:] + density[:-1]) / 2)))
    uniform = rng.random(draws) * masses[-1]
    cell = np.clip(np.searchsorted(masses, uniform, side="right") - 1, 0, grid.size - 2)
    left, right = density[cell], density[cell + 1]
    rest = uniform - masses[cell]
    slope = right - left
    # root in [0, 1] of left t + slope t²/2 = rest, in a form that allows slope = 0
    t = 2 * rest / (left + np.sqrt(np.maximum(left**2 + 2 * slope * rest, 0.0)) + 1e-300)
    return np.asarray(grid[cell] + np.clip(t, 0.0, 1.0) * (grid[1] - grid[0]))


THESIS = ("baseline", "coefficients", "separate")
UNIDENTIFIED = (
    "co alone is not identified: moving every m down and every co up by the same amount leaves "
    "the likelihood unchanged, so the prior sets the width of these intervals; only differences "
    "between classes and m + co can be interpreted"
)


@dataclass(frozen=True, slots=True)
class ThesisPrior:
    """Prior of Dobrzeniecka (2021): m, c ~ N(1, .5), co ~ N(0, .5), σ ~ half-Cauchy(1)."""

    mean: float = 1.0
    mean_sd: float = 0.5
    coefficient_sd: float = 0.5
    error_scale: float = 1.0

    def of(self, block: str) -> tuple[float, float]:
        """Mean and standard deviation of the entries of a block of the design."""
        return (0.0, self.coefficient_sd) if block == "co" else (self.mean, self.mean_sd)


@dataclass(frozen=True, slots=True)
class ThesisDesign:
    """Blocks of indicator columns: name, entries, and the entry of every row."""

    names: tuple[str, ...]
    entries: tuple[tuple[str, ...], ...]
    index: tuple[Ints, ...]

    def products(self, y: Floats) -> tuple[Floats, Floats]:
        """Cross products of the columns, and of the columns and y, from counts and sums."""
        blocks = list(zip(map(len, self.entries), self.index, strict=True))
        gram = np.block(
            [
                [
                    np.bincount(i * columns + j, minlength=rows * columns).reshape(rows, columns)
                    for columns, j in blocks
                ]
                for rows, i in blocks
            ]
        )
        sums = [np.bincount(index, weights=y, minlength=size) for size, index in blocks]
        return gram.astype(float), np.concatenate(sums)


def build_design(model: str, table: Table) -> ThesisDesign:
    """Build the columns of one of the three models; levels and pairs without rows have none."""
    levels, level = np.unique(table.connection, return_inverse=True)
    if model == "baseline":
        return ThesisDesign(("m",), (table.words,), (table.word,))
    if model == "coefficients":
        names = tuple(CONNECTIONS[k] for k in levels)
        return ThesisDesign(("m", "co"), (table.words, names), (table.word, level))
    cell = table.word * len(CONNECTIONS) + table.connection
    cells, index = np.unique(cell, return_inverse=True)
    names = tuple(f"{table.words[k // 4]}, {CONNECTIONS[k % 4]}" for k in cells)
    return ThesisDesign(("c",), (names,), (index,))


def fit_thesis(
    model: str,
    table: Table,
    prior: ThesisPrior | None = None,
    *,
    draws: int = 4000,
    seed: int = 0,
) -> Fit:
    """Fit baseline, coefficients or separate by exact draws."""
    prior = prior or ThesisPrior()
    design = build_design(model, table)
    y = table.distance
    gram, cross = design.products(y)
    sizes = [len(entries) for entries in design.entries]
    blocks = zip(*(prior.of(name) for name in design.names), strict=True)
    means, sds = (np.repeat(column, sizes) for column in blocks)
    posterior = solve(gram, cross, y, prior_mean=means, prior_sd=sds, error_scale=prior.error_scale)
    beta, sigma = posterior.draw(draws, np.random.default_rng(seed))
    # what is read later are the draws of an entry
    parts = np.split(in_chains(np.asfortranarray(beta)), np.cumsum(sizes)[:-1], axis=2)
    drawn = dict(zip(design.names, parts, strict=True))
    return build_thesis_fit(model, table, design, {**drawn, "sigma": in_chains(sigma)})


def build_thesis_fit(
    model: str, table: Table, design: ThesisDesign, draws: dict[str, Floats], sampler: str = "exact"
) -> Fit:
    """Build the fit of one of the three models from its draws."""
    size = draws["sigma"].size
    terms = tuple(
        Term(draws[name].reshape(size, -1).T, index)
        for name, index in zip(design.names, design.index, strict=True)
    )
    levels: dict[str, Floats] = {}
    if model == "coefficients":
        levels = {name: draws["co"][..., k] for k, name in enumerate(design.entries[1])}
    elif model == "separate":
        endings = np.array([name.rpartition(", ")[2] for name in design.entries[0]])
        levels = {name: draws["c"][..., endings == name].mean(axis=-1) for name in table.levels}
    scale = Term(draws["sigma"].reshape(1, size), np.zeros(table.rows, dtype=np.int64))
    return Fit(
        model=model,
        table=table,
        draws=draws,
        entries=dict(zip(design.names, design.entries, strict=True)),
        levels=levels,
        predictor=Predictor(terms, scale),
        sampler=sampler,
        notes=(UNIDENTIFIED,) if model == "coefficients" else (),
    )


LogDensity = Callable[[Floats, Floats], Floats]
PAPER_GRID = 301
DEPTH = 30.0
"""The grid covers all points whose log density is within this of the maximum."""


@dataclass(frozen=True, slots=True)
class PaperPrior:
    """Prior of the 2024 paper: mean of a class ~ N(1, .3), spread and error ~ Exp(2)."""

    mean: float = 1.0
    mean_sd: float = 0.3
    spread_rate: float = 2.0
    error_rate: float = 2.0


@dataclass(frozen=True, slots=True)
class _ClassData:
    """Data of one class: rows and mean by word, sum of squares within words."""

    count: Floats
    mean: Floats
    within: float

    def log_density(self, prior: PaperPrior) -> LogDensity:
        """Log posterior of (log σ, log s), up to a constant."""

        def density(log_sigma: Floats, log_spread: Floats) -> Floats:
            sigma, spread = np.exp(log_sigma), np.exp(log_spread)
            centre, precision, rest, log_det = self.centre(sigma, spread, prior)
            free = self.count.sum() - self.count.size
            likelihood = -0.5 * (
                free * 2 * log_sigma
                + self.within / sigma**2
                + log_det
                + rest
                + np.log(precision)
                - precision * centre**2
            )
            exponential = -prior.error_rate * sigma - prior.spread_rate * spread
            return np.asarray(likelihood + exponential + log_sigma + log_spread)

        return density

    def centre(
        self, sigma: Floats, spread: Floats, prior: PaperPrior
    ) -> tuple[Floats, Floats, Floats, Floats]:
        """Mean minus prior mean, and precision, of μ; sum of squares; log determinant."""
        counts, index, words = np.unique(self.count, return_inverse=True, return_counts=True)
        gap = self.mean - prior.mean
        gaps, squares = (np.bincount(index, weights=gap**power) for power in (1, 2))
        variance = spread[..., None] ** 2 + sigma[..., None] ** 2 / counts
        precision = 1 / prior.mean_sd**2 + np.sum(words / variance, axis=-1)
        centre = np.sum(gaps / variance, axis=-1) / precision
        rest = np.sum(squares / variance, axis=-1)
        return centre, precision, rest, np.sum(words * np.log(variance), axis=-1)


def fit_paper(
    table: Table, prior: PaperPrior | None = None, *, draws: int = 4000, seed: int = 0
) -> Fit:
    """Fit the model of the 2024 paper by draws on a grid, class by class."""
    prior = prior or PaperPrior()
    rng = np.random.default_rng(seed)
    values: dict[str, list[Floats]] = {"mean": [], "spread": [], "sigma": [], "c": []}
    cells: list[str] = []
    index = np.zeros(table.rows, dtype=np.int64)
    for level in table.levels:
        rows = np.flatnonzero(table.connection == CONNECTIONS.index(level))
        words, word = np.unique(table.word[rows], return_inverse=True)
        index[rows] = len(cells) + word
        cells += [f"{table.words[k]}, {level}" for k in words]
        drawn = _draw(_summarise(table.distance[rows], word), prior, draws, rng)
        for name, value in zip(values, drawn, strict=True):
            values[name].append(value)
    stacked = {
        name: np.asfortranarray(np.concatenate(parts, axis=1)) for name, parts in values.items()
    }
    of_level = np.searchsorted(np.unique(table.connection), table.connection)
    chains = {name: in_chains(value) for name, value in stacked.items()}
    return Fit(
        model="paper",
        table=table,
        draws=chains,
        entries={**dict.fromkeys(("mean", "spread", "sigma"), table.levels), "c": tuple(cells)},
        levels={name: chains["mean"][..., k] for k, name in enumerate(table.levels)},
        predictor=Predictor((Term(stacked["c"].T, index),), Term(stacked["sigma"].T, of_level)),
    )


def _summarise(y: Floats, word: NDArray[np.int64]) -> _ClassData:
    count = np.bincount(word).astype(float)
    mean = np.bincount(word, weights=y) / count
    return _ClassData(count, mean, float(np.sum((y - mean[word]) ** 2)))


def _draw(
    data: _ClassData, prior: PaperPrior, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats, Floats, Floats]:
    sigma, spread = _grid_draws(data.log_density(prior), draws, rng)
    centre, precision, _, _ = data.centre(sigma, spread, prior)
    mean = prior.mean + centre + rng.standard_normal(draws) / np.sqrt(precision)
    within = data.count / sigma[:, None] ** 2
    between = 1 / spread[:, None] ** 2
    total = within + between
    noise = rng.standard_normal(total.shape) / np.sqrt(total)
    c = (within * data.mean + between * mean[:, None]) / total + noise
    return mean[:, None], spread[:, None], sigma[:, None], c


def _grid_draws(
    log_density: LogDensity, draws: int, rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Draw two positive numbers from the density of their logarithms.

    The box is narrowed to where the density lies. A draw is a cell of the grid with a uniform
    offset in it, so that the grid inflates a variance by about one ten-thousandth.
    """
    box = [(-14.0, 4.0), (-14.0, 4.0)]
    for _ in range(4):
        log_sigmas, log_spreads = (np.linspace(*ends, PAPER_GRID) for ends in box)
        density = log_density(log_sigmas[:, None], log_spreads[None, :])
        inside = density > density.max() - DEPTH
        box = [_span(log_sigmas, inside.any(axis=1)), _span(log_spreads, inside.any(axis=0))]
    weights = np.exp(density - density.max()).ravel()
    cell = rng.choice(weights.size, size=draws, p=weights / weights.sum())
    offset = rng.random((2, draws)) - 0.5
    row, column = np.divmod(cell, PAPER_GRID)
    log_sigma = log_sigmas[row] + offset[0] * (log_sigmas[1] - log_sigmas[0])
    log_spread = log_spreads[column] + offset[1] * (log_spreads[1] - log_spreads[0])
    return np.exp(log_sigma), np.exp(log_spread)


def _span(axis: Floats, inside: NDArray[np.bool_]) -> tuple[float, float]:
    where = np.flatnonzero(inside)
    return float(axis[max(where[0] - 1, 0)]), float(axis[min(where[-1] + 1, axis.size - 1)])
