"""One question to a model, against its probabilities."""

import pytest

import evenhand as eh
from evenhand.cache import Cache
from evenhand.errors import InputError
from evenhand.language.asking import WORDS, ask
from evenhand.simulate import causal, masked


@pytest.fixture
def cache(tmp_path):
    return Cache(tmp_path / "answers")


def test_a_masked_model_answers_with_its_probabilities(cache):
    model = masked.bigram_model(
        {
            "lost": {"his": 0.4, "her": 0.1, "their": 0.05},
            "[CLS]": {"he": 0.2, "she": 0.3},
            "other": dict.fromkeys(WORDS, 0.01),
        }
    )
    clerk, nurse = ask(["clerk lost [MASK] keys", "[MASK] slept"], model, cache=cache)
    assert [word for word, _ in clerk.words] == ["his", "her", "their"]
    assert clerk.bias == pytest.approx(0.8, abs=1e-6)
    assert [word for word, _ in nurse.words] == ["he", "she", "they"]
    assert nurse.bias == pytest.approx(0.4, abs=1e-6)
    assert "Leans to a man: his is 4.0 times as likely as her" in str(clerk)
    assert "Leans to a woman: she is 1.5 times as likely as he" in str(nurse)


def test_a_causal_model_answers_among_pronouns(cache):
    model = causal.bigram_model(
        {"said": {"he": 0.3, "she": 0.1}, "he": {"left": 0.5}, "she": {"left": 0.25}}
    )
    [answer] = ask("nurse said [MASK] left", model, cache=cache)
    he, she = dict(answer.words)["he"], dict(answer.words)["she"]
    assert he / she == pytest.approx(6, rel=1e-5)  # the words after it count too
    assert answer.bias == pytest.approx(6 / 7, rel=1e-5)
    assert sum(p for _, p in answer.words) <= 1
    assert "of these pronouns" in str(answer)


def test_a_real_answer_agrees_with_the_pronoun_measure():
    text = "The clerk lost [MASK] keys."
    [answer] = eh.ask(text)
    [item] = eh.masked.pronouns(eh.masked.load("mini"), [text]).items
    assert answer.bias == pytest.approx(item["full_bias"], abs=1e-4)
    assert dict(answer.words)["his"] == pytest.approx(item["p_male"], abs=1e-4)
    assert 0 <= answer.more_male <= answer.sentences


@pytest.mark.parametrize(
    ("sentences", "message"),
    [
        ("no mask here", r"expected one \[MASK\] where a pronoun is, got none"),
        ("[MASK] and [MASK]", "got 2"),
        ([], "expected one or more, got none"),
    ],
)
def test_wrong_sentences(sentences, message):
    with pytest.raises(InputError, match=message):
        ask(sentences)


def test_other_models_are_refused(glove):
    with pytest.raises(InputError, match="expected a masked or causal language model"):
        ask("[MASK] sings", glove)
