r"""Are scores as much too high, or too low, for one group of people as for another?

For a class y with scores s, the calibration of a group is $\operatorname{mean}(s - [y])$: 0 where
on average as many are of the class as the scores say. The gap is that of one group less that of
another; with a positive class it is that of this class, with its sign.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from evenhand.classifier.groups import Contrast, contrasts, unit_items
from evenhand.classifier.predictions import Predictions, read_predictions
from evenhand.errors import InputError
from evenhand.instruments import Declaration, Run, correct_p_values, instrument, option
from evenhand.results import Items, Measurement
from evenhand.statistics.clusters import NOTHING, constant_limits, difference
from evenhand.statistics.crossed import Mean, clustered
from evenhand.statistics.intervals import Floats
from evenhand.statistics.power import quantile
from evenhand.statistics.shrinkage import root_mean_square, shrink

DRAWS = 2000


def _interval(mean: Mean, units: Sequence[float], prob: float) -> tuple[float, float]:
    """Student's interval within the possible range, of one group or of the gap of two.

    Errors that are all equal have no spread: then it is what so many texts or clusters allow.
    """
    if mean.variance < NOTHING:
        share = [constant_limits(0.0, n, prob, (-1.0, 1.0))[1] for n in units]
        return mean.value - sum(share), mean.value + sum(share)
    most = float(len(units))
    low, high = mean.interval(prob)
    return max(low, -most), min(high, most)


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
    stereotype=0,
    audit=True,
    reading="0 where scores are too high or too low by the same amount in both groups. Parts by "
    "'group' say by how much. It is the mean error, not that at every score. With a positive class "
    "it is the gap of that class, above 0 where the scores of the first group are too high by "
    "more.",
)
@dataclass(frozen=True, kw_only=True)
class CalibrationGap:
    """The instrument `calibration-gap`."""

    declaration: ClassVar[Declaration]

    positive: str | None = option(
        None,
        metavar="CLASS",
        help="The class whose rates are measured; inferred for 0/1, yes/no, true/false.",
    )

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
        people = subject.originals
        positive = people.find_positive(self.positive, people.scores)
        notes = subject.notes
        if positive is not None:
            notes = (*notes, f"positive class: '{positive}'")
        for name, scores in subject.scores.items():
            if scores.min() < 0 or scores.max() > 1:
                raise InputError(
                    f"calibration-gap: scores of '{name}': expected probabilities between 0 and 1, "
                    f"got {scores.min():g} to {scores.max():g}"
                )
        chosen = replace(self, positive=positive)
        return [
            replace(chosen._contrast(people, contrast, run), notes=notes)
            for contrast in contrasts(people)
        ]

    def _contrast(self, subject: Predictions, contrast: Contrast, run: Run) -> Measurement:
        names = [self.positive] if self.positive is not None else list(subject.scores)
        true = np.array(subject.true)[contrast.rows]
        errors = np.stack(
            [subject.scores[name][contrast.rows] - (true == name) for name in names], axis=1
        )
        unit = "texts" if contrast.clusters is None else "clusters"

        def result(query: str, mean: Mean, units: Sequence[float], **more: Any) -> Measurement:
            return self.declaration.result(
                run,
                query,
                (mean.value, *_interval(mean, units, run.prob)),
                **{
                    "worse": "away",
                    "subject": subject.name,
                    "n": len(true),
                    "interval": f"Student's, over {unit}",
                    "details": {"df": mean.freedom},
                    **more,
                },
            )

        parts, means, sides = [], [], []
        p_values: list[float | None] = []
        for name, own in zip(names, errors.T, strict=True):
            groups = contrast.means(own, np.ones(len(own), dtype=bool))
            mean = difference(*groups)
            if contrast.clusters is None:
                mean = clustered(own, {"text": np.arange(len(own))}, groups=contrast.first)
            means.append(mean)
            units = [group.clusters for group in groups]
            p_values.append(mean.p_value if mean.variance > NOTHING else None)
            more = {"p_value": p_values[-1], "test": "t test of no difference"}
            parts.append(result(name, mean, units, by="class", **more))
            for group, side in zip(contrast.names, groups, strict=True):
                alone = Mean(side.value, side.variance, side.freedom)
                if contrast.clusters is None:
                    alone = replace(alone, freedom=side.n - 1.0)
                about = {"by": "group", "n": side.n}
                sides.append(result(f"{group}, {name}", alone, [side.clusters], **about))
        if self.positive is not None:
            [part] = parts
            return replace(
                part,
                query=contrast.query,
                by="",
                parts=(part, *sides),
                items=self._items(subject, contrast, errors, np.ones(1), part.value),
                details={
                    **part.details,
                    "positive": self.positive,
                    "groups": list(contrast.names),
                },
            )
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
        value = math.sqrt(float((values**2).mean()))
        corrected, low, high = self._root_mean_square(errors, contrast, means, run)
        # of two classes whose scores add up to 1 the errors are the same with the other sign
        tests = 1 if len(names) == 2 and np.allclose(errors.sum(axis=1), 0) else len(names)
        tested = [p for p in p_values if p is not None]
        return self.declaration.result(
            run,
            contrast.query,
            (value, min(low, value), max(high, value)),
            subject=subject.name,
            n=len(true),
            interval="simulated from the gaps' errors, noise removed, up to the value",
            p_value=min(1.0, tests * min(tested)) if tested else None,
            test="the smallest p of the classes, corrected for their number",
            parts=(*(correct_p_values(parts) if tests > 1 else parts), *pooled, *sides),
            items=self._items(
                subject, contrast, errors, values / (len(values) * (value or 1)), value
            ),
            details={
                "without_noise": corrected,
                "classes": len(names),
                "df": min(mean.freedom for mean in means),
            },
        )

    @classmethod
    def clause(cls, measurement: Measurement) -> str:
        """What a value says: of a positive class, for which group its scores are higher."""
        positive = measurement.details.get("positive")
        if not positive:
            return cls.declaration.above
        first, second = measurement.details["groups"]
        if measurement.value < 0:
            first, second = second, first
        return f"scores of '{positive}' are too high by more for '{first}' than for '{second}'"

    @staticmethod
    def _items(
        subject: Predictions, contrast: Contrast, errors: Floats, slopes: Floats, value: float
    ) -> Items:
        """What is sampled, and the value without each, by how it changes with the gaps."""
        influence = np.zeros(len(subject))
        for side, sign in ((contrast.first, 1.0), (~contrast.first, -1.0)):
            centred = sign * (errors[side] - errors[side].mean(axis=0)) / side.sum()
            influence[contrast.rows[side]] = centred @ slopes
        return unit_items(subject, value, influence)

    @staticmethod
    def _root_mean_square(
        errors: Floats, contrast: Contrast, means: Sequence[Mean], run: Run
    ) -> tuple[float, float, float]:
        """Without noise, with its interval; 0 to 1 where nothing says how large the noise is."""
        values = np.array([mean.value for mean in means])
        variances = np.array([mean.variance for mean in means])
        freedom = min(mean.freedom for mean in means)
        if np.isnan(variances).any() or not (variances > NOTHING).any():
            return math.sqrt(float((values**2).mean())), 0.0, 1.0
        sides = [
            np.stack([side.deviations for side in contrast.means(own, np.ones(len(own), bool))])
            for own in errors.T
        ]
        deviations = np.stack([one - two for one, two in sides])
        lengths = np.sqrt((deviations**2).sum(axis=1))
        unit = deviations / np.where(lengths > 0, lengths, 1.0)[:, None]
        rng = np.random.default_rng(run.seed)
        noise = rng.standard_normal((DRAWS, unit.shape[1])) @ unit.T * np.sqrt(variances)
        stretch = quantile((1 + run.prob) / 2, freedom) / quantile((1 + run.prob) / 2)
        corrected, low, high = root_mean_square(values, values + noise, run.prob, stretch=stretch)
        return corrected, low, min(high, 1.0)

    @classmethod
    def example(cls) -> tuple[Predictions, None]:
        """Scores of a simulated classifier."""
        from evenhand.simulate.predictions import biased_predictions

        table = biased_predictions(400, gap=0.2, seed=1)
        scores = {name: f"score {name}" for name in sorted(set(table["y_true"]))}
        return read_predictions(table, group="gender", score=scores), None
