"""The built-in sentences."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

from evenhand.errors import LexiconError
from evenhand.lexicon import pronoun_sentences as module
from evenhand.lexicon.pronoun_sentences import pronoun_sentences
from evenhand.models import load
from evenhand.models.gender_words import probabilities
from evenhand.text.structural import Filter

SLOTS = {"subject": 10, "possessive": 5, "object": 3, "reflexive": 2}


def test_groups_weigh_alike():
    built_in = pronoun_sentences()
    assert {len(group.sentences) for group in built_in.groups.values()} == {20}
    assert len(set(built_in.sentences)) == len(built_in.sentences) == 120
    assert set(built_in.group_of.values()) == set(built_in.groups)


def test_neutral_sentences_and_frames_are_enough_for_the_rule_of_ask():
    built_in = pronoun_sentences()
    assert 2 / (len(set(built_in.neutral)) + 1) <= 0.05
    assert len(set(built_in.frames)) == 5
    assert 2 / 2 ** (1 + len(built_in.frames)) <= 0.05


@pytest.mark.parametrize("text", [*pronoun_sentences().sentences, *pronoun_sentences().neutral])
def test_a_sentence_states_no_gender(text):
    assert text.count("[MASK]") == 1
    assert text.endswith(".")
    judged = Filter(someone=True).sentence(text.replace("[MASK]", "her"))
    assert getattr(judged, "reason", "") not in ("other_indicator", "several_pronouns"), judged
    for plural in (" they ", " their ", " them "):
        before = text.lower().split("[mask]")[0]
        assert plural not in before or "guests" in before, "another pronoun stands for the person"


@pytest.mark.parametrize("text", pronoun_sentences().continuations)
def test_a_continuation_is_about_the_person_before_it_and_states_no_gender(text):
    assert text.count("[MASK]") == 1
    assert text.endswith(".")
    assert text not in pronoun_sentences().sentences
    sentence = "The cyclist fell. " + text.replace("[MASK]", "her")
    judged = Filter(someone=True).sentence(sentence)
    assert getattr(judged, "reason", "") not in ("other_indicator", "several_pronouns"), judged


def test_places_of_the_pronoun():
    """A model finds the form of the pronoun that the file promises; reflexives are hard for it."""
    built_in = pronoun_sentences()
    slots = probabilities(load("mini"), built_in.sentences, words="pronouns").slots()
    promised = [slot for _ in built_in.groups for slot, n in SLOTS.items() for _ in range(n)]
    matches = [slot for slot, other in zip(promised, slots, strict=True) if slot == other]
    counts = Counter(matches)
    assert {slot: counts[slot] for slot in SLOTS if slot != "reflexive"} == {
        "subject": 60,
        "possessive": 30,
        "object": 18,
    }
    assert counts["reflexive"] >= 8


def test_a_sentence_without_one_mask_is_named(tmp_path: Path):
    path = tmp_path / "own.toml"
    path.write_text('[groups.a]\ntitle = "A"\nsentences = ["No mask here.", "[MASK] sings."]\n')
    with pytest.raises(LexiconError, match=r"groups\.a.sentences #1: expected a sentence with one"):
        module._read(path)


def test_a_continuation_without_one_mask_is_named(tmp_path: Path):
    path = tmp_path / "own.toml"
    path.write_text(
        'continuations = ["No mask."]\n[groups.a]\ntitle = "A"\nsentences = ["[MASK]"]\n'
    )
    with pytest.raises(LexiconError, match="continuations #1: expected a sentence with one"):
        module._read(path)


def test_a_frame_without_a_place_for_the_sentence_is_named(tmp_path: Path):
    path = tmp_path / "own.toml"
    path.write_text('frames = ["By the way,"]\n[groups.a]\ntitle = "A"\nsentences = ["[MASK]"]\n')
    with pytest.raises(LexiconError, match=r"frames #1: expected an opening with one \{sentence\}"):
        module._read(path)


def test_a_sentence_stands_in_one_group(tmp_path: Path):
    path = tmp_path / "own.toml"
    group = '[groups.{}]\ntitle = "A"\nsentences = ["[MASK] sings."]\n'
    path.write_text(group.format("a") + group.format("b"))
    with pytest.raises(LexiconError, match=r"is in groups\.a and in groups\.b"):
        module._read(path)
