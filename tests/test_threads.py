"""The number of threads: what the user states, else one per free core."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

from evenhand import threads


@pytest.fixture(autouse=True)
def fresh(monkeypatch):
    """No choice was made yet, and none remains."""
    for name in (threads.COUNT, *threads.SLEEP):
        monkeypatch.setenv(name, "")
        monkeypatch.delenv(name)
    monkeypatch.setattr(threads, "_configured", False)
    threads.choose.cache_clear()
    yield
    threads.choose.cache_clear()


def set_machine(monkeypatch, tmp_path, *, cores: int, running: int, limit: str = "max 100000"):
    load, maximum = tmp_path / "loadavg", tmp_path / "cpu.max"
    load.write_text(f"0.50 0.40 0.30 {running}/200 4321\n")
    maximum.write_text(limit + "\n")
    monkeypatch.setattr(threads, "LOAD", load)
    monkeypatch.setattr(threads, "CPU_MAX", maximum)
    monkeypatch.setattr(os, "sched_getaffinity", lambda _: set(range(cores)), raising=False)
    monkeypatch.setattr(os, "cpu_count", lambda: cores)


@pytest.mark.parametrize(
    ("cores", "running", "expected"), [(8, 1, 8), (8, 4, 5), (8, 40, 1), (1, 1, 1)]
)
def test_one_thread_for_every_free_core(monkeypatch, tmp_path, cores, running, expected):
    set_machine(monkeypatch, tmp_path, cores=cores, running=running)
    assert threads.choose() == threads.Choice(expected, cores, "free cores")


def test_no_more_than_the_limit_of_the_container(monkeypatch, tmp_path):
    set_machine(monkeypatch, tmp_path, cores=16, running=1, limit="250000 100000")
    assert threads.available_cores() == 3
    assert threads.choose().threads == 3


def test_where_nothing_is_known_all_cores_are_used(monkeypatch, tmp_path):
    set_machine(monkeypatch, tmp_path, cores=4, running=3)
    monkeypatch.setattr(threads, "LOAD", tmp_path / "absent")
    monkeypatch.setattr(threads, "CPU_MAX", tmp_path / "absent")
    assert threads.choose().threads == 4


def test_what_the_user_states_is_used(monkeypatch, tmp_path):
    set_machine(monkeypatch, tmp_path, cores=8, running=7)
    monkeypatch.setenv(threads.COUNT, "6")
    monkeypatch.setenv("OMP_WAIT_POLICY", "ACTIVE")
    assert threads.configure() == threads.Choice(6, 8, threads.COUNT)
    assert os.environ["OMP_WAIT_POLICY"] == "ACTIVE"
    assert os.environ["KMP_BLOCKTIME"] == "0"
    assert threads.configure(3).threads == 3
    assert os.environ[threads.COUNT] == "3"


def test_a_resumed_run_has_the_threads_of_its_record(monkeypatch, tmp_path):
    set_machine(monkeypatch, tmp_path, cores=8, running=1)
    recorded = {"threads": 2, "cores": 8, "chosen_by": "free cores"}
    threads.resume(recorded)  # in Python the caller decides
    assert threads.COUNT not in os.environ
    threads.configure()
    threads.resume(recorded)
    assert os.environ[threads.COUNT] == "2"
    for damaged in (None, {}, {"threads": "many"}, {"threads": -1}, {"threads": True}, []):
        threads.resume(damaged)
    assert os.environ[threads.COUNT] == "2"


def test_a_resumed_run_does_not_override_the_user(monkeypatch, tmp_path):
    set_machine(monkeypatch, tmp_path, cores=8, running=1)
    threads.configure(5)
    threads.resume({"threads": 2})
    assert os.environ[threads.COUNT] == "5"


def test_the_command_line_configures_before_libraries_are_loaded():
    code = (
        "import os, sys; from evenhand.cli import run; assert 'numpy' not in sys.modules; "
        "run(['--threads', '1', 'list', 'metrics', 'weat']); "
        "print(os.environ['OMP_NUM_THREADS'], os.environ['OMP_WAIT_POLICY'])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[-1] == "1 PASSIVE"
