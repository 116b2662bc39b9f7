"""The words that lean most to each class of people, for any number of classes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from evenhand.errors import VocabularyError
from evenhand.vectors.debias.groups import is_plain
from evenhand.vectors.debias.projection import unit_rows
from evenhand.vectors.lookup import known_groups
from evenhand.vectors.store import Vectors

__all__ = ["leaning_by_class"]


def leaning_by_class(
    v: Vectors,
    classes: Mapping[str, Sequence[str]],
    n: int,
    *,
    exclude: Iterable[str] = (),
    limit: int = 50_000,
) -> dict[str, list[str]]:
    """The n plain words nearest each class by margin, most leaning first.

    A word's lean to a class is its cosine with the mean of the class's words less its mean over
    the classes; it belongs to the class it leans to most, and the margin to the next decides its
    place. For two classes this is the order along the difference of their means.
    """
    found = known_groups(v, classes, "class")
    members = v.unit(found.rows)
    centres = np.stack([members[found.labels == i].mean(axis=0) for i in range(len(classes))])
    barred = set(found.rows.tolist()) | set(v.find(list(exclude)).rows.tolist())
    rows = np.array(
        [row for row, word in enumerate(v.words[:limit]) if row not in barred and is_plain(word)],
        dtype=np.intp,
    )
    lean = unit_rows(v.matrix[rows]) @ (centres - centres.mean(axis=0)).T.astype(np.float32)
    ordered = np.sort(lean, axis=1)
    margin, home = ordered[:, -1] - ordered[:, -2], lean.argmax(axis=1)
    result = {}
    for i, name in enumerate(classes):
        mine = np.flatnonzero(home == i)
        if mine.size < n:
            raise VocabularyError(
                f"expected {n} words that lean to '{name}' in {v.name}, got {mine.size}"
            )
        best = mine[np.argsort(-margin[mine], kind="stable")[:n]]
        result[name] = [v.words[row] for row in rows[best]]
    return result
