"""An audit of what a model writes: saved answers, and a causal model that has a chat template."""

from __future__ import annotations

import json
import shutil
import stat
from pathlib import Path

import pandas as pd
import pytest

import evenhand as eh
from evenhand.answers import read_answers
from evenhand.answers.examples import example_answers
from evenhand.audit import answers as stages
from evenhand.audit.stages import loaded
from evenhand.cli import run
from evenhand.errors import EvenhandError
from evenhand.report import blocks
from evenhand.report.comparison import compare_audits, write_comparison

TEMPLATE = "{% for message in messages %}{{ message['content'] }}\n{% endfor %}"


@pytest.fixture(scope="module", autouse=True)
def undrawn():
    """Without figures, which take longest."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(blocks.Figure, "of", lambda *_, **__: blocks.Text("No figure."))
        yield


# ---- saved answers


def test_saved_answers_are_judged_by_their_groups(tmp_path):
    done = eh.audit(answers=example_answers(20), out=tmp_path / "out")
    [verdict] = done.verdicts
    assert (verdict.subject, verdict.topic) == ("answers", "gender")
    assert verdict.level in ("some evidence", "strong evidence")
    assert {test.metric for test in verdict.tests} >= {"difference", "refusals"}
    assert "is higher for 'woman' than for 'man'." in verdict.sentence
    assert done.answer.actions[0].command.startswith("evenhand answers collect MODEL --prompts")
    assert {(test.n, test.unit) for test in verdict.tests} == {(12, "items")}
    page = done.report.read_text(encoding="utf-8")
    assert "What the model writes" in page
    assert "expected answers of yes or no" in page  # what could not be measured
    assert "480 saved answers were measured" in page
    assert "can hold personal data" not in page, "none is quoted"
    saved = json.loads((done.out / "results.json").read_text(encoding="utf-8"))
    assert saved["subjects"]["answers"]["outcomes"]["refused"] > 0
    assert not (done.out / "answers").exists()
    shutil.copytree(done.out, tmp_path / "again")
    page = write_comparison(compare_audits([done.out, tmp_path / "again"]), tmp_path / "c.html")
    assert "Difference of answers" in page.read_text(encoding="utf-8")


def test_the_command_takes_saved_answers(tmp_path, capsys):
    table = tmp_path / "a.jsonl"
    rows = [
        {"thing": f"i{i}", "sex": sex, "text": "word " * (20 + i % 3)}
        for i in range(8)
        for sex in ("f", "m")
    ]
    table.write_text("\n".join(map(json.dumps, rows)), encoding="utf-8")
    arguments = ["audit", "--answers", str(table), "--out", str(tmp_path / "out")]
    assert run([*arguments, "--group", "sex", "--item", "thing", "--json"]) == 0
    [verdict] = json.loads(capsys.readouterr().out)["verdicts"]
    assert (verdict["subject"], verdict["topic"]) == ("answers", "sex")
    for more, problem in (
        (["--group", "sex"], "which column is the item?"),
        (["--item", "thing", "--group", "age"], "unknown column 'age'"),
        (["--group", "sex", "--predictions", str(table)], "expected --predictions or --answers"),
    ):
        assert run([*arguments, *more]) == 2
        error = capsys.readouterr().err
        assert problem in error
        assert len(error.splitlines()) == 1
    assert run(["audit", "--item", "x"]) == 2
    assert "--item: needs --answers" in capsys.readouterr().err


def test_answers_in_which_nothing_can_be_measured_leave_no_page(tmp_path):
    texts = read_answers(pd.DataFrame({"item": ["a", "b"], "text": ["It rained.", "It snowed."]}))
    with pytest.raises(EvenhandError, match="nothing could be measured in"):
        eh.audit(answers=texts, out=tmp_path / "out")
    assert not (tmp_path / "out").exists()


def test_an_address_is_no_model_of_an_audit(tmp_path, capsys):
    address = "http://127.0.0.1:9/v1"
    assert run(["audit", "--model", address, "-o", str(tmp_path / "out")]) == 2
    error = capsys.readouterr().err
    assert "evenhand audit --answers FILE" in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


# ---- a model that is asked


@pytest.fixture(scope="module")
def chat_model(tmp_path_factory):
    """The embedded causal model with a chat template; it writes nonsense."""
    pytest.importorskip("transformers", reason="needs transformers, of the extra models")
    from evenhand.models.causal import load
    from evenhand.models.memory import save

    folder = tmp_path_factory.mktemp("models") / "chatty"
    folder.mkdir()
    save(load("tiny-causal"), folder)
    path = folder / "tokenizer_config.json"
    settings = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**settings, "chat_template": TEMPLATE}), encoding="utf-8")
    loaded.cache_clear()
    yield folder
    loaded.cache_clear()


@pytest.fixture(scope="module")
def few():
    """Few and short answers."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in {"QUICK_ITEMS": 4, "QUICK_TOKENS": 12}.items():
            patch.setattr(stages, name, value)
        yield


def audit(model: Path, out: Path, **more):
    return eh.audit(model=model, quick=True, skip=("causal", "fewshot"), out=out, **more)


@pytest.fixture(scope="module")
def asked(chat_model, few, tmp_path_factory):
    return audit(chat_model, tmp_path_factory.mktemp("audits") / "asked")


def test_a_model_with_a_chat_template_is_asked(asked):
    assert not asked.failed
    [verdict] = asked.verdicts
    assert (verdict.subject, verdict.name, verdict.topic) == ("answers", "chatty", "gender")
    assert {test.unit for test in verdict.tests} <= {"items", "topics"}, "never answers"
    asking = {stage.details["prompts"]: stage.details for stage in asked.stages if stage.details}
    assert set(asking) == {"counterfactuals", "occupations", "decisions"}
    assert (asking["occupations"]["count"], asking["occupations"]["of"]) == (24, 720)
    assert (asking["counterfactuals"]["count"], asking["counterfactuals"]["item_count"]) == (8, 4)
    page = asked.report.read_text(encoding="utf-8")
    assert "Asked were 24 of the 720 built-in prompts “occupations” (4 of 120 items" in page
    assert "at most 12 tokens" in page
    assert "answers/occupations.jsonl" in page
    assert "hold personal data" in page


def test_answers_are_stored_for_their_owner_alone(asked):
    folder = asked.out / "answers"
    assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    files = sorted(folder.iterdir())
    assert {stat.S_IMODE(file.stat().st_mode) for file in files} == {0o600}
    read = read_answers(str(folder / "counterfactuals.jsonl"), group="gender")
    assert set(read.groups["gender"]) == {"woman", "man"}
    assert len(set(read.prompts)) == len(read)  # each is named in one way
    record = json.loads((folder / "counterfactuals.run.json").read_text(encoding="utf-8"))
    assert record["identity"]["temperature"] == 1.0


def test_nothing_is_asked_twice(asked, chat_model, few, monkeypatch):
    from evenhand.models.local_writer import LocalWriter

    def write(*_):
        raise AssertionError

    monkeypatch.setattr(LocalWriter, "write", write)
    again = audit(chat_model, asked.out)
    assert not again.failed
    assert again.verdicts == asked.verdicts
    for path in (asked.out / "stages").glob("*.json"):
        path.unlink()
    monkeypatch.undo()
    asked_now = []
    original = LocalWriter.write

    def count(self, requests, *more):
        asked_now.extend(requests)
        return original(self, requests, *more)

    monkeypatch.setattr(LocalWriter, "write", count)
    assert audit(chat_model, asked.out).verdicts == asked.verdicts
    assert asked_now == [], "the answers are cached"


def test_asking_stops_after_its_time_and_goes_on(chat_model, few, tmp_path, monkeypatch):
    with monkeypatch.context() as patch:
        patch.setattr(stages, "LONGEST", -1)
        with pytest.raises(EvenhandError, match=r"1 of 8 answers came within .* goes on"):
            audit(chat_model, tmp_path / "out")
    assert not audit(chat_model, tmp_path / "out").failed


def test_a_model_without_a_template_is_not_asked(tmp_path, capsys):
    pytest.importorskip("transformers", reason="needs transformers, of the extra models")
    arguments = ["audit", "--model", "tiny-causal", "--quick", "-o", str(tmp_path / "out")]
    assert run([*arguments, "--skip", "causal,fewshot"]) == 2
    error = capsys.readouterr().err
    assert "tiny-causal: it has no chat template" in error
    assert len(error.splitlines()) == 1
    assert not (tmp_path / "out").exists()


def test_the_page_of_a_model_without_a_template_says_so():
    from evenhand.report.findings import Findings, StageResult
    from evenhand.report.stages import coverage_section

    facts = {"name": "tiny", "chat_template": "no"}
    stage = StageResult(name="seat", kind="seat", title="SEAT", subject="causal")
    findings = Findings(subjects={"causal": facts}, settings={}, topics=(), stages=(stage,), run={})
    words = [block.words for block in coverage_section(findings).blocks if block.kind == "text"]
    assert any("tiny has no chat template" in text for text in words)
