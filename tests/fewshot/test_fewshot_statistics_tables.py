from __future__ import annotations

import math

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.fewshot.statistics import Answers
from evenhand.fewshot.statistics_tables import by_class, by_gender
from evenhand.fewshot.statistics_variance import variance_split


def test_rows_by_class_are_those_of_plain_loops(world):
    answers, _ = world.run(np.random.default_rng(0), 8)
    rows = by_class(answers)
    truth = np.take_along_axis(answers.classes, answers.truth, 1)
    said = np.take_along_axis(answers.classes, answers.predicted, 1)
    assert [row.name for row in rows] == [str(k) for k in range(8)]
    for k, row in enumerate(rows):
        own = truth == k
        assert row.queries == own.sum()
        assert row.texts == len(set(answers.rows[own].tolist()))
        assert row.accuracy == pytest.approx((said[own] == k).mean())
        assert row.precision == pytest.approx((truth[said == k] == k).mean())
        p, r = row.precision, row.accuracy
        assert row.f1 == pytest.approx(2 * p * r / (p + r))
        wrong = said[own & (said != k)]
        assert int(row.taken_for) == np.bincount(wrong).argmax()
        assert 0 <= row.accuracy_low < row.accuracy < row.accuracy_high <= 1
        assert row.f1_low < row.f1 < row.f1_high


def test_the_interval_of_a_class_holds_for_new_texts_and_opponents(world):
    """The same class among new opponents, with new texts each time."""
    held, values, ends = 0, [], []
    for number in range(60):
        rng = np.random.default_rng(number)
        points = world.points(rng, 9)
        points[0] = 0.8 + 1.3 * rng.normal(size=points[0].shape)
        drawn = world.draw(rng, 9)
        made = world.answers(world.log_probs(points, points, *drawn), drawn[0], drawn[2])
        row = by_class(made)[0]
        values.append(row.accuracy)
        ends.append((row.accuracy_low, row.accuracy_high))
    held = np.mean([low <= np.mean(values) <= high for low, high in ends])
    assert held >= 0.82


def genders_by_class() -> Answers:
    """Class 0 is easy and all but one of its texts are men's, class 1 the other way round; within
    a class men and women do alike.
    """
    episodes = 12
    truth = np.tile(np.repeat([0, 1], 4), (episodes, 1))
    said = np.tile([0, 0, 0, 0, 1, 0, 1, 0], (episodes, 1))
    genders = np.tile([0, 0, 0, 1, 1, 1, 0, 0], (episodes, 1))
    log_probs = np.where(said[:, :, None] == np.arange(2), -0.1, -3.0)
    rows = np.tile(np.arange(8), (episodes, 1))
    return Answers(log_probs, rows, truth, np.tile([0, 1], (episodes, 1)), genders)


def test_genders_are_compared_within_classes():
    made = by_gender(genders_by_class())
    assert made["male"].value == pytest.approx((1 + 0.5) / 2)
    assert made["gap"].value == 0
    pooled = [(genders_by_class().predicted == genders_by_class().truth)[
        genders_by_class().genders == g].mean() for g in (0, 1)]  # fmt: skip
    assert pooled[1] < pooled[0]


def test_f1_by_gender_by_hand():
    made = by_gender(genders_by_class())
    # men: class 0 asked 3, right 3, predicted 4; class 1 asked 2, right 1, predicted 1
    assert made["male_f1"].value == pytest.approx((6 / 7 + 2 / 3) / 2)
    # women: class 0 asked 1, right 1, predicted 2; class 1 asked 2, right 1, predicted 1
    assert made["female_f1"].value == pytest.approx((2 / 3 + 2 / 3) / 2)
    gap = made["female_f1"].value - made["male_f1"].value
    assert made["gap_f1"].value == pytest.approx(gap)
    assert made["gap"].p_value is not None
    assert made["male"].p_value is None


def test_no_genders_no_table(world):
    answers, _ = world.run(np.random.default_rng(0), 8)
    assert by_gender(answers) == {}


def _runs(rng, splits, seeds, split_sd, seed_sd, episodes=150):
    """Runs of classes, seeds and splits with known SDs; classes of all splits are new ones."""
    runs, names = [], tuple(str(place) for place in range(10 * splits))
    for number in range(splits):
        level = 0.6 + rng.normal(0, 0.1, 10) + rng.normal(0, split_sd)
        classes = np.argsort(rng.random((episodes, 10)), axis=1)[:, :5]
        truth = np.tile(np.repeat(np.arange(5), 10), (episodes, 1))
        rows = rng.integers(0, 1000, truth.shape)
        per_seed = []
        for _ in range(seeds):
            chance = np.clip(level + rng.normal(0, seed_sd), 0, 1)
            right = rng.random(truth.shape) < np.take_along_axis(chance[classes], truth, axis=1)
            said = np.where(right, truth, (truth + 1) % 5)
            log_probs = np.where(said[:, :, None] == np.arange(5), -0.1, -4.0)
            per_seed.append(Answers(log_probs, rows, truth, classes + 10 * number, names=names))
        runs.append(per_seed)
    return runs


def test_variance_split_finds_what_was_put_in():
    rng = np.random.default_rng(0)
    made = {c.source: c for c in variance_split(_runs(rng, 30, 4, split_sd=0.06, seed_sd=0.03))}
    assert made["seed"].sd == pytest.approx(0.03, rel=0.25)
    assert made["class"].sd == pytest.approx(0.1 / math.sqrt(10), rel=0.25)
    assert made["split"].sd == pytest.approx(math.hypot(0.06, 0.1 / math.sqrt(10)), rel=0.3)
    assert made["split beyond its classes"].sd == pytest.approx(0.06, rel=0.35)
    assert made["episode"].sd < 0.01
    for part in made.values():
        assert part.low <= part.sd <= part.high


def test_no_seed_effect_reads_as_none():
    rng = np.random.default_rng(1)
    made = {c.source: c for c in variance_split(_runs(rng, 40, 3, split_sd=0.05, seed_sd=0.0))}
    assert made["seed"].sd < 0.004  # the queries alone give run means an SD of 0.0057
    assert made["seed"].low == 0


def test_one_seed_or_one_split_cannot_tell():
    rng = np.random.default_rng(2)
    made = {c.source: c.sd for c in variance_split(_runs(rng, 1, 1, 0.05, 0.02))}
    assert math.isnan(made["seed"])
    assert math.isnan(made["split"])
    assert made["class"] > 0
    assert made["episode"] > 0


def test_runs_must_be_square_and_share_episodes():
    runs = _runs(np.random.default_rng(3), 2, 2, 0.05, 0.02, episodes=20)
    with pytest.raises(InputError, match=r"as many seeds in every split, got \[2, 1\]"):
        variance_split([runs[0], runs[1][:1]])
    with pytest.raises(InputError, match="split 1: expected the same episodes"):
        variance_split([[runs[0][0], runs[1][0]], runs[1]])
