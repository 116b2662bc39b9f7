from __future__ import annotations

import json
import os
import time
from dataclasses import replace

import pytest

from evenhand.errors import FileError, PartialFailure
from evenhand.grid import Store, run
from evenhand.grid.claims import Claims
from evenhand.grid.status import status


def files(folder):
    return {
        path: (path.stat().st_mtime_ns, path.read_bytes() if path.is_file() else b"")
        for path in sorted(folder.rglob("*"))
    }


def write(claim, owner, beats=0):
    """A claim as another owner would have written it."""
    told = {**claim.content, "owner": {**claim.content["owner"], **owner}, "beats": beats}
    claim.path.write_text(json.dumps(told))


@pytest.fixture
def begun(squares, tmp_path):
    """Six cells: two done in 3 and 5 seconds, one failed, three open."""
    grid, store = squares(6), Store(tmp_path)
    store.save_grid(grid.as_dict())
    for number, seconds in ((0, 3.0), (1, 5.0)):
        cell, settings = grid.cells[number], grid.settings[number]
        store.save(grid.task_name, 1, grid.task.identity(settings), {"value": number})
        store.note("a", key=cell.key, seconds=seconds)
    store.fail(grid.cells[2], "no luck")
    return grid, store


def test_each_cell_is_counted_once_and_nothing_is_changed(begun):
    grid, store = begun
    before = files(store.path)
    found = status(store.path)
    assert (found.cells, found.done, len(found.running), found.waiting) == (6, 2, 0, 3)
    assert [(each.reason, each.cells) for each in found.failed] == [("no luck", ("number 2",))]
    assert found.task == grid.task_name
    assert files(store.path) == before


def test_the_time_left_goes_by_groups_and_by_the_workers_seen(begun):
    grid, store = begun
    found = status(store.path)
    # groups are the numbers modulo 3: 3 is as 0, 4 as 1, and of the group of 5 nothing is known
    assert found.work_left == pytest.approx(3 + 5 + 4)
    assert (found.workers, found.time_left) == (0, None)
    claims = Claims(store.claims)
    claim = claims.take(grid.cells[3].key)
    assert claim is not None
    (one,) = status(store.path).running
    assert (one.cell, one.pid, one.seconds, one.silent) == ("number 3", os.getpid(), 0, None)
    found = status(store.path)
    assert (found.workers, found.waiting, found.time_left) == (1, 2, pytest.approx(12))
    write(claim, {"place": "another host", "host": "there"}, beats=4)
    os.utime(claim.path, (time.time() - 500, time.time() - 500))
    (one,) = status(store.path).running
    assert (one.host, one.seconds) == ("there", 20)
    assert one.silent == pytest.approx(500, abs=60)
    assert status(store.path).time_left == pytest.approx(9)  # 20 of the 3 seconds are over
    claim.release()
    assert not status(store.path).running


def test_the_work_of_the_dead_is_waiting(begun):
    grid, store = begun
    claim = Claims(store.claims).take(grid.cells[3].key)
    assert claim is not None
    write(claim, {"started": "long ago"})
    found = status(store.path)
    assert (len(found.running), found.waiting) == (0, 3)


def test_a_claim_that_is_being_written_is_still_a_claim(begun):
    grid, store = begun
    claim = Claims(store.claims).take(grid.cells[3].key)
    assert claim is not None
    claim.path.write_bytes(b'{"owner": {"pla')
    (one,) = status(store.path).running
    assert (one.cell, one.host, one.pid) == ("number 3", "unknown", None)


def test_without_data_the_time_is_unknown_and_at_the_end_it_is_0(squares, tmp_path):
    grid = squares(3, fails=[1])
    Store(tmp_path).save_grid(grid.as_dict())
    found = status(tmp_path)
    assert (found.waiting, found.work_left, found.time_left) == (3, None, None)
    with pytest.raises(PartialFailure):
        run(grid, tmp_path, workers=1)
    found = status(tmp_path)
    assert (found.done, found.waiting, found.work_left, found.time_left) == (2, 0, 0, 0)
    told = json.loads(json.dumps(found.as_dict()))
    assert told["failed"][0]["count"] == 1
    assert told["failed"][0]["reason"].startswith("ZeroDivisionError: cannot do 1")


def test_many_failures_are_grouped_the_commonest_first(squares, tmp_path):
    grid, store = squares(5), Store(tmp_path)
    store.save_grid(grid.as_dict())
    for number, reason in enumerate(("a", "b", "b", "b", "a")):
        store.fail(replace(grid.cells[number]), reason)
    assert [(one.reason, len(one.cells)) for one in status(tmp_path).failed] == [("b", 3), ("a", 2)]


def test_a_folder_without_a_grid_is_an_error(tmp_path):
    with pytest.raises(FileError, match="expected the folder of a grid"):
        status(tmp_path)
