"""An audit that was stopped is resumed by the same command."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from cli_shell import failure

from evenhand.audit import main
from evenhand.cli import run

AUDIT = ["audit", "--predictions", "p.csv", "--group", "gender", "--quick", "-o", "out"]


def test_a_stopped_audit_goes_on(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'xy'[i % 2]},{'xy'[i % 3 % 2]},{'mf'[i // 2 % 2]}\n" for i in range(60)]
    Path("p.csv").write_text("true,pred,gender\n" + "".join(rows))

    def stopped(*_given):
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(main, "run_stage", stopped)
        assert run(AUDIT) == 130
    capsys.readouterr()
    assert "results.json" in failure(capsys, "report", "out")
    assert run(AUDIT) == 0
    assert json.loads(Path("out/run.json").read_text())["files"]


@pytest.mark.parametrize(
    ("place", "value"),
    [("details", [[]]), ("skipped", [{"reason": 1e308}]), ("skipped", [5]), ("title", None)],
)
def test_results_that_are_none_are_one_line(tmp_path, monkeypatch, capsys, place, value):
    monkeypatch.chdir(tmp_path)
    Path("out").mkdir()
    stage = {"name": "a", "kind": "text", "title": "A", "measurements": [], "comparisons": []}
    stage |= {"distances": None, "skipped": [], "details": {}, place: value}
    content = {"subjects": {}, "settings": {}, "topics": [], "stages": [stage], "verdicts": []}
    for name in ("results.json", "run.json"):
        Path("out", name).write_text(json.dumps({"schema": "evenhand/2", **content}))
    assert f"out/results.json: {place}: expected" in failure(capsys, "report", "out")


def test_a_link_in_the_folder_of_an_audit_is_not_followed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rows = [f"{'xy'[i % 2]},{'xy'[i % 3 % 2]},{'mf'[i // 2 % 2]}\n" for i in range(60)]
    Path("p.csv").write_text("true,pred,gender\n" + "".join(rows))
    assert run(AUDIT) == 0
    Path("decoy").write_text("precious")
    Path("out/report.html").unlink()
    Path("out/report.html").symlink_to("../decoy")
    assert run(["report", "out"]) == 0
    assert Path("decoy").read_text() == "precious"
    assert "<html" in Path("out/report.html").read_text()
