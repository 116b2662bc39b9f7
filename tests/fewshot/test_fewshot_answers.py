"""Tallies give the numbers that the full answers give, and are small."""

from __future__ import annotations

import json
from dataclasses import fields, replace

import numpy as np
import pytest
from scored import compared, scored
from small_runs import Runs

from evenhand.errors import InputError
from evenhand.fewshot.answers import Tallies, check_same_queries, paired
from evenhand.fewshot.metrics.bias import (
    MEASURES,
    VALUES,
    Bias,
    bias_replicates,
    measure_strata,
    read_measure,
)
from evenhand.files import to_json
from evenhand.instruments import Run, compare

SIZES = [{}, {"splits": 2}, {"seeds": 2}, {"splits": 2, "seeds": 2}]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"))


def measured(tallies):
    """Every bias measure from tallies."""
    values = bias_replicates(tallies)
    return {name: read_measure(name, values, tallies.strata, Run()) for name in MEASURES}


def changes(before, after):
    """The change of every bias measure from tallies."""
    change = bias_replicates(after) - bias_replicates(before)
    old, new = measured(before), measured(after)
    return {
        name: paired(
            old[name],
            new[name],
            change.at(VALUES.index(value)),
            measure_strata(name, before.strata),
        )
        for name, value in MEASURES.items()
    }


def same(one, other, within=1e-12):
    """Value, interval and p of two measurements, or of two changes, alike."""
    numbers = [
        (row.value, row.low, row.high, np.nan if result.p_value is None else result.p_value)
        for result in (one, other)
        for row in [getattr(result, "change", result)]
    ]
    assert numbers[0] == pytest.approx(numbers[1], abs=within, rel=within, nan_ok=True)


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_numbers_are_those_of_the_answers(runs, size):
    before, after = runs.done(**size), runs.done(mitigation="neutralize", **size)
    first, second = Tallies.of(before), Tallies.of(after)
    same(scored(first)["accuracy"], scored(before.answers)["accuracy"])
    gap = compared(first, second)["accuracy"]
    same(gap, compare(before.results.accuracy, after.results.accuracy))
    expected = compare(before.results.bias, after.results.bias)
    for name, part in measured(first).items():
        same(part, before.results.bias.part(name, by="measure"))
        same(changes(first, second)[name], expected.part(name))
    assert abs(expected.change.value) > 1e-4


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_packed_and_unpacked(runs, size):
    before, after = (Tallies.of(runs.done(mitigation=m, **size)) for m in ("none", "neutralize"))
    packed = json.loads(to_json(before.pack()))
    again = Tallies.unpack(packed)
    for entry in fields(Tallies):
        mine, theirs = getattr(before, entry.name), getattr(again, entry.name)
        if entry.name == "counterfactual":
            np.testing.assert_allclose(theirs, mine, rtol=1e-7)
            whole_numbers = [0, 2, 3, 4, 5]
            np.testing.assert_array_equal(theirs[..., whole_numbers], mine[..., whole_numbers])
        else:
            np.testing.assert_array_equal(theirs, mine)
    assert again.pack() == packed
    other = Tallies.unpack(json.loads(to_json(after.pack())))
    same(compared(again, other)["accuracy"], compared(before, after)["accuracy"])
    for name, change in changes(before, after).items():
        same(changes(again, other)[name], change, 1e-7)


def test_tallies_of_the_first_schema_are_refused(runs):
    packed = Tallies.of(runs.done()).pack()
    packed["twins"] = packed.pop("counterfactuals")
    with pytest.raises(InputError, match="tallies: expected those of a few-shot run"):
        Tallies.unpack(packed)


def test_items_and_details_have_all_of_them(runs):
    run = runs.done(splits=2, seeds=2)
    tallies = Tallies.of(run)
    for result, columns, counts in (
        (run.results.accuracy, ("queries", "correct", "predicted"), tallies.counts),
        (run.results.bias, tuple(run.results.bias.items.columns[4:]), tallies.counterfactual),
    ):
        assert result.items.columns[:4] == ("seed", "split", "episode", "class")
        again = Tallies.from_measurement(result, columns)
        np.testing.assert_array_equal(again.counts, counts)
        for name in ("classes", "leaning", "names", "queries_digest", "splits", "repeats"):
            np.testing.assert_array_equal(getattr(again, name), getattr(tallies, name))


def test_separate_seeds_are_joined(runs):
    both = Tallies.of(runs.done(splits=2, seeds=2))
    separate = [Tallies.of(runs.done(splits=2, seed=seed)) for seed in (0, 1)]
    joined = Tallies.join(separate)
    for entry in fields(Tallies):
        np.testing.assert_array_equal(getattr(joined, entry.name), getattr(both, entry.name))
    assert Tallies.join(separate[:1]) is separate[0]
    assert Tallies.join([joined, separate[0]]).repeats == 3
    assert separate[0].repeat(3).repeats == 3
    with pytest.raises(InputError, match="run 2: expected the test queries of the first"):
        Tallies.join([separate[0], Tallies.of(runs.done())])
    with pytest.raises(InputError, match="run 2: expected counterfactuals in all runs or in none"):
        Tallies.join([separate[0], replace(separate[1], counterfactual=None)])
    with pytest.raises(InputError, match="expected some to join"):
        Tallies.join([])


def test_only_the_same_queries_are_paired(runs):
    first = Tallies.of(runs.done())
    with pytest.raises(InputError, match="1 splits x 1 seeds and 1 splits x 2 seeds"):
        check_same_queries(first, Tallies.of(runs.done(seeds=2)))
    with pytest.raises(InputError, match="expected the same test queries, got other ones"):
        check_same_queries(first, Tallies.of(runs.done(split_seed=1)))
    digest = first.queries_digest
    assert Tallies.of(runs.done("matching-cosine")).queries_digest == digest
    assert Tallies.of(runs.done(mitigation="calibrate")).queries_digest == digest


def test_without_counterfactuals_there_is_accuracy_alone(runs):
    first = replace(Tallies.of(runs.done()), counterfactual=None)
    again = Tallies.unpack(first.pack())
    assert bias_replicates(again) is None
    gap = compared(again, Tallies.of(runs.done(mitigation="neutralize")))["accuracy"]
    assert np.isfinite(gap.value)


@pytest.mark.parametrize("lost", ["counterfactuals", "counts", "splits"])
def test_other_content_is_named(runs, lost):
    packed = Tallies.of(runs.done()).pack()
    with pytest.raises(InputError, match="tallies: expected those of a few-shot run"):
        Tallies.unpack({**packed, lost: {"type": "<u1", "shape": [3], "data": "AAAA"}})
    packed.pop(lost)
    with pytest.raises(InputError, match=f"tallies: .*{lost}"):
        Tallies.unpack(packed)


def test_they_are_small(world):
    """600 episodes of five classes with 16 queries each, of a classifier that is often wrong."""
    world.episodes, world.queries, world.texts = 600, 16, 60
    both = world.counterfactuals(np.random.default_rng(5), 7, leak=0.7, effect=0.5)
    assert scored(both.original)["accuracy"].value < 0.8
    assert Bias(permutations=1)(both).n > 100
    assert len(to_json(Tallies.of(both).pack())) < 30_000
