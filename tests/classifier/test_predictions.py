"""Predictions from tables and from classifiers, and counterfactual answers."""

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from sklearn.feature_extraction.text import CountVectorizer
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline

import evenhand as eh
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
        ({}, {}, "which column is the group of people. Name it with group="),
        ({"yhat": "z"}, {"group": "gender"}, "which column is the prediction. Name it with pred="),
        ({"label": "z"}, {"group": "gender"}, "which column is the true class"),
        ({}, {"group": "gender", "score": {"x": "gender"}}, "row 1: 'gender': expected a number"),
        ({}, {"group": "gender", "pred": "gender"}, "'gender': expected one use of a column"),
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


def test_a_folder_of_transformers_is_asked(tmp_path):
    torch = pytest.importorskip("torch")
    from transformers import BertConfig, BertForSequenceClassification

    from evenhand.models import load

    tokenizer = load("mini").tokenizer
    torch.manual_seed(0)
    config = BertConfig(
        vocab_size=len(tokenizer),
        hidden_size=16,
        num_hidden_layers=1,
        num_attention_heads=2,
        intermediate_size=32,
        max_position_embeddings=64,
        id2label={0: "nurse", 1: "surgeon", 2: "judge"},
        label2id={"nurse": 0, "surgeon": 1, "judge": 2},
    )
    model = BertForSequenceClassification(config).eval()
    model.save_pretrained(tmp_path / "model")
    tokenizer.save_pretrained(tmp_path / "model")
    texts = ["She sang.", "He has been a surgeon for ten years."]
    p = predict(tmp_path / "model", texts)
    for i, text in enumerate(texts):
        with torch.no_grad():
            logits = model(**tokenizer(text, return_tensors="pt")).logits[0]
        expected = torch.softmax(logits, 0).numpy()
        found = [p.scores[name][i] for name in ("nurse", "surgeon", "judge")]
        np.testing.assert_allclose(found, expected, atol=1e-5)
    assert predict(tmp_path / "model", ["long " * 500]).pred
    with pytest.raises(FileError, match="expected the folder of a sequence classifier"):
        predict(tmp_path, texts)


def test_versions_of_texts_are_answered_in_one_call():
    def nurses(texts):
        scores = [0.9 if "she" in text.lower().split() else 0.2 for text in texts]
        return [[score, 1 - score] for score in scores]

    texts = ["Mary said she had won.", "James said he had won.", "It rained."]
    p = predict(
        nurses,
        texts,
        true=["nurse", "judge", "judge"],
        groups={"gender": ["f", "m", None]},
        classes=["nurse", "judge"],
        versions=["swapped", "names"],
    )
    assert p.versions == ("original", "swapped", "names") * 2 + ("original",)
    assert p.items == ("1",) * 3 + ("2",) * 3 + ("3",)
    flips = {m.query: m for m in CounterfactualFlips().measure(p)}
    assert (flips["swapped"].value, flips["names"].value) == (1, 0)
    assert flips["swapped"].part("f", "gender").n == 1


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


def test_flips_of_two_classifiers_are_compared_text_by_text():
    rng = np.random.default_rng(0)
    items = tuple(str(i // 2) for i in range(200))
    versions = ("original", "swapped") * 100

    def flips(share):
        flipped = np.repeat(rng.random(100) < share, 2) & (np.arange(200) % 2 == 1)
        pred = tuple("y" if flip else "x" for flip in flipped)
        [m] = CounterfactualFlips().measure(Predictions(pred=pred, items=items, versions=versions))
        return m

    change = eh.compare(flips(0.6), flips(0.1))
    assert change.paired == 100
    assert change.change.high < -0.2


def test_flips_of_clusters_are_compared_cluster_by_cluster():
    """Four equal texts of a person say no more than one of them."""
    rng = np.random.default_rng(0)
    flipped = rng.random((2, 60)) < [[0.6], [0.4]]

    def flips(own, copies):
        people = np.repeat(np.arange(60), copies)
        [m] = CounterfactualFlips().measure(
            Predictions(
                pred=tuple("xy"[int(flip)] for person in people for flip in (0, own[person])),
                items=tuple(str(text) for text in range(60 * copies) for _ in range(2)),
                versions=("original", "swapped") * (60 * copies),
                clusters=tuple(str(person) for person in people for _ in range(2)),
            )
        )
        return m

    one, four = (eh.compare(*(flips(own, copies) for own in flipped)) for copies in (1, 4))
    assert one.paired == four.paired == 60
    differences = flipped[1].astype(float) - flipped[0]
    half = stats.t.ppf(0.975, 59) * differences.std(ddof=1) / np.sqrt(60)
    for change in (one.change, four.change):
        assert change.value == pytest.approx(differences.mean())
        assert change.high == pytest.approx(differences.mean() + half)


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


def test_names_of_units_are_made_once():
    """300 groups were 300 copies of the names of all rows: 3 GB for 30,000 rows."""
    p = Predictions(pred=("x", "y", "x"), items=("b", "a", "b"))
    names, codes = p.units
    assert (names, codes.tolist()) == (("a", "b"), [1, 0, 1])
    assert p.units[0] is names
