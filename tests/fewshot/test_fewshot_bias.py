from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from evenhand.errors import InputError
from evenhand.fewshot.bias import Twins, associations, change, leanings, measure
from evenhand.fewshot.bias.formulas import NAMES, formulas
from evenhand.fewshot.bias.null import tossed
from evenhand.fewshot.statistics import Answers
from evenhand.results import to_json

SIZES = ("epsilon", "skew", "stereotype")


def small(genders=(0, 1, 1, 0)) -> Twins:
    """Class 0 leans male, class 1 female, two queries each: the first of each pro-stereotypical.

    Every query is right as it is. Swapped, the first man of class 0 is wrong, the others right.
    """
    log_probs = np.log([[[0.8, 0.2], [0.7, 0.3], [0.1, 0.9], [0.4, 0.6]]] * 2)
    twin = np.log([[[0.4, 0.6], [0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]] * 2)
    truth = np.array([[0, 0, 1, 1]] * 2)
    classes = np.array([[0, 1]] * 2)
    rows = np.array([[5, 6, 7, 8]] * 2)
    answers = Answers(log_probs, rows, truth, classes, np.array([genders] * 2), ("a", "b"))
    return Twins.of(answers, twin, ["male", "female"])


def test_association_by_hand():
    pro = [np.log(0.8 / 0.4), np.log(0.9 / 0.7), np.log(0.9 / 0.7), np.log(0.8 / 0.6)]
    made = measure(small(), tosses=50)
    assert small().association[0] == pytest.approx(pro)
    assert made["association"].value == pytest.approx(np.mean(pro))
    table = {(row.name, row.gender): row for row in associations(small())}
    assert table["a", "male"].association == pytest.approx(np.log(2))
    assert table["a", "female"].association == pytest.approx(np.log(0.7 / 0.9))
    assert table["a", "female"].signed == pytest.approx(np.log(0.9 / 0.7))
    assert table["b", "female"].signed == pytest.approx(table["b", "female"].association)


def test_sets_and_f1_by_hand():
    made = measure(small(), tosses=50)
    told = made["epsilon"].parts
    assert (told["accuracy_pro"], told["accuracy_anti"]) == (1.0, 0.75)
    assert made["epsilon"].value == 0.25
    # anti: class a asked 2, right 1, predicted 1; class b asked 2, right 2, predicted 3
    parts = made["skew"].parts
    assert parts["f1_anti_female"] == pytest.approx(2 / 3)
    assert parts["f1_anti_male"] == pytest.approx(4 / 5)
    a, b = 1 - 2 / 3, 1 - 4 / 5
    assert made["skew"].signed == pytest.approx((a - b) / 2)
    assert made["stereotype"].signed == pytest.approx((a + b) / 2)
    assert parts["as_in_d0"] == pytest.approx((0 + abs(4 / 5 - 2 / 3)) / 2)
    expected = (abs(1 - 4 / 5) + abs(1 - 2 / 3)) / 2
    assert made["stereotype"].parts["as_in_d0"] == pytest.approx(expected)


def test_the_equations_of_d0_are_the_larger_of_bias_and_difficulty():
    sums = np.random.default_rng(0).integers(1, 50, (200, 6, 6)).astype(float)
    values = formulas(np.array([0, 1, 0, 1, 1, -1]))(sums)
    told = dict(zip(NAMES, values.T, strict=True))
    for name in ("skew", "stereotype"):
        larger = np.maximum(abs(told[name]), abs(told["easier"]))
        assert told[f"{name}_d0"] == pytest.approx(larger)


def test_exchanging_texts_and_twins_turns_every_sign(world):
    twins = world.twins(np.random.default_rng(0), 8, leak=1.0)
    other = Twins(twins.swapped, twins.original, twins.leaning)
    one, two = measure(twins, tosses=20), measure(other, tosses=20)
    for name in ("association", *SIZES):
        assert one[name].signed == pytest.approx(-two[name].signed)
        ends = one[name].signed_low, one[name].signed_high
        assert ends == pytest.approx((-two[name].signed_high, -two[name].signed_low))


def test_twins_that_are_the_text_have_no_bias(world):
    twins = world.twins(np.random.default_rng(0), 8, leak=1.0)
    made = measure(replace(twins, swapped=twins.original), tosses=20)
    for name in ("association", *SIZES):
        one = made[name]
        assert (one.value, one.low, one.high, one.p_value, one.null_p) == (0, 0, 0, 1, 1)
    assert made.verdict == "robust"


def test_tosses_are_those_of_exchanged_answers(world):
    """A toss of all coins has the values that the answers have when the same texts exchange."""
    twins = world.twins(np.random.default_rng(1), 6, leak=1.0)
    value = formulas(twins.strata)
    made = tossed(twins, 4, seed=9)
    rows = np.unique(twins.original.rows[twins.used])
    moving = []
    for row in rows:
        here = twins.original.rows == row
        still = np.array_equal(twins.original.log_probs[here], twins.swapped.log_probs[here])
        moving.append(not still)
    coins = np.random.default_rng(9).integers(0, 2, (4, sum(moving)))
    for toss in range(4):
        turned = rows[np.array(moving)][coins[toss] == 0]
        exchange = np.isin(twins.original.rows, turned)[:, :, None]
        pair = twins.original.log_probs, twins.swapped.log_probs
        first = np.where(exchange, pair[1], pair[0])
        second = np.where(exchange, pair[0], pair[1])
        other = Twins.of(replace(twins.original, log_probs=first), second, twins.leaning)
        sums = np.zeros((6, 6))
        np.add.at(sums, twins.original.local, other.counts())
        assert made[toss] == pytest.approx(value(sums))


def test_unknown_genders_and_even_classes_are_left_out():
    twins = small(genders=(0, -1, 1, 0))
    assert twins.left_out == {"unknown gender": 2, "class without a leaning": 0}
    made = measure(twins, tosses=10)
    assert made["epsilon"].parts["accuracy_anti"] == pytest.approx((0 + 1) / 2)
    even = Twins.of(small().original, small().swapped.log_probs, ["male", "even"])
    assert even.left_out["class without a leaning"] == 4
    one_sided = measure(even, tosses=10)
    assert np.isnan(one_sided["skew"].value)
    assert np.isfinite(one_sided["association"].value)
    assert to_json(one_sided)


def test_verdict_follows_the_interval(world):
    twins = world.twins(np.random.default_rng(2), 14, leak=1.0, share=0.95)
    made = measure(twins, tosses=50)
    gap = made["epsilon"]
    assert gap.low > 0.001
    assert measure(twins, margin=gap.low / 2, tosses=10).verdict == "not robust"
    assert measure(twins, margin=gap.value, tosses=10).verdict == "undecided"
    assert measure(twins, margin=min(0.99, gap.high * 1.01), tosses=10).verdict == "robust"


def test_bias_rises_with_the_leak(world):
    found = []
    for leak in (0.0, 0.5, 1.0):
        made = [measure(world.twins(np.random.default_rng(s), 10, leak), tosses=10)
                for s in range(5)]  # fmt: skip
        names = ("association", "epsilon", "stereotype")
        found.append([np.mean([one[name].signed for one in made]) for name in names])
    steps = np.diff(found, axis=0)
    assert (steps > 0).all()
    assert found[2][0] > 0.5


def _false_alarms(world, classes, count, seed):
    rng = np.random.default_rng(seed)
    names = ("association", *SIZES)
    made = [measure(world.twins(rng, classes, leak=0.0), tosses=199) for _ in range(count)]
    by_class = [np.mean([one[name].p_value < 0.05 for one in made]) for name in names]
    by_toss = [np.mean([one[name].null_p < 0.05 for one in made]) for name in names]
    d0 = np.mean([one["stereotype"].parts["as_in_d0"] for one in made])
    corrected = np.mean([one["stereotype"].corrected for one in made])
    return by_class, by_toss, d0, corrected


def test_no_bias_reads_as_none(world):
    by_class, by_toss, d0, corrected = _false_alarms(world, 10, 60, seed=0)
    assert max(by_class) <= 0.12
    assert max(by_toss) <= 0.17
    assert d0 > 0.03  # what equation 21 gives where there is no bias
    assert corrected < 0.01


@pytest.mark.slow
def test_no_bias_reads_as_none_with_more_draws(world):
    by_class, by_toss, _, _ = _false_alarms(world, 8, 400, seed=1)
    assert max(by_class) <= 0.08
    assert max(by_toss) <= 0.09
    assert min(by_toss) >= 0.02


def test_change_is_the_difference_and_its_interval_is_paired(world):
    twins = world.twins(np.random.default_rng(3), 14, leak=1.0, share=0.95)
    before = measure(twins, tosses=20)
    cured = replace(twins, swapped=twins.original)
    after = measure(cured, tosses=20)
    made = change(before, after)
    for name in ("association", *SIZES):
        assert made[name].change == pytest.approx(after[name].signed - before[name].signed)
        ends = made[name].low, made[name].high
        assert ends == pytest.approx((-before[name].signed_high, -before[name].signed_low))
    assert made["association"].direction == "less bias"
    assert change(after, before)["association"].direction == "more bias"
    assert made.accuracy.value == 0
    same = change(before, before)
    assert same["epsilon"].direction == "no clear change"
    assert (same["epsilon"].low, same["epsilon"].high) == (0, 0)
    assert json.loads(to_json(made))["accuracy"]["value"] == 0


def test_change_needs_the_same_queries(world):
    one, two = (
        measure(world.twins(np.random.default_rng(s), 8, leak=0.5), tosses=5) for s in (0, 1)
    )
    with pytest.raises(InputError, match="same test queries"):
        change(one, two)


def test_json_has_the_five():
    told = json.loads(to_json(measure(small(), tosses=10)))
    for name in ("accuracy", "association", *SIZES):
        assert {"value", "low", "high"} <= told[name].keys()
    assert told["robust"]["verdict"] in ("robust", "not robust", "undecided")


def test_the_same_seed_gives_the_same_null(world):
    twins = world.twins(np.random.default_rng(0), 8, leak=0.5)
    assert measure(twins, tosses=30).as_dict() == measure(twins, tosses=30).as_dict()
    assert (tossed(twins, 30, 1) != tossed(twins, 30, 2)).any()


def test_bad_input():
    twins = small()
    with pytest.raises(InputError, match="one for each of 2 classes"):
        Twins.of(twins.original, twins.swapped.log_probs, ["male"])
    with pytest.raises(InputError, match="got none"):
        Twins.of(twins.original, twins.swapped.log_probs, ["even", "even"])
    with pytest.raises(InputError, match=r"0 \(male\), 1 \(female\)"):
        Twins.of(twins.original, twins.swapped.log_probs, np.array([0, 3]))
    for wrong, told in (({"margin": 0}, "margin"), ({"prob": 1}, "prob"), ({"tosses": 0}, "toss")):
        with pytest.raises(InputError, match=told):
            measure(twins, **wrong)
    assert leanings(["unknown"]).tolist() == [-1]


@pytest.mark.slow
def test_simulated_biographies_without_leak_have_no_bias_and_with_it_have():
    from evenhand.fewshot import Dataset, sample
    from evenhand.fewshot.floor import floor, word_vectors
    from evenhand.simulate.biographies import biographies

    found = {}
    for leak in (0.0, 1.0):
        told = biographies(80, leak=leak, seed=3)
        data = Dataset(
            told.texts,
            np.array([told.classes.index(name) for name in told.occupations]),
            np.array([int(gender == "F") for gender in told.genders], dtype=np.int8),
            told.classes,
            "simulated",
        )
        both = word_vectors(told.texts, more=told.counterfactuals)
        vectors, twin = both[: len(data)], both[len(data) :]
        episodes = sample(data, data.classes, ways=5, shots=6, queries=6, episodes=400)
        swapped = floor(data, episodes, vectors=vectors, twins=twin)
        answers = floor(data, episodes, vectors=vectors)
        found[leak] = measure(Twins.of(answers, swapped.log_probs, data.leaning), tosses=300)
    for name in ("association", *SIZES):
        assert found[0.0][name].low <= 0 <= found[0.0][name].high
    assert found[1.0]["association"].low > 0
    assert found[1.0]["association"].null_p < 0.01
