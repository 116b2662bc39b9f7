"""The operating curve against worlds in which items are drawn and the truth is known."""

from __future__ import annotations

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
        failed += row.estimate.value > row.max if by_value else row.outcome == "failed"
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
    for worsening, share in exact.curve:
        assert simulated_share(rule, worsening, seed=3) == pytest.approx(share, abs=SLACK)


def _typical_pair(n=40, noise=0.3):
    """After and before, whose paired differences have exactly the spread of the world."""
    rng = np.random.default_rng(9)
    items, difference = rng.normal(0.5, 1, n), rng.normal(size=n)
    difference = noise * (difference - difference.mean()) / difference.std(ddof=1)
    return mean_of(items + difference), mean_of(items)


def test_a_gate_by_values_flickers_and_one_by_intervals_does_not():
    rule = {"metric": "demo", "max_worsening": 0.0}
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
    for worsening, share in [(0.0, row.false_alarms), *row.curve]:
        failed = [
            not check(rule, mean_of(rng.normal(0.4 + worsening, 1, 30))).met for _ in range(WORLDS)
        ]
        assert np.mean(failed) == pytest.approx(share, abs=SLACK)


def test_near_the_ideal_both_directions_are_a_worsening():
    rule = {"metric": "demo", "max_worsening": 0.0}
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
        failed += not check(rule, *pair).met
    assert failed / WORLDS == pytest.approx(near.false_alarms, abs=0.04)


def test_the_worsening_that_is_detected_is_on_the_curve():
    rule = {"metric": "demo", "max_worsening": 0.0}
    row = plan(rule, *_typical_pair()).rows[0]
    again = plan(rule, *_typical_pair(), worsenings=[row.detected]).rows[0]
    assert again.curve[0][1] == pytest.approx(0.8, abs=0.01)
    t = 2.0227  # of 39 degrees of freedom
    assert row.detected == pytest.approx((t + 0.85) * row.standard_error, rel=0.03)


def test_without_a_baseline_the_error_is_an_upper_bound():
    after, before = _typical_pair()
    rule = {"metric": "demo", "max_worsening": 0.0}
    alone = plan(rule, after).rows[0]
    assert alone.note.startswith("no baseline")
    assert alone.standard_error > plan(rule, after, before).rows[0].standard_error
    assert alone.false_alarms == pytest.approx(0.025, abs=0.006)
    same = plan(rule, after, after).rows[0]
    assert same.standard_error == pytest.approx(alone.standard_error)
    assert same.note.startswith("the baseline has the same answers")


def test_many_rules_raise_more_false_alarms_and_a_higher_probability_fewer(tmp_path):
    path = tmp_path / "policy.toml"
    rules = "".join(f'[[rules]]\nmetric = "demo"\nquery = "q{i}"\nmax = 0.2\n' for i in range(10))
    measured = [estimate(0.2, 0.1, 0.3, query=f"q{i}", n=400) for i in range(10)]
    path.write_text(rules)
    many = plan(path, measured)
    assert many.false_alarms == pytest.approx(1 - 0.975**10, abs=0.03)
    path.write_text("prob = 0.999\n" + rules)
    assert plan(path, measured).false_alarms < 0.02


def test_ratios_are_planned_on_the_logarithm():
    measured = estimate(2.0, 1.0, 4.0, metric="odds", ideal=1.0, n=500)
    row = plan({"metric": "odds", "max": 2.0}, measured, worsenings=[2.0, 4.0]).rows[0]
    assert row.false_alarms == pytest.approx(0.025, abs=0.006)
    assert row.standard_error == pytest.approx(np.log(2) / 1.965, rel=0.01)
    assert row.curve[0][0] == pytest.approx(2.0)
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
