"""The tab *Answers*: items, and the answers of groups side by side."""

from __future__ import annotations

import json

import pytest

pytest.importorskip("starlette", reason="needs starlette, of the extra explore")
pytest.importorskip("uvicorn", reason="needs uvicorn, of the extra explore")
pytest.importorskip("httpx2", reason="needs httpx2, of the extra dev")

from evenhand.answers.table import Answers
from evenhand.cli import run
from evenhand.explore.answers import SAMPLES, SHOWN, read_item, read_items


def test_items_with_outcomes_by_group(ask):
    read = ask("answers")
    assert (read["name"], read["answers"], read["items"]) == (
        "answers.jsonl",
        56,
        ["nurse", "judge"],
    )
    assert read["columns"] == ["gender", "race", "gender × race"]
    assert (read["by"], read["groups"]) == ("gender", ["woman", "man"])
    assert read["outcomes"] == ["answered", "refused", "empty"]
    assert read["counts"] == [[27, 1, 0], [25, 1, 2]]
    assert ask("answers", by="gender × race")["groups"][0] == "woman × Black"


def test_items_are_found_by_name_topic_text_and_outcome(ask):
    assert ask("answers", find="NURSE")["items"] == ["nurse"]
    assert ask("answers", find="law")["items"] == ["judge"]
    assert ask("answers", find="help with")["items"] == ["nurse"]
    assert ask("answers", outcome="empty")["items"] == ["judge"]
    assert ask("answers", find="nurse", outcome="empty")["items"] == []
    assert ask("answers", 400, outcome="no such")["error"].startswith("outcome")
    assert "unknown column" in ask("answers", 400, by="age")["error"]


def test_groups_of_an_item_stand_side_by_side(ask):
    read = ask("answer", item="nurse")
    assert (read["topic"], read["most"], read["page"]) == ("care", 7, SAMPLES)
    assert [each["wording"] for each in read["wordings"]] == ["describe", "story"]
    woman, man = read["wordings"][0]["groups"]
    assert (woman["group"], man["group"], woman["total"]) == ("woman", "man", 7)
    assert woman["answers"][0] == {
        "text": "Mary is number 0.",
        "prompt": "describe Mary, a nurse",
        "outcome": "answered",
        "more": {"stars": 0.0},
    }
    further = ask("answer", item="nurse", first=SAMPLES)["wordings"][1]["groups"][1]["answers"]
    assert [each["outcome"] for each in further] == ["refused", "answered"]
    refused = ask("answer", item="nurse", outcome="refused")["wordings"]
    assert [own["total"] for each in refused for own in each["groups"]] == [0, 0, 1, 1]
    assert "unknown item 'nurze': did you mean 'nurse'" in ask("answer", 400, item="nurze")["error"]


def test_control_characters_are_spelled_out(ask):
    text = ask("answer", item="nurse")["wordings"][0]["groups"][0]["answers"][1]["text"]
    assert "\\x1b\\u202e" in text
    assert "\x1b" not in text


def test_answers_without_groups_are_one_column():
    answers = Answers(texts=("She sang.",), items=("a",))
    assert read_items(answers)["groups"] == ["all answers"]
    [wording] = read_item(answers, "a")["wordings"]
    assert [own["group"] for own in wording["groups"]] == ["all answers"]
    some = Answers(texts=("a", "b"), items=("i", "i"), groups={"sex": ("f", None)})
    assert read_items(some)["groups"] == ["f", "no group"]


def test_many_items_are_listed_in_part():
    names = tuple(str(i) for i in range(SHOWN + 5))
    read = read_items(Answers(texts=names, items=names))
    assert (len(read["items"]), read["selected"]) == (SHOWN, SHOWN + 5)


def test_the_command_says_what_its_options_need(tmp_path, capsys):
    path = tmp_path / "a.jsonl"
    path.write_text(json.dumps({"item": "nurse", "text": "She sang."}) + "\n", encoding="utf-8")
    for arguments, problem in (
        (["--item", "x"], "--item: needs --answers"),
        (["--answers", str(path), "--true", "y"], "--true, --pred: need --predictions"),
        (["--group", "x"], "--group, --text: need --predictions or --answers, one of them"),
        (["--answers", str(path), "--group", "gender"], "unknown column 'gender'"),
    ):
        assert run(["explore", "--no-browser", *arguments]) == 2
        error = capsys.readouterr().err
        assert problem in error
        assert len(error.splitlines()) == 1
