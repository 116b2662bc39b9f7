"""The result of fitting a model: its draws, diagnostics and how well it predicts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from evenhand.display import Result
from evenhand.errors import MissingExtraError
from evenhand.posterior.tables import CONNECTIONS, CONTRASTS, GROUP_OF, Table
from evenhand.results import Measurement, Measurements
from evenhand.statistics.intervals import Floats
from evenhand.statistics.mcmc import diagnose, hdi_error, sorted_hdi
from evenhand.threads import choose

if TYPE_CHECKING:
    import pandas as pd

Ints = NDArray[np.int64]


QUANTITIES = 64
"""Number of quantities that one thread diagnoses at a time."""
CHAINS = 4
"""Independent draws are arranged as this many chains, so that the same diagnostics apply."""


@dataclass(frozen=True, slots=True)
class Term:
    """Values (entries × draws) and the entry of every row of the table; -1: no entry, zero."""

    values: Floats
    index: Ints

    def at(self, rows: slice | Ints) -> Floats:
        """Values of these rows (rows × draws), or once (1 × draws) if all have the same."""
        index = self.entries(rows)
        values = self.values[index]
        values[index < 0] = 0.0
        return values

    def entries(self, rows: slice | Ints) -> Ints:
        """The entry of each of these rows, or one if all have the same."""
        index = self.index[rows]
        return index[:1] if (index == index[0]).all() else index


@dataclass(frozen=True)
class Predictor:
    """Mean of a row as a sum of terms, scale of its error, and degrees of freedom or None."""

    terms: tuple[Term, ...]
    scale: Term
    freedom: Floats | None = None

    def residual(self, y: Floats, rows: slice | Ints) -> Floats:
        """Distance of these rows less its mean in every draw (rows × draws)."""
        entries = [term.entries(rows) for term in self.terms]
        shared = np.zeros(self.terms[0].values.shape[1])
        for term, index in zip(self.terms, entries, strict=True):
            if len(index) == 1 and index[0] >= 0:
                shared += term.values[index[0]]
        result = y[rows, None] - shared
        for term, index in zip(self.terms, entries, strict=True):
            if len(index) > 1:
                for row, entry in zip(result, index.tolist(), strict=True):
                    if entry >= 0:
                        row -= term.values[entry]
        return np.asarray(result)

    @cached_property
    def _density(self) -> tuple[Term, Term]:
        """Factor of a residual, and constant of the log likelihood."""
        scale, nu = self.scale.values, self.freedom
        if nu is None:
            factor, constant = np.sqrt(0.5) / scale, np.asarray(-0.5 * np.log(2 * np.pi))
        else:
            from scipy.special import gammaln

            factor = 1 / (np.sqrt(nu) * scale)
            constant = gammaln((nu + 1) / 2) - gammaln(nu / 2) - 0.5 * np.log(np.pi * nu)
        index = self.scale.index
        return Term(factor, index), Term(constant - np.log(scale), index)

    def log_likelihood(self, y: Floats, rows: slice | Ints) -> Floats:
        """Log likelihood of these rows in every draw (rows × draws)."""
        factor, constant = self._density
        z = self.residual(y, rows)
        z *= factor.at(rows)
        np.square(z, out=z)
        if self.freedom is not None:
            np.log1p(z, out=z)
            z *= (self.freedom + 1) / 2
        return np.subtract(constant.at(rows), z, out=z)

    def replicate(self, draws: Ints, rng: np.random.Generator) -> Floats:
        """Simulate one table per draw (draws × rows)."""
        terms = tuple(Term(term.values[:, draws], term.index) for term in self.terms)
        scale = self.scale.values[:, draws][self.scale.index]
        noise = (
            rng.standard_normal(scale.shape)
            if self.freedom is None
            else rng.standard_t(np.broadcast_to(self.freedom[draws], scale.shape))
        )
        rows = slice(None)
        mean = -Predictor(terms, self.scale).residual(np.zeros(self.scale.index.size), rows)
        return np.asarray((mean + scale * noise).T)


@dataclass(frozen=True, slots=True)
class Diagnostics:
    """Largest R-hat and smallest effective sample size, and the quantity that has the latter."""

    rhat_max: float
    ess_min: float
    worst: str


@dataclass(frozen=True, kw_only=True, repr=False)
class Fit(Result):
    """A fitted model.

    Attributes
    ----------
    model : str
    table : Table
    draws : mapping of str to array of shape (chains, draws) or (chains, draws, entries)
        Draws of every quantity.
    entries : mapping of str to tuple of str
        Names along the third axis.
    levels : mapping of str to array of shape (chains, draws)
        Means of the connection classes, on the model's own scale.
    predictor : Predictor
    sampler : str
    seed : int or None
    notes : tuple of str
    """

    model: str
    table: Table
    draws: Mapping[str, Floats] = field(repr=False)
    entries: Mapping[str, tuple[str, ...]] = field(repr=False)
    levels: Mapping[str, Floats] = field(repr=False)
    predictor: Predictor = field(repr=False)
    sampler: str = "exact"
    seed: int | None = None
    notes: tuple[str, ...] = ()

    @property
    def size(self) -> int:
        """Number of draws in all chains."""
        first = next(iter(self.draws.values()))
        return int(first.shape[0] * first.shape[1])

    def log_likelihood(self, start: int, stop: int) -> Floats:
        """Compute the log likelihood of the rows from `start` to `stop` (rows × draws)."""
        return self.predictor.log_likelihood(self.table.distance, slice(start, stop))

    def diagnostics(self) -> Diagnostics:
        """Compute the largest R-hat and the smallest bulk or tail effective sample size."""
        names = [
            label
            for name, draws in self._quantities()
            for label, _ in _columns(name, draws, self.entries)
        ]
        ratio, bulk, tail = self._mixing
        sizes = np.minimum(bulk, tail)
        return Diagnostics(float(ratio.max()), float(sizes.min()), names[int(sizes.argmin())])

    def relative_efficiency(self) -> float:
        """Compute the mean number of effective draws per draw, which PSIS needs."""
        levels = len(self.levels)
        bulk = self._mixing[1]
        return min(float(bulk[: bulk.size - levels].mean()) / self.size, 1.0)

    @cached_property
    def _mixing(self) -> tuple[Floats, Floats, Floats]:
        """R-hat, bulk and tail effective sample size of every quantity, in blocks of them."""
        blocks = []
        for _, draws in self._quantities():
            flat = draws.reshape(*draws.shape[:2], -1)
            blocks += [flat[..., k : k + QUANTITIES] for k in range(0, flat.shape[2], QUANTITIES)]
        with ThreadPoolExecutor(choose().threads) as pool:
            parts = list(pool.map(diagnose, blocks))
        ratio, bulk, tail = (np.concatenate(column) for column in zip(*parts, strict=True))
        return ratio, bulk, tail

    def _quantities(self) -> Iterator[tuple[str, Floats]]:
        yield from self.draws.items()
        for level, draws in self.levels.items():
            yield f"level[{level}]", draws

    def to_frame(self) -> pd.DataFrame:
        """Return the draws, one row per draw and one column per quantity."""
        import pandas as pd

        chains, length = next(iter(self.draws.values())).shape[:2]
        columns: dict[str, NDArray[np.generic]] = {
            "chain": np.repeat(np.arange(chains), length),
            "draw": np.tile(np.arange(length), chains),
        }
        for name, draws in self._quantities():
            columns |= dict(_columns(name, draws, self.entries))
        return pd.DataFrame(columns)

    def to_arviz(self, *, log_likelihood: bool = False) -> Any:
        """Return the draws as `arviz.InferenceData`, for its plots and diagnostics.

        Parameters
        ----------
        log_likelihood : bool
            Whether to add the log likelihood of every row in every draw, as `arviz.loo` needs it;
            it takes chains × draws × rows numbers.

        Returns
        -------
        arviz.InferenceData
            Groups `posterior` (with the means of the connection classes as `level`) and
            `observed_data`. Needs the extra `arviz`.

        """
        try:
            import arviz
        except ImportError:
            raise MissingExtraError("arviz", "to_arviz", "evenhand[arviz]") from None
        chains, length = next(iter(self.draws.values())).shape[:2]
        posterior = {name: np.asarray(draws) for name, draws in self.draws.items()}
        names = {name: f"{name}_entry" for name, draws in posterior.items() if draws.ndim == 3}
        coordinates: dict[str, Any] = {names[name]: list(self.entries[name]) for name in names}
        dims = {name: [axis] for name, axis in names.items()}
        if self.levels:
            posterior["level"] = np.stack(list(self.levels.values()), axis=-1)
            dims["level"], coordinates["connection"] = ["connection"], list(self.levels)
        observed = np.asarray(self.table.distance, dtype=float)
        coordinates["row"], dims["distance"] = np.arange(observed.size), ["row"]
        more: dict[str, Any] = {}
        if log_likelihood:
            rows = self.log_likelihood(0, observed.size)
            more["log_likelihood"] = {"distance": rows.T.reshape(chains, length, observed.size)}
        return arviz.from_dict(
            posterior=posterior,
            observed_data={"distance": observed},
            coords=coordinates,
            dims=dims,
            **more,
        )

    def _headline(self) -> str:
        return f"{self.model}: {self.size:,} draws ({self.sampler}) on {self.table._headline()}"

    def _rows(self) -> Sequence[Mapping[str, object]]:
        measured = {**measure_contrasts(self), **measure_levels(self)}
        return [row for m in measured.values() for row in Measurements([m])._rows()]


def in_chains(draws: Floats) -> Floats:
    """Arrange independent draws (draws × …) as chains × draws × …"""
    return draws.reshape(CHAINS, -1, *draws.shape[1:])


def _columns(
    name: str, draws: Floats, entries: Mapping[str, tuple[str, ...]]
) -> Iterator[tuple[str, Floats]]:
    if draws.ndim == 2:
        yield name, draws.ravel()
        return
    for k, entry in enumerate(entries[name]):
        yield f"{name}[{entry}]", draws[..., k].ravel()


ALL = "all"
"""The level of baseline, which has no connection classes."""
DELTA = "associated-different"
INTERVAL = "highest-density interval of the posterior"


def contrast_draws(fit: Fit) -> dict[str, Floats]:
    """Return the draws of every contrast whose two classes the fit has."""
    return {
        f"{first}-{second}": fit.levels[first] - fit.levels[second]
        for first, second in CONTRASTS
        if first in fit.levels and second in fit.levels
    }


def measure_contrasts(fit: Fit, prob: float = 0.95) -> dict[str, Measurement]:
    """Measure the contrasts between connection classes.

    Parameters
    ----------
    fit : Fit
        Draw conclusions from the model crossed; the contrasts of the other models have intervals
        that are too short.
    prob : float, default 0.95
        Probability of the highest-density intervals.

    Returns
    -------
    dict of str to Measurement
        By contrast, such as "associated-different". The value is the posterior mean; `details` has
        the standard deviation `sd`, the 50 % interval `inner_low` and `inner_high`, and
        `p_below_zero`, the probability that the contrast is negative. With crossed,
        associated-different has one part per class and one per protected word.

    Notes
    -----
    Only associated-different compares the same attributes and has the ideal value 0; below 0,
    stereotypes are closer to their own class. The others compare different attributes, which may
    differ for reasons other than bias. So does associated-different in a table of one class, in
    which no attribute is associated with one word and different for another.

    Examples
    --------
    >>> from evenhand.posterior import fit, simulate
    >>> result = fit(simulate(delta=-0.2, seed=1), draws=400)
    >>> delta = measure_contrasts(result)["associated-different"]
    >>> delta.high < 0, [part.query for part in delta.select("class")]
    (True, ['class1', 'class2', 'class3'])
    """
    contrasts = {}
    for name, draws in contrast_draws(fit).items():
        is_delta = name == DELTA
        levels = [CONNECTIONS.index(level) for level in name.split("-")]
        contrasts[name] = _measure(
            fit,
            draws,
            prob,
            metric="posterior_contrast",
            query=name,
            n=int(np.isin(fit.table.connection, levels).sum()),
            ideal=0.0 if is_delta and fit.table.shared_attributes else None,
            worse="lower" if name.startswith("associated") else "away",
            parts=tuple(_delta_parts(fit, prob)) if is_delta else (),
        )
    return contrasts


def measure_levels(fit: Fit, prob: float = 0.95) -> dict[str, Measurement]:
    """Measure the mean distance to every connection class.

    Parameters
    ----------
    fit : Fit
    prob : float, default 0.95
        Probability of the highest-density intervals.

    Returns
    -------
    dict of str to Measurement
        By connection class, with one part per protected word; `details` as in `measure_contrasts`.
        Empty for baseline, which has no connection classes. The levels of coefficients are its
        coefficients, of which only differences are identified; those of its words are m + co.
    """
    table, words = fit.table, {level: list[Measurement]() for level in fit.levels}
    rows = {
        level: np.bincount(table.word[_rows_of(table, level)], minlength=len(table.words))
        for level in fit.levels
    }
    for i, level, draws in word_level_draws(fit):
        words[level].append(
            _measure(
                fit,
                draws,
                prob,
                metric="posterior_level",
                query=table.words[i],
                by="word",
                n=int(rows[level][i]),
                group=table.word_class[i],
            )
        )
    return {
        level: _measure(
            fit,
            draws,
            prob,
            metric="posterior_level",
            query=level,
            n=int(rows[level].sum()),
            parts=tuple(words[level]),
        )
        for level, draws in fit.levels.items()
    }


def measure_all_words(fit: Fit, prob: float) -> dict[str, Measurement]:
    """Measure the mean of all words of baseline, with one part per word."""
    return measure_levels(replace(fit, levels={ALL: fit.draws["m"].mean(axis=-1)}), prob)


def _rows_of(table: Table, level: str) -> NDArray[np.bool_]:
    if level == ALL:
        return np.ones(table.rows, dtype=bool)
    return np.asarray(table.connection == CONNECTIONS.index(level))


def _measure(
    fit: Fit, draws: Floats, prob: float, *, group: str = "", **fields: Any
) -> Measurement:
    """Summarise the draws of one quantity; `group` is the class of a word."""
    ordered = np.sort(draws, axis=None)
    low, high = sorted_hdi(ordered, prob)
    inner_low, inner_high = sorted_hdi(ordered, 0.5)
    details = {
        "model": fit.model,
        "sd": float(np.std(draws, ddof=1)),
        "inner_low": inner_low,
        "inner_high": inner_high,
        "p_below_zero": float(np.mean(draws < 0)),
    }
    if fields.get("ideal") is not None and not fields.get("by"):
        details["interval_error"] = hdi_error(draws, prob)  # the judge decides by these alone
    return Measurement(
        value=float(np.mean(draws)),
        low=low,
        high=high,
        prob=prob,
        interval=INTERVAL,
        subject=fit.table.source,
        seed=fit.seed,
        notes=fit.notes,
        details={**details, "class": group} if group else details,
        **{"ideal": None, "worse": "away", **fields},
    )


def _delta_parts(fit: Fit, prob: float) -> Iterator[Measurement]:
    """Mean δ_i of every class, then δ_i of every protected word with associated attributes."""
    if "delta_word" not in fit.draws:
        return
    table, deltas = fit.table, fit.draws["delta_word"]
    rows = table.group[table.attribute] == 0
    counts = np.bincount(table.word[rows], minlength=len(table.words))
    associated = np.bincount(table.word[table.connection == 0], minlength=len(table.words)) > 0
    labels = np.array(table.word_class)
    ideal = 0.0 if table.shared_attributes else None
    fields: dict[str, Any] = {"metric": "posterior_contrast", "ideal": ideal, "worse": "lower"}
    for label in dict.fromkeys(table.word_class):
        if label:
            members = labels == label
            draws = deltas[..., members].mean(axis=-1)
            n = int(counts[members].sum())
            yield _measure(fit, draws, prob, query=label, by="class", n=n, **fields)
    for i in np.flatnonzero(associated):
        yield _measure(
            fit,
            deltas[..., i],
            prob,
            query=table.words[i],
            by="word",
            n=int(counts[i]),
            group=table.word_class[i],
            **fields,
        )


def word_level_draws(fit: Fit) -> Iterator[tuple[int, str, Floats]]:
    """Word, level and the draws of their mean: a sum of effects, or the model's own c."""
    draws, entries, table = fit.draws, fit.entries, fit.table
    if ALL in fit.levels:
        for i in range(len(table.words)):
            yield i, ALL, draws["m"][..., i]
    elif fit.levels:
        for i, k in zip(*np.divmod(np.unique(table.word * 4 + table.connection), 4), strict=True):
            level = CONNECTIONS[k]
            name = GROUP_OF[level]
            if "c" in draws:
                total = draws["c"][..., entries["c"].index(f"{table.words[i]}, {level}")]
            elif fit.model == "coefficients":
                total = draws["m"][..., i] + draws["co"][..., entries["co"].index(level)]
            else:
                total = draws["gamma"][..., entries["gamma"].index(name)] + draws["word"][..., i]
                if f"slope_{name}" in draws:
                    total = total + draws[f"slope_{name}"][..., i]
                if level == "associated":
                    total = total + draws["delta_word"][..., i]
            yield int(i), level, total
