"""The baseline: what counting words reaches, shown before any network.

TF-IDF of words and word pairs that at least two texts have (1 + log tf), reduced by SVD (latent
semantic analysis), unit length; the class whose mean support vector has the largest cosine wins.
Vocabulary, weights and SVD are fitted on all texts, without their classes: fitted on the training
classes alone the baseline loses 8 to 23 points, since the words of new classes have no weight
there, and a baseline should be as high as plain counting gets.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.errors import InputError
from evenhand.fewshot.answers import FewShotPredictions

if TYPE_CHECKING:
    from evenhand.fewshot.data import Dataset
    from evenhand.fewshot.episodes import Episodes

Vectors = NDArray[np.float32]

DIMENSIONS = 300
SCALE = 10.0
"""Logits are cosines times this; it sets how confident the baseline is, not what it predicts."""
CHUNK = 1 << 24  # numbers gathered at once


def predict_baseline(
    dataset: Dataset,
    episodes: Episodes,
    *,
    vectors: Vectors | None = None,
    counterfactuals: Vectors | None = None,
) -> FewShotPredictions:
    """The baseline's answers to the queries of some episodes.

    Parameters
    ----------
    dataset : Dataset
    episodes : Episodes
    vectors : array (n, dim), optional
        What `word_vectors` gives for the texts.
    counterfactuals : array (n, dim), optional
        Vectors of other texts in the same rows, which then are the queries; the supports stay.

    """
    episodes.check(dataset)
    support = word_vectors(dataset.texts) if vectors is None else vectors
    query = support if counterfactuals is None else counterfactuals
    log_probs = nearest_centroid(support, episodes, query)
    return FewShotPredictions.of(log_probs.astype(np.float32), episodes, dataset)


def word_vectors(
    texts: Sequence[str],
    *,
    more: Sequence[str] = (),
    dimensions: int = DIMENSIONS,
    seed: int = 0,
) -> Vectors:
    """Unit vectors of the texts and then of `more`, fitted on the texts only.

    A text that shares no word with another may get the zero vector.

    >>> word_vectors(["red wine", "white wine", "cold snow", "white snow"], dimensions=2).shape
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
    vectors = reduce.fit_transform(weights)
    if more:
        vectors = np.concatenate([vectors, reduce.transform(counter.transform(more))])
    return _unit(vectors.astype(np.float32))


def nearest_centroid(
    vectors: Vectors, episodes: Episodes, query: Vectors | None = None
) -> NDArray[np.float64]:
    """Log-probabilities (E, C·Q, C) by the cosine to the mean of each class's supports."""
    queries = vectors if query is None else query
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
    log_probs: NDArray[np.float64] = logits - top
    log_probs -= np.log(np.exp(log_probs).sum(axis=2, keepdims=True))
    return log_probs


def _unit(vectors: Vectors) -> Vectors:
    length = np.linalg.norm(vectors, axis=-1, keepdims=True)
    return (vectors / np.where(length > 0, length, 1)).astype(np.float32)
