"""Monte Carlo tests that draw until the decision is clear: risk, validity, cost, determinism."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.judging import is_below
from evenhand.statistics.sequential import (
    LOOKS,
    MAX_DRAWS,
    RESAMPLING_RISK,
    Counted,
    Seed,
    draw_until_clear,
    is_clear,
    is_clearly_below,
)
from evenhand.statistics.tests import two_sample


def count_share(share: float):
    def count(size: int, seed: Seed) -> int:
        return int(np.random.default_rng(seed).binomial(size, share))

    return count


def decided(counted: Counted, level: float, factor: float = 1.0) -> bool:
    p = factor * counted.p_value
    return is_below(p, level, draws=counted.draws, factor=factor)


# ---- the risk of a wrong decision


@pytest.mark.parametrize("share", [0.0505, 0.052, 0.055, 0.06, 0.08])
def test_a_share_above_a_level_is_not_taken_to_be_below(share: float) -> None:
    seeds = 600
    found = [decided(draw_until_clear(count_share(share), 1000, s), 0.05) for s in range(seeds)]
    # with the risk promised, more than 5 of 600 have a probability of 4e-5
    assert sum(found) <= 5


def test_no_seed_from_0_to_50_disagrees_near_the_level() -> None:
    for share in (0.047, 0.0495, 0.0505, 0.053):
        every = [draw_until_clear(count_share(share), 1000, seed) for seed in range(51)]
        fixed = [count_share(share)(1000, (seed, 0)) < 50 for seed in range(51)]
        assert len(set(fixed)) == 2  # the defect: the seed decides
        below = [decided(c, 0.05) for c in every]
        above = [is_clearly_below(c.draws - int(c.extreme), c.draws, 0.95) for c in every]
        assert not any(above if share < 0.05 else below)


def test_a_corrected_p_value_is_not_below_a_level_by_the_seed() -> None:
    # families divide the level, which the draws do not know: the same risk holds
    for factor in (3, 8, 30):
        share = 0.05 / factor * 1.02
        found = [
            decided(draw_until_clear(count_share(share), 1000, seed), 0.05, factor)
            for seed in range(300)
        ]
        assert sum(found) <= 4


def test_strong_effects_are_found_in_a_family_of_ten() -> None:
    found = [decided(draw_until_clear(count_share(1e-5), 1000, s), 0.05, 10) for s in range(100)]
    assert np.mean(found) > 0.95


def test_random_words_near_the_level_decide_alike_with_every_seed() -> None:
    v = eh.vectors.load("glove")
    decisions = set()
    for seed in range(12):
        m = next(
            m
            for m in eh.measure(v, "gender", ["ripa"], seed=seed)
            if m.query == "gender: male stereotypes"
        )
        assert m.details["draws"] == m.details["null_draws"] // 2  # two-sided
        decisions.add(is_below(m.p_value, 0.05, draws=m.details["draws"]))
    assert decisions == {False}


# ---- the bound, the looks and their number


def test_the_bound_is_that_of_clopper_and_pearson() -> None:
    scipy = pytest.importorskip("scipy.special")
    tail = RESAMPLING_RISK / 2 / len(LOOKS)
    wrong = 0
    for draws in (100, 1000, 20_000):
        for level in (0.05, 0.01, 0.005):
            for extreme in range(int(draws * level) + 1):
                exact = scipy.bdtr(extreme, draws, level) <= tail
                bound = is_clearly_below(extreme, draws, level)
                assert exact or not bound
                wrong += exact != bound
    assert wrong <= 4


def test_levels_at_the_ends_of_the_range() -> None:
    assert is_clearly_below(3, 100, 1.0)
    assert not is_clearly_below(0, 100, 0.0)


def test_draws_end_at_the_cap() -> None:
    sizes: list[tuple[int, Seed]] = []

    def count(size: int, seed: Seed) -> int:
        sizes.append((size, seed))
        return size // 20  # exactly at the level

    assert draw_until_clear(count, 100, 7).draws == 100 * LOOKS[-1]
    assert [seed for _, seed in sizes] == [(7, batch) for batch in range(len(LOOKS))]
    assert draw_until_clear(count, 100_000, 0).draws == MAX_DRAWS
    assert draw_until_clear(count, 3 * MAX_DRAWS, 0).draws == 3 * MAX_DRAWS


def test_the_first_batch_is_that_of_the_plain_seed() -> None:
    for seed in (0, 5, 2**40 + 7):
        plain = np.random.default_rng(seed).random(4)
        assert (np.random.default_rng((seed, 0)).random(4) == plain).all()
        assert (np.random.default_rng((seed, 1)).random(4) != plain).all()


def test_several_tests_share_draws_until_all_are_clear() -> None:
    shares = np.array([0.5, 0.04])

    def count(size: int, seed: Seed):
        return np.random.default_rng(seed).binomial(size, shares)

    both = draw_until_clear(count, 1000, 1)
    assert both.draws > 1000
    assert all(is_clear(int(b), both.draws) for b in both.extreme)
    assert both.p_values == pytest.approx(shares, abs=0.01)
    assert draw_until_clear(count, 1000, 1, deciding=lambda counts: counts[0]).draws == 1000


def test_the_smaller_of_two_tails_is_doubled() -> None:
    # a share of 0.025 is a p-value of 0.05
    assert draw_until_clear(count_share(0.025), 1000, 0, factor=2).draws > 8000
    assert draw_until_clear(count_share(0.1), 1000, 0, factor=2).draws == 1000


def test_the_mean_number_of_draws_is_moderate() -> None:
    rng = np.random.default_rng(5)
    null = [draw_until_clear(count_share(u), 1000, s).draws for s, u in enumerate(rng.random(600))]
    effect = [draw_until_clear(count_share(1e-6), 1000, seed).draws for seed in range(50)]
    assert np.mean(null) < 4000
    assert np.median(null) == 1000
    assert np.mean(effect) <= 2500


# ---- the two-sample test


def test_random_and_all_partitions_decide_alike() -> None:
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.6, 0.8, 1.0, 1.5):
        x, y = rng.standard_normal(9) + shift, rng.standard_normal(9)
        exact = two_sample(x, y, exact=True)
        drawn = two_sample(x, y, exact=False, permutations=1000, seed=1)
        assert "draws" not in exact.details
        assert drawn.details == {"draws": drawn.partitions}
        error = np.sqrt(exact.p_value * (1 - exact.p_value) / drawn.partitions)
        assert abs(drawn.p_value - exact.p_value) < 5 * error + 2 / drawn.partitions
        for level in (0.05, 0.01):
            if is_below(drawn.p_value, level, draws=drawn.partitions):
                assert exact.p_value < level


def test_false_alarms_keep_their_rate() -> None:
    rng = np.random.default_rng(11)
    worlds = 1200
    p, sure = [], []
    for seed in range(worlds):
        x, y = rng.standard_normal((2, 6))
        test = two_sample(x, y, exact=False, permutations=200, seed=seed)
        p.append(test.p_value)
        sure.append(is_below(test.p_value, 0.05, draws=test.partitions))
    # 5 % of 1,200 is 60 with a standard deviation of 7.5; at 12 % there were 144
    assert np.sum(np.array(p) <= 0.05) < 60 + 4 * 7.5
    assert np.sum(np.array(p) <= 0.05) > 60 - 4 * 7.5
    assert np.sum(sure) < 60 + 4 * 7.5


def test_where_the_first_batch_is_clear_the_result_is_that_of_a_fixed_number() -> None:
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal(30), rng.standard_normal(30)
    test = two_sample(x, y, permutations=2000, seed=4)
    assert test.partitions == 2000
    keys = np.random.default_rng(4)
    pool, observed, extreme, left = np.concatenate([x, y]), abs(x.mean() - y.mean()), 0, 2000
    step = max(1, (1 << 15) // 60)
    while left:
        size = min(step, left)
        order = np.argsort(keys.random((size, 60), dtype=np.float32), axis=1)
        means = pool[order[:, :30]].mean(axis=1) - pool[order[:, 30:]].mean(axis=1)
        extreme += int((np.abs(means) >= observed - 1e-9).sum())
        left -= size
    assert test.p_value == (extreme + 1) / 2001
