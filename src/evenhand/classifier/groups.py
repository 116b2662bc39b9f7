"""Two groups of people before a classifier: counts by true and predicted class, and resamples."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Any, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.classifier.predictions import Labels, Predictions
from evenhand.errors import InputError
from evenhand.results import Items
from evenhand.statistics.intervals import Floats

Rate: TypeAlias = Literal["tpr", "fpr", "parity"]
"""Who is predicted to be in a class: those who are, those who are not, or everybody."""
OTHERS = "the others"
PIECE = 1 << 22
"""Cells of resampled tables that are held in memory at once."""


@dataclass(frozen=True, slots=True, eq=False)
class Contrast:
    """One group of a column and another, or all others.

    `first` is which of the rows are of the first group; rows without a group are left out.
    """

    column: str
    names: tuple[str, str]
    first: NDArray[np.bool_]
    true: NDArray[np.intp]
    pred: NDArray[np.intp]
    classes: Labels
    clusters: NDArray[np.intp] | None
    rows: NDArray[np.intp]

    @property
    def query(self) -> str:
        """Both groups, after the name of the column."""
        return f"{self.column}: {self.names[0]} - {self.names[1]}"

    def counts(self) -> Floats:
        """How many are of each group, true and predicted class (2, classes, classes)."""
        k = len(self.classes)
        return np.bincount(self._cells(), minlength=2 * k * k).reshape(2, k, k).astype(float)

    def _cells(self) -> NDArray[np.intp]:
        k = len(self.classes)
        return ((~self.first).astype(np.intp) * k + self.true) * k + self.pred

    def resampled(self, draws: int, seed: int) -> Iterator[Floats]:
        """Tables of resampled texts, or clusters of them (some draws, 2, classes, classes)."""
        rng, k = np.random.default_rng(seed), len(self.classes)
        shape = (-1, 2, k, k)
        step = max(1, PIECE // (2 * k * k))
        if self.clusters is None:
            flat = self.counts().ravel()
            for start in range(0, draws, step):
                size = min(step, draws - start)
                drawn = rng.multinomial(len(self.rows), flat / flat.sum(), size)
                yield drawn.reshape(shape).astype(float)
            return
        table = self._by_cluster(self._cells(), 2 * k * k)
        n = table.shape[0]
        for start in range(0, draws, step):
            weights = rng.multinomial(n, np.full(n, 1 / n), min(step, draws - start))
            yield np.asarray(weights @ table, dtype=float).reshape(shape)

    def permuted(self, draws: int, seed: int, *, within: bool) -> Iterator[Floats] | None:
        """Tables with the groups exchanged at random: within each true class, or among all.

        With clusters, those are exchanged as a whole, among those of which most are of the same
        class; None where one has people of both groups.
        """
        if self.clusters is None:
            return self._exchanged(draws, seed, within)
        sides = np.bincount(self.clusters, self.first) / np.bincount(self.clusters)
        if not np.isin(sides, (0, 1)).all():
            return None
        return self._exchanged_clusters(draws, seed, sides == 1, within)

    def _exchanged(self, draws: int, seed: int, within: bool) -> Iterator[Floats]:
        rng, k = np.random.default_rng(seed), len(self.classes)
        counts = self.counts().astype(np.int64)
        whole = counts.sum(axis=0)
        step = max(1, PIECE // (2 * k * k))
        for start in range(0, draws, step):
            size = min(step, draws - start)
            table = np.zeros((size, k, k))
            for c in range(k) if within else range(1):
                colours = whole[c] if within else whole.ravel()
                of_first = int(counts[0, c].sum() if within else counts[0].sum())
                if colours.sum():
                    drawn = rng.multivariate_hypergeometric(colours, of_first, size, "marginals")
                    if within:
                        table[:, c] = drawn
                    else:
                        table[:] = drawn.reshape(size, k, k)
            yield np.stack([table, whole - table], axis=1)

    def _exchanged_clusters(
        self, draws: int, seed: int, sides: NDArray[np.bool_], within: bool
    ) -> Iterator[Floats]:
        rng, k = np.random.default_rng(seed), len(self.classes)
        table = self._by_cluster(self.true * k + self.pred, k * k)
        whole = np.asarray(table.sum(axis=0), dtype=float).reshape(k, k)
        strata = np.zeros(len(sides), dtype=np.intp)
        if within:
            strata = np.asarray(self._by_cluster(self.true, k).toarray()).argmax(axis=1)
        step = max(1, PIECE // (2 * k * k))
        for start in range(0, draws, step):
            size = min(step, draws - start)
            chosen = np.zeros((size, len(sides)), dtype=np.int64)
            for stratum in np.unique(strata):
                members = np.flatnonzero(strata == stratum)
                chosen[:, members] = rng.permuted(np.tile(sides[members], (size, 1)), axis=1)
            first = np.asarray(chosen @ table, dtype=float).reshape(-1, k, k)
            yield np.stack([first, whole - first], axis=1)

    def _by_cluster(self, cells: NDArray[np.intp], size: int) -> Any:
        from scipy.sparse import csr_array

        ones = np.ones(len(cells), dtype=np.int64)
        of = np.zeros(0, dtype=np.intp) if self.clusters is None else self.clusters
        return csr_array((ones, (of, cells)), shape=(int(of.max()) + 1, size))


def unit_items(predictions: Predictions, value: float, influence: Floats) -> Items:
    """The value with each text, or cluster of texts, left out, from the influence of every row."""
    names, codes = predictions.units()
    own = np.bincount(codes, influence, len(names))
    n = max(2, len(names))
    return Items({"item": names, "without": value - own * n / (n - 1)})


def effective_sizes(
    hits: NDArray[np.bool_], first: NDArray[np.bool_], clusters: NDArray[np.intp]
) -> tuple[float, float]:
    r"""How many independent texts the texts of both groups are worth.

    The number of texts over the design effect, $\sum_c (\sum_{i \in c} r_i)^2 / \sum r_i^2$ with
    $r_i$ a hit less the rate of its group, between 1 and the mean size of a cluster (Rao & Scott
    1992). Where all texts of a group are hits, or none, it is the mean size of a cluster.
    """
    rates = np.where(first, hits[first].mean(), hits[~first].mean())
    residuals = hits - rates
    own = np.bincount(clusters, residuals)
    size = len(hits) / len(np.unique(clusters))
    square = float(residuals @ residuals)
    effect = min(max(1.0, float(own @ own) / square), size) if square else size
    return float(first.sum()) / effect, float((~first).sum()) / effect


def rate_influence(contrast: Contrast, rate: Rate, c: int) -> Floats:
    """The influence of each row of a contrast on the gap of a class."""
    of = members(contrast, rate, c)
    hit = contrast.pred == c
    influence = np.zeros(len(contrast.rows))
    for side, sign in ((contrast.first & of, 1.0), (~contrast.first & of, -1.0)):
        influence[side] = sign * (hit[side] - hit[side].mean()) / side.sum()
    return influence


def group_levels(column: str, labels: Iterable[str | None]) -> list[str]:
    """The groups of a column, two or more."""
    levels = sorted({label for label in labels if label is not None})
    if len(levels) < 2:
        got = f"only '{levels[0]}'" if levels else "none"
        raise InputError(f"group '{column}': expected two groups or more, got {got}")
    return levels


def contrasts(predictions: Predictions) -> list[Contrast]:
    """The contrasts of every column of groups: the two of them, or each with all others."""
    if not predictions.groups:
        raise InputError("group: expected a column of groups of people, got none")
    if not predictions.true:
        raise InputError("true: expected the true classes, got none")
    names = {label: number for number, label in enumerate(predictions.classes)}
    true, pred = (
        np.array([names[label] for label in labels])
        for labels in (predictions.true, predictions.pred)
    )
    compared = []
    for column, labels in predictions.columns.items():
        levels = group_levels(column, labels)
        rows = np.array([i for i, label in enumerate(labels) if label is not None])
        own = np.array([labels[i] for i in rows])
        clusters = None
        if predictions.clusters:
            given = np.array([predictions.clusters[i] for i in rows])
            clusters = np.unique(given, return_inverse=True)[1]
        pairs = [(levels[0], levels[1])] if len(levels) == 2 else [(g, OTHERS) for g in levels]
        compared += [
            Contrast(
                column,
                pair,
                own == pair[0],
                true[rows],
                pred[rows],
                predictions.classes,
                clusters,
                rows,
            )
            for pair in pairs
        ]
    return compared


def members(contrast: Contrast, rate: Rate, c: int) -> NDArray[np.bool_]:
    """The rows that a rate of a class is about."""
    if rate == "parity":
        return np.ones(len(contrast.rows), dtype=bool)
    return np.asarray((contrast.true == c) == (rate == "tpr"))


def gap_table(counts: Floats, rate: Rate) -> Floats:
    """The gap of every class in tables of counts (…, 2, classes, classes); NaN without rows."""
    hits = np.diagonal(counts, axis1=-2, axis2=-1)
    if rate == "tpr":
        of = counts.sum(axis=-1)
    else:
        hits = counts.sum(axis=-2) - (hits if rate == "fpr" else 0)
        of = counts.sum(axis=(-2, -1))[..., None] - (counts.sum(axis=-1) if rate == "fpr" else 0)
    with np.errstate(divide="ignore", invalid="ignore"):
        rates = hits / of
    return np.asarray(rates[..., 0, :] - rates[..., 1, :])
