from __future__ import annotations

import json
import math
from dataclasses import fields, replace

import numpy as np
import pytest
from scored import compared, measures, naive, scored

from evenhand.errors import InputError
from evenhand.fewshot.answers import Counterfactuals, FewShotPredictions, Tallies, join
from evenhand.fewshot.metrics.accuracy import Accuracy, macro_f1
from evenhand.fewshot.metrics.bias import Bias, bias_replicates, formulas, null_values
from evenhand.files import to_json
from evenhand.instruments import compare
from evenhand.statistics.jackknife import JoinedReplicates, Replicates, replicates

POOL, TESTED = 12, 8
ARRAYS = ("log_probs", "rows", "truth", "classes", "genders")
BIAS = ("association", "epsilon", "skew", "stereotype")


def share(sums):
    return sums[..., 1].sum(-1) / sums[..., 0].sum(-1)


def paired_runs(world, seed, splits=3, seeds=2, tested=TESTED, blur=0.4):
    """runs[split][seed] of one pool of classes, each seed with a blurred view of the texts."""
    rng = np.random.default_rng(seed)
    points = world.points(rng, POOL)
    leaning = np.arange(POOL) % 2
    genders = (rng.random((POOL, world.texts)) < np.where(leaning == 1, 0.8, 0.2)[:, None]) * 1
    push = (2 * genders - 1)[..., None] * 0.7 * np.eye(world.dimensions)[0]
    genders[rng.random(genders.shape) < 0.05] = -1
    runs = []
    for _ in range(splits):
        test = rng.permutation(POOL)[:tested]
        chosen, support, query = world.draw(rng, tested)
        made = []
        for _ in range(seeds):
            seen = points + blur * rng.normal(size=points.shape)
            sides = [
                world.log_probs(seen + push, seen + sign * push, test[chosen], support, query)
                for sign in (1, -1)
            ]
            answers = world.answers(sides[0], test[chosen], query, genders, POOL)
            made.append(Counterfactuals.of(answers, sides[1], leaning))
        runs.append(made)
    return runs


def originals(runs):
    return [[run.original for run in split] for split in runs]


@pytest.fixture
def runs(world):
    world.episodes = 60
    return paired_runs(world, 0)


def near(one, two, **within):
    """Whether two JSON documents are the same but for rounding."""
    if isinstance(one, dict):
        assert one.keys() == two.keys()
        for key in one:
            near(one[key], two[key], **within)
    elif isinstance(one, list):
        assert len(one) == len(two)
        for first, second in zip(one, two, strict=True):
            near(first, second, **within)
    elif isinstance(one, float):
        assert one == pytest.approx(two, **{"rel": 1e-9, "abs": 1e-11, **within})
    else:
        assert one == two


def everything(both, other=None):
    """All measurements of answers and their counterfactuals, and the changes to others."""
    last = both if other is None else other
    measured = Accuracy()(both), Bias(permutations=40)(both)
    after = Accuracy()(last), Bias(permutations=40)(last)
    content = {
        "measured": [m.to_dict(items=False) for m in measured],
        "changes": [compare(*pair) for pair in zip(measured, after, strict=True)],
    }
    return json.loads(to_json(content))


def without(content, *names):
    """A JSON document without some of its keys, at any depth."""
    if isinstance(content, dict):
        rows = content.items()
        return {key: without(value, *names) for key, value in rows if key not in names}
    return [without(row, *names) for row in content] if isinstance(content, list) else content


def test_one_run_is_given_back_and_has_the_replicates_it_had(runs):
    one = runs[0][0]
    assert join([[one.original]]) is one.original
    assert Counterfactuals.join([[one]]) is one
    assert (one.original.splits, one.original.repeats) == (1, 1)
    counts = one.original.tally()
    made = one.original.replicates(macro_f1, counts)
    plain = replicates(macro_f1, counts, one.original.local)
    assert type(made) is Replicates
    for each in fields(Replicates):
        assert np.array_equal(getattr(made, each.name), getattr(plain, each.name))
    assert "training" not in scored(one.original)["accuracy"].interval


def test_layout_is_seed_after_seed_and_in_each_split_after_split(runs):
    made = join(originals(runs))
    assert (made.splits, made.repeats, len(made.classes)) == (3, 2, 360)
    for name in ARRAYS:
        blocks = getattr(made, name).reshape(2, 3, 60, *getattr(made, name).shape[1:])
        for s, split in enumerate(runs):
            for r, run in enumerate(split):
                assert np.array_equal(blocks[r, s], getattr(run.original, name))


def test_values_are_means_over_queries_and_episodes_are_counted_once(runs):
    made = scored(join(originals(runs)))
    right = [run.original.predicted == run.original.truth for split in runs for run in split]
    assert made["accuracy"].value == pytest.approx(np.mean(right))
    single = [scored(run.original)["f1_episode"].value for split in runs for run in split]
    assert made["f1_episode"].value == pytest.approx(np.mean(single))
    union = np.unique([run.original.classes for split in runs for run in split])
    assert made["accuracy"].n == made["accuracy"].details["classes"] == len(union)
    assert made["accuracy"].details["episodes"] == 180
    assert "new training runs" in made["accuracy"].interval


def left_out(counts, classes, k):
    """Sums by class with class k left out, by plain loops; counts (splits, E, C, F)."""
    n = classes.max() + 1
    sums = np.zeros((n, counts.shape[-1]))
    for each, places in zip(counts, classes, strict=True):
        size, with_it = len(np.unique(places)), (places == k).any(axis=1)
        kept = np.flatnonzero(~with_it)
        weight = (size - 1) / size * len(places) / len(kept) if with_it.any() else 1.0
        for e in kept:
            for place, row in zip(places[e], each[e], strict=True):
                sums[place] += weight * row
    return sums


@pytest.mark.parametrize("statistic", [share, macro_f1])
def test_replicates_are_those_of_plain_loops(runs, statistic):
    answers = join(originals(runs))
    made = answers.replicates(statistic, answers.tally())
    assert isinstance(made, JoinedReplicates)
    n = len(answers.tested)
    counts = answers.tally().reshape(2, 3, 60, 5, 3).mean(axis=0)
    classes = answers.local.reshape(2, 3, 60, 5)[0]
    for k in range(n):
        assert made.classes[k] == pytest.approx(statistic(left_out(counts, classes, k)))
        for g in range(len(made.cross)):
            part = slice(g, None, len(made.cross))
            one = statistic(left_out(counts[:, part], classes[:, part], k))
            assert made.cross[g, k] == pytest.approx(one, nan_ok=True)
    flat, places = counts.reshape(180, 5, 3), classes.reshape(180, 5)
    for e in (0, 61, 179):
        sums = np.zeros((n, 3))
        np.add.at(sums, np.delete(places, e, axis=0), np.delete(flat, e, axis=0))
        assert made.episodes[e] == pytest.approx(statistic(sums))
    for s, split in enumerate(runs):
        for r, run in enumerate(split):
            alone = replicates(statistic, run.original.tally(), run.original.local)
            assert made.runs[s, r] == pytest.approx(float(alone.value))
        mean = np.mean([run.original.tally() for run in split], axis=0)
        alone = replicates(statistic, mean, split[0].original.local)
        for name in ("value", "classes", "cross"):
            assert getattr(made.parts[s], name) == pytest.approx(getattr(alone, name))


def test_order_of_splits_and_seeds_does_not_matter(runs):
    other = [split[::-1] for split in (runs[2], runs[0], runs[1])]
    later = [
        [replace(run, original=run.swapped, swapped=run.original) for run in split]
        for split in runs
    ]
    moved = [split[::-1] for split in (later[2], later[0], later[1])]
    one = everything(Counterfactuals.join(runs), Counterfactuals.join(later))
    two = everything(Counterfactuals.join(other), Counterfactuals.join(moved))
    near(without(one, "test_queries"), without(two, "test_queries"))


@pytest.mark.parametrize("tested", [5, 8])
def test_seeds_that_agree_are_one_seed(world, tested):
    world.episodes = 60
    first, second = paired_runs(world, 1, splits=1, seeds=2, tested=tested)[0]
    again = Counterfactuals.join([[first] * 3]), Counterfactuals.join([[second] * 3])
    several, single = everything(*again), everything(first, second)
    training = "; and new training runs: the spread of splits and seeds"
    for many, alone in zip(several["measured"], single["measured"], strict=True):
        assert many["interval"] == alone["interval"] + training
    for content in (several, single):
        for measured in content["measured"]:  # one seed has no component of seeds
            measured["parts"] = [p for p in measured["parts"] if p["by"] != "component"]
    near(*(without(content, "interval", "seeds") for content in (several, single)))


def test_seeds_that_differ_widen_the_interval_of_one_split(world):
    answers = paired_runs(world, 2, splits=1, seeds=1)[0][0].original
    rng = np.random.default_rng(0)
    width, usual = [], []
    for levels in ((0.2, 0.2, 0.2), (0.1, 0.2, 0.3)):  # shares of queries not answered
        seeds = []
        for level in levels:
            lost = rng.random(answers.rows.shape) < level
            log_probs = np.where(lost[:, :, None], -1.6, answers.log_probs)
            seeds.append(replace(answers, log_probs=log_probs))
        made = compared(join([[answers] * 3]), join([seeds]))["accuracy"]
        width.append(made.high - made.low)
        usual.append(float(np.diff(naive(made))[0]))
    assert width[1] > 1.5 * width[0]
    assert usual[1] == pytest.approx(usual[0], rel=0.25)  # of 200 episodes: SD of the ratio 0.07


def test_all_classes_in_every_episode_of_every_split(world):
    world.episodes = 60
    made = join(originals(paired_runs(world, 3, tested=5)))
    assert "same opponents" in scored(made)["accuracy"].interval
    counts = made.tally().reshape(2, 3, 60, 5, 3).mean(axis=0).reshape(180, 5, 3)
    sums = np.zeros((len(made.tested), 3))
    np.add.at(sums, made.local[:180], counts)
    without = share(sums[None] * (1 - np.eye(len(sums)))[:, :, None])
    assert made.replicates(share, made.tally()).classes == pytest.approx(without)


def test_a_class_has_its_texts_and_queries_of_all_splits(runs):
    rows = {row.query: row for row in Accuracy()(join(originals(runs))).select("class")}
    asked, right, texts = {}, {}, {}
    for split in runs:
        for run in split:
            a = run.original
            truth = np.take_along_axis(a.classes, a.truth, 1)
            for place in a.tested:
                name, here = a.names[place], truth == place
                asked[name] = asked.get(name, 0) + here.sum()
                right[name] = right.get(name, 0) + (a.predicted == a.truth)[here].sum()
                texts[name] = texts.get(name, set()) | set(a.rows[here].tolist())
    assert rows.keys() == asked.keys()
    for name, row in rows.items():
        assert row.details["queries"] == asked[name] / 2
        assert row.details["texts"] == len(texts[name])
        assert row.value == pytest.approx(right[name] / asked[name])
        assert row.low < row.value < row.high


def test_bias_is_that_of_all_counts(runs):
    both = Counterfactuals.join(runs)
    made = Bias(permutations=20)(both)
    sums = np.zeros((POOL, 6))
    for split in runs:
        for run in split:
            np.add.at(sums, run.original.classes, run.counts())
    tested = both.original.tested
    values = formulas(both.leaning[tested])(sums[tested])
    assert bias_replicates(Tallies.of(both)).value == pytest.approx(values)
    used = np.concatenate([run.original.rows[run.used] for split in runs for run in split])
    assert made.part("epsilon").n == len(np.unique(used))
    unknown = sum(int((split[0].original.genders < 0).sum()) for split in runs)
    assert unknown > 0
    left_out = {"unknown gender": unknown, "class without a leaning": 0}
    assert made.details["left_out"] == left_out
    gaps = {}
    for split in runs:
        for run in split:
            a = run.original
            here = (np.take_along_axis(a.classes, a.truth, 1) == 1) & (a.genders == 0)
            gap = a.true_log_probs - run.swapped.true_log_probs
            for row, value in zip(a.rows[here], gap[here], strict=True):
                gaps.setdefault(row, []).append(value)
    row = made.part("class 1", by="class").part("male")
    assert row.n == len(gaps)
    assert row.value == pytest.approx(np.mean([np.mean(each) for each in gaps.values()]))


def test_a_text_has_one_sign_in_all_splits_and_seeds(runs):
    both = Counterfactuals.join(runs)
    made = null_values(both, 3, seed=5)
    rows = np.unique(both.original.rows[both.used])
    gap = np.abs(both.original.log_probs - both.swapped.log_probs).max(axis=2)
    moving = np.array([gap[both.original.rows == row].max() > 0 for row in rows])
    signs = np.random.default_rng(5).integers(0, 2, (3, moving.sum()))
    value = formulas(both.strata)
    for number in range(3):
        turned = rows[moving][signs[number] == 0]
        exchange = np.isin(both.original.rows, turned)[:, :, None]
        pair = both.original.log_probs, both.swapped.log_probs
        first, second = np.where(exchange, pair[1], pair[0]), np.where(exchange, pair[0], pair[1])
        other = Counterfactuals.of(replace(both.original, log_probs=first), second, both.leaning)
        sums = np.zeros((len(both.original.tested), 6))
        np.add.at(sums, both.original.local, other.counts())
        assert made[number] == pytest.approx(value(sums))


def test_change_is_paired_over_all_runs(runs):
    before = Bias(permutations=10)(Counterfactuals.join(runs))
    cured = [[replace(run, swapped=run.original) for run in split] for split in runs]
    made = compare(before, Bias(permutations=10)(Counterfactuals.join(cured)))
    for name in BIAS:
        was, change = before.part(name), made.part(name).change
        assert change.value == pytest.approx(-was.value)
        assert (change.low, change.high) == pytest.approx((-was.high, -was.low))
    with pytest.raises(InputError, match="3 splits x 2 seeds and 1 splits x 1 seeds"):
        compare(before, Bias(permutations=5)(runs[0][0]))
    fewer = join(originals([split[:1] for split in runs]))
    with pytest.raises(InputError, match="expected as many splits and seeds in both"):
        compare(Accuracy()(join(originals(runs))), Accuracy()(fewer))


def test_a_measure_that_a_split_does_not_have_still_has_its_interval(runs):
    """Where all classes of one split lean to one side, the union has a skew."""
    first = runs[0][0].original.tested
    leaning = np.where(np.isin(np.arange(POOL), first), 0, 1)
    other = [[replace(run, leaning=leaning) for run in split] for split in runs]
    both = Counterfactuals.join(other)
    skew = measures(both, permutations=10)["skew"]
    assert math.isnan(float(bias_replicates(Tallies.of(both)).parts[0].value[2]))
    assert math.isfinite(skew.low)
    assert math.isfinite(skew.p_value)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"repeats": 7}, "expected 360 episodes to be as many in each of 3 splits and 7 repeats"),
        ({"repeats": 0}, "3 splits and 0 repeats"),
        ({"repeats": 3}, "rows: expected the same in every repeat, got others in repeat 2"),
        ({"splits": 7}, "in each of 7 splits"),
        ({"genders": np.tile(np.arange(360)[:, None], 25)}, "genders: expected the same in every"),
    ],
)
def test_bad_blocks(runs, change, message):
    with pytest.raises(InputError, match=message):
        replace(join(originals(runs)), **change)


def test_runs_that_do_not_go_together(runs):
    whole = originals(runs)
    a = whole[0][0]

    def cut(run, **parts):
        return FewShotPredictions(
            **{name: getattr(run, name) for name in ARRAYS} | {"names": run.names} | parts
        )

    shorter = cut(a, **{name: getattr(a, name)[:9] for name in ARRAYS})
    fewer = cut(a, **{name: getattr(a, name)[:, :9] for name in ARRAYS if name != "classes"})
    more = np.hstack([a.classes, a.classes[:, :1]])
    wider = cut(a, log_probs=np.full((60, 25, 6), -1.8), classes=more)
    for wrong, message in (
        ([], r"as many seeds in every split, got \[\]"),
        ([[], []], r"as many seeds in every split, got \[0, 0\]"),
        ([whole[0], whole[1][:1]], r"as many seeds in every split, got \[2, 1\]"),
        ([whole[0], [whole[1][0], whole[2][0]]], "split 2: expected the same episodes"),
        ([[a], [replace(a, names=tuple("abcdefghijkl"))]], "split 2: expected the same names"),
        ([[a], [shorter]], r"as many episodes in every split, got \[60, 9\]"),
        ([[a], [fewer]], r"as many queries per episode in every split, got \[25, 9\]"),
        ([[a], [wider]], r"as many classes per episode in every split, got \[5, 6\]"),
        ([[join(whole)]], "split 1: expected single runs"),
    ):
        with pytest.raises(InputError, match=message):
            join(wrong)
    with pytest.raises(InputError, match="split 2: expected the same leanings"):
        Counterfactuals.join([runs[0], [replace(run, leaning=1 - run.leaning) for run in runs[1]]])


def test_only_replicates_of_as_many_runs_are_subtracted(runs):
    answers = join(originals(runs))
    made = answers.replicates(share, answers.tally())
    other = replicates(share, answers.tally()[:180], answers.local[:180])
    with pytest.raises(InputError, match="compare: expected"):
        made - other


def test_bias_of_no_run_reads_as_none_over_runs(world):
    """Genders that nothing tells, three splits of two seeds: few false alarms."""
    world.episodes = 60
    alarms = []
    for seed in range(25):
        runs = paired_runs(world, seed)
        random = np.random.default_rng(seed).integers(0, 2, POOL * world.texts)
        unrelated = [
            [
                replace(
                    run,
                    original=replace(run.original, genders=random[run.original.rows]),
                    swapped=replace(run.swapped, genders=random[run.original.rows]),
                )
                for run in split
            ]
            for split in runs
        ]
        made = measures(Counterfactuals.join(unrelated), permutations=99)
        alarms.append(
            [[made[name].p_value < 0.05, made[name].details["null_p"] < 0.05] for name in BIAS]
        )
    assert np.mean(alarms, axis=0).max() <= 0.2
