"""A cache that others can write into: a link, a pipe or a file of theirs costs no file and no time.

All decoys are in a folder of the test.
"""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import numpy as np
import pytest

from evenhand import files
from evenhand.cache import Cache, content_key
from evenhand.cli import run
from evenhand.errors import EntryWarning, FileError
from evenhand.fewshot.features import _read_array, _save_array
from evenhand.files import lock_folder, own_entries, replace_file
from evenhand.grid.store import Store
from evenhand.vectors import load
from evenhand.vectors.cache import SUFFIX

KEYS = [content_key("model", 1), content_key("model", 2)]
VALUES = np.array([[1.0, 2.0], [3.0, 4.0]])
PRECIOUS = "a file of the user\n"


@pytest.fixture
def precious(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "home"))
    monkeypatch.setattr(files, "_LOOKED_AT", set())
    path = tmp_path / "precious.txt"
    path.write_text(PRECIOUS)
    return path


def _plant(kind: str, place: Path, precious: Path) -> None:
    """Put something else where an entry belongs."""
    place.unlink(missing_ok=True)
    match kind:
        case "link":
            place.symlink_to(precious)
        case "dangling link":
            place.symlink_to(precious.with_name("new.txt"))
        case "pipe":
            os.mkfifo(place)


KINDS = ("link", "dangling link", "pipe")


@pytest.mark.parametrize("kind", KINDS)
def test_entries_of_model_answers(tmp_path, precious, kind):
    Cache(tmp_path / "cache").store(KEYS, VALUES)
    [entry] = (tmp_path / "cache").glob("*.npy")
    _plant(kind, entry, precious)
    with pytest.warns(EntryWarning, match="expected a plain file of this user"):
        cache = Cache(tmp_path / "cache")
    assert cache.missing(KEYS) == [0, 1]
    cache.store(KEYS, VALUES)
    assert precious.read_text() == PRECIOUS
    assert not precious.with_name("new.txt").exists()
    assert np.array_equal(Cache(tmp_path / "cache").stack(KEYS), VALUES)


@pytest.mark.parametrize("kind", KINDS)
def test_the_mark_of_a_cache(tmp_path, precious, kind):
    (tmp_path / "cache").mkdir()
    _plant(kind, tmp_path / "cache" / "evenhand-cache", precious)
    with pytest.raises(FileError, match="expected a plain file"):
        Cache(tmp_path / "cache")
    assert precious.read_text() == PRECIOUS
    assert not precious.with_name("new.txt").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_locks(tmp_path, precious, kind):
    (tmp_path / "cache").mkdir()
    _plant(kind, tmp_path / "cache" / ".lock", precious)
    with lock_folder(tmp_path / "cache"):
        pass
    assert precious.read_text() == PRECIOUS
    assert not precious.with_name("new.txt").exists()


@pytest.mark.parametrize("kind", KINDS)
def test_vectors(tmp_path, precious, kind):
    source = tmp_path / "a.vec"
    source.write_text("he 1 0\nshe 0 1\nking 1 1\n")
    _plant(kind, tmp_path / f"a.vec{SUFFIX}", precious)
    with pytest.warns(EntryWarning):
        load(str(source))
    assert precious.read_text() == PRECIOUS
    assert not precious.with_name("new.txt").exists()
    assert (tmp_path / f"a.vec{SUFFIX}").is_file()
    assert list(load(str(source)).words) == ["he", "she", "king"]


@pytest.mark.parametrize("kind", KINDS)
def test_features_of_few_shot_runs(tmp_path, precious, kind):
    entry = tmp_path / "features.npz"
    _plant(kind, entry, precious)
    with pytest.warns(EntryWarning):
        assert _read_array(entry) is None
    _save_array(entry, VALUES)
    assert precious.read_text() == PRECIOUS
    assert not precious.with_name("new.txt").exists()
    assert np.array_equal(_read_array(entry), VALUES)


@pytest.mark.parametrize("kind", KINDS)
def test_results_of_a_grid(tmp_path, precious, kind):
    store = Store(tmp_path / "grid")
    store.save("task", 1, {"a": 1}, {"value": 2})
    [entry] = (tmp_path / "grid" / "cells").glob("*/*.json")
    _plant(kind, entry, precious)
    assert not store.has(entry.stem)
    with pytest.warns(EntryWarning):
        assert store.result(entry.stem) is None
    store.save("task", 1, {"a": 1}, {"value": 2})
    store.save_grid({"cells": []})
    _plant(kind, tmp_path / "grid" / "grid.json", precious)
    store.save_grid({"cells": []})
    assert precious.read_text() == PRECIOUS
    assert not precious.with_name("new.txt").exists()
    assert store.result(entry.stem) == {"value": 2}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", [".out.txt.partial", ".out.txt.partial.json"])
def test_what_a_rewriting_leaves_to_resume_from(tmp_path, precious, monkeypatch, capfd, kind, name):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("she reads.\n")
    _plant(kind, Path(name), precious)
    run(["rewrite", "swap", "in.txt", "-o", "out.txt"])
    assert "Traceback" not in capfd.readouterr().err
    assert precious.read_text() == PRECIOUS
    assert not precious.with_name("new.txt").exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files to others")
def test_what_another_user_has_written_is_not_read(tmp_path):
    Cache(tmp_path / "cache").store(KEYS, VALUES)
    [entry] = (tmp_path / "cache").glob("*.npy")
    os.chown(entry, 12345, 12345)
    with pytest.warns(EntryWarning):
        assert Cache(tmp_path / "cache").missing(KEYS) == [0, 1]


def test_of_many_entries_one_is_named(tmp_path):
    for i in range(3):
        (tmp_path / f"{i}").symlink_to(tmp_path / "nowhere")
    with pytest.warns(EntryWarning, match=r"0: ignored, .* \(2 more like it\)"):
        assert own_entries([tmp_path / f"{i}" for i in range(4)]) == []


def test_an_output_of_the_user_may_be_a_link(tmp_path, precious):
    """What the user names is followed; what is in a cache is not."""
    (tmp_path / "out").symlink_to(precious)
    with replace_file(tmp_path / "out") as file:
        file.write(b"new")
    assert precious.read_text() == "new"


@pytest.mark.slow
@pytest.mark.parametrize("kind", KINDS)
def test_commands_with_a_cache_of_others(tmp_path, precious, capfd, kind, monkeypatch):
    monkeypatch.chdir(tmp_path)
    Path("in.txt").write_text("The clerk lost [MASK] keys.\nThe nurse lost [MASK] keys.\n")
    words = ["measure", "pronouns", "mini", "--data", "in.txt", "--cache", "cache", "--json"]
    assert run(words) == 0
    first = capfd.readouterr().out
    entries = list(Path("cache").glob("*.npy"))
    assert entries
    for entry in entries:
        _plant(kind, entry, precious)
    with pytest.warns(EntryWarning):
        assert run(words) == 0
    assert capfd.readouterr().out == first
    assert precious.read_text() == PRECIOUS
    shutil.rmtree("cache")
