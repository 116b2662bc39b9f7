"""Random damage to a file of any format: an error that names it, or vectors that are whole."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand.errors import FileError
from evenhand.vectors.store import Vectors, load

NAMES = ["v.npz", "v.txt", "v.bin", "v.txt.gz", "v.bin.gz", "v.glove"]
ROWS = np.random.default_rng(0).normal(size=(12, 5)).astype(np.float32)
WORDS = [f"wörd{i}" for i in range(12)]
many = settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=150
)


def written(tmp_path, name):
    path = tmp_path / name
    Vectors.from_arrays(WORDS, ROWS).save(path, "glove" if name == "v.glove" else None)
    return path, path.read_bytes()


@pytest.mark.parametrize("name", NAMES)
@many
@given(data=st.data())
def test_cut_short(tmp_path, name, data):
    path, content = written(tmp_path, name)
    path.write_bytes(content[: data.draw(st.integers(0, len(content) - 1))])
    try:
        v = load(path, cache=False)
    except FileError:
        return
    assert name in ("v.txt", "v.glove"), "every other format knows its own length"
    whole = len(v) - any("may be cut short" in note for note in v.notes)
    assert v.words == WORDS[: len(v)]
    if whole:
        np.testing.assert_array_equal(v.matrix[:whole], ROWS[:whole])


@pytest.mark.parametrize("name", NAMES)
@many
@given(data=st.data())
def test_a_byte_changed_put_in_or_taken_out(tmp_path, name, data):
    path, content = written(tmp_path, name)
    at = data.draw(st.integers(0, len(content) - 1))
    new = data.draw(st.binary(max_size=3))
    path.write_bytes(content[:at] + new + content[at + data.draw(st.integers(0, 2)) :])
    try:
        v = load(path, cache=False)
    except FileError:
        return
    if name.endswith((".npz", ".gz")):
        assert v.words == WORDS
        np.testing.assert_array_equal(v.matrix, ROWS)
    assert len(v.words) == len(set(v.words)) == len(v.matrix)
    assert np.isfinite(v.matrix).all()


@many
@given(content=st.binary(max_size=400))
def test_random_bytes(tmp_path, content):
    path = tmp_path / "noise"
    path.write_bytes(content)
    try:
        v = load(path, cache=False)
    except FileError:
        return
    assert len(v.words) == len(v.matrix)
    assert np.isfinite(v.matrix).all()
