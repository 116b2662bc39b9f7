"""Predictions from tables and from classifiers, and counterfactual answers."""

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

from evenhand.classifier import Predictions, predict, read_predictions
from evenhand.classifier.metrics.counterfactual import CounterfactualChange, CounterfactualFlips
from evenhand.errors import FileError, InputError
from evenhand.text import counterfactuals

TABLE = pd.DataFrame(
    {
        "label": ["x", "y"],
        "yhat": ["x", "x"],
        "gender": ["f", None],
        "p": [0.7, 0.6],
        "q": [0.3, 0.4],
    }
)


def test_columns_are_recognised_or_named():
    p = read_predictions(TABLE, group="gender", score={"x": "p", "y": "q"})
    assert (p.true, p.pred, p.groups) == (("x", "y"), ("x", "x"), {"gender": ("f", None)})
    assert p.classes == ("x", "y")
    renamed = TABLE.rename(columns={"p": "p_x", "q": "p_y"})
    assert list(read_predictions(renamed, group="gender", score="p_*").scores) == ["x", "y"]
    with pytest.raises(FileError, match=r"no column fits 's_\*'"):
        read_predictions(renamed, group="gender", score="s_*")
    alone = read_predictions(TABLE.drop(columns="yhat"), group="gender", score={"x": "q", "y": "p"})
    assert alone.pred == ("y", "y")


@pytest.mark.parametrize(
    ("change", "settings", "message"),
    [
        ({}, {"group": "gendr"}, "unknown column 'gendr': did you mean 'gender'"),
        ({}, {}, "which column is the group of people. Name it with --group"),
        ({"yhat": "z"}, {"group": "gender"}, "which column is the prediction. Name it with --pred"),
        ({"label": "z"}, {"group": "gender"}, "which column is the true class"),
        ({}, {"group": "gender", "score": {"x": "gender"}}, "row 1: 'gender': expected a number"),
        ({}, {"group": "gender", "pred": "gender"}, "row 2: 'gender': expected a value, got none"),
    ],
)
def test_wrong_columns_are_named(change, settings, message):
    with pytest.raises(FileError, match=message):
        read_predictions(TABLE.rename(columns=change), **settings)


def test_columns_of_other_lengths_are_refused():
    with pytest.raises(InputError, match="expected columns of one length"):
        Predictions(pred=("x",), true=("x", "y"))
    with pytest.raises(InputError, match="expected some, got none"):
        Predictions(pred=())


def test_a_pipeline_of_scikit_learn_is_asked():
    texts = ["she nursed", "he cut", "she cared", "he sawed"] * 5
    labels = ["nurse", "surgeon"] * 10
    model = make_pipeline(CountVectorizer(), LogisticRegression()).fit(texts, labels)
    p = predict(model, texts, true=labels, groups={"gender": ["f", "m"] * 10}, batch=3)
    assert p.pred == tuple(labels)
    np.testing.assert_allclose(p.scores["nurse"], model.predict_proba(texts)[:, 0])
    with pytest.raises(InputError, match="classes: expected the names"):
        predict(lambda part: [[1.0]] * len(part), texts)
    with pytest.raises(InputError, match=r"expected scores of shape \(20, 1\)"):
        predict(lambda part: [[1.0, 2.0]] * len(part), texts, classes=["x"])


def test_versions_answered_by_a_classifier_that_knows_the_rule():
    """It takes whoever is called she for a nurse: names alone change nothing."""
    texts = ["Mary said she had won.", "James said he had won.", "It rained."]
    items, versions, answers = [], [], []
    for number, own in enumerate(counterfactuals(texts)):
        for version, text in own.items():
            items.append(str(number))
            versions.append(version)
            answers.append("nurse" if "she" in text.split() else "surgeon")
    assert versions.count("original") == 3
    assert versions.count("swapped") == 2
    p = Predictions(
        pred=tuple(answers),
        scores={
            "nurse": np.array([float(a == "nurse") for a in answers]),
            "surgeon": np.zeros(len(items)),
        },
        groups={"gender": tuple("f" if i == "0" else "m" for i in items)},
        items=tuple(items),
        versions=tuple(versions),
    )
    flips = {m.query: m for m in CounterfactualFlips().measure(p)}
    assert flips["swapped"].value == flips["words"].value == 1
    assert flips["names"].value == 0
    assert flips["neutral"].value == 0.5
    assert flips["neutral"].part("f").value == 1
    assert flips["swapped"].n == 2
    change = {m.query: m for m in CounterfactualChange().measure(p)}
    assert change["swapped"].part("f").value == -1
    assert change["swapped"].details["mean_absolute"] == pytest.approx(0.5)


@pytest.mark.parametrize(
    ("items", "versions", "message"),
    [
        (("1", "1"), ("swapped", "names"), "expected rows whose version is 'original'"),
        (("1", "1"), ("original", "original"), "item '1' has the version 'original' twice"),
        ((), (), "expected items and versions of texts, got none"),
    ],
)
def test_versions_without_their_originals(items, versions, message):
    p = Predictions(pred=("x", "y"), items=items, versions=versions)
    with pytest.raises(InputError, match=message):
        CounterfactualFlips().measure(p)
