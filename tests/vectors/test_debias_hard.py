"""Hard debiasing against values by hand, its definition and its promises."""

from __future__ import annotations

import json

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.files import to_json
from evenhand.vectors.debias import Debiased, debias, hard
from evenhand.vectors.debias.hard import equalized
from evenhand.vectors.store import Vectors

PAIRS = [["he", "she"], ["man", "woman"], ["king", "queen"]]
TRIPLES = [["jew", "christian", "muslim"], ["torah", "bible", "quran"], ["rabbi", "priest", "imam"]]
OVERLAP = [["he", "she"], ["he", "her"], ["man", "woman"], ["woman", "girl", "boy"]]


def planted(sets: list[list[str]], n: int = 400, dim: int = 20, seed: int = 0) -> Vectors:
    """Noise around a common mean, the members of each set apart along the first axes."""
    rng = np.random.default_rng(seed)
    special = list(dict.fromkeys(word for members in sets for word in members))
    words = special + [f"w{i}" for i in range(n)]
    matrix = rng.standard_normal((len(words), dim)) + 0.5
    for members in sets:
        for place, word in enumerate(members):
            matrix[words.index(word), place % 3] += 4
    return Vectors.from_arrays(words, matrix, name="planted")


def fixed_words(sets: list[list[str]]) -> set[str]:
    return {word for members in sets for word in members}


def test_two_dimensions_by_hand() -> None:
    """he (.6, .8), she (-1, 0): direction along (1.6, .8), that is (2, 1)/√5."""
    v = Vectors.from_arrays(["he", "she", "nurse", "up"], [[3, 4], [-2, 0], [-3, 4], [0, 5]])
    result = hard(v, [["he", "she"]])
    axis = np.array([2, 1]) / 5**0.5
    aside = np.array([-1, 2]) / 5**0.5
    np.testing.assert_allclose(result.removed, [axis], atol=1e-7)
    np.testing.assert_allclose(result.vectors["nurse"], aside, atol=1e-7)
    np.testing.assert_allclose(result.vectors["up"], aside, atol=1e-7)
    # mean (-.2, .4) = 1/√5 along `aside`, nothing along the axis: ±√(1 - 1/5) along it
    np.testing.assert_allclose(result.vectors["he"], aside / 5**0.5 + 0.8**0.5 * axis, atol=1e-6)
    np.testing.assert_allclose(result.vectors["she"], aside / 5**0.5 - 0.8**0.5 * axis, atol=1e-6)


def test_three_dimensions_by_hand() -> None:
    v = Vectors.from_arrays(
        ["a", "b", "word", "kept"], [[0.6, 0.8, 0], [-0.6, 0.8, 0], [2, 3, 6], [2, 0, 0]]
    )
    result = hard(v, [["a", "b"]], keep=["kept"])
    np.testing.assert_allclose(result.vectors["a"], [0.6, 0.8, 0], atol=1e-6)
    np.testing.assert_allclose(result.vectors["b"], [-0.6, 0.8, 0], atol=1e-6)
    np.testing.assert_allclose(result.vectors["word"], np.array([0, 1, 2]) / 5**0.5, atol=1e-6)
    assert result.vectors["kept"].tolist() == [1, 0, 0]


@pytest.mark.parametrize("sets", [PAIRS, TRIPLES, OVERLAP], ids=["pairs", "triples", "overlap"])
@pytest.mark.parametrize("k", [1, 2])
def test_promises(sets: list[list[str]], k: int) -> None:
    v = planted(sets)
    result = hard(v, sets, k=k)
    assert result.removed is not None
    after = result.vectors
    assert after.matrix.dtype == np.float32
    neutral = [word for word in v.words if word not in fixed_words(sets)]
    ours = after.raw(after.find(neutral).rows)
    assert np.linalg.norm(ours @ result.removed.T, axis=1).max() <= 1e-6
    for members in sets:
        similar = ours @ after.raw(after.find(members).rows).T
        assert np.abs(similar - similar[:, :1]).max() <= 1e-6
    np.testing.assert_allclose(np.linalg.norm(after.matrix, axis=1), 1, atol=1e-6)
    assert result.report["neutralized"] == len(neutral)
    assert result.report["equalized"] == len(fixed_words(sets))
    assert result.report["largest_left"] <= 1e-6
    assert result.report["not_equalized"] == result.report["not_neutralized"] == []


def test_neutralised_words_follow_the_formula_and_the_rest_stays() -> None:
    v = planted(PAIRS)
    result = hard(v, PAIRS, neutralize=["w1", "w2", "missing"], equalize=PAIRS[:1])
    assert result.removed is not None
    unit = v.unit(np.arange(len(v)))
    for word in ("w1", "w2"):
        vector = unit[v.words.index(word)]
        rest = vector - result.removed[0] * (result.removed[0] @ vector)
        np.testing.assert_allclose(result.vectors[word], rest / np.linalg.norm(rest), atol=1e-6)
    touched = {"w1", "w2", "he", "she"}
    same = [i for i, word in enumerate(v.words) if word not in touched]
    np.testing.assert_allclose(result.vectors.matrix[same], unit[same], atol=1e-6)
    assert result.left_out == ("missing",)
    assert result.report["neutralized"] == 2


def test_the_given_vectors_are_not_changed() -> None:
    v = planted(PAIRS)
    copy = v.matrix.copy()
    hard(v, PAIRS)
    assert (v.matrix == copy).all()


def test_twice_is_once_for_neutralised_words() -> None:
    v = planted(TRIPLES)
    once = hard(v, TRIPLES, k=2)
    twice = hard(once.vectors, TRIPLES, k=2)
    rows = [i for i, word in enumerate(v.words) if word.startswith("w")]
    np.testing.assert_allclose(twice.vectors.matrix[rows], once.vectors.matrix[rows], atol=2e-6)


def test_equalising_sets_that_share_words_one_by_one_would_break_the_first() -> None:
    """The reason for joining: the order of the sets must not matter, and no set may be undone."""
    v = planted(OVERLAP)
    there, back = hard(v, OVERLAP), hard(v, OVERLAP[::-1])
    rows = v.find(sorted(fixed_words(OVERLAP))).rows
    np.testing.assert_allclose(there.vectors.raw(rows), back.vectors.raw(rows), atol=1e-6)
    assert any("4 sets share words and were equalised as 2" in note for note in there.notes)
    assert not any("share words" in note for note in hard(v, PAIRS[:1]).notes)


def test_a_member_at_the_mean_is_left_and_named() -> None:
    """c lies midway between a and b along the axis: no direction to move it in."""
    v = Vectors.from_arrays(
        ["a", "b", "c", "w"], [[0.6, 0.8, 0], [-0.6, 0.8, 0], [0, 0, 1], [1, 1, 1]]
    )
    result = hard(v, [["a", "b"]], equalize=[["a", "b", "c"]])
    assert result.report["not_equalized"] == ["c"]
    assert result.report["equalized"] == 2
    assert result.vectors["c"].tolist() == [0, 0, 1]
    assert any("set's mean" in note and note.endswith(": c") for note in result.notes)


def test_a_word_inside_the_subspace_is_left_and_named() -> None:
    v = Vectors.from_arrays(
        ["a", "b", "lost", "zero", "w"],
        [[0.6, 0.8, 0], [-0.6, 0.8, 0], [7, 0, 0], [0, 0, 0], [1, 1, 1]],
    )
    result = hard(v, [["a", "b"]])
    assert result.report["not_neutralized"] == ["lost"]
    assert result.report["neutralized"] == 2
    assert result.vectors["lost"].tolist() == [1, 0, 0]
    assert result.vectors.matrix[3].tolist() == [0, 0, 0]
    assert any("entirely in the bias subspace" in note for note in result.notes)
    listed = hard(v, [["a", "b"]], neutralize=["w", "lost"])
    assert listed.report["not_neutralized"] == ["lost"]


def test_words_of_a_dropped_set_stay_defining() -> None:
    v = planted([*PAIRS, ["actor", "actress"]])
    result = hard(v, [*PAIRS, ["actor", "unknown"]])
    row = v.words.index("actor")
    np.testing.assert_allclose(result.vectors.matrix[row], v.unit(row), atol=1e-6)
    assert result.left_out == ("unknown", "actor")


def test_an_empty_list_equalises_nothing() -> None:
    v = planted(PAIRS)
    result = hard(v, PAIRS, equalize=[])
    rows = v.find(sorted(fixed_words(PAIRS))).rows
    np.testing.assert_allclose(result.vectors.raw(rows), v.unit(rows), atol=1e-6)
    assert result.report["equalized"] == 0
    assert result.notes == ()


def test_equalized_has_unit_length_and_one_shared_part() -> None:
    rng = np.random.default_rng(5)
    members = rng.standard_normal((4, 6))
    members /= np.linalg.norm(members, axis=1, keepdims=True)
    basis = np.linalg.qr(rng.standard_normal((6, 2)))[0].T
    places, moved = equalized(members, basis)
    assert moved.all()
    np.testing.assert_allclose(np.linalg.norm(places, axis=1), 1)
    outside = places - places @ basis.T @ basis
    mean = members.mean(axis=0)
    np.testing.assert_allclose(outside, np.tile(mean - mean @ basis.T @ basis, (4, 1)))


def test_rounding_is_no_direction_to_be_equalised_in() -> None:
    members = np.array([[0.6, 0.8, 0], [-0.6, 0.8, 0], [3e-8, 0, 1]])
    places, moved = equalized(members, np.array([[1.0, 0, 0]]))
    assert moved.tolist() == [True, True, False]
    assert (places[2] == members[2]).all()


def test_contradictions_are_refused() -> None:
    v = planted(PAIRS)
    with pytest.raises(InputError, match="neutralize: also in equalize or keep: he, w3"):
        hard(v, PAIRS, neutralize=["w1", "w3", "he"], keep=["w3"])
    with pytest.raises(InputError, match="expected 'all' or a list of texts, got 'everything'"):
        hard(v, PAIRS, neutralize="everything")


def test_result_says_what_was_done() -> None:
    v = planted(PAIRS)
    result = debias(v, "hard", PAIRS, options={"k": 2, "keep": ["w5"]})
    assert isinstance(result, Debiased)
    assert result.vectors.name == "planted+hard"
    assert result.vectors.words == v.words
    assert any("zero by construction" in note for note in result.notes)
    view = json.loads(to_json(result.to_dict()))
    assert view["method"] == "hard"
    assert view["removed_dimensions"] == 2
    assert view["settings"] == {
        "k": 2,
        "sets": PAIRS,
        "equalize": None,
        "neutralize": "all",
        "keep": ["w5"],
    }
    assert result.fitted_on == ("he", "she", "man", "woman", "king", "queen")


@pytest.mark.parametrize("scale", [1e-24, 1e-22, 1e19])
def test_tiny_and_huge_vectors_are_debiased_like_others(scale):
    """Their squares are beyond float32, they themselves are not."""
    rng = np.random.default_rng(3)
    names = [f"w{i}" for i in range(60)]
    matrix = rng.normal(size=(60, 8))
    sets = [["w0", "w1"], ["w2", "w3"]]
    plain = hard(Vectors.from_arrays(names, matrix), sets).vectors.matrix
    scaled = hard(Vectors.from_arrays(names, matrix * scale), sets).vectors.matrix
    assert np.allclose(plain, scaled, atol=1e-5)
