"""Any valid topic loads back equal, and any damaged one loads or is refused, never worse."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from evenhand import lexicon
from evenhand.errors import LexiconError

WORD = st.text(
    st.characters(
        codec="utf-8", exclude_categories=["Cc", "Cf", "Cs", "Zs", "Zl", "Zp", "Co", "Cn"]
    ),
    min_size=1,
    max_size=6,
)
Writer = Callable[[dict[str, Any]], str]
FILES = settings(
    max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
CLASS = WORD.filter(lambda name: name not in ("human", "neutral", "none"))


@st.composite
def topics(draw: st.DrawFn) -> dict[str, Any]:
    """A valid topic, as the tables of its file: distinct words dealt out to the lists."""
    count = draw(st.integers(2, 4))
    sizes = [draw(st.integers(2, 4)) for _ in range(count)]
    extras = draw(st.booleans())
    needed = sum(sizes) + count * (2 + extras) + 4
    words = draw(st.lists(WORD, min_size=needed, max_size=needed, unique=True))
    names = draw(st.lists(CLASS, min_size=count, max_size=count, unique=True))

    def deal(number: int) -> list[str]:
        return [words.pop() for _ in range(number)]

    classes = {}
    for name, size in zip(names, sizes, strict=True):
        classes[name] = {"protected": deal(size), "stereotypes": deal(2)}
        if extras:
            classes[name]["extra_stereotypes"] = deal(1)
    content: dict[str, Any] = {
        "name": "drawn",
        "title": draw(WORD),
        "provenance": draw(WORD),
        "definitional": [[table["protected"][i] for table in classes.values()] for i in (0, 1)],
        "neutral": deal(2),
        "human": deal(2),
        "classes": classes,
    }
    if draw(st.booleans()):
        content["equalize"] = content["definitional"][:1]
    if draw(st.booleans()):
        content["occupations"] = {names[0]: ["some work", "other work"]}
    return content


@FILES
@given(content=topics())
def test_a_topic_loads_back_as_written(
    tmp_path: Path, as_toml: Writer, content: dict[str, Any]
) -> None:
    path = tmp_path / "t.toml"
    path.write_text(as_toml(content), encoding="utf-8")
    topic = lexicon.topic(path)
    assert topic.classes == tuple(content["classes"])
    for name, table in content["classes"].items():
        assert topic.protected[name] == tuple(table["protected"])
        assert topic.stereotypes[name] == tuple(table["stereotypes"])
        assert topic.extra_stereotypes[name] == tuple(table.get("extra_stereotypes", ()))
    sets = content["definitional"]
    assert topic.definitional == tuple(map(tuple, sets))
    assert topic.equalize == tuple(map(tuple, content.get("equalize", sets)))
    assert (topic.neutral, topic.human) == (tuple(content["neutral"]), tuple(content["human"]))
    assert topic.occupations == {
        name: tuple(words) for name, words in content.get("occupations", {}).items()
    }
    assert (topic.title, topic.provenance) == (content["title"], content["provenance"])


JUNK = st.recursive(
    st.text(max_size=5).filter(lambda text: text.isprintable())
    | st.integers()
    | st.booleans()
    | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=6,
)


def locations(value: Any) -> list[tuple[Any, Any]]:
    """Every value in nested tables and lists, as container and key."""
    keys = list(value) if isinstance(value, dict) else range(len(value))
    pairs = [(value, key) for key in keys]
    for key in keys:
        if isinstance(value[key], dict | list):
            pairs += locations(value[key])
    return pairs


@FILES
@given(content=topics(), draws=st.data())
def test_a_mutated_topic_loads_or_is_refused(
    tmp_path: Path, as_toml: Writer, content: dict[str, Any], draws: st.DataObject
) -> None:
    container, key = draws.draw(st.sampled_from(locations(content)))
    if draws.draw(st.booleans()):
        container[key] = draws.draw(JUNK)
    else:
        del container[key]
    load_or_refuse(tmp_path / "t.toml", as_toml(content).encode())


@FILES
@given(content=topics(), draws=st.data())
def test_damaged_bytes_load_or_are_refused(
    tmp_path: Path, as_toml: Writer, content: dict[str, Any], draws: st.DataObject
) -> None:
    raw = as_toml(content).encode()
    start = draws.draw(st.integers(0, len(raw)))
    end = draws.draw(st.integers(start, min(len(raw), start + 8)))
    load_or_refuse(tmp_path / "t.toml", raw[:start] + draws.draw(st.binary(max_size=4)) + raw[end:])


def load_or_refuse(path: Path, raw: bytes) -> None:
    path.write_bytes(raw)
    refusal = ""
    try:
        topic = lexicon.topic(path)
    except LexiconError as problem:
        refusal = str(problem)
    if refusal:
        assert str(path) in refusal
        assert len(refusal.splitlines()) == 1
    else:
        assert len(topic.classes) >= 2
        assert all(len(words) >= 2 for words in topic.protected.values())
