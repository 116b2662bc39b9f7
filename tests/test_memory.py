"""Names, paths and objects of other libraries are accepted wherever a subject or material is."""

from __future__ import annotations

from functools import partial

import numpy as np
import pandas as pd
import polars as pl
import pytest

import evenhand as eh
from evenhand.audit import main
from evenhand.errors import EvenhandError
from evenhand.simulate import world
from evenhand.vectors import nulls

SENTENCES = ["The clerk lost [MASK] keys.", "The nurse said that [MASK] was late."]


@pytest.fixture(scope="module")
def small():
    """Simulated vectors, whose words are those of a topic."""
    simulated = world(bias=0.3, dim=20, seed=1)
    return simulated.topic, list(simulated.words), np.asarray(simulated.matrix, dtype=np.float32)


def keyed_vectors(words, matrix):
    keyed = pytest.importorskip("gensim.models").KeyedVectors(matrix.shape[1])
    keyed.add_vectors(words, matrix)
    return keyed


class Trained:
    """What a Word2Vec model of gensim has."""

    def __init__(self, keyed):
        self.wv = keyed


FORMS = {
    "KeyedVectors": keyed_vectors,
    "Word2Vec": lambda words, matrix: Trained(keyed_vectors(words, matrix)),
    "mapping": lambda words, matrix: dict(zip(words, matrix, strict=True)),
    "pandas, words in the index": lambda words, matrix: pd.DataFrame(matrix, index=words),
    "pandas, words in a column": lambda words, matrix: pd.DataFrame(matrix).assign(word=words),
    "polars": lambda words, matrix: pl.DataFrame(
        {"word": words, **{f"x{i}": matrix[:, i] for i in range(matrix.shape[1])}}
    ),
}


@pytest.mark.parametrize("form", FORMS)
def test_vectors_in_memory(small, form):
    topic, words, matrix = small
    source = FORMS[form](words, matrix)
    v = eh.vectors.load(source)
    assert v.words == words
    assert np.array_equal(v.matrix, matrix)
    expected = eh.measure(eh.vectors.Vectors.from_arrays(words, matrix), topic, "association")
    assert eh.measure(v, topic, "association").value == expected.value
    if form in ("KeyedVectors", "Word2Vec", "mapping"):
        assert eh.measure(source, topic, "association").value == expected.value


def test_vectors_in_memory_are_not_changed(small):
    _, words, matrix = small
    before = matrix.copy()
    v = eh.vectors.load(keyed_vectors(words, matrix), limit=5)
    assert len(v) == 5
    assert not v.matrix.flags.writeable
    assert np.array_equal(matrix, before)
    assert matrix.flags.writeable


@pytest.mark.parametrize(
    ("source", "problem"),
    [
        (7, "got int"),
        ({"he": [1, 2], "she": [1]}, "expected vectors of one length"),
        (pd.DataFrame({"word": ["he"], "other": ["x"], "n": [1]}), "columns word, other"),
        (pd.DataFrame({"n": [1.0, 2.0]}, index=["he", "he"]), "got 'he' twice"),
    ],
)
def test_what_are_no_vectors_is_refused(source, problem):
    with pytest.raises(EvenhandError, match=problem):
        eh.vectors.load(source)


def test_measure_opens_names_and_files(tmp_path, small):
    assert eh.measure("glove", "gender", "association").subject == "glove"
    topic, words, matrix = small
    path = tmp_path / "small.vec"
    eh.vectors.Vectors.from_arrays(words, matrix).save(path)
    assert eh.measure(path, topic, "association").subject == "small.vec"
    texts = pd.DataFrame(
        {"text": ["She sings.", "He cooks."] * 9, "label": ["a", "b"] * 9, "gender": ["F", "M"] * 9}
    )
    texts.to_csv(tmp_path / "texts.csv", index=False)
    read = [eh.measure(source, None, "odds") for source in (texts, tmp_path / "texts.csv")]
    assert read[0].parts[0].value == read[1].parts[0].value
    for unknown in ("glvoe", tmp_path / "nothing.vec", 42):
        with pytest.raises(EvenhandError, match="measure: expected word vectors"):
            eh.measure(unknown, "gender")


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_sentences_pairs_and_labels_in_frames(tmp_path, frame):
    mini = eh.models.load("mini")
    (tmp_path / "sentences.txt").write_text("\n".join(SENTENCES))
    table = frame({"sentence": SENTENCES, "id": [1, 2]})
    for metric in ("pronouns", eh.instruments.lookup("masked", "pronouns")(top_k=10)):
        values = [
            eh.measure(mini, given, metric).items["bias"].tolist()
            for given in (SENTENCES, table, str(tmp_path / "sentences.txt"))
        ]
        assert values[0] == values[1] == values[2]
    alone = eh.measure(mini, SENTENCES[0], "pronouns")
    assert alone.items["bias"].tolist() == pytest.approx(values[0][:1])
    pairs = frame(
        {
            "sent_more": ["He is a boss."],
            "sent_less": ["She is a boss."],
            "stereo_antistereo": ["stereo"],
            "bias_type": ["gender"],
        }
    )
    assert [pair.category for pair in eh.models.read_pairs(pairs)] == ["gender"]
    [sentence] = eh.models.read_gest(frame({"sentence": ["I am strong."], "stereotype": [3]}))
    assert (sentence.text, sentence.stereotype) == ("I am strong.", 3)
    with pytest.raises(EvenhandError, match=r"DataFrame, line 2: expected one \[MASK\]"):
        list(eh.models.read_sentences(frame({"text": [SENTENCES[0], "No mask here at all."]})))


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_tables_of_distances_scores_and_predictions_in_frames(frame, tmp_path):
    v = eh.vectors.load("glove")
    distances = eh.vectors.distance_table(v, "gender")
    distances.save(tmp_path / "distances.csv")
    given = frame(distances.to_frame().to_dict("list"))
    read = [eh.posterior.read_table(source) for source in (given, tmp_path / "distances.csv")]
    assert np.allclose(read[0].distance, read[1].distance)
    scores = frame({"item": [1, 2, 1, 2], "model": list("aabb"), "score": [0.1, 0.3, 0.2, 0.6]})
    assert set(eh.scores.read(scores).models) == {"a", "b"}
    predicted = {"label": list("abab"), "prediction": list("aabb"), "group": list("mmff")}
    assert len(eh.classifier.read_predictions(frame(predicted), group="group")) == 4
    texts = {"text": ["She sings.", "He cooks well."], "label": ["a", "b"], "gender": ["F", "M"]}
    assert len(eh.fewshot.read(frame(texts))) == 2


@pytest.fixture
def measured_alone(monkeypatch):
    """Audits without their page, and without how distances spread with the dimension."""
    monkeypatch.setattr(main, "write_report", lambda folder, *_: [folder / "report.html"])
    few = partial(nulls.dimension_spread, dims=(2, 10), points=50, repeats=2)
    monkeypatch.setattr(nulls, "dimension_spread", few)


@pytest.mark.slow
@pytest.mark.usefixtures("measured_alone")
def test_an_audit_takes_objects(tmp_path, small):
    topic, words, matrix = small
    result = eh.audit(
        keyed_vectors(words, matrix),
        topics=[topic],
        quick=True,
        skip=["posterior"],
        out=tmp_path / "vectors",
    )
    again = eh.audit(
        eh.vectors.Vectors.from_arrays(words, matrix),
        topics=[topic],
        quick=True,
        skip=["posterior"],
        out=tmp_path / "again",
    )
    assert [v.level for v in result.verdicts] == [v.level for v in again.verdicts]
    assert [m.value for m in result.measurements] == [m.value for m in again.measurements]


@pytest.mark.slow
@pytest.mark.usefixtures("measured_alone")
def test_an_audit_takes_a_model_in_memory(tmp_path):
    mini = eh.models.load("mini")
    pair = mini.network, mini.tokenizer
    named = eh.audit(model="mini", quick=True, skip=["fewshot"], out=tmp_path / "named")
    result = eh.audit(model=pair, quick=True, skip=["fewshot"], out=tmp_path / "pair")
    values = [[m.value for m in audit.measurements] for audit in (named, result)]
    assert values[0] == pytest.approx(values[1], abs=1e-5, nan_ok=True)
