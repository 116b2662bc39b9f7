"""WEAT, WEFAT and analogies: sizes as published, provenance, and queries from a JSON file."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from evenhand import lexicon
from evenhand.errors import LexiconError, UnknownNameError

QUERY = {
    "name": "mine",
    "targets": {"x": ["sun", "moon"], "y": ["sea", "lake"]},
    "attributes": {"a": ["warm", "hot"], "b": ["cold", "icy"]},
}


@pytest.mark.parametrize(
    ("number", "targets", "attributes"),
    [
        (1, 25, 25),
        (2, 25, 25),
        (3, 32, 25),
        (4, 16, 25),
        (5, 16, 8),
        (6, 8, 8),
        (7, 8, 8),
        (8, 8, 8),
        (9, 6, 7),
        (10, 8, 8),
    ],
)
def test_weat_has_the_published_sizes(number: int, targets: int, attributes: int) -> None:
    query = lexicon.weat(number)
    assert [len(words) for words in query.targets.values()] == [targets, targets]
    assert [len(words) for words in query.attributes.values()] == [attributes, attributes]
    assert query.name == f"weat-{number}"
    assert query.title
    assert "Caliskan" in query.provenance


def test_weat_follows_the_paper_where_copies_differ() -> None:
    assert "Billy" in lexicon.weat(10).targets["young"]
    assert "short-term" in lexicon.weat(9).attributes["temporary"]
    assert not {"Sara", "Amber"} & set(lexicon.weat(3).targets["european_american"])
    of_objects = set(lexicon.weat(1).attributes["unpleasant"])
    of_names = set(lexicon.weat(3).attributes["unpleasant"])
    assert of_objects - of_names == {"agony", "prison"}
    assert of_names - of_objects == {"bomb", "evil"}
    assert lexicon.weat(4).attributes == lexicon.weat(3).attributes
    assert lexicon.weat(5).targets == lexicon.weat(4).targets


def test_weat_by_name_and_number() -> None:
    assert len(lexicon.weat_queries()) == 10
    assert lexicon.weat("weat-6") == lexicon.weat(6) == lexicon.weat("6")
    with pytest.raises(UnknownNameError, match=r"unknown WEAT query 'weat-11': did you mean"):
        lexicon.weat("weat-11")
    with pytest.raises(UnknownNameError, match="unknown WEAT query '0'"):
        lexicon.weat(0)


@pytest.mark.parametrize(
    ("name", "size", "word", "share"),
    [
        ("wefat-occupations", 50, "plumber", 0.7),
        ("wefat-names", 50, "Jesse", 2.33),
        ("wefat-winobias", 40, "secretary", 95),
        ("wefat-bios", 28, "dietitian", 92.6),
    ],
)
def test_wefat(name: str, size: int, word: str, share: float) -> None:
    query = lexicon.wefat(name)
    assert query.words == tuple(query.shares)
    assert len(query.words) == size
    assert query.shares[word] == share
    assert query.attributes == dict(reversed(lexicon.weat(7).attributes.items()))
    assert query.title
    assert query.provenance


def test_unknown_wefat() -> None:
    assert len({query.name for query in lexicon.wefat_queries()}) == 4
    with pytest.raises(UnknownNameError, match="did you mean 'wefat-names'"):
        lexicon.wefat("wefat-name")


def test_analogies() -> None:
    ours = lexicon.analogies()
    questions = [question for group in ours.controls.values() for question in group]
    assert len(ours.probes) >= 40
    assert len(ours.probes) == len(set(ours.probes))
    assert len(questions) >= 20
    assert ("man", "king", "woman", "queen") in questions
    assert set(ours.sources) == {"pairs", "occupations", "traits", "controls"}
    assert ours.provenance
    assert {"he", "doctor", "shy", "berlin"} <= set(ours.words())


def write(path: Path, content: Any) -> Path:
    text = content if isinstance(content, str) else json.dumps(content)
    path.write_text(text, encoding="utf-8")
    return path


def test_read_query(tmp_path: Path) -> None:
    query = lexicon.read_query(write(tmp_path / "q.json", QUERY | {"title": "Mine"}))
    assert query == lexicon.Query(
        name="mine",
        title="Mine",
        targets={"x": ("sun", "moon"), "y": ("sea", "lake")},
        attributes={"a": ("warm", "hot"), "b": ("cold", "icy")},
    )
    assert list(query.targets) == ["x", "y"]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        ('{"name": "q",\n "targets": }', ", line 2: not JSON: Expecting value"),
        ('{"name": "a", "name": "b"}', ": not JSON: the name 'name' occurs twice in one object"),
        ("[" * 100_000, ": not JSON: nested too deeply"),
        ([1], ": expected a table, got a list"),
        ({"name": "q"}, ": the key 'targets' is missing"),
        (
            QUERY | {"target": {}},
            ": unknown key 'target': did you mean 'targets'? "
            "(known: name, targets, attributes, title, provenance)",
        ),
        (QUERY | {"name": 3}, ": name: expected a word, got a number"),
        (QUERY | {"name": None}, ": name: expected a word, got null"),
        (QUERY | {"title": " "}, ": title: the text is empty"),
        (QUERY | {"targets": {}}, ": targets: expected at least one named list of words, got none"),
        (QUERY | {"targets": {"x": []}}, ": targets.x: the list is empty"),
        (QUERY | {"targets": {"x": "sun"}}, ": targets.x: expected a list, got the text 'sun'"),
        (QUERY | {"targets": {"x": ["a", True]}}, ": targets.x #2: expected a word, got true"),
        (
            QUERY | {"targets": {"x": ["sun", "sun"]}},
            ": targets.x: the word 'sun' occurs twice in the list",
        ),
        (
            QUERY | {"targets": {"x": ["sun"], "y": ["sun"]}},
            ": 'sun' is in targets.x and in targets.y: a word may be in one set only",
        ),
        (
            QUERY | {"attributes": {"a": ["sun"], "b": ["icy"]}},
            ": 'sun' is in targets.x and in attributes.a: a word may be in one set only",
        ),
        (
            QUERY | {"targets": {"x\n": ["sun"]}},
            ": targets: expected a name without blanks around it, got 'x\\n'",
        ),
        (
            QUERY | {"targets": {"x": ["\ud800"]}},
            ": targets.x #1: expected a word without blanks around it, got '\\ud800'",
        ),
    ],
)
def test_a_wrong_query_is_one_line(tmp_path: Path, content: Any, complaint: str) -> None:
    path = write(tmp_path / "q.json", content)
    with pytest.raises(LexiconError) as caught:
        lexicon.read_query(path)
    assert str(caught.value) == f"{path}{complaint}"


def test_a_file_that_cannot_be_read(tmp_path: Path) -> None:
    with pytest.raises(LexiconError, match=r"none\.json: cannot be read: No such file"):
        lexicon.read_query(tmp_path / "none.json")
    with pytest.raises(LexiconError, match="cannot be read: Is a directory"):
        lexicon.read_query(tmp_path)
    with pytest.raises(LexiconError, match="not the name of a file"):
        lexicon.read_query("a\0b.json")
    (tmp_path / "q.json").write_bytes(b'{"name":\n "\xff"}')
    with pytest.raises(LexiconError, match=r"q\.json, line 2: not UTF-8 text"):
        lexicon.read_query(tmp_path / "q.json")
