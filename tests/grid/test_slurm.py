from __future__ import annotations

import errno
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest
from slurm_on_loopback import CannotRunError, start_slurm

import evenhand
from evenhand.errors import InputError, MissingExtraError, PartialFailure
from evenhand.grid import Store, run, slurm
from evenhand.grid.run import CellWorker, environment

pytest.importorskip("submitit", reason="needs evenhand[slurm]")

LOCAL = {"cluster": "local"}


@pytest.fixture
def disturb(workers):
    """Make a progress function that does something to a process with a cell, a few times."""

    def make(folder, do, times=1):
        disturbed = []

        def progress(settled, total, text):
            if len(disturbed) < times and 0 < settled < total - 1:
                for pid in workers(folder)[:1]:
                    with suppress(ProcessLookupError):
                        do(pid)
                        disturbed.append(pid)

        progress.disturbed = disturbed
        return progress

    return make


@contextmanager
def restored_signals():
    before = {each: signal.getsignal(each) for each in (signal.SIGUSR2, signal.SIGTERM)}
    try:
        yield
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def job_of(grid, folder, **options):
    worker = CellWorker(folder=str(folder), source=str(folder), task=grid.task_name, launch="a")
    return slurm._Job(worker, grid.cells, slurm.SlurmOptions(**options))


def printed(folder):
    return "".join(path.read_text() for path in sorted((folder / "log/submitit").glob("*_log.*")))


def count_jobs(folder):
    return len(list((folder / "log/submitit").glob("*_submitted.pkl")))


def test_jobs_give_the_same_bytes_as_processes(squares, files, tmp_path):
    grid = squares(8, fails=[3])
    for on, options in (("slurm", LOCAL), ("local", {})):
        with pytest.raises(PartialFailure, match=r"1 of 8 cells failed.*number 3: ZeroDivision"):
            run(grid, tmp_path / on, on=on, workers=2, options=options)
    assert files(tmp_path / "slurm") == files(tmp_path / "local")
    assert len(files(tmp_path / "slurm")) == 7
    assert count_jobs(tmp_path / "slurm") == 2
    assert "Job completed successfully" in printed(tmp_path / "slurm")


@pytest.mark.slow
def test_a_cell_that_kills_its_jobs_fails_alone(squares, tmp_path):
    with pytest.raises(PartialFailure, match=r"1 of 5.*number 2: 3 workers died"):
        run(squares(5, dies=[2]), tmp_path, on="slurm", workers=2, options=LOCAL)


@pytest.mark.slow
def test_a_job_that_is_killed_is_submitted_again(squares, files, disturb, tmp_path):
    grid = squares(15, seconds=0.3)
    progress = disturb(tmp_path / "a", lambda pid: os.kill(pid, signal.SIGKILL), times=2)
    run(grid, tmp_path / "a", on="slurm", workers=1, options=LOCAL, progress=progress)
    assert len(progress.disturbed) == 2
    run(grid, tmp_path / "b", workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.slow
def test_a_job_whose_time_is_over_is_requeued(squares, files, disturb, tmp_path):
    grid = squares(15, seconds=0.3)
    progress = disturb(tmp_path / "a", lambda pid: os.kill(pid, signal.SIGUSR2), times=4)
    run(grid, tmp_path / "a", on="slurm", workers=1, options=LOCAL, progress=progress)
    assert len(progress.disturbed) >= 3  # more often than a worker may die with one cell
    assert printed(tmp_path / "a").count("Requeued job") == len(progress.disturbed)
    assert count_jobs(tmp_path / "a") == 1
    run(grid, tmp_path / "b", workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.slow
def test_without_requeue_the_launcher_submits_a_new_job(squares, disturb, tmp_path):
    grid = squares(8, seconds=0.3)
    progress = disturb(tmp_path, lambda pid: os.kill(pid, signal.SIGUSR2))
    options = {**LOCAL, "requeue": False}
    run(grid, tmp_path, on="slurm", workers=1, options=options, progress=progress)
    assert "Requeued job" not in printed(tmp_path)
    assert count_jobs(tmp_path) == 2
    assert all(Store(tmp_path).has(cell.key) for cell in grid.cells)


def test_a_cell_that_never_ends_in_time_is_reported(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "IDLE_RUNS", 1)
    monkeypatch.chdir(tmp_path)  # a worker changes to the folder of the launch
    job = job_of(squares(1, seconds=30), tmp_path, time=7)
    requeued = []
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR2))
    with environment({}), restored_signals():
        signal.signal(signal.SIGUSR2, lambda *call: requeued.append(call))  # as submitit does
        timer.start()
        reason = job()
        timer.join()
    assert reason.startswith("no cell was computed in 1 jobs of 7 minutes each")
    assert not requeued
    assert not list((tmp_path / "work").glob("*.lock"))
    assert not list((tmp_path / "work").glob("*/.worker.json"))
    assert not (tmp_path / "failed").exists()


def test_a_full_disk_ends_the_launch(squares, tmp_path, monkeypatch):
    def full(*_):
        raise OSError(errno.ENOSPC, "No space left on device", "here")

    monkeypatch.setattr(sys.modules["evenhand.grid.run"], "_compute", full)
    with restored_signals():
        assert job_of(squares(1), tmp_path)() == "here: No space left on device"


def test_the_jobs_of_a_killed_launcher_end_when_another_one_took_over(squares, tmp_path):
    grid = squares(2)
    with restored_signals(), Store(tmp_path).lock_folder("b"):
        assert job_of(grid, tmp_path)() == ""
    assert not any(Store(tmp_path).is_settled(cell.key) for cell in grid.cells)


def test_what_cannot_run_is_reported(squares, tmp_path, monkeypatch):
    grid = squares(2)

    def launch(**options):
        run(grid, tmp_path / "out", on="slurm", workers=1, options=options)

    with pytest.raises(InputError, match=r"unknown option of slurm 'memory'.*'memory_gb'"):
        launch(memory=3)
    with pytest.raises(InputError, match="slurm: time: expected greater than or equal to 1, got 0"):
        launch(time=0)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        with pytest.raises(InputError, match="there is no srun here"):
            launch()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "submitit", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'evenhand\[slurm\]'"):
            launch()
    monkeypatch.setenv("PYTHONPATH", str(Path(evenhand.__file__).parents[1]))
    with pytest.raises(PartialFailure, match=r"2 of 2 cells failed.*No module named 'own_tasks'"):
        launch(**LOCAL)


@pytest.mark.slow
def test_jobs_that_cannot_begin_are_reported(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(slurm, "EARLY_DEATHS", 1)
    monkeypatch.setenv("PYTHONHOME", str(tmp_path / "nowhere"))
    with pytest.raises(PartialFailure, match="jobs end before they settle a cell"):
        run(squares(2), tmp_path, on="slurm", workers=1, options=LOCAL)


@pytest.fixture(scope="module")
def loopback():
    try:
        stack = ExitStack()
        found = stack.enter_context(start_slurm())
    except CannotRunError as error:
        pytest.skip(f"needs a Slurm on loopback: {error}")
    with stack:
        yield found


@pytest.fixture
def cluster(loopback, monkeypatch):
    """A real Slurm of one node."""
    monkeypatch.setattr(slurm, "POLL_QUEUE", 1.0)
    for name, value in loopback.items():
        monkeypatch.setenv(name, value)


def queued(*columns):
    command = ["squeue", "--noheader", "--array", "--format=" + " ".join(columns)]
    found = subprocess.run(command, capture_output=True, text=True, check=True, timeout=60)
    return found.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_real_slurm_runs_an_array_of_jobs(squares, files, tmp_path):
    grid, seen = squares(8, seconds=0.3), set()
    run(
        grid,
        tmp_path / "a",
        on="slurm",
        workers=2,
        options={"partition": "tests", "setup": "export OF_OUR_OWN=1"},
        progress=lambda *_: seen.update(queued("%i", "%T")),
    )
    assert all("_" in line.split()[0] for line in seen)  # the jobs of an array
    assert any("RUNNING" in line for line in seen)
    scripts = "".join(path.read_text() for path in (tmp_path / "a/log/submitit").glob("*.sh"))
    assert "OF_OUR_OWN" in scripts
    assert "--requeue" in scripts
    until(lambda: not queued("%i"))
    run(grid, tmp_path / "b", workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")
    with pytest.raises(InputError, match=r"it says: .*Invalid partition"):
        run(grid, tmp_path / "c", on="slurm", workers=2, options={"partition": "nowhere"})


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
@pytest.mark.parametrize("how", ["cancelled", "killed", "signalled", "timed out"])
def test_real_slurm_continues_after(how, squares, files, tmp_path):
    seconds, minutes = (4, 1) if how == "timed out" else (0.5, 60)
    grid, done = squares(9 if how == "timed out" else 6, seconds=seconds), []

    def progress(settled, total, text):
        if done or not 0 < settled < total - 1 or how == "timed out":
            return
        for job in queued("%i", "%T"):
            number, state = job.split()
            if state == "RUNNING":
                extra = {
                    "cancelled": [],
                    "killed": ["--signal=KILL"],
                    "signalled": ["--signal=USR2"],
                }
                subprocess.run(["scancel", *extra[how], number], check=True, timeout=60)
                done.append(number)

    options = {"time": minutes}
    run(grid, tmp_path / "a", on="slurm", workers=1, options=options, progress=progress)
    assert done or how == "timed out"
    requeued = printed(tmp_path / "a").count("Requeued job")
    assert requeued == (how == "signalled") or (how == "timed out" and requeued >= 1)
    shares = min(len(grid.cells), slurm.SHARES_PER_WORKER)
    assert count_jobs(tmp_path / "a") == shares + (how in ("cancelled", "killed"))
    times = Store(tmp_path / "a").log.glob("*.jsonl")
    assert sum(len(path.read_text().splitlines()) for path in times) == len(grid.cells)
    if how != "timed out":
        run(grid, tmp_path / "b", workers=1)
        assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_real_slurm_jobs_outlive_a_killed_launcher_and_end_with_a_stopped_one(squares, tmp_path):
    grid = squares(6, seconds=0.5)

    def stopped(settled, total, text):
        if settled:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(grid, tmp_path / "a", on="slurm", workers=1, progress=stopped)
    until(lambda: not queued("%i"))
    assert not all(Store(tmp_path / "a").is_settled(cell.key) for cell in grid.cells)
    child = os.fork()
    if child == 0:
        run(grid, tmp_path / "b", on="slurm", workers=1, progress=dies)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    until(lambda: all(Store(tmp_path / "b").has(cell.key) for cell in grid.cells))
    until(lambda: not queued("%i"))


def dies(settled, total, text):
    if settled:
        os.kill(os.getpid(), signal.SIGKILL)


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)
