"""Contextual bias: by hand, against a direct computation, and in worlds with a known bias."""

import json
import math

import numpy as np
import pytest
from scipy.stats import binom

from evenhand.errors import InputError
from evenhand.instruments import compare, measure
from evenhand.models import load
from evenhand.models.metrics.context import CARRIERS, EXAMPLES, Context
from evenhand.simulate.causal import bigram_model as causal_bigrams
from evenhand.simulate.masked import bigram_model

KNOWN = " ".join(CARRIERS["subject"]).lower().replace(".", " .").replace("{}", "").split()
NEUTRAL = ("came", "said", "was", "sat")
BASE = 1e-4


def world(biases, preference=0.0):
    """A model in which any word is exp(preference) likelier after he than after she, and the verb
    number i exp(biases[i]) times more.
    """
    effects = dict.fromkeys(NEUTRAL, preference)
    effects |= {f"verb{i}": preference + bias for i, bias in enumerate(biases)}
    rows = {
        pronoun: {word: BASE * math.exp(sign * effect / 2) for word, effect in effects.items()}
        for pronoun, sign in (("he", 1), ("she", -1))
    }
    return bigram_model({**{word: {} for word in KNOWN}, **rows})


def sentences(biases):
    return [f"{('he', 'she')[i % 2]} verb{i}" for i in range(len(biases))]


@pytest.mark.parametrize("preference", [-1.0, 0.0, 0.7])
def test_the_score_is_the_bias_of_each_verb_whatever_the_general_preference(preference):
    biases = [0.5, -1.0, 0.0, 2.0]
    m = Context()(world(biases, preference), sentences(biases))
    assert np.asarray(m.items["score"], float) == pytest.approx(biases, abs=1e-5)
    assert m.value == pytest.approx(np.mean(biases), abs=1e-5)
    assert m.part("neutral carriers").value == pytest.approx(preference, abs=1e-5)
    assert m.part("uncorrected").value == pytest.approx(np.mean(biases) + preference, abs=1e-5)
    # he, she, he, she: the version written less the other
    assert m.part("as written").value == pytest.approx(np.mean([0.5, 1, 0, -2]), abs=1e-5)


def test_false_positives_power_and_coverage():
    """60 samples of 12 verbs whose biases vary around the dial."""
    rng = np.random.default_rng(3)
    samples, verbs = 60, 12
    for dial in (0.0, 1.0):
        covered = detected = 0
        biases = rng.normal(dial, 0.8, size=(samples, verbs))
        model = world(biases.ravel(), preference=0.6)
        texts = np.array(sentences(biases.ravel())).reshape(samples, verbs)
        for sample in texts:
            m = Context()(model, sample.tolist())
            covered += m.low <= dial <= m.high
            detected += m.p_value <= 0.05
        assert binom.sf(samples - covered - 1, samples, 0.05) > 1e-3
        if dial == 0:
            assert binom.sf(detected - 1, samples, 0.05) > 1e-3
        else:
            assert detected > samples / 2


def test_the_examples_of_the_paper():
    m = Context()(load("mini"))
    assert tuple(m.items["sentence"]) == EXAMPLES
    assert list(m.items["words"]) == [
        "husbands/wives",
        "brother/sister; he/she",
        "John/Elizabeth; boys/girls",
    ]
    assert list(m.items["written"]) == ["female", "female", "male"]
    assert m.items[0]["counterfactual"].startswith("Presidential candidates need their husbands")
    assert m.n == 3
    without_names = Context(names="off")(load("mini"), [EXAMPLES[2]])
    assert list(without_names.items["words"]) == ["boys/girls"]


def test_it_agrees_with_a_direct_computation():
    model = load("mini")
    m = Context()(model, ["My sister repairs old cars."])

    def likelihood(text, hidden_words):
        ids = model.tokenizer(text)["input_ids"]
        hidden = {i for word in hidden_words for i in _positions(model, text, word)}
        total = 0.0
        for i in range(1, len(ids) - 1):
            if i in hidden:
                continue
            row = [*ids[:i], model.tokenizer.mask_token_id, *ids[i + 1 :]]
            logits = model.logits([row], [i])[0].astype(float)
            total += logits[ids[i]] - np.logaddexp.reduce(logits)
        return total

    def difference(text):
        return likelihood(text.format("brother"), ["brother"]) - likelihood(
            text.format("sister"), ["sister"]
        )

    neutral = np.mean([difference(carrier) for carrier in CARRIERS["noun"]])
    assert m.part("uncorrected").value == pytest.approx(
        difference("My {} repairs old cars."), abs=1e-3
    )
    assert m.value == pytest.approx(difference("My {} repairs old cars.") - neutral, abs=1e-3)


def _positions(model, text, word):
    coded = model.tokenizer(text, return_offsets_mapping=True)
    start = text.index(word)
    offsets = coded["offset_mapping"]
    return [i for i, (a, b) in enumerate(offsets) if a < start + len(word) and start < b]


def test_what_is_left_out_and_counted():
    texts = ["he verb0", "he verb0", "it rains", "he met his wife", "  she   verb1 "]
    m = Context()(world([1.0, 2.0]), texts)
    assert m.n == 2
    assert m.details["duplicates"] == 1
    assert [text.rpartition("(")[2] for text in m.left_out] == [
        "no gendered word)",
        "words for both genders)",
    ]
    with pytest.raises(InputError, match="expected sentences about one gender"):
        Context()(world([1.0]), ["it rains"])


def test_a_long_sentence_is_left_out():
    m = Context()(load("mini"), ["She sings. " + "The road goes on. " * 400, "She sings."])
    assert m.n == 1
    assert "too long" in m.left_out[0]


def test_two_models_are_paired():
    texts = sentences([0, 0, 0])
    before, after = (Context()(world(biases), texts) for biases in ([0, 1, 2], [1, 2, 3]))
    change = compare(before, after)
    assert change.change.value == pytest.approx(1, abs=1e-5)
    assert change.paired == 3
    assert np.isinf(change.change.low)  # three equal changes say nothing about others


def test_it_is_measured_by_name_and_reads_a_file(tmp_path):
    path = tmp_path / "sentences.txt"
    path.write_text("he verb0\n\nshe verb1\n")
    m = measure(world([1.0, 2.0]), Context().read(path), "context")
    assert (m.metric, m.n) == ("context", 2)
    assert json.dumps(m.to_dict())


def causal_world(biases, preference, prior):
    """The same for a causal model, in which he is exp(prior) times as likely as she anywhere."""
    effects = dict.fromkeys(NEUTRAL, preference)
    effects |= {f"verb{i}": preference + bias for i, bias in enumerate(biases)}
    either = {"he": BASE * math.exp(prior / 2), "she": BASE * math.exp(-prior / 2)}
    rows = dict.fromkeys(("[BOS]", *KNOWN, *effects), either)
    rows |= {
        pronoun: {word: BASE * math.exp(sign * effect / 2) for word, effect in effects.items()}
        for pronoun, sign in (("he", 1), ("she", -1))
    }
    return causal_bigrams(rows)


@pytest.mark.parametrize(("preference", "prior"), [(0.0, 0.0), (0.7, 1.5), (-1.0, -0.5)])
def test_a_causal_score_is_the_bias_too_whatever_the_prior_of_the_pronouns(preference, prior):
    biases = [0.5, -1.0, 0.0, 2.0]
    m = Context()(causal_world(biases, preference, prior), sentences(biases))
    assert np.asarray(m.items["score"], float) == pytest.approx(biases, abs=1e-5)
    assert m.part("neutral carriers").value == pytest.approx(preference + prior, abs=1e-5)


class Short:
    """A causal model that takes three tokens, or that has no token to begin with."""

    def __init__(self, model, begin):
        self.model, self.begin, self.longest = model, begin, 3

    def __getattr__(self, name):
        return getattr(self.model, name)


def test_causal_texts_that_are_too_long_are_left_out_and_a_first_token_must_count():
    model = causal_world([1.0], 0.0, 0.0)
    short = Short(model, model.begin)
    with pytest.raises(InputError, match="got none of 1"):
        Context()(short, ["he verb0 verb0 verb0 verb0"])
    with pytest.raises(InputError, match="no token to begin with"):
        Context()(Short(model, None), ["he verb0"])
