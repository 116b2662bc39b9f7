"""What came of grids, computed from folders whose truth is known."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import grid_worlds
from evenhand.errors import InputError
from evenhand.fewshot.answers import Tallies
from evenhand.fewshot.groups import group_cells
from evenhand.fewshot.means import mean
from evenhand.fewshot.metrics.accuracy import scores
from evenhand.fewshot.metrics.bias import MEASURES, bias_replicates, read_measure
from evenhand.grid import Store, make_grid, run
from evenhand.grid.summary import collect, summarize
from evenhand.instruments import Run
from evenhand.statistics.jackknife import JoinedReplicates, Replicates
from evenhand.statistics.tests import holm

TASKS = ((2, 4), (2, 8), (3, 4))


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Three networks, three tasks, none and two mitigations, two seeds."""
    path = tmp_path_factory.mktemp("whole")
    grid_worlds.folder(
        path, networks=("proto", "match", "maml"), mitigations=("none", "swap", "idle")
    )
    return path


@pytest.fixture(scope="module")
def summary(whole):
    return summarize(whole)


def groups_of(folder):
    collected = collect(folder)
    return group_cells(collected.results, collected.missing, [])


def only(rows, **chosen):
    (row,) = [row for row in rows if all(row[name] == value for name, value in chosen.items())]
    return row


def test_cells_that_differ_in_their_seed_are_one_result(whole, summary):
    rows = summary.content["results"]
    assert len(rows) == 27
    row = only(rows, network="match", ways=2, shots=8, mitigation="swap")
    assert (row["seeds"], row["missing_seeds"], row["runs"]) == ([1, 2], [], 4)
    groups = groups_of(whole)
    (group,) = [
        each
        for each in groups
        if (each.network, each.task, each.mitigation) == ("match", (2, 8), "swap")
    ]
    made = Tallies.join([group.by_seed[1], group.by_seed[2]])
    values = scores(made)["accuracy"]
    low, high = values.interval()
    shown = (row["accuracy"][key] for key in ("value", "low", "high"))
    assert tuple(shown) == (values.value, max(0, low), min(1, high))
    for name in MEASURES:
        one = read_measure(name, bias_replicates(made), made.strata, Run())
        shown = (row[name][key] for key in ("value", "low", "high"))
        assert tuple(shown) == (one.value, one.low, one.high)
    for name in ("association", "epsilon", "skew", "stereotype"):
        p = [row[name]["p_value"] for row in rows]
        assert [row[name]["p_holm"] for row in rows] == pytest.approx(holm(p))
    assert not summary.notes


def test_the_best_network_is_reported_with_how_sure_it_is(summary):
    rows = summary.content["best"]
    assert [(row["mitigation"], row["ways"], row["shots"]) for row in rows] == [
        (name, *task) for name in ("none", "swap", "idle") for task in TASKS
    ]
    assert {row["best"] for row in rows} == {"proto"}
    assert {row["second"] for row in rows} <= {"match", "maml"}
    assert all(row["clear"] for row in rows)
    for row in rows:
        ahead = row["accuracy"]["value"] - row["second_accuracy"]["value"]
        assert row["ahead"]["value"] == pytest.approx(ahead)
        assert row["ahead"]["p_value"] < row["p_pairs"] <= row["p_holm"]


def test_networks_alike_are_not_distinguished(tmp_path):
    grid_worlds.folder(tmp_path, networks=("match", "maml"))
    rows = summarize(tmp_path).content["best"]
    assert len(rows) == 6
    assert not any(row["clear"] for row in rows)


def test_effects_are_paired_and_corrected_within_a_figure(whole, summary):
    rows = summary.content["effects"]
    assert len(rows) == 18
    groups = {(group.network, group.task, group.mitigation): group for group in groups_of(whole)}
    row = only(rows, network="proto", ways=3, shots=4, mitigation="swap")
    before, after = (groups["proto", (3, 4), name].tallies for name in ("none", "swap"))
    wanted = scores(after)["accuracy"] - scores(before)["accuracy"]
    assert row["accuracy"]["change"] == wanted.value
    assert (row["accuracy"]["low"], row["accuracy"]["high"]) == wanted.interval()
    assert row["accuracy"]["after"] - row["accuracy"]["before"] == pytest.approx(wanted.value)
    change = (bias_replicates(after) - bias_replicates(before)).at(0)
    one_stratum = np.where(before.strata >= 0, 0, -1)
    assert row["association"]["change"] == change.value
    ends = row["association"]["low"], row["association"]["high"]
    assert ends == change.interval(0.95, one_stratum)
    p = [row["epsilon"]["p_value"] for row in rows]
    assert [row["epsilon"]["p_holm"] for row in rows] == pytest.approx(holm(p))
    for row in rows:
        effect = row["epsilon"]["effect"]
        if row["mitigation"] == "swap":
            assert effect.startswith("nearer the ideal")
        else:
            assert effect == "no clear change"


def test_mitigations_over_all_settings(summary):
    rows = summary.content["mitigations"]
    assert len(rows) == 2 + 6
    swap = only(rows, network="all", mitigation="swap")
    assert (swap["settings"], swap["of"]) == (9, 9)
    singles = [row for row in summary.content["effects"] if row["mitigation"] == "swap"]
    for figure in ("accuracy", "association", "epsilon", "skew", "stereotype"):
        for part in ("before", "after", "change"):
            mean = np.mean([row[figure][part] for row in singles])
            assert swap[figure][part] == pytest.approx(mean)
    assert swap["epsilon"]["low"] < -0.2 < swap["epsilon"]["high"]
    assert swap["epsilon"]["effect"].startswith("nearer the ideal")
    idle = only(rows, network="all", mitigation="idle")
    assert idle["epsilon"]["low"] < 0 < idle["epsilon"]["high"]
    assert only(rows, network="maml", mitigation="swap")["settings"] == 3


def test_networks_over_all_tasks(summary):
    rows = [row for row in summary.content["networks"] if row["mitigation"] == "none"]
    assert [row["network"] for row in rows] == ["proto", "match", "maml"]
    assert [row["tasks"] for row in rows] == [3, 3, 3]
    assert sum(row["accuracy"]["difference"]["value"] for row in rows) == pytest.approx(0)
    proto = rows[0]["accuracy"]["difference"]
    assert proto["low"] > 0
    assert proto["p_holm"] < 0.05
    assert all(row["epsilon"]["difference"]["p_holm"] > 0.05 for row in rows)
    assert all(row["epsilon"]["low"] > 0 for row in rows)


def test_missing_and_failed_cells_are_named_and_the_rest_is_message(tmp_path):
    store = grid_worlds.folder(
        tmp_path,
        networks=("proto", "match", "maml"),
        leave_out=lambda axes: axes["network"] == "maml" and axes["shots"] == 8,
        fails=lambda axes: (
            (axes["network"], axes["mitigation"], axes["seed"]) == ("match", "swap", 2)
            and axes["ways"] == 3
        ),
    )
    damaged = next(cell for cell in store.cells() if cell.axes["network"] == "proto")
    store.file(damaged.key).write_text("{")
    found = summarize(tmp_path)
    document = found.to_dict()
    assert (document["cells"], document["done"]) == (36, 30)
    assert len(document["missing"]) == 6
    reasons = [each["reason"] for each in document["missing"]]
    assert sorted(reason.partition(":")[0] for reason in reasons) == [
        "failed",
        "its file is damaged",
        *["not computed yet"] * 4,
    ]
    assert damaged.name in [each["cell"] for each in document["missing"]]
    row = only(document["results"], network="match", ways=3, mitigation="swap")
    assert (row["seeds"], row["missing_seeds"]) == ([1], [2])
    # what is compared has the seeds that both have, and what is averaged the same ones
    assert (
        only(document["effects"], network="match", ways=3, shots=4, mitigation="swap")["seeds"] == 1
    )
    assert only(document["mitigations"], network="match", mitigation="swap")["settings"] == 2
    assert any("averaged over 2 of 3 settings" in note for note in found.notes)
    assert {row["tasks"] for row in document["networks"]} == {1}
    assert sum("networks are averaged over 1 of 3 tasks" in note for note in found.notes) == 2


def test_a_mitigation_without_its_none_is_named(tmp_path):
    grid_worlds.folder(
        tmp_path, leave_out=lambda axes: axes["mitigation"] == "none" and axes["ways"] == 3
    )
    found = summarize(tmp_path)
    assert len(found.content["effects"]) == 4
    assert sum("not compared with none: that has no result" in note for note in found.notes) == 2


def test_other_axes_stand_apart(tmp_path):
    grid_worlds.folder(tmp_path, more={"data": ["a", "b"]}, networks=("proto", "match"))
    found = summarize(tmp_path)
    assert {row["others"]["data"] for row in found.content["results"]} == {"a", "b"}
    assert [row["others"] for row in found.content["mitigations"] if row["network"] == "all"] == [
        {"data": "a"},
        {"data": "b"},
    ]
    assert found.tables["best"][0]["data"] == "a"
    assert len(found.content["best"]) == 2 * 2 * 3


def test_data_without_genders_have_accuracy_alone(tmp_path):
    grid_worlds.folder(tmp_path, counterfactuals=False)
    found = summarize(tmp_path)
    for name in ("results", "effects", "networks", "mitigations"):
        assert found.content[name]
        assert all("association" not in row for row in found.content[name])


def test_trainings_that_two_cells_share_count_once(tmp_path):
    store = grid_worlds.folder(tmp_path, networks=("proto",), seeds=(1, 2, 3))
    saved = store.grid()
    cells = [replace(cell, settings={**cell.settings, "seeds": 2}) for cell in store.cells()]
    store.save_grid(
        {
            **{name: saved[name] for name in ("task", "version", "source")},
            "cells": [cell.to_dict() for cell in cells],
        }
    )
    found = summarize(tmp_path)
    assert all(row["seeds"] == [1, 3] for row in found.content["results"])
    assert sum("shares trainings" in note for note in found.notes) == 6


def test_a_mean_of_one_is_the_same_and_what_does_not_fit_is_refused():
    right, none = np.full(8, 0.7), np.zeros(8)
    for splits in (1, 2):
        one = scores(grid_worlds.tallies(2, 4, right, none, splits=splits))["accuracy"]
        made = mean([one])
        assert made.interval() == pytest.approx(one.interval())
        assert mean([one, one, one]).interval() == pytest.approx(one.interval())
        assert isinstance(made, JoinedReplicates) == (splits > 1)
    other = scores(grid_worlds.tallies(2, 4, right, none, splits=3))["accuracy"]
    with pytest.raises(InputError, match="as many splits and seeds"):
        mean([one, other])
    single = scores(grid_worlds.tallies(2, 4, right, none))["accuracy"]
    with pytest.raises(InputError, match="the same test classes"):
        mean([one, single])
    with pytest.raises(InputError, match="got none"):
        mean([])


def test_other_numbers_of_episodes_are_other_draws():
    right, none = np.full(8, 0.7), np.zeros(8)
    one, two = (
        scores(grid_worlds.tallies(2, 4, right, none, episodes=count, seed=count))["accuracy"]
        for count in (60, 90)
    )
    both = mean([one, two])
    wanted = (one.episode_variance() + two.episode_variance()) / 4
    assert both.episode_variance() == pytest.approx(wanted)
    assert len(both.episodes) == 150


def test_groups_of_episodes_are_brought_to_one_number():
    rng = np.random.default_rng(0)
    made = [
        Replicates(np.array(0.5), np.full(9, 0.5), rng.normal(size=4), rng.normal(size=(n, 4)))
        for n in (6, 4)
    ]
    both = mean(made)
    assert both.cross.shape == (4, 4)
    assert both.cross[0] == pytest.approx((made[0].cross[:2].mean(axis=0) + made[1].cross[0]) / 2)


def test_grids_of_other_tasks_have_a_row_a_cell(squares, tmp_path):
    grid, store = squares(4), Store(tmp_path)
    store.save_grid(grid.to_dict())
    with pytest.raises(InputError, match="none of 4 has"):
        summarize(tmp_path)
    for number in (0, 1, 3):
        identity = grid.task.identity(grid.settings[number])
        store.save(grid.task_name, 1, identity, {"value": number**2})
    found = summarize(tmp_path)
    assert found.tables["results"] == [{"number": n, "value": n**2} for n in (0, 1, 3)]
    assert found.to_dict()["missing"] == [{"cell": "number 2", "reason": "not computed yet"}]


def test_results_of_an_earlier_version_are_missing(squares, tmp_path):
    grid, store = squares(1), Store(tmp_path)
    store.save_grid({**grid.to_dict(), "version": 0})
    store.save(grid.task_name, 1, grid.task.identity(grid.settings[0]), {"values": 1})
    with pytest.raises(InputError, match=r"none of 1 has \(of an earlier version"):
        summarize(tmp_path)


def test_shards_are_listed_one_by_one_and_as_one(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    for number, text in enumerate(("He waved.\nIt rained.\n", "She sang.\n", "It was late.\n")):
        Path(f"part-{number}.txt").write_text(text)
    grid = make_grid(
        {
            "task": "text",
            "fixed": {
                "operation": "swap",
                "shards": "part-*.txt",
                "out": "written",
            },
        }
    )
    run(grid, "out", workers=1)
    found = summarize("out")
    assert [row["changed"] for row in found.tables["results"]] == [1, 1, 0]
    (pooled,) = found.tables["pooled"]
    assert (pooled["cells"], pooled["complete"]) == (3, True)
    assert (pooled["records"], pooled["changed"]) == (4, 2)
    assert pooled["share changed"] == 0.5
    Store("out").remove(grid.cells[0].key)
    (pooled,) = summarize("out").tables["pooled"]
    assert (pooled["cells"], pooled["complete"], pooled["records"]) == (2, False, 2)


@pytest.mark.slow
def test_mean_effects_cover_the_truth():
    """95 % intervals of a mean over settings; those of independent settings are too narrow."""
    tasks, truth, held, independent = ((2, 4), (2, 8), (3, 4), (3, 8)), 0.05, 0, 0
    for draw in range(200):
        rng = np.random.default_rng([7, draw])
        hard, gain = rng.normal(0, 0.08, 8), truth + rng.normal(0, 0.05, 8)
        gaps = []
        for ways, queries in tasks:
            own = rng.normal(0, 0.01, 8)
            before, after = (
                scores(
                    grid_worlds.tallies(
                        ways,
                        queries,
                        0.7 + hard + more,
                        np.zeros(8),
                        seed=2 * draw + place,
                        draw=draw,
                        splits=2,
                    )
                )["accuracy"]
                for place, more in enumerate((0, gain + own))
            )
            gaps.append(after - before)
        low, high = mean(gaps).interval()
        held += low <= truth <= high
        error = math.sqrt(sum(gap.error()[0] ** 2 for gap in gaps)) / len(gaps)
        value = float(np.mean([gap.value for gap in gaps]))
        independent += abs(value - truth) <= 2.05 * error
    assert 180 <= held <= 198
    assert independent < held - 10
