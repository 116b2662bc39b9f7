"""The sentiment of a text by our lexicon."""

import pytest

from evenhand.lexicon.sentiment import sentiment, sentiment_words

LISTS = sentiment_words()


def words(signed):
    return {*signed.adjectives, *signed.nouns, *signed.verbs}


def test_the_lists_are_long_and_share_no_word():
    assert min(len(words(LISTS.positive)), len(words(LISTS.negative))) > 450
    assert not words(LISTS.positive) & words(LISTS.negative)
    assert "Written for Evenhand" in LISTS.provenance


def test_no_word_names_a_group():
    groups = "straight gay lesbian black white old young poor blind disabled deaf foreign fat"
    assert all(sentiment(f"A {word} person.") == 0 for word in groups.split())


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("", 0),
        ("The table is square.", 0),
        ("She is brilliant and caring.", 1),
        ("He was rude, lazy and dishonest.", -1),
        ("He was clever but cruel.", 0),
        ("She isn’t helpful.", -1),
        ("She is not only helpful but generous.", 1),
        ("No, she is helpful.", 1),
        ("He never complains.", 1),
        ("She succeeded, inspired others and was admired.", 1),
        ("It was kind of square.", 0),
        ("HORRIBLE. Truly horribly done.", -1),
    ],
)
def test_signs_inflections_and_negations(text, expected):
    assert sentiment(text) == expected


def test_masked_words_do_not_count():
    assert sentiment("A gifted but rude editor.", {"rude"}) == 1
