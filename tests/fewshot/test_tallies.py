"""Tallies give the numbers that the whole answers give, and are small."""

from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from small_runs import Runs

from evenhand.errors import InputError
from evenhand.fewshot.bias import change, measure
from evenhand.fewshot.runs import bias_of
from evenhand.fewshot.runs.summaries import answers_of
from evenhand.fewshot.runs.tallies import Tallies, accuracy, bias_values, difference, joined
from evenhand.fewshot.statistics import compare, scores
from evenhand.results import to_json

SIZES = [{}, {"splits": 2}, {"seeds": 2}, {"splits": 2, "seeds": 2}]


@pytest.fixture(scope="module")
def runs(tmp_path_factory):
    return Runs(tmp_path_factory.mktemp("runs"))


def same(one, other, within=1e-12):
    """All figures of one that the other has, alike."""
    for name in {each.name for each in fields(one)} & {each.name for each in fields(other)}:
        mine, theirs = getattr(one, name), getattr(other, name)
        if isinstance(mine, float):
            assert mine == pytest.approx(theirs, abs=within, rel=within, nan_ok=True), name
        elif name != "parts":
            assert mine == theirs, name


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_the_numbers_are_those_of_the_answers(runs, size):
    before, after = runs.done(**size), runs.done(mitigation="neutralize", **size)
    first, second = Tallies.of(before), Tallies.of(after)
    same(accuracy(first), scores(answers_of(before))["accuracy"])
    for name, expected in bias_of(before).bias.measures.items():
        same(bias_values(first)[name], expected)
    moved = difference(first, second)
    expected = change(bias_of(before).bias, bias_of(after).bias)
    same(moved.accuracy, compare(answers_of(before), answers_of(after))["accuracy"])
    assert set(moved.measures) == {"association", "epsilon", "skew", "stereotype"}
    for name, each in expected.measures.items():
        same(moved[name], each)
    assert abs(moved["association"].change) > 1e-4


@pytest.mark.parametrize("size", SIZES, ids=str)
def test_packed_and_unpacked(runs, size):
    before, after = (Tallies.of(runs.done(mitigation=m, **size)) for m in ("none", "neutralize"))
    told = json.loads(to_json(before.packed()))
    again = Tallies.unpacked(told)
    for each in fields(Tallies):
        mine, theirs = getattr(before, each.name), getattr(again, each.name)
        if each.name == "twins":
            np.testing.assert_allclose(theirs, mine, rtol=1e-7)
            whole = [0, 2, 3, 4, 5]
            np.testing.assert_array_equal(theirs[..., whole], mine[..., whole])
        else:
            np.testing.assert_array_equal(theirs, mine)
    assert again.packed() == told
    other = Tallies.unpacked(json.loads(to_json(after.packed())))
    exact, found = difference(before, after), difference(again, other)
    same(found.accuracy, exact.accuracy)
    for name, each in exact.measures.items():
        same(found[name], each, 1e-7)


def test_seeds_apart_are_joined(runs):
    both = Tallies.of(runs.done(splits=2, seeds=2))
    apart = [Tallies.of(runs.done(splits=2, seed=seed)) for seed in (0, 1)]
    one = joined(apart)
    for each in fields(Tallies):
        np.testing.assert_array_equal(getattr(one, each.name), getattr(both, each.name))
    assert joined(apart[:1]) is apart[0]
    assert joined([one, apart[0]]).repeats == 3
    with pytest.raises(InputError, match="run 2: expected the test queries of the first"):
        joined([apart[0], Tallies.of(runs.done())])
    with pytest.raises(InputError, match="run 2: expected twins in all runs or in none"):
        joined([apart[0], replace(apart[1], twins=None)])
    with pytest.raises(InputError, match="expected some to join"):
        joined([])


def test_only_the_same_queries_are_paired(runs):
    first = Tallies.of(runs.done())
    with pytest.raises(InputError, match="1 splits x 1 seeds and 1 splits x 2 seeds"):
        difference(first, Tallies.of(runs.done(seeds=2)))
    with pytest.raises(InputError, match="expected the same test queries, got other ones"):
        difference(first, Tallies.of(runs.done(split_seed=1)))
    assert Tallies.of(runs.done("matching-cosine")).queries == first.queries
    assert Tallies.of(runs.done(mitigation="calibrate")).queries == first.queries


def test_without_twins_there_is_accuracy_alone(runs):
    first = replace(Tallies.of(runs.done()), twins=None)
    again = Tallies.unpacked(first.packed())
    assert bias_values(again) == {}
    moved = difference(again, Tallies.of(runs.done(mitigation="neutralize")))
    assert not moved.measures
    assert math.isfinite(moved.accuracy.value)


@pytest.mark.parametrize("lost", ["twins", "counts", "splits"])
def test_what_is_no_tally_is_named(runs, lost):
    told = Tallies.of(runs.done()).packed()
    with pytest.raises(InputError, match="tallies: expected those of a few-shot run"):
        Tallies.unpacked({**told, lost: {"type": "<u1", "shape": [3], "data": "AAAA"}})
    told.pop(lost)
    with pytest.raises(InputError, match=f"tallies: .*{lost}"):
        Tallies.unpacked(told)


def test_they_are_small(world):
    """600 episodes of five classes with 16 queries each, of a classifier that is often wrong."""
    world.episodes, world.queries, world.texts = 600, 16, 60
    twins = world.twins(np.random.default_rng(5), 7, leak=0.7, effect=0.5)
    said = twins.original
    wrong = 1 - measure(twins, tosses=1).accuracy.value
    assert wrong > 0.2
    made = Tallies(said.tally(), twins.counts(), said.classes, said.names, twins.leaning, "queries")
    assert len(to_json(made.packed())) < 30_000
