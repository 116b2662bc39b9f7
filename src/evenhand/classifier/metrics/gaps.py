r"""Gaps between groups of people in how a classifier treats each class.

For a class y and two groups, the gap is $P(\hat y = y \mid g_1, \cdot) - P(\hat y = y \mid g_2,
\cdot)$: among those who are of the class (true positives, De-Arteaga et al. 2019), among those who
are not (false positives), or among all (demographic parity). A number for all classes is the root
mean square of the gaps, or for equalised odds the largest of both kinds. With a positive class the
number is the gap of that class, with its sign: of two classes, the usual difference of
true-positive and of false-positive rates.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from evenhand.classifier.groups import (
    ClassMetric,
    Contrast,
    Rate,
    gap_table,
    members,
    pooled,
    rate_influence,
    unit_items,
    without_noise,
)
from evenhand.classifier.predictions import Predictions
from evenhand.errors import InputError
from evenhand.instruments import (
    READABLE,
    Evidence,
    Exhibit,
    Run,
    correct_p_values,
    instrument,
    option,
)
from evenhand.judging import simultaneous
from evenhand.results import Items, Measurement
from evenhand.statistics import clusters
from evenhand.statistics.intervals import Floats, fisher_z, share_difference
from evenhand.statistics.odds import fisher_test
from evenhand.statistics.sequential import Counted, Seed, draw_until_clear
from evenhand.statistics.shrinkage import root_mean_square, shrink
from evenhand.wording import percent

DRAWS = 1000
"""Resamples behind the interval of a root mean square."""


@dataclass(frozen=True, slots=True)
class _ClassGap:
    """The gap of one class, the variance of its error, and what each cluster adds to it."""

    result: Measurement
    variance: float
    deviations: Floats | None


@dataclass(frozen=True, kw_only=True)
class _Gaps(ClassMetric):
    """Base of the gaps: every contrast of the groups, class by class."""

    shared: ClassVar[Mapping[str, Any]] = {
        **ClassMetric.shared,
        "worse": "higher",
        "stereotype": 0,
        "size": "gap",
        "unit": "texts",
        "reading": "0 where both groups are treated alike. With a positive class (inferred for "
        "0/1, yes/no and true/false) it is the gap of that class, above 0 where the rate of the "
        "first group is higher; otherwise the root mean square over classes. Gaps of small classes "
        "are large by chance: the root mean square contains that noise; the part 'without noise' "
        "and the pooled gaps do not.",
        "caveats": (
            "Gaps of groups say nothing about why the groups are treated differently, and which "
            "rate should be equal depends on what errors cost whom.",
        ),
    }
    rates: ClassVar[tuple[Rate, ...]]

    permutations: int = option(
        9999, minimum=0, help="Random exchanges of the groups behind p; 0: no p-value."
    )

    def measure_contrast(self, subject: Predictions, contrast: Contrast, run: Run) -> Measurement:
        gaps_of = {rate: self._classes(subject, contrast, rate, run) for rate in self.rates}
        if not any(gaps_of.values()):
            raise InputError(
                f"{self.declaration.name}: {contrast.query}: expected a class with people of both "
                "groups, got none"
            )
        parts: list[Measurement] = []
        for rate, gaps in gaps_of.items():
            raw = [gap.result for gap in gaps]
            once = rate == "parity" and self._mirrored(contrast)
            parts += raw if once else correct_p_values(raw)
            parts += pooled(raw, [gap.variance for gap in gaps])
        measured = self._summary(subject, contrast, gaps_of, run)
        known = {gap.result.query for gaps in gaps_of.values() for gap in gaps}
        return replace(
            measured,
            parts=(*measured.parts, *parts),
            details={**measured.details, "groups": list(contrast.names)},
            left_out=tuple(
                f"{name}: no people of both groups"
                for name in self.measured(contrast.classes)
                if name not in known
            ),
        )

    def _mirrored(self, contrast: Contrast) -> bool:
        """Whether both of two classes are measured.

        The gap of predictions of one is then that of the other with the other sign, and so is the
        false-positive gap of one and the true-positive gap of the other.
        """
        return self.positive is None and len(contrast.classes) == 2

    def _classes(
        self, subject: Predictions, contrast: Contrast, rate: Rate, run: Run
    ) -> list[_ClassGap]:
        """The gap of each class that has people of both groups."""
        gaps, chance = [], None
        if contrast.clusters is not None:
            chosen = [contrast.classes.index(name) for name in self.measured(contrast.classes)]
            chance = self._exchange(contrast, rate, run, np.abs, chosen)
        for name in self.measured(contrast.classes):
            c = contrast.classes.index(name)
            of = members(contrast, rate, c)
            first, hit = contrast.first[of], (contrast.pred[of] == c)
            sizes = int(first.sum()), int((~first).sum())
            if min(sizes) == 0:
                continue
            hits = int(hit[first].sum()), int(hit[~first].sum())
            details: dict[str, object] = {
                "rates": [a / n for a, n in zip(hits, sizes, strict=True)],
                "sizes": list(sizes),
            }
            deviations, p, test = None, None, ""
            if contrast.clusters is not None:
                gap = clusters.share_difference(
                    *contrast.means((contrast.pred == c).astype(float), of)
                )
                estimate, variance = gap.interval(run.prob), gap.variance
                deviations = gap.one.deviations - gap.two.deviations
                interval = (
                    "Newcombe's over clusters, of the effective number of texts"
                    if gap.freedom
                    else "the possible range: a group has a single cluster"
                )
                details["df"] = gap.freedom
                if chance:
                    p = float(chance.p_values[c])
                    test = f"{chance.draws:,} random exchanges of clusters"
                    details["draws"] = chance.draws
            else:
                estimate = share_difference(hits[0], sizes[0], hits[1], sizes[1], run.prob)
                shares = [(a + 1) / (n + 2) for a, n in zip(hits, sizes, strict=True)]
                variance = sum(s * (1 - s) / n for s, n in zip(shares, sizes, strict=True))
                p = fisher_test(hits[0], sizes[0] - hits[0], hits[1], sizes[1] - hits[1])
                test, interval = "Fisher's exact test", "Newcombe's"
            result = self.declaration.result(
                run,
                name,
                estimate,
                metric=f"{rate}-gap",
                subject=subject.name,
                ideal=0.0,
                worse="away",
                by="class",
                n=sum(sizes),
                p_value=p,
                test=test,
                interval=interval,
                details=details,
            )
            gaps.append(_ClassGap(result, variance, deviations))
        return gaps

    def _exchange(
        self,
        contrast: Contrast,
        rate: Rate,
        run: Run,
        size: Callable[[Floats], Floats],
        chosen: Sequence[int] | None = None,
    ) -> Counted | None:
        """How often random exchanges give gaps of at least the size of those observed.

        `size` has a value for each class, of which `chosen` decide, or one for all of them.
        """
        if not self.permutations:
            return None
        least = size(contrast.exchanged(rate, 0, run.seed)[0]) - 1e-12
        known = None if chosen is None else [c for c in chosen if np.isfinite(least[c])]

        def count(draws: int, seed: Seed) -> Floats:
            _, drawn = contrast.exchanged(rate, draws, seed)
            extreme = [(size(gaps) >= least).sum(axis=0) for gaps in drawn]
            return np.asarray(np.sum(extreme, axis=0))

        return draw_until_clear(
            count,
            self.permutations,
            run.seed,
            factor=1 if known is None else max(1, len(known)),
            deciding=lambda counts: counts if known is None else counts[known],
        )

    def _summary(
        self,
        subject: Predictions,
        contrast: Contrast,
        gaps_of: dict[Rate, list[_ClassGap]],
        run: Run,
    ) -> Measurement:
        """The gap of the positive class, or the root mean square of the gaps.

        The latter with its noise removed as a part.
        """
        [(rate, gaps)] = gaps_of.items()
        if self.positive is not None:
            [m] = [gap.result for gap in gaps]
            return replace(
                m,
                query=contrast.query,
                by="",
                items=self._items(subject, contrast, {(rate, m.query): 1.0}, m.value),
                details={**m.details, "positive": m.query, "largest": m.query},
            )
        of_class = {gap.result.query: gap.result.value for gap in gaps}
        chosen = [contrast.classes.index(name) for name in of_class]
        values = np.array(list(of_class.values()))
        value = math.sqrt(float((values**2).mean()))
        if contrast.clusters is None:
            corrected, low, high = self._resampled(contrast, rate, gaps, values, run)
        else:
            deviations = [gap.deviations for gap in gaps if gap.deviations is not None]
            corrected, low, high = without_noise(
                values,
                [gap.variance for gap in gaps],
                np.stack(deviations),
                self._freedom(contrast),
                run,
                DRAWS,
            )
        known = "bootstrap over texts, noise removed"
        if contrast.clusters is not None:
            known = "simulated from the gaps' errors over clusters, noise removed"
        part = self.declaration.result(
            run,
            "without noise",
            (corrected, low, high),
            metric=f"{rate}-gap",
            subject=subject.name,
            by="estimate",
            n=len(contrast.rows),
            interval=known,
        )
        parts = [part, *self._correlation(contrast, of_class, run, subject.name)]

        def size(every: Floats) -> Floats:
            return np.asarray(np.sqrt((every[..., chosen] ** 2).mean(axis=-1)))

        exchanged = self._exchange(contrast, rate, run, size)
        within = " within true classes" if rate != "parity" else ""
        return self.declaration.result(
            run,
            contrast.query,
            (value, min(low, value), max(high, value)),
            subject=subject.name,
            n=len(contrast.rows),
            interval=f"{known}, up to the value",
            p_value=exchanged.p_value if exchanged else None,
            test=f"{exchanged.draws:,} random exchanges of the groups{within}" if exchanged else "",
            parts=tuple(parts),
            items=self._items(
                subject,
                contrast,
                {(rate, c): gap / (len(gaps) * value) for c, gap in of_class.items() if value},
                value,
            ),
            details={
                "classes": len(gaps),
                "mean_gap": float(values.mean()),
                "largest": gaps[int(np.abs(values).argmax())].result.query,
                "without_noise": corrected,
                **(exchanged.details if exchanged else {}),
                **({} if contrast.clusters is None else {"df": self._freedom(contrast)}),
                **({"repeats": "tpr-gap"} if rate == "fpr" and self._mirrored(contrast) else {}),
            },
        )

    @staticmethod
    def _resampled(
        contrast: Contrast, rate: Rate, gaps: Sequence[_ClassGap], values: Floats, run: Run
    ) -> tuple[float, float, float]:
        """The root mean square with its noise removed, and its interval, by resampled texts."""
        chosen = [contrast.classes.index(gap.result.query) for gap in gaps]
        tables = contrast.resampled(DRAWS, run.seed)
        drawn = np.concatenate([gap_table(table, rate)[:, chosen] for table in tables])
        constant = np.nanstd(drawn, axis=0) < 1e-9  # all are recognised, or none
        rng = np.random.default_rng(run.seed)
        noise = rng.standard_normal((DRAWS, len(gaps))) * np.sqrt([gap.variance for gap in gaps])
        drawn[:, constant] += noise[:, constant]
        return root_mean_square(values, drawn, run.prob)

    @staticmethod
    def _freedom(contrast: Contrast) -> float:
        """The degrees of freedom that the clusters of the smaller group leave."""
        everybody = np.ones(len(contrast.rows), dtype=bool)
        sides = contrast.means(np.zeros(len(contrast.rows)), everybody)
        return min(side.freedom for side in sides)

    @staticmethod
    def _items(
        subject: Predictions,
        contrast: Contrast,
        slopes: dict[tuple[Rate, str], float],
        value: float,
    ) -> Items:
        """What is sampled, and the value without each, by how it changes with the gaps."""
        influence = np.zeros(len(subject))
        for (rate, name), slope in slopes.items():
            own = rate_influence(contrast, rate, contrast.classes.index(name))
            influence[contrast.rows] += slope * own
        return unit_items(subject, value, influence)

    def _correlation(
        self, contrast: Contrast, gaps: Mapping[str, float], run: Run, subject: str
    ) -> list[Measurement]:
        """The gap of a class against the share of the first group in it (De-Arteaga et al.)."""
        if len(gaps) < 5:
            return []
        shares = np.array(
            [contrast.first[contrast.true == contrast.classes.index(c)].mean() for c in gaps]
        )
        values = np.array(list(gaps.values()))
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
        positive = measurement.details.get("positive")
        which = f"'{positive}' in" if positive else f"the largest gap is that of '{largest.query}',"
        return [
            Evidence(
                measurement=measurement,
                label=f"{cls.declaration.label}, {measurement.query}",
                quantity="a gap" if positive else "a root mean square of the gaps",
                claim=f"{cls.claim} ({measurement.query})",
                sentence=f"{cls.finding} ({measurement.query}); {which} {first} and {second}.",
                repeats=measurement.details.get("repeats", ""),
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


@instrument(
    name="tpr-gap",
    label="True-positive gap",
    question="Is a class recognised as often in one group of people as in another?",
    above="classes are recognised more often in one group of people than in another",
    formula="root mean square over classes of P(ŷ = y | y, g1) - P(ŷ = y | y, g2)",
    source="De-Arteaga et al. (2019)",
    role="decides",
)
class TprGap(_Gaps):
    """The instrument `tpr-gap`."""

    rates = ("tpr",)
    relation = "'{positive}' is recognised more often"
    finding = "Classes are not recognised equally often in both groups"
    claim = "recognises classes more often in one group than in another"


@instrument(
    name="fpr-gap",
    label="False-positive gap",
    question="Are people wrongly taken for a class as often in one group as in another?",
    above="people are wrongly taken for a class more often in one group than in another",
    formula="root mean square over classes of P(ŷ = y | not y, g1) - P(ŷ = y | not y, g2)",
    source="De-Arteaga et al. (2019)",
    role="decides",
)
class FprGap(_Gaps):
    """The instrument `fpr-gap`."""

    rates = ("fpr",)
    relation = "people are wrongly taken for '{positive}' more often"
    finding = "People are not wrongly taken for a class equally often in both groups"
    claim = "wrongly takes people for a class more often in one group than in another"


@instrument(
    name="parity-gap",
    label="Demographic parity",
    question="Is a class predicted as often for one group of people as for another?",
    above="classes are predicted more often for one group of people than for another",
    formula="root mean square over classes of P(ŷ = y | g1) - P(ŷ = y | g2)",
    source="Dwork et al. (2012)",
    reading="0 where a class is predicted equally often for both groups, whether or not the groups "
    "are equally often of the class. With a positive class it is the gap of that class, with its "
    "sign.",
)
class ParityGap(_Gaps):
    """The instrument `parity-gap`."""

    rates = ("parity",)
    relation = "'{positive}' is predicted more often"


@instrument(
    name="equalized-odds",
    label="Equalised odds",
    question="How far is the classifier from equal true- and false-positive rates?",
    above="true- or false-positive rates differ between groups",
    formula="the largest of |P(ŷ = y | y, g1) - P(ŷ = y | y, g2)| and of the same among not y",
    source="Hardt, Price & Srebro (2016)",
    reading="The largest gap of any class; the largest of many noisy gaps is too large. The part "
    "'pooled' is the largest of the gaps after shrinking those of small classes.",
)
class EqualizedOdds(_Gaps):
    """The instrument `equalized-odds`."""

    rates = ("tpr", "fpr")

    def _summary(
        self,
        subject: Predictions,
        contrast: Contrast,
        gaps_of: dict[Rate, list[_ClassGap]],
        run: Run,
    ) -> Measurement:
        """The largest gap; its interval from those of all gaps, which hold together."""
        if self._mirrored(contrast):  # the false-positive gaps are the same ones
            gaps_of = {"tpr": gaps_of["tpr"]}
        every = [(rate, gap.result) for rate, gaps in gaps_of.items() for gap in gaps]
        prob = simultaneous(run.prob, len(every))
        alone = replace(self, permutations=0)
        together = {
            rate: alone._classes(subject, contrast, rate, replace(run, prob=prob))
            for rate in gaps_of
        }
        wide = [gap.result for gaps in together.values() for gap in gaps]
        rate, largest = max(every, key=lambda each: abs(each[1].value))
        value = abs(largest.value)
        low = max(max(0.0, m.low, -m.high) for m in wide)
        high = min(1.0, max(max(-m.low, m.high) for m in wide))
        shrunken = []
        for gaps in gaps_of.values():
            shrunken += shrink([g.result.value for g in gaps], [g.variance for g in gaps])[1]
        common = max(shrunken, key=lambda mean: abs(mean.value))
        size = abs(common.value)
        half = (common.interval(prob)[1] - common.interval(prob)[0]) / 2
        part = self.declaration.result(
            run,
            "pooled",
            (size, max(0.0, size - half), min(1.0, size + half)),
            subject=subject.name,
            by="estimate",
            n=len(contrast.rows),
            interval="empirical Bayes over classes, corrected for their number",
        )
        tested = [p for _, m in every if (p := m.p_value) is not None]
        draws = [m.details["draws"] // len(tested) for _, m in every if "draws" in m.details]
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
                subject,
                contrast,
                {(rate, largest.query): math.copysign(1.0, largest.value)},
                value,
            ),
            details={
                "class": largest.query,
                "rate": rate,
                "gaps": len(every),
                **({"draws": min(draws)} if draws else {}),
                **({} if contrast.clusters is None else {"df": self._freedom(contrast)}),
            },
        )
