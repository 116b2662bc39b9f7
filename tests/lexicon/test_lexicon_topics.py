"""The built-in topics: sizes, disjointness, provenance, and the lists of the literature."""

from __future__ import annotations

import csv
import json
import tomllib
from itertools import combinations
from pathlib import Path

import pytest

from evenhand import lexicon
from evenhand.errors import UnknownNameError
from evenhand.lexicon.schema import data

SHARED = Path(__file__).parents[3] / "shared" / "data"
needs_shared = pytest.mark.skipif(not SHARED.is_dir(), reason="../shared/data is not there")
TOPICS = ("gender", "race", "religion")


def every_topic_word() -> set[str]:
    """Every word of a topic but its controls."""
    topics = [lexicon.topic(name) for name in TOPICS]
    return {
        word
        for topic in topics
        for word in topic.words()
        if word not in topic.neutral and word not in topic.human
    }


def shared_rows(name: str) -> list[dict[str, str]]:
    with (SHARED / "cosine" / name).open(newline="") as file:
        return list(csv.DictReader(file))


def test_public_names_are_sorted_and_exist() -> None:
    assert lexicon.__all__ == sorted(lexicon.__all__)
    assert all(hasattr(lexicon, name) for name in lexicon.__all__)


def test_topic_names() -> None:
    assert lexicon.topic_names() == TOPICS
    assert [lexicon.topic(name).name for name in TOPICS] == list(TOPICS)


@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("gender", ("female", "male")),
        ("religion", ("jew", "christian", "muslim")),
        ("race", ("black", "caucasian", "asian")),
    ],
)
def test_classes(name: str, classes: tuple[str, ...]) -> None:
    topic = lexicon.topic(name)
    assert topic.classes == classes
    assert tuple(topic.protected) == tuple(topic.stereotypes) == classes
    assert {len(words) for words in topic.definitional} == {len(classes)}


@pytest.mark.parametrize("name", TOPICS)
def test_every_list_states_its_provenance(name: str) -> None:
    topic = lexicon.topic(name)
    assert topic.title
    assert topic.provenance
    lists = {"protected", "stereotypes", "extra_stereotypes", "definitional"}
    if topic.equalize != topic.definitional:
        lists.add("equalize")
    if topic.occupations:
        lists.add("occupations")
    assert set(topic.sources) == lists


def test_published_stereotypes_come_alone_unless_asked() -> None:
    religion = lexicon.topic("religion")
    assert religion.attributes("muslim") == ("violent", "terrorist", "dirty", "uneducated")
    assert religion.attributes("muslim", extended=True) == (
        religion.stereotypes["muslim"] + religion.extra_stereotypes["muslim"]
    )
    with pytest.raises(UnknownNameError, match="did you mean 'muslim'"):
        religion.attributes("muslin")


def test_words_holds_every_word_once() -> None:
    gender = lexicon.topic("gender")
    words = gender.words()
    assert len(words) == len(set(words))
    for some in ("she", "secretary", "stoic", "John", "queen", "fighter pilot"):
        assert some in words
    assert set(gender.neutral) | set(gender.human) < set(words)


def test_gender_occupations() -> None:
    occupations = lexicon.topic("gender").occupations
    assert all(len(occupations[name]) >= 20 for name in ("female", "male"))
    assert not set(occupations["female"]) & set(occupations["male"])


def test_controls_are_many_plain_and_stated() -> None:
    gender = lexicon.topic("gender")
    neutral, human = gender.neutral, gender.human
    assert len(neutral) >= 220
    assert len(human) >= 80
    assert not set(neutral) & set(human)
    assert all(word.isascii() and word.isalpha() and word.islower() for word in neutral + human)
    controls = tomllib.loads(data("controls.toml").read_text("utf-8"))
    assert set(controls["sources"]) == {"neutral", "human"}
    assert all(lexicon.topic(name).neutral == neutral for name in TOPICS)


def test_controls_have_no_word_of_any_topic_or_test() -> None:
    gender = lexicon.topic("gender")
    controls = {*gender.neutral, *gender.human}
    assert not controls & {word.lower() for word in every_topic_word()}
    for query in lexicon.weat_queries():
        for words in (*query.targets.values(), *query.attributes.values()):
            assert not controls & {word.lower() for word in words}, query.name


@needs_shared
def test_controls_are_not_those_of_the_published_tables() -> None:
    theirs = {
        row["word_to_compare"]
        for path in (SHARED / "cosine").glob("*.csv")
        for row in shared_rows(path.name)
        if row.get("word_class") in ("neutral", "human")
    }
    gender = lexicon.topic("gender")
    assert len(theirs) > 250
    for ours in (gender.neutral, gender.human):
        assert len(theirs & set(ours)) < 0.15 * len(ours)


@needs_shared
def test_published_definitional_pairs_are_covered() -> None:
    pairs = json.loads((SHARED / "wordlists" / "definitional_pairs.json").read_text())
    assert {tuple(pair) for pair in pairs} <= set(lexicon.topic("gender").definitional)


@needs_shared
@pytest.mark.parametrize(
    ("name", "classes"),
    [
        ("gender", {"female": "woman", "male": "man"}),
        ("religion", {"jew": "jew", "christian": "christian", "muslim": "muslim"}),
        ("race", {"black": "black", "caucasian": "caucasian", "asian": "asian"}),
    ],
)
def test_published_tables_can_be_reproduced(name: str, classes: dict[str, str]) -> None:
    """Every protected word and stereotype of the published tables is in its class here."""
    topic = lexicon.topic(name)
    rows = shared_rows(f"{name}Reddit.csv")
    protected = {word for words in topic.protected.values() for word in words}
    assert {row["protected_word"] for row in rows} == protected
    for ours, theirs in classes.items():
        of_class = [row for row in rows if row["word_class"] == f"{theirs}_stereotype"]
        published = {row["word_to_compare"] for row in of_class}
        assert published <= set(topic.attributes(ours, extended=True))
        if ours != "christian":  # "critical" in the tables, "judgemental" in the paper
            assert published == set(topic.stereotypes[ours])
        associated = {r["protected_word"] for r in of_class if r["connection"] == "associated"}
        assert associated == set(topic.protected[ours])


def test_protected_words_define_their_class_in_some_set() -> None:
    for name in ("race", "religion"):
        topic = lexicon.topic(name)
        for number, of in enumerate(topic.classes):
            assert {words[number] for words in topic.definitional} == set(topic.protected[of])


def test_no_two_classes_share_a_stereotype() -> None:
    for name in TOPICS:
        topic = lexicon.topic(name)
        for one, other in combinations(topic.classes, 2):
            shared = set(topic.attributes(one, extended=True)) & set(
                topic.attributes(other, extended=True)
            )
            assert not shared
