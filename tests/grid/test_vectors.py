"""Vector cells: the numbers of the commands, by content, before and after debiasing."""

from __future__ import annotations

import json
from contextlib import nullcontext
from pathlib import Path
from typing import Any

import pytest

from evenhand import lexicon
from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.files import to_json
from evenhand.grid.measures import VECTORS as TASK
from evenhand.grid.measures import VectorSettings
from evenhand.grid.task import Workspace
from evenhand.instruments import measure
from evenhand.vectors import Vectors
from evenhand.vectors.mitigation import mitigate

QUICK = {"permutations": 200, "null": 20}


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(work=tmp_path, cache=tmp_path, device="cpu", threads=1, lock=nullcontext)


@pytest.fixture(scope="session")
def small(glove, tmp_path_factory) -> Path:
    """A file of real vectors: every twelfth word of glove and those of the topic."""
    words = dict.fromkeys([*glove.words[::12], *lexicon.topic("gender").words()])
    found = glove.find(words)
    path = tmp_path_factory.mktemp("vectors") / "small.npz"
    Vectors.from_arrays(found.words, glove.matrix[found.rows]).save(path)
    return path


def settings(**given: Any) -> VectorSettings:
    chosen = TASK.settings(**{**QUICK, **given})
    TASK.check(chosen)
    return chosen


def key(chosen: VectorSettings) -> str:
    return to_json(TASK.identity(chosen))


def plain(value: Any) -> Any:
    return json.loads(to_json(value))


def test_a_cell_is_what_measure_says_and_the_same_again(glove, workspace):
    chosen = settings(metrics=["association", "weat"], seed=3, prob=0.9)
    result = TASK.compute(chosen, workspace)
    topic = lexicon.topic("gender")
    expected = measure(glove, topic, ["association", "weat"], seed=3, prob=0.9, options=QUICK)
    assert result["measurements"] == plain(list(expected))
    assert result["mitigation"] is None
    assert to_json(TASK.compute(chosen, workspace)) == to_json(result)
    row = TASK.row(result)
    assert list(row) == ["association gender", "weat gender"]
    assert row["association gender"]["value"] == pytest.approx(-0.0579, abs=1e-4)
    assert row["association gender"]["low"] < row["association gender"]["value"]


def test_published_tests_and_a_query_of_ones_own(glove, workspace, tmp_path):
    query = tmp_path / "own.json"
    lists = {
        "targets": {"a": ["he", "man"], "b": ["she", "woman"]},
        "attributes": {"c": ["math", "physics"], "d": ["poetry", "dance"]},
    }
    query.write_text(json.dumps({"name": "own", **lists}))
    chosen = settings(weat=[7], query=[str(query)], wefat=["wefat-occupations"], metrics=["weat"])
    result = TASK.compute(chosen, workspace)
    assert list(TASK.row(result)) == ["weat weat-7", "weat own", "wefat wefat-occupations"]
    expected = measure(glove, lexicon.weat(7), ["weat"], options=QUICK)[0]
    assert result["measurements"][0]["value"] == expected.value
    before = key(chosen)
    query.write_text(
        json.dumps({"name": "own", **lists | {"targets": {"a": ["he"], "b": ["she"]}}})
    )
    assert key(chosen) != before


@pytest.mark.parametrize("method", ["hard", "soft"])
def test_debiased_vectors_are_measured_with_where_bias_hides(small, workspace, method):
    from evenhand.vectors import load

    rest = {"k": 1, "scale": "mean"} if method == "soft" else {}
    keys = {"k": "dimensions"}
    given = {keys.get(name, name): value for name, value in rest.items()}
    chosen = settings(vectors=str(small), debias=method, metrics=["association"], **given)
    result = TASK.compute(chosen, workspace)
    done = mitigate(load(small), lexicon.topic("gender"), method, **rest)
    assert result["mitigation"] == plain(done)
    after = measure(done.debiased.vectors, lexicon.topic("gender"), ["association"], options=QUICK)
    assert result["measurements"] == plain(list(after))
    if method == "hard":
        assert to_json(TASK.compute(chosen, workspace)) == to_json(result)
    row = TASK.row(result)
    assert {"association gender", "recovery_linear gender", "neighbour_overlap"} <= set(row)
    hidden = {one["metric"]: one["after"]["value"] for one in result["mitigation"]["hiding"]}
    assert row["recovery_linear gender"]["value"] == hidden["recovery_linear"]


def test_identity_is_content_and_name(small, tmp_path):
    copies = [tmp_path / where / "small.npz" for where in "ab"]
    for copy in copies:
        copy.parent.mkdir()
        copy.write_bytes(small.read_bytes())
    keys = {key(settings(vectors=str(copy))) for copy in (small, *copies)}
    assert len(keys) == 1
    assert str(tmp_path) not in keys.pop()
    copies[1].write_bytes(small.read_bytes() + b" ")
    assert key(settings(vectors=str(copies[0]))) != key(settings(vectors=str(copies[1])))


def test_identity_has_the_options_that_count(tmp_path):
    first = key(settings())
    assert key(settings(topic="gender")) == key(settings(topic=["gender"])) == first
    for rest in ({"seed": 1}, {"topic": "religion"}, {"debias": "hard"}, {"limit": 9000}):
        assert key(settings(**rest)) != first
    soft = key(settings(debias="soft"))
    assert key(settings(debias="soft", lam=0.1)) != soft
    assert key(settings(lam=0.1, scale="mean")) == first
    chosen = settings(topic=["gender", "race"], weat=[1])
    assert key(TASK.settings(**json.loads(chosen.model_dump_json()))) == key(chosen)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"vectors": "nowhere.vec"}, "vectors: expected glove or a file"),
        ({"debias": "hard", "topic": ["gender", "race"]}, "expected one topic"),
        ({"debias": "hard", "weat": [1]}, "expected one topic"),
        ({"topic": "gendre"}, "did you mean 'gender'"),
        ({"metrics": ["waet"]}, "did you mean 'weat'"),
    ],
)
def test_check_tells_what_is_wrong_before_any_work(given, message):
    with pytest.raises(InputError, match=message):
        settings(**given)


def test_options_of_another_method_are_refused():
    expand = TASK.expand  # type: ignore[attr-defined]
    with pytest.raises(InputError, match="lam: goes with debias soft, not with none, hard"):
        expand({"lam": 0.1}, {"debias": ["none", "hard"]})
    assert expand({"lam": 0.1}, {"debias": ["none", "soft"]})[0] == {"lam": 0.1}
    with pytest.raises(UnknownNameError):
        settings(weat=[11])


def test_vectors_of_other_words_are_an_error(tmp_path, workspace):
    path = tmp_path / "other.txt"
    path.write_text("qa 1 0\nqb 0 1\n")
    with pytest.raises(VocabularyError, match="nothing could be measured"):
        TASK.compute(settings(vectors=str(path)), workspace)
