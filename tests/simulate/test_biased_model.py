"""The causal model whose bias is a dial: its probabilities are the stated ones."""

import numpy as np
import pytest

from evenhand.models.causal_scoring import continuation_log_likelihoods
from evenhand.simulate.causal import BEGIN, biased_model

ASSOCIATIONS = {"nurse": {"she": 0.5, "he": -0.5}, "guard": {"she": -0.5, "he": 0.5}}


def log_odds(model, context):
    values, _ = continuation_log_likelihoods(model, [context] * 2, [" she", " he"])
    return float(values[0] - values[1])


@pytest.mark.parametrize("bias", [0.0, 0.5, 2.0])
def test_the_log_odds_are_the_dial(bias):
    model = biased_model(ASSOCIATIONS, bias=bias, noise=0.0)
    assert log_odds(model, "the nurse said that") == pytest.approx(bias, abs=1e-6)
    assert log_odds(model, "the guard said that") == pytest.approx(-bias, abs=1e-6)
    assert log_odds(model, "the poet said that") == 0
    assert log_odds(model, "the nurse and the guard said that") == pytest.approx(0, abs=1e-6)
    assert log_odds(model, "nurse nurse") == pytest.approx(bias, abs=1e-6)


def test_probabilities_by_hand():
    model = biased_model(ASSOCIATIONS, bias=1.0, noise=0.0)
    values, _ = continuation_log_likelihoods(model, ["nurse"], [" she"])
    weights = [np.exp(0.5), np.exp(-0.5), 1, 1, 1]  # she, he, nurse, guard, any other word
    assert values[0] == pytest.approx(np.log(weights[0] / np.sum(weights)), abs=1e-6)
    logits = model.logits(np.array([model.begin]))
    assert logits[0, model.tokenizer.token_to_id(BEGIN)] == -np.inf


def test_negations_reverse_associations_and_twice_restore_them():
    model = biased_model(ASSOCIATIONS, bias=1.0, noise=0.0, negations=("not",))
    assert log_odds(model, "the nurse is not") == pytest.approx(-1, abs=1e-6)
    assert log_odds(model, "it is not the nurse that is not") == pytest.approx(1, abs=1e-6)


def test_preferences_do_not_depend_on_what_is_before():
    model = biased_model({}, bias=2.0, preferences={"she": 0.5, "he": 0.0})
    assert log_odds(model, "the nurse") == pytest.approx(1, abs=1e-6)
    assert log_odds(model, "the guard") == pytest.approx(1, abs=1e-6)


def test_noise_does_not_depend_on_the_dial():
    without, one = (biased_model(ASSOCIATIONS, bias=bias, seed=3) for bias in (0.0, 1.0))
    noise = log_odds(without, "the nurse")
    assert noise != 0
    assert log_odds(one, "the nurse") - noise == pytest.approx(1, abs=1e-6)
