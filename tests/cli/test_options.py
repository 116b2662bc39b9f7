"""Options and help of every command, and that the pages name commands and options that exist."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import click
import pytest

from evenhand.cli import command, run
from evenhand.cli.commands import GROUPS, Command, Group, Variants
from evenhand.cli.measure import all_metrics

ROOT = Path(__file__).parents[2]


def walk(group, words=()):
    context = click.Context(group)
    for name in group.list_commands(context):
        member = group.get_command(context, name)
        yield " ".join((*words, name)), member
        if isinstance(member, click.Group):
            yield from walk(member, (*words, name))


@cache
def members():
    return dict(walk(command))


@cache
def options():
    """All options of commands that are no groups, by their long name."""
    listed = defaultdict(list)
    for path, member in members().items():
        for parameter in member.params:
            if isinstance(parameter, click.Option) and not isinstance(member, click.Group):
                listed[parameter.opts[-1]].append((path, parameter))
    return listed


def test_what_several_commands_have():
    listed = options()
    for name in ("--seed", "--prob", "--json", "--quiet", "--encoding", "--max-size", "--restart"):
        assert len(listed[name]) > 4, name
    for path, option in listed["--out"]:
        assert option.opts == ["-o", "--out"], path
        assert option.metavar in ("FILE", "FOLDER"), path
    assert {option.default for _, option in listed["--prob"]} == {0.95}
    of_words = [option for _, option in listed["--topic"] if option.metavar != "COLUMN"]
    assert len(of_words) > 4
    assert all(option.multiple for option in of_words)
    assert {path for path, _ in listed["--device"]} >= {"audit", "lab fewshot run", "measure"}


@pytest.mark.parametrize("path", members())
def test_a_command_is_of_our_kind_and_has_each_option_once(path):
    member = members()[path]
    assert isinstance(member, Command | Group)
    own = [parameter for parameter in member.params if isinstance(parameter, click.Option)]
    flags = [flag for option in own for flag in (*option.opts, *option.secondary_opts)]
    assert len(flags) == len(set(flags))
    assert all(option.help for option in own)
    if isinstance(member, Command):
        assert "--quiet" in flags
        assert "--json" in flags or path in ("completion", "explore", "help", "debias")


@pytest.mark.parametrize("path", ["", *members()])
def test_help_fits_80_columns_and_teaches(path, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    assert run([*path.split(), "--help"]) == 0
    text = capsys.readouterr().out
    assert [line for line in text.splitlines() if len(line) > 80] == []
    flat = " ".join(text.split())
    assert [mark for mark in ("<function", "<class", " object at 0x") if mark in flat] == []
    first = text.split("\n\n")[1]
    assert first.strip()[0].isupper()
    assert re.search(r"Examples?\b.*:", text) or "Start with:" in text
    sections = re.findall(r"^(\w+):$", text, re.M)
    order = [name for name in ("Options", *GROUPS) if name in sections]
    assert [name for name in sections if name in order] == order


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["audit", "--qiuck"], "did you mean --quick?"),
        (["list", "topics", "--zzzz"], "`evenhand list topics --help` lists them"),
        (["list", "topcis"], "unknown command 'topcis': did you mean 'topics'?"),
        (["lst"], "unknown command 'lst': did you mean 'list'?"),
    ],
)
def test_errors_name_what_may_be_meant(arguments, expected, capsys):
    assert run(arguments) == 2
    error = capsys.readouterr().err
    assert error.startswith("error: ")
    assert expected in error
    assert error.count("\n") == 1


def documented():
    """The commands in the pages and in help, each with its page."""
    pages = [ROOT / "README.md", ROOT / "action.yml", *sorted((ROOT / "docs").rglob("*.md"))]
    texts = {page.relative_to(ROOT).as_posix(): page.read_text() for page in pages}
    texts |= {path: member.help or "" for path, member in members().items()}
    for name, text in texts.items():
        for line in text.replace("\\\n", " ").splitlines():
            for found in re.findall(r"\bevenhand ((?:--threads N )?[a-z][^`#|;>]*)", line):
                yield name, found.removeprefix("--threads N ").split()


def variant(member, words):
    """The command with the options of a metric or of a kind of source."""
    if member.name == "debias":
        words = ["glove" if words[:1] in (["SRC"], ["my.vec"], ["glove"]) else "mini"]
    found = member.variant(words)
    return found and found[0]


@cache
def all_flags():
    """The options of all commands, of every metric and kind of source."""
    known = list(members().values())
    known += [variant(members()["measure"], [name]) for name in all_metrics()]
    known += [variant(members()["debias"], [source]) for source in ("glove", "mini")]
    return {flag for each in known for o in each.params for flag in (*o.opts, *o.secondary_opts)}


def test_documented_commands_have_their_options():
    unknown = []
    for page, words in documented():
        path = next((p for n in (3, 2, 1) if (p := " ".join(words[:n])) in members()), None)
        member = members().get(path)
        if isinstance(member, Variants) and (found := variant(member, words[1:])):
            member = found
        if member is None or isinstance(member, click.Group):
            continue
        flags = {f for o in member.params for f in (*o.opts, *o.secondary_opts)} | {"--help"}
        given = {
            word.partition("=")[0].rstrip(",.):") for word in words if word[:2] == "--" != word
        }
        unknown += [(page, path, flag) for flag in sorted(given - flags)]
    assert unknown == []


def test_options_named_in_pages_are_of_some_command():
    """Options in code spans; pages for developers name those of scripts too."""
    every = all_flags()
    unknown = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.parent.name == "developers":
            continue
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for span in re.findall(r"`(-[^`]*)`", text):
            named = re.findall(r"(?<!\S)--?[a-zA-Z][a-z-]*", span)
            unknown += [(page.name, flag) for flag in named if flag not in every]
    assert unknown == []


def test_groups_of_help_name_options_that_exist():
    listed = {flag for flags in GROUPS.values() for flag in flags} - {"--help"}
    assert listed <= all_flags() | {"--threads"}
