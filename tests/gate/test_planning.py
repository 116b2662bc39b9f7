"""The operating curve against worlds in which items are drawn and the truth is known."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from gate_worlds import estimate, mean_of

from evenhand.errors import InputError
from evenhand.gate import check, plan

WORLDS = 400
SLACK = 3.3 * np.sqrt(0.25 / WORLDS)
"""More than a simulated share is off by chance, whatever the share."""


def draw_pair(rng, worsening, *, n=40, mean=0.5, noise=0.3):
    """Two models on the same items: the second is worse by `worsening` in the mean of all items."""
    items = rng.normal(mean, 1, n)
    return mean_of(items), mean_of(items + worsening + rng.normal(0, noise, n))


def simulated_share(rule, worsening, *, seed, by_value=False, **world):
    rng = np.random.default_rng(seed)
    failed = 0
    for _ in range(WORLDS):
        before, after = draw_pair(rng, worsening, **world)
        row = check(rule, after, before).rows[0]
        failed += row.estimate.value > row.max if by_value else row.fails
    return failed / WORLDS


@pytest.mark.parametrize("fails_if", ["clearly outside", "possibly outside"])
@pytest.mark.parametrize("limit", [0.0, 0.1])
def test_paired_changes_fail_as_often_as_planned(fails_if, limit):
    rule = {"metric": "demo", "max_worsening": limit, "fails_if": fails_if}
    rng = np.random.default_rng(0)
    before, after = draw_pair(rng, 0.0)
    planned = plan(rule, after, before, worsenings=[0.1, 0.15], seed=1)
    (row,) = planned.rows
    # the plan has the standard error of one pair of measurements: with 40 items it is 11 % off
    assert row.standard_error == pytest.approx(0.3 / np.sqrt(40), rel=0.35)
    exact = plan(rule, *_typical_pair(), worsenings=[0.1, 0.15], seed=1).rows[0]
    assert simulated_share(rule, 0.0, seed=2) == pytest.approx(exact.false_alarms, abs=SLACK)
    for point in exact.curve:
        share = simulated_share(rule, point.worsening, seed=3)
        assert share == pytest.approx(point.fails, abs=SLACK)


def _typical_pair(n=40, noise=0.3):
    """After and before, whose paired differences have exactly the spread of the world."""
    rng = np.random.default_rng(9)
    items, difference = rng.normal(0.5, 1, n), rng.normal(size=n)
    difference = noise * (difference - difference.mean()) / difference.std(ddof=1)
    return mean_of(items + difference), mean_of(items)


def test_a_gate_by_values_flickers_and_one_by_intervals_does_not():
    rule = {"metric": "demo", "max_worsening": 0.0, "fails_if": "clearly outside"}
    row = plan(rule, *_typical_pair()).rows[0]
    assert row.false_alarms == pytest.approx(0.025, abs=0.006)
    assert row.false_alarms_by_value == pytest.approx(0.5, abs=0.02)
    assert simulated_share(rule, 0.0, seed=5) < 0.06
    assert simulated_share(rule, 0.0, seed=5, by_value=True) > 0.4


def test_values_fail_as_often_as_planned():
    rng = np.random.default_rng(4)
    scores = rng.normal(size=30)
    scores = 0.4 + (scores - scores.mean()) / scores.std(ddof=1)
    today = mean_of(scores)
    rule = {"metric": "demo", "max": 0.5}
    row = plan(rule, today, worsenings=[0.4, 0.7]).rows[0]
    for point in (row.unchanged, *row.curve):
        drawn = rng.normal(0.4 + point.worsening, 1, (WORLDS, 30))
        states = [check(rule, mean_of(scores)).state for scores in drawn]
        for state, share in (
            ("met", point.met),
            ("inconclusive", point.inconclusive),
            ("not met", point.not_met),
        ):
            assert states.count(state) / WORLDS == pytest.approx(share, abs=SLACK)
        assert point.fails == pytest.approx(1 - point.met)


def test_the_states_of_a_model_that_has_not_changed():
    """At the limit a rule is nearly always inconclusive, with however many items."""
    limits = {"metric": "demo", "max": 0.2}
    for n in (3, 50, 5000):
        measured = estimate(0.2, 0.1, 0.3, n=n)
        for fails_if in ("clearly outside", "possibly outside"):
            row = plan({**limits, "fails_if": fails_if}, measured).rows[0]
            assert row.unchanged.met == pytest.approx(0.025, abs=0.006)
            assert row.unchanged.not_met == pytest.approx(0.025, abs=0.006)
            shares = row.unchanged.met, row.unchanged.inconclusive, row.unchanged.not_met
            assert sum(shares) == pytest.approx(1)
            failing = 0.025 if fails_if == "clearly outside" else 0.975
            assert row.false_alarms == row.unchanged.fails == pytest.approx(failing, abs=0.006)


def test_fewer_items_never_meet_a_limit_more_often_than_its_error_rate():
    """Outside or at the limit 2.5 % or less; inside, more items meet it more often."""
    shares = {}
    for truth in (0.2, 0.25, 0.4, 0.1):
        for n in (4, 16, 64, 256):
            half = 1.0 / np.sqrt(n)
            measured = estimate(truth, truth - half, truth + half, n=n)
            shares[truth, n] = plan({"metric": "demo", "max": 0.2}, measured).rows[0].unchanged.met
    assert all(share < 0.025 + 0.006 for (truth, _), share in shares.items() if truth >= 0.2)
    inside = [shares[0.1, n] for n in (4, 16, 64, 256)]
    assert inside == sorted(inside)
    assert inside[-1] > 0.3
    narrow = {"metric": "demo", "min": -0.2, "max": 0.2}  # shorter than the interval of few items
    assert plan(narrow, estimate(0.2, -0.3, 0.7, n=4)).rows[0].unchanged.met < 0.01


def test_the_degrees_of_freedom_of_the_interval_are_planned_with():
    row = plan({"metric": "demo", "max": 0.4}, estimate(0.2, 0.1, 0.3, details={"df": 2})).rows[0]
    assert row.standard_error == pytest.approx(0.1 / 4.302653)


def test_near_the_ideal_both_directions_are_a_worsening():
    rule = {"metric": "demo", "max_worsening": 0.0, "fails_if": "clearly outside"}
    after, before = _typical_pair()
    shifted = [mean_of(m.items["score"] - 0.5, worse="away") for m in (after, before)]
    near = plan(rule, *shifted).rows[0]
    far = plan(rule, mean_of(after.items["score"], worse="away"), before).rows[0]
    assert near.false_alarms == pytest.approx(2 * far.false_alarms, rel=0.4)
    rng = np.random.default_rng(6)
    failed = 0
    for _ in range(WORLDS):
        items = rng.normal(0, 1, 40)
        items -= items.mean() - before.items["score"].mean() + 0.5
        pair = [mean_of(x, worse="away") for x in (items + rng.normal(0, 0.3, 40), items)]
        failed += bool(check(rule, *pair).failed)
    assert failed / WORLDS == pytest.approx(near.false_alarms, abs=0.04)


def test_the_worsening_that_is_detected_is_on_the_curve():
    rule = {"metric": "demo", "max_worsening": 0.0, "fails_if": "clearly outside"}
    row = plan(rule, *_typical_pair()).rows[0]
    again = plan(rule, *_typical_pair(), worsenings=[row.detected]).rows[0]
    assert again.curve[0].fails == pytest.approx(0.8, abs=0.01)
    t = 2.0227  # of 39 degrees of freedom
    assert row.detected == pytest.approx((t + 0.85) * row.standard_error, rel=0.03)


@pytest.mark.parametrize("worse", ["higher", "lower", "away"])
def test_the_margin_is_met_in_four_of_five_cases(worse):
    pair = [replace(m, worse=worse) for m in _typical_pair()]
    margin = plan({"metric": "demo", "max_worsening": 0.0}, *pair).rows[0].margin
    row = plan({"metric": "demo", "max_worsening": margin}, *pair).rows[0]
    assert row.unchanged.met == pytest.approx(0.8, abs=0.01)
    assert row.margin == pytest.approx(margin)
    assert margin == pytest.approx((2.0227 + 0.85) * row.standard_error, rel=0.03)
    today = replace(pair[0], worse=worse, ideal=-9.0)
    lower = worse == "lower"
    margin = plan({"metric": "demo", "min": -99.0, "max": 99.0}, today).rows[0].margin
    limits = {"min": today.value - margin, "max": 99.0}
    limits = limits if lower else {"min": -99.0, "max": today.value + margin}
    met = plan({"metric": "demo", **limits}, today).rows[0].unchanged.met
    assert met == pytest.approx(0.8, abs=0.01)


def test_without_a_baseline_the_error_is_an_upper_bound():
    after, before = _typical_pair()
    rule = {"metric": "demo", "max_worsening": 0.0, "fails_if": "clearly outside"}
    alone = plan(rule, after).rows[0]
    assert alone.note.startswith("no baseline")
    assert alone.standard_error > plan(rule, after, before).rows[0].standard_error
    assert alone.false_alarms == pytest.approx(0.025, abs=0.006)
    same = plan(rule, after, after).rows[0]
    assert same.standard_error == pytest.approx(alone.standard_error)
    assert same.note.startswith("the baseline has the same answers")


def test_many_rules_raise_no_more_false_alarms(tmp_path):
    path = tmp_path / "policy.toml"
    rules = "".join(f'[[rules]]\nmetric = "demo"\nquery = "q{i}"\nmax = 0.2\n' for i in range(10))
    measured = [estimate(0.2, 0.1, 0.3, query=f"q{i}", n=400) for i in range(10)]
    clearly = 'fails_if = "clearly outside"\n'
    path.write_text(clearly + rules)
    many = plan(path, measured)
    assert many.false_alarms == pytest.approx(0.025, abs=0.01)
    path.write_text(clearly + "prob = 0.999\n" + rules)
    assert plan(path, measured).false_alarms < 0.02
    path.write_text(rules)
    strict = plan(path, measured)
    assert strict.met == pytest.approx(0.025**10, abs=1e-6)


def test_ratios_are_planned_on_the_logarithm():
    measured = estimate(2.0, 1.0, 4.0, metric="odds", ideal=1.0, n=500, worse="away")
    rule = {"metric": "odds", "min": 0.01, "max": 2.0, "fails_if": "clearly outside"}
    row = plan(rule, measured, worsenings=[2.0, 4.0]).rows[0]
    assert row.false_alarms == pytest.approx(0.025, abs=0.006)
    assert row.standard_error == pytest.approx(np.log(2) / 1.965, rel=0.01)
    assert row.curve[0].worsening == pytest.approx(2.0)
    assert row.detected == pytest.approx(np.exp(2.81 * row.standard_error), rel=0.05)


def test_the_same_seed_gives_the_same_plan_and_wrong_input_is_refused():
    m = estimate(0.2, 0.1, 0.3)
    rule = {"metric": "demo", "max": 0.2}
    assert plan(rule, m, seed=3).to_dict() == plan(rule, m, seed=3).to_dict()
    with pytest.raises(InputError, match="draws"):
        plan(rule, m, draws=1)
    with pytest.raises(InputError, match="worsening"):
        plan(rule, m, worsenings=[-1.0])
    with pytest.raises(InputError, match="can be planned"):
        plan({"metric": "demo", "query": "x", "max": 1.0}, m)
