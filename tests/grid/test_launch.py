from __future__ import annotations

import json
import os
import threading

import pytest

from evenhand.errors import InputError, PartialFailure
from evenhand.grid import Store, run
from evenhand.grid.store import DamagedError


def test_all_cells_are_computed_once_and_what_is_there_stays(squares, files, tmp_path):
    grid = squares(8)
    told = []
    launched = run(grid, tmp_path, workers=2, progress=lambda *seen: told.append(seen))
    assert (launched.cells, launched.before) == (8, 0)
    results = {cell.axes["number"]: result["value"] for cell, result in Store(tmp_path).results()}
    assert results == {number: number**2 for number in range(8)}
    assert told[-1][:2] == (8, 8)
    for group in "012":
        assert (tmp_path / "cache" / f"made-shared-{group}").read_text() == "x"
    before = files(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cells/*/*.json")}
    again = run(squares(9), tmp_path, workers=1)
    assert again.before == 8
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert {name: content for name, content in files(tmp_path).items() if name in before} == before
    assert len(files(tmp_path)) == 9
    assert not list((tmp_path / "work").iterdir())
    assert not list((tmp_path / "claims").iterdir())


def test_failures_hide_nothing_and_are_told_together(squares, tmp_path):
    with pytest.raises(PartialFailure) as caught:
        run(squares(6, fails=[1, 4]), tmp_path, workers=2)
    told = str(caught.value)
    assert "2 of 6 cells failed, the others are saved" in told
    assert "number 1: ZeroDivisionError: cannot do 1;" in told
    assert "number 4: ZeroDivisionError: cannot do 4" in told
    store = Store(tmp_path)
    assert sum(store.has(cell.key) for cell in store.cells()) == 4
    trace = json.loads(next((tmp_path / "failed").glob("*.json")).read_bytes())["trace"]
    assert "ZeroDivisionError" in trace
    run(squares(6), tmp_path, workers=1)  # whatever kept them from it is gone
    assert all(store.has(cell.key) for cell in store.cells())
    assert not list((tmp_path / "failed").iterdir())


def test_a_cell_that_kills_its_workers_fails_alone(squares, tmp_path):
    with pytest.raises(PartialFailure, match="number 2: 3 workers died while they computed it"):
        run(squares(5, dies=[2]), tmp_path, workers=1)
    store = Store(tmp_path)
    assert sum(store.has(cell.key) for cell in store.cells()) == 4


def test_a_damaged_result_is_computed_anew(squares, files, tmp_path):
    grid = squares(4)
    run(grid, tmp_path, workers=1)
    whole = files(tmp_path)
    first, second, third, _ = (Store(tmp_path).file(cell.key) for cell in grid.cells)
    first.write_bytes(first.read_bytes()[:-40])
    second.write_bytes(second.read_bytes().replace(b'"value": 1', b'"value": 7'))
    third.write_bytes(b"")
    with pytest.raises(DamagedError, match="check sum"):
        Store(tmp_path).result(grid.cells[1].key)
    said: list[str] = []
    launched = run(grid, tmp_path, workers=1, say=said.append)
    assert len(launched.damaged) == len(said) == 3
    assert files(tmp_path) == whole


def test_two_launches_at_once_compute_each_cell_once(squares, files, tmp_path):
    grid = squares(12, seconds=0.05)
    errors = []

    def go() -> None:
        try:
            run(grid, tmp_path / "both", workers=2)
        except BaseException as error:
            errors.append(error)

    every = [threading.Thread(target=go) for _ in range(2)]
    for each in every:
        each.start()
    for each in every:
        each.join(120)
    assert not errors
    times = Store(tmp_path / "both").log.glob("*.jsonl")
    lines = [line for path in times for line in path.read_text().splitlines()]
    assert len(lines) == 12
    run(grid, tmp_path / "one", workers=1)
    assert files(tmp_path / "both") == files(tmp_path / "one")


def test_files_that_change_under_way_are_told_of(squares, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    grid = squares(2, file=str(path))
    path.write_text("two")
    with pytest.raises(PartialFailure, match="expected the files as they were at the launch"):
        run(grid, tmp_path / "out", workers=1)


def test_workers_that_cannot_even_begin_are_told_of(squares, tmp_path, monkeypatch):
    grid = squares(2)
    monkeypatch.setenv("PYTHONPATH", "")
    with pytest.raises(PartialFailure, match="workers die at once"):
        run(grid, tmp_path, workers=1)


def test_wrong_arguments(squares, tmp_path):
    with pytest.raises(InputError, match="expected 1 or more"):
        run(squares(1), tmp_path, workers=-1)
    with pytest.raises(InputError, match="did you mean 'slurm'"):
        run(squares(1), tmp_path, on="slurmd")


def test_times_are_kept_beside_the_results(squares, tmp_path):
    grid = squares(2, seconds=0.05)
    run(grid, tmp_path, workers=1)
    times = Store(tmp_path).times()
    assert set(times) == {cell.key for cell in grid.cells}
    assert all(seconds >= 0.05 for seconds in times.values())


def test_what_kills_left_is_swept_away_when_it_is_old(squares, tmp_path):
    grid = squares(1)
    run(grid, tmp_path, workers=1)
    (folder,) = (tmp_path / "cells").iterdir()
    old, new = folder / ".abc.json.x1", folder / ".abc.json.x2"
    for path, age in ((old, 4000), (new, 60)):
        path.write_text("half")
        stamp = path.stat().st_mtime - age
        os.utime(path, (stamp, stamp))
    run(grid, tmp_path, workers=1)
    assert not old.exists()
    assert new.exists()  # another launch may be writing it
