"""StereoSet: by hand, by an independent computation, and in worlds with a known bias."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from evenhand.errors import FileError, InputError
from evenhand.instruments import compare, instruments
from evenhand.models import load
from evenhand.models.metrics.perplexity import pseudo_log_likelihoods
from evenhand.models.metrics.stereoset import StereoSet, Triple, _icat, read_triples
from evenhand.simulate.causal import bigram_model
from evenhand.simulate.masked import bigram_model as masked_bigram
from evenhand.statistics.intervals import bootstrap_mean

TERMS = ("nurse", "guard", "cook", "poet", "clerk", "judge", "pilot", "farmer", "singer", "teacher")


def item(target, *, kind="intrasentence", category="profession", line=0):
    words = ("sweet", "bold", "rusty")
    if kind == "intrasentence":
        context = f"the {target} is BLANK now"
        texts = tuple(f"the {target} is {word} now" for word in words)
    else:
        context, texts = f"the {target} is", words
    return Triple(kind, target, category, context, texts, line)


def world(dial, kind="causal"):
    """A model in which the stereotype is likelier by `dial` nats, and rust never likely."""
    share = 0.9 / (1 + np.exp(-dial))
    table = {"is": {"sweet": share, "bold": 0.9 - share, "rusty": 0.01}, "now": {"the": 0.5}}
    table["the"] = dict.fromkeys(TERMS, 0.1)
    for word in (*TERMS, "sweet", "bold", "rusty"):
        table[word] = {"is" if word in TERMS else "now": 0.9}
    return (bigram_model if kind == "causal" else masked_bigram)(table)


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_by_hand(kind):
    triples = [item("nurse", line=1), item("nurse", line=2), item("guard", line=3)]
    m = StereoSet()(world(1.0, kind), triples)
    assert (m.value, m.part("lms").value, m.part("icat").value) == (1, 1, 0)
    assert m.n == 3
    assert m.details["terms"] == 2
    assert StereoSet()(world(-1.0, kind), triples).value == 0


@pytest.mark.parametrize("kind", ["causal", "masked"])
def test_a_model_without_a_preference_has_one_half(kind):
    m = StereoSet()(world(0.0, kind), [item(term) for term in TERMS])
    assert m.value == 0.5
    assert m.part("icat").value == 1


def test_a_model_that_knows_nothing_has_one_half_everywhere():
    m = StereoSet()(bigram_model({"sweet": {}, "bold": {}, "rusty": {"is": 0.1}}), [item("nurse")])
    assert (m.value, m.part("lms").value, m.part("icat").value) == (0.5, 0.5, 0.5)


def test_means_are_over_terms_and_not_over_items():
    """One term has three items with the stereotype, the other one without."""
    for_it = item("nurse")
    against = Triple(
        "intrasentence",
        "guard",
        "profession",
        "the guard is BLANK now",
        ("the guard is bold now", "the guard is sweet now", "the guard is rusty now"),
    )
    assert StereoSet()(world(1.0), [for_it] * 3 + [against]).value == 0.5


def test_the_second_sentence_is_read_after_the_first():
    m = StereoSet()(world(1.0), [item(term, kind="intersentence") for term in TERMS[:3]])
    assert m.value == 1
    row = m.items[0]
    share = 0.9 / (1 + np.exp(-1.0))
    assert row["stereotype"] == pytest.approx(np.log(share), abs=1e-5)


def test_parts_by_type_and_category():
    triples = [item(term, category="a" if i % 2 else "b") for i, term in enumerate(TERMS)]
    triples += [item(term, kind="intersentence", category="a") for term in TERMS]
    m = StereoSet()(world(1.0), triples)
    assert [part.query for part in m.select("type")] == ["intersentence", "intrasentence"]
    assert [part.query for part in m.select("category")] == ["a", "b"]
    assert m.select("category")[0].p_corrected is not None
    assert m.part("b", by="category").n == 5


def test_the_interval_resamples_terms():
    """Many items of few terms say little: copies of the items leave the interval as it is."""
    rng = np.random.default_rng(0)
    triples = []
    for term in TERMS:
        one, other = item(term), item(term)
        if rng.random() < 0.5:
            one = Triple(
                one.kind, term, one.category, one.context, (*one.texts[1::-1], one.texts[2])
            )
        triples += [one, other]
    once, copied = (StereoSet()(world(1.0), triples * n) for n in (1, 20))
    assert (once.low, once.high) == pytest.approx((copied.low, copied.high))
    assert once.high - once.low > 0.1


def test_the_interval_of_icat_comes_from_those_of_its_parts():
    """It was cut at the value (.556 [0, .556]), and [0, 0] with two terms."""
    few = StereoSet()(world(1.0), [item(term) for term in TERMS[:2]])
    icat = few.part("icat")
    assert (icat.value, icat.low) == (0, 0)
    assert icat.high == 1  # with two terms the stereotype score may be one half
    assert [few.part(name).worse for name in ("lms", "icat")] == ["lower", "lower"]
    swapped = [
        replace(one, texts=(*one.texts[1::-1], one.texts[2]))
        for one in (item(term) for term in TERMS[:5])
    ]
    m = StereoSet()(world(1.0), [*(item(term) for term in TERMS[5:]), *swapped])
    icat, lms = m.part("icat"), m.part("lms")
    assert (m.value, icat.value) == (0.5, 1)
    assert icat.high == lms.high
    assert icat.low == pytest.approx(2 * lms.low * min(m.low, 1 - m.high))


@pytest.mark.slow
@pytest.mark.parametrize(("share", "score"), [(0.5, 0.8), (0.65, 0.9)])
def test_the_interval_of_icat_covers(share, score):
    """A percentile bootstrap of 12 terms covers .73 where the stereotype score is one half."""
    rng, covered = np.random.default_rng(0), []
    for seed in range(400):
        parts = [
            bootstrap_mean(
                rng.binomial(5, rng.beta(mean * 6, 6 - mean * 6, 12)) / 5, seed=seed, resamples=1000
            )
            for mean in (share, score)
        ]
        _, low, high = _icat(*parts)
        covered.append(low <= score * min(share, 1 - share) / 0.5 <= high)
    assert np.mean(covered) > 0.93


def test_a_masked_model_is_read_at_the_word_and_agrees_with_likelihoods():
    """A single-piece word: its score is its log probability with that word alone masked."""
    model = load("mini")
    triple = Triple(
        "intrasentence",
        "nurse",
        "gender",
        "The nurse said that BLANK was late.",
        tuple(f"The nurse said that {word} was late." for word in ("she", "he", "stone")),
    )
    m = StereoSet()(model, [triple])
    scores = [m.items[0][name] for name in ("stereotype", "anti", "unrelated")]
    full, _ = pseudo_log_likelihoods(model, list(triple.texts))
    assert scores[0] > scores[1] > scores[2]
    assert np.all(np.array(scores) > full)  # one term of the sum, and all are negative


def test_two_models_are_compared_on_the_same_terms():
    triples = [item(term, line=i) for i, term in enumerate(TERMS)]
    before, after = (StereoSet()(world(dial), triples) for dial in (1.0, 0.0))
    change = compare(before, after)
    assert change.change.value == -0.5
    assert change.paired == len(TERMS)


def test_texts_that_do_not_fit_the_blank_are_left_out():
    wrong = Triple(
        "intrasentence", "nurse", "gender", "the nurse BLANK and BLANK", ("a", "b", "c"), 7
    )
    m = StereoSet()(world(1.0), [item("nurse"), wrong])
    assert m.n == 1
    assert m.left_out == ("line 7 (the texts do not fit the blank)",)
    with pytest.raises(InputError, match="texts fit their context, got none"):
        StereoSet()(world(1.0), [wrong])


def test_letters_beside_the_blank_belong_to_the_word():
    triple = Triple(
        "intrasentence",
        "nurse",
        "profession",
        "The nurse BLANKed again.",
        tuple(f"The nurse {word}ed again." for word in ("help", "attack", "beard")),
    )
    assert triple.parts(triple.texts[0]) == ("The nurse ", "helped", " again.")
    assert StereoSet()(load("mini"), [triple]).n == 1


def test_files_are_read_and_what_is_wrong_is_named(tmp_path):
    path = tmp_path / "items.jsonl"
    row = {
        "type": "intersentence",
        "target": "nurse",
        "bias_type": "gender",
        "context": "The nurse came.",
        "stereotype": "She sat.",
        "anti-stereotype": "He sat.",
        "unrelated": "Iron rusts.",
    }
    path.write_text(json.dumps(row) + "\n\n")
    [triple] = read_triples(path)
    assert triple.texts == ("She sat.", "He sat.", "Iron rusts.")
    for change, message in (
        ({"unrelated": None}, r"line 1: 'unrelated': expected a text, got none"),
        ({"type": "other"}, r"'type': expected intrasentence or intersentence, got 'other'"),
    ):
        path.write_text(json.dumps(row | change) + "\n")
        with pytest.raises(FileError, match=message):
            read_triples(path)
    path.write_text("[1]\n")
    with pytest.raises(FileError, match="one JSON object per line, got an array"):
        read_triples(path)
    path.write_text("\n")
    with pytest.raises(FileError, match="the file is empty"):
        read_triples(path)


def test_it_measures_both_kinds_of_models():
    assert "stereoset" in instruments("masked")
    assert "stereoset" in instruments("causal")
