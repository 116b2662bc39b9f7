"""Phrase WEAT in worlds with a known bias, against slow arithmetic, and its correlation."""

import math

import numpy as np
import pytest
import torch
from scipy import stats

from evenhand.errors import InputError, VocabularyError
from evenhand.lexicon.phrases import Phrases, PhraseSet, phrases
from evenhand.masked import load
from evenhand.masked.metrics.phrases import (
    WordMean,
    associations,
    correlation,
    embedded,
    measure,
    pronouns,
    weat,
)
from evenhand.masked.metrics.phrases_correlation import _agreement, split_half
from evenhand.masked.metrics.phrases_pronouns import PhrasePronouns
from evenhand.simulate.masked import bigram_model

DIM = 60


def lists(n=12, pairs=8):
    """A set with n phrases a side and a neutral one, their names telling what they are."""

    def side(name):
        return tuple(f"{name} {k}" for k in range(n))

    return Phrases(
        sets={
            "planted": PhraseSet(
                name="planted", title="", targets={"X": side("x"), "Y": side("y")}
            ),
            "neutral": PhraseSet(
                name="neutral", title="", targets={"P": side("p"), "Q": side("q")}, neutral=True
            ),
        },
        attributes={
            "male": tuple(f"he {k}" for k in range(pairs)),
            "female": tuple(f"she {k}" for k in range(pairs)),
        },
        carriers=("{phrase} [MASK]", "[MASK] {phrase}"),
        control=tuple(f"control {k}" for k in range(30)),
    )


def world(bias, seed, *, common=8.0, identity=1.5, spread=0.0):
    """Embeddings that all point one way (`common`), with a gender direction of known strength.

    x leans `bias` to the male attributes, y as much to the female ones; `spread` is how much the
    phrases of a side differ in their lean. Gives the embed function and each phrase's own lean.
    """
    rng = np.random.default_rng(seed)
    shared, gender = rng.normal(size=(2, DIM))
    shared *= common / np.linalg.norm(shared)
    gender -= shared * (gender @ shared) / (shared @ shared)
    gender /= np.linalg.norm(gender)
    leans = {}

    def embed(texts):
        made = []
        for text in texts:
            kind = text.split()[0]
            lean = {"x": bias, "y": -bias, "he": identity, "she": -identity}.get(kind, 0.0)
            if kind in "xypq":
                lean += spread * rng.normal()
            leans[text] = lean
            made.append(shared + lean * gender + rng.normal(size=DIM) / math.sqrt(DIM))
        return np.array(made)

    return embed, leans


def slow_effect(of, chosen, centre):
    """s(w, A, B) and d by loops, from the definition."""

    def cos(u, v):
        u, v = u - centre, v - centre
        return float(u @ v) / math.sqrt(float(u @ u) * float(v @ v))

    a, b = of.attributes
    scores = [
        np.mean([cos(w, x) for x in a]) - np.mean([cos(w, x) for x in b])
        for w in of.vectors[chosen]
    ]
    side = of.side[chosen]
    x = [s for s, k in zip(scores, side, strict=True) if k == 0]
    y = [s for s, k in zip(scores, side, strict=True) if k == 1]
    return scores, (np.mean(x) - np.mean(y)) / np.std(scores, ddof=1)


@pytest.mark.parametrize("centred", [False, True])
def test_against_slow_arithmetic(centred):
    embed, _ = world(0.3, 1)
    of = embedded(embed, lists())
    centre = of.control.mean(axis=0) if centred else np.zeros(DIM)
    scores, effect = slow_effect(of, of.of("planted"), centre)
    found = weat(of, "planted", centred=centred)
    assert found.value == pytest.approx(effect)
    assert [item["score"] for item in found.items] == pytest.approx(scores)
    rest = np.delete(scores, 0)
    left = (rest[:11].mean() - rest[11:].mean()) / rest.std(ddof=1)
    assert found.items[0]["without"] == pytest.approx(left)
    assert found.details["exact"]
    assert found.metric == ("phrase-weat-centred" if centred else "phrase-weat")


def test_unpaired_attributes_give_the_same_association():
    embed, _ = world(0.3, 1)
    of = embedded(embed, lists())
    longer = of.attributes[0], np.vstack([of.attributes[1], of.attributes[1]])
    doubled = type(of)(
        of.source, of.lists, of.phrases, of.sets, of.side, of.vectors, longer, of.control
    )
    assert associations(doubled) == pytest.approx(associations(of))
    assert weat(doubled, "planted").details["p_attributes"] < 0.05


def test_the_dial_is_read_and_centring_undoes_the_common_direction():
    values = []
    for bias in (0.0, 0.2, 0.6):
        of = embedded(world(bias, 5)[0], lists())
        values.append(weat(of, "planted").value)
        raw, centred = weat(of, "planted"), weat(of, "planted", centred=True)
        assert raw.details["mean_cosine"] > 0.9 > 0.6 > centred.details["mean_cosine"]
    assert values[0] < values[1] < values[2]
    assert values[2] > 1.2
    turned = embedded(world(-0.6, 5)[0], lists())
    assert weat(turned, "planted", centred=True).value < -1.2


@pytest.mark.parametrize("centred", [False, True])
def test_false_positives_and_power(centred):
    none, some, held = 0, 0, 0
    trials = 200
    for seed in range(trials):
        of = embedded(world(0.0, seed)[0], lists(8, 6))
        found = weat(of, "planted", centred=centred)
        none += found.p_value <= 0.05
        held += found.low <= 0 <= found.high
        some += (
            weat(embedded(world(0.3, seed)[0], lists(8, 6)), "planted", centred=centred).p_value
            <= 0.05
        )
    assert none / trials <= 0.09  # four standard errors above .05 would be .11
    assert held / trials >= 0.91
    assert some / trials >= 0.9


def test_phrases_without_an_embedding_are_left_out_and_named():
    embed, _ = world(0.3, 1)

    def lacking(texts):
        made = embed(texts)
        made[[text == "x 3" for text in texts]] = np.nan
        return made

    of = embedded(lacking, lists())
    found = weat(of, "planted")
    assert found.left_out == ("x 3",)
    assert found.n == 23
    with pytest.raises(VocabularyError, match="phrase set 'planted': expected at least 2"):
        embedded(lambda texts: np.where([[t[0] == "x"] for t in texts], np.nan, 1.0), lists())
    with pytest.raises(InputError, match="an embedding for each of"):
        embedded(lambda _: np.ones((3, 4)), lists())
    with pytest.raises(InputError, match="did you mean 'planted'"):
        weat(of, "plantd")


def test_word_vectors_by_their_mean(glove):
    mean = WordMean(glove)
    made = mean(["fixes the engine", "qqqq zzzzq"])
    assert made[0] == pytest.approx(
        np.mean([glove["fixes"], glove["the"], glove["engine"]], axis=0), rel=1e-5
    )
    assert np.isnan(made[1]).all()
    assert mean.missing == {"qqqq", "zzzzq"}


def test_mini_is_embedded_by_its_own_mean():
    model = load("mini")
    small = phrases().chosen(["force"])
    of = embedded(model.embed, small, source="mini")
    text = small.sets["force"].phrases[0]
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        hidden = model.network.base_model(input_ids=ids).last_hidden_state[0, 1:-1]
    assert of.vectors[0] == pytest.approx(hidden.mean(dim=0).numpy(), abs=1e-5)


def told(of, table):
    return PhrasePronouns("fake", of.phrases, ("a", "b"), np.asarray(table), np.asarray(table))


def test_pronouns_by_hand():
    fake = bigram_model(
        {
            "engines": {"he": 0.6, "she": 0.2, "his": 0.01, "her": 0.01},
            "roses": {"he": 0.1, "she": 0.4, "his": 0.01, "her": 0.01},
            "[CLS]": {"he": 0.3, "she": 0.3, "his": 0.01, "her": 0.01},
        }
    )
    found = pronouns(
        fake, ["fixes engines", "cuts roses"], ["who {phrase} [MASK] left", "[MASK] {phrase}"]
    )
    assert found.log_odds == pytest.approx(
        np.array([[math.log(3), 0], [-math.log(4), 0]]), abs=1e-6
    )
    assert found.bias == pytest.approx(np.array([[0.75, 0.5], [0.2, 0.5]]), abs=1e-6)


def test_correlation_against_scipy():
    embed, leans = world(0.3, 2, spread=0.3)
    of = embedded(embed, lists())
    rng = np.random.default_rng(0)
    odds = np.array([leans[p] for p in of.phrases])[:, None] + rng.normal(0, 0.2, (48, 2))
    found = correlation(of, told(of, odds), draws=400, permutations=999)
    s, mean = associations(of), odds.mean(axis=1)
    overall = found.parts["all phrases"]
    assert overall.pearson.fisher.value == pytest.approx(stats.pearsonr(s, mean).statistic)
    assert overall.spearman.fisher.value == pytest.approx(stats.spearmanr(s, mean).statistic)
    interval = stats.pearsonr(s, mean).confidence_interval()
    assert overall.pearson.fisher.low == pytest.approx(interval.low)
    groups = np.repeat(np.arange(4), 12)
    dummies = (groups[:, None] == np.arange(4)).astype(float)

    def residual(y):
        return y - dummies @ np.linalg.lstsq(dummies, y, rcond=None)[0]

    within = found.parts["within groups"]
    partial = stats.pearsonr(residual(s), residual(mean)).statistic
    assert within.pearson.fisher.value == pytest.approx(partial)
    assert within.pearson.p_value <= 0.002
    assert found.parts["neutral"].n == 24
    assert found.parts["stereotyped male"].groups == 1
    assert {item["kind"] for item in found.items} == {
        "stereotyped male", "stereotyped female", "neutral",
    }  # fmt: skip


def test_a_difference_of_groups_alone_is_no_agreement_within_them():
    """Both scores tell the sides apart and nothing else: overall they correlate, within not."""
    low, below = 0, 0
    for seed in range(100):
        of = embedded(world(0.6, seed)[0], lists())
        rng = np.random.default_rng(1000 + seed)
        sides = np.repeat([1.0, -1.0, 0.0, 0.0], 12)
        odds = sides[:, None] + rng.normal(0, 0.5, (48, 2))
        found = correlation(of, told(of, odds), draws=50, permutations=199)
        below += found.parts["all phrases"].pearson.p_value <= 0.05
        low += found.parts["within groups"].pearson.p_value <= 0.05
    assert below >= 95
    assert low <= 12


def test_reliability_of_known_tables():
    rng = np.random.default_rng(4)
    truth = rng.normal(size=4000)
    table = truth[:, None] + rng.normal(size=(4000, 8))
    assert split_half(table) == pytest.approx(8 / 9, abs=0.01)  # k·v/(k·v + e), Spearman-Brown
    assert split_half(np.hstack([table, table, table])) > 0.9
    assert abs(split_half(rng.normal(size=(4000, 8)))) < 0.15
    assert math.isnan(split_half(truth[:, None]))


def test_the_correction_for_noise_finds_the_true_correlation():
    rng = np.random.default_rng(5)
    n = 400
    wide = lists(n // 4, 8)
    embed, leans = world(0.5, 6, spread=0.5)
    of = embedded(embed, wide)
    true = np.array([leans[p] for p in of.phrases])
    odds = true[:, None] + rng.normal(0, 0.5, (n, 2))
    part = correlation(of, told(of, odds), draws=20, permutations=19).parts["all phrases"]
    assert part.corrected > part.pearson.fisher.value
    assert part.corrected > 0.85
    noise = rng.normal(size=(n, 2))
    assert (
        correlation(of, told(of, noise), draws=20, permutations=19).parts["all phrases"].corrected
        is None
    )


def test_pronoun_scores_must_cover_the_phrases():
    of = embedded(world(0.3, 1)[0], lists())
    short = PhrasePronouns("fake", of.phrases[1:], ("a",), np.zeros((47, 1)), np.zeros((47, 1)))
    with pytest.raises(InputError, match="'x 0'"):
        correlation(of, short)


def test_measure_on_two_models_compares_them_by_phrase(glove):
    model = load("mini")
    small = phrases().chosen(["command"])
    report = measure({"one": model, "two": model}, small, embeds={"glove": WordMean(glove)})
    assert [(m.details["source"], m.details["centred"]) for m in report.measurements] == [
        (source, centred) for source in ("one", "two", "glove") for centred in (False, True)
    ]
    assert [c.change.value for c in report.comparisons] == [0.0, 0.0]
    assert [(c.source, c.model) for c in report.correlations[::2]] == [
        ("one", "one"), ("two", "two"), ("glove", "one"), ("glove", "two"),
    ]  # fmt: skip
    assert any("anisotropy" in note for note in report.notes)
    assert "a" in report.left_out["glove"]
    with pytest.raises(InputError, match="at least one model"):
        measure({}, small)


@pytest.mark.slow
def test_mini_leans_as_the_stereotypes_have_it():
    report = measure({"mini": load("mini")}, phrases())
    found = {(m.query, m.details["centred"]): m for m in report.measurements}
    for name in ("force", "machines", "command"):
        for centred in (False, True):
            assert found[name, centred].value > 0.8
            assert found[name, centred].low > 0
            assert found[name, centred].p_value < 0.01
    assert found["neutral", True].low < 0 < found["neutral", True].high
    within = report.correlations[0].parts["within groups"]
    assert within.pearson.estimate.low > 0.2
    assert within.pearson.p_value < 0.001


@pytest.mark.parametrize("constant", [0.0, 0.1])
def test_constant_scores_have_no_correlation(constant):
    """r is not defined: bounds of -1 and 1 and no p, not the smallest p there is."""
    of = embedded(world(0.3, 1)[0], lists())
    found = correlation(of, told(of, np.full((48, 2), constant)), draws=50, permutations=19)
    for part in found.parts.values():
        for one in (part.pearson, part.spearman):
            assert math.isnan(one.estimate.value)
            assert (one.estimate.low, one.estimate.high) == (-1, 1)
            assert (one.bootstrap.low, one.bootstrap.high) == (-1, 1)
            assert math.isnan(one.p_value)
        assert math.isnan(part.reliability[1])
        assert part.corrected is None


def test_the_interval_reaches_as_far_as_either():
    of = embedded(world(0.3, 2, spread=0.3)[0], lists())
    odds = np.random.default_rng(3).normal(size=(48, 2))
    for part in correlation(of, told(of, odds), draws=200, permutations=19).parts.values():
        for one in (part.pearson, part.spearman):
            assert one.estimate.low == min(one.fisher.low, one.bootstrap.low)
            assert one.estimate.high == max(one.fisher.high, one.bootstrap.high)
            assert one.estimate.value == one.fisher.value


def test_the_interval_within_groups_of_unequal_spread():
    """One group varies far more than the others: Fisher's interval counts all phrases for it."""
    groups = np.repeat(np.arange(4), 12)
    rng = np.random.default_rng(8)
    scale = np.where(groups == 0, 8.0, 1.0)
    held = np.zeros(2)
    for _ in range(150):
        x, y = scale * rng.normal(size=48), scale * rng.normal(size=48)
        part = _agreement(
            "within groups", x[:, None], y[:, None], groups, True, 0.95, 400, 19, seed=0
        )
        for i, one in enumerate((part.pearson.fisher, part.pearson.estimate)):
            held[i] += one.low <= 0 <= one.high
    assert held[0] / 150 < 0.8
    assert held[1] / 150 > 0.85
