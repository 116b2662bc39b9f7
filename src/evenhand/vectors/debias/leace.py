"""Least-squares concept erasure: the smallest change that hides the classes from linear probes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from evenhand.errors import InputError
from evenhand.statistics.erasure import AffineMap, one_hot
from evenhand.statistics.erasure import leace as fit_leace
from evenhand.vectors.debias.groups import disjoint_groups, most_biased
from evenhand.vectors.debias.inlp import FITTED, fresh_accuracy, rbf_accuracy
from evenhand.vectors.debias.subspace import Debiased, chunks, unit_rows
from evenhand.vectors.store import Vectors

_MINIMUM = 5
"""Known words that a group needs, so that some can be held out."""


def leace(
    v: Vectors,
    groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]],
    *,
    seed: int = 0,
    held_out: float = 0.3,
    n: int = 2000,
    prob: float = 0.95,
) -> Debiased:
    r"""Erase the classes by the affine map that hides them from linear probes and changes least.

    Parameters
    ----------
    v : Vectors
    groups : Mapping of str to sequence of str, or sequence of sequences of str
        The words of each class. Defining sets instead stand for the `n` most biased words on
        each side of their first component.
    seed : int
    held_out : float
        The share of words that are not fitted on, which the probes of the report are tested on.
    n : int
        Words on each side, where `groups` are defining sets.
    prob : float
        Probability of the intervals.

    Returns
    -------
    Debiased
        `transform` and `shift` are the map. The report has the largest difference of the classes'
        means that is left on the fitted words (rounding), the mean change in squares, and the
        accuracy of probes on held-out words as for `inlp`.

    Notes
    -----
    $r(x) = x - \Sigma^{1/2} P \, \Sigma^{-1/2} (x - \mu)$, see `evenhand.statistics.erasure.leace`;
    Belrose et al. (2023). As for INLP the map applies to the unit vectors of the vocabulary, and
    their length is not restored. It removes one dimension fewer than there are classes.

    Examples
    --------
    >>> import evenhand as eh
    >>> v, gender = eh.vectors.load("glove", limit=5000), eh.lexicon.topic("gender")
    >>> result = eh.vectors.leace(v, gender.definitional, n=100)
    >>> result.report["rank"], result.report["largest_left"] < 1e-8
    (1, True)

    """
    from sklearn.model_selection import train_test_split

    if not 0 < held_out < 1:
        raise InputError(f"held_out: expected a share between 0 and 1, got {held_out}")
    chosen = groups if isinstance(groups, Mapping) else most_biased(v, groups, n)
    known = disjoint_groups(v, chosen, _MINIMUM)
    unit, labels = v.unit(known.rows), known.labels
    share = max(held_out, len(known.names) / labels.size)
    train, test = train_test_split(
        np.arange(labels.size), test_size=share, stratify=labels, random_state=seed
    )
    erase = fit_leace(unit[train], one_hot(labels[train]))
    erased = erase(unit)
    means = np.array(
        [erased[train][labels[train] == i].mean(axis=0) for i in range(len(known.names))]
    )
    scale = math.sqrt(v.dim)
    notes = [FITTED]
    if train.size < 5 * v.dim:
        notes.append(
            f"fitted on {train.size} words for {v.dim} dimensions: with fewer than five words per "
            "dimension much of what is hidden on these words shows on others"
        )
    return Debiased(
        vectors=v.with_matrix(_applied(v, erase), name=f"{v.name}+leace"),
        method="leace",
        settings={
            "groups": {name: len(words) for name, words in chosen.items()},
            "held_out": held_out,
            "prob": prob,
        },
        report={
            "rank": erase.rank,
            "train": int(train.size),
            "test": int(test.size),
            "chance": float(np.bincount(labels[test]).max() / test.size),
            "largest_left": float(np.ptp(means, axis=0).max()),
            "mean_change": float(((erased - unit) ** 2).sum(axis=1).mean()),
            "fresh": fresh_accuracy(erased[test] * scale, labels[test], seed, prob),
            "rbf_before": rbf_accuracy(unit * scale, labels, train, test, prob),
            "rbf_after": rbf_accuracy(erased * scale, labels, train, test, prob),
        },
        transform=erase.matrix,
        shift=erase.shift,
        fitted_on=tuple(known.words[i] for i in np.sort(train)),
        left_out=tuple(dict.fromkeys(known.missing)),
        notes=tuple(notes),
        seed=seed,
    )


def _applied(v: Vectors, erase: AffineMap) -> Any:
    """The map of every unit vector; zero vectors stay zero."""
    out = np.empty(v.matrix.shape, dtype=np.float32)
    for part in chunks(*v.matrix.shape):
        rows = unit_rows(v.matrix[part])
        out[part] = np.where(rows.any(axis=1, keepdims=True), erase(rows), 0.0)
    return out
