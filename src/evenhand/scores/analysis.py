"""Means of models on the same items, their paired differences, their ranks, and what would decide.

Every interval respects what items have in common. Items that belong to documents are sampled with
them; items that were all asked in the same templates are crossed with these, and both are sampled.
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import combinations, product
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.display import Result
from evenhand.errors import InputError
from evenhand.files import document, save_json
from evenhand.instruments import bias_test
from evenhand.judging import Judgement, judge, judge_pairs, ranks, simultaneous
from evenhand.results import Comparison, Estimate, Measurement, Measurements
from evenhand.scores.reading import Scores, read
from evenhand.statistics.correlation import kendall
from evenhand.statistics.crossed import Mean, clustered
from evenhand.statistics.power import smallest_effect
from evenhand.statistics.sizes import SizeKind
from evenhand.text.tables import Source

if TYPE_CHECKING:
    from evenhand.charts import Chart

Ints: TypeAlias = NDArray[np.intp]
MANY = 4
"""The fewest models whose ranks are compared."""


@dataclass(frozen=True, slots=True, kw_only=True, repr=False)
class ScoreAnalysis(Result):
    """What scores say about their models.

    Parameters
    ----------
    measurements : Measurements
        One per model, its name as `query`. Parts: by "group" the mean of each group, by "contrast"
        the difference of two; by "scope", where items are crossed with templates, the mean with
        these templates as the only ones of interest. With an ideal, `details["outcome"]` is what
        the judge says of it: found, undecided or none found.
    comparisons : tuple of Comparison
        One per pair of models, on the items that both have. `p_corrected` and the interval are for
        all pairs together, `details["outcome"]` is "differs" or "undecided", and
        `details["needed"]` what would decide. With an ideal the change is that of the distance
        from it. A part by "scope" is the same for these templates only: it describes and decides
        nothing.
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
        best, models = self.ranking[0], len(self.ranking)
        ideal = self.measurements[0].ideal
        clauses = []
        if models == 1:
            m = self.measurements[0]
            clauses.append(
                f"{m.query} has {m.value:.3f} [{m.low:.3f}, {m.high:.3f}] over {m.n:,} scores"
            )
        else:
            names = [m.query for m in self.ranking if m.details["could_be_first"]]
            first = "first" if ideal is None else f"first, that is nearest to {ideal:g}"
            shown = ", ".join(names[:5]) + (f" and {len(names) - 5} more" if len(names) > 5 else "")
            pairs = Counter(c.details["outcome"] for c in self.comparisons)
            clauses += [
                f"{best.query} is {first}, of {models} models"
                if best.high == 1
                else f"{len(names)} of {models} models could be {first} ({shown})",
                f"{pairs['differs']} of {len(self.comparisons)} pairs of models differ",
            ]
        if ideal is not None:
            outcomes = Counter(m.details["outcome"] for m in self.measurements)
            clauses.append(
                f"a difference from {ideal:g} is found in {outcomes['found']} of {models} models"
            )
        return f"{'; '.join(clauses)}."

    def to_dict(self, *, items: bool = False) -> dict[str, object]:
        results = {
            name: [result.to_dict(items=items) for result in getattr(self, name)]
            for name in ("measurements", "comparisons", "ranking", "agreement")
        }
        return {**results, "notes": list(self.notes), "sentence": self.sentence}

    @classmethod
    def from_dict(cls, row: Mapping[str, Any]) -> Self:
        return cls(
            measurements=Measurements(map(Measurement.from_dict, row["measurements"])),
            comparisons=tuple(map(Comparison.from_dict, row["comparisons"])),
            ranking=tuple(map(Measurement.from_dict, row["ranking"])),
            agreement=tuple(map(Measurement.from_dict, row["agreement"])),
            notes=tuple(row["notes"]),
        )

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write everything as one JSON document."""
        save_json(path, document(**self.to_dict()))

    def plot(self, *, title: str | None = None, width: int = 380) -> Chart:
        """A forest plot of the models' means by rank (an Altair chart)."""
        return Measurements(self.by_rank()).plot(title=title, width=width)

    def by_rank(self) -> list[Measurement]:
        """The measurements in the order of the ranking."""
        order = {m.query: place for place, m in enumerate(self.ranking)}
        return sorted(self.measurements, key=lambda m: order[m.query])

    def _headline(self) -> str:
        return self.sentence

    def _rows(self) -> Sequence[Mapping[str, object]]:
        return self.measurements._rows()


@checked
def analyze(
    *sources: Source | Scores,
    item: str | None = None,
    model: str | None = None,
    score: str | None = None,
    cluster: str | Sequence[str] | None = None,
    group: str | None = None,
    task: str | Sequence[str] | None = None,
    best: Literal["highest", "lowest"] = "highest",
    ideal: float | None = None,
    gap: bool = False,
    fixed: bool = False,
    prob: float = 0.95,
) -> ScoreAnalysis:
    r"""Compare models by scores of the same items.

    Parameters
    ----------
    *sources : path, DataFrame or Scores
        As for `read`.
    item, model, score, cluster, group, task
        As for `read`.
    best : {"highest", "lowest"}
        Which mean is ranked first.
    ideal : float, optional
        The mean without bias, such as 0.5 for the share of stereotyping sentences that a model
        prefers. The mean nearest to it is ranked first, models are compared by their distances
        from it, and each is judged against it.
    gap : bool
        Whether models are compared by the difference of the means of two groups, the first in
        alphabetical order less the second, instead of by the mean.
    fixed : bool
        Whether templates that all items were asked in are the only ones of interest. By default
        they are a sample like the items, and intervals are for other templates too.
    prob : float
        Probability of the intervals; differences, corrected for all pairs, decide ranks at
        1 - `prob`.

    Returns
    -------
    ScoreAnalysis

    Notes
    -----
    Means and differences: `evenhand.statistics.crossed.clustered`. There are never more degrees of
    freedom than templates less one: with two or three templates hardly any difference can be
    found, and models that have fewer than two in common are not compared for other templates.

    Two models differ if Holm's p for all pairs is below 1 - `prob` and the interval, which is
    simultaneous for all pairs (Bonferroni), excludes 0. A model's rank is at least one more than
    the number of models that are better and differ, and at most the number of models less those
    that are worse and differ; so all the ranks together are right with probability `prob`
    (Mogstad et al. 2024). It could be first if no model that is better differs.

    The change of the distance from an ideal c is $|b - c| - |a - c|$, which is
    $\pm \min(|b - a|, |a + b - 2c|)$: it is 0 where either of the two is 0. Its interval contains
    what the intervals of both, each at half the level, allow, and p is twice the larger of their
    p-values. Two models on different sides of the ideal differ only if one of them is clearly
    further from it.

    `details["needed"]` of a comparison is the number of items (or clusters) with which a difference
    as large as that observed would be found with a power of 80 %, tested alone; None where more
    items would not do, since the templates differ too much or are too few.

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
        columns = {"item": item, "model": model, "score": score, "group": group}
        scores = read(*tables, **columns, cluster=cluster, task=task)
    if not 0 < prob < 1:
        raise InputError(f"prob: expected a number between 0 and 1, got {prob!r}")
    if np.ptp(scores.scores) == 0:
        raise InputError(f"scores: expected some that differ, got {scores.scores[0]:g} everywhere")
    if ideal is not None and not math.isfinite(ideal):
        raise InputError(f"ideal: expected a number, got {ideal!r}")
    if ideal is not None and best == "lowest":
        raise InputError("best: expected none with an ideal, which is first itself, got 'lowest'")
    return _Analysis(scores, best, ideal, gap, fixed, prob).run()


@dataclass(frozen=True, slots=True)
class _Distance:
    """The distance of a second model from the ideal less that of the first.

    `difference` is the second mean less the first, `total` the sum of both less twice the ideal.
    """

    difference: Mean
    total: Mean

    @property
    def value(self) -> float:
        return _smaller(self.difference.value, self.total.value)

    @property
    def p_value(self) -> float | None:
        ps = [mean.p_value for mean in (self.difference, self.total)]
        return None if None in ps else min(1.0, 2 * max(p for p in ps if p is not None))

    def interval(self, prob: float) -> tuple[float, float]:
        boxes = [mean.interval((1 + prob) / 2) for mean in (self.difference, self.total)]
        corners = [_smaller(*corner) for corner in product(*boxes)]
        return min(corners), max(corners)

    @property
    def open(self) -> Mean:
        """That of the two which decides less clearly."""
        return max(
            (self.difference, self.total), key=lambda m: 1.0 if m.p_value is None else m.p_value
        )


def _smaller(one: float, two: float) -> float:
    """The smaller of two sizes, with the sign of their product: |b| - |a| of b - a and a + b."""
    return math.copysign(1.0, one) * math.copysign(1.0, two) * min(abs(one), abs(two))


class _Analysis:
    """The rows of scores as numbers, and the results one by one."""

    def __init__(
        self,
        scores: Scores,
        best: str,
        ideal: float | None,
        gap: bool,
        fixed: bool,
        prob: float,
    ) -> None:
        self.scores, self.best, self.ideal, self.gap = scores, best, ideal, gap
        self.fixed, self.prob = fixed, prob
        # scores that reach 0 and 1 and nothing beyond are taken to be bounded by them
        self.bounded = scores.scores.min() == 0 and scores.scores.max() == 1
        self.models = list(dict.fromkeys(scores.models))
        self.groups = sorted(set(scores.groups))
        if gap and len(self.groups) != 2:
            names = ", ".join(self.groups) or "none"
            raise InputError(f"gap: expected two groups of items, got {names}")
        self.first = np.array([group == self.groups[0] for group in scores.groups or ()])
        self.nested, self.crossed = _design(scores)
        self.factors = [self.nested, *([self.crossed] if self.crossed else [])]
        factors = {"item": scores.items, **scores.clusters}
        self.levels = {name: sorted(set(labels)) for name, labels in factors.items()}
        self.codes = {name: _numbers(labels, self.levels[name]) for name, labels in factors.items()}
        cells = self.codes["item"]
        if self.crossed:
            cells = cells * len(self.levels[self.crossed]) + self.codes[self.crossed]
        of_model = _numbers(scores.models, self.models)
        self.rows = [np.flatnonzero(of_model == number) for number in range(len(self.models))]
        self.cells = [cells[rows] for rows in self.rows]
        self.metric = "gap" if gap else "mean_score"
        self.notes: list[str] = []
        if gap:
            self.notes.append(f"Compared is the gap {self.groups[0]} - {self.groups[1]}.")

    def run(self) -> ScoreAnalysis:
        measurements = self.judged([self.measure(number) for number in range(len(self.models))])
        pairs = list(combinations(range(len(self.models)), 2))
        compared = [self.contrast(*pair) for pair in pairs]
        self.notes += [
            f"{count} {'pair' if count == 1 else 'pairs'} of models {reason}."
            for reason, count in Counter(
                found if isinstance(found, str) else found.note for found in compared
            ).items()
            if reason
        ]
        known = [
            (pair, found)
            for pair, found in zip(pairs, compared, strict=True)
            if not isinstance(found, str)
        ]
        judgements = judge_pairs(
            [(c.change.value, c.change.p_value, c.change.interval) for _, c in known], self.prob
        )
        comparisons = tuple(
            self.comparison([measurements[i] for i in pair], found, judgement)
            for (pair, found), judgement in zip(known, judgements, strict=True)
        )
        return ScoreAnalysis(
            measurements=Measurements(measurements),
            comparisons=comparisons,
            ranking=self.rank(measurements, comparisons),
            agreement=tuple(self.agreement()),
            notes=tuple(self.notes),
        )

    # ---------------------------------------------------------------------------------- means

    def mean(
        self, values: Any, rows: Ints, limits: tuple[float, float] | None = None, **how: Any
    ) -> Mean:
        """What models are compared by, of values that belong to these rows.

        `limits` are those of a mean of the values, where scores are bounded.
        """
        factors = {name: self.codes[name][rows] for name in self.factors}
        how = {"groups": self.first[rows] if self.gap else None, "fixed": self.fixed, **how}
        low, high = limits or (0.0, 1.0)
        if how["groups"] is not None:
            low, high = low - high, high - low
        mean = clustered(values, factors, **how)
        return replace(mean, limits=(low, high)) if self.bounded else mean

    def result(self, metric: str, query: str, mean: Mean, n: int, **more: Any) -> Measurement:
        low, high = mean.interval(self.prob)
        return Measurement(
            metric=metric,
            query=query,
            value=mean.value,
            low=low,
            high=high,
            n=n,
            ideal=self.ideal if metric == self.metric else None,
            worse=("lower" if self.best == "highest" else "higher")
            if self.ideal is None
            else "away",
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
        names = (*self.factors, "item")
        counts = {f"{each}s": len(np.unique(self.codes[each][rows])) for each in names}
        mean = self.mean(values, rows)
        tested: dict[str, Any] = {}
        if self.ideal is not None:
            tested = {"p_value": mean.test(self.ideal), "test": "two-sided t test of the ideal"}
        return self.result(
            self.metric,
            name,
            mean,
            len(rows),
            parts=tuple(parts),
            left_out=tuple(text for text in scores.left_out if f"({name})" in text),
            details={**counts, "df": mean.freedom},
            **more,
            **tested,
        )

    def judged(self, measurements: Sequence[Measurement]) -> list[Measurement]:
        """The measurements with what the judge says of them, where there is an ideal."""
        if self.ideal is None:
            return list(measurements)
        size: SizeKind = ""
        if self.bounded and self.ideal == (0.0 if self.gap else 0.5):
            size = "gap" if self.gap else "share"
        judgements = judge(
            [bias_test(m, label=m.query, role="decides", size=size) for m in measurements]
        )
        return [
            replace(
                m,
                p_corrected=judgement.p,
                family=judgement.family,
                details={**m.details, "outcome": judgement.outcome},
            )
            for m, judgement in zip(measurements, judgements, strict=True)
        ]

    # ---------------------------------------------------------------------------- differences

    def contrast(self, first: int, second: int) -> _Contrast | str:
        """The second model less the first, or why they are not compared."""
        shared, one, two = np.intersect1d(
            self.cells[first], self.cells[second], assume_unique=True, return_indices=True
        )
        if self.crossed and not shared.size:
            one, two = (self.codes[self.crossed][self.rows[model]] for model in (first, second))
            if not np.isin(one, two).any():
                return f"have no {self.crossed} in common and were not compared"
        few = "share fewer than two items and were not compared"
        if shared.size < 2:
            return few
        rows = self.rows[first][one]
        a, b = self.scores.scores[rows], self.scores.scores[self.rows[second][two]]

        def change(**how: object) -> Mean | _Distance:
            difference = self.mean(b - a, rows, (-1.0, 1.0), **how)
            if self.ideal is None:
                return difference
            total, twice = self.mean(a + b, rows, (0.0, 2.0), **how), 2 * self.ideal
            low, high = total.limits
            return _Distance(
                difference,
                replace(total, value=total.value - twice, limits=(low - twice, high - twice)),
            )

        found = change()
        if math.isnan(found.value):
            return few
        note, scope = "", None
        if self.crossed and not self.fixed:
            scope = change(fixed=True)
            if len(np.unique(self.codes[self.crossed][rows])) < 2:
                note = (
                    f"have a single {self.crossed} in common, which says nothing about other "
                    f"{self.crossed}s"
                )
        now = len(np.unique(self.codes[self.nested][rows]))
        return _Contrast(found, scope, len(rows), now, note)

    def comparison(
        self, models: Sequence[Measurement], found: _Contrast, judgement: Judgement
    ) -> Comparison:
        """The comparison of two models as the judge sees it among all pairs."""
        ends = (judgement.test.value, judgement.low, judgement.high)
        change = Estimate.of(ends, self.prob)
        together = f"; {judgement.family} intervals that hold together (Bonferroni)"
        together = together if judgement.family > 1 else ""
        details: dict[str, object] = {
            "outcome": "differs" if judgement.found else "undecided",
            "needed": self._needed(found),
            "of": f"{self.nested}s",
            "now": found.now,
        }
        if self.ideal is not None:
            details["distance"] = change.to_dict()
        before, after = (replace(m, parts=()) for m in models)
        parts = []
        if found.scope is not None:
            scopes = [m.select("scope")[0] for m in models]
            limits = found.scope.interval(simultaneous(self.prob, judgement.family))
            estimate = Estimate.of((found.scope.value, *limits), self.prob)
            parts.append(
                Comparison(
                    before=scopes[0],
                    after=scopes[1],
                    change=estimate,
                    interval=f"paired, {_interval(_open(found.scope))}{together}",
                    paired=found.paired,
                    details={} if self.ideal is None else {"distance": estimate.to_dict()},
                )
            )
        what = "difference" if self.ideal is None else "difference of the distances from the ideal"
        return Comparison(
            before=before,
            after=after,
            change=change,
            interval=f"paired, {_interval(_open(found.change))}{together}",
            paired=found.paired,
            p_value=found.change.p_value,
            p_corrected=judgement.p,
            family=judgement.family,
            test=f"two-sided t test of no {what}",
            parts=tuple(parts),
            details=details,
        )

    def _needed(self, found: _Contrast) -> int | None:
        """How many clusters of the first kind would find the difference that was observed."""
        mean = _open(found.change)
        df = None if found.scope is None else mean.freedom  # of few templates
        if math.isnan(mean.variance) or not mean.value:
            return None
        wanted = (mean.value / smallest_effect(1.0, alpha=1 - self.prob, df=df)) ** 2
        inside = mean.variance  # the part that shrinks with more of them
        if isinstance(found.change, _Distance) and isinstance(found.scope, _Distance):
            scope = found.scope.difference if mean is found.change.difference else found.scope.total
            inside = min(inside, scope.variance)
        elif isinstance(found.scope, Mean):
            inside = min(inside, found.scope.variance)
        rest = mean.variance - inside
        return None if wanted <= rest else math.ceil(found.now * inside / (wanted - rest))

    # ---------------------------------------------------------------------------------- ranks

    def rank(
        self, measurements: Sequence[Measurement], comparisons: Sequence[Comparison]
    ) -> tuple[Measurement, ...]:
        def distance(m: Measurement) -> float:
            if self.ideal is not None:
                return abs(m.value - self.ideal)
            return -m.value if self.best == "highest" else m.value

        rises = self.best == "highest" and self.ideal is None  # a positive change is better
        better = [
            (c.after.query, c.before.query)
            if (c.change.value > 0) == rises
            else (c.before.query, c.after.query)
            for c in comparisons
            if c.details["outcome"] == "differs"
        ]
        possible = ranks(self.models, better)
        ordered = sorted(measurements, key=distance)
        return tuple(
            Measurement(
                metric="rank",
                query=m.query,
                subject=m.query,
                value=place,
                low=possible[m.query][0],
                high=possible[m.query][1],
                n=m.n,
                ideal=None,
                worse="higher",
                prob=self.prob,
                interval="pairs that differ, all corrected together (Holm)",
                details={
                    "mean": m.value,
                    "could_be_first": possible[m.query][0] == 1,
                    **({} if self.ideal is None else {"distance": distance(m)}),
                },
            )
            for place, m in enumerate(ordered, 1)
        )

    def plain_mean(self, rows: Ints) -> float:
        """What models are compared by, without an interval; NaN where there are no scores."""
        values = self.scores.scores[rows]
        sides = [values[self.first[rows]], values[~self.first[rows]]] if self.gap else [values]
        means = [float(side.mean()) if side.size else math.nan for side in sides]
        return means[0] - means[1] if self.gap else means[0]

    def agreement(self) -> list[Measurement]:
        """Kendall's τ of the models' means between clusters that are crossed, and groups."""
        agreements = []
        columns = [("group", self.scores.groups)] if len(self.groups) > 1 and not self.gap else []
        if self.crossed:
            columns.insert(0, (self.crossed, self.scores.clusters[self.crossed]))
        for by, labels in columns:
            own = np.array(labels)
            means = {
                level: np.array([self.plain_mean(rows[own[rows] == level]) for rows in self.rows])
                for level in dict.fromkeys(labels)
            }
            for one, two in combinations(means, 2):
                shared = ~np.isnan(means[one] + means[two])
                if shared.sum() < MANY:
                    continue
                value, low, high = kendall(
                    means[one][shared].tolist(), means[two][shared].tolist(), prob=self.prob
                )
                agreements.append(
                    Measurement(
                        metric="rank_agreement",
                        query=f"{one}, {two}",
                        value=value,
                        low=low,
                        high=high,
                        n=int(shared.sum()),
                        ideal=1.0,
                        worse="lower",
                        prob=self.prob,
                        interval="jackknife over models, on the scale of artanh",
                        by=by,
                    )
                )
        return agreements


@dataclass(frozen=True, slots=True)
class _Contrast:
    """What two models are compared by, also with the templates as the only ones.

    `paired` is the number of scores that both have, `now` that of their items or clusters.
    """

    change: Mean | _Distance
    scope: Mean | _Distance | None
    paired: int
    now: int
    note: str = ""


def _open(change: Mean | _Distance) -> Mean:
    return change if isinstance(change, Mean) else change.open


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
    how = "Wilson's with Student's quantile" if mean.limits == (0.0, 1.0) else "Student's"
    return f"{how}, over {' and '.join(f'{name}s' for name in mean.over)}"


def _numbers(labels: Sequence[str], levels: Sequence[str]) -> Ints:
    """The number of the level of each label."""
    numbers = {level: number for number, level in enumerate(levels)}
    return np.fromiter(map(numbers.__getitem__, labels), dtype=np.intp, count=len(labels))


def _design(scores: Scores) -> tuple[str, str | None]:
    """The factor that items are, or belong to; and the one that they are crossed with."""
    nested: list[str] = []
    crossed: list[str] = []
    for name, labels in scores.clusters.items():
        first: dict[str, str] = {}
        one_each = all(
            first.setdefault(item, label) == label
            for item, label in zip(scores.items, labels, strict=True)
        )
        (nested if one_each else crossed).append(name)
    for names, what in ((nested, "belong to"), (crossed, "are crossed with")):
        if len(names) > 1:
            raise InputError(
                f"cluster: expected one column that items {what}, got {' and '.join(names)}"
            )
    return (nested[0] if nested else "item"), (crossed[0] if crossed else None)
