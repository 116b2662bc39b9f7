r"""Gaps between groups of people in how a classifier treats each class.

For a class y and two groups, the gap is $P(\hat y = y \mid g_1, \cdot) - P(\hat y = y \mid g_2,
\cdot)$: among those who are of the class (true positives, De-Arteaga et al. 2019), among those who
are not (false positives), or among all (demographic parity). A number for all classes is the root
mean square of the gaps, or for equalised odds the largest of both kinds.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from evenhand.classifier.groups import (
    Contrast,
    Rate,
    contrasts,
    effective_sizes,
    gap_table,
    members,
    rate_influence,
    unit_items,
)
from evenhand.classifier.predictions import Predictions, read_predictions
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import (
    READABLE,
    Declaration,
    Evidence,
    Exhibit,
    Run,
    correct_p_values,
    instrument,
    option,
)
from evenhand.results import Items, Measurement
from evenhand.statistics.intervals import fisher_z, share_difference
from evenhand.statistics.odds import fisher_test
from evenhand.statistics.shrinkage import root_mean_square, shrink
from evenhand.wording import percent

DRAWS = 1000
"""Resamples behind the interval of a root mean square."""
RATES = {
    "tpr": "true-positive rate: share of a class that is recognised",
    "fpr": "false-positive rate: share of the others that is taken for the class",
    "parity": "share that is predicted to be of the class",
}


@dataclass(frozen=True, slots=True)
class _ClassGap:
    """The gap of one class, the variance of its error, and the people of both groups."""

    name: str
    estimate: tuple[float, float, float]
    variance: float
    p_value: float | None
    sizes: tuple[int, int]
    hits: tuple[int, int]


@dataclass(frozen=True, kw_only=True)
class _Gaps:
    """Base of the gaps: every contrast of the groups, class by class."""

    declaration: ClassVar[Declaration]
    rates: ClassVar[tuple[Rate, ...]]

    positive: str | None = option(None, help="Only this class, as with two of them.")
    permutations: int = option(
        9999, minimum=0, help="Random exchanges of the groups behind p; 0: no p-value."
    )

    def measure(
        self,
        subject: Predictions,
        material: None = None,  # noqa: ARG002
        run: Run = Run(),
    ) -> list[Measurement]:
        if self.positive is not None and self.positive not in subject.classes:
            raise UnknownNameError("class", self.positive, subject.classes)
        return [self._contrast(subject, contrast, run) for contrast in contrasts(subject)]

    def _contrast(self, subject: Predictions, contrast: Contrast, run: Run) -> Measurement:
        gaps_of = {rate: self._classes(contrast, rate, run) for rate in self.rates}
        if not any(gaps_of.values()):
            raise InputError(
                f"{self.declaration.name}: {contrast.query}: expected a class with people of both "
                "groups, got none"
            )
        parts: list[Measurement] = []
        for rate, gaps in gaps_of.items():
            parts += self._parts(gaps, rate, contrast, run, subject.name)
        measured = self._summary(subject, contrast, gaps_of, run)
        known = {gap.name for gaps in gaps_of.values() for gap in gaps}
        return replace(
            measured,
            parts=(*measured.parts, *parts),
            left_out=tuple(
                f"{name}: no people of both groups"
                for name in self._wanted(contrast)
                if name not in known
            ),
        )

    def _wanted(self, contrast: Contrast) -> Sequence[str]:
        return contrast.classes if self.positive is None else (self.positive,)

    def _classes(self, contrast: Contrast, rate: Rate, run: Run) -> list[_ClassGap]:
        class_gaps = []
        chance = self._by_chance(contrast, rate, run) if contrast.clusters is not None else {}
        for name in self._wanted(contrast):
            c = contrast.classes.index(name)
            of = members(contrast, rate, c)
            first, hit = contrast.first[of], (contrast.pred[of] == c)
            sizes = int(first.sum()), int((~first).sum())
            if min(sizes) == 0:
                continue
            hits = int(hit[first].sum()), int(hit[~first].sum())
            worth: tuple[float, float] = sizes
            p: float | None = fisher_test(hits[0], sizes[0] - hits[0], hits[1], sizes[1] - hits[1])
            if contrast.clusters is not None:
                worth = effective_sizes(hit, first, contrast.clusters[of])
                p = chance.get(name)
            rates = [a / n for a, n in zip(hits, sizes, strict=True)]
            a, b = (rate * n for rate, n in zip(rates, worth, strict=True))
            estimate = share_difference(a, worth[0], b, worth[1], run.prob)
            shares = [(rate * n + 1) / (n + 2) for rate, n in zip(rates, worth, strict=True)]
            variance = sum(share * (1 - share) / n for share, n in zip(shares, worth, strict=True))
            class_gaps.append(_ClassGap(name, estimate, variance, p, sizes, hits))
        return class_gaps

    def _by_chance(self, contrast: Contrast, rate: Rate, run: Run) -> dict[str, float | None]:
        """For each class how often clusters, exchanged at random, give a gap as large."""
        tables = None
        if self.permutations:
            tables = contrast.permuted(self.permutations, run.seed, within=rate != "parity")
        if tables is None:
            return {}
        observed = np.abs(gap_table(contrast.counts(), rate)) - 1e-12
        extreme = sum((np.abs(gap_table(c, rate)) >= observed).sum(axis=0) for c in tables)
        p_values = (extreme + 1) / (self.permutations + 1)
        return dict(zip(contrast.classes, p_values.tolist(), strict=True))

    def _parts(
        self, gaps: Sequence[_ClassGap], rate: Rate, contrast: Contrast, run: Run, subject: str
    ) -> list[Measurement]:
        """The gaps of the classes, each as it is and shrunk towards their mean."""
        common = {"metric": f"{rate}-gap", "subject": subject, "worse": "away", "ideal": 0.0}
        clusters = contrast.clusters is not None
        raw = [
            self.declaration.result(
                run,
                gap.name,
                gap.estimate,
                **common,
                by="class",
                n=sum(gap.sizes),
                p_value=gap.p_value,
                test=f"{self.permutations:,} random exchanges of clusters"
                if clusters
                else "Fisher's exact test",
                interval="Newcombe's, of the effective number of texts"
                if clusters
                else "Newcombe's",
                details={
                    "rates": [a / n for a, n in zip(gap.hits, gap.sizes, strict=True)],
                    "sizes": list(gap.sizes),
                },
            )
            for gap in gaps
        ]
        spread, means = shrink([gap.estimate[0] for gap in gaps], [gap.variance for gap in gaps])
        pooled = [
            self.declaration.result(
                run,
                gap.name,
                (mean.value, *mean.interval(run.prob)),
                **common,
                by="pooled",
                n=sum(gap.sizes),
                interval="empirical Bayes over classes (Morris 1983)",
                details={"spread": spread},
            )
            for gap, mean in zip(gaps, means, strict=True)
        ]
        return [*correct_p_values(raw), *(pooled if not math.isnan(spread) else [])]

    def _summary(
        self,
        subject: Predictions,
        contrast: Contrast,
        gaps_of: dict[Rate, list[_ClassGap]],
        run: Run,
    ) -> Measurement:
        """The root mean square of the gaps, with its noise removed as a part."""
        [(rate, gaps)] = gaps_of.items()
        chosen = [contrast.classes.index(gap.name) for gap in gaps]
        values = np.array([gap.estimate[0] for gap in gaps])
        value = math.sqrt(float((values**2).mean()))
        drawn = [gap_table(c, rate)[:, chosen] for c in contrast.resampled(DRAWS, run.seed)]
        corrected, low, high = root_mean_square(values, np.concatenate(drawn), run.prob)
        part = self.declaration.result(
            run,
            "without noise",
            (corrected, low, high),
            metric=f"{rate}-gap",
            subject=subject.name,
            by="estimate",
            n=len(contrast.rows),
            interval="bootstrap, noise removed",
        )
        parts = [part, *self._correlation(contrast, gaps, run, subject.name)]
        return self.declaration.result(
            run,
            contrast.query,
            (value, min(low, value), max(high, value)),
            subject=subject.name,
            n=len(contrast.rows),
            interval=f"bootstrap over {'clusters' if contrast.clusters is not None else 'texts'}, "
            "noise removed, up to the value",
            p_value=self._p_value(contrast, rate, chosen, value, run),
            test=f"{self.permutations:,} random exchanges of the groups"
            + (" within true classes" if rate != "parity" else ""),
            parts=tuple(parts),
            items=self._items(
                subject, contrast, value, {(rate, g.name): g.estimate[0] for g in gaps}
            ),
            details={
                "classes": len(gaps),
                "mean_gap": float(values.mean()),
                "largest": gaps[int(np.abs(values).argmax())].name,
                "without_noise": corrected,
            },
        )

    @staticmethod
    def _items(
        subject: Predictions, contrast: Contrast, value: float, gaps: dict[tuple[Rate, str], float]
    ) -> Items:
        """What is sampled, and the root mean square of these gaps without each of them."""
        influence = np.zeros(len(subject))
        for (rate, name), gap in gaps.items() if value else ():
            own = rate_influence(contrast, rate, contrast.classes.index(name))
            influence[contrast.rows] += gap / (len(gaps) * value) * own
        return unit_items(subject, value, influence)

    def _p_value(
        self, contrast: Contrast, rate: Rate, chosen: list[int], value: float, run: Run
    ) -> float | None:
        if not self.permutations:
            return None
        tables = contrast.permuted(self.permutations, run.seed, within=rate != "parity")
        if tables is None:
            return None
        extreme = 0
        for counts in tables:
            gaps = gap_table(counts, rate)[:, chosen]
            extreme += int((np.sqrt(np.nanmean(gaps**2, axis=1)) >= value - 1e-12).sum())
        return (extreme + 1) / (self.permutations + 1)

    def _correlation(
        self, contrast: Contrast, gaps: Sequence[_ClassGap], run: Run, subject: str
    ) -> list[Measurement]:
        """The gap of a class against the share of the first group in it (De-Arteaga et al.)."""
        if len(gaps) < 5:
            return []
        shares = np.array(
            [contrast.first[contrast.true == contrast.classes.index(g.name)].mean() for g in gaps]
        )
        values = np.array([gap.estimate[0] for gap in gaps])
        if shares.std() == 0 or values.std() == 0:
            return []
        r = float(np.corrcoef(shares, values)[0, 1])
        return [
            self.declaration.result(
                run,
                f"share of {contrast.names[0]} in the class",
                (r, *fisher_z(r, len(gaps), run.prob)),
                metric=f"{self.rates[0]}-gap_correlation",
                subject=subject,
                by="correlation",
                n=len(gaps),
                ideal=0.0,
                worse="away",
                interval="Fisher z over the classes",
            )
        ]

    finding: ClassVar[str] = ""
    claim: ClassVar[str] = ""

    @classmethod
    def evidence(cls, measurement: Measurement) -> list[Evidence]:
        """The test, with the class whose gap is largest."""
        largest = measurement.part(measurement.details["largest"], "class")
        first, second = (f"{100 * rate:.0f} %" for rate in largest.details["rates"])
        return [
            Evidence(
                measurement=measurement,
                label=f"{cls.declaration.label}, {measurement.query}",
                quantity="a root mean square of the gaps",
                claim=f"{cls.claim} ({measurement.query})",
                sentence=f"{cls.finding} ({measurement.query}); the largest gap is that of "
                f"'{largest.query}', {first} and {second}.",
            )
        ]

    @staticmethod
    def exhibit(measurement: Measurement) -> Exhibit | None:
        """The class with the largest gap, with the rates of both groups."""
        largest = measurement.part(measurement.details["largest"], "class")
        if len(largest.query) > READABLE:
            return None
        groups = measurement.details.get("groups") or ("first group", "second group")
        return Exhibit(
            text=f"The class “{largest.query}”",
            readings=tuple(
                (str(name), percent(rate), rate)
                for name, rate in zip(groups, largest.details["rates"], strict=True)
            ),
            effect=abs(largest.value),
        )

    @classmethod
    def example(cls) -> tuple[Predictions, None]:
        """A classifier that recognises women less often as pilots."""
        from evenhand.simulate.predictions import biased_predictions

        return read_predictions(biased_predictions(400, gap=0.2, seed=1), group="gender"), None


COMMON: dict[str, Any] = {
    "subject": "predictions",
    "audit": True,
    "ideal": 0.0,
    "worse": "higher",
    "size": "gap",
    "unit": "texts",
    "caveats": (
        "Gaps of groups say nothing about why the groups are treated differently, and which rate "
        "should be equal depends on what errors cost whom.",
    ),
}
READING = (
    "0 where both groups are treated alike. Gaps of small classes are large by chance: the root "
    "mean square contains that noise; the part 'without noise' and the pooled gaps do not."
)


@instrument(
    name="tpr-gap",
    label="True-positive gap",
    question="Is a class recognised as often in one group of people as in another?",
    above="classes are recognised more often in one group of people than in another",
    formula="root mean square over classes of P(ŷ = y | y, g1) - P(ŷ = y | y, g2)",
    source="De-Arteaga et al. (2019)",
    reading=READING,
    role="decides",
    **COMMON,
)
@dataclass(frozen=True, kw_only=True)
class TprGap(_Gaps):
    """The instrument `tpr-gap`."""

    rates: ClassVar[tuple[Rate, ...]] = ("tpr",)
    finding: ClassVar[str] = "Classes are not recognised equally often in both groups"
    claim: ClassVar[str] = "recognises classes more often in one group than in another"


@instrument(
    name="fpr-gap",
    label="False-positive gap",
    question="Are people wrongly taken for a class as often in one group as in another?",
    above="people are wrongly taken for a class more often in one group than in another",
    formula="root mean square over classes of P(ŷ = y | not y, g1) - P(ŷ = y | not y, g2)",
    source="De-Arteaga et al. (2019)",
    reading=READING,
    role="decides",
    **COMMON,
)
@dataclass(frozen=True, kw_only=True)
class FprGap(_Gaps):
    """The instrument `fpr-gap`."""

    rates: ClassVar[tuple[Rate, ...]] = ("fpr",)
    finding: ClassVar[str] = "People are not wrongly taken for a class equally often in both groups"
    claim: ClassVar[str] = (
        "wrongly takes people for a class more often in one group than in another"
    )


@instrument(
    name="parity-gap",
    label="Demographic parity",
    question="Is a class predicted as often for one group of people as for another?",
    above="classes are predicted more often for one group of people than for another",
    formula="root mean square over classes of P(ŷ = y | g1) - P(ŷ = y | g2)",
    source="Dwork et al. (2012)",
    reading="0 where a class is predicted equally often for both groups, whether or not the groups "
    "are equally often of the class.",
    **COMMON,
)
@dataclass(frozen=True, kw_only=True)
class ParityGap(_Gaps):
    """The instrument `parity-gap`."""

    rates: ClassVar[tuple[Rate, ...]] = ("parity",)


@instrument(
    name="equalized-odds",
    label="Equalised odds",
    question="How far is the classifier from equal true- and false-positive rates?",
    above="true- or false-positive rates differ between groups",
    formula="the largest of |P(ŷ = y | y, g1) - P(ŷ = y | y, g2)| and of the same among not y",
    source="Hardt, Price & Srebro (2016)",
    reading="The largest gap of any class; the largest of many noisy gaps is too large. The part "
    "'pooled' is the largest of the gaps after shrinking those of small classes.",
    **COMMON,
)
@dataclass(frozen=True, kw_only=True)
class EqualizedOdds(_Gaps):
    """The instrument `equalized-odds`."""

    rates: ClassVar[tuple[Rate, ...]] = ("tpr", "fpr")

    def _summary(
        self,
        subject: Predictions,
        contrast: Contrast,
        gaps_of: dict[Rate, list[_ClassGap]],
        run: Run,
    ) -> Measurement:
        """The largest gap; its interval from those of all gaps, which hold together."""
        every = [(rate, gap) for rate, gaps in gaps_of.items() for gap in gaps]
        prob = 1 - (1 - run.prob) / len(every)
        together = {
            rate: self._classes(contrast, rate, replace(run, prob=prob)) for rate in self.rates
        }
        ends = [gap.estimate[1:] for gaps in together.values() for gap in gaps]
        rate, largest = max(every, key=lambda each: abs(each[1].estimate[0]))
        value = abs(largest.estimate[0])
        low = max(max(0.0, a, -b) for a, b in ends)
        high = min(1.0, max(max(-a, b) for a, b in ends))
        shrunken = []
        for gaps in gaps_of.values():
            values, variances = zip(*((g.estimate[0], g.variance) for g in gaps), strict=True)
            shrunken += shrink(values, variances)[1]
        pooled = max(shrunken, key=lambda mean: abs(mean.value))
        size = abs(pooled.value)
        half = (pooled.interval(prob)[1] - pooled.interval(prob)[0]) / 2
        part = self.declaration.result(
            run,
            "pooled",
            (size, max(0.0, size - half), min(1.0, size + half)),
            subject=subject.name,
            by="estimate",
            n=len(contrast.rows),
            interval="empirical Bayes over classes, corrected for their number",
        )
        tested = [p for _, gap in every if (p := gap.p_value) is not None]
        return self.declaration.result(
            run,
            contrast.query,
            (value, min(low, value), max(high, value)),
            subject=subject.name,
            n=len(contrast.rows),
            interval="from the intervals of all gaps, corrected for their number",
            p_value=min(1.0, min(tested) * len(tested)) if tested else None,
            test="the smallest p of all gaps, corrected for their number",
            parts=(part,),
            items=self._items(
                subject, contrast, value, {(rate, largest.name): largest.estimate[0]}
            ),
            details={"class": largest.name, "rate": rate, "gaps": len(every)},
        )
