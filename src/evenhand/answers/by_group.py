"""Base of the instruments of answers: a number of each answer, contrasted between groups."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from evenhand.answers.cells import (
    OTHERS,
    Cells,
    GroupContrast,
    make_cells,
    make_contrast,
    share_interval,
)
from evenhand.answers.components import advice, components, explain
from evenhand.answers.gold import Gold, correlation, judged_share, read_gold
from evenhand.answers.reading import is_positive
from evenhand.answers.scores import AnswerScores
from evenhand.answers.table import Answers
from evenhand.errors import InputError, parameter
from evenhand.instruments import Evidence, Instrument, Run, correct_p_values
from evenhand.judging import excludes
from evenhand.results import Items, Measurement
from evenhand.statistics.intervals import Floats
from evenhand.statistics.misclassification import correct_shares
from evenhand.statistics.shrinkage import shrink
from evenhand.statistics.sizes import spread_within
from evenhand.wording import interval, number, upper_first

CAVEAT = (
    "The interval is for other prompts like these and other samples of the same model and settings;"
    " one turn only, in English."
)


@dataclass(frozen=True, kw_only=True)
class GroupMetric(Instrument):
    """Base of the instruments that contrast a number of each answer between groups."""

    shared: ClassVar[Mapping[str, Any]] = {
        "subjects": ("answers",),
        "worse": "away",
        "stereotype": 0,
        "unit": "answers",
        "role": "decides",
        "caveats": (CAVEAT,),
    }
    takes_gold: ClassVar[bool] = False
    """Whether labelled answers can correct what was read from the text."""
    answered_only: ClassVar[bool] = True
    """Whether refused answers have no value, so that the refusal gap is shown beside the result."""

    def scores(self, subject: Answers) -> AnswerScores:
        """The number of each answer."""
        raise NotImplementedError

    def with_truth(self, scores: AnswerScores, subject: Answers, gold: Gold | None) -> AnswerScores:
        """The scores with the labels of some answers, or a note that there are none."""
        if gold is None:
            note = (
                f"{upper_first(scores.name)}: the judge is taken at its word (no labelled answers)."
            )
            return replace(scores, notes=(*scores.notes, note))
        return replace(scores, truth=gold.truth(subject, self.true_label))

    @staticmethod
    def true_label(label: str) -> bool | None:
        """Whether the label of an answer is the positive one; None for no label."""
        return is_positive(label)

    def read(self, path: Any) -> Gold:
        """Labelled answers (`evenhand.answers.read_gold`)."""
        return read_gold(path)

    def misfit(self, material: Any = None) -> str | None:
        fits = material is None or self.takes_gold
        return None if fits else "takes no labelled answers"

    def measure(
        self,
        subject: Answers,
        material: Gold | None = None,
        run: Run = Run(),
    ) -> list[Measurement]:
        """One result per contrast of groups, by default."""
        if not subject.groups:
            raise no_groups()
        scores = self.scores(subject)
        if self.takes_gold:
            scores = self.with_truth(scores, subject, material)
        results, problems = [], list[str]()
        for column, labels in subject.columns.items():
            known = [label for label in labels if label is not None]
            levels = sorted(set(known))
            if len(levels) < 2:
                got = f"only '{levels[0]}'" if levels else "none"
                problems.append(f"group '{column}': expected two groups or more, got {got}")
                continue
            cells = make_cells(subject, scores.values, labels, share=scores.share)
            own = []
            for first, second in pairs_of(levels):
                try:
                    contrast = self.contrast(cells, column, first, second)
                except InputError as error:
                    problems.append(str(error))
                    continue
                own.append((contrast, self.result(subject, scores, column, cells, contrast, run)))
            if len(levels) > 2:
                own = pooled(own)
            results += [m for _, m in own]
        if not results:
            raise InputError(f"{self.declaration.name}: {problems[0]}")
        notes = tuple(f"not measured: {problem}" for problem in problems)
        return [
            replace(m, parts=parts, notes=(*m.notes, *notes))
            for m, parts in zip(results, _corrected_parts(results), strict=True)
        ]

    @staticmethod
    def contrast(
        cells: Cells, column: str, first: str, second: str, *, fixed: bool = False
    ) -> GroupContrast:
        """The contrast of two groups; one with a single item (or topic) is an error."""
        for name in (first, second):
            own = cells.take(
                np.array(
                    [
                        (cells.group_names[g] == name)
                        != (name == OTHERS and cells.group_names[g] != first)
                        for g in cells.groups
                    ]
                )
            )
            units = len(np.unique(own.units))
            if units < 2:
                what = (
                    f"answers to one {cells.unit}" if units else "no answers that can be measured"
                )
                raise InputError(
                    f"group '{column}': expected two {cells.unit}s or more of '{name}', got {what}"
                )
        return make_contrast(cells, first, second, fixed=fixed)

    def result(
        self,
        subject: Answers,
        scores: AnswerScores,
        column: str,
        cells: Cells,
        contrast: GroupContrast,
        run: Run,
    ) -> Measurement:
        """The result of a contrast, its parts and what spreads it."""
        first, second = contrast.names
        query = query_of(scores, column, contrast.names)
        found = components(cells)
        known = advice(contrast)
        unit, *crossed = contrast.sides[0].factors
        wordings = levels(contrast, "wording") if crossed else 1
        labels = subject.columns[column]
        rows = [i for i, label in enumerate(labels) if label is not None]
        spread = spread_within(scores.values[rows].tolist(), [str(labels[i]) for i in rows])
        m = self.declaration.result(
            run,
            query,
            contrast.interval(run.prob),
            subject=subject.name,
            n=contrast.answers,
            interval=describe(contrast),
            p_value=contrast.mean.p_value,
            test="two-sided t test over the same factors",
            items=unit_items(contrast),
            left_out=(*scores.left_out, *contrast.left_out),
            details={
                "groups": [first, second],
                "score": scores.name,
                "scale": f"Difference of {scores.name}",
                "column": column,
                "paired": contrast.paired,
                "share": cells.share,
                "unit": f"{unit}s",
                "df": contrast.mean.freedom,
                "spread": spread,
                "components": found,
                **known,
            },
            notes=scores.notes,
        )
        parts = self.group_parts(subject, contrast, run)
        if crossed:
            fixed = self.contrast(cells, column, first, second, fixed=True)
            parts.append(
                self.declaration.result(
                    run,
                    f"with these {wordings} wordings",
                    fixed.interval(run.prob),
                    subject=subject.name,
                    by="scope",
                    n=fixed.answers,
                    interval=describe(fixed),
                    details={"df": fixed.mean.freedom},
                )
            )
        parts += self.more_parts(subject, scores, column, contrast, run)
        sentence = explain(unit, wordings, found, known)
        notes = [*m.notes, *([f"{query}: {sentence}."] if sentence else [])]
        notes += [note for part in parts for note in part.notes]
        if self.answered_only:
            refused = [part for part in parts if part.by == "refusals"]
            notes += [
                f"{column}: {part.query}: among the answered only; the refusal gap is "
                f"{number(part.value)} "
                f"{interval(part.low, part.high)}."
                for part in refused
            ]
        m = replace(m, parts=tuple(parts), notes=tuple(notes))
        return m if scores.truth is None else self.corrected(m, subject, scores, contrast, run)

    def corrected(
        self,
        m: Measurement,
        subject: Answers,
        scores: AnswerScores,
        contrast: GroupContrast,
        run: Run,
    ) -> Measurement:
        """The result corrected by labelled answers; what the judge counted becomes a part."""
        truth = np.zeros(0) if scores.truth is None else scores.truth
        labels = subject.columns[m.details["column"]]
        first, second = contrast.names
        judged = [
            judged_share(cells, subject, scores.values, truth, rows)
            for cells, rows in zip(
                contrast.sides,
                (rows_of(labels, first), rows_of(labels, second, first)),
                strict=True,
            )
        ]
        freedom = contrast.mean.freedom
        settings: dict[str, Any] = {"freedom": freedom, "prob": run.prob, "seed": run.seed}
        gap = correct_shares(judged, correlation=correlation(contrast), **settings)
        how = "drawn from the errors of the judge, by labels, and of the shares"
        parts = [
            replace(m, by="judge", query="as the judge counted", parts=(), items=Items(), notes=())
        ]
        for part, side in zip(m.select("group"), judged, strict=True):
            one = correct_shares([side], **settings)
            about = {
                "sensitivity": side.sensitivity,
                "specificity": side.specificity,
                "counted": part.value,
            }
            parts.append(
                replace(
                    part,
                    value=one.value,
                    low=one.low,
                    high=one.high,
                    interval=how,
                    details={**part.details, **about},
                )
            )
        rates = "; ".join(
            f"{name}: sensitivity {number(side.sensitivity, 2)}, specificity "
            f"{number(side.specificity, 2)}"
            for name, side in zip(contrast.names, judged, strict=True)
        )
        used = int(np.isfinite(truth).sum())
        enough = (
            f"; about {gap.labels:,} labels would decide a gap of this size"
            if gap.labels
            else "; no number of labels alone would decide it"
        )
        decided = excludes(gap.low, gap.high, 0.0)
        note = f"{m.query}: corrected by {used:,} labels ({rates}){'' if decided else enough}."
        others = [  # no label corrects them
            part
            if part.by == "refusals"
            else replace(part, query=f"as the judge counted: {part.query}")
            for part in m.parts
            if part.by != "group"
        ]
        columns = {name: m.items[name] for name in m.items.columns if name != "without"}
        return replace(
            m,
            value=gap.value,
            low=gap.low,
            high=gap.high,
            p_value=None,
            test="",
            interval=f"Rogan and Gladen's correction, {how}",
            items=Items(columns),
            parts=(*parts, *others),
            details={
                **m.details,
                "labels": used,
                "labels_needed": gap.labels,
                "interval_error": gap.error,
            },
            notes=(*m.notes, note),
        )

    def group_parts(self, subject: Answers, contrast: GroupContrast, run: Run) -> list[Measurement]:
        """The mean of each of both groups."""
        parts = []
        for name, cells in zip(contrast.names, contrast.sides, strict=True):
            mean = cells.mean()
            estimate = (mean.value, *mean.interval(run.prob))
            parts.append(
                self.declaration.result(
                    run,
                    name,
                    share_interval(cells, run.prob) if cells.share else estimate,
                    subject=subject.name,
                    by="group",
                    ideal=None,
                    n=int(cells.sizes.sum()),
                    interval="Wilson's of the answers that it is worth"
                    if cells.share
                    else f"Student's over {cells.unit}s",
                    details={"df": mean.freedom, f"{cells.unit}s": len(np.unique(cells.units))},
                )
            )
        return parts

    def more_parts(
        self, subject: Answers, scores: AnswerScores, column: str, contrast: GroupContrast, run: Run
    ) -> list[Measurement]:
        """Further parts of a result: by default the refusal gap, where some were refused."""
        if not self.answered_only:
            return []
        return refusal_gap(subject, column, contrast.names, self, run)

    @staticmethod
    def evidence(measurement: Measurement) -> list[Evidence]:
        """The contrast, in standard deviations of the answers or as a difference of shares."""
        about = measurement.details
        said: dict[str, Any] = {}
        if "groups" in about:
            clause = GroupMetric.clause(measurement)
            said = {"sentence": f"{upper_first(clause)}.", "claim": f"answers so that {clause}"}
        if about.get("share"):
            return [Evidence(measurement=measurement, size="gap", **said)]
        spread = about.get("spread")
        return [Evidence(measurement=measurement, size="spread", spread=spread, **said)]

    @classmethod
    def clause(cls, m: Measurement) -> str:
        """For which group a value is higher."""
        first, second = m.details["groups"]
        if m.value < 0:
            first, second = second, first
        return f"{m.details['score']} is higher for '{first}' than for '{second}'"


def no_groups() -> InputError:
    """The error of answers without a column of groups."""
    return InputError(
        f"group: expected a column of groups, got none: name it with {parameter('group')}"
    )


def _corrected_parts(results: Sequence[Measurement]) -> list[tuple[Measurement, ...]]:
    """The parts of results, the p-values of all of them corrected together."""
    corrected = iter(correct_p_values([part for m in results for part in m.parts]))
    return [tuple(next(corrected) for _ in m.parts) for m in results]


def query_of(scores: AnswerScores, column: str, names: tuple[str, str]) -> str:
    """The name of a result: the score, where there are several, the column and both groups."""
    about = f"{scores.query}, {column}" if scores.query else column
    return f"{about}: {names[0]} - {names[1]}"


def pairs_of(levels: Sequence[str]) -> Iterator[tuple[str, str]]:
    """The two groups, or each of more with all others."""
    if len(levels) == 2:
        yield levels[0], levels[1]
    else:
        yield from ((level, OTHERS) for level in levels)


def pooled(
    results: Sequence[tuple[GroupContrast, Measurement]],
) -> list[tuple[GroupContrast, Measurement]]:
    """Results of several groups, each with the value shrunk towards their mean as a part."""
    variances = [contrast.mean.variance for contrast, _ in results]
    spread, means = shrink([m.value for _, m in results], variances)
    if math.isnan(spread):
        return list(results)
    shrunken = []
    for (contrast, m), mean in zip(results, means, strict=True):
        low, high = mean.interval(m.prob)
        part = replace(
            m,
            by="pooled",
            value=mean.value,
            low=low,
            high=high,
            p_value=None,
            test="",
            interval="empirical Bayes over groups (Morris 1983)",
            items=Items(),
            parts=(),
            details={"spread": spread},
            notes=(),
        )
        shrunken.append((contrast, replace(m, parts=(*m.parts, part))))
    return shrunken


def describe(contrast: GroupContrast) -> str:
    """Over what an interval is, in words."""
    over = " and ".join(f"{levels(contrast, name):,} {name}s" for name in contrast.without)
    how = "Newcombe's" if contrast.sides[0].share else "Student's"
    paired = "paired by item" if contrast.paired else "groups in different items"
    return f"{how}, over {over}, {paired}"


def levels(contrast: GroupContrast, factor: str) -> int:
    """How many levels of a random factor a contrast has."""
    return len({code for side in contrast.sides for code in side.factor(factor).tolist()})


def unit_items(contrast: GroupContrast) -> Items:
    """The means of both groups by unit, and the value without each unit and wording."""
    columns: dict[str, list[Any]] = {
        name: [] for name in ("item", "axis", "first", "second", "difference", "without")
    }
    for factor, (names, without) in contrast.without.items():
        sides = [_by_level(side, factor, len(names)) for side in contrast.sides]
        for level in np.flatnonzero(np.isfinite(sides).any(axis=0)).tolist():
            own = [float(side[level]) for side in sides]
            row = (names[level], factor, *own, own[0] - own[1], float(without[level]))
            for column, value in zip(columns.values(), row, strict=True):
                column.append(value)
    return Items(columns)


def _by_level(cells: Cells, factor: str, levels: int) -> Floats:
    codes = cells.factor(factor)
    counts = np.bincount(codes, minlength=levels)
    with np.errstate(invalid="ignore"):
        return np.asarray(np.bincount(codes, cells.means, levels) / counts)


def rows_of(labels: Sequence[str | None], name: str, but: str = "") -> NDArray[np.intp]:
    """The answers of a group, or of all others than one."""
    wanted = {label for label in labels if label not in (None, but)} if name == OTHERS else {name}
    return np.flatnonzero([label in wanted for label in labels])


def refused(subject: Answers) -> Floats:
    """1 where an answer was refused, 0 where it was not, NaN where none came."""
    return np.array(
        [math.nan if each == "failed" else float(each == "refused") for each in subject.outcomes]
    )


def refusal_gap(
    subject: Answers, column: str, names: tuple[str, str], cls: Instrument, run: Run
) -> list[Measurement]:
    """The difference of the shares of refusals, as a part; none where nothing was refused."""
    if "refused" not in subject.outcomes:
        return []
    cells = make_cells(subject, refused(subject), subject.columns[column], share=True)
    contrast = make_contrast(cells, *names)
    return [
        cls.declaration.result(
            run,
            f"{names[0]} - {names[1]}",
            contrast.interval(run.prob),
            subject=subject.name,
            by="refusals",
            n=contrast.answers,
            interval=describe(contrast),
        )
    ]
