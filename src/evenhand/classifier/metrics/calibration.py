r"""Are scores as much too high, or too low, for one group of people as for another?

For a class y with scores s, the calibration of a group is $\operatorname{mean}(s - [y])$: 0 where
on average as many are of the class as the scores say. The gap is that of one group less that of
another; with a positive class it is that of this class, with its sign.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from evenhand.classifier.groups import ClassMetric, Contrast, pooled, unit_items, without_noise
from evenhand.classifier.predictions import Predictions
from evenhand.errors import InputError
from evenhand.instruments import Run, correct_p_values, instrument
from evenhand.results import Items, Measurement
from evenhand.statistics.clusters import NOTHING, constant_limits, difference
from evenhand.statistics.crossed import Mean, clustered
from evenhand.statistics.intervals import Floats

DRAWS = 2000


def _interval(mean: Mean, units: Sequence[float], prob: float) -> tuple[float, float]:
    """Student's interval within the possible range, of one group or of the gap of two.

    Equal errors have no spread; the interval then depends on the number of texts or clusters.
    """
    if mean.variance < NOTHING:
        share = [constant_limits(0.0, n, prob, (-1.0, 1.0))[1] for n in units]
        return mean.value - sum(share), mean.value + sum(share)
    most = float(len(units))
    low, high = mean.interval(prob)
    return max(low, -most), min(high, most)


@instrument(
    name="calibration-gap",
    label="Calibration gap",
    question="Are scores as far from the truth, on average, for one group as for another?",
    above="scores are further from the truth for one group than for another",
    formula="root mean square over classes of mean(score - is of the class | g1) - the same | g2",
    source="Kleinberg, Mullainathan & Raghavan (2017); Pleiss et al. (2017)",
    worse="higher",
    stereotype=0,
    reading="0 where scores are too high or too low by the same amount in both groups. Parts by "
    "'group' say by how much. It is the mean error, not that at every score. With a positive class "
    "it is the gap of that class, above 0 where the scores of the first group are too high by "
    "more.",
)
class CalibrationGap(ClassMetric):
    """The instrument `calibration-gap`."""

    relation = "scores of '{positive}' are too high by more"

    needs_scores = True

    def measure_people(self, people: Predictions, run: Run) -> Iterator[Measurement]:
        for name, scores in people.scores.items():
            if scores.min() < 0 or scores.max() > 1:
                raise InputError(
                    f"calibration-gap: scores of '{name}': expected probabilities between 0 and 1, "
                    f"got {scores.min():g} to {scores.max():g}"
                )
        yield from super().measure_people(people, run)

    def measure_contrast(self, subject: Predictions, contrast: Contrast, run: Run) -> Measurement:
        names = self.measured(subject.scores)
        true = np.array(subject.true)[contrast.rows]
        errors = np.stack(
            [subject.scores[name][contrast.rows] - (true == name) for name in names], axis=1
        )
        unit = "texts" if contrast.clusters is None else "clusters"

        def result(query: str, mean: Mean, units: Sequence[float], **more: object) -> Measurement:
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

        parts, means, sides, deviations = [], [], [], []
        p_values: list[float | None] = []
        for name, own in zip(names, errors.T, strict=True):
            groups = contrast.means(own, np.ones(len(own), dtype=bool))
            deviations.append(groups[0].deviations - groups[1].deviations)
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
        variances = [mean.variance for mean in means]
        values = np.array([mean.value for mean in means])
        value = math.sqrt(float((values**2).mean()))
        freedom = min(mean.freedom for mean in means)
        corrected, low, high = value, 0.0, 1.0  # nothing says how large the noise is
        if not np.isnan(variances).any() and max(variances) > NOTHING:
            corrected, low, high = without_noise(
                values, variances, np.stack(deviations), freedom, run, DRAWS
            )
        # of two classes whose scores add up to 1 the errors are the same with the other sign
        tests = 1 if len(names) == 2 and np.allclose(errors.sum(axis=1), 0) else len(names)
        tested = [p for p in p_values if p is not None]
        tested_parts = correct_p_values(parts) if tests > 1 else parts
        return self.declaration.result(
            run,
            contrast.query,
            (value, min(low, value), max(high, value)),
            subject=subject.name,
            n=len(true),
            interval="simulated from the gaps' errors, noise removed, up to the value",
            p_value=min(1.0, tests * min(tested)) if tested else None,
            test="the smallest p of the classes, corrected for their number",
            parts=(*tested_parts, *pooled(parts, variances), *sides),
            items=self._items(
                subject, contrast, errors, values / (len(values) * (value or 1)), value
            ),
            details={
                "without_noise": corrected,
                "classes": len(names),
                "df": freedom,
            },
        )

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
