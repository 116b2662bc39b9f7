"""Contrasts of groups, against tests of SciPy and the balanced crossed table."""

import math

import numpy as np
import pytest
from scipy.stats import ttest_1samp, ttest_ind

from evenhand.answers.cells import make_cells, make_contrast, share_interval
from evenhand.answers.table import Answers
from evenhand.statistics.clusters import cluster_mean
from evenhand.statistics.crossed import crossed


def table(values, items, groups, wordings=(), topics=()):
    """Answers with these numbers, all as sequences over rows."""
    rows = len(values)
    return Answers(
        texts=("x",) * rows,
        items=tuple(map(str, items)),
        groups={"group": tuple(groups)},
        wordings=tuple(map(str, wordings)),
        topics=tuple(map(str, topics)),
    ), np.asarray(values, dtype=float)


def contrast(values, items, groups, share=False, **more):
    answers, y = table(values, items, groups, **more)
    return make_contrast(make_cells(answers, y, answers.groups["group"], share=share), "a", "b")


def test_paired_items_are_the_paired_t_test_whatever_the_samples():
    rng = np.random.default_rng(0)
    a, b = rng.normal(1, 1, (2, 12))
    values, items, groups = [], [], []
    for item in range(12):
        for name, mean in (("a", a[item]), ("b", b[item])):
            noise = rng.normal(size=5)
            values += list(mean + noise - noise.mean())
            items += [item] * 5
            groups += [name] * 5
    found = contrast(values, items, groups)
    known = ttest_1samp(a - b, 0)
    assert found.paired
    assert found.mean.value == pytest.approx((a - b).mean())
    assert found.mean.p_value == pytest.approx(known.pvalue)
    low, high = known.confidence_interval(0.95)
    assert found.interval(0.95)[1:] == pytest.approx((low, high))
    again = contrast(values * 3, items * 3, groups * 3)
    assert again.interval(0.95) == pytest.approx(found.interval(0.95))


def test_groups_in_different_items_are_welchs_test():
    rng = np.random.default_rng(1)
    a, b = rng.normal(0, 1, 9), rng.normal(0, 2, 14)
    found = contrast([*a, *b], range(23), ["a"] * 9 + ["b"] * 14)
    assert not found.paired
    known = ttest_ind(a, b, equal_var=False)
    assert found.mean.value == pytest.approx(a.mean() - b.mean())
    assert found.mean.variance == pytest.approx(a.var(ddof=1) / 9 + b.var(ddof=1) / 14)
    assert found.mean.p_value == pytest.approx(known.pvalue, rel=0.05)


def test_wordings_are_crossed_with_items():
    rng = np.random.default_rng(2)
    d = rng.normal(size=(10, 1)) + rng.normal(size=(1, 4)) + rng.normal(size=(10, 4))
    values, items, groups, wordings = [], [], [], []
    for item in range(10):
        for wording in range(4):
            values += [d[item, wording], 0.0]
            items += [item] * 2
            wordings += [wording] * 2
            groups += ["a", "b"]
    found = contrast(values, items, groups, wordings=wordings)
    known = crossed(d.T[:, :, None])
    assert found.mean.variance == pytest.approx(known.variance)
    assert found.mean.freedom <= 3
    assert set(found.without) == {"item", "wording"}
    assert found.without["item"][1][0] == pytest.approx(d[1:].mean())


def test_topics_are_what_is_sampled():
    rng = np.random.default_rng(3)
    values, items, groups, topics = [], [], [], []
    for topic in range(5):
        own = rng.normal()
        for item in range(20):
            values += [own + rng.normal(), 0.0]
            items += [item] * 2
            topics += [topic] * 2
            groups += ["a", "b"]
    found = contrast(values, items, groups, topics=topics)
    means = np.array(values[::2]).reshape(5, 20).mean(axis=1)
    assert found.mean.variance == pytest.approx(means.var(ddof=1) / 5)
    assert found.mean.freedom == pytest.approx(4)


def test_shares_stay_in_range_and_are_never_certain():
    zeros = contrast([0.0] * 40, np.repeat(np.arange(10), 4), ["a", "a", "b", "b"] * 10, share=True)
    value, low, high = zeros.interval(0.95)
    assert (value, low) == (0.0, pytest.approx(-high))
    assert 0.1 < high < 0.5
    values = [1.0, 1.0, 0.0, 0.0] * 10
    ones = contrast(values, np.repeat(np.arange(10), 4), ["a", "a", "b", "b"] * 10, share=True)
    value, low, high = ones.interval(0.95)
    assert (value, high) == (1.0, 1.0)
    assert 0.3 < low < 1


def test_a_group_of_one_item_says_nothing():
    found = contrast([1.0, 2.0, 3.0], [1, 2, 3], ["a", "b", "b"])
    assert found.interval(0.95)[1:] == (-math.inf, math.inf)
    assert found.mean.p_value is None


def test_items_of_one_group_are_left_out_where_most_have_both():
    values = [1.0, 0.0, 2.0, 0.5, 9.0]
    found = contrast(values, [1, 1, 2, 2, 3], ["a", "b", "a", "b", "a"])
    assert found.mean.value == pytest.approx(1.25)
    assert found.left_out == ("in one of the groups only: 1 item",)


def test_a_group_and_all_others_are_compared_within_items():
    answers, y = table([3.0, 1.0, 2.0, 5.0, 4.0, 0.0], [1, 1, 1, 2, 2, 2], ["a", "b", "c"] * 2)
    found = make_contrast(make_cells(answers, y, answers.groups["group"]), "a")
    assert found.mean.value == pytest.approx(np.mean([3 - 1.5, 5 - 2]))


def test_what_more_samples_would_remove():
    rng = np.random.default_rng(4)
    y = rng.normal(size=(200, 2, 3))
    items, groups = np.repeat(np.arange(200), 6), np.tile(["a", "a", "a", "b", "b", "b"], 200)
    assert contrast(y.ravel(), items, groups.tolist()).sampling > 0.85
    lasting = y + rng.normal(0, 3, (200, 2, 1))
    assert contrast(lasting.ravel(), items, groups.tolist()).sampling < 0.1


def test_a_share_of_items_that_all_agree_is_worth_their_number():
    answers, y = table([1.0] * 30, np.repeat(np.arange(6), 5), ["a"] * 30)
    share, low, high = share_interval(make_cells(answers, y, share=True), 0.95)
    assert (share, high) == (1.0, 1.0)
    assert 0.4 < low < 0.7


def test_a_share_that_few_topics_have_is_less_certain_than_their_number_says():
    shares = np.array([0.0] * 14 + [0.04, 0.4])
    y = (np.arange(50) < 50 * shares[:, None]).astype(float)
    topics = np.repeat(np.arange(16), 50)
    answers, values = table(y.ravel(), np.arange(800), ["a"] * 800, topics=topics)
    cells = make_cells(answers, values, share=True)
    assert cells.mean().freedom < 4  # one topic has nearly all of the spread
    known = cluster_mean(values, topics, 16)
    assert share_interval(cells, 0.95) == pytest.approx(known.share(0.95))
    alike, values = table(np.tile([0.0, 1.0], 400), np.arange(800), ["a"] * 800, topics=topics)
    assert make_cells(alike, values, share=True).mean().freedom == pytest.approx(15)
