import numpy as np
import pytest

from by_lists import ripa, weat
from evenhand import lexicon
from evenhand.errors import InputError
from evenhand.lexicon import Query
from evenhand.vectors import leave_one_out, split_half


def test_leave_one_out_reruns_the_metric(glove):
    query = lexicon.weat(7)
    (X, Y), (A, B) = query.targets.values(), query.attributes.values()
    m = leave_one_out(glove, query)
    assert m.n == len(X) + len(Y) + len(A) + len(B)
    by_word = {(i["group"], i["word"]): i["score"] for i in m.items}
    name = next(iter(query.attributes))
    expected = weat(glove, X, Y, A[1:], B, permutations=0, null=0).value
    assert by_word[name, A[0]] == pytest.approx(expected)
    assert m.low == min(by_word.values())
    assert m.high == max(by_word.values())
    most = max(by_word.values(), key=lambda value: abs(value - m.value))
    assert m.items[0]["score"] == most


def test_unknown_words_are_no_replicates_and_the_unmovable_are_named(glove):
    query = Query(
        name="q",
        targets={"x": ("rose", "lily", "zzzqx"), "y": ("ant", "flea", "wasp")},
        attributes={"a": ("love",), "b": ("hate", "pain")},
    )
    m = leave_one_out(glove, query)
    assert "zzzqx" not in {item["word"] for item in m.items}
    assert m.notes == ("could not be left out: rose, lily, love",)
    assert m.prob == 1.0


def test_pairs_are_left_out_together(glove):
    pairs = [("he", "she"), ("man", "woman"), ("king", "queen")]
    query = Query(
        name="q",
        targets={"m": tuple(p[0] for p in pairs), "f": tuple(p[1] for p in pairs)},
        attributes={"jobs": ("nurse", "doctor", "cook")},
    )
    m = leave_one_out(glove, query, "ripa")
    assert m.n == 6
    score = {i["word"]: i["score"] for i in m.items}
    expected = ripa(glove, pairs[1:], ["nurse", "doctor", "cook"], null=0).value
    assert score["he-she"] == pytest.approx(expected)


def test_split_half_is_seeded_and_brackets_a_strong_effect(glove):
    m = split_half(glove, lexicon.weat(6), draws=60, seed=2)
    assert m == split_half(glove, lexicon.weat(6), draws=60, seed=2)
    assert m.low > 0.5
    assert m.details["same_side"] == 1
    values = [i["score"] for i in m.items]
    assert m.low == pytest.approx(np.quantile(values, 0.025))


def test_a_metric_of_several_values_or_another_shape_is_refused(glove):
    with pytest.raises(InputError, match="gives 2 values"):
        leave_one_out(glove, lexicon.weat(6), "rnd")
    with pytest.raises(InputError, match="needs 1 target set"):
        split_half(glove, lexicon.weat(6), "wefat")
