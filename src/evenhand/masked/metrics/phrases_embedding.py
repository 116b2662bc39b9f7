"""Phrases, the words they are held against and the control phrases, all as embeddings.

A phrase is embedded by a masked language model (the mean of its last layer) or by word vectors (the
mean of its words). The embeddings of language models all point much the same way, so that raw
cosines are near 1; `centred` takes the mean of control phrases away from every embedding first.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
from numpy.typing import ArrayLike, NDArray

from evenhand.errors import InputError, VocabularyError
from evenhand.intervals import Floats
from evenhand.lexicon.phrases import Phrases

__all__ = ["Embed", "Embedded", "WordMean", "associations", "embedded", "moved", "terms"]

Embed = Callable[[list[str]], ArrayLike]
"""Texts to embeddings (n, dim), such as `Model.embed`; a row of nan says that there is none."""


class WordVectors(Protocol):
    """What gives a vector for a word that it has."""

    def __contains__(self, word: object) -> bool: ...
    def __getitem__(self, word: str) -> Any: ...


@dataclass(frozen=True, slots=True)
class WordMean:
    """A text's embedding as the mean of its words' vectors; words without one are passed over.

    `missing` names them; a text of which no word is known has no embedding.

    >>> mean = WordMean({"fixes": [1.0, 0.0], "engines": [0.0, 1.0]})
    >>> mean(["fixes old engines", "sleeps"]), sorted(mean.missing)
    (array([[0.5, 0.5], [nan, nan]]), ['old', 'sleeps'])
    """

    vectors: WordVectors
    missing: set[str] = field(default_factory=set)

    def __call__(self, texts: Sequence[str]) -> Floats:
        rows = []
        for text in texts:
            words = text.split()
            self.missing.update(word for word in words if word not in self.vectors)
            known = [
                np.asarray(self.vectors[word], float) for word in words if word in self.vectors
            ]
            rows.append(np.mean(known, axis=0) if known else None)
        width = next((len(row) for row in rows if row is not None), 1)
        return np.array([np.full(width, np.nan) if row is None else row for row in rows])


@dataclass(frozen=True, slots=True)
class Embedded:
    """The phrases of some sets with their embeddings, in the order of the sets.

    `side` is 0 for a phrase of a set's first side and 1 for the second's; `left_out` are the
    texts that have no embedding.
    """

    source: str
    lists: Phrases
    phrases: tuple[str, ...]
    sets: tuple[str, ...]
    side: NDArray[np.int64]
    vectors: Floats = field(repr=False)
    attributes: tuple[Floats, Floats] = field(repr=False)
    control: Floats = field(repr=False)
    left_out: tuple[str, ...] = ()

    def of(self, name: str) -> NDArray[np.bool_]:
        """Which phrases are of the set."""
        return np.array([of == name for of in self.sets])


def embedded(embed: Embed, lists: Phrases, *, source: str = "") -> Embedded:
    """Embed the phrases, attributes and control phrases of the lists, once and together."""
    targets = [
        (phrase, name, side)
        for name, one in lists.sets.items()
        for side, listed in enumerate(one.targets.values())
        for phrase in listed
    ]
    texts = [phrase for phrase, _, _ in targets]
    parts = [texts, *map(list, lists.attributes.values()), list(lists.control)]
    every = list(dict.fromkeys(text for part in parts for text in part))
    matrix = np.asarray(embed(every), dtype=float)
    if matrix.ndim != 2 or len(matrix) != len(every):
        raise InputError(
            f"embed: expected an embedding for each of {len(every)} texts, got {matrix.shape}"
        )
    known = dict(zip(every, np.isfinite(matrix).all(axis=1), strict=True))
    row = {text: i for i, text in enumerate(every)}
    found = [target for target in targets if known[target[0]]]
    for name, side in dict.fromkeys((name, side) for _, name, side in targets):
        if sum(target[1:] == (name, side) for target in found) < 2:
            raise VocabularyError(
                f"phrase set '{name}': expected at least 2 phrases with an embedding on each side"
            )
    one, two, control = (matrix[[row[text] for text in part if known[text]]] for part in parts[1:])
    if not len(one) or not len(two):
        raise VocabularyError("phrase attributes: expected some with an embedding on each side")
    return Embedded(
        source=source,
        lists=lists,
        phrases=tuple(phrase for phrase, _, _ in found),
        sets=tuple(name for _, name, _ in found),
        side=np.array([side for _, _, side in found]),
        vectors=matrix[[row[phrase] for phrase, _, _ in found]],
        attributes=(one, two),
        control=control,
        left_out=tuple(text for text in every if not known[text]),
    )


def moved(of: Embedded, *, centred: bool = False) -> tuple[Floats, Floats, Floats]:
    """The phrases and the two lists of attributes at length 1, centred or as they are."""
    parts = (of.vectors, *of.attributes)
    if centred:
        if len(of.control) < 2:
            raise VocabularyError("centring: expected at least 2 control phrases with an embedding")
        centre = of.control.mean(axis=0)
        parts = tuple(part - centre for part in parts)
    words, one, two = (_unit(part) for part in parts)
    return words, one, two


def terms(of: Embedded, *, centred: bool = False) -> Floats:
    """cos(w, a) - cos(w, b) for every phrase and pair of attributes (n, pairs).

    Attributes are paired as they stand; lists of different lengths give one column, s(w, A, B).
    The mean of the columns is s(w, A, B) in either case.
    """
    words, a, b = moved(of, centred=centred)
    if len(a) == len(b):
        return np.asarray(words @ (a - b).T)
    return np.asarray(words @ (a.mean(axis=0) - b.mean(axis=0)))[:, None]


def associations(of: Embedded, *, centred: bool = False) -> Floats:
    """s(w, A, B) of every phrase (n,)."""
    return np.asarray(terms(of, centred=centred).mean(axis=1))


def _unit(vectors: Floats) -> Floats:
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if (lengths == 0).any():
        raise InputError("phrases: expected embeddings that differ from 0, got 0 for a phrase")
    return np.asarray(vectors / lengths)
