"""Shares corrected for a judge's errors."""

import math

import numpy as np
import pytest

from evenhand.statistics.misclassification import JudgedShare, correct_shares


def judged(share, a, b, positives=200, negatives=200, worth=1000):
    return JudgedShare(
        share=share,
        worth=worth,
        positives=positives,
        found=a * positives,
        negatives=negatives,
        cleared=b * negatives,
    )


def test_the_value_is_rogan_and_gladens():
    side = judged(0.4, 0.9, 0.8)
    assert side.corrected == pytest.approx((0.4 + 0.8 - 1) / (0.9 + 0.8 - 1))
    found = correct_shares([side])
    assert found.value == pytest.approx(side.corrected)
    assert found.low < found.value < found.high


def test_a_judge_that_errs_by_group_makes_a_gap():
    """The true share is .3 in both groups."""
    one, two = ((0.3 * a + 0.7 * (1 - b), a, b) for a, b in ((0.95, 0.95), (0.7, 0.8)))
    gap = correct_shares([judged(*one), judged(*two)])
    assert one[0] - two[0] != pytest.approx(0, abs=0.02)
    assert gap.value == pytest.approx(0, abs=1e-9)
    assert gap.low < 0 < gap.high


def test_a_judge_that_tells_nothing_leaves_all_open():
    gap = correct_shares([judged(0.5, 0.5, 0.5), judged(0.2, 0.9, 0.9)])
    assert (gap.low, gap.high) == (-1.0, 1.0)
    assert math.isnan(gap.value)
    few = judged(0.5, 0.75, 0.75, positives=4, negatives=4)
    assert correct_shares([few, judged(0.2, 0.9, 0.9)]).low == -1.0
    none = judged(0.5, 1.0, 1.0, positives=0, negatives=20)
    assert correct_shares([none]).high == 1.0


def test_the_labels_that_would_decide_decide():
    def gap(labels):
        sides = [judged(s, 0.9, 0.85, labels / 4, labels / 4, 4000) for s in (0.5, 0.4)]
        return correct_shares(sides)

    first = gap(80)
    assert first.low < 0 < first.high
    assert first.labels is not None
    assert gap(1.3 * first.labels).low > 0
    assert gap(0.5 * first.labels).low < 0


@pytest.mark.slow
def test_corrected_intervals_cover_where_judges_err_by_group():
    rng, truth = np.random.default_rng(0), (0.4, 0.25)
    covered = naive = 0
    for seed in range(150):
        sides, gap = [], 0.0
        for pi, a, b, sign in zip(truth, (0.95, 0.7), (0.95, 0.8), (1, -1), strict=True):
            true = rng.random(400) < pi
            said = np.where(true, rng.random(400) < a, rng.random(400) >= b)
            known = slice(0, 100)
            sides.append(
                JudgedShare(
                    share=said.mean(),
                    worth=400,
                    positives=true[known].sum(),
                    found=(true & said)[known].sum(),
                    negatives=(~true)[known].sum(),
                    cleared=(~true & ~said)[known].sum(),
                )
            )
            gap += sign * said.mean()
        found = correct_shares(sides, freedom=399, seed=seed)
        covered += found.low <= 0.15 <= found.high
        naive += abs(gap - 0.15) < 1.96 * math.sqrt(2 * 0.25 / 400)
    assert covered >= 138
    assert naive < covered
