"""The bias subspace, the words along it and the chunked passes over a vocabulary."""

from __future__ import annotations

import numpy as np
import pytest

from evenhand.errors import InputError, UnknownNameError, VocabularyError
from evenhand.vectors.debias import bias_subspace, debias, most_biased, word_bias
from evenhand.vectors.debias import subspace as passes
from evenhand.vectors.debias.subspace import known_sets, project_out, transform_rows, unit_rows
from evenhand.vectors.store import Vectors


def letters(i: int) -> str:
    """A plain word for a number: 0 is `waaa`."""
    return "w" + "".join(chr(97 + i // 26**place % 26) for place in (2, 1, 0))


def cloud(n: int = 200, dim: int = 12, seed: int = 0) -> Vectors:
    matrix = np.random.default_rng(seed).standard_normal((n, dim))
    return Vectors.from_arrays([letters(i) for i in range(n)], matrix)


def test_pair_in_two_dimensions_by_hand() -> None:
    v = Vectors.from_arrays(["he", "she"], [[3, 4], [-6, 8]])
    found = bias_subspace(v, [["he", "she"]])
    np.testing.assert_allclose(found.basis, [[1, 0]], atol=1e-7)
    assert found.explained == pytest.approx((1.0,))
    np.testing.assert_allclose(bias_subspace(v, [["she", "he"]]).direction, [-1, 0], atol=1e-7)


def test_agrees_with_the_eigenvectors_of_the_scatter_matrix() -> None:
    v = cloud()
    sets = [[letters(3 * i + j) for j in range(3)] for i in range(5)]
    unit = v.unit(np.arange(len(v)))
    scatter = np.zeros((v.dim, v.dim))
    for i in range(5):
        mean = unit[3 * i : 3 * i + 3].mean(axis=0)
        for member in unit[3 * i : 3 * i + 3]:
            scatter += np.outer(member - mean, member - mean)
    values, axes = np.linalg.eigh(scatter)
    found = bias_subspace(v, sets, k=3)
    np.testing.assert_allclose(found.explained, values[::-1][:3] / values.sum(), rtol=1e-10)
    np.testing.assert_allclose(np.abs(found.basis @ axes[:, ::-1][:, :3]), np.eye(3), atol=1e-8)
    np.testing.assert_allclose(found.basis @ found.basis.T, np.eye(3), atol=1e-12)


@pytest.mark.parametrize("seed", range(6))
def test_first_member_of_the_first_set_is_on_the_positive_side(seed: int) -> None:
    v = cloud(seed=seed)
    found = bias_subspace(v, [[letters(i), letters(i + 1), letters(i + 2)] for i in (0, 5, 9)], 2)
    members = v.unit([0, 1, 2])
    assert (((members[0] - members.mean(axis=0)) @ found.basis.T) > 0).all()


def test_k_beyond_the_rank_names_the_most_possible() -> None:
    v = cloud()
    sets = [[letters(0), letters(1)], [letters(2), letters(3), letters(4)]]
    assert bias_subspace(v, sets, 3).basis.shape == (3, 12)
    for k in (0, 4):
        with pytest.raises(InputError, match=f"k: expected 1 to 3 .*got {k}"):
            bias_subspace(v, sets, k)


def test_members_that_do_not_differ_are_an_error() -> None:
    v = Vectors.from_arrays(["a", "b"], [[1, 2], [2, 4]])
    with pytest.raises(InputError, match="same vector"):
        bias_subspace(v, [["a", "b"]])


def test_unknown_members_and_dropped_sets_are_reported() -> None:
    v = cloud()
    sets = [[letters(0), letters(1), "nope"], [letters(2), "gone"], [letters(0), "lost"]]
    found = bias_subspace(v, sets)
    assert found.sets == ((letters(0), letters(1)),)
    assert found.left_out == ("nope", "gone", "lost", letters(2))
    assert known_sets(v, sets, "sets").defining.tolist() == [0, 1, 2]
    with pytest.raises(VocabularyError, match=r"expected a set with at least 2 words.*gone"):
        bias_subspace(v, [[letters(2), "gone"]])
    with pytest.raises(InputError, match="expected sets of words, got the word 'he'"):
        bias_subspace(v, ["he", "she"])


def test_word_bias_is_the_cosine_of_plain_frequent_words() -> None:
    words = ["he", "she", "boss", "Nurse", "don't", "cook", "zero", "rare"]
    matrix = [[1, 1], [-1, 1], [3, 4], [-1, 0], [1, 0], [-4, 3], [0, 0], [1, 0]]
    v = Vectors.from_arrays(words, matrix)
    bias = word_bias(v, [["he", "she"]], limit=7)
    assert bias == pytest.approx({"boss": 0.6, "cook": -0.8})
    along = word_bias(v, np.array([2.0, 0.0]), exclude=["he"])
    assert along == pytest.approx({"she": -(0.5**0.5), "boss": 0.6, "cook": -0.8, "rare": 1.0})
    for wrong in (np.zeros(2), np.ones(3)):
        with pytest.raises(InputError, match="direction: expected 2 numbers"):
            word_bias(v, wrong)


def test_most_biased_are_the_extremes_most_biased_first() -> None:
    v = cloud()
    axis = np.eye(v.dim)[0]
    cosines = v.unit(np.arange(len(v))) @ axis
    order = np.argsort(-cosines)
    found = most_biased(v, axis, 20)
    assert found["positive"] == [v.words[i] for i in order[:20]]
    assert found["negative"] == [v.words[i] for i in order[::-1][:20]]
    with pytest.raises(VocabularyError, match="words on each side"):
        most_biased(v, axis, 150)


def test_projection_matches_float64_in_every_chunk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(passes, "_CHUNK", 36)
    v = cloud(50)
    basis = np.linalg.qr(np.random.default_rng(1).standard_normal((12, 2)))[0].T
    exact = v.raw(np.arange(50))
    exact -= exact @ basis.T @ basis
    lengths = np.linalg.norm(exact, axis=1, keepdims=True)
    found = project_out(v.matrix, basis)
    assert found.matrix.dtype == np.float32
    np.testing.assert_allclose(found.matrix, exact / lengths, atol=1e-6)
    kept = project_out(v.matrix, basis, renormalize=False).matrix
    own = np.linalg.norm(v.raw(np.arange(50)), axis=1, keepdims=True)
    np.testing.assert_allclose(kept, exact / own, atol=1e-6)
    turn = np.random.default_rng(2).standard_normal((12, 12))
    turned = v.raw(np.arange(50)) @ turn.T
    turned /= np.linalg.norm(turned, axis=1, keepdims=True)
    np.testing.assert_allclose(transform_rows(v.matrix, turn), turned, atol=1e-6)


def test_projection_of_words_that_nearly_lie_in_the_subspace() -> None:
    rng = np.random.default_rng(3)
    basis = np.linalg.qr(rng.standard_normal((300, 2)))[0].T
    aside = rng.standard_normal((60, 300)) / np.sqrt(300)
    matrix = rng.standard_normal((60, 2)) @ basis + np.logspace(-4, 0, 60)[:, None] * aside
    found = project_out(matrix.astype(np.float32), basis)
    assert found.inside.size == 0
    assert np.linalg.norm(found.matrix.astype(float) @ basis.T, axis=1).max() <= 1e-6
    assert found.largest_left <= 1e-6
    np.testing.assert_allclose(np.linalg.norm(found.matrix, axis=1), 1, atol=1e-6)


def test_zero_rows_and_rows_inside_the_subspace() -> None:
    matrix = np.array([[0, 0, 0], [5, 0, 0], [3, 4, 0]], dtype=np.float32)
    axis = np.array([[1.0, 0.0, 0.0]])
    found = project_out(matrix, axis)
    assert found.matrix.tolist() == [[0, 0, 0], [1, 0, 0], [0, 1, 0]]
    assert found.inside.tolist() == [1]
    linear = project_out(matrix, axis, renormalize=False)
    np.testing.assert_allclose(linear.matrix, [[0, 0, 0], [0, 0, 0], [0, 0.8, 0]], atol=1e-7)
    assert unit_rows(matrix)[0].tolist() == [0, 0, 0]


def test_debias_by_an_unknown_name_suggests_the_nearest() -> None:
    with pytest.raises(UnknownNameError, match="did you mean 'hard'"):
        debias(cloud(), "hrad", [[letters(0), letters(1)]])
