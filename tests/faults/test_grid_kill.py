"""Grids whose workers and launchers are killed, whose disk is full, whose clocks disagree."""

from __future__ import annotations

import os
import random
import resource
import signal
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest

from evenhand.errors import PartialFailure
from evenhand.grid import make_grid, run, status

pytestmark = pytest.mark.slow

TASKS = Path(__file__).parents[1] / "grid"
LAUNCH = """
import sys
from evenhand.grid import make_grid, run
cells, workers, out, seconds = sys.argv[1:5]
grid = make_grid({
    "task": "own_tasks:TASK", "fixed": {"seconds": float(seconds), "size": 200},
    "axes": {"number": list(range(int(cells)))},
})
run(grid, out, workers=int(workers))
"""


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(TASKS), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.syspath_prepend(str(TASKS))


def start(out: Path, cells: int, *, workers: int = 2, seconds: float = 0.0):
    arguments = [str(cells), str(workers), str(out), str(seconds)]
    return subprocess.Popen(
        [sys.executable, "-c", LAUNCH, *arguments], stderr=subprocess.PIPE, text=True
    )


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("cells/*/*.json"))}


def workers_of(folder: Path) -> list[int]:
    """The processes that compute a cell now."""
    return [pid for running in status(folder).running if (pid := running.pid) is not None]


def wait_for_results(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.glob("cells/*/*.json"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


def wait_for_workers(folder: Path) -> list[int]:
    deadline = time.monotonic() + 120
    while not (pids := workers_of(folder)):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    return pids


@pytest.mark.parametrize("seed", [0, 1])
def test_200_cells_killed_five_times_end_with_the_same_bytes(tmp_path, seed):
    with start(tmp_path / "calm", 200) as process:
        assert process.wait(300) == 0
    undisturbed = contents(tmp_path / "calm")
    assert len(undisturbed) == 200
    draws = random.Random(seed)  # noqa: S311
    out = tmp_path / "killed"
    for kill in range(5):
        with start(out, 200, seconds=0.01) as process:
            wait_for_results(out, 30 * kill + draws.randrange(1, 30))
            time.sleep(draws.random() * 0.2)
            victims = workers_of(out)
            if kill % 2 and victims:
                os.kill(draws.choice(victims), signal.SIGKILL)
                time.sleep(draws.random() * 0.2)
            process.kill()
            if kill == 4:
                for victim in victims:  # before they notice that the launcher is gone
                    with suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
    with start(out, 200) as process:
        assert process.wait(300) == 0
    assert contents(out) == undisturbed
    assert not list((out / "work").iterdir())


def test_a_killed_worker_is_replaced(tmp_path):
    with start(tmp_path / "a", 12, workers=1, seconds=0.05) as process:
        wait_for_results(tmp_path / "a", 2)
        os.kill(wait_for_workers(tmp_path / "a")[0], signal.SIGKILL)
        assert process.wait(120) == 0
    assert len(contents(tmp_path / "a")) == 12


def test_workers_end_with_their_launcher(tmp_path):
    with start(tmp_path / "a", 500, seconds=0.2) as process:
        wait_for_results(tmp_path / "a", 2)
        workers = wait_for_workers(tmp_path / "a")
        process.kill()
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in workers):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(contents(tmp_path / "a")) < 500
    assert not status(tmp_path / "a").running


def test_a_full_disk_stops_the_grid_and_loses_nothing(tmp_path):
    grid = make_grid(
        {
            "task": "own_tasks:TASK",
            "fixed": {"size": 200},
            "axes": {"number": list(range(6))},
        }
    )
    run(grid, tmp_path / "calm", workers=1)
    largest = max(map(len, contents(tmp_path / "calm").values()))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest * 9 // 10, hard))
    try:
        with pytest.raises(PartialFailure, match=r"File too large; .* the same command resumes"):
            run(grid, tmp_path / "full", workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("full/cells/*/.*"))
    assert not list(tmp_path.glob("full/failed/*"))
    run(grid, tmp_path / "full", workers=1)
    assert contents(tmp_path / "full") == contents(tmp_path / "calm")


def test_leftovers_of_a_host_with_another_clock_do_not_hold_anything_up(tmp_path):
    """A record of a launcher and of a worker, without their locks, in the past and the future."""
    grid = make_grid({"task": "own_tasks:TASK", "axes": {"number": [0, 1, 2]}})
    run(grid, tmp_path / "calm", workers=1)
    out = tmp_path / "skewed"
    out.mkdir()
    (out / ".lock").touch()
    (out / "launcher.json").write_text('{"launch": "x", "host": "elsewhere", "pid": 1}')
    for cell, skew in zip(grid.cells, (-1e6, 1e6), strict=False):
        work = out / "work" / cell.key
        work.mkdir(parents=True)
        record, lock = work / ".worker.json", work.with_name(f"{cell.key}.lock")
        record.write_text('{"host": "elsewhere", "pid": 1}')
        lock.touch()
        for path in (record, lock, out / "launcher.json", out / ".lock"):
            os.utime(path, (time.time() + skew,) * 2)
    run(grid, out, workers=1)
    assert contents(out) == contents(tmp_path / "calm")
    assert not list((out / "work").iterdir())
