from __future__ import annotations

import errno
import json
import os
import signal
import subprocess
import sys
import threading
import time
from contextlib import ExitStack, suppress

import pytest
from slurm_on_loopback import CannotRunError, slurm

from evenhand.errors import InputError, MissingExtraError, PartialFailure
from evenhand.grid import Store, engine_slurm, run
from evenhand.grid.engine_options import SlurmOptions, environment
from evenhand.grid.worker import Worker

pytest.importorskip("submitit", reason="needs evenhand[slurm]")

LOCAL = {"cluster": "local"}


def owners(folder):
    """The processes that have a cell now."""
    found = []
    for path in (folder / "claims").glob("[0-9a-f]*.*"):
        with suppress(OSError, ValueError, KeyError):
            found.append(json.loads(path.read_bytes())["owner"]["pid"])
    return found


def disturbed(folder, do, times=1):
    """A progress function that does something to a process with a cell, a few times."""
    done = []

    def told(settled, total, words):
        if len(done) < times and 0 < settled < total - 1:
            for pid in owners(folder)[:1]:
                with suppress(ProcessLookupError):
                    do(pid)
                    done.append(pid)

    told.done = done
    return told


def written(folder):
    return "".join(path.read_text() for path in sorted((folder / "log/submitit").glob("*_log.*")))


def test_jobs_give_the_same_bytes_as_processes(squares, files, tmp_path):
    grid = squares(8, fails=[3])
    for on, options in (("slurm", LOCAL), ("local", {})):
        with pytest.raises(PartialFailure, match=r"1 of 8 cells failed.*number 3: ZeroDivision"):
            run(grid, tmp_path / on, on=on, workers=2, options=options)
    assert files(tmp_path / "slurm") == files(tmp_path / "local")
    assert len(files(tmp_path / "slurm")) == 7
    assert not list((tmp_path / "slurm" / "claims").iterdir())
    assert "Job completed successfully" in written(tmp_path / "slurm")


@pytest.mark.slow
def test_a_job_that_is_killed_is_submitted_anew(squares, files, tmp_path):
    grid = squares(6, seconds=0.2)
    told = disturbed(tmp_path / "a", lambda pid: os.kill(pid, signal.SIGKILL), times=2)
    run(grid, tmp_path / "a", on="slurm", workers=1, options=LOCAL, progress=told)
    assert len(told.done) == 2
    run(grid, tmp_path / "b", workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.slow
def test_a_job_whose_time_is_over_gives_its_cell_back_and_is_requeued(squares, files, tmp_path):
    grid = squares(6, seconds=0.2)
    told = disturbed(tmp_path / "a", lambda pid: os.kill(pid, signal.SIGUSR2), times=4)
    run(grid, tmp_path / "a", on="slurm", workers=1, options=LOCAL, progress=told)
    assert len(told.done) >= 3  # more often than a worker may die with one cell
    assert written(tmp_path / "a").count("Requeued job") == len(told.done)
    assert len(list((tmp_path / "a" / "log/submitit").glob("*_submitted.pkl"))) == 1
    run(grid, tmp_path / "b", workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.slow
def test_without_requeue_the_launcher_submits_a_new_job(squares, tmp_path):
    grid = squares(5, seconds=0.2)
    told = disturbed(tmp_path, lambda pid: os.kill(pid, signal.SIGUSR2))
    options = {**LOCAL, "requeue": False}
    run(grid, tmp_path, on="slurm", workers=1, options=options, progress=told)
    assert "Requeued job" not in written(tmp_path)
    assert len(list((tmp_path / "log/submitit").glob("*_submitted.pkl"))) == 2
    assert all(Store(tmp_path).has(cell.key) for cell in grid.cells)


def test_a_cell_that_never_ends_in_time_is_told_of(squares, tmp_path, monkeypatch):
    monkeypatch.setattr(engine_slurm, "IDLE_RUNS", 1)
    monkeypatch.chdir(tmp_path)  # a worker goes where the grid was launched
    name = Store(tmp_path).save_grid(squares(1, seconds=30).as_dict())
    job = engine_slurm._Job(Worker(folder=str(tmp_path), grid=name), SlurmOptions(time=7))
    requeued = []
    before = {each: signal.getsignal(each) for each in (signal.SIGUSR2, signal.SIGTERM)}
    timer = threading.Timer(0.5, os.kill, (os.getpid(), signal.SIGUSR2))
    with environment({}):
        try:
            signal.signal(signal.SIGUSR2, lambda *told: requeued.append(told))  # as submitit does
            timer.start()
            words = job()
        finally:
            timer.join()
            for signum, handler in before.items():
                signal.signal(signum, handler)
    assert words.startswith("no cell was computed in 1 jobs of 7 minutes each")
    assert not requeued
    assert not list((tmp_path / "claims").iterdir())
    assert not (tmp_path / "failed").exists()


def test_a_full_disk_ends_the_launch_at_once(squares, tmp_path, monkeypatch):
    name = Store(tmp_path).save_grid(squares(1).as_dict())
    job = engine_slurm._Job(Worker(folder=str(tmp_path), grid=name), SlurmOptions())

    def full(worker):
        raise OSError(errno.ENOSPC, "No space left on device", "here")

    monkeypatch.setattr(engine_slurm, "work", full)
    before = {each: signal.getsignal(each) for each in (signal.SIGUSR2, signal.SIGTERM)}
    try:
        assert job() == "here: No space left on device"
    finally:
        for signum, handler in before.items():
            signal.signal(signum, handler)


def test_what_cannot_run_is_told_of(squares, tmp_path, monkeypatch):
    grid = squares(2)

    def go(**options):
        run(grid, tmp_path / "out", on="slurm", workers=1, options=options)

    with pytest.raises(InputError, match=r"unknown option of slurm 'memory'.*'memory_gb'"):
        go(memory=3)
    with pytest.raises(InputError, match="slurm: time: expected greater than or equal to 1, got 0"):
        go(time=0)
    with monkeypatch.context() as patch:
        patch.setenv("PATH", "")
        with pytest.raises(InputError, match="there is no srun here"):
            go()
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "submitit", None)
        with pytest.raises(MissingExtraError, match=r"pip install 'evenhand\[slurm\]'"):
            go()
    monkeypatch.setenv("PYTHONPATH", "")
    monkeypatch.setattr(engine_slurm, "IDLE_DEATHS", 1)
    with pytest.raises(PartialFailure, match=r"jobs end at once: .*No module named 'own_tasks'"):
        go(**LOCAL)


@pytest.fixture(scope="module")
def loopback():
    try:
        stack = ExitStack()
        found = stack.enter_context(slurm())
    except CannotRunError as error:
        pytest.skip(f"needs a Slurm on loopback: {error}")
    with stack:
        yield found


@pytest.fixture
def cluster(loopback, monkeypatch):
    """A real Slurm of one node."""
    monkeypatch.setattr(engine_slurm, "ASKING", 1.0)
    for name, value in loopback.items():
        monkeypatch.setenv(name, value)


def queued(*columns):
    told = ["squeue", "--noheader", "--array", "--format=" + " ".join(columns)]
    found = subprocess.run(told, capture_output=True, text=True, check=True, timeout=60)
    return found.stdout.splitlines()


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_real_slurm_runs_an_array_of_jobs(squares, files, tmp_path):
    grid, seen = squares(8, seconds=0.3), set()
    run(
        grid, tmp_path / "a", on="slurm", workers=2,
        options={"partition": "tests", "setup": "export OF_OUR_OWN=1"},
        progress=lambda *_: seen.update(queued("%i", "%T")),
    )  # fmt: skip
    running = {line.split()[0] for line in seen if "RUNNING" in line}
    assert len(running) == 2
    assert all("_" in job for job in running)
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
@pytest.mark.parametrize("how", ["cancelled", "killed", "told", "timed out"])
def test_real_slurm_goes_on_after(how, squares, files, tmp_path):
    seconds, minutes = (4, 1) if how == "timed out" else (0.5, 60)
    grid, done = squares(9 if how == "timed out" else 6, seconds=seconds), []

    def told(settled, total, words):
        if done or not 0 < settled < total - 1 or how == "timed out":
            return
        for job in queued("%i", "%T"):
            number, state = job.split()
            if state == "RUNNING":
                extra = {"cancelled": [], "killed": ["--signal=KILL"], "told": ["--signal=USR2"]}
                subprocess.run(["scancel", *extra[how], number], check=True, timeout=60)
                done.append(number)

    options = {"time": minutes}
    run(grid, tmp_path / "a", on="slurm", workers=1, options=options, progress=told)
    assert done or how == "timed out"
    requeued = written(tmp_path / "a").count("Requeued job")
    assert requeued == (how == "told") or (how == "timed out" and requeued >= 1)
    jobs = len(list((tmp_path / "a" / "log/submitit").glob("*_submitted.pkl")))
    assert jobs == (2 if how in ("cancelled", "killed") else 1)
    times = Store(tmp_path / "a").log.glob("*.jsonl")
    assert sum(len(path.read_text().splitlines()) for path in times) == len(grid.cells)
    if how != "timed out":
        run(grid, tmp_path / "b", workers=1)
        assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.slow
@pytest.mark.usefixtures("cluster")
def test_real_slurm_jobs_outlive_a_killed_launcher_and_end_with_a_stopped_one(squares, tmp_path):
    grid = squares(6, seconds=0.5)

    def stopped(settled, total, words):
        if settled:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        run(grid, tmp_path / "a", on="slurm", workers=1, progress=stopped)
    until(lambda: not queued("%i"))
    assert not all(Store(tmp_path / "a").settled(cell.key) for cell in grid.cells)
    child = os.fork()
    if child == 0:
        run(grid, tmp_path / "b", on="slurm", workers=1, progress=dies)
    assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == -signal.SIGKILL
    until(lambda: all(Store(tmp_path / "b").has(cell.key) for cell in grid.cells))
    until(lambda: not queued("%i"))


def dies(settled, total, words):
    if settled:
        os.kill(os.getpid(), signal.SIGKILL)


def until(true, seconds=60):
    end = time.monotonic() + seconds
    while not true():
        assert time.monotonic() < end
        time.sleep(0.2)
