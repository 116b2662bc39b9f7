"""The built-in lists, which no schema reads: no blanks around an entry, none twice in a list."""

import tomllib
from collections.abc import Iterator
from importlib.resources import files

import pytest

from evenhand.lexicon.schema import data
from evenhand.text.vocabulary import GRAMMAR

SIMULATED = files("evenhand.simulate").joinpath("data")
FILES = {
    file.name: file
    for folder in (data(), SIMULATED, SIMULATED.joinpath("fields"))
    for file in folder.iterdir()
    if file.name.endswith(".toml")
}


def lists(value: object, path: str = "") -> Iterator[tuple[str, list[str]]]:
    """Every list of texts, with its key; a text of several lines is a list of words."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from lists(inner, f"{path}.{key}")
    elif isinstance(value, list) and all(isinstance(each, str) for each in value):
        yield path, value
    elif isinstance(value, list):
        for number, inner in enumerate(value):
            yield from lists(inner, f"{path}[{number}]")
    elif isinstance(value, str) and "\n" in value:
        yield path, value.split()


@pytest.mark.parametrize("name", FILES)
def test_no_entry_is_blank_or_twice(name: str) -> None:
    content = tomllib.loads(FILES[name].read_text("utf-8"))
    for path, entries in lists(content):
        assert entries, f"{path} is empty"
        for entry in entries:
            assert entry, f"{path} has an empty entry"
            assert entry == entry.strip(), f"{path}: {entry!r}"
        repeated = {entry for entry in entries if entries.count(entry) > 1}
        assert not repeated, f"{path}: {repeated}"


def test_grammar_is_in_lower_case() -> None:
    for part in ("sets", "function_words", "open_words", "plain_forms", "plurals", "they"):
        assert str(GRAMMAR[part].values()).lower() == str(GRAMMAR[part].values()), part


def test_no_word_has_two_tags() -> None:
    words = [word for listed in GRAMMAR["function_words"].values() for word in listed.split()]
    assert sorted(words) == sorted(set(words))


def test_confidences_are_shares() -> None:
    assert all(0 < share < 1 for share in GRAMMAR["confidence"].values())
