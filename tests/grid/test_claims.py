from __future__ import annotations

import json
import multiprocessing
import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenhand.grid.claims import Claims, Owner


class Clock:
    def __init__(self, now: float = 0.0) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


def elsewhere(path: Path) -> None:
    """Make a claim look as if its owner were on another host."""
    told = json.loads(path.read_bytes())
    told["owner"] = {**told["owner"], "place": "another host", "host": "another"}
    path.write_text(json.dumps(told))


def test_a_name_is_taken_once_and_free_again_when_released(tmp_path):
    first, second = Claims(tmp_path), Claims(tmp_path)
    claim = first.take("a")
    assert claim is not None
    assert claim.generation == 1
    assert second.take("a") is None
    assert first.take("a") is None
    assert second.held("a")["owner"]["pid"] == os.getpid()
    other = second.take("b")
    assert other is not None
    claim.release()
    assert second.held("a") is None
    again = second.take("a")
    assert again is not None
    assert again.generation == 1
    again.release()
    other.release()
    assert not list(tmp_path.iterdir())


def test_an_owner_whose_process_is_gone_is_known_to_be_dead_at_once(tmp_path):
    code = (
        "import sys; from pathlib import Path; from evenhand.grid.claims import Claims; "
        "import os; Claims(Path(sys.argv[1])).take('a'); os._exit(9)"
    )
    subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert [path.name for path in tmp_path.iterdir()] == ["a.1"]
    claims = Claims(tmp_path, patience=1e9)
    claim = claims.take("a")
    assert claim is not None
    assert claim.generation == 2
    assert len(claims.owners("a")) == 2
    claim.release()
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("skew", [-1e9, 0.0, 1e9])
def test_owners_elsewhere_are_watched_by_ones_own_clock_alone(tmp_path, skew):
    owner = Claims(tmp_path).take("a")
    assert owner is not None
    elsewhere(tmp_path / "a.1")
    os.utime(tmp_path / "a.1", (time.time() + skew, time.time() + skew))
    clock = Clock(skew)
    claims = Claims(tmp_path, patience=60, clock=clock)
    assert claims.take("a") is None
    clock.now += 59
    assert claims.take("a") is None
    clock.now += 2
    taken = claims.take("a")
    assert taken is not None
    assert taken.generation == 2


def test_a_sign_of_life_keeps_a_claim(tmp_path):
    owner = Claims(tmp_path).take("a")
    assert owner is not None
    owner.content["owner"] = {**owner.content["owner"], "place": "another host"}
    clock = Clock()
    claims = Claims(tmp_path, patience=60, clock=clock)
    for _ in range(5):
        owner.beat()
        assert claims.take("a") is None
        clock.now += 59
    clock.now += 60
    assert claims.take("a") is not None


def test_who_was_taken_for_dead_and_was_not_leaves_the_claim_to_the_other(tmp_path):
    slow = Claims(tmp_path).take("a")
    assert slow is not None
    elsewhere(tmp_path / "a.1")
    clock = Clock()
    claims = Claims(tmp_path, patience=60, clock=clock)
    claims.take("a")
    clock.now = 61
    taken = claims.take("a")
    assert taken is not None
    slow.beat()
    slow.release()
    third = Claims(tmp_path)
    assert third.take("a") is None
    taken.release()
    assert third.take("a") is not None


def _race(folder: str, barrier, won) -> None:
    claims = Claims(Path(folder))
    for number in range(50):
        barrier.wait()
        claim = claims.take(f"n{number}")
        if claim is not None:
            with won.get_lock():
                won[number] += 1
    barrier.wait()  # who has ended is dead


def test_of_many_one_wins(tmp_path):
    context = multiprocessing.get_context("fork")
    barrier, won = context.Barrier(4), context.Array("i", 50)
    every = [context.Process(target=_race, args=(str(tmp_path), barrier, won)) for _ in range(4)]
    for each in every:
        each.start()
    for each in every:
        each.join(60)
    assert list(won) == [1] * 50


def test_the_heart_beats_by_itself(tmp_path):
    claims = Claims(tmp_path, beat=0.02)
    claim = claims.take("a")
    assert claim is not None
    deadline = time.monotonic() + 30
    while json.loads((tmp_path / "a.1").read_bytes())["beats"] < 3:
        assert time.monotonic() < deadline
        time.sleep(0.01)
    claim.release()


def test_another_start_of_the_host_or_another_process_of_the_same_number_is_another_owner():
    this = Owner.this()
    assert not this.gone
    assert Owner(this.place, this.host, this.pid, "another start").gone
    assert not Owner("another host", this.host, this.pid, "another start").gone
