"""The built-in prompts: what they ask, and that versions differ in the group's words only."""

from __future__ import annotations

import re
from collections import Counter, defaultdict

import pytest

from evenhand.errors import UnknownNameError
from evenhand.lexicon.first_names import names
from evenhand.lexicon.gendered import sex_indicators
from evenhand.lexicon.prompts import _file, prompt_rows, prompt_sets
from evenhand.lexicon.queries import weat
from evenhand.lexicon.templates import professions
from evenhand.text.rewrite.neutralize import neutralize
from evenhand.text.rewrite.swap import swap
from evenhand.text.tokens import tokenize

COUNTS = {"occupations": (120, 720), "counterfactuals": (60, 480), "decisions": (24, 192)}
BY_PERSON = ("counterfactuals", "decisions")


def test_counts():
    rows = {name: prompt_rows(name) for name in prompt_sets()}
    counts = {name: (len({a["item"] for _, a in own}), len(own)) for name, own in rows.items()}
    assert counts == COUNTS


@pytest.mark.parametrize("name", COUNTS)
def test_prompts_are_distinct_and_columns_alike(name):
    rows = prompt_rows(name)
    assert len({text for text, _ in rows}) == len(rows)
    assert len({tuple(about) for _, about in rows}) == 1
    assert all(about["item"] and (about.get("wording") or about["naming"]) for _, about in rows)
    assert prompt_sets()[name].provenance.startswith("Written for Evenhand.")
    items = [item.item for item in prompt_sets()[name].items]
    assert len(set(items)) == len(items)


@pytest.mark.parametrize("name", COUNTS)
def test_prompts_are_sentences(name):
    for text, _ in prompt_rows(name):
        assert text[0].isupper(), text
        assert text[-1] in ".?", text
        assert not re.search(r"[{}]|  ", text), text


@pytest.mark.parametrize("name", COUNTS)
def test_articles_agree(name):
    for text, _ in prompt_rows(name):
        for article, word in re.findall(r"\b(an?) (\w+)", text, re.IGNORECASE):
            vowel = word[0] in "aeiou" and not word.startswith(("us", "uni"))
            assert (article.lower() == "an") == vowel, text


def test_occupations_are_crossed_with_wordings():
    rows = [about for _, about in prompt_rows("occupations")]
    wordings = Counter(about["wording"] for about in rows)
    assert len(wordings) == 6
    assert set(wordings.values()) == {120}
    assert set(Counter(about["sector"] for about in rows).values()) == {60}


def test_occupations_state_no_gender():
    for text, _ in prompt_rows("occupations"):
        assert neutralize(text).text == text == swap(text).text
        words = {word.lower() for word in tokenize(text)[0]}
        assert not words & sex_indicators(), text
        assert not any(word in names() for word in text.split()[1:]), text


def test_majorities_are_those_of_the_professions():
    word = {"female": "women", "male": "men", "balanced": "balanced"}
    known = {each.name: word[each.group] for each in professions() if each.group}
    found = {about["item"]: about["majority"] for _, about in prompt_rows("occupations")}
    assert found == {item: known.get(item or "") for item in found}
    assert set(Counter(found.values())) == {"women", "men", "balanced", None}


@pytest.mark.parametrize("name", BY_PERSON)
def test_versions_differ_in_words_of_the_group_only(name):
    versions = {tuple(each.columns.values()): each for each in _file().versions}
    texts = defaultdict(dict)
    for text, about in prompt_rows(name):
        key = tuple(filter(None, (about["naming"], about["gender"], about["race"])))
        texts[about["item"]][key] = text
    for own in texts.values():
        assert own.keys() == versions.keys()
        for key, text in own.items():
            each = versions[key]
            [person] = [p for p in each.persons if text.startswith(p[0].upper() + p[1:] + " ")]
            rest = text.removeprefix(person[0].upper() + person[1:])
            rest = re.sub(rf"\b{each.their}\b", "{their}", rest)
            texts_without = re.sub(rf"\b{each.them}\b", "{their}", rest)
            own[key] = texts_without.replace("{them}", "{their}")
        assert len(set(own.values())) == 1, own


@pytest.mark.parametrize("name", BY_PERSON)
def test_the_swap_of_a_woman_is_the_man(name):
    by_word = {}
    for text, about in prompt_rows(name):
        if about["naming"] == "word":
            by_word[about["item"], about["gender"]] = text
    for item in {item for item, _ in by_word}:
        assert swap(by_word[item, "woman"]).text == by_word[item, "man"]
        assert swap(by_word[item, "man"]).text == by_word[item, "woman"]
        assert swap(by_word[item, "not stated"]).text == by_word[item, "not stated"]


def test_names_have_the_gender_and_the_race_of_their_source():
    race = {"Black": "african_american", "white": "european_american"}
    gender = {"woman": "female", "man": "male", "not stated": None}
    for version in _file().versions:
        if version.columns["naming"] == "word":
            continue
        for name in version.persons:
            assert names().gender(name) == gender[version.columns["gender"]], name
            assert name not in names().ambiguous
            if "race" in version.columns:
                assert name in weat(4).targets[race[version.columns["race"]]]
            else:
                assert 0.3 < (names().share(name) or 0) < 0.7


def test_names_are_used_alike():
    used = Counter(text.split()[0] for text, a in prompt_rows("counterfactuals") if a["race"])
    assert set(used.values()) == {10}


def test_decisions_ask_for_yes_or_no():
    rows = prompt_rows("decisions")
    assert all(re.search(r"\. Should .*\? Answer with yes or no\.$", text) for text, _ in rows)
    assert set(Counter(about["stakes"] for _, about in rows).values()) == {96}


def test_an_unknown_set_is_named():
    with pytest.raises(UnknownNameError, match="unknown prompt set 'occupation'"):
        prompt_rows("occupation")
