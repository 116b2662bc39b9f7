r"""Accuracy and F1 of a few-shot classifier, with intervals for new classes.

- *accuracy*: the share of all queries that are classified correctly, the mean over episodes;
- *F1*: of each class over all episodes, $2\,TP / (\text{queries} + \text{predicted})$, and the mean
  over classes;
- *F1 by episode*: the same within each episode, and the mean over episodes, as most papers report.

**By class**: the interval is for new texts of the class and new opponents. Its variance is that of
the jackknife over the class's query texts (each with all its episodes) plus that of the jackknife
over the opponents, free of noise; support texts are not resampled. Over several splits and seeds it
is for their mean, with a text left out of all of them at once, and does not cover how a class would
do after other training; `queries` are counted once for all seeds.

**By gender**: pooled over classes, men and women differ in which classes they belong to. So
accuracy and F1 by gender are means over the classes that have queries of both, all with equal
weight, and the gap between women and men is within classes. So is that between persons who are
neither and all others; a class's accuracy is its true positive rate.

**By component**: the SD that episodes, classes, seeds and class splits give the accuracy of one run
(`evenhand.statistics.jackknife.variance_components`).
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from evenhand.fewshot.answers import (
    LEANINGS,
    ClassCounts,
    Counterfactuals,
    FewShotPredictions,
    FewShotSubject,
    Tallies,
    comparable_tallies,
    interval_text,
    mean_over,
    paired,
)
from evenhand.fewshot.data import NEITHER
from evenhand.instruments import Instrument, Run, instrument
from evenhand.results import Comparison, Measurement
from evenhand.statistics.jackknife import (
    Floats,
    Replicates,
    replicates,
    variance_components,
)
from evenhand.statistics.power import quantile

QUERY = "new classes"
COUNTS = ("queries", "correct", "predicted")
SCORES = ("accuracy", "f1", "f1_episode")
GENDERS = ("male", "female", "gap")


@instrument(
    name="accuracy",
    subjects=("fewshot",),
    label="Few-shot accuracy",
    question="How often is a text of a class never trained on classified correctly, from a few "
    "examples of it?",
    bias=False,
    formula="mean over episodes of the share of queries that are classified correctly",
    source="Vinyals et al. (2016); the interval for new classes is our own",
    ideal=1.0,
    worse="lower",
    stereotype=0,
    audit=True,
    reading="The share of test queries whose most likely class is the true one, over episodes of C "
    "classes with K labelled texts each. The interval covers new classes, by a jackknife over test "
    "classes, episodes and class splits; the usual interval over episodes alone stands beside it.",
    caveats=(
        "Compare it with the baseline, which counts words and uses no network.",
        "Episodes are not independent evidence about new classes: intervals over episodes alone "
        "are several times too narrow.",
    ),
)
class Accuracy(Instrument):
    """Accuracy of a few-shot classifier for new classes.

    The subject is a finished run, a classifier or answers.

    Returns
    -------
    Measurement
        With parts by "score" (f1, f1_episode), "class", "gender" (male, female, and the gap of
        women's to men's, with a test; of persons who are neither: neither, and neither gap, that
        to men's and women's together) and "component" (SDs). The parts f1 have those by class and
        gender too. Items are the counts by seed, split, episode and class.
    """

    def measure(
        self, subject: FewShotSubject, material: object = None, run: Run = Run()
    ) -> Measurement:
        """Measure a finished run, a classifier or answers."""
        answers = subject.answers
        name = str(subject.name)
        tallies = Tallies.of(subject)
        total, *others = (
            share(values, run, QUERY, metric=metric, by=by, subject=name)
            for (metric, values), by in zip(
                scores(tallies).items(), ("", "score", "score"), strict=True
            )
        )
        by_class = _by_class(answers, tallies, name, run)
        by_gender = _by_gender(answers, name, run)
        f1, by_episode = others
        return replace(
            total,
            items=tallies.items(COUNTS, tallies.counts),
            details={
                **total.details,
                **tallies.record(subject),
                "chance": 1 / tallies.classes.shape[1],
                "deterministic": subject.deterministic,
            },
            parts=(
                replace(f1, parts=(*by_class["f1"], *by_gender["f1"])),
                by_episode,
                *by_class["accuracy"],
                *by_gender["accuracy"],
                *_components(answers, name, run),
                *_no_label(answers, name, run),
            ),
        )

    @staticmethod
    def compare(before: Measurement, after: Measurement) -> Comparison:
        """The change of accuracy, F1 and F1 by episode, paired on the same test queries.

        What both share, easy and hard classes and texts, cancels in every replicate. `before` and
        `after` are given without their items and parts.
        """
        old, new = map(scores, comparable_tallies(before, after, COUNTS))
        changes = {
            metric: paired(
                before if metric == "accuracy" else before.part(metric, by="score"),
                after if metric == "accuracy" else after.part(metric, by="score"),
                new[metric] - old[metric],
            )
            for metric in SCORES
        }
        return replace(changes["accuracy"], parts=tuple(changes[metric] for metric in SCORES[1:]))

    @classmethod
    def example(cls) -> tuple[Any, None]:
        """A small subject and its material."""
        return Counterfactuals.example(), None


def scores(counts: ClassCounts) -> Mapping[str, Replicates]:
    """Accuracy, F1 over all episodes and F1 by episode, with their replicates, computed once."""
    if "accuracy" not in counts.computed:
        tally = counts.tally()
        queries, correct, predicted = np.moveaxis(tally, 2, 0)
        within = np.stack([queries > 0, 2 * correct / np.maximum(queries + predicted, 1)], axis=2)
        counts.computed.update(
            accuracy=counts.replicates(_share, tally),
            f1=counts.replicates(macro_f1, tally),
            f1_episode=counts.replicates(_share, within),
        )
    return {name: counts.computed[name] for name in SCORES}


def macro_f1(sums: Floats) -> Floats:
    """The mean F1 of the classes with queries, from sums (…, N, 3) of queries, correct, predicted.

    >>> macro_f1(np.array([[10.0, 8.0, 10.0], [10.0, 6.0, 8.0], [0.0, 0.0, 0.0]])).round(4)
    np.float64(0.7333)
    """
    present = sums[..., 0] > 0
    f1 = 2 * sums[..., 1] / np.where(present, sums[..., 0] + sums[..., 2], 1)
    return mean_over(f1, present)


def share(
    values: Replicates, run: Run, query: str, *, gap: bool = False, **fields: object
) -> Measurement:
    """A share, within 0 to 1, or the gap of two shares, with a test, from its replicates."""
    ends = [*values.interval(run.prob), *values.naive(run.prob)]
    if gap:
        fields |= {"ideal": 0.0, "worse": "away"}
    else:
        ends = [min(1.0, max(0.0, end)) for end in ends]
    return Accuracy.declaration.result(
        run,
        query,
        (float(values.value), ends[0], ends[1]),
        n=len(values.classes),
        interval=interval_text(values),
        p_value=values.p_value() if gap else None,
        test="Student t, as the interval" if gap else "",
        details={
            "naive_low": ends[2],
            "naive_high": ends[3],
            "classes": len(values.classes),
            "episodes": len(values.episodes),
        },
        **fields,
    )


def _by_class(
    answers: FewShotPredictions, tallies: Tallies, subject: str, run: Run
) -> dict[str, list[Measurement]]:
    """Accuracy and F1 of each class, in the order of the names."""
    counts = tallies.counts
    values = answers.replicates(_recall_f1, counts)
    n = len(answers.tested)
    seeds = answers.repeats
    local = answers.local.ravel()
    totals = [np.bincount(local, counts[..., i].ravel(), n) for i in range(3)]
    sums: Floats = np.stack(totals, axis=1) / seeds
    label = np.take_along_axis(answers.local, answers.truth, axis=1).ravel()
    right = (answers.predicted == answers.truth).ravel()
    most = answers.rows.max() + 1
    keys, text = np.unique(answers.rows.ravel() + label * most, return_inverse=True)
    text_class = keys // most
    queries, hits = np.bincount(text) / seeds, np.bincount(text, right) / seeds
    predicted = np.take_along_axis(answers.local, answers.predicted, axis=1).ravel()
    named = (answers.predicted >= 0).ravel()
    confused = np.bincount((label * n + predicted)[named], minlength=n * n).reshape(n, n)
    np.fill_diagonal(confused, 0)
    parts: dict[str, list[Measurement]] = {"accuracy": [], "f1": []}
    for k in range(n):
        here = text_class == k
        texts = int(here.sum())
        removed = np.stack([queries[here], hits[here], hits[here]], axis=1)
        without = _recall_f1(sums[k] - removed)
        index = answers.tested[k]
        details = {
            "texts": texts,
            "queries": int(sums[k, 0]),
            "leaning": LEANINGS[int(tallies.leaning[index])],
            "precision": float(sums[k, 1] / sums[k, 2]) if sums[k, 2] else math.nan,
            "confused_with": answers.names[answers.tested[confused[k].argmax()]]
            if confused[k].any()
            else "",
        }
        for which, metric in enumerate(parts):
            own = values.at(which).at(k)
            spread = _opponent_variance(own, k) + _text_variance(without[:, which])
            half = quantile((1 + run.prob) / 2, max(1, texts - 1)) * math.sqrt(spread)
            value = float(own.value)
            parts[metric].append(
                Accuracy.declaration.result(
                    run,
                    answers.names[index],
                    (value, max(0.0, value - half), min(1.0, value + half)),
                    metric=metric,
                    by="class",
                    subject=subject,
                    n=texts,
                    interval="new texts of the class and new opponents: jackknife, Student t",
                    details=details if metric == "accuracy" else {},
                )
            )
    return parts


def _by_gender(answers: FewShotPredictions, subject: str, run: Run) -> dict[str, list[Measurement]]:
    """Men's and women's accuracy and F1 and their gap, none if no class has queries of both; and
    those of persons who are neither, and the gap from men and women within the same classes.
    """
    parts: dict[str, list[Measurement]] = {"accuracy": [], "f1": []}

    def add(values: Replicates, names: Sequence[str]) -> None:
        for which, (metric, own) in enumerate(parts.items()):
            own += [
                share(
                    values.at(len(names) * which + side),
                    run,
                    gender,
                    gap=gender.endswith("gap"),
                    metric=metric,
                    by="gender",
                    subject=subject,
                )
                for side, gender in enumerate(names)
            ]

    sides = [answers.tally(answers.genders == gender) for gender in (0, 1)]
    values = answers.replicates(_by_side, np.concatenate(sides, axis=2))
    if np.isfinite(values.value).all():
        add(values, GENDERS)
    neither = answers.genders == NEITHER
    if neither.any():
        add(answers.replicates(_of_some, answers.tally(neither)), ("neither",))
        sides = [answers.tally(answers.genders >= 0), answers.tally(neither)]
        gaps = answers.replicates(_gaps, np.concatenate(sides, axis=2))
        if np.isfinite(gaps.value).all():
            add(gaps, ("neither gap",))
    return parts


def _components(answers: FewShotPredictions, subject: str, run: Run) -> list[Measurement]:
    """The SDs that episodes, classes, seeds and splits give the accuracy of one run."""
    shape = (answers.repeats, answers.splits, -1)
    right = (answers.predicted == answers.truth).mean(axis=1)
    by_episode = right.reshape(shape).transpose(1, 0, 2)
    counts = answers.tally()
    by_split = counts.reshape(*shape, *counts.shape[1:]).mean(axis=0)
    classes = answers.classes.reshape(*shape, counts.shape[1])[0]
    tested, variances = [], []
    for split_counts, split_classes in zip(by_split, classes, strict=True):
        own, local = np.unique(split_classes, return_inverse=True)
        tested.append(np.isin(np.arange(len(answers.names)), own))
        values = replicates(_share, split_counts, local.reshape(split_classes.shape))
        variances.append(values.class_variance(cautious=False)[0])
    components = variance_components(
        by_episode, float(np.mean(variances)), np.stack(tested), prob=run.prob
    )
    return [
        Accuracy.declaration.result(
            run,
            component.source,
            (component.sd, component.low, component.high),
            metric="accuracy_sd",
            by="component",
            subject=subject,
            n=component.units,
            ideal=None,
            worse="higher",
            interval="generalised pivots (Weerahandi 1995)",
            details={"freedom": component.freedom},
        )
        for component in components
    ]


def _no_label(answers: FewShotPredictions, subject: str, run: Run) -> list[Measurement]:
    """The share of queries without a predicted class, if there are any; they count as wrong."""
    none = answers.predicted < 0
    if not none.any():
        return []
    counts = answers.tally()
    counts[..., 1] = answers.tally(none)[..., 0]
    values = answers.replicates(_share, counts)
    return [share(values, run, "no label", metric="no_label", by="outcome", subject=subject)]


def _share(sums: Floats) -> Floats:
    result: Floats = sums[..., 1].sum(-1) / sums[..., 0].sum(-1)
    return result


def _recall_f1(sums: Floats) -> Floats:
    """Recall and F1, (…, 2), from (…, 3)."""
    with np.errstate(invalid="ignore", divide="ignore"):
        recall = sums[..., 1] / sums[..., 0]
        return np.stack([recall, 2 * sums[..., 1] / (sums[..., 0] + sums[..., 2])], axis=-1)


def _of_some(sums: Floats) -> Floats:
    """Accuracy and F1, (…, 2), the mean over the classes that have queries."""
    values, present = _recall_f1(sums), sums[..., 0] > 0
    return np.stack([mean_over(values[..., which], present) for which in range(2)], axis=-1)


def _by_side(sums: Floats) -> Floats:
    """Men's, women's and the gap of accuracy, then of F1, over classes that have both."""
    men, women = _recall_f1(sums[..., :3]), _recall_f1(sums[..., 3:])
    both = (sums[..., 0] > 0) & (sums[..., 3] > 0)
    means = []
    for which in range(2):
        man, woman = (mean_over(side[..., which], both) for side in (men, women))
        means += [man, woman, woman - man]
    return np.stack(means, axis=-1)


def _gaps(sums: Floats) -> Floats:
    """The second side's less the first's accuracy and F1, over classes that have both."""
    return _by_side(sums)[..., 2::3]


def _opponent_variance(values: Replicates, own: int) -> float:
    """The variance that the draw of the other classes gives."""
    if not values.opponents:
        return 0.0
    strata = np.zeros(len(values.classes), dtype=np.int64)
    strata[own] = -1
    variance, _ = values.class_variance(strata, cautious=False)
    return variance


def _text_variance(without: Floats) -> float:
    finite = without[np.isfinite(without)]
    return (len(finite) - 1) * float(finite.var()) if len(finite) > 1 else math.inf
