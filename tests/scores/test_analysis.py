"""Means, differences and ranks of models: against closed forms and in known worlds."""

from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand.errors import InputError
from evenhand.judging import excludes
from evenhand.scores import ScoreAnalysis, Scores, analyze, read

GEST = Path(__file__).resolve().parents[3] / "shared" / "data" / "gest"


def world(rng, means, items=60, noise=1.0, **clusters):
    """Scores of models with these true means, on items that are harder or easier for all."""
    hard = rng.normal(size=items)
    table = np.array(means)[:, None] + hard + noise * rng.normal(size=(len(means), items))
    names = [f"m{i}" for i in range(len(means))]
    return pd.DataFrame(
        {
            "item": np.tile(np.arange(items), len(means)),
            "model": np.repeat(names, items),
            "score": table.ravel(),
            **clusters,
        }
    )


def test_without_clusters_it_is_the_paired_t_test():
    frame = world(np.random.default_rng(0), [0.0, 0.4, 0.1])
    found = analyze(frame)
    wide = frame.pivot_table(index="item", columns="model", values="score")
    for m in found.measurements:
        expected = stats.ttest_1samp(wide[m.query], 0).confidence_interval()
        assert m.value == pytest.approx(wide[m.query].mean())
        assert (m.low, m.high) == pytest.approx((expected.low, expected.high))
    p_values = []
    for c in found.comparisons:
        test = stats.ttest_rel(wide[c.after.query], wide[c.before.query])
        assert c.p_value == pytest.approx(test.pvalue)
        ends = test.confidence_interval(1 - 0.05 / 3)  # all three hold together
        assert (c.change.low, c.change.high) == pytest.approx((ends.low, ends.high))
        p_values.append(test.pvalue)
    ordered = sorted(p_values)
    corrected = np.maximum.accumulate([min(1, p * (3 - i)) for i, p in enumerate(ordered)])
    assert sorted(c.p_corrected for c in found.comparisons) == pytest.approx(corrected)
    assert {c.family for c in found.comparisons} == {3}


def test_clusters_that_items_belong_to_widen_the_interval():
    rng = np.random.default_rng(1)
    documents = np.repeat(np.arange(10), 6)
    frame = world(rng, [0.0, 0.2])
    frame["score"] += rng.normal(size=10)[np.tile(documents, 2)]
    frame["document"] = np.tile(documents, 2)
    alone, together = analyze(frame.drop(columns="document")), analyze(frame)
    by_document = frame[frame.model == "m0"].groupby("document").score.mean()
    m = together.measurements[0]
    ends = stats.ttest_1samp(by_document, 0).confidence_interval()
    assert (m.low, m.high) == pytest.approx((ends.low, ends.high))
    assert m.high - m.low > 1.3 * (alone.measurements[0].high - alone.measurements[0].low)
    assert m.details["documents"] == 10
    assert "documents" in m.interval


def crossed_world(rng, means, templates=6, spread=0.5, items=40):
    hard = rng.normal(size=(items, 1))
    rows = []
    for i, mean in enumerate(means):
        own = spread * rng.normal(size=templates)
        table = mean + hard + own + 0.5 * rng.normal(size=(items, templates))
        rows += [(j, f"m{i}", f"t{k}", table[j, k]) for j, k in np.ndindex(table.shape)]
    return pd.DataFrame(rows, columns=["item", "model", "template", "score"])


def test_templates_are_crossed_with_items_unless_they_are_fixed():
    frame = crossed_world(np.random.default_rng(2), [0.0, 0.3, 0.6, 0.9])
    found, fixed = analyze(frame), analyze(frame, fixed=True)
    for m, own in zip(found.measurements, fixed.measurements, strict=True):
        [scope] = m.select("scope")
        assert (scope.low, scope.high) == pytest.approx((own.low, own.high))
        assert own.high - own.low < m.high - m.low
    assert {m.by for m in found.agreement} == {"template"}
    assert len(found.agreement) == 15
    a, b = (frame[frame.template == t].groupby("model").score.mean() for t in ("t0", "t1"))
    assert found.agreement[0].value == pytest.approx(stats.kendalltau(a, b).statistic)


@pytest.mark.parametrize("spread", [0.0, 0.5])
def test_intervals_hold_for_other_templates(spread):
    rng, covered = np.random.default_rng(3), 0
    for _ in range(200):
        found = analyze(crossed_world(rng, [0.0, 0.0], spread=spread))
        change = found.comparisons[0].change
        covered += change.low <= 0 <= change.high
    assert 0.92 <= covered / 200 <= 1


def test_all_ranks_together_are_right_with_the_stated_probability():
    rng, right, sharp = np.random.default_rng(4), 0, 0
    means = [0.0, 0.0, 0.3, 0.3, 1.5]
    lowest, highest = [4, 4, 2, 2, 1], [5, 5, 3, 3, 1]  # equal models share their ranks
    for _ in range(200):
        found = {m.query: m for m in analyze(world(rng, means, items=30)).ranking}
        ranks = [found[f"m{i}"] for i in range(5)]
        right += all(
            m.low <= low and m.high >= high
            for m, low, high in zip(ranks, lowest, highest, strict=True)
        )
        sharp += found["m4"].high == 1 and found["m4"].details["could_be_first"]
    assert right / 200 >= 0.93
    assert sharp / 200 > 0.9


def test_the_best_can_be_the_lowest():
    frame = world(np.random.default_rng(5), [0.0, 3.0])
    assert analyze(frame).ranking[0].query == "m1"
    assert analyze(frame, best="lowest").ranking[0].query == "m0"
    assert analyze(frame).comparisons[0].effect == "better"
    assert analyze(frame, best="lowest").comparisons[0].effect == "worse"


def test_the_number_of_items_that_would_decide_gives_the_power():
    rng = np.random.default_rng(6)
    found = analyze(world(rng, [0.0, 0.2], items=50))
    c = found.comparisons[0]
    needed, se = c.details["needed"], (c.change.high - c.change.low) / 2 / stats.t.ppf(0.975, 49)
    assert needed == pytest.approx(50 * (2.8016 * se / c.change.value) ** 2, rel=0.01)
    true, noise = c.change.value, se * 50**0.5
    decided = sum(
        stats.ttest_1samp(rng.normal(true, noise, size=needed), 0).pvalue < 0.05 for _ in range(400)
    )
    assert 0.73 < decided / 400 < 0.87


def test_more_items_do_not_help_where_templates_differ_too_much():
    frame = crossed_world(np.random.default_rng(7), [0.0, 0.1], spread=3.0, templates=4)
    [c] = analyze(frame).comparisons
    assert c.details["needed"] is None
    assert analyze(frame, fixed=True).comparisons[0].details["needed"] is not None


def test_groups_and_the_difference_of_two():
    frame = world(np.random.default_rng(8), [0.0, 0.5])
    frame["group"] = np.where(frame.item < 25, "men", "women")
    m = analyze(frame).measurements[0]
    own = frame[frame.model == "m0"]
    men, women = (own[own.group == g].score for g in ("men", "women"))
    test = stats.ttest_ind(men, women, equal_var=False)
    part = m.part("men - women")
    assert part.value == pytest.approx(men.mean() - women.mean())
    assert (part.low, part.high) == pytest.approx(tuple(test.confidence_interval()))
    assert m.part("men").value == pytest.approx(men.mean())


def test_models_without_common_templates_are_not_compared():
    frame = crossed_world(np.random.default_rng(9), [0.0, 1.0, 2.0])
    frame.loc[frame.model == "m2", "template"] = "other " + frame.template
    found = analyze(frame)
    assert len(found.comparisons) == 1
    assert "2 pairs of models have no template in common and were not compared." in found.notes
    assert found.ranking[0].query == "m2"
    assert (found.ranking[0].low, found.ranking[0].high) == (1, 3)
    assert "could be first" in found.sentence


def test_a_single_common_template_says_nothing_about_others():
    frame = crossed_world(np.random.default_rng(9), [0.0, 9.0], templates=3)
    frame = frame[(frame.model == "m0") | (frame.template == "t0")]
    found = analyze(frame)
    [c] = found.comparisons
    assert c.p_value is None
    assert np.isinf(c.change.low)
    assert c.details["outcome"] == "undecided"
    assert c.parts[0].change.low > 5
    assert "1 pair of models have a single template in common" in found.notes[0]


def test_models_without_common_items_are_not_compared():
    frame = world(np.random.default_rng(10), [0.0, 1.0])
    frame.loc[frame.model == "m1", "item"] += 1000
    found = analyze(frame)
    assert not found.comparisons
    assert "1 pair of models share fewer than two items" in found.notes[0]
    assert found.sentence.startswith("2 of 2 models could be first")


def family_error(rng, templates, models, worlds, **how):
    """How often some pair of equal models differs, and what the intervals cover together."""
    alarms = covered = 0
    for _ in range(worlds):
        frame = crossed_world(rng, [0.0] * models, templates=templates, items=30, **how)
        found = analyze(frame)
        alarms += any(c.details["outcome"] == "differs" for c in found.comparisons)
        covered += not any(excludes(c.change.low, c.change.high, 0) for c in found.comparisons)
    return alarms / worlds, covered / worlds


@pytest.mark.parametrize(("templates", "models", "worlds"), [(2, 5, 12), (4, 2, 40)])
def test_few_templates_do_not_make_equal_models_differ(templates, models, worlds):
    """With Satterthwaite's degrees of freedom alone .25 of worlds with two templates had a pair."""
    alarms, covered = family_error(np.random.default_rng(12), templates, models, worlds, spread=0.2)
    assert alarms <= 0.1
    assert covered >= 0.9


def test_what_these_templates_show_decides_nothing():
    """Differences that are sure with these two templates, and open for others."""
    frame = crossed_world(np.random.default_rng(13), [0.0, 1.5], templates=2, spread=0.5, items=200)
    found, fixed = analyze(frame), analyze(frame, fixed=True)
    [c], [own] = found.comparisons, fixed.comparisons
    scope = c.parts[0].change
    assert excludes(scope.low, scope.high, 0)
    assert (scope.low, scope.high) == pytest.approx((own.change.low, own.change.high))
    assert c.parts[0].p is None
    assert c.details["outcome"] == "undecided"
    assert own.details["outcome"] == "differs"
    assert "could be first" in found.sentence
    assert fixed.sentence.startswith("m1 is first, of 2 models; 1 of 1 pairs of models differ")


def test_p_and_interval_of_a_pair_say_the_same():
    rng, later = np.random.default_rng(14), 0
    for _ in range(60):
        found = analyze(world(rng, [0.0, 0.35, 0.7, 1.05], items=40))
        for c in found.comparisons:
            differs = excludes(c.change.low, c.change.high, 0)
            assert differs == (c.p_corrected < 0.05) == (c.details["outcome"] == "differs")
            assert c.change.low <= c.change.value <= c.change.high
            later += differs and abs(c.change.low * c.change.high) < 1e-6
    assert later  # pairs that only Holm's later steps find are among them


def test_the_first_differs_from_all_others():
    """a > b and b > c, but a and c share too little: nobody is said to be first."""
    frame = world(np.random.default_rng(15), [4.0, 2.0, 0.0], noise=0.1)
    alone = frame[~((frame.model == "m0") & (frame.item >= 30))]
    alone = alone[~((alone.model == "m2") & (alone.item < 30))]
    found = analyze(alone)
    assert len(found.comparisons) == 2
    assert found.sentence.startswith("1 of 3 models could be first (m0); 2 of 2 pairs")
    assert analyze(frame).sentence.startswith("m0 is first, of 3 models; 3 of 3 pairs")


def shares(rng, models, items=300):
    """0/1 scores of models that prefer the stereotyping sentence in these shares of pairs."""
    rows = [
        (i, f"m{k}", float(rng.random() < share))
        for k, share in enumerate(models)
        for i in range(items)
    ]
    return pd.DataFrame(rows, columns=["item", "model", "score"])


def test_the_nearest_to_the_ideal_is_first():
    found = analyze(shares(np.random.default_rng(16), [0.9, 0.5, 0.12, 0.7]), ideal=0.5)
    assert [m.query for m in found.ranking] == ["m1", "m3", "m2", "m0"]
    assert (found.ranking[0].low, found.ranking[0].high) == (1, 1)
    # .9 and .12 are far from each other and about as far from the ideal
    far = next(c for c in found.comparisons if (c.before.query, c.after.query) == ("m0", "m2"))
    assert far.details["outcome"] == "undecided"
    outcomes = {m.query: m.details["outcome"] for m in found.measurements}
    assert outcomes == {"m0": "found", "m1": "none found", "m2": "found", "m3": "found"}
    assert {m.family for m in found.measurements} == {4}
    assert all(m.ideal == 0.5 and m.worse == "away" for m in found.measurements)
    assert far.effect == "no clear change"
    near = next(c for c in found.comparisons if (c.before.query, c.after.query) == ("m0", "m1"))
    assert near.effect.startswith("nearer the ideal")
    few = analyze(shares(np.random.default_rng(17), [0.5, 0.9], items=50), ideal=0.5)
    assert few.measurements[0].details["outcome"] == "undecided"


@pytest.mark.parametrize("models", [(0.5, 0.5), (0.7, 0.7), (0.7, 0.3), (0.52, 0.46), (0.5, 0.6)])
def test_the_change_of_the_distance_is_covered(models):
    """Same side, opposite sides, at the ideal: 95 % intervals hold the true change."""
    rng, covered, alarms = np.random.default_rng(18), 0, 0
    truth = abs(models[1] - 0.5) - abs(models[0] - 0.5)
    for _ in range(300):
        [c] = analyze(shares(rng, models, items=60), ideal=0.5).comparisons
        covered += not excludes(c.change.low, c.change.high, truth)
        alarms += c.details["outcome"] == "differs"
    assert covered / 300 >= 0.93
    assert truth or alarms / 300 <= 0.07


def test_a_gap_with_an_ideal():
    frame = world(np.random.default_rng(19), [0.0, 0.0], items=200, noise=0.2)
    frame["group"] = np.where(frame.item % 2 == 0, "a", "b")
    frame.loc[(frame.model == "m1") & (frame.group == "a"), "score"] += 3.0
    found = analyze(frame, gap=True, ideal=0.0)
    assert found.ranking[0].query == "m0"
    [c] = found.comparisons
    assert c.details["outcome"] == "differs"
    gaps = [abs(m.value) for m in found.measurements]
    assert c.change.value == pytest.approx(gaps[1] - gaps[0])


def test_scores_that_do_not_vary_are_no_certainty():
    """All correct: as many wrong ones as 40 items allow, never [1, 1]."""
    frame = shares(np.random.default_rng(20), [0.5, 1.0], items=40)
    found = analyze(frame)
    sure = found.measurements[1]
    assert (sure.low, sure.high) == pytest.approx((0.025 ** (1 / 40), 1.0))
    unbounded = frame.assign(score=frame.score * 7)
    assert np.isinf(analyze(unbounded).measurements[1].low)
    same = pd.concat([frame[frame.model == "m0"], frame[frame.model == "m0"].assign(model="m1")])
    [c] = analyze(same).comparisons
    assert c.p_value == 1
    assert c.change.low < 0 < c.change.high


def test_it_reads_itself_back_and_plots(tmp_path):
    found = analyze(crossed_world(np.random.default_rng(11), [0.0, 0.3, 0.6, 0.9]))
    again = ScoreAnalysis.from_dict(found.to_dict())
    assert again.to_dict() == found.to_dict()
    found.save(tmp_path / "a.json")
    assert (tmp_path / "a.json").stat().st_size > 1000
    assert found.plot().to_dict()["config"]
    assert "m3" in found._repr_html_()


@pytest.mark.parametrize(
    ("frame", "settings", "message"),
    [
        (pd.DataFrame({"item": [1, 2], "score": [1, 1]}), {}, "expected some that differ, got 1"),
        (pd.DataFrame({"item": [1, 2], "score": [0, 1]}), {"prob": 2}, "prob: expected a number"),
        (
            pd.DataFrame({"item": [1, 2], "score": [0, 1], "a": [1, 2], "b": [1, 1]}),
            {"cluster": ["a", "b"]},
            "expected one column that items belong to, got a and b",
        ),
    ],
)
def test_what_cannot_be_analyzed(frame, settings, message):
    with pytest.raises(InputError, match=message):
        analyze(frame, **settings)


def test_a_single_cluster_gives_no_interval():
    m = analyze(
        pd.DataFrame({"item": [1, 2], "score": [0, 1], "document": ["d", "d"]})
    ).measurements[0]
    assert (m.low, m.high) == (0, 1)
    assert "single level" in m.interval


@pytest.mark.skipif(not GEST.is_dir(), reason="the data set GEST is not here")
def test_published_scores_of_real_models_agree_with_a_direct_computation():
    scores = read(GEST / "scores" / "english_mlm")
    assert isinstance(scores, Scores)
    found = analyze(scores)
    frame = pd.DataFrame(
        {
            "item": scores.items,
            "model": scores.models,
            "template": scores.clusters["template"],
            "score": scores.scores,
        }
    )
    assert len(found.measurements) == 9
    assert len(found.comparisons) == 36
    wide = frame.pivot_table(index=["item", "template"], columns="model", values="score")
    c = next(
        c
        for c in found.comparisons
        if {c.before.query, c.after.query} == {"bert-base-uncased", "roberta-base"}
    )
    table = (wide[c.after.query] - wide[c.before.query]).unstack("template").to_numpy()
    n, t = table.shape
    rows, columns = table.mean(axis=1), table.mean(axis=0)
    rest = table - rows[:, None] - columns + table.mean()
    cells = (rest**2).sum() / ((n - 1) * (t - 1)) / (n * t)
    variance = rows.var(ddof=1) / n + columns.var(ddof=1) / t - cells
    shares = [(rows.var(ddof=1) / n, n - 1), (columns.var(ddof=1) / t, t - 1)]
    freedom = min(t - 1, variance**2 / sum(v**2 / d for v, d in shares))
    half = stats.t.ppf(1 - 0.025 / 36, freedom) * variance**0.5
    assert c.change.value == pytest.approx(table.mean())
    assert (c.change.high - c.change.low) / 2 == pytest.approx(half)
