"""Debiasing as scikit-learn transformers, and measures of bias as its scorers."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils.validation import check_is_fitted

from evenhand.classifier import Predictions
from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import lookup, measure
from evenhand.statistics.erasure import AffineMap, leace, one_hot
from evenhand.statistics.intervals import Floats
from evenhand.vectors.debias.inlp import inlp
from evenhand.vectors.debias.subspace import bias_subspace
from evenhand.vectors.store import Vectors


class _Debias(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """What the transformers share: `fit` finds an affine map, `transform` applies it to rows."""

    map_: AffineMap

    def fit(self, X: ArrayLike, y: Any) -> Self:
        """Fit the map.

        Parameters
        ----------
        X : array (n, d)
        y : sequence
            The protected class of each row, or for hard debiasing its defining set; not the target
            of a classifier.

        """
        rows, labels = np.asarray(X, dtype=np.float64), list(y)
        if rows.ndim != 2 or len(rows) != len(labels):
            raise InputError(
                f"y: expected a label for each row of X, got {len(labels)} for shape {rows.shape}"
            )
        self.map_ = self._fit(rows, labels)
        self.n_features_in_ = rows.shape[1]
        return self

    def _fit(self, rows: Floats, labels: list[Any]) -> AffineMap:
        raise NotImplementedError

    def transform(self, X: ArrayLike) -> Floats:
        """The rows with what was fitted removed."""
        check_is_fitted(self, "map_")
        rows = np.asarray(X, dtype=np.float64)
        if rows.ndim != 2 or rows.shape[1] != self.n_features_in_:
            expected = f"rows of {self.n_features_in_} numbers"
            raise InputError(f"X: expected {expected}, got shape {rows.shape}")
        return self.map_(rows)


class LeaceDebias(_Debias):
    """Least-squares concept erasure (Belrose et al. 2023) of protected classes.

    Parameters
    ----------
    shrinkage : float
        As for `evenhand.statistics.erasure.leace`.

    Examples
    --------
    >>> rng = np.random.default_rng(0)
    >>> z = np.arange(200) % 2
    >>> X = rng.standard_normal((200, 5)) + 2 * z[:, None]
    >>> erased = LeaceDebias().fit(X, z).transform(X)
    >>> bool(abs(erased[z == 0].mean() - erased[z == 1].mean()) < 1e-9)
    True

    """

    def __init__(self, *, shrinkage: float = 0.0) -> None:
        self.shrinkage = shrinkage

    def _fit(self, rows: Floats, labels: list[Any]) -> AffineMap:
        return leace(rows, one_hot(labels), shrinkage=self.shrinkage)


class InlpDebias(_Debias):
    """Iterative null-space projection (Ravfogel et al. 2020) of protected classes.

    Parameters
    ----------
    max_rounds, held_out, seed
        As for `evenhand.vectors.inlp`, which fits it on the rows at unit length.

    Attributes
    ----------
    report_ : Mapping
        The accuracy of every round and of new probes.

    """

    def __init__(self, *, max_rounds: int = 35, held_out: float = 0.3, seed: int = 0) -> None:
        self.max_rounds = max_rounds
        self.held_out = held_out
        self.seed = seed

    def _fit(self, rows: Floats, labels: list[Any]) -> AffineMap:
        groups: dict[str, list[str]] = {}
        for number, label in enumerate(labels):
            groups.setdefault(str(label), []).append(str(number))
        done = inlp(
            _vectors(rows),
            groups,
            seed=self.seed,
            max_rounds=self.max_rounds,
            held_out=self.held_out,
        )
        self.report_ = done.report
        return _projection(np.zeros((0, rows.shape[1])) if done.removed is None else done.removed)


class HardDebias(_Debias):
    """The bias subspace of defining sets projected out (Bolukbasi et al. 2016).

    `fit` takes the vectors of defining words, with the set of each as `y`: the rows of *he*, *she*,
    *man*, *woman* with 0, 0, 1, 1. It neutralises only: equalising moves the defining words
    themselves, which is what `evenhand.vectors.hard` is for.

    Parameters
    ----------
    k : int
        The dimension of the subspace.

    """

    def __init__(self, *, k: int = 1) -> None:
        self.k = k

    def _fit(self, rows: Floats, labels: list[Any]) -> AffineMap:
        sets: dict[Any, list[str]] = {}
        for number, label in enumerate(labels):
            sets.setdefault(label, []).append(str(number))
        return _projection(bias_subspace(_vectors(rows), list(sets.values()), self.k).basis)


def _vectors(rows: Floats) -> Vectors:
    return Vectors.from_arrays([str(i) for i in range(len(rows))], rows)


def _projection(basis: Floats) -> AffineMap:
    return AffineMap(basis.T, basis, np.zeros(basis.shape[1]))


# -------------------------------------------------------------------------------------- scorers


def bias_scorer(
    metric: str,
    group: str | Callable[[Any], Sequence[Any]],
    *,
    options: Mapping[str, Any] | None = None,
) -> BiasScorer:
    """A scorer of the gap that a classifier has between groups of people, higher is better.

    Parameters
    ----------
    metric : str
        A measure of predictions, such as "tpr-gap" (`evenhand list metrics`).
    group : str or callable
        The column of X (a DataFrame) with the group of each row, or a function from X to the
        groups. Rows of unknown group (None) do not count.
    options : Mapping, optional
        Options of the measure by name.

    Returns
    -------
    BiasScorer
        For `scoring=` of cross-validation and searches: called with (estimator, X, y), it gives
        minus the distance of the measure from its ideal; of several contrasts of groups the
        largest. A fold of a few rows gives a noisy number: `score.measurements(estimator, X, y)`
        has the intervals.

    """
    lookup("predictions", metric)
    return BiasScorer(metric, group, options or {})


@dataclass(frozen=True, repr=False)
class BiasScorer:
    """Called with (estimator, X, y); see `bias_scorer`."""

    metric: str
    group: str | Callable[[Any], Sequence[Any]]
    options: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"bias_scorer({self.metric!r})"

    def measurements(self, estimator: Any, X: Any, y: Any) -> Any:
        """The measurements behind a score, with their intervals."""
        name = self.group if isinstance(self.group, str) else "group"
        if callable(self.group):
            given = list(self.group(X))
        else:
            columns = list(getattr(X, "columns", ()))
            if self.group not in columns:
                raise UnknownNameError("column", self.group, map(str, columns))
            given = list(X[self.group])
        scores: dict[str, Floats] = {}
        if hasattr(estimator, "predict_proba") and hasattr(estimator, "classes_"):
            table = np.asarray(estimator.predict_proba(X), dtype=float)
            scores = {str(each): table[:, i] for i, each in enumerate(estimator.classes_)}
        answers = Predictions(
            pred=tuple(map(str, estimator.predict(X))),
            true=tuple(map(str, y)),
            groups={name: tuple(None if each is None else str(each) for each in given)},
            scores=scores,
        )
        return measure(answers, None, [self.metric], options=self.options)

    def __call__(self, estimator: Any, X: Any, y: Any) -> float:
        measured = self.measurements(estimator, X, y)
        distances = [abs(m.value - (m.ideal or 0.0)) for m in measured]
        known = [distance for distance in distances if math.isfinite(distance)]
        if not known:
            raise InputError(f"{self.metric}: could not be measured on these {len(y)} rows")
        return -float(max(known))
