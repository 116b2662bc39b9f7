"""RNSB: does a sentiment classifier spread negative sentiment evenly over groups?"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Unpack

import numpy as np

from evenhand import lexicon
from evenhand.instruments import Run, RunOptions, instrument
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import unit
from evenhand.statistics.intervals import Floats, jackknife
from evenhand.vectors.probes import Labels, WordMetric, without_each
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known, known_groups, refuse_shared


def divergence(p: Floats) -> Floats:
    """KL(p/Σp ‖ uniform) along the last axis.

    >>> float(divergence(np.array([0.5, 0.5, 0.5])))
    0.0
    """
    mean = p.mean(axis=-1)
    return np.asarray(np.maximum((p * np.log(p)).mean(axis=-1) / mean - np.log(mean), 0.0))


@dataclass(frozen=True, slots=True)
class RnsbStatistic:
    """RNSB with its classifier fixed; the identity words are the probes."""

    weights: Floats
    intercept: float

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


@instrument(
    name="rnsb",
    subject="vectors",
    label="RNSB",
    question="Does a sentiment classifier spread negative sentiment evenly over the protected "
    "words?",
    formula="KL(p / sum p, uniform), p the negative probability of each protected word under a "
    "logistic regression trained on pleasant and unpleasant words",
    source="Sweeney & Najafian (2019)",
    worse="higher",
    stereotype=0,
    material="a topic, or a query with two or more target sets and two attribute sets (positive, "
    "negative)",
    reading="A divergence: 0 where negative sentiment is spread evenly.",
    scale="Divergence from an even spread (ideal: 0)",
    audit=True,
)
@dataclass(frozen=True, kw_only=True)
class Rnsb(WordMetric):
    """The declaration of RNSB; `rnsb` is its function."""

    minimum_target_sets = 2
    attribute_sets = 2

    def split(self, topic: Topic) -> Sequence[Query]:
        """The pleasant and unpleasant words of WEAT 1 are the sentiment."""
        sentiment = lexicon.weat(1).attributes
        name = f"{topic.name}: sentiment"
        return [Query(name=name, targets=topic.protected, attributes=sentiment)]

    def answer(self, v: Vectors, question: Query, run: Run) -> list[Measurement]:
        from sklearn.linear_model import LogisticRegression

        query = question.name
        positive, negative = question.attributes.values()
        probes = known_groups(v, question.targets, f"rnsb '{query}': target set", disjoint=True)
        good = known(v, positive, f"rnsb '{query}': positive words", at_least=2)
        bad = known(v, negative, f"rnsb '{query}': negative words", at_least=2)
        refuse_shared(good, bad, f"rnsb '{query}': positive and negative words")
        training = np.concatenate([v.unit(good.rows), v.unit(bad.rows)])
        classes = np.repeat([0, 1], [len(good.words), len(bad.words)])
        model = LogisticRegression(max_iter=1000).fit(training, classes)
        statistic = RnsbStatistic(model.coef_[0].astype(float), float(model.intercept_[0]))
        p = statistic.scores(v.raw(probes.rows))[:, 0]
        shares = np.bincount(probes.labels, p) / p.sum()
        even = np.bincount(probes.labels) / p.size
        measurement = self.read(
            v,
            statistic,
            probes,
            query=query,
            run=run,
            fixed=np.concatenate([good.rows, bad.rows]),
            left_out=[*good.missing, *bad.missing],
            details={
                "training_accuracy": float(model.score(training, classes)),
                "negative_share": dict(zip(probes.names, shares.tolist(), strict=True)),
                "even_share": dict(zip(probes.names, even.tolist(), strict=True)),
            },
        )
        return [measurement]


def rnsb(
    v: Vectors,
    targets: Mapping[str, Sequence[str]],
    positive: Sequence[str],
    negative: Sequence[str],
    *,
    query: str = "rnsb",
    null: int = 1000,
    **run: Unpack[RunOptions],
) -> Measurement:
    r"""Measure how unevenly negative sentiment falls on the words of target groups.

    Parameters
    ----------
    v : Vectors
    targets : Mapping of str to sequence of str
        The identity words by group.
    positive, negative : sequence of str
        The words that the sentiment classifier is trained on.
    query : str
        The name of the question.
    null : int
        Draws of random words of similar frequency; 0: none, and no p-value.
    **run
        `seed`, and `prob`, the probability of the interval, as for `Run`.

    Returns
    -------
    Measurement
        `details` has each group's share of the negative sentiment, the share that an even spread
        would give it, and the accuracy of the classifier on its training words.

    Notes
    -----
    A logistic regression learns positive against negative words; :math:`p_w` is the negative
    probability of each identity word, :math:`P_w = p_w / \sum p`, and RNSB
    :math:`= KL(P \parallel \text{uniform})`. Sweeney & Najafian (2019). With :math:`\bar p` the
    mean it equals :math:`\overline{p \log p} / \bar p - \log \bar p`, a smooth function of two
    means, which the interval rests on.

    Examples
    --------
    >>> import evenhand as eh
    >>> v = eh.vectors.load("glove")
    >>> groups = {"men": ["he", "man", "him"], "women": ["she", "woman", "her"]}
    >>> m = eh.vectors.rnsb(v, groups, ["love", "joy", "peace"], ["hate", "war", "evil"])
    >>> sum(m.details["negative_share"].values()).__round__(6)
    1.0

    """
    question = Query(
        name=query,
        targets=targets,  # type: ignore[arg-type]
        attributes={"positive": positive, "negative": negative},  # type: ignore[dict-item]
    )
    return Rnsb(null=null).answer(v, question, Run(**run))[0]
