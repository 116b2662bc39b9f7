"""Negating sentences: one verb, its auxiliary, and what cannot be negated."""

import pytest

from evenhand.text.rewrite.negate import negate


@pytest.mark.parametrize(
    ("sentence", "expected"),
    [
        ("The nurse is kind.", "The nurse is not kind."),
        ("They were very tall", "They were not very tall"),
        ("I'm brave.", "I'm not brave."),
        ("He’s late.", "He’s not late."),
        ("She can sing.", "She can not sing."),
        ("He has a dog.", "He does not have a dog."),
        ("He has seen a dog.", "He has not seen a dog."),
        ("He had to go.", "He did not have to go."),
        ("We had never met.", "We had met."),
        ("She sings.", "She does not sing."),
        ("I like tea.", "I do not like tea."),
        ("The guard fought bravely.", "The guard did not fight bravely."),
        ("The cook tried it.", "The cook did not try it."),
        ("She always cried.", "She did not always cry."),
        ("I never cared.", "I cared."),
        ("It isn't so.", "It is so."),
        ("He won't eat.", "He will eat."),
        ("He cannot eat.", "He can eat."),
        ("You are not well.", "You are well."),
        ("The man who sold cars was rich.", "The man who sold cars was not rich."),
        ("When it rained, he slept.", "When it rained, he did not sleep."),
        ("Who is a good cook?", "Who is not a good cook?"),
        ("Who forgot the name?", "Who did not forget the name?"),
        ("Which friend does not work?", "Which friend does work?"),
    ],
)
def test_the_main_verb_is_negated_or_its_negation_removed(sentence, expected):
    negated = negate(sentence)
    assert negated.text == expected
    assert negated.undo() == sentence


@pytest.mark.parametrize("sentence", ["", "Nice weather!", "Am I late?", "A stone in the road."])
def test_what_has_no_verb_that_can_be_negated_is_not_changed(sentence):
    assert negate(sentence) is None


def test_only_sentences_that_say_one_thing():
    assert negate("He came and she left.", simple=True) is None
    assert negate("He is poor, but he is not sad.", simple=True) is None
    assert str(negate("He could not have been there.", simple=True)) == "He could have been there."
