"""How far a grid is, from its folder alone."""

from __future__ import annotations

import json
import os
from dataclasses import replace

import pytest

from evenhand.errors import FileError, PartialFailure
from evenhand.grid import Store, run, status


def contents(folder):
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


@pytest.fixture
def begun(squares, tmp_path):
    """Six cells: two done in 3 and 5 seconds, one failed, three open."""
    grid, store = squares(6), Store(tmp_path)
    store.save_grid(grid.to_dict())
    for number, seconds in ((0, 3.0), (1, 5.0)):
        cell, settings = grid.cells[number], grid.settings[number]
        store.save(grid.task_name, 1, grid.task.identity(settings), {"value": number})
        store.note_time(cell.key, seconds)
    store.fail(grid.cells[2], "no luck")
    return grid, store


def test_each_cell_is_counted_once_and_nothing_is_changed(begun):
    grid, store = begun
    before = contents(store.path)
    found = status(store.path)
    assert (found.cells, found.done, len(found.running), found.waiting) == (6, 2, 0, 3)
    assert [(failed.reason, failed.cells) for failed in found.failed] == [
        ("no luck", ("number 2",))
    ]
    assert found.task == grid.task_name
    assert contents(store.path) == before


def test_the_time_left_is_that_of_the_groups_for_the_workers_at_work(begun):
    grid, store = begun
    found = status(store.path)
    # groups are the numbers modulo 3: 3 is like 0, 4 like 1, and nothing is known of 5
    assert found.work_left == pytest.approx(3 + 5 + 4)
    assert (found.workers, found.time_left) == (0, None)
    key = grid.cells[3].key
    with store.lock_cell(key):
        store.mark_begun(key)
        found = status(store.path)
        (running,) = found.running
        assert (running.cell, running.pid) == ("number 3", os.getpid())
        assert (found.workers, found.waiting) == (1, 2)
        assert found.time_left == pytest.approx(12, abs=3)
    assert not status(store.path).running


@pytest.mark.parametrize("skew", [-1e6, 1e6])
def test_a_clock_that_is_off_does_not_matter(begun, skew):
    grid, store = begun
    key = grid.cells[3].key
    with store.lock_cell(key):
        store.mark_begun(key)
        path = store.work(key) / ".worker.json"
        os.utime(path, (path.stat().st_mtime + skew,) * 2)
        (running,) = status(store.path).running
        assert running.seconds >= 0
        assert status(store.path).waiting == 2


def test_a_cell_whose_worker_is_dead_is_waiting(begun):
    grid, store = begun
    key = grid.cells[3].key
    store.mark_begun(key)  # what a kill leaves
    (store.path / "work" / f"{key}.lock").touch()
    found = status(store.path)
    assert (len(found.running), found.waiting) == (0, 3)


def test_a_cell_that_is_about_to_begin_is_running(begun):
    grid, store = begun
    with store.lock_cell(grid.cells[3].key):
        (running,) = status(store.path).running
    assert (running.cell, running.host, running.pid) == ("number 3", "unknown", None)


def test_without_times_the_time_left_is_unknown_and_at_the_end_it_is_0(squares, tmp_path):
    grid = squares(3, fails=[1])
    Store(tmp_path).save_grid(grid.to_dict())
    found = status(tmp_path)
    assert (found.waiting, found.work_left, found.time_left) == (3, None, None)
    with pytest.raises(PartialFailure):
        run(grid, tmp_path, workers=1)
    found = status(tmp_path)
    assert (found.done, found.waiting, found.work_left, found.time_left) == (2, 0, 0, 0)
    content = json.loads(json.dumps(found.to_dict()))
    assert content["failed"][0]["count"] == 1
    assert content["failed"][0]["reason"].startswith("ZeroDivisionError: cannot do 1")


def test_failures_are_grouped_by_reason_the_most_frequent_first(squares, tmp_path):
    grid, store = squares(5), Store(tmp_path)
    store.save_grid(grid.to_dict())
    for number, reason in enumerate(("a", "b", "b", "b", "a")):
        store.fail(replace(grid.cells[number]), reason)
    failed = status(tmp_path).failed
    assert [(entry.reason, len(entry.cells)) for entry in failed] == [("b", 3), ("a", 2)]


def test_a_folder_without_a_grid_is_an_error(tmp_path):
    with pytest.raises(FileError, match="expected the folder of a grid"):
        status(tmp_path)


def test_locks_that_killed_workers_left_are_removed(begun):
    """That of a finished cell is stale unless somebody holds it; others belong to their cells."""
    grid, store = begun
    done, held, waiting = (grid.cells[i].key for i in (0, 1, 3))
    for key in (done, waiting):
        path = store.path / "work" / f"{key}.lock"
        path.parent.mkdir(exist_ok=True)
        path.touch()
    for key in (done, held, waiting):
        store.work(key).mkdir(parents=True, exist_ok=True)
    with store.lock_cell(held):
        store.remove_partial()
        assert {path.stem for path in (store.path / "work").glob("*.lock")} == {held, waiting}
        assert not store.work(done).exists()
        assert store.work(held).exists()
        assert store.work(waiting).exists()
