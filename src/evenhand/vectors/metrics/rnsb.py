r"""RNSB: does a sentiment classifier, trained on words, spread bad sentiment evenly over groups?

A logistic regression learns positive against negative words; p_w is the negative probability of
each identity word, $P_w = p_w / \sum p$, and RNSB $= KL(P \parallel \text{uniform})$.
Sweeney & Najafian (2019). With $\bar p$ the mean it equals
$\overline{p \log p} / \bar p - \log \bar p$, a smooth function of two means, which is what the
interval rests on.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand.intervals import Floats, jackknife
from evenhand.results import Measurement, Worse
from evenhand.vectors.lookup import known, known_groups, refuse_shared
from evenhand.vectors.metrics.reading import Labels, Options, Settings, read, unit, without_each
from evenhand.vectors.store import Vectors

__all__ = ["Rnsb", "divergence", "rnsb"]


def divergence(p: Floats) -> Floats:
    """KL(p/Σp ‖ uniform) along the last axis.

    >>> float(divergence(np.array([0.5, 0.5, 0.5])))
    0.0
    """
    mean = p.mean(axis=-1)
    return np.asarray(np.maximum((p * np.log(p)).mean(axis=-1) / mean - np.log(mean), 0.0))


@dataclass(frozen=True, slots=True)
class Rnsb:
    """RNSB with its classifier fixed; the identity words are the probes."""

    weights: Floats
    intercept: float
    name: str = "rnsb"
    ideal: float | None = 0.0
    worse: Worse = "higher"

    def scores(self, vectors: Floats) -> Floats:
        from scipy.special import expit

        return np.asarray(expit(unit(vectors) @ self.weights + self.intercept))[:, None]

    def value(self, scores: Floats, labels: Labels) -> Floats:  # noqa: ARG002
        return divergence(scores[..., 0])

    def interval(self, scores: Floats, labels: Labels, prob: float) -> tuple[float, float, str]:
        low, high = jackknife(
            float(divergence(scores[:, 0])),
            without_each(self, scores, np.zeros_like(labels)),
            prob,
            strata=labels,
            scale=(np.log, np.exp),
        )
        return (
            max(low, 0.0),
            high,
            "jackknife over each group's words on the log scale, classifier fixed",
        )


def rnsb(
    v: Vectors,
    targets: Mapping[str, Sequence[str]],
    positive: Sequence[str],
    negative: Sequence[str],
    *,
    query: str = "rnsb",
    **settings: Unpack[Settings],
) -> Measurement:
    """How unevenly negative sentiment falls on the words of the target groups.

    `details` gives each group's share of the negative sentiment beside the share an even spread
    would give it, and the classifier's accuracy on its own training words.
    """
    from sklearn.linear_model import LogisticRegression

    probes = known_groups(v, targets, f"rnsb '{query}': target set", disjoint=True)
    good = known(v, positive, f"rnsb '{query}': positive words", at_least=2)
    bad = known(v, negative, f"rnsb '{query}': negative words", at_least=2)
    refuse_shared(good, bad, f"rnsb '{query}': positive and negative words")
    training = np.concatenate([v.unit(good.rows), v.unit(bad.rows)])
    classes = np.repeat([0, 1], [len(good.words), len(bad.words)])
    model = LogisticRegression(max_iter=1000).fit(training, classes)
    instrument = Rnsb(model.coef_[0].astype(float), float(model.intercept_[0]))
    p = instrument.scores(v.raw(probes.rows))[:, 0]
    shares = np.bincount(probes.labels, p) / p.sum()
    even = np.bincount(probes.labels) / p.size
    return read(
        v, instrument, probes,
        query=query, options=Options(**settings), fixed=np.concatenate([good.rows, bad.rows]),
        left_out=[*good.missing, *bad.missing],
        details={
            "training_accuracy": float(model.score(training, classes)),
            "negative_share": dict(zip(probes.names, shares.tolist(), strict=True)),
            "even_share": dict(zip(probes.names, even.tolist(), strict=True)),
        },
    )  # fmt: skip
