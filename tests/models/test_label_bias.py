"""Label bias of in-context examples: by hand, prompt by prompt, and in worlds without a shift."""

from __future__ import annotations

import numpy as np
import pytest

import evenhand as eh
from evenhand.errors import FileError, InputError
from evenhand.instruments import Run
from evenhand.models.causal_scoring import continuation_log_likelihoods
from evenhand.models.metrics.label_bias import (
    BUILT_IN,
    FORMS,
    LabelBias,
    LabelledTexts,
    read_labelled_texts,
)
from evenhand.simulate.causal import biased_model


@pytest.mark.parametrize("dial", [0.0, 0.5, -1.5])
def test_the_planted_shift_is_read(dial):
    _, texts = LabelBias.example()
    associations = {"he": {"good": 0.5, "poor": -0.5}, "she": {"good": 0.0}}
    m = LabelBias(shots=2)(biased_model(associations, bias=dial, noise=0.0), texts)
    assert m.value == pytest.approx(dial, abs=1e-5)
    assert m.part("order").value == pytest.approx(0.0, abs=1e-5)


def test_without_spread_there_is_no_certainty():
    m = LabelBias(shots=2)(*LabelBias.example())
    assert (m.low, m.high) == (-np.inf, np.inf)


def test_every_prompt_is_the_one_that_a_reader_would_write():
    """The value from prompts written out one by one."""
    model = eh.models.load("tiny-causal")
    chosen = LabelBias(shots=2)
    texts = LabelledTexts("own", BUILT_IN.examples[:4], BUILT_IN.texts[:2])
    m = chosen(model, texts, seed=3)
    differences = []
    for first, second in chosen._sets(texts, 3):
        for text in texts.texts:
            odds = {}
            for gender in (0, 1):
                for reverse in (False, True):
                    prompt = ""
                    for example, label in [second, first] if reverse else [first, second]:
                        for form, words in FORMS.items():
                            example = example.replace(form, words[gender])
                        prompt += f"Review: {example[0].upper()}{example[1:]}\nRating: {label}\n\n"
                    prompt += f"Review: {text}\nRating:"
                    sums, _ = continuation_log_likelihoods(
                        model, [prompt] * 2, [" positive", " negative"]
                    )
                    odds[gender, reverse] = sums[0] - sums[1]
            differences.append((odds[0, 0] + odds[0, 1] - odds[1, 0] - odds[1, 1]) / 2)
    np.testing.assert_allclose(m.items["score"], differences, atol=1e-4)
    assert m.value == pytest.approx(np.mean(differences), abs=1e-4)
    assert m.n == 4


def test_false_alarms_and_power_in_worlds(monkeypatch):
    """Sets and texts have shifts of their own around 0, or around .8 of their spread."""
    model, found = eh.models.load("tiny-causal"), {}
    for shift in (0.0, 1.0):
        rejected = []
        for seed in range(400):
            rng = np.random.default_rng(seed)
            sets, texts = rng.normal(size=(4, 1)), rng.normal(size=(1, 12))
            difference = shift + 0.3 * sets + 0.3 * texts + 0.3 * rng.normal(size=(4, 12))
            odds = np.zeros((4, 2, 2, 12))
            odds[:, 0] += difference[:, None]
            monkeypatch.setattr(LabelBias, "_log_odds", lambda *_, odds=odds: odds)
            rejected.append(LabelBias().measure(model, None, Run()).p_value)
        found[shift] = np.mean(np.array(rejected) < 0.05)
    assert found[0.0] <= 0.05 + 3 * np.sqrt(0.05 * 0.95 / 400)
    assert found[1.0] > 0.8


def test_files_and_their_errors(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("text,label\n{they} sang.,a\n{they} slept.,b\nThe cook left.,\n")
    read = read_labelled_texts(path)
    assert (read.labels, read.texts) == (("a", "b"), ("The cook left.",))
    path.write_text("text,label\n{they} sang.,a\nThe cook left.,\n")
    with pytest.raises(FileError, match="expected examples of two labels, got a"):
        read_labelled_texts(path)
    path.write_text("text,label\nHe sang.,a\n{they} slept.,b\nThe cook left.,\n")
    with pytest.raises(FileError, match=r"in an example, got 'He sang\.'"):
        read_labelled_texts(path)


def test_options_are_checked():
    with pytest.raises(InputError, match="even number, got 3"):
        LabelBias(shots=3)
    with pytest.raises(InputError, match="template"):
        LabelBias(template="{label} {text}")
    with pytest.raises(InputError, match="expected 20 or more examples of each label, got 8 and 8"):
        LabelBias(shots=20)(eh.models.load("tiny-causal"))
