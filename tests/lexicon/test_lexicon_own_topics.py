"""Topics from files: what is accepted, and one-line errors."""

from __future__ import annotations

from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from typing import Any

import pytest

from evenhand import lexicon
from evenhand.errors import LexiconError, UnknownNameError

AGE: dict[str, Any] = {
    "name": "age",
    "title": "Age",
    "provenance": "Made for the tests.",
    "definitional": [["young", "old"], ["teen", "senior"]],
    "neutral": ["granite", "zinc"],
    "human": ["elbow", "knee"],
    "classes": {
        "young": {"protected": ["young", "teen"], "stereotypes": ["reckless"]},
        "old": {
            "protected": ["old", "senior"],
            "stereotypes": ["forgetful"],
            "extra_stereotypes": ["grumpy"],
        },
    },
}
MISSING = object()
Load = Callable[[dict[str, Any] | str], lexicon.Topic]


def changed(location: str, value: Any) -> dict[str, Any]:
    """The topic with one value replaced, added or taken away."""
    content = deepcopy(AGE)
    *tables, key = location.split(".")
    target = content
    for table in tables:
        target = target.setdefault(table, {})
    if value is MISSING:
        del target[key]
    else:
        target[key] = value
    return content


@pytest.fixture
def load(tmp_path: Path, as_toml: Callable[[dict[str, Any]], str]) -> Load:
    """Write a topic, as tables or as text, to t.toml and load it."""

    def write_and_load(content: dict[str, Any] | str) -> lexicon.Topic:
        path = tmp_path / "t.toml"
        text = content if isinstance(content, str) else as_toml(content)
        path.write_text(text, encoding="utf-8")
        return lexicon.topic(path)

    return write_and_load


def test_a_topic_of_ones_own(tmp_path: Path, load: Load) -> None:
    topic = load(AGE)
    assert topic.classes == ("young", "old")
    assert topic.equalize == topic.definitional == (("young", "old"), ("teen", "senior"))
    assert topic.extra_stereotypes == {"young": (), "old": ("grumpy",)}
    assert topic.occupations == topic.sources == {}
    assert topic == lexicon.topic(str(tmp_path / "t.toml"))


def test_shared_controls_and_a_controls_file(tmp_path: Path, load: Load) -> None:
    content = changed("neutral", MISSING)
    del content["human"]
    shared = load(content | {"controls": "controls"})
    assert len(shared.neutral) >= 220
    (tmp_path / "mine.toml").write_text('neutral = ["zinc"]\nhuman = ["knee"]\n')
    own = load(content | {"controls": "mine.toml"})
    assert (own.neutral, own.human) == (("zinc",), ("knee",))


def test_windows_line_ends_and_a_byte_order_mark(
    tmp_path: Path, as_toml: Callable[[dict[str, Any]], str]
) -> None:
    path = tmp_path / "t.toml"
    path.write_bytes(b"\xef\xbb\xbf" + as_toml(AGE).replace("\n", "\r\n").encode())
    assert lexicon.topic(path).name == "age"


def test_what_is_a_path_and_what_a_name(tmp_path: Path) -> None:
    with pytest.raises(UnknownNameError, match="unknown topic 'gendre': did you mean 'gender'"):
        lexicon.topic("gendre")
    for path in ("gendre.toml", "./gender", tmp_path / "gender"):
        with pytest.raises(LexiconError, match="cannot be read: No such file"):
            lexicon.topic(path)


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        ('name = "age"\ntitle = \n', ", line 2: not TOML: Invalid value"),
        ('name = "age"\nname = "b"\n', ", line 2: not TOML: Cannot overwrite a value"),
        ('name = "age"\nneutral = ["zinc",\n', ", line 2: not TOML: Invalid value"),
        ("", ": the key 'name' is missing"),
    ],
)
def test_syntax_errors_name_the_line(tmp_path: Path, load: Load, text: str, complaint: str) -> None:
    with pytest.raises(LexiconError) as caught:
        load(text)
    assert str(caught.value) == f"{tmp_path / 't.toml'}{complaint}"


ONE_SIDE = "a word belongs to one class, and to either stereotypes or controls"


@pytest.mark.parametrize(
    ("location", "value", "complaint"),
    [
        ("title", MISSING, "the key 'title' is missing"),
        ("name", " age", "name: expected a word without blanks around it, got ' age'"),
        ("title", 3, "title: expected a text, got a number"),
        ("title", "", "title: the text is empty"),
        (
            "definitinal",
            [],
            "unknown key 'definitinal': did you mean 'definitional'? (known: name, title, "
            "provenance, classes, definitional, equalize, controls, neutral, human, occupations, "
            "sources)",
        ),
        ("classes", "young", "classes: expected a table, got the text 'young'"),
        ("classes.old", MISSING, "classes: expected at least 2 classes, got 1"),
        ("classes.old.protected", MISSING, "classes.old: the key 'protected' is missing"),
        (
            "classes.old.stereotype",
            ["x"],
            "classes.old: unknown key 'stereotype': did you mean 'stereotypes'? "
            "(known: protected, stereotypes, extra_stereotypes)",
        ),
        ("classes.old.protected", [], "classes.old.protected: the list is empty"),
        (
            "classes.old.protected",
            ["old"],
            "classes.old.protected: expected at least 2 words, got 1",
        ),
        (
            "classes.old.protected",
            ["old", 7],
            "classes.old.protected #2: expected a word, got a number",
        ),
        (
            "classes.old.protected",
            ["old", "old"],
            "classes.old.protected: the word 'old' occurs twice in the list",
        ),
        (
            "classes.old.protected",
            ["old", "teen"],
            "'teen' is in the protected words of young and in the protected words of old: "
            + ONE_SIDE,
        ),
        (
            "classes.old.stereotypes",
            ["reckless"],
            "'reckless' is in the stereotypes of young and in the stereotypes of old: " + ONE_SIDE,
        ),
        (
            "classes.old.extra_stereotypes",
            ["forgetful"],
            "'forgetful' is in stereotypes and in extra_stereotypes of old",
        ),
        (
            "neutral",
            ["zinc", "teen"],
            "'teen' is in the protected words of young and in neutral: " + ONE_SIDE,
        ),
        ("human", ["zinc"], "'zinc' is in neutral and in human: " + ONE_SIDE),
        ("neutral", [], "neutral: the list is empty"),
        (
            "neutral",
            MISSING,
            "expected the key 'controls', or 'neutral' with control words",
        ),
        ("controls", "controls", "expected either the key 'controls' or 'neutral', got both"),
        ("definitional", [], "definitional: the list is empty"),
        (
            "definitional",
            [["young", "old"], ["teen"]],
            "definitional #2: expected 2 words, one per class (young, old), got 1",
        ),
        (
            "definitional",
            [["old", "young"]],
            "definitional #1: 'old' has the position of young and is a protected word of old",
        ),
        (
            "equalize",
            [["junior", "grumpy"]],
            "'grumpy' is in the definitional and equalize sets and in the stereotypes of old: "
            "what defines a class cannot be an attribute",
        ),
        (
            "equalize",
            [["junior", "x", "y"]],
            "equalize #1: expected 2 words, one per class (young, old), got 3",
        ),
        (
            "occupations",
            {"yuong": ["intern"]},
            "occupations: unknown key 'yuong': did you mean 'young'? (known: young, old)",
        ),
        (
            "occupations",
            {"young": ["elbow"]},
            "'elbow' is in occupations and in human: a control word must have no tie to the topic",
        ),
        (
            "occupations",
            {"young": ["intern"], "old": ["intern"]},
            "'intern' is in the occupations of young and in the occupations of old: "
            "an occupation is tied to one class",
        ),
        ("sources", {"neutral": False}, "sources.neutral: expected a text, got false"),
    ],
)
def test_a_wrong_topic_is_one_line(
    tmp_path: Path, load: Load, location: str, value: Any, complaint: str
) -> None:
    with pytest.raises(LexiconError) as caught:
        load(changed(location, value))
    assert str(caught.value) == f"{tmp_path / 't.toml'}: {complaint}"


def test_a_wrong_name_of_controls(load: Load) -> None:
    content = changed("controls", "control")
    del content["neutral"], content["human"]
    with pytest.raises(LexiconError, match=r"expected 'controls' or the path of a \.toml, got"):
        load(content)
    with pytest.raises(LexiconError, match=r"none\.toml: cannot be read"):
        load(content | {"controls": "none.toml"})


def test_a_date_is_no_word(load: Load, as_toml: Callable[[dict[str, Any]], str]) -> None:
    text = as_toml(AGE).replace('"Age"', "1979-05-27")
    with pytest.raises(LexiconError, match="title: expected a text, got the date 1979-05-27"):
        load(text)


@pytest.mark.parametrize("name", ["neutral", "human", "none"])
def test_a_class_cannot_have_the_name_of_the_controls(load: Load, name: str) -> None:
    """Its words would be taken for control words, and silently so."""
    content = deepcopy(AGE)
    content["classes"][name] = content["classes"].pop("old")
    with pytest.raises(LexiconError, match=f"another name for the class '{name}'"):
        load(content)
