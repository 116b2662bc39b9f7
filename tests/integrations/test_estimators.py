"""Debiasing within scikit-learn, against the functions for word vectors; scorers against gaps."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.frozen import FrozenEstimator
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline

import evenhand as eh
from evenhand.errors import InputError, UnknownNameError
from evenhand.integrations import HardDebias, InlpDebias, LeaceDebias, bias_scorer
from evenhand.statistics.erasure import leace


@pytest.fixture
def rows():
    rng = np.random.default_rng(0)
    z = np.arange(400) % 2
    x = rng.standard_normal((400, 8))
    x[:, 0] += 3 * z
    return x, z


def probe_accuracy(x, z):
    return LogisticRegression().fit(x[:200], z[:200]).score(x[200:], z[200:])


@pytest.mark.parametrize("estimator", [LeaceDebias(), InlpDebias(max_rounds=5)])
def test_a_linear_probe_finds_nothing_afterwards(estimator, rows):
    x, z = rows
    assert probe_accuracy(x, z) > 0.9
    hidden = clone(estimator).fit(x, z).transform(x)
    assert hidden.shape == x.shape
    assert probe_accuracy(hidden, z) < 0.62
    fresh = np.random.default_rng(1).standard_normal((3, 8))
    fitted = estimator.fit(x, z)
    together = fitted.transform(np.concatenate([x, fresh]))[-3:]
    assert fitted.transform(fresh) == pytest.approx(together)


def test_they_are_the_maps_of_the_functions_for_vectors(rows):
    x, z = rows
    expected = leace(x, z)(x)
    assert LeaceDebias().fit(x, z).transform(x) == pytest.approx(expected, abs=1e-9)
    v = eh.vectors.load("glove", limit=5000)
    sets = [("he", "she"), ("man", "woman"), ("king", "queen")]
    words = [word for members in sets for word in members]
    hard = HardDebias().fit([v[word] for word in words], [i for i in range(3) for _ in range(2)])
    expected = eh.vectors.hard(v, sets, equalize=[]).vectors
    given = hard.transform([v["teacher"], v["doctor"]])
    given /= np.linalg.norm(given, axis=1, keepdims=True)
    assert given == pytest.approx(np.array([expected["teacher"], expected["doctor"]]), abs=1e-5)
    groups = {name: [str(i) for i in np.flatnonzero(z == k)] for k, name in enumerate("01")}
    unit = eh.vectors.Vectors.from_arrays([str(i) for i in range(len(x))], x)
    removed = eh.vectors.inlp(unit, groups, max_rounds=5).removed
    assert InlpDebias(max_rounds=5).fit(x, z).map_.right == pytest.approx(removed)


def test_wrong_input(rows):
    x, z = rows
    with pytest.raises(InputError, match="a label for each row"):
        LeaceDebias().fit(x, z[:5])
    with pytest.raises(InputError, match="rows of 8 numbers, got shape"):
        LeaceDebias().fit(x, z).transform(x[:, :3])
    with pytest.raises(InputError, match="two classes or more"):
        LeaceDebias().fit(x, np.zeros(len(x)))
    with pytest.raises(UnknownNameError, match="did you mean 'tpr-gap'"):
        bias_scorer("tprgap", "group")


@pytest.fixture
def people():
    """A true class that one group's features show less clearly."""
    rng = np.random.default_rng(2)
    n = 1200
    y, group = rng.integers(0, 2, n), rng.choice(["f", "m"], n)
    signal = np.where(group == "f", 0.5, 3.0) * (y - 0.5) + rng.standard_normal(n)
    frame = pd.DataFrame({"signal": signal, "noise": rng.standard_normal(n), "gender": group})
    return frame, y


class OnColumns(LogisticRegression):
    """Reads two columns of the table, not the group."""

    def fit(self, X, y):
        return super().fit(X[["signal", "noise"]].to_numpy(), y)

    def predict(self, X):
        return super().predict(X[["signal", "noise"]].to_numpy())

    def predict_proba(self, X):
        return super().predict_proba(X[["signal", "noise"]].to_numpy())


def test_a_scorer_is_minus_the_gap_that_the_classifier_has(people):
    frame, y = people
    score = bias_scorer("tpr-gap", "gender")
    fitted = OnColumns().fit(frame, y)
    (m,) = score.measurements(fitted, frame, y)
    assert score(fitted, frame, y) == pytest.approx(-abs(m.value))
    assert m.high < -0.1
    answers = fitted.predict(frame)
    first, second = (np.mean(answers[(y == 1) & (frame["gender"] == g)] == 1) for g in ("f", "m"))
    assert m.value == pytest.approx(first - second)
    by_function = bias_scorer("tpr-gap", lambda X: X["gender"])
    assert by_function(fitted, frame, y) == pytest.approx(-abs(m.value))


def test_scorers_work_in_cross_validation_and_searches(people):
    frame, y = people
    score = bias_scorer("tpr-gap", "gender")
    folds = cross_val_score(OnColumns(), frame, y, scoring=score, cv=3)
    assert (folds < 0).all()
    search = GridSearchCV(
        OnColumns(),
        {"C": [1e-4, 1.0]},
        scoring={"accuracy": "accuracy", "bias": score},
        refit="accuracy",
        cv=2,
    )
    search.fit(frame, y)
    assert np.isfinite(search.cv_results_["mean_test_bias"]).all()
    with pytest.raises(UnknownNameError, match="unknown column 'sex'"):
        bias_scorer("tpr-gap", "sex")(OnColumns().fit(frame, y), frame, y)


def test_a_debiaser_in_a_pipeline(rows):
    x, z = rows
    target = (x[:, 1] > 0).astype(int)
    eraser = LeaceDebias().fit(x, z)
    pipeline = make_pipeline(FrozenEstimator(eraser), LogisticRegression()).fit(x, target)
    assert pipeline.score(x, target) > 0.95
    assert probe_accuracy(pipeline[:-1].transform(x), z) < 0.62
    assert eraser.get_params() == {"shrinkage": 0.0}
