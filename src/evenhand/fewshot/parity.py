r"""A constraint on predictions: in each episode, men and women get every class equally often.

The second tangent of El Zein (2021, §4.2) constrains what a classifier predicts. Here the queries
of an episode are decided together. Let $p_q$ be the probabilities of query $q$ and $t$ their mean
over the men's and women's queries of the episode. Of all answers whose mean among men's queries and
whose mean among women's queries is $t$, those are taken that are nearest to $p$,

$$\min_{p'} \sum_q \mathrm{KL}(p'_q \,\|\, p_q) \quad \text{with} \quad
  \frac{1}{n_g} \sum_{q \in g} p'_q = t \ \text{ for both genders } g .$$

This is posterior regularisation (Ganchev et al. 2010; for gender, Jia et al. 2020). Its solution
adds an offset by gender and class to the log-probabilities, $p'_{qc} \propto p_{qc} e^{b_{gc}}$,
found by Newton's and Sinkhorn's steps on its dual. The offsets come from the texts as they are and
their recorded genders; no label of a query enters. The counterfactual of a man's text has the
offsets of women. Queries of unknown gender and of persons who are neither, and episodes with
queries of one gender only, stay as they are.

The shares are equal in expectation; those of the likeliest classes are nearly so, since a class is
given to a whole number of queries.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from evenhand.fewshot.answers import Classifier, FewShotPredictions
from evenhand.statistics.jackknife import Floats, Ints

ROUNDS = 500
CLOSE = 1e-7
"""The iterations end when no mean is further from its target than this."""
FARTHEST = 5.0
"""The largest step of an offset, in nats."""
RIDGE = 1e-10


def equalize(classifier: Classifier) -> Classifier:
    """The same classifier with as large an expected share of each class for men as for women.

    Neutral versions of the queries have no gender and stay as they are.
    """
    answers, both = classifier.answers, classifier.counterfactuals
    added = offsets(answers)
    own = _add(answers, added, answers.genders)
    if both is not None:
        other = np.where(answers.genders >= 0, 1 - answers.genders, answers.genders)
        both = replace(both, original=own, swapped=_add(both.swapped, added, other))
    return replace(classifier, answers=own, counterfactuals=both)


def _add(answers: FewShotPredictions, added: Floats, genders: Ints) -> FewShotPredictions:
    """The answers with the offsets of these genders, each with the sum of its probabilities."""
    by_query = np.take_along_axis(added, np.maximum(genders, 0)[:, :, None], axis=1)
    moved = answers.log_probs + np.where(genders[:, :, None] >= 0, by_query, 0.0)
    before, after = (
        np.logaddexp.reduce(each, axis=2, keepdims=True) for each in (answers.log_probs, moved)
    )
    return replace(answers, log_probs=moved + before - after)


def offsets(answers: FewShotPredictions) -> Floats:
    """The offset of each gender and class in each episode, (E, 2, C)."""
    logs = answers.log_probs
    logs = logs - np.logaddexp.reduce(logs, axis=2, keepdims=True)  # given that a class is named
    groups = np.stack([answers.genders == gender for gender in (0, 1)], axis=1)
    both = groups.sum(axis=2).min(axis=1) > 0
    added = np.zeros((len(logs), 2, logs.shape[2]))
    logs, groups = logs[both], groups[both]
    known = groups.sum(axis=1)[:, :, None]
    target = (np.exp(logs) * known).sum(axis=1) / known.sum(axis=1)
    weights = groups / groups.sum(axis=2, keepdims=True)
    for gender in (0, 1):
        added[both, gender] = _fit(logs, weights[:, gender], target)
    return added


def _fit(logs: Floats, weights: Floats, target: Floats) -> Floats:
    """The offsets (P, C) that give the rows of P sets the target as their weighted mean.

    They maximise the concave dual, target · b less the mean of log Σ p e^b, by Newton's steps;
    where Sinkhorn's step, which never falls, gains more, by that one.
    """
    found = np.zeros_like(target)
    left = np.arange(len(target))
    for _ in range(ROUNDS):
        rows, share, wanted, b = logs[left], weights[left], target[left], found[left]
        _, probs = _dual(rows, share, wanted, b)
        mean = np.einsum("pm,pmc->pc", share, probs)
        gap = wanted - mean
        far = np.abs(gap).max(axis=1, initial=0) > CLOSE
        if not far.any():
            return found
        left = left[far]
        rows, share, wanted, b = logs[left], weights[left], target[left], b[far]
        mean, probs, gap = mean[far], probs[far], gap[far]
        curvature = -np.einsum("pm,pmc,pmd->pcd", share, probs, probs)
        diagonal = np.arange(mean.shape[1])
        curvature[:, diagonal, diagonal] += mean + RIDGE
        newton = np.linalg.solve(curvature, gap[..., None])[..., 0]
        newton -= newton.mean(axis=1, keepdims=True)
        newton *= np.minimum(1, FARTHEST / np.abs(newton).max(axis=1, keepdims=True))
        sinkhorn = np.log(wanted / mean)
        values = [_dual(rows, share, wanted, b + step)[0] for step in (newton, sinkhorn)]
        found[left] = b + np.where((values[0] > values[1])[:, None], newton, sinkhorn)
    return found


def _dual(logs: Floats, weights: Floats, target: Floats, b: Floats) -> tuple[Floats, Floats]:
    """The dual at some offsets, and the probabilities there."""
    moved = logs + b[:, None]
    total = np.logaddexp.reduce(moved, axis=2)
    return (target * b).sum(axis=1) - (weights * total).sum(axis=1), np.exp(
        moved - total[..., None]
    )
