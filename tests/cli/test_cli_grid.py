"""`evenhand lab grid`: what is printed, what is written, and how it ends."""

from __future__ import annotations

import csv
import io
import json
import os
import re
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest
from cli_shell import failure, output

import grid_worlds
from evenhand.cli import run
from evenhand.cli.grid import _Pace, figures_table
from evenhand.cli.progress import step_bars
from evenhand.grid import Store

TASKS = Path(__file__).parents[1] / "grid"


@pytest.fixture
def grid(tmp_path, monkeypatch):
    """Write a grid of a task of our own."""
    paths = os.pathsep.join([str(TASKS), os.environ.get("PYTHONPATH", "")])
    monkeypatch.setenv("PYTHONPATH", paths)
    monkeypatch.syspath_prepend(str(TASKS))

    def written(numbers, **fixed):
        path = tmp_path / "grid.yaml"
        path.write_text(
            f"task: own_tasks:TASK\nfixed: {json.dumps(fixed)}\n"
            f"axes: {{number: {numbers}, seed: [0]}}\n"
        )
        return str(path)

    return written


def test_a_run_its_status_and_its_report(grid, tmp_path, capsys, monkeypatch):
    out = str(tmp_path / "out")
    file = grid([1, 2, 3])
    plan = output(capsys, "lab", "grid", "run", file, "--out", out, "--dry-run")
    assert "3 cells: 0 already present, 3 to compute" in plan
    assert re.search(r"number +3 +1, 2, 3", plan)
    assert not Path(out).exists()
    text = output(capsys, "lab", "grid", "run", file, "--out", out, "--workers", "1")
    assert re.search(r"\n +3 +3 +0 +0 +0 +0:00:\d\d", text)
    assert f"next: evenhand lab grid report {out}" in text
    again = json.loads(
        output(capsys, "lab", "grid", "run", grid([1, 2, 3, 4]), "--out", out, "--json")
    )
    assert (again["cells"], again["computed"], again["present"]) == (4, 1, 3)
    assert (again["failed"], again["waiting"]) == ([], 0)
    planned = json.loads(
        output(capsys, "lab", "grid", "run", file, "--out", out, "--dry-run", "--json")
    )
    assert (planned["cells"], planned["present"], planned["missing"]) == (4, 4, 0)
    assert planned["axes"] == {"number": [1, 2, 3, 4], "seed": [0]}
    restart = ("lab", "grid", "run", file, "--out", out, "--workers", "1", "--restart")
    plan = output(capsys, *restart, "--dry-run")
    assert "4 cells: 4 already present and to be removed, 4 to compute" in plan
    assert run(list(restart)) == 0
    captured = capsys.readouterr()
    assert f"restart: removed 4 of 4 results in {out}\n" in captured.err
    assert re.search(r"\n +4 +4 +0 +0 +0 +0:", captured.out)
    assert re.search(r"\n +4 +4 +0 +0 +0 +0:00:00", output(capsys, "lab", "grid", "status", out))
    found = json.loads(output(capsys, "lab", "grid", "status", out, "--json"))
    assert (found["command"], found["done"], found["time_left"]) == ("grid status", 4, 0)
    text = output(capsys, "lab", "grid", "report", out)
    assert "4 of 4 cells have a result" in text
    assert re.search(r"\n +3 +0 +9\n", text)
    with Path(out, "report", "results.csv").open(newline="") as file_:
        assert [row["value"] for row in csv.DictReader(file_)] == ["1", "4", "9", "16"]
    assert "| 3 | 0 | 9 |" in Path(out, "report", "report.md").read_text()
    monkeypatch.setenv("COLUMNS", "60")
    for command in ("status", "report"):
        lines = output(capsys, "lab", "grid", command, out).splitlines()
        assert all(len(line) <= 60 for line in lines if str(tmp_path) not in line)


def test_cells_that_fail_are_all_named_and_tried_again(grid, tmp_path, capsys):
    out = str(tmp_path / "out")
    file = grid([1, 2, 3, 4], fails=[2, 4])
    code = run(["lab", "grid", "run", file, "--out", out, "--workers", "1"])
    captured = capsys.readouterr()
    assert code == 1
    assert captured.err.startswith("error: 2 of 4 cells failed")
    assert captured.err.count("\n") == 1
    for number in (2, 4):
        assert f"ZeroDivisionError: cannot do {number}\n  number {number}, seed 0\n" in captured.out
    assert re.search(r"\n +4 +2 +0 +2 +0 +0:", captured.out)
    code = run(["lab", "grid", "run", file, "--out", out, "--workers", "1", "--json"])
    captured = capsys.readouterr()
    assert code == 1
    found = json.loads(captured.out)
    assert (found["computed"], found["present"]) == (0, 2)
    assert [one["cells"] for one in found["failed"]] == [["number 2, seed 0"], ["number 4, seed 0"]]
    shown = output(capsys, "lab", "grid", "report", out)
    assert "2 of 4 cells have a result" in shown
    assert "cannot do 4): number 4, seed 0" in shown
    assert "failed (1): ZeroDivisionError: cannot do 2" in output(
        capsys, "lab", "grid", "status", out
    )
    mended = json.loads(
        output(capsys, "lab", "grid", "run", grid([1, 2, 3, 4]), "--out", out, "--json")
    )
    assert (mended["computed"], mended["present"], mended["failed"]) == (2, 2, [])


def test_what_is_wrong_is_one_line(grid, tmp_path, capsys):
    out = str(tmp_path / "out")
    assert "did you mean 'number'" in failure(
        capsys, "lab", "grid", "run", _edited(grid([1]), "number", "numbr"), "--out", out
    )
    file = grid([1])
    assert "no.yaml" in failure(capsys, "lab", "grid", "run", "no.yaml", "--out", out)
    assert "--out" in failure(capsys, "lab", "grid", "run", file)
    message = failure(capsys, "lab", "grid", "run", file, "--out", out, "--option", "partition")
    assert "--option: expected NAME=VALUE, got 'partition'" in message
    message = failure(capsys, "lab", "grid", "run", file, "--out", out, "--option", "partition=gpu")
    assert "--option: local processes have none, got 'partition=gpu'" in message
    twice = ("--on", "ray", "--option", "address=a", "--option", "address=b")
    message = failure(capsys, "lab", "grid", "run", file, "--out", out, *twice)
    assert "expected 'address' once" in message
    assert "--device" in failure(capsys, "lab", "grid", "run", file, "--out", out, "--device", ",")
    assert not Path(out).exists()
    assert "expected the folder of a grid" in failure(
        capsys, "lab", "grid", "status", str(tmp_path)
    )
    assert "expected the folder of a grid" in failure(
        capsys, "lab", "grid", "report", str(tmp_path)
    )
    Store(out).save_grid({"task": "fewshot", "cells": []})
    assert "expected some cells with a result" in failure(capsys, "lab", "grid", "report", out)


def _edited(path, old, new):
    Path(path).write_text(Path(path).read_text().replace(old, new))
    return path


def test_damaged_results_are_computed_anew_with_a_word(grid, tmp_path, capsys):
    out = str(tmp_path / "out")
    file = grid([1, 2])
    output(capsys, "lab", "grid", "run", file, "--out", out, "--workers", "1")
    store = Store(out)
    store.file(store.cells()[0].key).write_text("{")
    assert "1 cells without a result (its file is damaged" in output(
        capsys, "lab", "grid", "report", out
    )
    assert run(["lab", "grid", "run", file, "--out", out, "--workers", "1", "--json"]) == 0
    captured = capsys.readouterr()
    assert "computed again" in captured.err
    assert json.loads(captured.out)["computed"] == 1


def test_stopped_by_hand_it_ends_cleanly_and_goes_on(grid, tmp_path, capsys):
    out = tmp_path / "out"
    file = grid(list(range(6)), seconds=0.5)
    command = [
        sys.executable,
        "-m",
        "evenhand",
        "lab",
        "grid",
        "run",
        file,
        "--out",
        str(out),
        "--workers",
        "2",
    ]
    process = subprocess.Popen(  # SIGINT is ignored in background jobs
        command,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL),
    )
    deadline = time.monotonic() + 60
    while not list(out.glob("cells/*/*.json")):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    found = json.loads(output(capsys, "lab", "grid", "status", str(out), "--json"))
    assert found["done"] + found["waiting"] + len(found["running"]) == 6
    process.send_signal(signal.SIGINT)
    said, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert errors.strip() == "error: stopped; run the same command again to resume"
    assert said == ""
    done = len(list(out.glob("cells/*/*.json")))
    assert 1 <= done < 6
    document = json.loads(output(capsys, *command[3:], "--json"))
    assert (document["present"], document["computed"]) == (done, 6 - done)


def test_a_second_launcher_is_one_line(grid, tmp_path, capsys):
    out = tmp_path / "out"
    with Store(out).lock_folder("first"):
        line = failure(capsys, "lab", "grid", "run", grid([1]), "--out", str(out))
    assert f"another one holds it: process {os.getpid()} on " in line


def test_the_bar_tells_the_time_left(monkeypatch):
    class Terminal(io.StringIO):
        def isatty(self):
            return True

    monkeypatch.setattr(sys, "stderr", Terminal())
    monkeypatch.setenv("COLUMNS", "110")
    clock = [0.0]
    monkeypatch.setattr("evenhand.cli.grid.time.monotonic", lambda: clock[0])
    with step_bars() as show:
        pace = _Pace(show)
        pace(10, 110, "")  # there before: no matter of the rate
        clock[0] = 100.0
        pace(35, 110, "")
    assert "35/110 0.25 cells/s, 0:05:00 left" in re.sub(
        r"\x1b\[[\d;?]*\w", "", sys.stderr.getvalue()
    )


@pytest.fixture(scope="module")
def shots(tmp_path_factory):
    path = tmp_path_factory.mktemp("shots")
    grid_worlds.folder(path, leave_out=lambda axes: axes["seed"] == 2 and axes["ways"] == 3)
    return path


@pytest.mark.slow
def test_the_report_of_a_few_shot_grid(shots, tmp_path, capsys):
    text = output(
        capsys, "lab", "grid", "report", str(shots), "--figures", str(tmp_path / "figures")
    )
    assert "20 of 24 cells have a result" in text
    assert "4 cells without a result (not computed yet): network proto, ways 3" in text
    for title in (
        "accuracy, mitigation none",
        "association, mitigation none",
        "The best network of each task",
        "Networks, mean over their tasks: accuracy",
        "What mitigations change, mean over all settings",
    ):
        assert title in text
    assert "intervals: 95%, for new classes and trainings" in text
    place = shots / "report"
    assert {path.name for path in place.iterdir()} == {
        "report.html",
        "report.json",
        "report.md",
        "results.csv",
        "best.csv",
        "effects.csv",
        "networks.csv",
        "mitigations.csv",
    }
    figures = {path.name for path in (tmp_path / "figures").iterdir()}
    assert {"accuracy-none.svg", "bias-swap.html", "change-swap.svg"} <= figures
    saved = json.loads((place / "report.json").read_text())
    with (place / "effects.csv").open(newline="") as file:
        rows = list(csv.DictReader(file))
    assert [float(row["epsilon"]) for row in rows] == [
        row["epsilon"]["change"] for row in saved["effects"]
    ]
    page = (place / "report.html").read_text()
    assert '<h1 class="kicker">Results of the grid</h1>' in page
    assert '<p class="lead">20 of 24 cells have a result.</p>' in page
    assert page.count("<figure ") == len([name for name in figures if name.endswith(".svg")])
    assert "Table: change of ε by swap" in page or "<caption>change of ε by swap" in page
    text = (place / "report.md").read_text()
    assert "## change of ε by swap" in text
    assert "| C | K | proto | match |" in text
    one = saved["results"][0]["accuracy"]
    assert rf"| 2 | 4 | {one['value']:.3f} \[{one['low']:.3f}, {one['high']:.3f}\] |" in text


@pytest.mark.slow
def test_the_report_as_json(shots, capsys):
    document = json.loads(
        output(capsys, "lab", "grid", "report", str(shots), "--json", "--prob", "0.9")
    )
    assert (document["command"], document["task"], document["prob"]) == (
        "grid report",
        "fewshot",
        0.9,
    )
    assert len(document["missing"]) == 4
    assert document["results"][0]["accuracy"]["prob"] == 0.9


def test_many_figures_of_a_cell_stand_below_each_other():
    rows = [{"model": "a", **{f"f{n}": n / 2 for n in range(9)}, "f0_low": -1.0, "f0_high": 1.0}]
    made = figures_table("results", rows, ["model"])
    assert made.headers == ["model", "figure", "value"]
    assert made.rows[0] == ["a", "f0", "0.000 [−1.000, 1.000]"]
    assert made.rows[8] == ["a", "f8", "4.000"]
    few = figures_table("results", [{"model": "a", "n": 3, "whole": True}], ["model"])
    assert (few.headers, few.rows) == (["model", "n", "whole"], [["a", "3", "yes"]])


def test_help_teaches(capsys):
    assert "axes:" in output(capsys, "lab", "grid", "run", "--help")
    assert "status" in output(capsys, "lab", "grid", "--help")
