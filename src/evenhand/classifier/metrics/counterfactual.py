"""Does a classifier answer differently about the same person with another gender?

Each text is compared with versions of it (`evenhand rewrite counterfactuals`): gendered words and
names swapped, the words alone, the names alone, no gender stated. A version that does not differ
from its text does not count.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from evenhand.classifier.predictions import Predictions
from evenhand.errors import InputError
from evenhand.instruments import Instrument, Run, instrument
from evenhand.results import Items, Measurement
from evenhand.statistics.clusters import NOTHING, cluster_mean, constant_limits
from evenhand.statistics.crossed import Mean
from evenhand.statistics.intervals import Floats, wilson


@dataclass(frozen=True, slots=True)
class _Pairs:
    """The rows of the originals and of one version of them."""

    version: str
    originals: list[int]
    others: list[int]


def _pairs(subject: Predictions, metric: str) -> tuple[list[_Pairs], tuple[str, ...]]:
    from evenhand.text.rewrite.counterfactuals import ORIGINAL

    if not subject.versions:
        raise InputError(f"{metric}: expected items and versions of texts, got none")
    rows: dict[str, dict[str, int]] = {}
    for row, (item, version) in enumerate(zip(subject.items, subject.versions, strict=True)):
        own = rows.setdefault(item, {})
        if version in own:
            raise InputError(f"{metric}: item '{item}' has the version '{version}' twice")
        own[version] = row
    without = tuple(f"{item}: no original" for item, own in rows.items() if ORIGINAL not in own)
    paired = []
    for version in dict.fromkeys(subject.versions):
        both = [own for own in rows.values() if ORIGINAL in own and version in own]
        if both and version != ORIGINAL:
            originals, others = ([own[v] for own in both] for v in (ORIGINAL, version))
            paired.append(_Pairs(version, originals, others))
    if not paired:
        raise InputError(
            f"{metric}: expected rows whose version is '{ORIGINAL}' and others of the same items, "
            f"got {', '.join(dict.fromkeys(subject.versions))}"
        )
    return paired, without


@dataclass(frozen=True, kw_only=True)
class _Counterfactual(Instrument):
    """Base of both: one number per text and version, summarised."""

    shared: ClassVar[Mapping[str, Any]] = {
        "subjects": ("predictions",),
        "audit": True,
        "source": "Kusner et al. (2017); Garg et al. (2019)",
        "caveats": (
            "A version of a text can be odd in other ways than the gender: read some of them.",
        ),
    }
    shares: ClassVar[bool] = False

    def values(self, subject: Predictions, pairs: _Pairs) -> Floats:
        """The number of each text."""
        raise NotImplementedError

    def measure(
        self, subject: Predictions, material: None = None, run: Run = Run()
    ) -> list[Measurement]:
        versions, without = _pairs(subject, self.declaration.name)
        return [replace(self._version(subject, pairs, run), left_out=without) for pairs in versions]

    def _version(self, subject: Predictions, pairs: _Pairs, run: Run) -> Measurement:
        values = self.values(subject, pairs)
        rows = pairs.originals
        columns = {"class": subject.true or subject.pred, **subject.groups}
        parts = []
        for by, labels in columns.items():
            own = [labels[row] for row in rows]
            for label in sorted({each for each in own if each is not None}):
                chosen = np.array([each == label for each in own])
                part = self._result(subject, label, values[chosen], np.array(rows)[chosen], run)
                parts.append(replace(part, by=by))
        measured = self._result(subject, pairs.version, values, np.array(rows), run)
        items: dict[str, Any] = {
            "item": [subject.items[row] for row in rows],
            "before": [subject.pred[row] for row in rows],
            "after": [subject.pred[row] for row in pairs.others],
            "score": values,
        }
        names = items["item"]
        if subject.clusters:
            names = items["cluster"] = [subject.clusters[row] for row in rows]
        _, codes = np.unique(names, return_inverse=True)
        if codes.max() > 0:
            rest = values.sum() - np.bincount(codes, values), len(values) - np.bincount(codes)
            items["without"] = (rest[0] / rest[1])[codes]
        return replace(measured, parts=tuple(parts), items=Items(items))

    def _result(
        self, subject: Predictions, query: str, values: Floats, rows: Any, run: Run
    ) -> Measurement:
        units = "clusters" if subject.clusters else "texts"
        own = [subject.clusters[row] for row in rows] if subject.clusters else range(len(values))
        codes = np.unique(own, return_inverse=True)[1]
        mean = cluster_mean(values, codes, int(codes.max()) + 1)
        details = {**self.details(values), **({"df": mean.freedom} if subject.clusters else {})}
        interval = f"Student's, over {units}"
        if self.shares and subject.clusters:
            estimate = mean.share(run.prob)
            interval = "Wilson's over clusters, of the effective number of texts"
        elif self.shares:
            estimate, interval = wilson(int(values.sum()), len(values), run.prob), "Wilson's"
        elif mean.variance < NOTHING:  # all equal
            within = subject.scores and all(
                scores.min() >= 0 and scores.max() <= 1 for scores in subject.scores.values()
            )
            bounds = (-1.0, 1.0) if within else (-np.inf, np.inf)
            estimate = (mean.value, *constant_limits(mean.value, mean.clusters, run.prob, bounds))
            interval = f"what so many equal {units} allow"
        else:
            freedom = mean.freedom if subject.clusters else len(values) - 1.0
            ends = Mean(mean.value, mean.variance, freedom).interval(run.prob)
            estimate = (mean.value, *ends)
        return self.declaration.result(
            run,
            query,
            estimate,
            subject=subject.name,
            n=len(values),
            interval=interval,
            details=details,
        )

    def details(self, values: Floats) -> dict[str, float]:
        return {}

    @classmethod
    def example(cls) -> tuple[Predictions, None]:
        """A classifier that takes women for nurses."""
        texts = [("1", "original"), ("1", "swapped"), ("2", "original"), ("2", "swapped")] * 3
        items = tuple(f"{i // 4}-{item}" for i, (item, _) in enumerate(texts))
        pred = ("nurse", "surgeon", "nurse", "nurse", "surgeon", "nurse") * 2
        scores = np.array([0.8, 0.3, 0.9, 0.7, 0.2, 0.6] * 2)
        return (
            Predictions(
                pred=pred,
                true=("nurse",) * 12,
                groups={"gender": ("woman", "man") * 6},
                scores={"nurse": scores, "surgeon": 1 - scores},
                items=items,
                versions=tuple(version for _, version in texts),
            ),
            None,
        )


@instrument(
    name="counterfactual-flips",
    label="Counterfactual flips",
    question="How often does the predicted class change with the person's gender?",
    above="the predicted class changes with the person's gender in {percent} of {n} texts",
    formula="share of texts with ŷ(version) ≠ ŷ(text)",
    worse="higher",
    reading="One measurement per version. 'names' says what first names do, 'words' what pronouns "
    "and other gendered words do, 'swapped' both, 'neutral' what stating no gender does.",
)
class CounterfactualFlips(_Counterfactual):
    """The instrument `counterfactual-flips`."""

    shares = True

    def values(self, subject: Predictions, pairs: _Pairs) -> Floats:
        rows = zip(pairs.originals, pairs.others, strict=True)
        return np.array([subject.pred[a] != subject.pred[b] for a, b in rows], dtype=float)


@instrument(
    name="counterfactual-change",
    label="Counterfactual change of scores",
    question="How much does the score of the true class change with the person's gender?",
    above="the score is higher in the version with the other gender",
    below="the score is lower in the version with the other gender",
    formula="mean of s(version) - s(text), s the score of the true class (else of the predicted)",
    reading="Signed: changes of men's and of women's texts can cancel, so read the parts by group. "
    "The mean absolute change is in the details.",
)
class CounterfactualChange(_Counterfactual):
    """The instrument `counterfactual-change`."""

    def values(self, subject: Predictions, pairs: _Pairs) -> Floats:
        if not subject.scores:
            raise InputError("counterfactual-change: expected scores of the classes, got none")
        labels = subject.true or subject.pred
        rows = [
            (a, b)
            for a, b in zip(pairs.originals, pairs.others, strict=True)
            if labels[a] in subject.scores
        ]
        if len(rows) < len(pairs.originals):
            missing = next(labels[a] for a in pairs.originals if labels[a] not in subject.scores)
            raise InputError(
                f"counterfactual-change: expected scores of class '{missing}', got none"
            )
        own = [subject.scores[labels[a]][b] - subject.scores[labels[a]][a] for a, b in rows]
        return np.array(own)

    def details(self, values: Floats) -> dict[str, float]:
        return {"mean_absolute": float(np.abs(values).mean())}
