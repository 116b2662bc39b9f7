"""The cache beside a file: used when it fits, rebuilt when it does not."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.errors import EntryWarning
from evenhand.vectors import store
from evenhand.vectors.store import load

CONTENT = b"the 0.5 1\nof 2 3\nthe 9 9\nna\xc3\xafve 4 5\n"


@pytest.fixture
def path(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "xdg"))
    folder = tmp_path / "data"
    folder.mkdir()
    file = folder / "v.txt"
    file.write_bytes(CONTENT)
    return file


@pytest.fixture
def reads(monkeypatch):
    """Counts how often a file is parsed rather than mapped."""
    calls = []
    real = store.read
    monkeypatch.setattr(store, "read", lambda *a, **k: calls.append(a) or real(*a, **k))
    return calls


def beside(path):
    return path.with_name(path.name + ".evenhand-cache")


def check(v):
    assert v.words == ["the", "of", "naïve"]
    assert v.matrix.tolist() == [[0.5, 1], [2, 3], [4, 5]]
    assert v.notes == ("1 duplicate word: first kept",)
    assert not v.matrix.flags.writeable


def test_the_second_load_is_mapped_and_the_same(path, reads):
    check(load(path))
    assert beside(path).exists()
    again = load(path)
    check(again)
    assert len(reads) == 1
    assert again.matrix.ctypes.data % 64 == 0
    assert again.find(["Of"]).rows.tolist() == [1]


def test_no_cache_when_not_wanted(path, reads):
    check(load(path, cache=False))
    assert not beside(path).exists()
    load(path)
    check(load(path, cache=False))
    assert len(reads) == 3


def test_ranks_survive(tmp_path, reads):
    glove = load("glove", limit=10)
    glove.save(tmp_path / "g.npz")
    for _ in range(2):
        assert load(tmp_path / "g.npz").ranks.tolist() == glove.ranks.tolist()
    assert len(reads) == 1


@pytest.mark.parametrize("change", ["size", "time", "content alone"])
def test_a_changed_file_is_read_again(path, reads, change):
    load(path)
    stat = path.stat()
    path.write_bytes(CONTENT.replace(b"4 5", b"4 55" if change == "size" else b"4 6"))
    if change != "time":
        os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns))
    v = load(path)
    assert len(reads) == 2
    assert v.matrix[2, 1] == (55 if change == "size" else 6)
    assert load(path).matrix[2, 1] == v.matrix[2, 1]
    assert len(reads) == 2


def test_another_version_of_the_cache_is_rebuilt(path, reads, monkeypatch):
    load(path)
    monkeypatch.setattr("evenhand.vectors.cache.VERSION", 999)
    check(load(path))
    assert len(reads) == 2


def test_a_folder_in_place_of_the_cache_is_no_obstacle(path):
    beside(path).mkdir()
    for _ in range(2):
        with pytest.warns(EntryWarning, match="ignored, expected a plain file of this user"):
            check(load(path))


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None)
@given(data=st.data())
def test_a_cache_cut_short_or_damaged_is_rebuilt(path, data):
    beside(path).unlink(missing_ok=True)
    load(path)
    content = beside(path).read_bytes()
    numbers = np.load(beside(path), mmap_mode="r")  # no checksum: that would mean reading them
    start, end = numbers.offset, numbers.offset + numbers.nbytes
    if data.draw(st.booleans()):
        damaged = content[: data.draw(st.integers(0, len(content) - 1))]
    else:
        positions = st.integers(0, len(content) - 1)
        at = data.draw(positions.filter(lambda at: not start <= at < end))
        damaged = content[:at] + bytes([content[at] ^ data.draw(st.integers(1, 255))])
        damaged += content[at + 1 :]
    beside(path).write_bytes(damaged)
    check(load(path))
    check(load(path))


def test_where_the_folder_cannot_be_written_the_users_cache_folder_serves(
    path, reads, monkeypatch, tmp_path
):
    _forbid(monkeypatch, path.parent)
    check(load(path))
    check(load(path))
    assert len(reads) == 1
    assert list(path.parent.iterdir()) == [path]
    assert len(list((tmp_path / "xdg" / "evenhand").iterdir())) == 1


def test_where_nothing_can_be_written_there_is_no_cache(path, reads, monkeypatch, tmp_path):
    _forbid(monkeypatch, tmp_path)
    check(load(path))
    check(load(path))
    assert len(reads) == 2


@pytest.mark.skipif(os.geteuid() == 0, reason="root may write anywhere")
def test_a_read_only_folder(path, reads):
    path.parent.chmod(0o555)
    try:
        check(load(path))
        check(load(path))
    finally:
        path.parent.chmod(0o755)
    assert len(reads) == 1


def test_a_file_that_changes_while_it_is_read_leaves_no_cache(path, monkeypatch):
    real = store.read

    def slow(*args, **options):
        table = real(*args, **options)
        path.write_bytes(CONTENT + b"more 6 7\n")
        return table

    monkeypatch.setattr(store, "read", slow)
    check(load(path))
    assert not beside(path).exists()


def test_limit_takes_the_first_rows_of_the_file_cached_or_not(path, reads):
    assert load(path, limit=2).words == ["the", "of"]
    assert not beside(path).exists()
    load(path)
    assert load(path, limit=3).words == ["the", "of"]
    path.write_bytes(CONTENT.replace(b"the 9", b"The 9"))
    load(path)
    before = len(reads)
    assert load(path, limit=3).words == ["the", "of", "The"]
    assert len(reads) == before


def test_several_processes_at_once(path):
    rows = np.random.default_rng(0).normal(size=(2000, 20)).astype(np.float32)
    lines = (f"w{i} {' '.join(map(str, r))}\n" for i, r in enumerate(rows.tolist()))
    path.write_text("".join(lines))
    code = (
        "import sys; from evenhand.vectors.store import load\n"
        "for _ in range(3): print(float(load(sys.argv[1]).matrix.sum()))"
    )
    command = [sys.executable, "-c", code, str(path)]
    runs = [subprocess.Popen(command, stdout=subprocess.PIPE, text=True) for _ in range(3)]
    outputs = [run.communicate()[0].split() for run in runs]
    assert [run.returncode for run in runs] == [0, 0, 0]
    assert len({number for output in outputs for number in output}) == 1
    assert sorted(path.parent.iterdir()) == [path, beside(path)]


def _forbid(monkeypatch, folder):
    """As if `folder` were read-only, also for root."""
    from evenhand.vectors import cache

    real = cache.replace_file

    def guarded(target, **options):
        if str(target).startswith(str(folder)):
            raise PermissionError(13, "Permission denied", str(target))
        return real(target, **options)

    monkeypatch.setattr(cache, "replace_file", guarded)
