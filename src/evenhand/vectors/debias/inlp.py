"""Iterative null-space projection: remove what a linear classifier can still use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from evenhand.arguments import checked
from evenhand.errors import InputError
from evenhand.statistics.intervals import Floats
from evenhand.vectors.debias.groups import FITTED, accuracy, split_groups
from evenhand.vectors.debias.subspace import Debiased, project_out
from evenhand.vectors.store import Vectors


@checked
def inlp(
    v: Vectors,
    groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]],
    *,
    seed: int = 0,
    max_rounds: int = 35,
    held_out: float = 0.3,
    n: int = 2000,
    prob: float = 0.95,
) -> Debiased:
    """Project out the directions that separate the groups until a linear probe is at chance.

    Parameters
    ----------
    v : Vectors
    groups : Mapping of str to sequence of str, or sequence of sequences of str
        The words of each class; of defining sets, the `n` most biased words on each side of
        their first component.
    seed : int
    max_rounds : int
    held_out : float
        The share of words that the probes are tested on.
    n : int
        Words on each side, where `groups` are defining sets.
    prob : float
        Probability of the intervals.

    Returns
    -------
    Debiased
        The report has the accuracy of every round; that of a new probe, trained and tested on
        held-out words only (`fresh`: directions learned from few words per dimension leave a
        trace of the size of their own error, so use many); and that of an RBF support vector
        machine on the held-out words before and after, since bias need not be linear.

    Notes
    -----
    Ravfogel et al. (2020): each round fits a linear classifier (logistic regression) to the
    training words, adds its row space to what is removed and tests on the held-out words, until
    the interval of the held-out accuracy includes the share of the largest group. The projection
    applies to the unit vectors of the vocabulary, and their length is not restored: the map stays
    linear.

    Examples
    --------
    >>> import evenhand as eh
    >>> v, gender = eh.vectors.load("glove", limit=5000), eh.lexicon.topic("gender")
    >>> result = eh.vectors.inlp(v, gender.definitional, n=100, max_rounds=2)
    >>> result.method, len(result.removed) <= 2
    ('inlp', True)

    """
    from sklearn.linear_model import LogisticRegression

    if max_rounds < 1:
        raise InputError(f"max_rounds: expected 1 or more, got {max_rounds}")
    split = split_groups(v, groups, n, held_out, seed)
    unit, labels, train, test = split.unit, split.known.labels, split.train, split.test
    basis = np.zeros((0, v.dim))
    rounds: list[dict[str, float]] = []
    while True:
        left = _left(unit, basis)
        probe = LogisticRegression(max_iter=10_000).fit(left[train], labels[train])
        rounds.append(accuracy(probe.predict(left[test]), labels[test], prob))
        if rounds[-1]["low"] <= split.chance or len(rounds) > max_rounds:
            break
        basis = extended(basis, probe.coef_)
    notes = [FITTED]
    if rounds[-1]["low"] > split.chance:
        notes.append(f"after {max_rounds} rounds a linear probe is still above chance")
    if len(rounds) == 1:
        notes.append("a linear probe was at chance from the start: nothing was removed")
    projection = project_out(v.matrix, basis, renormalize=False)
    if projection.inside.size:
        words = ", ".join(v.words[row] for row in projection.inside[:8])
        notes.append(f"{projection.inside.size} words have nothing left, such as {words}")
    return Debiased(
        vectors=v.with_matrix(projection.matrix, name=f"{v.name}+inlp"),
        method="inlp",
        settings={
            "groups": split.sizes,
            "max_rounds": max_rounds,
            "held_out": held_out,
            "prob": prob,
        },
        report={
            "rounds": rounds,
            **split.report(_left(unit, basis[:0]), _left(unit, basis), seed, prob),
            "largest_left": projection.largest_left,
        },
        removed=basis,
        fitted_on=split.fitted_on,
        left_out=tuple(dict.fromkeys(split.known.missing)),
        notes=tuple(notes),
        seed=seed,
    )


def extended(basis: Floats, rows: Floats) -> Floats:
    """The orthonormal basis with the row space of `rows` added; what is already in it is not.

    One basis for all rounds is the intersection of their null spaces, so projecting twice is
    projecting once.
    """
    fresh = rows / np.linalg.norm(rows, axis=1, keepdims=True).clip(min=1e-300)
    for _ in range(2):
        fresh = fresh - (fresh @ basis.T) @ basis
    _, sizes, axes = np.linalg.svd(fresh, full_matrices=False)
    return np.concatenate([basis, axes[sizes > 1e-6]])


def _left(unit: Floats, basis: Floats) -> Floats:
    """The unit vectors without the basis, times √d: coordinates of about unit variance."""
    return np.asarray((unit - (unit @ basis.T) @ basis) * math.sqrt(unit.shape[1]))
