"""Grids whose workers and launchers are killed, whose disk is full, whose clocks disagree."""

from __future__ import annotations

import json
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
from evenhand.grid import Store, make_grid, run

TASKS = Path(__file__).parents[1] / "grid"
LAUNCH = """
import sys
from evenhand.grid import make_grid, run
cells, workers, out, seconds, patience = sys.argv[1:6]
asked = {
    "task": "own_tasks:TASK", "fixed": {"seconds": float(seconds), "size": 200},
    "axes": {"number": list(range(int(cells)))},
}
if __name__ == "__main__":
    run(make_grid(asked), out, workers=int(workers), patience=float(patience))
"""


@pytest.fixture(autouse=True)
def _importable(monkeypatch):
    monkeypatch.setenv(
        "PYTHONPATH", os.pathsep.join([str(TASKS), os.environ.get("PYTHONPATH", "")])
    )
    monkeypatch.syspath_prepend(str(TASKS))


def launched(out: Path, cells: int, *, workers: int = 2, seconds: float = 0.0, patience=60.0):
    arguments = [str(cells), str(workers), str(out), str(seconds), str(patience)]
    return subprocess.Popen([sys.executable, "-c", LAUNCH, *arguments])


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.glob("cells/*/*.json"))}


def workers_of(process: subprocess.Popen) -> list[int]:
    """The workers a launcher has now."""
    children = Path(f"/proc/{process.pid}/task/{process.pid}/children")
    try:
        return [int(word) for word in children.read_text().split()]
    except OSError:
        return []


def wait_for(folder: Path, count: int) -> None:
    deadline = time.monotonic() + 120
    while len(list(folder.glob("cells/*/*.json"))) < count:
        assert time.monotonic() < deadline
        time.sleep(0.01)


@pytest.mark.slow
@pytest.mark.parametrize("seed", [0, 1])
def test_200_cells_killed_five_times_end_with_the_same_bytes(tmp_path, seed):
    with launched(tmp_path / "calm", 200) as process:
        assert process.wait(300) == 0
    undisturbed = contents(tmp_path / "calm")
    assert len(undisturbed) == 200
    draws = random.Random(seed)  # noqa: S311
    out = tmp_path / "killed"
    for kill in range(5):
        with launched(out, 200, seconds=0.01) as process:
            wait_for(out, 30 * kill + draws.randrange(1, 30))
            time.sleep(draws.random() * 0.2)
            victims = workers_of(process)
            if kill % 2 and victims:
                os.kill(draws.choice(victims), signal.SIGKILL)
                time.sleep(draws.random() * 0.2)
            process.kill()
            if kill == 4:
                for victim in victims:  # and workers that were not told that they are alone
                    with suppress(ProcessLookupError):
                        os.kill(victim, signal.SIGKILL)
    with launched(out, 200) as process:
        assert process.wait(300) == 0
    assert contents(out) == undisturbed
    assert not list((out / "work").iterdir())


def test_a_worker_that_is_killed_is_begun_anew(tmp_path):
    with launched(tmp_path / "a", 12, workers=1, seconds=0.05) as process:
        wait_for(tmp_path / "a", 2)
        os.kill(workers_of(process)[0], signal.SIGKILL)
        assert process.wait(120) == 0
    assert len(contents(tmp_path / "a")) == 12


def test_workers_end_with_their_launcher(tmp_path):
    with launched(tmp_path / "a", 500, seconds=0.05) as process:
        wait_for(tmp_path / "a", 2)
        every = workers_of(process)
        process.kill()
    assert every
    deadline = time.monotonic() + 60
    while any(Path(f"/proc/{pid}").exists() for pid in every):
        assert time.monotonic() < deadline
        time.sleep(0.05)
    assert len(contents(tmp_path / "a")) < 500
    assert not list((tmp_path / "a" / "claims").glob("*.2"))


def test_a_full_disk_stops_the_grid_and_loses_nothing(tmp_path):
    asked = {"task": "own_tasks:TASK", "fixed": {"size": 200}, "axes": {"number": list(range(6))}}
    grid = make_grid(asked)
    run(grid, tmp_path / "calm", workers=1)
    largest = max(map(len, contents(tmp_path / "calm").values()))
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (largest * 9 // 10, hard))
    try:
        with pytest.raises(PartialFailure, match="File too large; the same command goes on"):
            run(grid, tmp_path / "full", workers=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert not list(tmp_path.glob("full/cells/*/.*"))
    assert not list(tmp_path.glob("full/failed/*"))
    run(grid, tmp_path / "full", workers=1)
    assert contents(tmp_path / "full") == contents(tmp_path / "calm")


def test_a_stopped_worker_on_a_host_with_another_clock_holds_nothing_up(tmp_path):
    """Its claim has a time of its own and no sign of life: only the watching clock counts."""
    grid = make_grid({"task": "own_tasks:TASK", "axes": {"number": [0, 1, 2]}})
    run(grid, tmp_path / "calm", workers=1)
    out = tmp_path / "skewed"
    claims = Store(out).claims
    claims.mkdir(parents=True)
    for cell, skew in zip(grid.cells, (-1e6, 1e6), strict=False):
        path = claims / f"{cell.key}.1"
        owner = {"place": "elsewhere", "host": "elsewhere", "pid": 1, "started": "1"}
        path.write_text(json.dumps({"owner": owner, "launch": "x", "nonce": "y", "beats": 3}))
        os.utime(path, (time.time() + skew,) * 2)
    run(grid, out, workers=1, patience=0.5)
    assert contents(out) == contents(tmp_path / "calm")
    assert not list(claims.iterdir())
