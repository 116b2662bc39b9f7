from __future__ import annotations

import os
import signal
import sys
import tempfile
from contextlib import suppress
from pathlib import Path

import pytest

import evenhand
from evenhand.errors import InputError, MissingExtraError, PartialFailure
from evenhand.grid import run
from evenhand.grid.ray import RayOptions, _connect_ray

pytest.importorskip("ray", reason="needs evenhand[ray]")


def beside():
    """What Ray could leave behind."""
    home, temporary = Path.home() / ".ray", Path(tempfile.gettempdir())
    return {path for path in [home, *temporary.glob("ray*")] if path.exists()}


@pytest.mark.slow
def test_actors_give_the_same_bytes_as_processes(squares, files, tmp_path):
    grid = squares(8, fails=[3], dies=[5])
    before = beside(), signal.getsignal(signal.SIGTERM), dict(os.environ), Path.cwd()
    for on in ("ray", "local"):
        with pytest.raises(PartialFailure, match="2 of 8 cells failed") as caught:
            run(grid, tmp_path / on, on=on, workers=2)
        assert "number 5: 3 workers died while computing it" in str(caught.value)
    assert (beside(), signal.getsignal(signal.SIGTERM), dict(os.environ), Path.cwd()) == before
    assert files(tmp_path / "ray") == files(tmp_path / "local")
    assert len(files(tmp_path / "ray")) == 6


@pytest.mark.slow
def test_an_actor_that_is_killed_is_replaced(squares, files, workers, tmp_path, capsys):
    grid, killed = squares(10, seconds=0.2), []

    def progress(settled, total, text):
        if settled and not killed:
            for pid in workers(tmp_path / "a")[:1]:
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

    run(grid, tmp_path / "a", on="ray", workers=2, progress=progress)
    assert killed
    assert capsys.readouterr().out == ""  # of `grid run --json`, the document alone
    run(grid, tmp_path / "b", workers=1)
    assert files(tmp_path / "a") == files(tmp_path / "b")


@pytest.mark.slow
def test_a_ray_of_the_users_own_is_left_running(squares, files, tmp_path):
    import ray

    grid = squares(4)
    with _connect_ray(RayOptions(), 2):
        run(grid, tmp_path, on="ray", workers=2)
        assert ray.is_initialized()
    assert not ray.is_initialized()
    assert len(files(tmp_path)) == 4


def test_what_cannot_run_on_ray_is_reported(squares, tmp_path, monkeypatch):
    grid = squares(2)
    with pytest.raises(InputError, match=r"unknown option of ray 'adress': did you mean 'address'"):
        run(grid, tmp_path, on="ray", workers=1, options={"adress": "auto"})
    with pytest.raises(InputError, match=r"ray: gpus_per_worker: expected a valid number"):
        run(grid, tmp_path, on="ray", workers=1, options={"gpus_per_worker": "all"})
    monkeypatch.setitem(sys.modules, "ray", None)
    with pytest.raises(MissingExtraError, match=r"pip install 'evenhand\[ray\]'"):
        run(grid, tmp_path, on="ray", workers=1)


@pytest.mark.slow
def test_actors_that_cannot_begin_are_reported(squares, tmp_path, monkeypatch):
    grid = squares(2)
    monkeypatch.setenv("PYTHONPATH", str(Path(evenhand.__file__).parents[1]))
    with pytest.raises(PartialFailure, match=r"2 of 2 cells failed.*No module named 'own_tasks'"):
        run(grid, tmp_path, on="ray", workers=1)
    with pytest.raises(InputError, match=r"address: expected a Ray cluster that answers"):
        run(grid, tmp_path, on="ray", workers=1, options={"address": "127.0.0.1:1"})
