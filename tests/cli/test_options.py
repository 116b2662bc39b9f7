"""One vocabulary of options: the same name means the same everywhere, and has the same help."""

import re
from collections import defaultdict
from functools import cache
from pathlib import Path

import click
import pytest

from evenhand.cli import command, run
from evenhand.cli.commands import GROUPS, RENAMED, Command, Group
from evenhand.instruments import LANGUAGE, all_declarations, instruments

ROOT = Path(__file__).parents[2]

TYPES = {
    "--cluster": "crossed templates can be one more cluster of items",
    "--data": "material of the metrics of a model is a file, labelled texts have names too",
    "--dtype": "training can choose it by the device",
    "--duplicates": "odds can count every row",
    "--female": "odds take several codes",
    "--group": "items have one group",
    "--label": "audits that are compared are named by it too",
    "--male": "odds take several codes",
    "--method": "the method of the command: of scoring pairs, of debiasing",
    "--model": "training and generation take one model",
    "--names": "names drawn at random would change a measure from run to run",
    "--score": "classes have a column each, items one score",
}
"""Options whose values differ between commands, and why."""

DEFAULTS = {
    "--batch": "episodes and blocks differ in size",
    "--data": "an audit of something else has none",
    "--dtype": "see above",
    "--duplicates": "see above",
    "--family": "a comparison is made by one model",
    "--female": "see above",
    "--fills": "a search tries more than a measure counts",
    "--held-out": "of documents; of pairs of sentences",
    "--learning-rate": "of networks of different sizes",
    "--limit": "pairs of all words would be too many",
    "--male": "see above",
    "--max-length": "an encoder has its own",
    "--method": "see above",
    "--model": "an audit of something else has none",
    "--names": "what a rewriting was published with",
    "--option": "a network or an engine",
    "--out": "what cannot be printed has a default folder",
    "--patience": "validations and evaluations",
    "--permutations": "as many as the cost of a measure allows",
    "--rewrite-share": "swap and substitute differ in it",
    "--text": "none, or found by its name",
    "--top": "answers, pairs and classes",
    "--topic": "an audit has three, debiasing one",
}
"""Options whose defaults differ between commands, and why."""

TEXTS = {
    *("--append", "--batch", "--cache", "--cluster", "--data", "--device", "--dtype"),
    *("--duplicates", "--female", "--figures", "--fills", "--gender", "--group", "--held-out"),
    *(
        "--items",
        "--label",
        "--male",
        "--max-length",
        "--method",
        "--model",
        "--names",
        "--null",
        "--option",
    ),
    *("--out", "--patience", "--permutations", "--score", "--seed", "--sentences", "--text"),
    "--vectors",
}
"""Options whose help says what they are for in the command."""

SYNONYMS = {
    "--cache": ("--cache-dir", "--cache-folder"),
    "--device": ("--gpu", "--cuda"),
    "--figures": ("--plots", "--charts", "--plot", "--figure"),
    "--json": ("--as-json", "--jsonl"),
    "--label": ("--labels", "--class-column"),
    "--limit": ("--head", "--first", "--max-items", "--n"),
    "--metric": ("--metrics", "--measure-by"),
    "--model": ("--models", "--language-model"),
    "--out": ("--output", "--outfile", "--folder", "--dir", "--to", "--save"),
    "--prob": ("--probability", "--level", "--confidence", "--ci"),
    "--quiet": ("--silent", "--no-progress", "--verbose"),
    "--restart": ("--resume", "--no-resume", "--overwrite", "--force", "--fresh"),
    "--seed": ("--random-seed", "--rng"),
    "--text": ("--field", "--column", "--text-column"),
    "--threads": ("--max-threads", "--num-threads"),
    "--topic": ("--topics",),
    "--vectors": ("--embeddings", "--vector"),
    "--workers": ("--jobs", "--processes", "--num-workers", "--cores"),
}
"""What else such options are called elsewhere; here each has one name."""


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


def kind(option):
    """What a value is: its type, its choices, and whether there can be several."""
    choices = tuple(getattr(option.type, "choices", ()))
    return type(option.type).__name__, choices, option.multiple, option.is_flag


def differing(by):
    """The options of which commands differ in something."""
    return {
        flag: {path: by(option) for path, option in used}
        for flag, used in options().items()
        if len({str(by(option)) for _, option in used}) > 1
    }


def text(option):
    """The help, without the metrics of the command that have the option."""
    names = "|".join(about.name for about in all_declarations())
    return re.sub(rf"^(({names})(, )?)+: ", "", option.help)


def unset(option):
    return (
        None if option.default in (None, ()) or "UNSET" in str(option.default) else option.default
    )


@pytest.mark.parametrize(("by", "allowed"), [(kind, TYPES), (unset, DEFAULTS), (text, TEXTS)])
def test_the_same_name_means_the_same(by, allowed):
    found = differing(by)
    assert {flag: uses for flag, uses in found.items() if flag not in allowed} == {}
    assert set(allowed) - set(found) <= {"--female", "--male", "--option", "--text"}, "now the same"


@pytest.mark.parametrize("subjects", [tuple(LANGUAGE), ("vectors",), ("predictions",)])
def test_metrics_that_share_an_option_mean_the_same(subjects):
    """One of them would otherwise be out of reach of the command line."""
    declared = {}
    for subject in subjects:
        for cls in instruments(subject).values():
            for option in cls.declaration.options:
                about = (option.type, option.choices, option.flag, option.help, option.multiple)
                assert declared.setdefault(option.name, about) == about, cls.declaration.name


def test_help_says_which_metrics_have_an_option(capsys):
    assert run(["model", "measure", "--help"]) == 0
    shown = " ".join(capsys.readouterr().out.split())
    assert "--per-gender N disco: First names of each gender" in shown
    assert (
        "perplexity, bbq, holisticbias: Bootstrap resamples. [default: (2000; holisticbias" in shown
    )


def test_the_same_thing_has_the_same_name():
    flags = defaultdict(set)
    for flag, used in options().items():
        for _, option in used:
            flags[text(option)].add(flag)
    assert {text: names for text, names in flags.items() if len(names) > 1} == {}
    for name, others in SYNONYMS.items():
        assert name in options() or name == "--threads"
        assert not set(others) & set(options()), name


def test_what_several_commands_have():
    listed = options()
    for name in ("--seed", "--prob", "--json", "--quiet", "--encoding", "--max-size", "--restart"):
        assert len(listed[name]) > 4, name
    for path, option in listed["--out"]:
        assert option.opts == ["-o", "--out"], path
        assert option.metavar in ("FILE", "FOLDER"), path
    assert {option.default for _, option in listed["--prob"]} == {0.95}
    assert all(option.multiple for _, option in listed["--topic"])
    assert {path for path, _ in listed["--device"]} >= {"audit", "fewshot run", "model measure"}


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
        assert "--json" in flags or path in ("completion", "explore")


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
        (["audit", "--output", "x"], "no such option --output: did you mean --out?"),
        (["audit", "--topics", "x"], "did you mean --topic?"),
        (["audit", "--qiuck"], "did you mean --quick?"),
        (["text", "swap", "--field", "x"], "did you mean --text?"),
        (["text", "swap", "--jobs", "2"], "did you mean --workers?"),
        (["posterior", "fit", "t.csv", "--model", "x"], "did you mean --family?"),
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


def test_documented_commands_have_their_options():
    unknown = []
    for page, words in documented():
        path = next((p for n in (3, 2, 1) if (p := " ".join(words[:n])) in members()), None)
        member = members().get(path)
        if member is None or isinstance(member, click.Group):
            continue
        flags = {f for o in member.params for f in (*o.opts, *o.secondary_opts)} | {"--help"}
        given = {word.partition("=")[0].rstrip(",.):") for word in words if word.startswith("--")}
        unknown += [(page, path, flag) for flag in sorted(given - flags)]
    assert unknown == []


def test_options_named_in_pages_are_of_some_command():
    """Options in code spans; pages for developers name those of scripts too."""
    every = {flag for member in members().values() for o in member.params for flag in o.opts}
    every |= {
        flag for member in members().values() for o in member.params for flag in o.secondary_opts
    }
    unknown = []
    for page in sorted((ROOT / "docs").rglob("*.md")):
        if page.parent.name == "developers":
            continue
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for span in re.findall(r"`(-[^`]*)`", text):
            named = re.findall(r"(?<!\S)--?[a-zA-Z][a-z-]*", span)
            unknown += [(page.name, flag) for flag in named if flag not in every]
    assert unknown == []


def test_every_suggestion_exists():
    flags = {flag for used in options().values() for _, o in used for flag in o.opts}
    flags |= {flag for used in options().values() for _, o in used for flag in o.secondary_opts}
    for old, new in RENAMED.items():
        assert set(new) - {"--threads"} <= flags, old


def test_groups_of_help_name_options_that_exist():
    listed = {flag for flags in GROUPS.values() for flag in flags} - {"--help"}
    assert listed <= {*options(), "--items"}
