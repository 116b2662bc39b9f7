"""Texts in clusters: of both groups or of one, few of them, and rates near a bound."""

import json

import numpy as np
import pandas as pd
import pytest
from scipy import stats

from evenhand.classifier import Predictions, read_predictions
from evenhand.classifier.metrics.calibration import CalibrationGap
from evenhand.classifier.metrics.counterfactual import CounterfactualChange, CounterfactualFlips
from evenhand.classifier.metrics.gaps import EqualizedOdds, FprGap, ParityGap, TprGap
from evenhand.classifier.metrics.subgroup_auc import SubgroupAuc
from evenhand.cli import run
from evenhand.statistics.clusters import cluster_mean, difference, share_difference

ALL = (TprGap, FprGap, ParityGap, EqualizedOdds, CalibrationGap)


def clustered(clusters, size=20, *, rate=0.7, gap=0.0, share=0.5, mixed=True, seed=0):
    """People of the positive class who are recognised more or less often by their cluster.

    Half of the variance between clusters is that of the groups' difference within them.
    """
    rng = np.random.default_rng(seed)
    of = np.repeat(np.arange(clusters), size)
    second = rng.random(of.size) >= share if mixed else of >= max(1, round(clusters * share))
    means = np.array([rate + gap / 2, rate - gap / 2])
    z = rng.normal(size=(3, clusters)) * np.sqrt(0.5)
    rates = stats.beta.ppf(
        stats.norm.cdf(z[0] + z[1:]), *4 * np.stack([means, 1 - means])[..., None]
    )
    hit = rng.random(of.size) < rates[second.astype(int), of]
    return pd.DataFrame(
        {
            "y_true": np.where(np.arange(of.size) % 4, "yes", "no"),
            "y_pred": np.where(hit, "yes", "no"),
            "group": np.where(second, "b", "a"),
            "cluster": of,
            "p_yes": np.where(hit, 0.8, 0.2),
        }
    )


def test_a_mean_of_equal_clusters_is_students():
    rng = np.random.default_rng(0)
    values = rng.random((2, 12))
    codes = np.arange(12)
    one, two = (cluster_mean(row.repeat(5), codes.repeat(5), 24) for row in values)
    assert one.variance == pytest.approx(values[0].var(ddof=1) / 12)
    paired = difference(one, two)
    assert paired.variance == pytest.approx((values[0] - values[1]).var(ddof=1) / 12)
    assert paired.freedom <= 11
    apart = difference(one, cluster_mean(values[1].repeat(5), codes.repeat(5) + 12, 24))
    assert apart.variance == pytest.approx(values.var(ddof=1, axis=1).sum() / 12)
    assert 11 <= apart.freedom <= 22


def test_degrees_of_freedom_never_exceed_clusters_less_one():
    for clusters in (2, 3, 5, 10):
        for mixed in (True, False):
            frame = clustered(clusters, mixed=mixed, seed=clusters)
            p = read_predictions(frame, group="group", cluster="cluster", score={"yes": "p_yes"})
            for cls in (*ALL, SubgroupAuc):
                for m in cls().measure(p):
                    assert 0 <= m.details["df"] <= clusters - 1


@pytest.mark.parametrize("mixed", [True, False])
@pytest.mark.parametrize("clusters", [1, 2])
def test_too_few_clusters_leave_everything_open(tmp_path, capsys, clusters, mixed):
    if clusters == 1 and not mixed:
        pytest.skip("one cluster cannot be of either group")
    path = tmp_path / "p.csv"
    clustered(clusters, 60, gap=0.4, mixed=mixed, seed=1).to_csv(path, index=False)
    command = ["classifier", str(path), "--group", "group", "--cluster", "cluster"]
    assert run([*command, "--score", "yes=p_yes", "--json"]) == 0
    for m in json.loads(capsys.readouterr().out)["measurements"]:
        for each in (m, *m["parts"]):
            low, high = (
                float("inf") if each[end] is None else each[end] for end in ("low", "high")
            )
            assert abs(high - low) > 0.3
            assert each["p_value"] is None or each["p_value"] > 0.3
        if m["metric"] == "tpr-gap" and (clusters == 1 or not mixed):
            assert (m["low"], m["high"]) == (-1, 1)
    assert run(command) == 0
    assert "Found" not in capsys.readouterr().out.splitlines()[-1]


def test_clusters_of_both_groups_are_measured_by_the_difference_within():
    """Clusters that differ much add nothing where each has the same people of both groups."""
    frame = clustered(40, 20, gap=0.3, seed=3)
    p = read_predictions(frame, group="group", cluster="cluster")
    [m] = TprGap().measure(p)
    yes = frame[frame.y_true == "yes"]
    rates = [(yes[yes.group == g].y_pred == "yes").mean() for g in "ab"]
    assert m.value == pytest.approx(rates[0] - rates[1])
    assert m.low > 0
    assert m.p_value < 0.01
    # twelve clusters with rates from 0 to 1, one more of "a" in each: .1 in all of them
    counts = [(k, k + 1) for k in range(9)] + [(8, 9)] * 3
    rows = [
        (cluster, group, i < hits)
        for cluster, (b, a) in enumerate(counts)
        for group, hits in (("a", a), ("b", b))
        for i in range(10)
    ]
    p = Predictions(
        pred=tuple("yes" if hit else "no" for _, _, hit in rows),
        true=("yes",) * len(rows),
        groups={"g": tuple(group for _, group, _ in rows)},
        clusters=tuple(str(cluster) for cluster, _, _ in rows),
    )
    [m] = TprGap().measure(p)
    assert m.value == pytest.approx(0.1)
    # all signs equal: 2 of 4096 assignments are as extreme
    assert m.p_value == pytest.approx(2 / 4096, abs=6e-4)
    assert 0 < m.high - m.low < 0.4


def test_no_interval_has_zero_width_where_all_answers_are_right():
    for clusters in (None, "cluster"):
        frame = clustered(6, 10, seed=2)
        frame["y_pred"], frame["p_yes"] = frame.y_true, (frame.y_true == "yes").astype(float)
        named = frame.replace({"yes": "leave", "no": "stay"})
        for given, score in ((frame, "yes"), (named, "leave")):
            p = read_predictions(given, group="group", cluster=clusters, score={score: "p_yes"})
            for cls in (*ALL, SubgroupAuc):
                for m in cls().measure(p):
                    assert m.high - m.low > 0.05
                    assert m.p_value is None or m.p_value == 1


def test_no_version_that_changes_anything_leaves_room_for_one():
    p = Predictions(
        pred=("x",) * 24,
        scores={"x": np.full(24, 0.7), "y": np.full(24, 0.3)},
        items=tuple(str(i // 2) for i in range(24)),
        versions=("original", "swapped") * 12,
        clusters=tuple(str(i // 6) for i in range(24)),
    )
    for q in (p, Predictions(**{**vars(p), "clusters": ()})):
        [flips], [change] = CounterfactualFlips().measure(q), CounterfactualChange().measure(q)
        assert (flips.value, flips.low) == (0, 0)
        assert flips.high > 0.2
        assert change.low < -0.2
        assert change.high > 0.2
    [alone] = CounterfactualFlips().measure(p.take(range(6)))  # one cluster
    assert (alone.low, alone.high) == (0, 1)


def test_a_share_difference_stays_in_range_and_agrees_with_newcombe_for_single_texts():
    rng = np.random.default_rng(4)
    hits = rng.random(120) < 0.5
    codes = np.arange(120)
    one, two = (cluster_mean(hits[rows], codes[rows], 120) for rows in (slice(60), slice(60, 120)))
    value, low, high = share_difference(one, two).interval(0.95)
    ends = [
        stats.binomtest(int(hits[rows].sum()), 60).proportion_ci(method="wilson")
        for rows in (slice(60), slice(60, 120))
    ]
    expected = value - np.hypot(one.value - ends[0].low, ends[1].high - two.value)
    assert low == pytest.approx(expected, abs=0.01)
    assert -1 <= low < value < high <= 1


@pytest.mark.slow
@pytest.mark.parametrize("rate", [0.7, 0.97])
@pytest.mark.parametrize(
    ("clusters", "mixed", "share"),
    [(3, True, 0.5), (5, True, 0.2), (10, True, 0.5), (10, False, 0.5), (30, False, 0.2)],
)
def test_false_alarms_and_coverage(clusters, mixed, share, rate):
    """Of 300, 5 % are 15 (24 is 2.4 standard errors more), 12 % would be 36."""
    n, alarms, outside = 300, 0, 0
    for seed in range(n):
        world = clustered(clusters, mixed=mixed, share=share, rate=rate, seed=seed)
        p = read_predictions(world, group="group", cluster="cluster", positive="yes")
        if len(p.classes) < 2 or len(set(world.group[world.y_true == "yes"])) < 2:
            continue
        [m] = TprGap(permutations=199).measure(p)
        alarms += m.p_value <= 0.05
        outside += not m.low <= 0 <= m.high
        assert m.high > m.low
    assert alarms <= 24
    assert outside <= 24


@pytest.mark.slow
def test_power_with_clusters_of_both_groups():
    found = 0
    for seed in range(60):
        p = read_predictions(
            clustered(30, gap=0.25, seed=seed), group="group", cluster="cluster", positive="yes"
        )
        [m] = TprGap(permutations=999).measure(p)
        found += m.p_value <= 0.05 and m.low > 0
    assert found >= 40


def test_gaps_say_how_many_exchanges_are_behind_p():
    frame = clustered(40, mixed=False, gap=0.3).replace({"yes": "nurse", "no": "judge"})
    for cluster in (None, "cluster"):
        subject = read_predictions(frame, group="group", cluster=cluster)
        [tpr], [odds] = (
            kind(permutations=999).measure(subject) for kind in (TprGap, EqualizedOdds)
        )
        part = tpr.select("class")[0]
        assert ("draws" in part.details) == (cluster is not None)
        tested = part if cluster else tpr
        assert f"{tested.details['draws']:,} random" in tested.test
        share = tested.p_value * (tested.details["draws"] + 1)
        assert share == pytest.approx(round(share))
        assert ("draws" in odds.details) == (cluster is not None)
    assert odds.details["draws"] * odds.details["gaps"] == pytest.approx(
        part.details["draws"], abs=odds.details["gaps"]
    )
