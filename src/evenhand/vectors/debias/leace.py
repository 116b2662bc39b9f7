"""Least-squares concept erasure: the smallest change that hides the classes from linear probes."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.statistics.erasure import AffineMap, one_hot
from evenhand.statistics.erasure import leace as fit_leace
from evenhand.vectors.debias.groups import FITTED, split_groups
from evenhand.vectors.debias.subspace import Debiased, chunks, unit_rows
from evenhand.vectors.store import Vectors


@checked
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
    held_out : float
        The share of words that are not fitted on, which the probes of the report are tested on.
    v, groups, seed, n, prob
        As for `inlp`.

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
    split = split_groups(v, groups, n, held_out, seed)
    unit, labels, train = split.unit, split.known.labels, split.train
    erase = fit_leace(unit[train], one_hot(labels[train].tolist()))
    erased = erase(unit)
    means = np.array(
        [erased[train][labels[train] == i].mean(axis=0) for i in range(len(split.sizes))]
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
        settings={"groups": split.sizes, "held_out": held_out, "prob": prob},
        report={
            "rank": erase.rank,
            "largest_left": float(np.ptp(means, axis=0).max()),
            "mean_change": float(((erased - unit) ** 2).sum(axis=1).mean()),
            **split.report(unit * scale, erased * scale, seed, prob),
        },
        transform=erase.matrix,
        shift=erase.shift,
        fitted_on=split.fitted_on,
        left_out=tuple(dict.fromkeys(split.known.missing)),
        notes=tuple(notes),
        seed=seed,
    )


def _applied(v: Vectors, erase: AffineMap) -> NDArray[np.float32]:
    """The map of every unit vector; zero vectors stay zero."""
    out = np.empty(v.matrix.shape, dtype=np.float32)
    for part in chunks(*v.matrix.shape):
        rows = unit_rows(v.matrix[part])
        out[part] = np.where(rows.any(axis=1, keepdims=True), erase(rows), 0.0)
    return out
