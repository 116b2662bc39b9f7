"""What training on other classes and by other seeds adds, in worlds where it is known."""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest

from evenhand.statistics.jackknife import (
    Replicates,
    joined_replicates,
    replicates,
    shared_classes,
)


def share(sums):
    return sums[..., 1].sum(-1) / sums[..., 0].sum(-1)


def test_shared_classes():
    sets = np.array([[1, 1, 1, 0, 0, 0], [0, 1, 1, 1, 0, 0], [0, 0, 0, 1, 1, 1]], dtype=bool)
    assert shared_classes(sets) == pytest.approx((2 / 3 + 1 / 3 + 0) / 3)
    assert shared_classes(sets[:1]) == 0


def test_a_class_without_effect_on_others_gives_the_textbook_interval():
    """Episodes of one class in truth: accuracy of a class is a number of its own."""
    rng = np.random.default_rng(0)
    level = rng.random(12)
    classes = np.array([[a, b] for a in range(12) for b in range(12) if a != b])
    counts = np.stack([np.ones(classes.shape), level[classes]], axis=2)
    made = replicates(share, counts, classes)
    assert made.value == pytest.approx(level.mean())
    variance, freedom = replace(made, cross=made.cross[:0]).class_variance()
    assert (variance, freedom) == (pytest.approx(level.var(ddof=1) / 12), 11)


def test_opponents_says_whether_classes_can_be_left_out_as_opponents():
    """Three classes, two or all of them in an episode."""
    counts = np.ones((6, 2, 2))
    some = np.array([[0, 1], [1, 2], [2, 0], [0, 2], [1, 0], [2, 1]])
    assert replicates(share, counts, some).opponents
    assert not replicates(share, counts, some % 2).opponents
    both = replicates(share, counts, some % 2)
    assert both.classes.tolist() == [1, 1]  # the queries of the other class alone


def simulated(rng, splits, seeds, training, by_seed, classes=10, pool=40, episodes=200):
    """The replicates of two classifiers: classes of a pool with levels of their own, splits whose
    training helps or harms all classes and each of them, and seeds.
    """
    level = rng.normal(0.7, 0.1, pool)
    levels = [level, level + rng.normal(0, 0.04, pool)]
    counts, places = ([], []), []
    for _ in range(splits):
        test = rng.permutation(pool)[:classes]
        chosen = test[np.argsort(rng.random((episodes, classes)), axis=1)[:, :5]]
        places.append(chosen)
        both = rng.normal(0, training / math.sqrt(2)) + rng.normal(0, 0.03, pool)
        for which in range(2):
            chance = levels[which] + both + rng.normal(0, training / math.sqrt(2))
            runs = [
                rng.binomial(5, np.clip(chance[chosen] + rng.normal(0, by_seed), 0, 1))
                for _ in range(seeds)
            ]
            counts[which].append(runs)
    tested = np.searchsorted(np.unique(places), np.concatenate(places))
    made = []
    for which in range(2):
        right = np.swapaxes(np.array(counts[which], dtype=float), 0, 1).reshape(-1, 5)
        both = np.stack([np.full(right.shape, 5.0), right], axis=2)
        made.append(joined_replicates(share, both, np.tile(tested, (seeds, 1)), splits, seeds))
    return made[0], made[1] - made[0]


@pytest.mark.parametrize(
    ("training", "by_seed", "which"), [(0.1, 0.01, "splits"), (0.0, 0.05, "seeds")]
)
def test_training_variance_by_hand(training, by_seed, which):
    rng = np.random.default_rng(3)
    for made in simulated(rng, splits=4, seeds=2, training=training, by_seed=by_seed):
        sets = [set(np.flatnonzero(row)) for row in made.tested]
        pairs = [len(a & b) / 10 for i, a in enumerate(sets) for b in sets[:i]]
        own = np.mean([part.class_variance(cautious=False)[0] for part in made.parts])
        spread = made.runs.mean(axis=1).var(ddof=1) - (1 - np.mean(pairs)) * own
        between = spread / 4 - made.episode_variance()
        within = made.runs.var(axis=1, ddof=1).mean() / 8
        assert (between > within) == (which == "splits")
        more, units = max((between, 3), (within, 4))
        assert made.training_variance() == pytest.approx((more, units))
        error, freedom = Replicates.error(made)
        joint = (error**2 + more) ** 2 / (error**4 / freedom + more**2 / units)
        assert made.error() == pytest.approx((math.sqrt(error**2 + more), max(1, round(joint))))


def covered(count, seed, **dials):
    """How often accuracy and difference are in ours, in the classes' alone and in the naive."""
    rng = np.random.default_rng(seed)
    held = []
    for _ in range(count):
        rows = []
        for truth, made in zip((0.7, 0.0), simulated(rng, **dials), strict=True):
            alone = Replicates(made.value, made.episodes, made.classes, made.cross)
            ends = made.interval(), alone.interval(), made.naive()
            rows.append([low <= truth <= high for low, high in ends])
        held.append(rows)
    return np.mean(held, axis=0)


@pytest.mark.slow
def test_coverage_of_new_classes_and_training_runs():
    accuracy, difference = covered(100, 0, splits=5, seeds=3, training=0.03, by_seed=0.01)
    assert accuracy[0] >= 0.88
    assert difference[0] >= 0.88
    assert difference[1] <= 0.80
    assert max(accuracy[2], difference[2]) <= 0.40


@pytest.mark.slow
@pytest.mark.parametrize(
    ("splits", "seeds", "training"), [(5, 3, 0.02), (5, 3, 0.0), (3, 1, 0.02), (1, 3, 0.0)]
)
def test_coverage_with_more_draws(splits, seeds, training):
    made = covered(400, 1, splits=splits, seeds=seeds, training=training, by_seed=0.01)
    assert made[:, 0].min() >= 0.91
    assert made[:, 2].max() <= 0.45
