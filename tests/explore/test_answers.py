"""The explorer's numbers are those of the Python functions."""

from __future__ import annotations

import csv
import io
import json
import re

import numpy as np
import pytest

pytest.importorskip("starlette", reason="needs starlette, of the extra explore")
pytest.importorskip("uvicorn", reason="needs uvicorn, of the extra explore")
pytest.importorskip("httpx2", reason="needs httpx2, of the extra dev")

import evenhand as eh
from by_lists import weat
from evenhand.errors import InputError, UnknownNameError
from evenhand.explore import run, sentence, words
from evenhand.explore.subjects import Subjects, load_subjects
from evenhand.files import to_json
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.models.likelihood import likelihoods
from evenhand.summary import summarize
from evenhand.text.rewrite.counterfactuals import counterfactuals
from evenhand.vectors.mitigation import debias_topic
from evenhand.wording import p_value


def as_json(value):
    return json.loads(to_json(value))


def test_start_names_what_is_loaded(ask):
    start = ask("start")
    kinds = [("masked", "masked language model"), ("causal", "causal language model")]
    assert [(each["name"], each["kind"]) for each in start["models"]] == kinds
    assert start["vectors"] == [{"name": "glove", "words": 50051, "dimensions": 100}]
    assert start["run"] is True
    assert start["predictions"] == {"texts": 3, "errors": 1, "flips": 1}
    assert {query["name"] for query in start["queries"]} >= {"weat-6", "weat-7"}
    assert all(len(axis["lists"]) == 2 for axis in start["axes"])
    assert start["words"]


# ---- sentences


@pytest.mark.parametrize("name", ["masked", "causal"])
def test_answers_are_those_of_ask(ask, subjects, name):
    texts = ["clerk lost [MASK] keys", "nurse said [MASK] left"]
    read = ask("sentence", texts=texts, models=[name])["texts"]
    answers = eh.ask(texts, subjects.models[name], cache=subjects.cache)
    for text, own, answer in zip(texts, read, answers, strict=True):
        assert own["text"] == text
        [position] = own["positions"]
        [given] = position["answers"]
        assert given.pop("summary") == str(answer).splitlines()
        assert given == as_json(answer)


def test_each_pronoun_is_masked_in_turn(ask, subjects):
    text = "She said he lost his keys."
    [read] = ask("sentence", texts=[text], models=["masked", "causal"])["texts"]
    masks = [re.sub(rf"\b{word}\b", "[MASK]", text) for word in ("She", "he", "his")]
    assert [position["masked"] for position in read["positions"]] == masks
    assert [text[p["start"] : p["end"]] for p in read["positions"]] == ["She", "he", "his"]
    models = list(subjects.models.values())
    expected = eh.ask(masks, models, cache=subjects.cache)
    shown = [answer["bias"] for p in read["positions"] for answer in p["answers"]]
    assert shown == [expected[i + j].bias for i in range(3) for j in (0, 3)]


def test_a_text_without_a_pronoun_has_no_positions(ask):
    assert ask("sentence", texts=["It rains. Theyre here."], models=["masked"])["texts"] == [
        {"text": "It rains. Theyre here.", "positions": []}
    ]


@pytest.mark.parametrize("text", ["[MASK] and [MASK]", "he " * 9])
def test_too_many_positions_are_refused(ask, text):
    assert "expected " in ask("sentence", 400, texts=[text], models=["masked"])["error"]


def test_answers_are_compared_with_the_built_in_sentences(ask, subjects):
    usual = ask("built-in", model="masked")
    assert usual["sentences"] == list(pronoun_sentences().sentences)
    answers = eh.ask(usual["sentences"], subjects.models["masked"], cache=subjects.cache)
    assert usual["bias"] == [answer.bias for answer in answers]
    [read] = ask("sentence", texts=["clerk lost [MASK] keys"], models=["masked"])["texts"]
    [answer] = read["positions"][0]["answers"]
    assert answer["more_male"] == sum(bias < answer["bias"] for bias in usual["bias"])


def test_versions_are_our_rewriting_with_their_likelihoods(ask, subjects):
    text = "Mary said she left."
    read = ask("versions", text=text, models=["masked", "causal"])["versions"]
    [expected] = counterfactuals([text])
    assert {row["version"]: row["text"] for row in read} == expected
    for i, (name, model) in enumerate(subjects.models.items()):
        values, tokens = likelihoods(model, list(expected.values()), cache=subjects.cache)
        assert [row["models"][i] for row in read] == [
            {"model": name, "log_likelihood": value, "tokens": count}
            for value, count in zip(as_json(values), tokens.tolist(), strict=True)
        ]


def test_versions_that_are_alike_are_shown_once():
    assert list(sentence.versions("She left.")) == ["original", "swapped", "neutral"]
    assert list(sentence.versions("It rains.")) == ["original"]


def test_a_mask_is_filled_with_the_pronouns_of_its_slot(ask):
    read = ask("versions", text="clerk lost [MASK] keys", models=["masked"])["versions"]
    assert [row["version"] for row in read] == ["his", "her", "their"]
    assert read[0]["text"] == "clerk lost his keys"


# ---- words


@pytest.fixture(scope="module")
def query():
    return eh.lexicon.weat(7)


def lists(query):
    return {"targets": as_json(query.targets), "attributes": as_json(query.attributes)}


def test_the_association_test_is_that_of_measure(ask, glove, query):
    read = ask("association", vectors="glove", **lists(query))
    same = eh.lexicon.Query(
        name=f"{'/'.join(query.targets)} {'/'.join(query.attributes)}",
        targets=query.targets,
        attributes=query.attributes,
    )
    assert read["measurement"] == as_json(eh.measure(glove, same, "weat"))
    assert read["random_words"] == as_json(
        eh.measure(glove, same, "weat", options={"permutations": 0})
    )
    assert read["leave_one_out"] == as_json(eh.vectors.leave_one_out(glove, same))
    random = eh.measure(glove, same, "weat", options={"permutations": 0})
    assert read["p"]["random"] == p_value(random.p, random.draws)
    assert f"{read['measurement']['value']:.3f}" in read["summary"][0]
    assert read["chart"].startswith("<svg class=")
    assert " style=" not in read["chart"]


def test_the_summary_is_what_the_shell_prints(ask, glove, query):
    (x, y), (a, b) = query.targets, query.attributes
    read = ask("association", vectors="glove", **lists(query))
    same = eh.lexicon.Query(
        name=f"{'/'.join(query.targets)} {'/'.join(query.attributes)}",
        targets=query.targets,
        attributes=query.attributes,
    )
    said = summarize(eh.measure(glove, same, "weat"))
    assert read["summary"][0].replace("\u00a0", " ") == said
    assert read["summary"][1] == f"d is above 0 where “{x}” goes with “{a}” and “{y}” with “{b}”."


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"targets": {"x": ["he", "man"]}}, "expected two target lists"),
        ({"targets": {"x": ["he", "man"], "y": []}}, "target list 'y': expected words, got none"),
        ({"targets": {"x": ["qqqqx", "he"], "y": ["she", "her"]}}, "target set 'x'"),
    ],
)
def test_wrong_lists(ask, query, change, message):
    error = ask("association", 400, vectors="glove", **{**lists(query), **change})["error"]
    assert message in error


def test_axes_are_associations(ask, glove):
    chosen = ["nurse", "captain", "librarian", "qqqqx"]
    x = {"female": ["she", "woman"], "male": ["he", "man"]}
    y = {"good": ["love", "peace"], "bad": ["war", "qqqqy"]}
    read = ask("axes", vectors="glove", words=chosen, x=x, y=y)
    assert read["left_out"] == ["qqqqx", "qqqqy"]
    for axis, ends in (("x", x), ("y", y)):
        m = weat(glove, chosen[:2], ["librarian", "boss"], *ends.values())
        scores = dict(zip(m.items["word"], m.items["score"], strict=True))
        for row in read["rows"]:
            assert row[axis] == pytest.approx(scores[row["word"]], abs=1e-12)
    points = np.array([[row["x"], row["y"]] for row in read["rows"]])
    assert read["correlation"] == pytest.approx(np.corrcoef(points.T)[0, 1])
    assert "nurse" in read["chart"]


def test_one_word_has_no_correlation(ask):
    x = {"female": ["she"], "male": ["he"]}
    assert ask("axes", vectors="glove", words=["nurse"], x=x, y=x)["correlation"] is None


def test_labels_never_overlap():
    rng = np.random.default_rng(0)
    rows = [{"word": "word" * 2, "x": x, "y": y} for x, y in rng.random((80, 2))]
    sides = words.place_labels(rows, [(0, 1), (0, 1)], 400, 300)
    assert {"right", "left"} < set(sides)
    assert "" in sides, "where there is no room there is no name"


def test_neighbours_before_and_after_debiasing(ask, glove):
    read = ask("neighbours", vectors="glove", word="nurse", topic="gender", method="hard")
    after = debias_topic(glove, eh.lexicon.topic("gender"), "hard").vectors
    for side, v in (("before", glove), ("after", after)):
        unit = v.unit(np.arange(50_000))
        [row] = v.find(["nurse"]).rows
        cosines = unit @ unit[row]
        near = [i for i in np.argsort(-cosines)[:16] if i != row]
        given = read[side]["neighbours"]
        assert [each["word"] for each in given] == [v.words[i] for i in near]
        expected = pytest.approx(cosines[near], abs=1e-6)
        assert [each["cosine"] for each in given] == expected


def test_neighbours_in_other_vectors(glove):
    subjects = Subjects(vectors={"a": glove, "b": eh.vectors.load("glove", limit=2000)})
    read = words.read_neighbours(subjects, "a", "house", topic="", method="", other="b")
    assert len(read["after"]["neighbours"]) == words.NEIGHBOURS
    assert read["before"]["neighbours"] != read["after"]["neighbours"]


def test_a_word_without_a_vector_suggests_another(ask):
    error = ask("neighbours", 400, vectors="glove", word="nursse")["error"]
    assert "did you mean" in error


def test_unknown_methods_are_refused(ask):
    error = ask("neighbours", 400, vectors="glove", word="nurse", method="magic")["error"]
    assert "unknown debias method 'magic'" in error


@pytest.mark.slow
@pytest.mark.parametrize("method", ["hard", "leace"])
def test_debiasing_is_that_of_mitigate(method):
    v = eh.vectors.load("glove", limit=8000)
    topic = eh.lexicon.topic("gender")
    both = debias_topic(v, topic, method), eh.vectors.mitigate(v, topic, method).debiased
    assert np.array_equal(both[0].vectors.matrix, both[1].vectors.matrix)


def test_few_debiased_vectors_are_held():
    subjects = Subjects(vectors={"glove": eh.vectors.load("glove", limit=8000)})
    first = subjects.debiased("glove", "gender", "hard")
    assert subjects.debiased("glove", "gender", "hard") is first
    for topic in ("race", "religion"):
        subjects.debiased("glove", topic, "hard")
    subjects.debiased("glove", "race", "soft")
    assert subjects.debiased("glove", "gender", "hard") is not first


# ---- an audit


def test_verdicts_lead_to_the_tables_of_their_tests(ask):
    read = ask("run")
    tables = read["tables"]
    first, second = read["verdicts"]
    assert first["subject_title"] == "Masked language model"
    pronouns, professions = (tables[test["table"]] for test in first["evidence"])
    assert (pronouns["kind"], pronouns["rows"], pronouns["stage"]) == (
        "items",
        3,
        "model: pronouns",
    )
    assert (professions["kind"], professions["rows"]) == ("parts", 1)
    assert [test["p_text"] for test in first["evidence"]] == ["0.2", "0.002"]
    odds, unknown = second["evidence"]
    assert tables[odds["table"]]["kind"] == "results"
    assert tables[odds["table"]]["stage"] == "data: odds"
    assert unknown["table"] is None


def table_of(ask, kind, stage):
    tables = ask("run")["tables"]
    return next(i for i, t in enumerate(tables) if (t["kind"], t["stage"]) == (kind, stage))


def test_items_can_be_found_filtered_and_sorted(ask):
    number = table_of(ask, "items", "model: pronouns")
    page = ask("table", table=number)
    assert page["columns"] == ["masked", "verdict", "bias", "top"]
    assert page["rows"][0] == ["[MASK] sang.", "male", 0.9, "he, she"]
    assert page["rows"][1][2] is None
    assert page["choices"]["verdict"] == ["female", "male"]

    def first(**view):
        return [row[0] for row in ask("table", table=number, **view)["rows"]]

    assert first(find="SANG") == ["[MASK] sang."]
    assert first(where={"verdict": "female"}) == ["=1+1 [MASK]"]
    assert first(sort="bias") == ["Then [MASK] left.", "[MASK] sang.", "=1+1 [MASK]"]
    assert first(sort="bias", descending=True)[-1] == "=1+1 [MASK]", "no value comes last"
    assert first(sort="masked")[0] == "=1+1 [MASK]"
    assert first(first=2) == ["Then [MASK] left."]
    assert ask("table", table=number, find="nothing")["selected"] == 0
    assert "unknown column" in ask("table", 400, table=number, sort="no")["error"]


def test_an_export_has_the_rows_of_the_view(ask):
    number = table_of(ask, "items", "model: pronouns")
    text = ask("table.csv", table=number, where={"verdict": "male"}, sort="bias")
    rows = list(csv.DictReader(io.StringIO(text)))
    assert [row["masked"] for row in rows] == ["Then [MASK] left.", "[MASK] sang."]
    assert float(rows[1]["bias"]) == 0.9


def test_tables_that_do_not_exist(ask):
    assert "table: expected 0 to " in ask("table", 404, table=999)["error"]
    assert ask("table", 400, table=-1)["error"].startswith("table")
    assert ask("table", 400, table="../run.json")["error"].startswith("table")


def test_what_is_not_loaded_says_how_to_load_it(subjects):
    from evenhand.explore.server import Explorer, RefusedError

    empty = Explorer(Subjects())
    assert empty.start()["models"] == []
    for call in (
        empty.verdicts,
        lambda: empty.table(table=None),
        lambda: empty.item(item="1"),
        lambda: empty.direct["answers"][1](),
        lambda: empty.direct["answer"][1](item="nurse"),
    ):
        with pytest.raises(RefusedError, match="start with evenhand explore --"):
            call()


# ---- a classifier's errors


def test_errors_with_their_counterfactuals(ask):
    page = ask("table", table=None, where={"error": "yes"})
    assert page["columns"] == ["item", "text", "gender", "true", "predicted", "error", "flips"]
    assert page["rows"] == [["2", "He judges.", "m", "judge", "nurse", "yes", "no"]]
    assert ask("item", item="1")["versions"] == [
        {"version": "original", "text": "She nurses.", "predicted": "nurse"},
        {"version": "swapped", "text": "He nurses.", "predicted": "judge"},
    ]
    assert ask("item", item="no such")["versions"] == []


def test_without_versions_our_rewriting_gives_them(tmp_path):
    path = tmp_path / "test.csv"
    rows = "y_true,y_pred,sex,bio\nnurse,judge,f,She has nursed for many years.\n"
    path.write_text(rows, encoding="utf-8")
    table = run.read_prediction_table(str(path), group=["sex"])
    versions = table.versions("1")
    assert [(row["version"], row["predicted"]) for row in versions][:2] == [
        ("original", "judge"),
        ("swapped", None),
    ]
    assert versions[1]["text"] == "He has nursed for many years."
    assert table.counts() == {"texts": 1, "errors": 1, "flips": None}


def test_predictions_without_texts(tmp_path):
    path = tmp_path / "test.csv"
    path.write_text("y_true,y_pred,sex\nnurse,judge,f\n", encoding="utf-8")
    table = run.read_prediction_table(str(path), group=["sex"])
    assert "text" not in table.rows[0]
    assert table.versions("1") == []
    with pytest.raises(InputError, match="unknown column 'bio'"):
        run.read_prediction_table(str(path), group=["sex"], text="bio")


# ---- loading


def test_sources_of_one_name_are_distinguished(glove):
    from dataclasses import replace

    subjects = load_subjects(
        vectors=["a/words.vec", "b/words.vec"],
        load_model=lambda source: source,
        load_vectors=lambda _: replace(glove, name="words.vec"),
    )
    assert list(subjects.vectors) == ["a/words.vec", "b/words.vec"]
    assert [v.name for v in subjects.vectors.values()] == ["a/words.vec", "b/words.vec"]


def test_other_subjects_are_refused_as_models(glove):
    with pytest.raises(InputError, match="expected a masked or causal language model"):
        load_subjects(["glove"], load_model=lambda _: glove, load_vectors=lambda _: glove)
    with pytest.raises(UnknownNameError, match="unknown model"):
        Subjects().model("mini")
