from __future__ import annotations

import math

import pytest

from evenhand.statistics.power import items_needed, smallest_effect
from evenhand.statistics.sizes import LOGISTIC, SIZES, name_size, spread_within, to_size


@pytest.mark.parametrize(
    ("kind", "ideal"), [("d", 0), ("log-odds", 0), ("odds", 1), ("share", 0.5), ("gap", 0)]
)
def test_the_ideal_is_zero_and_a_larger_value_a_larger_size(kind, ideal) -> None:
    assert to_size(ideal, kind) == pytest.approx(0)
    assert to_size(ideal + 0.1, kind) > 0 > to_size(ideal - 0.1, kind)


def test_one_bias_has_one_size_in_every_unit() -> None:
    ratio = 3.0
    share = ratio / (1 + ratio)
    by_odds = to_size(ratio, "odds")
    assert to_size(math.log(ratio), "log-odds") == pytest.approx(by_odds)
    assert to_size(share, "share") == pytest.approx(by_odds)
    rates = 1 / (1 + math.exp(-math.log(ratio) / 2))
    assert to_size(2 * rates - 1, "gap") == pytest.approx(by_odds)
    assert by_odds == pytest.approx(math.log(ratio) / (math.pi / math.sqrt(3)))


def test_a_gap_is_not_overstated() -> None:
    """Rates around one half have the smallest odds ratio of all with the same difference."""
    gap = 0.1
    for low in (0.02, 0.2, 0.45, 0.7, 0.88):
        odds = [rate / (1 - rate) for rate in (low, low + gap)]
        assert to_size(gap, "gap") <= math.log(odds[1] / odds[0]) * LOGISTIC + 1e-12


def test_what_is_not_known_has_no_size() -> None:
    assert to_size(1.0, "") is None
    assert to_size(1.0, "spread") is None
    assert to_size(math.nan, "d") is None
    assert spread_within([1.0], ["a"]) is None
    assert to_size(1.0, "share") == math.inf


def test_names_begin_at_their_limits() -> None:
    for name, start in SIZES.items():
        assert name_size(start) == name_size(-start) == name
    assert name_size(math.inf) == "large"


def test_the_spread_is_that_within_groups() -> None:
    scores = [0.0, 2.0, 10.0, 12.0, math.nan]
    assert spread_within(scores, ["a", "a", "b", "b", "b"]) == pytest.approx(math.sqrt(2))


def test_items_needed_give_the_wanted_effect() -> None:
    deviation, items, wanted = 1.7, 30, 0.25
    smallest = smallest_effect(deviation / math.sqrt(items))
    needed = items_needed(items, smallest, wanted)
    assert smallest_effect(deviation / math.sqrt(needed)) <= wanted
    assert smallest_effect(deviation / math.sqrt(needed - 1)) > wanted
    assert items_needed(items, 0.1, wanted) == items
