"""What is written reads back the same, here and in gensim."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from evenhand.errors import InputError
from evenhand.vectors.store import Vectors, load

ENDINGS = {
    "npz": ".npz",
    "word2vec": ".txt",
    "glove": ".glove",
    "word2vec-binary": ".bin",
}
SPLITTING = " \t\n"
words = st.text(st.characters(exclude_categories=["Cs"], exclude_characters=SPLITTING), min_size=1)
floats = st.floats(width=32, allow_nan=False, allow_infinity=False)


@st.composite
def tables(draw):
    some = draw(st.lists(words, min_size=1, max_size=8, unique=True))
    shape = (len(some), draw(st.integers(2, 6)))
    return some, draw(hnp.arrays(np.float32, shape, elements=floats))


@pytest.mark.parametrize("packed", ["", ".gz"])
@pytest.mark.parametrize("kind", ENDINGS)
@settings(
    suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60
)
@given(table=tables())
def test_round_trip(tmp_path, kind, packed, table):
    some, matrix = table
    path = tmp_path / f"v{ENDINGS[kind]}{packed if kind != 'npz' else ''}"
    assert Vectors.from_arrays(some, matrix).save(path, kind) == ()
    v = load(path, cache=False)
    assert v.words == some
    np.testing.assert_array_equal(v.matrix.view(np.uint32), matrix.view(np.uint32))
    assert v.notes == ()


@pytest.mark.parametrize("kind", ENDINGS)
def test_every_kind_of_float32_survives(tmp_path, kind):
    bits = np.random.default_rng(0).integers(0, 2**32, 60_000, dtype=np.uint32)
    values = bits.view(np.float32)
    values = np.r_[values[np.isfinite(values)], np.float32([0, -0.0, 1e-45, 3.4028235e38])]
    matrix = values[: len(values) // 4 * 4].reshape(-1, 4)
    Vectors.from_arrays([f"w{i}" for i in range(len(matrix))], matrix).save(tmp_path / "v", kind)
    v = load(tmp_path / "v", cache=False)
    np.testing.assert_array_equal(v.matrix.view(np.uint32), matrix.view(np.uint32))


def test_bytes_of_each_format(tmp_path):
    v = Vectors.from_arrays(["he", "naïve"], np.float32([[0.1, -2], [1e-7, 0]]))
    expected = {
        "v.txt": "2 2\nhe 0.1 -2\nnaïve 1e-7 0\n".encode(),
        "v.vec": "2 2\nhe 0.1 -2\nnaïve 1e-7 0\n".encode(),
        "v.bin": b"2 2\nhe " + v.matrix[0].tobytes() + "naïve ".encode() + v.matrix[1].tobytes(),
    }
    for name, content in expected.items():
        v.save(tmp_path / name)
        assert (tmp_path / name).read_bytes() == content
    v.save(tmp_path / "v.txt.gz")
    assert gzip.decompress((tmp_path / "v.txt.gz").read_bytes()) == expected["v.txt"]
    v.save(tmp_path / "glove", "glove")
    assert (tmp_path / "glove").read_bytes() == expected["v.txt"][4:]


@pytest.mark.parametrize("name", ["v.npz", "v.txt.gz", "v.bin.gz"])
def test_the_same_vectors_give_the_same_bytes(tmp_path, name):
    v = load("glove", limit=50)
    (tmp_path / "other").mkdir()
    v.save(tmp_path / name)
    v.save(tmp_path / "other" / name)
    assert (tmp_path / name).read_bytes() == (tmp_path / "other" / name).read_bytes()


def test_spaces_become_underscores_and_are_noted(tmp_path):
    v = Vectors.from_arrays(["New York", "a\tb", "c"], np.eye(3))
    notes = v.save(tmp_path / "v.bin")
    assert notes == ("2 words with spaces: underscores written instead",)
    assert load(tmp_path / "v.bin").words == ["New_York", "a_b", "c"]
    assert v.save(tmp_path / "v.npz") == ()
    assert load(tmp_path / "v.npz").words == v.words


def test_two_words_that_would_become_one_are_refused(tmp_path):
    v = Vectors.from_arrays(["New_York", "New York"], np.eye(2))
    with pytest.raises(InputError, match="'New_York' and 'New York' would be the same word"):
        v.save(tmp_path / "v.txt")
    assert list(tmp_path.iterdir()) == []


def test_unknown_endings_and_formats_are_refused(tmp_path):
    v = Vectors.from_arrays(["a"], [[1.0]])
    for name in ("v.csv", "v", "v.npz.gz", "v.gz"):
        with pytest.raises(InputError, match="cannot tell the format"):
            v.save(tmp_path / name)
    with pytest.raises(InputError, match=r"expected one of npz, word2vec, .*, got 'csv'"):
        v.save(tmp_path / "v.txt", "csv")
    with pytest.raises(InputError, match="one number"):
        v.save(tmp_path / "v.txt", "glove")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", ["v.txt", "v.vec", "v.bin", "v.txt.gz", "v.bin.gz"])
def test_gensim_reads_what_we_write_and_we_what_it_writes(tmp_path, name):
    models = pytest.importorskip("gensim.models")
    v = load("glove", limit=300)
    v.save(tmp_path / name)
    theirs = models.KeyedVectors.load_word2vec_format(tmp_path / name, binary=".bin" in name)
    assert theirs.index_to_key == v.words
    np.testing.assert_array_equal(theirs.vectors, v.matrix)
    theirs.save_word2vec_format(tmp_path / f"theirs-{name}", binary=".bin" in name)
    again = load(tmp_path / f"theirs-{name}")
    assert again.words == v.words
    np.testing.assert_array_equal(again.matrix, v.matrix)
