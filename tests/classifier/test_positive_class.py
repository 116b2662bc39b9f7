"""Two classes: the usual rates of the positive one, by hand, and tests that are one."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import evenhand as eh
from evenhand.classifier import Predictions, read_predictions
from evenhand.classifier.metrics.calibration import CalibrationGap
from evenhand.classifier.metrics.gaps import EqualizedOdds, FprGap, ParityGap, TprGap
from evenhand.classifier.metrics.subgroup_auc import BnspAuc, BpsnAuc
from evenhand.cli import run
from evenhand.errors import UnknownNameError
from evenhand.judging import BiasTest, judge
from evenhand.report.verdicts import judge as judge_verdict

COUNTS = {  # group, true, predicted
    ("a", 1, 1): 30,
    ("a", 1, 0): 10,
    ("a", 0, 1): 12,
    ("a", 0, 0): 48,
    ("b", 1, 1): 18,
    ("b", 1, 0): 12,
    ("b", 0, 1): 28,
    ("b", 0, 0): 42,
}
"""TPR .75 and .6, FPR .2 and .4, predicted .42 and .46."""


def table(no="0", yes="1"):
    rows = [row for row, count in COUNTS.items() for _ in range(count)]
    names = {0: no, 1: yes}
    return pd.DataFrame(
        {"group": g, "y_true": names[true], "y_pred": names[pred]} for g, true, pred in rows
    )


@pytest.mark.parametrize(
    ("no", "yes"),
    [("0", "1"), (0, 1), ("0.0", "1.0"), ("no", "yes"), ("No", "YES"), (False, True)],
)
def test_the_positive_class_is_inferred_and_the_rates_are_those_by_hand(no, yes):
    p = read_predictions(table(no, yes), group="group")
    for cls, value in ((TprGap, 0.15), (FprGap, -0.2), (ParityGap, -0.04)):
        [m] = cls().measure(p)
        assert m.value == pytest.approx(value)
        assert m.details["positive"] == str(yes)
        assert m.low < m.value < m.high
        assert m.worse == "away"
        assert m.notes == (f"positive class: '{yes}'",)
    [tpr] = TprGap().measure(p)
    assert tpr.n == 70
    assert tpr.p_value == pytest.approx(stats.fisher_exact([[30, 10], [18, 12]]).pvalue)
    # Newcombe's interval of 30/40 and 18/30, by Wilson's limits
    low, high = (
        stats.binomtest(k, n).proportion_ci(method="wilson") for k, n in ((30, 40), (18, 30))
    )
    assert tpr.low == pytest.approx(0.15 - np.hypot(0.75 - low.low, high.high - 0.6))
    [odds] = EqualizedOdds().measure(p)
    assert (odds.value, odds.details["gaps"], odds.details["rate"]) == (
        pytest.approx(0.2),
        2,
        "fpr",
    )


def test_another_class_can_be_named():
    p = read_predictions(table("stay", "leave"), group="group", positive="stay")
    assert TprGap().measure(p)[0].value == pytest.approx(0.2)  # .8 and .6 of those who stay
    assert TprGap(positive="leave").measure(p)[0].value == pytest.approx(0.15)
    named = eh.measure(p, metrics="tpr-gap", options={"positive": "leave"})
    assert named.value == pytest.approx(0.15)
    with pytest.raises(UnknownNameError, match="unknown class 'left'"):
        TprGap(positive="left").measure(p)
    assert TprGap(positive=1).measure(read_predictions(table(), group="group"))[0].value > 0


def test_without_a_positive_class_one_test_repeats_the_other():
    p = read_predictions(table("stay", "leave"), group="group")
    [tpr], [fpr] = TprGap().measure(p), FprGap().measure(p)
    assert tpr.value == pytest.approx(np.sqrt((0.15**2 + 0.2**2) / 2))
    assert fpr.value == pytest.approx(tpr.value)
    assert (tpr.low, tpr.high, tpr.p_value) == pytest.approx((fpr.low, fpr.high, fpr.p_value))
    assert {part.query for part in tpr.select("class")} == {"stay", "leave"}
    [first], [second] = TprGap.evidence(tpr), FprGap.evidence(fpr)
    assert (first.repeats, second.repeats) == ("", "tpr-gap")
    tests = [
        BiasTest(
            metric=e.measurement.metric,
            query=e.measurement.query,
            label=e.label,
            value=e.measurement.value,
            low=e.measurement.low,
            high=e.measurement.high,
            p_value=e.measurement.p_value,
            role="decides",
            one_sided=True,
            repeats=e.repeats,
        )
        for e in (first, second)
    ]
    assert judge(tests)[0].family == 1
    [parity] = ParityGap().measure(p)
    assert all(part.p_corrected is None for part in parity.select("class"))  # one test
    [odds] = EqualizedOdds().measure(p)
    assert odds.details["gaps"] == 2
    with_positive = read_predictions(table(), group="group")
    for cls in (TprGap, FprGap):
        assert cls.evidence(cls().measure(with_positive)[0])[0].repeats == ""


def test_sentence_and_verdict_count_one_test_once(capsys, tmp_path):
    """Without a positive class the true- and false-positive gap are one number: one finding."""
    frame = pd.concat([table("stay", "leave")] * 8)
    frame.to_csv(tmp_path / "p.csv", index=False)
    assert run(["classifier", str(tmp_path / "p.csv"), "--group", "group", "--json"]) == 0
    sentence = json.loads(capsys.readouterr().out)["sentence"]
    assert sentence.startswith("Found in p.csv, group: a - b: ")
    assert "of 2 tests" not in sentence
    p = read_predictions(frame, group="group")
    both = [*TprGap().measure(p), *FprGap().measure(p)]
    assert [test.metric for test in judge_verdict("predictions", both).tests] == ["tpr-gap"]
    named = read_predictions(frame, group="group", positive="leave")
    both = [*TprGap().measure(named), *FprGap().measure(named)]
    assert len(judge_verdict("predictions", both).tests) == 2


def test_three_classes_do_not_repeat():
    frame = table()
    frame.loc[::7, "y_true"] = "2"
    [m] = FprGap().measure(read_predictions(frame, group="group"))
    assert "positive" not in m.details
    assert FprGap.evidence(m)[0].repeats == ""


def test_the_sentence_names_the_groups(capsys, tmp_path):
    path = tmp_path / "p.csv"
    frame = pd.concat([table("stay", "leave")] * 4)
    frame.to_csv(path, index=False)
    command = ["classifier", str(path), "--group", "group", "--metric", "fpr-gap"]
    assert run([*command, "--positive", "leave", "--json"]) == 0
    shown = json.loads(capsys.readouterr().out)
    assert shown["measurements"][0]["value"] == pytest.approx(-0.2)
    assert (
        "people are wrongly taken for 'leave' more often for 'b' than for 'a'"
        in (shown["sentence"])
    )
    assert run([*command, "--positive", "left"]) == 2
    assert "unknown class 'left'" in capsys.readouterr().err


def scored():
    rng = np.random.default_rng(1)
    n = 200
    true, group = rng.integers(2, size=n), rng.choice(["a", "b"], n)
    score = np.clip(0.5 + 0.2 * (true - 0.5) + 0.1 * (group == "a") + rng.normal(0, 0.1, n), 0, 1)
    return true, group, score


def test_scores_of_two_classes_are_one_test():
    true, group, score = scored()
    error = score - true
    expected = stats.ttest_ind(error[group == "a"], error[group == "b"], equal_var=False)
    for names in (("no", "yes"), ("x", "y")):
        p = Predictions(
            pred=tuple(names[int(s > 0.5)] for s in score),
            true=tuple(names[t] for t in true),
            groups={"group": tuple(group)},
            scores={names[0]: 1 - score, names[1]: score},
        )
        [m] = CalibrationGap().measure(p)
        gap = error[group == "a"].mean() - error[group == "b"].mean()
        assert abs(m.value) == pytest.approx(gap)
        assert m.p_value == pytest.approx(expected.pvalue)
        bpsn, bnsp = BpsnAuc().measure(p)[0], BnspAuc().measure(p)[0]
        if names == ("no", "yes"):
            assert m.worse == "away"
            assert bpsn.value < bnsp.value - 0.1  # the scores of a are too high
