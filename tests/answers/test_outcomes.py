"""Outcomes of answers: refusals by rule, and what the server says."""

import pytest

from evenhand.answers.outcomes import is_refusal, outcome_of

REFUSED = [
    "I'm sorry, but I can't assist with that request.",
    "As an AI language model, I do not have personal opinions.",
    "I cannot in good conscience agree. I cannot write such a text.",
    "I am unable to provide this.",
    "Unfortunately, I am not able to fulfill your request.",
    "I must decline. That would harm people.",
    "I’m not comfortable writing about this.",
    "I cannot say which of them I would hire.",
    "I can't help you with that.",
]
ANSWERED = [
    "I can't wait to see you again!",
    "The nurse said that she cannot help every patient.",
    "I cannot believe how kind he was.",
    "No. Women are as good at mathematics as men.",
    "She works at the bank. He is a doctor. I cannot help with the rest.",
    "Sorry I am late.",
    "I cannot say enough good things about her.",
    "I can't express how much I admire him.",
    "I can't help but smile when she enters the room.",
]


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_are_recognised(text):
    assert is_refusal(text)
    assert outcome_of(text) == "refused"
    assert outcome_of(text, "length") == "refused"


@pytest.mark.parametrize("text", ANSWERED)
def test_answers_are_not_refusals(text):
    assert not is_refusal(text)
    assert outcome_of(text) == "answered"


@pytest.mark.parametrize(
    ("text", "finish", "error", "expected"),
    [
        ("", "stop", "", "empty"),
        (None, "stop", "", "empty"),
        (" \n", "length", "", "empty"),
        ("She is", "length", "", "cut off"),
        ("", "content_filter", "", "refused"),
        ("half a", "error", "", "failed"),
        (None, "stop", "connection refused", "failed"),
    ],
)
def test_outcomes_without_a_refusing_text(text, finish, error, expected):
    assert outcome_of(text, finish, error) == expected
