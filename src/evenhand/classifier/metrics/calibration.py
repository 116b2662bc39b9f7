r"""Are scores as much too high, or too low, for one group of people as for another?

For a class y with scores s, the calibration of a group is $\operatorname{mean}(s - [y])$: 0 where
on average as many are of the class as the scores say. The gap is that of one group less that of
another.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from evenhand.classifier.groups import Contrast, contrasts, unit_items
from evenhand.classifier.predictions import Predictions, read_predictions
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import Declaration, Run, correct_p_values, instrument, option
from evenhand.results import Items, Measurement
from evenhand.statistics.crossed import Mean, clustered
from evenhand.statistics.intervals import Floats
from evenhand.statistics.shrinkage import root_mean_square, shrink

DRAWS = 2000


@instrument(
    name="calibration-gap",
    subject="predictions",
    label="Calibration gap",
    question="Are scores as far from the truth, on average, for one group as for another?",
    above="scores are further from the truth for one group than for another",
    formula="root mean square over classes of mean(score - is of the class | g1) - the same | g2",
    source="Kleinberg, Mullainathan & Raghavan (2017); Pleiss et al. (2017)",
    ideal=0.0,
    worse="higher",
    audit=True,
    reading="0 where scores are too high or too low by the same amount in both groups. Parts by "
    "'group' say by how much. It is the mean error, not that at every score.",
)
@dataclass(frozen=True, kw_only=True)
class CalibrationGap:
    """The instrument `calibration-gap`."""

    declaration: ClassVar[Declaration]

    positive: str | None = option(None, help="Only this class, as with two of them.")

    def measure(
        self,
        subject: Predictions,
        material: None = None,  # noqa: ARG002
        run: Run = Run(),
    ) -> list[Measurement]:
        if not subject.scores:
            raise InputError(
                "calibration-gap: expected scores of the classes, got predictions alone"
            )
        if self.positive is not None and self.positive not in subject.scores:
            raise UnknownNameError("class", self.positive, subject.scores)
        for name, scores in subject.scores.items():
            if scores.min() < 0 or scores.max() > 1:
                raise InputError(
                    f"calibration-gap: scores of '{name}': expected probabilities between 0 and 1, "
                    f"got {scores.min():g} to {scores.max():g}"
                )
        return [self._contrast(subject, contrast, run) for contrast in contrasts(subject)]

    def _contrast(self, subject: Predictions, contrast: Contrast, run: Run) -> Measurement:
        names = [self.positive] if self.positive is not None else list(subject.scores)
        true = np.array(subject.true)[contrast.rows]
        errors = np.stack(
            [subject.scores[name][contrast.rows] - (true == name) for name in names], axis=1
        )
        clusters = np.arange(len(true)) if contrast.clusters is None else contrast.clusters
        factors = {"text" if contrast.clusters is None else "cluster": clusters}

        def result(query: str, mean: Mean, n: int, **more: Any) -> Measurement:
            return self.declaration.result(
                run,
                query,
                (mean.value, *mean.interval(run.prob)),
                worse="away",
                subject=subject.name,
                n=n,
                interval=f"Student's, over {next(iter(factors))}s",
                **more,
            )

        parts, means = [], []
        for name, own in zip(names, errors.T, strict=True):
            mean = clustered(own, factors, groups=contrast.first)
            means.append(mean)
            more = {"p_value": mean.p_value, "test": "t test of no difference"}
            parts.append(result(name, mean, len(own), by="class", **more))
        sides = [
            result(
                f"{group}, {name}",
                clustered(own[side], {k: v[side] for k, v in factors.items()}),
                int(side.sum()),
                by="group",
            )
            for group, side in zip(contrast.names, (contrast.first, ~contrast.first), strict=True)
            for name, own in zip(names, errors.T, strict=True)
        ]
        spread, shrunken = shrink([mean.value for mean in means], [mean.variance for mean in means])
        pooled = [
            self.declaration.result(
                run,
                name,
                (mean.value, *mean.interval(run.prob)),
                worse="away",
                subject=subject.name,
                n=len(true),
                by="pooled",
                interval="empirical Bayes over classes (Morris 1983)",
                details={"spread": spread},
            )
            for name, mean in zip(names, shrunken, strict=True)
            if not math.isnan(spread)
        ]
        values = np.array([mean.value for mean in means])
        rng = np.random.default_rng(run.seed)
        drawn = rng.multivariate_normal(
            values, self._covariance(errors, contrast.first, clusters, means), DRAWS
        )
        corrected, low, high = root_mean_square(values, drawn, run.prob)
        value = math.sqrt(float((values**2).mean()))
        return self.declaration.result(
            run,
            contrast.query,
            (value, min(low, value), max(high, value)),
            subject=subject.name,
            n=len(true),
            interval="simulated from the gaps' errors, noise removed, up to the value",
            p_value=min(1.0, len(means) * min((m.p_value or 1.0) for m in means)),
            test="the smallest p of the classes, corrected for their number",
            parts=(*correct_p_values(parts), *pooled, *sides),
            items=self._items(subject, contrast, errors, values, value),
            details={"without_noise": corrected, "classes": len(names)},
        )

    @staticmethod
    def _items(
        subject: Predictions, contrast: Contrast, errors: Floats, values: Floats, value: float
    ) -> Items:
        """What is sampled, and the root mean square without each of them."""
        influence = np.zeros(len(subject))
        if value:
            for side, sign in ((contrast.first, 1.0), (~contrast.first, -1.0)):
                centred = sign * (errors[side] - errors[side].mean(axis=0)) / side.sum()
                influence[contrast.rows[side]] = centred @ values / (len(values) * value)
        return unit_items(subject, value, influence)

    @staticmethod
    def _covariance(errors: Any, first: Any, clusters: Any, means: list[Mean]) -> Any:
        """Of the classes' gaps; on the diagonal their variances, or 0 where these are unknown."""
        influence = np.zeros((int(clusters.max()) + 1, errors.shape[1]))
        for side, sign in ((first, 1.0), (~first, -1.0)):
            centred = sign * (errors[side] - errors[side].mean(axis=0)) / side.sum()
            np.add.at(influence, clusters[side], centred)
        covariance = influence.T @ influence
        known = np.array([0.0 if math.isnan(mean.variance) else mean.variance for mean in means])
        own = np.sqrt(np.where(np.diag(covariance) > 0, np.diag(covariance), 1.0))
        return covariance / np.outer(own, own) * np.sqrt(np.outer(known, known))

    @classmethod
    def example(cls) -> tuple[Predictions, None]:
        """Scores of a simulated classifier."""
        from evenhand.simulate.predictions import biased_predictions

        table = biased_predictions(400, gap=0.2, seed=1)
        scores = {name: f"score {name}" for name in sorted(set(table["y_true"]))}
        return read_predictions(table, group="gender", score=scores), None
