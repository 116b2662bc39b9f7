"""Means of models on the same items, their paired differences, their ranks, and what would decide.

Every interval respects what items have in common. Items that belong to documents are sampled with
them; items that were all asked in the same templates are crossed with these, and both are sampled.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.files import document, save_json
from evenhand.instruments import correct_p_values
from evenhand.results import Comparison, Estimate, Measurement, Measurements
from evenhand.scores.reading import Scores, read
from evenhand.statistics.correlation import kendall
from evenhand.statistics.crossed import Mean, clustered
from evenhand.statistics.power import smallest_effect
from evenhand.text.tables import Source

Ints: TypeAlias = NDArray[np.intp]
MANY = 4
"""Ranks are compared over so many models or more."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScoreAnalysis(Result):
    """What scores say about their models.

    Parameters
    ----------
    measurements : Measurements
        One per model, its name as `query`. Parts: by "group" the mean of each group, by "contrast"
        the difference of two; by "scope", where items are crossed with templates, the mean with
        these templates as the only ones of interest.
    comparisons : tuple of Comparison
        One per pair of models, on the items that both have; Holm's p as `details["p_holm"]`, and
        what would decide (`details["needed"]`).
    ranking : tuple of Measurement
        The rank of each model from the first, with the ranks that it could have.
    agreement : tuple of Measurement
        Kendall's τ of the models' means in two clusters, or groups.

    """

    measurements: Measurements
    comparisons: tuple[Comparison, ...]
    ranking: tuple[Measurement, ...]
    agreement: tuple[Measurement, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sentence(self) -> str:
        """What was found, in one sentence."""
        names = [m.query for m in self.ranking if m.details["could_be_first"]]
        best, models = self.ranking[0], len(self.ranking)
        value = f"{best.query} has {best.details['mean']:.3f}"
        if models == 1:
            m = self.measurements[0]
            return f"{value} [{m.low:.3f}, {m.high:.3f}] over {m.n:,} scores."
        clear = sum(c.details.get("p_holm", 1.0) < 1 - best.prob for c in self.comparisons)
        pairs = f"{clear} of {len(self.comparisons)} pairs of models differ clearly"
        if len(names) == 1:
            return f"{best.query} is first of {models} models; {pairs}."
        shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
        return f"{len(names)} of {models} models could be first ({shown}); {pairs}."

    def to_dict(self, *, items: bool = False) -> dict[str, Any]:
        def rows(results: Sequence[Measurement | Comparison]) -> list[dict[str, Any]]:
            return [result.to_dict(items=items) for result in results]

        return {
            "measurements": rows(self.measurements),
            "comparisons": rows(self.comparisons),
            "ranking": rows(self.ranking),
            "agreement": rows(self.agreement),
            "notes": list(self.notes),
            "sentence": self.sentence,
        }

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        def measured(name: str) -> tuple[Measurement, ...]:
            return tuple(Measurement.from_dict(m) for m in row[name])

        return cls(
            measurements=Measurements(measured("measurements")),
            comparisons=tuple(Comparison.from_dict(c) for c in row["comparisons"]),
            ranking=measured("ranking"),
            agreement=measured("agreement"),
            notes=tuple(row["notes"]),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything as one JSON document."""
        save_json(path, document(**self.to_dict()))

    def plot(self, *, title: str | None = None, width: int = 380) -> Any:
        """A forest plot of the models' means (an Altair chart)."""
        return Measurements(sorted(self.measurements, key=lambda m: -m.value)).plot(
            title=title, width=width
        )

    def _headline(self) -> str:
        return self.sentence

    def _rows(self) -> Sequence[Mapping[str, Any]]:
        return self.measurements._rows()


def analyze(
    *sources: Source | Scores,
    item: str | None = None,
    model: str | None = None,
    score: str | None = None,
    cluster: str | Sequence[str] | None = None,
    group: str | None = None,
    best: Literal["highest", "lowest"] = "highest",
    gap: bool = False,
    fixed: bool = False,
    prob: float = 0.95,
) -> ScoreAnalysis:
    r"""Compare models by scores of the same items.

    Parameters
    ----------
    *sources : path, DataFrame or Scores
        As for `read`.
    item, model, score, cluster, group
        As for `read`.
    best : {"highest", "lowest"}
        Which mean is ranked first.
    gap : bool
        Whether models are compared by the difference of the means of two groups, the first in
        alphabetical order less the second, instead of by the mean.
    fixed : bool
        Whether templates that all items were asked in are the only ones of interest. By default
        they are a sample like the items, and intervals are for other templates too.
    prob : float
        Probability of the intervals; differences, corrected by Holm, decide ranks at 1 - `prob`.

    Returns
    -------
    ScoreAnalysis

    Notes
    -----
    Means and differences: `evenhand.statistics.crossed.clustered`. A model's rank is at least one
    more than the number of models that are clearly better, and at most the number of models less
    those that are clearly worse, *clearly* by Holm's correction for all pairs; so all the ranks
    together are right with probability `prob` (Mogstad et al. 2024). It could be first if no model
    is clearly better.

    `details["needed"]` of a comparison is the number of items (or clusters) with which a difference
    as large as that observed would be found with a power of 80 %, tested alone; None where more
    items would not do, since the templates differ too much.

    Examples
    --------
    >>> import pandas as pd
    >>> rng = np.random.default_rng(0)
    >>> rows = [
    ...     {"item": i, "model": name, "score": float(rng.random() < share)}
    ...     for i in range(400) for name, share in (("a", 0.5), ("b", 0.8))
    ... ]
    >>> analysis = analyze(pd.DataFrame(rows))
    >>> [(m.query, round(m.value, 2)) for m in analysis.ranking]
    [('b', 1.0), ('a', 2.0)]
    >>> analysis.comparisons[0].change.low > 0.2
    True
    """
    if len(sources) == 1 and isinstance(sources[0], Scores):
        scores = sources[0]
    else:
        tables = [source for source in sources if not isinstance(source, Scores)]
        if len(tables) < len(sources):
            raise InputError("scores: expected one Scores, or paths and DataFrames, got both")
        scores = read(*tables, item=item, model=model, score=score, cluster=cluster, group=group)
    if not 0 < prob < 1:
        raise InputError(f"prob: expected a number between 0 and 1, got {prob!r}")
    if np.ptp(scores.scores) == 0:
        raise InputError(f"scores: expected some that differ, got {scores.scores[0]:g} everywhere")
    return _Analysis(scores, best, gap, fixed, prob).run()


class _Analysis:
    """The rows of scores as numbers, and the results one by one."""

    def __init__(self, scores: Scores, best: str, gap: bool, fixed: bool, prob: float) -> None:
        self.scores, self.best, self.gap = scores, best, gap
        self.fixed, self.prob = fixed, prob
        self.models = list(dict.fromkeys(scores.models))
        self.groups = sorted(set(scores.groups))
        if gap and len(self.groups) != 2:
            names = ", ".join(self.groups) or "none"
            raise InputError(f"gap: expected two groups of items, got {names}")
        self.first = np.array([group == self.groups[0] for group in scores.groups or ()])
        self.nested, self.crossed = _design(scores)
        factors = {"item": scores.items, **scores.clusters}
        coded = {name: np.unique(labels, return_inverse=True) for name, labels in factors.items()}
        self.levels = {name: levels for name, (levels, _) in coded.items()}
        self.codes: dict[str, Ints] = {name: code for name, (_, code) in coded.items()}
        cells = self.codes["item"]
        if self.crossed:
            cells = cells * len(self.levels[self.crossed]) + self.codes[self.crossed]
        of_model = np.array([self.models.index(name) for name in scores.models])
        self.rows = [np.flatnonzero(of_model == number) for number in range(len(self.models))]
        self.cells = [cells[rows] for rows in self.rows]
        self.metric = "gap" if gap else "mean_score"
        self.notes: list[str] = []
        if gap:
            self.notes.append(f"Compared is the gap {self.groups[0]} - {self.groups[1]}.")

    def run(self) -> ScoreAnalysis:
        measurements = [self.measure(number) for number in range(len(self.models))]
        compared = [
            self.compare(measurements, first, second)
            for first, second in combinations(range(len(self.models)), 2)
        ]
        comparisons = correct_p_values([c for c in compared if c is not None])
        if len(comparisons) < len(compared):
            self.notes.append(
                f"{len(compared) - len(comparisons)} pairs of models share fewer than two items "
                "and were not compared."
            )
        return ScoreAnalysis(
            measurements=Measurements(measurements),
            comparisons=tuple(comparisons),
            ranking=self.rank(measurements, comparisons),
            agreement=tuple(self.agreement()),
            notes=tuple(self.notes),
        )

    # ---------------------------------------------------------------------------------- means

    def mean(self, values: Any, rows: Ints, *, crossed: bool = True, **how: Any) -> Mean:
        """What models are compared by, of values that belong to these rows."""
        names = [self.nested, *([self.crossed] if self.crossed and crossed else [])]
        factors = {name: self.codes[name][rows] for name in names}
        usual = {"groups": self.first[rows] if self.gap else None, "fixed": self.fixed}
        return clustered(values, factors, **{**usual, **how})

    def result(self, metric: str, query: str, mean: Mean, n: int, **more: Any) -> Measurement:
        low, high = mean.interval(self.prob)
        return Measurement(
            metric=metric,
            query=query,
            value=mean.value,
            low=low,
            high=high,
            n=n,
            ideal=None,
            worse="lower" if self.best == "highest" else "higher",
            prob=self.prob,
            interval=_interval(mean),
            **more,
        )

    def measure(self, number: int) -> Measurement:
        rows, scores = self.rows[number], self.scores
        values, name = scores.scores[rows], self.models[number]
        more = {"subject": name}
        parts = []
        own = np.array([scores.groups[i] for i in rows]) if scores.groups else np.array([])
        for group in self.groups:
            chosen = own == group
            if chosen.any():
                mean = self.mean(values[chosen], rows[chosen], groups=None)
                n = int(chosen.sum())
                parts.append(self.result("mean_score", group, mean, n, by="group", **more))
        if self.gap and len(parts) < 2:
            raise InputError(f"gap: model '{name}': expected scores of both groups, got one's")
        if len(self.groups) == 2 and len(parts) == 2 and not self.gap:
            mean = self.mean(values, rows, groups=self.first[rows])
            query = f"{self.groups[0]} - {self.groups[1]}"
            parts.append(self.result("gap", query, mean, len(rows), by="contrast", **more))
        if self.crossed and not self.fixed:
            mean = self.mean(values, rows, fixed=True)
            query = f"with these {len(self.levels[self.crossed])} {self.crossed}s"
            parts.append(self.result(self.metric, query, mean, len(rows), by="scope", **more))
        factors = [self.nested, *([self.crossed] if self.crossed else [])]
        counts = {f"{each}s": len(np.unique(self.codes[each][rows])) for each in factors}
        return self.result(
            self.metric,
            name,
            self.mean(values, rows),
            len(rows),
            parts=tuple(parts),
            left_out=tuple(text for text in scores.left_out if f"({name})" in text),
            details={**counts, "items": len(np.unique(self.codes["item"][rows]))},
            **more,
        )

    # ---------------------------------------------------------------------------- differences

    def compare(
        self, measurements: Sequence[Measurement], first: int, second: int
    ) -> Comparison | None:
        """The second model less the first; None where they share fewer than two items."""
        scores, notes = self.scores.scores, []
        shared, one, two = np.intersect1d(
            self.cells[first], self.cells[second], assume_unique=True, return_indices=True
        )
        if shared.size:
            rows = self.rows[first][one]
            values = scores[self.rows[second][two]] - scores[rows]
            mean = self.mean(values, rows)
        elif self.crossed:  # other templates: the mean of each item over a model's own
            means = [self._item_means(model) for model in (first, second)]
            items = [item for item in means[0] if item in means[1]]
            if len(items) < 2:
                return None
            rows = np.array([means[0][item][1] for item in items])
            values = np.array([means[1][item][0] - means[0][item][0] for item in items])
            mean = self.mean(values, rows, crossed=False)
            notes.append(
                f"The two models have no {self.crossed} in common: each item's mean over a model's "
                f"own {self.crossed}s is compared, and these count as the only ones of interest."
            )
        else:
            return None
        if len(values) < 2 or math.isnan(mean.value):
            return None
        low, high = mean.interval(self.prob)
        details = {
            "needed": self._needed(mean, values, rows, crossed=not notes),
            "of": f"{self.nested}s",
            "now": len(np.unique(self.codes[self.nested][rows])),
        }
        return Comparison(
            before=replace(measurements[first], parts=()),
            after=replace(measurements[second], parts=()),
            change=Estimate(value=mean.value, low=low, high=high, prob=self.prob),
            interval=f"paired, {_interval(mean)}",
            paired=len(values),
            p_value=mean.p_value if mean.variance else float(mean.value == 0),
            test="two-sided t test of no difference",
            details=details,
            notes=tuple(notes),
        )

    def _item_means(self, model: int) -> dict[int, tuple[float, int]]:
        rows = self.rows[model]
        items = self.codes["item"][rows]
        sums, counts = np.bincount(items, self.scores.scores[rows]), np.bincount(items)
        first = dict(zip(items.tolist(), rows.tolist(), strict=True))
        return {item: (float(sums[item] / counts[item]), row) for item, row in first.items()}

    def _needed(self, mean: Mean, values: Any, rows: Ints, *, crossed: bool) -> int | None:
        """How many clusters of the first kind would find the difference that was observed."""
        now = len(np.unique(self.codes[self.nested][rows]))
        wanted = (abs(mean.value) / smallest_effect(1.0, alpha=1 - self.prob)) ** 2
        if math.isnan(mean.variance) or not wanted:
            return None
        inside = mean.variance  # the part that shrinks with more of them
        if self.crossed and not self.fixed and crossed:
            inside = min(mean.variance, self.mean(values, rows, fixed=True).variance)
        rest = mean.variance - inside
        return None if wanted <= rest else math.ceil(now * inside / (wanted - rest))

    # ---------------------------------------------------------------------------------- ranks

    def rank(
        self, measurements: Sequence[Measurement], comparisons: Sequence[Comparison]
    ) -> tuple[Measurement, ...]:
        sign = 1.0 if self.best == "highest" else -1.0
        better = dict.fromkeys(self.models, 0)
        worse = dict.fromkeys(self.models, 0)
        for c in comparisons:
            if c.details.get("p_holm", 1.0) < 1 - self.prob:
                ends = [c.before.query, c.after.query]
                winner, loser = ends[::-1] if sign * c.change.value > 0 else ends
                better[loser] += 1
                worse[winner] += 1
        ordered = sorted(measurements, key=lambda m: -sign * m.value)
        return tuple(
            Measurement(
                metric="rank",
                query=m.query,
                subject=m.query,
                value=place,
                low=1 + better[m.query],
                high=len(ordered) - worse[m.query],
                n=m.n,
                ideal=None,
                worse="higher",
                prob=self.prob,
                interval="clear differences of pairs, all corrected together (Holm)",
                details={"mean": m.value, "could_be_first": better[m.query] == 0},
            )
            for place, m in enumerate(ordered, 1)
        )

    def agreement(self) -> list[Measurement]:
        """Kendall's τ of the models' means between clusters that are crossed, and groups."""
        agreements = []
        columns = [("group", self.scores.groups)] if len(self.groups) > 1 and not self.gap else []
        if self.crossed:
            columns.insert(0, (self.crossed, self.scores.clusters[self.crossed]))
        for by, labels in columns:
            own = np.array(labels)
            means: dict[str, dict[int, float]] = {}
            for level in dict.fromkeys(labels):
                for number, rows in enumerate(self.rows):
                    chosen = rows[own[rows] == level]
                    values = self.scores.scores[chosen]
                    sides = [values]
                    if self.gap:
                        sides = [values[self.first[chosen]], values[~self.first[chosen]]]
                    if all(side.size for side in sides):
                        mean = float(sides[0].mean() - (sides[1].mean() if self.gap else 0.0))
                        means.setdefault(level, {})[number] = mean
            for one, two in combinations(means, 2):
                shared = [model for model in means[one] if model in means[two]]
                if len(shared) < MANY:
                    continue
                value, low, high = kendall(
                    [means[one][m] for m in shared], [means[two][m] for m in shared], prob=self.prob
                )
                agreements.append(
                    Measurement(
                        metric="rank_agreement",
                        query=f"{one}, {two}",
                        value=value,
                        low=low,
                        high=high,
                        n=len(shared),
                        ideal=1.0,
                        worse="lower",
                        prob=self.prob,
                        interval="jackknife over models, on the scale of artanh",
                        by=by,
                    )
                )
        return agreements


def needed_text(c: Comparison) -> str:
    """What would find the difference of two models, in a few words."""
    if c.details["needed"] is None:
        return f"not by {c.details['of']}" if c.change.value else "–"
    if c.details["needed"] <= c.details["now"]:
        return "enough"
    return f"{c.details['needed']:,} {c.details['of']}"


def _interval(mean: Mean) -> str:
    if math.isnan(mean.variance):
        return "none: what is sampled has a single level"
    return f"Student's, over {' and '.join(f'{name}s' for name in mean.over)}"


def _design(scores: Scores) -> tuple[str, str | None]:
    """The factor that items are, or belong to; and the one that they are crossed with."""
    nested: list[str] = []
    crossed: list[str] = []
    for name, labels in scores.clusters.items():
        of_item: dict[str, set[str]] = {}
        for item, label in zip(scores.items, labels, strict=True):
            of_item.setdefault(item, set()).add(label)
        one_each = all(len(own) == 1 for own in of_item.values())
        (nested if one_each else crossed).append(name)
    for names, what in ((nested, "belong to"), (crossed, "are crossed with")):
        if len(names) > 1:
            raise InputError(
                f"cluster: expected one column that items {what}, got {' and '.join(names)}"
            )
    return (nested[0] if nested else "item"), (crossed[0] if crossed else None)
