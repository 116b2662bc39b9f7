"""Looking words up, and what `Vectors` promises."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from evenhand.errors import InputError, VocabularyError
from evenhand.vectors.store import Vectors, load
from evenhand.vectors.vocabulary import spellings

WORDS = ["he", "He", "Paris", "NASA", "New_York", "interior-designer", "nothing", "nurse"]
ROWS = np.eye(8, 3, dtype=np.float32) + 0.5
ROWS[6] = 0


@pytest.fixture
def v():
    return Vectors.from_arrays(WORDS, ROWS)


def test_find_has_the_order_of_the_list_and_names_what_is_missing(v):
    found = v.find(["nurse", "qzx", "he", "nothing", "paris", "qzx"])
    assert found.words == ("nurse", "he", "paris")
    assert found.rows.tolist() == [7, 0, 2]
    assert found.rows.dtype == np.intp
    assert found.missing == ("qzx", "nothing")


def test_find_nothing(v):
    found = v.find([])
    assert (found.words, found.rows.shape, found.missing) == ((), (0,), ())


@pytest.mark.parametrize(
    ("asked", "row"),
    [
        ("he", 0),
        ("He", 1),
        ("HE", 0),
        ("PARIS", 2),
        ("paris", 2),
        ("nasa", 3),
        ("new york", 4),
        ("New York", 4),
        ("interior designer", 5),
        ("Interior Designer", 5),
        ("interior_designer", None),
    ],
)
def test_fallback(v, asked, row):
    assert v.find([asked]).rows.tolist() == ([] if row is None else [row])


def test_exact_looks_up_the_word_as_it_is():
    v = Vectors.from_arrays(WORDS, ROWS, case="exact")
    assert v.find(["he", "HE", "Paris", "paris", "new york"]).words == ("he", "Paris")


def test_two_words_of_one_row_are_counted_once(v):
    found = v.find(["PARIS", "paris", "Paris", "he", "He", "he"])
    assert found.words == ("PARIS", "he", "He")
    assert found.missing == ()


def test_spellings_begin_with_the_word_as_it_is():
    assert list(spellings("iPhone")) == ["iPhone", "iphone", "Iphone", "IPHONE"]
    assert list(spellings("a b")) == [
        *("a b", "A b", "A B"),
        *("a_b", "A_b", "A_B"),
        *("a-b", "A-b", "A-B"),
    ]


def test_contains_and_getitem(v):
    assert "Nurse" in v
    assert "nothing" not in v
    assert 3 not in v
    np.testing.assert_array_equal(v["Nurse"], ROWS[7])
    with pytest.raises(VocabularyError, match=r"'nurze' has no vector in memory: .* 'nurse'"):
        v["nurze"]
    with pytest.raises(VocabularyError, match=r"'qqqq' has no vector in memory$"):
        v["qqqq"]


def test_raw_and_unit(v):
    assert v.raw([1, 1]).dtype == np.float64
    np.testing.assert_array_equal(v.raw([1, 0]), ROWS[[1, 0]])
    np.testing.assert_allclose(np.linalg.norm(v.unit([0, 5]), axis=1), 1, rtol=1e-15)
    assert v.unit([]).shape == (0, 3)
    with pytest.raises(VocabularyError, match="'nothing' has a zero vector"):
        v.unit([0, 6])


def test_tiny_vectors_are_not_zero():
    v = Vectors.from_arrays(["a"], np.full((1, 2), 1e-45, dtype=np.float32))
    assert "a" in v
    np.testing.assert_allclose(v.unit([0]), [[0.5**0.5, 0.5**0.5]])


def test_with_matrix_shares_the_words(v):
    other = v.with_matrix(np.ones((8, 5)), name="flat")
    assert (other.name, other.dim, len(other)) == ("flat", 5, 8)
    assert other.vocabulary is v.vocabulary
    assert other.find(["HE"]).rows.tolist() == [0]
    with pytest.raises(InputError, match="expected 8 rows"):
        v.with_matrix(np.ones((7, 3)), name="short")
    with pytest.raises(InputError, match="nan"):
        v.with_matrix(np.full((8, 3), np.nan), name="holes")


def test_immutable(v):
    with pytest.raises(ValueError, match="read-only"):
        v.matrix[0, 0] = 1
    with pytest.raises(AttributeError):
        v.name = "other"


@pytest.mark.parametrize(
    ("words", "matrix", "message"),
    [
        (["a", "b"], [[1.0]], "expected 2 rows of numbers, got the shape"),
        (["a"], [1.0], "expected 1 rows of numbers"),
        ([], np.ones((0, 2)), "expected 0 rows of numbers"),
        (["a", "a"], [[1.0], [2.0]], "expected each word once, got 'a' twice"),
        (["a", ""], [[1.0], [2.0]], "word 2: expected one without line ends, got ''"),
        (["a\nb"], [[1.0]], "word 1: expected one without line ends"),
        (["\ud800"], [[1.0]], "not valid Unicode"),
        (["a"], [[np.inf]], "nan or infinite"),
        (["a"], [[1e39]], "nan or infinite"),
    ],
)
def test_from_arrays_refuses(words, matrix, message):
    with pytest.raises(InputError, match=message):
        Vectors.from_arrays(words, matrix)


def test_words_of_different_case_are_different_words(tmp_path):
    path = tmp_path / "case.txt"
    path.write_text("us 1 2\nUS 3 4\nUs 5 6\n")
    v = load(path)
    assert v.find(["US", "us", "Us", "uS"]).rows.tolist() == [1, 0, 2]


def test_repr_and_pickle(v):
    assert repr(v) == "<Vectors memory: 8 words × 3>"
    again = pickle.loads(pickle.dumps(v))  # noqa: S301
    assert again.words == WORDS
    np.testing.assert_array_equal(again.matrix, v.matrix)


def test_ranks_are_the_rows_unless_the_file_says_otherwise(v):
    assert v.ranks.tolist() == list(range(8))
