from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.fewshot.statistics import Answers, compare, macro_f1, scores
from evenhand.fewshot.statistics_replicates import replicates
from evenhand.intervals import t_mean
from evenhand.results import to_json

YES, NO = np.log(0.9), np.log(0.1)


def small() -> Answers:
    """Two episodes of two classes with two queries each; class 2 is once taken for class 0."""
    said = np.array([[0, 0, 1, 0], [0, 0, 0, 1]])
    log_probs = np.where(said[:, :, None] == np.arange(2), YES, NO)
    truth = np.array([[0, 0, 1, 1]] * 2)
    rows = np.array([[0, 1, 10, 11], [0, 2, 20, 21]])
    return Answers(log_probs, rows, truth, np.array([[0, 1], [0, 2]]))


def brute(answers: Answers, metric: str, episodes) -> float:
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
    made = scores(small())
    assert made["accuracy"].value == pytest.approx(6 / 8)
    # class 0: asked 4, right 4, predicted 6; classes 1 and 2: asked 2, right 1, predicted 1
    assert made["f1"].value == pytest.approx((8 / 10 + 2 / 3 + 2 / 3) / 3)
    # in each episode: class 0 asked 2, right 2, predicted 3; the other 2, 1, 1
    assert made["f1_episode"].value == pytest.approx((4 / 5 + 2 / 3) / 2)


@pytest.mark.parametrize("metric", ["accuracy", "f1", "f1_episode"])
def test_replicates_are_those_of_plain_loops(world, metric):
    world.episodes = 30
    answers, _ = world.run(np.random.default_rng(3), 7)
    made = answers.scored[metric]
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
    made = scores(answers)["accuracy"]
    value, low, high = t_mean((answers.predicted == answers.truth).mean(axis=1))
    assert (made.value, made.naive_low, made.naive_high) == pytest.approx((value, low, high))
    assert made.high - made.low > 2 * (high - low)


def test_a_difference_with_itself_is_none_and_with_its_reverse_the_opposite(world):
    first, second = world.run(np.random.default_rng(1), 9, noise=0.8)
    same = compare(first, first)["f1"]
    assert (same.value, same.low, same.high, same.p_value) == (0, 0, 0, 1)
    there, back = compare(first, second)["f1"], compare(second, first)["f1"]
    assert (there.low, there.high) == pytest.approx((-back.high, -back.low))
    gained = scores(second)["f1"].value - scores(first)["f1"].value
    assert there.value == pytest.approx(gained)
    assert (there.p_value < 0.05) == (not there.low <= 0 <= there.high)


def test_pairing_narrows_the_interval(world):
    first, second = world.run(np.random.default_rng(2), 12, noise=0.3)
    alone, paired = scores(first)["accuracy"], compare(first, second)["accuracy"]
    assert paired.high - paired.low < 0.6 * (alone.high - alone.low)


def test_all_classes_in_every_episode(world):
    answers, _ = world.run(np.random.default_rng(4), 5)
    made = scores(answers)["accuracy"]
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
    one = Answers(*(getattr(answers, name)[:1] for name in names))
    made = scores(one)["accuracy"]
    assert (made.low, made.high, made.naive_low, made.naive_high) == (0, 1, 0, 1)


def test_more_of_the_same_episodes_do_not_narrow_the_class_interval(world):
    rng = np.random.default_rng(6)
    answers, _ = world.run(rng, 8)
    names = ("log_probs", "rows", "truth", "classes")
    four = Answers(*(np.concatenate([getattr(answers, name)] * 4) for name in names))
    once, again = scores(answers)["accuracy"], scores(four)["accuracy"]
    naive = (again.naive_high - again.naive_low) / (once.naive_high - once.naive_low)
    assert naive == pytest.approx(0.5, abs=0.02)
    assert (again.high - again.low) / (once.high - once.low) > 0.8


def test_a_class_without_effect_on_others_gives_the_textbook_interval():
    """Episodes of one class in truth: accuracy of a class is a number of its own."""
    rng = np.random.default_rng(0)
    level = rng.random(12)
    classes = np.array([[a, b] for a in range(12) for b in range(12) if a != b])
    counts = np.stack([np.ones(classes.shape), level[classes]], axis=2)
    made = replicates(lambda s: s[..., 1].sum(-1) / s[..., 0].sum(-1), counts, classes)
    assert made.value == pytest.approx(level.mean())
    variance, freedom = replace(made, cross=made.cross[:0]).class_variance()
    assert (variance, freedom) == (pytest.approx(level.var(ddof=1) / 12), 11)


def test_a_zero_probability_is_not_the_end():
    answers = small()
    with np.errstate(divide="ignore"):
        made = replace(answers, log_probs=np.log(np.eye(2)[answers.truth]))
    assert np.isfinite(made.true_log_probs).all()
    assert made.log_probs.min() == pytest.approx(np.log(1e-12))


@pytest.mark.parametrize(
    ("change", "told"),
    [
        ({"log_probs": np.full((2, 4, 2), np.nan)}, "episode 0, query 0: not a number"),
        ({"log_probs": np.zeros((2, 4))}, "episodes × queries × classes"),
        ({"rows": np.zeros((2, 3))}, r"rows: expected 2 × 4, got \(2, 3\)"),
        ({"truth": np.full((2, 4), 2)}, "truth: expected 0 to 1"),
        ({"classes": np.full((2, 2), 5), "names": ("a", "b")}, "classes: expected 0 to 1"),
    ],
)
def test_bad_input(change, told):
    with pytest.raises(InputError, match=told):
        replace(small(), **change)


def test_other_episodes_cannot_be_compared():
    with pytest.raises(InputError, match="same queries"):
        compare(small(), replace(small(), rows=small().rows + 1))


def test_macro_f1_of_many_at_once():
    sums = np.random.default_rng(0).integers(1, 9, (4, 3, 5, 3)).astype(float)
    assert macro_f1(sums)[2, 1] == pytest.approx(macro_f1(sums[2, 1]))


def test_json():
    text = to_json(scores(small()))
    assert '"naive_low"' in text
    assert "0.750" in str(scores(small())["accuracy"])


def _covered(world, classes, count, noise, seed):
    """How often intervals hold the truth, which is the mean of many such worlds."""
    rng = np.random.default_rng(seed)
    rows = []
    for _ in range(count):
        before, after = world.run(rng, classes, noise)
        found = scores(before)["accuracy"], scores(before)["f1"], compare(before, after)["accuracy"]
        rows.append([(s.value, s.low, s.high, s.naive_low, s.naive_high) for s in found])
    made = np.array(rows)
    truth = made[:, :, 0].mean(axis=0)
    ours = (made[:, :, 1] <= truth) & (truth <= made[:, :, 2])
    naive = (made[:, :, 3] <= truth) & (truth <= made[:, :, 4])
    return ours.mean(axis=0), naive.mean(axis=0)


def test_coverage_of_new_classes(world):
    ours, naive = _covered(world, classes=10, count=60, noise=0.6, seed=0)
    assert (ours >= 0.85).all()
    assert (naive[:2] <= 0.45).all()


@pytest.mark.slow
@pytest.mark.parametrize("classes", [8, 20])
def test_coverage_of_new_classes_with_more_draws(world, classes):
    world.episodes = 400
    ours, naive = _covered(world, classes=classes, count=250, noise=0.6, seed=classes)
    assert (ours >= 0.90).all()
    assert (naive[:2] <= 0.35).all()
