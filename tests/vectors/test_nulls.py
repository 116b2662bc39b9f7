import math

import numpy as np
import pytest

from by_lists import mac
from evenhand.errors import InputError
from evenhand.vectors import Vectors, dimension_spread
from evenhand.vectors.nulls import Null, matched_rows


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(1)
    return Vectors.from_arrays([f"w{i}" for i in range(5000)], rng.normal(size=(5000, 8)))


def test_draws_match_frequency_and_never_repeat_or_return(cloud):
    rows = np.array([10, 300, 2000, 4900])
    drawn = matched_rows(cloud, rows, 400, seed=2, exclude=[301, 302])
    assert drawn.shape == (400, 4)
    assert not np.isin(drawn, [*rows, 301, 302]).any()
    assert all(len(set(draw)) == 4 for draw in drawn.tolist())
    assert drawn[:, 2].min() >= 2000 / 1.5 - 1
    assert drawn[:, 2].max() <= 2000 * 1.5 + 1
    assert drawn[:, 0].max() <= 210
    assert drawn[:, 3].min() >= 3200


def test_crowded_lists_still_draw_distinct_words():
    """Forty words of neighbouring rank share their candidates."""
    rng = np.random.default_rng(3)
    small = Vectors.from_arrays([f"w{i}" for i in range(150)], rng.normal(size=(150, 4)))
    drawn = matched_rows(small, np.arange(40), 50, seed=1)
    assert all(len(set(draw)) == 40 for draw in drawn.tolist())
    assert drawn.min() >= 40


def test_too_small_a_vocabulary_is_named():
    tiny = Vectors.from_arrays([f"w{i}" for i in range(25)], np.eye(25))
    with pytest.raises(InputError, match="at least 20 other words, memory has 15"):
        matched_rows(tiny, np.arange(10), 5, seed=0)


def test_draws_are_seeded(cloud):
    rows = np.array([5, 50])
    one = matched_rows(cloud, rows, 20, seed=4)
    assert np.array_equal(one, matched_rows(cloud, rows, 20, seed=4))
    assert not np.array_equal(one, matched_rows(cloud, rows, 20, seed=5))


@pytest.mark.parametrize(
    ("worse", "value", "p"), [("higher", 98, 3 / 101), ("lower", 1, 3 / 101), ("away", 98, 6 / 101)]
)
def test_p_counts_the_draws_at_least_as_bad(worse, value, p):
    values = np.arange(100.0)
    assert Null(values=values, value=value, worse=worse).p_value == pytest.approx(p)


def test_p_is_never_zero_nor_above_one():
    values = np.zeros(99)
    assert Null(values=values, value=5.0, worse="higher").p_value == 1 / 100
    assert Null(values=values, value=0.0, worse="away").p_value == 1


def test_the_null_reads_the_same_statistic(cloud):
    """MAC's null draws, recomputed one at a time through the public function."""
    m = mac(cloud, {"t": ["w1", "w2"]}, {"a": ["w100", "w101", "w102"]}, null=50, seed=9)
    found = cloud.find(["w100", "w101", "w102"]).rows
    drawn = matched_rows(cloud, found, 50, seed=9, exclude=cloud.find(["w1", "w2"]).rows)
    values = [
        mac(cloud, {"t": ["w1", "w2"]}, {"a": [cloud.words[r] for r in draw]}, null=0).value
        for draw in drawn
    ]
    assert m.details["null_median"] == pytest.approx(np.median(values), abs=1e-9)
    assert m.p_value == pytest.approx((1 + sum(x <= m.value for x in values)) / 51)


def test_spread_falls_with_the_root_of_the_dimension():
    m = dimension_spread((2, 10, 100, 400), points=500, repeats=5, seed=1)
    assert m.value == pytest.approx(-0.5, abs=0.03)
    for item in m.items:
        assert item["sd_normal"] == pytest.approx(item["theory_normal"], rel=0.1)
        assert item["sd_uniform"] < item["sd_normal"]
    assert m.items[2]["theory_normal"] == 1 / math.sqrt(100)
    with pytest.raises(InputError, match="dims"):
        dimension_spread((5,))
