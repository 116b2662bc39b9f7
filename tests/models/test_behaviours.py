"""Behaviour phrases of filtered sentences, and their correlation with the pronouns."""

import json

import numpy as np
import pytest

from evenhand.errors import FileError, InputError
from evenhand.models import load
from evenhand.models.metrics.behaviours import (
    PAPER,
    behaviour,
    correlate_sentences,
    read_behaviours,
)
from evenhand.text.structural import Accepted, Filter

SENTENCES = [
    "The belly dancer dances on stage shaking her hips and body.",
    "The drummer sits at the back of the stage tapping her foot.",
    "The driver parks the truck and lifts his heavy tools.",
    "The cook burns the soup because she forgot the time.",
    "The farmer repairs his tractor in the barn.",
    "The teacher waves at her class.",
    "The pilot checks his watch.",
    "The singer brushes her hair.",
]


@pytest.mark.parametrize(
    ("sentence", "pronoun", "antecedent", "phrase", "role"),
    [
        (SENTENCES[0], "her", "The belly dancer", "dances on stage shaking the hips", "possessive"),
        (
            "Someone winds up his right arm and knocks the fighter down with a haymaker.",
            "his",
            "Someone",
            "winds up the right arm",
            "possessive",
        ),
        (SENTENCES[3], "she", "The cook", "forgot the time", "subject"),
        ("The guard says hello to the man near him.", "him", "", "", "object"),
        ("He.", "He", "", "", "subject"),
    ],
)
def test_the_clause_around_the_pronoun(sentence, pronoun, antecedent, phrase, role):
    found = behaviour(sentence, pronoun, sentence.index(pronoun), antecedent)
    assert found[1] == role
    if phrase or pronoun == "He":
        assert found[0] == phrase


@pytest.fixture
def accepted(tmp_path):
    path = tmp_path / "accepted.jsonl"
    results = [Filter().sentence(s) for s in SENTENCES]
    rows = [
        {
            name: getattr(r, name)
            for name in ("sentence", "masked", "pronoun", "offset", "antecedent")
        }
        for r in results
        if isinstance(r, Accepted)
    ]
    path.write_text("".join(json.dumps(row) + "\n" for row in [*rows, rows[0]]))
    return path


def test_the_correlation_is_that_of_the_items(accepted):
    sentences = read_behaviours(accepted)
    assert len({s.sentence for s in sentences}) == len(sentences) >= 4
    m = correlate_sentences(load("mini"), sentences)
    x, y = (np.asarray(m.items[name], float) for name in ("association", "log_odds"))
    assert m.part("all sentences").value == pytest.approx(np.corrcoef(x, y)[0, 1], abs=1e-6)
    assert set(m.details["paper"]) == set(PAPER)
    assert -1 <= m.low <= m.value <= m.high <= 1
    gendered = {"he", "she", "his", "her", "him"}
    assert not any(gendered & set(phrase.lower().split()) for phrase in m.items["phrase"])


def test_too_few_sentences_and_other_files_are_errors(tmp_path):
    with pytest.raises(InputError, match="4 or more"):
        correlate_sentences(load("mini"), [])
    path = tmp_path / "x.jsonl"
    path.write_text('{"masked": "a [MASK]"}\n')
    with pytest.raises(FileError, match="evenhand filter"):
        read_behaviours(path)
