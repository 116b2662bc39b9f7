"""Gaps between groups: against fairlearn and closed forms, and in worlds with a known gap."""

import numpy as np
import pandas as pd
import pytest
from fairlearn import metrics as fairlearn
from scipy import stats

import evenhand as eh
from evenhand.classifier import Predictions, read_predictions
from evenhand.classifier.metrics.calibration import CalibrationGap
from evenhand.classifier.metrics.gaps import EqualizedOdds, FprGap, ParityGap, TprGap
from evenhand.errors import InputError
from evenhand.instruments import Run
from evenhand.simulate.predictions import biased_predictions


def binary(n=600, seed=0):
    """Predictions of two classes and three groups."""
    rng = np.random.default_rng(seed)
    group = rng.choice(["a", "b", "c"], n, p=[0.5, 0.3, 0.2])
    true = rng.integers(2, size=n)
    wrong = rng.random(n) < np.select([group == "a", group == "b"], [0.1, 0.3], 0.2)
    return pd.DataFrame({"group": group, "y_true": true, "y_pred": np.where(wrong, 1 - true, true)})


def test_gaps_of_two_groups_are_those_of_fairlearn():
    frame = binary()[lambda f: f.group != "c"]
    p = read_predictions(frame, group="group")
    arguments = {
        "y_true": frame.y_true,
        "y_pred": frame.y_pred,
        "sensitive_features": frame.group,
    }
    by_group = fairlearn.MetricFrame(
        metrics={
            "tpr": fairlearn.true_positive_rate,
            "fpr": fairlearn.false_positive_rate,
            "parity": fairlearn.selection_rate,
        },
        **arguments,
    ).by_group
    for cls in (TprGap, FprGap, ParityGap):
        [m] = cls(positive="1").measure(p)
        rates = by_group[cls.rates[0]]
        assert m.query == "group: a - b"
        assert m.part("1", "class").value == pytest.approx(rates["a"] - rates["b"])
        assert m.value == pytest.approx(rates["a"] - rates["b"])
        assert (m.worse, m.details["positive"]) == ("away", "1")
        assert m.value == cls().measure(p)[0].value  # 1 of 0 and 1 is inferred
        assert m.part("1", "class").details["rates"] == pytest.approx([rates["a"], rates["b"]])
    [m] = EqualizedOdds().measure(p)
    assert m.value == pytest.approx(fairlearn.equalized_odds_difference(**arguments))
    [m] = ParityGap().measure(p)
    assert abs(m.value) == pytest.approx(fairlearn.demographic_parity_difference(**arguments))


def test_each_of_several_groups_is_compared_with_all_others():
    frame = binary()
    found = TprGap(positive="1").measure(read_predictions(frame, group="group"))
    assert [m.query for m in found] == [f"group: {g} - the others" for g in "abc"]
    positive = frame[frame.y_true == 1]
    for m, group in zip(found, "abc", strict=True):
        own = positive.group == group
        rates = [float((positive.y_pred[side] == 1).mean()) for side in (own, ~own)]
        assert m.part("1").value == pytest.approx(rates[0] - rates[1])


def test_many_classes_by_hand_and_the_interval_of_newcombe():
    frame = biased_predictions(500, gap=0.2, classes=5, seed=2)
    [m] = TprGap().measure(read_predictions(frame, group="gender"))
    gaps = []
    for name in sorted(set(frame.y_true)):
        own = frame[frame.y_true == name]
        men, women = ((own[own.gender == g].y_pred == name) for g in ("man", "woman"))
        part = m.part(name, "class")
        assert part.value == pytest.approx(men.mean() - women.mean())
        table = [[men.sum(), (~men).sum()], [women.sum(), (~women).sum()]]
        assert part.p_value == pytest.approx(stats.fisher_exact(table).pvalue)
        ends_of_men, ends_of_women = (
            stats.binomtest(int(side.sum()), len(side)).proportion_ci(method="wilson")
            for side in (men, women)
        )
        lower = part.value - np.hypot(
            men.mean() - ends_of_men.low, ends_of_women.high - women.mean()
        )
        upper = part.value + np.hypot(
            ends_of_men.high - men.mean(), women.mean() - ends_of_women.low
        )
        assert (part.low, part.high) == pytest.approx((lower, upper))
        gaps.append(part.value)
    assert m.value == pytest.approx(np.sqrt(np.mean(np.square(gaps))))
    assert m.details["mean_gap"] == pytest.approx(np.mean(gaps))
    pooled = [part.value for part in m.select("pooled")]
    assert np.std(pooled) < np.std(gaps)


@pytest.mark.slow
@pytest.mark.parametrize("person", [1, 4], ids=["texts", "persons"])
@pytest.mark.parametrize("cls", [TprGap, FprGap, ParityGap, EqualizedOdds])
def test_without_a_gap_few_are_found(cls, person):
    false, n = 0, 150
    shares = () if cls is ParityGap else (0.2, 0.5, 0.8)  # unequal shares are a gap of parity
    for seed in range(n):
        frame = biased_predictions(120, classes=3, seed=seed, person=person, shares=shares)
        cluster = "person" if person > 1 else None
        p = read_predictions(frame, group="gender", cluster=cluster)
        [m] = cls(permutations=199).measure(p)
        false += m.p_value <= 0.05
    assert false / n <= 0.09  # two standard errors above 5 %; equalized odds are cautious


def test_texts_of_one_person_are_not_independent():
    """The same worlds, wrongly taken as independent texts, find gaps that are not there."""
    false = 0
    for seed in range(60):
        frame = biased_predictions(80, classes=3, seed=seed, person=6)
        [m] = TprGap(permutations=199).measure(read_predictions(frame, group="gender"))
        false += m.p_value <= 0.05
    assert false / 60 > 0.3


@pytest.mark.slow
@pytest.mark.parametrize(("gap", "classes"), [(0.0, 12), (0.1, 4), (0.1, 12), (0.3, 4)])
def test_the_interval_covers_the_true_root_mean_square(gap, classes):
    covered, raw, n = 0, [], 120
    for seed in range(n):
        p = read_predictions(
            biased_predictions(600, gap=gap, classes=classes, seed=seed), group="gender"
        )
        [m] = TprGap(permutations=0).measure(p)
        part = m.part("without noise")
        covered += part.low <= gap <= part.high
        raw.append(m.value)
    assert covered / n >= 0.9
    if gap == 0:
        assert np.mean(raw) > 0.1  # what the plain root mean square reads without any gap


@pytest.mark.slow
@pytest.mark.parametrize("person", [1, 3])
def test_intervals_of_classes_cover_the_true_gap(person):
    covered = total = 0
    for seed in range(80):
        frame = biased_predictions(200, gap=0.2, classes=3, seed=seed, person=person)
        p = read_predictions(frame, group="gender", cluster="person" if person > 1 else None)
        [m] = TprGap(permutations=0).measure(p)
        covered += sum(part.low <= 0.2 <= part.high for part in m.select("class"))
        total += 3
    assert 0.91 <= covered / total <= 0.99


def test_two_classifiers_are_compared_on_the_same_texts():
    covered, n = 0, 80
    rng = np.random.default_rng(0)
    for seed in range(n):
        frame = biased_predictions(800, gap=0.3, classes=3, seed=seed)
        before = TprGap(permutations=0).measure(read_predictions(frame, group="gender"))[0]
        fixed = rng.random(800) < 0.5  # half of the wrong answers are put right
        frame["y_pred"] = np.where(fixed, frame.y_true, frame.y_pred)
        after = TprGap(permutations=0).measure(read_predictions(frame, group="gender"))[0]
        change = eh.compare(before, after)
        assert change.paired == 800
        assert change.change.value == pytest.approx(after.value - before.value)
        covered += change.change.low <= -0.15 <= change.change.high
    assert covered / n >= 0.88


def test_columns_and_their_intersection():
    frame = biased_predictions(400, gap=0.2, classes=2, seed=1)
    frame["age"] = np.where(np.arange(400) % 2, "old", None)
    frame.loc[frame.index % 4 == 0, "age"] = "young"
    p = read_predictions(frame, group=["gender", "age"])
    assert list(p.columns) == ["gender", "age", "gender × age"]
    queries = [m.query for m in TprGap(permutations=0).measure(p)]
    assert queries[:2] == ["gender: man - woman", "age: old - young"]
    assert "gender × age: woman × young - the others" in queries
    joined = [m for m in TprGap(permutations=0).measure(p) if "×" in m.query]
    assert joined[0].n == frame.age.notna().sum()


def test_calibration_equals_a_direct_computation_and_covers():
    frame = biased_predictions(400, gap=0.2, classes=3, seed=3)
    scores = {name: f"score {name}" for name in sorted(set(frame.y_true))}
    [m] = CalibrationGap().measure(read_predictions(frame, group="gender", score=scores))
    for name, column in scores.items():
        error = frame[column] - (frame.y_true == name)
        men, women = (error[frame.gender == g] for g in ("man", "woman"))
        test = stats.ttest_ind(men, women, equal_var=False)
        part = m.part(name, "class")
        assert part.value == pytest.approx(men.mean() - women.mean())
        assert part.p_value == pytest.approx(test.pvalue)
        assert m.part(f"man, {name}").value == pytest.approx(men.mean())
    frame["score class 0"] -= 5
    p = read_predictions(frame, group="gender", score=scores)
    with pytest.raises(InputError, match="expected probabilities between 0 and 1, got -"):
        CalibrationGap().measure(p)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"groups": {"g": ("a", "a")}}, "group 'g': expected two groups or more, got only 'a'"),
        ({"groups": {"g": (None, None)}}, "expected two groups or more, got none"),
        ({"groups": {}}, "group: expected a column of groups"),
        ({"true": ()}, "true: expected the true classes"),
    ],
)
def test_what_cannot_be_measured(change, message):
    given = {"pred": ("x", "y"), "true": ("x", "x"), "groups": {"g": ("a", "b")}, **change}
    with pytest.raises(InputError, match=message):
        TprGap().measure(Predictions(**given))
    p = Predictions(pred=("x", "y"), true=("x", "y"), groups={"g": ("a", "b")})
    with pytest.raises(InputError, match="expected a class with people of both groups"):
        TprGap().measure(p)
    with pytest.raises(InputError, match="unknown class 'z'"):
        TprGap(positive="z").measure(p)
    assert FprGap(permutations=0).declaration.name == "fpr-gap"
    assert Run().prob == 0.95
