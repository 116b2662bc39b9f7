"""RNSB: does a sentiment classifier spread negative sentiment evenly over groups?"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np

from evenhand import lexicon
from evenhand.instruments import Run, instrument
from evenhand.lexicon import Query, Topic
from evenhand.results import Measurement
from evenhand.statistics.association import project, unit
from evenhand.statistics.intervals import Floats, jackknife
from evenhand.vectors.probes import Labels, WordMetric, length_option, without_each
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import known, known_groups, refuse_shared

TOLERANCE = 1e-9
"""The largest gradient, relative to the number of words, at which the classifier is fitted."""
MAX_STEPS = 200


def divergence(p: Floats) -> Floats:
    """KL(p/Σp ‖ uniform) along the last axis.

    >>> float(divergence(np.array([0.5, 0.5, 0.5])))
    0.0
    """
    mean = p.mean(axis=-1)
    return np.asarray(np.maximum((p * np.log(p)).mean(axis=-1) / mean - np.log(mean), 0.0))


def fit_logistic(x: Floats, y: Floats) -> tuple[Floats, float]:
    r"""The weights and the intercept of a logistic regression, by Newton's method.

    Minimises :math:`\sum_i \log(1 + e^{-z_i}) + \tfrac12 \lVert w \rVert^2` with
    :math:`z_i = \pm (w^\top x_i + b)`, scikit-learn's L2 penalty at C = 1; y is 0 or 1.

    >>> weights, intercept = fit_logistic(np.array([[-1.0], [1.0]]), np.array([0.0, 1.0]))
    >>> float(weights[0].round(6)), abs(intercept) < 1e-9
    (0.674832, True)
    """
    design = np.column_stack([x, np.ones(len(x))])
    penalty = np.append(np.ones(x.shape[1]), 0.0)
    beta = np.zeros(len(penalty))

    def loss(b: Floats) -> float:
        z = design @ b
        return float(np.logaddexp(0, z).sum() - y @ z + penalty @ b**2 / 2)

    reached = loss(beta)
    for _ in range(MAX_STEPS):
        p = _sigmoid(design @ beta)
        gradient = design.T @ (p - y) + penalty * beta
        if np.abs(gradient).max() <= TOLERANCE * len(x):
            break
        hessian = (design.T * (p * (1 - p))) @ design + np.diag(penalty)
        step = np.linalg.solve(hessian, gradient)
        for size in 0.5 ** np.arange(40):
            value = loss(beta - size * step)
            if value < reached:
                break
        else:
            break
        beta, reached = beta - size * step, value
    return beta[:-1], float(beta[-1])


def _sigmoid(z: Floats) -> Floats:
    return np.asarray(np.exp(-np.logaddexp(0, -z)))


@dataclass(frozen=True, slots=True)
class RnsbStatistic:
    """RNSB with its classifier fixed; the identity words are the probes."""

    weights: Floats
    intercept: float
    scaled: bool = True
    """Whether words are scaled to length one."""

    def scores(self, vectors: Floats) -> Floats:
        weights = self.weights[None]
        products = project(vectors, weights) if self.scaled else vectors @ weights.T
        return _sigmoid(products + self.intercept)

    def value(self, scores: Floats, labels: Labels) -> Floats:
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
    label="RNSB",
    question="Does a sentiment classifier spread negative sentiment evenly over the protected "
    "words?",
    above="negative sentiment is spread unevenly over the protected words",
    formula="KL(p / sum p, uniform), p the negative probability of each protected word under a "
    "logistic regression trained on pleasant and unpleasant words",
    source="Sweeney & Najafian (2019)",
    worse="higher",
    material="a topic, or a query with two or more target sets and two attribute sets (positive, "
    "negative)",
    reading="A divergence: 0 where negative sentiment is spread evenly.",
    caveats=(
        "Its size depends on the length of the vectors, by the classifier's penalty: compare "
        "values at the same length only; WEFE's are at the vectors' own length.",
    ),
    scale="Divergence from an even spread (ideal: 0)",
)
class Rnsb(WordMetric):
    r"""RNSB: how unevenly negative sentiment falls on the words of groups.

    The material is a query with two or more target sets, the identity words by group, and two
    attribute sets, the positive and the negative words that the sentiment classifier is trained on;
    or a topic.

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

    The regression has scikit-learn's L2 penalty (C = 1) and is fitted to convergence. On vectors of
    length one that penalty is strong, so that all probabilities are near one half and RNSB is
    small: compare values only at the same `length`. WEFE (Badilla et al. 2020) reads vectors at
    their own length and holds out a fifth of the training words; ``length="own"`` is its setting
    without the hold-out.

    Examples
    --------
    >>> import evenhand as eh
    >>> query = eh.lexicon.Query(
    ...     name="sentiment",
    ...     targets={"men": ("he", "man", "him"), "women": ("she", "woman", "her")},
    ...     attributes={"positive": ("love", "joy"), "negative": ("hate", "war")},
    ... )
    >>> m = eh.vectors.Rnsb()(eh.vectors.load("glove"), query)
    >>> round(sum(m.details["negative_share"].values()), 6)
    1.0
    """

    minimum_target_sets = 2
    attribute_sets = 2

    length: Literal["own", "unit"] | None = length_option()

    def split(self, topic: Topic) -> Sequence[Query]:
        """The pleasant and unpleasant words of WEAT 1 are the sentiment."""
        sentiment = lexicon.weat(1).attributes
        name = f"{topic.name}: sentiment"
        return [Query(name=name, targets=topic.protected, attributes=sentiment)]

    def answer(self, v: Vectors, question: Query, run: Run) -> Iterator[Measurement]:
        query = question.name
        positive, negative = question.attributes.values()
        probes = known_groups(v, question.targets, f"rnsb '{query}': target set", disjoint=True)
        good = known(v, positive, f"rnsb '{query}': positive words", at_least=2)
        bad = known(v, negative, f"rnsb '{query}': negative words", at_least=2)
        refuse_shared(good, bad, f"rnsb '{query}': positive and negative words")
        scaled = self.length != "own"
        training = v.raw(np.concatenate([good.rows, bad.rows]))
        training = unit(training) if scaled else training
        classes = np.repeat([0, 1], [len(good.words), len(bad.words)])
        weights, intercept = fit_logistic(training, classes.astype(float))
        predicted = training @ weights + intercept > 0
        statistic = RnsbStatistic(weights, intercept, scaled)
        p = statistic.scores(v.raw(probes.rows))[:, 0]
        shares = np.bincount(probes.labels, p) / p.sum()
        even = np.bincount(probes.labels) / p.size
        yield self.score(
            v,
            statistic,
            probes,
            query=query,
            run=run,
            fixed=(good, bad),
            details={
                "length": "unit" if scaled else "own",
                "training_accuracy": float((predicted == classes).mean()),
                "negative_share": dict(zip(probes.names, shares.tolist(), strict=True)),
                "even_share": dict(zip(probes.names, even.tolist(), strict=True)),
            },
        )
