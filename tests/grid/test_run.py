from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

from evenhand.errors import FileError, InputError, PartialFailure
from evenhand.grid import Store, run
from evenhand.grid.store import DamagedError


def test_all_cells_are_computed_once_and_existing_results_stay(squares, files, tmp_path):
    grid = squares(8)
    calls = []
    launch = run(grid, tmp_path, workers=2, progress=lambda *call: calls.append(call))
    assert (launch.cells, launch.present) == (8, 0)
    results = {cell.axes["number"]: result["value"] for cell, result in Store(tmp_path).results()}
    assert results == {number: number**2 for number in range(8)}
    assert calls[0][:2] == (0, 8)
    assert calls[-1][:2] == (8, 8)
    for group in "012":
        assert (tmp_path / "cache" / f"made-shared-{group}").read_text() == "x"
    before = files(tmp_path)
    stamps = {path: path.stat().st_mtime_ns for path in tmp_path.glob("cells/*/*.json")}
    again = run(squares(9), tmp_path, workers=1)
    assert again.present == 8
    assert {path: path.stat().st_mtime_ns for path in stamps} == stamps
    assert {name: content for name, content in files(tmp_path).items() if name in before} == before
    assert len(files(tmp_path)) == 9
    assert not list((tmp_path / "work").iterdir())
    assert not (tmp_path / "launcher.json").exists()


def test_restart_computes_all_cells_again_and_leaves_those_of_other_grids(squares, files, tmp_path):
    run(squares(6), tmp_path, workers=1)
    complete = files(tmp_path)
    store = Store(tmp_path)
    paths = [store.file(cell.key) for cell in store.cells()]
    stamps = [path.stat().st_mtime_ns for path in paths]
    begun = store.work(store.cells()[0].key)
    begun.mkdir(parents=True)
    messages: list[str] = []
    launch = run(squares(4), tmp_path, workers=1, restart=True, notify=messages.append)
    assert (launch.cells, launch.present) == (4, 0)
    assert messages == [f"restart: removed 4 of 4 results in {tmp_path}"]
    again = [path.stat().st_mtime_ns for path in paths]
    assert [new == old for new, old in zip(again, stamps, strict=True)] == [False] * 4 + [True] * 2
    assert files(tmp_path) == complete
    assert not begun.exists()


def test_failures_hide_nothing_and_are_reported_together(squares, tmp_path):
    with pytest.raises(PartialFailure) as caught:
        run(squares(6, fails=[1, 4]), tmp_path, workers=2)
    message = str(caught.value)
    assert "2 of 6 cells failed, the others are saved" in message
    assert "number 1: ZeroDivisionError: cannot do 1;" in message
    assert "number 4: ZeroDivisionError: cannot do 4" in message
    store = Store(tmp_path)
    assert sum(store.has(cell.key) for cell in store.cells()) == 4
    trace = json.loads(next((tmp_path / "failed").glob("*.json")).read_bytes())["trace"]
    assert "ZeroDivisionError" in trace
    run(squares(6), tmp_path, workers=1)  # the cause is gone
    assert all(store.has(cell.key) for cell in store.cells())
    assert not list((tmp_path / "failed").iterdir())


@pytest.mark.parametrize("workers", [1, 3])
def test_a_cell_that_kills_its_workers_fails_alone(squares, tmp_path, workers):
    with pytest.raises(PartialFailure, match="number 2: 3 workers died while computing it"):
        run(squares(5, dies=[2]), tmp_path, workers=workers)
    store = Store(tmp_path)
    assert sum(store.has(cell.key) for cell in store.cells()) == 4
    assert [path.name for path in (tmp_path / "failed").iterdir()] == [
        f"{store.cells()[2].key}.json"
    ]


def test_a_cell_that_exits_fails_alone(squares, tmp_path):
    with pytest.raises(PartialFailure, match=r"1 of 3 cells failed.*number 1: SystemExit: enough"):
        run(squares(3, exits=[1]), tmp_path, workers=1)


def test_a_damaged_result_is_computed_again(squares, files, tmp_path):
    grid = squares(4)
    run(grid, tmp_path, workers=1)
    complete = files(tmp_path)
    first, second, third, _ = (Store(tmp_path).file(cell.key) for cell in grid.cells)
    first.write_bytes(first.read_bytes()[:-40])
    second.write_bytes(second.read_bytes().replace(b'"value": 1', b'"value": 7'))
    third.write_bytes(b"")
    with pytest.raises(DamagedError, match="checksum"):
        Store(tmp_path).result(grid.cells[1].key)
    messages: list[str] = []
    launch = run(grid, tmp_path, workers=1, notify=messages.append)
    assert len(launch.damaged) == len(messages) == 3
    assert files(tmp_path) == complete


def test_a_second_launcher_is_refused_with_one_line_that_names_the_first(squares, tmp_path):
    grid = squares(4)
    refused = []

    def second() -> None:
        try:
            run(grid, tmp_path, workers=1)
        except FileError as error:
            refused.append(str(error))

    def progress(settled, total, text):
        if settled and not refused:
            thread = threading.Thread(target=second)
            thread.start()
            thread.join()

    run(grid, tmp_path, workers=1, progress=progress)
    (message,) = refused
    assert "\n" not in message
    assert message.startswith(f"{tmp_path}: expected a folder without a launcher at work")
    assert f"process {os.getpid()} on {os.uname().nodename}, since 20" in message
    assert run(grid, tmp_path, workers=1).present == 4  # the lock is free again


def test_the_lock_of_a_killed_launcher_is_released(squares, tmp_path):
    grid = squares(2)
    code = (
        "import sys, time; from evenhand.grid import Store\n"
        "with Store(sys.argv[1]).lock_folder('first'):\n"
        "    print('held', flush=True); time.sleep(600)"
    )
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        with pytest.raises(FileError, match=f"process {process.pid} on"):
            run(grid, tmp_path, workers=1)
        process.send_signal(signal.SIGKILL)
    assert Store(tmp_path).current_launch() == "first"
    assert run(grid, tmp_path, workers=1).present == 0
    assert Store(tmp_path).current_launch() is None


def test_a_cell_that_a_leftover_worker_computes_is_waited_for(squares, files, tmp_path):
    grid = squares(1, seconds=0)
    store, done = Store(tmp_path), []

    def leftover() -> None:
        with store.lock_cell(grid.cells[0].key):
            started.set()
            time.sleep(0.3)
            store.save(grid.task_name, 1, grid.task.identity(grid.settings[0]), {"value": 0})
            done.append(time.monotonic())

    started = threading.Event()
    thread = threading.Thread(target=leftover)
    thread.start()
    started.wait()
    run(grid, tmp_path, workers=1)
    assert done
    thread.join()
    assert not (tmp_path / "cache").exists()  # the task was not computed a second time


def test_files_that_change_meanwhile_are_reported(squares, tmp_path):
    path = tmp_path / "a.txt"
    path.write_text("one")
    grid = squares(2, file=str(path))
    path.write_text("two")
    with pytest.raises(PartialFailure, match="expected the files as they were at the launch"):
        run(grid, tmp_path / "out", workers=1)


def test_workers_that_cannot_begin_are_reported(squares, tmp_path, monkeypatch):
    grid = squares(2)
    monkeypatch.setenv("PYTHONHOME", str(tmp_path / "nowhere"))
    with pytest.raises(PartialFailure, match="workers die before they begin a cell"):
        run(grid, tmp_path, workers=1)
    assert not (tmp_path / "failed").exists()


def test_a_script_without_a_guard_can_run_a_grid(tmp_path):
    script = tmp_path / "script.py"
    script.write_text(
        "import sys\n"
        f"sys.path.insert(0, {str(Path(__file__).parent)!r})\n"
        "from evenhand.grid import make_grid, run\n"
        "print('imported')\n"
        "grid = make_grid({'task': 'own_tasks:TASK', 'axes': {'number': [1, 2]}})\n"
        "print(run(grid, 'out', workers=1))\n"
    )
    process = subprocess.run(
        [sys.executable, script.name], cwd=tmp_path, capture_output=True, text=True, check=False
    )
    assert process.returncode == 0, process.stderr
    assert process.stdout.splitlines() == ["imported", "Launch(cells=2, present=0, damaged=())"]


def test_what_cells_print_goes_to_the_log(squares, tmp_path, capfd):
    run(squares(1, prints="a message"), tmp_path, workers=1)
    assert "a message" not in "".join(capfd.readouterr())
    assert "a message" in "".join(path.read_text() for path in (tmp_path / "log").glob("*.log"))


def test_workers_take_turns_with_devices_and_have_their_threads(squares, tmp_path):
    grid = squares(6, seconds=0.05, notes_process=True)
    run(grid, tmp_path, workers=2, devices=("cpu", "meta"), threads=3)
    processes = [json.loads(path.read_text()) for path in (tmp_path / "cache").glob("process-*")]
    assert {process["device"] for process in processes} == {"cpu", "meta"}
    assert {(process["threads"], process["omp"]) for process in processes} == {(3, "3")}
    assert {process["interrupt"] for process in processes} == {"SIG_IGN"}


def test_wrong_arguments(squares, tmp_path):
    with pytest.raises(InputError, match="expected 1 or more"):
        run(squares(1), tmp_path, workers=-1)
    with pytest.raises(InputError, match="did you mean 'slurm'"):
        run(squares(1), tmp_path, on="slurmd")
    with pytest.raises(InputError, match="unknown option of local 'partition'"):
        run(squares(1), tmp_path, options={"partition": "gpu"})


def test_times_are_saved_beside_the_results(squares, tmp_path):
    grid = squares(2, seconds=0.05)
    run(grid, tmp_path, workers=1)
    times = Store(tmp_path).times()
    assert set(times) == {cell.key for cell in grid.cells}
    assert all(seconds >= 0.05 for seconds in times.values())


def test_half_written_files_are_removed_when_they_are_old(squares, tmp_path):
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
    assert new.exists()  # a job of a cluster may be writing it
