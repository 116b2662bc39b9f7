"""WEAT against an independent implementation in plain Python, brute force, and its properties."""

import math
from itertools import combinations
from statistics import mean, stdev

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import evenhand as eh
from by_lists import weat
from evenhand import lexicon
from evenhand.errors import InputError, VocabularyError
from evenhand.vectors import Vectors


def cosine(a, b):
    dot = sum(x * y for x, y in zip(a, b, strict=True))
    return dot / math.sqrt(sum(x * x for x in a)) / math.sqrt(sum(y * y for y in b))


def plain_weat(vector, X, Y, A, B):
    """Caliskan et al. (2017) word by word: effect size and scores, without numpy."""
    score = {
        w: mean(cosine(vector[w], vector[a]) for a in A)
        - mean(cosine(vector[w], vector[b]) for b in B)
        for w in [*X, *Y]
    }
    difference = mean(score[x] for x in X) - mean(score[y] for y in Y)
    return difference / stdev(score.values()), score


def plain_p(score, X, Y):
    """Every equal partition of the targets, two-sided and one-sided."""
    words = [*X, *Y]
    observed = sum(score[x] for x in X) - sum(score[y] for y in Y)
    both = greater = total = 0
    for chosen in combinations(range(len(words)), len(X)):
        statistic = sum(score[w] if i in chosen else -score[w] for i, w in enumerate(words))
        both += abs(statistic) >= abs(observed) - 1e-12
        greater += statistic >= observed - 1e-12
        total += 1
    return both / total, greater / total


@pytest.mark.parametrize("number", [6, 7, 8, 9, 10])
def test_builtin_lists_agree_with_the_independent_implementation(glove, number):
    query = lexicon.weat(number)
    (X, Y), (A, B) = query.targets.values(), query.attributes.values()
    found = {w: glove[w].astype(float).tolist() for w in [*X, *Y, *A, *B] if w in glove}
    X, Y, A, B = ([w for w in words if w in found] for words in (X, Y, A, B))
    m = weat(glove, X, Y, A, B)
    effect, score = plain_weat(found, X, Y, A, B)
    assert m.value == pytest.approx(effect, abs=1e-10)
    assert {i["word"]: i["score"] for i in m.items} == pytest.approx(score, abs=1e-10)
    both, greater = plain_p(score, X, Y)
    assert m.details["exact"]
    assert m.p_value == pytest.approx(both, abs=1e-12)
    assert m.details["p_greater"] == pytest.approx(greater, abs=1e-12)


def test_published_effects_are_reproduced(glove):
    """Caliskan's ten effects all point the published way and differ from 0 at 5 %."""
    for query in lexicon.weat_queries():
        (X, Y), (A, B) = query.targets.values(), query.attributes.values()
        m = weat(glove, X, Y, A, B, query=query.name, permutations=10_000)
        assert m.value > 0.8
        assert m.p_value < 0.05
        assert 0 < m.low < m.value < m.high < 2


def test_effect_size_is_on_caliskans_scale_by_hand():
    """Four unit vectors in the plane; s = cos(w, east) - cos(w, north)."""
    v = Vectors.from_arrays(
        ["east", "north", "x1", "x2", "y1", "y2"],
        [[1, 0], [0, 1], [1, 0], [0.8, 0.6], [0, 1], [0.6, 0.8]],
    )
    m = weat(v, ["x1", "x2"], ["y1", "y2"], ["east"], ["north"])
    s = [1, 0.2, -1, -0.2]
    assert [i["score"] for i in m.items] == pytest.approx(s, abs=1e-6)
    assert m.value == pytest.approx(1.2 / np.std(s, ddof=1), abs=1e-6)
    assert m.p_value == pytest.approx(2 / 6)
    assert m.details["statistic"] == pytest.approx(2.4, abs=1e-6)


def test_swapping_targets_flips_the_sign_and_keeps_p(glove):
    query = lexicon.weat(8)
    (X, Y), (A, B) = query.targets.values(), query.attributes.values()
    one, other = weat(glove, X, Y, A, B), weat(glove, Y, X, A, B)
    assert other.value == pytest.approx(-one.value, abs=1e-12)
    assert (other.low, other.high) == pytest.approx((-one.high, -one.low))
    assert other.p_value == one.p_value
    third = weat(glove, X, Y, B, A)
    assert third.value == pytest.approx(-one.value, abs=1e-12)
    assert third.p_value == one.p_value


def test_monte_carlo_is_seeded_and_close_to_exact(glove):
    query = lexicon.weat(7)
    (X, Y), (A, B) = query.targets.values(), query.attributes.values()
    many = [*X, *lexicon.weat(8).targets["science"], *lexicon.weat(1).targets["flowers"]]
    one = weat(glove, many, Y, A, B, permutations=2000, seed=1)
    assert not one.details["exact"]
    assert one == weat(glove, many, Y, A, B, permutations=2000, seed=1)
    assert one.seed == 1


def test_left_out_words_are_named_and_do_not_count(glove):
    m = weat(glove, ["rose", "tulip", "zzzqx"], ["ant", "flea"], ["love", "qqqz"], ["hate"])
    assert m.left_out == ("zzzqx", "qqqz")
    assert m.n == 4


def test_too_few_words_is_an_error_that_names_them(glove):
    with pytest.raises(VocabularyError, match=r"target set 'Y'.* at least 2 .*zzzqx"):
        weat(glove, ["rose", "tulip"], ["ant", "zzzqx"], ["love"], ["hate"])
    with pytest.raises(VocabularyError, match="attribute set 'B'"):
        weat(glove, ["rose", "tulip"], ["ant", "flea"], ["love"], ["zzzqx"])


@pytest.mark.parametrize(
    ("lists", "message"),
    [
        (
            (["rose", "lily"], ["lily", "ant"], ["love"], ["hate"]),
            "target sets 'X' and 'Y'.*'lily'",
        ),
        ((["rose", "lily"], ["ant", "flea"], ["love"], ["Love"]), "attribute sets .*'love'"),
        ((["rose", "love"], ["ant", "flea"], ["love"], ["hate"]), "'love' is among"),
        (("rose", ["ant", "flea"], ["love"], ["hate"]), "got the string 'rose'"),
        (([1, "lily"], ["ant", "flea"], ["love"], ["hate"]), "got 1 of type int"),
    ],
)
def test_confused_lists_are_refused(glove, lists, message):
    with pytest.raises(InputError, match=message):
        weat(glove, *lists)


def test_any_collection_of_words_will_do(glove):
    X, Y, A, B = ["rose", "lily"], ["ant", "flea"], ["love"], ["hate"]
    one = weat(glove, X, Y, A, B)
    assert one == weat(glove, tuple(X), Y, np.array(A), dict.fromkeys(B))


def test_bad_options_are_named(glove):
    words = (["rose", "tulip"], ["ant", "flea"], ["love"], ["hate"])
    with pytest.raises(InputError, match="prob: expected a number between 0 and 1, got 95"):
        weat(glove, *words, prob=95)
    with pytest.raises(InputError, match="permutations"):
        weat(glove, *words, permutations=-1)


def test_without_is_the_value_on_the_rest(glove):
    X, Y, A, B = ["rose", "tulip", "lily"], ["ant", "flea", "wasp"], ["love"], ["hate"]
    m = weat(glove, X, Y, A, B)
    rest = weat(glove, X[1:], Y, A, B)
    assert m.items[0]["without"] == pytest.approx(rest.value)


def test_the_attribute_side_has_its_own_test():
    """With identity words as targets, chance in two attribute words looks significant; the test
    over the attributes does not join in.
    """
    rng = np.random.default_rng(4)
    gender = np.eye(60)[0]
    words = {
        f"{s}{i}": sign * gender * 3 + rng.normal(size=60) / 8
        for s, sign in (("he", 1), ("she", -1))
        for i in range(8)
    }
    words |= {f"a{i}": rng.normal(size=60) for i in range(6)}
    v = Vectors.from_arrays(list(words), np.array(list(words.values())))
    he, she = ([f"{s}{i}" for i in range(8)] for s in ("he", "she"))
    m = weat(v, he, she, ["a0", "a1", "a2"], ["a3", "a4", "a5"])
    assert m.p_value < 0.001
    assert m.details["p_attributes"] > 0.05


@settings(deadline=None, max_examples=25)
@given(st.integers(0, 10_000), st.integers(2, 4), st.integers(2, 4), st.integers(1, 3))
def test_scaling_the_vectors_changes_nothing(seed, nx, ny, na):
    rng = np.random.default_rng(seed)
    names = [f"w{i}" for i in range(nx + ny + 2 * na)]
    matrix = rng.normal(size=(len(names), 6))
    lengths = rng.uniform(0.5, 20, size=(len(names), 1))
    X, Y = names[:nx], names[nx : nx + ny]
    A, B = names[nx + ny : nx + ny + na], names[nx + ny + na :]
    one = weat(Vectors.from_arrays(names, matrix), X, Y, A, B)
    two = weat(Vectors.from_arrays(names, matrix * lengths), X, Y, A, B)
    assert two.value == pytest.approx(one.value, abs=1e-5)
    assert one.low <= one.value <= one.high


def test_the_effect_size_of_rounding_errors_is_not_measured():
    """After hard debiasing with equalised sets every stereotype is equally near to both classes."""
    v, religion = eh.vectors.load("glove"), eh.lexicon.topic("religion")
    fair = eh.vectors.hard(v, religion.definitional, equalize=religion.equalize).vectors
    measured = eh.measure(fair, religion, ["weat"])
    assert len(measured) == 3
    for m in measured:
        assert math.isnan(m.value)
        assert (m.low, m.high, m.p_value) == (-math.inf, math.inf, 1.0)
        assert m.details["mean_difference"] == 0
        assert "0 / 0" in m.notes[-1]
        assert not eh.instruments.judge_result(m).found
