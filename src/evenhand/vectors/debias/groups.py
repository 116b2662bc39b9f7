"""Which words lean which way: the groups that INLP learns from and the hiding tests look for."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evenhand.errors import InputError, VocabularyError
from evenhand.statistics.intervals import Floats
from evenhand.vectors.debias.subspace import bias_subspace, chunks, known_sets, unit_rows
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import Groups, known_groups


def disjoint_groups(v: Vectors, groups: Mapping[str, Sequence[str]], at_least: int) -> Groups:
    """Two or more groups with at least so many known words each and no word in common."""
    if len(groups) < 2:
        raise InputError(f"groups: expected two or more, got {len(groups)}")
    known = known_groups(v, groups, "group", at_least=at_least)
    rows, counts = np.unique(known.rows, return_counts=True)
    if counts.max() > 1:
        shared = ", ".join(v.words[row] for row in rows[counts > 1][:8])
        raise InputError(f"groups: expected each word in one group only, got in several: {shared}")
    return known


def is_plain(word: str) -> bool:
    """Lower case, a letter first, then letters, digits and hyphens: no capitals, numbers or marks.

    >>> [word for word in ("nurse", "full-time", "b2b", "Nurse", "1990", "don't") if is_plain(word)]
    ['nurse', 'full-time', 'b2b']
    """
    return word[0].isalpha() and word.replace("-", "").isalnum() and word == word.lower()


def word_bias(
    v: Vectors,
    direction: Floats | Sequence[Sequence[str]],
    *,
    exclude: Iterable[str] = (),
    limit: int = 50_000,
) -> dict[str, float]:
    """The cosine with the direction of every plain word among the `limit` most frequent.

    `direction` is an array or the defining sets it is the first component of, whose words are
    then excluded. See `is_plain` for plain words; zero vectors have no cosine and are not listed.
    """
    barred = {int(row) for row in v.find(list(exclude)).rows}
    if not isinstance(direction, np.ndarray):
        barred.update(known_sets(v, direction, "direction").defining.tolist())
        direction = bias_subspace(v, direction).direction
    axis = np.asarray(direction, dtype=np.float64)
    if axis.shape != (v.dim,) or not np.linalg.norm(axis) > 0:
        raise InputError(f"direction: expected {v.dim} numbers not all 0, got shape {axis.shape}")
    axis = axis / np.linalg.norm(axis)
    bias: dict[str, float] = {}
    for part in chunks(min(limit, len(v)), v.dim):
        unit = unit_rows(v.matrix[part])
        for row, vector, cosine in zip(
            range(part.start, part.stop), unit, (unit @ axis).tolist(), strict=True
        ):
            word = v.words[row]
            if is_plain(word) and row not in barred and vector.any():
                bias[word] = cosine
    return bias


def most_biased(
    v: Vectors,
    direction: Floats | Sequence[Sequence[str]],
    n: int = 500,
    *,
    exclude: Iterable[str] = (),
    limit: int = 50_000,
) -> dict[str, list[str]]:
    """The n words furthest along the direction and the n furthest against it, most biased first.

    Choose them in the original vectors (Gonen & Goldberg, 2019); see `word_bias` for the
    candidates and for `direction`.
    """
    bias = word_bias(v, direction, exclude=exclude, limit=limit)
    ranked = sorted(bias, key=lambda word: (-bias[word], word))
    positive = sum(cosine > 0 for cosine in bias.values())
    negative = sum(cosine < 0 for cosine in bias.values())
    if n < 1 or min(positive, negative) < n:
        raise VocabularyError(
            f"n: expected 1 to {min(positive, negative)} words on each side of the direction "
            f"in {v.name}, got {n}"
        )
    return {"positive": ranked[:n], "negative": ranked[: -n - 1 : -1]}


def leaning_by_class(
    v: Vectors,
    classes: Mapping[str, Sequence[str]],
    n: int,
    *,
    exclude: Iterable[str] = (),
    limit: int = 50_000,
) -> dict[str, list[str]]:
    """The n plain words nearest each class by margin, most leaning first.

    Where fewer lean to one of the classes, as few are taken of each.

    A word's lean to a class is its cosine with the mean of the class's words minus its mean over
    the classes; it belongs to the class it leans to most, and is ranked by the margin to the
    next. For two classes this is the order along the difference of their means.
    """
    known = known_groups(v, classes, "class")
    members = v.unit(known.rows)
    centres = np.stack([members[known.labels == i].mean(axis=0) for i in range(len(classes))])
    barred = set(known.rows.tolist()) | set(v.find(list(exclude)).rows.tolist())
    rows = np.array(
        [row for row, word in enumerate(v.words[:limit]) if row not in barred and is_plain(word)],
        dtype=np.intp,
    )
    lean = unit_rows(v.matrix[rows]) @ (centres - centres.mean(axis=0)).T.astype(np.float32)
    ordered = np.sort(lean, axis=1)
    margin, home = ordered[:, -1] - ordered[:, -2], lean.argmax(axis=1)
    count = min(n, int(np.bincount(home, minlength=len(classes)).min()))
    result = {}
    for i, name in enumerate(classes):
        own = np.flatnonzero(home == i)
        best = own[np.argsort(-margin[own], kind="stable")[:count]]
        result[name] = [v.words[row] for row in rows[best]]
    return result
