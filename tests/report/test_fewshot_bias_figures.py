from __future__ import annotations

import math
from typing import Any

import pytest
from fewshot_documents import (
    NAMES,
    SHARES,
    Measured,
    axis_domains,
    below_title,
    bias_document,
    data,
    measured,
    panel,
    run_document,
    words,
)

from evenhand.errors import InputError
from evenhand.report import fewshot as charts

MEASURES = ("association", "epsilon", "skew", "stereotype")


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


def test_associations_go_from_the_fewest_women_to_the_most(run: dict[str, Any]) -> None:
    chart = charts.associations(run["associations"])
    found = {(one["name"], one["gender"]): one for one in data(chart) if "gender" in one}
    assert len(found) == len(run["associations"]) == 12
    for told in run["associations"]:
        one = found[told["name"], told["gender"]]
        assert (one["value"], one["low"], one["high"], one["texts"]) == (
            told["association"],
            told["low"],
            told["high"],
            told["texts"],
        )
    labels = [
        f"{name} ({100 * SHARES[name]:.0f} % women)" for name in sorted(SHARES, key=SHARES.get)
    ]  # type: ignore[arg-type]
    assert [word for word in words(chart) if "women)" in word] == labels
    assert {"at": 0} in data(chart)


def test_associations_without_shares_go_by_leaning(run: dict[str, Any]) -> None:
    plain = [{k: v for k, v in one.items() if k != "share_of_women"} for one in run["associations"]]
    shown = [word for word in words(charts.associations(plain)) if word in NAMES]
    assert shown == ["baker", "mason", "glazier", "tailor", "florist", "weaver"]


def test_an_interval_without_end_is_dashed_and_said(run: dict[str, Any]) -> None:
    told = run["associations"]
    told[0] |= {"low": -math.inf, "high": None}
    told[1] |= {"low": -90.0, "high": 90.0}
    told[2] |= {"association": math.nan}
    chart = charts.associations(told)
    ((low, high),) = axis_domains(chart)
    assert -20 < low < 0 < high < 20
    found = {(one["name"], one["gender"]): one for one in data(chart) if "gender" in one}
    for one in told[:2]:
        drawn = found[one["name"], one["gender"]]
        assert (drawn["begin"], drawn["end"], drawn["cut"]) == (low, high, True)
        assert drawn["value"] == one["association"]
    assert found[told[1]["name"], told[1]["gender"]]["interval"] == "[−90.000, 90.000]"
    none = found[told[2]["name"], told[2]["gender"]]
    assert [none[key] for key in ("value", "low", "high", "begin", "end")] == [None] * 5
    assert not none["cut"]
    assert sum(one["cut"] for one in found.values()) == 2
    assert "dashed line: the interval extends beyond the plot" in below_title(chart)
    assert "no value" in words(chart)


def test_measures_are_signed_with_the_band_of_chance(
    compared: dict[str, Any], before: Measured
) -> None:
    chart = charts.bias_charts(compared).charts["bias"]
    titles = ("Association", "Accuracy gap (ε)", "Skew", "Stereotype")
    for measure, title in zip(MEASURES, titles, strict=True):
        found = panel(chart, title)
        assert [one["run"] for one in found] == ["none", "augment"]
        one, told = found[0], before.rows[measure]
        assert (one["value"], one["low"], one["high"]) == (
            told["signed"],
            told["signed_low"],
            told["signed_high"],
        )
        assert (one["band_low"], one["band_high"]) == (-told["null_high"], told["null_high"])
    domains = axis_domains(chart)
    assert domains[1] == domains[2] == domains[3] != domains[0]


def test_a_measure_without_value_is_left_out_and_named(compared: dict[str, Any]) -> None:
    for one in compared["runs"].values():
        one["bias"]["skew"] |= {"signed": None, "signed_low": None, "signed_high": math.nan}
    compared["runs"]["none"]["bias"]["epsilon"] |= {"signed": math.nan}
    compared["runs"]["later"] = {"accuracy": None, "bias": None}
    made = charts.bias_charts(compared)
    chart = made.charts["bias"]
    assert "no value at all: Skew" in below_title(chart)
    shown = words(chart)
    assert "Skew" not in shown
    values = {one["run"]: one["value"] for one in panel(chart, "Accuracy gap (ε)")}
    assert values["none"] is values["later"] is None
    assert values["augment"] is not None
    assert shown.count("no value") == 4
    assert words(made.charts["accuracy"]).count("no value") == 1
    with pytest.raises(InputError, match="bias: expected at least one measure"):
        charts.bias_measures({"none": {}})


def test_changes_join_before_and_after_and_show_the_cost(
    compared: dict[str, Any], before: Measured, after: Measured
) -> None:
    made = before.change(after)
    chart = charts.bias_changes(compared["changes"])
    (one,) = panel(chart, "Stereotype")
    told = made["stereotype"]
    assert told["direction"] == "less bias"
    assert (one["before"], one["value"], one["direction"]) == (
        told["before"],
        told["after"],
        "less bias",
    )
    assert (one["low"], one["high"]) == (
        told["before"] + told["low"],
        told["before"] + told["high"],
    )
    # the line reaches the dot before exactly where the interval of the change has 0 in it
    assert (one["low"] <= one["before"] <= one["high"]) == (told["low"] <= 0 <= told["high"])
    (cost,) = panel(chart, "Accuracy, its change")
    for key in ("value", "low", "high"):
        assert cost[key] == made["accuracy"][key]
    assert cost["naive"] != cost["interval"]


def test_changes_without_numbers(compared: dict[str, Any]) -> None:
    told = compared["changes"]["augment"]
    for measure in ("association", "epsilon", "skew"):
        told[measure] |= dict.fromkeys(("before", "after", "change", "low", "high"))
    told["stereotype"] |= {"low": -math.inf, "high": math.inf, "direction": "no clear change"}
    told["accuracy"] = None
    chart = charts.bias_changes(compared["changes"])
    assert "no value at all: Association, Accuracy gap (ε), Skew" in below_title(chart)
    assert "Skew, accuracy" in below_title(chart)
    assert "dashed line" in below_title(chart)
    (one,) = (one for one in data(chart) if "run" in one)
    assert (one["cut"], one["direction"]) == (True, "no clear change")
    words(chart)
    told["stereotype"] |= {"after": math.nan}
    with pytest.raises(InputError, match="changes: expected at least one measure"):
        charts.bias_changes(compared["changes"])
