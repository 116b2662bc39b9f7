"""Rules are judged by intervals, changes are paired, and nothing passes for want of a number."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from xml.etree import ElementTree

import numpy as np
import pytest
from gate_worlds import estimate, mean_of

import evenhand as eh
from evenhand.errors import FileError, InputError, LexiconError, UnknownNameError
from evenhand.gate import Policy, Rule, check, draft_policy, plan, read_policy, read_results
from evenhand.results import Comparison, Estimate, Measurements

M = estimate(0.2, 0.1, 0.3)


@pytest.mark.parametrize(
    ("limits", "state", "reason"),
    [
        ({"max": 0.05}, "not met", "the interval is above the limit"),
        ({"max": 0.15}, "inconclusive", "the interval crosses the upper limit"),
        ({"max": 0.25}, "inconclusive", "the interval crosses the upper limit"),
        ({"max": 0.3}, "met", "the interval is inside the limits"),
        ({"min": 0.1}, "met", "the interval is inside the limits"),
        ({"min": 0.2}, "inconclusive", "the interval crosses the lower limit"),
        ({"min": 0.31}, "not met", "the interval is below the limit"),
        ({"min": -0.1, "max": 0.05}, "not met", "the interval is above the limit"),
        (
            {"min": 0.15, "max": 0.25},
            "inconclusive",
            "the interval crosses the lower and the upper limit",
        ),
        ({"min": 0.0, "max": 0.4}, "met", "the interval is inside the limits"),
    ],
)
def test_the_interval_decides_and_not_the_value(limits, state, reason):
    for fails_if, failing in (
        ("clearly outside", {"not met"}),
        ("possibly outside", {"not met", "inconclusive"}),
    ):
        result = check({"metric": "demo", "fails_if": fails_if, **limits}, M)
        assert [(row.outcome, row.reason) for row in result.rows] == [(state, reason)]
        assert result.state == state
        assert result.met == (state == "met")
        assert bool(result.failed) == (state in failing)


def test_a_policy_rules_where_a_rule_does_not():
    rule = Rule(metric="demo", max=0.25)
    assert check(rule, M).failed
    assert check(Policy(rules=(rule,), fails_if="possibly outside"), M).failed
    assert not check(Policy(rules=(rule,), fails_if="clearly outside"), M).failed
    own = replace(rule, fails_if="clearly outside")
    assert not check(Policy(rules=(own,), fails_if="possibly outside"), M).failed
    own = replace(rule, fails_if="possibly outside")
    assert check(Policy(rules=(own,), fails_if="clearly outside"), M).failed


def test_the_state_of_a_gate_is_that_of_its_worst_rule():
    def state(*limits, **more):
        rules = tuple(Rule(metric="demo", max=limit) for limit in limits)
        return check(Policy(rules=rules, **more), M)

    assert state(0.4, 0.5).summary == "gate met: 2 met"
    crossing = state(0.4, 0.25)
    assert (crossing.state, crossing.met) == ("inconclusive", False)
    assert crossing.summary == (
        "gate inconclusive, which fails by this policy: 1 met, 1 inconclusive"
    )
    tolerated = state(0.4, 0.25, fails_if="clearly outside")
    assert (tolerated.state, tolerated.met, tolerated.failed) == ("inconclusive", False, ())
    assert tolerated.summary == (
        "gate inconclusive, which does not fail by this policy: 1 met, 1 inconclusive"
    )
    worst = state(0.4, 0.25, 0.05)
    assert (worst.state, worst.met) == ("not met", False)
    assert worst.summary == "gate not met: 1 met, 1 not met, 1 inconclusive"


def test_fewer_items_never_pass_more_easily():
    """With a true mean at the limit or above it, however few items: met in 2.5 % or less."""
    rng = np.random.default_rng(11)
    shares = {}
    for n in (3, 5, 10, 40, 160):
        for shift in (0.0, 0.1):
            drawn = rng.normal(0.5 + shift, 1, (600, n))
            rule = {"metric": "demo", "max": 0.5}
            failing = [bool(check(rule, mean_of(scores, items=False)).failed) for scores in drawn]
            shares[n, shift] = 1 - np.mean(failing)
    assert max(shares.values()) < 0.05
    few, many = ({"low": 0.5 - half, "high": 0.5 + half} for half in (0.4, 0.04))
    assert check({"metric": "demo", "max": 0.6}, estimate(0.5, **few)).failed
    assert check({"metric": "demo", "max": 0.6}, estimate(0.5, **many)).met


@pytest.mark.parametrize(
    ("limits", "ideal", "line"),
    [
        ({"max": 0.5}, 0.0, "write min = -0.5 and max = 0.5"),
        ({"min": -0.3}, 0.0, "write min = -0.3 and max = 0.3"),
        ({"max": 0.6}, 0.5, "write min = 0.4 and max = 0.6"),
        ({"max": 0.5}, 0.5, "expected min and max, got max alone"),
        ({"min": 0.6}, 0.5, "expected min and max, got min alone"),
        (
            {"max_change": 0.1},
            0.0,
            "write min_change = -0.1 and max_change = 0.1, or max_worsening = 0.1",
        ),
    ],
)
def test_one_limit_alone_is_refused_where_bias_is_on_both_sides(limits, ideal, line):
    m = mean_of([-0.5, -0.9, -0.7], worse="away", ideal=ideal)
    with pytest.raises(InputError) as error:
        check({"metric": "demo", **limits}, m, m)
    assert str(error.value).startswith(f"rule 'demo': demo can lie on either side of {ideal:g}: ")
    assert line in str(error.value)
    with pytest.raises(InputError, match="can lie on either side"):
        plan({"metric": "demo", **limits}, m, m)


def test_the_line_to_write_instead_of_one_limit_is_accepted():
    m = estimate(-0.701, -0.9, -0.5, worse="away")
    assert check({"metric": "demo", "min": -0.4, "max": 0.4}, m).state == "not met"
    assert check({"metric": "demo", "max": 0.5}, estimate(0.1, 0.0, 0.2)).met  # one side is worse
    free = estimate(0.1, 0.0, 0.2, worse="away", ideal=None)
    assert check({"metric": "demo", "max": 0.5}, free).met  # no ideal, no sides


def test_one_limit_alone_on_a_declared_measure_is_refused_with_the_file(tmp_path):
    path = tmp_path / "policy.toml"
    for rule, line in (
        ("metric = 'weat'\nmax = 0.5", "write min = -0.5 and max = 0.5"),
        ("metric = 'crows'\nmax = 0.6", "write min = 0.4 and max = 0.6"),
        ("metric = 'odds'\nmax = 1.25", "write min = 0.8 and max = 1.25"),
        ("metric = 'odds'\nmax_change = 1.25", "or max_worsening = 1.25"),
    ):
        path.write_text(f"[[rules]]\n{rule}\n")
        with pytest.raises(LexiconError, match=r"rules #1: .* can lie on either side") as error:
            check(path, M)
        assert line in str(error.value)
        assert str(path) in str(error.value)


def test_one_limit_alone_is_refused_for_parts_by_their_own_ideal():
    part = estimate(-0.4, -0.5, -0.3, query="a", by="class", worse="away")
    assert check({"metric": "demo", "max": 0.5}, replace(M, parts=(part,))).met
    with pytest.raises(InputError, match=r"rule 'demo class': .*write min = -0.1 and max = 0.1"):
        check({"metric": "demo", "by": "class", "max": 0.1}, replace(M, parts=(part,)))


def test_a_rule_judges_every_measurement_that_it_selects():
    other = estimate(0.9, 0.8, 1.0, query="r", subject="model")
    result = check({"metric": "demo", "max": 0.5}, [M, other])
    assert [(row.query, row.outcome) for row in result.rows] == [("q", "met"), ("r", "not met")]
    assert [
        row.query for row in check({"metric": "demo", "query": "r", "max": 1}, [M, other]).rows
    ] == ["r"]
    chosen = check({"metric": "demo", "subject": "model", "max": 1.0}, [M, other])
    assert [row.subject for row in chosen.rows] == ["model"]


def test_parts_are_selected_by_name_and_kind():
    parts = (
        estimate(0.9, 0.8, 1.0, query="religion", by="category"),
        estimate(0.1, 0.0, 0.2, query="age", by="category"),
        estimate(0.5, 0.4, 0.6, query="t1", by="template"),
    )
    whole = replace(M, parts=parts)
    one = check({"metric": "demo", "part": "religion", "max": 0.5}, whole)
    assert [row.outcome for row in one.rows] == ["not met"]
    assert one.rows[0].query == "q, category: religion"
    every = check({"metric": "demo", "by": "category", "max": 0.5}, whole)
    assert [row.outcome for row in every.rows] == ["not met", "met"]
    none = check({"metric": "demo", "part": "religon", "max": 0.5}, whole)
    assert "did you mean 'religion'?" in none.rows[0].reason


@pytest.mark.parametrize(
    ("missing", "outcome", "fails"),
    [("fail", "not met", True), ("warn", "warning", False), ("ignore", "ignored", False)],
)
def test_what_was_not_measured_is_as_the_policy_says(missing, outcome, fails):
    for rule, measured in (
        ({"metric": "demo", "query": "qq"}, M),
        ({"metric": "demo"}, estimate(math.nan, -math.inf, math.inf)),
        ({"metric": "demo"}, estimate(0.1, -math.inf, math.inf)),
        ({"metric": "weat"}, M),
    ):
        result = check({**rule, "min": -1.0, "max": 1.0, "missing": missing}, measured)
        assert [row.outcome for row in result.rows] == [outcome]
        assert bool(result.failed) == fails
        assert not result.met  # nothing was measured, so nothing is met
        assert result.rows[0].reason.startswith("not measured: ")
    rules = (Rule(metric="demo", max=1.0), Rule(metric="demo", query="x", max=1, missing=missing))
    assert check(Policy(rules=rules), M).met == (not fails)


def test_the_reason_of_a_skipped_measure_is_shown():
    skipped = Measurements([M], [{"metric": "weat", "query": "x", "reason": "no such words"}])
    assert (
        check({"metric": "weat", "min": -1, "max": 1}, skipped)
        .rows[0]
        .reason.endswith("no such words")
    )


# ------------------------------------------------------------------------------------- changes


def test_the_change_is_that_of_compare_on_the_same_items():
    rng = np.random.default_rng(0)
    items = rng.normal(0, 1, 60)
    before, after = mean_of(items), mean_of(items + rng.normal(0.1, 0.05, 60), subject="new")
    row = check({"metric": "demo", "max_worsening": 0.0}, after, before).rows[0]
    assert row.outcome == "not met"  # although the two intervals overlap almost entirely
    expected = eh.compare(before, after).change
    assert row.estimate == expected
    assert row.n == 60
    lower = [replace(m, worse="lower") for m in (before, after)]
    assert check({"metric": "demo", "max_worsening": 0.0}, lower[1], lower[0]).met
    assert check({"metric": "demo", "max_change": 0.2}, after, before).met
    assert not check({"metric": "demo", "max_change": 0.05}, after, before).met
    assert check({"metric": "demo", "max_worsening": 0.0}, before, before).met


def test_a_model_against_itself_has_not_changed():
    m = mean_of(np.random.default_rng(1).normal(size=20))
    for fails_if in ("clearly outside", "possibly outside"):
        assert check({"metric": "demo", "max_worsening": 0.0, "fails_if": fails_if}, m, m).met


@pytest.mark.parametrize(
    ("before", "change", "worse"),
    [
        (0.5, (0.2, 0.1, 0.3), (0.2, 0.1, 0.3)),
        (-0.5, (0.2, 0.1, 0.3), (-0.2, -0.3, -0.1)),
        (-0.5, (0.9, 0.8, 1.2), (-0.1, -0.2, 0.2)),  # on the other side of the ideal
        (-0.2, (0.2, 0.1, 0.3), (-0.2, -0.2, -0.1)),  # the ideal is inside the interval
    ],
)
def test_a_worsening_away_from_the_ideal_is_a_change_of_the_distance(before, change, worse):
    one = estimate(1 + before, 0.0, 2.0, ideal=1.0, worse="away")
    two = estimate(1 + before + change[0], 0.0, 2.0, ideal=1.0, worse="away")
    c = Comparison(
        before=one, after=two, change=Estimate.of(change), interval="", paired=10, details={}
    )
    row = check({"metric": "demo", "max_worsening": 0.0}, c).rows[0]
    assert [row.estimate.value, row.estimate.low, row.estimate.high] == pytest.approx(worse)


def test_ratios_are_factors():
    one, two = (estimate(x, 0.1, 9.0, ideal=1.0, worse="away") for x in (2.0, 4.0))
    c = Comparison(
        before=one,
        after=two,
        change=Estimate.of((2.0, 1.5, 3.0)),
        interval="",
        paired=9,
        kind="ratio",
    )
    row = check({"metric": "demo", "max_worsening": 1.2}, c).rows[0]
    assert row.outcome == "not met"
    assert row.estimate.low == pytest.approx(1.5)
    less = replace(c, before=replace(one, value=0.25), after=replace(two, value=0.5))
    row = check({"metric": "demo", "max_worsening": 1.2}, less).rows[0]
    assert row.estimate.value == pytest.approx(0.5)


def test_the_stored_interval_of_the_distance_is_used():
    one, two = (estimate(value, 0.0, 1.0, worse="away") for value in (0.5, 0.7))
    stored = {"value": 0.1, "low": -0.1, "high": 0.2, "prob": 0.95}
    c = Comparison(
        before=one,
        after=two,
        change=Estimate.of((0.2, 0.1, 0.3)),
        interval="",
        paired=9,
        details={"distance": stored},
    )
    assert check({"metric": "demo", "max_worsening": 0.0}, c).rows[0].estimate.low == -0.1


def test_models_by_item_scores_are_gated_against_each_other(tmp_path):
    import pandas as pd

    rng = np.random.default_rng(3)
    base = rng.normal(size=80)
    frame = pd.DataFrame(
        {
            "item": np.tile(np.arange(80), 2),
            "model": np.repeat(["old", "new"], 80),
            "score": np.concatenate([base, base - 0.5 + rng.normal(0, 0.2, 80)]),
        }
    )
    scored = eh.scores.analyze(frame)
    path = tmp_path / "scores.json"
    scored.save(path)
    rule = {"metric": "mean_score", "query": "new", "against": "old", "max_worsening": 0.1}
    for source in (scored, path):
        row = check(rule, source).rows[0]
        assert row.outcome == "not met"
        assert row.estimate.value == pytest.approx(0.5, abs=0.1)
    back = {**rule, "query": "old", "against": "new"}
    assert check(back, scored).met


def test_without_items_a_change_is_not_measured():
    items = np.random.default_rng(0).normal(size=20)
    row = check(
        {"metric": "demo", "max_worsening": 0.0}, mean_of(items), mean_of(items, items=False)
    ).rows[0]
    assert row.outcome == "not met"
    assert "without items" in row.reason
    assert "saved ones and those of an audit do" in row.reason
    other = replace(mean_of(items), query="other")
    row = check({"metric": "demo", "max_worsening": 0.0}, mean_of(items), other).rows[0]
    assert "the baseline does not have it" in row.reason


def test_another_probability_widens_the_interval_as_the_t_distribution_does():
    scores = np.random.default_rng(5).normal(size=12)
    row = check({"metric": "demo", "max": 9.0, "prob": 0.99}, mean_of(scores)).rows[0]
    wide = mean_of(scores, prob=0.99)
    assert (row.estimate.low, row.estimate.high) == pytest.approx((wide.low, wide.high))


def test_another_probability_takes_the_degrees_of_freedom_of_the_interval():
    """Three clusters of 50 items: the interval has 2 degrees of freedom, not 49."""
    m = estimate(0.2, 0.1, 0.3, details={"df": 2})
    row = check({"metric": "demo", "max": 9.0, "prob": 0.99}, m).rows[0]
    assert row.estimate.high == pytest.approx(0.2 + 0.1 * 9.924843 / 4.302653)
    ratio = estimate(2.0, 1.0, 4.0, metric="odds", ideal=1.0, worse="away", n=1000)
    row = check({"metric": "odds", "min": 0.1, "max": 9.0, "prob": 0.99}, ratio).rows[0]
    assert row.estimate.high == pytest.approx(2 * 2 ** (2.580759 / 1.962341))


# --------------------------------------------------------------------------- policies and files


def test_a_policy_file(tmp_path):
    path = tmp_path / "policy.toml"
    path.write_text(
        'title = "Release"\nmissing = "warn"\n'
        '[[rules]]\nmetric = "demo"\nmax = 1\n[[rules]]\nmetric = "demo"\nquery = "x"\nmin = 0\n'
    )
    policy = read_policy(path)
    assert policy.title == "Release"
    assert policy.rules[0].range == (-math.inf, 1.0)
    assert [row.outcome for row in check(path, M).rows] == ["met", "warning"]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("[[rules]\n", "line 1: not TOML"),
        ("title = 'x'\n", "the key 'rules' is missing"),
        ("rules = []\n", "rules: the list is empty"),
        ("[[rules]]\nmax = 1\n", "rules #1: the key 'metric' is missing"),
        ("[[rules]]\nmetric='a'\nmaxx = 1\n", "rules #1: unknown key 'maxx': did you mean 'max'?"),
        ("mising = 'warn'\n[[rules]]\nmetric='a'\nmax=1\n", "did you mean 'missing'?"),
        ("[[rules]]\nmetric='a'\nmax='1'\n", "rules #1.max: expected a number, got '1'"),
        ("[[rules]]\nmetric='a'\nmax=nan\n", "rules #1.max: expected a number, got nan"),
        ("[[rules]]\nmetric='a'\nmax=inf\n", "rules #1.max: expected a number, got inf"),
        ("[[rules]]\nmetric='a'\nmin=true\n", "rules #1.min: expected a number, got True"),
        ("prob=nan\n[[rules]]\nmetric='a'\nmax=1\n", "prob: expected a number, got nan"),
        ("prob=95\n[[rules]]\nmetric='a'\nmax=1\n", "prob: expected a number between 0 and 1"),
        ("[[rules]]\nmetric='a'\nmax=1\nprob=2\n", "expected a number between 0 and 1, got 2"),
        (
            "[[rules]]\nmetric='a'\nmax=1\nmissing='x'\n",
            "missing: expected one of fail, warn, ignore, got 'x'",
        ),
        (
            "[[rules]]\nmetric='a'\nmax=1\nfails_if='outside'\n",
            "fails_if: expected one of clearly outside, possibly outside",
        ),
        ("[[rules]]\nmetric='a'\n", "rules #1: expected a limit (min, max, min_change"),
        ("[[rules]]\nmetric='a'\nmax=1\nmax_change=1\n", "limits of one kind in a rule, got value"),
        ("[[rules]]\nmetric='a'\nmin=2\nmax=1\n", "expected min of max or less, got 2 and 1"),
        ("[[rules]]\nmetric='a'\nmax=1\nagainst='b'\n", "against is for limits of the change"),
    ],
)
def test_a_wrong_policy_is_one_line_with_the_place(tmp_path, text, message):
    path = tmp_path / "policy.toml"
    path.write_text(text)
    with pytest.raises(LexiconError) as error:
        check(path, M)
    assert message in str(error.value)
    assert str(path) in str(error.value)
    assert "\n" not in str(error.value)


def test_wrong_input_in_python():
    with pytest.raises(UnknownNameError, match="did you mean 'weat'"):
        check({"metric": "waet", "max": 1}, M)
    with pytest.raises(UnknownNameError, match="key of a rule 'maxx': did you mean 'max'"):
        check({"metric": "demo", "maxx": 1}, M)
    with pytest.raises(InputError, match="'metric' is missing"):
        check({"max": 1}, M)
    with pytest.raises(InputError, match="expected a baseline"):
        check({"metric": "demo", "max_worsening": 1}, M)
    free = mean_of([1.0, 2.0, 4.0], worse="away", ideal=None)
    with pytest.raises(InputError, match="no value without bias"):
        check({"metric": "demo", "max_worsening": 0.0}, free, free)
    with pytest.raises(InputError, match="expected a path, a measurement"):
        check({"metric": "demo", "max": 1}, 3)


@pytest.mark.parametrize(
    ("keys", "message"),
    [
        ({"max": math.nan}, "max: expected a number, got nan"),
        ({"max": math.inf}, "max: expected a number, got inf"),
        ({"min": True}, "min: expected a number, got True"),
        ({"max": "1"}, "max: expected a number, got '1'"),
        ({"max_worsening": math.nan}, "max_worsening: expected a number, got nan"),
        ({"max": 1, "prob": 2}, "prob: expected a number between 0 and 1, got 2"),
        ({"max": 1, "prob": math.nan}, "prob: expected a number, got nan"),
        ({"min": 2, "max": 1}, "expected min of max or less, got 2 and 1"),
        ({}, "expected a limit"),
        ({"max": None}, "expected a limit"),
        ({"max": 1, "fails_if": "outside"}, "fails_if: expected one of clearly outside"),
        ({"max": 1, "missing": "skip"}, "missing: expected one of fail, warn, ignore, got 'skip'"),
    ],
)
def test_a_wrong_rule_in_python_is_refused_and_never_met(keys, message):
    rule = {"metric": "demo", **keys}
    for source in (rule, Rule(**rule), Policy(rules=(Rule(**rule),))):
        with pytest.raises(InputError) as error:
            check(source, M)
        assert message in str(error.value)
        assert str(error.value).startswith(("rule", "policy"))
        assert "\n" not in str(error.value)


def test_a_wrong_policy_in_python_is_refused():
    rule = Rule(metric="demo", max=1.0)
    for more, message in (
        ({"rules": ()}, "policy: rules: the list is empty"),
        ({"rules": (3,)}, "policy: rules #1: expected a table"),
        ({"rules": (rule,), "prob": 2}, "policy: prob: expected a number between 0 and 1, got 2"),
        ({"rules": (rule,), "fails_if": "never"}, "policy: fails_if: expected one of"),
    ):
        with pytest.raises(InputError) as error:
            check(Policy(**more), M)
        assert message in str(error.value)
    assert check(Rule(metric="demo", max=np.float32(0.5)), M).met


def test_no_results_are_an_error_and_not_met():
    rule = {"metric": "weat", "min": -1.0, "max": 1.0, "missing": "ignore"}
    for results in ([], (), Measurements([]), [[]]):
        with pytest.raises(InputError, match="gate: expected results, got none"):
            check(rule, results)
    with pytest.raises(InputError, match="gate: expected results, got none"):
        check({"metric": "demo", "max_worsening": 0.0}, M, [])


def test_results_that_are_not_ours(tmp_path):
    other, empty, folder = tmp_path / "a.json", tmp_path / "b.json", tmp_path / "folder"
    other.write_text('{"accuracy": 1}')
    empty.write_text('{"schema": "evenhand/2", "words": []}')
    folder.mkdir()
    for path, message in (
        (other, "expected a document with the schema"),
        (empty, "expected measurements, got none in words"),
        (folder, "with results.json, got none"),
        (tmp_path / "none.json", "no such file"),
    ):
        with pytest.raises(FileError, match=message):
            read_results(path)
    empty.write_text(
        json.dumps({"schema": "evenhand/2", "measurements": [{**M.to_dict(), "x": 1}]})
    )
    with pytest.raises(FileError, match="expected measurements, got another form"):
        read_results(empty)


def test_an_audit_is_read_without_what_it_changed(tmp_path):
    changed = estimate(0.0, -0.1, 0.1, query="after")
    stages = [
        {"name": "a", "measures": True, "measurements": [M.to_dict()], "skipped": []},
        {"name": "b", "measures": False, "measurements": [changed.to_dict()], "skipped": []},
        {
            "name": "c",
            "measures": True,
            "measurements": [],
            "skipped": [{"metric": "m", "query": "", "reason": "why"}],
        },
    ]
    path = tmp_path / "results.json"
    path.write_text(json.dumps({"schema": "evenhand/2", "stages": stages}))
    results = read_results(tmp_path, path)
    assert results.measurements == (M,)
    assert results.skipped[0]["reason"] == "why"


# -------------------------------------------------------------------------------- what is written


@pytest.fixture
def mixed():
    rules = (
        Rule(metric="demo", max=0.05, name="a | b <c>"),
        Rule(metric="demo", max=1.0),
        Rule(metric="demo", query="x", max=1.0, missing="warn"),
        Rule(metric="demo", query="x", max=1.0, missing="ignore"),
        Rule(metric="demo", max=0.25, name="crossing"),
        Rule(metric="demo", max=0.25, name="tolerated", fails_if="clearly outside"),
    )
    return check(Policy(rules=rules, title="Release & more"), M)


def test_junit_has_what_ci_systems_read(mixed):
    root = ElementTree.fromstring(mixed.to_junit())  # noqa: S314
    (suite,) = root
    assert (root.tag, suite.tag) == ("testsuites", "testsuite")
    for counted in (root.attrib, suite.attrib):
        assert {name: counted[name] for name in ("tests", "failures", "errors", "skipped")} == {
            "tests": "6",
            "failures": "2",
            "errors": "0",
            "skipped": "3",
        }
    assert suite.get("name") == "Release & more"
    cases = suite.findall("testcase")
    assert len({case.get("name") for case in cases}) == 6
    assert all(case.get("classname") == "evenhand.demo" and case.get("time") for case in cases)
    assert [[child.tag for child in case] for case in cases] == [
        ["failure"],
        ["system-out"],
        ["skipped"],
        ["skipped"],
        ["failure"],
        ["skipped"],
    ]
    failure = cases[0].find("failure")
    assert failure.get("message") == "the interval is above the limit"
    assert failure.get("type") == "not met"
    assert "0.200" in failure.text
    crossing = "inconclusive: the interval crosses the upper limit"
    assert (cases[4][0].get("type"), cases[4][0].get("message")) == ("inconclusive", crossing)
    assert cases[5][0].get("message") == crossing


def test_markdown_is_a_table_with_what_is_not_met_first(mixed):
    text = mixed.to_markdown()
    lines = text.splitlines()
    assert lines[0] == "### Release &amp; more: not met"
    rows = [line for line in lines if line.startswith("| ")]
    assert len({line.replace("\\|", "").count("|") for line in rows}) == 1
    assert "a \\| b &lt;c&gt;" in rows[2]
    assert [row.split(" | ")[4] for row in rows[2:]] == [
        "❌ not met",
        "❔ inconclusive",
        "❔ inconclusive",
        "⚠️ warning",
        "ignored",
        "✅ met",
    ]
    tolerated = check({"metric": "demo", "max": 0.25, "fails_if": "clearly outside"}, M)
    text = tolerated.to_markdown()
    assert text.startswith("### Bias gate: inconclusive\n")
    assert "✅" not in text


def test_other_forms(mixed, tmp_path):
    frame = mixed.to_frame()
    states = ["not met", "met", "warning", "ignored", "inconclusive", "inconclusive"]
    assert list(frame["outcome"]) == states
    assert list(frame["fails"]) == [True, False, False, False, True, False]
    assert frame["low"].isna().sum() == 2
    mixed.save(tmp_path / "gate.json")
    saved = json.loads((tmp_path / "gate.json").read_text())
    assert saved["gate"]["met"] is False
    assert (saved["gate"]["state"], saved["gate"]["fails"]) == ("not met", True)
    assert [row["outcome"] for row in saved["gate"]["rules"]] == states
    assert "<table>" in mixed._repr_html_()
    assert str(mixed).splitlines()[-1].startswith("gate not met: 1 met, 1 not met, 2 inc")


# ------------------------------------------------------------------------------- a first policy


@pytest.mark.parametrize("worse", ["higher", "lower", "away"])
@pytest.mark.parametrize("ideal", [None, 0.0, 1.0])
def test_a_first_policy_is_met_by_its_own_results(tmp_path, worse, ideal):
    rng = np.random.default_rng(7)
    measured = [
        mean_of(rng.normal(m, 1, 15), query=f'q "{i}"', worse=worse, ideal=ideal, subject="s")
        for i, m in enumerate((-3.0, -0.01, 0.0, 0.002, 5.0))
    ]
    zero = mean_of(np.zeros(5), query="zero", worse=worse, ideal=ideal)
    measured.append(replace(zero, low=0.0, high=0.0))
    path = tmp_path / "policy.toml"
    path.write_text(draft_policy(measured))
    result = check(path, measured)
    assert len(result.rows) == len(measured)
    assert result.met
    path.write_text(draft_policy(measured, baseline=True))
    assert check(path, measured, measured).met


def test_a_first_policy_allows_a_worsening_as_far_as_the_interval_of_today(tmp_path):
    """A limit of 0 could be met by a model that is clearly better only."""
    rng = np.random.default_rng(3)
    items = rng.normal(0.5, 1, 60)
    for worse, ideal in (("higher", 0.0), ("lower", 0.0), ("away", 0.0), ("away", 2.0)):
        before = mean_of(items, worse=worse, ideal=ideal)
        retrained = mean_of(items + rng.normal(0, 0.1, 60), worse=worse, ideal=ideal)
        path = tmp_path / "policy.toml"
        path.write_text(draft_policy(before, baseline=True))
        (rule,) = read_policy(path).rules
        half = (before.high - before.low) / 2
        assert half <= rule.max_worsening <= half * 1.001
        assert check(path, retrained, before).met
        up = worse == "higher" or (worse == "away" and ideal == 0.0)
        shifted = items + rng.normal(1.5 if up else -1.5, 0.01, 60) * half
        worsened = mean_of(shifted, worse=worse, ideal=ideal)
        assert check(path, worsened, before).state == "not met"
    ratio = estimate(2.0, 1.0, 4.0, metric="odds", ideal=1.0, worse="away")
    assert "max_worsening = 2.0" in draft_policy(ratio)


def test_a_first_policy_names_the_subject_only_where_there_are_several():
    one = estimate(0.2, 0.1, 0.3, subject="a")
    assert "subject" not in draft_policy(one)
    assert draft_policy([one, replace(one, subject="b")]).count("subject = ") == 2
    with pytest.raises(InputError, match="with an interval"):
        draft_policy(estimate(0.1, -math.inf, math.inf))


def test_a_first_policy_of_many_measures_has_those_that_decide():
    many = [estimate(0.2, 0.1, 0.3, query=f"q{i}") for i in range(30)]
    leads = estimate(0.2, 0.1, 0.3, metric="pronouns")
    text = draft_policy([*many, leads])
    assert text.count("[[rules]]") == 1
    assert "# demo (q29)" in text


def test_a_first_policy_against_a_baseline_limits_the_value_of_what_is_not_paired(tmp_path):
    paired = mean_of(np.random.default_rng(8).normal(size=12))
    others = [
        replace(paired, query="a", items={"word": ["a"], "score": [1.0]}),
        replace(paired, query="b", items={}),
    ]
    path = tmp_path / "policy.toml"
    path.write_text(draft_policy([paired, *others], baseline=True))
    result = check(path, [paired, *others], [paired, *others])
    assert [row.limits for row in result.rows] == ["worsening", "value", "value"]
    assert result.met
    with pytest.raises(InputError, match=r"results printed as JSON have no items"):
        draft_policy(others, baseline=True)


@pytest.mark.parametrize(
    "wrong",
    [
        {"value": "x"},
        {"items": [1, 2]},
        {"items": "abc"},
        {"parts": 3},
        {"parts": [1]},
        {"metric": 3},
        {"worse": "up"},
        {"n": "many"},
    ],
)
def test_a_damaged_document_is_refused_in_one_line(tmp_path, wrong):
    path = tmp_path / "results.json"
    row = {**M.to_dict(), **wrong}
    path.write_text(json.dumps({"schema": "evenhand/2", "measurements": [row]}))
    with pytest.raises(FileError, match="got another form"):
        check({"metric": "demo", "max": 1.0}, path)
