"""How well scores separate a class within a group of people, and against everybody else.

Three areas under the ROC curve for each group (Borkan et al. 2019): within the group; of people of
the class outside the group and others within it (BPSN), low where the group's scores are too high;
of people of the class within the group and others outside it (BNSP), low where they are too low.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.classifier.groups import group_levels, unit_items
from evenhand.classifier.predictions import Predictions, read_predictions
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import Declaration, Run, instrument, option
from evenhand.results import Measurement
from evenhand.statistics.auc import auc
from evenhand.statistics.crossed import Mean
from evenhand.statistics.intervals import Floats
from evenhand.statistics.shrinkage import shrink


def _mean(
    value: float, influence: Floats, clusters: NDArray[np.intp], used: NDArray[np.bool_]
) -> Mean:
    """The value with the variance that the clusters' influence gives it."""
    own = np.bincount(clusters[used], influence[used])
    n = len(np.unique(clusters[used]))
    variance = float(own @ own) * n / (n - 1) if n > 1 else math.nan
    return Mean(value, variance, n - 1)


@dataclass(frozen=True, kw_only=True)
class _GroupAuc:
    """Base of the three: which side of the group the positives and the negatives are from."""

    declaration: ClassVar[Declaration]
    positives: ClassVar[Literal["group", "background"]]
    negatives: ClassVar[Literal["group", "background"]]

    positive: str | None = option(None, help="Only this class, as with two of them.")

    def measure(
        self,
        subject: Predictions,
        material: None = None,  # noqa: ARG002
        run: Run = Run(),
    ) -> list[Measurement]:
        name = self.declaration.name
        if not subject.scores:
            raise InputError(f"{name}: expected scores of the classes, got predictions alone")
        if not subject.true or not subject.groups:
            raise InputError(f"{name}: expected true classes and groups of people, got none")
        if self.positive is not None and self.positive not in subject.scores:
            raise UnknownNameError("class", self.positive, subject.scores)
        true, n = np.array(subject.true), len(subject)
        clusters = np.unique(subject.clusters or range(n), return_inverse=True)[1]
        measurements = []
        for column, labels in subject.columns.items():
            own = np.array([label or "" for label in labels])
            for level in group_levels(column, labels):
                sides = {"group": own == level, "background": (own != level) & (own != "")}
                measurements.append(
                    self._group(subject, f"{column}: {level}", sides, true, clusters, run)
                )
        return measurements

    def _group(
        self,
        subject: Predictions,
        query: str,
        sides: Mapping[str, NDArray[np.bool_]],
        true: NDArray[np.str_],
        clusters: NDArray[np.intp],
        run: Run,
    ) -> Measurement:
        """The mean over classes; the influence of a person is that on all of them."""
        parts, values, means, left_out = [], [], [], []
        total = np.zeros(len(true))
        for name in [self.positive] if self.positive is not None else list(subject.scores):
            of_class = true == name
            chosen = sides[self.positives] & of_class, sides[self.negatives] & ~of_class
            if min(int(rows.sum()) for rows in chosen) < 2:
                left_out.append(f"{name}: fewer than two people on one side")
                continue
            value, *shares = auc(*(subject.scores[name][rows] for rows in chosen))
            influence = np.zeros(len(true))
            for rows, share in zip(chosen, shares, strict=True):
                influence[rows] = share
            values.append(value)
            total += influence
            used = chosen[0] | chosen[1]
            mean = _mean(value, influence, clusters, used)
            means.append(mean)
            parts.append(self._result(run, name, mean, int(used.sum()), subject.name, by="class"))
        if not values:
            raise InputError(
                f"{self.declaration.name}: {query}: expected a class with two people or more on "
                "both sides, got none"
            )
        spread, shrunken = shrink(values, [mean.variance for mean in means])
        parts += [
            replace(
                self._result(run, part.query, mean, part.n, subject.name, by="pooled"),
                interval="empirical Bayes over classes, on the scale of log odds",
            )
            for part, mean in zip(parts, shrunken, strict=True)
            if not math.isnan(spread)
        ]
        used = sides[self.positives] | sides[self.negatives]
        return self._result(
            run,
            query,
            _mean(float(np.mean(values)), total / len(values), clusters, used),
            int(used.sum()),
            subject.name,
            parts=tuple(parts),
            left_out=tuple(left_out),
            items=unit_items(subject, float(np.mean(values)), total / len(values)),
            details={"classes": len(values)},
        )

    def _result(
        self, run: Run, query: str, mean: Mean, n: int, subject: str, **more: Any
    ) -> Measurement:
        """With the interval on the scale of the log odds."""
        value = min(1 - 1e-12, max(1e-12, mean.value))
        low, high = 0.0, 1.0
        if not math.isnan(mean.variance):
            centre = math.log(value / (1 - value))
            scaled = Mean(centre, mean.variance / (value * (1 - value)) ** 2, mean.freedom)
            ends = scaled.interval(run.prob)
            low, high = (1 / (1 + math.exp(-max(-700.0, min(700.0, end)))) for end in ends)
        return self.declaration.result(
            run,
            query,
            (mean.value, min(low, mean.value), max(high, mean.value)),
            subject=subject,
            n=n,
            interval="DeLong's, over people or clusters, on the scale of log odds",
            **more,
        )

    @classmethod
    def example(cls) -> tuple[Predictions, None]:
        """Scores of a simulated classifier."""
        from evenhand.simulate.predictions import biased_predictions

        table = biased_predictions(400, gap=0.2, seed=1)
        scores = {name: f"score {name}" for name in sorted(set(table["y_true"]))}
        return read_predictions(table, group="gender", score=scores), None


COMMON: dict[str, Any] = {
    "subject": "predictions",
    "audit": True,
    "source": "Borkan et al. (2019)",
    "ideal": 1.0,
    "worse": "lower",
}


@instrument(
    name="subgroup-auc",
    label="AUC within a group",
    question="How well do the scores separate a class among people of a group?",
    bias=False,
    formula="P(score of one of the class > score of another), both of the group; mean over classes",
    reading="1 where scores separate perfectly, .5 by chance. Compare the groups.",
    **COMMON,
)
@dataclass(frozen=True, kw_only=True)
class SubgroupAuc(_GroupAuc):
    """The instrument `subgroup-auc`."""

    positives: ClassVar[Literal["group", "background"]] = "group"
    negatives: ClassVar[Literal["group", "background"]] = "group"


@instrument(
    name="bpsn-auc",
    label="AUC, background positives and subgroup negatives",
    question="Do people of the group who are not of a class score below others who are?",
    bias=False,
    formula="P(score of one of the class outside the group > score of one of the group who is not)",
    reading="Low where the scores of the group are too high.",
    **COMMON,
)
@dataclass(frozen=True, kw_only=True)
class BpsnAuc(_GroupAuc):
    """The instrument `bpsn-auc`."""

    positives: ClassVar[Literal["group", "background"]] = "background"
    negatives: ClassVar[Literal["group", "background"]] = "group"


@instrument(
    name="bnsp-auc",
    label="AUC, background negatives and subgroup positives",
    question="Do people of the group who are of a class score above others who are not?",
    bias=False,
    formula="P(score of one of the class in the group > score of one outside it who is not)",
    reading="Low where the scores of the group are too low.",
    **COMMON,
)
@dataclass(frozen=True, kw_only=True)
class BnspAuc(_GroupAuc):
    """The instrument `bnsp-auc`."""

    positives: ClassVar[Literal["group", "background"]] = "group"
    negatives: ClassVar[Literal["group", "background"]] = "background"
