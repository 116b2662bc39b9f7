"""Professions and templates: the built-in ones, and files of the user's."""

from __future__ import annotations

from collections import Counter

import pytest

from evenhand.errors import InputError, LexiconError
from evenhand.lexicon import (
    PersonPair,
    Profession,
    professions,
    read_professions,
    read_templates,
    sex_indicators,
    template_set,
)


def test_the_built_in_professions_are_of_three_groups_by_share():
    built_in = professions()
    assert len(built_in) >= 60
    assert len({profession.name for profession in built_in}) == len(built_in)
    assert min(Counter(profession.group for profession in built_in).values()) >= 20
    limits = {"male": (0, 30), "balanced": (35, 65), "female": (70, 100)}
    for profession in built_in:
        low, high = limits[profession.group]
        assert profession.women is None or low <= profession.women <= high, profession
        assert not set(profession.name.split()) & sex_indicators(), profession
    assert sum(profession.women is not None for profession in built_in) >= 50
    assert sum(" " in profession.name for profession in built_in) >= 20


def test_the_built_in_templates_name_no_other_gender():
    templates = template_set()
    assert len(templates.templates) >= 12
    assert len({template.kind for template in templates.templates}) >= 4
    for template in templates.templates:
        words = template.text.replace("{person", "").replace("{profession}", "").lower().split()
        assert not {word.strip(".,:}") for word in words} & sex_indicators(), template
    for pair in templates.persons:
        assert set(pair.words) <= sex_indicators()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("he/she", ("he", "she")),
        (" my  brother / my sister ", ("brother", "sister")),
        ("the old man there/the old woman there", ("man", "woman")),
        ("my son/my step daughter", ("son", "step daughter")),
    ],
)
def test_persons_are_masked_where_they_differ(text, words):
    pair = PersonPair.parse(text)
    assert pair.words == words
    assert pair.form(as_object=False) == pair


@pytest.mark.parametrize("text", ["he", "he/", "/she", "he/he", "a/b/c", ""])
def test_persons_that_are_no_pair_are_refused(text):
    with pytest.raises(InputError, match="expected MALE/FEMALE"):
        PersonPair.parse(text)


def test_professions_as_lines_or_as_a_table(tmp_path):
    path = tmp_path / "jobs"
    path.write_text("# mine\nsmith\n\n ship's cook \n")
    assert read_professions(path) == (Profession("smith"), Profession("ship's cook"))
    path.write_text("women,profession\n12.5,smith\n,cook\n")
    assert read_professions(path) == (Profession("smith", None, 12.5), Profession("cook"))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("smith\ncook\nsmith\n", "line 3: 'smith' is also on line 1"),
        ("profession,women\nsmith,much\n", "line 2: women: expected a percentage .* got 'much'"),
        ("profession,women\nsmith,101\n", "line 2: women: expected a percentage .* got '101'"),
        ("profession,group\nsmith,men\n", "line 2: group: expected one of male, female, balanced"),
        ("profession,group\n,male\n", "line 2: expected a profession, got ''"),
        ("profession,share\nsmith,3\n", "unknown column 'share'"),
        ("# nothing\n", "expected at least one line"),
    ],
)
def test_professions_with_a_fault_are_errors_with_their_line(tmp_path, content, problem):
    path = tmp_path / "jobs.csv"
    path.write_text(content)
    with pytest.raises(LexiconError, match=problem):
        read_professions(path)


def test_templates_as_lines_or_as_toml(tmp_path):
    path = tmp_path / "own.txt"
    path.write_text("{person} is a {profession}.\nWe pay {person:object} as a {profession}.\n")
    templates = read_templates(path)
    assert [template.text for template in templates.templates][1].startswith("We pay")
    assert templates.persons == template_set().persons
    path = tmp_path / "own.toml"
    path.write_text(
        'persons = ["he/she"]\n[[template]]\ntext = "{person}, the {profession}"\nkind = "own"\n'
    )
    templates = read_templates(path)
    assert templates.persons == (PersonPair("he", "she"),)
    assert templates.templates[0].kind == "own"


@pytest.mark.parametrize(
    ("name", "content", "problem"),
    [
        ("a.txt", "{person} sleeps.\n", "line 1: expected {person} or {person:object} once"),
        ("a.txt", "{person} {profession}\n{person} {profesion}\n", "line 2: .* got '{person} {pro"),
        ("a.toml", '[[template]]\ntext = "{person}"\n', "template #1.text: expected {person}"),
        ("a.toml", '[[template]]\nx = "{person}"\n', "template #1: unknown key 'x'"),
        (
            "a.toml",
            'persons = ["he"]\n[[template]]\ntext = "{person} {profession}"\n',
            "persons: persons 'he': expected MALE/FEMALE",
        ),
    ],
)
def test_templates_with_a_fault_are_errors_with_their_key(tmp_path, name, content, problem):
    (tmp_path / name).write_text(content)
    with pytest.raises(LexiconError, match=problem.replace("{", r"\{").replace("}", r"\}")):
        read_templates(tmp_path / name)


def test_files_that_are_not_there_or_no_text(tmp_path):
    with pytest.raises(LexiconError, match="cannot be read: No such file"):
        read_professions(tmp_path / "none")
    (tmp_path / "bytes").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(LexiconError, match="not UTF-8 text"):
        read_templates(tmp_path / "bytes")
