from __future__ import annotations

import json
import math
from dataclasses import replace

import pytest
from fewshot_runs import (
    NAMES,
    SHARES,
    Measured,
    axis_domains,
    below_title,
    curve,
    data,
    measured,
    panel,
    parts,
    spec_of,
    with_parts,
    words,
)

from evenhand.charts import ChartSet, forest
from evenhand.errors import InputError
from evenhand.fewshot.runs import RunResults
from evenhand.report import fewshot as charts

CURVES = {"split 0, seed 0": curve(0.7), "split 0, seed 1": curve(0.8)}
MEASURES = ("association", "epsilon", "skew", "stereotype")


@pytest.fixture(scope="module")
def before() -> Measured:
    return measured(1.5)


@pytest.fixture(scope="module")
def after() -> Measured:
    return measured(0.2)


@pytest.fixture(scope="module")
def results(before: Measured) -> RunResults:
    return before.results(measured(0))


@pytest.fixture
def compared(before: Measured, after: Measured) -> ChartSet:
    runs = {"none": (before.accuracy, before.bias), "augment": (after.accuracy, after.bias)}
    return charts.bias_charts(runs, {"augment": before.change(after)})


def test_a_run_has_all_charts_in_the_order_of_reading(results: RunResults) -> None:
    figures = charts.run_charts(results, "proto-euclidean", CURVES)
    assert figures.skipped == {}
    assert list(figures.charts) == ["accuracy", "classes", "curves", "bias", "associations"]
    shown = {name: words(chart) for name, chart in figures.charts.items()}
    assert set(CURVES) <= set(shown.pop("curves"))
    for name in ("accuracy", "bias"):
        assert "proto-euclidean" in shown.pop(name)
    for texts in shown.values():
        assert sum(any(name in word for name in NAMES) for word in texts) == len(NAMES)


def test_bias_has_all_charts_in_the_order_of_reading(compared: ChartSet) -> None:
    assert compared.skipped == {}
    assert list(compared.charts) == ["accuracy", "bias", "changes"]
    for chart in compared.charts.values():
        assert "augment" in words(chart)


def test_a_run_without_bias_has_no_chart_of_it(results: RunResults) -> None:
    figures = charts.run_charts(replace(results, bias=None), "x", {})
    assert list(figures.charts) == ["accuracy", "classes"]
    assert list(figures.skipped) == ["curves"]


def test_without_a_baseline_there_are_no_references(before: Measured) -> None:
    chart = charts.accuracies({"x": before.accuracy})
    assert [row for row in data(chart) if "label" not in row] == []
    assert "baseline" not in below_title(chart)


def test_accuracies_have_both_intervals_the_baseline_and_chance(results: RunResults) -> None:
    m, baseline = results.accuracy, results.baseline
    chart = charts.run_charts(results, "proto-euclidean", CURVES).charts["accuracy"]
    (row,) = (row for row in data(chart) if row.get("label") == "proto-euclidean")
    assert (row["value"], row["low"], row["high"]) == (m.value, m.low, m.high)
    for key in ("classes", "episodes"):
        assert row[key] == m.details[key]
    assert (row["inner_low"], row["inner_high"]) == (
        m.details["naive_low"],
        m.details["naive_high"],
    )
    assert (row["begin"], row["end"], row["cut"]) == (m.low, m.high, False)
    marks = [row for row in data(chart) if "label" not in row]
    assert {"at": 1 / 3} in marks
    assert {"at": 1 / 3, "text": "chance 0.33"} in marks
    assert {"at": baseline.value} in marks
    assert {"low": baseline.low, "high": baseline.high} in marks
    shown = words(chart)
    assert f"baseline {baseline.value:.2f}" in shown
    assert f"{m.value:.3f} [{m.low:.3f}, {m.high:.3f}]" in shown
    assert f"{baseline.low:.3f}, {baseline.high:.3f}" in below_title(chart)


def test_labels_of_baseline_and_chance_are_on_either_side(before: Measured) -> None:
    for level, sides in ((0.4, ("right", "left")), (0.26, ("left", "right"))):
        baseline = replace(before.accuracy, value=level, low=level - 0.1, high=level + 0.1)
        spec = spec_of(charts.accuracies({"maml": before.accuracy}, baseline=baseline))
        aligned = {}
        for layer in spec["layer"]:
            values = layer.get("data", {}).get("values", [{}])
            if "text" in values[0]:
                aligned[values[0]["text"].split()[0]] = layer["mark"]["align"]
        assert (aligned["chance"], aligned["baseline"]) == sides


def test_long_names_of_runs_are_whole_and_rows_high_enough(before: Measured) -> None:
    name = "relation-ntl, augment+neutralize+calibrate, five-way ten-shot, fine-tuned"
    chart = charts.accuracies({name: before.accuracy, "maml": before.accuracy})
    shown = "".join(words(chart)).replace(" ", "")
    assert name.replace(" ", "") in shown
    assert spec_of(chart)["height"]["step"] >= 3 * 14


def test_classes_are_sorted_and_coloured_by_leaning(before: Measured) -> None:
    chart = charts.by_class(replace(before.accuracy, prob=0.9))
    rows = {row["label"]: row for row in data(chart) if "label" in row}
    for part in before.accuracy.select("class"):
        row = rows[part.query]
        assert (row["value"], row["low"], row["high"]) == (part.value, part.low, part.high)
        assert (row["taken_for"], row["series"]) == (
            part.details["confused_with"],
            part.details["leaning"],
        )
        assert row["texts"] == part.details["texts"]
    values = [row["value"] for row in rows.values()]
    assert values == sorted(values, reverse=True)
    shown = [word for word in words(chart) if word in NAMES]
    assert shown == list(rows)
    assert "90 %" in below_title(chart)
    assert {"at": 1 / 3} in data(chart)
    assert "taken_for" in json.dumps(spec_of(chart))


def test_classes_may_have_no_leaning(before: Measured) -> None:
    chart = charts.by_class(with_parts(before.accuracy, *NAMES, details={"leaning": "unknown"}))
    assert {row["series"] for row in data(chart) if "series" in row} == {"neither"}
    assert "neither" not in words(chart)


def test_curves_have_every_point_and_mark_the_saved_one() -> None:
    chart = charts.learning_curves(CURVES)
    rows = [row for row in data(chart) if "series" in row]
    for name, points in CURVES.items():
        for point in points:
            for series in ("training", "validation"):
                for measure in ("accuracy", "loss"):
                    (row,) = (
                        row
                        for row in rows
                        if (row["run"], row["episodes"], row["series"], row["measure"])
                        == (name, point["episodes"], series, measure)
                    )
                    assert row["value"] == point[f"{series}_{measure}"]
    saved = {(row["run"], row["series"], row["episodes"]) for row in rows if row["chosen"]}
    assert saved == {(name, "validation", 200) for name in CURVES}
    assert "breaks" not in below_title(chart)


def test_all_panels_of_curves_have_one_scale() -> None:
    spec = spec_of(charts.learning_curves({f"split {i}": curve(0.6 + i / 20) for i in range(5)}))
    panels = [plot for part in parts(spec) if "vconcat" in part for plot in part["vconcat"]]
    domains = [plot["layer"][0]["encoding"]["y"]["scale"]["domain"] for plot in panels]
    assert domains == domains[:2] * 5
    assert domains[0][0] < 0.4
    assert domains[0][1] > 0.85


def test_a_curve_breaks_where_a_value_is_no_number() -> None:
    points = curve(0.7)
    points[2] |= {"validation_accuracy": math.nan, "validation_loss": math.inf}
    chart = charts.learning_curves({"split 0": points})
    rows = [row for row in data(chart) if row["episodes"] == 200 and row["series"] != "training"]
    assert [row["value"] for row in rows] == [None, None]
    assert {row["episodes"] for row in data(chart) if row["chosen"]} == {400}
    assert "breaks" in below_title(chart)
    words(chart)
    with pytest.raises(InputError, match="curves: expected points with numbers"):
        charts.learning_curves({"split 0": []})


def test_two_rows_of_one_name_are_an_error(results: RunResults) -> None:
    m, bias = results.accuracy, results.bias
    twice = replace(m, parts=(*m.parts, m.part("mason", by="class")))
    with pytest.raises(InputError, match="classes: expected each once, got 'mason' twice"):
        charts.by_class(twice)
    figures = charts.run_charts(replace(results, accuracy=twice), "x", CURVES)
    assert "mason" in figures.skipped["classes"]
    assert bias is not None
    with pytest.raises(InputError, match=r"associations: .* 'baker, male' twice"):
        charts.associations(replace(bias, parts=(bias.part("baker", by="class"),) * 2))


def associations(m) -> dict[tuple[str, str], dict]:
    """The rows of the chart by class and gender."""
    chart = charts.associations(m)
    return {(row["label"], row["series"]): row for row in data(chart) if "series" in row}


def test_associations_go_from_the_fewest_women_to_the_most(before: Measured) -> None:
    listed = charts.by_class_and_gender(before.bias)
    rows = associations(before.bias)
    assert len(rows) == len(listed) == 12
    for part, own in listed:
        row = rows[part.query, own.query]
        assert (row["value"], row["low"], row["high"], row["texts"]) == (
            own.value,
            own.low,
            own.high,
            own.n,
        )
    chart = charts.associations(before.bias, SHARES)
    labels = [
        f"{name} ({100 * SHARES[name]:.0f} % women)"
        for name in sorted(SHARES, key=SHARES.__getitem__)
    ]
    assert [word for word in words(chart) if "women)" in word] == labels
    assert {"at": 0} in data(chart)


def test_associations_without_shares_go_by_leaning(before: Measured) -> None:
    shown = [word for word in words(charts.associations(before.bias)) if word in NAMES]
    assert shown == ["baker", "mason", "glazier", "tailor", "florist", "weaver"]


def test_an_interval_without_end_is_dashed_and_said(before: Measured) -> None:
    first, second = before.bias.part("baker", by="class"), before.bias.part("tailor", by="class")
    first = with_parts(first, "male", low=-math.inf, high=math.inf)
    first = with_parts(first, "female", low=-90.0, high=90.0)
    second = with_parts(second, "male", value=math.nan)
    others = [part for part in before.bias.parts if part.query not in ("baker", "tailor")]
    bias = replace(before.bias, parts=(first, second, *others))
    chart, rows = charts.associations(bias), associations(bias)
    ((low, high),) = axis_domains(chart)
    assert -20 < low < 0 < high < 20
    for own in first.parts:
        row = rows["baker", own.query]
        assert (row["begin"], row["end"], row["cut"]) == (low, high, True)
        assert row["value"] == own.value
    assert rows["baker", "female"]["interval"] == "[−90.000, 90.000]"
    none = rows["tailor", "male"]
    assert [none[key] for key in ("value", "low", "high", "begin", "end")] == [None] * 5
    assert not none["cut"]
    assert sum(row["cut"] for row in rows.values()) == 2
    assert "dashed line: the interval extends beyond the plot" in below_title(chart)
    assert "no value" in words(chart)


def test_measures_are_signed_with_the_band_of_chance(compared: ChartSet, before: Measured) -> None:
    chart = compared.charts["bias"]
    titles = ("Association", "Accuracy gap (ε)", "Skew", "Stereotype")
    for measure, title in zip(MEASURES, titles, strict=True):
        rows = panel(chart, title)
        assert [row["label"] for row in rows] == ["none", "augment"]
        row, m = rows[0], before.bias.part(measure)
        assert (row["value"], row["low"], row["high"]) == (m.value, m.low, m.high)
        band = m.details["null_high"]
        assert (row["band_low"], row["band_high"]) == (-band, band)
    domains = axis_domains(chart)
    assert domains[1] == domains[2] == domains[3] != domains[0]


def test_a_measure_without_value_is_left_out_and_named(before: Measured, after: Measured) -> None:
    runs = {
        name: with_parts(m, "skew", value=math.nan, low=math.nan, high=math.nan)
        for name, m in (("none", before.bias), ("augment", after.bias))
    }
    runs["none"] = with_parts(runs["none"], "epsilon", value=math.nan)
    chart = charts.bias_measures(runs)
    assert "no value at all: Skew" in below_title(chart)
    shown = words(chart)
    assert "Skew" not in shown
    values = {row["label"]: row["value"] for row in panel(chart, "Accuracy gap (ε)")}
    assert values["none"] is None
    assert values["augment"] is not None
    assert shown.count("no value") == 1
    with pytest.raises(InputError, match="bias: expected at least one measure"):
        charts.bias_measures({"none": with_parts(before.bias, *MEASURES, value=math.nan)})


def test_changes_join_before_and_after_and_show_the_cost(
    compared: ChartSet, before: Measured, after: Measured
) -> None:
    accuracy, bias = before.change(after)
    (row,) = panel(compared.charts["changes"], "Stereotype")
    c = bias.part("stereotype")
    assert c.effect.startswith("nearer the ideal")
    assert (row["before"], row["value"], row["series"]) == (
        c.before.value,
        c.after.value,
        charts.CROSSED if c.effect.endswith(charts.CROSSED) else "nearer the ideal",
    )
    assert (row["low"], row["high"]) == (
        c.before.value + c.change.low,
        c.before.value + c.change.high,
    )
    # the line reaches the dot before exactly where the interval of the change has 0 in it
    assert (row["low"] <= row["before"] <= row["high"]) == (c.change.low <= 0 <= c.change.high)
    (cost,) = panel(compared.charts["changes"], "Accuracy, its change")
    for key in ("value", "low", "high"):
        assert cost[key] == getattr(accuracy.change, key)
    assert cost["naive"] != cost["interval"]


def test_changes_without_numbers(before: Measured, after: Measured) -> None:
    accuracy, bias = before.change(after)
    accuracy = replace(accuracy, change=replace(accuracy.change, value=math.nan))
    unknown = replace(bias.before, value=math.nan)
    bias = with_parts(bias, "association", "epsilon", "skew", before=unknown)
    bias = replace(
        bias, parts=tuple(_named(c, name) for c, name in zip(bias.parts, MEASURES, strict=False))
    )
    open_ends = replace(bias.part("stereotype").change, low=-math.inf, high=math.inf)
    bias = with_parts(bias, "stereotype", change=open_ends)
    chart = charts.bias_changes({"augment": (accuracy, bias)})
    assert "no value at all: Association, Accuracy gap (ε), Skew" in below_title(chart)
    assert "Skew, accuracy" in below_title(chart)
    assert "dashed line" in below_title(chart)
    (row,) = (row for row in data(chart) if "label" in row)
    assert (row["cut"], row["series"]) == (True, "no clear change")
    words(chart)
    bias = with_parts(bias, "stereotype", after=replace(unknown, query="stereotype"))
    with pytest.raises(InputError, match="changes: expected at least one measure"):
        charts.bias_changes({"augment": (accuracy, bias)})


def _named(c, name: str):
    return replace(c, before=replace(c.before, query=name))


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
    drawn = [row for row in data(chart) if "cut" in row]
    assert [row["cut"] for row in drawn] == [False, True, False]
    assert (drawn[1]["begin"], drawn[1]["end"]) == (0.2, high)
    ((low, high),) = axis_domains(forest([{"label": "a", "value": 0, "low": 0, "high": 0}]))
    assert low < 0 < high
    with pytest.raises(InputError, match="expected at least one number"):
        forest([{"label": "a", "value": math.nan, "low": 0, "high": 1}])
