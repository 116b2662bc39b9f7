"""Heat maps of grids: what stands in the boxes, and which are marked."""

from __future__ import annotations

import json

import pytest
from fewshot_runs import below_title, data, words

import grid_worlds
from evenhand.charts import to_svg
from evenhand.errors import InputError
from evenhand.files import to_json
from evenhand.grid.summary import summarize
from evenhand.report.grid import accuracy_map, bias_maps, change_maps, grid_charts
from evenhand.wording import interval, number


@pytest.fixture(scope="module")
def told(tmp_path_factory):
    path = tmp_path_factory.mktemp("grid")
    grid_worlds.folder(
        path,
        networks=("proto", "match"),
        leave_out=lambda axes: axes["network"] == "match" and axes["ways"] == 3,
    )
    return json.loads(to_json(summarize(path).to_dict()))


def test_a_map_for_each_mitigation_and_each_change(told):
    made = grid_charts(told)
    assert list(made.charts) == [
        "accuracy-none",
        "bias-none",
        "accuracy-swap",
        "bias-swap",
        "change-swap",
    ]
    assert not made.skipped
    for chart in made.charts.values():
        assert to_svg(chart).startswith("<svg")


def test_boxes_have_their_values_and_intervals(told):
    rows = [row for row in told["results"] if row["mitigation"] == "none"]
    chart = accuracy_map(rows, best=told["best"])
    found = {(one["down"], one["across"]): one for one in data(chart) if "across" in one}
    assert len(found) == 6
    for row in rows:
        one = found[row["network"], f"{row['ways']} ways, {row['shots']} shots"]
        assert one["value"] == row["accuracy"]["value"]
        assert one["shown"] == number(row["accuracy"]["value"])
        assert one["interval"] == interval(row["accuracy"]["low"], row["accuracy"]["high"])
    empty = found["match", "3 ways, 4 shots"]
    assert (empty["value"], empty["shown"], empty["interval"]) == (None, "–", "no result")
    shown = words(chart)
    assert number(rows[0]["accuracy"]["value"]) in shown
    assert "proto" in shown
    assert "16 shots" not in shown


def test_the_best_has_a_dot(told):
    rows = [row for row in told["results"] if row["mitigation"] == "none"]
    best = [row for row in told["best"] if row["mitigation"] == "none"]
    chart = accuracy_map(rows, best=best)
    marks = {one["down"]: one["mark"] for one in data(chart) if one.get("across", "")[:1] == "2"}
    assert marks == {"proto": "●", "match": ""}
    best = [{**row, "clear": False} for row in best]
    chart = accuracy_map(rows, best=best)
    marks = {one["down"]: one["mark"] for one in data(chart) if one.get("across", "")[:1] == "2"}
    assert marks == {"proto": "○", "match": ""}


def test_boxes_are_marked_where_the_interval_excludes_0(told):
    (row,) = [row for row in told["effects"] if row["network"] == "proto" and row["shots"] == 8]
    figures = {
        "epsilon": ({"low": -0.3, "high": -0.1, "p_holm": 0.01}, "●"),
        "skew": ({"low": 0.1, "high": 0.3, "p_holm": 0.2}, "○"),
        "stereotype": ({"low": -0.1, "high": 0.3, "p_holm": 0.9}, ""),
        "association": ({"low": None, "high": None, "p_holm": None}, ""),
    }
    changed = {name: {**row[name], **new} for name, (new, _) in figures.items()}
    chart = change_maps([{**row, **changed}])
    marks = [one["mark"] for one in data(chart) if "across" in one]
    assert marks[1:] == ["", "●", "○", ""]
    assert "excludes 0" in below_title(chart)


def test_shares_are_coloured_on_one_scale(told):
    rows = [row for row in told["results"] if row["mitigation"] == "none"]
    spec = bias_maps(rows).to_dict()
    domains = [
        layer["encoding"]["fill"]["scale"]["domain"]
        for panel in spec["vconcat"]
        for layer in panel["layer"]
        if "fill" in layer["encoding"]
    ]
    assert len(domains) == 4
    assert domains[1] == domains[2] == domains[3] != domains[0]
    assert all(domain[1] == 0 and domain[0] == -domain[2] for domain in domains)


def test_without_bias_its_map_is_named_as_not_drawn(told):
    rows = [
        {k: v for k, v in row.items() if k not in ("association", "epsilon", "skew", "stereotype")}
        for row in told["results"]
    ]
    made = grid_charts({**told, "results": rows})
    assert set(made.skipped) == {"bias-none", "bias-swap"}
    with pytest.raises(InputError, match="at least one"):
        bias_maps(rows)


def test_other_axes_get_maps_of_their_own(told):
    rows = [{**row, "others": {"data": each}} for each in "ab" for row in told["results"]]
    made = grid_charts({**told, "results": rows, "effects": [], "best": []})
    assert "accuracy-none-data-a" in made.charts
    assert "bias-swap-data-b" in made.charts
    assert "(data a)" in " ".join(words(made.charts["accuracy-none-data-a"]))
