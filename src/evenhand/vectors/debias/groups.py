"""Groups of words by leaning, which INLP and LEACE are fitted to and tested on."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from evenhand.arguments import checked
from evenhand.errors import InputError, VocabularyError
from evenhand.statistics.intervals import Floats, wilson
from evenhand.vectors.debias.subspace import bias_subspace, chunks, known_sets, unit_rows
from evenhand.vectors.store import Vectors
from evenhand.vectors.vocabulary import Groups, known_groups

FITTED = (
    "the words it was fitted on understate what is left: judge this result by other words "
    "(hiding_tests with exclude=result.fitted_on)"
)

_MINIMUM = 5
"""Known words that a group needs, so that some can be held out."""


def disjoint_groups(v: Vectors, groups: Mapping[str, Sequence[str]], at_least: int) -> Groups:
    """Two or more groups without common words, each with `at_least` known words."""
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


@checked
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


@checked
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


@dataclass(frozen=True, slots=True, eq=False)
class GroupSplit:
    """The known words of each class at unit length, and which are fitted and held out."""

    sizes: Mapping[str, int]
    known: Groups
    unit: Floats
    train: NDArray[np.intp]
    test: NDArray[np.intp]

    @property
    def chance(self) -> float:
        """The accuracy on the held-out words of always predicting the largest class."""
        return float(np.bincount(self.known.labels[self.test]).max() / self.test.size)

    @property
    def fitted_on(self) -> tuple[str, ...]:
        return tuple(self.known.words[i] for i in np.sort(self.train))

    def report(self, before: Floats, after: Floats, seed: int, prob: float) -> dict[str, object]:
        """The accuracy of probes on the held-out words before and after a map of all words."""
        return {
            "chance": self.chance,
            "train": int(self.train.size),
            "test": int(self.test.size),
            "fresh": _fresh_accuracy(after[self.test], self.known.labels[self.test], seed, prob),
            "rbf_before": self._rbf_accuracy(before, prob),
            "rbf_after": self._rbf_accuracy(after, prob),
        }

    def _rbf_accuracy(self, words: Floats, prob: float) -> dict[str, float]:
        from sklearn.svm import SVC

        labels, test = self.known.labels, self.test
        probe = SVC(kernel="rbf", gamma="scale").fit(words[self.train], labels[self.train])
        return accuracy(probe.predict(words[test]), labels[test], prob)


def split_groups(
    v: Vectors,
    groups: Mapping[str, Sequence[str]] | Sequence[Sequence[str]],
    n: int,
    held_out: float,
    seed: int,
) -> GroupSplit:
    """GroupSplit the words of each class into those that are fitted and those that are held out.

    Defining sets stand for the `n` most biased words on each side of their first component.
    """
    from sklearn.model_selection import train_test_split

    if not 0 < held_out < 1:
        raise InputError(f"held_out: expected a share between 0 and 1, got {held_out}")
    chosen = groups if isinstance(groups, Mapping) else most_biased(v, groups, n)
    known = disjoint_groups(v, chosen, _MINIMUM)
    share = max(held_out, len(known.names) / known.labels.size)
    train, test = train_test_split(
        np.arange(known.labels.size), test_size=share, stratify=known.labels, random_state=seed
    )
    sizes = {name: len(words) for name, words in chosen.items()}
    return GroupSplit(sizes, known, v.unit(known.rows), train, test)


def _fresh_accuracy(
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
