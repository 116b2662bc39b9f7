"""The judge: outcomes, families, levels, placements and ranks at known values."""

from __future__ import annotations

import math
from dataclasses import replace

import pytest
from scipy.stats import t

from evenhand.errors import InputError
from evenhand.instruments import compare_together, correct_results, judge_result, judge_results
from evenhand.judging import (
    RULES,
    BiasTest,
    General,
    find_level,
    is_below,
    judge,
    place,
    ranks,
    simultaneous,
    widen,
)
from evenhand.results import Comparison, Estimate, Measurement
from evenhand.summary import summarize

CLEAR = BiasTest(
    metric="a", query="q", label="a", value=0.5, low=0.3, high=0.7, p_value=0.001, n=50, size="d"
)
EMPTY = replace(CLEAR, value=0.01, low=-0.1, high=0.12, p_value=0.9)


def outcome(*tests: BiasTest) -> str:
    return judge(tests)[0].outcome


@pytest.mark.parametrize(
    ("changed", "says"),
    [
        ({}, "found"),
        ({"p_value": 0.06}, "undecided"),
        ({"low": -0.01}, "undecided"),
        ({"value": math.nan}, "not measured"),
        ({"ideal": None}, "not judged"),
        ({"judged": False}, "not judged"),
        ({"opposite": True}, "opposite"),
        ({"p_value": None}, "found"),
        ({"p_value": None, "low": -0.01}, "undecided"),
        ({"p_value": None, "one_sided": True}, "not judged"),
        ({"value": 0.0, "low": -0.031, "high": 0.031, "p_value": 0.005}, "undecided"),
        ({"value": 0.0, "low": -0.031, "high": 0.031, "p_value": 0.5}, "none found"),
        ({"value": 0.0, "low": -0.031, "high": 0.2, "p_value": 0.5}, "undecided"),
        ({"value": 0.0, "low": -0.031, "high": 0.031, "p_value": 0.5, "size": ""}, "undecided"),
        ({"value": 0.0, "low": 0.0, "high": 0.0, "p_value": 0.001}, "undecided"),
        ({"prob": 0.99, "p_value": 0.02}, "undecided"),
    ],
)
def test_the_outcome_of_one_test(changed: dict[str, object], says: str) -> None:
    assert outcome(replace(CLEAR, **changed)) == says


def test_p_values_are_corrected_within_their_family() -> None:
    deciding = [replace(CLEAR, metric=name, role="decides", p_value=0.02) for name in "ab"]
    confirming = replace(CLEAR, metric="c", role="confirms", p_value=0.02)
    other = replace(CLEAR, metric="d", p_value=0.02)
    found = judge([*deciding, confirming, other, other])
    assert [(j.p, j.family) for j in found] == [
        *([(0.04, 2)] * 2),
        (0.02, 1),
        *([(0.04, 2)] * 2),
    ]


def test_tests_that_are_judged_elsewhere_count() -> None:
    [alone] = judge([replace(CLEAR, p_value=0.02)])
    [beside] = judge([replace(CLEAR, p_value=0.02)], [EMPTY, EMPTY])
    assert (alone.outcome, beside.outcome) == ("found", "undecided")
    assert beside.p == pytest.approx(0.06)


def test_a_repeated_test_counts_once() -> None:
    first = replace(CLEAR, metric="tpr-gap", role="decides", p_value=0.03)
    again = replace(first, metric="fpr-gap", repeats="tpr-gap")
    assert [j.p for j in judge([first, again])] == [0.03, 0.03]
    other = replace(again, query="another question")
    assert [j.p for j in judge([first, other])] == [0.06, 0.06]
    third = replace(first, metric="parity-gap", p_value=0.9)
    judged = judge([first, again, third])
    assert [(j.p, j.family, j.test.decides) for j in judged] == [
        (0.06, 2, True),
        (0.06, 2, False),
        (0.9, 2, True),
    ]
    of_another = replace(again, subject="another model")
    assert [j.family for j in judge([first, of_another])] == [2, 2]


def test_a_test_is_never_corrected_for_fewer_tests_than_it_was_seen_with() -> None:
    seen = replace(CLEAR, p_value=0.02, corrected=(0.08, 4))
    [found] = judge([seen])
    assert (found.p, found.family, found.outcome) == (0.08, 4, "undecided")


def test_without_a_p_value_the_interval_at_the_level_of_the_family_decides() -> None:
    """At 98 nominal degrees of freedom one of five intervals is 2.63 / 1.98 times as wide."""
    test = replace(CLEAR, p_value=None, low=0.1, high=0.9, n=99)
    stretch = t.ppf(0.995, 98) / t.ppf(0.975, 98)
    found = judge([replace(test, metric=name) for name in "abcde"])
    assert found[0].low == pytest.approx(0.5 - 0.4 * stretch)
    assert {j.outcome for j in found} == {"undecided"}
    assert outcome(test) == "found"


def test_the_wider_population_decides() -> None:
    tested = replace(CLEAR, general=General(low=-0.1, high=1.1, p_value=0.2))
    [found] = judge([tested])
    assert (found.outcome, found.p, found.p_tested) == ("undecided", 0.2, 0.001)
    assert found.in_tested
    both = replace(CLEAR, general=General(low=0.1, high=0.9, p_value=0.02))
    assert judge([both])[0].outcome == "found"
    assert judge([replace(both, low=-0.1)])[0].outcome == "undecided"


def test_what_is_beyond_chance_in_what_was_tested_is_not_none() -> None:
    small = replace(EMPTY, value=0.05, low=0.02, high=0.08, p_value=0.001)
    wide = General(low=-0.05, high=0.15, p_value=0.4)
    assert outcome(replace(small, general=wide)) == "undecided"


def test_a_counted_p_value_is_below_a_level_only_beyond_its_own_error() -> None:
    assert not is_below(0.04, 0.05, draws=999)
    assert is_below(0.04, 0.05, draws=99_999)
    assert is_below(0.02, 0.05, draws=9_999, factor=1.0)
    assert not is_below(0.04, 0.05, draws=9_999, factor=4.0)
    assert outcome(replace(CLEAR, p_value=0.04, draws=999)) == "undecided"
    assert outcome(replace(CLEAR, p_value=0.04)) == "found"


def test_sizes_point_towards_the_stereotype() -> None:
    below = replace(CLEAR, value=-0.5, low=-0.7, high=-0.3)
    assert [(j.size, j.size_low, j.size_high) for j in judge([below])] == [(0.5, 0.3, 0.7)]
    assert judge([replace(below, sign=1)])[0].size == -0.5
    assert judge([replace(below, sign=-1)])[0].size == 0.5


def test_what_is_ruled_out() -> None:
    assert judge([EMPTY])[0].ruled_out == 0.12
    share = replace(EMPTY, value=0.6, low=0.45, high=0.7, ideal=0.5)
    assert judge([share])[0].ruled_out == pytest.approx(0.2)
    ratio = replace(EMPTY, value=1.0, low=0.4, high=2.0, ideal=1.0, ratio=True)
    assert judge([ratio])[0].ruled_out == pytest.approx(2.5)
    assert judge([replace(EMPTY, high=math.inf)])[0].ruled_out is None
    gap = replace(EMPTY, value=0.1, low=-0.7, high=0.9, size="gap")
    assert judge([gap])[0].ruled_out == 0.9
    assert judge([replace(gap, high=1.0)])[0].ruled_out is None  # there are no gaps beyond 1


REQUIRED = replace(CLEAR, metric="lead", role="leads")
SECOND = replace(CLEAR, metric="second", role="decides")
LEVELS = [
    ("vectors", [], "not measured"),
    ("vectors", [SECOND], "not measured"),
    ("vectors", [REQUIRED], "some evidence"),
    ("vectors", [REQUIRED, SECOND], "strong evidence"),
    ("vectors", [REQUIRED, replace(SECOND, towards=False)], "some evidence"),
    ("vectors", [REQUIRED, replace(SECOND, p_value=0.03)], "some evidence"),
    ("vectors", [replace(REQUIRED, p_value=0.5), SECOND], "some evidence"),
    ("vectors", [replace(REQUIRED, p_value=0.5), replace(SECOND, p_value=0.5)], "undecided"),
    ("masked", [REQUIRED], "strong evidence"),
    ("causal", [SECOND], "some evidence"),
    ("causal", [SECOND, replace(SECOND, metric="third")], "strong evidence"),
    ("predictions", [SECOND], "strong evidence"),
    ("corpus", [replace(SECOND, p_value=0.02)], "some evidence"),
    ("corpus", [replace(EMPTY, role="leads")] * 3, "none found"),
    ("corpus", [replace(EMPTY, role="leads"), replace(EMPTY, role="leads", high=0.4)], "undecided"),
    ("corpus", [replace(CLEAR, role="leads", opposite=True)], "none found"),
]


@pytest.mark.parametrize(("subject", "tests", "level"), LEVELS)
def test_the_level_of_a_subject(subject: str, tests: list[BiasTest], level: str) -> None:
    assert find_level(RULES[subject], judge(tests), ["lead"]) == level


@pytest.mark.parametrize(
    ("low", "high", "says"),
    [
        (0.1, 0.2, "met"),
        (0.0, 0.3, "met"),
        (0.2, 0.31, "inconclusive"),
        (-0.1, 0.1, "inconclusive"),
        (-1.0, 1.0, "inconclusive"),
        (0.31, 0.4, "not met"),
        (-0.4, -0.1, "not met"),
    ],
)
def test_where_an_interval_lies(low: float, high: float, says: str) -> None:
    assert place(low, high, 0.0, 0.3) == says


def test_a_limit_that_is_no_number_is_an_error() -> None:
    with pytest.raises(InputError, match="expected numbers"):
        place(0.1, 0.2, 0.0, math.nan)


def test_intervals_are_widened_on_their_scale() -> None:
    value, low, high = widen((2.0, 1.0, 4.0), 0.95, 0.99, ratio=True)
    assert value == 2.0
    assert low * high == pytest.approx(4.0)
    assert math.log(high / 2) / math.log(2) == pytest.approx(2.5758 / 1.96, rel=1e-4)
    assert widen((1.0, 0.5, 1.5), 0.95, 0.95) == (1.0, 0.5, 1.5)
    assert widen((1.0, -math.inf, math.inf), 0.95, 0.99)[1] == -math.inf
    assert simultaneous(0.95, 10) == pytest.approx(0.995)


def test_ranks_follow_from_the_pairs_that_differ() -> None:
    assert ranks("abcd", [("a", "c"), ("a", "d"), ("b", "d")]) == {
        "a": (1, 2),
        "b": (1, 3),
        "c": (2, 4),
        "d": (3, 4),
    }


# ------------------------------------------------------------------------- results and their p


def measured(metric: str, p: float, query: str = "q", **fields: object) -> Measurement:
    given = {"value": -0.05, "low": -0.08, "high": -0.02, "n": 50, "ideal": 0.0, "worse": "away"}
    return Measurement(metric=metric, query=query, p_value=p, interval="", **{**given, **fields})


def test_the_corrected_p_and_its_family_are_in_the_result() -> None:
    results = [measured("association", 0.02, query) for query in "abc"]
    corrected = correct_results(results)
    assert [m.p_value for m in corrected] == [0.02] * 3
    assert [(m.p, m.family) for m in corrected] == [(pytest.approx(0.06), 3)] * 3
    again = Measurement.from_dict(corrected[0].to_dict())
    assert (again.p, again.family) == (corrected[0].p, 3)
    assert correct_results(corrected) == corrected, "correcting twice changes nothing"


def test_one_result_of_several_says_the_same_p_alone() -> None:
    """Seen: .046 in a notebook and .092 in the shell for the same measurement."""
    results = correct_results([measured("association", 0.046, query) for query in "ab"])
    assert judge_result(results[0]).p == pytest.approx(0.092)
    assert "p = 0.092, corrected for 2 tests" in summarize(results[0])
    assert "p = 0.092 (corrected for 2 tests)" in str(results[0])
    assert "0.092" in results[0]._repr_html_()
    assert "0.046" not in results[0]._repr_html_()


def test_parts_that_are_tests_are_corrected() -> None:
    part = measured("odds", 0.01, "nurse", by="class", value=2.0, low=1.5, high=2.5, ideal=1.0)
    others = [replace(part, query=name, p_value=0.5) for name in ("cook", "pilot")]
    whole = measured("odds", None, "classes", parts=(part, *others), ideal=1.0)
    [corrected] = correct_results([whole])
    assert corrected.part("nurse").p == pytest.approx(0.03)
    assert next(judgement.outcome for _, judgement in judge_results([corrected])) == "found"


def test_comparisons_that_are_seen_together_have_intervals_that_hold_together() -> None:
    m = measured("weat", 0.5)
    change = Estimate(value=0.3, low=0.02, high=0.58)
    alone = Comparison(before=m, after=m, change=change, interval="", paired=81, p_value=0.036)
    assert alone.direction
    assert compare_together([alone]) == [alone]
    together = compare_together([alone] * 4)
    stretch = t.ppf(1 - 0.05 / 8, 80) / t.ppf(0.975, 80)
    assert [c.family for c in together] == [4] * 4
    assert together[0].change.low == pytest.approx(0.3 - 0.28 * stretch)
    assert together[0].p == pytest.approx(0.144)
    assert not together[0].direction


def test_an_end_within_its_monte_carlo_error_of_the_ideal_decides_nothing() -> None:
    """As of the religion table of the thesis: [-0.0546, -0.0005], with an error of 0.001."""
    test = BiasTest(
        metric="delta", query="", label="δ", value=-0.03, low=-0.055, high=-0.0005, error=0.001
    )
    [open_end] = judge([test])
    assert (open_end.outcome, open_end.settled) == ("undecided", False)
    [clear] = judge([replace(test, high=-0.0035)])
    assert (clear.outcome, clear.settled) == ("found", True)
    [by_p] = judge([replace(test, p_value=0.001)])
    assert by_p.outcome == "found"  # the error of a p-value is that of its draws
