"""The hiding tests on vectors whose hidden bias is known."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from scipy.stats import pearsonr

from evenhand.errors import InputError, UnknownNameError
from evenhand.instruments import compare
from evenhand.vectors.debias import hard
from evenhand.vectors.hiding import (
    cluster_purity,
    hiding_tests,
    most_biased,
    neighbour_bias,
    recovery,
    word_bias,
)
from evenhand.vectors.store import Vectors
from evenhand.vectors.utility import nearest

SETS = [["he", "she"], ["man", "woman"], ["son", "daughter"]]
Groups = dict[str, list[str]]


def plain(i: int) -> str:
    return "w" + "".join(chr(97 + i // 26**place % 26) for place in (2, 1, 0))


def world(hidden: float, size: int = 600, dim: int = 20, seed: int = 0) -> Vectors:
    """Words lean along axis 0; with `hidden`, those of one side also share axes 1 and 2."""
    rng = np.random.default_rng(seed)
    matrix = rng.standard_normal((size, dim))
    side = rng.choice([-1.0, 1.0], size)
    matrix[:, 0] = side * rng.uniform(0.5, 4, size)
    matrix[:, 1] += hidden * side
    matrix[:, 2] += hidden * side
    words = [plain(i) for i in range(size)]
    for i, word in enumerate(w for pair in SETS for w in pair):
        words[i] = word
        matrix[i, 0] = 5 if i % 2 == 0 else -5
        matrix[i, 1:] = matrix[i - i % 2, 1:]
    return Vectors.from_arrays(words, matrix, name="world")


def noise(n: int = 200, dim: int = 15, classes: int = 2, seed: int = 0) -> tuple[Vectors, Groups]:
    matrix = np.random.default_rng(seed).standard_normal((n, dim))
    v = Vectors.from_arrays([plain(i) for i in range(n)], matrix)
    return v, {f"g{c}": v.words[c::classes] for c in range(classes)}


def test_bias_that_a_projection_leaves_is_found() -> None:
    v = world(hidden=3)
    tests = hiding_tests(v, hard(v, SETS).vectors, sets=SETS, n=100, neighbours=20)
    assert [c.before.metric for c in tests] == [
        "cluster_purity",
        "recovery_linear",
        "recovery_rbf",
        "neighbour_bias",
    ]
    for comparison in tests:
        assert comparison.before.ideal is not None
        assert comparison.after.low > 0.8 > comparison.before.ideal
        assert comparison.change.value == comparison.after.value - comparison.before.value
    assert [c.paired for c in tests] == [200, 200, 200, 148]
    assert all(c.before.query == "positive (100) / negative (100)" for c in tests)


def test_bias_that_was_only_along_the_direction_is_gone() -> None:
    v = world(hidden=0)
    tests = hiding_tests(v, hard(v, SETS).vectors, sets=SETS, n=100, neighbours=20, seed=1)
    for comparison in tests:
        assert comparison.before.low > 0.75
        assert comparison.change.high < -0.2
        assert comparison.after.ideal is not None
        assert comparison.after.low <= comparison.after.ideal
    assert tests[3].after.p_value is not None
    assert tests[3].after.p_value > 0.05


def test_change_is_the_paired_t_interval_over_words() -> None:
    v = world(hidden=1)
    change = hiding_tests(v, hard(v, SETS).vectors, sets=SETS, n=100, neighbours=20)[1]
    before, after = (np.array([i["score"] for i in m.items]) for m in (change.before, change.after))
    assert [i["word"] for i in change.before.items] == [i["word"] for i in change.after.items]
    difference = after - before
    half = 1.971957 * difference.std(ddof=1) / np.sqrt(200)
    assert change.change.low == pytest.approx(difference.mean() - half, abs=1e-6)
    assert change.change.high == pytest.approx(difference.mean() + half, abs=1e-6)


def test_groups_alone_give_a_direction() -> None:
    v = world(hidden=3)
    groups = most_biased(v, SETS, 80)
    tests = hiding_tests(v, v, groups=groups, neighbours=20)
    assert tests[3].before.value > 0.8
    flipped = hiding_tests(v, v, groups=dict(reversed(groups.items())), neighbours=20)
    assert flipped[3].before.value == pytest.approx(tests[3].before.value)
    assert flipped[3].before.items[0]["bias"] == -tests[3].before.items[0]["bias"]
    chosen = hiding_tests(v, v, groups=groups, probes=v.words[10:30], neighbours=20)
    assert [item["word"] for item in chosen[3].before.items] == v.words[10:30]
    assert all(c.change.value == 0 for c in tests)
    with pytest.raises(InputError, match="expected sets or groups"):
        hiding_tests(v, v)


def test_excluded_words_take_no_part() -> None:
    v = world(hidden=1)
    barred = most_biased(v, SETS, 50)["positive"]
    tests = hiding_tests(v, v, sets=SETS, n=50, neighbours=10, exclude=iter(barred))
    for comparison in tests:
        assert not {item["word"] for item in comparison.before.items} & set(barred)


def best_agreement(labels: tuple[int, ...], clusters: list[int], k: int) -> float:
    return max(
        sum(order[c] == label for label, c in zip(labels, clusters, strict=True))
        for order in itertools.permutations(range(k))
    ) / len(labels)


@pytest.mark.parametrize("seed", range(4))
def test_purity_chance_level_and_p_by_enumeration(seed: int) -> None:
    v, groups = noise(n=9, dim=3, seed=seed)
    found = cluster_purity(v, groups, seed=seed)
    clusters = [item["kmeans"] for item in found.items]
    labels = tuple(int(item["group"] == "g1") for item in found.items)
    every = [best_agreement(p, clusters, 2) for p in set(itertools.permutations(labels))]
    assert found.value == pytest.approx(best_agreement(labels, clusters, 2))
    assert found.ideal == pytest.approx(np.mean(every))
    assert found.p_value == pytest.approx(np.mean(np.array(every) >= found.value - 1e-12))
    assert found.ideal is not None
    assert found.ideal > 0.5


def test_purity_of_three_groups() -> None:
    v, groups = noise(n=90, classes=3)
    matrix = v.matrix.copy()
    apart = v.with_matrix(matrix + 8 * np.eye(15)[np.arange(90) % 3], name="apart")
    clear = cluster_purity(apart, groups)
    assert clear.value == 1
    assert clear.p_value == pytest.approx(1 / 2001)
    blind = cluster_purity(v, groups)
    assert blind.ideal is not None
    assert 1 / 3 < blind.ideal < 0.5
    assert blind.low <= blind.ideal <= blind.high
    assert (
        blind.details["cluster_sizes"]
        == np.bincount([item["kmeans"] for item in blind.items]).tolist()
    )
    assert cluster_purity(v, groups) == blind
    change = compare(clear, blind)
    assert change.paired == blind.n, "paired by word, not by the cluster of a word"
    assert change.change.low < change.change.value < change.change.high


def test_purity_p_values_are_uniform_enough_without_bias() -> None:
    p_values = [
        cluster_purity(*noise(n=60, dim=5, seed=seed), starts=2).p_value for seed in range(150)
    ]
    rejected = np.mean([p is not None and p <= 0.05 for p in p_values])
    assert rejected <= 0.1


@pytest.mark.parametrize("kernel", ["linear", "rbf"])
def test_recovery_reads_chance_where_there_is_none(kernel: str) -> None:
    v, groups = noise(n=400)
    found = recovery(v, groups, kernel)  # type: ignore[arg-type]
    assert found.low <= 0.5 <= found.high
    assert found.ideal == 0.5
    assert found.p_value is None
    assert found.n == 400
    assert found.value == pytest.approx(np.mean([item["score"] for item in found.items]))
    for item in found.items:
        assert item["score"] == float(item["predicted"] == item["group"])


def test_recovery_rbf_sees_what_linear_cannot() -> None:
    """One group is wide in ten coordinates, the other in ten others; their means are the same."""
    rng = np.random.default_rng(0)
    matrix = rng.standard_normal((400, 20))
    matrix[::2, :10] *= 4
    matrix[1::2, 10:] *= 4
    v = Vectors.from_arrays([plain(i) for i in range(400)], matrix)
    groups = {"first": v.words[::2], "second": v.words[1::2]}
    assert recovery(v, groups, "rbf").low > 0.95
    assert recovery(v, groups, "linear").high < 0.7  # cutting one wide side off gains a little


def test_length_of_the_vectors_tells_nothing() -> None:
    v, groups = noise(n=200)
    long = v.matrix * np.where(np.arange(200) % 2, 10, 1)[:, None]
    stretched = v.with_matrix(long, name="long")
    for test in (cluster_purity, recovery):
        assert test(stretched, groups).value == test(v, groups).value  # type: ignore[operator]


def test_recovery_ideal_is_the_share_of_the_largest_group() -> None:
    v, groups = noise(n=100)
    groups["g1"] = groups["g1"][:20]
    assert recovery(v, groups).ideal == pytest.approx(50 / 70)


def test_neighbour_bias_by_brute_force() -> None:
    v = world(hidden=1)
    bias = word_bias(v, SETS)
    probes = [*list(bias)[10:60], "unknown", "he"]
    found = neighbour_bias(v, bias, probes, neighbours=15)
    words = [word for word in bias if word not in probes]
    unit = v.unit(v.find(words).rows)
    shares = []
    for row in v.find(probes[:50]).rows:
        near = [words[i] for i in np.argsort(-unit @ v.unit(row))[:15]]
        shares.append(np.mean([bias[word] > 0 for word in near]))
    own = [bias[probe] for probe in probes[:50]]
    assert found.value == pytest.approx(pearsonr(own, shares).statistic)
    assert [item["score"] for item in found.items] == pytest.approx(shares)
    assert found.p_value == pytest.approx(1 / 2001)
    assert found.left_out == ("unknown", "he")
    assert found.n == 50
    for i in (0, 7, 49):
        rest = pearsonr(np.delete(own, i), np.delete(shares, i)).statistic
        assert found.items[i]["without"] == pytest.approx(rest)
    low, high = np.tanh(np.arctanh(found.value) + np.array([-1, 1]) * 1.959964 / np.sqrt(47))
    assert (found.low, found.high) == pytest.approx((low, high), rel=1e-5)


def test_neighbour_bias_reads_nothing_where_there_is_nothing() -> None:
    """Bias drawn at random: p-values and intervals must hold what they promise."""
    rejected, missed = [], []
    for seed in range(120):
        v, _ = noise(n=150, dim=4, seed=seed)
        bias = dict(zip(v.words, np.random.default_rng(seed).standard_normal(150), strict=True))
        found = neighbour_bias(v, bias, v.words[:60], neighbours=10, seed=seed)
        assert found.p_value is not None
        rejected.append(found.p_value <= 0.05)
        missed.append(not found.low <= 0 <= found.high)
    assert np.mean(rejected) <= 0.1
    assert np.mean(missed) <= 0.1


def test_neighbour_bias_without_variation_has_no_value() -> None:
    v, _ = noise(n=50)
    found = neighbour_bias(v, dict.fromkeys(v.words, 1.0), v.words[:10], neighbours=5)
    assert np.isnan(found.value)
    assert (found.low, found.high, found.p_value) == (-1, 1, None)


def test_nearest_in_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    from evenhand.vectors import utility

    v, _ = noise(n=60)
    unit = v.unit(np.arange(60)).astype(np.float32)
    whole = nearest(unit, 7, np.arange(60))
    monkeypatch.setattr(utility, "_CELLS", 200)
    pieces = nearest(unit, 7, np.arange(60))
    assert (whole[0] == pieces[0]).all()
    cosines = unit @ unit.T
    np.fill_diagonal(cosines, -2)
    assert (whole[0] == np.argsort(-cosines, axis=1)[:, :7]).all()
    others = nearest(unit[10:], 7, unit[:10])[0]
    assert (others == np.argsort(-(unit[:10] @ unit[10:].T), axis=1)[:, :7]).all()
    for k in (0, 60):
        with pytest.raises(InputError, match="neighbours: expected 1 to 59"):
            nearest(unit, k, np.arange(60))


def test_unknown_words_are_named_and_bad_settings_refused() -> None:
    v, groups = noise(n=40)
    groups["g0"] = [*groups["g0"], "nowhere"]
    assert cluster_purity(v, groups).left_out == ("nowhere",)
    assert recovery(v, groups).left_out == ("nowhere",)
    with pytest.raises(UnknownNameError, match="kernel 'rbg': did you mean 'rbf'"):
        recovery(v, groups, "rbg")  # type: ignore[arg-type]
    with pytest.raises(InputError, match="folds"):
        recovery(v, groups, folds=1)
    with pytest.raises(InputError, match="probes: expected 4 or more"):
        neighbour_bias(v, dict.fromkeys(v.words, 1.0), v.words[:3])


def test_same_seed_same_result() -> None:
    v = world(hidden=0.3)
    groups = most_biased(v, SETS, 60)
    for test in (cluster_purity, recovery):
        assert test(v, groups, seed=5) == test(v, groups, seed=5)  # type: ignore[operator]
