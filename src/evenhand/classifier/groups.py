"""Two groups of people before a classifier: counts by true and predicted class, and resamples."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.classifier.predictions import Labels, Predictions, read_predictions
from evenhand.errors import InputError
from evenhand.instruments import Instrument, Run, option
from evenhand.results import Items, Measurement
from evenhand.statistics.clusters import ClusterMean, cluster_mean
from evenhand.statistics.intervals import Floats
from evenhand.statistics.power import quantile
from evenhand.statistics.sequential import Seed
from evenhand.statistics.shrinkage import root_mean_square, shrink

Rate: TypeAlias = Literal["tpr", "fpr", "parity"]
"""Who is predicted to be in a class: those who are, those who are not, or everybody."""
OTHERS = "the others"
PIECE = 1 << 22
"""Cells of resampled tables that are held in memory at once."""
MAX_CELLS = 100_000
"""Contrasts × classes² of a column of groups; so many take some minutes."""


@dataclass(frozen=True, kw_only=True)
class ClassMetric(Instrument):
    """Base of the measures of all classes or of a positive one."""

    shared: ClassVar[Mapping[str, Any]] = {"subjects": ("predictions",), "audit": True}
    relation: ClassVar[str] = ""
    """What a value above 0 says of the positive class, before the two groups."""
    needs_scores: ClassVar[bool] = False
    positive: str | int | None = option(
        None,
        metavar="CLASS",
        help="The class whose rates are measured; inferred for 0/1, yes/no, true/false.",
    )

    def measure(
        self, subject: Predictions, material: None = None, run: Run = Run()
    ) -> list[Measurement]:
        """One result per contrast of groups of people, by default."""
        if self.needs_scores and not subject.scores:
            raise InputError(
                f"{self.declaration.name}: expected scores of the classes, got predictions alone"
            )
        people, notes = subject.originals, subject.notes
        known = people.scores if self.needs_scores else people.classes
        positive = people.find_positive(self.positive, known)
        if positive is not None:
            notes = (*notes, f"positive class: '{positive}'")
        chosen = replace(self, positive=positive)
        return [replace(m, notes=notes) for m in chosen.measure_people(people, run)]

    def measure_people(self, people: Predictions, run: Run) -> Iterator[Measurement]:
        """The results of predictions without versions."""
        for contrast in contrasts(people):
            yield self.measure_contrast(people, contrast, run)

    def measure_contrast(self, subject: Predictions, contrast: Contrast, run: Run) -> Measurement:
        """Measure one contrast."""
        raise NotImplementedError

    def measured(self, classes: Iterable[str]) -> list[str]:
        """The positive class, or all."""
        return list(classes) if self.positive is None else [str(self.positive)]

    @classmethod
    def clause(cls, measurement: Measurement) -> str:
        """What a value says: of a positive class, for which group it is higher."""
        positive = measurement.details.get("positive")
        if not positive or not cls.relation:
            return super().clause(measurement)
        first, second = measurement.details["groups"]
        if measurement.value < 0:
            first, second = second, first
        return f"{cls.relation.format(positive=positive)} for '{first}' than for '{second}'"

    @classmethod
    def example(cls) -> tuple[Predictions, None]:
        """Predictions and scores of a simulated classifier that recognises women less often."""
        from evenhand.simulate.predictions import biased_predictions

        table = biased_predictions(400, gap=0.2, seed=1)
        scores = {name: f"score {name}" for name in sorted(set(table["y_true"]))}
        return read_predictions(table, group="gender", score=scores), None


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
        """Counts by group, true and predicted class (2, classes, classes)."""
        k = len(self.classes)
        return np.bincount(self._cells(), minlength=2 * k * k).reshape(2, k, k).astype(float)

    def _cells(self) -> NDArray[np.intp]:
        k = len(self.classes)
        return ((~self.first).astype(np.intp) * k + self.true) * k + self.pred

    def resampled(self, draws: int, seed: int | Seed) -> Iterator[Floats]:
        """Tables of resampled texts (some draws, 2, classes, classes)."""
        rng, k = np.random.default_rng(seed), len(self.classes)
        flat = self.counts().ravel()
        for size in _pieces(draws, 2 * k * k):
            drawn = rng.multinomial(len(self.rows), flat / flat.sum(), size)
            yield drawn.reshape(-1, 2, k, k).astype(float)

    def exchanged(
        self, rate: Rate, draws: int, seed: int | Seed
    ) -> tuple[Floats, Iterator[Floats]]:
        """The gaps of all classes, and those with the groups exchanged at random (draws, classes).

        Texts are exchanged within each true class, for parity among all. Clusters of people of one
        group are exchanged as units, among those of which most are of the same class. In a cluster
        of both groups the sign of their difference is drawn, so these gaps contain the difference
        within such clusters, not that between them.
        """
        if self.clusters is not None:
            return self._exchanged_clusters(rate, draws, seed)
        tables = self._exchanged_texts(draws, seed, within=rate != "parity")
        return gap_table(self.counts(), rate), (gap_table(table, rate) for table in tables)

    def _exchanged_texts(self, draws: int, seed: int | Seed, *, within: bool) -> Iterator[Floats]:
        rng, k = np.random.default_rng(seed), len(self.classes)
        counts = self.counts().astype(np.int64)
        both = counts.sum(axis=0)
        strata = [(c * k + np.flatnonzero(both[c]), counts[0, c].sum()) for c in range(k)]
        if not within:
            strata = [(np.flatnonzero(both), counts[0].sum())]
        for size in _pieces(draws, 2 * k * k):
            table = np.zeros((size, k * k))
            for cells, of_first in strata:  # the cells that have texts, not k² of them
                if len(cells):
                    table[:, cells] = rng.multivariate_hypergeometric(
                        both.flat[cells], int(of_first), size, "marginals"
                    )
            first = table.reshape(size, k, k)
            yield np.stack([first, both - first], axis=1)

    def _exchanged_clusters(
        self, rate: Rate, draws: int, seed: int | Seed
    ) -> tuple[Floats, Iterator[Floats]]:
        hits, sizes = self._by_cluster(rate)  # (2, clusters, classes)
        of_group = np.maximum(sizes.sum(axis=1), 1)
        less = hits - sizes * (hits.sum(axis=(0, 1)) / of_group.sum(axis=0))
        weight = (1 / of_group).sum(axis=0)
        rates = hits / np.maximum(sizes, 1)
        people = self._people()
        both, first = np.minimum(*people) > 0, people[0] > 0
        # of a cluster of both groups: their difference, or the only group's if a class has one
        shared = sizes[0] * sizes[1] / np.maximum(sizes.sum(axis=0), 1)
        within = np.where(
            shared > 0, (rates[0] - rates[1]) * shared * weight, less[0] / of_group[0]
        )
        within = np.where((shared == 0) & (sizes[0] == 0), -less[1] / of_group[1], within)[both]
        # of a cluster of one group: above the rate of all
        own = less.sum(axis=0)[~both] * weight
        centre = less.sum(axis=0)[~both].sum(axis=0) / of_group[1]
        sides = first[~both]
        strata = np.zeros(len(sides), dtype=np.intp)
        if rate != "parity":
            strata = self._classes_of_clusters()[~both]
        observed = within.sum(axis=0) + sides @ own - centre

        def draw() -> Iterator[Floats]:
            rng = np.random.default_rng(seed)
            for size in _pieces(draws, len(both) + len(self.classes)):
                chosen = np.zeros((size, len(sides)))
                for stratum in np.unique(strata):
                    members = np.flatnonzero(strata == stratum)
                    chosen[:, members] = rng.permuted(np.tile(sides[members], (size, 1)), axis=1)
                signs = rng.integers(0, 2, (size, len(within))) * 2.0 - 1
                yield signs @ within + chosen @ own - centre

        return observed, draw()

    def _people(self) -> NDArray[np.intp]:
        """Counts of rows by group and cluster (2, clusters)."""
        of = self._codes()
        return np.stack([np.bincount(of[g], minlength=of.max() + 1) for g in self.sides])

    @property
    def sides(self) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """The rows of the first group, and those of the second."""
        return self.first, ~self.first

    def _codes(self) -> NDArray[np.intp]:
        return np.arange(len(self.rows)) if self.clusters is None else self.clusters

    def _classes_of_clusters(self) -> NDArray[np.intp]:
        k, of = len(self.classes), self._codes()
        table = np.bincount(of * k + self.true, minlength=(int(of.max()) + 1) * k).reshape(-1, k)
        return np.asarray(table.argmax(axis=1))

    def _by_cluster(self, rate: Rate) -> tuple[Floats, Floats]:
        """Counts by group, cluster and class: those taken for the class, and all."""
        k, of = len(self.classes), self._codes()
        n = int(of.max()) + 1
        right = self.true == self.pred

        def count(rows: NDArray[np.bool_], labels: NDArray[np.intp]) -> Floats:
            cells = np.bincount(of[rows] * k + labels[rows], minlength=n * k)
            return cells.reshape(n, k).astype(float)

        hits, sizes = [], []
        for side in self.sides:
            everybody = np.bincount(of[side], minlength=n)[:, None].astype(float)
            if rate == "tpr":
                hits.append(count(side & right, self.true))
                sizes.append(count(side, self.true))
            elif rate == "fpr":
                hits.append(count(side & ~right, self.pred))
                sizes.append(everybody - count(side, self.true))
            else:
                hits.append(count(side, self.pred))
                sizes.append(np.broadcast_to(everybody, (n, k)))
        return np.stack(hits), np.stack(sizes)

    def means(self, values: Floats, rows: NDArray[np.bool_]) -> tuple[ClusterMean, ClusterMean]:
        """The means of both groups, among some rows, over clusters or texts."""
        of = self._codes()
        number, sides = int(of.max()) + 1, (rows & side for side in self.sides)
        first, second = (cluster_mean(values[side], of[side], number) for side in sides)
        return first, second


def _pieces(draws: int, cells: int) -> Iterator[int]:
    """The numbers of draws that are held in memory at once."""
    step = max(1, PIECE // cells)
    return (min(step, draws - start) for start in range(0, draws, step))


def unit_items(predictions: Predictions, value: float, influence: Floats) -> Items:
    """The value with each text, or cluster of texts, left out, from the influence of every row."""
    names, codes = predictions.units
    own = np.bincount(codes, influence, len(names))
    n = max(2, len(names))
    return Items({"item": names, "without": value - own * n / (n - 1)})


def pooled(results: Sequence[Measurement], variances: Sequence[float]) -> list[Measurement]:
    """The results of classes shrunk towards their mean; none where there are too few."""
    spread, means = shrink([m.value for m in results], variances)
    if math.isnan(spread):
        return []
    shrunken = []
    for m, mean in zip(results, means, strict=True):
        low, high = mean.interval(m.prob)
        shrunken.append(
            replace(
                m,
                by="pooled",
                value=mean.value,
                low=low,
                high=high,
                p_value=None,
                test="",
                interval="empirical Bayes over classes (Morris 1983)",
                details={"spread": spread},
            )
        )
    return shrunken


def without_noise(
    values: Floats,
    variances: Sequence[float],
    deviations: Floats,
    freedom: float,
    run: Run,
    draws: int,
) -> tuple[float, float, float]:
    """The root mean square of gaps with its noise removed, and its interval.

    The noise is simulated from what each cluster adds to each gap (gaps, clusters).
    """
    lengths = np.sqrt((deviations**2).sum(axis=1))
    unit = deviations / np.where(lengths > 0, lengths, 1.0)[:, None]
    rng = np.random.default_rng(run.seed)
    noise = rng.standard_normal((draws, unit.shape[1])) @ unit.T
    noise[:, lengths == 0] = rng.standard_normal((draws, int((lengths == 0).sum())))
    level = (1 + run.prob) / 2
    stretch = (quantile(level, freedom) if freedom else 1e9) / quantile(level)
    drawn = values + noise * np.sqrt(variances)
    corrected, low, high = root_mean_square(values, drawn, run.prob, stretch=stretch)
    return corrected, low, min(high, 1.0)


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
    """The contrasts of every column of groups: the two of them, or each with all others.

    Of counterfactual texts the predictions are those of the originals (`Predictions.originals`).
    """
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
        pairs = [(levels[0], levels[1])] if len(levels) == 2 else [(g, OTHERS) for g in levels]
        cells = len(pairs) * len(names) ** 2
        if cells > MAX_CELLS:
            raise InputError(
                f"group '{column}': expected at most {MAX_CELLS:,} contrasts × classes², got "
                f"{len(levels):,} groups and {len(names):,} classes ({cells:,}): "
                "merge the smallest groups or classes"
            )
        rows = np.array([i for i, label in enumerate(labels) if label is not None])
        own = np.array([labels[i] for i in rows])
        clusters = None
        if predictions.clusters:
            given = np.array([predictions.clusters[i] for i in rows])
            clusters = np.unique(given, return_inverse=True)[1]
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
