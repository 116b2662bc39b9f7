"""Counterfactual tables with groups: versions are not people of the original's group."""

import json

import numpy as np
import pandas as pd
import pytest

import evenhand as eh
from evenhand.classifier import Predictions, predict, read_predictions
from evenhand.classifier.metrics.calibration import CalibrationGap
from evenhand.classifier.metrics.counterfactual import CounterfactualFlips
from evenhand.classifier.metrics.gaps import EqualizedOdds, FprGap, ParityGap, TprGap
from evenhand.classifier.metrics.subgroup_auc import SubgroupAuc
from evenhand.cli import run
from evenhand.errors import FileError, InputError

pytest_plugins = ("pytester",)
NOTE = "rows: 120 originals of 240; the versions serve counterfactual measures"


def answer(text, number):
    """Who is called "he" is hired in 9 of 10 texts, who is called "she" in 5 of 10."""
    return "yes" if number % 10 < (9 if "he" in text.lower().split() else 5) else "no"


@pytest.fixture(scope="module")
def answered(tmp_path_factory):
    """120 texts with their swapped versions, written by the command, and answers to all of them.

    Of the originals 54 of 60 men and 30 of 60 women are hired: a gap of .4. The versions exchange
    this, so that all rows together have a gap of 0.
    """
    folder = tmp_path_factory.mktemp("versions")
    texts = [f"{'He' if i % 2 else 'She'} has worked here for {i} years." for i in range(120)]
    gender = ["man" if i % 2 else "woman" for i in range(120)]
    pd.DataFrame({"text": texts, "gender": gender, "y": "yes"}).to_csv(
        folder / "t.csv", index=False
    )
    output = folder / "cf.csv"
    command = ["rewrite", "counterfactuals", str(folder / "t.csv"), "--text", "text"]
    assert run([*command, "--versions", "swapped", "-o", str(output)]) == 0
    frame = pd.read_csv(output)
    numbers = frame.item.astype(int) - 1
    frame["yhat"] = [answer(t, n // 2) for t, n in zip(frame.text, numbers, strict=True)]
    frame["p_yes"] = np.where(frame.yhat == "yes", 0.8, 0.2)
    frame["p_no"] = 1 - frame.p_yes
    frame.to_csv(output, index=False)
    return output


COLUMNS = ["--true", "y", "--pred", "yhat", "--group", "gender"]


def test_group_measures_of_the_command_use_the_originals(answered, capsys):
    assert run(["classifier", str(answered), *COLUMNS, "--score", "p_*", "--json"]) == 0
    found = {m["metric"]: m for m in json.loads(capsys.readouterr().out)["measurements"]}
    for metric in ("tpr-gap", "parity-gap", "equalized-odds", "calibration-gap"):
        assert found[metric]["n"] == 120
        assert found[metric]["notes"][0] == NOTE
    assert found["tpr-gap"]["value"] == pytest.approx(0.4)
    assert found["equalized-odds"]["value"] == pytest.approx(0.4)
    assert found["calibration-gap"]["value"] == pytest.approx(0.6 * 0.4)
    assert found["counterfactual-flips"]["n"] == 120
    assert not found["counterfactual-flips"]["notes"]
    assert run(["classifier", str(answered), *COLUMNS]) == 0
    assert NOTE in capsys.readouterr().out


def test_they_do_so_in_python_and_in_data_frames(answered):
    frame = pd.read_csv(answered)
    p = read_predictions(frame, true="y", pred="yhat", group="gender", score="p_*")
    assert eh.measure(p, metrics="tpr-gap").value == pytest.approx(0.4)
    alone = read_predictions(
        frame[frame.version == "original"], true="y", pred="yhat", group="gender", score="p_*"
    )
    for cls in (TprGap, ParityGap, EqualizedOdds, CalibrationGap):
        [both], [one] = (cls().measure(each) for each in (p, alone))
        assert (both.value, both.low, both.high) == (one.value, one.low, one.high)
        assert both.p_value == one.p_value
        assert len(both.items) == len(one.items) == 120
    assert CounterfactualFlips().measure(p)[0].value == pytest.approx(0.4)


def test_subgroup_aucs_use_the_originals():
    rng = np.random.default_rng(0)
    n = 80
    given = {
        "pred": ("x",) * 2 * n,
        "true": tuple(rng.choice(["x", "y"], n).repeat(2)),
        "groups": {"g": tuple(rng.choice(["a", "b"], n).repeat(2))},
        "scores": {"x": rng.random(2 * n)},
        "items": tuple(map(str, np.arange(n).repeat(2))),
        "versions": ("original", "swapped") * n,
    }
    p = Predictions(**given)
    one, both = SubgroupAuc().measure(p.originals)[0], SubgroupAuc().measure(p)[0]
    assert (both.value, both.low, both.n) == (one.value, one.low, one.n)
    assert both.notes[0].startswith("rows: 80 originals of 160")


def test_a_classifier_that_is_asked_for_versions():
    texts = [f"{'He' if i % 2 else 'She'} works." for i in range(40)]
    p = predict(
        lambda part: [[0.9, 0.1] if "He" in text else [0.1, 0.9] for text in part],
        texts,
        true=["yes"] * 40,
        groups={"gender": ["man", "woman"] * 20},
        classes=["yes", "no"],
        versions=["swapped"],
    )
    assert len(p) == 80
    [m] = TprGap().measure(p)
    assert (m.value, m.n) == (pytest.approx(-1.0), 40)


def test_an_audit_counts_the_originals(answered, tmp_path, capsys):
    command = ["audit", "--predictions", str(answered), *COLUMNS, "--out", str(tmp_path / "out")]
    assert run([*command, "--json"]) == 0
    capsys.readouterr()
    saved = json.loads((tmp_path / "out" / "results.json").read_text())
    assert saved["subjects"]["predictions"]["texts"] == 120
    assert saved["subjects"]["predictions"]["versions"] == 120
    assert NOTE[1:] in (tmp_path / "out" / "report.html").read_text()
    [m] = [
        m
        for stage in saved["stages"]
        for m in stage.get("measurements", ())
        if m["metric"] == "tpr-gap"
    ]
    assert m["value"] == pytest.approx(0.4)


def test_a_gate_and_the_pytest_plugin_see_the_originals(answered, tmp_path, capsys, pytester):
    results, policy = tmp_path / "results.json", tmp_path / "policy.toml"
    assert run(["classifier", str(answered), *COLUMNS, "-o", str(results)]) == 0
    policy.write_text('[[rules]]\nmetric = "tpr-gap"\nmin = -0.2\nmax = 0.2\n')
    assert run(["gate", str(policy), str(results)]) == 3
    capsys.readouterr()
    pytester.makepyfile(
        f"""
        import evenhand as eh

        def test_gap(evenhand_gate):
            p = eh.classifier.read_predictions(
                {str(answered)!r}, true="y", pred="yhat", group="gender"
            )
            evenhand_gate.measure(p, metrics="tpr-gap", policy={str(policy)!r})
        """
    )
    pytester.runpytest_inprocess().assert_outcomes(failed=1)


def test_versions_without_their_items_or_originals():
    frame = pd.DataFrame(
        {"y_true": ["x", "y"] * 2, "y_pred": ["x"] * 4, "g": ["a", "b"] * 2, "version": "original"}
    )
    with pytest.raises(FileError, match="which column is the item that a version is of"):
        read_predictions(frame, group="g")
    other = frame.assign(version=["v1", "v2"] * 2, item=list("1234"))
    assert read_predictions(other, group="g").versions == ()  # of something else
    named = read_predictions(other, group="g", version="version")
    with pytest.raises(InputError, match="expected rows whose version is 'original', got v1, v2"):
        TprGap().measure(named)
    with pytest.raises(InputError, match="versions: expected the item of each version"):
        Predictions(pred=("x", "y"), versions=("original", "swapped"))
    with pytest.raises(InputError, match="expected columns of one length"):
        Predictions(pred=("x", "y"), items=("1", "1"), versions=("original",))
    assert FprGap.declaration.name == "fpr-gap"
