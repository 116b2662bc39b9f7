"""`evenhand filter`: output, funnel, JSON, rejected sentences, errors."""

from __future__ import annotations

import bz2
import json
from pathlib import Path

import pytest

from evenhand.cli import run

LINES = [
    "The dancer shakes her hips.",
    "A girl plays with her doll.",
    "Someone ties his laces.",
    "It rains.",
    "The clerk lost his keys and his hat.",
]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "in.txt"
    path.write_text("\n".join(LINES) + "\n", encoding="utf-8")
    return path


def rows(path: Path) -> list[dict[str, object]]:
    return [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]


def test_output_rejected_and_funnel(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out, left = tmp_path / "out.jsonl", tmp_path / "left.jsonl"
    command = ["filter", str(source), "-o", str(out), "--rejected", str(left), "--funnel"]
    assert run(command) == 0
    (accepted,) = rows(out)
    assert accepted["masked"] == "The dancer shakes [MASK] hips."
    assert accepted["source"] == str(source)
    assert [(row["line"], row["reason"]) for row in rows(left)] == [
        (2, "other_indicator"),
        (3, "someone"),
        (4, "no_pronoun"),
        (5, "several_pronouns"),
    ]
    shown = capsys.readouterr()
    assert shown.err == ""
    table = {line[:24].strip(): line[24:36].strip() for line in shown.out.splitlines()}
    assert table["sentences read"] == "5"
    assert table["accepted"] == "1"


def test_json_is_alone_on_stdout(
    source: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    out = tmp_path / "out.jsonl"
    assert run(["filter", str(source), "-o", str(out), "--json", "--funnel"]) == 0
    document = json.loads(capsys.readouterr().out)
    assert document["schema"] == "evenhand/2"
    steps = ("read", "one_pronoun", "no_other_indicator", "linked", "accepted")
    assert [document[step] for step in steps] == [5, 3, 2, 2, 1]
    assert document["reasons"]["someone"] == 1
    assert len(rows(out)) == 1
    assert run(["filter", str(source), "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["accepted"] == 1


def test_stdout_is_for_sentences_and_the_funnel_for_stderr(
    source: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["filter", str(source), "--funnel", "--keep-someone", "--mask", "<m>"]) == 0
    shown = capsys.readouterr()
    assert [json.loads(line)["masked"] for line in shown.out.splitlines()] == [
        "The dancer shakes <m> hips.",
        "Someone ties <m> laces.",
    ]
    assert "sentences read" in shown.err


def test_fields_sentences_and_jobs(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.jsonl"
    text = "It rains. The dancer shakes her hips. He waits."
    source.write_text("".join(json.dumps({"n": n, "body": text}) + "\n" for n in range(40)))
    out = tmp_path / "out.jsonl"
    options = ["--text", "body", "--split-sentences", "--workers", "2", "--json", "-o", str(out)]
    assert run(["filter", str(source), *options]) == 0
    assert json.loads(capsys.readouterr().out)["read"] == 120
    assert [row["line"] for row in rows(out)] == list(range(1, 41))
    assert {row["sentence"] for row in rows(out)} == {"The dancer shakes her hips."}


def test_compressed_input(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    source = tmp_path / "in.txt.bz2"
    source.write_bytes(bz2.compress("\n".join(LINES).encode()))
    assert run(["filter", str(source)]) == 0
    assert len(capsys.readouterr().out.splitlines()) == 1


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--resolver", "rulez"], "unknown resolver 'rulez': did you mean 'rules'?"),
        (["--resolver", "spacy"], "resolver spacy: expected spacy:MODEL"),
        (["--min-confidence", "2"], "2.0 is not in the range 0<=x<=1"),
        (["--text", "text"], "--text needs a file ending in"),
    ],
)
def test_errors(
    source: Path, options: list[str], message: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run(["filter", str(source), *options]) == 2
    shown = capsys.readouterr()
    assert shown.out == ""
    assert shown.err.startswith("error: ")
    assert message in shown.err
    assert shown.err.count("\n") == 1


def test_a_missing_file_and_a_missing_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(["filter", str(tmp_path / "none.txt")]) == 2
    assert "none.txt" in capsys.readouterr().err
    monkeypatch.setitem(__import__("sys").modules, "fastcoref", None)
    assert run(["filter", str(tmp_path / "none.txt"), "--resolver", "fastcoref"]) == 2
    assert "pip install 'fastcoref'" in capsys.readouterr().err
