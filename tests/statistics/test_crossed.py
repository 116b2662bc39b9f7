"""Intervals over templates, professions and pairs: against closed forms and in simulation."""

from __future__ import annotations

import dataclasses
import math

import numpy as np
import pytest
from scipy.special import stdtrit

from evenhand.statistics.crossed import clustered, crossed, noise_of_one, pooled
from evenhand.statistics.intervals import crossed_mean, t_mean, welch


def simulated(rng, shape, scales, value=0.3):
    """A table with random effects of each factor, of each two, and noise; and the professions'."""
    draw = rng.standard_normal
    templates, professions, pairs = shape
    own = scales["p"] * draw((1, professions, 1))
    sizes = {
        "t": (templates, 1, 1), "k": (1, 1, pairs), "tp": (templates, professions, 1),
        "tk": (templates, 1, pairs), "pk": (1, professions, pairs), "e": shape,
    }  # fmt: skip
    rest = sum(scales.get(name, 0) * draw(size) for name, size in sizes.items())
    return value + own + rest, value + own[0, :, 0]


SCALES = {"t": 0.4, "p": 0.5, "k": 0.3, "tp": 0.3, "tk": 0.2, "pk": 0.2, "e": 0.3}


def test_with_one_pair_it_is_the_crossed_mean_of_two_factors():
    table, _ = simulated(np.random.default_rng(1), (6, 9, 1), SCALES)
    mean = crossed(table)
    expected = crossed_mean(table[:, :, 0], prob=0.9)
    np.testing.assert_allclose((mean.value, *mean.interval(0.9)), expected)


def test_groups_that_are_given_are_strata():
    """How far apart the groups lie is not spread; without strata it would be."""
    table, _ = simulated(np.random.default_rng(2), (6, 8, 3), SCALES)
    labels = np.array([0, 1] * 4)
    weights = np.where(labels == 0, 0.25, -0.25)
    moved = table + 5.0 * labels[None, :, None]
    near, far = crossed(table, weights, labels), crossed(moved, weights, labels)
    assert far.value == pytest.approx(near.value - 5)
    assert far.variance == pytest.approx(near.variance)
    assert crossed(moved, weights).variance > 5 * near.variance


def test_with_one_factor_left_it_is_student():
    x = np.random.default_rng(3).normal(size=7)
    for shape in ((7, 1, 1), (1, 7, 1), (1, 1, 7)):
        mean = crossed(x.reshape(shape))
        np.testing.assert_allclose((mean.value, *mean.interval(0.95)), t_mean(x))
    alone = crossed(np.ones((1, 1, 1)))
    assert alone.interval(0.95) == (-math.inf, math.inf)
    assert alone.p_value is None


def test_p_value_and_interval_agree():
    table, _ = simulated(np.random.default_rng(4), (5, 6, 3), SCALES, value=0.4)
    mean = crossed(table)
    edge = mean.interval(1 - mean.p_value)
    assert min(abs(end) for end in edge) == pytest.approx(0, abs=1e-9)


def test_the_variance_is_unbiased():
    """Its mean over many tables is the variance of the value over those tables."""
    rng = np.random.default_rng(5)
    means = [crossed(simulated(rng, (4, 5, 3), SCALES)[0]) for _ in range(3000)]
    actual = np.var([mean.value for mean in means])
    assert np.mean([mean.variance for mean in means]) == pytest.approx(actual, rel=0.08)


def coverage(shape, scales, n, seed):
    """How often 95 % intervals hold the truth: overall, group gap, a profession, pooled."""
    rng = np.random.default_rng(seed)
    professions = shape[1]
    labels = np.arange(professions) % 2
    weights = np.where(labels == 0, 1, -1) / np.bincount(labels)[labels]
    hits = np.zeros(4)
    for _ in range(n):
        table, own = simulated(rng, shape, scales)
        _, pulled = pooled(table)
        message = [
            (crossed(table), 0.3), (crossed(table, weights, labels), 0.0),
            (crossed(table[:, [0], :]), own[0]), (pulled[0], own[0]),
        ]  # fmt: skip
        for i, (mean, truth) in enumerate(message):
            low, high = mean.interval(0.95)
            hits[i] += low <= truth <= high
    return hits / n


def test_intervals_cover_at_the_nominal_rate():
    hits = coverage((8, 14, 4), SCALES, 500, seed=6)
    assert (hits > 0.93).all(), hits  # four pairs give three degrees of freedom: cautious


def test_intervals_that_forget_a_factor_do_not_cover():
    """The reason for all this: cells taken as independent cover in fewer than half of the cases."""
    rng = np.random.default_rng(7)
    tables = [simulated(rng, (8, 14, 4), SCALES)[0] for _ in range(200)]
    naive = [t_mean(table.ravel()) for table in tables]
    assert np.mean([low <= 0.3 <= high for _, low, high in naive]) < 0.5


@pytest.mark.slow
@pytest.mark.parametrize(
    ("shape", "scales"),
    [
        ((14, 76, 6), SCALES),
        ((5, 20, 9), SCALES | {"t": 0.6, "p": 0.1, "k": 0.1}),
        ((14, 26, 1), SCALES | {"k": 0, "tk": 0, "pk": 0}),
        ((14, 40, 6), SCALES | {"k": 0.6, "t": 0.1}),
    ],
)
def test_intervals_cover_on_the_designs_in_use(shape, scales):
    hits = coverage(shape, scales, 2000, seed=8)
    assert (hits > 0.935).all(), hits
    assert (hits < 0.995).all(), hits


def test_pooling_pulls_in_and_pays():
    rng = np.random.default_rng(9)
    errors = np.zeros(2)
    for _ in range(100):
        table, own = simulated(rng, (3, 20, 2), {"p": 0.2, "tp": 0.5, "e": 0.4})
        values, _ = pooled(table)
        plain = table.mean(axis=(0, 2))
        assert (np.abs(values - values.mean()) <= np.abs(plain - plain.mean()) + 1e-12).all()
        errors += [((plain - own) ** 2).mean(), ((values - own) ** 2).mean()]
    assert errors[1] < 0.6 * errors[0]


def test_no_noise_means_no_pull():
    table, own = simulated(np.random.default_rng(10), (4, 12, 2), {"p": 1})
    values, _ = pooled(table)
    np.testing.assert_allclose(values, own)
    assert noise_of_one(table) == pytest.approx(0, abs=1e-25)


def test_pooled_spread_by_hand():
    """One against three, nothing else varying: s² (1 + 1/3), with the freedom of the three."""
    table = np.array([4.0, 1.0, 2.0, 6.0]).reshape(1, 4, 1)
    mean = crossed(table, [1, -1 / 3, -1 / 3, -1 / 3], [0, 1, 1, 1])
    assert mean.variance == pytest.approx(7 * (1 + 1 / 3))
    assert mean.freedom == pytest.approx(2)


def test_clustered_means_equal_the_formulas_for_complete_tables():
    rng = np.random.default_rng(3)
    table = rng.normal(size=(7, 4)) + rng.normal(size=(7, 1)) + rng.normal(size=4)
    rows, columns = (axis.ravel() for axis in np.indices(table.shape))
    mean = clustered(table.ravel(), {"item": rows, "template": columns})
    value, low, high = crossed_mean(table)
    assert mean.over == ("item", "template")
    assert mean.value == pytest.approx(value)
    assert mean.variance == pytest.approx(
        ((high - low) / 2 / float(stdtrit(mean.freedom, 0.975))) ** 2, rel=0.02
    )
    single = clustered(table[:, 0], {"item": range(7)})
    assert single.variance == pytest.approx(table[:, 0].var(ddof=1) / 7)
    assert single.freedom == pytest.approx(6)
    own = clustered(table.ravel(), {"item": rows, "template": columns}, fixed=True)
    assert own.variance == pytest.approx(table.mean(axis=1).var(ddof=1) / 7)
    assert own.over == ("item",)
    assert math.isnan(clustered([1.0, 2.0], {"item": ["a", "a"]}).variance)


def test_differences_of_groups_equal_welchs():
    rng = np.random.default_rng(4)
    y, groups = rng.normal(size=30), np.arange(30) < 12
    mean = clustered(y, {"item": range(30)}, groups=groups)
    value, low, high = welch(y[groups], y[~groups])
    assert mean.value == pytest.approx(value)
    assert mean.interval(0.95) == pytest.approx((low, high))
    # a template that both groups have: its effect cancels
    twice = np.concatenate([y, y + 5])
    both = {"item": np.tile(np.arange(30), 2), "template": np.repeat([0, 1], 30)}
    paired = clustered(twice, both, groups=np.tile(groups, 2))
    assert paired.variance == pytest.approx(mean.variance)


@pytest.mark.parametrize(
    "sizes",
    [[4] * 15, [40, 20, 10, 5, 5, 3, 2, 2, 1, 1], [1] * 12],
    ids=["equal", "unequal", "single"],
)
@pytest.mark.parametrize("share", [0.0, 0.5, 0.9])
def test_intervals_of_clustered_means_cover_the_truth(sizes, share):
    rng = np.random.default_rng(5)
    own, covered = np.repeat(np.arange(len(sizes)), sizes), 0
    for _ in range(500):
        y = share**0.5 * rng.normal(size=len(sizes))[own]
        y = y + (1 - share) ** 0.5 * rng.normal(size=len(own))
        low, high = clustered(y, {"document": own}).interval(0.95)
        covered += low <= 0 <= high
    assert 0.92 <= covered / 500 <= 1


@pytest.mark.parametrize("missing", [0.0, 0.3])
@pytest.mark.parametrize("spreads", [(1.0, 0.0, 1.0), (0.0, 1.0, 1.0), (1.0, 0.5, 0.5)])
def test_intervals_of_crossed_means_cover_the_truth_with_scores_missing(missing, spreads):
    rng = np.random.default_rng(6)
    covered, items, templates = 0, 25, 8
    rows, columns = (axis.ravel() for axis in np.indices((items, templates)))
    for _ in range(400):
        a, b, c = (
            s * rng.normal(size=n) for s, n in zip(spreads, (items, templates, 200), strict=True)
        )
        y, shown = a[rows] + b[columns] + c, rng.random(200) >= missing
        mean = clustered(y[shown], {"item": rows[shown], "template": columns[shown]})
        low, high = mean.interval(0.95)
        covered += low <= 0 <= high
    assert covered / 400 >= 0.93


@pytest.mark.parametrize("pairs", [2, 3])
@pytest.mark.parametrize("scales", [SCALES, {"k": 0.4, "p": 0.5, "e": 0.3}, {"p": 0.3, "e": 1.0}])
def test_few_pairs_of_persons_raise_no_false_alarms(pairs, scales):
    """With Satterthwaite's degrees of freedom alone p < .05 in .10 of worlds with two pairs."""
    rng = np.random.default_rng(11)
    alarms = covered = 0
    for _ in range(400):
        table, _ = simulated(rng, (14, 40, pairs), scales, value=0.0)
        mean = crossed(table)
        low, high = mean.interval(0.95)
        alarms += mean.p_value < 0.05
        covered += low <= 0 <= high
        assert mean.freedom <= pairs - 1
    assert alarms / 400 <= 0.07
    assert covered / 400 >= 0.93


def test_never_more_freedom_than_the_coarsest_factor():
    rng = np.random.default_rng(12)
    items, templates = (axis.ravel() for axis in np.indices((100, 3)))
    factors = {"item": items, "template": templates}
    for _ in range(50):
        y = rng.normal(size=100)[items] + rng.normal(size=300)
        assert clustered(y, factors).freedom <= 2
        assert clustered(y, factors, groups=items % 2 == 0).freedom <= 2
        assert clustered(y, factors, fixed=True).freedom == pytest.approx(99)
    two = {"item": range(42)}
    groups = np.arange(42) < 2  # two items against forty
    assert clustered(rng.normal(size=42), two, groups=groups).freedom == 1


def test_equal_clusters_are_no_certainty():
    equal = clustered([1.0, 3.0, 3.0, 1.0], {"document": ["a", "a", "b", "b"]})
    assert equal.interval(0.95) == (-math.inf, math.inf)
    assert equal.p_value is None
    bounded = dataclasses.replace(equal, value=0.8, limits=(0.0, 1.0))
    low, high = bounded.interval(0.95)
    assert (low, high) == pytest.approx((0.8 * 0.025**0.5, 1 - 0.2 * 0.025**0.5))
    assert bounded.test(0.1) == pytest.approx(2 * 0.125**2)
    assert bounded.interval(1 - bounded.test(0.1))[0] == pytest.approx(0.1)
    constant = clustered(np.full(20, 0.1) * 3, {"item": range(20)})
    assert constant.interval(0.95) == (-math.inf, math.inf)
    assert clustered(np.zeros(20), {"item": range(20)}).p_value == 1
    assert crossed(np.ones((3, 4, 2))).interval(0.95) == (-math.inf, math.inf)
