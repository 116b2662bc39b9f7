"""AUCs of groups: against scikit-learn, brute force and in simulation."""

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score

from evenhand.classifier import Predictions, read_predictions
from evenhand.classifier.metrics.subgroup_auc import BnspAuc, BpsnAuc, SubgroupAuc
from evenhand.errors import InputError
from evenhand.simulate.predictions import biased_predictions
from evenhand.statistics.auc import auc


def scored(n=300, seed=0, shift=0.0, clusters=1):
    rng = np.random.default_rng(seed)
    true = rng.integers(2, size=n)
    group = rng.choice(["a", "b"], n)
    noise = rng.normal(size=n) if clusters == 1 else rng.normal(size=n // clusters).repeat(clusters)
    score = true + noise + shift * (group == "a")
    return true, group, np.round(score, 1)


def test_auc_with_ties_is_that_of_scikit_learn():
    true, _, score = scored()
    value, one, two = auc(score[true == 1], score[true == 0])
    assert value == pytest.approx(roc_auc_score(true, score))
    assert one.sum() == pytest.approx(0, abs=1e-12)
    assert two.sum() == pytest.approx(0, abs=1e-12)


def test_the_three_are_those_of_borkan_and_others():
    true, group, score = scored(shift=0.8)
    p = Predictions(
        pred=tuple("yes" if s > 0.5 else "no" for s in score),
        true=tuple("yes" if t else "no" for t in true),
        groups={"group": tuple(group)},
        scores={"yes": score},
    )
    a = group == "a"
    expected = {
        SubgroupAuc: roc_auc_score(true[a], score[a]),
        BpsnAuc: roc_auc_score(
            *np.array([(t, s) for t, s, g in zip(true, score, a, strict=True) if g != bool(t)]).T
        ),
        BnspAuc: roc_auc_score(
            *np.array([(t, s) for t, s, g in zip(true, score, a, strict=True) if g == bool(t)]).T
        ),
    }
    for cls, value in expected.items():
        first, _ = cls(positive="yes").measure(p)
        assert first.query == "group: a"
        assert first.value == pytest.approx(value)
    assert expected[BpsnAuc] < expected[BnspAuc]  # scores of the group are too high


@pytest.mark.parametrize("clusters", [1, 4])
def test_intervals_cover(clusters):
    covered, n = 0, 150
    truth = 0.760  # P(1 + z1 > z2) for standard normal z1, z2
    for seed in range(n):
        true, group, score = scored(400, seed, clusters=clusters)
        if clusters > 1:
            true = true[::clusters].repeat(clusters)
            noise = np.random.default_rng(seed).normal(size=400 // clusters).repeat(clusters)
            score = true + noise + 0.1 * np.random.default_rng(seed + 1).normal(size=400)
        p = Predictions(
            pred=("x",) * 400,
            true=tuple("yes" if t else "no" for t in true),
            groups={"group": tuple(group)},
            scores={"yes": score},
            clusters=tuple(str(i // clusters) for i in range(400)) if clusters > 1 else (),
        )
        m = SubgroupAuc(positive="yes").measure(p)[0]
        covered += m.low <= truth <= m.high
    assert 0.9 <= covered / n <= 0.99


def test_several_classes_are_averaged():
    frame = biased_predictions(300, gap=0.3, classes=3, seed=4)
    scores = {name: f"score {name}" for name in sorted(set(frame.y_true))}
    p = read_predictions(frame, group="gender", score=scores)
    man, woman = SubgroupAuc().measure(p)
    own = frame[frame.gender == "man"]
    values = [roc_auc_score(own.y_true == name, own[column]) for name, column in scores.items()]
    assert man.value == pytest.approx(np.mean(values))
    assert [part.value for part in man.select("class")] == pytest.approx(values)
    assert man.value > woman.value
    assert man.high - man.low < max(part.high - part.low for part in man.parts)
    five = biased_predictions(400, gap=0.3, classes=5, seed=4)
    first, _ = SubgroupAuc().measure(read_predictions(five, group="gender", score="score *"))
    raw, pooled = ([part.value for part in first.select(by)] for by in ("class", "pooled"))
    assert len(pooled) == 5
    assert np.std(pooled) < np.std(raw)


def test_scores_are_needed():
    p = Predictions(pred=("x", "y"), true=("x", "x"), groups={"g": ("a", "b")})
    with pytest.raises(InputError, match="subgroup-auc: expected scores of the classes"):
        SubgroupAuc().measure(p)
