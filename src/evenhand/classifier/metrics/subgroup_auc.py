"""How well scores separate a class within a group of people, and against everybody else.

Three areas under the ROC curve for each group (Borkan et al. 2019): within the group; of people of
the class outside the group and others within it (BPSN), low where the group's scores are too high;
of people of the class within the group and others outside it (BNSP), low where they are too low.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Literal

import numpy as np
from numpy.typing import NDArray

from evenhand.classifier.groups import ClassMetric, group_levels, unit_items
from evenhand.classifier.predictions import Predictions
from evenhand.errors import InputError
from evenhand.instruments import Run, instrument
from evenhand.results import Measurement
from evenhand.statistics.auc import auc
from evenhand.statistics.clusters import NOTHING, cluster_mean
from evenhand.statistics.crossed import Mean
from evenhand.statistics.intervals import Floats, wilson_limits
from evenhand.statistics.shrinkage import shrink


@dataclass(frozen=True, slots=True)
class _Area:
    """An area, or the mean of several, with its variance over clusters."""

    mean: Mean
    clusters: float
    """The effective number of clusters of the side that has fewer."""


def _area(
    value: float,
    influence: Floats,
    clusters: NDArray[np.intp],
    sides: Sequence[NDArray[np.bool_]],
) -> _Area:
    """The value with the variance that the influence of the clusters gives it.

    Each side (the positives, the negatives) needs clusters of its own: degrees of freedom by
    Welch's rule, or the smaller ones where clusters are on both sides.
    """
    number = int(clusters.max()) + 1
    # the influence of a side has the mean 0: the deviations of its sum, not of its mean
    found = [cluster_mean(influence[side], clusters[side], number) for side in sides]
    own = [side.n * side.deviations for side in found]
    fewest = min(side.clusters for side in found)
    if not all(side.freedom for side in found):
        return _Area(Mean(value, math.nan, 0.0), fewest)
    both = bool(np.all([side.present for side in found], axis=0).any())
    variance = float((np.sum(own, axis=0) ** 2).sum())
    freedom = min(side.freedom for side in found)
    if not both and variance > NOTHING:
        parts = sum(float(x @ x) ** 2 / side.freedom for x, side in zip(own, found, strict=True))
        freedom = variance**2 / parts
    return _Area(Mean(value, variance, freedom), fewest)


@dataclass(frozen=True, kw_only=True)
class _GroupAuc(ClassMetric):
    """Base of the three: which side of the group the positives and the negatives are from."""

    shared: ClassVar[Mapping[str, Any]] = {
        **ClassMetric.shared,
        "source": "Borkan et al. (2019)",
        "bias": False,
        "ideal": 1.0,
        "worse": "lower",
    }
    positives: ClassVar[Literal["group", "background"]] = "group"
    negatives: ClassVar[Literal["group", "background"]] = "group"
    needs_scores = True

    def measure_people(self, people: Predictions, run: Run) -> Iterator[Measurement]:
        if not people.true or not people.groups:
            raise InputError(
                f"{self.declaration.name}: expected true classes and groups of people, got none"
            )
        clusters = np.unique(people.clusters or range(len(people)), return_inverse=True)[1]
        for column, labels in people.columns.items():
            own = np.array([label or "" for label in labels])
            for level in group_levels(column, labels):
                sides = {"group": own == level, "background": (own != level) & (own != "")}
                yield self._group(people, f"{column}: {level}", sides, clusters, run)

    def _group(
        self,
        subject: Predictions,
        query: str,
        sides: Mapping[str, NDArray[np.bool_]],
        clusters: NDArray[np.intp],
        run: Run,
    ) -> Measurement:
        """The mean over classes; the influence of a person is that on all of them."""
        parts, values, areas, left_out = [], [], [], []
        true, total = np.array(subject.true), np.zeros(len(subject))
        for name in self.measured(subject.scores):
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
            area = _area(value, influence, clusters, chosen)
            areas.append(area)
            parts.append(self._result(run, name, area, int(used.sum()), subject.name, by="class"))
        if not values:
            raise InputError(
                f"{self.declaration.name}: {query}: expected a class with two people or more on "
                "both sides, got none"
            )
        spread, shrunken = shrink(values, [area.mean.variance for area in areas])
        parts += [
            replace(
                self._result(
                    run, part.query, replace(area, mean=mean), part.n, subject.name, by="pooled"
                ),
                interval="empirical Bayes over classes, on the scale of log odds",
            )
            for part, area, mean in zip(parts, areas, shrunken, strict=True)
            if not math.isnan(spread)
        ]
        used = sides[self.positives] | sides[self.negatives]
        area = areas[0]
        if len(areas) > 1:
            of = [sides[name] for name in dict.fromkeys((self.positives, self.negatives))]
            area = _area(float(np.mean(values)), total / len(values), clusters, of)
            known = [own for own in areas if not math.isnan(own.mean.variance)]
            if len(known) < len(areas):  # a class of which nothing is known
                area = replace(area, mean=replace(area.mean, variance=math.nan))
        return self._result(
            run,
            query,
            area,
            int(used.sum()),
            subject.name,
            parts=tuple(parts),
            left_out=tuple(left_out),
            items=unit_items(subject, float(np.mean(values)), total / len(values)),
            details={"classes": len(values)},
        )

    def _result(
        self, run: Run, query: str, area: _Area, n: int, subject: str, **more: Any
    ) -> Measurement:
        """With the interval on the scale of the log odds.

        Where the scores separate without exception nothing varies: then it is Wilson's interval of
        the fewer side's clusters, as the variance is at most A (1 - A) / n (Birnbaum & Klose 1957).
        """
        mean = area.mean
        low, high = 0.0, 1.0
        if mean.variance < NOTHING:
            mean = replace(mean, freedom=area.clusters - 1)
            low, high = wilson_limits(mean.value, area.clusters, run.prob, mean.freedom)
        elif not math.isnan(mean.variance):
            value = min(1 - 1e-12, max(1e-12, mean.value))
            centre = math.log(value / (1 - value))
            scaled = Mean(centre, mean.variance / (value * (1 - value)) ** 2, mean.freedom)
            ends = scaled.interval(run.prob)
            low, high = (1 / (1 + math.exp(-max(-700.0, min(700.0, end)))) for end in ends)
        details = {"df": mean.freedom, **more.pop("details", {})}
        return self.declaration.result(
            run,
            query,
            (mean.value, min(low, mean.value), max(high, mean.value)),
            subject=subject,
            n=n,
            interval="DeLong's, over people or clusters, on the scale of log odds",
            details=details,
            **more,
        )


@instrument(
    name="subgroup-auc",
    label="AUC within a group",
    question="How well do the scores separate a class among people of a group?",
    formula="P(score of one of the class > score of another), both of the group; mean over classes",
    reading="1 where scores separate perfectly, .5 by chance. Compare the groups.",
)
class SubgroupAuc(_GroupAuc):
    """The instrument `subgroup-auc`."""


@instrument(
    name="bpsn-auc",
    label="AUC, background positives and subgroup negatives",
    question="Do people of the group who are not of a class score below others who are?",
    formula="P(score of one of the class outside the group > score of one of the group who is not)",
    reading="Low where the scores of the group are too high.",
)
class BpsnAuc(_GroupAuc):
    """The instrument `bpsn-auc`."""

    positives = "background"


@instrument(
    name="bnsp-auc",
    label="AUC, background negatives and subgroup positives",
    question="Do people of the group who are of a class score above others who are not?",
    formula="P(score of one of the class in the group > score of one outside it who is not)",
    reading="Low where the scores of the group are too low.",
)
class BnspAuc(_GroupAuc):
    """The instrument `bnsp-auc`."""

    negatives = "background"
