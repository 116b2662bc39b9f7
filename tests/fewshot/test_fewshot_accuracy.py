from __future__ import annotations

import math
from dataclasses import replace

import numpy as np
import pytest
from scored import compared, naive, scored

from evenhand.errors import InputError
from evenhand.fewshot.answers import FewShotPredictions, join
from evenhand.fewshot.metrics.accuracy import Accuracy, macro_f1, scores
from evenhand.instruments import compare
from evenhand.results import Measurement
from evenhand.statistics.intervals import t_mean

YES, NO = np.log(0.9), np.log(0.1)


def small() -> FewShotPredictions:
    """Two episodes of two classes with two queries each; class 2 is once taken for class 0."""
    said = np.array([[0, 0, 1, 0], [0, 0, 0, 1]])
    log_probs = np.where(said[:, :, None] == np.arange(2), YES, NO)
    truth = np.array([[0, 0, 1, 1]] * 2)
    rows = np.array([[0, 1, 10, 11], [0, 2, 20, 21]])
    return FewShotPredictions(log_probs, rows, truth, np.array([[0, 1], [0, 2]]))


def brute(answers: FewShotPredictions, metric: str, episodes) -> float:
    """The metric from a list of episodes by plain loops."""
    asked, right, said, within = {}, {}, {}, []
    for e in episodes:
        names = answers.classes[e]
        for truth, guess in zip(answers.truth[e], answers.predicted[e], strict=True):
            a, b = names[truth], names[guess]
            asked[a] = asked.get(a, 0) + 1
            said[b] = said.get(b, 0) + 1
            right[a] = right.get(a, 0) + (a == b)
        f1 = []
        for place, _ in enumerate(names):
            hits = ((answers.truth[e] == place) & (answers.predicted[e] == place)).sum()
            both = (answers.truth[e] == place).sum() + (answers.predicted[e] == place).sum()
            f1.append(2 * hits / both)
        within.append(np.mean(f1))
    if metric == "accuracy":
        return sum(right.values()) / sum(asked.values())
    if metric == "f1_episode":
        return float(np.mean(within))
    return float(np.mean([2 * right[k] / (asked[k] + said.get(k, 0)) for k in asked]))


def test_hand_computed():
    made = scored(small())
    assert made["accuracy"].value == pytest.approx(6 / 8)
    # class 0: asked 4, right 4, predicted 6; classes 1 and 2: asked 2, right 1, predicted 1
    assert made["f1"].value == pytest.approx((8 / 10 + 2 / 3 + 2 / 3) / 3)
    # in each episode: class 0 asked 2, right 2, predicted 3; the other 2, 1, 1
    assert made["f1_episode"].value == pytest.approx((4 / 5 + 2 / 3) / 2)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "f1_episode"])
def test_replicates_are_those_of_plain_loops(world, metric):
    world.episodes = 30
    answers, _ = world.run(np.random.default_rng(3), 7)
    made = scores(answers)[metric]
    every = range(30)
    assert made.value == pytest.approx(brute(answers, metric, every))
    for e in (0, 13, 29):
        expected = brute(answers, metric, [x for x in every if x != e])
        assert made.episodes[e] == pytest.approx(expected)
    for k in range(7):
        rest = [e for e in every if k not in answers.classes[e]]
        assert made.classes[k] == pytest.approx(brute(answers, metric, rest))
        for group in range(len(made.cross)):
            part = [e for e in rest if e % len(made.cross) == group]
            if part:
                assert made.cross[group, k] == pytest.approx(brute(answers, metric, part))


def test_naive_interval_is_that_of_the_field(world):
    answers, _ = world.run(np.random.default_rng(0), 9)
    made = scored(answers)["accuracy"]
    value, low, high = t_mean((answers.predicted == answers.truth).mean(axis=1))
    assert (made.value, *naive(made)) == pytest.approx((value, low, high))
    assert made.high - made.low > 2 * (high - low)


def test_a_difference_with_itself_is_none_and_with_its_reverse_the_opposite(world):
    first, second = world.run(np.random.default_rng(1), 9, noise=0.8)
    same = compared(first, first)["f1"]
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    there, back = compared(first, second)["f1"], compared(second, first)["f1"]
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    gained = scored(second)["f1"].value - scored(first)["f1"].value
    assert there.value == pytest.approx(gained)
    assert (there.p_value < 0.05) == (not there.low <= 0 <= there.high)


def test_pairing_narrows_the_interval(world):
    first, second = world.run(np.random.default_rng(2), 12, noise=0.3)
    alone, paired = scored(first)["accuracy"], compared(first, second)["accuracy"]
    assert paired.high - paired.low < 0.6 * (alone.high - alone.low)


def test_all_classes_in_every_episode(world):
    answers, _ = world.run(np.random.default_rng(4), 5)
    made = scored(answers)["accuracy"]
    assert "same opponents" in made.interval
    recall = [
        (answers.predicted == answers.truth)[
            np.take_along_axis(answers.classes, answers.truth, 1) == k
        ].mean()
        for k in range(5)
    ]
    spread = np.std(recall, ddof=1) / np.sqrt(5)
    assert made.high - made.value == pytest.approx(2.776 * spread, rel=0.15)


def test_one_episode_has_no_interval():
    answers = small()
    names = ("log_probs", "rows", "truth", "classes")
    one = FewShotPredictions(*(getattr(answers, name)[:1] for name in names))
    made = scored(one)["accuracy"]
    assert (made.low, made.high, *naive(made)) == (0, 1, 0, 1)


def test_more_of_the_same_episodes_do_not_narrow_the_class_interval(world):
    rng = np.random.default_rng(6)
    answers, _ = world.run(rng, 8)
    names = ("log_probs", "rows", "truth", "classes")
    four = FewShotPredictions(*(np.concatenate([getattr(answers, name)] * 4) for name in names))
    once, again = scored(answers)["accuracy"], scored(four)["accuracy"]
    assert np.diff(naive(again)) / np.diff(naive(once)) == pytest.approx(0.5, abs=0.02)
    assert (again.high - again.low) / (once.high - once.low) > 0.8


def test_a_zero_probability_is_not_the_end():
    answers = small()
    with np.errstate(divide="ignore"):
        made = replace(answers, log_probs=np.log(np.eye(2)[answers.truth]))
    assert np.isfinite(made.true_log_probs).all()
    assert made.log_probs.min() == pytest.approx(np.log(1e-12))


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"log_probs": np.full((2, 4, 2), np.nan)}, "episode 0, query 0: not a number"),
        ({"log_probs": np.zeros((2, 4))}, "episodes × queries × classes"),
        ({"rows": np.zeros((2, 3))}, r"rows: expected 2 × 4, got \(2, 3\)"),
        ({"truth": np.full((2, 4), 2)}, "truth: expected 0 to 1"),
        ({"classes": np.full((2, 2), 5), "names": ("a", "b")}, "classes: expected 0 to 1"),
    ],
)
def test_bad_input(change, message):
    with pytest.raises(InputError, match=message):
        replace(small(), **change)


def test_other_episodes_cannot_be_compared():
    with pytest.raises(InputError, match="classifier and classifier: expected the same test quer"):
        compare(Accuracy()(small()), Accuracy()(replace(small(), rows=small().rows + 1)))


def test_macro_f1_of_many_at_once():
    sums = np.random.default_rng(0).integers(1, 9, (4, 3, 5, 3)).astype(float)
    assert macro_f1(sums)[2, 1] == pytest.approx(macro_f1(sums[2, 1]))


def test_json():
    measured = Accuracy()(small())
    assert Measurement.from_dict(measured.to_dict()) == measured
    assert "naive_low" in measured.details
    assert "0.750" in str(measured)


def _covered(world, classes, count, noise, seed):
    """How often intervals hold the truth, which is the mean of many such worlds."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        before, after = world.run(rng, classes, noise)
        gap = compared(before, after)["accuracy"]
        measured = scored(before)["accuracy"], scored(before)["f1"], gap
        rows.append([(m.value, m.low, m.high, *naive(m)) for m in measured])
    made = np.array(rows)
    truth = made[:, :, 0].mean(axis=0)
    ours = (made[:, :, 1] <= truth) & (truth <= made[:, :, 2])
    usual = (made[:, :, 3] <= truth) & (truth <= made[:, :, 4])
    return ours.mean(axis=0), usual.mean(axis=0)


def test_coverage_of_new_classes(world):
    ours, usual = _covered(world, classes=10, count=60, noise=0.6, seed=0)
    assert (ours >= 0.85).all()
    assert (usual[:2] <= 0.45).all()


@pytest.mark.slow
@pytest.mark.parametrize("classes", [8, 20])
def test_coverage_of_new_classes_with_more_draws(world, classes):
    world.episodes = 400
    ours, usual = _covered(world, classes=classes, count=250, noise=0.6, seed=classes)
    assert (ours >= 0.90).all()
    assert (usual[:2] <= 0.35).all()


def test_rows_by_class_are_those_of_plain_loops(world):
    answers, _ = world.run(np.random.default_rng(0), 8)
    measured = Accuracy()(answers)
    rows, f1 = measured.select("class"), measured.part("f1").select("class")
    truth = np.take_along_axis(answers.classes, answers.truth, 1)
    said = np.take_along_axis(answers.classes, answers.predicted, 1)
    assert [row.query for row in rows] == [str(k) for k in range(8)]
    for k, row in enumerate(rows):
        own = truth == k
        assert row.details["queries"] == own.sum()
        assert row.n == row.details["texts"] == len(set(answers.rows[own].tolist()))
        assert row.value == pytest.approx((said[own] == k).mean())
        assert row.details["precision"] == pytest.approx((truth[said == k] == k).mean())
        p, r = row.details["precision"], row.value
        assert f1[k].value == pytest.approx(2 * p * r / (p + r))
        wrong = said[own & (said != k)]
        assert int(row.details["confused_with"]) == np.bincount(wrong).argmax()
        assert 0 <= row.low < row.value < row.high <= 1
        assert f1[k].low < f1[k].value < f1[k].high


def test_the_interval_of_a_class_holds_for_new_texts_and_opponents(world):
    """The same class among new opponents, with new texts each time."""
    held, values, ends = 0, [], []
    for number in range(60):
        rng = np.random.default_rng(number)
        points = world.points(rng, 9)
        points[0] = 0.8 + 1.3 * rng.normal(size=points[0].shape)
        drawn = world.draw(rng, 9)
        made = world.answers(world.log_probs(points, points, *drawn), drawn[0], drawn[2])
        row = Accuracy()(made).part("0", by="class")
        values.append(row.value)
        ends.append((row.low, row.high))
    held = np.mean([low <= np.mean(values) <= high for low, high in ends])
    assert held >= 0.82


def genders_by_class() -> FewShotPredictions:
    """Class 0 is easy and all but one of its texts are men's, class 1 the other way round; within
    a class men and women do alike.
    """
    episodes = 12
    truth = np.tile(np.repeat([0, 1], 4), (episodes, 1))
    said = np.tile([0, 0, 0, 0, 1, 0, 1, 0], (episodes, 1))
    genders = np.tile([0, 0, 0, 1, 1, 1, 0, 0], (episodes, 1))
    log_probs = np.where(said[:, :, None] == np.arange(2), -0.1, -3.0)
    rows = np.tile(np.arange(8), (episodes, 1))
    return FewShotPredictions(log_probs, rows, truth, np.tile([0, 1], (episodes, 1)), genders)


def by_gender(answers):
    measured = Accuracy()(answers)
    f1 = {f"{part.query}_f1": part for part in measured.part("f1").select("gender")}
    return {part.query: part for part in measured.select("gender")} | f1


def by_component(runs):
    return {part.query: part for part in Accuracy()(join(runs)).select("component")}


def test_genders_are_compared_within_classes():
    made = by_gender(genders_by_class())
    assert made["male"].value == pytest.approx((1 + 0.5) / 2)
    assert made["gap"].value == 0
    pooled = [
        (genders_by_class().predicted == genders_by_class().truth)[
            genders_by_class().genders == g
        ].mean()
        for g in (0, 1)
    ]
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
            per_seed.append(
                FewShotPredictions(log_probs, rows, truth, classes + 10 * number, names=names)
            )
        runs.append(per_seed)
    return runs


def test_components_are_those_of_the_simulation():
    rng = np.random.default_rng(0)
    made = by_component(_runs(rng, 30, 4, split_sd=0.06, seed_sd=0.03))
    assert made["seed"].value == pytest.approx(0.03, rel=0.25)
    assert made["class"].value == pytest.approx(0.1 / math.sqrt(10), rel=0.25)
    assert made["split"].value == pytest.approx(math.hypot(0.06, 0.1 / math.sqrt(10)), rel=0.3)
    assert made["split without its classes"].value == pytest.approx(0.06, rel=0.35)
    assert made["episode"].value < 0.01
    for part in made.values():
        assert part.low <= part.value <= part.high


def test_no_seed_effect_reads_as_none():
    rng = np.random.default_rng(1)
    made = by_component(_runs(rng, 40, 3, split_sd=0.05, seed_sd=0.0))
    assert made["seed"].value < 0.004  # the queries alone give run means an SD of 0.0057
    assert made["seed"].low == 0


def test_one_seed_or_one_split_has_no_components_of_them():
    rng = np.random.default_rng(2)
    made = {k: c.value for k, c in by_component(_runs(rng, 1, 1, 0.05, 0.02)).items()}
    assert math.isnan(made["seed"])
    assert math.isnan(made["split"])
    assert made["class"] > 0
    assert made["episode"] > 0


def test_runs_must_be_square_and_share_episodes():
    runs = _runs(np.random.default_rng(3), 2, 2, 0.05, 0.02, episodes=20)
    with pytest.raises(InputError, match=r"as many seeds in every split, got \[2, 1\]"):
        join([runs[0], runs[1][:1]])
    with pytest.raises(InputError, match="split 1: expected the same episodes"):
        join([[runs[0][0], runs[1][0]], runs[1]])


def test_classes_that_splits_share_do_not_set_them_apart():
    """All splits have the same test classes: they differ only without their classes."""
    rng = np.random.default_rng(4)
    found = []
    for same in (True, False):
        level, runs = rng.normal(0.6, 0.1, (40, 10)), []
        for number in range(40):
            chosen = np.argsort(rng.random((100, 10)), axis=1)[:, :5]
            truth = np.tile(np.repeat(np.arange(5), 10), (100, 1))
            chance = level[0 if same else number][np.take_along_axis(chosen, truth, 1)]
            right = rng.random(truth.shape) < chance + rng.normal(0, 0.05)
            said = np.where(right, truth, (truth + 1) % 5)
            log_probs = np.where(said[:, :, None] == np.arange(5), -0.1, -4.0)
            classes = chosen + (0 if same else 10 * number)
            names = tuple(str(k) for k in range(400))
            runs.append([FewShotPredictions(log_probs, truth, truth, classes, names=names)])
        found.append(by_component(runs)["split without its classes"].value)
    assert found[0] == pytest.approx(0.05, rel=0.15)  # 0.038 if they did
    assert found[1] == pytest.approx(0.05, rel=0.35)
