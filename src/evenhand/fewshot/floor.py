"""The floor: what counting words alone reaches, to be printed before any network.

TF-IDF of words and word pairs that two texts or more have (1 + log tf), reduced by SVD (latent
semantic analysis), unit length; the class whose mean support vector has the largest cosine wins.
Vocabulary, weights and SVD are fitted on all texts, without their classes: fitted on the training
classes alone the floor loses 8 to 23 points, since the words of new classes have no weight there,
and a floor is to be as high as plain counting gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.fewshot.statistics import Answers

if TYPE_CHECKING:
    from evenhand.fewshot.data_set import Dataset
    from evenhand.fewshot.episodes import Episodes

__all__ = ["DIMENSIONS", "floor", "nearest_centroid", "word_vectors"]

Vectors = NDArray[np.float32]

DIMENSIONS = 300
SCALE = 10.0
"""Cosines times this are the logits; it sets how sure the floor sounds, not what it picks."""
CHUNK = 1 << 24  # numbers gathered at once


def floor(
    dataset: Dataset,
    episodes: Episodes,
    *,
    vectors: Vectors | None = None,
    twins: Vectors | None = None,
) -> Answers:
    """The floor's answers to the queries; with `twins`, vectors of other texts by the same rows,
    the queries are those texts and the supports stay (for association tests).
    """
    episodes.check(dataset)
    made = word_vectors(dataset.texts) if vectors is None else vectors
    asked = made if twins is None else twins
    return Answers.of(nearest_centroid(made, episodes, asked), episodes, dataset)


def word_vectors(
    texts: Sequence[str],
    *,
    more: Sequence[str] = (),
    dimensions: int = DIMENSIONS,
    seed: int = 0,
) -> Vectors:
    """Unit vectors of the texts and then of `more`, fitted on the texts alone.

    A text none of whose words is in another text may get the zero vector: it says nothing.

    >>> made = word_vectors(["red wine", "white wine", "cold snow", "white snow"], dimensions=2)
    >>> made.shape
    (4, 2)
    """
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counter = TfidfVectorizer(sublinear_tf=True, ngram_range=(1, 2), min_df=2, dtype=np.float32)
    try:
        weights = counter.fit_transform(texts)
    except ValueError as error:
        raise InputError(f"texts: expected words to count ({error})") from None
    most = min(weights.shape) - 1
    if most < 1:
        raise InputError(f"texts: expected at least two with two words, got {len(texts)}")
    reduce = TruncatedSVD(min(dimensions, most), random_state=seed)
    made = reduce.fit_transform(weights)
    if more:
        made = np.concatenate([made, reduce.transform(counter.transform(more))])
    return _unit(made.astype(np.float32))


def nearest_centroid(
    vectors: Vectors, episodes: Episodes, asked: Vectors | None = None
) -> NDArray[np.float64]:
    """Log-probabilities (E, C·Q, C) by the cosine to the mean of each class's supports."""
    queries = vectors if asked is None else asked
    count, ways, shots = episodes.support.shape
    rows = episodes.query.reshape(count, -1)
    step = max(1, CHUNK // (vectors.shape[1] * (rows.shape[1] + ways * shots)))
    parts = []
    for first in range(0, count, step):
        here = slice(first, first + step)
        centres = _unit(vectors[episodes.support[here]].mean(axis=2))
        cosine = queries[rows[here]] @ centres.transpose(0, 2, 1)
        parts.append(SCALE * cosine.astype(np.float64))
    logits = np.concatenate(parts)
    top = logits.max(axis=2, keepdims=True)
    made: NDArray[np.float64] = logits - top
    made -= np.log(np.exp(made).sum(axis=2, keepdims=True))
    return made


def _unit(vectors: Vectors) -> Vectors:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(length > 0, length, 1)).astype(np.float32)
