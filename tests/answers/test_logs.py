"""Answers in the logs of other tools."""

import json

import pytest

import evenhand as eh
from evenhand.errors import FileError


def test_samples_of_the_harness(tmp_path):
    path = tmp_path / "samples_jobs_2026-01-01T00-00-00.jsonl"
    rows = [
        {
            "doc_id": number,
            "doc": {"gender": "woman" if number % 2 else "man", "item": "x"},
            "arguments": [["Describe a nurse.", {"until": ["\n"]}]],
            "resps": [["She cares.", "He cares."]],
        }
        for number in range(3)
    ]
    path.write_text("\n".join(map(json.dumps, rows)))
    answers = eh.answers.read_answers(path, group="gender")
    assert len(answers) == 6
    assert answers.items == ("0", "0", "1", "1", "2", "2")
    assert answers.prompts[0] == "Describe a nurse."
    assert answers.samples[:2] == ("0", "1")
    assert answers.groups["gender"][2] == "woman"


def test_a_log_of_inspect(tmp_path):
    path = tmp_path / "log.json"
    sample = {
        "id": "nurse",
        "epoch": 2,
        "input": [{"role": "user", "content": "Describe a nurse."}],
        "metadata": {"gender": "woman"},
        "output": {"choices": [{"message": {"content": "She cares."}}]},
    }
    failed = {"id": "judge", "epoch": 1, "input": "?", "metadata": {}, "error": {"message": "x"}}
    path.write_text(json.dumps({"eval": {"model": "m"}, "samples": [sample, failed]}))
    answers = eh.answers.read_answers(path, group="gender")
    assert answers.texts == ("She cares.", "")
    assert answers.outcomes == ("answered", "failed")
    assert answers.groups["gender"] == ("woman", None)


@pytest.mark.parametrize(
    ("name", "content", "message"),
    [
        ("a.json", "{}", "expected a JSON log of inspect"),
        ("a.eval", "x", "inspect log convert"),
        ("samples_a.jsonl", '{"doc": {}}', "expected 'doc_id' and 'resps'"),
    ],
)
def test_wrong_logs_are_one_line(tmp_path, name, content, message):
    (tmp_path / name).write_text(content)
    with pytest.raises(FileError, match=message) as error:
        eh.answers.read_answers(tmp_path / name)
    assert "\n" not in str(error.value)
