"""The folder of a run: whose it is, one process at a time, what is cleared and what never is."""

from __future__ import annotations

import csv
import errno
import io
import json
import math
import os
import random
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from evenhand.errors import FileError, PartialFailure, in_shell
from evenhand.files import RunFolder, open_rows, plain, replace_file, user_cache, versions

IDENTITY = {"settings": {"network": "maml", "ways": 5}, "data": "0123456789abcdef0123456789abcdef"}


class Baking(RunFolder):
    command = "bake"
    products = ("results.json", "tin-*/cake")
    cleared = ("results.json", "tin-*", "notes.csv")
    temporary = (*RunFolder.temporary, ".results.json.*")


def claimed(path: Path) -> Baking:
    place = Baking(path)
    place.claim(IDENTITY, {"more": 1})
    return place


def test_a_folder_is_claimed_and_known_again(tmp_path):
    with Baking.working(tmp_path / "deep" / "run") as place:
        assert not place.holds(IDENTITY)
        place.claim(IDENTITY, {"more": 1})
        assert place.holds(IDENTITY)
    record = json.loads((tmp_path / "deep" / "run" / "run.json").read_text())
    assert (record["command"], record["identity"], record["more"]) == ("bake", IDENTITY, 1)


def test_another_run_is_refused_once_something_was_made(tmp_path):
    place = claimed(tmp_path)
    other = {**IDENTITY, "settings": {"network": "induction", "ways": 5}, "data": "f" * 32}
    assert not place.holds(other)  # nothing would be lost
    (tmp_path / "tin-0").mkdir()
    (tmp_path / "tin-0" / "cake").write_text("")
    message = r"has another run \(another data; network: maml there, induction now\): give another"
    with pytest.raises(FileError, match=message):
        place.holds(other)
    assert place.holds(IDENTITY)


def test_clearing_leaves_what_is_not_the_runs(tmp_path):
    place = claimed(tmp_path)
    outside = tmp_path / "elsewhere"
    outside.mkdir()
    (outside / "cake").write_text("theirs")
    for name in ("mine.csv", "notes.csv", "results.json"):
        (tmp_path / name).write_text("x")
    (tmp_path / "tin-0").mkdir()
    (tmp_path / "tin-1").symlink_to(outside)
    place.claim(IDENTITY, {})
    assert sorted(path.name for path in tmp_path.iterdir()) == ["elsewhere", "mine.csv", "run.json"]
    assert (outside / "cake").read_text() == "theirs"


@pytest.mark.parametrize("content", ['{"command": "roast", "identity": {}}', "[1]", '{"a": 1}'])
def test_the_run_json_of_others_is_never_overwritten(tmp_path, content):
    (tmp_path / "run.json").write_text(content)
    place = Baking(tmp_path)
    for act in (place.holds, lambda identity: place.claim(identity, {})):
        with pytest.raises(FileError, match=r"has the run\.json of .*, not of 'bake'"):
            act(IDENTITY)
    assert (tmp_path / "run.json").read_text() == content


@pytest.mark.parametrize("content", ["{", '{"command": "bake"}', "\x00\xff"])
def test_a_damaged_run_json_needs_a_restart(tmp_path, content):
    (tmp_path / "run.json").write_text(content, encoding="latin-1")
    place = Baking(tmp_path)
    problem = r"run\.json: damaged, not the record of a run"
    with pytest.raises(FileError, match=f"{problem}: restart=True starts over"):
        place.holds(IDENTITY)
    with in_shell(), pytest.raises(FileError, match=f"{problem}: --restart starts over"):
        place.holds(IDENTITY)
    place.claim(IDENTITY, {})
    assert place.holds(IDENTITY)


def test_results_without_a_run_are_not_cleared(tmp_path):
    (tmp_path / "results.json").write_text("theirs")
    with pytest.raises(FileError, match="results of no run of this command: give another folder"):
        claimed(tmp_path)
    assert (tmp_path / "results.json").read_text() == "theirs"


def test_one_process_at_a_time(tmp_path):
    code = (
        "import sys\n"
        "from evenhand.files import RunFolder\n"
        "with RunFolder.working(sys.argv[1]):\n"
        "    print('in', flush=True)\n"
        "    sys.stdin.read()\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, tmp_path], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as other:
        assert other.stdout is not None
        assert other.stdout.readline() == b"in\n"
        message = "another run is working in this folder"
        with pytest.raises(FileError, match=message), Baking.working(tmp_path):
            pass
        other.kill()
    with Baking.working(tmp_path):  # a lock dies with its process
        pass


def test_a_disk_without_locks_will_do(tmp_path, monkeypatch):
    def acquire(*_):
        raise OSError(errno.ENOSYS, os.strerror(errno.ENOSYS))

    monkeypatch.setattr("filelock.FileLock.acquire", acquire)
    with Baking.working(tmp_path) as place:
        assert place.path == tmp_path


def test_what_a_kill_left_is_removed(tmp_path):
    (tmp_path / ".partial.x").mkdir()
    (tmp_path / ".partial.x" / "big").write_text("x")
    (tmp_path / ".results.json.abcdefgh").write_text("x")
    (tmp_path / ".mine").write_text("x")
    with Baking.working(tmp_path):
        assert sorted(path.name for path in tmp_path.iterdir()) == [".lock", ".mine"]
    assert [path.name for path in tmp_path.iterdir()] == [".mine"]


def test_a_full_disk_is_reported_with_its_folder(tmp_path):
    message = r"results\.json: No space left on device; results saved so far are complete"
    with pytest.raises(PartialFailure, match=message), Baking.working(tmp_path):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC), "results.json")
    with (
        pytest.raises(PartialFailure, match=f"{tmp_path.name}: No space"),
        Baking.working(tmp_path),
    ):
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    with pytest.raises(PermissionError), Baking.working(tmp_path):
        raise PermissionError(errno.EACCES, "no")


def test_a_file_is_no_folder(tmp_path):
    (tmp_path / "file").write_text("")
    for place in (tmp_path / "file", tmp_path / "file" / "below"):
        with pytest.raises(OSError, match="file"), Baking.working(place):
            pass


def test_tables(tmp_path):
    rows = [{"name": "a, b", "value": float("nan")}, {"name": "é", "value": 0.1}]
    Baking(tmp_path).save_table(rows, "sub", "table.csv")
    text = (tmp_path / "sub" / "table.csv").read_text(encoding="utf-8")
    assert text == 'name,value\n"a, b",\né,0.1\n'


def test_the_users_cache(monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", "/some/cache")
    assert user_cache("features") == Path("/some/cache/evenhand/features")
    monkeypatch.setenv("XDG_CACHE_HOME", "")
    monkeypatch.setenv("HOME", "/home/someone")
    assert user_cache("a", "b") == Path("/home/someone/.cache/evenhand/a/b")


def test_versions_of_what_is_there_and_what_is_not():
    found = versions("torch", "no-such-package")
    assert list(found) == ["python", "evenhand", "numpy", "torch", "no-such-package"]
    assert found["no-such-package"] == "not installed"
    assert found["torch"].startswith("2.")


def test_a_file_gets_the_mode_of_a_new_one_and_the_umask_is_left_alone(tmp_path, monkeypatch):
    before = os.umask(0o027)
    try:
        with monkeypatch.context() as patched:
            patched.setattr(os, "umask", lambda _: pytest.fail("the umask is of the whole process"))
            with replace_file(tmp_path / "new.txt") as file:
                file.write(b"x")
    finally:
        os.umask(before)
    assert (tmp_path / "new.txt").stat().st_mode & 0o777 == 0o640


def random_columns(rows=3000):
    rng = random.Random(0)  # noqa: S311

    def text():
        return "".join(rng.choices([*'a,"\n %s\\\t', "é", "\u2028", "😀"], k=rng.randrange(6)))

    def number():
        kinds = rng.random(), -(10 ** rng.uniform(-320, 300)), rng.random() * 1e-4, 0.0, -0.0, 1.0
        return rng.choice([*kinds, 123456789.25, 1e22, math.nan, math.inf, -math.inf])

    return {
        "te%xt, x": [text() for _ in range(rows)],
        "number": [number() for _ in range(rows)],
        "count": [rng.randrange(-9, 10**12) for _ in range(rows)],
        "flag": [rng.random() < 0.5 for _ in range(rows)],
        "mixed": [rng.choice([None, text(), number(), 3, True]) for _ in range(rows)],
    }


@pytest.mark.parametrize("names", [["te%xt, x", "number", "count", "flag", "mixed"], ["mixed"]])
def test_rows_are_written_as_the_csv_and_json_modules_write_them(tmp_path, names):
    columns = {name: random_columns()[name] for name in names}
    for file in ("rows.csv", "rows.jsonl"):
        with open_rows(tmp_path / file) as write:
            write({name: column[:1000] for name, column in columns.items()})
            write(
                {
                    name: np.array(column[1000:]) if name in ("number", "count") else column[1000:]
                    for name, column in columns.items()
                }
            )
    expected = io.StringIO(newline="")
    writer = csv.writer(expected, lineterminator="\n")
    writer.writerow(columns)
    missing = [[None if cell != cell else cell for cell in column] for column in columns.values()]
    writer.writerows(zip(*missing, strict=True))
    assert (tmp_path / "rows.csv").read_bytes().decode() == expected.getvalue()
    lines = (
        json.dumps(plain(dict(zip(columns, row, strict=True))), ensure_ascii=False) + "\n"
        for row in zip(*columns.values(), strict=True)
    )
    assert (tmp_path / "rows.jsonl").read_bytes().decode() == "".join(lines)


def test_a_carriage_return_stays_in_its_cell(tmp_path):
    with open_rows(tmp_path / "rows.csv") as write:
        write({"text": ["one\rtwo"], "n": [1]})
    with (tmp_path / "rows.csv").open(newline="") as file:
        assert list(csv.reader(file)) == [["text", "n"], ["one\rtwo", "1"]]
