"""Every other metric against values computed by hand or by a plain independent loop."""

import math

import numpy as np
import pytest
from scipy import stats

from by_lists import (
    analogies,
    analogy_accuracy,
    direct_bias,
    ect,
    mac,
    projections,
    ripa,
    rnd,
    rnsb,
    same,
    wefat,
)
from evenhand import lexicon
from evenhand.errors import InputError, VocabularyError
from evenhand.vectors import Vectors, analogy
from evenhand.vectors.metrics.ripa import relation
from evenhand.vectors.metrics.rnsb import divergence

PLANE = {
    "he": [1, 0],
    "she": [0, 1],
    "man": [2, 0],
    "woman": [0, 2],
    "a": [3, 4],
    "b": [4, 3],
    "c": [1, 1],
    "d": [-1, 1],
}


@pytest.fixture(scope="module")
def plane():
    return Vectors.from_arrays(list(PLANE), np.array(list(PLANE.values()), dtype=float))


@pytest.fixture(scope="module")
def cloud():
    rng = np.random.default_rng(11)
    return Vectors.from_arrays([f"w{i}" for i in range(400)], rng.normal(size=(400, 12)))


def unit(v, word):
    x = v[word].astype(float)
    return x / np.linalg.norm(x)


def test_mac_by_hand(plane):
    """Distances of he: to a .4, b .2; of she: to a .2, b .4; c 1-√½ twice: sets (.3, 1-√½)."""
    m = mac(plane, {"people": ["he", "she"]}, {"one": ["a", "b"], "two": ["c"]}, null=0)
    assert m.value == pytest.approx((0.3 + (1 - math.sqrt(0.5))) / 2, abs=1e-6)
    assert (m.ideal, m.worse, m.n) == (1.0, "lower", 3)


def test_mac_equals_a_plain_loop(cloud):
    targets = {"t": ["w0", "w1", "w2"], "u": ["w3"]}
    sets = {"a": ["w10", "w11"], "b": ["w12", "w13", "w14"]}
    plain = np.mean(
        [
            np.mean([1 - unit(cloud, t) @ unit(cloud, a) for a in words])
            for group in targets.values()
            for t in group
            for words in sets.values()
        ]
    )
    assert mac(cloud, targets, sets, null=0).value == pytest.approx(plain, abs=1e-6)


@pytest.mark.parametrize(("topic", "published"), [("religion", 0.861), ("gender", 0.623)])
def test_mac_reproduces_the_reddit_tables(shared, topic, published):
    """The statistic on the distances of Dobrzeniecka (2021): .861 and .623."""
    import pandas as pd

    from evenhand.vectors.metrics.mac import MacStatistic

    table = pd.read_csv(shared / "data" / "cosine" / f"{topic}Reddit.csv")
    table = table[table["word_class"].str.endswith("stereotype")]
    wide = table.pivot_table("cosine_distance", ["word_class", "word_to_compare"], "protected_word")
    labels = wide.index.get_level_values(0).astype("category").codes.astype(int)
    value = MacStatistic(np.zeros((0, 0))).value(wide.to_numpy(), labels)
    assert value == pytest.approx(published, abs=0.0015)


def test_direct_bias_by_hand(plane):
    """The direction is (1, -1)/√2: cosines of a, b, c, d with it are -.2/√2, .2/√2, 0, -1."""
    m = direct_bias(plane, [("he", "she")], ["a", "b", "c", "d"], null=0)
    expected = (2 * 0.2 / math.sqrt(2) + 0 + 1) / 4
    assert m.value == pytest.approx(expected, abs=1e-6)
    strict = direct_bias(plane, [("he", "she")], ["a", "b", "c", "d"], strictness=2, null=0)
    assert strict.value == pytest.approx((2 * 0.02 + 0 + 1) / 4, abs=1e-6)
    with pytest.raises(InputError, match="strictness"):
        direct_bias(plane, [("he", "she")], ["a", "b"], strictness=0)


def test_ripa_by_hand(plane):
    """b = (1, -1)/√2 and vectors keep their length: a -1/√2, b 1/√2, d -2/√2."""
    m = ripa(plane, [("he", "she"), ("man", "woman")], ["a", "b", "d"], null=0)
    assert m.value == pytest.approx(-2 / math.sqrt(2) / 3, abs=1e-6)


def test_a_missing_word_does_not_shift_the_pairs(plane):
    """A peer pairs by position after dropping unknown words: man would meet she."""
    whole = ripa(plane, [("he", "she"), ("man", "woman")], ["a", "d"], null=0)
    holed = ripa(plane, [("he", "she"), ("sir", "woman"), ("man", "woman")], ["a", "d"], null=0)
    assert holed.value == pytest.approx(whole.value)
    assert holed.left_out == ("sir",)
    assert holed.details["pairs_dropped"] == 1
    with pytest.raises(VocabularyError, match="complete tuples"):
        ripa(plane, [("sir", "madam")], ["a", "d"], null=0)


def test_relation_is_the_first_principal_component():
    rng = np.random.default_rng(2)
    differences = rng.normal(size=(10, 5)) + 3 * np.eye(5)[0]
    values, axes = np.linalg.eigh(differences.T @ differences)
    axis = axes[:, values.argmax()]
    assert abs(relation(differences) @ axis) == pytest.approx(1)
    assert relation(-differences) == pytest.approx(-relation(differences))


def test_rnd_by_hand(plane):
    """a = (.6, .8): |a - he| = √.8, |a - she| = √.4; b the other way round."""
    m = rnd(plane, ["he", "man"], ["she"], ["a", "d"], null=0)
    expected = [math.sqrt(0.8) - math.sqrt(0.4)]
    root = math.sqrt(0.5)
    expected.append(math.hypot(-root - 1, root) - math.hypot(-root, root - 1))
    assert [i["score"] for i in m.items] == pytest.approx(expected, abs=1e-6)
    assert m.value == pytest.approx(np.mean(expected), abs=1e-6)


def test_rnsb_divergence_is_the_kl_to_uniform():
    p = np.array([0.2, 0.5, 0.9, 0.4])
    assert divergence(p) == pytest.approx(stats.entropy(p / p.sum(), np.full(4, 0.25)))
    assert divergence(np.full(7, 0.3)) == 0


@pytest.mark.parametrize("length", ["unit", "own"])
def test_rnsb_equals_an_independent_fit(cloud, length):
    """Same penalised likelihood, Newton's method to convergence."""

    good, bad = [f"w{i}" for i in range(20)], [f"w{i}" for i in range(20, 40)]
    targets = {"x": ["w50", "w51", "w52"], "y": ["w53", "w54"]}
    m = rnsb(cloud, targets, good, bad, length=length, null=0)

    def vectors(words):
        found = [
            unit(cloud, w) if length == "unit" else cloud.raw(cloud.find([w]).rows)[0]
            for w in words
        ]
        return np.column_stack([np.ones(len(found)), np.array(found)])

    data, target = vectors([*good, *bad]), np.repeat([0.0, 1.0], 20)
    penalty = np.diag([0.0] + [1.0] * 12)
    theta = np.zeros(13)
    for _ in range(50):
        fitted = 1 / (1 + np.exp(-data @ theta))
        gradient = data.T @ (fitted - target) + penalty @ theta
        curvature = (data.T * (fitted * (1 - fitted))) @ data + penalty
        theta -= np.linalg.solve(curvature, gradient)
    assert np.abs(gradient).max() < 1e-10
    p = 1 / (1 + np.exp(-vectors(["w50", "w51", "w52", "w53", "w54"]) @ theta))
    assert [i["score"] for i in m.items] == pytest.approx(p, abs=1e-6)
    assert m.value == pytest.approx(stats.entropy(p / p.sum(), np.full(5, 0.2)), rel=1e-5)
    assert m.details["negative_share"]["x"] == pytest.approx(p[:3].sum() / p.sum(), abs=1e-6)
    assert sum(m.details["even_share"].values()) == pytest.approx(1)


def test_ect_equals_scipys_spearman(cloud):
    one, two = ["w0", "w1"], ["w2", "w3", "w4"]
    words = [f"w{i}" for i in range(100, 130)]
    centre = [np.mean([unit(cloud, w) for w in group], axis=0) for group in (one, two)]
    cosines = [[unit(cloud, w) @ c / np.linalg.norm(c) for w in words] for c in centre]
    expected = stats.spearmanr(*cosines).statistic
    m = ect(cloud, one, two, words, null=0)
    assert m.value == pytest.approx(expected, abs=1e-9)
    assert m.low < m.value < m.high


def test_same_by_hand_for_two_and_three_groups(plane, cloud):
    m = same(plane, {"m": ["he"], "f": ["she"]}, ["a", "d"], null=0)
    assert m.value == pytest.approx((0.2 / math.sqrt(2) + 1) / 2, abs=1e-6)
    assert m.details["skew"] == pytest.approx((-0.2 / math.sqrt(2) - 1) / 2, abs=1e-6)
    groups = {"a": ["w0", "w1"], "b": ["w2"], "c": ["w3", "w4"]}
    centres = [np.mean([unit(cloud, w) for w in words], axis=0) for words in groups.values()]
    first = centres[0] - centres[1]
    first /= np.linalg.norm(first)
    second = centres[1] - centres[2]
    second -= second @ first * first
    second /= np.linalg.norm(second)
    expected = np.mean(
        [math.hypot(unit(cloud, w) @ first, unit(cloud, w) @ second) for w in ("w9", "w10")]
    )
    assert same(cloud, groups, ["w9", "w10"], null=0).value == pytest.approx(expected, abs=1e-6)


def test_wefat_word_scores_by_a_plain_loop(cloud):
    A, B, words = ["w0", "w1", "w2"], ["w3", "w4"], ["w20", "w21", "w22", "w23", "w24"]
    expected = []
    for w in words:
        a = [unit(cloud, w) @ unit(cloud, x) for x in A]
        b = [unit(cloud, w) @ unit(cloud, x) for x in B]
        expected.append((np.mean(a) - np.mean(b)) / np.std([*a, *b], ddof=1))
    m = wefat(cloud, words, A, B, null=0)
    assert [i["score"] for i in m.items] == pytest.approx(expected, abs=1e-6)
    facts = dict(zip(words, [1.0, 5.0, 2.0, 8.0, 3.0], strict=True))
    r = wefat(cloud, words, A, B, facts, permutations=0)
    assert r.value == pytest.approx(stats.pearsonr(expected, list(facts.values())).statistic)
    with pytest.raises(InputError, match="no fact given for w24"):
        wefat(cloud, words, A, B, dict.fromkeys(words[:4], 1.0))


def test_wefat_permutation_equals_scipys(cloud):
    words = [f"w{i}" for i in range(30, 36)]
    facts = {w: float(i * i) for i, w in enumerate(words)}
    m = wefat(cloud, words, ["w0", "w1"], ["w2", "w3"], facts, permutations=100_000)
    scores = [i["score"] for i in m.items]

    def statistic(x):
        return stats.pearsonr(x, list(facts.values())).statistic

    exact = stats.permutation_test(
        (scores,), statistic, permutation_type="pairings", n_resamples=np.inf
    )
    two_sided = np.mean(np.abs(exact.null_distribution) >= abs(m.value) - 1e-12)
    assert m.p_value == pytest.approx(two_sided, abs=0.01)


def test_the_embedding_mirrors_the_share_of_women(glove):
    """Caliskan found r = .90 for occupations with GloVe 840B; ours is smaller but plain."""
    query = lexicon.wefat("wefat-occupations")
    female, male = query.attributes["female"], query.attributes["male"]
    m = wefat(glove, query.words, female, male, query.shares, query=query.name)
    assert m.value > 0.6
    assert m.low > 0.3
    assert m.p_value < 0.001


def test_projections_by_hand(plane):
    m = projections(plane, {"x": ["b", "c"], "y": ["a", "d"]}, ends=("he", "she"))
    scores = [0.2 / math.sqrt(2), 0, -0.2 / math.sqrt(2), -1]
    assert [i["score"] for i in m.items] == pytest.approx(scores, abs=1e-6)
    assert m.value == pytest.approx(np.mean(scores[:2]) - np.mean(scores[2:]), abs=1e-6)
    assert m.items[0]["he"] == pytest.approx(0.8, abs=1e-6)
    assert m.p_value == pytest.approx(2 / 6)
    with pytest.raises(InputError, match="two target sets"):
        projections(plane, {"x": ["a", "b"]})


def test_names_of_several_words_are_averaged(glove):
    """The mean of the unit vectors, beside words of their own; without it they are left out."""
    groups = {"x": ["interior designer", "nurse"], "y": ["fighter pilot", "boss", "zzzqx zzzqy"]}
    m = projections(glove, groups, ends=("she", "he"), average=True)
    assert list(m.details["averaged"]) == ["interior designer", "fighter pilot"]
    assert m.left_out == ("zzzqx zzzqy",)
    assert m.n == 4
    mean = glove.unit(glove.find(["interior", "designer"]).rows).mean(axis=0)
    (she,) = glove.unit(glove.find(["she"]).rows)
    assert m.items[0]["she"] == pytest.approx(mean @ she / np.linalg.norm(mean), abs=1e-5)
    known = {"x": ["nanny", "nurse"], "y": ["captain", "boss"]}
    for permutations in (0, 1000):
        same = [
            projections(glove, known, average=average, permutations=permutations, null=0)
            for average in (False, True)
        ]
        assert same[0].value == pytest.approx(same[1].value, abs=1e-6)
        assert same[0].p_value == same[1].p_value


def test_analogies_show_the_artefact(glove):
    answers = analogy(glove, "man", "doctor", "woman", n=3)
    assert answers.allowed[0].word == "doctor"
    assert answers.barred[0].word == "nurse"
    assert {"man", "doctor", "woman"}.isdisjoint(a.word for a in answers.barred)
    assert len(answers.barred) == 3


def test_analogy_equals_a_full_search(cloud):
    target = unit(cloud, "w1") - unit(cloud, "w0") + unit(cloud, "w2")
    cosines = {w: unit(cloud, w) @ target / np.linalg.norm(target) for w in cloud.words}
    best = sorted(cosines, key=lambda w: -cosines[w])
    found = analogy(cloud, "w0", "w1", "w2", n=5)
    assert [a.word for a in found.allowed] == best[:5]
    assert [a.word for a in found.barred] == [w for w in best if w not in ("w0", "w1", "w2")][:5]
    assert found.allowed[0].score == pytest.approx(cosines[best[0]], abs=1e-6)


def test_analogies_do_not_depend_on_spelling(glove):
    """The vectors' spelling of a word is theirs; the question's is the user's."""
    one = analogies(glove, [("man", "woman")], ["doctor", "nurse"])
    two = analogies(glove, [("Man", "Woman")], ["Doctor", "NURSE"])
    assert one.value == two.value == 1
    assert analogy_accuracy(glove, [("Man", "King", "Woman", "Queen")]).value == 1
    assert analogy(glove, "Man", "man", "woman").allowed[0].word == "woman"


def test_analogies_interval_knows_that_pairs_share_their_words():
    """Five pairs that mean the same ask the same question five times: no surer than once."""
    rng = np.random.default_rng(6)
    names = [f"w{i}" for i in range(60)]
    matrix = rng.normal(size=(60, 5))
    matrix[1:5] = matrix[0] + rng.normal(size=(4, 5)) / 1e3
    matrix[6:10] = matrix[5] + rng.normal(size=(4, 5)) / 1e3
    v = Vectors.from_arrays(names, matrix)
    words = names[20:50]
    one = analogies(v, [("w0", "w5")], words)
    five = analogies(v, [(f"w{i}", f"w{i + 5}") for i in range(5)], words)
    assert 0 < one.value < 1
    assert five.high - five.low > 0.8 * (one.high - one.low)


def test_undefined_input_never_becomes_a_p_value(cloud):
    words = [f"w{i}" for i in range(30, 36)]
    facts = {w: float(i) for i, w in enumerate(words)}
    for bad in (math.nan, math.inf, "many"):
        with pytest.raises(InputError, match="expected a number as the fact of 'w30'"):
            wefat(cloud, words, ["w0", "w1"], ["w2", "w3"], {**facts, "w30": bad})
    with pytest.raises(InputError, match="strictness"):
        direct_bias(cloud, [("w0", "w1")], words, strictness=math.nan)


def test_zero_vectors_never_enter_a_null():
    rng = np.random.default_rng(5)
    matrix = rng.normal(size=(900, 6))
    matrix[300:] = 0
    v = Vectors.from_arrays([f"w{i}" for i in range(900)], matrix)
    m = mac(v, {"t": ["w0", "w1"]}, {"a": ["w5", "w6", "w7"]}, null=300)
    assert abs(m.details["null_median"] - 1) < 0.5
    assert m.details["null_quantiles"]["0.025"] < m.details["null_quantiles"]["0.975"] - 0.2


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda v: mac(v, {}, {"a": ["w1"]}), "needs 1 or more target sets, 'q' has 0"),
        (lambda v: mac(v, {"t": "she"}, {"a": ["w1"]}), "the string 'she'"),
        (lambda v: rnd(v, ["w1", "w2"], ["w2"], ["w4", "w5"]), "'w2'"),
        (lambda v: mac(v, {"t": ["w1"]}, {"a": ["w1", "w2"]}), "'w1' is among"),
        (lambda v: mac(v, {"t": ["w1"]}, {"a": ["w2"]}, seed=None), "seed: expected a whole"),
        (lambda v: mac(v, {"t": ["w1"]}, {"a": ["w2"]}, null="10"), "null: expected a whole"),
    ],
)
def test_wrong_calls_raise_an_error_that_says_what_is_wrong(cloud, call, message):
    with pytest.raises(InputError, match=message):
        call(cloud)


def test_analogies_measurement_counts_its_items(glove):
    m = analogies(glove, [("man", "woman"), ("he", "zzzqx")], ["doctor", "nurse", "qqqz"])
    assert m.n == 2
    assert set(m.left_out) == {"zzzqx", "qqqz"}
    assert m.value == np.mean([i["allowed"] == i["word"] for i in m.items])
    with pytest.raises(VocabularyError, match="no question"):
        analogies(glove, [("zzzqx", "he")], ["doctor"])
    with pytest.raises(VocabularyError, match="zzzqx"):
        analogy(glove, "man", "doctor", "zzzqx")
