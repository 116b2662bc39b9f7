"""Word classes from running text: words that stand between the same words share a class."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from evenhand.text.grammar import Kind

if TYPE_CHECKING:
    from scipy import sparse

TOKEN = re.compile(r'\w+|[.!?,;:)"/&%$+=-]|\n')
CHUNK = 8_000_000  # characters tokenised at a time
CONTEXTS = 1500  # most frequent tokens that count as contexts
DIMENSIONS = 64
FINE, COARSE = 200, 20
OWN = 120  # the most frequent tokens are classes of their own
BARE = "of with for in by from and or about on without as into like between through under after"
DETERMINERS = "a an the this that his my our your their its every each another one"
BARENESS = (0.12, 0.25, 0.4)  # bounds of the four degrees, written w x y z


def word_classes(documents: Sequence[str], size: int, seed: int) -> dict[str, Kind]:
    """Fine class, coarse class and degree of bareness of the `size` most frequent tokens."""
    counts: Counter[str] = Counter()
    for tokens in _tokens(documents):
        counts.update(tokens)
    words = sorted(counts, key=lambda word: (-counts[word], word))[:size]
    left, right = _contexts(documents, words)
    vectors = _vectors(left, right, seed)
    fine, coarse = (_clusters(vectors, number, seed) for number in (FINE, COARSE))
    bare = _bareness(left, words)
    kinds: dict[str, Kind] = {}
    for row, word in enumerate(words):
        if word == "\n":
            continue
        if row < OWN:
            kinds[word] = (word, word, "")
        else:
            kinds[word] = (str(fine[row]), chr(ord("A") + coarse[row]), "wxyz"[bare[row]])
    return kinds


def _tokens(documents: Iterable[str]) -> Iterator[list[str]]:
    """The tokens of the documents, some megabytes at a time."""
    waiting: list[str] = []
    size = 0
    for document in documents:
        waiting.append(document)
        size += len(document)
        if size > CHUNK:
            yield TOKEN.findall("\n".join(waiting).lower())
            waiting, size = [], 0
    yield TOKEN.findall("\n".join(waiting).lower())


def _contexts(
    documents: Sequence[str], words: Sequence[str]
) -> tuple[sparse.csr_array, sparse.csr_array]:
    """How often each word stands right behind, and right before, each context token."""
    from scipy import sparse

    number = {word: row for row, word in enumerate(words)}
    other = len(words)
    contexts = min(CONTEXTS, other)
    shape = (other + 1, contexts + 1)
    left, right = sparse.csr_array(shape), sparse.csr_array(shape)
    for tokens in _tokens(documents):
        rows = np.array([number.get(token, other) for token in tokens], dtype=np.int64)
        columns = np.minimum(rows, contexts)
        ones = np.ones(max(len(rows) - 1, 0))
        left = left + sparse.coo_array((ones, (rows[1:], columns[:-1])), shape=shape).tocsr()
        right = right + sparse.coo_array((ones, (rows[:-1], columns[1:])), shape=shape).tocsr()
    return left[:other], right[:other]


def _vectors(left: sparse.csr_array, right: sparse.csr_array, seed: int) -> NDArray[np.float64]:
    """Unit vectors: truncated SVD of positive pointwise mutual information."""
    from scipy import sparse
    from sklearn.utils.extmath import randomized_svd

    counts = sparse.hstack([left, right]).tocoo()
    of_word = np.asarray(counts.sum(axis=1)).ravel()
    of_context = np.asarray(counts.sum(axis=0)).ravel()
    row, column = counts.coords
    information = np.log(counts.data * counts.sum() / (of_word[row] * of_context[column]))
    weight = np.maximum(information, 0) * counts.data / (counts.data + 1)
    matrix = sparse.csr_array((weight, (row, column)), shape=counts.shape)
    size = min(DIMENSIONS, min(matrix.shape) - 1)
    result, strength, _ = randomized_svd(matrix, size, n_iter=4, random_state=seed)
    vectors = result * np.sqrt(strength)
    return np.asarray(vectors / (np.linalg.norm(vectors, axis=1, keepdims=True) + 1e-9))


def _clusters(vectors: NDArray[np.float64], number: int, seed: int) -> list[int]:
    from sklearn.cluster import MiniBatchKMeans

    number = min(number, len(vectors))
    means = MiniBatchKMeans(number, random_state=seed, n_init=3, batch_size=4096)
    return [int(label) for label in means.fit(vectors).labels_]


def _bareness(left: sparse.csr_array, words: Sequence[str]) -> NDArray[np.int64]:
    """The degree to which a word stands behind a preposition rather than a determiner."""
    number = {word: row for row, word in enumerate(words[:CONTEXTS])}
    bare, determined = (
        np.asarray(left[:, [number[w] for w in listed.split() if w in number]].sum(axis=1)).ravel()
        for listed in (BARE, DETERMINERS)
    )
    return np.searchsorted(BARENESS, (bare + 0.5) / (bare + determined + 1))
