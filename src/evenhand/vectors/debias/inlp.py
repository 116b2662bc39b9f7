"""Iterative null-space projection: remove what a linear classifier can still use."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.statistics.intervals import Floats, wilson
from evenhand.vectors.debias.groups import disjoint_groups, most_biased
from evenhand.vectors.debias.subspace import Debiased, project_out
from evenhand.vectors.store import Vectors

FITTED = (
    "the words it was fitted on understate what is left: judge this result by other words "
    "(hiding_tests with exclude=result.fitted_on)"
)

_MINIMUM = 5
"""Known words that a group needs, so that some can be held out."""


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
        The words of each class. Defining sets instead stand for the `n` most biased words on
        each side of their first component.
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
    from sklearn.model_selection import train_test_split

    if not 0 < held_out < 1:
        raise InputError(f"held_out: expected a share between 0 and 1, got {held_out}")
    if max_rounds < 1:
        raise InputError(f"max_rounds: expected 1 or more, got {max_rounds}")
    chosen = groups if isinstance(groups, Mapping) else most_biased(v, groups, n)
    known = disjoint_groups(v, chosen, _MINIMUM)
    unit, labels = v.unit(known.rows), known.labels
    share = max(held_out, len(known.names) / labels.size)
    train, test = train_test_split(
        np.arange(labels.size), test_size=share, stratify=labels, random_state=seed
    )
    chance = float(np.bincount(labels[test]).max() / test.size)
    basis = np.zeros((0, v.dim))
    rounds: list[dict[str, Any]] = []
    while True:
        left = _left(unit, basis)
        probe = LogisticRegression(max_iter=10_000).fit(left[train], labels[train])
        rounds.append(accuracy(probe.predict(left[test]), labels[test], prob))
        if rounds[-1]["low"] <= chance or len(rounds) > max_rounds:
            break
        basis = extended(basis, probe.coef_)
    notes = [FITTED]
    if rounds[-1]["low"] > chance:
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
            "groups": {name: len(words) for name, words in chosen.items()},
            "max_rounds": max_rounds,
            "held_out": held_out,
            "prob": prob,
        },
        report={
            "rounds": rounds,
            "chance": chance,
            "train": int(train.size),
            "test": int(test.size),
            "fresh": fresh_accuracy(_left(unit, basis)[test], labels[test], seed, prob),
            "rbf_before": rbf_accuracy(_left(unit, basis[:0]), labels, train, test, prob),
            "rbf_after": rbf_accuracy(_left(unit, basis), labels, train, test, prob),
            "largest_left": projection.largest_left,
        },
        removed=basis,
        fitted_on=tuple(known.words[i] for i in np.sort(train)),
        left_out=tuple(dict.fromkeys(known.missing)),
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
    """What is left of the unit vectors, times √d: coordinates of about unit variance."""
    return np.asarray((unit - (unit @ basis.T) @ basis) * math.sqrt(unit.shape[1]))


def rbf_accuracy(
    left: Floats,
    labels: NDArray[np.intp],
    train: NDArray[np.intp],
    test: NDArray[np.intp],
    prob: float,
) -> dict[str, float]:
    """Accuracy of an RBF support vector machine on the test words."""
    from sklearn.svm import SVC

    probe = SVC(kernel="rbf", gamma="scale").fit(left[train], labels[train])
    return accuracy(probe.predict(left[test]), labels[test], prob)


def fresh_accuracy(
    left: Floats, labels: NDArray[np.intp], seed: int, prob: float
) -> dict[str, float] | None:
    """Cross-validated accuracy of new linear probes; None where a group has one word only."""
    from sklearn.linear_model import LogisticRegression
    from sklearn.model_selection import StratifiedKFold, cross_val_predict

    folds = min(5, int(np.bincount(labels).min()))
    if folds < 2:
        return None
    split = StratifiedKFold(folds, shuffle=True, random_state=seed)
    probe = LogisticRegression(max_iter=10_000)
    return accuracy(cross_val_predict(probe, left, labels, cv=split), labels, prob)


def accuracy(
    predicted: NDArray[np.intp], labels: NDArray[np.intp], prob: float
) -> dict[str, float]:
    """The share that is right, with its interval."""
    share, low, high = wilson(int((predicted == labels).sum()), labels.size, prob)
    return {"accuracy": share, "low": low, "high": high}
