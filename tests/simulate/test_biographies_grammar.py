"""The biographies are grammatical, varied, of the right length, and never name an occupation."""

import re

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from evenhand.lexicon.first_names import names
from evenhand.simulate.biographies import DRAWS, KINDS, biographies, grammar

SENTENCE = re.compile(r"(?<!\bM[rs])\. (?=[A-Z])")
TITLES = re.compile(r"\b(" + "|".join(grammar().occupations) + r")s?\b", re.IGNORECASE)
WRONG_A = re.compile(r"\b[Aa] (?!uni|one\b|Euro)[aeiouAEIOU]")
WRONG_AN = re.compile(r"\b[Aa]n (?!hon|hour|X-)[^aeiouAEIOU]")
TWICE = re.compile(r"\b(\w+) \1\b", re.IGNORECASE)
VERB = re.compile(r"\b(?:[Ss]he|[Hh]e) (?:now |also |still |first |rarely |has recently )?([\w-]+)")
IRREGULAR = {
    "became",
    "began",
    "broke",
    "brought",
    "built",
    "can",
    "grew",
    "heard",
    "led",
    "put",
    "ran",
    "read",
    "rewrote",
    "sold",
    "shot",
    "spent",
    "spoke",
    "taught",
    "took",
    "won",
    "wrote",
    "set",
}


def check(text):
    sentences = SENTENCE.split(text)
    assert 3 <= len(sentences) <= 6, text
    assert 40 <= len(text.split()) <= 100, text
    assert all(sentence[0].isupper() for sentence in sentences), text
    assert text.endswith(".")
    assert not re.search(r"[{}]|\s\s|\s[.,;]|[.,;]{2}|\n", text), text
    assert text == text.strip()
    assert not TITLES.search(text), text
    assert not WRONG_A.search(text), text
    assert not WRONG_AN.search(text), text
    assert not TWICE.search(text), text
    for verb in VERB.findall(text):
        assert verb.endswith(("s", "ed")) or verb in IRREGULAR, (verb, text)


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 10**9),
    leak=st.floats(0, 1),
    wording=st.floats(0, 1),
    name=st.sampled_from(list(grammar().occupations)),
)
def test_texts_and_counterfactuals_are_grammatical(seed, leak, wording, name):
    bios = biographies(12, leak=leak, wording=wording, seed=seed, occupations=[name])
    for text in (*bios.texts, *bios.counterfactuals):
        check(text)


def test_every_occupation_is_grammatical():
    for text in biographies(100, seed=1).texts:
        check(text)


@pytest.mark.parametrize("name", ["rapper", "paralegal", "professor"])
def test_two_thousand_texts_of_an_occupation_are_distinct(name):
    texts = biographies(2000, seed=2, occupations=[name]).texts
    assert len(set(texts)) >= 1980
    faceless = {re.sub(r"[A-Z][\w.]*|\d+", "", text) for text in texts}
    assert len(faceless) >= 1900  # names, places and years apart


def test_texts_begin_in_many_ways():
    bios = biographies(300, seed=3, occupations=["journalist"])
    openings = {
        re.sub(r"[A-Z][\w'.]*|\d+", "", SENTENCE.split(text)[0])[:25] for text in bios.texts
    }
    assert len(openings) > 60


def chances(name, kind):
    """How likely each phrase of a kind is in an occupation."""
    pools = grammar().occupations[name].phrases[kind]
    found = dict.fromkeys((phrase for phrases in pools.lists for phrase in phrases), 0.0)
    for phrases, low, high in zip(pools.lists, (0, *pools.bounds), pools.bounds, strict=False):
        for phrase in phrases:
            found[phrase] += (high - low) / len(phrases)
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_related_occupations_share_more_than_half_of_what_they_say(kind):
    for one, two in (("nurse", "physician"), ("dj", "composer"), ("attorney", "paralegal")):
        first, second = chances(one, kind), chances(two, kind)
        assert sum(min(p, second.get(phrase, 0)) for phrase, p in first.items()) > 0.5


def test_the_phrases_are_of_their_kind():
    prepositions = {"at", "in", "on", "with", "for"}
    for occupation in grammar().occupations.values():
        for kind in KINDS:
            for phrase in (p for pool in occupation.phrases[kind].lists for p in pool):
                first = phrase.split()[0]
                assert "{" not in phrase
                if kind == "work":
                    assert first.endswith("ing"), phrase
                if kind == "place":
                    assert first in prepositions, phrase
                if kind == "did":
                    assert first.endswith("ed") or first in IRREGULAR | {"was"}, phrase
        for pools in occupation.phrases.values():
            assert pools.bounds[-1] == pytest.approx(1)


def test_both_sides_of_a_pair_are_of_one_length_and_no_place_is_a_first_name():
    book = grammar()
    for pairs in book.wording.values():
        for women, men in pairs:
            assert len(women.split()) == len(men.split())
    for name in (*book.lists["city"], *book.lists["surname"]):
        assert name not in names()
        assert not name.endswith("s") or name in book.lists["city"]


def test_the_orders_are_long_enough_and_no_text_runs_out_of_draws():
    book = grammar()
    cost = {
        kind: max(3 * sum(slot is not None for _, slot in pieces) for pieces in sentences)
        for kind, sentences in book.sentences.items()
    }
    for order in book.orders:
        assert len(set(order)) == len(order) == 6
        assert 6 + sum(1 + cost[kind] for kind in order) <= DRAWS
