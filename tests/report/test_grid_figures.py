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
def report(tmp_path_factory):
    path = tmp_path_factory.mktemp("grid")
    grid_worlds.folder(
        path,
        networks=("proto", "match"),
        leave_out=lambda axes: axes["network"] == "match" and axes["ways"] == 3,
    )
    return json.loads(to_json(summarize(path).to_dict()))


def test_a_map_for_each_mitigation_and_each_change(report):
    figures = grid_charts(report)
    assert list(figures.charts) == [
        "accuracy-none",
        "bias-none",
        "accuracy-swap",
        "bias-swap",
        "change-swap",
    ]
    assert not figures.skipped
    for chart in figures.charts.values():
        assert to_svg(chart).startswith("<svg")


def test_boxes_have_their_values_and_intervals(report):
    rows = [row for row in report["results"] if row["mitigation"] == "none"]
    chart = accuracy_map(rows, best=report["best"])
    boxes = {(box["down"], box["across"]): box for box in data(chart) if "across" in box}
    assert len(boxes) == 6
    for row in rows:
        box = boxes[row["network"], f"{row['ways']} ways, {row['shots']} shots"]
        assert box["value"] == row["accuracy"]["value"]
        assert box["shown"] == number(row["accuracy"]["value"])
        assert box["interval"] == interval(row["accuracy"]["low"], row["accuracy"]["high"])
    empty = boxes["match", "3 ways, 4 shots"]
    assert (empty["value"], empty["shown"], empty["interval"]) == (None, "–", "no result")
    shown = words(chart)
    assert number(rows[0]["accuracy"]["value"]) in shown
    assert "proto" in shown
    assert "16 shots" not in shown


def test_the_best_has_a_dot(report):
    rows = [row for row in report["results"] if row["mitigation"] == "none"]
    best = [row for row in report["best"] if row["mitigation"] == "none"]
    chart = accuracy_map(rows, best=best)
    marks = {box["down"]: box["mark"] for box in data(chart) if box.get("across", "")[:1] == "2"}
    assert marks == {"proto": "●", "match": ""}
    best = [{**row, "clear": False} for row in best]
    chart = accuracy_map(rows, best=best)
    marks = {box["down"]: box["mark"] for box in data(chart) if box.get("across", "")[:1] == "2"}
    assert marks == {"proto": "○", "match": ""}


def test_boxes_are_marked_where_the_interval_excludes_0(report):
    (row,) = [row for row in report["effects"] if row["network"] == "proto" and row["shots"] == 8]
    figures = {
        "epsilon": ({"low": -0.3, "high": -0.1, "p_holm": 0.01}, "●"),
        "skew": ({"low": 0.1, "high": 0.3, "p_holm": 0.2}, "○"),
        "stereotype": ({"low": -0.1, "high": 0.3, "p_holm": 0.9}, ""),
        "association": ({"low": None, "high": None, "p_holm": None}, ""),
    }
    changed = {name: {**row[name], **new} for name, (new, _) in figures.items()}
    chart = change_maps([{**row, **changed}])
    marks = [box["mark"] for box in data(chart) if "across" in box]
    assert marks[1:] == ["", "●", "○", ""]
    assert "excludes 0" in below_title(chart)


def test_shares_are_coloured_on_one_scale(report):
    rows = [row for row in report["results"] if row["mitigation"] == "none"]
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


def test_without_bias_its_map_is_named_as_not_drawn(report):
    rows = [
        {k: v for k, v in row.items() if k not in ("association", "epsilon", "skew", "stereotype")}
        for row in report["results"]
    ]
    figures = grid_charts({**report, "results": rows})
    assert set(figures.skipped) == {"bias-none", "bias-swap"}
    with pytest.raises(InputError, match="at least one"):
        bias_maps(rows)


def test_other_axes_get_maps_of_their_own(report):
    rows = [{**row, "others": {"data": name}} for name in "ab" for row in report["results"]]
    figures = grid_charts({**report, "results": rows, "effects": [], "best": []})
    assert "accuracy-none-data-a" in figures.charts
    assert "bias-swap-data-b" in figures.charts
    assert "(data a)" in " ".join(words(figures.charts["accuracy-none-data-a"]))
