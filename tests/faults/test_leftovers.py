"""What a full disk or a kill leaves behind: nothing half-written, nothing that stays for good."""

from __future__ import annotations

import errno
import multiprocessing
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from evenhand import files
from evenhand.cache import Cache
from evenhand.cli import run
from evenhand.files import replace_file, save_json
from evenhand.models import ask
from evenhand.text.corpus import pool

pytestmark = pytest.mark.slow

FULL = Path("/dev/full")


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(files, "_LOOKED_AT", set())


@pytest.mark.skipif(not FULL.exists(), reason="needs /dev/full")
@pytest.mark.parametrize("arguments", [("-o", "out.txt"), ("-o", "out.txt.gz"), ()])
def test_no_output_without_its_edits(capfdbinary, arguments):
    Path("in.txt").write_text("she reads.\n" * 300_000)
    code = run(["rewrite", "swap", "in.txt", *arguments, "--edits", str(FULL)])
    captured = capfdbinary.readouterr()
    assert code == 1
    assert captured.out == b""
    assert captured.err == b"error: /dev/full: No space left on device\n"
    assert sorted(path.name for path in Path().iterdir()) == ["in.txt"]


WRITE_AND_WAIT = """
import sys, time
from evenhand.files import replace_file
with replace_file("out.json") as file:
    file.write(b"half")
    file.flush()
    print("ready", flush=True)
    time.sleep(600)
"""


def test_a_temporary_file_of_a_killed_process_is_removed_by_the_next(tmp_path):
    process = subprocess.Popen([sys.executable, "-c", WRITE_AND_WAIT], stdout=subprocess.PIPE)
    assert process.stdout is not None
    process.stdout.readline()
    save_json("other.json", {})  # the process is alive: its file stays
    assert len(list(tmp_path.glob(".out.json.*"))) == 1
    process.kill()
    process.wait()
    process.stdout.close()
    assert len(list(tmp_path.glob(".out.json.*"))) == 1
    files._LOOKED_AT.clear()
    save_json("out.json", {"a": 1})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["other.json", "out.json"]


def test_files_of_others_are_left_alone(tmp_path):
    names = [
        ".out.json.abc",
        ".out.json.tmp",
        ".out.json.123456-99999999.abcdefgh.tmp",  # of another machine
        f".out.json.{files._host()}-{os.getpid()}.abcdefgh.tmp",  # of this process
        "notes.tmp",
    ]
    for name in names:
        Path(name).write_text("")
    with replace_file("out.json") as file:
        file.write(b"{}")
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted([*names, "out.json"])


def test_a_worker_whose_parent_died_within_a_message_ends_quietly(capfd):
    context = multiprocessing.get_context("spawn")
    theirs, ours = context.Pipe(duplex=False)
    worker = context.Process(target=pool.end_with_parent, args=(theirs,))
    worker.start()
    os.write(ours.fileno(), (1000).to_bytes(4, "big") + b"only a part")
    ours.close()
    worker.join(timeout=30)
    assert worker.exitcode == 1
    assert capfd.readouterr().err == ""


@pytest.mark.parametrize("seconds", [3, 5, 7])
def test_a_killed_main_process_leaves_no_traceback(seconds):
    Path("in.txt").write_text("she reads her book to him.\n" * 2_000_000)
    with Path("err").open("wb") as err:
        process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "evenhand",
                "rewrite",
                "swap",
                "in.txt",
                "-o",
                "out",
                "--workers",
                "2",
            ],
            stderr=err,
        )
        time.sleep(seconds)
        process.send_signal(signal.SIGKILL)
        process.wait()
        time.sleep(3)
    assert b"Traceback" not in Path("err").read_bytes()


@pytest.mark.parametrize("call", ["open", "fsync"])
def test_a_full_or_read_only_disk_is_named_by_the_file_to_write(tmp_path, monkeypatch, call):
    def fail(*given, **named):
        path = given[0] if call == "open" else None
        raise OSError(errno.ENOSPC, "No space left on device", path)

    monkeypatch.setattr(os, call, fail)
    with pytest.raises(OSError) as raised, replace_file(tmp_path / "out.json") as file:  # noqa: PT011
        file.write(b"{}")
    monkeypatch.undo()
    assert raised.value.filename == str(tmp_path / "out.json")
    assert list(tmp_path.iterdir()) == []


def test_ask_needs_no_room_for_its_cache(tmp_path, monkeypatch):
    """The cache of `ask` is a convenience: without room the answer is the same."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    sentence = "The clerk lost [MASK] keys."
    [first] = ask(sentence)

    def fail(*_given, **_named):
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr("evenhand.cache.replace_file", fail)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "other"))
    [again] = ask(sentence)
    assert again.words == first.words
    assert not list((tmp_path / "other").rglob("*.npy"))
    with pytest.raises(OSError, match="Read-only"):
        Cache(tmp_path / "named")
