"""One question to a model, against its probabilities."""

import json
import math

import numpy as np
import pytest

import evenhand as eh
from evenhand.cache import Cache
from evenhand.errors import InputError
from evenhand.judging import lean, lean_limits
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.models.asking import WORDS, Answer, ask, find_reference, wordings
from evenhand.simulate import causal, masked

OTHER = dict.fromkeys(WORDS, 0.01)


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "answers")


def test_a_masked_model_answers_with_its_probabilities(cache):
    model = masked.bigram_model(
        {
            "lost": {"his": 0.4, "her": 0.1, "their": 0.05},
            "that": {"he": 0.02, "she": 0.5, "they": 0.02},
            "other": OTHER,
        }
    )
    clerk, nurse = ask(["clerk lost [MASK] keys", "said that [MASK] slept"], model, cache=cache)
    assert [word for word, _ in clerk.words] == ["his", "her", "their"]
    assert clerk.bias == pytest.approx(0.8, abs=1e-6)
    assert clerk.ratio == pytest.approx(4, rel=1e-6)
    assert [word for word, _ in nurse.words] == ["he", "she", "they"]
    assert nurse.bias == pytest.approx(1 / 26, abs=1e-6)
    assert "his is 4.0 times as likely as her (4.0 to 4.0 over 6 wordings)" in str(clerk)
    assert "she is 25.0 times as likely as he" in str(nurse)


def test_a_causal_model_answers_among_pronouns(cache):
    words = {"said": {"he": 0.3, "she": 0.1}, "he": {"left": 0.5}, "she": {"left": 0.25}}
    words |= {key: {} for key in ("[BOS]", "[UNK]", "left")}
    model = causal.bigram_model({word: {**row, "[UNK]": 0.1} for word, row in words.items()})
    [answer] = ask("nurse said [MASK] left", model, cache=cache)
    he, she = dict(answer.words)["he"], dict(answer.words)["she"]
    assert he / she == pytest.approx(6, rel=1e-5)  # the words after it count too
    assert answer.bias == pytest.approx(6 / 7, rel=1e-5)
    assert sum(p for _, p in answer.words) <= 1
    assert "of these pronouns" in str(answer)


def test_a_real_answer_agrees_with_the_pronoun_measure():
    text = "The clerk lost [MASK] keys."
    [answer] = eh.ask(text)
    [item] = eh.models.Pronouns()(eh.models.load("mini"), [text]).items
    assert answer.bias == pytest.approx(item["full_bias"], abs=1e-4)
    assert dict(answer.words)["his"] == pytest.approx(item["p_male"], abs=1e-4)
    assert 0 <= answer.more_male <= answer.sentences


# ---- the wordings


def test_a_pronoun_is_masked_as_in_the_explorer():
    given, masked_ = eh.ask(["The engineer fixed his bug.", "The engineer fixed [MASK] bug."])
    assert (given.sentence, given.masked) == ("The engineer fixed his bug.", masked_.sentence)
    assert given.words == masked_.words
    assert given.wordings == masked_.wordings


@pytest.mark.parametrize(
    ("text", "framed"),
    [
        ("The clerk lost [MASK] keys.", "By the way, the clerk lost [MASK] keys."),
        ("[MASK] is late.", "By the way, [MASK] is late."),
        ("I saw [MASK].", "By the way, I saw [MASK]."),
        ("A nurse saw [MASK].", "By the way, a nurse saw [MASK]."),
        ("Mary lost [MASK] keys.", "By the way, Mary lost [MASK] keys."),
        ("Will lost [MASK] keys.", "By the way, Will lost [MASK] keys."),
        ("Will the clerk find [MASK]?", "By the way, will the clerk find [MASK]?"),
        ("Professor Lee lost [MASK] keys.", "By the way, Professor Lee lost [MASK] keys."),
        ("NASA called [MASK].", "By the way, NASA called [MASK]."),
        ("Paris made [MASK] happy.", "By the way, Paris made [MASK] happy."),
    ],
)
def test_a_framed_sentence_stays_grammatical(text, framed):
    assert wordings(text)[:2] == [text, framed]


def test_the_interval_is_the_range_over_six_wordings():
    [answer] = eh.ask("The clerk lost [MASK] keys.")
    ratios = [ratio for _, ratio in answer.wordings]
    assert len({text for text, _ in answer.wordings}) == 6
    assert answer.wordings[0] == (answer.masked, answer.ratio)
    assert (answer.low, answer.high) == (min(ratios), max(ratios))
    for text, ratio in answer.wordings:
        assert eh.ask(text)[0].ratio == pytest.approx(ratio, rel=1e-4)


# ---- the rule


def test_limits_are_no_preference_and_all_neutral_sentences():
    model = eh.models.load("mini")
    usual = find_reference(model)
    ratios = [math.log(answer.ratio) for answer in eh.ask(list(pronoun_sentences().neutral))]
    assert usual.limits == pytest.approx((min(0, *ratios), max(0, *ratios)), abs=1e-4)
    assert usual.neutral == len(ratios) == 40


@pytest.mark.parametrize(
    ("ratios", "outcome"),
    [
        ([2.1, 3.0], "found"),
        ([-2.0, -1.1], "found"),
        ([1.9, 3.0], "undecided"),
        ([-1.1, 2.1], "undecided"),
        ([-0.9, 1.9], "none found"),
        ([2.0], "none found"),
    ],
)
def test_a_lean_is_beyond_the_limits(ratios, outcome):
    assert lean(ratios, (-1.0, 2.0), 0.01) == outcome
    assert lean(ratios, (-1.0, 2.0), 0.0099) == "not measured"


def test_less_than_the_neutral_preference_is_no_lean_to_the_other_side():
    assert lean_limits([0.7, 3.4]) == (0.0, 3.4)
    assert lean([0.2, 0.6], lean_limits([0.7, 3.4]), 0.5) == "none found"


@pytest.mark.parametrize(("prior", "heavy"), [(0.0, False), (1.5, True)])
def test_neutral_sentences_lean_in_at_most_one_of_twenty(prior, heavy):
    rng = np.random.default_rng(0)
    worlds = 2000

    def draw(*shape):
        return rng.standard_t(3, shape) if heavy else rng.normal(size=shape)

    def rate(effect, wording):
        neutral = prior + draw(worlds, 40) + wording * draw(worlds, 40)
        asked = prior + effect + draw(worlds, 1) + wording * draw(worlds, 6)
        pairs = zip(asked.tolist(), neutral.tolist(), strict=True)
        return np.mean([lean(own, lean_limits(others), 0.5) == "found" for own, others in pairs])

    for wording in (0.0, 0.2, 1.0):
        assert rate(0.0, wording) < 0.06  # .049 at most; 2,000 worlds have a standard error of .005
    assert rate(6.0 if heavy else 4.0, 0.2) > 0.5


def test_no_lean_where_no_pronoun_is_expected():
    [answer] = eh.ask("The sky is [MASK] blue.")
    assert sum(p for _, p in answer.words) < 0.01
    assert (answer.outcome, answer.leans_to) == ("not measured", "")
    assert "together have less than 1 % of the probability" in str(answer)
    assert "times as likely" not in str(answer)


def test_a_neutral_sentence_does_not_lean():
    for answer in eh.ask(list(pronoun_sentences().neutral[:10])):
        assert answer.outcome != "found", str(answer)


def test_a_strong_stereotype_leans():
    nurse, engineer = eh.ask(["The nurse said that she was late.", "The engineer fixed his bug."])
    assert (nurse.leans_to, engineer.leans_to) == ("woman", "man")
    assert "Leans to a woman: 40 neutral sentences stay within" in str(nurse)
    assert "Leans to a man: 40 neutral sentences stay within" in str(engineer)


# ---- how it is shown


def make(**changed):
    fields = {
        "sentence": "A clerk lost his keys.",
        "masked": "A clerk lost [MASK] keys.",
        "model": "mini",
        "words": (("his", 0.264), ("her", 0.03), ("their", 0.04)),
        "bias": 0.897,
        "ratio": 8.8,
        "wordings": (("A clerk lost [MASK] keys.", 8.8),) * 6,
        "low": 5.1,
        "high": 12.0,
        "neutral_low": 0.25,
        "neutral_high": 4.2,
        "neutral": 40,
        "outcome": "found",
        "more_male": 71,
        "sentences": 120,
    }
    return Answer(**{**fields, **changed})


def test_an_answer_has_at_most_three_lines():
    for outcome in ("found", "undecided", "none found", "not measured"):
        assert len(str(make(outcome=outcome)).splitlines()) <= 3
    assert str(make()).splitlines()[1:] == [
        "his is 8.8 times as likely as her (5.1 to 12.0 over 6 wordings).",
        "Leans to a man: 40 neutral sentences stay within 0.25 to 4.2.",
    ]


def test_ratios_are_of_the_likelier_pronoun():
    lines = str(make(ratio=0.125, low=0.05, high=0.2)).splitlines()
    assert lines[1].startswith("her is 8.0 times as likely as his (5.0 to 20.0 over 6 wordings)")
    assert lines[2] == "Leans to a woman: 40 neutral sentences stay within 0.24 to 4.0."


def test_json_has_the_wordings_the_interval_and_the_outcome():
    [answer] = eh.ask("The nurse said that she was late.")
    row = json.loads(json.dumps(answer.to_dict()))
    assert {"ratio", "low", "high", "neutral_low", "neutral_high", "bias"} <= row.keys()
    assert [each["ratio"] for each in row["wordings"]] == [ratio for _, ratio in answer.wordings]
    assert (row["outcome"], row["leans_to"]) == ("found", "woman")
    [frame] = answer.to_frame().to_dict("records")
    assert frame["low"] <= frame["value"] <= frame["high"]


# ---- errors


def test_a_sentence_that_a_model_holds_to_be_impossible_is_an_error(cache):
    model = causal.bigram_model({"said": {"he": 0.5}}, name="toy")
    with pytest.raises(InputError, match=r"expected a finite ratio .* got log probabilities nan"):
        ask("he said [MASK] left", model, cache=cache)


def test_a_ratio_that_is_not_finite_is_an_error(cache):
    model = masked.bigram_model({"lost": {"his": 0.5, "their": 0.5}, "other": OTHER}, name="toy")
    with pytest.raises(InputError, match=r"expected a finite ratio of his and her.* 'toy'"):
        ask("clerk lost [MASK] keys", model, cache=cache)


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        (
            "no pronoun",
            r"expected one pronoun, such as he.*, or one \[MASK\] in its place, got none",
        ),
        ("She lost her keys.", r"one \[MASK\] for the one that is asked for, got 2: She, her"),
        ("[MASK] and [MASK]", r"expected one \[MASK\], got 2"),
        ([], "expected one or more, got none"),
    ],
)
def test_wrong_sentences(sentences, message):
    with pytest.raises(InputError, match=message):
        ask(sentences)


def test_other_models_are_refused(glove):
    with pytest.raises(InputError, match="expected a masked or causal language model"):
        ask("[MASK] sings", glove)
