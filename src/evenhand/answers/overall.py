"""Base of the instruments whose value is a share of all answers, with parts by group and topic."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.answers.by_group import GroupMetric, describe, pairs_of
from evenhand.answers.cells import Cells, make_cells, share_interval
from evenhand.answers.components import components, explain, units_to_halve
from evenhand.answers.gold import Gold, judged_share
from evenhand.answers.scores import AnswerScores
from evenhand.answers.table import Answers
from evenhand.errors import InputError
from evenhand.instruments import Evidence, Run, correct_p_values
from evenhand.results import Items, Measurement
from evenhand.statistics.crossed import Mean
from evenhand.statistics.misclassification import correct_shares
from evenhand.wording import number

WILSON = "Wilson's of the answers that it is worth"


@dataclass(frozen=True, kw_only=True)
class ShareMetric(GroupMetric):
    """Base of the instruments whose value is a share of all answers."""

    query = "all prompts"

    def measure(  # type: ignore[override]
        self,
        subject: Answers,
        material: Gold | None = None,
        run: Run = Run(),
    ) -> Measurement:
        scores = self.scores(subject)
        if self.takes_gold:
            scores = self.with_truth(scores, subject, material)
        labels = joined_labels(subject)
        cells = make_cells(subject, scores.values, labels, share=True)
        units = len(np.unique(cells.units))
        if units < 2:
            raise InputError(
                f"{self.declaration.name}: expected answers to two {cells.unit}s or more, got one"
            )
        mean = cells.mean()
        found = components(replace(cells, groups=np.zeros_like(cells.groups)))
        crossed = "wording" in cells.factors
        known = {"units": float(units)} | self.advice(cells, mean, units, crossed)
        wordings = len(np.unique(cells.wordings))
        sentence = explain(cells.unit, wordings if crossed else 1, found, known)
        over = " and ".join(
            f"{len(np.unique(codes)):,} {name}s" for name, codes in cells.factors.items()
        )
        uneven = [
            f"A few {name}s have most of the spread: the interval can be too short."
            for name, codes in cells.factors.items()
            if mean.freedom < (len(np.unique(codes)) - 1) / 2
        ]
        ideal = self.declaration.ideal
        m = self.declaration.result(
            run,
            scores.query or self.query,
            share_interval(cells, run.prob),
            subject=subject.name,
            n=int(cells.sizes.sum()),
            interval=f"{WILSON}, over {over}",
            p_value=None if not ideal else mean.test(ideal),
            test="" if not ideal else "two-sided t test over the same factors",
            items=_items(cells, mean),
            left_out=scores.left_out,
            details={"df": mean.freedom, "share": True, "components": found, **known},
            notes=(*scores.notes, *([f"{scores.name}: {sentence}."] if sentence else []), *uneven),
        )
        parts = tuple(self.all_parts(subject, scores, cells, run))
        m = replace(m, parts=parts, details={**m.details, "unit": f"{cells.unit}s"})
        if scores.truth is None:
            return m
        every = np.arange(len(subject))
        judged = judged_share(cells, subject, scores.values, scores.truth, every)
        share = correct_shares([judged], freedom=mean.freedom, prob=run.prob, seed=run.seed)
        used = int(np.isfinite(scores.truth).sum())
        note = (
            f"Corrected by {used:,} labels: sensitivity {number(judged.sensitivity, 2)}, "
            f"specificity {number(judged.specificity, 2)}; the parts are as the judge counted."
        )
        counted = replace(m, by="judge", query="as the judge counted", parts=(), items=Items())
        return replace(
            m,
            value=share.value,
            low=share.low,
            high=share.high,
            p_value=None,
            test="",
            interval="Rogan and Gladen's correction, drawn from the errors of judge and share",
            items=Items({name: m.items[name] for name in ("item", "axis", "share")}),
            parts=(replace(counted, notes=()), *m.parts),
            details={**m.details, "labels": used, "interval_error": share.error},
            notes=(*m.notes, note),
        )

    @staticmethod
    def advice(cells: Cells, mean: Mean, units: int, crossed: bool) -> dict[str, float]:
        """By how much more samples could narrow the interval; how many units would halve it."""
        known: dict[str, float] = {}
        if not mean.variance > 0:
            return known
        noise = cells.noise[np.isfinite(cells.noise)]
        if len(noise):
            sampling = min(1.0, float(noise.mean()) / len(cells.noise) / mean.variance)
            known["narrower"] = 1 - math.sqrt(1 - sampling)
        if not crossed:
            known["units_to_halve"] = units_to_halve(units)
        return known

    def all_parts(
        self, subject: Answers, scores: AnswerScores, cells: Cells, run: Run
    ) -> Iterable[Measurement]:
        """The share by topic and by group, and the differences of groups."""
        parts, contrasts = [], []
        columns: dict[str, tuple[str | None, ...]] = dict(subject.columns)
        if subject.topics and cells.unit == "topic":
            columns["topic"] = subject.topics
        known = np.isfinite(scores.values).tolist()
        for column, labels in columns.items():
            if not any(a and label is not None for a, label in zip(known, labels, strict=True)):
                continue
            own = make_cells(subject, scores.values, labels, share=True)
            names = own.group_names
            for level, name in enumerate(names):
                part = own.take(own.groups == level)
                if column == "topic":  # items are what is sampled of a topic
                    part = replace(part, unit="item", units=part.items)
                parts.append(
                    self.declaration.result(
                        run,
                        name,
                        share_interval(part, run.prob),
                        subject=subject.name,
                        by=column,
                        n=int(part.sizes.sum()),
                        interval=WILSON,
                    )
                )
            if column == "topic" or len(names) < 2:
                continue
            for first, second in pairs_of(names):
                try:
                    contrast = self.contrast(own, column, first, second)
                except InputError:
                    continue
                contrasts.append(
                    self.declaration.result(
                        run,
                        f"{column}: {first} - {second}",
                        contrast.interval(run.prob),
                        metric=f"{self.declaration.name}-gap",
                        ideal=0.0,
                        worse="away",
                        subject=subject.name,
                        by="contrast",
                        n=contrast.answers,
                        interval=describe(contrast),
                        p_value=contrast.mean.p_value,
                        test="two-sided t test over the same factors",
                        details={"df": contrast.mean.freedom},
                    )
                )
        return [*parts, *correct_p_values(contrasts)]

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        return [Evidence(measurement=measurement)]

    @classmethod
    def clause(cls, m: Measurement) -> str:
        return super(GroupMetric, cls).clause(m)


def joined_labels(subject: Answers) -> tuple[str, ...] | None:
    """The groups of each answer as one label, so that every prompt is a cell of its own."""
    if not subject.groups:
        return None
    rows: Any = zip(*subject.groups.values(), strict=True)
    return tuple(" × ".join(str(cell or "") for cell in row) for row in rows)


def _items(cells: Cells, mean: Mean) -> Items:
    """The share of each unit and wording, and the value without it."""
    columns: dict[str, list[Any]] = {"item": [], "axis": [], "share": [], "without": []}
    for factor, codes in cells.factors.items():
        names, own = cells.names_of(factor), np.unique(codes)
        sizes: NDArray[np.intp] = np.bincount(codes)
        sums = np.bincount(codes, cells.means)
        for level in own.tolist():
            rest = len(codes) - sizes[level]
            columns["item"].append(names[level])
            columns["axis"].append(factor)
            columns["share"].append(float(sums[level] / sizes[level]))
            columns["without"].append(float((mean.value * len(codes) - sums[level]) / rest))
    return Items(columns)
