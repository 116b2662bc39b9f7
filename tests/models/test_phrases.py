"""Phrase WEAT in worlds with a known bias, against slow arithmetic, and its correlation."""

import math
from dataclasses import replace

import numpy as np
import pytest
import torch
from scipy import stats

from evenhand.errors import InputError, VocabularyError
from evenhand.instruments import measure
from evenhand.lexicon.phrases import PhraseLists, PhraseSet, phrases
from evenhand.models import load
from evenhand.models.metrics import phrases as module
from evenhand.models.metrics.phrases import (
    CORRELATION,
    Phrases,
    WordMean,
    correlate,
    embed_phrases,
    pronoun_odds,
    weat,
)
from evenhand.results import Measurement
from evenhand.simulate.masked import bigram_model

DIM = 60


def lists(n=12, pairs=8):
    """A set with n phrases a side and a neutral one, their names telling what they are."""

    def side(name):
        return tuple(f"{name} {k}" for k in range(n))

    return PhraseLists(
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


def effect_of(of, centred, name="planted"):
    """The measurement with centred embeddings, or its part with raw ones."""
    m = weat(of, name)
    return m if centred else m.part("raw", "embedding")


@pytest.mark.parametrize("centred", [False, True])
def test_against_slow_arithmetic(centred):
    embed, _ = world(0.3, 1)
    of = embed_phrases(embed, lists())
    centre = of.control.mean(axis=0) if centred else np.zeros(DIM)
    scores, effect = slow_effect(of, np.array([each == "planted" for each in of.sets]), centre)
    found = effect_of(of, centred)
    assert found.value == pytest.approx(effect)
    assert found.items["score"] == pytest.approx(scores)
    rest = np.delete(scores, 0)
    left = (rest[:11].mean() - rest[11:].mean()) / rest.std(ddof=1)
    assert found.items[0]["without"] == pytest.approx(left)
    assert found.details["exact"]
    assert found.details["centred"] == centred


def test_unpaired_attributes_give_the_same_association():
    embed, _ = world(0.3, 1)
    of = embed_phrases(embed, lists())
    longer = of.attributes[0], np.vstack([of.attributes[1], of.attributes[1]])
    doubled = replace(of, attributes=longer)
    assert doubled.associations() == pytest.approx(of.associations())
    assert doubled.terms().shape == (48, 1)
    assert effect_of(doubled, False).details["p_attributes"] < 0.05


def test_the_dial_is_read_and_centring_undoes_the_common_direction():
    values = []
    for bias in (0.0, 0.2, 0.6):
        of = embed_phrases(world(bias, 5)[0], lists())
        raw, centred = effect_of(of, False), effect_of(of, True)
        values.append(raw.value)
        assert raw.details["mean_cosine"] > 0.9 > 0.6 > centred.details["mean_cosine"]
    assert values[0] < values[1] < values[2]
    assert values[2] > 1.2
    turned = embed_phrases(world(-0.6, 5)[0], lists())
    assert weat(turned, "planted").value < -1.2


@pytest.mark.slow
@pytest.mark.parametrize("centred", [False, True])
def test_false_positives_and_power(centred):
    none, some, held = 0, 0, 0
    trials = 200
    for seed in range(trials):
        of = embed_phrases(world(0.0, seed)[0], lists(8, 6))
        found = effect_of(of, centred)
        none += found.p_value <= 0.05
        held += found.low <= 0 <= found.high
        biased = embed_phrases(world(0.3, seed)[0], lists(8, 6))
        some += effect_of(biased, centred).p_value <= 0.05
    assert none / trials <= 0.09  # four standard errors above .05 would be .11
    assert held / trials >= 0.91
    assert some / trials >= 0.9


def test_phrases_without_an_embedding_are_left_out_and_named():
    embed, _ = world(0.3, 1)

    def lacking(texts):
        made = embed(texts)
        made[[text == "x 3" for text in texts]] = np.nan
        return made

    of = embed_phrases(lacking, lists())
    found = weat(of, "planted")
    assert found.left_out == ("x 3",)
    assert found.n == 23
    with pytest.raises(VocabularyError, match="phrase set 'planted': expected at least 2"):
        embed_phrases(lambda texts: np.where([[t[0] == "x"] for t in texts], np.nan, 1.0), lists())
    with pytest.raises(InputError, match="an embedding for each of"):
        embed_phrases(lambda _: np.ones((3, 4)), lists())
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
    small = phrases().select(["force"])
    of = embed_phrases(model.embed, small, source="mini")
    text = small.sets["force"].phrases[0]
    ids = torch.tensor([model.tokenizer(text)["input_ids"]])
    with torch.no_grad():
        hidden = model.network.base_model(input_ids=ids).last_hidden_state[0, 1:-1]
    assert of.vectors[0] == pytest.approx(hidden.mean(dim=0).numpy(), abs=1e-5)


def odds_of(of, table):
    """Pronoun scores of the phrases, one row each."""
    return {phrase: (row, row) for phrase, row in zip(of.phrases, np.asarray(table), strict=True)}


@pytest.fixture
def quick(monkeypatch):
    """Fewer resamples and permutations."""
    monkeypatch.setattr(module, "RESAMPLES", 50)
    monkeypatch.setattr(module, "PERMUTATIONS", 199)


def test_pronouns_by_hand():
    fake = bigram_model(
        {
            "engines": {"he": 0.6, "she": 0.2, "his": 0.01, "her": 0.01},
            "roses": {"he": 0.1, "she": 0.4, "his": 0.01, "her": 0.01},
            "[CLS]": {"he": 0.3, "she": 0.3, "his": 0.01, "her": 0.01},
        }
    )
    odds, score = pronoun_odds(
        fake, ["fixes engines", "cuts roses"], ["who {phrase} [MASK] left", "[MASK] {phrase}"]
    )
    assert odds == pytest.approx(np.array([[math.log(3), 0], [-math.log(4), 0]]), abs=1e-6)
    assert score == pytest.approx(np.array([[0.75, 0.5], [0.2, 0.5]]), abs=1e-6)


def test_correlation_against_scipy():
    embed, leans = world(0.3, 2, spread=0.3)
    of = embed_phrases(embed, lists())
    rng = np.random.default_rng(0)
    odds = np.array([leans[p] for p in of.phrases])[:, None] + rng.normal(0, 0.2, (48, 2))
    found = correlate(of, odds_of(of, odds)).part("raw", "embedding")
    s, mean = of.associations(), odds.mean(axis=1)
    overall = found.part("all phrases")
    assert overall.value == pytest.approx(stats.pearsonr(s, mean).statistic)
    assert overall.part("spearman").value == pytest.approx(stats.spearmanr(s, mean).statistic)
    interval = stats.pearsonr(s, mean).confidence_interval()
    assert overall.details["fisher"]["low"] == pytest.approx(interval.low)
    groups = np.repeat(np.arange(4), 12)
    dummies = (groups[:, None] == np.arange(4)).astype(float)

    def residual(y):
        return y - dummies @ np.linalg.lstsq(dummies, y, rcond=None)[0]

    within = found.part("within groups")
    partial = stats.pearsonr(residual(s), residual(mean)).statistic
    assert within.value == found.value == pytest.approx(partial)
    assert within.p_value <= 0.002
    assert found.part("neutral").n == 24
    assert found.part("stereotyped male").details["groups"] == 1
    kinds = {"stereotyped male", "stereotyped female", "neutral"}
    assert set(found.items["kind"]) == kinds


def test_a_difference_of_groups_alone_is_no_agreement_within_them(quick):
    """Both scores tell the sides apart and nothing else: overall they correlate, within not."""
    low, below = 0, 0
    for seed in range(100):
        of = embed_phrases(world(0.6, seed)[0], lists())
        rng = np.random.default_rng(1000 + seed)
        sides = np.repeat([1.0, -1.0, 0.0, 0.0], 12)
        odds = sides[:, None] + rng.normal(0, 0.5, (48, 2))
        found = correlate(of, odds_of(of, odds)).part("raw", "embedding")
        below += found.part("all phrases").p_value <= 0.05
        low += found.part("within groups").p_value <= 0.05
    assert below >= 95
    assert low <= 12


def test_the_correction_for_noise_finds_the_true_correlation(quick):
    rng = np.random.default_rng(5)
    n = 400
    wide = lists(n // 4, 8)
    embed, leans = world(0.5, 6, spread=0.5)
    of = embed_phrases(embed, wide)
    true = np.array([leans[p] for p in of.phrases])
    odds = true[:, None] + rng.normal(0, 0.5, (n, 2))
    part = correlate(of, odds_of(of, odds)).part("raw").part("all phrases")
    assert part.details["corrected"] > part.value
    assert part.details["corrected"] > 0.85
    noise = correlate(of, odds_of(of, rng.normal(size=(n, 2)))).part("raw")
    assert noise.part("all phrases").details["corrected"] is None


def test_pronoun_scores_must_cover_the_phrases():
    of = embed_phrases(world(0.3, 1)[0], lists())
    odds = odds_of(of, np.zeros((48, 1)))
    del odds["x 0"]
    with pytest.raises(InputError, match="'x 0'"):
        correlate(of, odds)


@pytest.mark.slow
def test_two_models_are_compared_by_phrase(glove):
    model = load("mini")
    small = phrases().select(["command"])
    one, two = (
        measure(replace(model, name=name), small, [Phrases(embeds={"glove": WordMean(glove)})])
        for name in ("one", "two")
    )
    assert [(m.metric, m.subject) for m in one] == [
        ("phrases", "one"),
        (CORRELATION, "one"),
        ("phrases", "glove"),
        (CORRELATION, "glove"),
    ]
    assert [m.details["pronouns_of"] for m in two if m.metric == CORRELATION] == ["two", "two"]
    change = Phrases.compare(one[0], two[0])
    assert [c.change.value for c in (change, *change.parts)] == [0.0, 0.0]
    assert change.paired == 36
    assert any("anisotropy" in note for note in one[0].notes)
    assert "a" in one[2].left_out
    for m in one:
        assert Measurement.from_dict(m.to_dict()) == m
    with pytest.raises(InputError, match="a model that embeds texts"):
        Phrases()(bigram_model({"a": {}}), small)


@pytest.mark.slow
def test_mini_leans_as_the_stereotypes_have_it():
    *effects, agreement = measure(load("mini"), phrases(), [Phrases()])
    for m in effects:
        for part in (m, m.part("raw", "embedding")):
            if not m.details["neutral"]:
                assert part.value > 0.8
                assert part.low > 0
                assert part.p_value < 0.01
    [neutral] = [m for m in effects if m.details["neutral"]]
    assert neutral.low < 0 < neutral.high
    within = agreement.part("raw").part("within groups")
    assert within.low > 0.2
    assert within.p_value < 0.001


@pytest.mark.parametrize("constant", [0.0, 0.1])
def test_constant_scores_have_no_correlation(constant, quick):
    """r is not defined: bounds of -1 and 1 and no p, not the smallest p there is."""
    of = embed_phrases(world(0.3, 1)[0], lists())
    found = correlate(of, odds_of(of, np.full((48, 2), constant)))
    for part in found.select("phrases"):
        for each in (part, part.part("spearman")):
            assert math.isnan(each.value)
            assert (each.low, each.high) == (-1, 1)
            assert each.details["bootstrap"] == {"low": -1, "high": 1}
            assert each.p_value is None
        assert part.details["reliability"]["pronoun"] is None
        assert part.details["corrected"] is None


def test_the_interval_reaches_as_far_as_either(quick):
    of = embed_phrases(world(0.3, 2, spread=0.3)[0], lists())
    odds = np.random.default_rng(3).normal(size=(48, 2))
    for part in correlate(of, odds_of(of, odds)).select("phrases"):
        for each in (part, part.part("spearman")):
            ends = [each.details[name] for name in ("fisher", "bootstrap")]
            assert each.low == min(end["low"] for end in ends)
            assert each.high == max(end["high"] for end in ends)
