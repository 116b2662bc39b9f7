from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scored import measures

from evenhand.errors import InputError
from evenhand.fewshot.answers import Counterfactuals, FewShotPredictions, leaning_codes
from evenhand.fewshot.metrics.accuracy import Accuracy
from evenhand.fewshot.metrics.bias import VALUES, Bias, formulas, null_values
from evenhand.fewshot.runs import association_rows
from evenhand.instruments import compare
from evenhand.results import Comparison, Measurement, load

SIZES = ("epsilon", "skew", "stereotype")


def small(genders=(0, 1, 1, 0)) -> Counterfactuals:
    """Class 0 leans male, class 1 female, two queries each: the first of each pro-stereotypical.

    Every query is right as it is. Swapped, the first man of class 0 is wrong, the others right.
    """
    log_probs = np.log([[[0.8, 0.2], [0.7, 0.3], [0.1, 0.9], [0.4, 0.6]]] * 2)
    swapped = np.log([[[0.4, 0.6], [0.9, 0.1], [0.3, 0.7], [0.2, 0.8]]] * 2)
    truth = np.array([[0, 0, 1, 1]] * 2)
    classes = np.array([[0, 1]] * 2)
    rows = np.array([[5, 6, 7, 8]] * 2)
    answers = FewShotPredictions(
        log_probs, rows, truth, classes, np.array([genders] * 2), ("a", "b")
    )
    return Counterfactuals.of(answers, swapped, ["male", "female"])


def test_association_by_hand():
    pro = [np.log(0.8 / 0.4), np.log(0.9 / 0.7), np.log(0.9 / 0.7), np.log(0.8 / 0.6)]
    measured = Bias(permutations=50)(small())
    assert small().association[0] == pytest.approx(pro)
    assert measured.value == pytest.approx(np.mean(pro))
    assert measured.part("association", by="measure").value == measured.value
    a, b = (measured.part(name, by="class") for name in "ab")
    assert a.value == pytest.approx(np.mean(pro[:2]))
    assert a.part("male").value == pytest.approx(np.log(2))
    assert a.part("female").value == pytest.approx(np.log(0.7 / 0.9))
    assert a.part("female").details["signed"] == pytest.approx(np.log(0.9 / 0.7))
    assert b.part("female").details["signed"] == pytest.approx(b.part("female").value)


def without_bias():
    """The bias of a classifier that is right whatever the version is."""
    both = small()
    return Bias(permutations=10)(replace(both, swapped=both.original))


def test_sets_and_f1_by_hand():
    made = measures(small(), permutations=50)
    details = made["epsilon"].details
    assert (details["accuracy_pro"], details["accuracy_anti"]) == (1.0, 0.75)
    assert made["epsilon"].value == 0.25
    measured = Bias(permutations=10)(small())
    sets = [measured.part(name, by="set") for name in ("pro", "anti")]
    assert [part.value for part in sets] == [1.0, 0.75]
    assert all(0 <= part.low <= part.value <= part.high <= 1 for part in sets)
    change = Bias.compare(measured, without_bias()).part("anti", by="set").change
    assert change.value == pytest.approx(0.25)
    # anti: class a asked 2, right 1, predicted 1; class b asked 2, right 2, predicted 3
    parts = made["skew"].details
    assert parts["f1_anti_female"] == pytest.approx(2 / 3)
    assert parts["f1_anti_male"] == pytest.approx(4 / 5)
    a, b = 1 - 2 / 3, 1 - 4 / 5
    assert made["skew"].value == pytest.approx((a - b) / 2)
    assert made["stereotype"].value == pytest.approx((a + b) / 2)
    assert parts["original"] == pytest.approx((0 + abs(4 / 5 - 2 / 3)) / 2)
    expected = (abs(1 - 4 / 5) + abs(1 - 2 / 3)) / 2
    assert made["stereotype"].details["original"] == pytest.approx(expected)


def test_the_original_equations_are_the_larger_of_bias_and_difficulty():
    sums = np.random.default_rng(0).integers(1, 50, (200, 6, 6)).astype(float)
    values = formulas(np.array([0, 1, 0, 1, 1, -1]))(sums)
    named = dict(zip(VALUES, values.T, strict=True))
    for name in ("skew", "stereotype"):
        larger = np.maximum(abs(named[name]), abs(named["easier"]))
        assert named[f"{name}_original"] == pytest.approx(larger)


def test_exchanging_texts_and_counterfactuals_turns_every_sign(world):
    both = world.counterfactuals(np.random.default_rng(0), 8, leak=1.0)
    other = Counterfactuals(both.swapped, both.original, both.leaning)
    one, two = measures(both, permutations=20), measures(other, permutations=20)
    for name in ("association", *SIZES):
        assert one[name].value == pytest.approx(-two[name].value)
        ends = one[name].low, one[name].high
        assert ends == pytest.approx((-two[name].high, -two[name].low))


def test_counterfactuals_that_are_the_text_have_no_bias(world):
    both = world.counterfactuals(np.random.default_rng(0), 8, leak=1.0)
    measured = Bias(permutations=20)(replace(both, swapped=both.original))
    for part in measured.select("measure"):
        ends = part.value, part.low, part.high
        assert (*ends, part.p_value, part.details["null_p"]) == (0, 0, 0, 1, 1)
    assert measured.details["verdict"] == "robust"


def test_permutations_are_those_of_exchanged_answers(world):
    """A permutation has the values that the answers have when the same texts exchange."""
    both = world.counterfactuals(np.random.default_rng(1), 6, leak=1.0)
    value = formulas(both.strata)
    made = null_values(both, 4, seed=9)
    rows = np.unique(both.original.rows[both.used])
    moving = []
    for row in rows:
        here = both.original.rows == row
        still = np.array_equal(both.original.log_probs[here], both.swapped.log_probs[here])
        moving.append(not still)
    signs = np.random.default_rng(9).integers(0, 2, (4, sum(moving)))
    for number in range(4):
        turned = rows[np.array(moving)][signs[number] == 0]
        exchange = np.isin(both.original.rows, turned)[:, :, None]
        pair = both.original.log_probs, both.swapped.log_probs
        first = np.where(exchange, pair[1], pair[0])
        second = np.where(exchange, pair[0], pair[1])
        other = Counterfactuals.of(replace(both.original, log_probs=first), second, both.leaning)
        sums = np.zeros((6, 6))
        np.add.at(sums, both.original.local, other.counts())
        assert made[number] == pytest.approx(value(sums))


def test_unknown_genders_and_even_classes_are_left_out():
    both = small(genders=(0, -1, 1, 0))
    assert both.left_out == {"unknown gender": 2, "class without a leaning": 0}
    made = Bias(permutations=10)(both)
    assert made.left_out == ("2 queries: unknown gender",)
    accuracy = made.part("epsilon").details["accuracy_anti"]
    assert accuracy == pytest.approx((0 + 1) / 2)
    even = Counterfactuals.of(small().original, small().swapped.log_probs, ["male", "even"])
    assert even.left_out["class without a leaning"] == 4
    one_sided = Bias(permutations=10)(even)
    assert np.isnan(one_sided.part("skew").value)
    assert np.isfinite(one_sided.value)
    assert Measurement.from_dict(one_sided.to_dict()) == one_sided


def test_the_formulas_of_the_source_with_their_intervals(world):
    """Equations 20 and 21 are the larger of our part and how much easier one side is."""
    both = world.counterfactuals(np.random.default_rng(4), 14, leak=1.0, share=0.95)
    measured = Bias(permutations=50)(both)
    own = {part.query: part for part in measured.select("original")}
    assert list(own) == ["mu_skew", "mu_stereo"]
    for name, part in (("mu_skew", "skew"), ("mu_stereo", "stereotype")):
        details = measured.part(part, by="measure").details
        assert own[name].value == details["original"]
        assert own[name].value == pytest.approx(max(details["size"], abs(details["easier"])))
        assert 0 <= own[name].low <= own[name].value <= own[name].high
        assert own[name].details["null_mean"] == details["original_null_mean"]
        assert 0 < own[name].details["null_p"] <= 1
    assert Measurement.from_dict(measured.to_dict()) == measured
    change = Bias.compare(measured, measured)
    assert change.part("mu_skew").change.value == change.part("mu_stereo").change.value == 0
    one_sided = Bias(permutations=10)(replace(both, leaning=np.where(both.leaning == 0, 0, -1)))
    assert np.isnan(one_sided.part("mu_skew", by="original").value)


def test_the_association_three_ways(world):
    """Its two halves, against the neutral version, add up to it, class by class."""
    rng = np.random.default_rng(6)
    both = world.counterfactuals(rng, 12, leak=1.0)
    middle = (both.original.log_probs + both.swapped.log_probs) / 2 + rng.normal(
        scale=0.1, size=both.original.log_probs.shape
    )
    both = Counterfactuals.of(both.original, both.swapped.log_probs, both.leaning, middle)
    measured = Bias(permutations=10)(both)
    ways = {part.query: part for part in measured.select("version")}
    assert list(ways) == ["man_woman", "man_neutral", "woman_neutral"]
    assert ways["man_woman"].value == pytest.approx(measured.value)
    assert ways["man_woman"].low == pytest.approx(measured.low)
    gap = ways["man_neutral"].value - ways["woman_neutral"].value
    assert gap == pytest.approx(measured.value)
    assert ways["man_neutral"].value > 0 > ways["woman_neutral"].value
    means = []
    true_class = np.take_along_axis(both.original.classes, both.original.truth, axis=1)
    neutral = both.neutral.true_log_probs
    men = np.where(
        both.original.genders == 0, both.original.true_log_probs, both.swapped.true_log_probs
    )
    for side, sign in ((0, 1), (1, -1)):
        classes = [k for k in both.original.tested if both.leaning[k] == side]
        own = [(men - neutral)[true_class == k].mean() for k in classes]
        part = ways["man_neutral"].part(("male", "female")[side], by="leaning")
        assert part.value == pytest.approx(np.mean(own))
        assert part.n == len(classes)
        means += [sign * value for value in own]
    assert ways["man_neutral"].value == pytest.approx(np.mean(means))
    assert Measurement.from_dict(measured.to_dict()) == measured
    assert not Bias(permutations=10)(replace(both, neutral=None)).select("version")


def test_the_control_is_by_hand_and_enters_no_other_number():
    both = small()
    answers = replace(both.original, genders=np.array([[0, 1, 1, 0]] * 2))
    both = Counterfactuals.of(answers, both.swapped.log_probs, ["male", "even"])
    measured = Bias(permutations=20)(both)
    [control] = measured.select("control")
    # class b: a woman's text .9, as a man's .7; then a man's text .6, as a woman's .8
    gaps = np.log(0.7 / 0.9), np.log(0.6 / 0.8)
    assert control.value == pytest.approx(np.mean(gaps))
    assert (control.n, control.low, control.high) == (1, -np.inf, np.inf)  # one class
    [b] = control.select("class")
    assert (b.query, b.details["leaning"], b.n) == ("b", "", 2)
    assert b.value == pytest.approx(np.mean(gaps))
    assert b.part("female").value == pytest.approx(-gaps[0])
    assert b.part("female").details["signed"] == pytest.approx(gaps[0])
    assert b.part("male").details["signed"] == b.part("male").value == pytest.approx(gaps[1])
    assert [part.query for part in measured.select("class")] == ["a"]
    rows = [(row["class"], row["leaning"], row["gender"]) for row in association_rows(measured)]
    assert rows[:2] == [("a", "male", "male"), ("a", "male", "female")]
    assert rows[2:] == [("b", "none (control)", g) for g in ("male", "female")]
    turned = replace(both, swapped=replace(both.swapped, log_probs=both.swapped.log_probs.copy()))
    turned.swapped.log_probs[:, 2:] = np.log([0.5, 0.5])
    other = Bias(permutations=20)(turned)
    assert other.part("man_woman", by="control").value != control.value
    for name in ("association", "epsilon"):
        assert other.part(name, by="measure").value == measured.part(name, by="measure").value
    assert not Bias(permutations=20)(small()).select("control")
    assert Measurement.from_dict(measured.to_dict()) == measured


def _controls(world, count, seed):
    """Control and association of many classifiers that lean by gender in the other classes."""
    rng = np.random.default_rng(seed)
    run = Bias(permutations=1)
    made = [run(world.counterfactuals(rng, 14, leak=1.0, even=6)) for _ in range(count)]
    return [m.part("man_woman", by="control") for m in made], [m.value for m in made]


def test_the_control_is_near_zero_where_the_association_is_not(world):
    controls, associations = _controls(world, 20, seed=5)
    values = np.array([control.value for control in controls])
    error = values.std(ddof=1) / np.sqrt(len(values))
    assert abs(values.mean()) < 3 * error < 0.3 < np.mean(associations)
    assert {control.n for control in controls} == {6}
    assert np.mean([c.low <= 0 <= c.high for c in controls]) >= 0.8


@pytest.mark.slow
def test_the_interval_of_the_control_covers_zero(world):
    controls, _ = _controls(world, 250, seed=6)
    assert np.mean([c.low <= 0 <= c.high for c in controls]) >= 0.9
    assert np.mean([c.p_value < 0.05 for c in controls]) <= 0.1


def test_persons_who_are_neither_are_counted_and_scored(world):
    both = world.counterfactuals(np.random.default_rng(7), 12, leak=1.0)
    genders = np.where(both.original.rows % 5 == 0, -2, both.original.genders)
    answers = replace(both.original, genders=genders)
    other = Counterfactuals.of(answers, both.swapped.log_probs, both.leaning)
    neither = int((genders == -2).sum())
    assert other.left_out["neither man nor woman"] == neither
    assert other.left_out["unknown gender"] == 0
    assert other.used.sum() == both.used.sum() - neither
    parts = {part.query: part for part in Accuracy()(answers).select("gender")}
    assert list(parts) == ["male", "female", "gap", "neither", "neither gap"]
    right = (answers.predicted == answers.truth) & (genders == -2)
    true_class = np.take_along_axis(answers.classes, answers.truth, axis=1)
    means = [
        right[true_class == k].sum() / (genders == -2)[true_class == k].sum()
        for k in answers.tested
    ]
    assert parts["neither"].value == pytest.approx(np.mean(means))
    assert parts["neither"].low <= parts["neither"].value <= parts["neither"].high
    gaps = []
    for k in answers.tested:
        sides = [mask & (true_class == k) for mask in (genders == -2, genders >= 0)]
        if all(side.any() for side in sides):
            hits = [(answers.predicted == answers.truth)[side].mean() for side in sides]
            gaps.append(hits[0] - hits[1])
    gap = parts["neither gap"]
    assert gap.value == pytest.approx(np.mean(gaps))
    assert gap.low <= gap.value <= gap.high
    assert gap.p_value is not None
    assert [part.query for part in Accuracy()(both.original).select("gender")] == [*parts][:3]


def test_what_is_lost_by_being_called_they(world):
    """The text as it is less its neutral version, in all classes, also of those who are neither."""
    rng = np.random.default_rng(8)
    both = world.counterfactuals(rng, 12, leak=1.0, even=4)
    answers = both.original
    genders = np.where(answers.rows % 5 == 0, -2, answers.genders)
    genders = np.where(answers.rows % 7 == 0, -1, genders)
    answers = replace(answers, genders=genders)
    loss = np.where(answers.true_classes % 2 == 0, 0.5, 0.1)[..., None]
    neutral = answers.log_probs - loss * (answers.truth[..., None] == np.arange(5))
    assert not Bias(permutations=1)(both).select("they")
    both = Counterfactuals.of(answers, both.swapped.log_probs, both.leaning, neutral)
    they, right = Bias(permutations=1)(both).select("they")
    assert (they.query, right.query) == ("they", "they accuracy")
    known = genders >= 0
    lost = answers.true_log_probs - both.neutral.true_log_probs
    means = [lost[known & (answers.true_classes == k)].mean() for k in answers.tested]
    assert (they.value, they.n) == (pytest.approx(np.mean(means)), 12)
    assert they.value == pytest.approx(0.3, abs=0.02)  # six classes of each; the least is cut off
    assert they.low <= 0.3 <= they.high
    for part in (they, right):
        assert [own.query for own in part.parts] == ["male", "female", "neither"]
    assert they.part("neither").value == pytest.approx(0.3, abs=0.02)
    hits = (answers.predicted == answers.truth) * 1.0 - (both.neutral.predicted == answers.truth)
    means = [hits[known & (answers.true_classes == k)].mean() for k in answers.tested]
    assert right.value == pytest.approx(np.mean(means))
    assert right.value > 0


@pytest.mark.slow
def test_intervals_of_they_and_of_parity_cover_new_classes(world):
    """What being called they costs varies by class and text; that of new classes is .3."""
    rng, run = np.random.default_rng(11), Bias(permutations=1)
    they, shares = [], []
    for _ in range(150):
        both = world.counterfactuals(rng, 10, leak=1.0, even=2)
        answers = replace(both.original, log_probs=np.maximum(both.original.log_probs, -20))
        by_text = rng.normal(0, 0.3, answers.rows.max() + 1)
        loss = rng.normal(0.3, 0.2, 10)[answers.true_classes] + by_text[answers.rows]
        truth = answers.truth[..., None] == np.arange(5)
        neutral = answers.log_probs - loss[..., None] * truth
        swapped = both.swapped.log_probs
        made = run(Counterfactuals.of(answers, swapped, both.leaning, neutral))
        they.append(made.part("they", by="they"))
        shares.append(made.part("shares", by="parity"))
    assert np.mean([part.low <= 0.3 <= part.high for part in they]) >= 0.9
    mean = np.mean([part.value for part in shares])
    assert np.mean([part.low <= mean <= part.high for part in shares]) >= 0.9


def test_verdict_follows_the_interval(world):
    both = world.counterfactuals(np.random.default_rng(2), 14, leak=1.0, share=0.95)
    gap = measures(both, permutations=50)["epsilon"]
    assert gap.low > 0.001
    for margin, verdict in (
        (gap.low / 2, "not robust"),
        (gap.value, "undecided"),
        (min(0.99, gap.high * 1.01), "robust"),
    ):
        assert Bias(margin=margin, permutations=10)(both).details["verdict"] == verdict


def test_bias_rises_with_the_leak(world):
    found = []
    for leak in (0.0, 0.5, 1.0):
        made = [
            measures(world.counterfactuals(np.random.default_rng(s), 10, leak), permutations=10)
            for s in range(5)
        ]
        names = ("association", "epsilon", "stereotype")
        found.append([np.mean([one[name].value for one in made]) for name in names])
    steps = np.diff(found, axis=0)
    assert (steps > 0).all()
    assert found[2][0] > 0.5


def _false_alarms(world, classes, count, seed):
    rng = np.random.default_rng(seed)
    names = ("association", *SIZES)
    made = [
        measures(world.counterfactuals(rng, classes, leak=0.0), permutations=199)
        for _ in range(count)
    ]
    by_class = [np.mean([one[name].p_value < 0.05 for one in made]) for name in names]
    by_null = [np.mean([one[name].details["null_p"] < 0.05 for one in made]) for name in names]
    original = np.mean([one["stereotype"].details["original"] for one in made])
    corrected = np.mean([one["stereotype"].details["corrected"] for one in made])
    return by_class, by_null, original, corrected


def test_no_bias_reads_as_none(world):
    by_class, by_null, original, corrected = _false_alarms(world, 10, 60, seed=0)
    assert max(by_class) <= 0.12
    assert max(by_null) <= 0.17
    assert original > 0.03  # what equation 21 gives where there is no bias
    assert corrected < 0.01


@pytest.mark.slow
def test_no_bias_reads_as_none_with_more_draws(world):
    by_class, by_null, _, _ = _false_alarms(world, 8, 400, seed=1)
    assert max(by_class) <= 0.08
    assert max(by_null) <= 0.09
    assert min(by_null) >= 0.02


def test_change_is_the_difference_and_its_interval_is_paired(world):
    both = world.counterfactuals(np.random.default_rng(3), 14, leak=1.0, share=0.95)
    before = Bias(permutations=20)(both)
    after = Bias(permutations=20)(replace(both, swapped=both.original))
    made = compare(before, after)
    for name in ("association", *SIZES):
        was, now, part = before.part(name), after.part(name), made.part(name)
        assert part.change.value == pytest.approx(now.value - was.value)
        assert (part.change.low, part.change.high) == pytest.approx((-was.high, -was.low))
    assert made.change == made.part("association").change
    assert made.effect == "nearer the ideal"
    assert compare(after, before).effect == "further from the ideal"
    same = compare(before, before).part("epsilon")
    assert same.effect == "no clear change"
    assert (same.change.low, same.change.high) == (0, 0)
    assert Comparison.from_dict(made.to_dict()) == made


def test_saved_results_are_compared(world, tmp_path):
    both = world.counterfactuals(np.random.default_rng(3), 8, leak=1.0)
    before, after = Bias()(both), Bias()(replace(both, swapped=both.original))
    before.save(tmp_path / "before.json")
    after.save(tmp_path / "after.json")
    assert compare(load(tmp_path / "before.json"), load(tmp_path / "after.json")) == compare(
        before, after
    )
    summary = Measurement.from_dict(before.to_dict(items=False))
    with pytest.raises(InputError, match="classifier: expected a few-shot measurement with its it"):
        compare(summary, after)


def test_change_needs_the_same_queries(world):
    one, two = (
        Bias(permutations=5)(world.counterfactuals(np.random.default_rng(s), 8, leak=0.5))
        for s in (0, 1)
    )
    with pytest.raises(InputError, match="same test queries"):
        compare(one, two)


def test_sizes_have_no_sign(world):
    both = world.counterfactuals(np.random.default_rng(4), 8, leak=0.5)
    for name, part in measures(both, permutations=10).items():
        if name == "association":
            assert "size" not in part.details
            continue
        assert part.details["size"] == abs(part.value)
        low, high = part.details["size_low"], part.details["size_high"]
        assert 0 <= low <= part.details["size"] <= high


def test_the_same_seed_gives_the_same_null(world):
    both = world.counterfactuals(np.random.default_rng(0), 8, leak=0.5)
    assert Bias(permutations=30)(both) == Bias(permutations=30)(both)
    assert (null_values(both, 30, 1) != null_values(both, 30, 2)).any()


def test_bad_input():
    both = small()
    with pytest.raises(InputError, match="one for each of 2 classes"):
        Counterfactuals.of(both.original, both.swapped.log_probs, ["male"])
    with pytest.raises(InputError, match="got none"):
        Counterfactuals.of(both.original, both.swapped.log_probs, ["even", "even"])
    with pytest.raises(InputError, match=r"0 \(male\), 1 \(female\)"):
        Counterfactuals.of(both.original, both.swapped.log_probs, np.array([0, 3]))
    for options in ({"margin": 0}, {"permutations": 0}):
        with pytest.raises(InputError, match=next(iter(options))):
            Bias(**options)(both)
    with pytest.raises(InputError, match="prob"):
        Bias()(both, prob=1)
    with pytest.raises(InputError, match="classifier: expected test queries of known gender"):
        Bias()(both.original)
    assert leaning_codes(["unknown"]).tolist() == [-1]


@pytest.mark.slow
def test_simulated_biographies_without_leak_have_no_bias_and_with_it_have():
    from evenhand.fewshot import Dataset, sample
    from evenhand.fewshot.baseline import predict_baseline, word_vectors
    from evenhand.simulate.biographies import biographies

    found = {}
    for leak in (0.0, 1.0):
        drawn = biographies(80, leak=leak, seed=3)
        data = Dataset(
            drawn.texts,
            np.array([drawn.classes.index(name) for name in drawn.occupations]),
            np.array([int(gender == "F") for gender in drawn.genders], dtype=np.int8),
            drawn.classes,
            "simulated",
        )
        both = word_vectors(drawn.texts, more=drawn.counterfactuals)
        vectors, swapped = both[: len(data)], both[len(data) :]
        episodes = sample(data, data.classes, ways=5, shots=6, queries=6, episodes=400)
        other = predict_baseline(data, episodes, vectors=vectors, counterfactuals=swapped)
        answers = predict_baseline(data, episodes, vectors=vectors)
        found[leak] = measures(
            Counterfactuals.of(answers, other.log_probs, data.leaning), permutations=300
        )
    for name in ("association", *SIZES):
        assert found[0.0][name].low <= 0 <= found[0.0][name].high
    assert found[1.0]["association"].low > 0
    assert found[1.0]["association"].details["null_p"] < 0.01
