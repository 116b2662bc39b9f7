from __future__ import annotations

import json
import math
from typing import Any

import pytest
from fewshot_documents import (
    NAMES,
    Measured,
    axis_domains,
    below_title,
    bias_document,
    curve,
    data,
    measured,
    parts,
    run_document,
    spec_of,
    words,
)

from evenhand.charts import forest
from evenhand.errors import InputError
from evenhand.report import fewshot as charts


@pytest.fixture(scope="module")
def before() -> Measured:
    return measured(1.5)


@pytest.fixture(scope="module")
def after() -> Measured:
    return measured(0.2)


@pytest.fixture
def run(before: Measured) -> dict[str, Any]:
    return run_document(before)


@pytest.fixture
def compared(before: Measured, after: Measured) -> dict[str, Any]:
    return bias_document(before, after)


def test_a_run_has_all_charts_in_the_order_of_reading(run: dict[str, Any]) -> None:
    made = charts.run_charts(run)
    assert made.skipped == {}
    assert list(made.charts) == ["accuracy", "classes", "curves", "bias", "associations"]
    shown = {name: words(chart) for name, chart in made.charts.items()}
    assert set(run["curves"]) <= set(shown.pop("curves"))
    for name in ("accuracy", "bias"):
        assert "proto-euclidean" in shown.pop(name)
    for each in shown.values():
        assert sum(any(name in word for name in NAMES) for word in each) == len(NAMES)


def test_bias_has_all_charts_in_the_order_of_reading(compared: dict[str, Any]) -> None:
    made = charts.bias_charts(compared)
    assert made.skipped == {}
    assert list(made.charts) == ["accuracy", "bias", "changes"]
    for chart in made.charts.values():
        assert "augment" in words(chart)


def test_missing_parts_are_skipped_with_a_reason(run: dict[str, Any]) -> None:
    made = charts.run_charts({**run, "bias": None, "associations": [], "curves": None})
    assert list(made.charts) == ["accuracy", "classes"]
    assert made.skipped == {
        name: f"{name}: the result has none" for name in ("curves", "bias", "associations")
    }
    none = charts.run_charts({"name": "empty"})
    assert none.charts == {}
    assert none.skipped["classes"] == "by_class: the result has none"
    assert charts.bias_charts({"runs": {}}).skipped == {
        name: f"{name}: the result has none" for name in ("accuracy", "bias", "changes")
    }


def test_a_run_without_baseline_and_chance_has_no_references(run: dict[str, Any]) -> None:
    chart = charts.run_charts({**run, "baseline": None, "chance": None}).charts["accuracy"]
    assert [one for one in data(chart) if "run" not in one] == []
    assert "baseline" not in below_title(chart)


def test_accuracies_have_both_intervals_the_baseline_and_chance(run: dict[str, Any]) -> None:
    told, floor = run["accuracy"], run["baseline"]["accuracy"]
    chart = charts.run_charts(run).charts["accuracy"]
    (one,) = (one for one in data(chart) if one.get("run") == "proto-euclidean")
    for key in ("value", "low", "high", "classes", "episodes"):
        assert one[key] == told[key]
    assert (one["inner_low"], one["inner_high"]) == (told["naive_low"], told["naive_high"])
    assert (one["begin"], one["end"], one["cut"]) == (told["low"], told["high"], False)
    marks = [one for one in data(chart) if "run" not in one]
    assert {"at": 1 / 3} in marks
    assert {"at": 1 / 3, "text": "chance 0.33"} in marks
    assert {"at": floor["value"]} in marks
    assert {"low": floor["low"], "high": floor["high"]} in marks
    shown = words(chart)
    assert f"baseline {floor['value']:.2f}" in shown
    assert f"{told['value']:.3f} [{told['low']:.3f}, {told['high']:.3f}]" in shown
    assert f"{floor['low']:.3f}, {floor['high']:.3f}" in below_title(chart)


def test_labels_of_baseline_and_chance_are_on_either_side() -> None:
    scored = {"name": "maml", "value": 0.5, "low": 0.4, "high": 0.6}
    for level, sides in ((0.24, ("right", "left")), (0.16, ("left", "right"))):
        floor = {"value": level, "low": level - 0.1, "high": level + 0.1}
        spec = spec_of(charts.accuracies([scored], chance=0.2, baseline=floor))
        found = {}
        for layer in spec["layer"]:
            values = layer.get("data", {}).get("values", [{}])
            if "text" in values[0]:
                found[values[0]["text"].split()[0]] = layer["mark"]["align"]
        assert (found["chance"], found["baseline"]) == sides


def test_long_names_of_runs_are_whole_and_rows_high_enough() -> None:
    name = "relation-ntl, augment+neutralize+calibrate, five-way ten-shot, fine-tuned"
    scored = {"value": 0.5, "low": 0.4, "high": 0.6, "naive_low": 0.45, "naive_high": 0.55}
    chart = charts.accuracies([{"name": name, **scored}, {"name": "maml", **scored}])
    shown = "".join(words(chart)).replace(" ", "")
    assert name.replace(" ", "") in shown
    assert spec_of(chart)["height"]["step"] >= 3 * 14


def test_classes_are_sorted_and_coloured_by_leaning(run: dict[str, Any]) -> None:
    chart = charts.by_class(run["by_class"], chance=1 / 3, prob=0.9)
    found = {one["label"]: one for one in data(chart) if "label" in one}
    for told in run["by_class"]:
        one = found[told["name"]]
        assert one["value"] == told["accuracy"]
        assert (one["low"], one["high"]) == (told["accuracy_low"], told["accuracy_high"])
        assert (one["taken_for"], one["series"]) == (told["taken_for"], told["leaning"])
        assert one["texts"] == told["texts"]
    values = [one["value"] for one in found.values()]
    assert values == sorted(values, reverse=True)
    shown = [word for word in words(chart) if word in NAMES]
    assert shown == list(found)
    assert "90 %" in below_title(chart)
    assert {"at": 1 / 3} in data(chart)
    assert "taken_for" in json.dumps(spec_of(chart))


def test_classes_may_have_no_leaning(run: dict[str, Any]) -> None:
    plain = [{k: v for k, v in one.items() if k != "leaning"} for one in run["by_class"]]
    chart = charts.by_class(plain)
    assert {one["series"] for one in data(chart)} == {"neither"}
    assert "neither" not in words(chart)


def test_curves_have_every_point_and_mark_the_saved_one(run: dict[str, Any]) -> None:
    chart = charts.learning_curves(run["curves"])
    found = [one for one in data(chart) if "series" in one]
    for name, points in run["curves"].items():
        for point in points:
            for series in ("training", "validation"):
                for measure in ("accuracy", "loss"):
                    (one,) = (
                        one
                        for one in found
                        if (one["run"], one["episodes"], one["series"], one["measure"])
                        == (name, point["episodes"], series, measure)
                    )
                    assert one["value"] == point[f"{series}_{measure}"]
    kept = {(one["run"], one["series"], one["episodes"]) for one in found if one["chosen"]}
    assert kept == {(name, "validation", 200) for name in run["curves"]}
    assert "breaks" not in below_title(chart)


def test_all_panels_of_curves_have_one_scale() -> None:
    spec = spec_of(charts.learning_curves({f"split {i}": curve(0.6 + i / 20) for i in range(5)}))
    panels = [one for part in parts(spec) if "vconcat" in part for one in part["vconcat"]]
    domains = [one["layer"][0]["encoding"]["y"]["scale"]["domain"] for one in panels]
    assert domains == domains[:2] * 5
    assert domains[0][0] < 0.4
    assert domains[0][1] > 0.85


def test_a_curve_breaks_where_a_value_is_no_number() -> None:
    points = curve(0.7)
    points[2] |= {"validation_accuracy": math.nan, "validation_loss": math.inf}
    chart = charts.learning_curves({"split 0": points})
    found = [one for one in data(chart) if one["episodes"] == 200 and one["series"] != "training"]
    assert [one["value"] for one in found] == [None, None]
    assert {one["episodes"] for one in data(chart) if one["chosen"]} == {400}
    assert "breaks" in below_title(chart)
    words(chart)
    with pytest.raises(InputError, match="curves: expected points with numbers"):
        charts.learning_curves({"split 0": []})


def test_two_rows_of_one_name_are_an_error(run: dict[str, Any]) -> None:
    twice = [*run["by_class"], run["by_class"][2]]
    with pytest.raises(InputError, match="classes: expected each once, got 'mason' twice"):
        charts.by_class(twice)
    made = charts.run_charts({**run, "by_class": twice})
    assert "mason" in made.skipped["classes"]
    with pytest.raises(InputError, match=r"associations: .* 'baker, male' twice"):
        charts.associations([run["associations"][0]] * 2)


def test_the_domain_has_usual_intervals_and_all_points() -> None:
    values = [
        {"label": "a", "value": 0.2, "low": 0.1, "high": 0.35},
        {"label": "b", "value": 0.3, "low": 0.2, "high": None},
        {"label": "c", "value": None, "low": 0.9, "high": 5},
    ]
    chart = forest(values, references=[{"value": 0.05}])
    ((low, high),) = axis_domains(chart)
    assert low < 0.05
    assert 0.35 < high < 0.5
    drawn = [one for one in data(chart) if "cut" in one]
    assert [one["cut"] for one in drawn] == [False, True, False]
    assert (drawn[1]["begin"], drawn[1]["end"]) == (0.2, high)
    ((low, high),) = axis_domains(forest([{"label": "a", "value": 0, "low": 0, "high": 0}]))
    assert low < 0 < high
    with pytest.raises(InputError, match="expected at least one number"):
        forest([{"label": "a", "value": math.nan, "low": 0, "high": 1}])
