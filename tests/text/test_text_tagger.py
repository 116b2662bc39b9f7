"""One tagger: every word has one class and one role, and tokens are cut the same everywhere."""

import pytest

from evenhand.lexicon.pronouns import FEMALE, MALE, PRONOUNS, SLOTS
from evenhand.text.agreement import Tagged
from evenhand.text.tagger import FUNCTION_WORDS, OPEN_WORDS, read_word, tag
from evenhand.text.tokens import tokenize

CLASSES = set("DNOHPTSRCBMA")
ROLES = set("dsphituqcamvlex")


def test_every_listed_word_has_one_tag():
    assert not FUNCTION_WORDS.keys() & OPEN_WORDS.keys()
    assert {listed[0] for listed in FUNCTION_WORDS.values()} <= CLASSES
    assert {listed[1] for listed in FUNCTION_WORDS.values()} | set(OPEN_WORDS.values()) <= ROLES


def test_the_list_of_pronouns_is_the_taggers():
    tagged = {word for word, listed in FUNCTION_WORDS.items() if listed[0] == "H"}
    assert tagged == {*PRONOUNS, "hes", "shes"}
    assert {form for forms in SLOTS.values() for form in forms} | {"hers"} == FEMALE | MALE


@pytest.mark.parametrize(
    ("token", "word_class", "role"),
    [
        ("She’s", "H", "h"),
        ("their", "D", "d"),
        ("Has", "A", "v"),
        ("didn't", "A", "m"),
        ("wrote", "?", "e"),
        ("waved", "?", "y"),
        ("pretty", "W", "a"),
        ("slowly", "B", "a"),
        ("friendly", "W", "a"),
        ("1990s", "N", "x"),
        (";", "X", ";"),
        ("--", "X", "--"),
    ],
)
def test_a_word_by_itself(token, word_class, role):
    assert read_word(token)[1:] == (word_class, role)


@pytest.mark.parametrize(
    ("sentence", "tokens"),
    [
        ("O'Brien isn't Dr. Lee's aunt.", "O'Brien is n't Dr. Lee 's aunt ."),
        ("A 20-year-old paid 1,000.50 at 5 p.m.", "A 20-year-old paid 1,000.50 at 5 p.m."),
        ("She saw J. K. -- and him.", "She saw J. K. -- and him ."),
        ("We ca n't say it 's hers", "We ca n't say it 's hers"),
        ("It was plan b.", "It was plan b ."),
    ],
)
def test_tokens(sentence, tokens):
    words, starts = tokenize(sentence)
    assert words == tokens.split()
    assert all(sentence.startswith(word, at) for word, at in zip(words, starts, strict=True))


def test_agreement_reads_the_same_tokens_with_their_clitics():
    assert Tagged("She's late, O'Brien isn't.", 0, 26).raw == [
        "She's",
        "late",
        ",",
        "O'Brien",
        "isn't",
        ".",
    ]


def test_a_name_with_an_apostrophe_is_one_phrase():
    assert tag(tokenize("Yesterday O'Neill lost his hat.")[0]) == list("BZVHWX")
